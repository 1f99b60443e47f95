//! The model of a collection: a list of documents that is scanned for every answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::document::{ContentKey, DocumentHeader, StoredDocument, StoredParagraph};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::found_document::{FoundDocument, SearchHit};
use crate::operations::{
    InsertWhen, Neighbour, ParagraphMatches, QueryResult, WriteOp, WriteOutcome,
};
use crate::pair_rule::{CategoryScope, NeighbourScope, PairTraits};
use crate::settings::CollectionSettings;
use crate::time::UnixMillis;
use crate::verdict::{SimilarParagraph, Verdict};

/// Counts the bits or places in which two sketches differ, one by one.
fn distance(a: &DocumentSketch, b: &DocumentSketch) -> u32 {
    let differing = |count: usize, differ: &dyn Fn(usize) -> bool| {
        (0..count).filter(|&at| differ(at)).count() as u32
    };
    match (a, b) {
        (DocumentSketch::Fingerprint(a), DocumentSketch::Fingerprint(b)) => {
            differing(64, &|at| (a.0 ^ b.0) >> at & 1 == 1)
        }
        (DocumentSketch::Bits(a, bits), DocumentSketch::Bits(b, _)) => {
            differing(*bits as usize, &|at| (a.0 ^ b.0) >> at & 1 == 1)
        }
        (DocumentSketch::SuperShingles(a), DocumentSketch::SuperShingles(b)) => {
            differing(a.len(), &|at| a[at] != b[at])
        }
        (DocumentSketch::Minima(a), DocumentSketch::Minima(b)) => {
            differing(a.len(), &|at| a[at] != b[at])
        }
        _ => panic!("sketches of two forms"),
    }
}

/// The model of a collection.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    settings: CollectionSettings,
    /// Documents in order of insertion.
    documents: BTreeMap<u64, Arc<StoredDocument>>,
    places: HashMap<String, u64>,
    next: u64,
    pub(crate) time: UnixMillis,
}

impl Model {
    pub(crate) fn new(settings: &CollectionSettings) -> Self {
        Self {
            settings: settings.clone(),
            documents: BTreeMap::new(),
            places: HashMap::new(),
            next: 0,
            time: UnixMillis(0),
        }
    }

    pub(crate) fn now(&mut self, told: UnixMillis) -> UnixMillis {
        self.time = self.time.max(told);
        self.time
    }

    fn live(&self) -> impl Iterator<Item = &Arc<StoredDocument>> {
        self.documents
            .values()
            .filter(|document| document.is_alive(self.time))
    }

    /// Answers a query, without the cursor, which only the store knows.
    pub(crate) fn query(
        &self,
        content: &ContentKey,
        scope: NeighbourScope,
        limit: usize,
        own: Option<&str>,
    ) -> QueryResult {
        let others = || {
            self.live()
                .filter(|document| Some(document.id.as_str()) != own)
                .filter(|document| self.is_compared(content.traits, document.traits, scope))
        };
        let form = self.settings.sketch_form();
        let near = others().filter_map(|document| {
            let theirs = document.sketch(form)?;
            let distance = distance(&theirs, content.sketch.as_ref()?);
            let found = FoundDocument::InMemory(Arc::clone(document));
            let header = DocumentHeader::of(document, form);
            let hit = SearchHit { distance, found };
            (distance <= scope.radius).then(|| Neighbour::new(hit, header, content))
        });
        let mut neighbours: Vec<Neighbour> = near.collect();
        neighbours.sort_by_key(|neighbour| neighbour.distance);
        let mut copies = others().filter(|document| {
            content.text_hash.is_some()
                && document.text_hash == content.text_hash
                && document.sketch(form) == content.sketch
        });
        let copy = copies.next();
        let copy_of = copy.map(|copy| copy.id.clone());
        if content.sketch.is_none() {
            let neighbour = |copy: &Arc<StoredDocument>| {
                let found = FoundDocument::InMemory(Arc::clone(copy));
                let distance = 0;
                let hit = SearchHit { distance, found };
                Neighbour::new(hit, DocumentHeader::of(copy, form), content)
            };
            neighbours.extend(copy.map(neighbour));
        }
        let verdict = match neighbours.first().map(|nearest| nearest.distance) {
            _ if copy_of.is_some() => Verdict::Exact,
            None => Verdict::New,
            Some(0) => Verdict::SameFingerprint,
            Some(distance) => Verdict::Near { distance },
        };
        let more = neighbours.len() > limit;
        neighbours.truncate(limit);
        QueryResult {
            verdict,
            copy_of,
            neighbours,
            more,
            next: None,
        }
    }

    /// Applies the rule for pairs, written out in full.
    fn is_compared(&self, ours: PairTraits, theirs: PairTraits, scope: NeighbourScope) -> bool {
        let rule = &self.settings.pairs;
        let by_category = match scope.categories.unwrap_or(rule.scope) {
            CategoryScope::All => true,
            CategoryScope::Within => ours.category == theirs.category,
            CategoryScope::Across => ours.category != theirs.category,
        };
        let share = scope.length_share.or(rule.length_share);
        let (short, long) = if ours.length < theirs.length {
            (ours.length, theirs.length)
        } else {
            (theirs.length, ours.length)
        };
        by_category
            && share.is_none_or(|share| long == 0 || f64::from(short) / f64::from(long) >= share)
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<StoredDocument>> {
        let document = &self.documents[self.places.get(id)?];
        document.is_alive(self.time).then(|| Arc::clone(document))
    }

    /// Returns the number of live documents.
    pub(crate) fn count(&self) -> usize {
        self.live().count()
    }

    pub(crate) fn all(&self) -> Vec<StoredDocument> {
        self.live()
            .map(|document| StoredDocument::clone(document))
            .collect()
    }

    /// Finds the documents with a similar paragraph by comparing it with all paragraphs.
    pub(crate) fn paragraph(
        &self,
        paragraph: &StoredParagraph,
        radius: u32,
        limit: usize,
    ) -> ParagraphMatches {
        let mut all = Vec::new();
        for (age, document) in self.live().enumerate() {
            for (position, other) in document.paragraphs.iter().enumerate() {
                let codes = other.fingerprint.zip(paragraph.fingerprint);
                let distance = codes.map(|(a, b)| (a.0 ^ b.0).count_ones());
                if other.hash == paragraph.hash {
                    all.push((0, age, position, document, Verdict::Exact));
                } else if let Some(distance) = distance.filter(|&distance| distance <= radius) {
                    let verdict = match distance {
                        0 => Verdict::SameFingerprint,
                        distance => Verdict::Near { distance },
                    };
                    all.push((1 + distance, age, position, document, verdict));
                }
            }
        }
        all.sort_by_key(|&(rank, age, position, ..)| (rank, age, position));
        let mut documents: Vec<SimilarParagraph> = Vec::new();
        for (_, _, position, document, verdict) in all {
            if documents.iter().all(|known| known.id != document.id) {
                documents.push(SimilarParagraph {
                    id: document.id.clone(),
                    position,
                    verdict,
                });
            }
        }
        let more = documents.len() > limit;
        documents.truncate(limit);
        ParagraphMatches {
            paragraph: *paragraph,
            documents,
            more,
        }
    }

    fn remove(&mut self, id: &str) -> bool {
        let removed = self
            .places
            .remove(id)
            .and_then(|place| self.documents.remove(&place));
        removed.is_some_and(|document| document.is_alive(self.time))
    }

    fn insert(&mut self, document: &StoredDocument) -> bool {
        let mut document = document.clone();
        let keep = self.settings.keep;
        if !keep.text_hashes {
            document.text_hash = None;
        }
        if !keep.texts {
            document.text = None;
        }
        if !keep.paragraphs {
            document.paragraphs = Vec::new();
        }
        let rule = &self.settings.pairs;
        if rule.category.is_none() {
            document.traits.category = 0;
        }
        if rule.length_share.is_none() {
            document.traits.length = 0;
        }
        match (self.settings.sketch_form(), keep.signatures) {
            (SketchForm::Fingerprint, true) => {}
            (SketchForm::Fingerprint, false) => {
                (document.signature, document.super_shingles) = (None, None);
            }
            (SketchForm::Bits(_), keeps) => {
                document.fingerprint = None;
                document.signature = document.signature.filter(|_| keeps);
            }
            (SketchForm::SuperShingles(_), keeps) => {
                document.fingerprint = None;
                document.signature = document.signature.filter(|_| keeps);
            }
            (SketchForm::Minima(_), keeps) => {
                document.fingerprint = None;
                document.super_shingles = document.super_shingles.filter(|_| keeps);
            }
        }
        if document.expires.is_none() {
            document.expires = self
                .settings
                .time_to_live
                .map(|length| self.time.after(length));
        } else if document.expires == Some(UnixMillis::NEVER) {
            document.expires = None;
        }
        self.put(document)
    }

    fn put(&mut self, document: StoredDocument) -> bool {
        let replaced = self.remove(&document.id);
        self.places.insert(document.id.clone(), self.next);
        self.documents.insert(self.next, Arc::new(document));
        self.next += 1;
        replaced
    }

    pub(crate) fn write(&mut self, writes: &[WriteOp]) -> Vec<WriteOutcome> {
        let outcomes = writes.iter().map(|write| match write {
            WriteOp::Insert(document) => WriteOutcome::Inserted {
                replaced: self.insert(document),
            },
            WriteOp::CheckAndInsert {
                document,
                scope,
                insert,
                limit,
            } => {
                let answer = self.query(
                    &document.content(self.settings.sketch_form()),
                    *scope,
                    *limit,
                    Some(&document.id),
                );
                let known = self.get(&document.id).is_some();
                let inserted = match insert {
                    InsertWhen::New => answer.verdict == Verdict::New,
                    InsertWhen::NotSameFingerprint => {
                        !matches!(answer.verdict, Verdict::Exact | Verdict::SameFingerprint)
                    }
                    InsertWhen::NotExact => answer.verdict != Verdict::Exact,
                    InsertWhen::Always => true,
                };
                if inserted {
                    self.insert(document);
                }
                WriteOutcome::Checked {
                    answer,
                    inserted,
                    known,
                }
            }
            WriteOp::Delete(id) => WriteOutcome::Deleted {
                existed: self.remove(id),
            },
            WriteOp::Expire { id, expires } => {
                let found = self.get(id);
                let expires = *expires;
                let changes = |document: &&Arc<StoredDocument>| document.expires != expires;
                if let Some(document) = found.as_ref().filter(changes) {
                    self.put(StoredDocument {
                        expires,
                        ..StoredDocument::clone(document)
                    });
                }
                WriteOutcome::Expiring {
                    existed: found.is_some(),
                }
            }
        });
        outcomes.collect()
    }
}

//! What a collection is: a list of documents. Every answer by looking at all of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lookalike::Fingerprint;

use crate::answer::{Answer, InsertWhen, Neighbour, Outcome, ParagraphSeen, Verdict, Write};
use crate::document::Document;
use crate::engine::Found;
use crate::settings::CollectionSettings;
use crate::time::Time;

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    settings: CollectionSettings,
    /// In the order in which they were inserted.
    documents: BTreeMap<u64, Arc<Document>>,
    places: HashMap<String, u64>,
    next: u64,
    pub(crate) time: Time,
}

impl Model {
    pub(crate) fn new(settings: &CollectionSettings) -> Self {
        Self {
            settings: settings.clone(),
            documents: BTreeMap::new(),
            places: HashMap::new(),
            next: 0,
            time: Time(0),
        }
    }

    pub(crate) fn now(&mut self, told: Time) -> Time {
        self.time = self.time.max(told);
        self.time
    }

    fn live(&self) -> impl Iterator<Item = &Arc<Document>> {
        self.documents
            .values()
            .filter(|document| document.is_alive(self.time))
    }

    pub(crate) fn query(&self, code: u64, radius: u32, limit: usize, own: Option<&str>) -> Answer {
        let near = self.live().filter_map(|document| {
            let distance = (document.fingerprint?.0 ^ code).count_ones();
            let shown = distance <= radius && Some(document.id.as_str()) != own;
            let found = Found::Document(Arc::clone(document));
            shown.then(|| Neighbour::read(distance, found).expect("it is in memory"))
        });
        let mut neighbours: Vec<Neighbour> = near.collect();
        neighbours.sort_by_key(|neighbour| neighbour.distance);
        let verdict = match neighbours.first().map(|nearest| nearest.distance) {
            None => Verdict::New,
            Some(0) => Verdict::Exact,
            Some(distance) => Verdict::Near { distance },
        };
        let more = neighbours.len() > limit;
        neighbours.truncate(limit);
        Answer {
            verdict,
            neighbours,
            more,
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Document>> {
        let document = &self.documents[self.places.get(id)?];
        document.is_alive(self.time).then(|| Arc::clone(document))
    }

    pub(crate) fn all(&self) -> Vec<Document> {
        self.live()
            .map(|document| Document::clone(document))
            .collect()
    }

    pub(crate) fn paragraph(&self, paragraph: u64, limit: usize) -> ParagraphSeen {
        let with = self
            .live()
            .filter(|document| document.paragraphs.contains(&paragraph));
        let mut documents: Vec<String> = with.map(|document| document.id.clone()).collect();
        let more = documents.len() > limit;
        documents.truncate(limit);
        ParagraphSeen {
            paragraph,
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

    fn insert(&mut self, document: &Document) -> bool {
        let mut document = document.clone();
        let keep = self.settings.keep;
        if !keep.texts {
            document.text = None;
        }
        if !keep.paragraphs {
            document.paragraphs = Vec::new();
        }
        if !keep.signatures {
            (document.signature, document.super_shingles) = (None, None);
        }
        if document.expires.is_none() {
            document.expires = self
                .settings
                .time_to_live
                .map(|length| self.time.after(length));
        }
        self.put(document)
    }

    fn put(&mut self, document: Document) -> bool {
        let replaced = self.remove(&document.id);
        self.places.insert(document.id.clone(), self.next);
        self.documents.insert(self.next, Arc::new(document));
        self.next += 1;
        replaced
    }

    pub(crate) fn write(&mut self, writes: &[Write], limit: usize) -> Vec<Outcome> {
        let outcomes = writes.iter().map(|write| match write {
            Write::Insert(document) => Outcome::Inserted {
                replaced: self.insert(document),
            },
            Write::CheckAndInsert {
                document,
                radius,
                insert,
            } => {
                let nothing = Answer {
                    verdict: Verdict::New,
                    neighbours: Vec::new(),
                    more: false,
                };
                let answer = document.fingerprint.map_or(nothing, |Fingerprint(code)| {
                    self.query(code, *radius, limit, Some(&document.id))
                });
                let known = self.get(&document.id).is_some();
                let inserted = match insert {
                    InsertWhen::New => answer.verdict == Verdict::New,
                    InsertWhen::NotExact => answer.verdict != Verdict::Exact,
                    InsertWhen::Always => true,
                };
                if inserted {
                    self.insert(document);
                }
                Outcome::Checked {
                    answer,
                    inserted,
                    known,
                }
            }
            Write::Delete(id) => Outcome::Deleted {
                existed: self.remove(id),
            },
            Write::Expire { id, expires } => {
                let found = self.get(id);
                if let Some(document) = &found {
                    let expires = *expires;
                    self.put(Document {
                        expires,
                        ..Document::clone(document)
                    });
                }
                Outcome::Expiring {
                    existed: found.is_some(),
                }
            }
        });
        outcomes.collect()
    }
}

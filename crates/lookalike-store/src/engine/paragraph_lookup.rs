//! Lookups of documents by paragraph.

use std::collections::HashMap;

use super::CollectionEngine;
use crate::document::StoredParagraph;
use crate::error::{Result, StoreError};
use crate::found_document::FoundDocument;
use crate::operations::ParagraphMatches;
use crate::paragraph_hits::ParagraphHit;
use crate::searches::ParagraphSearch;
use crate::settings::check_radius;
use crate::time::UnixMillis;
use crate::verdict::{SimilarParagraph, Verdict};
use crate::view::{DocumentLocation, ViewPart};

/// Lookups of several paragraphs, one after the other. Documents that were found are remembered, in up to [`ParagraphLookup::MAX_BYTES`]: the paragraphs of a page
/// are often in the same documents, and each document would otherwise be read once for each of them.
///
/// ```
/// # use lookalike::{Fingerprint, Scheme};
/// use lookalike_store::{CollectionSettings, RetainedParts, StoredDocument};
/// # use lookalike_store::{Store, StoreOptions, UnixMillis, WriteOp};
///
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::open(&folder, StoreOptions::default().create(true))?;
/// # let now = UnixMillis(1_700_000_000_000);
/// let keep = RetainedParts::default().paragraphs(true);
/// let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()).keep(keep))?;
/// // Hashes of two paragraphs, such as those of `lookalike_corpus`.
/// let paragraphs = vec![17.into(), 18.into()];
/// let page = StoredDocument { paragraphs, ..StoredDocument::new("a", Fingerprint(7)) };
/// pages.write(vec![WriteOp::Insert(page)], now)?;
/// let mut lookup = pages.paragraph_lookup(0, now)?;
/// let found = lookup.find(18, 10)?;
/// assert_eq!((&*found.documents[0].id, found.documents[0].position), ("a", 1));
/// assert!(lookup.find(19, 10)?.documents.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ParagraphLookup<'c> {
    engine: &'c CollectionEngine,
    radius: u32,
    now: UnixMillis,
    remembered: HashMap<DocumentLocation, DocumentParagraphs>,
    /// Size in bytes of what is remembered.
    bytes: usize,
}

/// The paragraphs of a document.
#[derive(Debug)]
struct DocumentParagraphs {
    id: String,
    /// Hashes with their positions, ascending.
    hashes: Vec<(u64, u32)>,
    /// Fingerprints with their positions, in the order of the document.
    codes: Vec<(u64, u32)>,
}

impl DocumentParagraphs {
    fn read(found: &FoundDocument) -> Result<Self> {
        let (id, paragraphs) = match found {
            FoundDocument::InMemory(document) => (document.id.clone(), document.paragraphs.clone()),
            FoundDocument::InRun(run, place) => run.paragraphs(*place)?,
        };
        let hashes = paragraphs.iter().map(|paragraph| paragraph.hash).zip(0..);
        let mut hashes: Vec<(u64, u32)> = hashes.collect();
        hashes.sort_unstable();
        let codes = paragraphs.iter().zip(0..);
        let codes = codes.filter_map(|(paragraph, at)| Some((paragraph.fingerprint?.0, at)));
        let codes = codes.collect();
        Ok(Self { id, hashes, codes })
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.id.len() + (self.hashes.len() + self.codes.len()) * 16
    }

    /// Returns the paragraph that is most similar to the one searched for, or `None` if none is similar.
    fn most_similar(&self, search: &ParagraphSearch) -> Option<SimilarParagraph> {
        let ParagraphSearch {
            paragraph, radius, ..
        } = search;
        let similar = |position: u32, verdict| SimilarParagraph {
            id: self.id.clone(),
            position: position as usize,
            verdict,
        };
        // Equal words come before any fingerprint: equal fingerprints do not prove equal words.
        let first = self
            .hashes
            .partition_point(|&(hash, _)| hash < paragraph.hash);
        if let Some(&(hash, position)) = self.hashes.get(first)
            && hash == paragraph.hash
        {
            return Some(similar(position, Verdict::Exact));
        }
        let code = paragraph.fingerprint?;
        let distances = self.codes.iter();
        let distances = distances.map(|&(other, at)| ((other ^ code.0).count_ones(), at));
        let (distance, position) = distances.min()?;
        (distance <= *radius).then(|| similar(position, Verdict::of(Some(distance))))
    }
}

impl CollectionEngine {
    /// Begins lookups of paragraphs within a radius.
    pub(crate) fn paragraph_lookup(
        &self,
        radius: u32,
        now: UnixMillis,
    ) -> Result<ParagraphLookup<'_>> {
        if !self.keep.paragraphs {
            let what = "this collection keeps no paragraphs";
            return Err(StoreError::Invalid(what.to_owned()));
        }
        check_radius(radius, self.shape.paragraph_radius)?;
        Ok(ParagraphLookup {
            engine: self,
            radius,
            now: self.now(now),
            remembered: HashMap::new(),
            bytes: 0,
        })
    }
}

impl ParagraphLookup<'_> {
    /// Maximum size in bytes of the documents that a lookup remembers, unless one is larger: ten with ten thousand paragraphs each.
    pub const MAX_BYTES: usize = 4 << 20;

    /// Finds at most `limit` documents that contain a paragraph, or a similar one within the radius.
    ///
    /// # Errors
    /// Failures of the medium.
    pub fn find(
        &mut self,
        paragraph: impl Into<StoredParagraph>,
        limit: usize,
    ) -> Result<ParagraphMatches> {
        let search = ParagraphSearch {
            paragraph: paragraph.into(),
            radius: self.radius,
            now: self.now,
        };
        let (found, more) = self.found(&search, limit)?;
        let documents = found.into_iter().map(|(location, found)| {
            let similar = self.paragraphs(location, &found)?.most_similar(&search);
            similar.ok_or_else(|| {
                let run = self.engine.path(location.part, "run");
                let what = "an index of paragraphs names a document that has none like it";
                StoreError::damaged(&run, 0, what)
            })
        });
        Ok(ParagraphMatches {
            paragraph: search.paragraph,
            documents: documents.collect::<Result<_>>()?,
            more,
        })
    }

    /// Returns the documents that [`ParagraphLookup::find`] shows, and whether there are more.
    fn found(
        &self,
        search: &ParagraphSearch,
        limit: usize,
    ) -> Result<(Vec<(DocumentLocation, FoundDocument)>, bool)> {
        let most = limit.saturating_add(1);
        // Read a little more than is shown. If too many documents die between the read and the check, read four times as many; this ends
        // because the list is finite.
        let mut slack = most;
        loop {
            // Read runs without the lock; then, under the lock, drop documents that died meanwhile.
            let runs = self.engine.view().runs.clone();
            let stored = runs
                .iter()
                .map(|run| search.hits(ViewPart::Run(run), slack));
            let stored: Vec<Vec<ParagraphHit>> = stored.collect::<Result<_>>()?;
            let view = self.engine.view();
            if !view.has_runs(&runs) {
                continue;
            }
            let (mut hits, mut is_cut) = (Vec::new(), false);
            for (at, part) in view.parts().enumerate() {
                let of_part = match stored.get(at) {
                    Some(stored) => {
                        let alive = |hit: &ParagraphHit| part.is_alive(hit.place, search.now);
                        let live: Vec<_> = stored.iter().copied().filter(alive).collect();
                        // The list was cut at `slack`, and too many of its documents have died since: there may be live ones after the cut.
                        is_cut |= stored.len() == slack && live.len() < most;
                        live
                    }
                    None => search.hits(part, most)?,
                };
                hits.extend(of_part.into_iter().map(|hit| (hit.rank, at, hit.place)));
            }
            if is_cut {
                slack = slack.saturating_mul(4);
                continue;
            }
            hits.sort_unstable();
            let parts: Vec<ViewPart<'_>> = view.parts().collect();
            let found = hits.iter().take(limit).map(|&(_, at, place)| {
                let part = parts[at].number();
                (DocumentLocation { part, place }, parts[at].found(place))
            });
            return Ok((found.collect(), hits.len() > limit));
        }
    }

    /// Returns the paragraphs of a document, read unless they are remembered.
    fn paragraphs(
        &mut self,
        location: DocumentLocation,
        found: &FoundDocument,
    ) -> Result<&DocumentParagraphs> {
        if !self.remembered.contains_key(&location) {
            let paragraphs = DocumentParagraphs::read(found)?;
            self.bytes += paragraphs.bytes();
            if self.bytes > Self::MAX_BYTES {
                self.bytes = paragraphs.bytes();
                self.remembered.clear();
            }
            self.remembered.insert(location, paragraphs);
        }
        Ok(&self.remembered[&location])
    }
}

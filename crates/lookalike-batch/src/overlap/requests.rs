//! Answers two kinds of requests from the chunks of single documents (Shivakumar and Garcia-Molina 1998, section 4): orders results by novelty, and
//! finds copies of one page.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use lookalike::chunk::{NOVELTY_BYTES, order_by_novelty};
use lookalike::resemblance::intersection_size;
use serde::Serialize;

use super::collection::{OverlapDocuments, UnitView};
use super::job::{OverlapJob, OverlapSummary, PreparedOverlap};
use super::rows::OverlapRow;
use super::settings::OverlapUnit;
use crate::dedup::result_lines::write_line;
use crate::error::{BatchError, OUTPUT};
use crate::observer::JobStage;
use crate::overlap::settings_error::OverlapSettingsError;

#[derive(Serialize)]
struct RankedLine<'a> {
    rank: u64,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    was: u64,
    chunks: u64,
    new_chunks: u64,
    new: f64,
}

/// A row of documents, with the URLs that differ from their ids.
#[derive(Serialize)]
struct CopyLine<'a> {
    #[serde(flatten)]
    row: OverlapRow<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url_a: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url_b: Option<&'a str>,
}

impl OverlapJob<'_> {
    /// Writes the documents `ids`, for example a list of results, [ordered by novelty](order_by_novelty).
    ///
    /// # Errors
    /// [`BatchError`]; it names an id that no document has.
    pub fn rerank(
        &self,
        ids: &[String],
        out: &mut dyn Write,
    ) -> Result<OverlapSummary, BatchError> {
        let prepared = self.prepare_one()?;
        let collection = &prepared.collection;
        let documents = named(collection, ids)?;
        let sets = self.sets_of(&prepared, &documents, NOVELTY_BYTES)?;
        // Documents with equal texts share a set, and a document may be listed again.
        let chunks_of = |&document: &u32| {
            let set = collection.set_of(document);
            set.map(|set| sets[&set].as_slice()).unwrap_or_default()
        };
        let sets: Vec<&[u64]> = documents.iter().map(chunks_of).collect();
        let failed = BatchError::result(Path::new(OUTPUT));
        for (place, document) in order_by_novelty(&sets).into_iter().enumerate() {
            let number = document.number;
            let chunks = sets[number].len();
            let line = RankedLine {
                rank: place as u64 + 1,
                id: collection.documents.id(documents[number] as usize),
                url: collection.other_url(documents[number]),
                was: number as u64 + 1,
                chunks: chunks as u64,
                new_chunks: document.new_chunks as u64,
                // A document without chunks has nothing new.
                new: document.new_chunks as f64 / chunks.max(1) as f64,
            };
            write_line(out, &line).map_err(&failed)?;
        }
        Ok(self.finished(prepared.summary))
    }

    /// Writes a row for every document that overlaps with the one that has this id or URL, the largest overlap first and then by id: `a` is the id of that document,
    /// `b` that of the copy. Other documents with the same URL are not copies: they get no row, but the summary counts them.
    ///
    /// # Errors
    /// [`BatchError`]; it names an id or URL that no document has.
    pub fn copies_of(&self, name: &str, out: &mut dyn Write) -> Result<OverlapSummary, BatchError> {
        let mut prepared = self.prepare_one()?;
        let collection = &prepared.collection;
        let own = named(collection, &[name.to_owned()])?[0];
        // Keep one document's chunks in memory and stream all others past them; a single request does not need grouping.
        let sets = self.sets_of(&prepared, &[own], 0)?;
        let set = sets.into_values().next().unwrap_or_default();
        let least = self.settings.least(0) as usize;
        let mut found: Vec<(usize, u32, usize)> = Vec::new();
        self.walk(&prepared, |exact, other| {
            let shared = intersection_size(&set, other);
            let enough = shared >= least
                && shared as f64 / set.len().min(other.len()) as f64
                    >= self.settings.min_containment;
            if enough {
                found.push((shared, exact, other.len()));
            }
        })?;
        let chunking = self.settings.chunkings[0].to_string();
        let failed = BatchError::result(Path::new(OUTPUT));
        let mut same_page = 0;
        let id = |document: u32| collection.documents.id(document as usize);
        let copies = found.into_iter().flat_map(|(shared, exact, size)| {
            let documents = collection.exact.members(exact).iter();
            documents.map(move |&document| (Reverse(shared), document, size))
        });
        let mut copies: Vec<_> = copies.filter(|&(_, document, _)| document != own).collect();
        // Documents are numbered in the order of their ids, so ties are in that order.
        copies.sort_unstable();
        for (Reverse(shared), document, size) in copies {
            if collection.page(document) == collection.page(own) {
                same_page += 1;
                continue;
            }
            let names = [id(own), id(document)];
            let chunks = [set.len() as u32, size as u32];
            let line = CopyLine {
                row: OverlapRow::new(names, &chunking, shared as u32, chunks),
                url_a: collection.other_url(own),
                url_b: collection.other_url(document),
            };
            write_line(out, &line).map_err(&failed)?;
        }
        prepared.summary.same_page = same_page;
        Ok(self.finished(prepared.summary))
    }

    fn prepare_one(&self) -> Result<PreparedOverlap, BatchError> {
        if self.settings.chunkings.len() > 1 || self.settings.by == OverlapUnit::Server {
            return Err(OverlapSettingsError::ChunkingsOfDocuments.into());
        }
        // With URLs, since they may name the documents too.
        self.prepare(true, None)
    }

    /// Visits the chunks of every set of equal texts.
    fn walk(
        &self,
        prepared: &PreparedOverlap,
        mut visit: impl FnMut(u32, &[u64]),
    ) -> Result<(), BatchError> {
        let view = UnitView {
            collection: &prepared.collection,
            by: OverlapUnit::Document,
        };
        let placement = view.placement();
        let sets = &prepared.chunks[0].sets;
        self.observer
            .stage(JobStage::Compare, sets.segments() as u64);
        let mut buffer = Vec::new();
        let walked: io::Result<()> = (0..sets.segments()).try_for_each(|segment| {
            self.advance(segment as u64)?;
            sets.walk(segment, &mut buffer, |class, set| {
                // A class of texts is in exactly one set of documents.
                visit(placement.of(class)[0], set);
                Ok(())
            })
        });
        walked.map_err(BatchError::temporary(self.folder))
    }

    /// Returns the chunks of the texts of documents, by their sets of equal texts. The caller needs `others` bytes for each chunk of each document,
    /// besides the sets.
    fn sets_of(
        &self,
        prepared: &PreparedOverlap,
        documents: &[u32],
        others: u64,
    ) -> Result<HashMap<u32, Vec<u64>>, BatchError> {
        let mut found: HashMap<u32, Vec<u64>> = HashMap::new();
        let mut wanted: HashMap<u32, u64> = HashMap::new();
        for set in documents
            .iter()
            .filter_map(|&document| prepared.collection.set_of(document))
        {
            *wanted.entry(set).or_default() += 1;
            // A text may have no chunks, and then no set is walked.
            found.entry(set).or_default();
        }
        let mut bytes = 0;
        self.walk(prepared, |exact, set| {
            let Some(times) = wanted.get(&exact) else {
                return;
            };
            bytes += set.len() as u64 * (size_of::<u64>() as u64 + times * others);
            // Beyond the limit they are only counted, so that the failure can state how much all of them need.
            if bytes <= prepared.left {
                found.insert(exact, set.to_vec());
            }
        })?;
        prepared.ensure_room("comparing the named documents", bytes)?;
        Ok(found)
    }
}

/// Returns the documents with these ids, or else with these URLs.
fn named(collection: &OverlapDocuments, names: &[String]) -> Result<Vec<u32>, BatchError> {
    let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
    let (mut by_id, mut by_page) = (HashMap::new(), HashMap::new());
    for document in 0..collection.documents.len() as u32 {
        let id = collection.documents.id(document as usize);
        if wanted.contains(id) {
            by_id.insert(id, document);
        }
        let page = collection.page(document);
        if wanted.contains(page) {
            // Of documents with equal URLs, take the smallest id.
            by_page.entry(page).or_insert(document);
        }
    }
    let named = names.iter().map(|name| {
        let name = name.as_str();
        // Ids take precedence over URLs.
        let document = by_id.get(name).or_else(|| by_page.get(name)).copied();
        document.ok_or_else(|| OverlapSettingsError::UnknownDocument(name.to_owned()).into())
    });
    named.collect()
}

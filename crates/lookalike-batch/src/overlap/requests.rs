//! Two uses of the chunks of single documents (S9): results in the order of what is new in each, and copies of one page.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use lookalike::resemblance::intersection_size;
use serde::Serialize;

use super::collection::View;
use super::job::{Overlap, OverlapSummary, Prepared};
use super::rows::OverlapRow;
use super::settings::By;
use crate::error::BatchError;
use crate::lines::write_line;
use crate::observer::Stage;

#[derive(Serialize)]
struct RankedLine<'a> {
    rank: u64,
    id: &'a str,
    was: u64,
    chunks: u64,
    new_chunks: u64,
    new: f64,
}

impl Overlap<'_> {
    /// Writes the documents `ids`, a result list, in another order: the first stays first, and then always the one with
    /// the largest share of chunks that none before it has; of equal shares the one that stood earlier.
    ///
    /// O(n^2) in the length of the list, times the chunks of a document.
    ///
    /// # Errors
    /// [`BatchError`]; an id that no document has is named.
    pub fn rerank(
        &self,
        ids: &[String],
        out: &mut dyn Write,
    ) -> Result<OverlapSummary, BatchError> {
        let prepared = self.prepare_one()?;
        let sets = self.sets_of(&prepared, ids)?;
        let failed = BatchError::result(Path::new("the output"));
        let mut known: HashSet<u64> = HashSet::new();
        let mut waiting: Vec<usize> = (0..ids.len()).collect();
        for rank in 1..=ids.len() as u64 {
            let fresh = |&at: &usize| {
                sets[at]
                    .iter()
                    .filter(|chunk| !known.contains(chunk))
                    .count()
            };
            let share = |at: &usize| fresh(at) as f64 / sets[*at].len().max(1) as f64;
            let mut place = 0;
            if rank > 1 {
                for other in 1..waiting.len() {
                    if share(&waiting[other]) > share(&waiting[place]) {
                        place = other;
                    }
                }
            }
            let at = waiting.remove(place);
            let line = RankedLine {
                rank,
                id: &ids[at],
                was: at as u64 + 1,
                chunks: sets[at].len() as u64,
                new_chunks: fresh(&at) as u64,
                new: share(&at),
            };
            write_line(out, &line).map_err(&failed)?;
            known.extend(&sets[at]);
        }
        Ok(prepared.summary)
    }

    /// Writes a row for every document that overlaps with the one of this URL or id, the most containing first: `a` is the
    /// URL as given, `b` the copy.
    ///
    /// # Errors
    /// [`BatchError`]; a URL that no document has is named.
    pub fn copies_of(&self, url: &str, out: &mut dyn Write) -> Result<OverlapSummary, BatchError> {
        let prepared = self.prepare_one()?;
        let collection = &prepared.collection;
        let set = self.sets_of(&prepared, &[url.to_owned()])?.remove(0);
        let least = self.settings.least(0) as usize;
        let mut found: Vec<(usize, u32, usize)> = Vec::new();
        self.walk(&prepared, |exact, other| {
            let shared = intersection_size(&set, other);
            let enough = shared >= least
                && shared as f64 / set.len().min(other.len()).max(1) as f64
                    >= self.settings.min_containment;
            if enough {
                found.push((shared, exact, other.len()));
            }
        })?;
        found.sort_unstable_by_key(|&(shared, exact, _)| (std::cmp::Reverse(shared), exact));
        let chunking = self.settings.chunkings[0].to_string();
        let failed = BatchError::result(Path::new("the output"));
        for (shared, exact, size) in found {
            for &document in collection.exact.members(exact) {
                let names = [url, collection.url_of(document)];
                if names[1] != url && collection.documents.id(document as usize) != url {
                    let row = OverlapRow::new(
                        names,
                        &chunking,
                        shared as u32,
                        [set.len() as u32, size as u32],
                    );
                    write_line(out, &row).map_err(&failed)?;
                }
            }
        }
        Ok(prepared.summary)
    }

    fn prepare_one(&self) -> Result<Prepared, BatchError> {
        if self.settings.chunkings.len() > 1 || self.settings.by == By::Server {
            return Err(BatchError::Settings(
                "single documents are compared by one chunking: name one with --chunk, and leave --by server away".to_owned(),
            ));
        }
        self.prepare(true, None)
    }

    /// Visits the chunks of every exact set.
    fn walk(
        &self,
        prepared: &Prepared,
        mut visit: impl FnMut(u32, &[u64]),
    ) -> Result<(), BatchError> {
        self.observer.stage(Stage::Compare, 1);
        let view = View {
            collection: &prepared.collection,
            by: By::Document,
        };
        let placement = view.placement();
        let sets = &prepared.chunks[0].sets;
        let mut buffer = Vec::new();
        let walked: io::Result<()> = (0..sets.segments()).try_for_each(|segment| {
            sets.walk(segment, &mut buffer, |class, set| {
                visit(placement.of(class)[0], set);
                Ok(())
            })
        });
        walked.map_err(BatchError::temporary(self.folder))
    }

    /// The chunks of documents, named by id or URL; none for a document without a text.
    fn sets_of(&self, prepared: &Prepared, names: &[String]) -> Result<Vec<Vec<u64>>, BatchError> {
        let collection = &prepared.collection;
        let mut documents: HashMap<&str, u32> = HashMap::new();
        // Ids go before URLs, and of equal URLs the smallest id.
        for &document in collection.by_id.iter().rev() {
            documents.insert(collection.url_of(document), document);
        }
        for &document in &collection.by_id {
            documents.insert(collection.documents.id(document as usize), document);
        }
        let mut wanted: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            let Some(&document) = documents.get(name.as_str()) else {
                return Err(BatchError::Settings(format!(
                    "no document has the id or URL {name:?}: it must be among the input to be compared"
                )));
            };
            if let Some(class) = collection.documents.classes[document as usize] {
                wanted
                    .entry(collection.exact.of_class[class.position()])
                    .or_default()
                    .push(at);
            }
        }
        let mut found = vec![Vec::new(); names.len()];
        self.walk(prepared, |exact, set| {
            for &at in wanted.get(&exact).into_iter().flatten() {
                found[at] = set.to_vec();
            }
        })?;
        Ok(found)
    }
}

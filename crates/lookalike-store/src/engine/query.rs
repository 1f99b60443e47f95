//! Reads: neighbours of sketches, and documents by id.

use std::sync::Arc;

use super::CollectionEngine;
use crate::document::{ContentKey, StoredDocument};
use crate::document_sketch::DocumentSketch;
use crate::error::{Result, StoreError};
use crate::found_document::FoundCopy;
use crate::neighbour_hits::{NeighbourHits, may_be_copy, verdict};
use crate::operations::{NeighbourPage, QueryResult};
use crate::pair_rule::{NeighbourScope, PairFilter};
use crate::run::StoredRun;
use crate::searches::ContentSearch;
use crate::settings::check_radius;
use crate::time::UnixMillis;
use crate::verdict::Verdict;
use crate::view::{CollectionView, ViewPart, find_in_runs, find_text_in_memory, find_text_in_runs};

/// The documents as of one moment: runs with their tombstones, and the live documents in memory.
struct ViewMoment {
    runs: Vec<(Arc<StoredRun>, Vec<u64>)>,
    documents: Vec<Arc<StoredDocument>>,
}

/// Number of attempts without the lock before a read keeps it.
const TRIES: u32 = 8;

impl CollectionEngine {
    /// Finds the neighbours of a content.
    pub(crate) fn query(
        &self,
        content: &ContentKey,
        scope: NeighbourScope,
        now: UnixMillis,
        page: NeighbourPage,
    ) -> Result<QueryResult> {
        // Optimistic reading: search in memory under the lock, read the medium without it, then check under the lock whether what was read
        // is still current. So writers never wait for a disk.
        let wanted = self.content_search(content, scope, self.now(now))?;
        let search = |parts: &[ViewPart<'_>]| {
            NeighbourHits::search(parts, &wanted, page, &self.hasher, &|_| false)
        };
        loop {
            let runs = {
                let view = self.view();
                let found = search(&view.parts().collect::<Vec<_>>());
                if !found.may_be_copy() {
                    drop(view);
                    return found.read(None);
                }
                view.runs.clone()
            };
            // Search runs for documents with the same text without the lock; then repeat the search and check the result as of one moment.
            let stored = find_text_in_runs(&runs, &wanted, &|_| false)?;
            let (found, copy) = {
                let view = self.view();
                let parts: Vec<ViewPart<'_>> = view.parts().collect();
                if !view.has_runs(&runs)
                    || stored
                        .as_ref()
                        .is_some_and(|copy| !copy.found.is_alive(wanted.now))
                {
                    continue;
                }
                let newer = || find_text_in_memory(&parts, &wanted, &|_| false);
                let newer = || newer().map(FoundCopy::from);
                (search(&parts), stored.or_else(newer))
            };
            return found.read(copy);
        }
    }

    /// Returns the search for documents similar to a content, within the given scope.
    pub(super) fn content_search(
        &self,
        content: &ContentKey,
        scope: NeighbourScope,
        now: UnixMillis,
    ) -> Result<ContentSearch> {
        check_radius(scope.radius, self.shape.radius)?;
        let form = self.shape.form;
        let other = content.sketch.as_ref().map(DocumentSketch::form);
        if let Some(found) = other.filter(|found| *found != form) {
            return Err(StoreError::OtherForm {
                document: None,
                wanted: form,
                found,
            });
        }
        Ok(ContentSearch {
            content: content.clone(),
            form,
            sketch: content.sketch.as_ref().map(DocumentSketch::to_bytes),
            radius: scope.radius,
            now,
            filter: self.pairs.filter(scope, content.traits)?,
        })
    }

    /// Returns the verdicts on several contents as of one moment.
    pub(crate) fn check_many(
        &self,
        contents: &[ContentKey],
        scope: NeighbourScope,
        now: UnixMillis,
    ) -> Result<Vec<Verdict>> {
        let now = self.now(now);
        let contents = contents.iter();
        let contents = contents.map(|content| self.content_search(content, scope, now));
        let contents: Vec<ContentSearch> = contents.collect::<Result<_>>()?;
        loop {
            let (nearest, runs) = {
                let view = self.view();
                let nearest = nearest_of(&view, &contents, scope.radius, now);
                (nearest, view.runs.clone())
            };
            let wants = |at: usize| may_be_copy(&contents[at].content, nearest[at]);
            let unknown: Vec<usize> = (0..contents.len()).filter(|&at| wants(at)).collect();
            if unknown.is_empty() {
                return Ok(nearest.into_iter().map(Verdict::of).collect());
            }
            // As for a single content: without the lock, then everything as of one moment.
            let find = |&at: &usize| find_text_in_runs(&runs, &contents[at], &|_| false);
            let stored: Vec<_> = unknown.iter().map(find).collect::<Result<_>>()?;
            let view = self.view();
            let is_dead = |copy: &FoundCopy| !copy.found.is_alive(now);
            if !view.has_runs(&runs) || stored.iter().flatten().any(is_dead) {
                continue;
            }
            let mut copies = vec![false; contents.len()];
            unknown
                .iter()
                .zip(&stored)
                .for_each(|(&at, copy)| copies[at] = copy.is_some());
            let parts: Vec<ViewPart<'_>> = view.parts().collect();
            let in_memory = |content| find_text_in_memory(&parts, content, &|_| false);
            let nearest = nearest_of(&view, &contents, scope.radius, now);
            let verdicts = contents.iter().zip(nearest).zip(copies);
            let verdicts = verdicts.map(|((content, nearest), is_copy)| {
                let is_copy = is_copy
                    || may_be_copy(&content.content, nearest) && in_memory(content).is_some();
                verdict(nearest, is_copy)
            });
            return Ok(verdicts.collect());
        }
    }

    /// Returns the document with an id, if it is live.
    pub(crate) fn get(&self, id: &str, now: UnixMillis) -> Result<Option<Arc<StoredDocument>>> {
        let (now, hash) = (self.now(now), self.hasher.hash(id));
        for tried in 0.. {
            let view = self.view();
            if let Some((_, document)) = view.find_in_memtables(id, hash) {
                return Ok(document.is_alive(now).then(|| Arc::clone(document)));
            }
            // Between the two lookups a document can move from a run to a memtable, but every other move leaves it findable, so only a
            // result of "not found" needs confirmation.
            let (runs, changes) = (view.runs.clone(), view.changes);
            // All attempts but the last release the lock here, before runs are read.
            let held = (tried == TRIES).then_some(view);
            let found = find_in_runs(&runs, id, hash)?;
            // The document was replaced meanwhile, so it is elsewhere now: try again.
            if held.is_some() || found.is_some() || self.view().changes == changes {
                let live = found.filter(|(location, run)| run.expires(location.place) > now.0);
                return live
                    .map(|(location, run)| run.document(location.place).map(Arc::new))
                    .transpose();
            }
        }
        // Not reached: attempt `TRIES` holds the lock, so it returns.
        Ok(None)
    }

    /// Visits all documents as of one moment, in order of insertion.
    pub(crate) fn for_each<E: From<StoreError>>(
        &self,
        now: UnixMillis,
        each: &mut dyn FnMut(StoredDocument) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = self.now(now);
        let ViewMoment { runs, documents } = self.moment(now);
        for (run, tombstones) in runs {
            run.for_each(&mut |place, bytes| {
                // These are the tombstones as of that moment: documents deleted since then are still visited.
                let gone = tombstones[place as usize / 64] >> (place % 64) & 1 == 1;
                if gone || run.expires(place) <= now.0 {
                    return Ok(());
                }
                let document = StoredDocument::decode(&mut crate::codec::ByteDecoder::new(bytes));
                let what = "a document cannot be read";
                each(document.ok_or_else(|| StoreError::damaged(run.path(), 0, what))?)
            })?;
        }
        documents
            .into_iter()
            .try_for_each(|document| each(StoredDocument::clone(&document)))
    }

    fn moment(&self, now: UnixMillis) -> ViewMoment {
        let view = self.view();
        let runs = view
            .runs
            .iter()
            .map(|run| (Arc::clone(run), run.tombstones.words()));
        let documents = view.memtables().flat_map(|(_, memtable)| {
            let live = (0..memtable.len() as u32).filter(move |&slot| memtable.is_alive(slot, now));
            live.map(|slot| Arc::clone(memtable.document(slot)))
        });
        ViewMoment {
            runs: runs.collect(),
            documents: documents.collect(),
        }
    }

    /// Returns statistics of documents, files and memory.
    pub(crate) fn stats(&self) -> CollectionStats {
        let writer = self.writer();
        let (logs, log_bytes) = (writer.manifest.logs.len(), writer.log.bytes());
        // The counts need not be consistent, so the two locks are not held together.
        drop(writer);
        let (view, time) = (self.view(), self.now(UnixMillis(0)));
        let in_runs: usize = view.runs.iter().map(|run| run.len()).sum();
        let mut live: usize = view.runs.iter().map(|run| run.live(time)).sum();
        let (mut in_memory, mut memory_bytes) = (0, 0);
        for (_, memtable) in view.memtables() {
            live += memtable.live(time);
            in_memory += memtable.len();
            memory_bytes += memtable.bytes();
        }
        let tombstones = view.runs.iter().map(|run| run.tombstones.count() as u64);
        CollectionStats {
            documents: live as u64,
            stored: (in_runs + in_memory) as u64,
            in_memory: in_memory as u64,
            tombstones: tombstones.sum(),
            runs: view.runs.iter().map(|run| run.len() as u64).collect(),
            run_bytes: view.runs.iter().map(|run| run.resident() as u64).sum(),
            memory_bytes: memory_bytes as u64,
            logs,
            log_bytes,
            time,
        }
    }
}

/// Returns the distance of the nearest document for each content; `None` for contents without a sketch.
fn nearest_of(
    view: &CollectionView,
    contents: &[ContentSearch],
    radius: u32,
    now: UnixMillis,
) -> Vec<Option<u32>> {
    let known = contents
        .iter()
        .filter_map(|search| Some((search.sketch.clone()?, search.filter)));
    let (sketches, filters): (Vec<Vec<u8>>, Vec<PairFilter>) = known.unzip();
    // Contents without a sketch were left out of the search, so assign the results in order to those that have one.
    let mut found = view.nearest(&sketches, &filters, radius, now).into_iter();
    let of = |search: &ContentSearch| search.sketch.as_ref().and_then(|_| found.next().flatten());
    contents.iter().map(of).collect()
}

/// The statistics of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectionStats {
    /// Number of live documents: neither deleted nor replaced nor expired.
    pub documents: u64,
    /// Number of documents that take space, live or not.
    pub stored: u64,
    /// Number of those in memory.
    pub in_memory: u64,
    /// Number of documents in runs that are deleted or replaced but still take space.
    pub tombstones: u64,
    /// Number of documents in each run, from the oldest to the newest.
    pub runs: Vec<u64>,
    /// Size in bytes of the tables and lists of runs in memory.
    pub run_bytes: u64,
    /// Approximate size in bytes of the documents in memory.
    pub memory_bytes: u64,
    /// Number of logs, including the one that is written.
    pub logs: usize,
    /// Size in bytes of the frames in the log that is written.
    pub log_bytes: u64,
    /// Latest time that a caller reported.
    pub time: UnixMillis,
}

//! Joins sketches of several places with indexes of such: Q is streamed and never held in memory.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::matches::{MatchBuffer, PairSides, SharedMatches};
use super::memory_plan::MemoryPlan;
use super::{FingerprintJoin, JoinSummary, SideCounts};
use crate::error::BatchError;
use crate::fingerprints::files::{FingerprintName, SketchRows, SketchShape};
use crate::fingerprints::mapped::damaged;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{
    MinEqual, SketchIndexFile, SketchReading, open_sketches, open_sketches_unchecked, stored_bytes,
};
use crate::observer::JobStage;
use crate::parallel::run_on_threads;

/// Number of queries that a thread takes at once.
const BLOCK: usize = 256;

/// Indexes of F, and the condition for pairs.
struct SketchQuery<'j> {
    indexes: Vec<SketchIndexFile>,
    shape: SketchShape,
    least: usize,
    join: &'j FingerprintJoin<'j>,
}

impl FingerprintJoin<'_> {
    /// Writes every pair of a sketch in the indexes F and one in Q.
    pub(super) fn write_indexed_sketches(
        &self,
        least: MinEqual,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let mut reading = SketchReading::new(self.observer, self.losses);
        let mut query = SketchQuery {
            indexes: Vec::with_capacity(self.inputs.len()),
            shape: open_sketches_unchecked(self.inputs[0].path(), false)?.shape(),
            least: 0,
            join: self,
        };
        query.least = least.places(query.shape)?;
        for source in self.inputs {
            let index = open_sketches(source.path(), false)?;
            reading.agree(source.name(), index.scheme(), Some(index.shape()))?;
            if query.least < index.min_equal() {
                return Err(FingerprintSettingsError::FewerPlacesThanIndex {
                    index: source.name().to_owned(),
                    built: index.min_equal(),
                    least: query.least,
                }
                .into());
            }
            query.indexes.push(index);
        }
        self.observer
            .stage(JobStage::Join, stored_bytes(self.queries));
        let digests = query.indexes.iter().map(SketchIndexFile::digest);
        let held = digests.fold(0_u64, u64::wrapping_add);
        let budget = MemoryPlan::new(&self.limits).streaming().matches;
        let matches = self.matches(budget, held)?;
        let q = reading.for_each(self.queries, &mut |_, _, rows| {
            query.look_up(rows, &matches)
        });
        let matches = matches.into_inner()?;
        let q = q?;
        let named = self.inputs.iter().zip(&query.indexes);
        let f = named.map(|(source, index)| index.summary(source.name()));
        let sides = SideCounts { f: f.collect(), q };
        let summary = self.finish(sides, matches, PairSides::FQ, out)?;
        Ok(summary.of_places(query.shape, query.least))
    }
}

impl SketchQuery<'_> {
    /// Searches all indexes for some sketches of Q, on several threads.
    fn look_up(&self, rows: &SketchRows, matches: &SharedMatches) -> Result<(), BatchError> {
        let queries: Vec<(&str, &[u64])> = rows.for_each(self.shape).collect();
        let blocks: Vec<_> = queries.chunks(BLOCK).collect();
        let next = AtomicUsize::new(0);
        run_on_threads(self.join.limits.workers().min(blocks.len()), || {
            let mut found = matches.buffer();
            while let Some(block) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                // `SharedMatches::into_inner` reports the cause.
                if matches.has_failed() {
                    return Err(BatchError::Cancelled);
                }
                for &(name, sketch) in *block {
                    // Here shards divide Q, because each index is searched as a whole.
                    if self.join.shard.has(sketch[0]) {
                        self.search(name, sketch, &mut found)?;
                    }
                }
            }
            Ok::<_, BatchError>(())
        })?;
        Ok(())
    }

    fn search(
        &self,
        name: &str,
        sketch: &[u64],
        found: &mut MatchBuffer<'_>,
    ) -> Result<(), BatchError> {
        let (mut ids, mut near) = (Vec::new(), Vec::new());
        for (index, source) in self.indexes.iter().zip(self.join.inputs) {
            near.clear();
            index.search(sketch, self.least, &mut |at, apart| near.push((at, apart)));
            for &(at, apart) in &near {
                ids.clear();
                index.ids(at, &mut ids).map_err(damaged(source.path()))?;
                // Without ids a sketch is named by its digits, which stand for all its copies.
                let digits = (!index.has_ids()).then(|| self.shape.digits(&index.sketch(at)));
                for f in ids.iter().copied().chain(digits.as_deref()) {
                    found.push(FingerprintName::Text(f), FingerprintName::Text(name), apart);
                }
            }
        }
        Ok(())
    }
}

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
/// Number of comparisons below which a join searches in any case.
const CROWDED_MIN: f64 = if cfg!(test) { 1000.0 } else { 10e6 };

/// Indexes of F, and the condition for pairs.
pub(super) struct SketchQuery<'j> {
    indexes: Vec<SketchIndexFile>,
    shape: SketchShape,
    least: usize,
    join: &'j FingerprintJoin<'j>,
}

impl FingerprintJoin<'_> {
    /// Opens the indexes F, which must agree and support the search. Returns them with the reading that Q continues.
    pub(super) fn sketch_query(
        &self,
        least: MinEqual,
    ) -> Result<(SketchQuery<'_>, SketchReading<'_>), BatchError> {
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
        Ok((query, reading))
    }
}

impl SketchQuery<'_> {
    /// Tells whether so many sketches share buckets that searching for each of Q takes longer than sorting and dividing both sides.
    pub(super) fn is_crowded(&self) -> bool {
        // Stored sketches stand for those of Q. Names and digits take about as many bytes again.
        let queries = stored_bytes(self.join.queries) as f64 / (2 * self.shape.raw_bytes()) as f64;
        let each = |index: &SketchIndexFile| {
            let loads = index.loads();
            let candidates: f64 = loads.iter().map(|load| load.observed_candidates).sum();
            let sorted = queries + index.len() as f64;
            [
                queries * candidates,
                sorted * sorted.max(2.0).log2() * loads.len() as f64,
            ]
        };
        // A search compares each query with its buckets; sorting compares sketches for each band.
        let costs = self.indexes.iter().map(each);
        let [search, sort] = costs.fold([0.0, CROWDED_MIN], |[a, b], [x, y]| [a + x, b + y]);
        search > sort
    }

    /// Writes every pair of a sketch in the indexes F and one in Q.
    pub(super) fn write(
        &self,
        mut reading: SketchReading<'_>,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let join = self.join;
        let observer = join.observer;
        observer.stage(JobStage::Join, stored_bytes(join.queries));
        let digests = self.indexes.iter().map(SketchIndexFile::digest);
        let held = digests.fold(0_u64, u64::wrapping_add);
        let budget = MemoryPlan::new(&join.limits).streaming().matches;
        let matches = join.matches(budget, held)?;
        let q = reading.for_each(join.queries, &mut |_, _, rows| self.look_up(rows, &matches));
        let matches = matches.into_inner()?;
        let q = q?;
        let named = join.inputs.iter().zip(&self.indexes);
        let f = named.map(|(source, index)| index.summary(source.name()));
        let sides = SideCounts { f: f.collect(), q };
        let summary = join.finish(sides, matches, PairSides::FQ, out)?;
        Ok(summary.of_places(self.shape, self.least))
    }

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

//! Joins Q with an F that is already indexed: Q is streamed, and no tables are built.

use std::io::Write;

use lookalike::SchemeId;
use lookalike_hamming::{IndexFile, Word};

use super::matches::{MatchBuffer, PairSides};
use super::memory_plan::MemoryPlan;
use super::{FingerprintJoin, JoinSummary, SideCounts};
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFiles, CodesSummary, CommonFact, FingerprintFile, FingerprintName, ensure_equal_schemes,
    ensure_equal_widths,
};
use crate::fingerprints::index;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::with_word::with_word;
use crate::observer::JobStage;

/// Chunk size in bytes below which another thread gains nothing.
const MIN_PART_BYTES: u64 = 64 << 10;

/// An index of F.
struct JoinedIndex<'a, W: Word> {
    name: &'a str,
    file: IndexFile<W>,
}

impl FingerprintJoin<'_> {
    /// Writes every pair of a fingerprint in the indexes F and one in Q.
    pub(super) fn write_indexed<W: Word>(
        &self,
        mut q: CodeFiles,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let (indexes, f) = self.open_indexes::<W>(&q)?;
        self.observer
            .stage(JobStage::Join, q.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(&self.limits)
            .streaming()
            .with_parts(q.total_bytes(), MIN_PART_BYTES);
        let mut held = 0_u64;
        for source in self.inputs {
            // A sum, because the pairs do not depend on the order of the indexes.
            held = held.wrapping_add(index::digest(source.path())?);
        }
        let matches = self.matches(shares.matches, held)?;
        self.stream(&mut q, &shares, &matches, &|_| (), &|chunk, _, found| {
            // Here shards divide Q, because each index is searched as a whole.
            chunk.retain_shard(self.shard);
            let each = |index: &JoinedIndex<'_, W>| self.look_up(index, chunk, found);
            indexes.iter().try_for_each(each)
        })?;
        let q = q.summaries();
        self.finish(
            SideCounts { f, q },
            matches.into_inner()?,
            PairSides::FQ,
            out,
        )
    }

    /// Returns the width of the indexes F. `None` if all are empty.
    pub(super) fn indexed_width(&self) -> Result<Option<u32>, BatchError> {
        for source in self.inputs {
            if let Some(bits) = index::stated_width(source.path())? {
                return Ok(Some(bits));
            }
        }
        Ok(None)
    }

    /// Opens the indexes F, which must go with Q. Returns those that hold anything, and the counts of all.
    fn open_indexes<W: Word>(
        &self,
        q: &CodeFiles,
    ) -> Result<(Vec<JoinedIndex<'_, W>>, Vec<CodesSummary>), BatchError> {
        let (mut indexes, mut summaries) = (Vec::new(), Vec::new());
        let mut scheme = CommonFact::default();
        for source in self.inputs {
            if index::stated_width(source.path())?.is_none() {
                let bits = index::width(source.path())?;
                summaries.push(with_word!(bits, E => {
                    let empty = index::open::<E>(source.path(), false)?;
                    index::codes_summary(source.name(), &empty)
                }));
                continue;
            }
            let file = index::open::<W>(source.path(), false)?;
            let (name, built) = (source.name(), file.index().radius());
            if self.distance > built {
                return Err(FingerprintSettingsError::BeyondIndex {
                    index: name.to_owned(),
                    built,
                    distance: self.distance,
                }
                .into());
            }
            scheme.agree(name, file.scheme().map(SchemeId), ensure_equal_schemes)?;
            summaries.push(index::codes_summary(name, &file));
            indexes.push(JoinedIndex { name, file });
        }
        let first = indexes
            .first()
            .map(|first: &JoinedIndex<'_, W>| (first.name, W::BITS));
        ensure_equal_widths(first, q.bits())?;
        ensure_equal_schemes(scheme.named(), q.scheme())?;
        Ok((indexes, summaries))
    }

    /// Searches an index for all fingerprints of a chunk of Q.
    fn look_up<W: Word>(
        &self,
        index: &JoinedIndex<'_, W>,
        chunk: &FingerprintFile<W>,
        found: &mut MatchBuffer<'_>,
    ) -> Result<(), BatchError> {
        let f = &index.file;
        let mut ids = Vec::new();
        let mut failed = Ok(());
        let mut visit = |at: usize, code: W, distance: u32| {
            let name = chunk.ids.name(at, chunk.codes[at]);
            ids.clear();
            match f.ids(code, &mut ids) {
                // Without ids a fingerprint stands for all its copies.
                Ok(()) if ids.is_empty() => {
                    found.push(FingerprintName::from_code(code), name, distance);
                }
                Ok(()) => ids
                    .iter()
                    .for_each(|id| found.push(FingerprintName::Text(id), name, distance)),
                Err(cause) if failed.is_ok() => {
                    let path = index.name.to_owned();
                    failed = Err(BatchError::IndexFile { path, cause });
                }
                // A search cannot be stopped from here, so its matches are dropped after a failure.
                Err(_) => {}
            }
        };
        let searched = f
            .index()
            .search_all(&chunk.codes, self.distance, &mut visit);
        debug_assert!(searched.is_ok(), "the radius was compared");
        failed
    }
}

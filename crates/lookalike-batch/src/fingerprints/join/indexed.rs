//! The batch query against an F that is indexed already: Q streams by, and its tables are not needed.

use std::io::Write;
use std::sync::Mutex;

use lookalike::{Fingerprint, SchemeId};
use lookalike_hamming::IndexFile;

use super::matches::{FoundPairs, JoinMatches, PairSides};
use super::memory_plan::MemoryPlan;
use super::{FingerprintJoin, JoinSummary, JoinedSides};
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodesSummary, FingerprintFile, FingerprintName, ensure_equal_schemes,
};
use crate::fingerprints::index;
use crate::observer::JobStage;
use crate::spill::partitions::lock;

/// Bytes of a chunk below which another thread brings nothing.
const LEAST_PART: u64 = 64 << 10;

/// An index of F.
struct JoinedIndex<'a> {
    name: &'a str,
    file: IndexFile<u64>,
}

impl JoinedIndex<'_> {
    fn scheme(&self) -> Option<(&str, SchemeId)> {
        Some((self.name, SchemeId(self.file.scheme()?)))
    }

    fn summary(&self) -> CodesSummary {
        CodesSummary {
            name: self.name.to_owned(),
            fingerprints: self.file.documents(),
            without_features: 0,
            scheme_id: self.file.scheme().map(|id| SchemeId(id).to_string()),
            skipped: Vec::new(),
        }
    }
}

impl FingerprintJoin<'_> {
    /// Every pair of a fingerprint of the indexes F and one of Q.
    pub(super) fn write_indexed(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        let indexes = self.open_indexes()?;
        let mut q = self.open(self.q)?;
        for index in &indexes {
            ensure_equal_schemes(index.scheme(), q.scheme())?;
        }
        self.observer
            .stage(JobStage::Join, q.total_bytes().unwrap_or(0));
        let mut shares = MemoryPlan::new(self.limits).streaming();
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches));
        // Each thread has its part, however small Q is.
        let part = q
            .total_bytes()
            .unwrap_or(u64::MAX)
            .div_ceil(self.limits.threads as u64);
        shares.chunk = shares.chunk.min(part.max(LEAST_PART));
        self.stream(&mut q, &shares, &|chunk, _| {
            // Shards divide Q here: each index is searched whole.
            chunk.retain_shard(self.shard);
            let mut found = FoundPairs::default();
            for index in &indexes {
                self.look_up(index, chunk, &mut found, &matches)?;
            }
            let appended = lock(&matches).append(&mut found);
            appended.map_err(BatchError::temporary(self.folder))
        })?;
        let sides = JoinedSides {
            f: indexes.iter().map(JoinedIndex::summary).collect(),
            q: q.summaries(),
        };
        self.finish(sides, matches, PairSides::FQ, out)
    }

    fn open_indexes(&self) -> Result<Vec<JoinedIndex<'_>>, BatchError> {
        let mut indexes: Vec<JoinedIndex<'_>> = Vec::new();
        for source in self.f {
            let file = index::open(source.path(), false)?;
            let (name, built) = (source.name(), file.index().radius());
            if self.distance > built {
                return Err(BatchError::Settings(format!(
                    "{name}: the index was built for distances up to {built}, not {distance}: build one with --distance {distance}",
                    distance = self.distance,
                )));
            }
            let index = JoinedIndex { name, file };
            if let Some(first) = indexes.first() {
                ensure_equal_schemes(first.scheme(), index.scheme())?;
            }
            indexes.push(index);
        }
        Ok(indexes)
    }

    /// A chunk of Q through an index.
    fn look_up(
        &self,
        index: &JoinedIndex<'_>,
        chunk: &FingerprintFile,
        found: &mut FoundPairs,
        matches: &Mutex<JoinMatches>,
    ) -> Result<(), BatchError> {
        let f = &index.file;
        let mut ids = Vec::new();
        let mut failed = Ok(());
        let mut visit = |at: usize, code: u64, distance: u32| {
            let name = chunk.ids.name(at, chunk.codes[at]);
            ids.clear();
            match f.ids(code, &mut ids) {
                Ok(()) if ids.is_empty() => {
                    let itself = FingerprintName::Fingerprint(Fingerprint(code));
                    found.push(itself, name, distance);
                }
                Ok(()) => ids
                    .iter()
                    .for_each(|id| found.push(FingerprintName::Text(id), name, distance)),
                Err(source) if failed.is_ok() => {
                    let path = index.name.to_owned();
                    failed = Err(BatchError::IndexFile { path, source });
                }
                // The search cannot be ended from here: after a failure its matches are dropped.
                Err(_) => {}
            }
            if found.is_large() && failed.is_ok() {
                let appended = lock(matches).append(found);
                failed = appended.map_err(BatchError::temporary(self.folder));
            }
        };
        let searched = f
            .index()
            .search_all(&chunk.codes, self.distance, &mut visit);
        debug_assert!(searched.is_ok(), "the radius was compared");
        failed
    }
}

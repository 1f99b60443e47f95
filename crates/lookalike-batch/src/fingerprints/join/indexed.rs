//! The batch query against an F that is indexed already: Q streams by, and its tables are not needed.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;

use lookalike::{Fingerprint, SchemeId};
use lookalike_corpus::open_regular;
use lookalike_hamming::{HammingIndex, IndexFile};

use super::matches::{FoundPairs, JoinMatches, PairSides};
use super::memory_plan::MemoryPlan;
use super::{FingerprintJoin, JoinSummary, next_chunk};
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFile, CodesError, CodesSummary, FingerprintFile, FingerprintName, sum,
};
use crate::fingerprints::index;
use crate::observer::JobStage;
use crate::spill::partitions::lock;

/// Bytes of a chunk below which another thread brings nothing.
const LEAST_PART: u64 = 64 << 10;

/// True if a file begins as an index does. What cannot be opened is somebody else's error.
pub(super) fn is_index(path: &Path) -> bool {
    let mut head = [0; 4];
    let mut file = open_regular(path).ok();
    let read = file.as_mut().map(|file| file.read_exact(&mut head));
    matches!(read, Some(Ok(()))) && &head == b"LKIX"
}

impl FingerprintJoin<'_> {
    /// Every pair of a fingerprint of the index F and one of Q.
    pub(super) fn write_indexed(
        &self,
        q: &Path,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let f = index::open(self.f, false)?;
        let built = f.index().radius();
        if self.distance > built {
            return Err(BatchError::Settings(format!(
                "{}: the index was built for distances up to {built}, not {}: build one with --distance {}",
                self.f.display(),
                self.distance,
                self.distance
            )));
        }
        let mut q = CodeFile::open(q, self.losses.is_strict())?;
        if let (Some(first), Some(second)) = (f.scheme().map(SchemeId), q.scheme())
            && first != second
        {
            let (a, b) = (self.f.display().to_string(), q.name().to_owned());
            return Err(CodesError::OtherScheme {
                a,
                b,
                first,
                second,
            }
            .into());
        }
        self.observer
            .stage(JobStage::Join, q.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(self.limits).streaming();
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches, PairSides::FQ));
        // Each thread has its part, however small Q is.
        let part = q
            .total_bytes()
            .unwrap_or(u64::MAX)
            .div_ceil(self.limits.threads as u64);
        let chunk = shares.chunk.min(part.max(LEAST_PART));
        self.look_up(&f, &mut q, chunk, &matches)?;
        let summary = CodesSummary {
            name: self.f.display().to_string(),
            fingerprints: f.documents(),
            without_features: 0,
            scheme_id: f.scheme().map(|id| SchemeId(id).to_string()),
            skipped: Vec::new(),
        };
        self.finish(summary, Some(q), matches, out)
    }

    /// All of Q through the index, by all threads.
    fn look_up(
        &self,
        f: &IndexFile<u64>,
        q: &mut CodeFile,
        chunk_bytes: u64,
        matches: &Mutex<JoinMatches>,
    ) -> Result<(), BatchError> {
        let counters = [q.bytes_read()];
        let source = Mutex::new(Some(q));
        self.by_all_threads(|| {
            let (mut chunk, mut found) = (FingerprintFile::default(), FoundPairs::default());
            let mut ids = Vec::new();
            while next_chunk(&source, &mut chunk, chunk_bytes)? {
                let mut failed = Ok(());
                let mut visit = |at: usize, code: u64, distance: u32| {
                    let name = chunk.ids.name(at, chunk.codes[at]);
                    ids.clear();
                    match f.ids(code, &mut ids) {
                        Ok(()) if ids.is_empty() => {
                            found.push(
                                FingerprintName::Fingerprint(Fingerprint(code)),
                                name,
                                distance,
                            );
                        }
                        Ok(()) => ids
                            .iter()
                            .for_each(|id| found.push(FingerprintName::Text(id), name, distance)),
                        Err(source) if failed.is_ok() => {
                            let path = self.f.display().to_string();
                            failed = Err(BatchError::IndexFile { path, source });
                        }
                        Err(_) => {}
                    }
                    if found.is_large() && failed.is_ok() {
                        let appended = lock(matches).append(&mut found);
                        failed = appended.map_err(BatchError::temporary(self.folder));
                    }
                };
                let searched = f
                    .index()
                    .search_all(&chunk.codes, self.distance, &mut visit);
                debug_assert!(searched.is_ok(), "the radius was compared");
                failed?;
                lock(matches)
                    .append(&mut found)
                    .map_err(BatchError::temporary(self.folder))?;
                self.observer.advance(sum(&counters));
            }
            Ok(())
        })
    }
}

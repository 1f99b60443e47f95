//! The batch query (Manku et al. 2007, section 3.3): every pair of two collections of fingerprints within a distance, behind `lookalike join`.
//!
//! The way of the data: `queries` takes the smaller collection Q into memory; F streams by in chunks, each by one of
//! the threads, through [`BatchJoin`]; `matches` sorts what is found, on disk when there is much. F is never in
//! memory: a thread reads its next chunk while the others compare theirs. `alone` joins one collection with itself,
//! `indexed` searches an F that is an index for each of Q.

mod indexed;
mod matches;
mod memory_plan;
mod queries;
mod self_join;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lookalike_hamming::{BatchJoin, BatchLimits, JoinScratch};

use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFile, CodesSummary, FingerprintFile, check_losses, ensure_one_scheme, sum,
};
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage};
use crate::settings::JobLimits;
use crate::spill::partitions::lock;
use matches::{FoundPairs, JoinMatches, PairSides};
use memory_plan::{MemoryPlan, MemoryPurpose};
use queries::QuerySet;

/// Largest distance of a join, in bits.
pub const LARGEST_DISTANCE: u32 = 16;

/// About how many fingerprints come from standard input, as far as it matters for what is prepared.
const UNKNOWN: u64 = 1 << 26;

/// The job: which collections, and how near is near.
pub struct FingerprintJoin<'a> {
    /// The collection that streams by; `-` is standard input.
    pub f: &'a Path,
    /// The collection that is kept in memory; `-` is standard input. With none, F is joined with itself, in memory.
    pub q: Option<&'a Path>,
    /// Most bits in which the fingerprints of a pair differ, 0 to [`LARGEST_DISTANCE`].
    pub distance: u32,
    /// Policy for lines that cannot be read.
    pub losses: LossPolicy,
    /// Threads and memory.
    pub limits: &'a JobLimits,
    /// Directory for temporary files.
    pub folder: &'a Path,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

/// Summary of the job.
#[derive(Clone, Debug, serde::Serialize)]
pub struct JoinSummary {
    /// The collection that streamed by.
    pub f: CodesSummary,
    /// The collection in memory, if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<CodesSummary>,
    /// Most bits in which the fingerprints of a pair differ.
    pub distance: u32,
    /// Pairs written.
    pub pairs: u64,
    /// Bytes of pairs that went to temporary files.
    pub spilled_bytes: u64,
}

impl FingerprintJoin<'_> {
    /// Writes `{"f":..,"q":..,"distance":..}` for each pair, sorted by f, then q, each line once; for
    /// one collection alone `{"a":..,"b":..,"distance":..}`, a < b.
    ///
    /// A fingerprint is called by its id where its file has ids, else by itself. In a collection alone, equal
    /// fingerprints are one, called by the least of their ids; each of the others is a pair with that one only.
    ///
    /// # Errors
    /// [`BatchError`]: a collection cannot be read, schemes differ, Q does not fit the memory, `out` fails.
    pub fn write(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        if self.distance > LARGEST_DISTANCE {
            let distance = self.distance;
            return Err(BatchError::Settings(format!(
                "distance {distance} is more than the {LARGEST_DISTANCE} bits up to which fingerprints are compared"
            )));
        }
        match (self.q, indexed::is_index(self.f)) {
            (Some(q), false) => self.write_two(q, out),
            (Some(q), true) => self.write_indexed(q, out),
            (None, false) => self.write_alone(out),
            (None, true) => Err(BatchError::Settings(format!(
                "{}: an index is not joined with itself: name the fingerprints that it was built from",
                self.f.display()
            ))),
        }
    }

    fn write_two(&self, q: &Path, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        let standard_input = PathBuf::from("-");
        if self.f == standard_input && q == standard_input {
            let reason = "standard input can be F or Q, not both: put one of them into a file";
            return Err(BatchError::Settings(reason.to_owned()));
        }
        let mut q = CodeFile::open(q, self.losses.is_strict())?;
        let mut f = CodeFile::open(self.f, self.losses.is_strict())?;
        ensure_one_scheme(&f, &q)?;
        self.observer
            .stage(JobStage::Queries, q.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(self.limits);
        let distance = self.distance;
        let purpose = MemoryPurpose::Queries { distance };
        let queries = QuerySet::read(&mut q, &shares, purpose, self.observer)?;
        let shares = shares.after(queries.bytes(), queries.codes().len() as u64, self.distance)?;
        let limits = BatchLimits {
            memory_bytes: shares.tables,
            stream_codes: f.expected().unwrap_or(UNKNOWN),
            threads: self.limits.threads,
        };
        let join = BatchJoin::new(queries.codes(), self.distance, limits)?;
        self.observer
            .stage(JobStage::Join, f.total_bytes().unwrap_or(0));
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches, PairSides::FQ));
        self.stream(&mut f, &join, &queries, &shares, &matches)?;
        self.finish(f.summary(), Some(q), matches, out)
    }

    /// Writes what was found.
    fn finish(
        &self,
        f: CodesSummary,
        q: Option<CodeFile>,
        matches: Mutex<JoinMatches>,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let q = q.map(CodeFile::summary);
        check_losses(self.losses, [&f].into_iter().chain(&q))?;
        let matches = matches
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let spilled_bytes = matches.spilled();
        self.observer.stage(JobStage::Write, 0);
        let written = matches.drain(out, BatchError::temporary(self.folder))?;
        Ok(JoinSummary {
            f,
            q,
            distance: self.distance,
            pairs: written,
            spilled_bytes,
        })
    }

    /// All of F through the join, by all threads.
    fn stream(
        &self,
        f: &mut CodeFile,
        join: &BatchJoin<u64>,
        queries: &QuerySet,
        shares: &MemoryPlan,
        matches: &Mutex<JoinMatches>,
    ) -> Result<(), BatchError> {
        let counters = [f.bytes_read()];
        let source = Mutex::new(Some(f));
        self.by_all_threads(|| {
            let (mut chunk, mut scratch) = (FingerprintFile::default(), JoinScratch::default());
            let mut found = FoundPairs::default();
            while next_chunk(&source, &mut chunk, shares.chunk)? {
                let mut failed = Ok(());
                join.join(&chunk.codes, &mut scratch, &mut |at, query, distance| {
                    let name = chunk.ids.name(at, chunk.codes[at]);
                    queries.names(query, &mut |other| found.push(name, other, distance));
                    if found.is_large() && failed.is_ok() {
                        failed = lock(matches).append(&mut found);
                    }
                });
                failed
                    .and_then(|()| lock(matches).append(&mut found))
                    .map_err(BatchError::temporary(self.folder))?;
                self.observer.advance(sum(&counters));
            }
            Ok(())
        })
    }

    /// Does something in each of the threads.
    fn by_all_threads(
        &self,
        work: impl Fn() -> Result<(), BatchError> + Sync,
    ) -> Result<(), BatchError> {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..self.limits.threads)
                .map(|_| scope.spawn(&work))
                .collect();
            let done = work();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("workers do not panic"))
                .fold(done, Result::and)
        })
    }
}

/// Reads the next chunk; false when there was none. After the end or an error nobody reads on.
fn next_chunk(
    source: &Mutex<Option<&mut CodeFile>>,
    chunk: &mut FingerprintFile,
    bytes: u64,
) -> Result<bool, BatchError> {
    chunk.clear();
    let mut source = lock(source);
    let Some(file) = source.as_mut() else {
        return Ok(false);
    };
    let filled = file.fill(chunk, bytes);
    if !matches!(filled, Ok(true)) {
        *source = None;
    }
    filled?;
    Ok(!chunk.codes.is_empty())
}

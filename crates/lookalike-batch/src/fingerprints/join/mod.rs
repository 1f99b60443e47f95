//! The batch query (Manku et al. 2007, section 3.3): every pair of two collections of fingerprints within a distance, behind `lookalike join`.
//!
//! The way of the data: `queries` takes the smaller collection Q into memory; F streams by in chunks, each by one of
//! the threads, through [`BatchJoin`]; `matches` sorts what is found, on disk when there is much. F is never in
//! memory: a thread reads its next chunk while the others compare theirs. `self_join` joins one collection with itself,
//! `indexed` searches an F of indexes for each of Q. Either side may be several files. Of a `shard` each of them finds a
//! part of the pairs, and `pair_merge` puts these together. Sketches of several places have a join of their own: `sketches`.

mod indexed;
mod matches;
mod memory_plan;
mod pair_merge;
mod pair_merge_error;
mod queries;
mod self_join;
mod shard;
mod sketches;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use lookalike_hamming::{BatchJoin, BatchLimits, JoinScratch};

use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFiles, CodesSummary, FingerprintFile, FingerprintSource, check_losses,
    ensure_equal_schemes, sum,
};
use crate::fingerprints::index;
use crate::fingerprints::sketches::{EqualPlaces, LeastEqual};
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage};
use crate::parallel::on_threads;
use crate::settings::JobLimits;
use crate::spill::partitions::lock;
use matches::{FoundPairs, JoinMatches, PairSides};
use memory_plan::{MemoryPlan, MemoryPurpose};
pub use pair_merge::{MergeSummary, MergedList, PairMerge};
pub use pair_merge_error::PairMergeError;
use queries::QuerySet;
pub use shard::{FingerprintShard, ParseShardError};

/// Largest distance of a join, in bits.
pub const LARGEST_DISTANCE: u32 = 16;

/// About how many fingerprints come from standard input, as far as it matters for what is prepared.
const UNKNOWN: u64 = 1 << 26;

/// The job: which collections, and how near is near.
pub struct FingerprintJoin<'a> {
    /// The collections that stream by, or their indexes.
    pub f: &'a [FingerprintSource],
    /// The collections that are kept in memory. With none, those of F are joined with themselves, in memory.
    pub q: &'a [FingerprintSource],
    /// Most bits in which the fingerprints of a pair differ, 0 to [`LARGEST_DISTANCE`].
    pub distance: u32,
    /// The collections hold sketches of several places, of which so many must be equal; the distance does not matter then.
    pub equal: Option<LeastEqual>,
    /// The part of the pairs that is wanted.
    pub shard: FingerprintShard,
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
    /// The collections of F.
    pub f: Vec<CodesSummary>,
    /// Those of Q, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub q: Vec<CodesSummary>,
    /// Most bits in which the fingerprints of a pair differ, or most places of their sketches.
    pub distance: u32,
    /// Places that are equal at least, of sketches of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal: Option<EqualPlaces>,
    /// The shard, if only one was wanted: the list is a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
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
    /// fingerprints are one, called by the least of their ids; each of the others is a pair with that one only. Ids that are
    /// numbers come first, by value, then texts byte by byte. With [`FingerprintJoin::equal`] sketches take the place of fingerprints,
    /// and the distance is the number of places that differ.
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
        let inputs = self.f.iter().chain(self.q);
        if inputs.filter(|source| source.is_standard_input()).count() > 1 {
            let reason = "standard input is named more than once, and can be read only once: put the others into files";
            return self.refuse(reason);
        }
        if let Some(least) = self.equal {
            return self.write_sketches(least, out);
        }
        let is_index = |source: &&FingerprintSource| index::is_index(source.path());
        let indexes = self.f.iter().filter(is_index).count();
        match (self.q.is_empty(), indexes) {
            (_, 1..) if indexes < self.f.len() => self.refuse(
                "some of F are indexes and others are not: join them in two runs, and put the lists together with `lookalike merge`",
            ),
            (false, 0) => self.write_two(out),
            (false, _) => self.write_indexed(out),
            (true, 0) => self.write_alone(out),
            (true, _) => Err(BatchError::Settings(format!(
                "{}: an index is not joined with itself: name the fingerprints that it was built from",
                self.f[0].name()
            ))),
        }
    }

    fn refuse<T>(&self, reason: &str) -> Result<T, BatchError> {
        Err(BatchError::Settings(reason.to_owned()))
    }

    fn open(&self, sources: &[FingerprintSource]) -> Result<CodeFiles, BatchError> {
        Ok(CodeFiles::open(sources, self.losses.is_strict())?)
    }

    fn write_two(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        let mut q = self.open(self.q)?;
        let mut f = self.open(self.f)?;
        ensure_equal_schemes(f.scheme(), q.scheme())?;
        self.observer
            .stage(JobStage::Queries, q.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(self.limits);
        let purpose = MemoryPurpose::Queries {
            distance: self.distance,
        };
        let whole = FingerprintShard::ALL;
        let queries = QuerySet::read(&mut q, whole, &shares, purpose, self.observer)?;
        let shares = shares.after(queries.bytes(), queries.codes().len() as u64, self.distance)?;
        let join = self.tables(&queries, &shares, &f)?;
        self.observer
            .stage(JobStage::Join, f.total_bytes().unwrap_or(0));
        let matches = Mutex::new(JoinMatches::new(self.folder, shares.matches));
        self.stream(&mut f, &shares, &|chunk, scratch| {
            let mut found = FoundPairs::default();
            let mut failed = Ok(());
            chunk.retain_shard(self.shard);
            join.join(&chunk.codes, scratch, &mut |at, query, distance| {
                let name = chunk.ids.name(at, chunk.codes[at]);
                queries.names(query, &mut |other| found.push(name, other, distance));
                if found.is_large() && failed.is_ok() {
                    failed = lock(&matches).append(&mut found);
                }
            });
            failed
                .and_then(|()| lock(&matches).append(&mut found))
                .map_err(BatchError::temporary(self.folder))
        })?;
        self.finish(JoinedSides::new(f, Some(q)), matches, PairSides::FQ, out)
    }

    /// Tables over Q for this F.
    fn tables(
        &self,
        queries: &QuerySet,
        shares: &MemoryPlan,
        f: &CodeFiles,
    ) -> Result<BatchJoin<u64>, BatchError> {
        let limits = BatchLimits::default()
            .memory_bytes(shares.tables)
            .stream_codes(f.expected().unwrap_or(UNKNOWN))
            .threads(self.limits.threads);
        Ok(BatchJoin::new(queries.codes(), self.distance, limits)?)
    }

    /// Writes what was found.
    fn finish(
        &self,
        sides: JoinedSides,
        matches: Mutex<JoinMatches>,
        names: PairSides,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let JoinedSides { f, q } = sides;
        check_losses(self.losses, f.iter().chain(&q))?;
        let matches = matches
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let spilled_bytes = matches.bytes_on_disk();
        self.observer.stage(JobStage::Write, 0);
        let pairs = matches.write(names, out, BatchError::temporary(self.folder))?;
        Ok(JoinSummary {
            f,
            q,
            distance: self.distance,
            equal: None,
            shard: (!self.shard.is_all()).then(|| self.shard.to_string()),
            pairs,
            spilled_bytes,
        })
    }

    /// All of F in chunks, each through `join` by one of the threads.
    fn stream(
        &self,
        f: &mut CodeFiles,
        shares: &MemoryPlan,
        join: &(impl Fn(&mut FingerprintFile, &mut JoinScratch) -> Result<(), BatchError> + Sync),
    ) -> Result<(), BatchError> {
        let counters = [f.bytes_read()];
        // Whoever has the lock reads, and the others compare: reading is one stream, and no thread does nothing
        // but read.
        let source = Mutex::new(Some(f));
        let joined = on_threads(self.limits.threads, || -> Result<(), BatchError> {
            let (mut chunk, mut scratch) = (FingerprintFile::default(), JoinScratch::default());
            while next_chunk(&source, &mut chunk, shares.chunk)? {
                join(&mut chunk, &mut scratch)?;
                self.observer.advance(sum(&counters));
            }
            Ok(())
        });
        joined.map(drop)
    }
}

/// Counts of both sides.
struct JoinedSides {
    f: Vec<CodesSummary>,
    q: Vec<CodesSummary>,
}

impl JoinedSides {
    fn new(f: CodeFiles, q: Option<CodeFiles>) -> Self {
        Self {
            f: f.summaries(),
            q: q.map(CodeFiles::summaries).unwrap_or_default(),
        }
    }
}

/// Reads the next chunk; false when there was none. After the end or an error nobody reads on.
fn next_chunk(
    source: &Mutex<Option<&mut CodeFiles>>,
    chunk: &mut FingerprintFile,
    bytes: u64,
) -> Result<bool, BatchError> {
    let mut source = lock(source);
    let Some(files) = source.as_mut() else {
        return Ok(false);
    };
    let read = files.read_chunk(chunk, bytes);
    if !matches!(read, Ok(true)) {
        *source = None;
    }
    Ok(read?)
}

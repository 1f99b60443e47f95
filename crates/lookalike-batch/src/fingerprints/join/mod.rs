//! Runs the batch query (Manku et al. 2007, section 3.3), which finds every pair of two collections of fingerprints within a distance, for `lookalike
//! join`.
//!
//! `queries` reads the smaller collection, Q, into memory. F is streamed in chunks, each of which one of the threads passes through [`BatchJoin`].
//! `matches` sorts the pairs found, on disk if they are many. F is never held in memory: one thread reads its next chunk while the others compare
//! theirs. `self_join` joins one collection with itself, and `indexed` searches indexes of F for each fingerprint of Q. Either side may be several
//! files. With `shard` each run finds a part of the pairs, and `pair_merge` combines these. Sketches of several places are joined by `sketches`, or
//! by `indexed_sketches` if F is indexed. A `checkpoint` keeps the pairs found, so that a join that is killed can be resumed.

mod checkpoint;
mod indexed;
mod indexed_sketches;
mod matches;
mod memory_plan;
mod pair_merge;
mod pair_merge_error;
mod queries;
mod self_join;
mod shard;
mod sketch_memory;
mod sketch_names;
mod sketches;
mod stream_position;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use lookalike_hamming::{BatchJoin, BatchLimits, JoinScratch, JoinedTables, Word};

use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFiles, CodesSummary, FingerprintFile, FingerprintSource, check_losses,
    ensure_equal_schemes, ensure_equal_widths,
};
use crate::fingerprints::index;
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::sketches::{EqualPlaces, MinEqual};
use crate::fingerprints::with_word::with_word;
use crate::fingerprints::{DEFAULT_DISTANCE, MAX_DISTANCE};
use crate::locks::lock;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, NoProgress, check_cancelled};
use crate::parallel::run_on_threads;
use crate::settings::JobLimits;
use crate::unfinished::JobFolder;
use checkpoint::JoinCheckpoint;
use matches::{JoinMatches, MatchBuffer, PairSides, SharedMatches};
use memory_plan::{MIN_CHUNK_BYTES, MemoryPlan, MemoryPurpose};
pub use pair_merge::{MergeSummary, MergedList, PairMerge};
pub use pair_merge_error::PairMergeError;
use queries::QuerySet;
pub use shard::{FingerprintShard, ParseShardError};
use stream_position::{StreamPosition, StreamedPart};

/// Assumed number of fingerprints on standard input, for the choice of tables.
const UNKNOWN: u64 = 1 << 26;
/// Bytes of fingerprints that are compared between two checkpoints.
const CHECKPOINT_INTERVAL_BYTES: u64 = if cfg!(test) { 1 } else { 64 << 20 };
/// Distance from which comparing is so slow that each chunk is a checkpoint, and the maximum bytes of such a chunk.
const SLOW_DISTANCE: u32 = 6;
const SLOW_CHUNK: u64 = 16 << 20;

lookalike::job! {
    /// Job that finds the pairs of collections within a distance.
    #[derive(Debug)]
    pub struct FingerprintJoin<'a> {
        /// Creates a join of the collections that are streamed (F), or of their indexes. Temporary files go to `folder`.
        new(inputs: &'a [FingerprintSource], folder: &'a Path);
        /// Sets the collections that are held in memory (Q). By default there are none, and the inputs are joined with themselves in memory.
        queries: &'a [FingerprintSource] = &[],
        /// Sets the largest distance of a pair in bits, from 0 to [`MAX_DISTANCE`]. Default: 3.
        distance: u32 = DEFAULT_DISTANCE,
        /// Declares that the collections hold sketches of several places, and sets how many of these must be equal. The distance is then ignored.
        equal: Option<MinEqual>,
        /// Sets the part of the pairs to find. Default: all pairs.
        shard: FingerprintShard = FingerprintShard::ALL,
        /// Sets the policy for lines that cannot be read.
        losses: LossPolicy,
        /// Sets how many threads and how much memory the job may use. The result does not depend on them.
        limits: JobLimits,
        /// Sets the folder for checkpoints, so that the join can be resumed after it is killed.
        checkpoint: Option<&'a JobFolder>,
        /// Sets the observer of progress.
        observer: &'a dyn JobObserver = &NoProgress,
    }
}

/// Summary of the job.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct JoinSummary {
    /// Counts of the collections of F.
    pub f: Vec<CodesSummary>,
    /// Counts of the collections of Q, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub q: Vec<CodesSummary>,
    /// Largest distance of a pair: in bits of fingerprints, or in places of sketches.
    pub distance: u32,
    /// Minimum number of equal places, for sketches of several places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equal: Option<EqualPlaces>,
    /// The shard, if the list contains only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Number of pairs written.
    pub pairs: u64,
    /// Bytes of pairs that were written to temporary files.
    pub temporary_bytes: u64,
    /// Peak bytes of tables of sketches in temporary files.
    pub tables_on_disk: u64,
}

impl<'a> FingerprintJoin<'a> {
    /// Writes `{"f":..,"q":..,"distance":..}` for each pair, sorted by f, then by q, each line once. A single collection gives
    /// `{"a":..,"b":..,"distance":..}` with a < b.
    ///
    /// A fingerprint is named by its id if its file has ids, otherwise by its digits. Within a single collection, equal fingerprints count as one,
    /// named by the smallest of their ids; each of their other documents is paired with that id only. Ids that are numbers come first, by value, then
    /// texts byte by byte. With [`FingerprintJoin::equal`] sketches are joined instead of fingerprints, and the distance is the number of places that
    /// differ.
    ///
    /// # Errors
    /// [`BatchError`] if a collection cannot be read, if schemes differ, if Q does not fit in memory, or if `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> Result<JoinSummary, BatchError> {
        if self.distance > MAX_DISTANCE {
            let (distance, most) = (self.distance, MAX_DISTANCE);
            return Err(FingerprintSettingsError::DistanceTooLarge { distance, most }.into());
        }
        let sources = self.inputs.iter().chain(self.queries);
        if sources.filter(|source| source.is_standard_input()).count() > 1 {
            return Err(FingerprintSettingsError::StandardInputAgain.into());
        }
        if let Some(least) = self.equal {
            return self.write_sketches(least, out);
        }
        let is_index = |source: &&FingerprintSource| index::is_index(source.path());
        let indexes = self.inputs.iter().filter(is_index).count();
        match (self.queries.is_empty(), indexes) {
            // An index is searched, and a file is read as a stream: one join cannot do both.
            (_, 1..) if indexes < self.inputs.len() => {
                Err(FingerprintSettingsError::SomeIndexes.into())
            }
            (false, 0) => {
                let (q, f) = (self.open(self.queries)?, self.open(self.inputs)?);
                ensure_equal_widths(f.bits(), q.bits())?;
                // One side, or both, may have no fingerprint and so no width.
                let bits = f.bits().or(q.bits()).map_or(64, |(_, bits)| bits);
                with_word!(bits, W => self.write_cross_join::<W>(q, f, out))
            }
            (false, _) => {
                let stated = self.indexed_width()?;
                // Once, because it may be a stream.
                let q = self.open(self.queries)?;
                // If all indexes are empty, the width is that of Q.
                let bits = stated.or(q.bits().map(|(_, bits)| bits)).unwrap_or(64);
                with_word!(bits, W => self.write_indexed::<W>(q, out))
            }
            (true, 0) => {
                let f = self.open(self.inputs)?;
                with_word!(f.word_bits(), W => self.write_self_join::<W>(f, out))
            }
            (true, _) => {
                let index = self.inputs[0].name().to_owned();
                Err(FingerprintSettingsError::IndexAlone(index).into())
            }
        }
    }

    fn open(&self, sources: &[FingerprintSource]) -> Result<CodeFiles, BatchError> {
        Ok(CodeFiles::open(sources, self.losses.is_strict())?)
    }

    /// Returns the collection of pairs, with those of an interrupted join if this one resumes it. `held` identifies the fingerprints in memory.
    fn matches(&self, budget: u64, held: u64) -> Result<SharedMatches, BatchError> {
        let threads = self.limits.workers();
        let Some(checkpoint) = self.checkpoint else {
            return Ok(SharedMatches::new(self.folder, budget, threads, None));
        };
        let inputs: Vec<&str> = self.inputs.iter().map(FingerprintSource::name).collect();
        let queries: Vec<&str> = self.queries.iter().map(FingerprintSource::name).collect();
        // Limits are not among them, because no pair depends on them: a resumed join may have more memory.
        let settings = format!(
            "{} {inputs:?} {queries:?} {:?} {:?} {} {:?}",
            // Another version may find or name pairs differently.
            env!("CARGO_PKG_VERSION"),
            // Ignored beside `equal`.
            self.equal.is_none().then_some(self.distance),
            self.equal,
            self.shard,
            self.losses,
        );
        let kept = JoinCheckpoint::open(checkpoint, settings, held)?;
        Ok(SharedMatches::new(self.folder, budget, threads, Some(kept)))
    }

    fn write_cross_join<W: Word>(
        &self,
        mut q: CodeFiles,
        mut f: CodeFiles,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        ensure_equal_schemes(f.scheme(), q.scheme())?;
        self.observer
            .stage(JobStage::Queries, q.total_bytes().unwrap_or(0));
        let shares = MemoryPlan::new(&self.limits);
        let purpose = MemoryPurpose::Queries {
            distance: self.distance,
        };
        // All queries: a shard divides the streamed side only.
        let whole = FingerprintShard::ALL;
        let queries = QuerySet::<W>::read(&mut q, whole, &shares, purpose, self.observer)?;
        let count = queries.codes.len() as u64;
        let shares = shares
            .after::<W>(queries.bytes(), count, self.distance)?
            .with_parts(f.total_bytes(), MIN_CHUNK_BYTES);
        let join = self.tables(&queries, &shares, &f)?;
        self.observer
            .stage(JobStage::Join, f.total_bytes().unwrap_or(0));
        let matches = self.matches(shares.matches, queries.seen.digest)?;
        self.stream(
            &mut f,
            &shares,
            &matches,
            &|_| (),
            &|chunk, scratch, found| {
                chunk.retain_shard(self.shard);
                join.join(&chunk.codes, scratch, &mut |at, query, distance| {
                    let name = chunk.ids.name(at, chunk.codes[at]);
                    queries.names(query, &mut |other| found.push(name, other, distance));
                });
                Ok(())
            },
        )?;
        let (f, q) = (f.summaries(), q.summaries());
        self.finish(
            SideCounts { f, q },
            matches.into_inner()?,
            PairSides::FQ,
            out,
        )
    }

    /// Builds the tables over Q for this F.
    fn tables<W: Word>(
        &self,
        queries: &QuerySet<W>,
        shares: &MemoryPlan,
        f: &CodeFiles,
    ) -> Result<BatchJoin<W>, BatchError> {
        let limits = BatchLimits::default()
            .memory_bytes(shares.tables)
            // Only the choice of tables depends on this number, not the pairs.
            .stream_codes(f.expected().unwrap_or(UNKNOWN))
            .threads(self.limits.workers());
        Ok(BatchJoin::new(&queries.codes, self.distance, limits)?)
    }

    /// Writes the pairs found.
    fn finish(
        &self,
        sides: SideCounts,
        matches: JoinMatches,
        names: PairSides,
        out: &mut dyn Write,
    ) -> Result<JoinSummary, BatchError> {
        let SideCounts { f, q } = sides;
        // Before the first line: with too many losses there must be no result.
        check_losses(self.losses, f.iter().chain(&q))?;
        self.observer.stage(JobStage::Write, 0);
        let written = matches.write(names, out)?;
        Ok(JoinSummary {
            f,
            q,
            distance: self.distance,
            equal: None,
            shard: (!self.shard.is_all()).then(|| self.shard.to_string()),
            pairs: written.count,
            temporary_bytes: written.temporary_bytes,
            tables_on_disk: 0,
        })
    }

    /// Reads all of F in chunks. Each chunk is passed to `look` and then, without what an interrupted join had finished, to `join` on one of the
    /// threads.
    fn stream<W: Word>(
        &self,
        f: &mut CodeFiles,
        shares: &MemoryPlan,
        matches: &SharedMatches,
        look: &(dyn Fn(&FingerprintFile<W>) + Sync),
        join: &ChunkJoin<'_, W>,
    ) -> Result<(), BatchError> {
        let before = matches.state().streamed;
        // At large distances a chunk takes long, and an interruption should cost little of it.
        let most = match self.checkpoint.is_some() && self.distance >= SLOW_DISTANCE {
            true => shares.chunk.min(SLOW_CHUNK),
            false => shares.chunk,
        };
        let bytes_read = f.bytes_read();
        let source = Mutex::new(StreamSource {
            files: Some(f),
            read: 0,
            chunks: 0,
        });
        let kept = Mutex::new(StreamCheckpoint {
            before,
            ..StreamCheckpoint::default()
        });
        // The thread with the lock reads while the others compare: there is one stream, and no thread only reads.
        let work = || {
            let (mut chunk, mut scratch) = (FingerprintFile::default(), JoinScratch::default());
            let mut found = matches.buffer();
            loop {
                let Some(place) = lock(&source).next(&mut chunk, most)? else {
                    return Ok(());
                };
                check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
                let bytes = chunk.bytes();
                look(&chunk);
                // Nothing is taken once the stream is beyond what an interrupted run had joined.
                let done = take_joined(&mut chunk, before.count.saturating_sub(place.first));
                lock(&kept).take_again(done);
                // Computed before `join`, which removes the fingerprints of other shards from the chunk.
                let part = match self.checkpoint {
                    Some(_) => done.and(StreamedPart::of(&chunk)),
                    None => StreamedPart::default(),
                };
                join(&mut chunk, &mut scratch, &mut found)?;
                // All pairs of the chunk must be handed over before it counts as finished.
                found.append();
                // Pairs are lost already, so more comparisons are of no use.
                if matches.has_failed() {
                    return Ok(());
                }
                // A chunk that an earlier run had finished adds nothing to save.
                if self.checkpoint.is_some() && part != done {
                    self.end_chunk(&kept, matches, NumberedPart { place, part, bytes })?;
                } else {
                    lock(&kept).position.end_chunk(place.number, part);
                }
                self.observer.progress(bytes_read.load(Ordering::Relaxed));
            }
        };
        run_on_threads(shares.threads as usize, || {
            // The other threads then find no further chunk and end soon.
            work().inspect_err(|_: &BatchError| lock(&source).close())
        })?;
        match matches.has_failed() {
            // `SharedMatches::into_inner` reports the cause.
            true => Ok(()),
            false => lock(&kept).ensure_same(),
        }
    }

    /// Records a chunk whose pairs have all been found, and saves the pairs from time to time.
    fn end_chunk(
        &self,
        kept: &Mutex<StreamCheckpoint>,
        matches: &SharedMatches,
        chunk: NumberedPart,
    ) -> Result<(), BatchError> {
        let mut kept = lock(kept);
        // Threads finish chunks in any order; only a gapless first part of the stream can be resumed from.
        kept.position.end_chunk(chunk.place.number, chunk.part);
        kept.bytes += chunk.bytes;
        if kept.bytes < CHECKPOINT_INTERVAL_BYTES && self.distance < SLOW_DISTANCE {
            return Ok(());
        }
        // Save nothing new until the fingerprints that were read again prove to be the same.
        if kept.position.first.count < kept.before.count {
            return Ok(());
        }
        kept.ensure_same()?;
        kept.bytes = 0;
        // Keep holding the lock, because an older position must not replace a newer one.
        matches.keep(JoinedTables::default(), kept.position.first)
    }
}

/// Counts of both sides.
struct SideCounts {
    f: Vec<CodesSummary>,
    q: Vec<CodesSummary>,
}

/// Function that finds the pairs of a chunk of the stream.
type ChunkJoin<'j, W> = dyn Fn(&mut FingerprintFile<W>, &mut JoinScratch, &mut MatchBuffer<'_>) -> Result<(), BatchError>
    + Sync
    + 'j;

/// The streamed fingerprints.
struct StreamSource<'f> {
    /// `None` after the end or an error, when reading stops.
    files: Option<&'f mut CodeFiles>,
    /// Number of fingerprints and of chunks read.
    read: u64,
    chunks: u64,
}

/// Position of a chunk in the stream.
#[derive(Clone, Copy)]
struct ChunkPosition {
    number: u64,
    /// Number of fingerprints before it.
    first: u64,
}

/// A finished chunk.
struct NumberedPart {
    place: ChunkPosition,
    part: StreamedPart,
    bytes: u64,
}

/// Position up to which the stream is joined, and bytes since pairs were last saved.
#[derive(Default)]
struct StreamCheckpoint {
    position: StreamPosition,
    bytes: u64,
    /// The part that an interrupted join had finished, and how much of it has been read again.
    before: StreamedPart,
    again: StreamedPart,
}

impl StreamCheckpoint {
    fn take_again(&mut self, part: StreamedPart) {
        self.again = self.again.and(part);
    }

    /// Fails if the fingerprints are not those whose pairs an interrupted join left.
    fn ensure_same(&self) -> Result<(), BatchError> {
        match self.again == self.before {
            true => Ok(()),
            false => Err(FingerprintSettingsError::ChangedInputs.into()),
        }
    }
}

impl StreamSource<'_> {
    fn close(&mut self) {
        self.files = None;
    }

    /// Reads the next chunk. Returns `None` at the end.
    fn next<W: Word>(
        &mut self,
        chunk: &mut FingerprintFile<W>,
        bytes: u64,
    ) -> Result<Option<ChunkPosition>, BatchError> {
        let Some(files) = self.files.as_mut() else {
            return Ok(None);
        };
        let read = files.read_chunk(chunk, bytes);
        // After an error too, so that no other thread reads on behind it.
        if !matches!(read, Ok(true)) {
            self.close();
        }
        if !read? {
            return Ok(None);
        }
        // Numbers and positions are given under the lock of the reader, so they follow the order of the stream.
        let place = ChunkPosition {
            number: self.chunks,
            first: self.read,
        };
        self.chunks += 1;
        self.read += chunk.codes.len() as u64;
        Ok(Some(place))
    }
}

/// Removes the first fingerprints of a chunk that are already joined.
fn take_joined<W: Word>(chunk: &mut FingerprintFile<W>, joined: u64) -> StreamedPart {
    let joined = joined.min(chunk.codes.len() as u64);
    if joined == 0 {
        return StreamedPart::default();
    }
    // A copy of the part that is removed, since its digest is compared with that of the interrupted join.
    let mut first = chunk.clone();
    let mut at = 0;
    first.retain(|_| {
        at += 1;
        at <= joined
    });
    let mut at = 0;
    chunk.retain(|_| {
        at += 1;
        at > joined
    });
    StreamedPart::of(&first)
}

//! The log of the pairs found, on disk. A job that is killed while it searches for all pairs does not compare those documents again.
//!
//! Threads compare strides of ranks, in any order, and write the pairs of each stride in entries; the last entry ends the stride. The order of ranks
//! depends only on ids and contents, so a resumed job can reuse ended strides for any number of threads and any memory.
//!
//! There is one file, `found.bin`. Little-endian:
//!
//! ```text
//! 8 bytes   "LOOKPAR1"
//! u64       XXH3-64 of settings, input, and the texts in the order of ranks
//! entries   u64 number of the stride; u64 x 2 its ranks if it ends here, else twice 0; u64 pairs; the pairs (u32 x 6)
//!           u64 XXH3-64 of all that, with the word above as its seed
//! ```
//!
//! Writes are not synced: after a power cut, the checksums show which entries are left.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::dedup::hashing_stream::damaged;
use crate::locks::lock;

const MAGIC: [u8; 8] = *b"LOOKPAR1";

/// Number of bytes of the magic and the hash after it.
const HEAD: u64 = 16;

/// Maximum number of pairs in an entry, which bounds the memory of a thread for a stride with very many.
const MAX_ENTRY_PAIRS: usize = 1 << 13;

/// Time after which entries are passed to the system, so that a killed job does not lose them.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// Two documents by their places in the order of ids, and the halves of the bits of their similarity and of that of their visible
/// texts, which is NaN if there is none.
pub(crate) type PairRecord = [u32; 6];

/// The path of a log, and the hash of its job.
pub(crate) struct PairLogSettings {
    pub(crate) path: PathBuf,
    pub(crate) job: u64,
}

/// A log that is open for writing, with the ranks that it covers.
pub(crate) struct PairLog {
    /// `None` once writing failed, as on a full disk: that ends the log, not the job.
    file: Mutex<Option<PairLogFile>>,
    seed: u64,
    /// One bit per rank, set if the log has all pairs of the rank with earlier ones.
    done: Vec<u64>,
    ranks: usize,
    next_stride: AtomicU64,
}

struct PairLogFile {
    out: BufWriter<File>,
    flushed: Instant,
}

/// Pairs of a stride that are being written to the log.
pub(crate) struct StridePairs<'l> {
    log: &'l PairLog,
    stride: u64,
    ranks: Range<u32>,
    pairs: Vec<PairRecord>,
}

/// An entry without its pairs and checksum: number of the stride, its first rank, its end, number of pairs.
type EntryHeader = [u64; 4];

impl PairLogSettings {
    /// Opens the log for `ranks` ranks, whose texts have the hash `order` in their order, and passes all pairs of ended strides to `visit`.
    /// Begins a new log if there is none of this job.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or `visit` fails.
    pub(crate) fn open(
        &self,
        order: u64,
        ranks: usize,
        visit: impl FnMut(PairRecord) -> io::Result<()>,
    ) -> io::Result<PairLog> {
        let seed = self.job ^ order.rotate_left(32);
        let mut kept = LoggedStrides {
            seed,
            done: vec![0; ranks.div_ceil(64)],
            ranks: ranks as u64,
            last_stride: 0,
        };
        let mut file = OpenOptions::new();
        // Not truncated, because a log of this job is read first.
        let file = file.read(true).write(true).create(true).truncate(false);
        let mut file = file.open(&self.path)?;
        let whole = kept.replay(&file, visit)?;
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        if whole == 0 {
            file.write_all(&[MAGIC, seed.to_le_bytes()].concat())?;
        }
        let file = PairLogFile {
            out: BufWriter::new(file),
            flushed: Instant::now(),
        };
        Ok(PairLog {
            file: Mutex::new(Some(file)),
            seed,
            done: kept.done,
            ranks,
            next_stride: AtomicU64::new(kept.last_stride + 1),
        })
    }

    /// Removes the log, when its results have been saved or cannot be resumed.
    pub(crate) fn discard(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Strides that a log contains.
struct LoggedStrides {
    seed: u64,
    done: Vec<u64>,
    ranks: u64,
    last_stride: u64,
}

impl LoggedStrides {
    /// Passes the pairs of all ended strides to `visit`. Returns the length of the intact part, 0 if it is not a log of this job.
    fn replay(
        &mut self,
        file: &File,
        mut visit: impl FnMut(PairRecord) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut log = BufReader::with_capacity(1 << 18, file);
        let mut head = [0; HEAD as usize];
        let expected = [MAGIC, self.seed.to_le_bytes()].concat();
        if log.read_exact(&mut head).is_err() || head[..] != expected {
            return Ok(0);
        }
        // Positions of the pairs of strides that have not ended yet. Most strides have one entry.
        let mut begun: HashMap<u64, Vec<Range<u64>>> = HashMap::new();
        let (mut whole, mut entry) = (HEAD, Vec::new());
        // Stop at the first damaged entry: entries after it were written later.
        while let Ok([stride, from, to, pairs]) = self.read_entry(&mut log, &mut entry) {
            let start = whole + size_of::<EntryHeader>() as u64;
            whole += entry.len() as u64 + 8;
            // New strides get larger numbers, so that pairs of a stride without an end are never taken for theirs.
            self.last_stride = self.last_stride.max(stride);
            // The stride may never end in this log. Then its ranks are searched again, and its pairs must not be found twice.
            if from == to {
                let place = start..start + pairs * size_of::<PairRecord>() as u64;
                begun.entry(stride).or_default().push(place);
                continue;
            }
            for place in begun.remove(&stride).unwrap_or_default() {
                let mut bytes = vec![0; (place.end - place.start) as usize];
                file.read_exact_at(&mut bytes, place.start)?;
                visit_all(&bytes, &mut visit)?;
            }
            visit_all(&entry[size_of::<EntryHeader>()..], &mut visit)?;
            (from..to).for_each(|rank| self.done[rank as usize / 64] |= 1 << (rank % 64));
        }
        Ok(whole)
    }

    /// Reads an entry without its checksum, which must be right.
    fn read_entry(&self, log: &mut impl Read, entry: &mut Vec<u8>) -> io::Result<EntryHeader> {
        let mut head: EntryHeader = [0; 4];
        log.read_exact(bytemuck::cast_slice_mut(&mut head))?;
        let [_, from, to, pairs] = head;
        // Before the buffer is allocated, because after a power cut these may be any numbers.
        if pairs > MAX_ENTRY_PAIRS as u64 || from > to || to > self.ranks {
            return Err(damaged());
        }
        entry.clear();
        entry.extend_from_slice(bytemuck::cast_slice(&head));
        entry.resize(
            size_of::<EntryHeader>() + pairs as usize * size_of::<PairRecord>(),
            0,
        );
        log.read_exact(&mut entry[size_of::<EntryHeader>()..])?;
        let mut sum = [0; 8];
        log.read_exact(&mut sum)?;
        match u64::from_le_bytes(sum) == xxh3_64_with_seed(entry, self.seed) {
            true => Ok(head),
            false => Err(damaged()),
        }
    }
}

fn visit_all(bytes: &[u8], visit: &mut impl FnMut(PairRecord) -> io::Result<()>) -> io::Result<()> {
    let records = bytes.chunks_exact(size_of::<PairRecord>());
    // An entry may be at a position where its records are not aligned.
    records
        .map(bytemuck::pod_read_unaligned)
        .try_for_each(visit)
}

impl PairLog {
    /// Returns true if the log has any ranks.
    pub(crate) fn is_resumed(&self) -> bool {
        self.done.iter().any(|word| *word > 0)
    }

    /// Returns the first rank that is not in the log, or the number of ranks if all are.
    pub(crate) fn first_unfinished(&self) -> usize {
        let full = self.done.iter().take_while(|word| **word == u64::MAX);
        let word = full.count();
        let bits = self.done.get(word).map_or(0, |word| word.trailing_ones());
        (word * 64 + bits as usize).min(self.ranks)
    }

    /// Returns those of the ranks that are not in the log, as runs.
    pub(crate) fn unfinished(&self, ranks: Range<u32>) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for rank in ranks {
            if self.done[rank as usize / 64] >> (rank % 64) & 1 == 1 {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == rank => run.end += 1,
                _ => runs.push(rank..rank + 1),
            }
        }
        runs
    }

    /// Begins a stride.
    pub(crate) fn stride(&self, ranks: Range<u32>) -> StridePairs<'_> {
        StridePairs {
            log: self,
            stride: self.next_stride.fetch_add(1, Ordering::Relaxed),
            ranks,
            pairs: Vec::new(),
        }
    }

    fn add(&self, head: EntryHeader, pairs: &[PairRecord]) {
        let mut entry = Vec::with_capacity(size_of_val(&head) + size_of_val(pairs) + 8);
        entry.extend_from_slice(bytemuck::cast_slice(&head));
        entry.extend_from_slice(bytemuck::cast_slice(pairs));
        let sum = xxh3_64_with_seed(&entry, self.seed);
        entry.extend_from_slice(&sum.to_le_bytes());
        // The entry is complete before the lock is taken, so threads wait only for the copy.
        let mut file = lock(&self.file);
        let Some(open) = &mut *file else { return };
        if open.add(&entry).is_err() {
            // The job continues without the log. The checksum shows that the last entry is incomplete.
            *file = None;
        }
    }
}

impl PairLogFile {
    fn add(&mut self, entry: &[u8]) -> io::Result<()> {
        self.out.write_all(entry)?;
        if self.flushed.elapsed() >= FLUSH_AFTER {
            self.out.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }
}

impl StridePairs<'_> {
    pub(crate) fn push(&mut self, pair: PairRecord) {
        // Only when another pair follows, so that the entry that ends the stride is the last one.
        if self.pairs.len() == MAX_ENTRY_PAIRS {
            self.log
                .add([self.stride, 0, 0, MAX_ENTRY_PAIRS as u64], &self.pairs);
            self.pairs.clear();
        }
        self.pairs.push(pair);
    }

    /// Ends the stride, of which all pairs have been pushed.
    pub(crate) fn end(self) {
        let Range { start, end } = self.ranks;
        let pairs = self.pairs.len() as u64;
        let head = [self.stride, start.into(), end.into(), pairs];
        self.log.add(head, &self.pairs);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANKS: usize = 200;

    /// Pairs that contain the first rank of their stride.
    fn pairs_of(ranks: &Range<u32>, count: usize) -> impl Iterator<Item = PairRecord> {
        let start = ranks.start;
        (0..count as u32).map(move |number| [start, number, 0, 0, 0, 0])
    }

    fn reopened(place: &PairLogSettings, order: u64) -> (PairLog, Vec<PairRecord>) {
        let mut found = Vec::new();
        let log = place.open(order, RANKS, |pair| {
            found.push(pair);
            Ok(())
        });
        found.sort_unstable();
        (log.unwrap(), found)
    }

    fn written(place: &PairLogSettings, strides: &[(Range<u32>, usize)]) {
        let (log, _) = reopened(place, 1);
        for (ranks, count) in strides {
            let mut stride = log.stride(ranks.clone());
            pairs_of(ranks, *count).for_each(|pair| stride.push(pair));
            stride.end();
        }
    }

    fn place(folder: &tempfile::TempDir) -> PairLogSettings {
        PairLogSettings {
            path: folder.path().join("found.bin"),
            job: 7,
        }
    }

    #[test]
    fn a_stride_that_did_not_end_has_no_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let (log, found) = reopened(&place, 1);
        assert!(found.is_empty() && !log.is_resumed());
        // Two strides at once, whose entries alternate, each with more pairs than fit in an entry.
        let [mut ended, mut killed] = [0..32, 32..64].map(|ranks| log.stride(ranks));
        for (a, b) in
            pairs_of(&(0..32), 3 * MAX_ENTRY_PAIRS).zip(pairs_of(&(32..64), 3 * MAX_ENTRY_PAIRS))
        {
            ended.push(a);
            killed.push(b);
        }
        ended.end();
        drop(killed);
        drop(log);
        let (log, found) = reopened(&place, 1);
        assert!(
            found
                .into_iter()
                .eq(pairs_of(&(0..32), 3 * MAX_ENTRY_PAIRS))
        );
        assert_eq!(log.first_unfinished(), 32);
        assert!(log.unfinished(0..40).into_iter().flatten().eq(32..40));
        // The resumed job repeats the stride under another number.
        let mut again = log.stride(32..64);
        again.push([32, 5, 0, 0, 0, 0]);
        again.end();
        drop(log);
        let (log, found) = reopened(&place, 1);
        assert_eq!(found.len(), 3 * MAX_ENTRY_PAIRS + 1);
        assert_eq!(log.first_unfinished(), 64);
    }

    #[test]
    fn another_order_of_texts_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        written(&place, &[(0..200, 10)]);
        let (log, found) = reopened(&place, 1);
        assert_eq!((found.len(), log.first_unfinished()), (10, RANKS));
        drop(log);
        let (log, found) = reopened(&place, 2);
        assert!(found.is_empty() && !log.is_resumed());
    }

    proptest! {
        #[test]
        fn what_is_whole_of_a_damaged_log_is_taken_over(
            counts in prop::collection::vec(0..20_usize, 1..12),
            at in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let place = place(&folder);
            let strides: Vec<_> = (0..).zip(counts)
                .map(|(at, count)| (at * 16..at * 16 + 16, count))
                .collect();
            written(&place, &strides);
            let mut bytes = std::fs::read(&place.path).unwrap();
            let at = at.index(bytes.len());
            match is_cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= 0x10,
            }
            std::fs::write(&place.path, bytes).unwrap();
            // Only the strides before the damage.
            let mut end = HEAD as usize;
            let whole = strides.iter().take_while(|(_, count)| {
                end += size_of::<EntryHeader>() + count * size_of::<PairRecord>() + 8;
                at >= end
            });
            let whole = whole.count();
            let expected = strides[..whole].iter().flat_map(|(ranks, count)| pairs_of(ranks, *count));
            let (log, found) = reopened(&place, 1);
            prop_assert!(found.into_iter().eq(expected));
            prop_assert_eq!(log.first_unfinished(), whole * 16);
            drop(log);
            // Entries of a resumed job are read too.
            written(&place, &strides[whole..]);
            let (log, found) = reopened(&place, 1);
            prop_assert!(found.into_iter().eq(strides.iter().flat_map(|(ranks, count)| pairs_of(ranks, *count))));
            prop_assert_eq!(log.first_unfinished(), strides.len() * 16);
        }

        #[test]
        fn unfinished_ranks_are_those_of_no_stride(done in prop::collection::btree_set(0..RANKS as u32, 0..150)) {
            let folder = tempfile::tempdir().unwrap();
            let place = place(&folder);
            let strides: Vec<_> = done.iter().map(|&rank| (rank..rank + 1, 0)).collect();
            written(&place, &strides);
            let (log, _) = reopened(&place, 1);
            let runs = log.unfinished(0..RANKS as u32);
            prop_assert!(runs.iter().all(|run| !run.is_empty()));
            let missing: Vec<u32> = (0..RANKS as u32).filter(|rank| !done.contains(rank)).collect();
            prop_assert_eq!(log.first_unfinished(), missing.first().map_or(RANKS, |rank| *rank as usize));
            prop_assert_eq!(runs.into_iter().flatten().collect::<Vec<_>>(), missing);
        }
    }
}

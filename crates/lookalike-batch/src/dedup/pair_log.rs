//! The log of the pairs found, on disk. A job that is killed while it searches for all pairs does not compare those documents again.
//!
//! Threads compare strides of ranks, in any order, and write the pairs of each stride in entries; the last entry ends the stride. The order of ranks
//! depends only on ids and contents, so a resumed job can reuse ended strides for any number of threads and any memory.
//!
//! There is one file, `found.bin`, an [`EntryLog`] with the magic `LOOKPAR2`. Each entry:
//!
//! ```text
//! u64 number of the stride; u64 x 2 its ranks if it ends here, else twice 0; pairs (u32 x 6)
//! ```

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dedup::entry_log::{EntryLog, read_entries, sealed};
use crate::dedup::job_logs::JobLogs;
use crate::locks::lock;

const MAGIC: [u8; 8] = *b"LOOKPAR2";

/// Maximum number of pairs in an entry, which bounds the memory of a thread for a stride with very many.
const MAX_ENTRY_PAIRS: usize = 1 << 13;

/// Two documents by their places in the order of ids, and the halves of the bits of their similarity and of that of their visible
/// texts, which is NaN if there is none.
pub(crate) type PairRecord = [u32; 6];

/// A log that is open for writing, with the ranks that it covers.
pub(crate) struct PairLog {
    /// `None` once writing failed, as on a full disk: that ends the log, not the job.
    file: Mutex<Option<EntryLog>>,
    seed: u64,
    /// One bit per rank, set if the log has all pairs of the rank with earlier ones.
    done: Vec<u64>,
    ranks: usize,
    next_stride: AtomicU64,
}

/// Pairs of a stride that are being written to the log.
pub(crate) struct StridePairs<'l> {
    log: &'l PairLog,
    stride: u64,
    ranks: Range<u32>,
    pairs: Vec<PairRecord>,
}

/// An entry without its pairs: number of the stride, its first rank, its end.
type EntryHeader = [u64; 3];

/// Returns the header and the pairs of an entry, or `None` if it is not one of a job with `ranks` ranks.
fn parsed(entry: &[u8], ranks: usize) -> Option<(EntryHeader, impl Iterator<Item = PairRecord>)> {
    let (head, pairs) = entry.split_at_checked(size_of::<EntryHeader>())?;
    let head: EntryHeader = bytemuck::pod_read_unaligned(head);
    let [_, from, to] = head;
    let pairs = pairs.chunks_exact(size_of::<PairRecord>());
    let fits = from <= to && to <= ranks as u64 && pairs.remainder().is_empty();
    // An entry may be at a position where its records are not aligned.
    fits.then(|| (head, pairs.map(bytemuck::pod_read_unaligned)))
}

impl PairLog {
    /// Opens the log for `ranks` ranks, whose texts have the hash `order` in their order, and passes all pairs of ended strides to `visit`.
    /// Begins a new log if there is none of this job.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or `visit` fails.
    pub(crate) fn open(
        logs: &JobLogs,
        order: u64,
        ranks: usize,
        mut visit: impl FnMut(PairRecord) -> io::Result<()>,
    ) -> io::Result<Self> {
        let seed = logs.job ^ order.rotate_left(32);
        let mut done = vec![0; ranks.div_ceil(64)];
        // A stride may never end in this log. Then its ranks are searched again, and its pairs must not be found twice.
        let (mut begun, mut last_stride) = (HashSet::new(), 0);
        read_entries(&logs.found, MAGIC, seed, |entry| {
            let Some(([stride, from, to], _)) = parsed(entry, ranks) else {
                return Ok(false);
            };
            match from == to {
                true => begun.insert(stride),
                false => begun.remove(&stride),
            };
            (from..to).for_each(|rank| done[rank as usize / 64] |= 1 << (rank % 64));
            // New strides get larger numbers, so that pairs of a stride without an end are never taken for theirs.
            last_stride = last_stride.max(stride);
            Ok(true)
        })?;
        let file = EntryLog::open(&logs.found, MAGIC, seed, |entry| {
            let Some(([stride, ..], mut pairs)) = parsed(entry, ranks) else {
                return Ok(false);
            };
            if !begun.contains(&stride) {
                pairs.try_for_each(&mut visit)?;
            }
            Ok(true)
        })?;
        Ok(Self {
            file: Mutex::new(Some(file)),
            seed,
            done,
            ranks,
            next_stride: AtomicU64::new(last_stride + 1),
        })
    }

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
        let parts = [bytemuck::cast_slice(&head), bytemuck::cast_slice(pairs)];
        let entry = sealed(self.seed, &parts);
        // The entry is complete before the lock is taken, so threads wait only for the copy.
        let mut file = lock(&self.file);
        let Some(open) = &mut *file else { return };
        if open.add(&entry).is_err() {
            // The job continues without the log. The checksum shows that the last entry is incomplete.
            *file = None;
        }
    }
}

impl StridePairs<'_> {
    pub(crate) fn push(&mut self, pair: PairRecord) {
        // Only when another pair follows, so that the entry that ends the stride is the last one.
        if self.pairs.len() == MAX_ENTRY_PAIRS {
            self.log.add([self.stride, 0, 0], &self.pairs);
            self.pairs.clear();
        }
        self.pairs.push(pair);
    }

    /// Ends the stride, of which all pairs have been pushed.
    pub(crate) fn end(self) {
        let Range { start, end } = self.ranks;
        let head = [self.stride, start.into(), end.into()];
        self.log.add(head, &self.pairs);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::entry_log::{HEAD, WORD};

    const RANKS: usize = 200;

    /// Pairs that contain the first rank of their stride.
    fn pairs_of(ranks: &Range<u32>, count: usize) -> impl Iterator<Item = PairRecord> {
        let start = ranks.start;
        (0..count as u32).map(move |number| [start, number, 0, 0, 0, 0])
    }

    fn reopened(place: &JobLogs, order: u64) -> (PairLog, Vec<PairRecord>) {
        let mut found = Vec::new();
        let log = PairLog::open(place, order, RANKS, |pair| {
            found.push(pair);
            Ok(())
        });
        found.sort_unstable();
        (log.unwrap(), found)
    }

    fn written(place: &JobLogs, strides: &[(Range<u32>, usize)]) {
        let (log, _) = reopened(place, 1);
        for (ranks, count) in strides {
            let mut stride = log.stride(ranks.clone());
            pairs_of(ranks, *count).for_each(|pair| stride.push(pair));
            stride.end();
        }
    }

    fn place(folder: &tempfile::TempDir) -> JobLogs {
        JobLogs::in_folder(folder.path(), 7, 1)
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
            let mut bytes = std::fs::read(&place.found).unwrap();
            let at = at.index(bytes.len());
            match is_cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= 0x10,
            }
            std::fs::write(&place.found, bytes).unwrap();
            // Only the strides before the damage.
            let mut end = HEAD as usize;
            let whole = strides.iter().take_while(|(_, count)| {
                end += 2 * WORD + size_of::<EntryHeader>() + count * size_of::<PairRecord>();
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

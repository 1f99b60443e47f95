//! The self-join: all pairs of a collection within a distance, without an index.
//!
//! For each table of an exact design, codes are scattered by the leading bits of the table's key. One of the threads then joins each bucket in the
//! cache (`bucket`): it scatters the codes by the rest of the key, and compares those that agree in the whole key with each other. A pair that agrees
//! in several keys belongs to the first of them, so none is reported twice and nothing has to be remembered. Equal codes count once.
//!
//! Large collections that are spread evenly are joined by fewer tables, each of which tolerates an error (`error_tolerant`), in two thirds of the
//! time.
//!
//! Memory in addition to the input: twice its size with such tables, its size with an exact design, or less: with less scratch memory a table is made
//! in slices, for each of which the input is read once more.

use super::code::Word;
use super::family::low_mask;
use super::scatter::ScatterBuffers;
use super::threads::map_parallel;
use bucket::{BucketDigit, BucketJoiner, cheapest_masks, varying_bits};
use error_tolerant::TolerantTables;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

mod bucket;
mod error_tolerant;

limits! {
    /// Memory and threads that a self-join may take.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SelfJoinLimits {
        /// Number of threads, at least one.
        threads: usize = 1,
        /// Memory in addition to the codes, in bytes; a few mebibytes are always taken.
        scratch_bytes: usize = usize::MAX,
    }
}

/// Visits every pair `a < b` of different codes within `radius`, inclusive, once, with its distance.
///
/// Codes may repeat; equal ones count as one, and are not a pair. Each thread has its own visitor, made by `visitor`. Which pairs a visitor gets, and
/// in which order, is unspecified, but the pairs of all visitors together are the same for any limits and any order of the codes.
///
/// Expected time for evenly spread codes: O(T n), where T is the number of tables of the design that fits n; about a hundred nanoseconds per code and
/// core for 64 bits and radius 3.
///
/// ```
/// use lookalike_hamming::{SelfJoinLimits, self_join};
/// use std::sync::Mutex;
///
/// let codes = [0b0000_u64, 0b1111, 0b0111, 0b0000];
/// let pairs = Mutex::new(Vec::new());
/// self_join(&codes, 1, SelfJoinLimits::default(), || {
///     |a, b, distance| pairs.lock().unwrap().push((a, b, distance))
/// });
/// assert_eq!(pairs.into_inner().unwrap(), [(0b0111, 0b1111, 1)]);
/// ```
pub fn self_join<C: Word, V: FnMut(C, C, u32) + Send>(
    codes: &[C],
    radius: u32,
    limits: SelfJoinLimits,
    visitor: impl Fn() -> V,
) {
    join_tables(codes, radius, limits, &|| false, None, &visitor);
}

/// Like [`self_join`], until `is_cancelled` returns true: every thread calls it at least every few thousand codes or rows of comparisons, and stops if it returns true;
/// from then on it must always return true. Returns [`ControlFlow::Break`] if it returns true at the end: the visitors may then have missed some of
/// the pairs.
///
/// ```
/// use lookalike_hamming::{SelfJoinLimits, self_join_until};
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
///
/// let codes: Vec<u64> = (0..100_000).collect();
/// let found = AtomicBool::new(false);
/// // Any pair will do.
/// let ended = self_join_until(&codes, 3, SelfJoinLimits::default(), &|| found.load(Relaxed), || {
///     |_, _, _| found.store(true, Relaxed)
/// });
/// assert!(ended.is_break());
/// ```
pub fn self_join_until<C: Word, V: FnMut(C, C, u32) + Send>(
    codes: &[C],
    radius: u32,
    limits: SelfJoinLimits,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    visitor: impl Fn() -> V,
) -> ControlFlow<()> {
    join_tables(codes, radius, limits, is_cancelled, None, &visitor);
    ended(is_cancelled)
}

fn ended(is_cancelled: &dyn Fn() -> bool) -> ControlFlow<()> {
    match is_cancelled() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Number of tables of a self-join, counted from the first, whose pairs have all been visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinedTables {
    /// Number of tables that are done.
    pub done: usize,
    /// Number of all tables.
    pub all: usize,
    /// Digest of the bits by which the tables find codes.
    pub design: u64,
}

/// Progress of a self-join from table to table, so that a later one can continue where it ended.
///
/// ```
/// use lookalike_hamming::{JoinedTables, SelfJoinLimits, SelfJoinProgress, self_join_from};
/// use std::sync::Mutex;
///
/// // Pairs of codes at distance 1.
/// let codes: Vec<u64> = (0..10_000_u64).map(|i| (i / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i % 2).collect();
/// let limits = SelfJoinLimits::default();
/// let (mut joined, pairs) = (JoinedTables::default(), Mutex::new(Vec::new()));
/// let completed = &mut |tables| joined = tables;
/// let mut progress = SelfJoinProgress { before: JoinedTables::default(), completed };
/// let ended = self_join_from(&codes, 1, limits, &|| false, &mut progress, || {
///     |a, b, _| pairs.lock().unwrap().push((a, b))
/// });
/// assert!(ended.is_continue());
/// assert!(pairs.into_inner().unwrap().len() >= 5_000 && joined.done == joined.all);
///
/// // Whoever noted the tables goes on behind them: here behind the last.
/// let mut progress = SelfJoinProgress { before: joined, completed: &mut |_| () };
/// let ended = self_join_from(&codes, 1, limits, &|| false, &mut progress, || {
///     |_, _, _| unreachable!("all tables are joined")
/// });
/// assert!(ended.is_continue());
/// ```
pub struct SelfJoinProgress<'a> {
    /// Tables that an earlier join of the same codes and radius completed: their pairs are not visited again. Ignored if this join uses other tables,
    /// as it may with another memory limit or another order of the codes.
    pub before: JoinedTables,
    /// Called when a table is done; all visitors so far have been dropped by then.
    pub completed: &'a mut dyn FnMut(JoinedTables),
}

impl std::fmt::Debug for SelfJoinProgress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelfJoinProgress")
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

/// Like [`self_join_until`], from the first table that is not done yet. Each thread has a new visitor for each table.
pub fn self_join_from<C: Word, V: FnMut(C, C, u32) + Send>(
    codes: &[C],
    radius: u32,
    limits: SelfJoinLimits,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    progress: &mut SelfJoinProgress<'_>,
    visitor: impl Fn() -> V,
) -> ControlFlow<()> {
    join_tables(
        codes,
        radius,
        limits,
        is_cancelled,
        Some(progress),
        &visitor,
    );
    ended(is_cancelled)
}

impl SelfJoinProgress<'_> {
    /// Returns the tables that were done before, given the bits of each table.
    fn begin(progress: Option<&Self>, tables: impl ExactSizeIterator<Item = u128>) -> JoinedTables {
        let all = tables.len();
        // A step of FNV-1a for each word: their order matters, and so does each bit.
        let step = |digest: u64, word: u64| (digest ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        let design = tables.fold(0xcbf2_9ce4_8422_2325, |digest, bits| {
            step(step(digest, bits as u64), (bits >> 64) as u64)
        });
        let none = JoinedTables {
            done: 0,
            all,
            design,
        };
        let before = progress.map(|progress| progress.before);
        before
            .filter(|before| (before.all, before.design) == (all, design))
            .unwrap_or(none)
    }
}

fn join_tables<C: Word, V: FnMut(C, C, u32) + Send>(
    codes: &[C],
    radius: u32,
    limits: SelfJoinLimits,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    mut progress: Option<&mut SelfJoinProgress<'_>>,
    visitor: &impl Fn() -> V,
) {
    let threads = limits
        .threads
        .clamp(1, (codes.len() / MIN_CODES_PER_THREAD).max(1));
    if let Some(tables) = TolerantTables::if_worthwhile(codes, radius, limits) {
        let visitors = || (0..threads).map(|_| visitor()).collect();
        return tables.join(codes, is_cancelled, progress, &visitors);
    }
    let mut workers: Vec<_> = (0..threads)
        .map(|_| JoinWorker::new(radius, is_cancelled, visitor()))
        .collect();
    let all = C::from_u128(low_mask(C::BITS));
    // Bits in which all codes agree distinguish none, so keys are made of the others.
    let varying = varying_bits(codes.iter().copied()) & all;
    // Masks are over the varying bits, counted from the lowest; `deposit` moves them to their real positions.
    let masks = codes
        .len()
        .checked_ilog2()
        .and_then(|magnitude| cheapest_masks(magnitude, varying.ones(), radius));
    // For few codes, or few bits that differ, all pairs are compared.
    let Some(masks) = masks else {
        let mut words = codes.to_vec();
        if words.len() <= MIN_CODES_PER_THREAD {
            let joiner = &mut workers[0].joiner;
            return joiner.bucket(&[&words], C::ZERO, C::ZERO);
        }
        words.sort_unstable();
        words.dedup();
        let next = AtomicUsize::new(0);
        map_parallel(&mut workers, |worker| {
            worker.joiner.compare_rows(&words, &next);
        });
        return;
    };
    let keys: Vec<C> = masks
        .into_iter()
        .map(|mask| C::from_u128(mask).deposit(varying))
        .collect();
    let begun = SelfJoinProgress::begin(progress.as_deref(), keys.iter().map(|key| key.to_u128()));
    for (table, key) in keys.into_iter().enumerate() {
        if is_cancelled() {
            return;
        }
        if table < begun.done {
            // The later tables must still leave out the pairs that this one visited.
            workers.iter_mut().for_each(|worker| worker.joiner.end(key));
            continue;
        }
        let pass = JoinPass {
            codes,
            key,
            digit: BucketDigit::leading(key, codes.len()),
            free: varying & !key,
            is_cancelled,
        };
        workers
            .iter_mut()
            .for_each(|worker| worker.joiner.begin(key));
        pass.run(&mut workers, limits.scratch_bytes);
        // Each worker gets every key, because any of them may meet a pair that an earlier key covers.
        workers.iter_mut().for_each(|worker| worker.joiner.end(key));
        // A pass that was cancelled may have missed pairs, so its table does not count as done.
        if let Some(progress) = progress.as_deref_mut().filter(|_| !is_cancelled()) {
            workers
                .iter_mut()
                .for_each(|worker| worker.joiner.replace_visitor(visitor()));
            (progress.completed)(JoinedTables {
                done: table + 1,
                ..begun
            });
        }
    }
}

/// Number of codes for which one more thread is worthwhile.
const MIN_CODES_PER_THREAD: usize = 1 << 12;
/// Number of buckets that a thread takes at a time.
const STRIDE: usize = 4;

/// One thread's share of the scattered codes, and its joiner.
struct JoinWorker<'c, W: Word, V> {
    joiner: BucketJoiner<'c, W, V>,
    /// Number of codes in each bucket, of the thread's share of the input.
    counts: Vec<usize>,
    /// The codes of the current slice, by bucket.
    words: Vec<W>,
    /// End of each bucket of the slice.
    ends: Vec<usize>,
}

impl<'c, W: Word, V: FnMut(W, W, u32)> JoinWorker<'c, W, V> {
    fn new(radius: u32, is_cancelled: &'c (dyn Fn() -> bool + Sync), visit: V) -> Self {
        Self {
            joiner: BucketJoiner::new(radius, is_cancelled, visit),
            counts: Vec::new(),
            words: Vec::new(),
            ends: Vec::new(),
        }
    }
}

/// A pass over the codes with one table of the design.
struct JoinPass<'a, C: Word> {
    codes: &'a [C],
    key: C,
    digit: BucketDigit<C>,
    free: C,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl<C: Word> JoinPass<'_, C> {
    fn run<V: FnMut(C, C, u32) + Send>(
        &self,
        workers: &mut [JoinWorker<'_, C, V>],
        scratch_bytes: usize,
    ) {
        let share = self.codes.len().div_ceil(workers.len()).max(1);
        let shares: Vec<&[C]> = (0..workers.len())
            // The last shares may be empty, because the others are rounded up.
            .map(|at| self.codes.chunks(share).nth(at).unwrap_or_default())
            .collect();
        // Each thread counts and scatters its own share into its own list, so no two write to the same memory.
        map_parallel(workers.iter_mut().zip(&shares), |(worker, share)| {
            self.count(share, &mut worker.counts)
        });
        for slice in self.slices(workers, scratch_bytes / size_of::<C>()) {
            map_parallel(workers.iter_mut().zip(&shares), |(worker, share)| {
                self.scatter(share, &slice, worker)
            });
            self.join(workers, slice.len());
        }
    }

    fn count(&self, share: &[C], counts: &mut Vec<usize>) {
        counts.clear();
        counts.resize(self.digit.buckets(), 0);
        self.digit.for_each(share.iter().copied(), |bucket, _| {
            counts[bucket] += 1;
        });
    }

    /// Divides the buckets into runs of at most `most` codes, or of one bucket.
    fn slices<V>(&self, workers: &[JoinWorker<'_, C, V>], most: usize) -> Vec<Range<usize>> {
        let mut slices = Vec::new();
        let (mut start, mut held) = (0, 0);
        for bucket in 0..self.digit.buckets() {
            let count: usize = workers.iter().map(|worker| worker.counts[bucket]).sum();
            // A bucket that exceeds the memory by itself is a slice anyway.
            if bucket > start && held + count > most {
                slices.push(start..bucket);
                (start, held) = (bucket, 0);
            }
            held += count;
        }
        slices.push(start..self.digit.buckets());
        slices
    }

    /// Scatters the codes of a thread's share that fall into a slice, by bucket.
    fn scatter<V>(&self, share: &[C], slice: &Range<usize>, worker: &mut JoinWorker<'_, C, V>) {
        let counts = &worker.counts[slice.clone()];
        let mut end = 0;
        worker.ends.clear();
        worker.ends.extend(counts.iter().map(|count| {
            end += count;
            end
        }));
        let out = &mut worker.words;
        let mut scatter = ScatterBuffers::new(counts, out);
        let words = share.iter().copied();
        // Usually all codes fit one slice, and none has to be tested.
        if slice.len() == self.digit.buckets() {
            self.digit.for_each(words, |bucket, word| {
                scatter.push(bucket, word, out);
            });
        } else {
            self.digit.for_each(words, |bucket, word| {
                if slice.contains(&bucket) {
                    scatter.push(bucket - slice.start, word, out);
                }
            });
        }
        let complete = scatter.finish(out);
        debug_assert!(complete, "both passes see the same codes");
    }

    /// Joins all buckets of a slice, each in the next free thread.
    fn join<V: FnMut(C, C, u32) + Send>(
        &self,
        workers: &mut [JoinWorker<'_, C, V>],
        buckets: usize,
    ) {
        let next = AtomicUsize::new(0);
        let rest = self.key & !self.digit.mask;
        let (mut joiners, mut parts) = (Vec::new(), Vec::new());
        for worker in workers {
            joiners.push(&mut worker.joiner);
            parts.push((worker.words.as_slice(), worker.ends.as_slice()));
        }
        let parts = &parts;
        map_parallel(&mut joiners, |joiner| {
            let mut segments = Vec::new();
            loop {
                // Relaxed: the words were published when the threads that scattered them were joined.
                let first = next.fetch_add(STRIDE, Ordering::Relaxed);
                if first >= buckets || (self.is_cancelled)() {
                    return;
                }
                for bucket in first..(first + STRIDE).min(buckets) {
                    segments.clear();
                    segments.extend(parts.iter().map(|(words, ends)| {
                        let start = bucket.checked_sub(1).map_or(0, |before| ends[before]);
                        &words[start..ends[bucket]]
                    }));
                    joiner.bucket(&segments, rest, self.free);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Number of pairs of one visitor, which is added to that of all when the visitor is dropped.
    struct PairCount<'a> {
        own: usize,
        all: &'a AtomicUsize,
    }

    impl PairCount<'_> {
        fn count(&mut self, a: u64, b: u64) {
            assert!(a < b);
            self.own += 1;
        }
    }

    impl Drop for PairCount<'_> {
        fn drop(&mut self) {
            self.all.fetch_add(self.own, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_join_of_skewed_codes_was_not_asked_whether_it_is_cancelled() {
        // All but one agree in the leading half of the bits, so they are in one bucket.
        let mixed = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) ^ i << 12;
        let skewed = (0..60_000).map(|i| mixed(i) & 0xffff_ffff);
        let codes: Vec<u64> = skewed.chain([u64::MAX]).collect();
        let asked = AtomicUsize::new(0);
        let is_cancelled = || asked.fetch_add(1, Ordering::Relaxed) > 100;
        let limits = SelfJoinLimits::default();
        let ended = self_join_until(&codes, 6, limits, &is_cancelled, || |_, _, _| ());
        assert!(ended.is_break());
        // The few calls after the answer are those of the loops that it ends.
        assert!((100..200).contains(&asked.into_inner()));
    }

    #[test]
    fn a_comparison_of_all_pairs_did_not_end_when_it_was_cancelled() {
        const DISTINCT: usize = 2 * MIN_CODES_PER_THREAD;
        // One of them occurs twice.
        let codes: Vec<u64> = (0..=DISTINCT as u64).map(|code| code.max(1)).collect();
        let limits = SelfJoinLimits::default().threads(2);
        let (all, begun) = (AtomicUsize::new(0), AtomicBool::new(false));
        let visitor = || {
            let mut pairs = PairCount { own: 0, all: &all };
            move |a, b, _| pairs.count(a, b)
        };
        let ended = self_join_until(&codes, 64, limits, &|| false, visitor);
        assert!(ended.is_continue());
        let expected = DISTINCT * (DISTINCT - 1) / 2;
        assert_eq!(all.swap(0, Ordering::Relaxed), expected);
        let is_cancelled = || begun.load(Ordering::Relaxed);
        let visitor = || {
            let (mut pairs, begun) = (PairCount { own: 0, all: &all }, &begun);
            move |a, b, _| {
                begun.store(true, Ordering::Relaxed);
                pairs.count(a, b);
            }
        };
        let ended = self_join_until(&codes, 64, limits, &is_cancelled, visitor);
        assert!(ended.is_break());
        assert!(all.into_inner() < expected / 4);
    }
}

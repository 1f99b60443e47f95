//! Scattering of items to many buckets at the speed of the memory: a cache line of items is collected for each bucket before it is written, past the
//! caches.

use super::code::Word;
use super::kernel;

/// Number of items in a line.
const LINE: usize = 8;

/// Eight items that wait to be written; a cache line if they have 64 bits.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct ScatterLine<W>([W; LINE]);

/// Items on their way to consecutive buckets of one list.
#[derive(Debug)]
pub(super) struct ScatterBuffers<W> {
    lines: Vec<ScatterLine<W>>,
    /// Position of the next item of each bucket, counted from the cache line in which the list begins.
    next: Vec<usize>,
    /// Start of each bucket, and the end of the last, counted likewise.
    starts: Vec<usize>,
    /// Number of positions in the first line that are before the list.
    beyond: usize,
}

impl<W: Word> ScatterBuffers<W> {
    /// Makes room for the items of all buckets in `out`.
    pub(super) fn new(counts: &[usize], out: &mut Vec<W>) -> Self {
        let total = counts.iter().sum();
        if out.capacity() < total {
            // The system provides zeros, so nothing is written twice.
            *out = vec![W::ZERO; total];
            kernel::claim_huge_pages(out);
        }
        out.resize(total, W::ZERO);
        // Positions count from a line of memory, so that a full buffer is written to a whole line.
        // For other widths than 64 bits, eight items are half a cache line, or two.
        let beyond = out.as_ptr().addr() % 64 / size_of::<W>() % LINE;
        let mut starts = vec![beyond];
        let mut end = beyond;
        starts.extend(counts.iter().map(|count| {
            end += count;
            end
        }));
        Self {
            lines: vec![ScatterLine([W::ZERO; LINE]); counts.len()],
            next: starts[..counts.len()].to_vec(),
            starts,
            beyond,
        }
    }

    /// Adds an item. Returns false, sooner or later, if its bucket is full.
    #[inline(always)]
    pub(super) fn push(&mut self, bucket: usize, item: W, out: &mut [W]) -> bool {
        let next = &mut self.next[bucket];
        // The slot follows from the position in memory, not from a count, so that a line in the buffer is a line in the list.
        let slot = *next % LINE;
        *next += 1;
        self.lines[bucket].0[slot] = item;
        slot < LINE - 1 || self.flush(bucket, out)
    }

    /// Writes the items that still wait; returns false unless every bucket is full.
    pub(super) fn finish(mut self, out: &mut [W]) -> bool {
        let all = (0..self.next.len())
            .all(|bucket| self.next[bucket] == self.starts[bucket + 1] && self.flush(bucket, out));
        kernel::end_streaming();
        all
    }

    /// Writes the waiting items of a bucket: the part of its line that belongs to it.
    #[inline]
    fn flush(&mut self, bucket: usize, out: &mut [W]) -> bool {
        let (end, items) = (self.next[bucket], &self.lines[bucket].0);
        if end > self.starts[bucket + 1] {
            return false;
        }
        // An empty bucket, which only `finish` flushes, ends where it starts, so nothing of it is written.
        let line = end.saturating_sub(1) / LINE * LINE;
        // The first line of a bucket may begin with the last items of the bucket before, which writes them itself.
        let start = line.max(self.starts[bucket]);
        // Whole lines go past the caches. The first and the last line of a bucket are shared with its neighbours, whose items a plain copy leaves
        // alone.
        if end - start == LINE {
            W::stream_line(out, start - self.beyond, items);
        } else {
            let waiting = &items[start - line..end - line];
            out[start - self.beyond..end - self.beyond].copy_from_slice(waiting);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scattered<W: Word>(items: &[W], bucket: impl Fn(W) -> usize, buckets: usize) -> Vec<W> {
        let mut counts = vec![0; buckets];
        items.iter().for_each(|&item| counts[bucket(item)] += 1);
        let mut out = Vec::new();
        let mut scatter = ScatterBuffers::new(&counts, &mut out);
        assert!(
            items
                .iter()
                .all(|&item| scatter.push(bucket(item), item, &mut out))
        );
        assert!(scatter.finish(&mut out));
        out
    }

    #[test]
    fn scattering_is_a_stable_sort_by_bucket() {
        for count in [0, 1, 7, 8, 9, 1_000, 5_003] {
            let items: Vec<u64> = (0..count)
                .map(|i: u64| i.wrapping_mul(0x9e37_79b9))
                .collect();
            let bucket = |item: u64| (item % 37) as usize;
            let mut expected = items.clone();
            expected.sort_by_key(|&item| bucket(item));
            assert_eq!(scattered(&items, bucket, 37), expected);
            let wide: Vec<u128> = items.iter().map(|&item| item.into()).collect();
            let expected: Vec<u128> = expected.into_iter().map(u128::from).collect();
            assert_eq!(scattered(&wide, |item| (item % 37) as usize, 37), expected);
        }
    }

    #[test]
    fn a_bucket_takes_no_more_and_no_fewer_than_it_was_made_for() {
        let mut out = Vec::new();
        let mut scatter = ScatterBuffers::new(&[3, 40], &mut out);
        let pushed = (0..20_u32).map(|item| scatter.push(0, item, &mut out));
        assert!(!pushed.collect::<Vec<_>>().into_iter().all(|kept| kept));
        let scatter = ScatterBuffers::new(&[3, 40], &mut out);
        assert!(!scatter.finish(&mut out));
    }
}

//! Items put in the order of their leading bits, a bucket at a time, in memory of a fixed size.
//!
//! Stands between the addresses of a chunk and the bitmap that they are looked up in: what lies in one
//! bucket falls into one stretch of the bitmap, small enough for the second-level cache. Nothing is
//! counted beforehand: a bucket that is full is emptied at once, so skew costs more visits, not memory.

use super::super::kernel;

/// Items of a cache line.
const LINE: usize = 8;

/// Eight items on their way to their bucket.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; LINE]);

/// Memory for the items of one thread; see the module's header.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    lines: Vec<Line>,
    /// Items in each bucket, those in its line included.
    counts: Vec<u32>,
    /// All buckets, each of `capacity` items, from the first whole cache line on.
    items: Vec<u64>,
    from: usize,
    capacity: usize,
}

impl Buckets {
    /// Gets ready for about `items` items in 2^`digit_bits` buckets.
    pub(super) fn prepare(&mut self, digit_bits: u32, items: usize) {
        let buckets = 1 << digit_bits;
        self.lines.resize(buckets, Line([0; LINE]));
        self.counts.clear();
        self.counts.resize(buckets, 0);
        // A quarter more than the mean: evenly spread items fit without being emptied midway.
        self.capacity = (items / buckets * 5 / 4 + 8 * LINE).next_multiple_of(LINE);
        let wanted = buckets * self.capacity + LINE;
        if self.items.len() < wanted {
            // Fresh pages are zero already: nothing is written before the advice, or twice.
            self.items = vec![0; wanted];
            kernel::ask_huge_pages(&mut self.items);
        }
        let beyond_line = self.items.as_ptr().addr() % 64 / size_of::<u64>();
        self.from = (LINE - beyond_line) % LINE;
    }

    /// Adds an item; hands a bucket that is full to `empty`.
    #[inline(always)]
    pub(super) fn push(&mut self, bucket: usize, item: u64, empty: &mut impl FnMut(usize, &[u64])) {
        let count = self.counts[bucket] as usize;
        self.lines[bucket].0[count % LINE] = item;
        self.counts[bucket] = count as u32 + 1;
        if count % LINE == LINE - 1 {
            self.flush(bucket, count + 1, empty);
        }
    }

    fn flush(&mut self, bucket: usize, count: usize, empty: &mut impl FnMut(usize, &[u64])) {
        let start = self.from + bucket * self.capacity;
        kernel::stream_line(&mut self.items, start + count - LINE, &self.lines[bucket].0);
        if count == self.capacity {
            self.counts[bucket] = 0;
            empty(bucket, &self.items[start..start + count]);
        }
    }

    /// Hands every bucket to `empty`, in order.
    pub(super) fn finish(&mut self, empty: &mut impl FnMut(usize, &[u64])) {
        for bucket in 0..self.counts.len() {
            let count = std::mem::take(&mut self.counts[bucket]) as usize;
            let start = self.from + bucket * self.capacity;
            let whole = count - count % LINE;
            let waiting = &self.lines[bucket].0[..count % LINE];
            self.items[start + whole..start + count].copy_from_slice(waiting);
            empty(bucket, &self.items[start..start + count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_out_once_in_its_bucket_however_skewed() {
        for (digit_bits, expected, each) in [(0, 5, 100), (3, 1_000, 1_000), (5, 10, 20_000)] {
            let mut buckets = Buckets::default();
            for skew in [1, 0] {
                buckets.prepare(digit_bits, expected);
                let mut out = vec![Vec::new(); 1 << digit_bits];
                let mut empty = |bucket: usize, items: &[u64]| out[bucket].extend_from_slice(items);
                let bucket = |item: u64| (item * skew % (1 << digit_bits)) as usize;
                (0..each).for_each(|item| buckets.push(bucket(item), item, &mut empty));
                buckets.finish(&mut empty);
                let mut again = vec![Vec::new(); 1 << digit_bits];
                (0..each).for_each(|item| again[bucket(item)].push(item));
                assert_eq!(out, again);
            }
        }
    }
}

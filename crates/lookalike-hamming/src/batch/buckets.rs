//! Items brought into the order of their leading bits, bucket by bucket, in memory of a fixed size.
//!
//! These buckets are between the addresses of a chunk and the bitmap in which they are looked up: the items of one bucket fall into one stretch of
//! the bitmap, small enough for the second-level cache. Nothing is counted beforehand: a full bucket is emptied at once, so skew costs more visits
//! instead of memory.

use super::super::kernel;

/// Number of items in a cache line.
const LINE: usize = 8;

/// Eight items on their way to their bucket.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct BucketLine([u64; LINE]);

/// Memory for the items of one thread; see the module's header.
#[derive(Debug, Default)]
pub(super) struct QueryBuckets {
    lines: Vec<BucketLine>,
    /// Number of items in each bucket, including those in its line.
    counts: Vec<u32>,
    whole: FlushedLines,
}

/// The items of all buckets that have left their line.
#[derive(Debug, Default)]
struct FlushedLines {
    /// All buckets, each of `capacity` items, starting at the first whole cache line.
    items: Vec<u64>,
    from: usize,
    capacity: usize,
}

impl QueryBuckets {
    /// Prepares for about `items` items in 2^`digit_bits` buckets.
    pub(super) fn prepare(&mut self, digit_bits: u32, items: usize) {
        let buckets = 1 << digit_bits;
        self.lines.resize(buckets, BucketLine([0; LINE]));
        self.counts.clear();
        self.counts.resize(buckets, 0);
        // A quarter more than the mean, so that evenly spread items fit without being emptied midway.
        let capacity = (items / buckets * 5 / 4 + 8 * LINE).next_multiple_of(LINE);
        self.whole.prepare(buckets, capacity);
    }

    /// Adds items, each with its bucket; passes a bucket to `empty` when it is full.
    #[inline(always)]
    pub(super) fn extend(
        &mut self,
        items: impl Iterator<Item = (usize, u64)>,
        empty: &mut impl FnMut(usize, &[u64]),
    ) {
        let (lines, counts) = (self.lines.as_mut_slice(), self.counts.as_mut_slice());
        for (bucket, item) in items {
            // The capacity is a multiple of a line, so a bucket can only be full when its line is.
            let count = counts[bucket];
            let line = &mut lines[bucket];
            // Software write combining: eight items are collected in a line that stays in the first-level cache, and leave it as one store past the
            // caches. Written one by one, each item would fetch a line of its bucket, and thousands of buckets miss the TLB.
            line.0[count as usize % LINE] = item;
            counts[bucket] = count + 1;
            if count as usize % LINE == LINE - 1 && self.whole.add(bucket, count, line) {
                counts[bucket] = 0;
                empty(bucket, self.whole.bucket(bucket, self.whole.capacity));
            }
        }
    }

    /// Passes every bucket to `empty`, in order.
    pub(super) fn finish(&mut self, empty: &mut impl FnMut(usize, &[u64])) {
        kernel::end_streaming();
        for (bucket, (count, line)) in self.counts.iter_mut().zip(&self.lines).enumerate() {
            let count = std::mem::take(count) as usize;
            let start = self.whole.start(bucket);
            let whole = count - count % LINE;
            // Items that have not filled their line go after the whole lines of their bucket.
            let waiting = &line.0[..count % LINE];
            self.whole.items[start + whole..start + count].copy_from_slice(waiting);
            empty(bucket, self.whole.bucket(bucket, count));
        }
    }
}

impl FlushedLines {
    fn prepare(&mut self, buckets: usize, capacity: usize) {
        self.capacity = capacity;
        // One line more, so that the first bucket can begin at a cache line.
        let wanted = buckets * capacity + LINE;
        if self.items.len() < wanted {
            // Free the old list first, because there may be no room for both.
            self.items = Vec::new();
            // Fresh pages are already zero, so nothing is written twice.
            self.items = vec![0; wanted];
            kernel::claim_huge_pages(&mut self.items);
        }
        // Stores past the caches need whole lines of memory, wherever the allocator put the list.
        let beyond_line = self.items.as_ptr().addr() % 64 / size_of::<u64>();
        self.from = (LINE - beyond_line) % LINE;
    }

    #[inline(always)]
    fn start(&self, bucket: usize) -> usize {
        self.from + bucket * self.capacity
    }

    fn bucket(&self, bucket: usize, count: usize) -> &[u64] {
        &self.items[self.start(bucket)..][..count]
    }

    /// Takes a line whose last item has the number `last` in its bucket; returns true if the bucket is then full.
    #[inline(never)]
    fn add(&mut self, bucket: usize, last: u32, line: &BucketLine) -> bool {
        let count = last as usize + 1;
        let start = self.start(bucket);
        kernel::stream_line(&mut self.items, start + count - LINE, &line.0);
        count == self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_comes_out_once_in_its_bucket_however_skewed() {
        for (digit_bits, expected, each) in [(0, 5, 100), (3, 1_000, 1_000), (5, 10, 20_000)] {
            let mut buckets = QueryBuckets::default();
            for skew in [1, 0] {
                buckets.prepare(digit_bits, expected);
                let mut out = vec![Vec::new(); 1 << digit_bits];
                let mut empty = |bucket: usize, items: &[u64]| out[bucket].extend_from_slice(items);
                let bucket = |item: u64| (item * skew % (1 << digit_bits)) as usize;
                buckets.extend((0..each).map(|item| (bucket(item), item)), &mut empty);
                buckets.finish(&mut empty);
                let mut again = vec![Vec::new(); 1 << digit_bits];
                (0..each).for_each(|item| again[bucket(item)].push(item));
                assert_eq!(out, again);
            }
        }
    }
}

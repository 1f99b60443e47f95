//! Scattering items to many places at the speed of the memory: a cache line of items is gathered for
//! each place before it is written, past the caches.

use super::code::Word;
use super::kernel;

/// Items of a line.
const LINE: usize = 8;

/// Items on their way to consecutive buckets of one list.
#[derive(Debug)]
pub(super) struct Scatter<W> {
    queues: Vec<Queue<W>>,
    /// Next free place and end of each bucket.
    places: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct Queue<W> {
    items: [W; LINE],
    count: u32,
    /// Places of the first line that belong to the bucket before: later lines are whole.
    lead: u32,
}

impl<W: Word> Scatter<W> {
    /// Makes room for the items of all buckets in `out`.
    pub(super) fn new(counts: &[usize], out: &mut Vec<W>) -> Self {
        let total = counts.iter().sum();
        if out.len() != total {
            out.clear();
            out.reserve_exact(total);
            // Pages are asked for before they are touched.
            kernel::ask_huge_pages(out);
            out.resize(total, W::ZERO);
        }
        let beyond_line = out.as_ptr().addr() % 64 / size_of::<W>();
        let mut end = 0;
        let places = counts.iter().map(|&count| {
            end += count;
            (end - count, end)
        });
        let places: Vec<(usize, usize)> = places.collect();
        let queue = |&(start, _): &(usize, usize)| {
            let lead = ((start + beyond_line) % LINE) as u32;
            Queue {
                items: [W::ZERO; LINE],
                count: lead,
                lead,
            }
        };
        Self {
            queues: places.iter().map(queue).collect(),
            places,
        }
    }

    /// Adds an item; false when its bucket is full.
    #[inline]
    pub(super) fn push(&mut self, bucket: usize, item: W, out: &mut [W]) -> bool {
        let queue = &mut self.queues[bucket];
        queue.items[queue.count as usize % LINE] = item;
        queue.count += 1;
        queue.count < LINE as u32 || queue.flush(&mut self.places[bucket], out)
    }

    /// Writes what still waits; false unless every bucket is full.
    pub(super) fn finish(mut self, out: &mut [W]) -> bool {
        let mut both = self.queues.iter_mut().zip(&mut self.places);
        let all = both.all(|(queue, place)| queue.flush(place, out) && place.0 == place.1);
        kernel::end_streaming();
        all
    }
}

impl<W: Word> Queue<W> {
    fn flush(&mut self, (next, end): &mut (usize, usize), out: &mut [W]) -> bool {
        let (from, to) = (self.lead as usize, self.count as usize);
        (self.lead, self.count) = (0, 0);
        if *next + (to - from) > *end {
            return false;
        }
        if to - from == LINE {
            W::stream_line(out, *next, &self.items);
        } else {
            out[*next..*next + to - from].copy_from_slice(&self.items[from..to]);
        }
        *next += to - from;
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
        let mut scatter = Scatter::new(&counts, &mut out);
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
        let mut scatter = Scatter::new(&[3, 40], &mut out);
        let pushed = (0..20_u32).map(|item| scatter.push(0, item, &mut out));
        assert!(!pushed.collect::<Vec<_>>().into_iter().all(|kept| kept));
        let scatter = Scatter::new(&[3, 40], &mut out);
        assert!(!scatter.finish(&mut out));
    }
}

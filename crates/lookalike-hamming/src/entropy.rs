//! Search for the bits that distinguish codes, because the bits of real simhashes are biased.
//!
//! Bits that are nearly always 0 (or 1) make poor addresses: with single words as features, a uniform design met 16 to 270 times the candidates. So
//! bits are distributed over the tables by how evenly they are split in a sample: each table gets its share of the good ones, and uses them as its
//! address.

use super::code::Word;

/// Number of bits by which the poorest address must improve for bits to move: its buckets then have less than half as many codes.
const MIN_GAIN: f64 = 1.0;

/// Renames the bits of a mask: bit `i` becomes bit `order[i]`.
pub(super) fn permuted_mask(mask: u128, order: &[u32]) -> u128 {
    let set = (0..).zip(order).filter(|&(bit, _)| mask >> bit & 1 == 1);
    set.fold(0, |renamed, (_, &bit): (u32, _)| renamed | 1 << bit)
}

/// Balance of each bit of a collection.
///
/// ```
/// use lookalike_hamming::{BitBalance, Design, Family};
///
/// // The upper half of these codes says nothing: a table keyed by it would have one bucket.
/// let codes: Vec<u64> = (0..4096_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).collect();
/// let balance = BitBalance::sample(&codes, 4096);
/// assert_eq!((balance.bias(63), balance.worst_bias()), (0.5, 0.5));
/// let design = Design::new(Family::budgets(&[1, 1]), 64, 3)?.permuted(&balance.order());
/// let useful = |mask: u128| (mask & 0xffff_ffff).count_ones();
/// assert!(design.tables().iter().all(|table| useful(table.mask) == 16));
/// # Ok::<(), lookalike_hamming::NoSuchDesign>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BitBalance {
    /// Share of codes whose bit is set, by bit position.
    ones: Vec<f64>,
    sampled: usize,
}

impl BitBalance {
    /// Counts the bits of at most `most` codes, evenly spaced over the collection.
    pub fn sample<C: Word>(codes: &[C], most: usize) -> Self {
        // Rounded up, so that at most `most` are looked at. Evenly spaced instead of the first ones: files are often ordered by site or time, and the
        // first pages would only represent themselves.
        let step = codes.len().div_ceil(most.max(1)).max(1);
        let mut counts = vec![0_usize; C::BITS as usize];
        let mut sampled = 0;
        for code in codes.iter().step_by(step) {
            let word = code.to_u128();
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += (word >> bit & 1) as usize;
            }
            sampled += 1;
        }
        let share = |count| count as f64 / sampled.max(1) as f64;
        Self {
            ones: counts.into_iter().map(share).collect(),
            sampled,
        }
    }

    /// Returns the distance of a bit's share of ones from a half: 0 is best, 0.5 means that the bit carries no information.
    ///
    /// # Panics
    /// If the codes have no such bit.
    pub fn bias(&self, bit: u32) -> f64 {
        let bias = (self.ones[bit as usize] - 0.5).abs();
        // A deviation that chance alone gives a fair bit is no bias. The share of ones of a fair bit has a standard deviation of 0.5 / sqrt(n), and
        // the limit is four of these.
        let noise = 2.0 / (self.sampled.max(1) as f64).sqrt();
        if bias < noise { 0.0 } else { bias }
    }

    /// Returns the share of codes whose bit is set, from the lowest bit up.
    pub fn ones(&self) -> &[f64] {
        &self.ones
    }

    /// Returns the largest bias of a bit.
    pub fn worst_bias(&self) -> f64 {
        (0..self.ones.len() as u32)
            .map(|bit| self.bias(bit))
            .fold(0.0, f64::max)
    }

    /// Returns an order for [`Design::permuted`](super::Design::permuted) that distributes the good bits evenly over any runs of neighbouring
    /// positions: the best bit goes to the first position, the next to the middle, and so on in bit-reversed order. The identity if no bit is biased.
    pub fn order(&self) -> Vec<u32> {
        let count = self.ones.len() as u32;
        let mut order: Vec<u32> = (0..count).collect();
        if self.worst_bias() == 0.0 {
            return order;
        }
        let best_first = self.best_first(super::family::low_mask(count));
        let log = count.ilog2();
        for (rank, bit) in (0_u32..).zip(best_first) {
            // Widths are powers of two, so reversed ranks are a permutation. In bit-reversed order (that of van der Corput) any run of 2^j
            // neighbouring positions gets every 2^(log - j)th of the ranks, and so an even share of good bits.
            order[(rank.reverse_bits() >> (32 - log)) as usize] = bit;
        }
        order
    }

    /// Returns [`BitBalance::order`] if it makes better addresses of masks, each given with the number of bits of its address. `None` if the poorest
    /// address would not improve by more than a bit.
    pub(super) fn better_order(&self, masks: &[(u128, u32)]) -> Option<Vec<u32>> {
        if self.worst_bias() == 0.0 {
            return None;
        }
        let order = self.order();
        let poorest = |renamed: &dyn Fn(u128) -> u128| {
            let masks = masks.iter();
            let informations =
                masks.map(|&(mask, count)| self.information(self.best(renamed(mask), count)));
            informations.fold(f64::INFINITY, f64::min)
        };
        let gain = poorest(&|mask| permuted_mask(mask, &order)) - poorest(&|mask| mask);
        (gain > MIN_GAIN).then_some(order)
    }

    /// Returns the number of bits with which an address of these bits splits the codes, if bits are independent: the binary logarithm of how many
    /// codes there are for each that agrees with a code.
    fn information(&self, mask: u128) -> f64 {
        let bits = (0..self.ones.len() as u32).filter(|bit| mask >> bit & 1 == 1);
        // Two codes agree in a bit that is set with probability p with probability p^2 + (1 - p)^2.
        bits.map(|bit| -(0.5 + 2.0 * self.bias(bit).powi(2)).log2())
            .sum()
    }

    /// Returns the `count` best bits of `mask`, as a mask: the least biased ones, and the higher ones among equals.
    pub fn best(&self, mask: u128, count: u32) -> u128 {
        let chosen = self.best_first(mask).into_iter().take(count as usize);
        chosen.fold(0, |chosen, bit| chosen | 1 << bit)
    }

    fn best_first(&self, mask: u128) -> Vec<u32> {
        let count = self.ones.len() as u32;
        let mut bits: Vec<_> = (0..count)
            .rev()
            .filter(|bit| mask >> bit & 1 == 1)
            .collect();
        // A stable sort keeps unbiased bits next to each other, so that a shift can extract their address.
        bits.sort_by(|&a, &b| self.bias(a).total_cmp(&self.bias(b)));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biased_bits_are_dealt_out_and_avoided() {
        // The upper half of the bits is constant.
        let codes: Vec<u64> = (0..4096_u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32)
            .collect();
        let balance = BitBalance::sample(&codes, 4096);
        assert_eq!(balance.worst_bias(), 0.5);
        let order = balance.order();
        let good =
            |range: std::ops::Range<usize>| order[range].iter().filter(|&&bit| bit < 32).count();
        for start in (0..64).step_by(16) {
            assert_eq!(good(start..start + 16), 8);
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..64));
        assert_eq!(balance.best(u128::from(u64::MAX), 8) >> 32, 0);
    }

    #[test]
    fn even_bits_keep_their_places() {
        let codes: Vec<u32> = (0..256).map(|i: u32| i.wrapping_mul(0x0101_0101)).collect();
        let balance = BitBalance::sample(&codes, 1000);
        assert_eq!(balance.worst_bias(), 0.0);
        assert!(balance.order().into_iter().eq(0..32));
        assert_eq!(balance.best(0xff00, 3), 0xe000);
        assert_eq!(BitBalance::sample::<u32>(&[], 10).worst_bias(), 0.0);
    }
}

//! Simhash accumulation: the bits that more than half of the features have set.
//!
//! The counts of the 64 bits are kept bit-sliced (Harley and Seal): plane p holds bit p of all 64 counts, so that five logical operations add bits
//! for 64 counts at once. Eight such counters run side by side, which the compiler turns into vector instructions. At the end they are added up and
//! compared with half of the features, also bit-sliced.

use super::{CpuLevel, versions};

/// Number of counters side by side.
const LANES: usize = 8;
/// Number of features that are added in one step: 16 for each counter.
const BLOCK: usize = 16 * LANES;
/// Number of bits of a count: more features than these can count do not fit into memory.
const PLANES: usize = 48;

type Lanes = [u64; LANES];

/// Returns the bits that more than half of `features` have set.
pub(crate) fn majority(features: &[u64]) -> u64 {
    majority_at(CpuLevel::current(), features)
}

versions! {
    fn majority_at(features: &[u64]) -> u64 {
        portable: majority_body, avx2: majority_body, avx512: majority_body,
    }
}

#[inline(always)]
fn majority_body(features: &[u64]) -> u64 {
    // 3 KiB: they stay in the first-level cache, and the four lowest planes in registers.
    let mut planes = [[0; LANES]; PLANES];
    // Whole blocks go through the tree of adders, the rest plane by plane, eight features at a time.
    let (blocks, rest) = features.as_chunks::<BLOCK>();
    for block in blocks {
        let sixteens = add_block(&mut planes, block);
        // A carry out of the plane of eights counts sixteen features.
        carry(&mut planes[4..], sixteens);
    }
    let (rows, rest) = rest.as_chunks::<LANES>();
    for row in rows {
        carry(&mut planes, *row);
    }
    // Zeros add nothing to any count.
    let mut last = [0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    carry(&mut planes, last);
    // No count is larger than the number of features, so all planes above are zero.
    let used = (usize::BITS - features.len().leading_zeros()) as usize;
    // More than half, so that a tie gives a zero, as in the definition of `Simhash`.
    at_least(&sum_lanes(&planes[..used]), features.len() / 2 + 1)
}

/// Returns the sum and carry of three bits, in each of the 64 positions.
#[inline(always)]
fn add3(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    (half ^ c, a & b | half & c)
}

/// Adds 16 features to each counter: updates planes 0 to 3 and returns the carry out of them.
#[inline(always)]
fn add_block(planes: &mut [Lanes; PLANES], block: &[u64; BLOCK]) -> Lanes {
    let mut sixteens = [0; LANES];
    // A tree of adders: 15 for 16 features, whereas one carry at a time would go through four planes for each of them.
    let [ones, twos, fours, eights, ..] = planes;
    for lane in 0..LANES {
        let counts = [ones[lane], twos[lane], fours[lane]];
        let (counts, first) = add8(counts, block, lane);
        let (counts, second) = add8(counts, block, 8 * LANES + lane);
        [ones[lane], twos[lane], fours[lane]] = counts;
        (eights[lane], sixteens[lane]) = add3(eights[lane], first, second);
    }
    sixteens
}

/// Adds the features at `at`, `at + LANES`, ... to three planes and returns the carry.
#[inline(always)]
fn add8([ones, twos, fours]: [u64; 3], block: &[u64; BLOCK], at: usize) -> ([u64; 3], u64) {
    let ([ones, twos], first) = add4([ones, twos], block, at);
    let ([ones, twos], second) = add4([ones, twos], block, at + 4 * LANES);
    let (fours, eight) = add3(fours, first, second);
    ([ones, twos, fours], eight)
}

#[inline(always)]
fn add4([ones, twos]: [u64; 2], block: &[u64; BLOCK], at: usize) -> ([u64; 2], u64) {
    let (ones, first) = add3(ones, block[at], block[at + LANES]);
    let (ones, second) = add3(ones, block[at + 2 * LANES], block[at + 3 * LANES]);
    let (twos, four) = add3(twos, first, second);
    ([ones, twos], four)
}

/// Adds one bit to each count, with the weight of the first plane.
#[inline(always)]
fn carry(planes: &mut [Lanes], mut bits: Lanes) {
    for plane in planes {
        // No counter has a carry left, which in texts of usual length happens long before the last of 48 planes.
        if bits == [0; LANES] {
            return;
        }
        for (plane, bit) in plane.iter_mut().zip(&mut bits) {
            // A half adder: the sum stays, the carry goes to the next plane.
            (*plane, *bit) = (*plane ^ *bit, *plane & *bit);
        }
    }
}

/// Adds the counts of all lanes, plane by plane. [`PLANES`] are enough, because no sum exceeds the number of features.
#[inline(always)]
fn sum_lanes(planes: &[Lanes]) -> [u64; PLANES] {
    let mut sums = [[0; LANES]; PLANES];
    sums[..planes.len()].copy_from_slice(planes);
    // The upper half of the lanes is added to the lower: three rounds for eight counters.
    for width in [4, 2, 1] {
        let mut carries = [0; LANES / 2];
        for plane in &mut sums[..planes.len()] {
            for lane in 0..width {
                (plane[lane], carries[lane]) =
                    add3(plane[lane], plane[lane + width], carries[lane]);
            }
        }
    }
    sums.map(|plane| plane[0])
}

/// Returns one bit for each of the 64 counts that is at least `least`.
#[inline(always)]
fn at_least(counts: &[u64; PLANES], least: usize) -> u64 {
    // From the lowest bit up: a count reaches `least` so far if it is larger in this bit, or equal in it and has reached it before.
    (0..PLANES).fold(u64::MAX, |reached, bit| match least >> bit & 1 {
        1 => counts[bit] & reached,
        _ => counts[bit] | reached,
    })
}

/// Returns the bits for which the features that have them set outweigh the others.
pub(crate) fn weighted(features: &[(u64, i32)]) -> u64 {
    weighted_at(CpuLevel::current(), features)
}

versions! {
    fn weighted_at(features: &[(u64, i32)]) -> u64 {
        portable: weighted_body, avx2: weighted_body, avx512: weighted_body,
    }
}

#[inline(always)]
fn weighted_body(features: &[(u64, i32)]) -> u64 {
    // Only ones are summed: the zeros subtract the total less the ones, so the sign is that of 2 * ones - total.
    let mut ones = [0i64; 64];
    let mut total = 0;
    for &(feature, weight) in features {
        let weight = i64::from(weight);
        total += weight;
        for (bit, sum) in ones.iter_mut().enumerate() {
            // The mask has the feature's bit in all of its bits. It replaces a branch or a product, and fits 64 sums in eight registers of AVX-512.
            *sum += weight & ((feature >> bit & 1) as i64).wrapping_neg();
        }
    }
    (0..64)
        .filter(|&bit| 2 * ones[bit] > total)
        .fold(0, |mask, bit| mask | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix64;

    /// The simhash by its definition: add and subtract, keep the signs.
    fn obvious(features: &[(u64, i32)]) -> u64 {
        let mut sums = [0i64; 64];
        for &(feature, weight) in features {
            for (bit, sum) in sums.iter_mut().enumerate() {
                *sum += i64::from(weight) * if feature >> bit & 1 == 1 { 1 } else { -1 };
            }
        }
        (0..64)
            .filter(|&bit| sums[bit] > 0)
            .fold(0, |mask, bit| mask | 1 << bit)
    }

    #[test]
    fn every_level_equals_the_definition() {
        let mut state = 3;
        for count in (0..40).chain([63, 64, 127, 128, 129, 255, 256, 257, 1000, 5000]) {
            let skew = splitmix64(&mut state);
            let features: Vec<(u64, i32)> = (0..count)
                .map(|i| {
                    (
                        splitmix64(&mut state) | if i % 3 == 0 { skew } else { 0 },
                        1,
                    )
                })
                .collect();
            let plain: Vec<u64> = features.iter().map(|feature| feature.0).collect();
            for level in CpuLevel::available() {
                assert_eq!(
                    majority_at(level, &plain),
                    obvious(&features),
                    "{count}, {level:?}"
                );
                assert_eq!(
                    weighted_at(level, &features),
                    obvious(&features),
                    "{count}, {level:?}"
                );
            }
        }
    }

    #[test]
    fn equal_features_fill_the_counters_without_overflow() {
        for count in [1, 2, 1023, 1024, 1025, 4096, 70_000] {
            for level in CpuLevel::available() {
                let features = vec![0xF0F0; count];
                assert_eq!(majority_at(level, &features), 0xF0F0, "{count}, {level:?}");
            }
        }
    }

    #[test]
    fn weights_at_their_limits_are_exact() {
        let features = [
            (u64::MAX, i32::MIN),
            (1, i32::MAX),
            (2, i32::MAX),
            (u64::MAX, i32::MAX),
            (4, 1),
        ];
        for level in CpuLevel::available() {
            assert_eq!(
                weighted_at(level, &features),
                obvious(&features),
                "{level:?}"
            );
        }
    }
}

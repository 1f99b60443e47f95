//! Sorting features: they are uniform 64-bit values, so their leading bits tell where they belong.
//!
//! A comparison sort mispredicts every other branch. Here values are counted by their leading bits, moved to buckets of one or two each, and sorted
//! within the buckets. A bucket that turns out large is sorted in the same way by its next bits, so that a text of few words, which has the same
//! features many times, costs no more than another.

use crate::kernel::settle::settle;

/// Number of values up to which plain insertion is fastest.
const SMALL: usize = 24;

/// Sorts `features` and removes duplicates. `scratch` is working space: it grows as needed, and its contents afterwards are unspecified. Linear time
/// for hashes, n log n for any values.
pub fn sort_dedup(features: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    let len = features.len();
    if scratch.len() < len {
        scratch.resize(len, 0);
    }
    sort(features, &mut scratch[..len], 0);
    features.dedup();
}

/// Sorts values that agree in their first `known` bits, with counters for about as many buckets as there are values.
fn sort(values: &mut [u64], scratch: &mut [u64], known: u32) {
    match values.len() {
        0..=SMALL => settle(values, values.len()),
        25..=96 => sort_by_bits::<64>(values, scratch, known),
        97..=384 => sort_by_bits::<256>(values, scratch, known),
        385..=3072 => sort_by_bits::<1024>(values, scratch, known),
        // More buckets would not fit the first-level cache beside the values that are moved; the buckets of larger lists are sorted again.
        _ => sort_by_bits::<4096>(values, scratch, known),
    }
}

fn sort_by_bits<const BUCKETS: usize>(values: &mut [u64], scratch: &mut [u64], known: u32) {
    let bits = BUCKETS.ilog2();
    // No bits are left to sort by, or positions would not fit their counters.
    if known + bits > u64::BITS || u32::try_from(values.len()).is_err() {
        return values.sort_unstable();
    }
    // The remainder by a power of two changes nothing, but tells the compiler that no bounds check is needed.
    let bucket = |value: u64| (value << known >> (u64::BITS - bits)) as usize % BUCKETS;
    // On the stack, and 16 KiB at most: half of a first-level cache of 32 KiB.
    let mut places = [0u32; BUCKETS];
    for &value in &*values {
        places[bucket(value)] += 1;
    }
    let largest = counts_to_places(&mut places);
    if largest as usize > values.len() / 2 {
        // Not hashes, or few distinct ones: the standard library's sort is made for such lists.
        return values.sort_unstable();
    }
    for &value in &*values {
        let place = &mut places[bucket(value)];
        scratch[*place as usize] = value;
        *place += 1;
    }
    values.copy_from_slice(scratch);
    let largest = largest as usize;
    if largest > SMALL {
        // Each position has moved on to the end of its bucket.
        sort_large_buckets(values, scratch, &places, known + bits);
    }
    settle(values, largest);
}

/// Turns counts into the positions where the buckets begin; returns the largest count.
fn counts_to_places(counts: &mut [u32]) -> u32 {
    let (mut place, mut largest) = (0, 0);
    for count in counts {
        largest = largest.max(*count);
        // The right side is read before either is written.
        (*count, place) = (place, place + *count);
    }
    largest
}

fn sort_large_buckets(values: &mut [u64], scratch: &mut [u64], ends: &[u32], known: u32) {
    let mut start = 0;
    for end in ends.iter().map(|&end| end as usize) {
        if end - start > SMALL {
            sort(&mut values[start..end], &mut scratch[start..end], known);
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::hash::splitmix64;

    fn check(values: &[u64]) {
        let expected: Vec<u64> = values
            .iter()
            .copied()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let (mut sorted, mut scratch) = (values.to_vec(), vec![7; 3]);
        sort_dedup(&mut sorted, &mut scratch);
        assert_eq!(sorted, expected);
    }

    #[test]
    fn hashes_in_any_number() {
        let mut state = 11;
        for count in (0..130).chain([383, 384, 385, 1000, 3072, 3073, 5000, 70_000]) {
            let values: Vec<u64> = (0..count).map(|_| splitmix64(&mut state)).collect();
            check(&values);
            let repeated: Vec<u64> = values.iter().map(|v| values[*v as usize % count]).collect();
            check(&repeated);
        }
    }

    #[test]
    fn values_that_share_their_leading_bits() {
        let mut state = 12;
        for shift in [1, 8, 30, 55, 60, 63] {
            let values: Vec<u64> = (0..3000).map(|_| splitmix64(&mut state) >> shift).collect();
            check(&values);
            let split = |(at, v): (usize, &u64)| if at % 3 == 0 { !v } else { *v };
            check(&values.iter().enumerate().map(split).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_words_over_and_over() {
        let values: Vec<u64> = (0..100_000)
            .map(|at| [5 << 60, 5 << 60 | 1][at % 2])
            .collect();
        check(&values);
    }

    proptest! {
        #[test]
        fn any_values(values in proptest::collection::vec(any::<u64>(), 0..300)) {
            check(&values);
        }
    }
}

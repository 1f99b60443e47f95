//! The last step of sorting by leading bits: values that are a few positions from where they belong.
//!
//! The portable form is insertion, which mispredicts at every other value. With AVX-512, which has minimum and maximum of 64-bit values, neighbours
//! are put in order without a branch, the even pairs and the odd pairs in turn, in as many passes as the largest group has values (odd-even
//! transposition sort).

use super::{CpuLevel, versions};

/// Group size from which insertion takes fewer steps.
#[cfg(target_arch = "x86_64")]
const INSERTION_MAX: usize = 12;

/// Sorts `values`, which consist of ascending groups of at most `largest` values, each in any order.
pub(crate) fn settle(values: &mut [u64], largest: usize) {
    settle_at(CpuLevel::current(), values, largest);
}

versions! {
    fn settle_at(values: &mut [u64], largest: usize) {
        portable: insert, avx2: insert, avx512: exchange,
    }
}

#[inline(always)]
fn insert(values: &mut [u64], _largest: usize) {
    for at in 1..values.len() {
        let value = values[at];
        let mut place = at;
        // Stops within the group of the value, because all earlier groups have smaller values.
        while place > 0 && values[place - 1] > value {
            values[place] = values[place - 1];
            place -= 1;
        }
        values[place] = value;
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn exchange(values: &mut [u64], largest: usize) {
    if largest > INSERTION_MAX || values.len() < 2 {
        return insert(values, largest);
    }
    // As many passes as values sort a group, whether it begins at an even position or an odd one. Each pass works on all groups at once. Pairs across
    // the end of a group are already in order, so no swap crosses it.
    for pass in 0..largest {
        let (pairs, _) = values[pass % 2..].as_chunks_mut::<2>();
        for pair in pairs {
            // VPMINUQ and VPMAXUQ, which AVX2 lacks for 64-bit values.
            let [a, b] = *pair;
            *pair = [a.min(b), a.max(b)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix64;

    #[test]
    fn every_level_sorts_groups() {
        let mut state = 21;
        for largest in 1..20usize {
            for count in [0usize, 1, 2, 3, 15, 16, 17, 40, 200] {
                // Groups of every size up to the largest, each beginning at both parities.
                let mut values: Vec<u64> = Vec::new();
                let mut group = 0;
                while values.len() < count {
                    let size = 1 + (splitmix64(&mut state) as usize) % largest;
                    let low = |state: &mut u64| splitmix64(state) % 50;
                    values.extend((0..size).map(|_| group << 32 | low(&mut state)));
                    group += 1;
                }
                let mut expected = values.clone();
                expected.sort_unstable();
                for level in CpuLevel::available() {
                    let mut settled = values.clone();
                    settle_at(level, &mut settled, largest);
                    assert_eq!(settled, expected, "{largest} {count} {level:?}");
                }
            }
        }
    }
}

//! Counts of the visits of ranks, in a small table.

/// Visits of ranks, counted in a hash table that grows up to a limit.
///
/// An array by rank would be simpler, but take 4 bytes per class in each thread. Few ranks are ever visited for a class, so this table stays in
/// the cache. Memory: 16 to 40 bytes for each rank visited, at most 640 KiB.
pub(crate) struct VisitCounts {
    /// A rank in the upper half and its count in the lower half; 0 if the slot is free.
    slots: Vec<u64>,
    /// Places of the slots in use, in the order in which they were taken.
    taken: Vec<u32>,
    /// Number of low bits of a hash to drop; the rest is the place.
    shift: u32,
    most: usize,
    pub(crate) is_full: bool,
}

/// Number of slots in a new table; a power of two.
const FIRST_SLOTS: usize = 1 << 10;

/// Number of slots in the largest table; a power of two.
const MAX_SLOTS: usize = 1 << 16;

/// 2^32 divided by the golden ratio, so that successive ranks are far apart.
const SPREAD: u32 = 0x9E37_79B9;

impl Default for VisitCounts {
    fn default() -> Self {
        Self::with_slots(FIRST_SLOTS, MAX_SLOTS)
    }
}

impl VisitCounts {
    /// Creates a table that starts with `slots` slots and grows up to `most`, both powers of two from 2.
    pub(crate) fn with_slots(slots: usize, most: usize) -> Self {
        Self {
            slots: vec![0; slots],
            taken: Vec::new(),
            shift: u32::BITS - slots.ilog2(),
            most,
            is_full: false,
        }
    }

    /// Counts a visit. If there is no room for another rank, all counts are invalid, and `is_full` is true.
    #[inline]
    pub(crate) fn add(&mut self, rank: u32) {
        let mut place = self.place(rank);
        loop {
            let slot = &mut self.slots[place];
            // Test the count, because the slot of rank 0 has zeros in its upper half.
            if *slot as u32 == 0 {
                break;
            }
            if (*slot >> 32) as u32 == rank {
                *slot += 1;
                return;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
        // At most half full, so that probe sequences are short and end at a free slot.
        if self.taken.len() * 2 >= self.slots.len() {
            if self.slots.len() >= self.most {
                self.is_full = true;
                return;
            }
            self.grow();
            return self.add(rank);
        }
        self.slots[place] = u64::from(rank) << 32 | 1;
        self.taken.push(place as u32);
    }

    #[inline]
    fn place(&self, rank: u32) -> usize {
        (rank.wrapping_mul(SPREAD) >> self.shift) as usize
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Self::with_slots(self.slots.len() * 2, self.most);
        // In the order of `taken`, because `drain` promises the order of first visits.
        for &place in &self.taken {
            let slot = self.slots[place as usize];
            let mut place = larger.place((slot >> 32) as u32);
            while larger.slots[place] != 0 {
                place = (place + 1) & (larger.slots.len() - 1);
            }
            larger.slots[place] = slot;
            larger.taken.push(place as u32);
        }
        *self = larger;
    }

    /// Calls `visit` with every rank visited and its count, in the order of first visits, and clears the table.
    #[inline]
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u32, u32)) {
        for &place in &self.taken {
            // Clear only the slots in use: most tables use few of thousands.
            let slot = std::mem::take(&mut self.slots[place as usize]);
            visit((slot >> 32) as u32, slot as u32);
        }
        self.taken.clear();
        self.is_full = false;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn visits_are_counted_until_there_is_no_room(
            visits in prop::collection::vec(prop::collection::vec(prop_oneof![0..20_u32, any::<u32>()], 0..60), 0..4),
            slots in 1..4_u32,
            most in 1..7_u32,
        ) {
            let most = most.max(slots);
            let mut counts = VisitCounts::with_slots(1 << slots, 1 << most);
            for visits in visits {
                let mut expected = BTreeMap::new();
                visits.iter().for_each(|&rank| *expected.entry(rank).or_insert(0) += 1);
                visits.iter().for_each(|&rank| counts.add(rank));
                prop_assert_eq!(counts.is_full, expected.len() > 1 << (most - 1));
                let was_full = counts.is_full;
                let mut found = BTreeMap::new();
                counts.drain(|rank, count| assert!(found.insert(rank, count).is_none()));
                prop_assert!(was_full || found == expected);
                prop_assert!(!counts.is_full);
            }
        }
    }
}

//! Ids beside distinct codes: several documents may share a fingerprint.

/// Numbers of a fixed number of bits, back to back.
#[derive(Clone, Debug, Default)]
struct PackedInts {
    words: Vec<u64>,
    bits: u32,
}

impl PackedInts {
    /// `count` zeros, wide enough for `largest`.
    fn zeros(count: usize, largest: u64) -> Self {
        let bits = (64 - largest.leading_zeros()).max(1);
        // One word more, so that every number can be read as two words.
        Self {
            words: vec![0; (count * bits as usize).div_ceil(64) + 1],
            bits,
        }
    }

    fn get(&self, index: usize) -> u64 {
        let at = index * self.bits as usize;
        let both = u128::from(self.words[at / 64]) | u128::from(self.words[at / 64 + 1]) << 64;
        (both >> (at % 64)) as u64 & (u64::MAX >> (64 - self.bits))
    }

    /// Sets a number that is still zero.
    fn set(&mut self, index: usize, value: u64) {
        let at = index * self.bits as usize;
        let both = u128::from(value) << (at % 64);
        self.words[at / 64] |= both as u64;
        self.words[at / 64 + 1] |= (both >> 64) as u64;
    }
}

/// For each rank, the ids of the documents with that code, ascending.
///
/// Memory: n ceil(log2(largest id + 1)) bits, and as much again for the starts of the lists unless
/// every code has one id.
#[derive(Clone, Debug, Default)]
pub(super) struct IdLists {
    ids: PackedInts,
    /// Start of the list of each rank, and the end; `None` when each has one id.
    starts: Option<PackedInts>,
}

impl IdLists {
    /// Lists of `ids`, where `rank(i)` is the rank of the code of `ids[i]`, of `ranks` ranks.
    pub(super) fn new(ids: &[u64], ranks: usize, rank: impl Fn(usize) -> usize) -> Self {
        // A counting sort by rank; the ids of one code are sorted afterwards.
        let mut starts = vec![0_usize; ranks + 1];
        for i in 0..ids.len() {
            starts[rank(i) + 1] += 1;
        }
        for i in 0..ranks {
            starts[i + 1] += starts[i];
        }
        let mut sorted = vec![0; ids.len()];
        // Starts are wanted once more, for the ends of the lists.
        let mut next = starts.clone();
        for (i, &id) in ids.iter().enumerate() {
            let slot = &mut next[rank(i)];
            sorted[*slot] = id;
            *slot += 1;
        }
        let mut packed = PackedInts::zeros(ids.len(), ids.iter().copied().max().unwrap_or(0));
        for list in starts.windows(2) {
            sorted[list[0]..list[1]].sort_unstable();
        }
        for (i, &id) in sorted.iter().enumerate() {
            packed.set(i, id);
        }
        // Each rank has an id at least: as many ids as ranks means one each.
        let starts = (ranks != ids.len()).then(|| {
            let mut packed = PackedInts::zeros(ranks + 1, ids.len() as u64);
            for (i, &start) in starts.iter().enumerate() {
                packed.set(i, start as u64);
            }
            packed
        });
        Self {
            ids: packed,
            starts,
        }
    }

    pub(super) fn of(&self, rank: usize) -> impl Iterator<Item = u64> + '_ {
        let range = match &self.starts {
            None => rank..rank + 1,
            Some(starts) => starts.get(rank) as usize..starts.get(rank + 1) as usize,
        };
        range.map(|i| self.ids.get(i))
    }

    pub(super) fn bytes(&self) -> usize {
        let starts = self.starts.as_ref().map_or(0, |starts| starts.words.len());
        (self.ids.words.len() + starts) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_complete() {
        let ids = [9, u64::MAX, 3, 4, 0, 9];
        let ranks = [2, 0, 2, 1, 2, 2];
        let lists = IdLists::new(&ids, 3, |i| ranks[i]);
        let of = |rank| lists.of(rank).collect::<Vec<_>>();
        assert_eq!(of(0), [u64::MAX]);
        assert_eq!(of(1), [4]);
        assert_eq!(of(2), [0, 3, 9, 9]);
    }

    #[test]
    fn single_ids_need_no_starts() {
        let ids: Vec<u64> = (0..1000).map(|i| i * 77 % 1000).collect();
        let lists = IdLists::new(&ids, 1000, |i| 999 - i);
        assert!((0..1000).all(|i| lists.of(999 - i).eq([ids[i]])));
        assert_eq!(lists.bytes(), (1000 * 10_usize).div_ceil(64) * 8 + 8);
    }
}

//! Feature sets held in memory, with which other sets are compared as they arrive.

use lookalike::resemblance::prefix_len;

use super::prefix::{BYTES_PER_POSTING, PrefixIndex, RoughCounts, resemblance};

/// Feature sets with an index of their prefixes.
#[derive(Debug, Clone)]
pub(crate) struct IndexedSets {
    sets: Vec<Box<[u64]>>,
    least: f64,
    index: PrefixIndex,
}

impl IndexedSets {
    /// Returns the memory of a set of `features` features, in bytes.
    pub(crate) fn bytes(features: usize, least: f64) -> u64 {
        // Eight bytes a feature, 32 for the allocation, and the postings of the prefix, which alone is indexed.
        let prefix = prefix_len(features, least) as u64;
        features as u64 * 8 + 32 + prefix * BYTES_PER_POSTING
    }

    /// Indexes `sets` for finding those with a resemblance of at least `least` to another set. Features that `counts` reports at most `single` times
    /// occur in no two of the sets to compare, so they are left out.
    pub(crate) fn new(
        sets: Vec<Box<[u64]>>,
        least: f64,
        counts: &RoughCounts,
        single: u32,
    ) -> Self {
        let (mut prefix, mut entries) = (Vec::new(), Vec::new());
        for (at, set) in sets.iter().enumerate() {
            counts.prefix(set, prefix_len(set.len(), least), single, &mut prefix);
            entries.extend(prefix.iter().map(|&(_, feature)| (feature, at as u32)));
        }
        Self {
            sets,
            least,
            // Lists of one set stay: the sets that are compared come from outside the index.
            index: PrefixIndex::new(entries, 1),
        }
    }

    /// Calls `visit` with each set that resembles `set` enough and its resemblance, each set once.
    pub(crate) fn similar(
        &self,
        set: &[u64],
        counts: &RoughCounts,
        single: u32,
        mut visit: impl FnMut(u32, f64),
    ) {
        let mut prefix = Vec::new();
        counts.prefix(set, prefix_len(set.len(), self.least), single, &mut prefix);
        let lists = prefix
            .iter()
            .flat_map(|&(_, feature)| self.index.of(feature));
        // Sorted and without repeats: a set may share several features of the prefix, and is compared once.
        let mut touched: Vec<u32> = lists.copied().collect();
        touched.sort_unstable();
        touched.dedup();
        for at in touched {
            let score = resemblance(&self.sets[at as usize], set, self.least);
            if score >= self.least {
                visit(at, score);
            }
        }
    }
}

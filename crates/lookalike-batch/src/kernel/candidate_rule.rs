//! Conditions that a candidate meets before its feature sets are compared.

use lookalike::resemblance::{prefix_len, shared_needed};

use crate::settings::{DistanceFor, JobSettings, Method};

/// Condition that a method sets for candidates before they are verified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CandidateRule {
    /// Enough shared prefix features that the remaining features can raise the resemblance to the threshold.
    Prefix,
    /// At least this many shared groups (bands, super-shingles).
    Shared(u32),
    /// Fingerprints within this distance.
    Distance(u32),
    /// At least this many shared groups, and fingerprints within this distance where it counts.
    SharedWithin(u32, u32, DistanceFor),
}

impl CandidateRule {
    /// Returns the rule of the settings' method.
    pub(crate) fn of(settings: &JobSettings) -> Self {
        match settings.method {
            // With `exact` all sets are empty, so any rule will do.
            Method::AllPairs | Method::Exact => Self::Prefix,
            Method::Simhash => Self::Distance(settings.distance),
            Method::Henzinger => Self::SharedWithin(
                settings.min_equal(),
                settings.distance,
                settings.distance_for,
            ),
            Method::MinHash | Method::Oph | Method::BBit => Self::Shared(1),
            Method::SuperShingle
            | Method::ModP
            | Method::Winnow
            | Method::IMatch
            | Method::Buckets => Self::Shared(settings.min_equal()),
        }
    }

    /// Returns the minimum number of groups that a candidate shares; `None` for prefixes, where the number depends on the sizes of the sets.
    pub(crate) fn min_shared_groups(self) -> Option<u32> {
        match self {
            Self::Prefix => None,
            Self::Shared(least) | Self::SharedWithin(least, ..) => Some(least),
            Self::Distance(_) => Some(1),
        }
    }

    /// Returns false only if the sizes of two feature sets and the number of groups that they share rule out a resemblance of the threshold.
    pub(crate) fn is_promising(
        self,
        sizes: [usize; 2],
        shared_groups: u64,
        threshold: f64,
    ) -> bool {
        if self.is_ruled_out(sizes, shared_groups, threshold) {
            return false;
        }
        let [size_x, size_y] = sizes;
        let needed = shared_needed(size_x, size_y, threshold);
        // The sets cannot share more features than the smaller one has.
        if needed > size_x.min(size_y) {
            return false;
        }
        match self.min_shared_groups() {
            Some(least) => shared_groups >= u64::from(least),
            None => self.can_share(sizes, shared_groups, needed, threshold),
        }
    }

    /// Returns false only if the sizes of two feature sets and the number of groups that they share rule out a resemblance of `least`,
    /// which is below the threshold. Like [`CandidateRule::is_promising`], for the pairs that a search for candidates at the threshold meets.
    pub(crate) fn may_reach_similarity(
        self,
        least: f64,
        sizes: [usize; 2],
        shared_groups: u64,
        threshold: f64,
    ) -> bool {
        let [size_x, size_y] = sizes;
        let needed = shared_needed(size_x, size_y, least);
        needed <= size_x.min(size_y) && self.can_share(sizes, shared_groups, needed, threshold)
    }

    /// Returns false if the number of groups that two feature sets share rules out that they share `needed` features.
    pub(crate) fn can_share(
        self,
        sizes: [usize; 2],
        shared_groups: u64,
        needed: usize,
        threshold: f64,
    ) -> bool {
        // Features outside the prefixes: whichever prefix ends first in the order of features, no shared feature beyond its end
        // is in the other prefix, so besides the counted features at most the rest of that set is shared.
        let rest = |size: usize| size - prefix_len(size, threshold);
        let outside = sizes.map(rest).into_iter().max().unwrap_or(0);
        !matches!(self, Self::Prefix) || shared_groups + outside as u64 >= needed as u64
    }

    /// Tests roughly before the exact test: three multiplications, with a margin of one feature on each side for
    /// rounding, so that it rejects nothing that the exact test would accept.
    fn is_ruled_out(self, sizes: [usize; 2], shared_groups: u64, threshold: f64) -> bool {
        let [size_x, size_y] = sizes;
        let (small, large) = (size_x.min(size_y) as f64, size_x.max(size_y) as f64);
        // Overlap of a resemblance t: |A ∩ B| >= t / (1 + t) * (|A| + |B|).
        let needed = threshold / (1.0 + threshold) * (small + large) - 1.0;
        let outside = match self {
            // A set of n features has n - prefix_len(n), about t * n, features outside its prefix.
            Self::Prefix => shared_groups as f64 + threshold * large + 1.0,
            Self::Shared(_) | Self::Distance(_) | Self::SharedWithin(..) => small,
        };
        needed > small || needed > outside
    }
}

/// Returns true if sets of these sizes can have a resemblance of at least the threshold.
///
/// If the smallest and the largest of three sizes are compatible, so is each pair of them.
pub(crate) fn is_compatible(size_x: usize, size_y: usize, threshold: f64) -> bool {
    shared_needed(size_x, size_y, threshold) <= size_x.min(size_y)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sizes_between_compatible_sizes_are_compatible(
            mut sizes in prop::array::uniform3(0..5000_usize),
            threshold in 0.0..=1.0_f64,
        ) {
            sizes.sort_unstable();
            let [small, middle, large] = sizes;
            if is_compatible(small, large, threshold) {
                prop_assert!(is_compatible(small, middle, threshold));
                prop_assert!(is_compatible(middle, large, threshold));
            }
        }

        #[test]
        fn a_count_that_is_ruled_out_stays_so_with_fewer_groups(
            sizes in prop::array::uniform2(0..300_usize),
            shared in 0..300_u64,
            threshold in 0.05..=1.0_f64,
            least in 1..4_u32,
        ) {
            for rule in [CandidateRule::Prefix, CandidateRule::Shared(least), CandidateRule::Distance(3)] {
                if !rule.is_promising(sizes, shared + 1, threshold) {
                    prop_assert!(!rule.is_promising(sizes, shared, threshold));
                }
                if rule.is_promising(sizes, shared, threshold) {
                    prop_assert!(is_compatible(sizes[0], sizes[1], threshold));
                }
            }
        }
    }
}

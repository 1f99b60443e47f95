//! An index by category and length of documents that share a sketch or a text, so that a search among a million equal pages does not look at
//! all of them.
//!
//! If only documents of one category are compared, they are looked up: documents are sorted by category, then by class of lengths, then by
//! place. Otherwise the search visits places in ascending order, but leaves out whole blocks of 64, 4096 and 262,144 documents in which
//! summaries of categories and classes show that none is admitted.
//!
//! Four classes of lengths double the length. A search may thus look in vain at documents that are up to a fifth too long or too short.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::pair_rule::{PairFilter, PairTraits};

/// Number of documents up to which a search looks at all.
// Tests have few documents, and compare all searches with those of a model.
pub(crate) const LINEAR_MAX: usize = if cfg!(test) { 3 } else { 64 };
/// Approximate memory in bytes for each document.
pub(crate) const DOCUMENT_BYTES: usize = 32;

/// Binary logarithms of the sizes of blocks.
const BLOCKS: [u32; 3] = [6, 12, 18];
/// Number of classes of lengths.
const CLASSES: u8 = 128;

/// Category, class of lengths, and place of a document.
type TraitKey = (u64, u8, u32);

/// The categories and classes of lengths in a block.
#[derive(Clone, Copy, Debug)]
struct TraitSummary {
    /// `None` for several categories.
    category: Option<u64>,
    /// A bit for each class.
    classes: u128,
}

/// Documents in ascending order of their places.
#[derive(Debug, Default)]
pub(crate) struct TraitIndex {
    places: Vec<u32>,
    /// Number of leading documents that were removed.
    removed: usize,
    summaries: [Vec<TraitSummary>; BLOCKS.len()],
    by_traits: BTreeSet<TraitKey>,
}

/// Returns the class of a length: its leading bit and the next two.
fn length_class(length: u32) -> u8 {
    match length.checked_ilog2() {
        // The largest class is 4 * 31 + 3.
        Some(log @ 2..) => (log * 4 + (length >> (log - 2) & 3)) as u8,
        _ => length as u8,
    }
}

/// Returns the classes in which a filter may admit documents.
fn admitted_classes(filter: &PairFilter) -> RangeInclusive<u8> {
    let lengths = filter.lengths();
    length_class(*lengths.start())..=length_class(*lengths.end())
}

impl TraitSummary {
    fn of(traits: PairTraits) -> Self {
        Self {
            category: Some(traits.category),
            classes: 1 << length_class(traits.length),
        }
    }

    fn add(&mut self, other: Self) {
        self.category = self.category.filter(|_| self.category == other.category);
        self.classes |= other.classes;
    }

    /// Tells whether a filter that admits lengths of some classes may admit a document of the block.
    fn may_have(&self, filter: &PairFilter, classes: u128) -> bool {
        self.classes & classes != 0
            && self
                .category
                .is_none_or(|category| filter.admits_category(category))
    }
}

impl TraitIndex {
    /// Indexes documents in ascending order of their places.
    pub(crate) fn new(places: Vec<u32>, traits: impl Fn(u32) -> PairTraits) -> Self {
        let mut index = Self::default();
        // Collecting builds a set at once, without gaps for later entries.
        let keys = places.iter().map(|&place| key(place, traits(place)));
        index.by_traits = keys.collect();
        for place in places {
            index.append(place, traits(place));
        }
        index.places.shrink_to_fit();
        index
    }

    /// Adds a document behind all others.
    pub(crate) fn push(&mut self, place: u32, traits: PairTraits) {
        self.by_traits.insert(key(place, traits));
        self.append(place, traits);
    }

    fn append(&mut self, place: u32, traits: PairTraits) {
        let summary = TraitSummary::of(traits);
        for (summaries, bits) in self.summaries.iter_mut().zip(BLOCKS) {
            match summaries.get_mut(self.places.len() >> bits) {
                Some(block) => block.add(summary),
                None => summaries.push(summary),
            }
        }
        self.places.push(place);
    }

    /// Removes a document. It is still visited if other categories are compared, until no document before it is left.
    pub(crate) fn remove(&mut self, place: u32, traits: PairTraits, is_dead: impl Fn(u32) -> bool) {
        self.by_traits.remove(&key(place, traits));
        let rest = &self.places[self.removed..];
        self.removed += rest.iter().take_while(|&&place| is_dead(place)).count();
    }

    /// Returns all places but those of removed documents before the first that is left.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places[self.removed..]
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.places.len() * DOCUMENT_BYTES
    }

    /// Returns the places that a filter admits, in ascending order. `traits` returns the traits of a document.
    pub(crate) fn admitted<'a>(
        &'a self,
        filter: PairFilter,
        traits: impl Fn(u32) -> PairTraits + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let (mut place, mut position) = (0, self.removed);
        std::iter::from_fn(move || {
            if let Some(category) = filter.only_category() {
                let next = self.next_of_category(category, place, &filter, &traits)?;
                place = next + 1;
                return Some(next);
            }
            let next = self.next_position(position, &filter, &traits)?;
            position = next + 1;
            Some(self.places[next])
        })
    }

    /// Returns the first admitted place of a category that is not before `from`.
    fn next_of_category(
        &self,
        category: u64,
        from: u32,
        filter: &PairFilter,
        traits: &impl Fn(u32) -> PairTraits,
    ) -> Option<u32> {
        let classes = admitted_classes(filter);
        let last = (category, *classes.end(), u32::MAX);
        let (mut class, mut at) = (*classes.start(), from);
        let mut nearest = None;
        while (category, class, at) <= last
            && let Some(&(_, found, place)) =
                self.by_traits.range((category, class, at)..=last).next()
        {
            if found > class && place < from {
                // Documents of this class, but the first ones are before `from`.
                (class, at) = (found, from);
            } else if filter.admits(traits(place)) {
                nearest = nearest.map_or(Some(place), |least| Some(place.min(least)));
                (class, at) = (found + 1, from);
            } else {
                (class, at) = (found, place + 1);
            }
        }
        nearest
    }

    /// Returns the first position not before `at` whose document is admitted.
    fn next_position(
        &self,
        mut at: usize,
        filter: &PairFilter,
        traits: &impl Fn(u32) -> PairTraits,
    ) -> Option<usize> {
        let classes = admitted_classes(filter);
        let all = u128::MAX >> (CLASSES - 1 - (classes.end() - classes.start()));
        let classes = all << classes.start();
        while at < self.places.len() {
            // The largest block that begins here and has nothing admitted. If a block has something, so have all larger ones.
            let blocks = self.summaries.iter().zip(BLOCKS);
            let left_out = blocks.map_while(|(summaries, bits)| {
                let is_start = at.trailing_zeros() >= bits;
                let summary = summaries.get(at >> bits).filter(|_| is_start)?;
                (!summary.may_have(filter, classes)).then_some(1 << bits)
            });
            match left_out.last() {
                Some(length) => at += length,
                None if filter.admits(traits(self.places[at])) => return Some(at),
                None => at += 1,
            }
        }
        None
    }
}

fn key(place: u32, traits: PairTraits) -> TraitKey {
    (traits.category, length_class(traits.length), place)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::pair_rule::{CategoryScope, NeighbourScope, PairRule};

    fn filter(scope: CategoryScope, share: f64, category: u64, length: u32) -> PairFilter {
        let rule = PairRule::default().within("site").length_share(0.5);
        let scope = NeighbourScope::from(0)
            .categories(scope)
            .length_share(share);
        let filter = rule.filter(scope, PairTraits { category, length });
        filter.expect("the rule keeps both")
    }

    fn traits() -> impl Strategy<Value = PairTraits> {
        let length = prop_oneof![0..9_u32, 90..130_u32, 1000..9000_u32, Just(u32::MAX)];
        (0..4_u64, length).prop_map(|(category, length)| PairTraits { category, length })
    }

    /// Runs of documents of one kind, so that whole blocks are left out.
    fn documents() -> impl Strategy<Value = Vec<PairTraits>> {
        let run = (traits(), prop_oneof![1..5_usize, 60..9000_usize]);
        let runs = prop::collection::vec(run, 1..9);
        runs.prop_map(|runs| {
            let run = |(traits, count)| std::iter::repeat_n(traits, count);
            runs.into_iter().flat_map(run).collect()
        })
    }

    fn scopes() -> impl Strategy<Value = CategoryScope> {
        let all = CategoryScope::ALL.to_vec();
        prop::sample::select(all)
    }

    proptest! {
        #[test]
        fn equals_a_walk_of_all_documents(
            documents in documents(), first in 0..200_usize, removed in 0..300_usize, scope in scopes(),
            share in prop_oneof![Just(0.0), 0.01..1.0_f64, Just(1.0)], asked in traits(),
        ) {
            // Places have gaps, as in a collection where other documents lie between.
            let of = |place: u32| documents[place as usize / 3];
            let places: Vec<u32> = (0..documents.len() as u32).map(|at| at * 3 + at % 2).collect();
            let first = first.min(places.len());
            let mut index = TraitIndex::new(places[..first].to_vec(), of);
            places[first..].iter().for_each(|&place| index.push(place, of(place)));
            let is_dead = |place: u32| (place as usize) < removed * 3;
            let dead = places.iter().copied().filter(|&place| is_dead(place));
            dead.for_each(|place| index.remove(place, of(place), is_dead));
            let filter = filter(scope, share, asked.category, asked.length);
            let walked = places.iter().copied().filter(|&place| !is_dead(place) && filter.admits(of(place)));
            prop_assert_eq!(index.admitted(filter, of).collect::<Vec<_>>(), walked.collect::<Vec<_>>());
        }

        #[test]
        fn classes_ascend_with_lengths(length in 0..u32::MAX) {
            prop_assert!(length_class(length) <= length_class(length + 1));
            prop_assert!(length_class(length + 1) < CLASSES);
        }
    }

    /// Each search looked at all documents that share the fingerprint, so that loading them took quadratic time.
    #[test]
    fn a_search_looked_at_all_documents_of_a_fingerprint() {
        let count = 100_000;
        let looked_at = |filter, of: &dyn Fn(u32) -> PairTraits| {
            let index = TraitIndex::new((0..count).collect(), of);
            let looks = Cell::new(0);
            let counted = |place| {
                looks.set(looks.get() + 1);
                of(place)
            };
            let found = index.admitted(filter, counted).next();
            (found, looks.get())
        };
        let one_each = |place: u32| PairTraits {
            category: place.into(),
            length: 100,
        };
        let within = |category| filter(CategoryScope::Within, 0.0, category, 0);
        assert_eq!(looked_at(within(77_777), &one_each), (Some(77_777), 1));
        assert_eq!(looked_at(within(200_000), &one_each), (None, 0));
        let last = |place: u32| PairTraits {
            category: (place == count - 1).into(),
            length: 100,
        };
        let (found, looks) = looked_at(filter(CategoryScope::Across, 0.0, 0, 0), &last);
        assert!(found == Some(count - 1) && looks <= 64, "{looks}");
        // Short and long texts in turn, and one between.
        let lengths = |place: u32| PairTraits {
            category: place.into(),
            length: if place == count / 2 {
                1000
            } else {
                [100, 10_000][place as usize % 2]
            },
        };
        let (found, looks) = looked_at(filter(CategoryScope::All, 0.8, 0, 1000), &lengths);
        assert!(found == Some(count / 2) && looks <= 64, "{looks}");
        assert_eq!(
            looked_at(filter(CategoryScope::Across, 0.8, 0, 5000), &lengths),
            (None, 0)
        );
    }
}

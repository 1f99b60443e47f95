//! Pages: families of documents of which each contains another, near copies under one page that stands for them.
//!
//! Rows come in the order of their first unit. So when a unit comes first in a row it is known whether an earlier one
//! stands for it, and pages are compared with those that stand for others only: nothing drifts.

use super::SharedCount;
use super::places::DocumentPlaces;
use crate::spill::table_column::TableColumn;

/// Least share of the smaller of two texts in the other at paths that end alike.
const SAME_PATH: f64 = 0.5;
/// Least share of the larger of two texts in the other at different paths.
const OF_LARGER: f64 = 0.5;

/// The page that stands for a set of equal texts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FamilyLink {
    leader: u32,
    ends_alike: bool,
    resemblance: f32,
}

/// Hears the rows of one chunking.
///
/// Memory: 12 bytes a set of equal texts.
pub(crate) struct PageFamilies<'a> {
    links: TableColumn<Option<FamilyLink>>,
    places: &'a DocumentPlaces,
    /// Least share of the chunks of the smaller of two pages in the other.
    containment: f64,
}

impl<'a> PageFamilies<'a> {
    pub(crate) fn new(sets: usize, places: &'a DocumentPlaces, containment: f64) -> Self {
        Self {
            links: (0..sets).map(|_| None).collect(),
            places,
            containment,
        }
    }

    /// Hears a row of sets, in order.
    pub(crate) fn row(&mut self, row: SharedCount, sizes: &[u32]) {
        let SharedCount { a, b, shared } = row;
        // Rows of a unit come after all in which it was second: whether it follows another one is settled by
        // now.
        if self.links[a as usize].is_some() {
            return;
        }
        let (in_a, in_b) = (sizes[a as usize], sizes[b as usize]);
        let of_smaller = f64::from(shared) / f64::from(in_a.min(in_b));
        let of_larger = f64::from(shared) / f64::from(in_a.max(in_b));
        let is_contained = of_smaller >= self.containment && of_larger >= OF_LARGER;
        if !is_contained && of_smaller < SAME_PATH.min(self.containment) {
            return;
        }
        let link = FamilyLink {
            leader: a,
            ends_alike: self.places.end_alike(a, b),
            resemblance: shared as f32 / (in_a + in_b - shared) as f32,
        };
        let is_better = self.links[b as usize].is_none_or(|old| link.is_better(&old));
        if (is_contained || link.ends_alike) && is_better && !self.places.stand_together(a, b) {
            self.links[b as usize] = Some(link);
        }
    }

    /// The set that stands for each, which may be itself.
    pub(crate) fn leaders(&self) -> TableColumn<u32> {
        let sets = self.links.iter().zip(0..);
        sets.map(|(link, set)| link.map_or(set, |link| link.leader))
            .collect()
    }
}

impl FamilyLink {
    /// A path that ends alike says most, then how much both have in common. Of equals the first stays.
    fn is_better(&self, old: &Self) -> bool {
        (self.ends_alike, self.resemblance) > (old.ends_alike, old.resemblance)
    }
}

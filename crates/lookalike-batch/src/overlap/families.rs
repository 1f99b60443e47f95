//! Pages: families of near-copies, each represented by one of its documents.
//!
//! Rows come in the order of their first unit. When a unit comes first in a row, it is therefore known whether an earlier one represents it. Pages
//! are only compared with representatives, so families do not drift.

use super::SharedCount;
use super::places::DocumentPlaces;
use crate::spill::table_column::TableColumn;

/// Minimum share of the smaller text in the larger one if their paths end alike.
const SAME_PATH: f64 = 0.5;
/// Minimum share of the larger text in the smaller one if their paths differ.
const MIN_SHARE_OF_LARGER: f64 = 0.5;

/// The page that represents a set of equal texts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FamilyLink {
    leader: u32,
    ends_alike: bool,
    // 32 bits are enough to rank links, and keep an optional one at 12 bytes.
    resemblance: f32,
}

/// Finder of families in the rows of one chunking.
///
/// Memory: 12 bytes for each set of equal texts.
pub(crate) struct PageFamilies<'a> {
    links: TableColumn<Option<FamilyLink>>,
    places: &'a DocumentPlaces,
    /// Minimum share of the chunks of the smaller page in the larger one.
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

    /// Takes a row of sets. Rows must come in order.
    pub(crate) fn row(&mut self, row: SharedCount, sizes: &[u32]) {
        let SharedCount { a, b, shared } = row;
        // The rows of a unit come after all rows in which it was second, so whether another one represents it is settled by now.
        if self.links[a as usize].is_some() {
            return;
        }
        let (in_a, in_b) = (sizes[a as usize], sizes[b as usize]);
        let of_smaller = f64::from(shared) / f64::from(in_a.min(in_b));
        let of_larger = f64::from(shared) / f64::from(in_a.max(in_b));
        let is_contained = of_smaller >= self.containment && of_larger >= MIN_SHARE_OF_LARGER;
        // Most rows end here, before paths and servers are looked up.
        if !is_contained && of_smaller < SAME_PATH.min(self.containment) {
            return;
        }
        let link = FamilyLink {
            leader: a,
            ends_alike: self.places.end_in_same_path(a, b),
            resemblance: shared as f32 / (in_a + in_b - shared) as f32,
        };
        let is_better = self.links[b as usize].is_none_or(|old| link.is_better(&old));
        if (is_contained || link.ends_alike) && is_better && !self.places.share_a_server(a, b) {
            self.links[b as usize] = Some(link);
        }
    }

    /// Returns the set that represents each set, which may be itself.
    pub(crate) fn leaders(&self) -> TableColumn<u32> {
        let sets = self.links.iter().zip(0..);
        sets.map(|(link, set)| link.map_or(set, |link| link.leader))
            .collect()
    }
}

impl FamilyLink {
    /// Tells whether this link is better: paths that end alike count first, then the resemblance. Ties keep the old link.
    fn is_better(&self, old: &Self) -> bool {
        (self.ends_alike, self.resemblance) > (old.ends_alike, old.resemblance)
    }
}

//! Pages: families of near-copies, each represented by one of its documents.
//!
//! Rows come in the order of their first unit. When a unit comes first in a row, it is therefore known whether an earlier one represents it. Pages
//! are only compared with representatives, so families do not drift. All rows of a representative come together, and after the last one, its family
//! takes the best of them: at most one page of each server.

use std::collections::{HashMap, HashSet};
use std::mem::take;

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
/// Memory: 12 bytes for each set of equal texts, and 16 for each member of the family that is formed.
pub(crate) struct PageFamilies<'a> {
    links: TableColumn<Option<FamilyLink>>,
    /// Sets that could join the family of the latest rows.
    candidates: Vec<(u32, FamilyLink)>,
    places: &'a DocumentPlaces,
    /// Minimum share of the chunks of the smaller page in the larger one.
    containment: f64,
}

impl<'a> PageFamilies<'a> {
    pub(crate) fn new(sets: usize, places: &'a DocumentPlaces, containment: f64) -> Self {
        Self {
            links: (0..sets).map(|_| None).collect(),
            candidates: Vec::new(),
            places,
            containment,
        }
    }

    /// Takes a row of sets. Rows must come in order.
    pub(crate) fn row(&mut self, row: SharedCount, sizes: &[u32]) {
        let SharedCount { a, b, shared } = row;
        if self
            .candidates
            .last()
            .is_some_and(|(_, link)| link.leader != a)
        {
            self.form_family();
        }
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
        if (is_contained || link.ends_alike) && is_better {
            self.candidates.push((b, link));
        }
    }

    /// Takes candidates into the family, the best first. Two pages of one server are not one page, even if both resemble a page of another. Their
    /// paths are then those of two pages on other servers, too, which may have only one of them.
    fn form_family(&mut self) {
        let mut candidates = take(&mut self.candidates);
        let Some(&(_, FamilyLink { leader, .. })) = candidates.first() else {
            return;
        };
        // Stable, so that ties stay in the order of units.
        candidates.sort_by(|(_, x), (_, y)| y.rank().partial_cmp(&x.rank()).expect("no NaN"));
        let servers = |set| self.places.of(set).iter().map(|place| place.server);
        // The member by which the family is known on each server.
        let mut known: HashMap<u32, u32> = servers(leader).map(|server| (server, leader)).collect();
        let mut refused_paths: HashSet<u64> = HashSet::new();
        candidates.retain(|&(set, _)| {
            let mut members = servers(set).filter_map(|server| known.get(&server));
            let is_refused = members.any(|&member| self.places.share_a_server(member, set));
            match is_refused {
                true => refused_paths.extend(self.places.ends(set)),
                false => servers(set).for_each(|server| {
                    known.entry(server).or_insert(set);
                }),
            }
            !is_refused
        });
        for (set, link) in candidates {
            let mut paths = self.places.ends(set).iter();
            if link.ends_alike || !paths.any(|path| refused_paths.contains(path)) {
                self.links[set as usize] = Some(link);
            }
        }
    }

    /// Returns the set that represents each set, which may be itself.
    pub(crate) fn leaders(mut self) -> TableColumn<u32> {
        self.form_family();
        let sets = self.links.iter().zip(0..);
        sets.map(|(link, set)| link.map_or(set, |link| link.leader))
            .collect()
    }
}

impl FamilyLink {
    /// Tells whether this link is better. Ties keep the old link.
    fn is_better(&self, old: &Self) -> bool {
        self.rank() > old.rank()
    }

    /// Returns what links are compared by: paths that end alike count first, then the resemblance.
    fn rank(&self) -> (bool, f32) {
        (self.ends_alike, self.resemblance)
    }
}

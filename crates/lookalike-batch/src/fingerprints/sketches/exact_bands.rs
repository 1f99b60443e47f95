//! Finds exactly all pairs of sketches with at least k of n places equal.
//!
//! By the pigeonhole principle, two sketches that differ in at most n - k places agree completely in at least one of n - k + 1 bands of places. The
//! bands are as even as possible. Comparing all sketches that share a band therefore misses no pair. If many sketches share a band, as pages of one
//! template do, they are divided again by the remaining places, of which k minus the length of the band must be equal; n - k of these may still
//! differ. In the end nearly everything that is compared is a pair. Places in which all sketches agree divide nothing and are set aside first. If
//! dividing would leave more than half of the comparisons, all are made at once. The work is thus never more than a few times that of comparing all
//! pairs.
//!
//! Each pair is reported once: in the first band of each level in which it agrees.

use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike_hamming::threads::map_parallel;

use super::bands::bands;
use super::distinct_sketches::DistinctSketches;
use crate::fingerprints::join::FingerprintShard;
use crate::parallel::column;
use crate::parallel_sort::{KeyedNumber, sort_unequal_by};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::trim_periodically;

/// Number of sketches up to which all pairs are compared without further division.
const PAIRWISE_MAX: usize = 32;

/// A join of distinct sketches with themselves.
pub(crate) struct NearSketches<'a> {
    pub(crate) sketches: &'a DistinctSketches,
    /// Minimum number of equal places, from 1 to all.
    pub(crate) least: usize,
    /// The part of the pairs to find.
    pub(crate) shard: FingerprintShard,
    pub(crate) threads: usize,
    /// Function that tells whether a pair of positions is of interest.
    pub(crate) wanted: &'a (dyn Fn(u32, u32) -> bool + Sync),
    /// Function that tells whether the join should stop.
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// State of one thread's walk through the bands.
struct BandWalk<'w, S> {
    near: &'w NearSketches<'w>,
    /// Bands in which all members agree, and earlier bands, in which a pair must not agree.
    shared: Vec<&'w [u16]>,
    earlier: Vec<&'w [u16]>,
    sink: S,
}

fn cut(places: &[u16], count: usize) -> Vec<&[u16]> {
    let ranges = bands(places.len(), count);
    ranges.map(|band| &places[band]).collect()
}

impl NearSketches<'_> {
    /// Returns the number of places in which a pair may differ.
    fn max_differing(&self) -> usize {
        self.sketches.shape.places - self.least
    }

    /// Returns a hash of a sketch's places in a band. Collisions are rare and cost one comparison.
    fn key(&self, at: u32, band: &[u16]) -> u64 {
        let (shape, sketch) = (self.sketches.shape, self.sketches.sketch(at));
        band.iter().fold(0, |key: u64, &place| {
            let mixed =
                (key ^ shape.place(sketch, place.into())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 29
        })
    }

    /// Visits groups of two or more members that agree in a band, until `visit` returns false. Returns false in that case.
    fn for_each_group(
        &self,
        members: &[u32],
        band: &[u16],
        visit: &mut dyn FnMut(&[u32]) -> bool,
    ) -> bool {
        let keyed = members.iter();
        let keyed = keyed.map(|&at| KeyedNumber::new(self.key(at, band), at));
        let mut keyed: TableColumn<KeyedNumber> = keyed.collect();
        keyed.sort_unstable_by(by_key);
        let mut groups = keyed.chunk_by(|a, b| a.key() == b.key());
        groups.all(|group| group.len() < 2 || visit(&numbers(group)))
    }

    /// Tells whether all members agree in a band.
    fn agree_all(&self, members: &[u32], band: &[u16]) -> bool {
        let mut pairs = members.windows(2);
        pairs.all(|pair| self.agree([pair[0], pair[1]], band))
    }

    fn agree(&self, pair: [u32; 2], band: &[u16]) -> bool {
        let shape = self.sketches.shape;
        let [a, b] = pair.map(|at| self.sketches.sketch(at));
        let mut places = band.iter().map(|&place| usize::from(place));
        places.all(|place| shape.place(a, place) == shape.place(b, place))
    }

    /// Tells whether all members agree in one of some bands, so that none of their pairs is reported here.
    fn all_agree_in_any(&self, members: &[u32], bands: &[&[u16]]) -> bool {
        // For a few members pairs are checked one by one, after the count that excludes most.
        members.len() > PAIRWISE_MAX && bands.iter().any(|band| self.agree_all(members, band))
    }

    /// Reports every pair once: both positions, the smaller first, and the number of places that differ. Each thread has its own sink.
    ///
    /// Time O(bands n log n) plus comparisons of what shares a band, where the number of bands is one more than the places that may differ. Tables
    /// take 12 bytes for each sketch, twice that with several threads, and 8 for each group.
    pub(crate) fn for_each<S: FnMut(u32, u32, u32)>(&self, sink: impl Fn() -> S + Sync) {
        for number in 0..self.bands() {
            if (self.is_cancelled)() {
                return;
            }
            self.for_each_pair_of_band(number, &sink);
        }
    }

    /// Returns the number of bands.
    pub(crate) fn bands(&self) -> usize {
        self.max_differing() + 1
    }

    /// Reports the pairs whose first common band has this number.
    pub(crate) fn for_each_pair_of_band<S: FnMut(u32, u32, u32)>(
        &self,
        number: usize,
        sink: &(impl Fn() -> S + Sync),
    ) {
        let places: Vec<u16> = (0..self.sketches.shape.places as u16).collect();
        let bands = cut(&places, self.bands());
        let band = bands[number];
        let mut keyed = column(self.sketches.len(), self.threads, |at| {
            KeyedNumber::new(self.key(at as u32, band), at as u32)
        });
        sort_unequal_by(&mut keyed, self.threads, by_key);
        let (mut groups, mut end) = (TableColumn::<[u32; 2]>::new(), 0);
        for group in keyed.chunk_by(|a, b| a.key() == b.key()) {
            let start = end;
            end += group.len() as u32;
            // A pair is reported in one band only, so shards own groups instead of sketches, and no two runs report the same pair.
            if group.len() > 1 && self.shard.has(group[0].key() ^ number as u64) {
                groups.push([start, end]);
            }
        }
        let rest = without(&places, band);
        // Groups differ much in size, so threads take one after another.
        let next = AtomicUsize::new(0);
        let work = || {
            let mut walk = BandWalk {
                near: self,
                shared: vec![band],
                earlier: bands[..number].to_vec(),
                sink: sink(),
            };
            while let Some(&[start, end]) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                if (self.is_cancelled)() {
                    return;
                }
                let members = numbers(&keyed[start as usize..end as usize]);
                trim_periodically();
                if self.all_agree_in_any(&members, &bands[..number]) {
                    continue;
                }
                // Members agree in the band, except for collisions of keys, which `check` detects. So many fewer of the remaining places must be
                // equal.
                walk.compare(&members, &rest, self.least.saturating_sub(band.len()));
            }
        };
        map_parallel(0..self.threads.min(groups.len()), |_| work());
    }
}

fn by_key(a: &KeyedNumber, b: &KeyedNumber) -> std::cmp::Ordering {
    (a.key(), a.number).cmp(&(b.key(), b.number))
}

fn numbers(keyed: &[KeyedNumber]) -> TableColumn<u32> {
    keyed.iter().map(|keyed| keyed.number).collect()
}

fn without(places: &[u16], band: &[u16]) -> Vec<u16> {
    places
        .iter()
        .copied()
        .filter(|place| !band.contains(place))
        .collect()
}

impl<S: FnMut(u32, u32, u32)> BandWalk<'_, S> {
    /// Finds the pairs among members that share bands. Of the remaining places `needed` must be equal.
    fn compare(&mut self, members: &[u32], rest: &[u16], needed: usize) {
        if members.len() <= PAIRWISE_MAX || needed == 0 {
            return self.compare_all(members);
        }
        // Places in which all members agree would be used again and again, in every order, without separating any.
        let (same, rest): (Vec<u16>, Vec<u16>) = rest
            .iter()
            .partition(|&&place| self.near.agree_all(members, &[place]));
        // Every pair of these members has those places in common already.
        let needed = needed.saturating_sub(same.len());
        // Members agree in every place set aside so far, so as many of the rest may differ as of all places.
        let count = self.near.max_differing() + 1;
        // Every band sorts all members, so weigh n² / 2 comparisons against the bands' n log n.
        let is_cheap = members.len() <= 2 * count * members.len().ilog2() as usize;
        if needed == 0 || is_cheap {
            return self.compare_all(members);
        }
        // No band is empty: `needed` is above 0, so `rest` has more than `apart` places.
        let bands = cut(&rest, count);
        if !self.is_split_worthwhile(members, &bands) {
            return self.compare_all(members);
        }
        for (number, &band) in bands.iter().enumerate() {
            if (self.near.is_cancelled)() {
                return;
            }
            let further = without(&rest, band);
            self.near.for_each_group(members, band, &mut |group| {
                let mut walk = BandWalk {
                    near: self.near,
                    shared: [self.shared.as_slice(), &[band]].concat(),
                    earlier: [self.earlier.as_slice(), &bands[..number]].concat(),
                    // A dynamic sink: with a generic one, every level of the recursion would be a type of its own, without end.
                    sink: &mut self.sink as &mut dyn FnMut(u32, u32, u32),
                };
                if !self.near.all_agree_in_any(group, &walk.earlier) {
                    walk.compare(group, &further, needed.saturating_sub(band.len()));
                }
                !(self.near.is_cancelled)()
            });
        }
    }

    fn compare_all(&mut self, members: &[u32]) {
        // A large group takes long; small ones are checked between them.
        let is_large = members.len() > PAIRWISE_MAX;
        for (number, &a) in members.iter().enumerate() {
            if is_large && (self.near.is_cancelled)() {
                return;
            }
            members[number + 1..]
                .iter()
                .for_each(|&b| self.check([a, b]));
        }
    }

    /// Tells whether the groups of all bands together have at most half of the pairs. Every level then halves the work; otherwise groups that hardly
    /// differ from their parent would multiply it.
    fn is_split_worthwhile(&self, members: &[u32], bands: &[&[u16]]) -> bool {
        // A group of n has about n² / 2 pairs; the halves cancel, so the squares of all groups must stay within half of the members' square.
        let square = |count: usize| (count as u64).saturating_pow(2);
        let mut left = square(members.len()) / 2;
        let mut earlier = self.earlier.clone();
        for &band in bands {
            if (self.near.is_cancelled)() {
                return false;
            }
            let is_left = self.near.for_each_group(members, band, &mut |group| {
                if self.near.all_agree_in_any(group, &earlier) {
                    return true;
                }
                let checked = left.checked_sub(square(group.len()));
                left = checked.unwrap_or(0);
                checked.is_some()
            });
            if !is_left {
                return false;
            }
            earlier.push(band);
        }
        true
    }

    /// Reports a pair if enough places are equal and this is the band in which it belongs.
    fn check(&mut self, pair: [u32; 2]) {
        let near = self.near;
        let [a, b] = pair;
        if !(near.wanted)(a, b) {
            return;
        }
        trim_periodically();
        let shape = near.sketches.shape;
        let equal = shape.equal_places(near.sketches.sketch(a), near.sketches.sketch(b));
        // Check the count first: it excludes most, and only real pairs are checked against the bands.
        if equal >= near.least
            && self.shared.iter().all(|band| near.agree(pair, band))
            && !self.earlier.iter().any(|band| near.agree(pair, band))
        {
            (self.sink)(a.min(b), a.max(b), (shape.places - equal) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::super::distinct_sketches::GroupedSketches;
    use super::*;
    use crate::fingerprints::files::{PlaceKind, SketchShape};

    /// Generates sketches many of which share places, more than are compared without division.
    fn sketches() -> impl Strategy<Value = DistinctSketches> {
        let kinds = prop::sample::select(vec![PlaceKind::SuperShingles, PlaceKind::Minima]);
        (kinds, 1..8_usize, 1..5_u64).prop_flat_map(|(kind, places, values)| {
            let shape = SketchShape { kind, places };
            let words = shape.words();
            let word = match kind {
                PlaceKind::SuperShingles => (0..values).boxed(),
                PlaceKind::Minima => (0..values, 0..values)
                    .prop_map(|(a, b)| a | b << 32)
                    .boxed(),
            };
            let odd = kind == PlaceKind::Minima && places % 2 == 1;
            prop::collection::vec(prop::collection::vec(word, words), 0..160).prop_map(
                move |rows| {
                    let row = |mut row: Vec<u64>| {
                        // The unused half is zero.
                        if odd && let Some(last) = row.last_mut() {
                            *last &= 0xffff_ffff;
                        }
                        row
                    };
                    let all = rows.into_iter().flat_map(row);
                    GroupedSketches::new(shape, all.collect(), 1, |a, b| a.cmp(&b)).distinct
                },
            )
        })
    }

    /// Makes sketches of 128 places.
    fn minima(rows: impl Iterator<Item = Vec<u32>>) -> DistinctSketches {
        let shape = SketchShape {
            kind: PlaceKind::Minima,
            places: 128,
        };
        let words = rows.flat_map(|row| {
            let pairs = row.chunks(2);
            let pairs = pairs.map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
            pairs.collect::<Vec<u64>>()
        });
        GroupedSketches::new(shape, words.collect(), 1, |a, b| a.cmp(&b)).distinct
    }

    fn found_by(sketches: &DistinctSketches, least: usize) -> Vec<(u32, u32)> {
        let found = Mutex::new(Vec::new());
        let near = NearSketches {
            sketches,
            least,
            shard: "1/1".parse().unwrap(),
            threads: 1,
            wanted: &|_, _| true,
            is_cancelled: &|| false,
        };
        near.for_each(|| |a, b, _| found.lock().unwrap().push((a, b)));
        let mut found = found.into_inner().unwrap();
        found.sort_unstable();
        found
    }

    #[test]
    fn pages_of_one_template_were_cut_again_in_every_order_of_its_bands() {
        // Each page agrees with all others in 50 places, with its neighbour in 14 more, which makes 64, and with the next but one in no further
        // place.
        let page = |at: u32| {
            let place = |place: u32| match place {
                0..50 => 7,
                50..64 => 1000 + at / 2,
                _ => 1_000_000 + 128 * at + place,
            };
            (0..128).map(place).collect()
        };
        let sketches = minima((0..2000).map(page));
        let found = found_by(&sketches, 64);
        assert_eq!(found.len(), 1000);
        assert!(found.iter().all(|&(a, b)| (0..50).all(|place| {
            let shape = sketches.shape;
            [a, b].map(|at| shape.place(sketches.sketch(at), place)) == [7, 7]
        })));
    }

    #[test]
    fn pages_of_two_templates_with_a_common_part_were_cut_in_every_order() {
        // Two halves of 30 places, of which every page has one or both, and 20 common places: groups that hardly shrink.
        let page = |at: u32| {
            let place = |place: u32| match place {
                0..20 => 7,
                20..50 if !at.is_multiple_of(3) => 8,
                50..80 if at % 3 != 1 => 9,
                _ => 1_000_000 + 128 * at + place,
            };
            (0..128).map(place).collect()
        };
        let sketches = minima((0..1500).map(page));
        let both = 1500 / 3;
        // Only pages with both halves have 80 places in common.
        assert_eq!(found_by(&sketches, 64).len(), both * (both - 1) / 2);
    }

    #[test]
    fn a_cancelled_join_went_on_to_the_end_of_a_group() {
        // All sketches agree in their first place, which is the first band, and in no other place.
        let count = 2000_u32;
        let sketches = minima((0..count).map(|at| {
            let place = |place: u32| if place == 0 { 7 } else { 128 * at + place };
            (0..128).map(place).collect()
        }));
        let (asked, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let near = NearSketches {
            sketches: &sketches,
            least: 1,
            shard: "1/1".parse().unwrap(),
            threads: 1,
            wanted: &|_, _| true,
            is_cancelled: &|| asked.fetch_add(1, Ordering::Relaxed) >= 10,
        };
        near.for_each(|| {
            |_, _, _| {
                found.fetch_add(1, Ordering::Relaxed);
            }
        });
        let found = found.into_inner();
        // Each question comes after at most one sketch has been compared with all others.
        assert!(found > 0 && found <= 10 * count as usize, "{found}");
    }

    proptest! {
        #[test]
        fn every_pair_with_enough_equal_places_comes_once(
            sketches in sketches(), least in 1..8_usize, threads in 1..4_usize, shards in 1..4_u32,
        ) {
            let places = sketches.shape.places;
            let least = least.min(places);
            let found = Mutex::new(Vec::new());
            for shard in 1..=shards {
                let near = NearSketches {
                    sketches: &sketches,
                    least,
                    shard: format!("{shard}/{shards}").parse().unwrap(),
                    threads,
                    wanted: &|a, b| (a + b) % 5 != 0,
                    is_cancelled: &|| false,
                };
                near.for_each(|| |a, b, apart| found.lock().unwrap().push((a, b, apart)));
            }
            let mut found = found.into_inner().unwrap();
            found.sort_unstable();
            let mut expected = Vec::new();
            for a in 0..sketches.len() as u32 {
                for b in a + 1..sketches.len() as u32 {
                    let place = |at, place| sketches.shape.place(sketches.sketch(at), place);
                    let equal = (0..places).filter(|&at| place(a, at) == place(b, at)).count();
                    if equal >= least && (a + b) % 5 != 0 {
                        expected.push((a, b, (places - equal) as u32));
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}

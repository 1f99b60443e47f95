//! Exact search over a growing set of sketches of several places, or of fingerprints of 32 and 128 bits: finds all that differ in few
//! places or bits.
//!
//! Sketches are cut into bands of whole places, or of whole bytes for fingerprints: one band more than the number of places or bits that
//! may differ. Two sketches within the radius then agree entirely in some band (the pigeonhole principle), so only sketches that share a
//! band with a query are compared with it. The sketches with the same value of a band form a chain, the newest first.
//!
//! Pages of one template share a band by the thousand. Such a chain is divided: its sketches get tables of their own, for bands of the
//! remaining places, in which as many may differ as in all. Places are dealt out to these bands so that the sketches of the chain vary in
//! each. A chain of which too few places remain for that stays as it is; its sketches are within the radius of each other.

use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::document_sketch::SketchForm;

/// Marks the end of a chain.
const END: u32 = u32::MAX;
/// Number of older sketches in a chain from which it is divided.
// Tests have few sketches, and compare all searches with a linear scan.
const DIVIDED_MIN: u8 = if cfg!(test) { 3 } else { u8::MAX };
/// Maximum number of divided chains for each sketch, on average.
const DIVIDED_MAX: usize = 4;
/// Number of sketches of a chain in which places are tried for the bands of its tables.
const SAMPLED: usize = 256;

/// Byte ranges of a band in a sketch.
type Band = Vec<Range<usize>>;

/// Chains of sketches by bands.
#[derive(Debug)]
struct BandChains {
    bands: Vec<Band>,
    /// The newest sketch with each value of a band, by band.
    newest: Vec<HashTable<u32>>,
    /// The next older sketch with the same value, by sketch and then band.
    older: Vec<u32>,
    /// Number of older sketches with the same value, at most [`DIVIDED_MIN`], by sketch and then band.
    ranks: Vec<u8>,
}

/// The sketches of a long chain, in chains of their own.
#[derive(Debug)]
struct DividedChain {
    band: usize,
    /// Numbers of the sketches. `chains` numbers them by their positions here.
    members: Vec<u32>,
    chains: BandChains,
}

/// A set of distinct sketches of one form, as bytes, numbered in order of insertion.
#[derive(Debug)]
pub(crate) struct PlaceIndex {
    form: SketchForm,
    sketches: Vec<u8>,
    /// Its seed is secret to the process, so clients cannot choose sketches that collide.
    hasher: DefaultHashBuilder,
    // Tables have only numbers, and compare and hash the sketches behind them, so each sketch is in memory once.
    numbers: HashTable<u32>,
    chains: BandChains,
    divided: HashTable<DividedChain>,
    /// Number of sketches in all divided chains.
    divided_sketches: usize,
}

/// Cuts a sketch into bands of about equal length, such that two sketches within the radius agree in at least one.
fn bands(form: SketchForm, radius: u32) -> Vec<Range<usize>> {
    let parts = form.parts();
    // `largest_radius` keeps the radius below the number of parts: with fewer than `radius + 1` bands, matches would be missed.
    let bands = (radius as usize + 1).min(parts);
    let start = |band: usize| band * parts / bands * form.part_bytes();
    (0..bands)
        .map(|band| start(band)..start(band + 1))
        .collect()
}

fn differing<const BYTES: usize>(a: &[u8], b: &[u8]) -> u32 {
    let [(a, _), (b, _)] = [a, b].map(<[u8]>::as_chunks::<BYTES>);
    a.iter().zip(b).map(|(a, b)| u32::from(a != b)).sum()
}

fn differing_bits(a: &[u8], b: &[u8]) -> u32 {
    // Fingerprints of 32, 64 and 128 bits are whole words of four bytes.
    let [(a, _), (b, _)] = [a, b].map(<[u8]>::as_chunks::<4>);
    let words = a.iter().zip(b);
    let apart = words.map(|(a, b)| u32::from_le_bytes(*a) ^ u32::from_le_bytes(*b));
    apart.map(u32::count_ones).sum()
}

/// Tells whether two sketches agree in a band.
fn agree(band: &Band, a: &[u8], b: &[u8]) -> bool {
    band.iter().all(|part| a[part.clone()] == b[part.clone()])
}

fn hash(hasher: &DefaultHashBuilder, band: &Band, sketch: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    band.iter()
        .for_each(|part| state.write(&sketch[part.clone()]));
    state.finish()
}

impl BandChains {
    fn new(bands: Vec<Band>) -> Self {
        Self {
            newest: bands.iter().map(|_| HashTable::new()).collect(),
            bands,
            older: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// Adds the next sketch. `at` returns the bytes of a sketch.
    fn push<'a>(&mut self, hasher: &DefaultHashBuilder, at: impl Fn(u32) -> &'a [u8]) {
        let count = self.bands.len();
        let number = (self.older.len() / count) as u32;
        let sketch = at(number);
        for (place, (band, newest)) in self.bands.iter().zip(&mut self.newest).enumerate() {
            let own = hash(hasher, band, sketch);
            let (older, rank) = match newest.find_mut(own, |&other| agree(band, at(other), sketch))
            {
                Some(entry) => {
                    let older = std::mem::replace(entry, number);
                    let rank = self.ranks[older as usize * count + place];
                    (older, rank + u8::from(rank < DIVIDED_MIN))
                }
                None => {
                    newest.insert_unique(own, number, |&other| hash(hasher, band, at(other)));
                    (END, 0)
                }
            };
            self.older.push(older);
            self.ranks.push(rank);
        }
    }

    /// Returns the newest sketch that agrees with a query in a band, or `END`.
    fn newest<'a>(
        &self,
        band: usize,
        query: &[u8],
        hasher: &DefaultHashBuilder,
        at: impl Fn(u32) -> &'a [u8],
    ) -> u32 {
        let of = &self.bands[band];
        let newest = self.newest[band].find(hash(hasher, of, query), |&other| {
            agree(of, at(other), query)
        });
        newest.copied().unwrap_or(END)
    }

    /// Returns a chain from a sketch on, the newest first.
    fn chain(&self, band: usize, newest: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |number: u32| (number != END).then_some(number);
        let older =
            move |&number: &u32| some(self.older[number as usize * self.bands.len() + band]);
        std::iter::successors(some(newest), older)
    }

    /// Tells whether the chain of a sketch has enough older ones to be divided.
    fn is_long(&self, band: usize, newest: u32) -> bool {
        self.ranks[newest as usize * self.bands.len() + band] == DIVIDED_MIN
    }

    /// Returns the approximate memory in bytes.
    fn bytes(&self) -> usize {
        // Four bytes for each entry, and a control byte.
        let entries: usize = self.newest.iter().map(HashTable::capacity).sum();
        self.older.capacity() * 4 + self.ranks.capacity() + entries * 5
    }
}

impl PlaceIndex {
    pub(crate) fn new(form: SketchForm, radius: u32) -> Self {
        let bands = bands(form, radius).into_iter().map(|band| vec![band]);
        Self {
            form,
            sketches: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            numbers: HashTable::new(),
            chains: BandChains::new(bands.collect()),
            divided: HashTable::new(),
            divided_sketches: 0,
        }
    }

    /// Returns the number of sketches.
    pub(crate) fn len(&self) -> usize {
        self.sketches.len() / self.form.bytes()
    }

    /// Frees spare capacity, once no more sketches will be added.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.sketches.shrink_to_fit();
        self.chains.older.shrink_to_fit();
        self.chains.ranks.shrink_to_fit();
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let sketches = self.sketches.capacity() + self.numbers.capacity() * 5;
        sketches + self.chains.bytes() + self.divided_bytes()
    }

    /// Returns the approximate memory in bytes of divided chains.
    pub(crate) fn divided_bytes(&self) -> usize {
        // A number for each sketch, and for each band an older one, a rank, and half a table's entry or a whole one.
        self.divided_sketches * (4 + 12 * self.chains.bands.len())
    }

    /// Returns the bytes of the sketch with a number.
    pub(crate) fn sketch(&self, number: u32) -> &[u8] {
        let bytes = self.form.bytes();
        &self.sketches[number as usize * bytes..][..bytes]
    }

    /// Returns the number of a sketch, or `None`.
    pub(crate) fn find(&self, sketch: &[u8]) -> Option<u32> {
        let same = |&number: &u32| self.sketch(number) == sketch;
        let hash = self.hasher.hash_one(sketch);
        self.numbers.find(hash, same).copied()
    }

    /// Adds a sketch of the form. Returns its number, and whether it is new.
    pub(crate) fn insert(&mut self, sketch: &[u8]) -> (u32, bool) {
        if let Some(number) = self.find(sketch) {
            return (number, false);
        }
        // Below `END`, because a run has fewer documents than that (`engine/install`).
        let number = self.len() as u32;
        self.sketches.extend_from_slice(sketch);
        let (sketches, bytes, hasher) = (&self.sketches, self.form.bytes(), &self.hasher);
        let at = |number: u32| &sketches[number as usize * bytes..][..bytes];
        let hash = |&number: &u32| hasher.hash_one(at(number));
        self.numbers
            .insert_unique(hasher.hash_one(sketch), number, hash);
        self.chains.push(hasher, at);
        for band in 0..self.chains.bands.len() {
            if self.chains.is_long(band, number) {
                self.divide(band, number);
            }
        }
        (number, true)
    }

    /// Adds the newest sketch of a long chain to the tables of the chain, or divides the chain if there is memory for it.
    fn divide(&mut self, band: usize, number: u32) {
        let count = self.len();
        let (sketches, bytes, hasher) = (&self.sketches, self.form.bytes(), &self.hasher);
        let at = |number: u32| &sketches[number as usize * bytes..][..bytes];
        let of = &self.chains.bands[band];
        let is_same = |divided: &DividedChain| {
            divided.band == band && agree(of, at(divided.members[0]), at(number))
        };
        let own = hash(hasher, of, at(number));
        if let Ok(mut entry) = self.divided.find_entry(own, is_same) {
            if self.divided_sketches < DIVIDED_MAX * count {
                entry.get_mut().push(number, hasher, at);
                self.divided_sketches += 1;
            } else {
                let (divided, _) = entry.remove();
                self.divided_sketches -= divided.members.len();
            }
            return;
        }
        // When the chain has just become long, and again from time to time if there was no memory then.
        let older = self.chains.chain(band, number).nth(1);
        let is_new = older.is_some_and(|older| !self.chains.is_long(band, older));
        if !is_new && !count.is_power_of_two() {
            return;
        }
        let mut members: Vec<u32> = self.chains.chain(band, number).collect();
        if self.divided_sketches + members.len() > DIVIDED_MAX * count {
            return;
        }
        members.reverse();
        let sample: Vec<&[u8]> = members
            .iter()
            .take(SAMPLED)
            .map(|&member| at(member))
            .collect();
        let Some(bands) = self.remaining_bands(of, &sample) else {
            return;
        };
        self.divided_sketches += members.len();
        let mut divided = DividedChain {
            band,
            members: Vec::new(),
            chains: BandChains::new(bands),
        };
        members
            .into_iter()
            .for_each(|member| divided.push(member, hasher, at));
        let bands = &self.chains.bands;
        self.divided.insert_unique(own, divided, |other| {
            hash(hasher, &bands[other.band], at(other.members[0]))
        });
    }

    /// Deals the parts outside a band out to as many bands as the index has, starting with those that have most values in a sample. `None` if
    /// there are fewer parts than bands.
    fn remaining_bands(&self, band: &Band, sample: &[&[u8]]) -> Option<Vec<Band>> {
        let width = self.form.part_bytes();
        let parts = (0..self.form.parts()).map(|part| part * width..(part + 1) * width);
        let is_outside = |part: &Range<usize>| !band.iter().any(|own| own.contains(&part.start));
        let mut parts: Vec<Range<usize>> = parts.filter(is_outside).collect();
        parts.sort_by_cached_key(|part| {
            let mut values: Vec<&[u8]> =
                sample.iter().map(|sketch| &sketch[part.clone()]).collect();
            values.sort_unstable();
            values.dedup();
            std::cmp::Reverse(values.len())
        });
        let count = self.chains.bands.len();
        let dealt = |first: usize| parts[first..].iter().step_by(count).cloned().collect();
        (parts.len() >= count).then(|| (0..count).map(dealt).collect())
    }

    /// Counts the places or bits in which two sketches differ.
    fn distance(&self, a: &[u8], b: &[u8]) -> u32 {
        #[cfg(test)]
        tests::COMPARED.set(tests::COMPARED.get() + 1);
        match self.form {
            SketchForm::Fingerprint | SketchForm::Bits(_) => differing_bits(a, b),
            SketchForm::SuperShingles(_) => differing::<8>(a, b),
            SketchForm::Minima(_) => differing::<4>(a, b),
        }
    }

    /// Visits the number of every sketch within `radius`, with its distance. `radius` must not exceed that of the index.
    pub(crate) fn search(&self, query: &[u8], radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        for (at, band) in self.chains.bands.iter().enumerate() {
            let earlier = &self.chains.bands[..at];
            let newest = self
                .chains
                .newest(at, query, &self.hasher, |number| self.sketch(number));
            // Report a sketch that several bands find only for the first of them.
            let mut compare = |number: u32, inner: &[Band]| {
                let sketch = self.sketch(number);
                let distance = self.distance(sketch, query);
                let mut before = earlier.iter().chain(inner);
                if distance <= radius && !before.any(|band| agree(band, sketch, query)) {
                    visit(number, distance);
                }
            };
            let divided = match newest != END && self.chains.is_long(at, newest) {
                true => self
                    .divided
                    .find(hash(&self.hasher, band, query), |divided| {
                        divided.band == at && agree(band, self.sketch(divided.members[0]), query)
                    }),
                false => None,
            };
            let Some(DividedChain {
                members, chains, ..
            }) = divided
            else {
                let chain = self.chains.chain(at, newest);
                chain.for_each(|number| compare(number, &[]));
                continue;
            };
            for inner in 0..chains.bands.len() {
                let sketch = |member: u32| self.sketch(members[member as usize]);
                let newest = chains.newest(inner, query, &self.hasher, sketch);
                for member in chains.chain(inner, newest) {
                    compare(members[member as usize], &chains.bands[..inner]);
                }
            }
        }
    }
}

impl DividedChain {
    /// Adds a sketch. `at` returns the bytes of a sketch.
    fn push<'a>(&mut self, number: u32, hasher: &DefaultHashBuilder, at: impl Fn(u32) -> &'a [u8]) {
        self.members.push(number);
        let members = &self.members;
        self.chains
            .push(hasher, |member| at(members[member as usize]));
    }
}

#[cfg(test)]
mod tests {
    use lookalike::hash::xxh3_64;
    use lookalike::sketch::WideFingerprint;
    use proptest::prelude::*;

    use super::*;
    use crate::document_sketch::DocumentSketch;

    thread_local! {
        /// Number of sketches that searches of this thread compared.
        pub(super) static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Generates sketches of one form, with few distinct values so that many share places.
    fn sketches() -> impl Strategy<Value = Vec<DocumentSketch>> {
        (any::<bool>(), 1..9_usize, 1..4_u32).prop_flat_map(|(is_minima, places, values)| {
            let places = prop::collection::vec(0..values, places);
            let sketch = places.prop_map(move |places| match is_minima {
                true => DocumentSketch::Minima(places),
                false => DocumentSketch::SuperShingles(places.into_iter().map(u64::from).collect()),
            });
            prop::collection::vec(sketch, 1..60)
        })
    }

    /// Returns the places of a sketch, or the bits of a fingerprint.
    fn places(sketch: &DocumentSketch) -> Vec<u64> {
        match sketch {
            DocumentSketch::Fingerprint(_) => Vec::new(),
            DocumentSketch::Bits(code, bits) => {
                (0..*bits).map(|at| (code.0 >> at & 1) as u64).collect()
            }
            DocumentSketch::SuperShingles(values) => values.clone(),
            DocumentSketch::Minima(values) => values.iter().map(|&value| value.into()).collect(),
        }
    }

    /// Generates fingerprints of 32 or 128 bits that differ in a few bits.
    fn fingerprints() -> impl Strategy<Value = Vec<DocumentSketch>> {
        let bits = prop::sample::select(vec![32_u32, 128]);
        bits.prop_flat_map(|bits| {
            let flips = prop::collection::vec(0..bits, 0..9);
            let code = (0..3_u128, flips).prop_map(move |(centre, flips)| {
                let centre = (centre + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let code = flips.iter().fold(centre, |code, flip| code ^ 1 << flip);
                DocumentSketch::Bits(WideFingerprint(code & u128::MAX >> (128 - bits)), bits)
            });
            prop::collection::vec(code, 1..60)
        })
    }

    proptest! {
        #[test]
        fn equals_a_linear_scan_at_every_radius(sketches in prop_oneof![sketches(), fingerprints()], most in 0..9_u32) {
            let form = sketches[0].form();
            let most = most.min(form.largest_radius());
            let mut index = PlaceIndex::new(form, most);
            let mut distinct: Vec<&DocumentSketch> = Vec::new();
            for sketch in &sketches {
                let known = distinct.iter().position(|other| *other == sketch);
                let number = known.unwrap_or(distinct.len());
                prop_assert_eq!(index.insert(&sketch.to_bytes()), (number as u32, known.is_none()));
                if known.is_none() {
                    distinct.push(sketch);
                }
                prop_assert_eq!(index.find(&sketch.to_bytes()), Some(number as u32));
                prop_assert_eq!(index.sketch(number as u32), &sketch.to_bytes()[..]);
            }
            prop_assert_eq!(index.len(), distinct.len());
            for (query, radius) in sketches.iter().flat_map(|query| (0..=most).map(move |radius| (query, radius))) {
                let mut found = Vec::new();
                index.search(&query.to_bytes(), radius, &mut |number, distance| found.push((number, distance)));
                found.sort_unstable();
                let distance = |other: &&DocumentSketch| {
                    let (ours, theirs) = (places(query), places(other));
                    (0..ours.len()).filter(|&at| ours[at] != theirs[at]).count() as u32
                };
                let all = (0..).zip(distinct.iter().map(distance));
                let expected: Vec<(u32, u32)> = all.filter(|&(_, distance)| distance <= radius).collect();
                prop_assert_eq!(found, expected, "radius {} of {}", radius, most);
            }
        }
    }

    /// Each search compared all sketches that share a place, so that a load of pages of one template took quadratic time.
    #[test]
    fn a_search_compared_all_pages_of_a_template() {
        let mixed = |number: u64| xxh3_64(&number.to_le_bytes(), 0);
        // Super-shingles of which one is the template's; minima of which about 77 are; and bits of which 32 vary.
        let shingles = |number: u64| {
            let place = |place: u64| {
                if place == 2 {
                    7
                } else {
                    mixed(number * 6 + place)
                }
            };
            DocumentSketch::SuperShingles((0..6).map(place).collect())
        };
        let minima = |number: u64| {
            let own = |place: u64| mixed(number * 128 + place) as u32;
            let place = |place: u64| if mixed(place) % 10 < 6 { 7 } else { own(place) };
            DocumentSketch::Minima((0..128).map(place).collect())
        };
        let bits =
            |number: u64| DocumentSketch::Bits(WideFingerprint((mixed(number) as u32).into()), 128);
        let kinds: [(&dyn Fn(u64) -> DocumentSketch, u32); 3] =
            [(&shingles, 4), (&minima, 25), (&bits, 3)];
        for (page, radius) in kinds {
            let mut index = PlaceIndex::new(page(0).form(), radius);
            for number in 0..4000 {
                index.insert(&page(number).to_bytes());
            }
            assert!(index.divided_sketches <= DIVIDED_MAX * index.len());
            let before = COMPARED.get();
            for number in 4000..4100 {
                index.search(&page(number).to_bytes(), radius, &mut |_, _| ());
            }
            let compared = (COMPARED.get() - before) / 100;
            assert!(compared < 400, "{:?}: {compared} of 4000", page(0).form());
        }
    }

    #[test]
    fn bands_are_one_more_than_places_may_differ_and_cover_all() {
        for (places, radius) in [(6, 4), (6, 0), (1, 0), (128, 25), (7, 6)] {
            let form = SketchForm::Minima(places);
            let bands = bands(form, radius);
            assert_eq!(bands.len(), radius as usize + 1);
            let mut end = 0;
            for band in bands {
                assert!(band.start == end && band.end >= end + 4);
                end = band.end;
            }
            assert_eq!(end, form.bytes());
        }
    }
}

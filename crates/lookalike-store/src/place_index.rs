//! Exact search over a growing set of sketches of several places, or of fingerprints of 32 and 128 bits: finds all that differ in few
//! places or bits.
//!
//! Sketches are cut into bands of whole places, or of whole bytes for fingerprints: one band more than the number of places or bits that
//! may differ. Two sketches within the radius then agree entirely in some band (the pigeonhole principle), so only sketches that share a
//! band with a query are compared with it. The sketches with the same value of a band form a chain, the newest first.

use std::hash::BuildHasher as _;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::document_sketch::SketchForm;

/// Marks the end of a chain.
const END: u32 = u32::MAX;

/// A set of distinct sketches of one form, as bytes, numbered in order of insertion.
#[derive(Debug)]
pub(crate) struct PlaceIndex {
    form: SketchForm,
    /// Byte range of each band.
    bands: Vec<Range<usize>>,
    sketches: Vec<u8>,
    /// Its seed is secret to the process, so clients cannot choose sketches that collide.
    hasher: DefaultHashBuilder,
    // Tables have only numbers, and compare and hash the sketches behind them, so each sketch is in memory once.
    numbers: HashTable<u32>,
    /// The newest sketch with each value of a band, by band.
    newest: Vec<HashTable<u32>>,
    /// The next older sketch with the same value, by sketch and then band.
    older: Vec<u32>,
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

impl PlaceIndex {
    pub(crate) fn new(form: SketchForm, radius: u32) -> Self {
        let bands = bands(form, radius);
        Self {
            form,
            newest: bands.iter().map(|_| HashTable::new()).collect(),
            bands,
            sketches: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            numbers: HashTable::new(),
            older: Vec::new(),
        }
    }

    /// Returns the number of sketches.
    pub(crate) fn len(&self) -> usize {
        self.sketches.len() / self.form.bytes()
    }

    /// Frees spare capacity, once no more sketches will be added.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.sketches.shrink_to_fit();
        self.older.shrink_to_fit();
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.newest.iter().chain([&self.numbers]);
        // Four bytes for each entry, and a control byte.
        let entries: usize = tables.map(HashTable::capacity).sum();
        self.sketches.capacity() + self.older.capacity() * 4 + entries * 5
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
        for (band, newest) in self.bands.iter().zip(&mut self.newest) {
            let value = &sketch[band.clone()];
            let same = |&other: &u32| at(other)[band.clone()] == *value;
            let older = match newest.find_mut(hasher.hash_one(value), same) {
                Some(entry) => std::mem::replace(entry, number),
                None => {
                    let hash = |&other: &u32| hasher.hash_one(&at(other)[band.clone()]);
                    newest.insert_unique(hasher.hash_one(value), number, hash);
                    END
                }
            };
            self.older.push(older);
        }
        (number, true)
    }

    /// Counts the places or bits in which two sketches differ.
    fn distance(&self, a: &[u8], b: &[u8]) -> u32 {
        match self.form {
            SketchForm::Fingerprint | SketchForm::Bits(_) => differing_bits(a, b),
            SketchForm::SuperShingles(_) => differing::<8>(a, b),
            SketchForm::Minima(_) => differing::<4>(a, b),
        }
    }

    /// Visits the number of every sketch within `radius`, with its distance. `radius` must not exceed that of the index.
    pub(crate) fn search(&self, query: &[u8], radius: u32, visit: &mut dyn FnMut(u32, u32)) {
        for (at, band) in self.bands.iter().enumerate() {
            let (earlier, value) = (&self.bands[..at], &query[band.clone()]);
            let same = |&number: &u32| self.sketch(number)[band.clone()] == *value;
            let newest = self.newest[at].find(self.hasher.hash_one(value), same);
            let mut next = newest.copied().unwrap_or(END);
            while next != END {
                let sketch = self.sketch(next);
                let distance = self.distance(sketch, query);
                // Report a sketch that several bands find only for the first of them.
                let was_met = || {
                    let mut earlier = earlier.iter().cloned();
                    earlier.any(|band| sketch[band.clone()] == query[band])
                };
                if distance <= radius && !was_met() {
                    visit(next, distance);
                }
                next = self.older[next as usize * self.bands.len() + at];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lookalike::sketch::WideFingerprint;
    use proptest::prelude::*;

    use super::*;
    use crate::document_sketch::DocumentSketch;

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

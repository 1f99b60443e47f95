//! Joins of sketches: of fingerprints by the engine of `lookalike-hamming`, of others by what they share.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use lookalike::resemblance::{intersection_size, prefix_len, resemblance_of};
use lookalike::sketch::SketchValue;
use lookalike_hamming::{Code, SelfJoinLimits, self_join};

use super::scored_pair::ScoredPair;

/// Counts of the documents that share something with the one at hand.
struct SharedCounts {
    counts: Vec<u32>,
    touched: Vec<u32>,
}

impl SharedCounts {
    fn new(documents: usize) -> Self {
        Self {
            counts: vec![0; documents],
            touched: Vec::new(),
        }
    }

    fn add(&mut self, document: u32) {
        let count = &mut self.counts[document as usize];
        if *count == 0 {
            self.touched.push(document);
        }
        *count += 1;
    }

    /// The counted documents, ascending, with their counts; forgets them.
    fn drain(&mut self) -> Vec<(u32, u32)> {
        self.touched.sort_unstable();
        let counts = &mut self.counts;
        let take = |document: u32| (document, std::mem::take(&mut counts[document as usize]));
        self.touched.drain(..).map(take).collect()
    }
}

/// Pairs of fingerprints that agree in at least `least` bits. Equal ones are one code of the join.
pub(super) fn fingerprints<C: Code + Ord + Sync>(
    sketches: &[Option<SketchValue>],
    least: f64,
    limits: SelfJoinLimits,
    narrow: impl Fn(u128) -> C,
    visit: impl FnMut(ScoredPair) + Send,
) {
    let mut bits = 0;
    let mut places: Vec<(C, u32)> = Vec::new();
    for (at, sketch) in sketches.iter().enumerate() {
        if let Some(SketchValue::Bits(value, width)) = sketch {
            bits = *width;
            places.push((narrow(value.0), at as u32));
        }
    }
    places.sort_unstable();
    let with = |code: C| {
        let start = places.partition_point(|place| place.0 < code);
        places[start..]
            .iter()
            .take_while(move |place| place.0 == code)
    };
    let radius = (f64::from(bits) - least.max(0.0)).floor() as u32;
    let pair = |a: u32, b: u32, distance: u32| ScoredPair {
        a: a.min(b),
        b: a.max(b),
        score: f64::from(bits - distance),
    };
    let visit = Mutex::new(visit);
    let mut codes: Vec<C> = Vec::new();
    for equal in places.chunk_by(|a, b| a.0 == b.0) {
        codes.push(equal[0].0);
        let mut visit = visit.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, (_, a)) in equal.iter().enumerate() {
            equal[at + 1..]
                .iter()
                .for_each(|(_, b)| visit(pair(*a, *b, 0)));
        }
    }
    self_join(&codes, radius, limits, || {
        |a: C, b: C, distance: u32| {
            let mut visit = visit.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, a) in with(a) {
                with(b).for_each(|(_, b)| visit(pair(*a, *b, distance)));
            }
        }
    });
}

/// Pairs that agree in at least `least` hashes of their columns.
pub(super) fn hashes(
    sketches: &[Option<SketchValue>],
    least: f64,
    visit: &mut dyn FnMut(ScoredPair),
) {
    let mut postings: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut counts = SharedCounts::new(sketches.len());
    for (at, sketch) in sketches.iter().enumerate() {
        let b = at as u32;
        for key in sketch.iter().flat_map(|sketch| sketch.keys(None)) {
            let list = postings.entry(key).or_default();
            list.iter().for_each(|&a| counts.add(a));
            list.push(b);
        }
        for (a, count) in counts.drain() {
            let score = f64::from(count);
            if score >= least {
                visit(ScoredPair { a, b, score });
            }
        }
    }
}

/// Pairs of sets whose resemblance is at least `least`.
pub(super) fn sets(
    sketches: &[Option<SketchValue>],
    least: f64,
    visit: &mut dyn FnMut(ScoredPair),
) {
    let set = |at: u32| match &sketches[at as usize] {
        Some(SketchValue::Set(set)) => &**set,
        _ => &[],
    };
    let compare = |a, b| {
        let (own, other) = (set(a), set(b));
        let (small, large) = (own.len().min(other.len()), own.len().max(other.len()));
        if (small as f64) < least * large as f64 {
            return 0.0;
        }
        resemblance_of(intersection_size(own, other), own.len(), other.len())
    };
    PrefixJoin {
        documents: sketches.len(),
        elements: &|at, out: &mut Vec<u64>| out.extend_from_slice(set(at)),
        prefix: &|size| prefix_len(size, least),
        compare: &compare,
        least,
    }
    .run(visit);
}

/// Pairs of signatures that agree in at least the share `least` of their places. A signature of n places is the set of its n pairs of
/// place and value; two that agree in c places share one of any n - c + 1 pairs of each.
pub(super) fn signatures(
    sketches: &[Option<SketchValue>],
    least: f64,
    visit: &mut dyn FnMut(ScoredPair),
) {
    let places = |at: u32| match &sketches[at as usize] {
        Some(SketchValue::Signature(places)) => &**places,
        _ => &[],
    };
    let elements = |at, out: &mut Vec<u64>| {
        let values = places(at).iter().zip(0_u64..);
        out.extend(values.map(|(&value, place)| place << 32 | u64::from(value)));
    };
    let score = |equal: usize, size: usize| equal as f64 / size as f64;
    let needed = |size: usize| (0..=size).find(|&equal| score(equal, size) >= least);
    let compare = |a, b| {
        let (own, other) = (places(a), places(b));
        let equal = own.iter().zip(other).filter(|(a, b)| a == b).count();
        score(equal, own.len())
    };
    PrefixJoin {
        documents: sketches.len(),
        elements: &elements,
        prefix: &|size| needed(size).map_or(0, |needed| size + 1 - needed.max(1)),
        compare: &compare,
        least,
    }
    .run(visit);
}

/// The elements of a document, appended.
type Elements<'a> = &'a dyn Fn(u32, &mut Vec<u64>);

/// A join by prefix filtering, rare elements first: two documents that are alike enough share an element of their prefixes.
struct PrefixJoin<'a> {
    documents: usize,
    elements: Elements<'a>,
    /// Length of the prefix of so many elements.
    prefix: &'a dyn Fn(usize) -> usize,
    compare: &'a dyn Fn(u32, u32) -> f64,
    least: f64,
}

impl PrefixJoin<'_> {
    fn run(&self, visit: &mut dyn FnMut(ScoredPair)) {
        let mut frequency: HashMap<u64, u32> = HashMap::new();
        let mut own = Vec::new();
        for at in 0..self.documents as u32 {
            own.clear();
            (self.elements)(at, &mut own);
            for &element in &own {
                *frequency.entry(element).or_default() += 1;
            }
        }
        let mut postings: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut counts = SharedCounts::new(self.documents);
        for b in 0..self.documents as u32 {
            own.clear();
            (self.elements)(b, &mut own);
            let ranked = own.iter().map(|&element| (frequency[&element], element));
            let mut ranked: Vec<(u32, u64)> = ranked.collect();
            ranked.sort_unstable();
            ranked.truncate((self.prefix)(own.len()));
            for (_, element) in ranked.into_iter().filter(|entry| entry.0 > 1) {
                let list = postings.entry(element).or_default();
                list.iter().for_each(|&a| counts.add(a));
                list.push(b);
            }
            for (a, _) in counts.drain() {
                let score = (self.compare)(a, b);
                if score >= self.least {
                    visit(ScoredPair { a, b, score });
                }
            }
        }
    }
}

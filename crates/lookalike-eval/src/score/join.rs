//! Joins of sketches: of fingerprints by `lookalike-hamming`, of others by shared elements.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use lookalike::resemblance::{intersection_at_least, prefix_len, resemblance_of, shared_needed};
use lookalike::sketch::SketchValue;
use lookalike_hamming::{SelfJoinLimits, Word, self_join};

use super::prefix::PrefixJoin;
use super::score_counts::{CountingVisitor, ScoreCounts};
use super::scored_pair::ScoredPair;

/// Fingerprints in ascending order, each with its document. Equal fingerprints are one code of the join.
pub(super) struct FingerprintTable<C> {
    bits: u32,
    /// Maximum distance of a pair, in bits.
    radius: u32,
    places: Vec<(C, u32)>,
    codes: Vec<C>,
    /// Start and end, in `places`, of each fingerprint that several documents have.
    repeated: HashMap<u128, (u32, u32)>,
}

impl<C: Word + Into<u128>> FingerprintTable<C> {
    /// Creates the table of the documents for which `counts` returns true.
    pub(super) fn new(
        sketches: &[Option<SketchValue>],
        least: f64,
        counts: &dyn Fn(u32) -> bool,
        narrow: impl Fn(u128) -> C,
    ) -> Self {
        let mut bits = 0;
        let mut places: Vec<(C, u32)> = Vec::new();
        for (sketch, at) in sketches.iter().zip(0..) {
            if let Some(SketchValue::Bits(value, width)) = sketch
                && counts(at)
            {
                bits = *width;
                places.push((narrow(value.0), at));
            }
        }
        // By fingerprint and then by document, so that `with` finds equal ones side by side and pairs come in the same order on every machine.
        places.sort_unstable();
        let (mut codes, mut repeated, mut start) = (Vec::new(), HashMap::new(), 0);
        for equal in places.chunk_by(|a, b| a.0 == b.0) {
            codes.push(equal[0].0);
            let end = start + equal.len() as u32;
            if equal.len() > 1 {
                repeated.insert(equal[0].0.into(), (start, end));
            }
            start = end;
        }
        Self {
            bits,
            // The score is the number of equal bits, so the distance is the rest.
            radius: (f64::from(bits) - least.max(0.0)).floor() as u32,
            places,
            codes,
            repeated,
        }
    }

    /// Returns the places of a fingerprint.
    fn with(&self, code: C) -> &[(C, u32)] {
        let (start, end) = match self.repeated.get(&code.into()) {
            Some(&(start, end)) => (start as usize, end as usize),
            None => {
                // A table of all fingerprints would take more memory than the fingerprints; few are looked up, because few are in a pair.
                let start = self.places.partition_point(|place| place.0 < code);
                (start, start + 1)
            }
        };
        &self.places[start..end]
    }

    /// Returns the number of documents with a fingerprint.
    fn number(&self, code: C) -> u64 {
        match self.repeated.is_empty() {
            // Usually no fingerprint repeats, and the innermost loop then computes no hash.
            true => 1,
            false => self
                .repeated
                .get(&code.into())
                .map_or(1, |&(start, end)| u64::from(end - start)),
        }
    }

    fn score(&self, distance: u32) -> f64 {
        f64::from(self.bits - distance)
    }

    /// Passes all pairs to the visitors, one for each thread; each pair once.
    pub(super) fn pairs<V: FnMut(ScoredPair) + Send>(
        &self,
        limits: SelfJoinLimits,
        visitor: &(impl Fn() -> V + Sync),
    ) {
        let pair = |a: u32, b: u32, distance: u32| ScoredPair {
            a: a.min(b),
            b: a.max(b),
            score: self.score(distance),
        };
        let mut visit = visitor();
        // Equal fingerprints are one code of the join, so it does not report their pairs.
        for equal in self.places.chunk_by(|a, b| a.0 == b.0) {
            for (at, (_, a)) in equal.iter().enumerate() {
                let others = equal[at + 1..].iter();
                others.for_each(|(_, b)| visit(pair(*a, *b, 0)));
            }
        }
        // Before the join makes its own: a counting visitor takes a lock when it is dropped.
        drop(visit);
        self_join(&self.codes, self.radius, limits, || {
            let mut visit = visitor();
            move |a: C, b: C, distance: u32| {
                for (_, a) in self.with(a) {
                    let others = self.with(b).iter();
                    others.for_each(|(_, b)| visit(pair(*a, *b, distance)));
                }
            }
        });
    }

    /// Counts pairs by score without enumerating pairs of equal fingerprints.
    pub(super) fn counts(&self, limits: SelfJoinLimits) -> ScoreCounts {
        let all = Mutex::default();
        let mut equal = CountingVisitor::new(&all);
        for (start, end) in self.repeated.values() {
            // Add n (n - 1) / 2 at once: a family of copies may have millions of pairs.
            let number = u64::from(end - start);
            equal.add(self.score(0), number * (number - 1) / 2, None);
        }
        drop(equal);
        self_join(&self.codes, self.radius, limits, || {
            let mut counts = CountingVisitor::new(&all);
            move |a: C, b: C, distance: u32| {
                // Each document of one fingerprint makes a pair with each of the other.
                let number = self.number(a) * self.number(b);
                counts.add(self.score(distance), number, None);
            }
        });
        all.into_inner().unwrap_or_else(PoisonError::into_inner).all
    }
}

/// Passes the pairs of other sketches that score at least `least` to the visitors, one for each thread.
pub(super) fn shared<V: FnMut(ScoredPair) + Send>(
    sketches: &[Option<SketchValue>],
    least: f64,
    scratch_bytes: u64,
    visitors: &mut [V],
) {
    let join = |elements: &(dyn Fn(u32, &mut Vec<u64>) + Sync),
                prefix: &(dyn Fn(usize) -> usize + Sync),
                compare: &(dyn Fn(u32, u32) -> f64 + Sync),
                visitors: &mut [V]| {
        PrefixJoin {
            documents: sketches.len(),
            elements,
            prefix,
            compare,
            least,
            scratch_bytes,
        }
        .run(visitors);
    };
    let score = |a: u32, b: u32| {
        let both = sketches[a as usize]
            .as_ref()
            .zip(sketches[b as usize].as_ref());
        both.map_or(0.0, |(a, b)| a.score(b))
    };
    // All sketches are of one scheme, so the first tells the kind of all.
    match sketches.iter().flatten().next() {
        Some(SketchValue::Set(_)) => join(
            &|at, out| out.extend_from_slice(set(sketches, at)),
            &|size| prefix_len(size, least),
            &|a, b| resemblance(set(sketches, a), set(sketches, b), least),
            visitors,
        ),
        // A signature of n places is the set of its n pairs of place and value. Two signatures that agree in c places share at least one of any n - c
        // + 1 pairs of each.
        Some(SketchValue::Signature(_)) => join(
            &|at, out| {
                let values = places(sketches, at).iter().zip(0_u64..);
                // The place is in the upper half, so equal values in different places are different elements.
                out.extend(values.map(|(&value, place)| place << 32 | u64::from(value)));
            },
            &|size| prefix_len(size, least),
            &score,
            visitors,
        ),
        Some(SketchValue::Hashes(_)) => join(
            &|at, out| out.extend(sketches[at as usize].iter().flat_map(|own| own.keys(None))),
            // The score is the number of equal hashes. Two lists that share `least` of `size` hashes share one of any size + 1 - least of them.
            &|size| (size + 1).saturating_sub(least.max(1.0).ceil() as usize),
            &score,
            visitors,
        ),
        // Fingerprints have a join of their own: see `FingerprintTable`.
        Some(SketchValue::Bits(..)) | None => {}
    }
}

fn set(sketches: &[Option<SketchValue>], at: u32) -> &[u64] {
    match &sketches[at as usize] {
        Some(SketchValue::Set(set)) => set,
        _ => &[],
    }
}

fn places(sketches: &[Option<SketchValue>], at: u32) -> &[u32] {
    match &sketches[at as usize] {
        Some(SketchValue::Signature(places)) => places,
        _ => &[],
    }
}

/// Returns the resemblance of two sets, or 0 if it is less than `least`.
pub(crate) fn resemblance(own: &[u64], other: &[u64], least: f64) -> f64 {
    let needed = shared_needed(own.len(), other.len(), least);
    let shared = intersection_at_least(own, other, needed);
    shared.map_or(0.0, |shared| resemblance_of(shared, own.len(), other.len()))
}

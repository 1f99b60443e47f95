//! Joins of fingerprints by `lookalike-hamming`.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use lookalike::sketch::SketchValue;
use lookalike_hamming::{SelfJoinLimits, Word, self_join};

use super::score_counts::{CountingVisitor, ScoreCounts};
use super::scored_pair::ScoredPair;

/// Fingerprints in ascending order, each with its document. Equal fingerprints are one code of the join.
pub(super) struct FingerprintTable<C> {
    bits: u32,
    /// Maximum distance of a pair, in bits.
    radius: u32,
    places: Vec<(C, u32)>,
    codes: Vec<C>,
    /// Number of documents of each fingerprint that several have.
    repeated: HashMap<C, u64>,
}

impl<C: Word> FingerprintTable<C> {
    /// Creates the table of the documents for which `counts` returns true.
    pub(super) fn new(
        sketches: &[Option<SketchValue>],
        least: f64,
        counts: &dyn Fn(u32) -> bool,
    ) -> Self {
        let mut bits = 0;
        let mut places: Vec<(C, u32)> = Vec::new();
        for (sketch, at) in sketches.iter().zip(0..) {
            if let Some(SketchValue::Bits(value, width)) = sketch
                && counts(at)
            {
                bits = *width;
                places.push((C::from_u128(value.0), at));
            }
        }
        // No score exceeds the number of bits.
        if least > f64::from(bits) {
            places.clear();
        }
        // By fingerprint and then by document, so that `with` finds equal ones side by side and pairs come in the same order on every machine.
        places.sort_unstable();
        let (mut codes, mut repeated) = (Vec::new(), HashMap::new());
        for equal in places.chunk_by(|a, b| a.0 == b.0) {
            codes.push(equal[0].0);
            if equal.len() > 1 {
                repeated.insert(equal[0].0, equal.len() as u64);
            }
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
        // A table of all fingerprints would take more memory than the fingerprints; few are looked up, because few are in a pair.
        let start = self.places.partition_point(|place| place.0 < code);
        &self.places[start..][..self.number(code) as usize]
    }

    /// Returns the number of documents with a fingerprint.
    fn number(&self, code: C) -> u64 {
        match self.repeated.is_empty() {
            // Usually no fingerprint repeats, and the innermost loop then computes no hash.
            true => 1,
            false => self.repeated.get(&code).copied().unwrap_or(1),
        }
    }

    /// Returns the limits of a join, given those of the table and the join together.
    fn join_limits(&self, limits: SelfJoinLimits) -> SelfJoinLimits {
        let places = self.places.capacity() * size_of::<(C, u32)>();
        let codes = self.codes.capacity() * size_of::<C>();
        let own = places + codes + self.repeated.allocation_size();
        limits.scratch_bytes(limits.scratch_bytes.saturating_sub(own))
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
        self_join(&self.codes, self.radius, self.join_limits(limits), || {
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
        for number in self.repeated.values() {
            // Add n (n - 1) / 2 at once: a family of copies may have millions of pairs.
            equal.add(self.score(0), number * (number - 1) / 2, None);
        }
        drop(equal);
        self_join(&self.codes, self.radius, self.join_limits(limits), || {
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

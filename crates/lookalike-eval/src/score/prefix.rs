//! Prefix filtering: two documents that are similar enough share an element of their prefixes. A prefix is the rarest elements of a document.
//!
//! Elements are ordered by the number of their occurrences, which is counted roughly, by hash, and never too low. Any order finds every pair; a wrong
//! count only costs time.

use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use lookalike::SketchValue;
use lookalike::resemblance::{intersection_at_least, prefix_len, resemblance_of, shared_needed};
use lookalike_hamming::threads::map_parallel;

use super::scored_pair::ScoredPair;

/// Minimum and maximum number of counters, as powers of two: 1 KiB to 64 MiB.
const MAGNITUDES: (u32, u32) = (8, 24);
/// Bytes for each element of a prefix while an index is built: the element with its document, the document again, and at most two and a third
/// slots of a table.
pub(crate) const BYTES_PER_POSTING: u64 = 60;
/// Number of documents that a thread takes at a time.
const STRIDE: usize = 64;

/// Rough numbers of occurrences by hash, never below the true ones.
#[derive(Debug, Clone)]
pub(crate) struct RoughCounts {
    counters: Vec<u32>,
    shift: u32,
}

impl RoughCounts {
    /// Creates counters for about `elements` elements, in at most an eighth of `memory` bytes.
    pub(crate) fn new(elements: u64, memory: u64) -> Self {
        let (fewest, most) = MAGNITUDES;
        let most = (memory / 8 / 4).max(1).ilog2().clamp(fewest, most);
        // More counters than elements, so that most elements have one of their own.
        let magnitude = (elements.max(1).ilog2() + 1).clamp(fewest, most);
        Self {
            counters: vec![0; 1 << magnitude],
            shift: 64 - magnitude,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        4 * self.counters.len() as u64
    }

    fn at(&self, element: u64) -> usize {
        // Fibonacci hashing, since the elements of signatures are not hashes.
        (element.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    pub(crate) fn add(&mut self, element: u64) {
        let at = self.at(element);
        // Beyond 2^32 all counts are equally large; the order among such elements costs time only.
        self.counters[at] = self.counters[at].saturating_add(1);
    }

    pub(crate) fn of(&self, element: u64) -> u32 {
        self.counters[self.at(element)]
    }

    /// Fills `out` with the elements of the prefix of `length` that occur more than `single` times, with their counts.
    pub(crate) fn prefix(
        &self,
        elements: &[u64],
        length: usize,
        single: u32,
        out: &mut Vec<(u32, u64)>,
    ) {
        out.clear();
        let counted = elements
            .iter()
            .map(|&element| (self.of(element), element))
            // The counts never err downwards, so no element that two documents share is left out.
            .filter(|entry| entry.0 > single);
        out.extend(counted);
        // The elements that were filtered out come first in the order, so they use up part of the prefix.
        let left = length.saturating_sub(elements.len() - out.len());
        // Ties between equal counts are broken by the element itself, in the same way for all documents, which the filter depends on.
        if left < out.len() {
            if left > 0 {
                // Select the rarest without sorting them: their order does not matter.
                out.select_nth_unstable(left - 1);
            }
            out.truncate(left);
        }
    }
}

/// Index of documents by the elements of their prefixes.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrefixIndex {
    /// Start and end of each element's list in `documents`.
    lists: HashMap<u64, (u32, u32)>,
    documents: Vec<u32>,
}

impl PrefixIndex {
    /// Creates the index of elements with their documents. Elements with fewer than `least` documents are left out.
    pub(crate) fn new(mut entries: Vec<(u64, u32)>, least: usize) -> Self {
        entries.sort_unstable();
        let lists = || {
            let equal = entries.chunk_by(|a, b| a.0 == b.0);
            equal.filter(|equal| equal.len() >= least)
        };
        // Of the right size from the start: a table that grows takes one and a half times the memory.
        let mut index = Self {
            lists: HashMap::with_capacity(lists().count()),
            documents: Vec::with_capacity(lists().map(<[_]>::len).sum()),
        };
        for equal in lists() {
            let start = index.documents.len() as u32;
            index.documents.extend(equal.iter().map(|entry| entry.1));
            let end = index.documents.len() as u32;
            index.lists.insert(equal[0].0, (start, end));
        }
        index
    }

    /// Returns the documents of an element, ascending.
    pub(crate) fn of(&self, element: u64) -> &[u32] {
        self.lists.get(&element).map_or(&[], |&(start, end)| {
            &self.documents[start as usize..end as usize]
        })
    }
}

/// Set of the documents that share an element with the current one.
pub(crate) struct TouchedDocuments {
    is_touched: Vec<bool>,
    touched: Vec<u32>,
}

impl TouchedDocuments {
    pub(crate) fn new(documents: usize) -> Self {
        Self {
            is_touched: vec![false; documents],
            touched: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, document: u32) {
        if !std::mem::replace(&mut self.is_touched[document as usize], true) {
            self.touched.push(document);
        }
    }

    /// Removes all documents and passes them to `visit`, ascending.
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u32)) {
        self.touched.sort_unstable();
        for document in self.touched.drain(..) {
            self.is_touched[document as usize] = false;
            visit(document);
        }
    }
}

/// A prefix join of sets, signatures or hashes in memory, all of one scheme.
pub(super) struct PrefixJoin<'a> {
    pub(super) sketches: &'a [Option<SketchValue>],
    pub(super) least: f64,
    /// Memory of the counts, the documents that each thread has touched, and the index of one part, in bytes.
    pub(super) scratch_bytes: u64,
}

impl PrefixJoin<'_> {
    /// Passes all pairs that score at least `least` to the visitors, one for each thread; each pair once.
    pub(super) fn run<V: FnMut(ScoredPair) + Send>(&self, visitors: &mut [V]) {
        let counts = self.counts();
        let touched = (self.sketches.len() * visitors.len()) as u64;
        let left = self.scratch_bytes.saturating_sub(counts.bytes() + touched);
        let mut from = 0;
        // If not all documents fit, they are indexed in parts. A pair is found in the part of its first document.
        while from < self.sketches.len() {
            let (index, end) = self.index(from, left, &counts);
            // A pair is found in the part of its earlier document, so documents before the part have no pair left in it.
            let next = AtomicUsize::new(from);
            map_parallel(&mut *visitors, |visit| {
                self.probe(&index, &counts, &next, visit)
            });
            from = end;
        }
    }

    /// Replaces `out` with the elements of a document.
    fn elements(&self, at: u32, out: &mut Vec<u64>) {
        out.clear();
        match &self.sketches[at as usize] {
            Some(SketchValue::Set(set)) => out.extend_from_slice(set),
            Some(SketchValue::Signature(values)) => {
                // A signature is the set of its pairs of place and value. The place is in the upper half, so equal values in different places are
                // different elements.
                let values = values.iter().zip(0_u64..);
                out.extend(values.map(|(&value, place)| place << 32 | u64::from(value)));
            }
            Some(hashes) => out.extend(hashes.keys(None)),
            None => {}
        }
    }

    /// Replaces `out` with the prefix of a document, whose elements go to `own`.
    fn prefix(&self, at: u32, counts: &RoughCounts, own: &mut Vec<u64>, out: &mut Vec<(u32, u64)>) {
        self.elements(at, own);
        let size = own.len();
        let length = match self.sketches[at as usize] {
            // The score is the number of equal hashes. Two lists that share `least` of `size` hashes share one of any size + 1 - least of them.
            Some(SketchValue::Hashes(_)) => {
                (size + 1).saturating_sub(self.least.max(1.0).ceil() as usize)
            }
            // Two signatures that agree in c of n places share at least one of any n - c + 1 pairs of each.
            _ => prefix_len(size, self.least),
        };
        counts.prefix(own, length, 1, out);
    }

    fn score(&self, a: u32, b: u32) -> f64 {
        match (&self.sketches[a as usize], &self.sketches[b as usize]) {
            (Some(SketchValue::Set(a)), Some(SketchValue::Set(b))) => resemblance(a, b, self.least),
            (Some(a), Some(b)) => a.score(b),
            _ => 0.0,
        }
    }

    fn counts(&self) -> RoughCounts {
        let (mut own, mut elements) = (Vec::new(), 0);
        // The mean of the first documents sizes the counters; a wrong guess costs time or memory, no pair.
        let sample = self.sketches.len().min(1000);
        for at in 0..sample as u32 {
            self.elements(at, &mut own);
            elements += own.len() as u64;
        }
        let expected = elements * self.sketches.len() as u64 / sample.max(1) as u64;
        let mut counts = RoughCounts::new(expected, self.scratch_bytes);
        for at in 0..self.sketches.len() as u32 {
            self.elements(at, &mut own);
            own.iter().for_each(|&element| counts.add(element));
        }
        counts
    }

    /// Indexes as many documents from `from` on as fit in `bytes`, and returns the end of the part.
    fn index(&self, from: usize, bytes: u64, counts: &RoughCounts) -> (PrefixIndex, usize) {
        // Lists are positions of 32 bits.
        let most = (bytes / BYTES_PER_POSTING).clamp(1, u64::from(u32::MAX)) as usize;
        let (mut own, mut prefix, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let (mut end, all) = (from, self.sketches.len());
        // At least one document, so that the join ends even if its prefix alone exceeds the memory.
        while end < all && (end == from || entries.len() < most) {
            self.prefix(end as u32, counts, &mut own, &mut prefix);
            entries.extend(prefix.iter().map(|&(_, element)| (element, end as u32)));
            end += 1;
        }
        // A list of one document leads to pairs only if the probing documents are not all in this index.
        let least = if from == 0 && end == all { 2 } else { 1 };
        (PrefixIndex::new(entries, least), end)
    }

    fn probe(
        &self,
        index: &PrefixIndex,
        counts: &RoughCounts,
        next: &AtomicUsize,
        visit: &mut impl FnMut(ScoredPair),
    ) {
        let (mut own, mut prefix) = (Vec::new(), Vec::new());
        // One byte a document, set and cleared in constant time, where a set of hashes would be rebuilt for each document.
        let mut touched = TouchedDocuments::new(self.sketches.len());
        loop {
            // A few documents at a time: the later ones meet more earlier documents, so equal shares would take unequal times.
            let start = next.fetch_add(STRIDE, Ordering::Relaxed);
            if start >= self.sketches.len() {
                return;
            }
            for b in start as u32..self.sketches.len().min(start + STRIDE) as u32 {
                self.prefix(b, counts, &mut own, &mut prefix);
                for &(_, element) in &prefix {
                    // Report each pair once, from its later document; lists ascend.
                    let earlier = index.of(element).iter().take_while(|&&a| a < b);
                    earlier.for_each(|&a| touched.add(a));
                }
                touched.drain(|a| {
                    let score = self.score(a, b);
                    if score >= self.least {
                        visit(ScoredPair { a, b, score });
                    }
                });
            }
        }
    }
}

/// Returns the resemblance of two sets, or 0 if it is less than `least`.
pub(crate) fn resemblance(own: &[u64], other: &[u64], least: f64) -> f64 {
    let needed = shared_needed(own.len(), other.len(), least);
    let shared = intersection_at_least(own, other, needed);
    shared.map_or(0.0, |shared| resemblance_of(shared, own.len(), other.len()))
}

//! Joins of sketches that are sets or lists of hashes, by what they share.

use hashbrown::HashMap;
use lookalike::resemblance::{intersection_size, prefix_len, resemblance_of};
use lookalike::sketch::SketchValue;

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

/// Pairs that agree in at least `least` hashes of their columns.
pub(super) fn hashes(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let mut postings: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut counts = SharedCounts::new(sketches.len());
    let mut pairs = Vec::new();
    for (at, sketch) in sketches.iter().enumerate() {
        let b = at as u32;
        for key in sketch.iter().flat_map(|sketch| sketch.keys(None)) {
            let list = postings.entry(key).or_default();
            list.iter().for_each(|&a| counts.add(a));
            list.push(b);
        }
        let shared = counts.drain().into_iter();
        let scored = shared.map(|(a, count)| (a, f64::from(count)));
        pairs.extend(
            scored
                .filter(|pair| pair.1 >= least)
                .map(|(a, score)| ScoredPair { a, b, score }),
        );
    }
    pairs
}

/// Pairs of sets whose resemblance is at least `least`: prefix filtering, rare features first.
pub(super) fn sets(sketches: &[Option<SketchValue>], least: f64) -> Vec<ScoredPair> {
    let set = |at: usize| match &sketches[at] {
        Some(SketchValue::Set(set)) => &**set,
        _ => &[],
    };
    let mut frequency: HashMap<u64, u32> = HashMap::new();
    for at in 0..sketches.len() {
        for &feature in set(at) {
            *frequency.entry(feature).or_default() += 1;
        }
    }
    let mut postings: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut counts = SharedCounts::new(sketches.len());
    let mut pairs = Vec::new();
    for at in 0..sketches.len() {
        let (own, b) = (set(at), at as u32);
        let mut ranked: Vec<(u32, u64)> = own.iter().map(|&f| (frequency[&f], f)).collect();
        ranked.sort_unstable();
        ranked.truncate(prefix_len(own.len(), least));
        for (_, feature) in ranked.into_iter().filter(|entry| entry.0 > 1) {
            let list = postings.entry(feature).or_default();
            list.iter().for_each(|&a| counts.add(a));
            list.push(b);
        }
        for (a, _) in counts.drain() {
            let other = set(a as usize);
            let (small, large) = (own.len().min(other.len()), own.len().max(other.len()));
            if (small as f64) < least * large as f64 {
                continue;
            }
            let score = resemblance_of(intersection_size(own, other), own.len(), other.len());
            if score >= least {
                pairs.push(ScoredPair { a, b, score });
            }
        }
    }
    pairs
}

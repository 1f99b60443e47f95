//! Joins feature sets that need not fit in memory: holds one part of the documents at a time and reads all others past it.

use lookalike::{Features, Scheme};

use super::documents::SweptDocuments;
use super::features::FeatureReader;
use super::{SweepError, SweepLimits, text_bytes};
use crate::score::prefix::RoughCounts;
use crate::score::{IndexedSets, ScoredPair};

/// Sizes of the sets, with rough counts of their features.
struct SetSizes {
    sizes: Vec<u32>,
    counts: RoughCounts,
}

fn set_of(_: usize, features: &Features<'_>) -> Vec<u64> {
    features.set.to_vec()
}

/// Calls `visit` with all pairs of documents whose sets have a resemblance of at least `least`, each once, in any order. Reads the documents once to
/// count, and twice for each part that fits in memory.
pub(super) fn for_each_similar_pair<D: SweptDocuments>(
    documents: &D,
    scheme: &Scheme,
    least: f64,
    limits: SweepLimits,
    mut visit: impl FnMut(ScoredPair),
) -> Result<(), SweepError<D::Error>> {
    let mut reader = FeatureReader::new(&[scheme.features_only().into()], limits.threads);
    let sizes = SetSizes::new(documents, &mut reader, limits.memory)?;
    // What stays in memory throughout is not left for the parts.
    let own = sizes.counts.bytes() + 4 * sizes.sizes.len() as u64;
    let budget = limits.memory.saturating_sub(own);
    let mut from = 0;
    while from < documents.len() {
        let end = sizes.part(from, least, budget)?;
        let mut sets: Vec<Box<[u64]>> = vec![Box::default(); end - from];
        reader.read(documents, false, &set_of, |_, position, set| {
            // Copies were left out by `counted: false`, so every document that arrives has a position.
            let at = position.map_or(0, |position| position as usize);
            // The extraction is repeated for each part: the features of the other parts do not fit in memory.
            if (from..end).contains(&at) {
                sets[at - from] = set.into();
            }
        })?;
        // 1, because a feature of one document in the whole collection is shared by no pair.
        let held = IndexedSets::new(sets, least, &sizes.counts, 1);
        let probe = |_: usize, features: &Features<'_>| {
            let mut found = Vec::new();
            held.similar(features.set, &sizes.counts, 1, |at, score| {
                found.push((at, score))
            });
            found
        };
        reader.read(documents, false, &probe, |_, position, found| {
            let b = position.unwrap_or(0);
            for (at, score) in found {
                let a = from as u32 + at;
                // Report a pair only from the part with its earlier document: the later document's part meets it again.
                if a < b {
                    visit(ScoredPair { a, b, score });
                }
            }
        })?;
        from = end;
    }
    Ok(())
}

impl SetSizes {
    fn new<D: SweptDocuments>(
        documents: &D,
        reader: &mut FeatureReader,
        memory: u64,
    ) -> Result<Self, SweepError<D::Error>> {
        // A feature for four bytes of text, about that of a word: a guess that only sizes the counters.
        let mut counts = RoughCounts::new(text_bytes(documents) / 4, memory);
        let mut sizes = vec![0; documents.len()];
        reader.read(documents, false, &set_of, |_, position, set| {
            if let Some(size) = position.and_then(|at| sizes.get_mut(at as usize)) {
                *size = set.len() as u32;
            }
            set.iter().for_each(|&feature| counts.add(feature));
        })?;
        Ok(Self { sizes, counts })
    }

    /// Returns the end of the part from `from` on that fits `budget`.
    fn part<E>(&self, from: usize, least: f64, budget: u64) -> Result<usize, SweepError<E>> {
        let (mut end, mut bytes) = (from, 0);
        while end < self.sizes.len() {
            bytes += IndexedSets::bytes(self.sizes[end] as usize, least);
            if bytes > budget {
                break;
            }
            end += 1;
        }
        match end > from {
            true => Ok(end),
            false => Err(SweepError::TooLarge {
                needed: bytes,
                most_bytes: budget,
                what: "the features of one document".to_owned(),
            }),
        }
    }
}

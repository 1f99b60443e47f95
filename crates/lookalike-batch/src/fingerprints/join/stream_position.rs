//! Tracks a stream of fingerprint chunks that several threads finish in any order.

use std::collections::BTreeMap;

use lookalike::hash::xxh3_64;
use lookalike_hamming::Word;
use serde::{Deserialize, Serialize};

use crate::fingerprints::files::{FingerprintFile, FingerprintName};

/// Multiplier of Fibonacci hashing.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Number of fingerprints, and a digest of them and their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamedPart {
    pub(super) count: u64,
    pub(super) digest: u64,
}

/// Position up to which a stream is joined: its finished first part, and finished chunks after a gap.
#[derive(Debug, Default)]
pub(super) struct StreamPosition {
    pub(super) first: StreamedPart,
    /// Number of the first unfinished chunk.
    next: u64,
    /// Finished chunks after it.
    done: BTreeMap<u64, StreamedPart>,
}

impl StreamedPart {
    /// Returns the part that a whole chunk makes. The digest does not depend on the order.
    pub(super) fn of<W: Word>(chunk: &FingerprintFile<W>) -> Self {
        let codes = chunk.codes.iter().copied().enumerate();
        let mixed = codes.map(|(at, code)| {
            let name = name_hash(chunk.ids.name(at, code), code);
            mixed(folded(code) ^ name.rotate_left(32))
        });
        let digest = mixed.fold(0_u64, u64::wrapping_add);
        Self {
            count: chunk.codes.len() as u64,
            digest,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            // A sum, so that the digest does not depend on where the stream was cut.
            digest: self.digest.wrapping_add(other.digest),
        }
    }
}

impl StreamPosition {
    /// Records a finished chunk, numbered from 0.
    pub(super) fn end_chunk(&mut self, number: u64, part: StreamedPart) {
        self.done.insert(number, part);
        // Chunks end out of order; only those without a gap before them count.
        while let Some(part) = self.done.remove(&self.next) {
            self.first = self.first.and(part);
            self.next += 1;
        }
    }
}

/// Returns a digest of fingerprints that does not depend on their order; other fingerprints are very unlikely to have the same.
pub(super) fn digest_of_codes<W: Word>(codes: impl IntoIterator<Item = W>) -> u64 {
    // Mixed before they are added up: plain sums of similar fingerprints would often be equal.
    let mixed = codes.into_iter().map(|code| mixed(folded(code)));
    mixed.fold(0, u64::wrapping_add)
}

/// Folds a code into 64 bits. Codes of at most 64 bits stay unchanged.
pub(super) fn folded<W: Word>(code: W) -> u64 {
    let value = code.to_u128();
    // The product spreads the upper half; otherwise two equal halves would cancel each other out.
    value as u64 ^ ((value >> 64) as u64).wrapping_mul(GOLDEN_RATIO)
}

fn mixed(code: u64) -> u64 {
    let spread = (code ^ code >> 32).wrapping_mul(GOLDEN_RATIO);
    spread ^ spread >> 29
}

fn name_hash<W: Word>(name: FingerprintName<'_>, code: W) -> u64 {
    let is_own =
        |text: &str| text.len() == W::BITS as usize / 4 && FingerprintName::from_code(code) == name;
    match name {
        // The name is the fingerprint itself, which the digest already contains. Behind an id in the same chunk it is a text.
        FingerprintName::Fingerprint(_) => 0,
        FingerprintName::Text(text) if is_own(text) => 0,
        FingerprintName::Number(number) => mixed(number ^ GOLDEN_RATIO),
        FingerprintName::Text(text) => xxh3_64(text.as_bytes(), 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fingerprints::files::FingerprintIds;

    proptest! {
        #[test]
        fn a_position_is_the_sum_of_the_chunks_before_the_first_that_is_not_done(
            counts in prop::collection::vec(0..9_u64, 1..20), keys in prop::collection::vec(any::<u64>(), 20), ended in 0..20_usize,
        ) {
            let mut order: Vec<usize> = (0..counts.len()).collect();
            order.sort_by_key(|&at| keys[at]);
            let ended = &order[..ended.min(order.len())];
            let part = |at: usize| StreamedPart { count: counts[at], digest: keys[at] };
            let mut position = StreamPosition::default();
            ended.iter().for_each(|&at| position.end_chunk(at as u64, part(at)));
            let whole = (0..counts.len()).take_while(|at| ended.contains(at));
            let expected = whole.fold(StreamedPart::default(), |sum, at| sum.and(part(at)));
            prop_assert_eq!(position.first, expected);
        }

        #[test]
        fn a_digest_does_not_depend_on_how_fingerprints_are_cut_into_chunks(
            codes in prop::collection::vec(any::<u128>(), 0..30), cut in 0..30_usize, other in any::<u128>(),
        ) {
            let cut = cut.min(codes.len());
            let chunk = |codes: &[u128]| FingerprintFile { codes: codes.to_vec(), ..FingerprintFile::default() };
            let whole = StreamedPart::of(&chunk(&codes));
            let parts = StreamedPart::of(&chunk(&codes[..cut])).and(StreamedPart::of(&chunk(&codes[cut..])));
            prop_assert_eq!(whole, parts);
            let mut changed = codes.clone();
            if let Some(code) = changed.get_mut(cut).filter(|code| **code != other) {
                *code = other;
                prop_assert_ne!(StreamedPart::of(&chunk(&changed)), whole);
            }
        }
    }

    #[test]
    fn a_fingerprint_without_an_id_had_another_digest_behind_one_with_an_id() {
        let bare = FingerprintFile {
            codes: vec![0xab_u64],
            ..FingerprintFile::default()
        };
        let mut behind = FingerprintFile::<u64>::default();
        behind.ids.push_text::<u64>("a", &[]);
        behind.codes.push(7);
        let of_id = StreamedPart::of(&behind);
        behind.ids.push_none(0xab_u64);
        behind.codes.push(0xab);
        assert_eq!(
            StreamedPart::of(&behind),
            of_id.and(StreamedPart::of(&bare))
        );
    }

    #[test]
    fn another_name_is_another_digest() {
        let part = |ids: FingerprintIds| {
            let codes = vec![5_u64, 6];
            StreamedPart::of(&FingerprintFile {
                codes,
                ids,
                has_both: false,
            })
            .digest
        };
        let texts = |bytes: &str, end: u64| FingerprintIds::Texts {
            bytes: bytes.to_owned(),
            ends: vec![end, bytes.len() as u64],
        };
        let all = [
            part(FingerprintIds::None),
            part(FingerprintIds::Numbers(vec![1, 2])),
            part(FingerprintIds::Numbers(vec![2, 1])),
            part(texts("ab", 1)),
            part(texts("ab", 2)),
        ];
        for (at, digest) in all.iter().enumerate() {
            assert!(!all[..at].contains(digest), "{at}");
        }
    }
}

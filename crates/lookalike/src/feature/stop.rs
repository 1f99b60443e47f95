//! English function words, whose order is the skeleton of a text.

use crate::scheme::TokenHash;

/// The 50 most frequent words of the British National Corpus as Stamatatos lists them ("Plagiarism detection using stopword n-grams", JASIST 62,
/// 2011), without "'s" and "n't", which are not words of their own here. Part of the definition of `stops:w`, so they never change.
const WORDS: [&str; 48] = [
    "the", "of", "and", "a", "in", "to", "is", "was", "it", "for", "with", "he", "be", "on", "i",
    "that", "by", "at", "you", "are", "not", "his", "this", "from", "but", "had", "which", "she",
    "they", "or", "an", "were", "we", "their", "been", "has", "have", "will", "would", "her",
    "there", "can", "all", "as", "if", "who", "what", "said",
];

/// Returns the hashes of the function words, ascending.
pub(super) fn hashes(hash: TokenHash, seed: u64) -> Vec<u64> {
    let mut hashes: Vec<u64> = WORDS
        .iter()
        .map(|word| hash.of(word.as_bytes(), seed))
        .collect();
    hashes.sort_unstable();
    hashes
}

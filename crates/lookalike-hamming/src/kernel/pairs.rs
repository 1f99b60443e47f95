//! Pairs of words of a list that are near each other.

use super::super::code::Integer;
use super::scan::hit_positions;
use super::vector::{Kernel, Vector};

/// Search for all pairs of `words` within `radius`, inside each of some groups. Appends them to `pairs`.
#[derive(Debug)]
pub struct ClosePairs<'a, W> {
    /// The groups, back to back from `start` on.
    pub words: &'a [W],
    /// Start of the first group.
    pub start: usize,
    /// End of each group.
    pub ends: &'a [u32],
    /// Groups of more words than this are skipped.
    pub most: usize,
    /// Maximum distance.
    pub radius: u32,
    /// Receives the pairs.
    pub pairs: &'a mut Vec<(W, W)>,
}

impl<W: Integer> Kernel<W> for ClosePairs<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<W>>(self, vector: V) {
        let mut start = self.start;
        for &end in self.ends {
            let group = &self.words[start..end as usize];
            start = end as usize;
            // The comparison is quadratic: the caller divides larger groups by other bits.
            if group.len() > self.most {
                continue;
            }
            for (i, &needle) in group.iter().enumerate() {
                // Rows of the upper triangle: each pair once.
                let later = &group[i + 1..];
                if !V::PARTS {
                    for &word in later {
                        if (word ^ needle).ones() <= self.radius {
                            self.pairs.push((needle, word));
                        }
                    }
                    continue;
                }
                // Most groups have two or three words, so vectors are hardly ever full.
                let needles = vector.splat(needle);
                for words in later.chunks(V::LANES) {
                    for at in hit_positions(vector.near_words(words, needles, self.radius)) {
                        self.pairs.push((needle, words[at]));
                    }
                }
            }
        }
    }
}

//! Pairs of words of a list that are near one another.

use super::super::code::Integer;
use super::scan::each_hit;
use super::vector::{Kernel, Vector};

/// All pairs of `words` within `radius` inside each of some groups, appended to `pairs`.
#[derive(Debug)]
pub struct ClosePairs<'a, W> {
    /// The groups, back to back from `start` on.
    pub words: &'a [W],
    /// Begin of the first group.
    pub start: usize,
    /// End of each group.
    pub ends: &'a [u32],
    /// Groups of more words are passed over.
    pub most: usize,
    /// The largest distance.
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
            // Quadratic beyond that: the caller takes large groups apart by other bits.
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
                // Most groups are of two or three words, and vectors hardly ever whole.
                let needles = vector.splat(needle);
                for words in later.chunks(V::LANES) {
                    for at in each_hit(vector.near_words(words, needles, self.radius)) {
                        self.pairs.push((needle, words[at]));
                    }
                }
            }
        }
    }
}

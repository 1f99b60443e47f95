//! Survivors: which documents are kept, by the slow and obvious definition.
//!
//! The last step of the way of the data. The batch job has a streaming version of its own and is
//! tested against this one.

use std::collections::BTreeMap;

/// Decision about a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// It is kept.
    Survivor,
    /// It is removed for a survivor that it is similar to.
    Removed {
        /// Index of the document that is kept for it.
        survivor: usize,
        /// Verified similarity of the two.
        similarity: f64,
    },
}

/// Decides for each document, in order of priority: it is removed if it is similar to a survivor
/// that was decided on before, and joins the most similar one, of equals the one of higher
/// priority; else it survives. So every removed document is similar to one that is kept, there is
/// no drift along chains, and the result depends on nothing but the priorities and the pairs.
///
/// `priority` lists document indexes, the most wanted first; `pairs` the similar documents with
/// their similarity, in any order. Decisions stand at the document's index. A document that is not
/// in `priority` survives without being anyone's survivor; a pair of a document with itself, or
/// beyond the documents, means nothing. Time: (documents + pairs) times a logarithm.
///
/// ```
/// use lookalike::{Decision, survivors};
/// // A chain 0 - 1 - 2: 1 goes to 0, but 2 is not similar to 0 and stays.
/// let decisions = survivors(&[0, 1, 2], &[(0, 1, 0.9), (1, 2, 0.9)]);
/// assert_eq!(decisions[1], Decision::Removed { survivor: 0, similarity: 0.9 });
/// assert_eq!(decisions[2], Decision::Survivor);
/// ```
#[must_use]
pub fn survivors(priority: &[usize], pairs: &[(usize, usize, f64)]) -> Vec<Decision> {
    let mut similar: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for &(a, b, similarity) in pairs.iter().filter(|(a, b, _)| a != b) {
        similar.entry(a).or_default().push((b, similarity));
        similar.entry(b).or_default().push((a, similarity));
    }
    let documents = priority
        .iter()
        .map(|&document| document + 1)
        .max()
        .unwrap_or(0);
    let mut rank = vec![usize::MAX; documents];
    let mut decisions = vec![Decision::Survivor; documents];
    for (place, &document) in priority.iter().enumerate() {
        let neighbours = similar.get(&document).map_or(&[][..], Vec::as_slice);
        let kept = neighbours
            .iter()
            .filter(|(other, _)| rank.get(*other).is_some_and(|&r| r < place));
        let best = kept.max_by(|a, b| a.1.total_cmp(&b.1).then(rank[b.0].cmp(&rank[a.0])));
        match best {
            Some(&(survivor, similarity)) => {
                decisions[document] = Decision::Removed {
                    survivor,
                    similarity,
                };
            }
            // Only survivors get a rank: they alone can be joined.
            None => rank[document] = place,
        }
    }
    decisions
}

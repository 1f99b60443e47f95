//! Survivors: which documents are kept.
//!
//! The last step of the way of the data. [`survivors`] is the slow and obvious definition; [`StarClusters`] decides the same
//! from pairs that stream by in order, and the batch job has a version of its own that verifies as it goes. Both are tested
//! against it. [`Components`] follows chains, for those who ask for that.

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
/// their similarity, in any order. Decisions stand at the document's index, up to the largest in
/// `priority`; one below it that is not listed survives without being anyone's survivor. A pair of
/// a document with itself, or beyond the documents, means nothing. Time: (documents + pairs) times
/// a logarithm. Memory is that of the largest index.
///
/// ```
/// use lookalike::{Decision, survivors};
/// // A chain 0 - 1 - 2: 1 goes to 0, but 2 is not similar to 0 and stays.
/// let decisions = survivors(&[0, 1, 2], &[(0, 1, 0.9), (1, 2, 0.9)]);
/// assert_eq!(decisions[1], Decision::Removed { survivor: 0, similarity: 0.9 });
/// assert_eq!(decisions[2], Decision::Survivor);
/// ```
///
/// # Panics
/// If there is no memory for that many decisions.
#[must_use]
pub fn survivors(priority: &[usize], pairs: &[(usize, usize, f64)]) -> Vec<Decision> {
    let mut similar: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for &(a, b, similarity) in pairs.iter().filter(|(a, b, _)| a != b) {
        similar.entry(a).or_default().push((b, similarity));
        similar.entry(b).or_default().push((a, similarity));
    }
    let documents = priority
        .iter()
        .map(|&document| document.saturating_add(1))
        .max()
        .unwrap_or(0);
    let mut rank = vec![usize::MAX; documents];
    let mut decisions = vec![Decision::Survivor; documents];
    for (place, &document) in priority.iter().enumerate() {
        let neighbours = similar.get(&document).map_or(&[][..], Vec::as_slice);
        let kept = neighbours
            .iter()
            // Others have the largest rank: those that were removed, and those whose turn comes later.
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

/// The decisions of [`survivors`] over fingerprints, from pairs in the order of their less wanted document.
///
/// Documents are called by their places in the order of priority, from 0; the closer of two pairs is that of the smaller
/// distance. Memory is five bytes a document, and nothing of the pairs, which may stream from disk.
///
/// ```
/// use lookalike::cluster::StarClusters;
/// // A chain 0 - 1 - 2: 1 goes to 0, but 2 is not near 0 and stays.
/// let mut stars = StarClusters::new(3);
/// stars.pair(1, 0, 2);
/// stars.pair(2, 1, 2);
/// assert_eq!(stars.survivor(1), Some((0, 2)));
/// assert_eq!(stars.survivor(2), None);
/// ```
#[derive(Clone, Debug)]
pub struct StarClusters {
    /// Place of the survivor of each document; its own place if it survives.
    survivors: Vec<u32>,
    /// Distance to it.
    distances: Vec<u8>,
    latest: u32,
}

impl StarClusters {
    /// So many documents, none of which has been compared.
    #[must_use]
    pub fn new(documents: u32) -> Self {
        Self {
            survivors: (0..documents).collect(),
            distances: vec![0; documents as usize],
            latest: 0,
        }
    }

    /// Takes a pair of documents, the less wanted one first.
    ///
    /// # Panics
    /// When `later` is not the less wanted one, no document at all, or less than that of a pair before: what a decision rests on
    /// must have been decided.
    pub fn pair(&mut self, later: u32, earlier: u32, distance: u8) {
        // Refused loudly: out of order, a document could be removed for one that is removed later, and no
        // survivor would be left of the two.
        assert!(
            earlier < later && self.latest <= later,
            "pairs come in order"
        );
        self.latest = later;
        // Decided by now: all pairs of `earlier` as the later document have come before.
        if self.survivors[earlier as usize] != earlier {
            return;
        }
        let at = later as usize;
        // A document counts as its own survivor until its first pair.
        let is_first = self.survivors[at] == later;
        // Of two survivors at one distance, the more wanted has the smaller place.
        if is_first || (distance, earlier) < (self.distances[at], self.survivors[at]) {
            (self.survivors[at], self.distances[at]) = (earlier, distance);
        }
    }

    /// The survivor that a document is removed for, and their distance; none if it survives itself.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    pub fn survivor(&self, document: u32) -> Option<(u32, u8)> {
        let at = document as usize;
        (self.survivors[at] != document).then(|| (self.survivors[at], self.distances[at]))
    }
}

/// Connected components of documents, which are called by their numbers from 0.
///
/// Members of a component need not be similar to each other: a chain of small changes may lead from anywhere to anywhere.
///
/// ```
/// use lookalike::cluster::Components;
/// let mut components = Components::new(4);
/// components.join(3, 2);
/// components.join(2, 1);
/// assert_eq!([0, 1, 2, 3].map(|document| components.first(document)), [0, 1, 1, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Components {
    /// An earlier member of the same component, or the document itself.
    parents: Vec<u32>,
}

impl Components {
    /// So many documents, each a component by itself.
    #[must_use]
    pub fn new(documents: u32) -> Self {
        Self {
            parents: (0..documents).collect(),
        }
    }

    /// The first member of a document's component.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn first(&mut self, mut document: u32) -> u32 {
        while self.parents[document as usize] != document {
            let parent = self.parents[document as usize];
            // Path halving (Tarjan, van Leeuwen 1984): each look-up shortens the way for the next.
            self.parents[document as usize] = self.parents[parent as usize];
            document = parent;
        }
        document
    }

    /// Makes one component of those of two documents; false if they are one already.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.first(a), self.first(b));
        // The smaller root stays a root, so that a component is called by its first member in whatever order
        // pairs come.
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }
}

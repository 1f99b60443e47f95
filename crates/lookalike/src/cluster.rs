//! Survivors: the documents that are kept.
//!
//! The last step of the pipeline. [`survivors`] is the slow and obvious definition. [`StarClusters`] makes the same decisions from a stream of pairs
//! in order, and the batch job has its own version, which verifies pairs as it goes; both are tested against the definition. [`Components`] follows
//! chains, for callers that want them.

use std::collections::BTreeMap;

/// Decision about a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// The document is kept.
    Survivor,
    /// The document is removed because it is similar to a survivor.
    Removed {
        /// Index of that survivor.
        survivor: usize,
        /// Verified similarity to the survivor.
        similarity: f64,
    },
}

/// Decides for each document whether it is kept. Documents are taken in order of priority. One that is similar to an earlier survivor is removed for
/// the most similar of them (among equals, the one of highest priority); any other document survives. So every removed document is similar to one
/// that is kept, decisions do not drift along chains, and the result depends only on the priorities and the pairs.
///
/// `priority` lists document indexes, the most wanted first. `pairs` lists similar documents with their similarity, in any order. The result is
/// indexed by document, up to the largest index in `priority`; a document below it that is not listed survives, but no other document is removed for
/// it. Pairs of a document with itself or with an index beyond the documents are ignored. Time: (documents + pairs) times a logarithm. Memory grows
/// with the largest index and the number of pairs.
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
/// Panics if memory for that many decisions cannot be allocated.
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
            // All other documents still have the largest rank: those that were removed, and those whose turn comes later.
            .filter(|(other, _)| rank.get(*other).is_some_and(|&r| r < place));
        let best = kept.max_by(|a, b| a.1.total_cmp(&b.1).then(rank[b.0].cmp(&rank[a.0])));
        match best {
            Some(&(survivor, similarity)) => {
                decisions[document] = Decision::Removed {
                    survivor,
                    similarity,
                };
            }
            // Only survivors get a rank, so only they can be joined.
            None => rank[document] = place,
        }
    }
    decisions
}

/// Decisions of [`survivors`] over fingerprints, from pairs that arrive in the order of their less wanted document.
///
/// Documents are numbered from 0 in order of priority. A smaller distance counts as a larger similarity. Memory is five bytes per document; the pairs
/// are not stored, so they may stream from disk.
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
    /// Survivor of each document; its own number if it survives.
    survivors: Vec<u32>,
    /// Distance of each document to its survivor.
    distances: Vec<u8>,
    latest: u32,
}

impl StarClusters {
    /// Starts with `documents` documents, none of which has been compared.
    #[must_use]
    pub fn new(documents: u32) -> Self {
        Self {
            survivors: (0..documents).collect(),
            distances: vec![0; documents as usize],
            latest: 0,
        }
    }

    /// Adds a pair of documents, the less wanted one first.
    ///
    /// # Panics
    /// Panics if `later` is not the less wanted document, is not a document, or is less than in an earlier pair: the decisions that this pair depends
    /// on must be final.
    pub fn pair(&mut self, later: u32, earlier: u32, distance: u8) {
        // Always checked: with pairs out of order, a document could be removed for one that is itself removed later, and neither of the two would
        // survive.
        assert!(
            earlier < later && self.latest <= later,
            "pairs come in order"
        );
        self.latest = later;
        // All pairs with `earlier` as the less wanted document have already come, so it is decided.
        if self.survivors[earlier as usize] != earlier {
            return;
        }
        let at = later as usize;
        // A document counts as its own survivor until its first pair.
        let is_first = self.survivors[at] == later;
        // Of two survivors at the same distance, the more wanted one has the smaller number.
        if is_first || (distance, earlier) < (self.distances[at], self.survivors[at]) {
            (self.survivors[at], self.distances[at]) = (earlier, distance);
        }
    }

    /// Returns the survivor that a document is removed for and their distance, or `None` if the document survives.
    ///
    /// # Panics
    /// Panics if there is no such document.
    #[must_use]
    pub fn survivor(&self, document: u32) -> Option<(u32, u8)> {
        let at = document as usize;
        (self.survivors[at] != document).then(|| (self.survivors[at], self.distances[at]))
    }
}

/// Connected components of documents, which are numbered from 0.
///
/// Members of a component need not be similar to each other: a chain of small changes can connect very different documents.
///
/// ```
/// use lookalike::cluster::Components;
/// let mut components = Components::new(4);
/// components.join(3, 2);
/// components.join(2, 1);
/// assert_eq!([0, 1, 2, 3].map(|document| components.first(document)), [0, 1, 1, 1]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Components {
    /// An earlier member of the same component, or the document itself.
    parents: Vec<u32>,
}

impl Components {
    /// Starts with `documents` documents, each a component by itself.
    #[must_use]
    pub fn new(documents: u32) -> Self {
        Self {
            parents: (0..documents).collect(),
        }
    }

    /// Returns the first member of a document's component.
    ///
    /// # Panics
    /// Panics if there is no such document.
    #[inline]
    pub fn first(&mut self, mut document: u32) -> u32 {
        while self.parents[document as usize] != document {
            let parent = self.parents[document as usize];
            // Path halving (Tarjan, van Leeuwen 1984): each lookup shortens the path for the next.
            self.parents[document as usize] = self.parents[parent as usize];
            document = parent;
        }
        document
    }

    /// Joins the components of two documents. Returns false if they are already in the same one.
    ///
    /// # Panics
    /// Panics if there is no such document.
    #[inline]
    pub fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.first(a), self.first(b));
        // The smaller root stays the root, so that a component is named by its first member, whatever the order of the pairs.
        self.parents[a.max(b) as usize] = a.min(b);
        a != b
    }
}

//! Sketches that keep some of the features (Manku et al. 2007, section 5.4). The rules look at the features alone, so documents that share text share
//! selected features.

/// Selects Broder's mod-p shingles: the features that are zero modulo p, ascending and distinct.
///
/// On average one in p is kept. A text of few features may keep none, and is then never found. Two sets of resemblance J keep sets whose resemblance
/// is J in expectation.
///
/// ```
/// assert_eq!(lookalike::sketch::mod_p(&[3, 8, 12, 13], 4), [8, 12]);
/// ```
#[must_use]
pub fn mod_p(set: &[u64], modulus: u64) -> Vec<u64> {
    let modulus = modulus.max(1);
    set.iter()
        .copied()
        .filter(|feature| feature.is_multiple_of(modulus))
        .collect()
}

/// Selects features by winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003): the smallest of each `window` consecutive features, the rightmost of
/// equal ones. Returns them distinct and ascending.
///
/// Two texts are guaranteed to share a selected feature if they have `window` consecutive features in common; if features are shingles of w words,
/// every match of window + w - 1 words is found. A text of fewer features than a window selects its smallest. Expected density 2 / (window + 1).
///
/// ```
/// use lookalike::sketch::winnow;
/// // The example of the source, section 3: windows of 4 over these hashes.
/// let hashes = [77, 74, 42, 17, 98, 50, 17, 98, 8, 88, 67, 39, 77, 74, 42, 17, 98];
/// assert_eq!(winnow(&hashes, 4), [8, 17, 39]);
/// ```
#[must_use]
pub fn winnow(in_order: &[u64], window: usize) -> Vec<u64> {
    let window = window.max(1);
    let mut kept = Vec::new();
    // Candidates for the minimum, in order: the positions of features that are smaller than all after them.
    let mut candidates = std::collections::VecDeque::new();
    for (at, &feature) in in_order.iter().enumerate() {
        // Each position enters once and leaves once, so the time is linear, whatever the window.
        while candidates
            .back()
            .is_some_and(|&back: &usize| in_order[back] >= feature)
        {
            candidates.pop_back();
        }
        candidates.push_back(at);
        // The front leaves when the window has moved past it.
        if candidates
            .front()
            .is_some_and(|&front| at - front >= window)
        {
            candidates.pop_front();
        }
        // A text shorter than a window counts as one window.
        let complete = at + 1 >= window || at + 1 == in_order.len();
        let least = candidates.front().filter(|_| complete);
        kept.extend(least.map(|&front| in_order[front]));
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

//! Sketches that keep some of the features (Manku et al. 2007, section 5.4), by rules that look at the features alone, so that
//! documents which share text share selected features.

/// Broder's mod-p shingles: the features that are zero modulo p, ascending and distinct.
///
/// On average one in p is kept; a text of few features may keep none, and is then found by
/// nothing. Two sets of resemblance J keep sets whose resemblance is J in expectation.
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

/// Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003): the least feature of each window of
/// `window` in a row, the rightmost of equal ones; distinct and ascending.
///
/// The guarantee: two texts with `window` features in a row in common share a selected one, that
/// is every match of window + w - 1 words is found where features are shingles of w words. A text
/// of fewer features than a window has its least one. Expected density 2 / (window + 1).
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
    // Ascending candidates for the minimum: positions of features that are below all after them.
    let mut candidates = std::collections::VecDeque::new();
    for (at, &feature) in in_order.iter().enumerate() {
        // Each position enters once and leaves once: linear, whatever the window.
        while candidates
            .back()
            .is_some_and(|&back: &usize| in_order[back] >= feature)
        {
            candidates.pop_back();
        }
        candidates.push_back(at);
        // The least of a window that has moved beyond it is none any more.
        if candidates
            .front()
            .is_some_and(|&front| front + window <= at)
        {
            candidates.pop_front();
        }
        // A text that is shorter than a window counts as one.
        let complete = at + 1 >= window || at + 1 == in_order.len();
        let least = candidates.front().filter(|_| complete);
        kept.extend(least.map(|&front| in_order[front]));
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

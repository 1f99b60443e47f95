//! Ordering of results by how much is new in each (Shivakumar and Garcia-Molina 1998, section 4).

use std::mem::replace;

/// A document of an order by novelty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NovelDocument {
    /// Number of the document in the list that was given, from 0.
    pub number: usize,
    /// Number of its chunks that no document before it has.
    pub new_chunks: usize,
}

/// Bytes of memory that [`order_by_novelty`] takes for each chunk of each document, besides the sets.
pub const NOVELTY_BYTES: u64 = 17;

/// Orders documents, given as their sets of chunks. The first document stays first; the next one is always the one with the largest share of chunks
/// that no document before it has, the earlier one if shares are equal.
///
/// O(c log c) time in the total number of chunks c, and O(n^2) in the number of documents n; [`NOVELTY_BYTES`] bytes per chunk.
///
/// ```
/// use lookalike::chunk::order_by_novelty;
/// let order = order_by_novelty(&[vec![1, 2, 3], vec![1, 2], vec![3, 4]]);
/// let numbers: Vec<usize> = order.iter().map(|document| document.number).collect();
/// assert_eq!(numbers, [0, 2, 1]);
/// assert_eq!(order[1].new_chunks, 1);
/// ```
pub fn order_by_novelty(sets: &[impl AsRef<[u64]>]) -> Vec<NovelDocument> {
    let chunks = sets.iter().map(|set| set.as_ref().len()).sum();
    // At once: while it grows, a vector takes more.
    let mut holders: Vec<(u64, usize)> = Vec::with_capacity(chunks);
    for (number, set) in sets.iter().enumerate() {
        holders.extend(set.as_ref().iter().map(|&chunk| (chunk, number)));
    }
    holders.sort_unstable();
    // For each chunk, at its first holder.
    let mut is_known = vec![false; holders.len()];
    // The counts are updated rather than recomputed: each chunk is subtracted from each of its holders once, whatever the number of rounds.
    let mut new_chunks: Vec<usize> = sets.iter().map(|set| set.as_ref().len()).collect();
    let mut waiting: Vec<usize> = (0..sets.len()).collect();
    let mut order = Vec::with_capacity(sets.len());
    while !waiting.is_empty() {
        let place = match order.is_empty() {
            true => 0,
            false => newest(&waiting, &new_chunks, sets),
        };
        let number = waiting.remove(place);
        order.push(NovelDocument {
            number,
            new_chunks: new_chunks[number],
        });
        for &chunk in sets[number].as_ref() {
            let first = holders.partition_point(|holder| holder.0 < chunk);
            // Only the first time, so that each holder loses a chunk once.
            if !replace(&mut is_known[first], true) {
                let own = holders[first..].iter();
                let own = own.take_while(|holder| holder.0 == chunk);
                own.for_each(|&(_, holder)| new_chunks[holder] -= 1);
            }
        }
    }
    order
}

/// Returns the index of the waiting document with the largest share of new chunks; the first of several.
fn newest(waiting: &[usize], new_chunks: &[usize], sets: &[impl AsRef<[u64]>]) -> usize {
    let share = |place: usize| {
        let number = waiting[place];
        new_chunks[number] as f64 / sets[number].as_ref().len().max(1) as f64
    };
    let places = 1..waiting.len();
    places.fold(0, |best, place| match share(place) > share(best) {
        true => place,
        false => best,
    })
}

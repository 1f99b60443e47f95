//! The documents of each code: equal codes are a single entry in the tables, and their documents are listed here.
//!
//! Documents are listed by the rank of their code, then by number. Memory for each document: a packed number and a little more than a bit.

use crate::bits::{PackedNumbers, RankedBits};

/// Passes all documents in ascending order to its argument, with the ranks of their codes.
pub(super) type RankReplay<'a> = dyn FnMut(&mut dyn FnMut(u32, usize)) + 'a;

/// Lists of documents by the rank of their code.
#[derive(Clone, Debug)]
pub(crate) struct CodeGroups {
    /// Bits by position in the list; a bit is set where the documents of the next code begin.
    starts: RankedBits,
    documents: PackedNumbers,
    listed: usize,
}

impl CodeGroups {
    /// Builds the lists from documents in ascending order, given with the ranks of their codes.
    pub(crate) fn build(
        ranks: usize,
        listed: usize,
        end: usize,
        replay: &mut RankReplay<'_>,
    ) -> Self {
        // A counting sort: the counts of each rank become starts, and starts advance as documents are placed.
        let mut next = vec![0_u32; ranks];
        replay(&mut |_, rank| next[rank] += 1);
        let mut starts = vec![0_u64; listed.div_ceil(64)];
        let mut at = 0;
        for slot in &mut next {
            if *slot > 0 {
                // A rank without documents would have no start, but there are none: the tables hold the codes of exactly these documents.
                starts[at as usize / 64] |= 1 << (at % 64);
            }
            at += std::mem::replace(slot, at);
        }
        let mut documents = PackedNumbers::zeros(listed, PackedNumbers::bits_below(end));
        replay(&mut |document, rank| {
            documents.set(next[rank] as usize, document);
            next[rank] += 1;
        });
        Self {
            starts: RankedBits::new(starts),
            documents,
            listed,
        }
    }

    /// Creates the lists from their stored words. Returns `None` if their sizes are inconsistent.
    pub(crate) fn stored(
        starts: Vec<u64>,
        documents: Vec<u64>,
        listed: usize,
        end: usize,
    ) -> Option<Self> {
        let bits = PackedNumbers::bits_below(end);
        // The numbers themselves are not checked here: callers check that a document exists when they look it up (`is_present`).
        let fits = starts.len() == listed.div_ceil(64)
            && documents.len() == PackedNumbers::words_of(listed, bits);
        fits.then(|| Self {
            starts: RankedBits::new(starts),
            documents: PackedNumbers::from_words(documents, bits),
            listed,
        })
    }

    /// Returns the number of codes.
    pub(crate) fn ranks(&self) -> usize {
        self.starts.ones() as usize
    }

    /// Returns the words to store: starts, then documents.
    pub(crate) fn words(&self) -> [&[u64]; 2] {
        [self.starts.words(), self.documents.words()]
    }

    /// Returns the ranks of codes with more than `most` documents.
    pub(crate) fn longer_than(&self, most: usize) -> impl Iterator<Item = usize> + '_ {
        let end = |start| self.starts.next_one(start).unwrap_or(self.listed);
        let starts = std::iter::successors(Some(0), move |&start| Some(end(start)));
        let starts = starts.take_while(|&start| start < self.listed);
        let long = starts
            .enumerate()
            .filter(move |&(_, start)| end(start) - start > most);
        long.map(|(rank, _)| rank)
    }

    /// Returns the documents of the code with a rank, in ascending order.
    pub(crate) fn of(&self, rank: usize) -> impl Iterator<Item = u32> + '_ {
        let start = self.starts.select(rank as u32).unwrap_or(self.listed);
        let end = self.starts.next_one(start).unwrap_or(self.listed);
        // There are no documents after the last one, so limit the end.
        (start..end.min(self.listed)).map(|at| self.documents.get(at))
    }
}

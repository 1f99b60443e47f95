//! Documents of each code: equal codes are one entry of the tables, with their documents beside.
//!
//! Documents are listed by the rank of their code, then by number. Memory: a packed number and little more than a bit
//! a document.

use crate::bits::{PackedNumbers, RankedBits};

/// Hands on all documents, ascending, with the ranks of their codes.
pub(super) type RankReplay<'a> = dyn FnMut(&mut dyn FnMut(u32, usize)) + 'a;

/// Documents by the rank of their code.
#[derive(Clone, Debug)]
pub(crate) struct CodeGroups {
    /// Set where the documents of another code begin.
    starts: RankedBits,
    documents: PackedNumbers,
    listed: usize,
}

impl CodeGroups {
    /// Lists documents, given in ascending order with the ranks of their codes.
    pub(crate) fn build(
        ranks: usize,
        listed: usize,
        end: usize,
        replay: &mut RankReplay<'_>,
    ) -> Self {
        // A counting sort: counts of each rank become starts, and starts advance as documents are placed.
        let mut next = vec![0_u32; ranks];
        replay(&mut |_, rank| next[rank] += 1);
        let mut starts = vec![0_u64; listed.div_ceil(64)];
        let mut at = 0;
        for slot in &mut next {
            if *slot > 0 {
                // Ranks without documents have no start, and none occurs: the tables hold the codes of exactly
                // these documents.
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

    /// As they were stored; `None` when the sizes contradict each other.
    pub(crate) fn stored(
        starts: Vec<u64>,
        documents: Vec<u64>,
        listed: usize,
        end: usize,
    ) -> Option<Self> {
        let bits = PackedNumbers::bits_below(end);
        // Numbers themselves are not checked here: whoever looks a document up asks whether there is one
        // (`is_there`).
        let fits = starts.len() == listed.div_ceil(64)
            && documents.len() == PackedNumbers::words_of(listed, bits);
        fits.then(|| Self {
            starts: RankedBits::new(starts),
            documents: PackedNumbers::from_words(documents, bits),
            listed,
        })
    }

    /// Number of codes.
    pub(crate) fn ranks(&self) -> usize {
        self.starts.ones() as usize
    }

    /// The stored words: starts and documents.
    pub(crate) fn words(&self) -> [&[u64]; 2] {
        [self.starts.words(), self.documents.words()]
    }

    /// The documents of the code of a rank, ascending.
    pub(crate) fn of(&self, rank: usize) -> impl Iterator<Item = u32> + '_ {
        let start = self.starts.select(rank as u32).unwrap_or(self.listed);
        let end = self.starts.next_one(start).unwrap_or(self.listed);
        // Bits behind the last document are none.
        (start..end.min(self.listed)).map(|at| self.documents.get(at))
    }
}

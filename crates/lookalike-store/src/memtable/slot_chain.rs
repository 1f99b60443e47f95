//! Lists of the slots of one sketch or text, from the oldest to the newest: singly linked chains, in which a slot takes the same memory
//! in a chain of a million as in one of two; long ones have an index if categories or lengths decide what is compared.

use crate::pair_rule::{PairFilter, PairTraits};
use crate::trait_index::{DOCUMENT_BYTES, LINEAR_MAX, TraitIndex};

/// Marks the absence of a slot.
const END: u32 = u32::MAX;

/// The slots of a sketch or text.
#[derive(Debug)]
pub(super) enum SlotChain {
    Linked { first: u32, last: u32, length: u32 },
    Indexed(Box<TraitIndex>),
}

/// The successor of each slot in its chain.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotLinks(Vec<u32>);

impl SlotLinks {
    /// Adds a link for one more slot.
    pub(super) fn grow(&mut self) {
        self.0.push(END);
    }

    fn next(&self, slot: u32) -> u32 {
        self.0[slot as usize]
    }

    /// Returns the slots of a chain from `first` on.
    fn from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |slot: u32| (slot != END).then_some(slot);
        std::iter::successors(some(first), move |&slot| some(self.next(slot)))
    }
}

impl Default for SlotChain {
    fn default() -> Self {
        Self::Linked {
            first: END,
            last: END,
            length: 0,
        }
    }
}

impl SlotChain {
    /// Appends a slot, which must be the newest.
    pub(super) fn push(&mut self, slot: u32, links: &mut SlotLinks, traits: PairTraits) {
        match self {
            // Twelve bytes for each chain and four for each slot: most codes have a single document, and a `Vec` for each would take 24
            // bytes and an allocation.
            Self::Linked {
                first,
                last,
                length,
            } => {
                match std::mem::replace(last, slot) {
                    END => *first = slot,
                    last => links.0[last as usize] = slot,
                }
                *length += 1;
            }
            Self::Indexed(index) => index.push(slot, traits),
        }
    }

    /// Indexes the slots if they are many. Returns the bytes that the index takes.
    pub(super) fn index(&mut self, links: &SlotLinks, traits: impl Fn(u32) -> PairTraits) -> usize {
        match self {
            Self::Linked { first, length, .. } if *length as usize > LINEAR_MAX => {
                let index = TraitIndex::new(links.from(*first).collect(), traits);
                let bytes = index.bytes();
                *self = Self::Indexed(Box::new(index));
                bytes
            }
            Self::Linked { .. } => 0,
            // The slot that was just pushed.
            Self::Indexed(_) => DOCUMENT_BYTES,
        }
    }

    /// Removes a dead slot, or leaves it until all older slots are dead, too, so that lookups do not visit it again.
    pub(super) fn remove(
        &mut self,
        slot: u32,
        links: &SlotLinks,
        traits: PairTraits,
        is_dead: impl Fn(u32) -> bool,
    ) {
        match self {
            Self::Linked {
                first,
                last,
                length,
            } => {
                while *first != END && is_dead(*first) {
                    *first = links.next(*first);
                    *length -= 1;
                }
                if *first == END {
                    *last = END;
                }
            }
            Self::Indexed(index) => index.remove(slot, traits, is_dead),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Linked { first, .. } => *first == END,
            Self::Indexed(index) => index.places().is_empty(),
        }
    }

    /// Returns the slots that a filter admits, from the oldest to the newest. `traits` returns the traits of the document in a slot.
    pub(super) fn admitted<'a>(
        &'a self,
        links: &'a SlotLinks,
        filter: PairFilter,
        traits: impl Fn(u32) -> PairTraits + 'a,
    ) -> Box<dyn Iterator<Item = u32> + 'a> {
        match self {
            Self::Indexed(index) if filter.is_open() => Box::new(index.places().iter().copied()),
            Self::Indexed(index) => Box::new(index.admitted(filter, traits)),
            Self::Linked { first, .. } => {
                let slots = links.from(*first);
                Box::new(slots.filter(move |&slot| filter.is_open() || filter.admits(traits(slot))))
            }
        }
    }
}

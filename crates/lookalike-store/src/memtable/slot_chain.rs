//! Singly linked chains of slots, from the oldest to the newest: a slot takes the same memory in a chain of a million as in one of two.

/// Marks the absence of a slot.
const END: u32 = u32::MAX;

/// The first and last slot of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotChain {
    first: u32,
    last: u32,
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
}

impl Default for SlotChain {
    fn default() -> Self {
        Self {
            first: END,
            last: END,
        }
    }
}

impl SlotChain {
    /// Appends a slot, which must be the newest.
    pub(super) fn push(&mut self, slot: u32, links: &mut SlotLinks) {
        // Eight bytes for each chain and four for each slot: most codes have a single document, and a `Vec` for each would take 24 bytes
        // and an allocation.
        match std::mem::replace(&mut self.last, slot) {
            END => self.first = slot,
            last => links.0[last as usize] = slot,
        }
    }

    /// Removes the oldest slots as long as they are dead, so that lookups do not visit them again.
    pub(super) fn drop_leading(&mut self, links: &SlotLinks, is_dead: impl Fn(u32) -> bool) {
        while self.first != END && is_dead(self.first) {
            self.first = links.next(self.first);
        }
        if self.first == END {
            self.last = END;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == END
    }

    /// Returns the slots, from the oldest to the newest.
    pub(super) fn slots(self, links: &SlotLinks) -> impl Iterator<Item = u32> + '_ {
        let some = |slot: u32| (slot != END).then_some(slot);
        std::iter::successors(some(self.first), move |&slot| some(links.next(slot)))
    }
}

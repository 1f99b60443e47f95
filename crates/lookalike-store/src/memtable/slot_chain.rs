//! Slots with something in common, from the oldest to the newest: linked, so that one of a million takes no more room than one
//! of two.

/// No slot.
const END: u32 = u32::MAX;

/// First and last slot of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotChain {
    first: u32,
    last: u32,
}

/// The next slot of each slot in its chain.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotLinks(Vec<u32>);

impl SlotLinks {
    /// Makes room for one slot more.
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
    /// Appends the newest slot.
    pub(super) fn push(&mut self, slot: u32, links: &mut SlotLinks) {
        // Eight bytes a chain and four a slot: most codes have one document, and a `Vec` for each would take 24
        // bytes and an allocation.
        match std::mem::replace(&mut self.last, slot) {
            END => self.first = slot,
            last => links.0[last as usize] = slot,
        }
    }

    /// Leaves out the oldest slots as long as they are dead, so that no lookup meets them again.
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

    /// The slots, from the oldest to the newest.
    pub(super) fn slots(self, links: &SlotLinks) -> impl Iterator<Item = u32> + '_ {
        let some = |slot: u32| (slot != END).then_some(slot);
        std::iter::successors(some(self.first), move |&slot| some(links.next(slot)))
    }
}

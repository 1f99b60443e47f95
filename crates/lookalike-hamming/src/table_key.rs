//! One table of a design: the bits that are its key, and how many of them may be wrong.

/// One table of a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableKey {
    /// The bits of the code that form the table's key.
    pub mask: u128,
    /// Number of these bits that may be wrong: the table is probed at every key within this distance.
    pub budget: u32,
}

impl TableKey {
    /// Returns the length of the key in bits, the p of the paper (Manku et al. 2007, section 3.1).
    pub fn prefix_bits(&self) -> u32 {
        self.mask.count_ones()
    }

    /// Returns true if the probes of this table find a code that differs in the bits of `errors`.
    pub fn detects(&self, errors: u128) -> bool {
        (self.mask & errors).count_ones() <= self.budget
    }
}

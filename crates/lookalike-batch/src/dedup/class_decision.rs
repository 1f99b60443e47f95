//! Decision on the documents of one text: the survivors or the kernel make it, and the decision on each document follows from it.

/// Decision on a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClassDecision {
    /// It is kept.
    Survives,
    /// It is similar to a survivor.
    Joins {
        /// Rank of the survivor.
        survivor: u32,
        /// Their resemblance.
        similarity: f64,
        /// That of all that a reader sees, where that is not what was compared.
        visible: Option<f64>,
    },
}

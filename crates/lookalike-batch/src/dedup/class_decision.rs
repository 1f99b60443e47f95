//! Decision on the documents of one text. The survivors or the kernel make it, and the decision on each document follows from it.

/// Decision on a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClassDecision {
    /// The class is kept.
    Survives,
    /// The class is similar to a survivor and removed for it.
    Joins {
        /// Rank of the survivor.
        survivor: u32,
        /// Their resemblance.
        similarity: f64,
        /// The resemblance of their visible texts, if another text was compared.
        visible: Option<f64>,
    },
}

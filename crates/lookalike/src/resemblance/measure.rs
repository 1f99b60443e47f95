//! The measures of two sets by name.

use super::resemblance_of;
use crate::scheme::option::option_words;

/// Ratio of two sets: what they share, over what.
///
/// ```
/// use lookalike::resemblance::SetMeasure;
/// let coverage: SetMeasure = "coverage".parse()?;
/// assert_eq!(coverage.of(3, 4, 6), 0.5);
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SetMeasure {
    /// Shared features over all.
    #[default]
    Resemblance,
    /// Shared features over those of the smaller set: is one in the other?
    Containment,
    /// Shared features over those of the larger set: how much of it does the smaller one cover?
    Coverage,
}

impl SetMeasure {
    /// The measure of sets of these sizes that share so many features, in [0, 1]; 0 if either is
    /// empty.
    #[must_use]
    pub fn of(self, shared: usize, len_a: usize, len_b: usize) -> f64 {
        if len_a == 0 || len_b == 0 {
            return 0.0;
        }
        match self {
            Self::Resemblance => resemblance_of(shared, len_a, len_b),
            Self::Containment => shared as f64 / len_a.min(len_b) as f64,
            Self::Coverage => shared as f64 / len_a.max(len_b) as f64,
        }
    }
}

option_words!(
    SetMeasure,
    "measure",
    "resemblance, containment or coverage",
    Resemblance = "resemblance",
    Containment = "containment",
    Coverage = "coverage",
);

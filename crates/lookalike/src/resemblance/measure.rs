//! Measures of two sets, by name.

use super::resemblance_of;
use crate::scheme::parse_error::option_from_str;

crate::words! {
    /// Measure of two sets: the features that they share, divided by a number of features that depends on the measure.
    ///
    /// ```
    /// use lookalike::resemblance::SetMeasure;
    /// let coverage: SetMeasure = "coverage".parse()?;
    /// assert_eq!(coverage.of(3, 4, 6), 0.5);
    /// # Ok::<(), lookalike::scheme::ParseOptionError>(())
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum SetMeasure {
        /// Shared features over all features.
        #[default]
        Resemblance = "resemblance",
        /// Shared features over those of the smaller set: how much of it is in the larger one.
        Containment = "containment",
        /// Shared features over those of the larger set: how much of it the smaller one covers.
        Coverage = "coverage",
    }
}

impl SetMeasure {
    /// Computes the measure of sets of these sizes that share `shared` features, in [0, 1]; 0 if either is empty.
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

option_from_str!(
    SetMeasure,
    "measure",
    "resemblance, containment or coverage"
);

//! The measures of two sets by name.

use std::fmt;
use std::str::FromStr;

use super::resemblance_of;
use crate::scheme::ParseOptionError;

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
    /// Every measure.
    pub const ALL: [Self; 3] = [Self::Resemblance, Self::Containment, Self::Coverage];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resemblance => "resemblance",
            Self::Containment => "containment",
            Self::Coverage => "coverage",
        }
    }

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

impl fmt::Display for SetMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SetMeasure {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let known = Self::ALL.into_iter().find(|measure| measure.name() == text);
        known.ok_or_else(|| {
            ParseOptionError::new("measure", "resemblance, containment or coverage", text)
        })
    }
}

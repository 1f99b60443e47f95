//! The rounding of scores and shares in answers.

/// Rounds to six digits: more than a sketch can tell, and the same on all machines.
pub(crate) fn rounded(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}

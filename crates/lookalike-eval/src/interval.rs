//! Shares and counts with confidence limits.

use serde::Serialize;

/// The 0.975 quantile of the normal distribution, for two-sided 95 % limits.
const Z: f64 = 1.959_964;

/// Share of successes with Wilson's 95 % limits (E. B. Wilson, JASA 1927).
///
/// The limits hold for independent trials. Pairs of one family of documents are not independent; for these [`ShareEstimate::clustered`] widens the
/// limits by the measured design effect.
///
/// ```
/// use lookalike_eval::ShareEstimate;
///
/// let found = ShareEstimate::of(8, 10);
/// assert_eq!(format!("{} [{:.2}, {:.2}]", found.value, found.low, found.high), "0.8 [0.49, 0.94]");
/// // A group of ten trials that stand or fall together tells no more than one.
/// let groups = [(10, 10), (10, 10), (0, 10), (10, 10), (10, 10)];
/// assert!(ShareEstimate::clustered(&groups).low < ShareEstimate::of(40, 50).low);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShareEstimate {
    /// The share, in [0, 1]; 0 if there are no trials.
    pub value: f64,
    /// Lower confidence limit.
    pub low: f64,
    /// Upper confidence limit.
    pub high: f64,
}

impl ShareEstimate {
    /// Estimates the share of `successes` among `trials`. Without trials the limits are 0 and 1.
    ///
    /// # Panics
    /// If there are more successes than trials.
    #[must_use]
    pub fn of(successes: u64, trials: u64) -> Self {
        Self::with_effective(successes as f64, trials as f64, trials as f64)
    }

    /// Returns the share `some` of `all` when it is known exactly, so both limits equal it. If `all` is 0, the limits are 0 and 1.
    #[must_use]
    pub fn exact(some: u64, all: u64) -> Self {
        match all {
            0 => Self::of(0, 0),
            _ => {
                let value = some as f64 / all as f64;
                let (low, high) = (value, value);
                Self { value, low, high }
            }
        }
    }

    /// Estimates a share from trials that come in groups, given as `(successes, trials)`. If the design effect is above 1, the number of trials is
    /// divided by it. The design effect is the variance of the ratio estimate over groups, divided by that of independent trials (Kish, Survey
    /// Sampling, 1965). Of few groups that variance is itself uncertain, so the effect grows by the squared ratio of Student's quantile to
    /// the normal one. Its maximum is the effect of trials that stand or fall with their group.
    #[must_use]
    pub fn clustered(groups: &[(u64, u64)]) -> Self {
        let successes: u64 = groups.iter().map(|group| group.0).sum();
        let trials: u64 = groups.iter().map(|group| group.1).sum();
        let (share, all) = (successes as f64 / trials.max(1) as f64, trials as f64);
        // The variance of the number of successes if all trials were independent, and below it the one seen between groups.
        let independent = share * (1.0 - share) * all;
        let squares = |of: &dyn Fn(&(u64, u64)) -> f64| {
            groups.iter().map(|group| of(group).powi(2)).sum::<f64>()
        };
        let between = squares(&|&(successes, trials)| successes as f64 - share * trials as f64);
        let most = squares(&|group| group.1 as f64) / all.max(1.0);
        let degrees = groups.iter().filter(|group| group.1 > 0).count() as f64 - 1.0;
        // If all trials agree, or are of one group, nothing varies between groups, so only their sizes tell the effect.
        let effect = match independent > 0.0 && degrees > 0.0 {
            true => {
                // An effect below 1 is chance: groups never tell more than the same number of independent trials.
                let seen = between / independent * (degrees + 1.0) / degrees;
                (seen.max(1.0) * (student(degrees) / Z).powi(2)).min(most)
            }
            false => most,
        };
        Self::with_effective(successes as f64, all, all / effect.max(1.0))
    }

    fn with_effective(successes: f64, trials: f64, effective: f64) -> Self {
        if trials <= 0.0 {
            return Self {
                value: 0.0,
                low: 0.0,
                high: 1.0,
            };
        }
        // Near 0 and 1, where good methods are, the simple limits share ± Z s have no width or leave [0, 1].
        let (share, n) = (successes / trials, effective.max(f64::MIN_POSITIVE));
        // Wilson: (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n), the shares from which p is z standard errors away.
        let centre = share + Z * Z / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        Self {
            value: share,
            // Rounding could move a limit past the share.
            low: ((centre - half) / scale).clamp(0.0, share),
            high: ((centre + half) / scale).clamp(share, 1.0),
        }
    }
}

/// Returns the 0.975 quantile of Student's distribution, by its expansion around the normal one (Abramowitz and Stegun, 26.7.5). It is 3 % too small for
/// two degrees of freedom and a quarter for one.
fn student(degrees: f64) -> f64 {
    Z + (2.372 + (2.823 + 2.556 / degrees) / degrees) / degrees
}

/// Estimated count with confidence limits. Serialized as a list of the three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "(f64, f64, f64)")]
pub struct CountEstimate {
    /// The estimated count.
    pub value: f64,
    /// Lower confidence limit.
    pub low: f64,
    /// Upper confidence limit.
    pub high: f64,
}

impl CountEstimate {
    /// Returns a count that is known exactly, so both limits equal it.
    pub(crate) fn exact(value: f64) -> Self {
        let (low, high) = (value, value);
        Self { value, low, high }
    }
}

impl From<CountEstimate> for (f64, f64, f64) {
    fn from(count: CountEstimate) -> Self {
        (count.value, count.low, count.high)
    }
}

/// Returns the harmonic mean of precision and recall; 0 if both are 0.
#[must_use]
pub fn f1(precision: f64, recall: f64) -> f64 {
    if precision + recall > 0.0 {
        2.0 * precision * recall / (precision + recall)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_by_hand() {
        // The published Wilson limits of 8 successes in 10 trials are 0.490 and 0.943.
        let found = ShareEstimate::of(8, 10);
        assert!((found.low - 0.4902).abs() < 5e-4 && (found.high - 0.9433).abs() < 5e-4);
        let none = ShareEstimate::of(0, 0);
        assert_eq!((none.low, none.high), (0.0, 1.0));
        let all = ShareEstimate::of(100, 100);
        assert!(all.low > 0.96 && all.high == 1.0);
    }

    #[test]
    fn groups_that_stand_or_fall_together_widen_the_limits() {
        let together: Vec<(u64, u64)> =
            (0..20).map(|i| (if i < 16 { 10 } else { 0 }, 10)).collect();
        let alone: Vec<(u64, u64)> = (0..200).map(|i| (u64::from(i < 160), 1)).collect();
        let (wide, narrow) = (
            ShareEstimate::clustered(&together),
            ShareEstimate::clustered(&alone),
        );
        assert_eq!(wide.value, narrow.value);
        assert!(wide.high - wide.low > 2.0 * (narrow.high - narrow.low));
    }

    #[test]
    fn sixty_pairs_of_one_document_counted_as_sixty_trials() {
        let one = ShareEstimate::clustered(&[(41, 60)]);
        // One trial: Wilson's limits are at least 0.79 apart, since z² / (1 + z²) is 0.793.
        assert!(one.high - one.low > 0.79, "{one:?}");
        // Two documents tell no more than two trials; the published limits of 1 in 2 are 0.095 and 0.905.
        let two = ShareEstimate::clustered(&[(60, 60), (0, 60)]);
        assert!(
            (two.low - 0.095).abs() < 5e-4 && (two.high - 0.905).abs() < 5e-4,
            "{two:?}"
        );
        // Pairs that are alone in their documents are independent trials.
        let alone: Vec<(u64, u64)> = (0..40).map(|i| (i % 2, 1)).collect();
        assert_eq!(ShareEstimate::clustered(&alone), ShareEstimate::of(20, 40));
    }
}

//! Ends of waits that a caller may have set as long as he likes.

use std::time::{Duration, Instant};

/// Time that stands for any longer one: what is added to an instant must not exceed its range.
const THIRTY_YEARS: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Returns the instant `wait` after `start`, or a far one if there is none.
pub(crate) fn deadline(start: Instant, wait: Duration) -> Instant {
    start
        .checked_add(wait)
        .unwrap_or_else(|| start + THIRTY_YEARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: limits without an end, `Duration::MAX`, panicked.
    #[test]
    fn an_endless_wait_has_a_far_deadline() {
        let now = Instant::now();
        assert_eq!(deadline(now, Duration::MAX), now + THIRTY_YEARS);
        let second = Duration::from_secs(1);
        assert_eq!(deadline(now, second), now + second);
    }
}

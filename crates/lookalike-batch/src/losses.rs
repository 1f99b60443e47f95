//! Policy for records and files that should have been read but could not be.
//!
//! A loss is a record, or a file of a supported format, of which something is missing in the result. Files that a walk skips on purpose
//! (hidden files, images, links that lead back, records of an archive that are not pages) were never requested, so they are not losses.

use std::fmt;
use std::str::FromStr;

use lookalike_corpus::Inputs;

use crate::error::BatchError;
use crate::setting_words::ParseSettingError;
use crate::skipped::{LossExtent, SkippedInput, SkippedRow};

/// Policy for losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum LossPolicy {
    /// Skip, count and list them.
    #[default]
    Tolerate,
    /// Skip, count and list them, but fail before results are written if there are more than the limit.
    Limit(LossLimit),
    /// Stop at the first loss.
    Stop,
}

/// Number of losses that a job accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossLimit {
    /// A number of records and files.
    Count(u64),
    /// A percentage of the records. A file that cannot be opened or is truncated, or a broken record that takes others along, always
    /// exceeds it, because the number of missing records is unknown.
    Percent(f64),
}

impl FromStr for LossLimit {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        let limit = match text.strip_suffix('%') {
            Some(percent) => percent
                // A space may precede the percent sign.
                .trim()
                .parse()
                .ok()
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        };
        limit.ok_or_else(|| {
            let fault = "is neither a number of records nor a percentage of them: use a value such as 20 or 0.1%";
            ParseSettingError::malformed(text, fault)
        })
    }
}

impl fmt::Display for LossLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl LossPolicy {
    /// Returns true if the first loss ends the job.
    pub fn is_strict(self) -> bool {
        self == Self::Stop
    }

    /// Returns an error if `skipped` is a loss and the first loss ends the job.
    pub(crate) fn refuse_first(self, skipped: &SkippedInput) -> Result<(), BatchError> {
        match self.is_strict() && skipped.extent > LossExtent::None {
            true => Err(BatchError::Strict(skipped.first.clone())),
            false => Ok(()),
        }
    }

    /// Returns an error for the first loss that occurred before reading began, such as a file of a folder that cannot be opened.
    pub(crate) fn refuse_undiscovered(self, inputs: &Inputs) -> Result<(), BatchError> {
        let mut skips = inputs.skips.iter().map(SkippedInput::part);
        skips.try_for_each(|skipped| self.refuse_first(&skipped))
    }

    /// Returns an error if more was lost than is accepted. `read` is the number of records that were read.
    ///
    /// # Errors
    /// [`BatchError::Losses`] or [`BatchError::Strict`], with an example.
    pub fn check<'a>(
        self,
        rows: impl IntoIterator<Item = &'a SkippedRow>,
        read: u64,
    ) -> Result<(), BatchError> {
        let lost: Vec<&SkippedRow> = rows.into_iter().filter(|row| row.is_loss()).collect();
        let limit = match (self, lost.first()) {
            (Self::Limit(limit), _) => limit,
            (Self::Stop, Some(row)) => return Err(BatchError::Strict(row.first.clone())),
            _ => return Ok(()),
        };
        let count: u64 = lost.iter().map(|row| row.count).sum();
        // Lost records would have been read, so the share is of all records, not of those read.
        let all = read + count;
        let unbearable = match limit {
            LossLimit::Count(most) => count > most,
            LossLimit::Percent(most) => {
                let unknown = lost.iter().any(|row| row.loss == LossExtent::Unknown);
                // An unknown number may be any share, so it counts as too many.
                unknown || count as f64 * 100.0 > most * all as f64
            }
        };
        match lost
            .iter()
            .max_by_key(|row| row.loss)
            .filter(|_| unbearable)
        {
            None => Ok(()),
            Some(worst) => Err(BatchError::Losses {
                count,
                all,
                limit: limit.to_string(),
                first: worst.first.clone(),
                is_uncounted: matches!(limit, LossLimit::Percent(_))
                    && worst.loss == LossExtent::Unknown,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(loss: LossExtent, count: u64) -> SkippedRow {
        let (kind, first) = ("kind".to_owned(), "a.jsonl, line 1: reason".to_owned());
        SkippedRow {
            kind,
            count,
            loss,
            first,
        }
    }

    #[test]
    fn limits_are_read_and_shown() {
        for text in ["0", "20", "0.1%", "100%"] {
            assert_eq!(text.parse::<LossLimit>().unwrap().to_string(), text);
        }
        for text in ["", "-1", "2.5", "101%", "-1%", "%", "NaN%", "many"] {
            let refused = text.parse::<LossLimit>().unwrap_err().to_string();
            assert!(refused.contains("0.1%"), "{text}: {refused}");
        }
    }

    #[test]
    fn a_share_never_bears_a_file_that_breaks_off() {
        let rows = [row(LossExtent::Unknown, 1)];
        let check = |limit: &str| LossPolicy::Limit(limit.parse().unwrap()).check(&rows, 1_000_000);
        assert!(check("1").is_ok());
        let refused = check("50%").unwrap_err().to_string();
        assert!(refused.contains("it is unknown"), "{refused}");
        assert!(LossPolicy::Tolerate.check(&rows, 0).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_no_loss_never_counts(lost in 0..50_u64, passed in 0..50_u64, read in 0..500_u64, most in 0..50_u64) {
            let rows = [row(LossExtent::None, passed), row(LossExtent::Records, lost)];
            let count = LossPolicy::Limit(LossLimit::Count(most));
            prop_assert_eq!(count.check(&rows, read).is_ok(), lost <= most);
            let percent = LossPolicy::Limit(LossLimit::Percent(most as f64));
            prop_assert_eq!(percent.check(&rows, read).is_ok(), lost * 100 <= most * (read + lost));
        }
    }
}

//! The end of a page of neighbours, at which the next page continues.

use std::fmt;
use std::str::FromStr;

/// Position after a neighbour that was shown. It stays valid while documents are inserted, deleted or merged, unless the neighbour itself
/// or more than 64 documents before it are gone.
///
/// ```
/// use lookalike_store::NeighbourCursor;
///
/// let cursor: NeighbourCursor = "3-100-0123456789abcdef".parse()?;
/// assert_eq!(cursor.to_string(), "3-100-0123456789abcdef");
/// # Ok::<(), lookalike_store::ParseCursorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourCursor {
    /// Distance of the last neighbour that was shown.
    pub(crate) distance: u32,
    /// Number of documents at this distance, up to and including that neighbour.
    pub(crate) passed: usize,
    /// Hash of its id.
    pub(crate) last: u64,
}

impl NeighbourCursor {
    /// Position before all neighbours.
    pub(crate) const START: Self = Self {
        distance: 0,
        passed: 0,
        last: 0,
    };
}

/// Error for a text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor of an earlier answer")]
pub struct ParseCursorError;

impl fmt::Display for NeighbourCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{:016x}", self.distance, self.passed, self.last)
    }
}

impl FromStr for NeighbourCursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        // Clients send cursors back, so this may be any text. The numbers are bounded below, because they are added to and sizes are
        // allocated by them.
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().ok_or(ParseCursorError);
        let (distance, passed, last) = (part()?, part()?, part()?);
        let cursor = Self {
            distance: distance.parse().map_err(|_| ParseCursorError)?,
            passed: passed.parse().map_err(|_| ParseCursorError)?,
            last: u64::from_str_radix(last, 16).map_err(|_| ParseCursorError)?,
        };
        // No collection holds more documents than this.
        let is_possible = cursor.distance <= 128 && cursor.passed < 1 << 40;
        is_possible.then_some(cursor).ok_or(ParseCursorError)
    }
}

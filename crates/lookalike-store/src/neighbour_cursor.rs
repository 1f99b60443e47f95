//! The end of a page of neighbours, from which the next one goes on.

use std::fmt;
use std::str::FromStr;

/// Position behind a neighbour that was shown. It stays valid while documents are inserted, deleted or merged, unless the document
/// itself is gone, or more than 64 documents before it.
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
    /// Documents of this distance up to it.
    pub(crate) passed: usize,
    /// Hash of its id.
    pub(crate) last: u64,
}

impl NeighbourCursor {
    /// Before all neighbours.
    pub(crate) const START: Self = Self {
        distance: 0,
        passed: 0,
        last: 0,
    };
}

/// Not a cursor that an answer gave.
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
        // Cursors come back from clients, so any text may be in their place. The counts are bounded below
        // because they are added to and allocated by.
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().ok_or(ParseCursorError);
        let (distance, passed, last) = (part()?, part()?, part()?);
        let cursor = Self {
            distance: distance.parse().map_err(|_| ParseCursorError)?,
            passed: passed.parse().map_err(|_| ParseCursorError)?,
            last: u64::from_str_radix(last, 16).map_err(|_| ParseCursorError)?,
        };
        // There are never more documents in a collection than this.
        let is_possible = cursor.distance <= 128 && cursor.passed < 1 << 40;
        is_possible.then_some(cursor).ok_or(ParseCursorError)
    }
}

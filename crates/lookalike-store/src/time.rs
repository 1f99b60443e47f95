//! Time as the caller tells it.

use std::time::Duration;

/// Milliseconds since 1970 began, UTC. The store reads no clock: whoever calls says what time it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The end of time, which never comes. An insert with this expiry lives for ever, whatever the collection's time to live.
    pub const NEVER: Self = Self(u64::MAX);

    /// This long after; the end of time at most, which never comes.
    pub fn after(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

/// The time of writes. A caller that does not believe its clock holds `now` back, so that nothing expires too early; what is inserted
/// meanwhile must not die early either.
///
/// ```
/// use std::time::Duration;
/// use lookalike_store::{UnixMillis, WriteTime};
///
/// let believed = UnixMillis(1_700_000_000_000);
/// let clock = believed.after(Duration::from_secs(3600));
/// let time = WriteTime::from(believed).lives_from(clock);
/// assert_eq!((time.now, time.lives_from), (believed, clock));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteTime {
    /// The time by which documents have expired.
    pub now: UnixMillis,
    /// The start of the lives of new documents; never before `now`.
    pub lives_from: UnixMillis,
}

impl From<UnixMillis> for WriteTime {
    fn from(now: UnixMillis) -> Self {
        Self {
            now,
            lives_from: now,
        }
    }
}

impl WriteTime {
    /// Sets the start of the lives of new documents; `now` if it is before that.
    #[must_use]
    pub fn lives_from(self, lives_from: UnixMillis) -> Self {
        Self {
            lives_from: lives_from.max(self.now),
            ..self
        }
    }
}

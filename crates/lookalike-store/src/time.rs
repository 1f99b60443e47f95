//! Time, as the caller gives it.

use std::time::{Duration, SystemTime};

/// Milliseconds since the Unix epoch, UTC. The store reads no clock: callers pass the current time.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use lookalike_store::UnixMillis;
///
/// assert!(UnixMillis::from(SystemTime::now()) > UnixMillis(0));
/// let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
/// assert_eq!(UnixMillis::from(second), UnixMillis(1_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The end of time, which never comes. A document inserted with this expiry lives forever, whatever the collection's time to live.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the time that is `duration` later, or [`UnixMillis::NEVER`] if that overflows.
    pub fn after(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

impl From<SystemTime> for UnixMillis {
    /// Returns the time in milliseconds; zero for times before 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        Self(0).after(since.unwrap_or_default())
    }
}

/// The time of a batch of writes. A caller that does not trust its clock holds `now` back, so that nothing expires too early; documents
/// inserted meanwhile should still live their full time, which then counts from `lives_from`.
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
    /// The time by which expiry is judged.
    pub now: UnixMillis,
    /// Start of the life of new documents; never before `now`.
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
    /// Sets the start of the life of new documents; `now` if that is later.
    #[must_use]
    pub fn lives_from(self, lives_from: UnixMillis) -> Self {
        Self {
            lives_from: lives_from.max(self.now),
            ..self
        }
    }
}

//! The time by which documents expire, protected against a clock that jumps ahead, which would expire everything before its new time.
//!
//! The monotonic clock measures the time between two readings. If the wall clock has advanced by more than that plus the tolerance, it is
//! not trusted: time then follows the monotonic clock until the two agree again or the service is restarted. The monotonic clock stops
//! while a machine sleeps, so a machine that slept for long counts as one whose clock jumped. At the start, the same tolerance applies to
//! the time at which the store was last open, unless the operator says that the clock is right.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lookalike_store::sync::lock;
use lookalike_store::{UnixMillis, WriteTime};

/// A function that returns the time of the wall clock.
pub type WallClock = Arc<dyn Fn() -> UnixMillis + Send + Sync>;

/// Maximum trusted lead of the wall clock, both between two readings and over the newest record at the start.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(3600);

/// The wall clock with its protection.
pub struct GuardedClock {
    wall: WallClock,
    state: Mutex<ClockReading>,
}

struct ClockReading {
    /// Latest time that was returned and trusted, followed by the moment of that reading.
    told: UnixMillis,
    at: Instant,
    held: bool,
}

impl GuardedClock {
    /// Creates a clock for a store. `last` is the latest time in the store; zero if the store is new. `trusted` accepts the wall clock at the start,
    /// whatever its time.
    pub fn new(wall: WallClock, last: UnixMillis, trusted: bool) -> Self {
        let now = wall();
        // A new store has no time to compare with, so its first clock is trusted.
        let held = !trusted && last > UnixMillis(0) && now > last.after(CLOCK_TOLERANCE);
        let state = ClockReading {
            // Never go back: documents that expired by `last` stay expired.
            told: if held { last } else { now.max(last) },
            at: Instant::now(),
            held,
        };
        Self {
            wall,
            state: Mutex::new(state),
        }
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> UnixMillis {
        // Read before the lock is taken: a thread that comes second with an earlier reading gets `told`, so time never goes back.
        let wall = (self.wall)();
        let mut state = lock(&self.state);
        let expected = state.told.after(state.at.elapsed());
        state.held = wall > expected.after(CLOCK_TOLERANCE);
        // While the clock is held, neither `told` nor `at` changes: the expected time continues from the last trusted reading, so errors do
        // not accumulate.
        if state.held {
            return expected;
        }
        // After the clock went back, time stands still until the clock reaches it again.
        if wall > state.told {
            (state.told, state.at) = (wall, Instant::now());
        }
        state.told
    }

    /// Returns the time of writes. Lives of documents start at the time of the wall clock even while it is not trusted, so that documents
    /// do not expire early if it turns out to be right.
    pub fn write_time(&self) -> WriteTime {
        WriteTime::from(self.now()).lives_from((self.wall)())
    }

    /// Returns the lead of the time over the wall clock, by which documents live longer than they should.
    pub(crate) fn ahead(&self) -> Duration {
        let now = self.now();
        Duration::from_millis(now.0.saturating_sub((self.wall)().0))
    }

    /// Tells whether the wall clock is not trusted.
    pub(crate) fn is_held(&self) -> bool {
        // Updates `held`, which is otherwise as old as the last request.
        self.now();
        lock(&self.state).held
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    const HOUR: u64 = 3_600_000;
    const BEGIN: u64 = 1_800_000_000_000;

    fn guarded(last: u64, trusted: bool) -> (Arc<AtomicU64>, GuardedClock) {
        let hand = Arc::new(AtomicU64::new(BEGIN));
        let wall = Arc::clone(&hand);
        let clock: WallClock = Arc::new(move || UnixMillis(wall.load(Relaxed)));
        (hand, GuardedClock::new(clock, UnixMillis(last), trusted))
    }

    #[test]
    fn a_jump_ahead_is_not_believed_until_it_is_taken_back() {
        let (hand, clock) = guarded(0, false);
        hand.fetch_add(HOUR / 2, Relaxed);
        assert_eq!(clock.now().0, BEGIN + HOUR / 2, "small steps are");
        hand.fetch_add(10 * 366 * 24 * HOUR, Relaxed);
        let now = clock.now().0;
        assert!((BEGIN + HOUR / 2..BEGIN + HOUR).contains(&now) && clock.is_held());
        hand.store(BEGIN + HOUR, Relaxed);
        assert_eq!(clock.now().0, BEGIN + HOUR);
        assert!(!clock.is_held());
    }

    #[test]
    fn a_clock_that_goes_back_holds_nothing_up() {
        let (hand, clock) = guarded(BEGIN + 5 * HOUR, false);
        let time = clock.write_time();
        assert!(
            time.now.0 >= BEGIN + 5 * HOUR && time.lives_from >= time.now,
            "not before what the store knows"
        );
        hand.store(BEGIN - 100 * HOUR, Relaxed);
        let before = clock.now();
        assert!(clock.now() >= before && !clock.is_held());
    }

    #[test]
    fn a_clock_that_is_weeks_ahead_of_the_store_is_believed_only_when_told_so() {
        let weeks_ago = BEGIN - 20 * 24 * HOUR;
        let (hand, held) = guarded(weeks_ago, false);
        assert!(held.is_held() && held.now().0 < weeks_ago + HOUR);
        let time = held.write_time();
        assert!(time.now.0 < weeks_ago + HOUR);
        assert_eq!(time.lives_from.0, BEGIN, "new documents are of today");
        hand.store(weeks_ago + HOUR / 2, Relaxed);
        assert!(!held.is_held(), "it was set right");
        let (_, trusted) = guarded(weeks_ago, true);
        assert!(!trusted.is_held() && trusted.now().0 >= BEGIN);
        let (_, shorter) = guarded(BEGIN - HOUR + 1, false);
        assert!(!shorter.is_held() && shorter.now().0 >= BEGIN);
    }

    #[test]
    fn a_store_that_is_ahead_of_the_clock_says_how_far() {
        let (hand, clock) = guarded(BEGIN + 5 * HOUR, false);
        assert_eq!(clock.ahead().as_secs(), 5 * 3600);
        hand.store(BEGIN + 6 * HOUR, Relaxed);
        assert_eq!(clock.ahead(), Duration::ZERO);
    }

    #[test]
    fn a_load_of_two_hours_made_the_clock_of_the_next_start_untrusted() {
        let (hand, clock) = guarded(BEGIN, false);
        for _ in 0..4 {
            hand.fetch_add(HOUR / 2, Relaxed);
            clock.write_time();
        }
        assert_eq!(clock.write_time().now, UnixMillis(BEGIN + 2 * HOUR));
    }
}

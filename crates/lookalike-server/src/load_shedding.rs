//! Load shedding: refuses requests that wait too long before they are read.
//!
//! Small requests are answered by the threads that serve connections, so there is no queue that shows when there are too many: each of
//! thousands of connections waits for its turn, and on each turn the memory of the connection is no longer in the caches. The wait of a
//! request is the time from when the system reported data to read until it is read. As in controlled delay (Nichols and Jacobson 2012), a
//! queue that persists for two intervals is distinguished from a burst. The mean wait decides, because of thousands of connections the
//! runtime serves most at once and leaves a tenth waiting for most of a second. By Little's law, the number of requests read in an
//! interval, times their mean wait, divided by the length of the interval, is the number that wait at once. As many requests as wait beyond
//! the target are told to try again later.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Interval over which waits are averaged.
const INTERVAL: Duration = Duration::from_millis(100);
/// Divisor of the queue timeout that gives the target, the wait that is always tolerated: 20 ms for a timeout of one second.
const TARGET_SHARE: u32 = 50;
/// Minimum number of requests read in an interval, or waiting at once, to detect overload: a slow machine alone is not overloaded.
const MIN_REQUESTS: u64 = 100;

/// Marks a request to be shed, as an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShedRequest;

/// The waits on all connections.
#[derive(Debug)]
pub(crate) struct LoadShedder {
    begun: Instant,
    /// Wait in microseconds that is always tolerated.
    target: u64,
    /// End of the current interval, in microseconds since `begun`.
    end: AtomicU64,
    /// Sum of the waits in this interval in microseconds, followed by the number of requests.
    waits: AtomicU64,
    requests: AtomicU64,
    /// True if there was a persistent queue in the previous interval.
    stood: AtomicBool,
    /// Number of requests still to be shed in this interval.
    beyond: AtomicU64,
    judging: AtomicBool,
}

impl LoadShedder {
    /// Creates a load shedder that tolerates waits of a fiftieth of `queue_timeout`, the time that a request may wait for a worker.
    pub(crate) fn new(queue_timeout: Duration) -> Self {
        Self {
            begun: Instant::now(),
            target: (queue_timeout / TARGET_SHARE).as_micros() as u64,
            end: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            stood: AtomicBool::new(false),
            beyond: AtomicU64::new(0),
            judging: AtomicBool::new(false),
        }
    }

    /// Tells whether a request that waited this long should be shed.
    pub(crate) fn sheds(&self, waited: Duration) -> bool {
        self.sheds_at(waited, self.begun.elapsed())
    }

    fn sheds_at(&self, waited: Duration, now: Duration) -> bool {
        let (micros, now) = (waited.as_micros() as u64, now.as_micros() as u64);
        self.waits.fetch_add(micros, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        // One thread judges. The others do not wait for it and use the result of the previous interval.
        // Relaxed, because the values are only statistics: one that is seen late moves a few requests to the next interval.
        if now >= self.end.load(Relaxed) && !self.judging.swap(true, Relaxed) {
            self.end_interval(now);
            self.judging.store(false, Relaxed);
        }
        // A request that was read in time is not part of the queue.
        micros > self.target
            && self
                .beyond
                .fetch_update(Relaxed, Relaxed, |beyond| beyond.checked_sub(1))
                .is_ok()
    }

    /// Ends an interval, and decides how many requests to shed in the next.
    fn end_interval(&self, now: u64) {
        let interval = INTERVAL.as_micros() as u64;
        // A request that is counted between these two lines adds its wait to this interval and itself to the next. This is one of a hundred
        // or more.
        let waits = self.waits.swap(0, Relaxed);
        let requests = self.requests.swap(0, Relaxed);
        // An interval that ended long ago says nothing about the present.
        let is_over = now < self.end.load(Relaxed) + interval;
        // Total microseconds that requests waited beyond the target. Divided by the interval, this is the mean number of requests in the
        // queue (Little's law: L = lambda W).
        let excess = waits.saturating_sub(requests.saturating_mul(self.target));
        let queue = excess / interval;
        // Many requests waiting for a slow service are an overload too, even if few are read.
        let stands = is_over && excess > 0 && requests.max(queue) >= MIN_REQUESTS;
        // Two intervals in a row: a burst drains within one, a standing queue does not.
        let stood = self.stood.swap(stands, Relaxed);
        let beyond = if stands && stood { queue } else { 0 };
        // Requests left to be shed in the last interval no longer count.
        self.beyond.store(beyond, Relaxed);
        self.end.store(now + interval, Relaxed);
    }
}

/// A stream that measures how long data waited to be read.
pub(crate) struct TimedStream<S> {
    stream: S,
    arrival: Arc<ArrivalClock>,
    waker: Waker,
}

/// The time at which data to read was reported, and the wait until it was read.
#[derive(Debug)]
pub(crate) struct ArrivalClock {
    begun: Instant,
    /// Microseconds from `begun` until data was reported, plus one; 0 if none was.
    woken: AtomicU64,
    waited: AtomicU64,
    /// Microseconds from `begun` until the client last took a part of an answer.
    taken: AtomicU64,
    task: AtomicWaker,
}

/// Minimum size in bytes of a write that counts as a part of an answer: the frames by which HTTP/2 acknowledges others have at most 17.
const MIN_PART_BYTES: usize = 1024;

impl ArrivalClock {
    fn micros(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64 + 1
    }

    /// Takes the wait of the bytes that were read last.
    pub(crate) fn take_wait(&self) -> Duration {
        Duration::from_micros(self.waited.swap(0, Relaxed))
    }

    /// Returns the time at which the client last took a part of an answer.
    pub(crate) fn taken_at(&self) -> Instant {
        self.begun + Duration::from_micros(self.taken.load(Relaxed))
    }

    fn note_written(&self, written: &Poll<std::io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(bytes)) if *bytes >= MIN_PART_BYTES) {
            self.taken.store(self.micros(), Relaxed);
        }
    }
}

impl Wake for ArrivalClock {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let now = self.micros();
        // Only the first call counts: the runtime may wake a task several times before it runs, but the wait began with the first.
        let _ = self.woken.compare_exchange(0, now, Relaxed, Relaxed);
        self.task.wake();
    }
}

impl<S> TimedStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        let arrival = Arc::new(ArrivalClock {
            begun: Instant::now(),
            woken: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            task: AtomicWaker::new(),
        });
        Self {
            waker: Waker::from(Arc::clone(&arrival)),
            stream,
            arrival,
        }
    }

    pub(crate) fn arrival(&self) -> Arc<ArrivalClock> {
        Arc::clone(&self.arrival)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = &mut *self;
        // Register before reading: otherwise a wake-up in between would go to the task of an earlier poll.
        this.arrival.task.register(context.waker());
        let mut context = Context::from_waker(&this.waker);
        let read = Pin::new(&mut this.stream).poll_read(&mut context, buffer);
        if read.is_ready() {
            let woken = this.arrival.woken.swap(0, Relaxed);
            // For bytes that arrived before anyone waited for them, the time is unknown.
            let waited = if woken == 0 {
                0
            } else {
                this.arrival.micros().saturating_sub(woken)
            };
            // Relaxed is enough: reader and writer are the same task. The waker stores from elsewhere, but a mean tolerates a wait that is
            // off by one wake-up.
            this.arrival.waited.store(waited, Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.arrival.note_written(&written);
        written
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.arrival.note_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// Returns the number of shed requests in each interval, for a number of requests with equal waits.
    fn shed(overload: &LoadShedder, intervals: u32, requests: u32, waited: Duration) -> Vec<u32> {
        (1..=intervals)
            .map(|interval| {
                let at = |n: u32| INTERVAL * interval + INTERVAL * n / requests;
                (0..requests)
                    .filter(|n| overload.sheds_at(waited, at(*n)))
                    .count() as u32
            })
            .collect()
    }

    #[test]
    fn of_a_standing_queue_what_is_beyond_the_target_is_shed() {
        // 6,000 requests in a tenth of a second, each waiting 75 ms: 4,500 at once, of which 1,200 do not wait longer than the target.
        let shed = shed(
            &LoadShedder::new(Duration::from_secs(1)),
            3,
            6000,
            75 * MILLI,
        );
        assert_eq!(shed[1], 0, "it may be a burst");
        assert!((3200..=3300).contains(&shed[2]), "{shed:?}");
    }

    #[test]
    fn short_waits_bursts_and_few_requests_are_borne() {
        assert_eq!(
            shed(
                &LoadShedder::new(Duration::from_secs(1)),
                4,
                6000,
                19 * MILLI
            ),
            [0; 4]
        );
        assert_eq!(
            shed(
                &LoadShedder::new(Duration::from_secs(1)),
                4,
                50,
                200 * MILLI
            ),
            [0; 4]
        );
        // All wait long for a tenth of a second, and then none do.
        let overload = LoadShedder::new(Duration::from_secs(1));
        for n in 0..9000 {
            let waited = if n < 3000 { 90 * MILLI } else { MILLI };
            let at = INTERVAL * 2 + INTERVAL * n / 3000;
            assert!(!overload.sheds_at(waited, at), "{n}");
        }
    }

    #[test]
    fn a_crowd_before_a_service_that_reads_few_was_never_shed() {
        // Sixty requests in a tenth of a second that waited 3.3 s each: two thousand at once.
        let overload = LoadShedder::new(Duration::from_secs(1));
        assert_eq!(
            shed(&overload, 4, 60, 3300 * MILLI),
            [0, 0, 60, 60],
            "all that are read"
        );
    }

    #[test]
    fn a_tenth_that_waits_long_is_a_queue_as_well() {
        let overload = LoadShedder::new(Duration::from_secs(1));
        let shed = (0..50_000_u32).filter(|n| {
            let waited = if n % 10 == 0 { 800 * MILLI } else { MILLI };
            overload.sheds_at(waited, INTERVAL + INTERVAL * *n / 5000)
        });
        // Of five thousand in a tenth of a second, the five hundred that waited, from the third interval on.
        assert!((3500..=4500).contains(&shed.count()));
    }
}

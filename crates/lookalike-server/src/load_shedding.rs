//! Sheds requests that wait too long before they are read.
//!
//! Small requests are answered where they are read, by the threads that serve connections, so that no queue shows that there are too
//! many: each of thousands of connections waits for its turn, and every turn finds its connection's memory out of the caches. What a
//! request waited is the time from when the system said that there is something to read to when it is read. As in controlled delay
//! (Nichols and Jacobson 2012) a queue that stands for two intervals is told from a burst. By the mean: of thousands of connections the
//! runtime serves most at once and leaves a tenth waiting for the better part of a second. By Little's law the requests
//! that were read in an interval, times their wait over its length, are those that wait at once: as many of them as wait beyond the target
//! are told to come again.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Interval over which waits are averaged.
const INTERVAL: Duration = Duration::from_millis(100);
/// Share of the time a request may wait for a thread that it may wait to be read, for ever: 20 ms of a second.
const TARGET_SHARE: u32 = 50;
/// Requests that were read in an interval, or stood in the queue, without which nothing is judged: a slow machine is no crowd.
const ENOUGH: u64 = 100;

/// A request that is to be shed, as an extension of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShedRequest;

/// Waits of all connections.
#[derive(Debug)]
pub(crate) struct LoadShedder {
    begun: Instant,
    /// Microseconds of waiting that are borne for ever.
    target: u64,
    /// Microseconds since it was begun at which the interval ends.
    end: AtomicU64,
    /// Of this interval: all waits in microseconds, and the requests.
    waits: AtomicU64,
    requests: AtomicU64,
    /// True if a queue stood in the previous interval.
    stood: AtomicBool,
    /// Requests that are still to be shed.
    beyond: AtomicU64,
    judging: AtomicBool,
}

impl LoadShedder {
    /// Sheds requests where they wait a fiftieth of `queue_timeout`, what one may wait for a thread.
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

    /// Tells whether a request that waited this long is to be shed.
    pub(crate) fn sheds(&self, waited: Duration) -> bool {
        self.sheds_at(waited, self.begun.elapsed())
    }

    fn sheds_at(&self, waited: Duration, now: Duration) -> bool {
        let (micros, now) = (waited.as_micros() as u64, now.as_micros() as u64);
        self.waits.fetch_add(micros, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        // One thread judges. The others do not wait for it and go by the interval before.
        if now >= self.end.load(Relaxed) && !self.judging.swap(true, Relaxed) {
            self.judge(now);
            self.judging.store(false, Relaxed);
        }
        // Whoever was read in time is no part of the queue.
        micros > self.target
            && self
                .beyond
                .fetch_update(Relaxed, Relaxed, |beyond| beyond.checked_sub(1))
                .is_ok()
    }

    /// Ends an interval: how many are to be shed in the next.
    fn judge(&self, now: u64) {
        let interval = INTERVAL.as_micros() as u64;
        // A request between the two counts its wait in this interval and itself in the next: one of a hundred
        // or more.
        let waits = self.waits.swap(0, Relaxed);
        let requests = self.requests.swap(0, Relaxed);
        // One that began long ago tells nothing of now.
        let is_over = now < self.end.load(Relaxed) + interval;
        // Microseconds that requests waited beyond what is borne. Divided by the interval they are requests
        // that stood in the queue at any time (Little's law: L = lambda W).
        let excess = waits.saturating_sub(requests.saturating_mul(self.target));
        let queue = excess / interval;
        // A crowd before a slow service is one too, though few requests are read.
        let stands = is_over && excess > 0 && requests.max(queue) >= ENOUGH;
        // Two intervals in a row: a burst drains within one, a standing queue does not.
        let stood = self.stood.swap(stands, Relaxed);
        let beyond = if stands && stood { queue } else { 0 };
        // What is left to be shed of the last interval lapses with it.
        self.beyond.store(beyond, Relaxed);
        self.end.store(now + interval, Relaxed);
    }
}

/// A stream that knows how long what is read waited.
pub(crate) struct TimedStream<S> {
    stream: S,
    arrival: Arc<ArrivalClock>,
    waker: Waker,
}

/// Time at which there was something to read, and the wait since.
#[derive(Debug)]
pub(crate) struct ArrivalClock {
    begun: Instant,
    /// Microseconds since it was begun, plus one; 0: not yet.
    woken: AtomicU64,
    waited: AtomicU64,
    /// Microseconds since it was begun until a part of an answer was taken last.
    taken: AtomicU64,
    task: AtomicWaker,
}

/// Fewer bytes at once are no part of an answer that takes long: frames by which HTTP/2 acknowledges others have 17 at most.
const LEAST_PART: usize = 1024;

impl ArrivalClock {
    fn micros(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64 + 1
    }

    /// Takes the wait of the bytes that were read last.
    pub(crate) fn take_wait(&self) -> Duration {
        Duration::from_micros(self.waited.swap(0, Relaxed))
    }

    /// Time at which the other side took a part of an answer last.
    pub(crate) fn taken_at(&self) -> Instant {
        self.begun + Duration::from_micros(self.taken.load(Relaxed))
    }

    fn note_written(&self, written: &Poll<std::io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(bytes)) if *bytes >= LEAST_PART) {
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
        // The first time counts.
        // The runtime may wake a task several times before it runs; the wait began with the first.
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
        // Before the read: a wake that came between would reach the task of an earlier poll.
        this.arrival.task.register(context.waker());
        let mut context = Context::from_waker(&this.waker);
        let read = Pin::new(&mut this.stream).poll_read(&mut context, buffer);
        if read.is_ready() {
            let woken = this.arrival.woken.swap(0, Relaxed);
            // Bytes that came before anyone waited for them tell not when.
            let waited = if woken == 0 {
                0
            } else {
                this.arrival.micros().saturating_sub(woken)
            };
            // Relaxed: reader and writer are the task of one connection; the waker stores from elsewhere, and a
            // wait that is off by one wake is no harm to a mean.
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

    /// Number of shed requests in each interval, for a number of requests with equal waits.
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
        // 6,000 a tenth of a second, each waiting 75 ms: 4,500 at once, of which 1,200 wait no longer than the target.
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
        // For a tenth of a second all wait long, then nobody.
        let overload = LoadShedder::new(Duration::from_secs(1));
        for n in 0..9000 {
            let waited = if n < 3000 { 90 * MILLI } else { MILLI };
            let at = INTERVAL * 2 + INTERVAL * n / 3000;
            assert!(!overload.sheds_at(waited, at), "{n}");
        }
    }

    #[test]
    fn a_crowd_before_a_service_that_reads_few_was_never_shed() {
        // Sixty a tenth of a second that waited 3.3 s each: two thousand at once.
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
        // Of five thousand in a tenth of a second the five hundred that waited, from the third interval on.
        assert!((3500..=4500).contains(&shed.count()));
    }
}

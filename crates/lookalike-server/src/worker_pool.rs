//! Threads for expensive work, so that the threads that serve connections never block.
//!
//! Requests wait in one queue, in order. Requests that wait longer than the queue timeout get 503 with `Retry-After`, so that
//! under overload the answered requests are answered in time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::config::ServiceLimits;
use crate::problem::ProblemDetails;
use crate::sketch_cache::SketchCache;
use crate::sync::lock;

/// Stack of a worker: pages of any shape are parsed on it.
const STACK: usize = 8 << 20;

/// Does something small on the thread that asks: waking another would take longer. A panic is a [`ProblemDetails`].
pub(crate) fn run_inline<T>(
    work: impl FnOnce(&mut SketchCache) -> Result<T, ProblemDetails>,
) -> Result<T, ProblemDetails> {
    thread_local! {
        static CACHE: RefCell<SketchCache> = RefCell::default();
    }
    // Taken out while it is used: should the work call this again, it finds an empty cache rather than a
    // borrowed one.
    let mut cache = CACHE.take();
    match catch_unwind(AssertUnwindSafe(|| work(&mut cache))) {
        Ok(done) => {
            CACHE.set(cache);
            done
        }
        // What a panic left half done is not used again.
        Err(_) => Err(ProblemDetails::panic()),
    }
}

/// The threads and their queue.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct PoolShared {
    queue: Mutex<JobQueue>,
    ready: Condvar,
    most: usize,
    queue_timeout: Duration,
    /// Memory that a text may take while it is sketched.
    text_memory: usize,
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<QueuedJob>,
    closed: bool,
}

impl std::fmt::Debug for JobQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} jobs)", self.jobs.len())
    }
}

struct QueuedJob {
    since: Instant,
    work: Box<dyn PoolWork>,
}

/// Work of a job. A worker calls exactly one of `run` and `refuse`.
trait PoolWork: Send {
    /// Does it; false when it panicked.
    fn run(self: Box<Self>, cache: &mut SketchCache) -> bool;
    /// Tells whoever waits why it is not done.
    fn refuse(self: Box<Self>, problem: ProblemDetails);
    /// Tells whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool;
}

struct PooledTask<T, F> {
    work: F,
    answer: oneshot::Sender<Result<T, ProblemDetails>>,
}

impl<T: Send, F> PoolWork for PooledTask<T, F>
where
    F: FnOnce(&mut SketchCache) -> Result<T, ProblemDetails> + Send,
{
    fn run(self: Box<Self>, cache: &mut SketchCache) -> bool {
        let Self { work, answer } = *self;
        let done = catch_unwind(AssertUnwindSafe(|| work(cache)));
        let whole = done.is_ok();
        // Whoever asked may have gone.
        let _ = answer.send(done.unwrap_or_else(|_| Err(ProblemDetails::panic())));
        whole
    }

    fn refuse(self: Box<Self>, problem: ProblemDetails) {
        let _ = self.answer.send(Err(problem));
    }

    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

impl WorkerPool {
    /// Starts the threads.
    pub(crate) fn start(limits: &ServiceLimits) -> io::Result<Self> {
        let shared = Arc::new(PoolShared {
            queue: Mutex::default(),
            ready: Condvar::new(),
            most: limits.queue,
            queue_timeout: limits.queue_timeout,
            text_memory: limits.request_memory.saturating_mul(2),
        });
        let threads = (0..limits.workers.max(1)).map(|number| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("worker {number}"))
                .stack_size(STACK)
                .spawn(move || shared.work())
        });
        let threads = threads.collect::<io::Result<_>>()?;
        Ok(Self { shared, threads })
    }

    /// Does something on a worker. A panic is a [`ProblemDetails`] of this request alone.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SketchCache) -> Result<T, ProblemDetails> + Send + 'static,
    ) -> Result<T, ProblemDetails> {
        let (answer, done) = oneshot::channel();
        let work = Box::new(PooledTask { work, answer });
        self.shared.push(work);
        let stopping = |_| Err(ProblemDetails::busy("stopping", "the service is stopping"));
        done.await.unwrap_or_else(stopping)
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.queue().jobs.len()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // Under the lock: a worker has either not looked yet, or waits already and is woken.
        self.shared.queue().closed = true;
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // Panics are caught; there is nothing to hear.
            let _ = thread.join();
        }
    }
}

impl PoolShared {
    fn queue(&self) -> MutexGuard<'_, JobQueue> {
        lock(&self.queue)
    }

    fn push(&self, work: Box<dyn PoolWork>) {
        let mut queue = self.queue();
        if queue.jobs.len() >= self.most {
            drop(queue);
            // Without the lock: whoever waits for the answer is woken here.
            return work.refuse(ProblemDetails::busy("queue", "too many requests wait"));
        }
        let since = Instant::now();
        queue.jobs.push_back(QueuedJob { since, work });
        drop(queue);
        // After unlocking, else the woken thread waits for the lock first.
        self.ready.notify_one();
    }

    fn work(&self) {
        let mut cache = SketchCache::new(self.text_memory);
        while let Some(job) = self.next() {
            // Under overload most who gave up have hung up: their work would only delay those who wait.
            if job.work.is_abandoned() {
                continue;
            }
            // No timer for each: jobs are in order of time, so that a worker comes to the late ones first.
            if job.since.elapsed() > self.queue_timeout {
                let problem =
                    ProblemDetails::busy("waited", "the request waited too long for a worker");
                job.work.refuse(problem);
            } else if !job.work.run(&mut cache) {
                // What a panic left half done is not used again.
                cache = SketchCache::new(self.text_memory);
            }
            cache.tidy();
        }
    }

    /// The next job; `None` at the end, when all that waited is done.
    fn next(&self) -> Option<QueuedJob> {
        let mut queue = self.queue();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue = self
                .ready
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// One thread.
    fn limits(queue: usize, queue_timeout: Duration) -> ServiceLimits {
        ServiceLimits {
            workers: 1,
            queue,
            queue_timeout,
            ..ServiceLimits::default()
        }
    }

    #[tokio::test]
    async fn a_panic_costs_its_own_request_only() {
        let workers = WorkerPool::start(&limits(10, SECOND)).expect("threads");
        let lost = workers.run::<()>(|_| panic!("on purpose")).await;
        assert_eq!(lost.expect_err("it panicked").status.as_u16(), 500);
        assert_eq!(workers.run(|_| Ok(7)).await.expect("the thread goes on"), 7);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waited_too_long_is_refused_and_never_done() {
        let workers =
            Arc::new(WorkerPool::start(&limits(2, Duration::from_millis(30))).expect("threads"));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, begun) = oneshot::channel();
        let slow = {
            let workers = Arc::clone(&workers);
            tokio::spawn(async move {
                let held = Mutex::new(held);
                let wait = move |_: &mut SketchCache| {
                    let _ = started.send(());
                    held.lock()
                        .expect("not poisoned")
                        .recv()
                        .map_err(|_| ProblemDetails::panic())
                };
                workers.run(wait).await
            })
        };
        begun.await.expect("it started");
        let late = |workers: &Arc<WorkerPool>| {
            let workers = Arc::clone(workers);
            tokio::spawn(async move { workers.run(|_| Ok(())).await })
        };
        let (first, second) = (late(&workers), late(&workers));
        while workers.waiting() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let full = workers
            .run(|_| Ok(()))
            .await
            .expect_err("the queue is full");
        assert_eq!((full.status.as_u16(), full.code), (503, "queue"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        release.send(()).expect("it waits");
        assert!(slow.await.expect("no panic").is_ok());
        for refused in [first, second] {
            let problem = refused
                .await
                .expect("no panic")
                .expect_err("it waited too long");
            assert_eq!((problem.status.as_u16(), problem.code), (503, "waited"));
        }
    }
}

//! A pool of threads for expensive work, so that the threads that serve connections never block.
//!
//! Requests wait in a single queue, in order. Those that wait longer than the queue timeout get 503 with `Retry-After`, so that under
//! overload the requests that are answered are answered in time. Work on a request ends early if nobody waits for it any more, or if it
//! takes too long.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lookalike_store::sync::lock;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::config::ServiceLimits;
use crate::problem::ProblemDetails;
use crate::sketch_cache::SketchCache;

/// Stack size of a worker, on which pages of any structure are parsed.
const STACK: usize = 8 << 20;

/// The limit on the work on a request. Long work checks it between items.
pub(crate) struct WorkLimit<'w> {
    is_wanted: &'w dyn Fn() -> bool,
    begun: Instant,
    most: Duration,
}

impl WorkLimit<'_> {
    /// Returns an error if the work should stop.
    ///
    /// # Errors
    /// The worker has spent its time on the request, or nobody waits for it any more.
    pub(crate) fn check(&self) -> Result<(), ProblemDetails> {
        if !(self.is_wanted)() {
            return Err(ProblemDetails::busy("left", "nobody waits for the answer"));
        }
        if self.begun.elapsed() < self.most {
            return Ok(());
        }
        // No item is named, so that clients send halves of a request that is too large.
        Err(ProblemDetails::too_large(format!(
            "the request takes a worker more than {} s",
            self.most.as_secs_f64()
        )))
    }
}

/// Runs a small piece of work on the calling thread, because waking another would take longer. A panic is returned as a [`ProblemDetails`].
pub(crate) fn run_inline<T>(
    work: impl FnOnce(&mut SketchCache, &WorkLimit<'_>) -> Result<T, ProblemDetails>,
) -> Result<T, ProblemDetails> {
    thread_local! {
        static CACHE: RefCell<SketchCache> = RefCell::default();
    }
    // Taken out while in use: if the work calls this function again, it finds an empty cache instead of a borrowed one.
    let mut cache = CACHE.take();
    let limit = WorkLimit {
        is_wanted: &|| true,
        begun: Instant::now(),
        // Small bodies end soon, and the connection is read by this thread, so a client that leaves would not be noticed anyway.
        most: Duration::MAX,
    };
    match catch_unwind(AssertUnwindSafe(|| work(&mut cache, &limit))) {
        Ok(done) => {
            CACHE.set(cache);
            done
        }
        // After a panic the cache may be inconsistent, so it is dropped.
        Err(_) => Err(ProblemDetails::panic()),
    }
}

/// The threads and their queue.
pub(crate) struct WorkerPool {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
}

struct PoolShared {
    queue: Mutex<JobQueue>,
    ready: Condvar,
    most: usize,
    queue_timeout: Duration,
    work_timeout: Duration,
    /// Maximum memory in bytes of a text while it is sketched.
    text_memory: usize,
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<PoolJob>,
    closed: bool,
}

/// A job in the queue: does its work within the given time if a request still waits for it. Returns false if it panicked.
type PoolJob = Box<dyn FnOnce(&mut SketchCache, Duration) -> bool + Send>;

/// The request's handle on its work, which drops the work if the request ends first. Under overload, most clients have hung up by then, and
/// their data would otherwise stay in memory until a worker is free.
struct WaitingRequest<F>(Arc<Mutex<Option<F>>>);

impl<F> Drop for WaitingRequest<F> {
    fn drop(&mut self) {
        lock(&self.0).take();
    }
}

/// The receiver of the result of some work.
type WorkResult<T> = oneshot::Receiver<Result<T, ProblemDetails>>;

/// Makes a job of some work, which either a worker or its request takes, whichever comes first.
fn pool_job<T, F>(work: F) -> (PoolJob, WaitingRequest<F>, WorkResult<T>)
where
    T: Send + 'static,
    F: FnOnce(&mut SketchCache, &WorkLimit<'_>) -> Result<T, ProblemDetails> + Send + 'static,
{
    let (answer, done) = oneshot::channel();
    let work = Arc::new(Mutex::new(Some(work)));
    let waiting = WaitingRequest(Arc::clone(&work));
    let job = move |cache: &mut SketchCache, most: Duration| {
        let Some(work) = lock(&work).take() else {
            return true;
        };
        let limit = WorkLimit {
            is_wanted: &|| !answer.is_closed(),
            begun: Instant::now(),
            most,
        };
        let done = catch_unwind(AssertUnwindSafe(|| work(cache, &limit)));
        let whole = done.is_ok();
        // The caller may be gone.
        let _ = answer.send(done.unwrap_or_else(|_| Err(ProblemDetails::panic())));
        whole
    };
    (Box::new(job), waiting, done)
}

fn stopping() -> ProblemDetails {
    ProblemDetails::busy("stopping", "the service is stopping")
}

impl WorkerPool {
    /// Starts the threads.
    pub(crate) fn start(limits: &ServiceLimits) -> io::Result<Self> {
        let shared = Arc::new(PoolShared {
            queue: Mutex::default(),
            ready: Condvar::new(),
            most: limits.queue,
            queue_timeout: limits.queue_timeout,
            work_timeout: limits.work_timeout,
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

    /// Runs work on a worker. A panic is returned as a [`ProblemDetails`] of this request alone. Work that may take long checks the limit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SketchCache, &WorkLimit<'_>) -> Result<T, ProblemDetails>
        + Send
        + 'static,
    ) -> Result<T, ProblemDetails> {
        let (job, waiting, mut done) = pool_job(work);
        self.shared.push(job, self.shared.most)?;
        let answered = match timeout(self.shared.queue_timeout, &mut done).await {
            Ok(answered) => answered,
            // All workers may be busy for longer, so refuse work that is still waiting now.
            // The empty entry stays in the queue, where it counts until a worker reaches and drops it.
            Err(_) if lock(&waiting.0).take().is_some() => {
                let reason = "the request waited too long for a worker";
                return Err(ProblemDetails::busy("waited", reason));
            }
            Err(_) => done.await,
        };
        answered.unwrap_or_else(|_| Err(stopping()))
    }

    /// Runs work like [`WorkerPool::run`], but waits for a worker as long as it takes: the request has written something, so it cannot be
    /// refused any more.
    pub(crate) async fn run_when_free<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SketchCache, &WorkLimit<'_>) -> Result<T, ProblemDetails>
        + Send
        + 'static,
    ) -> Result<T, ProblemDetails> {
        let (job, _waiting, done) = pool_job(work);
        self.shared.push(job, usize::MAX)?;
        done.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Returns the number of requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.shared.queue).jobs.len()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // Under the lock, so that a worker either has not checked yet, or is already waiting and is woken.
        lock(&self.shared.queue).closed = true;
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // Panics in jobs are caught, so there is no error to report.
            let _ = thread.join();
        }
    }
}

impl PoolShared {
    /// Adds a job, unless `most` jobs wait already.
    fn push(&self, job: PoolJob, most: usize) -> Result<(), ProblemDetails> {
        let mut queue = lock(&self.queue);
        if queue.jobs.len() >= most {
            return Err(ProblemDetails::busy("queue", "too many requests wait"));
        }
        queue.jobs.push_back(job);
        drop(queue);
        // Notify after unlocking, or the woken thread would first wait for the lock.
        self.ready.notify_one();
        Ok(())
    }

    fn work(&self) {
        let mut cache = SketchCache::new(self.text_memory);
        while let Some(job) = self.next() {
            if !job(&mut cache, self.work_timeout) {
                // After a panic the cache may be inconsistent, so replace it.
                cache = SketchCache::new(self.text_memory);
            }
            cache.shrink();
        }
    }

    /// Waits for the next job. Returns `None` when the pool is closed and the queue empty.
    fn next(&self) -> Option<PoolJob> {
        let mut queue = lock(&self.queue);
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

    /// Limits with a single worker.
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
        let lost = workers.run::<()>(|_, _| panic!("on purpose")).await;
        assert_eq!(lost.expect_err("it panicked").status.as_u16(), 500);
        assert_eq!(
            workers.run(|_, _| Ok(7)).await.expect("the thread goes on"),
            7
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waited_too_long_is_refused_and_never_done() {
        let workers =
            Arc::new(WorkerPool::start(&limits(2, Duration::from_millis(500))).expect("threads"));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, begun) = oneshot::channel();
        let slow = {
            let workers = Arc::clone(&workers);
            tokio::spawn(async move {
                let held = Mutex::new(held);
                let wait = move |_: &mut SketchCache, _: &WorkLimit<'_>| {
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
            tokio::spawn(async move { workers.run(|_, _| Ok(())).await })
        };
        let (first, second) = (late(&workers), late(&workers));
        while workers.waiting() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let full = workers
            .run(|_, _| Ok(()))
            .await
            .expect_err("the queue is full");
        assert_eq!((full.status.as_u16(), full.code), (503, "queue"));
        // The worker is still busy now.
        for refused in [first, second] {
            let problem = refused
                .await
                .expect("no panic")
                .expect_err("it waited too long");
            assert_eq!((problem.status.as_u16(), problem.code), (503, "waited"));
        }
        release.send(()).expect("it waits");
        assert!(slow.await.expect("no panic").is_ok());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_document_was_inserted_and_its_verdict_lost_because_workers_were_busy() {
        // No request may wait, and none for long.
        let limits = limits(0, Duration::from_millis(10));
        let workers = WorkerPool::start(&limits).expect("threads");
        let busy = workers.run_when_free(|_, _| {
            std::thread::sleep(Duration::from_millis(200));
            Ok(())
        });
        let second = workers.run_when_free(|_, _| Ok(7));
        let (first, second) = tokio::join!(busy, second);
        assert!(first.is_ok());
        assert_eq!(second.expect("it waits"), 7);
        let problem = ProblemDetails::too_large("a text").of_written();
        assert_eq!(problem.status.as_u16(), 500, "nobody sends it in halves");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_that_nobody_waits_for_and_long_work_kept_a_worker() {
        let limits = limits(2, SECOND).work_timeout(Duration::from_millis(30));
        let workers = WorkerPool::start(&limits).expect("threads");
        let endless = |_: &mut SketchCache, limit: &WorkLimit<'_>| -> Result<(), ProblemDetails> {
            loop {
                limit.check()?;
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let long = workers.run(endless).await;
        assert_eq!(long.expect_err("it takes too long").status.as_u16(), 413);
        let workers = WorkerPool::start(&limits.work_timeout(Duration::MAX)).expect("threads");
        let left = timeout(Duration::from_millis(30), workers.run(endless)).await;
        assert!(left.is_err());
        assert_eq!(workers.run(|_, _| Ok(7)).await.expect("a free worker"), 7);
    }
}

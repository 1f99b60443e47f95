//! Threads that do what takes time, so that those that serve connections never do.
//!
//! Requests wait in one queue, in order. One that has waited too long is told to come again instead of being done: under more
//! load than the workers can take, those that are answered are answered in time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::config::Limits;
use crate::problem::Problem;
use crate::sketch::Bench;

/// Stack of a worker: pages of any shape are parsed on it.
const STACK: usize = 8 << 20;

/// Does something small on the thread that asks: waking another would take longer. A panic is a [`Problem`].
pub(crate) fn here<T>(work: impl FnOnce(&mut Bench) -> Result<T, Problem>) -> Result<T, Problem> {
    thread_local! {
        static BENCH: RefCell<Bench> = RefCell::default();
    }
    let mut bench = BENCH.take();
    match catch_unwind(AssertUnwindSafe(|| work(&mut bench))) {
        Ok(done) => {
            BENCH.set(bench);
            done
        }
        // What a panic left half done is not used again.
        Err(_) => Err(Problem::panic()),
    }
}

/// The threads and their queue.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    most: usize,
    patience: Duration,
    /// Memory that a text may take while it is sketched.
    text_memory: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} jobs)", self.jobs.len())
    }
}

struct Job {
    since: Instant,
    work: Box<dyn Work>,
}

/// What a worker does with a job: exactly one of these.
trait Work: Send {
    /// Does it; false when it panicked.
    fn run(self: Box<Self>, bench: &mut Bench) -> bool;
    /// Tells whoever waits why it is not done.
    fn refuse(self: Box<Self>, problem: Problem);
    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool;
}

struct Task<T, F> {
    work: F,
    answer: oneshot::Sender<Result<T, Problem>>,
}

impl<T: Send, F> Work for Task<T, F>
where
    F: FnOnce(&mut Bench) -> Result<T, Problem> + Send,
{
    fn run(self: Box<Self>, bench: &mut Bench) -> bool {
        let Self { work, answer } = *self;
        let done = catch_unwind(AssertUnwindSafe(|| work(bench)));
        let whole = done.is_ok();
        // Whoever asked may have gone.
        let _ = answer.send(done.unwrap_or_else(|_| Err(Problem::panic())));
        whole
    }

    fn refuse(self: Box<Self>, problem: Problem) {
        let _ = self.answer.send(Err(problem));
    }

    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

impl Workers {
    /// Starts the threads.
    pub(crate) fn start(limits: &Limits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            ready: Condvar::new(),
            most: limits.queue,
            patience: limits.patience,
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

    /// Does something on a worker. A panic is a [`Problem`] of this request alone.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Bench) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (answer, done) = oneshot::channel();
        let work = Box::new(Task { work, answer });
        self.shared.push(work);
        let stopping = |_| Err(Problem::busy("stopping", "the service is stopping"));
        done.await.unwrap_or_else(stopping)
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.queue().jobs.len()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // Panics are caught; there is nothing to hear.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Box<dyn Work>) {
        let mut queue = self.queue();
        if queue.jobs.len() >= self.most {
            drop(queue);
            return work.refuse(Problem::busy("queue", "too many requests wait"));
        }
        let since = Instant::now();
        queue.jobs.push_back(Job { since, work });
        drop(queue);
        self.ready.notify_one();
    }

    fn work(&self) {
        let mut bench = Bench::new(self.text_memory);
        while let Some(job) = self.next() {
            if job.work.is_abandoned() {
                continue;
            }
            if job.since.elapsed() > self.patience {
                let problem = Problem::busy("waited", "the request waited too long for a worker");
                job.work.refuse(problem);
            } else if !job.work.run(&mut bench) {
                // What a panic left half done is not used again.
                bench = Bench::new(self.text_memory);
            }
            bench.tidy();
        }
    }

    /// The next job; `None` at the end, when all that waited is done.
    fn next(&self) -> Option<Job> {
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
    fn limits(queue: usize, patience: Duration) -> Limits {
        Limits {
            workers: 1,
            queue,
            patience,
            ..Limits::default()
        }
    }

    #[tokio::test]
    async fn a_panic_costs_its_own_request_only() {
        let workers = Workers::start(&limits(10, SECOND)).expect("threads");
        let lost = workers.run::<()>(|_| panic!("on purpose")).await;
        assert_eq!(lost.expect_err("it panicked").status.as_u16(), 500);
        assert_eq!(workers.run(|_| Ok(7)).await.expect("the thread goes on"), 7);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waited_too_long_is_refused_and_never_done() {
        let workers =
            Arc::new(Workers::start(&limits(2, Duration::from_millis(30))).expect("threads"));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, begun) = oneshot::channel();
        let slow = {
            let workers = Arc::clone(&workers);
            tokio::spawn(async move {
                let held = Mutex::new(held);
                let wait = move |_: &mut Bench| {
                    let _ = started.send(());
                    held.lock()
                        .expect("not poisoned")
                        .recv()
                        .map_err(|_| Problem::panic())
                };
                workers.run(wait).await
            })
        };
        begun.await.expect("it started");
        let late = |workers: &Arc<Workers>| {
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

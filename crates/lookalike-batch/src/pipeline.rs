//! Chunks of input through any number of workers and back into order.
//!
//! One thread reads and decompresses, the workers compute, and the caller's thread takes their results in the order
//! of the input. With one thread everything happens on the caller's, without channels.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, mpsc};

use lookalike_corpus::RecordChunk;
use lookalike_hamming::threads::join_all;

use crate::document_memory::{CHUNK_BYTES, DocumentMemory, LongestDocument};
use crate::error::BatchError;
use crate::locks::lock;
use crate::observer::JobObserver;

/// A piece of the input that one worker takes at a time.
pub(crate) trait InputChunk: Send {
    /// Bytes that it holds in memory.
    fn held_bytes(&self) -> usize;

    /// Its longest document, or one at least as long.
    fn longest_document(&self) -> LongestDocument;

    /// True if no worker gets it before all chunks before it are collected.
    fn waits_for_all(&self) -> bool {
        false
    }
}

impl InputChunk for RecordChunk {
    fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn longest_document(&self) -> LongestDocument {
        // A longer one than chunks usually are has a chunk of its own, or the end of one.
        LongestDocument {
            bytes: self.held_bytes() as u64,
            place: self.last_record(),
        }
    }
}

/// A worker: makes something of each chunk.
pub(crate) trait ChunkWorker<C>: Send {
    type Output: Send;
    fn run(&mut self, chunk: &C) -> Result<Self::Output, BatchError>;

    /// Gives back the memory that buffers took for a long document: each worker would keep that of the longest one.
    fn shrink(&mut self);
}

/// Chunks of more bytes, which hold a document that is no ordinary one, leave no buffers.
const SHRINK_BYTES: u64 = 2 * CHUNK_BYTES;

/// Runs all chunks through `workers` and gives what they make to `collect`, in the order of the chunks. Returns the workers.
///
/// Chunks wait for one another where all of them together are too much for `memory`, so that long documents take no more than that
/// allows; ordinary chunks never do.
///
/// # Errors
/// [`BatchError::LongDocuments`] at a chunk that is too long for `memory`, [`BatchError::Cancelled`], and whatever reading, a worker or `collect` meets.
pub(crate) fn run_in_order<C, E, W>(
    chunks: impl Iterator<Item = Result<C, E>> + Send,
    memory: DocumentMemory<'_>,
    observer: &dyn JobObserver,
    mut workers: Vec<W>,
    mut collect: impl FnMut(W::Output) -> Result<(), BatchError>,
) -> Result<Vec<W>, BatchError>
where
    C: InputChunk,
    E: Send,
    BatchError: From<E>,
    W: ChunkWorker<C>,
{
    let mut collect = |output| match observer.is_cancelled() {
        true => Err(BatchError::Cancelled),
        false => collect(output),
    };
    if let [worker] = workers.as_mut_slice() {
        for chunk in chunks {
            let chunk = chunk?;
            ensure_fits(memory, &chunk)?;
            let result = worker.run(&chunk)?;
            if chunk.held_bytes() as u64 > SHRINK_BYTES {
                worker.shrink();
            }
            drop(chunk);
            collect(result)?;
        }
        return Ok(workers);
    }
    let window = workers.len() * 2 + 2;
    let done = Outputs::new(window);
    let mut erased: Vec<_> = (workers.iter_mut())
        .map(|worker| NumberedWorker {
            worker,
            done: &done,
        })
        .collect();
    let pipeline = Pipeline {
        workers: erased.iter_mut().map(|worker| worker as _).collect(),
        window: window as u64,
        memory,
    };
    let mut chunks = chunks.map(|chunk| chunk.map_err(BatchError::from));
    pipeline.run(&mut chunks, &mut |number| collect(done.take(number)))?;
    Ok(workers)
}

/// Outputs of workers, of chunks that were not collected yet.
struct Outputs<T>(Vec<Mutex<Option<T>>>);

impl<T> Outputs<T> {
    /// For chunks whose numbers differ by less than `window`.
    fn new(window: usize) -> Self {
        let places = std::iter::repeat_with(Mutex::default);
        Self(places.take(window).collect())
    }

    fn place(&self, number: u64) -> MutexGuard<'_, Option<T>> {
        lock(&self.0[(number % self.0.len() as u64) as usize])
    }

    fn take(&self, number: u64) -> T {
        self.place(number).take().expect("a worker made it")
    }
}

/// A worker whose outputs wait elsewhere, so that threads and channels need not know their type: for each type, they would be fifteen
/// thousand lines of intermediate code.
struct NumberedWorker<'a, W, T> {
    worker: &'a mut W,
    done: &'a Outputs<T>,
}

/// See [`NumberedWorker`].
trait ErasedWorker<C>: Send {
    fn run(&mut self, number: u64, chunk: &C) -> Result<(), BatchError>;
    fn shrink(&mut self);
}

impl<C, W: ChunkWorker<C>> ErasedWorker<C> for NumberedWorker<'_, W, W::Output> {
    fn run(&mut self, number: u64, chunk: &C) -> Result<(), BatchError> {
        let output = self.worker.run(chunk)?;
        *self.done.place(number) = Some(output);
        Ok(())
    }

    fn shrink(&mut self) {
        self.worker.shrink();
    }
}

/// A reader, several workers and a collector.
struct Pipeline<'a, C> {
    workers: Vec<&'a mut dyn ErasedWorker<C>>,
    /// Chunks that may be between reader and collector.
    window: u64,
    memory: DocumentMemory<'a>,
}

impl<C: InputChunk> Pipeline<'_, C> {
    /// Tells `collect` the number of each chunk in turn, once a worker is done with it.
    fn run(
        self,
        chunks: &mut (dyn Iterator<Item = Result<C, BatchError>> + Send),
        collect: &mut dyn FnMut(u64) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let workers = self.workers;
        // One that is worked on, and for every other worker one that waits.
        let ordinary = workers.len() as u64 * CHUNK_BYTES * 3 / 2;
        let line = PipelineState {
            progress: Mutex::default(),
            moved: Condvar::new(),
            stop: AtomicBool::new(false),
            window: self.window,
            memory: self.memory,
            in_flight: self.memory.in_flight().max(ordinary),
        };
        let (chunk_sender, received) = mpsc::sync_channel(workers.len());
        let received = Mutex::new(received);
        let (sender, results) = mpsc::channel();
        std::thread::scope(|scope| {
            let (line, received) = (&line, &received);
            let reader = scope.spawn(move || line.read(chunks, &chunk_sender));
            let begin = |worker| {
                let sender = sender.clone();
                scope.spawn(move || line.work(worker, received, &sender))
            };
            let working = workers.into_iter().map(begin).collect();
            drop(sender);
            // Also when `collect` panics.
            let _stop = StopAtEnd(line);
            let collected = line.collect(&results, collect);
            // Nobody listens any more: workers end with what they have in hand.
            drop(results);
            let read = reader.join();
            join_all(working);
            // It runs what the caller gave: a panic there is the caller's.
            collected.and(read.unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }
}

fn ensure_fits<C: InputChunk>(memory: DocumentMemory<'_>, chunk: &C) -> Result<(), BatchError> {
    // So it is nearly always, and no document need be looked at.
    match memory.fits(chunk.held_bytes() as u64) {
        true => Ok(()),
        false => memory.ensure_fits(chunk.longest_document()),
    }
}

fn receive<C>(chunks: &Mutex<mpsc::Receiver<(u64, C)>>) -> Option<(u64, C)> {
    lock(chunks).recv().ok()
}

/// A chunk that a worker is done with, and what became of it.
struct ChunkDone {
    number: u64,
    bytes: u64,
    result: Result<(), BatchError>,
}

/// Progress of reader and collector.
#[derive(Default)]
struct PipelineProgress {
    /// Chunks that were collected.
    collected: u64,
    /// Bytes of chunks that were read and are not collected yet.
    in_flight: u64,
}

/// State that reader and collector share: how far the one may be ahead of the other, and whether to stop.
struct PipelineState<'a> {
    progress: Mutex<PipelineProgress>,
    moved: Condvar,
    stop: AtomicBool,
    /// Chunks that may be between reader and collector: memory is bounded even when one of them takes long.
    window: u64,
    /// Memory for them all.
    memory: DocumentMemory<'a>,
    /// Bytes of such chunks, unless it is a single one.
    in_flight: u64,
}

/// Ends the reader, whatever happens.
struct StopAtEnd<'a>(&'a PipelineState<'a>);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl PipelineState<'_> {
    /// Lets the reader end, also if it waits for chunks that will never be collected.
    fn stop(&self) {
        // Under the lock: the reader has not yet looked, or waits and is woken.
        let _progress = lock(&self.progress);
        self.stop.store(true, Ordering::Relaxed);
        self.moved.notify_all();
    }

    /// Waits while something holds, or until nothing more is wanted.
    fn wait_while(
        &self,
        holds: impl Fn(&PipelineProgress) -> bool,
    ) -> MutexGuard<'_, PipelineProgress> {
        let mut progress = lock(&self.progress);
        while holds(&progress) && !self.stop.load(Ordering::Relaxed) {
            progress = self
                .moved
                .wait(progress)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        progress
    }

    /// Waits until there is room for a chunk, and counts it.
    fn enter(&self, number: u64, bytes: u64) {
        let is_full = |progress: &PipelineProgress| {
            // The chunk that the collector waits for always gets in, or nobody would ever move.
            let is_alone = number == progress.collected;
            number >= progress.collected + self.window
                || (!is_alone && progress.in_flight + bytes > self.in_flight)
        };
        self.wait_while(is_full).in_flight += bytes;
    }

    fn read<C: InputChunk>(
        &self,
        chunks: &mut dyn Iterator<Item = Result<C, BatchError>>,
        sender: &mpsc::SyncSender<(u64, C)>,
    ) -> Result<(), BatchError> {
        for (number, chunk) in (0..).zip(chunks) {
            let chunk = chunk?;
            let bytes = chunk.held_bytes() as u64;
            ensure_fits(self.memory, &chunk)?;
            if chunk.waits_for_all() {
                drop(self.wait_while(|progress| progress.collected < number));
            }
            self.enter(number, bytes);
            if self.stop.load(Ordering::Relaxed) || sender.send((number, chunk)).is_err() {
                break;
            }
            if bytes > self.in_flight {
                // Another one that is read meanwhile would take memory beside it.
                drop(self.wait_while(|progress| progress.collected <= number));
            }
        }
        Ok(())
    }

    /// Takes chunks until there are none, or nobody wants to hear of them.
    fn work<C: InputChunk>(
        &self,
        worker: &mut dyn ErasedWorker<C>,
        received: &Mutex<mpsc::Receiver<(u64, C)>>,
        sender: &mpsc::Sender<ChunkDone>,
    ) {
        while let Some((number, chunk)) = receive(received) {
            let result = catch_unwind(AssertUnwindSafe(|| worker.run(number, &chunk)));
            let result = result.unwrap_or_else(|panic| {
                // The collector waits for this chunk, the reader for the collector, and others for the reader.
                self.stop();
                while receive(received).is_some() {}
                resume_unwind(panic)
            });
            let bytes = chunk.held_bytes() as u64;
            // Its memory must be free before another chunk is let in for it.
            drop(chunk);
            if bytes > SHRINK_BYTES {
                worker.shrink();
            }
            let done = ChunkDone {
                number,
                bytes,
                result,
            };
            if sender.send(done).is_err() {
                break;
            }
        }
    }

    fn collect(
        &self,
        results: &mpsc::Receiver<ChunkDone>,
        collect: &mut dyn FnMut(u64) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        let mut outcome = Ok(());
        for done in results {
            waiting.insert(done.number, done);
            while let Some(done) = waiting.remove(&next) {
                next += 1;
                if outcome.is_ok() {
                    // After a failure chunks are still counted, or the reader would wait for room that never
                    // comes.
                    outcome = done.result.and_then(|()| collect(done.number));
                }
                let mut progress = lock(&self.progress);
                progress.collected = next;
                progress.in_flight -= done.bytes;
                drop(progress);
                if outcome.is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                // Only the reader waits here. Set without the lock, `stop` can be missed once: but the reader
                // waits only while a chunk is on its way, whose collection wakes it again.
                self.moved.notify_one();
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;

    use super::*;
    use crate::observer::NoProgress;

    /// A chunk of so many bytes, none of which is there.
    struct SizedChunk(u64);

    impl InputChunk for SizedChunk {
        fn held_bytes(&self) -> usize {
            self.0 as usize
        }

        fn longest_document(&self) -> LongestDocument {
            LongestDocument {
                bytes: self.0,
                place: None,
            }
        }
    }

    /// Returns sizes.
    struct SizeWorker;

    impl ChunkWorker<SizedChunk> for SizeWorker {
        type Output = u64;

        fn run(&mut self, chunk: &SizedChunk) -> Result<u64, BatchError> {
            std::thread::yield_now();
            Ok(chunk.0)
        }

        fn shrink(&mut self) {}
    }

    /// A chunk, and whether it waits for all before it; it goes with the number of chunks that were collected.
    struct WaitingChunk<'c>(bool, &'c AtomicU64);

    impl InputChunk for WaitingChunk<'_> {
        fn held_bytes(&self) -> usize {
            1
        }

        fn longest_document(&self) -> LongestDocument {
            LongestDocument {
                bytes: 1,
                place: None,
            }
        }

        fn waits_for_all(&self) -> bool {
            self.0
        }
    }

    /// Returns how many chunks were collected when it got the chunk.
    struct WaitingWorker;

    impl ChunkWorker<WaitingChunk<'_>> for WaitingWorker {
        type Output = u64;

        fn run(&mut self, chunk: &WaitingChunk<'_>) -> Result<u64, BatchError> {
            Ok(chunk.1.load(Ordering::Relaxed))
        }

        fn shrink(&mut self) {}
    }

    /// Panics at chunks of no bytes.
    struct PanickingWorker;

    impl ChunkWorker<SizedChunk> for PanickingWorker {
        type Output = u64;

        fn run(&mut self, chunk: &SizedChunk) -> Result<u64, BatchError> {
            assert!(chunk.0 > 0, "a chunk of nothing");
            Ok(chunk.0)
        }

        fn shrink(&mut self) {}
    }

    #[test]
    fn a_panic_in_a_worker_or_the_collector_hung_the_job() {
        for (nothing, collector) in [
            (3, None),
            (0, None),
            (u64::MAX, Some(5)),
            (u64::MAX, Some(0)),
        ] {
            for threads in [1, 2, 5] {
                let (sender, ended) = mpsc::channel();
                let job = std::thread::spawn(move || {
                    let chunks = (0..500)
                        .map(|at| Ok::<_, BatchError>(SizedChunk(u64::from(at != nothing))));
                    let workers = (0..threads).map(|_| PanickingWorker).collect();
                    let mut collected = 0;
                    let run = AssertUnwindSafe(|| {
                        run_in_order(
                            chunks,
                            DocumentMemory::of(1 << 30),
                            &NoProgress,
                            workers,
                            |_| {
                                assert_ne!(Some(collected), collector, "a collector that panics");
                                collected += 1;
                                Ok(())
                            },
                        )
                    });
                    sender.send(catch_unwind(run).is_err())
                });
                let ended = ended.recv_timeout(std::time::Duration::from_secs(60));
                assert_eq!(ended, Ok(true), "{nothing} {collector:?} {threads}");
                job.join().unwrap().unwrap();
            }
        }
    }

    /// Cancels once two chunks are collected.
    struct CancelAfterTwo(AtomicU64);

    impl JobObserver for CancelAfterTwo {
        fn progress(&self, _: u64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn is_cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= 2
        }
    }

    #[test]
    fn jobs_that_did_not_ask_went_on_after_they_were_cancelled() {
        for threads in [1, 3] {
            let observer = CancelAfterTwo(AtomicU64::new(0));
            let chunks = (0..100).map(|_| Ok::<_, BatchError>(SizedChunk(1)));
            let workers = (0..threads).map(|_| SizeWorker).collect();
            let memory = DocumentMemory::of(1 << 30);
            let ended = run_in_order(chunks, memory, &observer, workers, |_| {
                observer.progress(1);
                Ok(())
            });
            assert!(matches!(ended, Err(BatchError::Cancelled)));
            assert_eq!(observer.0.into_inner(), 2, "{threads}");
        }
    }

    proptest! {
        #[test]
        fn a_chunk_that_waits_is_worked_on_when_all_before_it_are_collected(
            waits in prop::collection::vec(any::<bool>(), 0..60),
            threads in 1..6_usize,
            failing in prop::option::of(0..60_u64),
        ) {
            let collected = AtomicU64::new(0);
            let chunks = waits.iter().map(|&waits| Ok::<_, BatchError>(WaitingChunk(waits, &collected)));
            let workers = (0..threads).map(|_| WaitingWorker).collect();
            let mut before = Vec::new();
            let outcome = run_in_order(chunks, DocumentMemory::of(1 << 30), &NoProgress, workers, |count| {
                before.push(count);
                if Some(collected.fetch_add(1, Ordering::Relaxed)) == failing {
                    return Err(BatchError::Cancelled);
                }
                Ok(())
            });
            prop_assert_eq!(outcome.is_err(), failing.is_some_and(|failing| failing < waits.len() as u64));
            for (number, (&waits, count)) in waits.iter().zip(before).enumerate() {
                prop_assert!(!waits || count == number as u64);
            }
        }

        #[test]
        fn chunks_in_hand_are_within_the_limit_or_one_alone(
            sizes in prop::collection::vec(0..40 * CHUNK_BYTES, 0..60),
            memory in 0..240 * CHUNK_BYTES,
            threads in 1..6_usize,
        ) {
            let memory = DocumentMemory::of(memory);
            let fitting = sizes.iter().take_while(|&&size| memory.fits(size)).count();
            let workers = (0..threads).map(|_| SizeWorker).collect();
            let begun = AtomicU64::new(0);
            let (mut collected, mut done) = (Vec::new(), 0);
            let limit = memory.in_flight().max(threads as u64 * CHUNK_BYTES * 3 / 2);
            // One more is read while it waits for room.
            let most_beside = sizes.iter().max().copied().unwrap_or(0);
            let chunks = sizes.iter().map(|&size| {
                begun.fetch_add(size, Ordering::Relaxed);
                Ok::<_, BatchError>(SizedChunk(size))
            });
            let outcome = run_in_order(chunks, memory, &NoProgress, workers, |size| {
                let in_hand = begun.load(Ordering::Relaxed) - done;
                assert!(in_hand <= limit.max(most_beside) + most_beside, "{in_hand} of {limit}");
                done += size;
                collected.push(size);
                Ok(())
            });
            match outcome {
                Ok(_) => prop_assert_eq!(fitting, sizes.len()),
                Err(error) => {
                    let refused = matches!(error, BatchError::LongDocuments { document, .. } if document == sizes[fitting]);
                    prop_assert!(refused, "{}", error);
                }
            }
            prop_assert_eq!(&collected, &sizes[..fitting]);
        }
    }
}

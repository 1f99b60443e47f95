//! Runs chunks of input through several workers and restores their order.
//!
//! One thread reads and decompresses, the workers compute, and the caller's thread takes their results in the order
//! of the input. With one worker everything happens on the caller's thread, without channels.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, mpsc};

use lookalike_corpus::RecordChunk;
use lookalike_hamming::threads::{join_all, spawn_scoped};

use crate::document_memory::{CHUNK_BYTES, DocumentMemory, LongestDocument};
use crate::error::BatchError;
use crate::locks::lock;
use crate::observer::JobObserver;

/// A piece of the input that is handed to one worker.
pub(crate) trait InputChunk: Send {
    /// Returns the number of bytes that it holds in memory.
    fn held_bytes(&self) -> usize;

    /// Returns its longest document, or a length at least as large.
    fn longest_document(&self) -> LongestDocument;

    /// Returns the number of start tags if it consists of HTML, or a larger number.
    fn start_tags(&self) -> u64 {
        0
    }

    /// Returns true if no worker may get it before all earlier chunks are collected.
    fn needs_all_earlier(&self) -> bool {
        false
    }
}

impl InputChunk for RecordChunk {
    fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn start_tags(&self) -> u64 {
        /// Number of bytes whose tags are counted in a byte, so that the loop is one of vectors.
        const STEP: usize = 128;
        let next = self.bytes.get(1..).unwrap_or_default();
        let steps = self.bytes.chunks(STEP).zip(next.chunks(STEP));
        let tags = steps.map(|(bytes, next)| {
            let starts = bytes.iter().zip(next);
            let starts = starts.map(|(byte, next)| u8::from(*byte == b'<' && *next != b'/'));
            u64::from(starts.sum::<u8>())
        });
        tags.sum()
    }

    fn longest_document(&self) -> LongestDocument {
        // A document longer than a usual chunk is a chunk of its own, or the end of one.
        LongestDocument {
            bytes: self.held_bytes() as u64,
            place: self.last_record(),
        }
    }
}

/// A worker, which computes an output from each chunk.
pub(crate) trait ChunkWorker<C>: Send {
    type Output: Send;
    fn run(&mut self, chunk: &C) -> Result<Self::Output, BatchError>;

    /// Releases the buffers that grew for a long document; otherwise each worker would keep those of its longest one.
    fn shrink(&mut self);
}

/// Size above which a chunk must contain an unusually long document, so the worker's buffers are released after it.
const SHRINK_BYTES: u64 = 2 * CHUNK_BYTES;

/// Runs all chunks through `workers` and passes their outputs to `collect`, in the order of the chunks. Returns the workers.
///
/// When chunks together would exceed `memory`, they wait for each other, so that long documents stay within the limit.
/// Ordinary chunks never wait.
///
/// # Errors
/// [`BatchError::LongDocuments`] at a chunk that is too long for `memory`, [`BatchError::Cancelled`], and any error of reading, of a worker or of
/// `collect`.
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
    let mut chunks = chunks.map(|chunk| chunk.map_err(BatchError::from));
    if let [worker] = workers.as_mut_slice() {
        run_alone(&mut chunks, memory, worker, &mut collect)?;
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
    let has_run = pipeline.run(&mut chunks, &mut |number| collect(done.take(number)))?;
    drop(erased);
    match workers.first_mut() {
        // The system allows no threads, and no chunk was read.
        Some(worker) if !has_run => run_alone(&mut chunks, memory, worker, &mut collect)?,
        _ => {}
    }
    Ok(workers)
}

/// Runs all chunks through a worker on the caller's thread.
fn run_alone<C: InputChunk, W: ChunkWorker<C>>(
    chunks: &mut dyn Iterator<Item = Result<C, BatchError>>,
    memory: DocumentMemory<'_>,
    worker: &mut W,
    collect: &mut dyn FnMut(W::Output) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    for chunk in chunks {
        let chunk = chunk?;
        ensure_fits(memory, &chunk)?;
        let result = worker.run(&chunk)?;
        if chunk.held_bytes() as u64 > SHRINK_BYTES {
            worker.shrink();
        }
        // Its memory is free before the result is used.
        drop(chunk);
        collect(result)?;
    }
    Ok(())
}

/// Outputs for chunks that are not yet collected.
struct Outputs<T>(Vec<Mutex<Option<T>>>);

impl<T> Outputs<T> {
    /// Creates outputs for chunks whose numbers differ by less than `window`.
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

/// A worker that stores its outputs elsewhere, so that threads and channels need not know their type. Otherwise they would be compiled for
/// each type: fifteen thousand lines of intermediate code each.
struct NumberedWorker<'a, W, T> {
    worker: &'a mut W,
    done: &'a Outputs<T>,
}

/// The part of [`NumberedWorker`] that does not depend on the output type.
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
    /// Maximum number of chunks between reader and collector.
    window: u64,
    memory: DocumentMemory<'a>,
}

impl<C: InputChunk> Pipeline<'_, C> {
    /// Passes the number of each chunk to `collect`, in order, once a worker has processed it. Returns false if the system allows no threads for that;
    /// nothing was read then.
    fn run(
        self,
        chunks: &mut (dyn Iterator<Item = Result<C, BatchError>> + Send),
        collect: &mut dyn FnMut(u64) -> Result<(), BatchError>,
    ) -> Result<bool, BatchError> {
        let workers = self.workers;
        // One chunk in work for each worker, and one waiting for every other worker.
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
        // Unbounded, but it never holds more than a window: the reader waits for the collector.
        let (sender, results) = mpsc::channel();
        std::thread::scope(|scope| {
            let (line, received) = (&line, &received);
            let begin = |worker| {
                let sender = sender.clone();
                spawn_scoped(scope, move || line.work(worker, received, &sender)).ok()
            };
            // Of those that the system refuses, others do the work.
            let working: Vec<_> = workers.into_iter().map_while(begin).collect();
            // Each worker has a copy; the collector ends when all of them are gone.
            drop(sender);
            if working.is_empty() {
                return Ok(false);
            }
            // The reader owns the only sender, so the workers end when it does, and also if the system refuses it.
            let Ok(reader) = spawn_scoped(scope, move || line.read(chunks, &chunk_sender)) else {
                join_all(working);
                return Ok(false);
            };
            // Stops the reader even if `collect` panics.
            let _stop = StopAtEnd(line);
            let collected = line.collect(&results, collect);
            // Nobody receives any more, so each worker ends after its current chunk.
            drop(results);
            let read = reader.join();
            join_all(working);
            // The reader runs the caller's iterator, so a panic there is passed on to the caller.
            collected.and(read.unwrap_or_else(|panic| resume_unwind(panic)))?;
            Ok(true)
        })
    }
}

fn ensure_fits<C: InputChunk>(memory: DocumentMemory<'_>, chunk: &C) -> Result<(), BatchError> {
    // The usual case, in which no document has to be examined.
    match memory.fits(chunk.held_bytes() as u64) {
        true => Ok(()),
        false => memory.ensure_fits(chunk.longest_document()),
    }
}

fn receive<C>(chunks: &Mutex<mpsc::Receiver<NumberedChunk<C>>>) -> Option<NumberedChunk<C>> {
    lock(chunks).recv().ok()
}

/// A chunk in flight.
struct NumberedChunk<C> {
    number: u64,
    /// Bytes that it takes of those in flight.
    bytes: u64,
    chunk: C,
}

/// A chunk that a worker has processed, with the outcome.
struct ProcessedChunk {
    number: u64,
    bytes: u64,
    result: Result<(), BatchError>,
}

/// Progress of reader and collector.
#[derive(Default)]
struct PipelineProgress {
    /// Number of chunks collected.
    collected: u64,
    /// Bytes of chunks that were read but not yet collected, as [`DocumentMemory::counted`] counts them.
    in_flight: u64,
}

/// State shared by reader and collector: how far the reader may be ahead, and whether to stop.
struct PipelineState<'a> {
    progress: Mutex<PipelineProgress>,
    moved: Condvar,
    stop: AtomicBool,
    /// Maximum number of chunks between reader and collector, which bounds the memory even if one of them takes long.
    window: u64,
    /// Memory for all of these chunks.
    memory: DocumentMemory<'a>,
    /// Maximum number of bytes of these chunks, except for a single one.
    in_flight: u64,
}

/// Stops the reader when dropped.
struct StopAtEnd<'a>(&'a PipelineState<'a>);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl PipelineState<'_> {
    /// Makes the reader end, even if it waits for chunks that will never be collected.
    fn stop(&self) {
        // Under the lock, so that the reader either has not checked yet or is waiting and is woken.
        let _progress = lock(&self.progress);
        self.stop.store(true, Ordering::Relaxed);
        self.moved.notify_all();
    }

    /// Waits while `holds` returns true, or until the pipeline stops.
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

    /// Waits until there is room for a chunk, then counts it.
    fn enter(&self, number: u64, bytes: u64) {
        let is_full = |progress: &PipelineProgress| {
            // The chunk that the collector waits for is always let in, or there would be a deadlock.
            let is_alone = number == progress.collected;
            number >= progress.collected + self.window
                || (!is_alone && progress.in_flight + bytes > self.in_flight)
        };
        self.wait_while(is_full).in_flight += bytes;
    }

    fn read<C: InputChunk>(
        &self,
        chunks: &mut dyn Iterator<Item = Result<C, BatchError>>,
        sender: &mpsc::SyncSender<NumberedChunk<C>>,
    ) -> Result<(), BatchError> {
        for (number, chunk) in (0..).zip(chunks) {
            let chunk = chunk?;
            let held = chunk.held_bytes() as u64;
            let bytes = self
                .memory
                .counted(held, || chunk.start_tags(), self.window);
            ensure_fits(self.memory, &chunk)?;
            if chunk.needs_all_earlier() {
                drop(self.wait_while(|progress| progress.collected < number));
            }
            self.enter(number, bytes);
            let chunk = NumberedChunk {
                number,
                bytes,
                chunk,
            };
            if self.stop.load(Ordering::Relaxed) || sender.send(chunk).is_err() {
                break;
            }
            if bytes > self.in_flight {
                // A chunk that is read meanwhile would take memory besides this one.
                drop(self.wait_while(|progress| progress.collected <= number));
            }
        }
        Ok(())
    }

    /// Processes chunks until there are no more, or until nobody receives the results.
    fn work<C: InputChunk>(
        &self,
        worker: &mut dyn ErasedWorker<C>,
        received: &Mutex<mpsc::Receiver<NumberedChunk<C>>>,
        sender: &mpsc::Sender<ProcessedChunk>,
    ) {
        while let Some(NumberedChunk {
            number,
            bytes,
            chunk,
        }) = receive(received)
        {
            let result = catch_unwind(AssertUnwindSafe(|| worker.run(number, &chunk)));
            let result = result.unwrap_or_else(|panic| {
                // Otherwise the collector would wait for this chunk, the reader for the collector, and others for the reader.
                self.stop();
                while receive(received).is_some() {}
                resume_unwind(panic)
            });
            let is_long = chunk.held_bytes() as u64 > SHRINK_BYTES;
            // Free its memory before another chunk is let in.
            drop(chunk);
            if is_long {
                worker.shrink();
            }
            let done = ProcessedChunk {
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
        results: &mpsc::Receiver<ProcessedChunk>,
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
                    // After a failure chunks are still counted, because the reader would otherwise wait for room that never
                    // becomes free.
                    outcome = done.result.and_then(|()| collect(done.number));
                }
                let mut progress = lock(&self.progress);
                progress.collected = next;
                progress.in_flight -= done.bytes;
                drop(progress);
                if outcome.is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                // Only the reader waits here. It can miss `stop` once, because that is set without the lock; but it
                // waits only while a chunk is in flight, and collecting that wakes it again.
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

    /// A chunk that claims to hold this many bytes.
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

    /// A worker that returns the sizes of its chunks.
    struct SizeWorker;

    impl ChunkWorker<SizedChunk> for SizeWorker {
        type Output = u64;

        fn run(&mut self, chunk: &SizedChunk) -> Result<u64, BatchError> {
            std::thread::yield_now();
            Ok(chunk.0)
        }

        fn shrink(&mut self) {}
    }

    /// A chunk, whether it waits for all earlier ones, and the number of chunks collected so far.
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

        fn needs_all_earlier(&self) -> bool {
            self.0
        }
    }

    /// A worker that returns the number of chunks collected when it got the chunk.
    struct WaitingWorker;

    impl ChunkWorker<WaitingChunk<'_>> for WaitingWorker {
        type Output = u64;

        fn run(&mut self, chunk: &WaitingChunk<'_>) -> Result<u64, BatchError> {
            Ok(chunk.1.load(Ordering::Relaxed))
        }

        fn shrink(&mut self) {}
    }

    /// A worker that panics at chunks of zero bytes.
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
            // One more chunk is read while it waits for room.
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

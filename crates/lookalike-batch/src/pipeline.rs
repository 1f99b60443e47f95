//! Chunks of input through any number of workers and back into order.
//!
//! One thread reads and decompresses, the workers compute, and the caller's thread takes their results in the order
//! of the input. With one thread everything happens on the caller's, without channels.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, mpsc};

use lookalike_corpus::RecordChunk;

use crate::error::BatchError;
use crate::spill::partitions::lock;

/// Chunks of more bytes, which hold a long document, go through one after another.
pub(crate) const LONG_BYTES: usize = 16 << 20;

/// A piece of the input that one worker takes at a time.
pub(crate) trait InputChunk: Send {
    /// Bytes that it holds in memory.
    fn held_bytes(&self) -> usize;
}

impl InputChunk for RecordChunk {
    fn held_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// A worker: makes something of each chunk.
pub(crate) trait ChunkWorker<C>: Send {
    type Output: Send;
    fn run(&mut self, chunk: &C) -> Result<Self::Output, BatchError>;
}

/// Runs all chunks through `workers` and gives what they make to `collect`, in the order of the chunks. Returns the workers.
pub(crate) fn run_in_order<C, E, W>(
    chunks: impl Iterator<Item = Result<C, E>> + Send,
    mut workers: Vec<W>,
    mut collect: impl FnMut(W::Output) -> Result<(), BatchError>,
) -> Result<Vec<W>, BatchError>
where
    C: InputChunk,
    E: Send,
    BatchError: From<E>,
    W: ChunkWorker<C>,
{
    if let [worker] = workers.as_mut_slice() {
        for chunk in chunks {
            collect(worker.run(&chunk?)?)?;
        }
        return Ok(workers);
    }
    let window = workers.len() as u64 * 2 + 2;
    let line = PipelineState {
        collected: Mutex::new(0),
        moved: Condvar::new(),
        stop: AtomicBool::new(false),
        window,
    };
    let (chunk_sender, received) = mpsc::sync_channel(workers.len());
    let received = Mutex::new(received);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        let line = &line;
        let reader = scope.spawn(move || line.read(chunks, &chunk_sender));
        let mut handles = Vec::new();
        for mut worker in workers {
            let (received, sender) = (&received, sender.clone());
            handles.push(scope.spawn(move || {
                while let Some((number, chunk)) = receive(received) {
                    if sender.send((number, worker.run(&chunk))).is_err() {
                        break;
                    }
                }
                worker
            }));
        }
        drop(sender);
        let collected = line.collect(&results, &mut collect);
        drop(results);
        let read = reader.join().expect("the reader does not panic");
        let workers = handles
            .into_iter()
            .map(|handle| handle.join().expect("workers do not panic"))
            .collect();
        collected?;
        read?;
        Ok(workers)
    })
}

fn receive<C>(chunks: &Mutex<mpsc::Receiver<(u64, C)>>) -> Option<(u64, C)> {
    lock(chunks).recv().ok()
}

/// State that reader and collector share: how far the one may be ahead of the other, and whether to stop.
struct PipelineState {
    collected: Mutex<u64>,
    moved: Condvar,
    stop: AtomicBool,
    /// Chunks that may be between reader and collector: memory is bounded even when one of them takes long.
    window: u64,
}

impl PipelineState {
    /// Waits until so many chunks are collected, or nothing more is wanted.
    fn wait_for(&self, count: u64) {
        let mut collected = lock(&self.collected);
        while *collected < count && !self.stop.load(Ordering::Relaxed) {
            collected = self
                .moved
                .wait(collected)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn read<C: InputChunk, E>(
        &self,
        chunks: impl Iterator<Item = Result<C, E>>,
        sender: &mpsc::SyncSender<(u64, C)>,
    ) -> Result<(), E> {
        let number = AtomicU64::new(0);
        for chunk in chunks {
            let chunk = chunk?;
            let number = number.fetch_add(1, Ordering::Relaxed);
            let mut collected = lock(&self.collected);
            while number >= *collected + self.window && !self.stop.load(Ordering::Relaxed) {
                collected = self
                    .moved
                    .wait(collected)
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            drop(collected);
            let is_long = chunk.held_bytes() > LONG_BYTES;
            if self.stop.load(Ordering::Relaxed) || sender.send((number, chunk)).is_err() {
                break;
            }
            if is_long {
                // Several at once, and one more that is read meanwhile, would take their memory times the threads.
                self.wait_for(number + 1);
            }
        }
        Ok(())
    }

    fn collect<T>(
        &self,
        results: &mpsc::Receiver<(u64, Result<T, BatchError>)>,
        collect: &mut impl FnMut(T) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        let mut outcome = Ok(());
        for (number, result) in results {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&next) {
                next += 1;
                if outcome.is_ok() {
                    outcome = result.and_then(&mut *collect);
                }
                *lock(&self.collected) = next;
                if outcome.is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                self.moved.notify_one();
            }
        }
        outcome
    }
}

//! A reading of all records: parsed on all threads, collected in the order of the input, with what could not be read.

use lookalike_corpus::{InputOptions, Inputs, Parser, Record, RecordChunk};

use crate::boilerplate::{BoilerplateCounts, RemovedTally};
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::BatchError;
use crate::fields::FieldTally;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, NoProgress};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};

/// The input of a job, and how its records are read.
#[derive(Clone, Debug)]
pub struct RecordScan<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: InputOptions,
    pub(crate) limits: JobLimits,
    pub(crate) losses: LossPolicy,
    pub(crate) observer: &'a dyn JobObserver,
}

lookalike::setters! {
    RecordScan<'a> {
        /// Sets how sources are read: the options that [`Inputs::discover`] was given.
        options: InputOptions,
        /// Sets how many threads and how much memory the job may use.
        limits: JobLimits,
        /// Sets what is done about records that cannot be read: they are left out and counted, if nothing is said.
        losses: LossPolicy,
        /// Sets who hears of progress.
        observer: &'a dyn JobObserver,
    }
}

/// Makes something of the records of a chunk; each thread has one.
pub(crate) trait RecordWorker: Send {
    /// True if the input is read again, and must be the same then.
    const SUMS: bool = false;

    type Product: Default + Send;

    /// Adds a record to what is made of its chunk.
    fn add(&mut self, record: &Record<'_>, product: &mut Self::Product);

    /// Gives back the memory that buffers took for a long document.
    fn shrink(&mut self) {}
}

/// Counts of a reading.
pub(crate) struct ScanCounts {
    /// Records that could be read.
    pub(crate) records: u64,
    /// Bytes of input as stored.
    pub(crate) disk_bytes: u64,
    /// Counts of what was taken out of texts, if anything was to be.
    pub(crate) boilerplate: Option<BoilerplateCounts>,
    /// Parts that were not read, by reason.
    pub(crate) skipped: Vec<SkippedRow>,
}

/// A mark by which a chunk is known when it is read again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkSum {
    sum: u64,
    /// Source of its last record.
    pub(crate) source: u32,
}

/// Findings of a reading that is not judged yet.
#[derive(Default)]
pub(crate) struct ScanTotals {
    pub(crate) fields: FieldTally,
    /// Those of all chunks, where they are wanted.
    pub(crate) sums: Vec<ChunkSum>,
    removed: RemovedTally,
    disk_bytes: u64,
}

/// A worker with its parser.
struct ScanWorker<'a, W> {
    inputs: &'a Inputs,
    parser: Parser<'a>,
    worker: W,
}

/// Result of one worker for one chunk.
struct ScannedChunk<P> {
    product: P,
    sum: Option<ChunkSum>,
    removed: RemovedTally,
    fields: FieldTally,
    disk_bytes: u64,
    skipped: Vec<SkippedInput>,
}

impl<W: RecordWorker> ChunkWorker<RecordChunk> for ScanWorker<'_, W> {
    type Output = ScannedChunk<W::Product>;

    fn run(&mut self, chunk: &RecordChunk) -> Result<Self::Output, BatchError> {
        let mut scanned = ScannedChunk {
            product: W::Product::default(),
            sum: W::SUMS.then(|| ChunkSum {
                sum: chunk.content_sum(),
                source: chunk.last_record().map_or(0, |place| place.source),
            }),
            removed: RemovedTally::default(),
            fields: FieldTally::default(),
            disk_bytes: chunk.disk_bytes,
            skipped: chunk.skips.iter().map(SkippedInput::part).collect(),
        };
        let Self {
            inputs,
            parser,
            worker,
        } = self;
        parser.parse(chunk, &mut |record| match record {
            Ok(record) => {
                scanned.removed.count(&record.removed);
                scanned.fields.count(&record);
                worker.add(&record, &mut scanned.product);
            }
            Err(bad) => scanned.skipped.push(SkippedInput::record(inputs, &bad)),
        });
        Ok(scanned)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        self.worker.shrink();
    }
}

impl<'a> RecordScan<'a> {
    /// Creates a reading with default options and limits.
    pub fn new(inputs: &'a Inputs) -> Self {
        Self {
            inputs,
            options: InputOptions::default(),
            limits: JobLimits::default(),
            losses: LossPolicy::default(),
            observer: &NoProgress,
        }
    }

    /// Reads everything, makes `documents` of it, and hands what workers made of each chunk to `collect`, in the order of the input, with the
    /// bytes of input up to its end.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, a field that was named is nowhere, more was lost than may be, or what `collect` says.
    pub(crate) fn run<W: RecordWorker>(
        &self,
        documents: DocumentUse<'_>,
        worker: impl Fn() -> W,
        collect: impl FnMut(W::Product, u64) -> Result<(), BatchError>,
    ) -> Result<ScanCounts, BatchError> {
        let (inputs, options) = (self.inputs, &self.options);
        // Before the first document: the largest one decides whether the memory limit can be kept.
        ensure_documents_fit(&self.limits, documents, inputs, options)?;
        self.losses.refuse_undiscovered(inputs)?;
        self.observer.stage(JobStage::Scan, inputs.total_bytes());
        let mut rows = SkippedRows::default();
        let read = self.read(documents, &mut rows, worker, collect)?;
        // Before losses are judged: a mistyped field leaves every record without text, and the field is what to
        // tell of.
        read.fields.check(inputs, options)?;
        let counts = ScanCounts {
            records: read.fields.records,
            disk_bytes: read.disk_bytes,
            boilerplate: read.removed.counts(options),
            skipped: rows.finish(),
        };
        self.losses.check(&counts.skipped, counts.records)?;
        Ok(counts)
    }

    /// The same, for a job that judges losses and fields itself. Parts that were not read go to `rows`.
    pub(crate) fn read<W: RecordWorker>(
        &self,
        documents: DocumentUse<'_>,
        rows: &mut SkippedRows,
        worker: impl Fn() -> W,
        mut collect: impl FnMut(W::Product, u64) -> Result<(), BatchError>,
    ) -> Result<ScanTotals, BatchError> {
        let (inputs, options) = (self.inputs, &self.options);
        inputs.skips.iter().for_each(|skip| rows.add_part(skip));
        let mut read = ScanTotals::default();
        let workers = (0..self.limits.workers()).map(|_| ScanWorker {
            inputs,
            parser: Parser::new(inputs, options),
            worker: worker(),
        });
        run_in_order(
            inputs.chunks(options),
            DocumentMemory::new(&self.limits, documents, inputs, options),
            self.observer,
            workers.collect(),
            |scanned: ScannedChunk<W::Product>| {
                for skipped in scanned.skipped {
                    // Chunks come in input order, so a strict job ends with the same record for any number of
                    // threads.
                    self.losses.refuse_first(&skipped)?;
                    rows.take(skipped);
                }
                read.sums.extend(scanned.sum);
                read.removed.add(&scanned.removed);
                read.fields.add(&scanned.fields);
                read.disk_bytes += scanned.disk_bytes;
                collect(scanned.product, read.disk_bytes)?;
                self.observer.progress(read.disk_bytes);
                Ok(())
            },
        )?;
        Ok(read)
    }
}

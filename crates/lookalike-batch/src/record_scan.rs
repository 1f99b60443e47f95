//! A reading of all records: parsed on all threads, collected in the order of the input, with what could not be read.

use lookalike_corpus::{InputOptions, Inputs, Parser, Record, RecordChunk};

use crate::boilerplate::{BoilerplateCounts, RemovedTally};
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::BatchError;
use crate::fields::FieldTally;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};

/// The input of a job, and how its records are read.
#[derive(Clone, Copy)]
pub struct RecordScan<'a> {
    /// Sources to read.
    pub inputs: &'a Inputs,
    /// Options for reading them.
    pub options: &'a InputOptions,
    /// Threads and memory.
    pub limits: &'a JobLimits,
    /// Policy for records that cannot be read.
    pub losses: LossPolicy,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

/// Makes something of the records of a chunk; each thread has one.
pub(crate) trait RecordWorker: Send {
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

/// A worker with its parser.
struct ScanWorker<'a, W> {
    inputs: &'a Inputs,
    parser: Parser<'a>,
    worker: W,
}

/// Result of one worker for one chunk.
struct ScannedChunk<P> {
    product: P,
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

impl RecordScan<'_> {
    /// Reads everything, makes `documents` of it, and hands what workers made of each chunk to `collect`, in the order of the input.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, a field that was named is nowhere, more was lost than may be, or what `collect` says.
    pub(crate) fn run<W: RecordWorker>(
        &self,
        documents: DocumentUse<'_>,
        worker: impl Fn() -> W,
        mut collect: impl FnMut(W::Product) -> Result<(), BatchError>,
    ) -> Result<ScanCounts, BatchError> {
        let (inputs, options) = (self.inputs, self.options);
        // Before the first document: the largest one decides whether the memory limit can be kept.
        ensure_documents_fit(self.limits, documents, inputs, options)?;
        self.losses.refuse_undiscovered(inputs)?;
        self.observer.stage(JobStage::Scan, inputs.total_bytes());
        let mut rows = SkippedRows::default();
        inputs.skips.iter().for_each(|skip| rows.add_part(skip));
        let (mut removed, mut fields) = (RemovedTally::default(), FieldTally::default());
        let mut disk_bytes = 0;
        let workers = (0..self.limits.threads).map(|_| ScanWorker {
            inputs,
            parser: Parser::new(inputs, options),
            worker: worker(),
        });
        run_in_order(
            inputs.chunks(options),
            DocumentMemory::new(self.limits, documents, inputs, options),
            self.observer,
            workers.collect(),
            |scanned: ScannedChunk<W::Product>| {
                for skipped in scanned.skipped {
                    // Chunks come in input order, so a strict job ends with the same record for any number of
                    // threads.
                    self.losses.refuse_first(&skipped)?;
                    rows.take(skipped);
                }
                removed.add(&scanned.removed);
                fields.add(&scanned.fields);
                collect(scanned.product)?;
                disk_bytes += scanned.disk_bytes;
                self.observer.advance(disk_bytes);
                Ok(())
            },
        )?;
        // Before losses are judged: a mistyped field leaves every record without text, and the field is what to
        // tell of.
        fields.check(inputs, options)?;
        let counts = ScanCounts {
            records: fields.records,
            disk_bytes,
            boilerplate: removed.counts(options),
            skipped: rows.finish(),
        };
        self.losses.check(&counts.skipped, counts.records)?;
        Ok(counts)
    }
}

//! One pass over all records: parsed on all threads and collected in input order, together with what could not be read.

use lookalike_corpus::{InputOptions, Inputs, Parser, Record, RecordChunk};

use crate::boilerplate::{BoilerplateCounts, RemovedTally};
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::BatchError;
use crate::fields::FieldTally;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage, NoProgress};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedLine, SkippedRow, SkippedRows};

lookalike::job! {
    /// The input of a job, and the way its records are read.
    #[derive(Clone, Debug)]
    pub struct RecordScan<'a> {
        /// Creates a pass with default options and limits.
        new(pub(crate) inputs: &'a Inputs);
        /// Sets how sources are read: the options that [`Inputs::discover`] was given.
        pub(crate) options: InputOptions,
        /// Sets the number of threads and the memory that the job may use.
        pub(crate) limits: JobLimits,
        /// Sets the policy for records that cannot be read: by default they are left out and counted.
        pub(crate) losses: LossPolicy,
        /// Sets the observer of the progress.
        pub(crate) observer: &'a dyn JobObserver = &NoProgress,
    }
}

/// Computes a product from the records of a chunk; each thread has one worker.
pub(crate) trait RecordWorker: Send {
    /// True if the input is read a second time and must then be unchanged.
    const SUMS: bool = false;
    /// True if records come with all text that a reader of a page sees.
    const VISIBLE: bool = false;

    type Product: Default + Send;

    /// Adds a record to the product of its chunk.
    fn add(&mut self, record: &Record<'_>, product: &mut Self::Product);

    /// Adds something that could not be read to the product of its chunk.
    fn add_skipped(&mut self, _line: &dyn Fn() -> SkippedLine, _product: &mut Self::Product) {}

    /// Releases the buffers that grew for a long document.
    fn shrink(&mut self) {}

    /// Ends the work when all records are added.
    fn finish(self) -> Result<(), BatchError>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// Counts of a pass.
pub(crate) struct ScanCounts {
    /// Number of records that could be read.
    pub(crate) records: u64,
    /// Number of these without a text: the field is absent or null.
    pub(crate) missing: u64,
    /// Number of these longer than the limit.
    pub(crate) too_long: u64,
    /// Bytes of input, as stored.
    pub(crate) disk_bytes: u64,
    /// Counts of the boilerplate removed from texts, if that was requested.
    pub(crate) boilerplate: Option<BoilerplateCounts>,
    /// Parts that were not read, by kind.
    pub(crate) skipped: Vec<SkippedRow>,
}

/// Checksum by which a chunk is recognised in a second pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkSum {
    sum: u64,
    /// Number of the source of its last record.
    pub(crate) source: u32,
}

/// Totals of a pass, before fields and losses are checked.
#[derive(Default)]
pub(crate) struct ScanTotals {
    pub(crate) fields: FieldTally,
    /// Number of records that could not be read.
    pub(crate) unreadable: u64,
    /// Checksums of all chunks, if the worker wants them.
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

/// Product and counts of one chunk.
struct ScannedChunk<P> {
    product: P,
    sum: Option<ChunkSum>,
    removed: RemovedTally,
    fields: FieldTally,
    unreadable: u64,
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
                // Only names the source in an error, so any number does for a chunk without records.
                source: chunk.last_record().map_or(0, |place| place.source),
            }),
            removed: RemovedTally::default(),
            fields: FieldTally::default(),
            unreadable: 0,
            disk_bytes: chunk.disk_bytes,
            skipped: chunk.skips.iter().map(SkippedInput::part).collect(),
        };
        for skip in &chunk.skips {
            self.worker
                .add_skipped(&|| SkippedLine::of_part(skip), &mut scanned.product);
        }
        self.parser.parse(chunk, &mut |record| match record {
            Ok(record) => {
                scanned.removed.count(&record.removed);
                scanned.fields.count(&record);
                self.worker.add(&record, &mut scanned.product);
            }
            Err(bad) => {
                scanned.unreadable += 1;
                scanned
                    .skipped
                    .push(SkippedInput::record(self.inputs, &bad));
                let line = || SkippedLine::of_record(self.inputs, &bad);
                self.worker.add_skipped(&line, &mut scanned.product);
            }
        });
        Ok(scanned)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        self.worker.shrink();
    }
}

impl<'a> RecordScan<'a> {
    /// Reads all records, to use them as `documents`, and passes the product of each chunk to `collect`, in input order, with the
    /// number of input bytes up to the end of the chunk.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, no record has a named field, or a text if features are made of it, more was lost than allowed, or
    /// `collect` fails.
    pub(crate) fn run<W: RecordWorker>(
        &self,
        documents: DocumentUse<'_>,
        worker: impl Fn() -> W,
        collect: impl FnMut(W::Product, u64) -> Result<(), BatchError>,
    ) -> Result<ScanCounts, BatchError> {
        let (inputs, options) = (self.inputs, &self.options);
        // Before the first document: the largest possible one decides whether the memory limit can be kept.
        ensure_documents_fit(&self.limits, documents, inputs, options)?;
        self.losses.refuse_undiscovered(inputs)?;
        self.observer.stage(JobStage::Scan, inputs.total_bytes());
        let mut rows = SkippedRows::default();
        let read = self.read(documents, &mut rows, worker, collect)?;
        // Before losses are checked: a mistyped field leaves every record without text, and the field is the error to
        // report.
        let skipped = rows.finish();
        read.fields.refuse_wrong_types(&skipped)?;
        read.fields.check(inputs, options)?;
        let counts = ScanCounts {
            records: read.fields.records,
            missing: read.fields.missing(),
            too_long: read.fields.too_long,
            disk_bytes: read.disk_bytes,
            boilerplate: read.removed.counts(options),
            skipped,
        };
        self.losses.check(&counts.skipped, counts.records)?;
        // After the losses: the texts may be in the records that could not be read.
        if matches!(documents, DocumentUse::Features(_)) {
            read.fields.refuse_no_text(inputs, options)?;
        }
        Ok(counts)
    }

    /// Reads all records as [`Self::run`] does, for a job that checks losses and fields itself. Adds parts that were not read to `rows`.
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
        let parser = || match W::VISIBLE {
            true => Parser::new(inputs, options).with_visible(),
            false => Parser::new(inputs, options),
        };
        let workers = (0..self.limits.workers()).map(|_| ScanWorker {
            inputs,
            parser: parser(),
            worker: worker(),
        });
        let workers = run_in_order(
            inputs.chunks(options),
            DocumentMemory::new(&self.limits, documents, inputs, options),
            self.observer,
            workers.collect(),
            |scanned: ScannedChunk<W::Product>| {
                for skipped in scanned.skipped {
                    // Chunks arrive in input order, so a strict job stops at the same record for any number of
                    // threads.
                    self.losses.refuse_first(&skipped)?;
                    rows.take(skipped);
                }
                read.sums.extend(scanned.sum);
                read.removed += scanned.removed;
                read.fields += scanned.fields;
                read.unreadable += scanned.unreadable;
                read.disk_bytes += scanned.disk_bytes;
                collect(scanned.product, read.disk_bytes)?;
                self.observer.progress(read.disk_bytes);
                Ok(())
            },
        )?;
        workers
            .into_iter()
            .try_for_each(|scan| scan.worker.finish())?;
        Ok(read)
    }
}

//! In how many documents each feature occurs: the job behind `lookalike terms`.

use lookalike::feature::FeatureExtractor;
use lookalike::scheme::Scheme;
use lookalike::{Terms, TermsBuilder};
use lookalike_corpus::{InputOptions, Inputs, Parser, RecordChunk};
use serde::Serialize;

use crate::boilerplate::{BoilerplateCounts, RemovedTally};
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::BatchError;
use crate::fields::FieldTally;
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};

/// The job: what to read and how texts become features.
pub struct TermTable<'a> {
    /// Sources to read.
    pub inputs: &'a Inputs,
    /// Options for reading it.
    pub options: &'a InputOptions,
    /// Scheme whose features are counted.
    pub scheme: Scheme,
    /// Threads, and the memory that the counts must fit into.
    pub limits: &'a JobLimits,
    /// Policy for records that cannot be read.
    pub losses: LossPolicy,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TermsSummary {
    /// Documents counted.
    pub documents: u64,
    /// Features that two or more of them have: the rows of the table.
    pub terms: u64,
    /// Counts of what was taken out of texts, if anything was to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// The id of the table.
    pub id: String,
    /// Canonical text of the scheme whose features were counted.
    pub scheme: String,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

struct TermCounter<'a> {
    job: &'a TermTable<'a>,
    parser: Parser<'a>,
    extractor: FeatureExtractor,
}

/// The sets of one chunk, one after another.
#[derive(Default)]
struct TermSets {
    features: Vec<u64>,
    ends: Vec<usize>,
    removed: RemovedTally,
    fields: FieldTally,
    disk_bytes: u64,
    skipped: Vec<SkippedInput>,
}

impl ChunkWorker<RecordChunk> for TermCounter<'_> {
    type Output = TermSets;

    fn run(&mut self, chunk: &RecordChunk) -> Result<TermSets, BatchError> {
        let mut sets = TermSets {
            disk_bytes: chunk.disk_bytes,
            ..TermSets::default()
        };
        let Self {
            job,
            parser,
            extractor,
        } = self;
        for skip in &chunk.skips {
            sets.skipped.push(SkippedInput::part(skip));
        }
        parser.parse(chunk, &mut |record| match record {
            Ok(record) => {
                sets.features
                    .extend_from_slice(extractor.feature_set(&record.text));
                sets.ends.push(sets.features.len());
                sets.removed.count(&record.removed);
                sets.fields.count(&record);
            }
            Err(bad) => {
                sets.skipped.push(SkippedInput::record(job.inputs, &bad));
            }
        });
        Ok(sets)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        self.extractor.shrink();
    }
}

impl TermTable<'_> {
    /// Counts all documents.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or the counts do not fit the memory.
    pub fn count(&self) -> Result<(Terms, TermsSummary), BatchError> {
        let documents = DocumentUse::Features(&self.scheme);
        ensure_documents_fit(self.limits, documents, self.inputs, self.options)?;
        self.losses.refuse_undiscovered(self.inputs)?;
        self.observer
            .stage(JobStage::Scan, self.inputs.total_bytes());
        let counter = || TermCounter {
            job: self,
            parser: Parser::new(self.inputs, self.options),
            extractor: FeatureExtractor::new(&self.scheme),
        };
        let mut builder = TermsBuilder::new(&self.scheme);
        let mut rows = SkippedRows::default();
        for skip in &self.inputs.skips {
            rows.take(SkippedInput::part(skip));
        }
        let (mut read, mut removed) = (0, RemovedTally::default());
        let mut fields = FieldTally::default();
        let workers = (0..self.limits.threads).map(|_| counter()).collect();
        let memory = DocumentMemory::new(self.limits, documents, self.inputs, self.options);
        run_in_order(self.inputs.chunks(self.options), memory, workers, |sets| {
            for skipped in sets.skipped {
                self.losses.refuse_first(&skipped)?;
                rows.take(skipped);
            }
            let mut start = 0;
            for end in sets.ends {
                builder.add(&sets.features[start..end]);
                start = end;
            }
            read += sets.disk_bytes;
            removed.add(&sets.removed);
            fields.add(&sets.fields);
            self.observer.advance(read);
            self.ensure_fits(&builder)
        })?;
        fields.check(self.inputs, self.options)?;
        let terms = builder.finish();
        let summary = TermsSummary {
            documents: terms.documents(),
            terms: terms.len() as u64,
            boilerplate: removed.counts(self.options),
            id: terms.id().to_string(),
            scheme: terms.scheme().to_string(),
            skipped: rows.finish(),
        };
        self.losses.check(&summary.skipped, summary.documents)?;
        Ok((terms, summary))
    }

    /// The counts are merged into a list of their own: twice their size for a moment.
    fn ensure_fits(&self, builder: &TermsBuilder) -> Result<(), BatchError> {
        let (needed, left) = (2 * builder.memory(), self.limits.memory);
        if needed <= left {
            return Ok(());
        }
        Err(BatchError::Memory {
            what: "the table of terms",
            needed,
            left,
            least: needed,
        })
    }
}

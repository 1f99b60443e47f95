//! Fingerprints of all documents, in input order, in constant memory: the job behind `lookalike fingerprint`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lookalike::feature::FeatureExtractor;
use lookalike::scheme::Scheme;
use lookalike::sketch::Simhash;
use lookalike::{Fingerprint, Terms};
use lookalike_corpus::{InputOptions, Inputs, Parser, RecordChunk};
use serde::Serialize;

use crate::boilerplate::{BoilerplateCounts, RemovedTally};
use crate::document_memory::{DocumentMemory, DocumentUse};
use crate::error::BatchError;
use crate::fields::FieldTally;
use crate::fingerprints::files::{ArchiveScratch, CodeWriter, FingerprintName, write_code};
use crate::losses::LossPolicy;
use crate::observer::{JobObserver, JobStage};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};

/// The job: what to read and how texts become fingerprints.
pub struct FingerprintJob<'a> {
    /// Sources to read.
    pub inputs: &'a Inputs,
    /// Options for reading it.
    pub options: &'a InputOptions,
    /// Steps from texts to features, and whether they count once or as often as they occur.
    pub scheme: Scheme,
    /// The table of terms that the scheme names.
    pub terms: Option<Arc<Terms>>,
    /// Threads, and memory.
    pub limits: &'a JobLimits,
    /// Policy for records that cannot be read.
    pub losses: LossPolicy,
    /// Receiver of progress.
    pub observer: &'a dyn JobObserver,
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FingerprintSummary {
    /// Records read.
    pub documents: u64,
    /// Of these, without features: their fingerprint is null.
    pub without_features: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Counts of what was taken out of texts, if anything was to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Its id.
    pub scheme_id: String,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

struct FingerprintWorker<'a> {
    job: &'a FingerprintJob<'a>,
    /// True if lines are wanted, rather than columns.
    lines: bool,
    parser: Parser<'a>,
    extractor: FeatureExtractor,
}

/// Result of one worker for one chunk.
#[derive(Default)]
struct FingerprintBatch {
    /// As lines, where these are wanted.
    bytes: Vec<u8>,
    /// Else the ids, back to back, where each ends, and the fingerprints.
    ids: String,
    ends: Vec<usize>,
    codes: Vec<Option<Fingerprint>>,
    documents: u64,
    without_features: u64,
    text_bytes: u64,
    removed: RemovedTally,
    fields: FieldTally,
    disk_bytes: u64,
    skipped: Vec<SkippedInput>,
}

impl FingerprintBatch {
    /// Ids and fingerprints.
    fn columns(&self) -> impl Iterator<Item = (&str, Option<Fingerprint>)> {
        let mut start = 0;
        self.ends.iter().zip(&self.codes).map(move |(&end, &code)| {
            let id = &self.ids[start..end];
            start = end;
            (id, code)
        })
    }
}

impl ChunkWorker<RecordChunk> for FingerprintWorker<'_> {
    type Output = FingerprintBatch;

    fn run(&mut self, chunk: &RecordChunk) -> Result<FingerprintBatch, BatchError> {
        let mut made = FingerprintBatch {
            disk_bytes: chunk.disk_bytes,
            ..FingerprintBatch::default()
        };
        let Self {
            job,
            lines,
            parser,
            extractor,
        } = self;
        for skip in &chunk.skips {
            made.skipped.push(SkippedInput::part(skip));
        }
        parser.parse(chunk, &mut |record| match record {
            Ok(record) => {
                let fingerprint =
                    Simhash::of(&extractor.extract_with(&record.text, &record.fields));
                made.documents += 1;
                made.without_features += u64::from(fingerprint.is_none());
                made.text_bytes += record.text.len() as u64;
                made.removed.count(&record.removed);
                made.fields.count(&record);
                if *lines {
                    let name = Some(FingerprintName::Text(&record.id));
                    write_code(&mut made.bytes, name, fingerprint)
                        .expect("a vector takes every byte");
                } else {
                    made.ids.push_str(&record.id);
                    made.ends.push(made.ids.len());
                    made.codes.push(fingerprint);
                }
            }
            Err(bad) => {
                made.skipped.push(SkippedInput::record(job.inputs, &bad));
            }
        });
        Ok(made)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        self.extractor.shrink();
    }
}

impl FingerprintJob<'_> {
    /// Writes `{"id":..,"fingerprint":..}` for each document.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> Result<FingerprintSummary, BatchError> {
        self.run(true, &mut |made| {
            let written = out.write_all(&made.bytes);
            written.map_err(BatchError::result(Path::new("the output")))
        })
    }

    /// Writes a file in the format that its name asks for, whole or not at all. What must be in order for it goes through `scratch`.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or the file cannot be written.
    pub fn write_file(
        &self,
        path: &Path,
        scratch: ArchiveScratch<'_>,
    ) -> Result<FingerprintSummary, BatchError> {
        let mut out = CodeWriter::create(path, Some(self.scheme.id()), scratch)?;
        let summary = self.run(false, &mut |made| {
            let mut columns = made.columns();
            columns.try_for_each(|(id, code)| out.push(Some(FingerprintName::Text(id)), code))
        })?;
        out.commit()?;
        Ok(summary)
    }

    fn run(
        &self,
        lines: bool,
        sink: &mut dyn FnMut(&FingerprintBatch) -> Result<(), BatchError>,
    ) -> Result<FingerprintSummary, BatchError> {
        self.losses.refuse_undiscovered(self.inputs)?;
        self.observer
            .stage(JobStage::Scan, self.inputs.total_bytes());
        let mut summary = FingerprintSummary {
            scheme: self.scheme.to_string(),
            scheme_id: self.scheme.id().to_string(),
            ..FingerprintSummary::default()
        };
        let extractor = match &self.terms {
            Some(terms) => FeatureExtractor::with_terms(&self.scheme, terms)
                .map_err(|error| BatchError::Settings(error.to_string()))?,
            None => FeatureExtractor::new(&self.scheme),
        };
        let printer = || FingerprintWorker {
            job: self,
            lines,
            parser: Parser::new(self.inputs, self.options),
            extractor: extractor.clone(),
        };
        let (mut read, mut removed) = (0, RemovedTally::default());
        let mut fields = FieldTally::default();
        let mut rows = SkippedRows::default();
        for skip in &self.inputs.skips {
            rows.take(SkippedInput::part(skip));
        }
        let documents = DocumentUse::Features(&self.scheme);
        let memory = DocumentMemory::new(self.limits, documents, self.inputs, self.options);
        run_in_order(
            self.inputs.chunks(self.options),
            memory,
            (0..self.limits.threads).map(|_| printer()).collect(),
            |made| {
                sink(&made)?;
                for skipped in made.skipped {
                    self.losses.refuse_first(&skipped)?;
                    rows.take(skipped);
                }
                summary.documents += made.documents;
                summary.without_features += made.without_features;
                summary.text_bytes += made.text_bytes;
                removed.add(&made.removed);
                fields.add(&made.fields);
                read += made.disk_bytes;
                self.observer.advance(read);
                Ok(())
            },
        )?;
        fields.check(self.inputs, self.options)?;
        summary.skipped = rows.finish();
        self.losses.check(&summary.skipped, summary.documents)?;
        summary.boilerplate = removed.counts(self.options);
        Ok(summary)
    }
}

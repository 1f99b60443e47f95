//! Fingerprints of all documents, in input order, in constant memory: the job behind `lookalike fingerprint`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lookalike::Terms;
use lookalike::feature::FeatureExtractor;
use lookalike::scheme::Scheme;
use lookalike::sketch::Simhash;
use lookalike_corpus::{Chunk, InputOptions, Inputs, Parser};
use serde::Serialize;

use crate::error::BatchError;
use crate::lines::write_line;
use crate::observer::{Observer, Stage};
use crate::pipeline::{Worker, run_in_order};
use crate::summary::{Skipped, SkippedRow, SkippedRows};

/// The job: what to read and how texts become fingerprints.
pub struct Fingerprints<'a> {
    /// What to read.
    pub inputs: &'a Inputs,
    /// How to read it.
    pub options: &'a InputOptions,
    /// How texts become features, and whether they count once or as often as they occur.
    pub scheme: Scheme,
    /// The table of terms that the scheme names.
    pub terms: Option<Arc<Terms>>,
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Stop at the first unreadable record.
    pub strict: bool,
    /// Who hears of progress.
    pub observer: &'a dyn Observer,
}

/// What the job tells when it is done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FingerprintSummary {
    /// Records read.
    pub documents: u64,
    /// Of these, without features: their fingerprint is null.
    pub without_features: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Its id.
    pub scheme_id: String,
    /// What was not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

struct Printer<'a> {
    job: &'a Fingerprints<'a>,
    parser: Parser<'a>,
    extractor: FeatureExtractor,
}

/// What one worker made of one chunk.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    documents: u64,
    without_features: u64,
    text_bytes: u64,
    disk_bytes: u64,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct FingerprintLine<'a> {
    id: &'a str,
    fingerprint: Option<String>,
}

impl Worker for Printer<'_> {
    type Output = Lines;

    fn run(&mut self, chunk: &Chunk) -> Result<Lines, BatchError> {
        let mut lines = Lines {
            disk_bytes: chunk.disk_bytes,
            ..Lines::default()
        };
        let Self {
            job,
            parser,
            extractor,
        } = self;
        for skip in &chunk.skips {
            lines.skipped.push(Skipped::part(skip));
        }
        parser.parse(chunk, &mut |record| match record {
            Ok(record) => {
                let fingerprint = Simhash::of(&extractor.read(&record.text));
                lines.documents += 1;
                lines.without_features += u64::from(fingerprint.is_none());
                lines.text_bytes += record.text.len() as u64;
                let line = FingerprintLine {
                    id: &record.id,
                    fingerprint: fingerprint.map(|f| f.to_string()),
                };
                write_line(&mut lines.bytes, &line).expect("a vector takes every byte");
            }
            Err(bad) => {
                lines.skipped.push(Skipped::record(job.inputs, &bad));
            }
        });
        Ok(lines)
    }
}

impl Fingerprints<'_> {
    /// Writes `{"id":..,"fingerprint":..}` for each document.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> Result<FingerprintSummary, BatchError> {
        self.observer.stage(Stage::Scan, self.inputs.total_bytes());
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
        let printer = || Printer {
            job: self,
            parser: Parser::new(self.inputs, self.options),
            extractor: extractor.clone(),
        };
        let mut read = 0;
        let mut rows = SkippedRows::default();
        for skip in &self.inputs.skips {
            rows.take(Skipped::part(skip));
        }
        run_in_order(
            self.inputs,
            self.options,
            (0..self.threads).map(|_| printer()).collect(),
            |lines| {
                for skipped in lines.skipped {
                    if self.strict && skipped.is_loss {
                        return Err(BatchError::Strict(skipped.first));
                    }
                    rows.take(skipped);
                }
                out.write_all(&lines.bytes)
                    .map_err(BatchError::result(Path::new("the output")))?;
                summary.documents += lines.documents;
                summary.without_features += lines.without_features;
                summary.text_bytes += lines.text_bytes;
                read += lines.disk_bytes;
                self.observer.advance(read);
                Ok(())
            },
        )?;
        summary.skipped = rows.finish();
        Ok(summary)
    }
}

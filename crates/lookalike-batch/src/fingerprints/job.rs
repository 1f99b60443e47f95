//! Makes fingerprints or longer sketches of all documents, in input order and constant memory: the job of `lookalike fingerprint`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lookalike::feature::FeatureExtractor;
use lookalike::scheme::Scheme;
use lookalike::{Features, SketchValue, Sketcher, Terms};
use lookalike_corpus::Record;
use serde::Serialize;

use crate::boilerplate::BoilerplateCounts;
use crate::document_memory::DocumentUse;
use crate::error::{BatchError, OUTPUT};
use crate::fingerprints::files::{
    ArchiveScratch, AtomicFileCreator, CodeWriter, FingerprintName, SketchKind, SketchShape,
    write_sketch,
};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::settings_error::{SettingConflict, SettingsError};
use crate::skipped::SkippedRow;

lookalike::job! {
    /// Job that reads documents and makes their fingerprints.
    #[derive(Debug)]
    pub struct FingerprintJob<'a> {
        /// Creates a job that makes fingerprints under the default scheme.
        new(scan: RecordScan<'a>);
        /// Sets the scheme: the steps from texts to features, how often features count, and the sketch, which is a fingerprint or has a
        /// [`SketchShape`].
        scheme: Scheme,
        /// Sets the table of terms that the scheme names.
        terms: Option<Arc<Terms>>,
    }
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct FingerprintSummary {
    /// Number of records read.
    pub documents: u64,
    /// Number of these without a text: the field is absent or null.
    pub missing_text: u64,
    /// Number of these longer than the limit, whose text is not read.
    pub too_long: u64,
    /// Number of all records without features, including those without a text; their fingerprint is null.
    pub without_features: u64,
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Counts of boilerplate that was removed from texts, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// Canonical text of the scheme.
    pub scheme: String,
    /// Id of the scheme.
    pub scheme_id: String,
    /// Parts of the input that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

struct FingerprintWorker {
    /// True if lines are written, false for columns.
    lines: bool,
    extractor: FeatureExtractor,
    maker: SketchMaker,
    /// Words of one sketch.
    line_words: Vec<u64>,
}

/// Maker of the words of a sketch.
#[derive(Clone)]
struct SketchMaker {
    kind: SketchKind,
    sketcher: Sketcher,
}

impl SketchMaker {
    /// Appends the words of the sketch. Returns false if there are no features.
    fn append(&self, features: &Features<'_>, words: &mut Vec<u64>) -> bool {
        match self.sketcher.sketch(features) {
            Some(SketchValue::Bits(fingerprint, _)) => {
                let words_of = [fingerprint.0 as u64, (fingerprint.0 >> 64) as u64];
                words.extend_from_slice(&words_of[..self.kind.words()]);
                true
            }
            Some(SketchValue::Hashes(hashes)) => {
                // Super-shingles are never empty; other kinds of hashes, which may be, have no shape and do not come here.
                words.extend(hashes.iter().map(|hash| hash.unwrap_or_default()));
                true
            }
            Some(SketchValue::Signature(minima)) => {
                SketchShape::pack(&minima, words);
                true
            }
            _ => false,
        }
    }
}

/// Result of one worker for one chunk of input.
#[derive(Default)]
struct FingerprintBatch {
    /// The lines, if lines are written.
    bytes: Vec<u8>,
    /// Otherwise the concatenated ids, the end of each with whether it has a sketch, and the words of the sketches.
    ids: String,
    ends: Vec<(usize, bool)>,
    words: Vec<u64>,
    without_features: u64,
    text_bytes: u64,
}

impl FingerprintBatch {
    /// Returns the ids with their sketches, which have `words` words each.
    fn columns(&self, words: usize) -> impl Iterator<Item = (&str, Option<&[u64]>)> {
        let (mut start, mut sketches) = (0, self.words.chunks_exact(words));
        self.ends.iter().map(move |&(end, has_sketch)| {
            let id = &self.ids[start..end];
            start = end;
            // A text without a sketch has no words in the column.
            (id, if has_sketch { sketches.next() } else { None })
        })
    }
}

impl RecordWorker for FingerprintWorker {
    type Product = FingerprintBatch;

    fn add(&mut self, record: &Record<'_>, made: &mut FingerprintBatch) {
        let features = self.extractor.extract_with(&record.text, &record.fields);
        self.line_words.clear();
        // Lines are written one at a time and need the words of one sketch; columns keep those of the whole chunk.
        let words = match self.lines {
            true => &mut self.line_words,
            false => &mut made.words,
        };
        let has_sketch = self.maker.append(&features, words);
        made.without_features += u64::from(!has_sketch);
        made.text_bytes += record.text.len() as u64;
        if self.lines {
            let sketch = has_sketch.then_some(self.line_words.as_slice());
            let name = FingerprintName::Text(&record.id);
            write_sketch(&mut made.bytes, name, self.maker.kind, sketch)
                .expect("a vector takes every byte");
        } else {
            made.ids.push_str(&record.id);
            made.ends.push((made.ids.len(), has_sketch));
        }
    }

    fn shrink(&mut self) {
        self.extractor.shrink();
    }
}

/// Returns the maximum bytes of records in a chunk such that its sketches, of `words` words each, take little more memory than a usual chunk, however
/// short its records are.
fn max_chunk_bytes(words: usize) -> usize {
    const SKETCHES: usize = 2 << 20;
    /// Minimum bytes of a record in JSON, which stores each byte of a sketch in two digits.
    const MIN_RECORD_BYTES: usize = 16;
    // A chunk of b bytes has at most b / MIN_RECORD_BYTES records, each with 16 digits for every word of its sketch.
    (SKETCHES * MIN_RECORD_BYTES / (2 * size_of::<u64>() * words)).max(1)
}

impl<'a> FingerprintJob<'a> {
    /// Writes `{"id":..,"fingerprint":..}` for each document, or the field `super_shingles` or `signature`.
    ///
    /// # Errors
    /// [`BatchError`] if the input cannot be read, or if `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> Result<FingerprintSummary, BatchError> {
        self.run(true, self.maker()?, &mut |made| {
            let written = out.write_all(&made.bytes);
            written.map_err(BatchError::result(Path::new(OUTPUT)))
        })
    }

    /// Writes a file in the format that its name implies. The file appears only when it is complete. `begin` creates it, and formats that need
    /// sorting use `scratch`.
    ///
    /// # Errors
    /// [`BatchError`] if the input cannot be read, or if the file cannot be written.
    pub fn write_file(
        &self,
        path: &Path,
        begin: AtomicFileCreator,
        scratch: ArchiveScratch<'_>,
    ) -> Result<FingerprintSummary, BatchError> {
        let (maker, id) = (self.maker()?, Some(self.scheme.id()));
        let words = maker.kind.words();
        let mut out = CodeWriter::create(path, begin, id, maker.kind, scratch)?;
        let summary = self.run(false, maker, &mut |made| {
            let mut columns = made.columns(words);
            columns.try_for_each(|(id, sketch)| out.push(FingerprintName::Text(id), sketch))
        })?;
        out.commit().map(|()| summary)
    }

    fn maker(&self) -> Result<SketchMaker, BatchError> {
        let sketch = self.scheme.sketch;
        let kind = SketchKind::of(sketch).ok_or(FingerprintSettingsError::Unstorable(sketch))?;
        // No kind that files hold needs a table of terms.
        let sketcher = Sketcher::new(&self.scheme, None).map_err(SettingsError::from)?;
        Ok(SketchMaker { kind, sketcher })
    }

    fn run(
        &self,
        lines: bool,
        maker: SketchMaker,
        sink: &mut dyn FnMut(&FingerprintBatch) -> Result<(), BatchError>,
    ) -> Result<FingerprintSummary, BatchError> {
        let extractor = FeatureExtractor::with_terms(&self.scheme, self.terms.as_ref())
            .map_err(SettingsError::from)?;
        let (mut without_features, mut text_bytes) = (0, 0);
        let mut scan = self.scan.clone();
        if scan.options.html != self.scheme.html {
            return Err(SettingsError::from(SettingConflict::OtherHtml).into());
        }
        if scan.options.fields != self.scheme.fields {
            return Err(SettingsError::from(SettingConflict::OtherFields).into());
        }
        let most = max_chunk_bytes(maker.kind.words());
        scan.options.chunk_bytes = scan.options.chunk_bytes.min(most);
        let read = scan.run(
            DocumentUse::Features(&self.scheme),
            || FingerprintWorker {
                lines,
                extractor: extractor.clone(),
                maker: maker.clone(),
                line_words: Vec::new(),
            },
            |made: FingerprintBatch, _| {
                without_features += made.without_features;
                text_bytes += made.text_bytes;
                sink(&made)
            },
        )?;
        Ok(FingerprintSummary {
            documents: read.records,
            missing_text: read.missing,
            too_long: read.too_long,
            without_features,
            text_bytes,
            boilerplate: read.boilerplate,
            scheme: self.scheme.to_string(),
            scheme_id: self.scheme.id().to_string(),
            skipped: read.skipped,
        })
    }
}

//! Extraction of the texts of all documents as other jobs see them, in input order and constant memory: the job behind
//! `lookalike extract`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use lookalike::Language;
use lookalike_corpus::{Record, TextState};
use serde::Serialize;

use crate::boilerplate::BoilerplateCounts;
use crate::document_memory::DocumentUse;
use crate::error::{BatchError, OUTPUT};
use crate::record_scan::{RecordScan, RecordWorker};
use crate::setting_words::setting_from_str;
use crate::skipped::SkippedRow;

lookalike::words! {
    /// Format of the extracted texts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum TextFormat {
        /// One JSON object per line, with the text and its source.
        #[default]
        Jsonl = "jsonl",
        /// The texts alone, each followed by a line with a form feed.
        Text = "text",
    }
}

setting_from_str!(TextFormat, "format");

lookalike::job! {
    /// The job of extraction: its input and its output format.
    #[derive(Debug)]
    pub struct TextExtraction<'a> {
        /// Creates an extraction of the texts of all records.
        new(scan: RecordScan<'a>);
        /// Sets the format of the texts: JSON Lines by default.
        format: TextFormat,
        /// Sets the function that detects the language of a text; `None`, the default, detects none.
        language: Option<fn(&str) -> Option<Language>>,
    }
}

/// Summary of an extraction.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ExtractionSummary {
    /// Number of records read.
    pub documents: u64,
    /// Number of these without a text: the field is absent or null.
    pub missing_text: u64,
    /// Number of these whose text is left out because it exceeds the limit.
    pub too_long: u64,
    /// Number of these with invalid characters or values that were replaced.
    pub characters_replaced: u64,
    /// Number of these whose declared character set is wrong.
    pub charset_wrong: u64,
    /// Number of these whose text was wrongly decoded before; it is read as it is.
    pub mojibake: u64,
    /// Number of these with words that mix look-alike letters of Latin, Greek and Cyrillic; they are read as they are.
    pub homoglyphs: u64,
    // Ordered maps, so that every run lists them in the same order.
    /// Number of documents by character set, for formats that do not prescribe one.
    pub charsets: BTreeMap<Cow<'static, str>, u64>,
    /// Number of documents by language, if requested; `unknown` if it could not be detected.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub languages: BTreeMap<&'static str, u64>,
    /// Counts of the boilerplate removed from texts, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// Bytes of input, as stored.
    pub input_bytes: u64,
    /// Bytes of records, decompressed but before extraction.
    pub record_bytes: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Parts that were not read, by kind.
    pub skipped: Vec<SkippedRow>,
}

impl ExtractionSummary {
    fn add_record(&mut self, record: &Record<'_>) {
        self.documents += 1;
        self.characters_replaced += u64::from(record.replaced);
        self.charset_wrong += u64::from(record.charset_wrong);
        self.mojibake += u64::from(record.mojibake);
        self.homoglyphs += u64::from(record.homoglyphs);
        self.record_bytes += record.raw.len() as u64;
        self.text_bytes += record.text.len() as u64;
        if let Some(charset) = record.charset {
            *self.charsets.entry(charset.into()).or_default() += 1;
        }
    }

    fn merge(&mut self, part: Self) {
        self.documents += part.documents;
        self.characters_replaced += part.characters_replaced;
        self.charset_wrong += part.charset_wrong;
        self.mojibake += part.mojibake;
        self.homoglyphs += part.homoglyphs;
        self.record_bytes += part.record_bytes;
        self.text_bytes += part.text_bytes;
        for (language, count) in part.languages {
            *self.languages.entry(language).or_default() += count;
        }
        for (charset, count) in part.charsets {
            *self.charsets.entry(charset).or_default() += count;
        }
    }
}

#[derive(Serialize)]
struct TextLine<'a> {
    id: &'a str,
    source: &'a str,
    /// Number of the record in its source, from 1.
    record: u64,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    charset: Option<&'static str>,
    /// The two-letter code of the language.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// The reason why there is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<&'static str>,
    text: Option<&'a str>,
}

/// Texts of one chunk, formatted.
#[derive(Default)]
struct TextBatch {
    bytes: Vec<u8>,
    summary: ExtractionSummary,
}

struct TextWriter<'a> {
    job: &'a TextExtraction<'a>,
}

impl RecordWorker for TextWriter<'_> {
    type Product = TextBatch;

    fn add(&mut self, record: &Record<'_>, texts: &mut TextBatch) {
        texts.summary.add_record(record);
        let language = self.job.language_of(record, &mut texts.summary);
        self.job.write_record(record, language, &mut texts.bytes);
    }
}

impl<'a> TextExtraction<'a> {
    /// Writes the texts of all documents.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> Result<ExtractionSummary, BatchError> {
        let mut summary = ExtractionSummary::default();
        let read = self.scan.run(
            DocumentUse::Text,
            || TextWriter { job: self },
            |texts: TextBatch, _| {
                summary.merge(texts.summary);
                out.write_all(&texts.bytes)
                    .map_err(BatchError::result(Path::new(OUTPUT)))
            },
        )?;
        Ok(ExtractionSummary {
            missing_text: read.missing,
            too_long: read.too_long,
            input_bytes: read.disk_bytes,
            skipped: read.skipped,
            boilerplate: read.boilerplate,
            ..summary
        })
    }

    /// Detects the language of a record's text, and counts it.
    fn language_of(
        &self,
        record: &Record<'_>,
        summary: &mut ExtractionSummary,
    ) -> Option<&'static str> {
        let detect = self.language.filter(|_| !record.text.trim().is_empty())?;
        let code = detect(&record.text).map(Language::code);
        *summary
            .languages
            .entry(code.unwrap_or("unknown"))
            .or_default() += 1;
        code
    }

    fn write_record(&self, record: &Record<'_>, language: Option<&'static str>, out: &mut Vec<u8>) {
        if self.format == TextFormat::Text {
            out.extend_from_slice(record.text.as_bytes());
            return out.extend_from_slice(b"\n\x0c\n");
        }
        let without = match record.text_state {
            TextState::Present => None,
            TextState::Missing => Some("missing"),
            TextState::TooLong => Some("too-long"),
        };
        let source = self.scan.inputs.sources[record.source as usize].name();
        let line = TextLine {
            id: &record.id,
            source: &source,
            record: record.number + 1,
            offset: record.offset,
            charset: record.charset,
            language,
            without,
            text: without.is_none().then_some(&*record.text),
        };
        // Write directly to the output: a text may be long, and each control character takes six bytes.
        serde_json::to_writer(&mut *out, &line).expect("a vector takes every byte");
        out.push(b'\n');
    }
}

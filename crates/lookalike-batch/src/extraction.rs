//! Texts of all documents as the other jobs see them, in input order, in constant memory: the job behind
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
use crate::setting_words::setting_words;
use crate::skipped::SkippedRow;

/// Format of the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFormat {
    /// A JSON object a line, with the text and where it comes from.
    #[default]
    Jsonl,
    /// The texts alone, each ended by a line with a form feed.
    Text,
}

setting_words!(TextFormat, "format", Jsonl = "jsonl", Text = "text");

/// The job: what to read and how to write it.
#[derive(Debug)]
pub struct TextExtraction<'a> {
    scan: RecordScan<'a>,
    format: TextFormat,
    language: Option<fn(&str) -> Option<Language>>,
}

lookalike::setters! {
    TextExtraction<'a> {
        /// Sets the format of the texts: JSON Lines, if nothing is said.
        format: TextFormat,
        /// Sets what tells the language of a text, where that is wished.
        language: Option<fn(&str) -> Option<Language>>,
    }
}

/// Summary of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ExtractionSummary {
    /// Records read.
    pub documents: u64,
    /// Of these, without a text: the field is absent or null.
    pub missing_text: u64,
    /// Of these, longer than the limit: without text.
    pub too_long: u64,
    /// Of these, with broken characters that were replaced.
    pub characters_replaced: u64,
    /// Of these, declared to be in another character set than they are in.
    pub charset_wrong: u64,
    /// Of these, with text that was decoded wrongly before: read as it is.
    pub mojibake: u64,
    /// Of these, with words that mix look-alike letters of Latin, Greek and Cyrillic: read as they are.
    pub homoglyphs: u64,
    /// Documents by character set, where it is not given by the format.
    pub charsets: BTreeMap<Cow<'static, str>, u64>,
    /// Documents by language, where that was wished; `unknown` where it could not be told.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub languages: BTreeMap<&'static str, u64>,
    /// Counts of what was taken out of texts, if anything was to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
    /// Bytes of input as stored.
    pub input_bytes: u64,
    /// Bytes of records as read: decompressed, before extraction.
    pub record_bytes: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Parts that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
}

impl ExtractionSummary {
    fn add_record(&mut self, record: &Record<'_>) {
        self.documents += 1;
        self.missing_text += u64::from(record.text_state == TextState::Missing);
        self.too_long += u64::from(record.text_state == TextState::TooLong);
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
        self.missing_text += part.missing_text;
        self.too_long += part.too_long;
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
    /// Its code of two letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// Reason why there is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<&'static str>,
    text: Option<&'a str>,
}

/// Texts of one chunk.
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
    /// Creates an extraction of the texts of all records.
    pub fn new(scan: RecordScan<'a>) -> Self {
        Self {
            scan,
            format: TextFormat::default(),
            language: None,
        }
    }

    /// Writes the text of each document.
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
            input_bytes: read.disk_bytes,
            skipped: read.skipped,
            boilerplate: read.boilerplate,
            ..summary
        })
    }

    /// The language of a record's text, which is counted.
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
        // Not by way of another buffer: a text may be long, and its control characters are six bytes each.
        serde_json::to_writer(&mut *out, &line).expect("a vector takes every byte");
        out.push(b'\n');
    }
}

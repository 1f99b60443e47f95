//! Everything that could not be read: the lines of `skipped.jsonl`, each with its place, and the rows of a summary, counted by kind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lookalike_corpus::{BadRecord, Inputs, SkippedPart};
use serde::{Deserialize, Serialize};

/// The folder of files of which nothing was read, among results.
pub(crate) const SKIPPED_FILES: &str = "skipped";

/// A line with every field, for tables without rows.
pub(crate) const SKIPPED: &str =
    r#"{"source":"","line":1,"record":1,"offset":0,"kind":"","reason":"","count":1,"file":""}"#;

/// One line of `skipped.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SkippedLine {
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Number of the record in its source, from 1, where there are no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    kind: Cow<'static, str>,
    reason: String,
    /// Number of them, if this is the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Path of its copy within the results, if it is a file of which nothing was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl SkippedLine {
    /// Bytes of its texts, each an allocation of its own.
    pub(crate) fn text_bytes(&self) -> u64 {
        const OVERHEAD: usize = 32;
        (self.source.len() + self.reason.len() + 2 * OVERHEAD) as u64
    }

    /// A record of `inputs` that could not be read.
    pub(crate) fn of_record(inputs: &Inputs, bad: &BadRecord) -> Self {
        Self {
            source: inputs.sources[bad.source as usize].name().into_owned(),
            line: (bad.line > 0).then_some(bad.line),
            record: (bad.line == 0).then_some(bad.number + 1),
            offset: Some(bad.offset),
            kind: bad.kind.as_str().into(),
            reason: bad.reason.clone(),
            count: None,
            file: None,
        }
    }

    /// A file or a part of one that was passed over.
    pub(crate) fn of_part(skip: &SkippedPart) -> Self {
        Self {
            source: skip.name.clone(),
            line: None,
            record: None,
            offset: skip.offset,
            kind: skip.kind.as_str().into(),
            reason: skip.reason.clone(),
            count: (skip.count > 1).then_some(skip.count),
            file: None,
        }
    }

    /// The same with the place of its copy, if there is one.
    pub(crate) fn with_file(self, file: Option<String>) -> Self {
        Self { file, ..self }
    }
}

/// Extent of the losses of a row of skipped things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossExtent {
    /// Nothing.
    #[default]
    None,
    /// As many records as are counted.
    Records,
    /// Nobody knows how many records.
    Unknown,
}

/// Something that was not read, with how often it was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkippedRow {
    /// A short name of the reason.
    pub kind: String,
    /// Number of them.
    pub count: u64,
    /// Extent of the loss of documents.
    pub loss: LossExtent,
    /// Place of the first of them, with its fault.
    pub first: String,
}

/// Something that was not read, on its way into a [`SkippedRow`].
pub(crate) struct SkippedInput {
    pub(crate) kind: &'static str,
    /// Description of it with its reason, for a person.
    pub(crate) first: String,
    count: u64,
    /// True if documents are missing because of it.
    pub(crate) extent: LossExtent,
}

impl SkippedRow {
    /// True if documents are missing because of it.
    pub fn is_loss(&self) -> bool {
        self.loss > LossExtent::None
    }
}

impl SkippedInput {
    /// A file, or a part of one.
    pub(crate) fn part(skip: &SkippedPart) -> Self {
        Self {
            kind: skip.kind.as_str(),
            first: format!("{}: {}", skip.name, skip.reason),
            count: skip.count,
            extent: match skip.kind.is_loss() {
                true => LossExtent::Unknown,
                false => LossExtent::None,
            },
        }
    }

    /// A record of `inputs`.
    pub(crate) fn record(inputs: &Inputs, bad: &BadRecord) -> Self {
        let source = &inputs.sources[bad.source as usize];
        let place = match source.is_document() {
            // The file is the record: it has no place in itself.
            true => source.name().into_owned(),
            false => format!("{}, {}", source.name(), bad.place()),
        };
        Self {
            kind: bad.kind.as_str(),
            first: format!("{place}: {}", bad.reason),
            count: 1,
            extent: LossExtent::Records,
        }
    }
}

/// Counts skips by kind and remembers the first of each.
#[derive(Default)]
pub struct SkippedRows(BTreeMap<&'static str, SkippedRow>);

impl SkippedRows {
    /// Those of a file, or of a part of one.
    pub fn add_part(&mut self, skip: &SkippedPart) {
        self.take(SkippedInput::part(skip));
    }

    /// One more record that cannot be read.
    pub fn add_record(&mut self, inputs: &Inputs, bad: &BadRecord) {
        self.take(SkippedInput::record(inputs, bad));
    }

    /// One more record of a kind that cannot be used; `first` says which and why.
    pub fn add(&mut self, kind: &'static str, first: String) {
        self.take(SkippedInput {
            kind,
            first,
            count: 1,
            extent: LossExtent::Records,
        });
    }

    pub(crate) fn take(&mut self, skipped: SkippedInput) {
        let row = self.0.entry(skipped.kind).or_insert(SkippedRow {
            kind: skipped.kind.to_owned(),
            count: 0,
            loss: skipped.extent,
            first: skipped.first,
        });
        row.count += skipped.count;
        // The worst of a kind: one file of unknown extent makes the row unknown.
        row.loss = row.loss.max(skipped.extent);
    }

    /// True if documents are missing.
    pub fn has_losses(&self) -> bool {
        self.0.values().any(SkippedRow::is_loss)
    }

    /// A row for each kind.
    pub fn finish(self) -> Vec<SkippedRow> {
        self.0.into_values().collect()
    }
}

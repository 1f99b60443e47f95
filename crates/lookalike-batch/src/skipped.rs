//! Everything that could not be read: the lines of `skipped.jsonl`, each with its place, and the rows of a summary, one for each kind.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lookalike_corpus::{BadRecord, BadRecordKind, Inputs, SkippedPart};
use serde::{Deserialize, Serialize};

/// Folder among the results for files of which nothing was read.
pub(crate) const SKIPPED_FILES: &str = "skipped";

/// A line with all fields, as the schema of a table without rows.
pub(crate) const SKIPPED: &str =
    r#"{"source":"","line":1,"record":1,"offset":0,"kind":"","reason":"","count":1,"file":""}"#;

/// One line of `skipped.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SkippedLine {
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Number of the record in its source, from 1, if the source has no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    kind: Cow<'static, str>,
    reason: String,
    /// Number of occurrences, if this is the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Path of its copy within the results, for a file of which nothing was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl SkippedLine {
    /// Returns the bytes of its strings, with the overhead of each allocation.
    pub(crate) fn text_bytes(&self) -> u64 {
        const OVERHEAD: usize = 32;
        (self.source.len() + self.reason.len() + 2 * OVERHEAD) as u64
    }

    /// Creates the line of a record of `inputs` that could not be read.
    pub(crate) fn of_record(inputs: &Inputs, bad: &BadRecord) -> Self {
        Self {
            source: inputs.sources[bad.source as usize].name().into_owned(),
            line: (bad.line > 0).then_some(bad.line),
            // Records of tables and archives have no lines. People count from 1.
            record: (bad.line == 0).then_some(bad.number + 1),
            offset: Some(bad.offset),
            kind: bad.kind.name().into(),
            reason: bad.reason.clone(),
            count: None,
            file: None,
        }
    }

    /// Creates the line of a skipped file or part of a file.
    pub(crate) fn of_part(skip: &SkippedPart) -> Self {
        Self {
            source: skip.name.clone(),
            line: None,
            record: None,
            offset: skip.offset,
            kind: skip.kind.name().into(),
            reason: skip.reason.clone(),
            count: (skip.count > 1).then_some(skip.count),
            file: None,
        }
    }

    /// Returns the line with the path of the file's copy, if there is one.
    pub(crate) fn with_file(self, file: Option<String>) -> Self {
        Self { file, ..self }
    }
}

/// Number of documents lost in a row of skipped things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossExtent {
    /// None.
    #[default]
    None,
    /// As many records as the row counts.
    Records,
    /// An unknown number of records.
    Unknown,
}

/// A kind of things that were not read, with their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkippedRow {
    /// A short name of the reason.
    pub kind: String,
    /// Number of occurrences.
    pub count: u64,
    /// Number of documents lost.
    pub loss: LossExtent,
    /// Place and fault of the first one.
    pub first: String,
}

/// Something that was not read, before it is counted in a [`SkippedRow`].
pub(crate) struct SkippedInput {
    pub(crate) kind: &'static str,
    /// Its place and the reason, for the user.
    pub(crate) first: String,
    count: u64,
    /// Number of documents lost.
    pub(crate) extent: LossExtent,
}

impl SkippedRow {
    /// Returns true if documents were lost.
    pub fn is_loss(&self) -> bool {
        self.loss > LossExtent::None
    }
}

impl SkippedInput {
    /// Returns the entry of a file or a part of one.
    pub(crate) fn part(skip: &SkippedPart) -> Self {
        Self {
            kind: skip.kind.name(),
            first: format!("{}: {}", skip.name, skip.reason),
            count: skip.count,
            extent: match skip.kind.is_loss() {
                // Nobody knows how many records the unread rest had.
                true => LossExtent::Unknown,
                false => LossExtent::None,
            },
        }
    }

    /// Returns the entry of a record of `inputs`.
    pub(crate) fn record(inputs: &Inputs, bad: &BadRecord) -> Self {
        let source = &inputs.sources[bad.source as usize];
        let place = match source.is_document() {
            // The file is the record, so there is no place within it.
            true => source.name().into_owned(),
            false => format!("{}, {}", source.name(), bad.place()),
        };
        Self {
            kind: bad.kind.name(),
            first: format!("{place}: {}", bad.reason),
            count: 1,
            extent: match bad.kind {
                BadRecordKind::BrokenRun => LossExtent::Unknown,
                _ => LossExtent::Records,
            },
        }
    }
}

/// Counts skips by kind and keeps the first of each kind, and the first losses of all kinds.
#[derive(Default)]
pub struct SkippedRows {
    rows: BTreeMap<&'static str, SkippedRow>,
    most_losses: usize,
    losses: Vec<String>,
}

lookalike::opaque_debug! {
    [] SkippedRows [];
}

impl SkippedRows {
    /// Creates an empty count that keeps the places and faults of at most `most_losses` losses.
    pub fn with_losses(most_losses: usize) -> Self {
        Self {
            most_losses,
            ..Self::default()
        }
    }

    /// Returns the places and faults of the first losses.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Counts a file or a part of one.
    pub fn add_part(&mut self, skip: &SkippedPart) {
        self.take(SkippedInput::part(skip));
    }

    /// Counts a record that cannot be read.
    pub fn add_record(&mut self, inputs: &Inputs, bad: &BadRecord) {
        self.take(SkippedInput::record(inputs, bad));
    }

    /// Counts a record that cannot be used; `first` says which one and why.
    pub fn add(&mut self, kind: &'static str, first: String) {
        self.take(SkippedInput {
            kind,
            first,
            count: 1,
            extent: LossExtent::Records,
        });
    }

    pub(crate) fn take(&mut self, skipped: SkippedInput) {
        if skipped.extent > LossExtent::None && self.losses.len() < self.most_losses {
            self.losses.push(skipped.first.clone());
        }
        self.count(skipped);
    }

    fn count(&mut self, skipped: SkippedInput) {
        let row = self.rows.entry(skipped.kind).or_insert(SkippedRow {
            kind: skipped.kind.to_owned(),
            count: 0,
            loss: skipped.extent,
            first: skipped.first,
        });
        row.count += skipped.count;
        // The worst extent counts: one file of unknown extent makes that of the row unknown.
        row.loss = row.loss.max(skipped.extent);
    }

    /// Adds the counts of others, which come later.
    pub(crate) fn append(&mut self, others: Self) {
        let room = self.most_losses.saturating_sub(self.losses.len());
        self.losses.extend(others.losses.into_iter().take(room));
        for (kind, row) in others.rows {
            self.count(SkippedInput {
                kind,
                first: row.first,
                count: row.count,
                extent: row.loss,
            });
        }
    }

    /// Returns true if documents were lost.
    pub fn has_losses(&self) -> bool {
        self.rows.values().any(SkippedRow::is_loss)
    }

    /// Returns one row for each kind.
    pub fn finish(self) -> Vec<SkippedRow> {
        self.rows.into_values().collect()
    }
}

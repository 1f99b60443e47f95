//! The lines of `skipped.jsonl`: everything that could not be read, with the place where it stands.

use std::borrow::Cow;

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

//! Checks that the fields which the user named exist: a field that no record has is a mistake, and reported before it decides anything.

use std::ops::AddAssign;

use lookalike::{DocumentFields, FieldWeights};
use lookalike_corpus::{
    BadRecordKind, InputOptions, Inputs, RawRecord, Record, Source, TextFieldSet, TextState,
    raw_records,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{BatchError, FieldSetting, MissingField};
use crate::skipped::SkippedRow;

tally! {
    /// Counts of the records that have the named fields.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct FieldTally {
        /// Number of all records.
        pub records: u64,
        /// Number of records with the field of [`InputOptions::id_field`].
        pub ids: u64,
        /// Number of records with a text.
        pub texts: u64,
        /// Number of records longer than [`InputOptions::max_document_bytes`].
        pub too_long: u64,
        /// The text fields that some record has, if [`InputOptions::text_field`] names several. A record that is too long may have any.
        pub text_fields: TextFieldSet,
        /// Numbers of records with a value in `anchors`, `in_links` and `out_links`, of [`InputOptions::fields`].
        pub linked: LinkedRecords,
    }
}

/// Numbers of records with a value in `anchors`, in `in_links` and in `out_links`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedRecords([u64; 3]);

impl LinkedRecords {
    /// Counts a record with these fields.
    pub(crate) fn count(&mut self, fields: &DocumentFields) {
        let filled = [
            !fields.anchors.is_empty(),
            !fields.in_links.is_empty(),
            !fields.out_links.is_empty(),
        ];
        for (count, is_filled) in self.0.iter_mut().zip(filled) {
            *count += u64::from(is_filled);
        }
    }

    /// Returns the name of a field that has a weight but that no record has.
    fn absent(&self, weights: FieldWeights) -> Option<&'static str> {
        let named = [
            ("anchors", weights.anchors()),
            ("in_links", weights.in_links()),
            ("out_links", weights.out_links()),
        ];
        let mut absent = named.iter().zip(self.0);
        absent
            .find(|((_, weight), count)| *weight > 0 && *count == 0)
            .map(|((name, _), _)| *name)
    }
}

impl AddAssign for LinkedRecords {
    fn add_assign(&mut self, other: Self) {
        for (count, other) in self.0.iter_mut().zip(other.0) {
            *count += other;
        }
    }
}

impl FieldTally {
    /// Counts a record.
    pub fn count(&mut self, record: &Record<'_>) {
        self.records += 1;
        self.ids += u64::from(record.id_named);
        self.texts += u64::from(record.text_state != TextState::Missing);
        let is_too_long = record.text_state == TextState::TooLong;
        self.too_long += u64::from(is_too_long);
        self.text_fields += match is_too_long {
            true => TextFieldSet::ALL,
            false => record.text_fields,
        };
        self.linked.count(&record.fields);
    }

    /// Returns the number of records without a text.
    pub fn missing(&self) -> u64 {
        self.records - self.texts
    }

    /// Returns an error if a field was named that no record has.
    ///
    /// # Errors
    /// [`BatchError::NoField`] or [`BatchError::NoText`], with the names of existing fields.
    pub fn check(&self, inputs: &Inputs, options: &InputOptions) -> Result<(), BatchError> {
        // An empty input has no fields, which does not make an option wrong.
        let records = self.records;
        if records == 0 {
            return Ok(());
        }
        let fields = || first_names(inputs, options);
        if options.text_field.is_some() && self.texts == 0 {
            return Err(no_text(options, records, fields()));
        }
        let unknown = |setting: FieldSetting, value: String, field: MissingField| {
            Err(BatchError::NoField {
                setting,
                value,
                field,
                records,
                fields: fields(),
            })
        };
        let no_field = |setting: FieldSetting, path: String| {
            let named = MissingField::Named(path.clone());
            unknown(setting, path, named)
        };
        // A file that is one document has a text, whichever field is named.
        if let Some(texts) = &options.text_field {
            if are_documents(inputs) {
                return no_field(FieldSetting::Text, texts.to_string());
            }
            if let Some(path) = texts.absent(self.text_fields) {
                let named = MissingField::Named(path.to_string());
                return unknown(FieldSetting::Text, texts.to_string(), named);
            }
        }
        if let Some(path) = options.id_field.as_ref().filter(|_| self.ids == 0) {
            return no_field(FieldSetting::Id, path.to_string());
        }
        match self.linked.absent(options.fields) {
            Some(name) => unknown(
                FieldSetting::Fields,
                options.fields.to_string(),
                MissingField::Filled(name),
            ),
            None => Ok(()),
        }
    }

    /// Returns an error if no record has a text and most could not be read, because their ids or texts are objects, lists or the like: the fields
    /// within these should have been named.
    ///
    /// # Errors
    /// [`BatchError::WrongTypes`], with the first such record.
    pub fn refuse_wrong_types(&self, skipped: &[SkippedRow]) -> Result<(), BatchError> {
        let kind = BadRecordKind::WrongType.name();
        let wrong = skipped.iter().find(|row| row.kind == kind);
        match wrong.filter(|row| self.texts == 0 && row.count > self.records) {
            Some(row) => Err(BatchError::WrongTypes {
                count: row.count,
                all: self.records + row.count,
                first: row.first.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Returns an error if there are records but none has a text: for a job about texts, the field is misnamed. Link fields are as good as a text,
    /// since features are made of them too.
    ///
    /// # Errors
    /// [`BatchError::NoText`] or [`BatchError::NoField`], with the names of existing fields.
    pub fn refuse_no_text(
        &self,
        inputs: &Inputs,
        options: &InputOptions,
    ) -> Result<(), BatchError> {
        let has_links = self.linked != LinkedRecords::default();
        match self.records > 0 && self.texts == 0 && !has_links {
            true => Err(no_text(options, self.records, first_names(inputs, options))),
            false => Ok(()),
        }
    }
}

/// Returns the error that no record has a text, or a value in the fields that are named for it.
pub(crate) fn no_text(options: &InputOptions, records: u64, fields: String) -> BatchError {
    match &options.text_field {
        None => BatchError::NoText { records, fields },
        Some(named) => BatchError::NoField {
            setting: FieldSetting::Text,
            value: named.to_string(),
            field: MissingField::Named(named.to_string()),
            records,
            fields,
        },
    }
}

/// Returns true if every file is one document, so that no record has fields.
fn are_documents(inputs: &Inputs) -> bool {
    !inputs.sources.is_empty() && inputs.sources.iter().all(Source::is_document)
}

/// Describes the fields of the first record that has any, shortened for a message.
pub(crate) fn first_names(inputs: &Inputs, options: &InputOptions) -> String {
    if inputs.are_in_memory() {
        return "every document in memory lacks it".to_owned();
    }
    match first_object(inputs, options) {
        Some(object) if object.is_empty() => "the first record has no fields".to_owned(),
        Some(object) => format!("the first record has the fields {}", some_names(&object)),
        None if are_documents(inputs) => "files that are one document have no fields".to_owned(),
        None => "no record has fields".to_owned(),
    }
}

/// Returns true if the first record that has fields has the field of the text, even if that is null.
pub(crate) fn first_has_text_field(inputs: &Inputs, options: &InputOptions) -> bool {
    let Some(object) = first_object(inputs, options) else {
        return false;
    };
    match &options.text_field {
        Some(fields) => object.keys().any(|name| fields.begin_with(name)),
        None => object.contains_key("text") || object.contains_key("html"),
    }
}

/// Returns the first record that has fields.
fn first_object(inputs: &Inputs, options: &InputOptions) -> Option<Map<String, Value>> {
    let mut found = None;
    let first = &mut |record: RawRecord<'_>| -> Result<(), BatchError> {
        match serde_json::from_slice(record.bytes) {
            Ok(object) => {
                found = Some(object);
                // Any error ends the reading, and this one is dropped below.
                Err(BatchError::Cancelled)
            }
            Err(_) => Ok(()),
        }
    };
    // The visitor stops at the first record that is an object; only the value that it stored matters.
    let _ = raw_records(inputs, options, first);
    found
}

fn some_names(object: &Map<String, Value>) -> String {
    const MOST: usize = 20;
    let names: Vec<String> = object.keys().take(MOST).map(|name| shown(name)).collect();
    match object.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{} and {more} more", names.join(", ")),
        _ => names.join(", "),
    }
}

/// Formats a name for a message. If a name is too long, as when a table without a header has a document there, only its beginning is quoted.
fn shown(name: &str) -> String {
    const MOST: usize = 40;
    let is_plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || "_-.:/".contains(c));
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?} and so on ({} bytes)", &name[..end], name.len()),
        // As the user would write it in an option.
        None if is_plain => name.replace('.', "\\."),
        None => format!("{name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_bounded() {
        assert_eq!(shown("url"), "url");
        assert_eq!(shown("a name"), "\"a name\"");
        assert_eq!(shown("\u{1b}[31m"), "\"\\u{1b}[31m\"");
        let long = shown(&"a document ".repeat(1000));
        assert!(
            long.len() < 100 && long.ends_with("(11000 bytes)"),
            "{long}"
        );
    }
}

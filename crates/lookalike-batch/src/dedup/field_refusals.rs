//! Refusals of input that lacks the fields named in the settings.

use lookalike_corpus::{Category, Inputs, TextFieldSet};

use crate::dedup::collection::directory::DocumentCollection;
use crate::dedup::job::DedupJob;
use crate::dedup::scan::ScannedCollection;
use crate::error::{BatchError, FieldSetting, MissingField};
use crate::fields::{FieldTally, first_has_text_field, first_names, no_text};
use crate::settings::{KeepRule, PairScope};
use crate::skipped::SkippedRows;

impl DedupJob<'_> {
    /// Refuses input in which no new record has a text, because the field is misnamed.
    pub(super) fn refuse_no_text(&self, scanned: &ScannedCollection) -> Result<(), BatchError> {
        let records = (scanned.documents.len() - scanned.documents.against) as u64;
        let tally = FieldTally {
            records,
            texts: records - scanned.tally.missing_new,
            ..FieldTally::default()
        };
        let mut wrong = SkippedRows::default();
        let unread = scanned.bad.iter();
        unread
            .filter(|bad| bad.source as usize >= self.against_sources)
            .for_each(|bad| wrong.add_record(self.inputs, bad));
        tally.refuse_wrong_types(&wrong.finish())?;
        if records == 0 || scanned.tally.missing_new < records {
            return Ok(());
        }
        let new = self.new_inputs();
        // New input in which every text is empty is possible.
        if self.is_against_texts(scanned) && first_has_text_field(&new, &self.options) {
            return Ok(());
        }
        let mut fields = first_names(&new, &self.options);
        // The texts may be in the records that could not be read.
        if let Some(first) = scanned.bad.first() {
            let unread = scanned.bad.len();
            fields += &format!(
                "; {unread} more could not be read, the first: {}",
                first.reason
            );
        }
        Err(no_text(&self.options, records, fields))
    }

    /// Refuses files to compare with in which no record has the named field of the text: the job would compare with empty texts only.
    pub(super) fn refuse_no_text_against(
        &self,
        scanned: &ScannedCollection,
    ) -> Result<(), BatchError> {
        let tally = &scanned.tally;
        let records = scanned.documents.against as u64 - scanned.stored.documents;
        let missing = tally.fields.missing() - tally.missing_new;
        // The caller of documents in memory says where their texts are.
        let is_named = self.options.text_field.is_some() && !self.inputs.are_in_memory();
        if !is_named || records == 0 || missing < records {
            return Ok(());
        }
        let against = Inputs {
            sources: self.inputs.sources[..self.against_sources].to_vec(),
            skips: self.inputs.skips.clone(),
        };
        if first_has_text_field(&against, &self.options) {
            return Ok(());
        }
        let fields = first_names(&against, &self.options);
        let fields = format!("these are only compared with, and {fields}");
        Err(no_text(&self.options, records, fields))
    }

    /// Returns true if the job has a collection with documents: its settings are those of the job, so the named fields are right.
    fn is_against_collection(&self) -> bool {
        let documents = |collection: &DocumentCollection| collection.documents() > 0;
        self.collection.is_some_and(documents)
    }

    /// Returns true if new texts are compared with others, those of a collection or of files.
    fn is_against_texts(&self, scanned: &ScannedCollection) -> bool {
        let documents = &scanned.documents;
        let has_text = |class: &Option<_>| class.is_some();
        self.is_against_collection() || documents.classes[..documents.against].iter().any(has_text)
    }

    /// Refuses fields that were named but that no record has.
    pub(super) fn refuse_unknown_fields(
        &self,
        scanned: &ScannedCollection,
    ) -> Result<(), BatchError> {
        let (tally, options) = (&scanned.tally, &self.options);
        let mut named = tally.fields;
        if self.is_against_texts(scanned) {
            // As in `refuse_no_text`.
            named.texts = named.records;
        }
        if self.is_against_collection() {
            named.text_fields = TextFieldSet::ALL;
        }
        named.check(self.inputs, options)?;
        if self.is_against_collection() {
            return Ok(());
        }
        let unknown = |setting: FieldSetting, value: String, field: MissingField, records: u64| {
            Err(BatchError::NoField {
                setting,
                value,
                field,
                records,
                fields: first_names(self.inputs, options),
            })
        };
        let with_text = tally.categorised + tally.uncategorised;
        // Categories are counted only for records with a text, so without any text nothing follows.
        if let (Some(category), 0, 1..) = (&options.category, tally.categorised, with_text) {
            let setting = match self.settings.scope {
                PairScope::Within => FieldSetting::Within,
                PairScope::Across => FieldSetting::Across,
                PairScope::Everything => FieldSetting::DistanceFor,
            };
            let field = match category {
                Category::Site => MissingField::Url,
                Category::Field(path) => MissingField::Named(path.to_string()),
            };
            return unknown(setting, category.to_string(), field, tally.fields.records);
        }
        let Some(rule) = self.settings.keep.field_rule() else {
            return Ok(());
        };
        // A value in a file that is compared with shows that the field is right, as a collection does. The tally counts new records alone.
        let values = scanned.documents.values.iter();
        let mut against = values.take(scanned.documents.against);
        if against.any(|value| !value.is_nan()) {
            return Ok(());
        }
        let records = tally.unranked + tally.rank_unusable;
        match (tally.ranked, records, &scanned.unusable) {
            (1.., _, _) | (_, 0, _) => Ok(()),
            (0, _, None) => unknown(
                FieldSetting::Keep,
                self.settings.keep.to_string(),
                MissingField::Named(rule.field().unwrap_or_default().to_owned()),
                records,
            ),
            (0, _, Some(first)) => Err(BatchError::NoUsableValue {
                keep: self.settings.keep.to_string(),
                records,
                missing: tally.unranked,
                first: first.clone(),
                remedy: match rule {
                    KeepRule::Newest(_) => {
                        "newest: needs dates with the year first (2024-03-01, 2024/3, 2024), RFC 2822 dates or seconds since \
                         1970; latest: compares texts"
                    }
                    _ => "max: and min: need numbers, newest: needs dates, latest: compares texts",
                },
            }),
        }
    }
}

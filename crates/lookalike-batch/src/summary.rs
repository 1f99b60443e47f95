//! What a job tells when it is done: `run.json`, and the source of what a person reads.

use std::collections::BTreeMap;

use lookalike_corpus::{BadRecord, InputOptions, Inputs, Skip};
use serde::{Deserialize, Serialize};

use crate::boilerplate::BoilerplateCounts;
use crate::documents::Documents;
use crate::outcome::Outcome;
use crate::scan::Scanned;

/// Counts of what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records that were read as documents.
    pub documents: u64,
    /// Of these, given with `--against`.
    pub against: u64,
    /// Different texts; with `--within`, `--across` or `--distance-for site` those of each category.
    pub distinct_texts: u64,
    /// Records without a text, or with white space only: they equal nothing.
    pub empty: u64,
    /// Of these, records whose text field is absent or null.
    pub missing_text: u64,
    /// Records longer than the limit: kept, but not compared.
    pub too_long: u64,
    /// Different texts without a feature: compared as exact copies only.
    pub without_features: u64,
    /// Records in which broken characters were replaced.
    pub characters_replaced: u64,
    /// Records with text that was decoded wrongly before it came here.
    #[serde(default)]
    pub mojibake: u64,
    /// With `--within` or `--across`: records without a category, which form one of their own.
    #[serde(default)]
    pub without_category: u64,
    /// Records that had no id and were given one.
    pub ids_generated: u64,
    /// Records whose id another had, and that were numbered.
    pub ids_repeated: u64,
    /// Records that could not be read; see `skipped`.
    pub unreadable: u64,
    /// Bytes of input as stored.
    pub input_bytes: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Distinct features of all different texts, in temporary storage on disk.
    pub spilled_bytes: u64,
    /// What was taken out of texts, where something was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<BoilerplateCounts>,
}

impl Counts {
    pub(crate) fn of_scan(
        scanned: &Scanned,
        inputs: &Inputs,
        options: &InputOptions,
        repeated_ids: u64,
    ) -> Self {
        let tally = &scanned.tally;
        Self {
            documents: scanned.documents.len() as u64,
            against: scanned.documents.against as u64,
            distinct_texts: scanned.classes.len() as u64,
            empty: tally.empty,
            missing_text: tally.missing,
            too_long: tally.too_long,
            without_features: tally.featureless,
            without_category: tally.uncategorised,
            characters_replaced: tally.replaced,
            mojibake: tally.mojibake,
            ids_generated: tally.generated_ids,
            ids_repeated: repeated_ids,
            unreadable: scanned.bad.len() as u64,
            input_bytes: inputs.total_bytes(),
            text_bytes: tally.text_bytes,
            spilled_bytes: scanned.sets.spilled(),
            boilerplate: tally.removed.counts(options),
        }
    }
}

/// Counts of what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// Documents kept, those given with `--against` not counted.
    pub kept: u64,
    /// Documents removed because their text equals that of a kept one.
    pub removed_exact: u64,
    /// Documents removed because they resemble a kept one.
    pub removed_near: u64,
    /// Kept documents for which others were removed.
    pub clusters: u64,
    /// Bytes of the removed texts.
    pub removed_text_bytes: u64,
}

impl Decisions {
    pub(crate) fn new(documents: &Documents, outcomes: &[Outcome], clusters: usize) -> Self {
        let mut decisions = Self {
            clusters: clusters as u64,
            ..Self::default()
        };
        for (document, outcome) in outcomes.iter().enumerate().skip(documents.against) {
            match outcome {
                Outcome::Kept => decisions.kept += 1,
                Outcome::Exact { .. } => decisions.removed_exact += 1,
                Outcome::Near { .. } => decisions.removed_near += 1,
            }
            if *outcome != Outcome::Kept {
                decisions.removed_text_bytes += documents.lengths[document];
            }
        }
        decisions
    }
}

/// Something that was not read, with how often it was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRow {
    /// A short name of the reason.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Where the first of them is, and what is wrong with it.
    pub first: String,
}

/// Something that was not read, on its way into a [`SkippedRow`].
pub(crate) struct Skipped {
    kind: &'static str,
    /// What it is and why, for a person.
    pub(crate) first: String,
    count: u64,
    /// Whether a strict job stops here.
    pub(crate) is_loss: bool,
}

impl Skipped {
    /// A file, or a part of one.
    pub(crate) fn part(skip: &Skip) -> Self {
        Self {
            kind: skip.kind.as_str(),
            first: format!("{}: {}", skip.name, skip.reason),
            count: skip.count,
            is_loss: skip.kind.is_loss(),
        }
    }

    /// A record of `inputs`.
    pub(crate) fn record(inputs: &Inputs, bad: &BadRecord) -> Self {
        let name = inputs.sources[bad.source as usize].name();
        Self {
            kind: bad.kind.as_str(),
            first: format!("{name}, {}: {}", bad.place(), bad.reason),
            count: 1,
            is_loss: true,
        }
    }
}

/// Counts skips by kind and remembers the first of each.
#[derive(Default)]
pub(crate) struct SkippedRows(BTreeMap<&'static str, SkippedRow>);

impl SkippedRows {
    /// One more of a kind.
    pub(crate) fn add(&mut self, kind: &'static str, first: String) {
        self.take(Skipped {
            kind,
            first,
            count: 1,
            is_loss: true,
        });
    }

    pub(crate) fn take(&mut self, skipped: Skipped) {
        let row = self.0.entry(skipped.kind).or_insert(SkippedRow {
            kind: skipped.kind.to_owned(),
            count: 0,
            first: skipped.first,
        });
        row.count += skipped.count;
    }

    pub(crate) fn finish(self) -> Vec<SkippedRow> {
        self.0.into_values().collect()
    }
}

/// What was skipped, by kind: unreadable records, and files not read or not to their end.
pub(crate) fn skipped(inputs: &Inputs, scanned: &Scanned) -> Vec<SkippedRow> {
    let mut rows = SkippedRows::default();
    for bad in &scanned.bad {
        rows.take(Skipped::record(inputs, bad));
    }
    for skip in inputs.skips.iter().chain(&scanned.skips) {
        rows.take(Skipped::part(skip));
    }
    rows.finish()
}

//! Counts of noteworthy properties of records.

use lookalike_corpus::Record;
use serde::{Deserialize, Serialize};

use crate::boilerplate::RemovedTally;
use crate::dedup::pages::PageCounts;
use crate::fields::FieldTally;

tally! {
    /// Counts of noteworthy properties of the records read.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct ScanTally {
        /// Numbers of records with the fields that the options name.
        pub(crate) fields: FieldTally,
        /// Number of records without a text, or with only white space.
        pub(crate) empty: u64,
        /// Number of these whose text field is absent or null, and that are not only compared with.
        pub(crate) missing_new: u64,
        /// Number of different texts among those records beyond the limit that have a hash.
        pub(crate) long_classes: u64,
        /// Numbers of records without and with a category, if categories are compared.
        pub(crate) uncategorised: u64,
        pub(crate) categorised: u64,
        /// Numbers of records, except those that are only compared with, that have a value in the field that orders survivors, have none, and have
        /// one that cannot be used.
        pub(crate) ranked: u64,
        pub(crate) unranked: u64,
        pub(crate) rank_unusable: u64,
        /// Number of texts without features.
        pub(crate) featureless: u64,
        /// Number of records in which invalid characters, or values that have no representation, were replaced.
        pub(crate) replaced: u64,
        /// Number of records with text that was wrongly decoded before.
        pub(crate) mojibake: u64,
        /// Number of records with words that mix look-alike letters of different scripts.
        pub(crate) homoglyphs: u64,
        /// Number of records that were given an id.
        pub(crate) generated_ids: u64,
        /// Bytes of text.
        pub(crate) text_bytes: u64,
        /// Counts of the boilerplate removed from texts.
        pub(crate) removed: RemovedTally,
        /// Counts of pages of which a part was chosen.
        pub(crate) pages: PageCounts,
    }
}

impl ScanTally {
    /// Counts the properties of a record.
    pub(crate) fn count(&mut self, record: &Record<'_>) {
        self.text_bytes += record.text.len() as u64;
        self.fields.count(record);
        self.replaced += u64::from(record.replaced);
        self.mojibake += u64::from(record.mojibake);
        self.homoglyphs += u64::from(record.homoglyphs);
        self.generated_ids += u64::from(record.id_generated);
        self.removed.count(&record.removed);
        self.pages.count(record);
    }
}

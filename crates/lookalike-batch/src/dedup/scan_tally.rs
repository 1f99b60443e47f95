//! Counts of what was noteworthy while records were read.

use serde::{Deserialize, Serialize};

use crate::boilerplate::RemovedTally;
use crate::dedup::pages::PageCounts;
use crate::fields::LinkedRecords;

/// Counts of what was noteworthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScanTally {
    /// Records without a text, or with white space only.
    pub(crate) empty: u64,
    /// Of these, records whose text field is absent or null.
    pub(crate) missing: u64,
    /// Records longer than the limit.
    pub(crate) too_long: u64,
    /// Different ones among those of which a hash is known.
    pub(crate) long_classes: u64,
    /// Records without a category, where one is asked for; and those with one.
    pub(crate) uncategorised: u64,
    pub(crate) categorised: u64,
    /// Records whose id stands in the field that was named.
    pub(crate) named_ids: u64,
    /// Records with anchors or links, where they are asked for.
    pub(crate) linked: LinkedRecords,
    /// Records, but for those that are only compared with, that have the value by which survivors are chosen, have none, and have
    /// something else there.
    pub(crate) ranked: u64,
    pub(crate) unranked: u64,
    pub(crate) rank_unusable: u64,
    /// Records with text but without features.
    pub(crate) featureless: u64,
    /// Records in which broken characters were replaced.
    pub(crate) replaced: u64,
    /// Records with text that was decoded wrongly before.
    pub(crate) mojibake: u64,
    /// Records with words that mix look-alike letters of scripts.
    pub(crate) homoglyphs: u64,
    /// Records that were given an id.
    pub(crate) generated_ids: u64,
    /// Bytes of text.
    pub(crate) text_bytes: u64,
    /// Counts of what was taken out of texts.
    pub(crate) removed: RemovedTally,
    /// Pages of which a part was chosen.
    pub(crate) pages: PageCounts,
}

impl ScanTally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.empty += other.empty;
        self.missing += other.missing;
        self.too_long += other.too_long;
        self.long_classes += other.long_classes;
        self.uncategorised += other.uncategorised;
        self.categorised += other.categorised;
        self.named_ids += other.named_ids;
        self.linked.add(&other.linked);
        self.ranked += other.ranked;
        self.unranked += other.unranked;
        self.rank_unusable += other.rank_unusable;
        self.featureless += other.featureless;
        self.replaced += other.replaced;
        self.mojibake += other.mojibake;
        self.homoglyphs += other.homoglyphs;
        self.generated_ids += other.generated_ids;
        self.text_bytes += other.text_bytes;
        self.removed.add(&other.removed);
        self.pages.add(&other.pages);
    }
}

//! Finds repetitions of fingerprints without ids that no pair has, so that they are in no class.

use super::FingerprintKeep;
use super::documents::ClusterDocument;
use crate::spill::table_column::TableColumn;

/// A fingerprint in four parts, the most significant first, and the place of a document with it.
type PlacedFingerprint = [u32; 5];

/// Fingerprints of documents in no class, while these are read.
#[derive(Default)]
pub(super) struct BareFingerprints {
    all: TableColumn<PlacedFingerprint>,
}

/// Those of several documents, in ascending order, each with the place of the document that stands for all.
#[derive(Default)]
pub(super) struct RepeatedFingerprints {
    kept: TableColumn<PlacedFingerprint>,
}

fn placed(fingerprint: u128, place: u32) -> PlacedFingerprint {
    let part = |shift: u32| (fingerprint >> shift) as u32;
    [part(96), part(64), part(32), part(0), place]
}

fn value(placed: &PlacedFingerprint) -> &[u32] {
    &placed[..4]
}

impl BareFingerprints {
    /// Adds a document, if its fingerprint is its id.
    pub(super) fn add(&mut self, document: &ClusterDocument<'_>) {
        if let (true, Some(fingerprint)) = (document.is_bare, document.fingerprint) {
            self.all.push(placed(fingerprint, document.place));
        }
    }

    pub(super) fn memory(&self) -> u64 {
        (self.all.capacity() * size_of::<PlacedFingerprint>()) as u64
    }

    /// Returns the fingerprints of several documents. `keep` chooses the one that stands for all.
    pub(super) fn repeated(self, keep: FingerprintKeep) -> RepeatedFingerprints {
        let Self { mut all } = self;
        // Places ascend among equal fingerprints.
        all.sort_unstable();
        let groups = all.chunk_by(|a, b| value(a) == value(b));
        let repeated = groups.filter(|group| group.len() > 1);
        let kept = repeated.map(|group| match keep {
            FingerprintKeep::Last => group[group.len() - 1],
            // Equal fingerprints without ids have equal ids.
            FingerprintKeep::First | FingerprintKeep::Id => group[0],
        });
        RepeatedFingerprints {
            kept: kept.collect(),
        }
    }
}

impl RepeatedFingerprints {
    /// Tells whether another document in no class stands for this one.
    pub(super) fn has(&self, document: &ClusterDocument<'_>) -> bool {
        let (true, Some(fingerprint)) = (document.is_bare, document.fingerprint) else {
            return false;
        };
        let wanted = placed(fingerprint, document.place);
        let found = self
            .kept
            .binary_search_by(|kept| value(kept).cmp(value(&wanted)));
        found.is_ok_and(|at| self.kept[at] != wanted)
    }
}

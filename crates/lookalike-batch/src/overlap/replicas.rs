//! Measures replication from the rows of one chunking (Shivakumar and Garcia-Molina 1998, section 3): replicas of each page, and pages that a crawler
//! need not visit.
//!
//! Rows come in the order of their first unit. When a unit comes first in a row, all earlier units that it could be a copy of are known, so one pass
//! finds the pages to skip for earlier ones. A second pass finds those to skip for later ones, among the kept pages that no other is skipped for. A
//! page is only skipped for one that is kept.

use serde::Serialize;

use super::SharedCount;
use super::collection::OverlapDocuments;
use crate::spill::table_column::TableColumn;

/// Upper ends of the classes by number of replicas, including the document itself: 1, 2, 3 to 10, 11 to 100, ...
const ENDS: [u64; 5] = [1, 2, 10, 100, 1000];

/// A page that need not be visited, because a kept page has its contents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SkippablePage {
    pub(crate) kept: u32,
    pub(crate) shared: u32,
    /// Share of the skipped page's chunks that the kept page has.
    pub(crate) containment: f64,
}

/// Counts replicas in the rows of one chunking.
///
/// Memory: 24 bytes for each set of equal texts.
pub(crate) struct ReplicaCounter {
    /// Number of other documents that overlap with those of each set.
    others: TableColumn<u64>,
    /// The kept set that each set overlaps with, or the set itself.
    pub(crate) leaders: TableColumn<u32>,
    skipped: TableColumn<Option<(u32, u32)>>,
    /// Minimum share of a page's chunks in a kept page for the page to be skipped.
    containment: f64,
}

impl ReplicaCounter {
    pub(crate) fn new(sets: usize, containment: f64) -> Self {
        Self {
            others: TableColumn::zeroed(sets),
            leaders: (0..sets as u32).collect(),
            skipped: (0..sets).map(|_| None).collect(),
            containment,
        }
    }

    /// Takes a row of sets. Rows must come in order.
    pub(crate) fn row(&mut self, row: SharedCount, collection: &OverlapDocuments, sizes: &[u32]) {
        let (a, b) = (row.a as usize, row.b as usize);
        let documents = |set: u32| collection.exact.members(set).len() as u64;
        self.others[a] += documents(row.b);
        self.others[b] += documents(row.a);
        // Only if the first page is itself kept, and only once, because a visit is saved once.
        if self.leaders[a] == row.a && self.leaders[b] == row.b {
            self.leaders[b] = row.a;
        }
        let contained = f64::from(row.shared) / f64::from(sizes[b]) >= self.containment;
        let better = self.skipped[b].is_none_or(|(_, shared)| row.shared > shared);
        // Never skip a page for one that is itself skipped: the contents must be in the kept page, not two steps away.
        if contained && better && self.skipped[a].is_none() {
            self.skipped[b] = Some((row.a, row.shared));
        }
    }

    /// Starts the second pass, over the same rows.
    pub(crate) fn later_copies(&mut self) -> LaterCopies<'_> {
        let mut dependents: TableColumn<u32> = TableColumn::zeroed(self.skipped.len());
        for &(kept, _) in self.skipped.iter().flatten() {
            dependents[kept as usize] += 1;
        }
        LaterCopies {
            replicas: self,
            dependents,
        }
    }

    /// Returns the kept page that a set is skipped for.
    pub(crate) fn skipped(&self, set: u32, sizes: &[u32]) -> Option<SkippablePage> {
        self.skipped[set as usize].map(|(kept, shared)| SkippablePage {
            kept,
            shared,
            containment: f64::from(shared) / f64::from(sizes[set as usize]),
        })
    }

    /// Returns the number of sets that are skipped for a kept one.
    pub(crate) fn near_copies(&self) -> u64 {
        self.skipped.iter().flatten().count() as u64
    }

    /// Returns the figures of these rows.
    pub(crate) fn level(&self, name: &str, collection: &OverlapDocuments) -> ReplicaLevel {
        // Each document of a set has the same number of replicas: those of its own text and those of all overlapping texts.
        let others = |set: u32| self.others[set as usize];
        let is_led = |set: u32| self.leaders[set as usize] != set;
        ReplicaLevel::new(name, collection, others, is_led)
    }
}

/// Finder of pages whose contents are in a later page.
///
/// Memory: 4 bytes for each set of equal texts.
pub(crate) struct LaterCopies<'a> {
    replicas: &'a mut ReplicaCounter,
    /// Number of sets that are skipped for each set.
    dependents: TableColumn<u32>,
}

impl LaterCopies<'_> {
    /// Takes a row of sets, in the order of the first pass.
    pub(crate) fn row(&mut self, row: SharedCount, sizes: &[u32]) {
        let skipped = &mut self.replicas.skipped;
        let (a, b) = (row.a as usize, row.b as usize);
        let contained = f64::from(row.shared) / f64::from(sizes[a]) >= self.replicas.containment;
        if !contained || self.dependents[a] > 0 || skipped[b].is_some() {
            return;
        }
        if let Some((kept, shared)) = skipped[a] {
            // Of pages that share as much, the largest: it may make the others needless, too.
            let is_better = (row.shared, sizes[b]) > (shared, sizes[kept as usize]);
            if kept < row.a || !is_better {
                return;
            }
            self.dependents[kept as usize] -= 1;
        }
        skipped[a] = Some((row.b, row.shared));
        self.dependents[b] += 1;
    }
}

/// Replication of the collection at one level of resemblance, and the savings for a crawler that knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReplicaLevel {
    /// `exact` for equal texts, otherwise the chunking.
    pub level: String,
    /// Documents by the number of their replicas, themselves included.
    pub replicas: Vec<ReplicaClass>,
    /// Number of documents with a text.
    pub with_text: u64,
    /// Number of visits saved: documents that overlap with a kept one.
    pub visits_saved: u64,
    /// Bytes of the texts of these documents.
    pub bytes_saved: u64,
}

/// Number of documents with a given number of replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplicaClass {
    /// The number of replicas: `1`, `2`, `3-10`, `11-100`, `101-1000`, `1001-`.
    pub replicas: String,
    /// The number of documents.
    pub documents: u64,
}

/// Returns the classes of documents by the number of their replicas.
fn classes() -> Vec<ReplicaClass> {
    let starts = std::iter::once(1).chain(ENDS.map(|end| end + 1));
    let ends = ENDS.into_iter().map(Some).chain([None]);
    let name = |(start, end): (u64, Option<u64>)| match end {
        Some(end) if end == start => start.to_string(),
        Some(end) => format!("{start}-{end}"),
        None => format!("{start}-"),
    };
    let class = |range| ReplicaClass {
        replicas: name(range),
        documents: 0,
    };
    starts.zip(ends).map(class).collect()
}

impl ReplicaLevel {
    /// Counts the replicas of all documents. `others` gives the number of documents with other texts that overlap with a set of equal texts; `is_led`
    /// returns true for a set that overlaps with a kept one, so that none of its documents need be visited.
    fn new(
        name: &str,
        collection: &OverlapDocuments,
        others: impl Fn(u32) -> u64,
        is_led: impl Fn(u32) -> bool,
    ) -> Self {
        let mut level = Self {
            level: name.to_owned(),
            replicas: classes(),
            ..Self::default()
        };
        for set in 0..collection.exact.len() as u32 {
            let documents = collection.exact.members(set).len() as u64;
            let saved = documents - u64::from(!is_led(set));
            level.with_text += documents;
            level.add(documents + others(set), documents);
            level.visits_saved += saved;
            level.bytes_saved += saved * collection.length_of_set(set);
        }
        // A document without a text is its only replica.
        level.add(1, collection.documents.len() as u64 - level.with_text);
        level
    }

    fn add(&mut self, replicas: u64, documents: u64) {
        // Beyond the last end this is the class without an end.
        let class = ENDS.partition_point(|&end| end < replicas);
        self.replicas[class].documents += documents;
    }

    /// Returns the level of equal texts.
    pub(crate) fn exact(collection: &OverlapDocuments) -> Self {
        Self::new("exact", collection, |_| 0, |_| false)
    }
}

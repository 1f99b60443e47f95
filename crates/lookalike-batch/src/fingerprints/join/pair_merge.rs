//! Merges lists of pairs: combines the results of the shards of a join into the same lines as a single run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use serde::Serialize;

use super::matches::unwritten;
use super::pair_merge_error::PairMergeError;
use crate::error::BatchError;
use crate::fingerprints::files::{FingerprintSource, ListedId, ListedPair, NoPair, PairFile};
use crate::observer::{JobObserver, JobStage, NoProgress, check_cancelled};

/// Number of lines between two checks of the observer.
const STEP: u64 = 1 << 14;

lookalike::job! {
    /// Job that merges lists of pairs.
    #[derive(Debug)]
    pub struct PairMerge<'a> {
        /// Creates a merge of lists, given in any order.
        new(lists: &'a [FingerprintSource]);
        /// Sets the observer of progress.
        observer: &'a dyn JobObserver = &NoProgress,
    }
}

/// Counts of a merge.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MergeSummary {
    /// Each list with its number of pairs.
    pub lists: Vec<MergedList>,
    /// Number of pairs written.
    pub pairs: u64,
    /// Number of further occurrences of pairs that are in several lists; each pair was written once.
    pub repeated: u64,
}

/// One list of a merge.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MergedList {
    /// Name of the list.
    pub name: String,
    /// Number of its pairs.
    pub pairs: u64,
}

// The derived order compares the fields from top to bottom; the list decides between copies of one pair.
/// The next line of a list, ordered as `join` orders pairs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PairHead {
    a: ListedId<'static>,
    b: ListedId<'static>,
    distance: u8,
    list: usize,
    line: Vec<u8>,
}

impl PairHead {
    fn is_pair_of(&self, other: &Self) -> bool {
        (&self.a, &self.b, self.distance) == (&other.a, &other.b, other.distance)
    }
}

/// A list being read.
struct OpenList {
    file: PairFile,
    number: usize,
    pairs: u64,
}

impl OpenList {
    /// Returns the next line, or `None` at the end. `sides` are the field names of the lines so far.
    fn next(&mut self, sides: &mut Option<&'static str>) -> Result<Option<PairHead>, BatchError> {
        // Before `next`, whose pair borrows the file.
        let name = self.file.name().to_owned();
        let pair = self.file.next()?;
        let no_pair = |NoPair { line, reason }| PairMergeError::Line { name, line, reason };
        let Some(pair) = pair.map_err(no_pair)? else {
            return Ok(None);
        };
        let ListedPair {
            a,
            b,
            distance,
            line,
            sides: found,
        } = pair;
        let (a, b) = (a.into_owned(), b.into_owned());
        let before = *sides.get_or_insert(found);
        if before != found {
            return Err(PairMergeError::Sides {
                name: self.file.name().to_owned(),
                line,
                found,
                before,
            }
            .into());
        }
        let distance = distance.ok_or_else(|| PairMergeError::Line {
            name: self.file.name().to_owned(),
            line,
            reason: "has no distance".to_owned(),
        })?;
        self.pairs += 1;
        Ok(Some(PairHead {
            a,
            b,
            distance,
            list: self.number,
            line: self.file.line().to_owned(),
        }))
    }
}

impl<'a> PairMerge<'a> {
    /// Writes the lines of all lists in order, each pair once.
    ///
    /// # Errors
    /// [`BatchError`] if a list cannot be read or is not sorted, or if `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> Result<MergeSummary, BatchError> {
        let mut lists = Vec::new();
        for (number, source) in self.lists.iter().enumerate() {
            let file = PairFile::open(source)?;
            lists.push(OpenList {
                file,
                number,
                pairs: 0,
            });
        }
        let sizes = lists
            .iter()
            .map(|list| list.file.total_bytes().unwrap_or(0));
        self.observer.stage(JobStage::Scan, sizes.sum());
        let (mut sides, mut heads) = (None, BinaryHeap::new());
        for list in &mut lists {
            // Only the next line of each list is in memory.
            heads.extend(list.next(&mut sides)?.map(Reverse));
        }
        let (mut last, mut pairs, mut read) = (None::<PairHead>, 0, 0_u64);
        while let Some(Reverse(head)) = heads.pop() {
            let list = &mut lists[head.list];
            if let Some(next) = list.next(&mut sides)? {
                // If a list does not ascend, copies of a pair may not be adjacent and would be written twice.
                if (&next.a, &next.b, next.distance) < (&head.a, &head.b, head.distance) {
                    return Err(PairMergeError::Order {
                        name: list.file.name().to_owned(),
                        line: list.file.line_number(),
                    }
                    .into());
                }
                heads.push(Reverse(next));
            }
            read += 1;
            if read % STEP == 0 {
                check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
                let bytes = lists.iter().map(|list| list.file.bytes_read());
                self.observer.progress(bytes.sum());
            }
            // The heap returns equal pairs of several lists one after another.
            if last.as_ref().is_some_and(|last| last.is_pair_of(&head)) {
                continue;
            }
            out.write_all(&head.line)
                .and_then(|()| out.write_all(b"\n"))
                .map_err(unwritten)?;
            pairs += 1;
            last = Some(head);
        }
        out.flush().map_err(unwritten)?;
        let merged = lists.into_iter().map(|list| MergedList {
            name: list.file.name().to_owned(),
            pairs: list.pairs,
        });
        Ok(MergeSummary {
            lists: merged.collect(),
            pairs,
            repeated: read - pairs,
        })
    }
}

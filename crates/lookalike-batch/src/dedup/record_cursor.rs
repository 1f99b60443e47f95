//! Numbers of documents while records are read again.

use std::ops::Range;

use crate::dedup::checkpoint::DecisionCheckpoint;
use crate::observer::JobObserver;

/// Follows records in order, maps each to its document, and reports progress to the observer.
pub(crate) struct RecordCursor<'a> {
    bad: &'a [[u64; 2]],
    next: usize,
    observer: &'a dyn JobObserver,
}

impl<'a> RecordCursor<'a> {
    /// Creates a cursor. `bad` has the unreadable records, by source and number, ascending.
    pub(crate) fn new(bad: &'a [[u64; 2]], observer: &'a dyn JobObserver) -> Self {
        Self {
            bad,
            next: 0,
            observer,
        }
    }

    /// Returns the document of a record, or `None` if the record could not be read.
    pub(crate) fn next(&mut self, source: u32, number: u64) -> Option<usize> {
        let here = [u64::from(source), number];
        // Skip unreadable records of lost sources, which are not read again.
        let before = self.bad.partition_point(|bad| *bad < here);
        self.bad = &self.bad[before..];
        if self.bad.first() == Some(&here) {
            self.bad = &self.bad[1..];
            return None;
        }
        // Often enough for a progress bar, but rarely enough to cost nothing.
        if self.next.is_multiple_of(4096) {
            self.observer.progress(self.next as u64);
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// Numbers of documents by their sources and records, for readers that process several records at the same time.
pub(crate) struct DocumentNumbers<'a> {
    bad: &'a [[u64; 2]],
    /// Number of sources, from the first, that are not read again.
    against: usize,
    /// For each source, the number of its first document, and of the unreadable records in earlier sources.
    starts: Vec<(usize, usize)>,
}

impl<'a> DocumentNumbers<'a> {
    /// Creates the numbers of the documents of a job, whose first `against` sources are not read again.
    pub(crate) fn new(checkpoint: &'a DecisionCheckpoint, against: usize) -> Self {
        Self::of_sources(checkpoint.source_documents(), &checkpoint.bad, against)
    }

    /// Creates the numbers from the documents of each source and the unreadable records, by source and number, ascending.
    fn of_sources(
        documents: impl Iterator<Item = Range<u32>>,
        bad: &'a [[u64; 2]],
        against: usize,
    ) -> Self {
        let documents = documents.enumerate().skip(against);
        let start = |(source, documents): (usize, Range<u32>)| {
            let before = bad.partition_point(|bad| bad[0] < source as u64);
            (documents.start as usize, before)
        };
        Self {
            bad,
            against,
            starts: documents.map(start).collect(),
        }
    }

    /// Returns the document of a record, or `None` if the record could not be read. Sources are counted from the first that is read again.
    pub(crate) fn of(&self, source: u32, number: u64) -> Option<usize> {
        let here = [source as u64 + self.against as u64, number];
        let (first, bad_before) = self.starts[source as usize];
        match self.bad[bad_before..].binary_search(&here) {
            Ok(_) => None,
            // Unreadable records have no document, so those before this record reduce its number.
            Err(bad) => Some(first + number as usize - bad),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::observer::NoProgress;

    proptest! {
        #[test]
        fn records_have_the_numbers_that_they_have_one_after_another(
            sources in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.2), 0..12), 1..6),
            against in 0..5_usize,
            stored in 0..4_u32,
        ) {
            let against = against.min(sources.len() - 1);
            let (mut bad, mut documents, mut next) = (Vec::new(), Vec::new(), stored);
            for (source, records) in (0..).zip(&sources) {
                let unreadable = (0..).zip(records).filter(|(_, is_bad)| **is_bad);
                bad.extend(unreadable.map(|(number, _)| [source, number]));
                let readable = records.iter().filter(|is_bad| !**is_bad).count();
                documents.push(next..next + readable as u32);
                next += readable as u32;
            }
            let numbers = DocumentNumbers::of_sources(documents.into_iter(), &bad, against);
            let mut cursor = RecordCursor::new(&bad, &NoProgress);
            for (source, records) in (0..).zip(&sources) {
                for number in 0..records.len() as u64 {
                    let document = cursor.next(source, number);
                    if let Some(later) = source.checked_sub(against as u32) {
                        let expected = document.map(|document| document + stored as usize);
                        prop_assert_eq!(numbers.of(later, number), expected);
                    }
                }
            }
        }
    }
}

//! Numbers of documents while records are read a second time.

use crate::observer::JobObserver;

/// Follows records in their order and tells which document each is, and the observer how far they are.
pub(crate) struct RecordCursor<'a> {
    bad: &'a [[u64; 2]],
    source_offset: u64,
    next: usize,
    observer: &'a dyn JobObserver,
}

impl<'a> RecordCursor<'a> {
    /// Of unreadable records, by source and number, ascending. The first `against` sources with their `first` documents are not read again.
    pub(crate) fn new(
        bad: &'a [[u64; 2]],
        against: usize,
        first: usize,
        observer: &'a dyn JobObserver,
    ) -> Self {
        let skipped = bad.partition_point(|bad| bad[0] < against as u64);
        Self {
            bad: &bad[skipped..],
            source_offset: against as u64,
            next: first,
            observer,
        }
    }

    /// The document that a record is, or none if it could not be read.
    pub(crate) fn next(&mut self, source: u32, number: u64) -> Option<usize> {
        let here = [u64::from(source) + self.source_offset, number];
        // Sources that were lost are not read again.
        let before = self.bad.partition_point(|bad| *bad < here);
        self.bad = &self.bad[before..];
        if self.bad.first() == Some(&here) {
            self.bad = &self.bad[1..];
            return None;
        }
        if self.next.is_multiple_of(4096) {
            self.observer.advance(self.next as u64);
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

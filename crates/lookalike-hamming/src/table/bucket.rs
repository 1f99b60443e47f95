//! The entries of one bucket, however they are stored.

use super::super::code::Word;
use super::super::kernel::{Dense, ScanLine, ScanPacked, hit_positions};

/// Entries of a bucket.
#[derive(Clone, Copy)]
pub(in super::super) enum Bucket<'a> {
    /// Entries in whole bytes.
    Bytes(Runs<'a>),
    /// Entries as bits in a table: the rank of the first, and their number.
    Bits(Dense<'a>, usize, usize),
}

/// At most two runs of entries in whole bytes.
#[derive(Clone, Copy)]
pub(in super::super) struct Runs<'a> {
    first: &'a [u8],
    first_count: usize,
    /// The first run, if it is a cache line.
    line: Option<&'a [u8; 64]>,
    more: &'a [u8],
    more_count: usize,
    width: usize,
}

/// Number of entries up to which comparing all of them is faster than a binary search.
const LINEAR_SEARCH_MAX: usize = 64;

impl Bucket<'_> {
    /// Returns the position of an entry, if it is there.
    pub(super) fn position<W: Word>(&self, sought: W) -> Option<usize> {
        let count = self.count();
        if count <= LINEAR_SEARCH_MAX {
            let mut found = None;
            // Codes are distinct, so at most one entry is equal.
            self.scan(sought, 0, &mut |at, _| found = Some(at));
            return found;
        }
        // All codes may be in one bucket: looking for each of them with a scan would take quadratic time.
        let (mut start, mut end) = (0, count);
        while start < end {
            let middle = start + (end - start) / 2;
            match self.entry::<W>(middle) < sought {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        (start < count && self.entry::<W>(start) == sought).then_some(start)
    }

    fn count(&self) -> usize {
        match self {
            Self::Bytes(runs) => runs.first_count + runs.more_count,
            Self::Bits(_, _, count) => *count,
        }
    }

    fn entry<W: Word>(&self, at: usize) -> W {
        match self {
            Self::Bytes(runs) => runs.entry(at),
            Self::Bits(table, start, _) => W::from_u128(table.entry(start + at)),
        }
    }

    /// Visits the position and value of each entry within `radius` of `needle`.
    pub(in super::super) fn scan<W: Word>(
        &self,
        needle: W,
        radius: u32,
        visit: &mut impl FnMut(usize, W),
    ) {
        match self {
            Self::Bytes(runs) => runs.scan(needle, radius, visit),
            Self::Bits(table, start, count) => {
                // One by one: only lookups in small buckets and walks over all entries get here. Searches use `ProbeDense`.
                for at in 0..*count {
                    let entry = W::from_u128(table.entry(start + at));
                    if (entry ^ needle).ones() <= radius {
                        visit(at, entry);
                    }
                }
            }
        }
    }
}

impl<'a> Runs<'a> {
    /// Creates a run of `first_count` entries at the start of `first`.
    pub(super) fn packed(first: &'a [u8], first_count: usize, width: usize) -> Self {
        Self {
            first,
            first_count,
            line: None,
            more: &[],
            more_count: 0,
            width,
        }
    }

    /// Creates the entries of a line, and those that are stored elsewhere.
    pub(super) fn of_line(
        line: &'a [u8; 64],
        held: usize,
        more: &'a [u8],
        more_count: usize,
        width: usize,
    ) -> Self {
        Self {
            first: line,
            first_count: held,
            line: Some(line),
            more,
            more_count,
            width,
        }
    }

    fn entry<W: Word>(&self, at: usize) -> W {
        match at.checked_sub(self.first_count) {
            None => W::read_at(self.first, at * self.width, self.width),
            Some(at) => W::read_at(self.more, at * self.width, self.width),
        }
    }

    fn scan<W: Word>(&self, needle: W, radius: u32, visit: &mut impl FnMut(usize, W)) {
        let (width, held) = (self.width, self.first_count);
        if let Some(line) = self.line {
            // Two vectors hold a line, however many entries it has, so no branch depends on their number.
            let entries = ScanPacked {
                bytes: line,
                width,
                count: held,
                needle,
                radius,
            };
            let hits = W::run(ScanLine { line, entries });
            visit_hits(hits, line, width, 0, visit);
        } else {
            scan_run(self.first, held, width, needle, radius, 0, visit);
        }
        if self.more_count > 0 {
            let (more, count) = (self.more, self.more_count);
            scan_run(more, count, width, needle, radius, held, visit);
        }
    }
}

/// Visits the entries among the first `count` of `bytes` that are within `radius` of `needle`; `before` is added to their positions.
pub(super) fn scan_run<W: Word>(
    mut bytes: &[u8],
    count: usize,
    width: usize,
    needle: W,
    radius: u32,
    before: usize,
    visit: &mut impl FnMut(usize, W),
) {
    // As many at a time as a mask has bits.
    for start in (0..count).step_by(64) {
        let here = (count - start).min(64);
        let hits = W::run(ScanPacked {
            bytes,
            width,
            count: here,
            needle,
            radius,
        });
        visit_hits(hits, bytes, width, before + start, visit);
        bytes = &bytes[here * width..];
    }
}

fn visit_hits<W: Word>(
    hits: u64,
    bytes: &[u8],
    width: usize,
    before: usize,
    visit: &mut impl FnMut(usize, W),
) {
    // Read again rather than kept from the vector: hits are rare, and the bytes are in the cache by now.
    for at in hit_positions(hits) {
        visit(before + at, W::read_at(bytes, at * width, width));
    }
}

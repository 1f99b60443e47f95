//! The store of a table with a cache line for each bucket ([`Layout::Lines`](super::super::layout::Layout)).

use super::super::code::Word;
use super::super::kernel::{self, Flipped, Line, LineTable, LineVisitor, Split};
use super::super::layout::{LINE_DATA, line_capacity};
use super::super::section::{HeldBytes, Section};
use super::bucket::{Runs, scan_run};
use super::{PADDING, append};
use std::ops::Range;

/// Entries beside a line begin at a multiple of so many bytes: 2^32 of those are room enough.
const SPILL_UNIT: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Lines {
    lines: Section<Line>,
    /// Of each bucket with more entries than a line holds, at a multiple of sixteen bytes: how many it
    /// has in all (4 bytes), and those that are not in the line.
    spilled: Section<u8>,
    /// Rank of the first entry of each bucket; empty until asked for.
    ranks: Section<[u8; 4]>,
    /// Bytes of an entry.
    width: usize,
}

impl Lines {
    pub(super) fn new(width: usize) -> Self {
        Self {
            lines: Section::default(),
            spilled: Section::default(),
            ranks: Section::default(),
            width,
        }
    }

    /// Makes room for so many buckets.
    pub(super) fn reserve(&mut self, buckets: usize) {
        let lines = self.lines.growing();
        lines.reserve_exact(buckets);
        kernel::ask_huge_pages(lines);
    }

    /// Adds the next buckets.
    pub(super) fn push<W: Word>(&mut self, mut rests: &[W], sizes: &[u32]) {
        for &size in sizes {
            let (bucket, later) = rests.split_at(size as usize);
            self.push_one(bucket);
            rests = later;
        }
    }

    #[inline]
    fn push_one<W: Word>(&mut self, rests: &[W]) {
        let width = self.width;
        let capacity = line_capacity(width);
        let held = rests.len().min(capacity);
        let mut line = Line([0; 64]);
        for (i, rest) in rests[..held].iter().enumerate() {
            rest.write_wide(width, &mut line.0[i * width..]);
        }
        let tail = if held == rests.len() {
            held as u32
        } else {
            let spilled = self.spilled.growing();
            let unit = spilled.len().div_ceil(SPILL_UNIT);
            spilled.resize(unit * SPILL_UNIT, 0);
            spilled.extend_from_slice(&(rests.len() as u32).to_le_bytes());
            append(spilled, &rests[held..], width);
            (capacity + 1 + unit) as u32
        };
        line.0[LINE_DATA..].copy_from_slice(&tail.to_le_bytes());
        self.lines.growing().push(line);
    }

    pub(super) fn finish(&mut self) {
        let spilled = self.spilled.growing();
        spilled.extend_from_slice(&[0; PADDING]);
        spilled.shrink_to_fit();
    }

    pub(super) fn sections(&self) -> [&[u8]; 3] {
        [self.ranks.bytes(), self.lines.bytes(), self.spilled.bytes()]
    }

    /// The store that [`Lines::sections`] was written from; `None` when the sizes contradict each other.
    pub(super) fn held(
        width: usize,
        buckets: usize,
        bytes: &HeldBytes,
        [ranks, lines, spilled]: [Range<usize>; 3],
    ) -> Option<Self> {
        let store = Self {
            ranks: Section::held(bytes, ranks)?,
            lines: Section::held(bytes, lines)?,
            spilled: Section::held(bytes, spilled)?,
            width,
        };
        let ranks = store.ranks.items().len();
        let fits = store.lines.items().len() == buckets && (ranks == 0 || ranks == buckets);
        fits.then_some(store)
    }

    /// How many buckets there are.
    fn buckets(&self) -> Range<usize> {
        0..self.lines.items().len()
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.buckets().map(|bucket| self.count(bucket)).sum()
    }

    /// Where beside the lines the rest of a bucket is, if it has any there.
    #[inline]
    fn spill(&self, line: &Line) -> Option<usize> {
        let unit = (line.tail() as usize).checked_sub(line_capacity(self.width) + 1)?;
        Some(unit * SPILL_UNIT)
    }

    /// The entries beside the line, and the count of all, of a bucket.
    fn extent(&self, bucket: usize) -> (&[u8], usize) {
        let line = &self.lines.items()[bucket];
        match self.spill(line) {
            None => (&[], line.tail() as usize),
            Some(at) => {
                let beside = self.spilled.items().get(at..).unwrap_or_default();
                let (count, entries) = beside.split_at_checked(4).unwrap_or_default();
                // A damaged file may tell of more than there is; whole ones never do.
                let most = entries.len() / self.width.max(1) + line_capacity(self.width);
                (entries, (u32::read(count) as usize).min(most))
            }
        }
    }

    /// How many entries a bucket has.
    pub(super) fn count(&self, bucket: usize) -> usize {
        self.extent(bucket).1
    }

    pub(super) fn bucket(&self, bucket: usize) -> Runs<'_> {
        let (more, count) = self.extent(bucket);
        let held = count.min(line_capacity(self.width));
        let line = &self.lines.items()[bucket].0;
        Runs::of_line(line, held, (more, count - held), self.width)
    }

    /// Rank of the first entry of a bucket; [`Lines::count_ranks`] comes before.
    pub(super) fn rank(&self, bucket: usize) -> usize {
        u32::from_le_bytes(self.ranks.items()[bucket]) as usize
    }

    pub(super) fn has_ranks(&self) -> bool {
        !self.ranks.items().is_empty()
    }

    pub(super) fn count_ranks(&mut self) {
        let mut before = 0;
        let ranks = self.buckets().map(|bucket| {
            let count = self.count(bucket) as u32;
            before += count;
            (before - count).to_le_bytes()
        });
        self.ranks = Section::Owned(ranks.collect());
    }

    pub(super) fn prefetch_directory(&self, buckets: impl Iterator<Item = usize>) {
        let lines = self.lines.items();
        buckets.for_each(|at| kernel::prefetch(lines, at));
    }

    pub(super) fn locate(&self, buckets: impl Iterator<Item = usize>) {
        let (lines, spilled) = (self.lines.items(), self.spilled.items());
        for at in buckets {
            if let Some(at) = self.spill(&lines[at]) {
                kernel::prefetch_beside(spilled, at);
            }
        }
    }

    pub(super) fn probe<W: Word>(
        &self,
        probes: Flipped<'_>,
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        let shape = (self.width, line_capacity(self.width) as u32);
        let mut visitor = Spilled {
            lines: self,
            needle,
            hit,
        };
        W::probe_lines(self.lines.items(), shape, probes, needle, &mut visitor)
    }

    pub(super) fn view<W>(&self, split: Split<W>) -> LineTable<'_, W> {
        LineTable {
            split,
            lines: self.lines.items(),
            spilled: self.spilled.items(),
            width: self.width,
            capacity: line_capacity(self.width) as u32,
            unit: SPILL_UNIT,
        }
    }
}

/// Looks at what a line does not hold.
struct Spilled<'a, W> {
    lines: &'a Lines,
    needle: W,
    hit: &'a mut dyn FnMut(u32, W),
}

impl<W: Word> LineVisitor<W> for Spilled<'_, W> {
    fn hit(&mut self, bucket: u32, entry: W) {
        (self.hit)(bucket, entry);
    }

    fn overflow(&mut self, bucket: u32, radius: u32) -> u64 {
        let width = self.lines.width;
        let (entries, count) = self.lines.extent(bucket as usize);
        let more = count.saturating_sub(line_capacity(width));
        let visit = &mut |_, rest| (self.hit)(bucket, rest);
        scan_run((entries, more), width, self.needle, radius, 0, visit);
        more as u64
    }
}

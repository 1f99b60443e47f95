//! One table: its buckets in memory, in either layout.
//!
//! The entries of a bucket are the stored bits of its codes, ascending, in whole little-endian
//! bytes. An entry's *rank* is the number of entries before it in the table.

use super::build::Addressing;
use super::code::Word;
use super::design::TableKey;
use super::kernel::{
    self, Dense, Extent, Flipped, Line, LineTable, LineVisitor, Located, PackedTable, Split,
};
use super::layout::{LINE_DATA, Layout, entry_bytes, line_capacity};
use super::section::{HeldBytes, Section};
use dense::DenseStore;
use std::ops::Range;

mod dense;

/// A table of distinct codes.
#[derive(Clone, Debug)]
pub(super) struct Table<W> {
    pub(super) addressing: Addressing<W>,
    /// Errors in the address that probes forgive.
    pub(super) budget: u32,
    /// What to flip in an address for each probe, ascending: neighbouring buckets share cache lines.
    pub(super) flips: Vec<u32>,
    width: usize,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    Packed(Packed),
    Lines(Lines),
    Dense(DenseStore),
}

/// Entries back to back.
#[derive(Clone, Debug, Default)]
struct Packed {
    /// Rank of the first entry of each bucket, and of the end.
    starts: Section<[u8; 4]>,
    entries: Section<u8>,
}

/// A line for each bucket.
#[derive(Clone, Debug, Default)]
struct Lines {
    lines: Section<Line>,
    /// Of each bucket with more entries than a line holds, at a multiple of sixteen bytes: how many it
    /// has in all (4 bytes), and those that are not in the line.
    spilled: Section<u8>,
    /// Rank of the first entry of each bucket; empty until asked for.
    ranks: Section<[u8; 4]>,
}

/// Flips of a table that are searched together: a table that forgives several errors has thousands, whose memory would
/// be gone from the cache before it is read.
pub(super) const PIECE: usize = 32;
/// Directory entries of four bytes in a cache line.
const LINE_STARTS: usize = 16;

/// Calls `each` with the first bucket of every run of buckets of one unit, a power of two.
#[inline(always)]
fn once_each(buckets: impl Iterator<Item = usize>, unit: usize, mut each: impl FnMut(usize)) {
    let mut last = usize::MAX;
    for at in buckets {
        if at / unit != last {
            last = at / unit;
            each(at);
        }
    }
}

/// Where the entries of a bucket are.
#[derive(Clone, Copy)]
pub(super) enum Bucket<'a> {
    /// In whole bytes.
    Bytes(Runs<'a>),
    /// In a table as bits: rank of the first, and how many.
    Bits(Dense<'a>, usize, usize),
}

/// At most two runs of entries in whole bytes.
#[derive(Clone, Copy)]
pub(super) struct Runs<'a> {
    first: &'a [u8],
    first_count: usize,
    line: Option<&'a [u8; 64]>,
    more: &'a [u8],
    more_count: usize,
}

/// All flips of at most `budget` of `bits` address bits, ascending.
pub(super) fn flips(bits: u32, budget: u32) -> Vec<u32> {
    let mut all = vec![0_u32];
    let mut newest = vec![0_u32];
    for _ in 0..budget.min(bits) {
        // Each flip once: bits are added above those there are.
        let grown = newest.iter().flat_map(|&flip| {
            let above = 32 - flip.leading_zeros();
            (above..bits).map(move |bit| flip | 1 << bit)
        });
        newest = grown.collect();
        all.extend_from_slice(&newest);
    }
    all.sort_unstable();
    all
}

impl<W: Word> Table<W> {
    pub(super) fn new(key: &TableKey, address: u128, layout: Layout) -> Self {
        let addressing = Addressing::new(address);
        let store = match layout {
            Layout::Packed => Store::Packed(Packed::default()),
            Layout::Lines => Store::Lines(Lines::default()),
            Layout::Dense => Store::Dense(DenseStore::new(addressing.rest_bits)),
        };
        Self {
            addressing,
            budget: key.budget,
            flips: flips(addressing.address_bits, key.budget),
            width: entry_bytes(W::BITS, addressing.address_bits),
            store,
        }
    }

    /// Makes room for so many entries, which the sums of the buckets must not exceed.
    pub(super) fn reserve(&mut self, entries: usize) {
        let buckets = 1_usize << self.addressing.address_bits;
        match &mut self.store {
            Store::Packed(packed) => {
                let starts = packed.starts.growing();
                starts.reserve_exact(buckets + 1);
                kernel::ask_huge_pages(starts);
                starts.push([0; 4]);
                let bytes = packed.entries.growing();
                bytes.reserve_exact(entries * self.width + PADDING);
                kernel::ask_huge_pages(bytes);
            }
            Store::Lines(lines) => {
                let lines = lines.lines.growing();
                lines.reserve_exact(buckets);
                kernel::ask_huge_pages(lines);
            }
            Store::Dense(dense) => dense.reserve(entries, buckets),
        }
    }

    /// Adds the next bucket.
    pub(super) fn push(&mut self, rests: &[W]) {
        let width = self.width;
        match &mut self.store {
            Store::Packed(packed) => {
                append(packed.entries.growing(), rests, width);
                let starts = packed.starts.growing();
                let before = starts.last().map_or(0, |&end| u32::from_le_bytes(end));
                starts.push((before + rests.len() as u32).to_le_bytes());
            }
            Store::Lines(lines) => lines.push(rests, width),
            Store::Dense(dense) => dense.push(rests),
        }
    }

    /// Ends the table: kernels read eight bytes at a time, and up to seven beyond the last entry.
    pub(super) fn finish(&mut self) {
        let entries = match &mut self.store {
            Store::Packed(packed) => packed.entries.growing(),
            Store::Lines(lines) => lines.spilled.growing(),
            Store::Dense(dense) => return dense.finish(),
        };
        entries.extend_from_slice(&[0; PADDING]);
        entries.shrink_to_fit();
    }

    /// The table as it stands in a file: the parts that must be right for any search to end first.
    pub(super) fn sections(&self) -> [&[u8]; 3] {
        match &self.store {
            Store::Packed(packed) => [packed.starts.bytes(), packed.entries.bytes(), &[]],
            Store::Lines(lines) => [
                lines.ranks.bytes(),
                lines.lines.bytes(),
                lines.spilled.bytes(),
            ],
            Store::Dense(dense) => dense.sections(),
        }
    }

    /// The table that [`Table::sections`] was written from; `None` when the sizes contradict each
    /// other.
    pub(super) fn held(
        key: &TableKey,
        address: u128,
        layout: Layout,
        bytes: &HeldBytes,
        sections: &[Range<usize>; 3],
    ) -> Option<Self> {
        let mut table = Self::new(key, address, layout);
        let buckets = 1_usize << table.addressing.address_bits;
        let [first, second, third] = sections.clone();
        table.store = match layout {
            Layout::Packed => {
                let packed = Packed {
                    starts: Section::held(bytes, first)?,
                    entries: Section::held(bytes, second)?,
                };
                let room = packed.len() * table.width + PADDING;
                let fits = packed.starts.items().len() == buckets + 1;
                (fits && packed.entries.items().len() == room).then_some(Store::Packed(packed))?
            }
            Layout::Lines => {
                let lines = Lines {
                    ranks: Section::held(bytes, first)?,
                    lines: Section::held(bytes, second)?,
                    spilled: Section::held(bytes, third)?,
                };
                let ranks = lines.ranks.items().len();
                let fits = lines.lines.items().len() == buckets && (ranks == 0 || ranks == buckets);
                fits.then_some(Store::Lines(lines))?
            }
            Layout::Dense => {
                let (bits, sections) = (table.addressing.rest_bits, sections.clone());
                Store::Dense(DenseStore::held(bits, buckets, bytes, sections)?)
            }
        };
        Some(table)
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        match &self.store {
            Store::Packed(packed) => packed.len(),
            Store::Lines(lines) => (0..lines.lines.items().len())
                .map(|bucket| lines.count(bucket, self.width))
                .sum(),
            Store::Dense(dense) => dense.len(),
        }
    }

    /// Memory of the table.
    pub(super) fn bytes(&self) -> usize {
        let stored = match &self.store {
            Store::Packed(packed) => packed.starts.bytes().len() + packed.entries.items().len(),
            Store::Lines(lines) => {
                let beside = lines.ranks.bytes().len() + lines.spilled.items().len();
                lines.lines.bytes().len() + beside
            }
            Store::Dense(dense) => dense.bytes(),
        };
        stored + self.flips.len() * 4
    }

    /// Pieces that the flips are searched in.
    pub(super) fn pieces(&self) -> usize {
        self.flips.len().div_ceil(PIECE)
    }

    /// The flips of a piece.
    #[inline(always)]
    pub(super) fn piece(&self, piece: usize) -> &[u32] {
        let start = piece * PIECE;
        &self.flips[start..self.flips.len().min(start + PIECE)]
    }

    /// Whether there are marks between directory and entries.
    #[inline(always)]
    pub(super) fn has_marks(&self) -> bool {
        matches!(self.store, Store::Dense(_))
    }

    /// Asks for the memory that the probes at these flips from `bucket` read first.
    pub(super) fn prefetch_directory(&self, bucket: u32, flips: &[u32]) {
        let buckets = flips.iter().map(|flip| (bucket ^ flip) as usize);
        match &self.store {
            Store::Packed(packed) => {
                let starts = packed.starts.items();
                once_each(buckets.clone(), LINE_STARTS, |at| {
                    kernel::prefetch(starts, at)
                });
                // Where a bucket ends, which is in the next line now and then.
                buckets.for_each(|at| kernel::prefetch(starts, at + 1));
            }
            Store::Lines(lines) => {
                let lines = lines.lines.items();
                buckets.for_each(|at| kernel::prefetch(lines, at));
            }
            Store::Dense(dense) => {
                let counts = dense.view().counts;
                once_each(buckets, kernel::DENSE_GROUP * LINE_STARTS, |at| {
                    kernel::prefetch(counts, at / kernel::DENSE_GROUP);
                });
            }
        }
    }

    /// Asks for the marks of a dense table, once the directory is there.
    pub(super) fn prefetch_marks(&self, bucket: u32, flips: &[u32]) {
        if let Store::Dense(dense) = &self.store {
            let view = dense.view();
            let buckets = flips.iter().map(|flip| (bucket ^ flip) as usize);
            once_each(buckets, kernel::DENSE_GROUP, |at| {
                let place = view.place_of_marks(at);
                kernel::prefetch(view.marks, place);
                // Those of most groups are sixteen bytes, of which three words are read.
                kernel::prefetch(view.marks, place + 23);
            });
        }
    }

    /// Finds the entries of the probes, once directory and marks are there, and asks for their memory.
    pub(super) fn locate(&self, bucket: u32, flips: &[u32], out: &mut [Extent]) {
        let buckets = flips.iter().map(|flip| (bucket ^ flip) as usize);
        match &self.store {
            Store::Packed(packed) => {
                let (starts, entries) = (packed.starts.items(), packed.entries.items());
                for (at, out) in buckets.zip(out) {
                    let (start, end) = range(starts, at);
                    let count = end.saturating_sub(start);
                    kernel::prefetch_run(entries, start * self.width, count, self.width);
                    *out = Extent {
                        first: start as u32,
                        count: count as u32,
                    };
                }
            }
            Store::Lines(lines) => {
                let (all, spilled) = (lines.lines.items(), lines.spilled.items());
                buckets.for_each(|at| {
                    if let Some(at) = spill(&all[at], self.width) {
                        kernel::prefetch(spilled, at);
                    }
                });
            }
            Store::Dense(dense) => {
                let view = dense.view();
                kernel::locate_dense(view, bucket, flips, out);
                for &extent in out.iter() {
                    let (first, last) = view.place(extent);
                    if extent.count > 0 {
                        kernel::prefetch(view.entries, first);
                        kernel::prefetch(view.entries, last);
                    }
                }
            }
        }
    }

    /// Visits bucket and stored bits of each entry within the radius of `needle`, the bits flipped in
    /// the number of its bucket included; how many were compared. `extents` is what [`Table::locate`] found.
    pub(super) fn probe(
        &self,
        probes: Flipped<'_>,
        extents: &[Extent],
        needle: W,
        hit: &mut dyn FnMut(u32, W),
    ) -> u64 {
        let width = self.width;
        let located = Located { probes, extents };
        match &self.store {
            Store::Packed(packed) => {
                W::probe_packed(packed.entries.items(), width, located, needle, hit)
            }
            Store::Lines(lines) => {
                let shape = (width, line_capacity(width) as u32);
                let mut visitor = Spilled {
                    lines,
                    width,
                    needle,
                    hit,
                };
                W::probe_lines(lines.lines.items(), shape, probes, needle, &mut visitor)
            }
            Store::Dense(dense) => W::probe_dense(dense.view(), located, needle, hit),
        }
    }

    /// Whether a query has one probe of the table, which needs no marks.
    pub(super) fn is_probed_once(&self) -> bool {
        self.flips.len() == 1 && !self.has_marks()
    }

    fn split(&self) -> Split<W> {
        let Addressing { address, rest, .. } = self.addressing;
        Split { address, rest }
    }

    /// The table for a search that probes it once, where it is in lines.
    pub(super) fn lines(&self) -> Option<LineTable<'_, W>> {
        let Store::Lines(lines) = &self.store else {
            return None;
        };
        Some(LineTable {
            split: self.split(),
            lines: lines.lines.items(),
            spilled: lines.spilled.items(),
            width: self.width,
            capacity: line_capacity(self.width) as u32,
            unit: SPILL_UNIT,
        })
    }

    /// The same where it is packed.
    pub(super) fn packed(&self) -> Option<PackedTable<'_, W>> {
        let Store::Packed(packed) = &self.store else {
            return None;
        };
        Some(PackedTable {
            split: self.split(),
            starts: packed.starts.items(),
            entries: packed.entries.items(),
            width: self.width,
        })
    }

    pub(super) fn bucket(&self, bucket: usize) -> Bucket<'_> {
        match &self.store {
            Store::Packed(packed) => {
                let (start, end) = packed.range(bucket);
                Bucket::Bytes(Runs {
                    first: &packed.entries.items()[start * self.width..],
                    first_count: end - start,
                    line: None,
                    more: &[],
                    more_count: 0,
                })
            }
            Store::Lines(lines) => Bucket::Bytes(lines.bucket(bucket, self.width)),
            Store::Dense(dense) => {
                let (start, count) = dense.view().range(bucket);
                Bucket::Bits(dense.view(), start, count)
            }
        }
    }

    /// Rank of the first entry of a bucket; [`Table::count_ranks`] comes before.
    fn rank(&self, bucket: usize) -> usize {
        match &self.store {
            Store::Packed(packed) => packed.range(bucket).0,
            Store::Lines(lines) => u32::from_le_bytes(lines.ranks.items()[bucket]) as usize,
            Store::Dense(dense) => dense.view().range(bucket).0,
        }
    }

    /// Whether [`Table::find`] can tell ranks.
    pub(super) fn has_ranks(&self) -> bool {
        match &self.store {
            Store::Packed(_) | Store::Dense(_) => true,
            Store::Lines(lines) => !lines.ranks.items().is_empty(),
        }
    }

    /// Makes ranks available.
    pub(super) fn count_ranks(&mut self) {
        if let Store::Lines(lines) = &mut self.store {
            let mut before = 0;
            let buckets = 0..lines.lines.items().len();
            let counts = buckets.map(|bucket| lines.count(bucket, self.width));
            let ranks = counts.map(|count| {
                before += count as u32;
                (before - count as u32).to_le_bytes()
            });
            lines.ranks = Section::Owned(ranks.collect());
        }
    }

    /// The rank of a code, when it is stored.
    pub(super) fn find(&self, word: W) -> Option<usize> {
        let bucket = self.addressing.bucket(word) as usize;
        let rest = word.extract(self.addressing.rest);
        let mut found = None;
        self.bucket(bucket)
            .scan(self.width, rest, 0, &mut |at, _| found = Some(at));
        Some(self.rank(bucket) + found?)
    }

    /// Whether a code is stored.
    pub(super) fn contains(&self, word: W) -> bool {
        let bucket = self.bucket(self.addressing.bucket(word) as usize);
        let mut found = false;
        let rest = word.extract(self.addressing.rest);
        bucket.scan(self.width, rest, 0, &mut |_, _| found = true);
        found
    }

    /// How many entries each bucket has, from the first to the last.
    pub(super) fn loads(&self) -> impl Iterator<Item = usize> + '_ {
        let buckets = 0..1_usize << self.addressing.address_bits;
        buckets.map(|bucket| match &self.store {
            Store::Packed(packed) => {
                let (start, end) = packed.range(bucket);
                end - start
            }
            Store::Lines(lines) => lines.count(bucket, self.width),
            Store::Dense(dense) => dense.view().range(bucket).1,
        })
    }

    /// Visits all codes in order of rank.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(W)) {
        for number in 0..1_usize << self.addressing.address_bits {
            let bucket = self.bucket(number);
            // Every entry is within the full width of any needle.
            bucket.scan(self.width, W::ZERO, W::BITS, &mut |_, rest| {
                visit(self.addressing.restored(number as u64, rest));
            });
        }
    }
}

/// Looks at what a line does not hold.
struct Spilled<'a, W> {
    lines: &'a Lines,
    width: usize,
    needle: W,
    hit: &'a mut dyn FnMut(u32, W),
}

impl<W: Word> LineVisitor<W> for Spilled<'_, W> {
    fn hit(&mut self, bucket: u32, entry: W) {
        (self.hit)(bucket, entry);
    }

    fn overflow(&mut self, bucket: u32, radius: u32) -> u64 {
        let found = self.lines.bucket(bucket as usize, self.width);
        let visit = &mut |_, rest| (self.hit)(bucket, rest);
        scan_run(
            found.more,
            found.more_count,
            self.width,
            self.needle,
            radius,
            0,
            visit,
        );
        found.more_count as u64
    }
}

/// Entries beside a line begin at a multiple of so many bytes: 2^32 of those are room enough.
const SPILL_UNIT: usize = 16;
/// Bytes that may be read beyond the last entry.
const PADDING: usize = 8;

fn append<W: Word>(entries: &mut Vec<u8>, rests: &[W], width: usize) {
    entries.reserve(rests.len() * width + PADDING);
    rests.iter().for_each(|rest| rest.append(width, entries));
}

impl Packed {
    #[inline]
    fn range(&self, bucket: usize) -> (usize, usize) {
        range(self.starts.items(), bucket)
    }

    fn len(&self) -> usize {
        let end = self.starts.items().last();
        end.map_or(0, |&end| u32::from_le_bytes(end) as usize)
    }
}

/// First rank of a bucket, and of the next.
#[inline(always)]
fn range(starts: &[[u8; 4]], bucket: usize) -> (usize, usize) {
    let rank = |at: usize| u32::from_le_bytes(starts[at]) as usize;
    (rank(bucket), rank(bucket + 1))
}

impl Lines {
    fn push<W: Word>(&mut self, rests: &[W], width: usize) {
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

    /// The entries beside the line, and the count of all, of a bucket.
    fn extent(&self, bucket: usize, width: usize) -> (&[u8], usize) {
        let line = &self.lines.items()[bucket];
        match spill(line, width) {
            None => (&[], line.tail() as usize),
            Some(at) => {
                let beside = self.spilled.items().get(at..).unwrap_or_default();
                let (count, entries) = beside.split_at_checked(4).unwrap_or_default();
                // A damaged file may tell of more than there is; whole ones never do.
                let most = entries.len() / width.max(1) + line_capacity(width);
                (entries, (u32::read(count) as usize).min(most))
            }
        }
    }

    fn count(&self, bucket: usize, width: usize) -> usize {
        self.extent(bucket, width).1
    }

    fn bucket(&self, bucket: usize, width: usize) -> Runs<'_> {
        let (more, count) = self.extent(bucket, width);
        let held = count.min(line_capacity(width));
        let line = &self.lines.items()[bucket].0;
        Runs {
            first: line,
            first_count: held,
            line: Some(line),
            more,
            more_count: count - held,
        }
    }
}

/// Where beside the lines the rest of a bucket is, if it has any there.
#[inline]
fn spill(line: &Line, width: usize) -> Option<usize> {
    let unit = (line.tail() as usize).checked_sub(line_capacity(width) + 1)?;
    Some(unit * SPILL_UNIT)
}

impl Bucket<'_> {
    /// Visits position and value of each entry within `radius` of `needle`.
    pub(super) fn scan<W: Word>(
        &self,
        width: usize,
        needle: W,
        radius: u32,
        visit: &mut impl FnMut(usize, W),
    ) {
        match self {
            Self::Bytes(runs) => runs.scan(width, needle, radius, visit),
            Self::Bits(table, start, count) => {
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

impl Runs<'_> {
    fn scan<W: Word>(
        &self,
        width: usize,
        needle: W,
        radius: u32,
        visit: &mut impl FnMut(usize, W),
    ) {
        if let Some(line) = self.line {
            let hits = W::scan_line(line, width, self.first_count, needle, radius);
            visit_hits(hits, line, width, 0, visit);
        } else {
            scan_run(
                self.first,
                self.first_count,
                width,
                needle,
                radius,
                0,
                visit,
            );
        }
        if self.more_count > 0 {
            let before = self.first_count;
            scan_run(
                self.more,
                self.more_count,
                width,
                needle,
                radius,
                before,
                visit,
            );
        }
    }
}

fn scan_run<W: Word>(
    mut bytes: &[u8],
    count: usize,
    width: usize,
    needle: W,
    radius: u32,
    before: usize,
    visit: &mut impl FnMut(usize, W),
) {
    for start in (0..count).step_by(64) {
        let here = (count - start).min(64);
        let hits = W::scan_packed(bytes, width, here, needle, radius);
        visit_hits(hits, bytes, width, before + start, visit);
        bytes = &bytes[here * width..];
    }
}

fn visit_hits<W: Word>(
    mut hits: u64,
    bytes: &[u8],
    width: usize,
    before: usize,
    visit: &mut impl FnMut(usize, W),
) {
    while hits != 0 {
        let at = hits.trailing_zeros() as usize;
        visit(before + at, W::read(&bytes[at * width..(at + 1) * width]));
        hits &= hits - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_are_each_once_and_within_the_budget() {
        let found = flips(10, 3);
        let expected: Vec<u32> = (0..1 << 10)
            .filter(|flip: &u32| flip.count_ones() <= 3)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(flips(0, 5), [0]);
        assert_eq!(flips(2, 9), [0, 1, 2, 3]);
        assert_eq!(flips(32, 1).len(), 33);
    }
}

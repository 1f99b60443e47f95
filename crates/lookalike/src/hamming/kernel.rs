//! The machine-dependent kernels of the engine, each with a portable twin of equal results.
//!
//! Everything above calls the safe functions here; which instructions they use is decided once, at
//! the first call, from what the processor offers ([`Level`]).

use std::sync::OnceLock;

pub use dense::Dense;
pub(super) use dense::{BitWriter, GROUP as DENSE_GROUP, PADDING as DENSE_PADDING};
pub(super) use once::{Found, MOST_TABLES, Steps, lines_with, packed_with};
pub use once::{LineTable, PackedTable, Split};

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "vector loads take pointers")]
mod arm;
mod dense;
mod once;
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "vector loads, prefetch and calls behind run-time detection"
)]
mod x86;

/// Which instructions the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// NEON, which every aarch64 processor has.
    Neon,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// AVX-512 F and BW besides.
    Avx512,
    /// AVX-512 VPOPCNTDQ besides.
    Avx512Popcnt,
}

impl Level {
    /// The best level of this processor, found once.
    pub fn detected() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(detect)
    }

    /// Every level this processor has, for tests that compare them.
    pub fn available() -> impl Iterator<Item = Self> {
        use Level::{Avx2, Avx512, Avx512Popcnt, Neon, Portable};
        let all: &[Self] = if cfg!(target_arch = "aarch64") {
            &[Portable, Neon]
        } else {
            &[Portable, Avx2, Avx512, Avx512Popcnt]
        };
        all.iter()
            .copied()
            .filter(|&level| level <= Self::detected())
    }
}

#[cfg(target_arch = "aarch64")]
fn detect() -> Level {
    Level::Neon
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> Level {
    Level::Portable
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    match (avx2, avx512, is_x86_feature_detected!("avx512vpopcntdq")) {
        (false, _, _) => Level::Portable,
        (true, false, _) => Level::Avx2,
        (true, true, false) => Level::Avx512,
        (true, true, true) => Level::Avx512Popcnt,
    }
}

/// The `count <= 64` lowest bits.
pub(super) fn low_ones(count: usize) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// The bits of `word` at the set positions of `mask`, moved together to the low end (PEXT).
pub(super) fn extract(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if Level::detected() != Level::Portable {
        return x86::extract(word, mask);
    }
    extract_portably(word, mask)
}

/// The inverse of [`extract`]: low bits spread to the set positions of `mask` (PDEP).
pub(super) fn deposit(word: u64, mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if Level::detected() != Level::Portable {
        return x86::deposit(word, mask);
    }
    deposit_portably(word, mask)
}

/// For each of `words`, its bits under `address` above the others; `out` is as long.
pub(super) fn permute(words: &[u64], address: u64, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if Level::detected() != Level::Portable {
        return x86::permute(words, address, out);
    }
    permute_portably(words, address, out);
}

fn permute_portably(words: &[u64], address: u64, out: &mut [u64]) {
    for (&word, out) in words.iter().zip(out) {
        let (high, low) = (
            extract_portably(word, address),
            extract_portably(word, !address),
        );
        *out = high.checked_shl(address.count_zeros()).unwrap_or(0) | low;
    }
}

/// The runs of ones of a mask, from low to high: where each starts, how long it is, and how many
/// ones lie below it.
fn runs(mut mask: u64) -> impl Iterator<Item = (u32, u32, u32)> {
    let mut below = 0;
    std::iter::from_fn(move || {
        let start = mask.trailing_zeros();
        let length = mask.checked_shr(start)?.trailing_ones();
        mask &= !(low_ones(length as usize) << start);
        below += length;
        Some((start, length, below - length))
    })
}

fn extract_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
    parts.fold(0, |out, (start, length, below)| {
        out | (word >> start & low_ones(length as usize)) << below
    })
}

fn deposit_portably(word: u64, mask: u64) -> u64 {
    let parts = runs(mask);
    parts.fold(0, |out, (start, length, below)| {
        out | (word >> below & low_ones(length as usize)) << start
    })
}

/// Which of the `count <= 64` entries of `width` bytes at the start of `bytes` lie within `radius`
/// of `needle`. An entry is a little-endian number of at most 8 bytes.
///
/// # Panics
///
/// When `bytes` is shorter than the entries, or `count` or `width` is out of range.
pub(super) fn scan_packed(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_packed_at(Level::detected(), bytes, width, count, needle, radius)
}

/// [`scan_packed`] at a chosen level.
fn scan_packed_at(
    level: Level,
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    assert!(count <= 64 && width <= 8 && count * width <= bytes.len());
    match level {
        Level::Portable => scan_packed_portably(bytes, width, count, needle, radius),
        #[cfg(target_arch = "x86_64")]
        _ => x86::scan_packed(level, bytes, width, count, needle, radius),
        #[cfg(target_arch = "aarch64")]
        _ => arm::scan_packed(bytes, width, count, needle, radius),
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        _ => scan_packed_portably(bytes, width, count, needle, radius),
    }
}

#[inline(always)]
fn scan_packed_portably(bytes: &[u8], width: usize, count: usize, needle: u64, radius: u32) -> u64 {
    let kept = low_ones(8 * width);
    let mut hits = 0;
    for i in 0..count {
        let entry = match bytes.get(i * width..).and_then(<[u8]>::first_chunk) {
            Some(eight) => u64::from_le_bytes(*eight) & kept,
            None => read_short(&bytes[i * width..(i + 1) * width]),
        };
        hits |= u64::from((entry ^ needle).count_ones() <= radius) << i;
    }
    hits
}

/// A little-endian number of at most eight bytes.
fn read_short(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

/// The buckets of one table that a query looks at: those at each of `flips` from its own.
#[derive(Clone, Copy, Debug)]
pub struct Flipped<'a> {
    /// The bucket of the query.
    pub bucket: u32,
    /// What to flip in its number, for each probe.
    pub flips: &'a [u32],
    /// Errors that the query may have in all; a flip costs as many as it has bits.
    pub radius: u32,
}

impl Flipped<'_> {
    /// Bucket and errors left of each probe.
    #[inline(always)]
    fn probes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.flips.iter().filter_map(|&flip| {
            let left = self.radius.checked_sub(flip.count_ones())?;
            Some((self.bucket ^ flip, left))
        })
    }
}

/// Where the entries of a bucket are: the rank of the first, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Entries of the table before the bucket.
    pub first: u32,
    /// Entries of the bucket.
    pub count: u32,
}

/// Probes whose entries have been found.
#[derive(Clone, Copy, Debug)]
pub struct Located<'a> {
    /// The probes.
    pub probes: Flipped<'a>,
    /// The entries of each.
    pub extents: &'a [Extent],
}

impl Located<'_> {
    /// Bucket, errors left, and entries of each probe.
    #[inline(always)]
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, u32, Extent)> + '_ {
        let Flipped {
            bucket,
            flips,
            radius,
        } = self.probes;
        flips
            .iter()
            .zip(self.extents)
            .filter_map(move |(&flip, &extent)| {
                let left = radius.checked_sub(flip.count_ones())?;
                Some((bucket ^ flip, left, extent))
            })
    }
}

/// A cache line of entries.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct Line(pub(super) [u8; 64]);

impl Line {
    /// The last four bytes: how many entries the bucket has or, above what a line holds, that it has
    /// more elsewhere.
    #[inline(always)]
    pub(super) fn tail(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// What a probe of lines tells.
pub trait LineVisitor<W> {
    /// An entry near the needle, and its bucket.
    fn hit(&mut self, bucket: u32, entry: W);
    /// A bucket with more entries than its line holds, and the errors left for them; how many more
    /// were compared.
    fn overflow(&mut self, bucket: u32, radius: u32) -> u64;
}

/// Probes buckets of a line each, which hold `capacity` entries of `width` bytes at most; returns how
/// many entries were compared.
pub(super) fn probe_lines(
    lines: &[Line],
    (width, capacity): (usize, u32),
    probes: Flipped<'_>,
    needle: u64,
    visitor: &mut dyn LineVisitor<u64>,
) -> u64 {
    match Level::detected() {
        #[cfg(target_arch = "x86_64")]
        level if level >= Level::Avx512 && (4..=8).contains(&width) => {
            x86::probe_lines(level, lines, (width, capacity), probes, needle, visitor)
        }
        _ => probe_lines_portably(lines, (width, capacity), probes, needle, visitor),
    }
}

fn probe_lines_portably(
    lines: &[Line],
    (width, capacity): (usize, u32),
    probes: Flipped<'_>,
    needle: u64,
    visitor: &mut dyn LineVisitor<u64>,
) -> u64 {
    let mut compared = 0;
    for (bucket, left) in probes.probes() {
        let line = &lines[bucket as usize];
        let count = line.tail().min(capacity) as usize;
        compared += count as u64;
        let hits = scan_packed(&line.0, width, count, needle, left);
        visit_line(line, width, hits, bucket, visitor);
        if line.tail() > capacity {
            compared += visitor.overflow(bucket, left);
        }
    }
    compared
}

#[inline(always)]
fn visit_line(
    line: &Line,
    width: usize,
    mut hits: u64,
    bucket: u32,
    visitor: &mut dyn LineVisitor<u64>,
) {
    while hits != 0 {
        let at = hits.trailing_zeros() as usize * width;
        visitor.hit(bucket, read_short(&line.0[at..at + width]));
        hits &= hits - 1;
    }
}

/// Searches tables that a query probes once each; see [`lines_with`].
pub(super) fn search_lines(
    tables: &[LineTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    search_lines_at(Level::detected(), tables, queries, radius, found)
}

fn search_lines_at(
    level: Level,
    tables: &[LineTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= Level::Avx2 => x86::search_lines(level, tables, queries, radius, found),
        _ => lines_with(tables, queries, radius, found, &PORTABLE_STEPS),
    }
}

/// As [`search_lines`] for packed tables; see [`packed_with`].
pub(super) fn search_packed(
    tables: &[PackedTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    search_packed_at(Level::detected(), tables, queries, radius, found)
}

fn search_packed_at(
    level: Level,
    tables: &[PackedTable<'_, u64>],
    queries: &[u64],
    radius: u32,
    found: Found<'_, u64>,
) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= Level::Avx2 => x86::search_packed(level, tables, queries, radius, found),
        _ => packed_with(tables, queries, radius, found, &PORTABLE_STEPS),
    }
}

type Extracting = fn(u64, u64) -> u64;
type Comparing = fn(&[u8], usize, usize, usize, u64, u32) -> u64;

const PORTABLE_STEPS: Steps<Extracting, Extracting, Comparing> = Steps {
    extract: extract_portably,
    deposit: deposit_portably,
    near: scan_packed_from,
};

/// [`scan_packed_portably`] from a place of `bytes` on.
#[inline(always)]
fn scan_packed_from(
    bytes: &[u8],
    place: usize,
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_packed_portably(&bytes[place..], width, count, needle, radius)
}

/// Entries up to which a bucket is compared one by one.
const FEW: usize = 24;

/// Compares the entries of probes that lie back to back in `entries`, which has eight bytes more. Calls `hit` with bucket
/// and value of each entry near `needle`, and returns how many were compared.
pub(super) fn probe_packed(
    entries: &[u8],
    width: usize,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    probe_packed_at(Level::detected(), entries, width, probes, needle, hit)
}

fn probe_packed_at(
    level: Level,
    entries: &[u8],
    width: usize,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    match level {
        Level::Portable => probe_packed_portably(entries, width, probes, needle, hit),
        #[cfg(target_arch = "x86_64")]
        _ => x86::probe_packed(level, entries, width, probes, needle, hit),
        #[cfg(not(target_arch = "x86_64"))]
        _ => probe_packed_portably(entries, width, probes, needle, hit),
    }
}

#[inline(always)]
fn probe_packed_portably(
    entries: &[u8],
    width: usize,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    let mut compared = 0;
    for (bucket, left, extent) in probes.each() {
        compared += u64::from(extent.count);
        let mut hit = |entry| hit(bucket, entry);
        scan_bucket(entries, width, extent, needle, left, &mut hit);
    }
    compared
}

/// Visits the entries of a bucket within `radius` of `needle`.
#[inline(always)]
fn scan_bucket(
    entries: &[u8],
    width: usize,
    extent: Extent,
    needle: u64,
    radius: u32,
    hit: &mut impl FnMut(u64),
) {
    let (start, count) = (extent.first as usize, extent.count as usize);
    let bytes = &entries[start * width..(start + count) * width + 8];
    match width {
        _ if count > FEW => scan_many(bytes, width, count, needle, radius, hit),
        5 => scan_few::<5>(bytes, count, needle, radius, hit),
        6 => scan_few::<6>(bytes, count, needle, radius, hit),
        _ => scan_many(bytes, width, count, needle, radius, hit),
    }
}

/// Finds the entries of the buckets at each of `flips` from `bucket` in a table as bits.
pub(super) fn locate_dense(table: Dense<'_>, bucket: u32, flips: &[u32], out: &mut [Extent]) {
    locate_dense_at(Level::detected(), table, bucket, flips, out);
}

fn locate_dense_at(level: Level, table: Dense<'_>, bucket: u32, flips: &[u32], out: &mut [Extent]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= Level::Avx2 => x86::locate_dense(table, bucket, flips, out),
        _ => locate_dense_portably(table, bucket, flips, out),
    }
}

fn locate_dense_portably(table: Dense<'_>, bucket: u32, flips: &[u32], out: &mut [Extent]) {
    let select = |word: u64, n: u32| deposit_portably(1 << n, word).trailing_zeros();
    dense::locate_with(table, bucket, flips, out, select);
}

/// Compares the entries of probes of a table as bits. Calls `hit` with bucket and value of each entry near `needle`, in any
/// order, and returns how many were compared.
pub(super) fn probe_dense(
    table: Dense<'_>,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    probe_dense_at(Level::detected(), table, probes, needle, hit)
}

fn probe_dense_at(
    level: Level,
    table: Dense<'_>,
    probes: Located<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        _ if level >= Level::Avx2 => x86::probe_dense(level, table, probes, needle, hit),
        _ => dense::probe_with(table, probes, needle, hit),
    }
}

/// Entries of a width that is known beforehand, each read as eight bytes.
#[inline(always)]
fn scan_few<const WIDTH: usize>(
    bytes: &[u8],
    count: usize,
    needle: u64,
    radius: u32,
    hit: &mut impl FnMut(u64),
) {
    let surplus = 64 - 8 * WIDTH as u32;
    let shifted = needle << surplus;
    for at in 0..count {
        let Some(eight) = bytes[at * WIDTH..].first_chunk() else {
            return;
        };
        let entry = u64::from_le_bytes(*eight) << surplus;
        if (entry ^ shifted).count_ones() <= radius {
            hit(entry >> surplus);
        }
    }
}

/// Entries of any width and number, by the vector kernels.
fn scan_many(
    bytes: &[u8],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
    hit: &mut impl FnMut(u64),
) {
    let kept = low_ones(8 * width);
    for first in (0..count).step_by(64) {
        let run = &bytes[first * width..];
        let mut hits = scan_packed(run, width, (count - first).min(64), needle, radius);
        while hits != 0 {
            let at = hits.trailing_zeros() as usize * width;
            hit(read_short(&run[at..at + 8]) & kept);
            hits &= hits - 1;
        }
    }
}

/// [`scan_packed`] for entries that lie together in one cache line, which is loaded once.
pub(super) fn scan_line(
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    scan_line_at(Level::detected(), line, width, count, needle, radius)
}

fn scan_line_at(
    level: Level,
    line: &[u8; 64],
    width: usize,
    count: usize,
    needle: u64,
    radius: u32,
) -> u64 {
    assert!(width <= 8 && count * width <= 64);
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Avx512Popcnt if (4..=8).contains(&width) => {
            x86::scan_line(level, line, width, count, needle, radius)
        }
        _ => scan_packed_at(level, line, width, count, needle, radius),
    }
}

/// Which of at most 64 words lie within `radius` of `needle`.
pub(super) fn scan_words(words: &[u64], needle: u64, radius: u32) -> u64 {
    scan_words_at(Level::detected(), words, needle, radius)
}

fn scan_words_at(level: Level, words: &[u64], needle: u64, radius: u32) -> u64 {
    assert!(words.len() <= 64);
    match level {
        Level::Portable => scan_words_portably(words, needle, radius),
        #[cfg(target_arch = "x86_64")]
        _ => x86::scan_words(level, words, needle, radius),
        #[cfg(target_arch = "aarch64")]
        _ => arm::scan_words(words, needle, radius),
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        _ => scan_words_portably(words, needle, radius),
    }
}

#[inline(always)]
fn scan_words_portably(words: &[u64], needle: u64, radius: u32) -> u64 {
    let near = words
        .iter()
        .map(|word| u64::from((word ^ needle).count_ones() <= radius));
    near.enumerate().fold(0, |hits, (i, near)| hits | near << i)
}

/// All pairs of `words` within `radius` inside each of some groups, appended to `pairs`. The groups
/// lie back to back from `start` on; `ends` tells where each ends. Those of more than `most` words are
/// passed over.
pub(super) fn close_pairs(
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    close_pairs_at(Level::detected(), words, start, ends, most, radius, pairs);
}

fn close_pairs_at(
    level: Level,
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    match level {
        Level::Portable => close_pairs_portably(words, start, ends, most, radius, pairs),
        #[cfg(target_arch = "x86_64")]
        _ => x86::close_pairs(level, words, start, ends, most, radius, pairs),
        #[cfg(target_arch = "aarch64")]
        _ => arm::close_pairs(words, start, ends, most, radius, pairs),
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        _ => close_pairs_portably(words, start, ends, most, radius, pairs),
    }
}

#[inline(always)]
fn close_pairs_portably(
    words: &[u64],
    start: usize,
    ends: &[u32],
    most: usize,
    radius: u32,
    pairs: &mut Vec<(u64, u64)>,
) {
    each_group(words, start, ends, most, |group| {
        for (i, &a) in group.iter().enumerate() {
            for &b in &group[i + 1..] {
                if (a ^ b).count_ones() <= radius {
                    pairs.push((a, b));
                }
            }
        }
    });
}

/// Hands every group of 2 to `most` words to `each`; see [`close_pairs`].
#[inline(always)]
pub(super) fn each_group<W>(
    words: &[W],
    mut start: usize,
    ends: &[u32],
    most: usize,
    mut each: impl FnMut(&[W]),
) {
    for &end in ends {
        let group = &words[start..end as usize];
        start = end as usize;
        if (2..=most).contains(&group.len()) {
            each(group);
        }
    }
}

/// Words that [`near_windows`] compares with one.
pub(super) const WINDOW: usize = 16;

/// Compares each of `xs` with the sixteen words of `ys` from `window` of its position on. Appends the positions of those
/// within `radius`; to that of the one in `xs`, `first` is added.
///
/// # Panics
///
/// When a window reaches beyond `ys`.
pub(super) fn near_windows(
    xs: &[u32],
    ys: &[u32],
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    near_windows_at(Level::detected(), (xs, ys), window, radius, first, found);
}

fn near_windows_at(
    level: Level,
    (xs, ys): (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 | Level::Avx512Popcnt => {
            x86::near_windows(level, (xs, ys), window, radius, first, found);
        }
        _ => near_windows_portably((xs, ys), window, radius, first, found),
    }
}

/// In a form that compilers make vector code of.
#[inline(always)]
fn near_windows_portably(
    (xs, ys): (&[u32], &[u32]),
    window: impl Fn(usize) -> usize + Copy,
    radius: u32,
    first: usize,
    found: &mut Vec<(u32, u32)>,
) {
    for (at, &x) in xs.iter().enumerate() {
        let from = window(at);
        let apart = ys[from..from + WINDOW].iter().map(|y| (y ^ x).count_ones());
        if apart.fold(u32::MAX, u32::min) <= radius {
            near_in_window((x, first + at), ys, from, radius, found);
        }
    }
}

/// Tells which words of a window are near one; see [`near_windows`].
#[cold]
fn near_in_window(
    (x, at): (u32, usize),
    ys: &[u32],
    from: usize,
    radius: u32,
    found: &mut Vec<(u32, u32)>,
) {
    let window = (from..).zip(&ys[from..from + WINDOW]);
    let near = window.filter(|&(_, y)| (y ^ x).count_ones() <= radius);
    found.extend(near.map(|(place, _)| (at as u32, place as u32)));
}

/// Asks for the cache line that holds `items[index]`; does nothing when there is no such item.
#[inline(always)]
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(items, index);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Bytes of a run that are asked for beside its last: the processor itself asks for those that follow.
const ASKED: usize = 512;
const LINE_BYTES: usize = 64;
/// Entries that vector kernels read at least, those that follow a bucket included.
const READ: usize = 8;

/// Asks for the first cache lines of some entries of `width` bytes from a place on, and for the last: no line that a
/// comparison reads is left out, since a processor that waits for one makes nothing else meanwhile.
#[inline(always)]
pub(super) fn prefetch_run(entries: &[u8], place: usize, count: usize, width: usize) {
    let last = (place + count.max(READ) * width).saturating_sub(1);
    prefetch(entries, place);
    prefetch(entries, last);
    for place in (place + LINE_BYTES..last.min(place + ASKED)).step_by(LINE_BYTES) {
        prefetch(entries, place);
    }
}

/// Writes eight words to `out[at..]`, past the caches when they fill a cache line there.
#[inline]
pub(super) fn stream_line(out: &mut [u64], at: usize, line: &[u64; 8]) {
    let to = &mut out[at..at + 8];
    #[cfg(target_arch = "x86_64")]
    if to.as_ptr().addr().is_multiple_of(64) {
        return x86::stream_line(to, line);
    }
    to.copy_from_slice(line);
}

/// Orders what was written by [`stream_line`] before all that follows.
pub(super) fn end_streaming() {
    #[cfg(target_arch = "x86_64")]
    x86::end_streaming();
}

/// Asks the system to back a large allocation with huge pages: a random probe beyond 1 GiB costs
/// twice as much without. A hint only: results never depend on it.
pub(super) fn ask_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    x86::ask_huge_pages(items);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let _ = items;
}

#[cfg(test)]
mod tests;

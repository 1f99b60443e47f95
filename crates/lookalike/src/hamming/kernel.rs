//! The machine-dependent kernels of the engine, each with a portable twin of equal results.
//!
//! Everything above calls the safe functions here; which instructions they use is decided once, at
//! the first call, from what the processor offers ([`Level`]).

use std::sync::OnceLock;

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
    /// AVX2, BMI2 and POPCNT.
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
        use Level::{Avx2, Avx512, Avx512Popcnt, Portable};
        let all = [Portable, Avx2, Avx512, Avx512Popcnt];
        all.into_iter().filter(|&level| level <= Self::detected())
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
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
        #[cfg(not(target_arch = "x86_64"))]
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

/// A cache line of entries.
#[derive(Clone, Copy, Debug)]
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

/// Entries up to which a bucket is compared one by one.
const FEW: usize = 24;

/// Probes buckets of entries that lie back to back: `starts` numbers the first entry of each, and
/// `entries` has eight bytes more than its entries. Calls `hit` with bucket and value of each entry
/// near `needle`, and returns how many were compared.
pub(super) fn probe_packed(
    (starts, entries): (&[u32], &[u8]),
    width: usize,
    probes: Flipped<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    match Level::detected() {
        Level::Portable => probe_packed_portably((starts, entries), width, probes, needle, hit),
        #[cfg(target_arch = "x86_64")]
        _ => x86::probe_packed((starts, entries), width, probes, needle, hit),
        #[cfg(not(target_arch = "x86_64"))]
        _ => probe_packed_portably((starts, entries), width, probes, needle, hit),
    }
}

#[inline(always)]
fn probe_packed_portably(
    (starts, entries): (&[u32], &[u8]),
    width: usize,
    probes: Flipped<'_>,
    needle: u64,
    hit: &mut dyn FnMut(u32, u64),
) -> u64 {
    let mut compared = 0;
    for (bucket, left) in probes.probes() {
        let (start, end) = (
            starts[bucket as usize] as usize,
            starts[bucket as usize + 1] as usize,
        );
        let count = end - start;
        compared += count as u64;
        let bytes = &entries[start * width..end * width + 8];
        let mut hit = |entry| hit(bucket, entry);
        match width {
            _ if count > FEW => scan_many(bytes, width, count, needle, left, &mut hit),
            5 => scan_few::<5>(bytes, count, needle, left, &mut hit),
            6 => scan_few::<6>(bytes, count, needle, left, &mut hit),
            _ => scan_many(bytes, width, count, needle, left, &mut hit),
        }
    }
    compared
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
        #[cfg(not(target_arch = "x86_64"))]
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

/// All pairs `(i, j)`, `i < j`, of `words` within `radius`, appended to `pairs`.
pub(super) fn close_pairs(words: &[u64], radius: u32, pairs: &mut Vec<(u32, u32)>) {
    close_pairs_at(Level::detected(), words, radius, pairs);
}

fn close_pairs_at(level: Level, words: &[u64], radius: u32, pairs: &mut Vec<(u32, u32)>) {
    match level {
        Level::Portable => close_pairs_portably(words, radius, pairs),
        #[cfg(target_arch = "x86_64")]
        _ => x86::close_pairs(level, words, radius, pairs),
        #[cfg(not(target_arch = "x86_64"))]
        _ => close_pairs_portably(words, radius, pairs),
    }
}

#[inline(always)]
fn close_pairs_portably(words: &[u64], radius: u32, pairs: &mut Vec<(u32, u32)>) {
    for (i, a) in words.iter().enumerate() {
        for (j, b) in words.iter().enumerate().skip(i + 1) {
            if (a ^ b).count_ones() <= radius {
                pairs.push((i as u32, j as u32));
            }
        }
    }
}

/// Asks for the cache line that holds `items[index]`; does nothing when there is no such item.
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(items, index);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extract_and_deposit_equal_their_twins(word: u64, a: u64, b: u64) {
            for mask in [a, a & b, a | b, a & b & a.rotate_left(17), 0, u64::MAX, 1 << 63] {
                prop_assert_eq!(extract(word, mask), extract_portably(word, mask));
                prop_assert_eq!(deposit(word, mask), deposit_portably(word, mask));
                prop_assert_eq!(deposit_portably(extract_portably(word, mask), mask), word & mask);
            }
        }

        #[test]
        fn permutations_equal_their_twin(words: Vec<u64>, a: u64, b: u64) {
            for address in [a, a & b, a | b, 0, u64::MAX] {
                let (mut found, mut expected) = (words.clone(), words.clone());
                permute(&words, address, &mut found);
                permute_portably(&words, address, &mut expected);
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn probes_equal_their_twins(
            sizes in proptest::collection::vec(0_usize..40, 8),
            bytes in proptest::collection::vec(0_u8..3, 320 * 8 + 8),
            width in 1_usize..=8,
            radius in 0_u32..9,
        ) {
            let mut starts = vec![0_u32];
            for size in sizes {
                starts.push(starts[starts.len() - 1] + size as u32);
            }
            let probes = Flipped { bucket: 5, flips: &[0, 1, 2, 4], radius };
            let needle = 0x0101_0200_0201_0001 & low_ones(8 * width);
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            let table = (starts.as_slice(), bytes.as_slice());
            let visit = &mut |bucket, entry| found.push((bucket, entry));
            let compared = probe_packed(table, width, probes, needle, visit);
            let visit = &mut |bucket, entry| expected.push((bucket, entry));
            let portably = probe_packed_portably(table, width, probes, needle, visit);
            prop_assert_eq!((compared, found), (portably, expected));
            probe_some_lines(&bytes, width, probes, needle)?;
        }

        #[test]
        fn scans_equal_the_obvious_scan(
            bytes in proptest::collection::vec(0_u8..4, 64 * 8),
            width in 0_usize..=8,
            count in 0_usize..=64,
            radius in 0_u32..20,
            tail in 0_usize..20,
        ) {
            let end = (count * width + tail).min(bytes.len());
            let needle = 0x0102_0300_0301_0203 & low_ones(8 * width);
            let mut expected = 0;
            for i in 0..count {
                let entry = read_short(&bytes[i * width..(i + 1) * width]);
                if (entry ^ needle).count_ones() <= radius {
                    expected |= 1 << i;
                }
            }
            let line: &[u8; 64] = bytes.first_chunk().expect("512 bytes");
            let in_line = 64_usize.checked_div(width).unwrap_or(64).min(count);
            for level in Level::available() {
                let found = scan_packed_at(level, &bytes[..end], width, count, needle, radius);
                prop_assert_eq!(found, expected, "{:?}", level);
                let found = scan_line_at(level, line, width, in_line, needle, radius);
                prop_assert_eq!(found, expected & low_ones(in_line), "{:?}", level);
            }
        }

        #[test]
        fn word_kernels_equal_their_twins(
            mut words in proptest::collection::vec(any::<u64>(), 0..=64),
            radius in 0_u32..=40,
        ) {
            for i in (1..words.len()).step_by(3) {
                words[i] = words[i - 1] ^ (words[i] & words[i] << 1 & words[i] << 2 & words[i] << 3);
            }
            let needle = words.first().copied().unwrap_or(5);
            let expected = scan_words_portably(&words, needle, radius);
            let mut expected_pairs = Vec::new();
            close_pairs_portably(&words, radius, &mut expected_pairs);
            for level in Level::available() {
                prop_assert_eq!(scan_words_at(level, &words, needle, radius), expected);
                let mut pairs = Vec::new();
                close_pairs_at(level, &words, radius, &mut pairs);
                prop_assert_eq!(&pairs, &expected_pairs, "{:?}", level);
            }
        }
    }

    #[derive(Default, PartialEq, Debug)]
    struct Seen(Vec<(u32, u64)>);

    impl LineVisitor<u64> for Seen {
        fn hit(&mut self, bucket: u32, entry: u64) {
            self.0.push((bucket, entry));
        }

        fn overflow(&mut self, bucket: u32, radius: u32) -> u64 {
            self.0.push((bucket, u64::from(radius) << 60));
            3
        }
    }

    fn probe_some_lines(
        bytes: &[u8],
        width: usize,
        probes: Flipped<'_>,
        needle: u64,
    ) -> Result<(), TestCaseError> {
        let capacity = 60 / width as u32;
        let line = |(tail, bytes): (u32, &[u8])| {
            let mut line = Line([0; 64]);
            line.0.copy_from_slice(bytes);
            line.0[60..].copy_from_slice(&(tail % (capacity + 3)).to_le_bytes());
            line
        };
        let lines: Vec<Line> = (3_u32..)
            .step_by(5)
            .zip(bytes.chunks_exact(64))
            .map(line)
            .collect();
        let (mut found, mut expected) = (Seen::default(), Seen::default());
        let shape = (width, capacity);
        let compared = probe_lines(&lines, shape, probes, needle, &mut found);
        let portably = probe_lines_portably(&lines, shape, probes, needle, &mut expected);
        prop_assert_eq!((compared, found), (portably, expected));
        Ok(())
    }

    #[test]
    fn hints_accept_anything() {
        prefetch(&[0_u8; 3], 1_000);
        ask_huge_pages(&mut Vec::<u64>::new());
        let mut large = vec![7_u8; 5 << 20];
        ask_huge_pages(&mut large);
        assert!(large.iter().all(|&byte| byte == 7));
    }
}

//! The machine integers that tables pack and compare: bit by bit, byte by byte, and many at once.

use super::super::kernel::{
    BucketTable, BucketVisitor, CacheLine, Dense, Found, PackedTable, ProbeLocations, ProbeSet,
};
use super::entries;
use super::sealed::Sealed;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A machine integer of 32, 64 or 128 bits; sealed.
pub trait Word:
    Sealed
    + Copy
    + Ord
    + Hash
    + Debug
    + Default
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + 'static
{
    /// Width in bits: 32, 64 or 128.
    const BITS: u32;
    /// The word with no bit set.
    const ZERO: Self;

    /// The low bits of `mask`; a design's masks always fit.
    fn from_u128(mask: u128) -> Self;
    /// The word as the low bits of a `u128`.
    fn to_u128(self) -> u128;
    /// Number of set bits: 0 to [`Word::BITS`].
    fn ones(self) -> u32;
    /// The bits of the word at the set positions of `mask`, moved together to the low end.
    fn extract(self, mask: Self) -> Self;
    /// The inverse of [`Word::extract`]: the low bits spread to the set positions of `mask`.
    fn deposit(self, mask: Self) -> Self;
    /// `address` above the low `rest_bits` bits of `rest`; `rest` has no others.
    fn joined(address: u64, rest: Self, rest_bits: u32) -> Self;
    /// The bits above the low `rest_bits`, of which there are at most 64.
    fn above(self, rest_bits: u32) -> u64;
    /// The low `bits` bits.
    fn low(self, bits: u32) -> Self;
    /// Writes the low `out.len()` bytes, little-endian; `out` is at most as wide as the word.
    fn write(self, out: &mut [u8]);
    /// Writes the low `width` bytes to the start of `out`, and what it likes to the rest of it.
    fn write_wide(self, width: usize, out: &mut [u8]) {
        self.write(&mut out[..width]);
    }
    /// Appends the low `width` bytes.
    fn append(self, width: usize, out: &mut Vec<u8>);
    /// For each of `words`, its bits under `address` above the others; `out` is as long.
    fn permute(words: &[Self], address: Self, out: &mut [Self]) {
        let rest_bits = Self::BITS - address.ones();
        for (&word, out) in words.iter().zip(out) {
            let bucket = word.extract(address).above(0);
            *out = Self::joined(bucket, word.extract(!address), rest_bits);
        }
    }
    /// Writes eight words to `out[at..]`, past the caches when they are a cache line.
    fn stream_line(out: &mut [Self], at: usize, line: &[Self; 8]) {
        out[at..at + 8].copy_from_slice(line);
    }
    /// Reads `bytes` as a little-endian number; `bytes` is at most as wide as the word.
    fn read(bytes: &[u8]) -> Self;
    /// Positions of the entries within `radius` of `needle` among `count <= 64` packed entries of
    /// `width` bytes each, as a bit mask; `bytes` starts at the first entry.
    fn scan_packed(bytes: &[u8], width: usize, count: usize, needle: Self, radius: u32) -> u64 {
        entries::scan(bytes, width, count, needle, radius)
    }
    /// Compares the entries of probes that lie back to back in `entries`, which has eight bytes more. Calls `hit` with
    /// bucket and value of each entry near `needle`, and returns how many were compared.
    fn probe_packed(
        entries: &[u8],
        width: usize,
        probes: ProbeLocations<'_>,
        needle: Self,
        hit: &mut dyn FnMut(u32, Self),
    ) -> u64 {
        entries::probe_packed(entries, width, probes, needle, hit)
    }
    /// As [`Word::probe_packed`] for a table as bits, and in any order.
    fn probe_dense(
        table: Dense<'_>,
        probes: ProbeLocations<'_>,
        needle: Self,
        hit: &mut dyn FnMut(u32, Self),
    ) -> u64 {
        entries::probe_dense(table, probes, needle, hit)
    }
    /// As [`Word::probe_packed`] for buckets of a line each, which hold `shape.1` entries of `shape.0`
    /// bytes at most.
    fn probe_buckets(
        lines: &[CacheLine],
        shape: (usize, u32),
        probes: ProbeSet<'_>,
        needle: Self,
        visitor: &mut dyn BucketVisitor<Self>,
    ) -> u64 {
        entries::probe_buckets(lines, shape, probes, needle, visitor)
    }
    /// Searches tables of cache-line buckets that a query probes once each, 1 to 20 of them. Calls `found` with the number of the query,
    /// the code and its distance, and returns how many entries were compared.
    fn search_buckets(
        tables: &[BucketTable<'_, Self>],
        queries: &[Self],
        radius: u32,
        found: Found<'_, Self>,
    ) -> u64 {
        entries::search(tables, queries, radius, found)
    }
    /// As [`Word::search_buckets`] for packed tables.
    fn search_packed(
        tables: &[PackedTable<'_, Self>],
        queries: &[Self],
        radius: u32,
        found: Found<'_, Self>,
    ) -> u64 {
        entries::search(tables, queries, radius, found)
    }
    /// As [`Word::scan_packed`] for the entries of one cache line.
    fn scan_cache_line(
        line: &[u8; 64],
        width: usize,
        count: usize,
        needle: Self,
        radius: u32,
    ) -> u64 {
        entries::scan(line, width, count, needle, radius)
    }
    /// Bit mask of those of at most 64 words that lie within `radius` of `needle`.
    fn scan_words(words: &[Self], needle: Self, radius: u32) -> u64 {
        entries::scan_words(words, needle, radius)
    }
    /// All pairs within `radius` inside each of some groups of `words`, appended to `pairs`. The groups
    /// lie back to back from `start` on; `ends` tells where each ends. Those of more than `most` words
    /// are passed over.
    fn close_pairs(
        words: &[Self],
        start: usize,
        ends: &[u32],
        most: usize,
        radius: u32,
        pairs: &mut Vec<(Self, Self)>,
    ) {
        entries::close_pairs(words, start, ends, most, radius, pairs);
    }
}

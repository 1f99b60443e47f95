//! XXH3-64 of many short words at once.
//!
//! Words are short: nine of ten have at most 8 bytes, and a branch on their length would be mispredicted for every other one. So both formulas of
//! XXH3 for up to 8 bytes are computed for every word, side by side in vectors, from one 8-byte read; longer words follow one by one. The tests
//! compare with the hash crate for every length.

use super::{CpuLevel, versions};
use crate::hash::xxh3_64;

/// Number of words that are processed together; their first bytes and lengths take 4 KiB.
const BLOCK: usize = 256;

/// Parts of XXH3's secret, read as little-endian numbers at the offsets in their names.
const SECRET_0_XOR_4: u64 = 0x396C_FEB8 ^ 0xBE4B_A423;
const SECRET_8_XOR_16: u64 = 0x1CAD_21F7_2C81_017C ^ 0xDB97_9083_E96D_D4DE;
const SECRET_24_XOR_32: u64 = 0x1F67_B3B7_A4A4_4072 ^ 0x78E5_C0CC_4EE6_79CB;
const SECRET_40_XOR_48: u64 = 0x2172_FFCC_7DD0_5A82 ^ 0x8E24_43F7_7446_08B8;
const PRIME_MX1: u64 = 0x1656_6791_9E37_79F9;
const PRIME_MX2: u64 = 0x9FB2_1C65_1E98_DF25;

/// Appends the hash of each word of `bytes`; `bounds` holds the start and end of each.
///
/// # Panics
/// If fewer than 8 bytes follow the start of a word, or a word is empty.
pub(crate) fn extend(out: &mut Vec<u64>, bytes: &[u8], bounds: &[u32], seed: u64) {
    let first = out.len();
    out.resize(first + bounds.len() / 2, 0);
    hash_words(CpuLevel::current(), &mut out[first..], bytes, bounds, seed);
}

versions! {
    /// Writes the hash of each word to `out`.
    fn hash_words(out: &mut [u64], bytes: &[u8], bounds: &[u32], seed: u64) {
        portable: hash_body, avx2: hash_body, avx512: hash_body,
    }
}

#[inline(always)]
fn hash_body(out: &mut [u64], bytes: &[u8], bounds: &[u32], seed: u64) {
    let (bounds, _) = bounds.as_chunks::<2>();
    let mut heads = [0u64; BLOCK];
    let mut lengths = [0u64; BLOCK];
    let mut long = [0usize; BLOCK];
    for (out, bounds) in out.chunks_mut(BLOCK).zip(bounds.chunks(BLOCK)) {
        // Loads are separate from arithmetic: reads of eight bytes at arbitrary positions do not become vector code, the formulas do.
        let long_count = read_heads(bytes, bounds, &mut heads, &mut lengths, &mut long);
        for ((hash, &head), &len) in out.iter_mut().zip(&heads).zip(&lengths) {
            // No call and no branch, so that the compiler vectorises this; long words get their hash below.
            *hash = hash_to_8(head, len, seed);
        }
        for &at in &long[..long_count] {
            let [start, end] = bounds[at];
            out[at] = hash_long(&bytes[start as usize..end as usize], seed);
        }
    }
}

/// Reads the first 8 bytes and the length of each word, and lists the words of more than 8 bytes.
#[inline(always)]
fn read_heads(
    bytes: &[u8],
    bounds: &[[u32; 2]],
    heads: &mut [u64; BLOCK],
    lengths: &mut [u64; BLOCK],
    long: &mut [usize; BLOCK],
) -> usize {
    let mut count = 0;
    let slots = heads.iter_mut().zip(lengths.iter_mut());
    for (at, (&[start, end], (head, length))) in bounds.iter().zip(slots).enumerate() {
        // Eight bytes whatever the length: the formulas shift out or mask the bytes after a short word.
        let bytes = bytes[start as usize..]
            .first_chunk()
            .expect("padding follows the words");
        *head = u64::from_le_bytes(*bytes);
        let len = end.wrapping_sub(start);
        *length = u64::from(len);
        // Written for each word, kept for long ones, without a branch on a length. The count is below the block size, so the remainder only avoids a
        // bounds check.
        long[count % BLOCK] = at;
        count += usize::from(len > 8);
    }
    count
}

/// Computes XXH3-64 of a word of 1 to 8 bytes, which are the low ones of `head`; for other lengths the result is arbitrary.
#[inline(always)]
fn hash_to_8(head: u64, len: u64, seed: u64) -> u64 {
    let short = hash_to_3(head, len, seed);
    let medium = hash_4_to_8(head, len, seed);
    // A select, because both are already computed.
    if len < 4 { short } else { medium }
}

#[inline(always)]
fn hash_to_3(head: u64, len: u64, seed: u64) -> u64 {
    // XXH3_len_1to3_64b of the reference. For other lengths the shift is masked, and the result discarded.
    let byte = |at: u64| (head >> (at.wrapping_mul(8) & 63)) & 0xFF;
    let (first, middle, last) = (byte(0), byte(len >> 1), byte(len.wrapping_sub(1)));
    let combined = first << 16 | middle << 24 | last | len << 8;
    crate::hash::avalanche(combined ^ SECRET_0_XOR_4.wrapping_add(seed))
}

#[inline(always)]
fn hash_4_to_8(head: u64, len: u64, seed: u64) -> u64 {
    // XXH3_len_4to8_64b of the reference, from the first and the last four bytes, which overlap in words of fewer than eight.
    let seed = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
    let last = (head >> (len.wrapping_sub(4).wrapping_mul(8) & 63)) & 0xFFFF_FFFF;
    let keyed = last.wrapping_add(head << 32) ^ SECRET_8_XOR_16.wrapping_sub(seed);
    let mut hash = keyed ^ keyed.rotate_left(49) ^ keyed.rotate_left(24);
    hash = hash.wrapping_mul(PRIME_MX2);
    hash ^= (hash >> 35).wrapping_add(len);
    hash = hash.wrapping_mul(PRIME_MX2);
    hash ^ (hash >> 28)
}

/// Computes XXH3-64 of a word of more than 8 bytes.
#[inline(always)]
fn hash_long(word: &[u8], seed: u64) -> u64 {
    if word.len() > 16 {
        return xxh3_64(word, seed);
    }
    let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) else {
        return xxh3_64(word, seed);
    };
    // XXH3_len_9to16_64b of the reference, from the first and the last eight bytes, which overlap in words of fewer than 16.
    let low = u64::from_le_bytes(*first) ^ SECRET_24_XOR_32.wrapping_add(seed);
    let high = u64::from_le_bytes(*last) ^ SECRET_40_XOR_48.wrapping_sub(seed);
    let product = u128::from(low) * u128::from(high);
    let folded = product as u64 ^ (product >> 64) as u64;
    let mut hash = (word.len() as u64)
        .wrapping_add(low.swap_bytes())
        .wrapping_add(high)
        .wrapping_add(folded);
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(PRIME_MX1);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of every length up to `max`, one after another, followed by padding.
    fn words(max: usize) -> (Vec<u8>, Vec<u32>) {
        let (mut bytes, mut bounds) = (Vec::new(), Vec::new());
        for len in (1..=max).chain(1..=max) {
            let start = bytes.len();
            bytes.extend((0..len).map(|at| (at * 37 + len * 11 + start) as u8));
            bounds.extend([start as u32, bytes.len() as u32]);
        }
        bytes.extend([0; 8]);
        (bytes, bounds)
    }

    #[test]
    fn every_level_equals_the_hash_crate_at_every_length() {
        let (bytes, bounds) = words(300);
        for seed in [0, 1, 0x8000_0000, u64::MAX, 0x0123_4567_89AB_CDEF] {
            let expected: Vec<u64> = bounds
                .chunks_exact(2)
                .map(|bound| &bytes[bound[0] as usize..bound[1] as usize])
                .map(|word| xxhash_rust::xxh3::xxh3_64_with_seed(word, seed))
                .collect();
            for level in CpuLevel::available() {
                let mut out = vec![0; expected.len()];
                hash_words(level, &mut out, &bytes, &bounds, seed);
                assert_eq!(out, expected, "seed {seed:#x}, {level:?}");
            }
        }
    }
}

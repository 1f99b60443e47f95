//! The published hash functions, on which everything that is stored or compared rests.
//!
//! They never change: XXH3-64 is a published, stable specification, `avalanche` is the finaliser of XXH64, `splitmix64` is Steele, Lea and Flood's
//! generator (OOPSLA 2014). A scheme may hash its words by [`lookup3`] (Holub) or, against hostile input, by [`siphash`] instead.

pub mod lookup3;
pub mod siphash;

pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// XXH3-64 of `bytes` with `seed`, as the xxHash specification defines it.
#[must_use]
pub fn xxh3_64(bytes: &[u8], seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

/// Parses a number of exactly `digits` hexadecimal digits, as ids, keys and fingerprints are written.
#[must_use]
pub fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    // `from_str_radix` also accepts a sign.
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

/// The factors of [`avalanche`].
pub(crate) const AVALANCHE: [u64; 2] = [0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9];

/// XXH64's finaliser: a bijection on 64 bits in which each input bit changes about half of the output bits.
#[inline(always)]
#[must_use]
pub const fn avalanche(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(AVALANCHE[0]);
    x ^= x >> 29;
    x = x.wrapping_mul(AVALANCHE[1]);
    x ^ (x >> 32)
}

/// Returns the next value of the splitmix64 sequence and advances `state`.
pub const fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// XXH3-64 of the little-endian bytes of `values`, used for band keys and super-shingles.
pub(crate) fn xxh3_values(values: &[u32], seed: u64) -> u64 {
    // Up to 64 values need no allocation; bands and groups usually have fewer.
    let mut bytes = [0u8; 256];
    if values.len() * 4 <= bytes.len() {
        for (slot, value) in bytes.chunks_exact_mut(4).zip(values) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        return xxh3_64(&bytes[..values.len() * 4], seed);
    }
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    xxh3_64(&bytes, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_is_the_published_sequence() {
        // First outputs for seed 1234567, as in Vigna's reference and the JDK's SplittableRandom.
        let mut state = 1_234_567;
        let first: Vec<u64> = (0..3).map(|_| splitmix64(&mut state)).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn long_and_short_value_lists_hash_their_little_endian_bytes() {
        for count in [0usize, 1, 14, 64, 65, 300] {
            let values: Vec<u32> = (0..count as u32)
                .map(|i| i.wrapping_mul(2_654_435_761))
                .collect();
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            assert_eq!(
                xxh3_values(&values, 7),
                xxh3_64(&bytes, 7),
                "{count} values"
            );
        }
    }
}

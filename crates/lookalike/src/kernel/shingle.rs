//! Token hashes to shingle features: each window of tokens mixed into one value.
//!
//! `crate::feature` has the definition. Eight windows are mixed side by side, which the compiler turns into vector instructions.

use super::{CpuLevel, versions};
use crate::hash::{GOLDEN, avalanche};

const LANES: usize = 8;

/// Appends the mixed feature of each window of `width` tokens; `width` is at least 1.
pub(crate) fn extend(out: &mut Vec<u64>, tokens: &[u64], width: usize) {
    // No window if there are fewer tokens than `width`.
    let windows = (tokens.len() + 1).saturating_sub(width);
    let first = out.len();
    out.resize(first + windows, 0);
    mix(CpuLevel::current(), &mut out[first..], tokens, width);
}

versions! {
    /// Writes the features of `out.len()` windows.
    fn mix(out: &mut [u64], tokens: &[u64], width: usize) {
        portable: mix_windows, avx2: mix_windows, avx512: mix_windows,
    }
}

/// The largest window whose tokens are rotated. Of equal tokens in a window of m = 2^k, m - 1 bits are lost; with 64 of them, one would be left.
const MAX_ROTATED: usize = 16;

#[inline(always)]
fn mix_windows(out: &mut [u64], tokens: &[u64], width: usize) {
    let rotate = |mix: u64| mix.rotate_left(1);
    // A constant width unrolls the inner loop; other widths run the same code with a loop.
    match width {
        4 => mix_body(out, tokens, 4, rotate),
        5 => mix_body(out, tokens, 5, rotate),
        ..=MAX_ROTATED => mix_body(out, tokens, width, rotate),
        _ => mix_body(out, tokens, width, times_x),
    }
}

/// Multiplies by x in the field of 2^64 elements with the primitive polynomial x^64 + x^4 + x^3 + x + 1. Sums of fewer than 2^64 powers of x are never
/// zero there, so a token that comes several times keeps all its bits.
#[inline(always)]
fn times_x(mix: u64) -> u64 {
    mix << 1 ^ if mix >> 63 == 1 { 0x1b } else { 0 }
}

#[inline(always)]
fn mix_body(out: &mut [u64], tokens: &[u64], width: usize, step: impl Fn(u64) -> u64 + Copy) {
    // Include the number of tokens, so that windows of different sizes have different features.
    let kind = (width as u64).wrapping_mul(GOLDEN);
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let done = blocks.len() * LANES;
    for (block, first) in blocks.iter_mut().zip((0..).step_by(LANES)) {
        let mut mixes = [0u64; LANES];
        // Tokens in the outer loop, windows in the inner one: eight windows take one token each from eight consecutive positions, which is one load.
        for j in 0..width {
            let lane: &[u64] = &tokens[first + j..first + j + LANES];
            for (mix, token) in mixes.iter_mut().zip(lane) {
                // In the end the j-th of m tokens has taken m - 1 - j steps, as in the definition.
                *mix = step(*mix) ^ token;
            }
        }
        *block = mixes.map(|mix| avalanche(mix ^ kind));
    }
    // Fewer than eight windows are left: a block of eight would read beyond the tokens.
    for (feature, window) in rest.iter_mut().zip(tokens[done..].windows(width)) {
        *feature = avalanche(window.iter().fold(0, |mix: u64, t| step(mix) ^ t) ^ kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::splitmix64;

    /// The definition, word by word.
    fn obvious(tokens: &[u64], width: usize) -> Vec<u64> {
        let feature = |window: &[u64]| {
            let m = window.len();
            let steps = |token: u64, steps: usize| match m {
                ..=16 => token.rotate_left(steps as u32),
                _ => (0..steps).fold(token, |t, _| match t.checked_mul(2) {
                    Some(twice) => twice,
                    None => t.wrapping_mul(2) ^ 0b11011,
                }),
            };
            let mixed = (0..m).fold(0, |mix, j| mix ^ steps(window[j], m - 1 - j));
            avalanche(mixed ^ (m as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        };
        tokens.windows(width).map(feature).collect()
    }

    #[test]
    fn every_level_equals_the_definition() {
        let mut state = 1;
        for count in [1usize, 2, 3, 7, 8, 9, 15, 16, 17, 70, 200] {
            let tokens: Vec<u64> = (0..count).map(|_| splitmix64(&mut state)).collect();
            for width in [1, 2, 3, 4, 5, 8, 16, 17, 63, 64] {
                let expected = obvious(&tokens, width);
                for level in CpuLevel::available() {
                    let mut out = vec![0; expected.len()];
                    mix(level, &mut out, &tokens, width);
                    assert_eq!(out, expected, "{count} tokens, width {width}, {level:?}");
                }
            }
        }
    }
}

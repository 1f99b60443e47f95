//! SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012): a keyed hash for hostile input.
//!
//! Somebody who does not know the key cannot make two words collide, and so cannot craft a text with the fingerprint of another.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A secret key of 128 bits. Neither its `Debug` form nor a scheme's text shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SipKey([u64; 2]);

/// Error for a text that is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a key: use 32 hexadecimal digits, such as `openssl rand -hex 16` prints")]
pub struct ParseKeyError;

impl SipKey {
    /// Creates the key from these 16 bytes.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self([u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])])
    }

    /// Returns the id of the key that a scheme shows: the hash of a fixed text with the key. It tells whether two sketches were made with the same
    /// key, and reveals nothing about the key.
    #[must_use]
    pub fn id(&self) -> u64 {
        siphash_2_4(self, b"lookalike key id")
    }
}

impl fmt::Debug for SipKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SipKey(id {:016x})", self.id())
    }
}

impl FromStr for SipKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let key = super::parse_hex(text, 32).ok_or(ParseKeyError)?;
        Ok(Self::new(key.to_be_bytes()))
    }
}

/// Computes SipHash-2-4 of `bytes` with `key`.
#[must_use]
pub fn siphash_2_4(key: &SipKey, bytes: &[u8]) -> u64 {
    let [k0, k1] = key.0;
    let mut v = [
        // The paper's constants: "somepseudorandomlygeneratedbytes" in ASCII.
        k0 ^ 0x736F_6D65_7073_6575,
        k1 ^ 0x646F_7261_6E64_6F6D,
        k0 ^ 0x6C79_6765_6E65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // The length modulo 256 distinguishes texts that differ only in zeros at the end.
    last[7] = bytes.len() as u8;
    // The last word is there even for a multiple of eight bytes, because it carries the length.
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors() {
        // vectors.h of the reference implementation: key 00 01 .. 0f, input 00 01 .. of n bytes.
        let key: SipKey = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        let input: Vec<u8> = (0..16).collect();
        for (len, expected) in [
            (0, 0x726F_DB47_DD0E_0E31),
            (1, 0x74F8_39C5_93DC_67FD),
            (2, 0x0D6C_8009_D9A9_4F5A),
            (3, 0x8567_6696_D7FB_7E2D),
            (7, 0xAB02_00F5_8B01_D137),
            (8, 0x93F5_F579_9A93_2462),
            (15, 0xA129_CA61_49BE_45E5),
        ] {
            assert_eq!(siphash_2_4(&key, &input[..len]), expected, "{len} bytes");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let key: SipKey = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        assert!(!format!("{key:?}").contains("0706050403020100"));
        assert!("00".parse::<SipKey>().is_err());
        assert!(
            "+0102030405060708090a0b0c0d0e0f0"
                .parse::<SipKey>()
                .is_err()
        );
    }
}

//! A share of a join, for one of several machines or runs. `lookalike merge` combines their lists.
//!
//! Fingerprints belong to shards by their own bits, so equal ones are in the same shard, whatever their files.

use std::fmt;
use std::str::FromStr;

use lookalike_hamming::Word;

use super::stream_position::folded;
use crate::fingerprints::files::FingerprintFile;

/// One of the shards that fingerprints are divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintShard {
    /// Number of the shard, from 1.
    number: u32,
    /// Number of shards.
    count: u32,
}

/// Maximum number of shards. With more, each would read everything for next to nothing.
const MAX_SHARDS: u32 = 1 << 16;

/// Error: a text that does not name a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a shard: use I/N, such as 2/5 for the second of five, with N at most {MAX_SHARDS}"
)]
pub struct ParseShardError {
    /// The text.
    pub found: String,
}

impl FingerprintShard {
    /// The whole join: shard 1 of 1.
    pub const ALL: Self = Self {
        number: 1,
        count: 1,
    };

    /// Tells whether this is the whole join.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.count == 1
    }

    /// Tells whether a fingerprint belongs to the shard. For a longer one, pass 64 bits that depend on all of it.
    #[must_use]
    pub fn has(self, fingerprint: u64) -> bool {
        // Fibonacci hashing keeps shards even if fingerprints agree in their leading bits.
        let spread = fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // Multiply and shift instead of taking a remainder (Lemire 2019): except for rounding, all shards have the same size.
        (spread * u64::from(self.count)) >> 32 == u64::from(self.number - 1)
    }
}

impl fmt::Display for FingerprintShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl FromStr for FingerprintShard {
    type Err = ParseShardError;

    fn from_str(text: &str) -> Result<Self, ParseShardError> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(number, count)| {
            let (number, count) = (number.parse().ok()?, count.parse().ok()?);
            let is_one = (1..=MAX_SHARDS).contains(&count) && (1..=count).contains(&number);
            is_one.then_some(Self { number, count })
        });
        parsed.ok_or_else(|| ParseShardError {
            found: text.to_owned(),
        })
    }
}

impl<W: Word> FingerprintFile<W> {
    /// Keeps the fingerprints of a shard.
    pub(super) fn retain_shard(&mut self, shard: FingerprintShard) {
        if !shard.is_all() {
            self.retain(|fingerprint| shard.has(folded(fingerprint)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_fingerprint_belongs_to_one_shard(fingerprint in any::<u64>(), count in 1..40_u32) {
            let shards = (1..=count).map(|number| FingerprintShard { number, count });
            prop_assert_eq!(shards.filter(|shard| shard.has(fingerprint)).count(), 1);
        }
    }

    #[test]
    fn shards_are_about_equally_large_even_of_numbers_in_a_row() {
        let sizes: Vec<usize> = (1..=4)
            .map(|number| {
                let shard = FingerprintShard { number, count: 4 };
                (0..4_000).filter(|&code| shard.has(code)).count()
            })
            .collect();
        assert!(
            sizes.iter().all(|size| (900..1_100).contains(size)),
            "{sizes:?}"
        );
    }

    #[test]
    fn a_shard_is_a_number_of_a_number() {
        assert_eq!(
            "2/5".parse::<FingerprintShard>().unwrap().to_string(),
            "2/5"
        );
        assert!("1/1".parse::<FingerprintShard>().unwrap().is_all());
        for text in [
            "0/5", "6/5", "2", "2/", "/2", "a/b", "1/0", "1/65537", "-1/2",
        ] {
            assert!(text.parse::<FingerprintShard>().is_err(), "{text}");
        }
    }
}

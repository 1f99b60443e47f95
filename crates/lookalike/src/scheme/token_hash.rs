//! Token hashes, which turn words into numbers, with their text forms.

use std::fmt;

use crate::hash::siphash::SipKey;

/// Hash of a word, or of a run of characters.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, TokenHash};
///
/// let key = "000102030405060708090a0b0c0d0e0f".parse()?;
/// let scheme = Scheme::default().hash(TokenHash::SipHash(key));
/// // The scheme shows the id of the key, not the key.
/// assert!(!scheme.to_string().contains("0a0b0c0d0e0f"));
/// let features = |scheme: &Scheme| FeatureExtractor::new(scheme).features("Once upon a midnight dreary").to_vec();
/// assert_ne!(features(&scheme), features(&Scheme::default()));
/// # Ok::<(), lookalike::hash::siphash::ParseKeyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TokenHash {
    /// XXH3-64, seeded: fast, and stable by its published specification.
    #[default]
    Xxh3,
    /// Jenkins's lookup3 (Holub): both of its 32-bit halves, seeded.
    Lookup3,
    /// SipHash-2-4 with a secret key, for input that somebody may craft. The seed has no effect.
    SipHash(SipKey),
}

pub(super) const XXH3: &str = "xxh3-64";
pub(super) const LOOKUP3: &str = "lookup3";
pub(super) const SIPHASH: &str = "siphash-2-4:";

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xxh3 => f.write_str(XXH3),
            Self::Lookup3 => f.write_str(LOOKUP3),
            // Only the id of the key, because schemes are stored with data and the key is secret.
            Self::SipHash(key) => write!(f, "{SIPHASH}{:016x}", key.id()),
        }
    }
}

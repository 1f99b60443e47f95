//! Hashes of ids under a key of the collection: whoever sends ids cannot make them collide.

use lookalike::hash::siphash::{SipKey, siphash_2_4};

/// Hashes ids.
#[derive(Clone, Debug)]
pub(crate) struct IdHasher(SipKey);

impl IdHasher {
    pub(crate) fn new(key: u128) -> Self {
        Self(SipKey::new(key.to_le_bytes()))
    }

    pub(crate) fn hash(&self, id: &str) -> u64 {
        siphash_2_4(&self.0, id.as_bytes())
    }
}

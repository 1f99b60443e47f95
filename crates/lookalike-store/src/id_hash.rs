//! Keyed hashes of ids. The key is secret to the collection, so clients cannot choose ids that collide.

use lookalike::hash::siphash::{SipKey, siphash_2_4};

/// A hasher of ids.
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

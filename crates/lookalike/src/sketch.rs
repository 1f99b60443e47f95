//! Features to sketches: the third step of the way of the data.
//!
//! [`Simhash`] makes a [`Fingerprint`] of 8 bytes (M1), [`MinHash`] a [`Signature`] of 4 bytes a
//! function (V2), of which [`SuperShingles`] of 8 bytes a group (V3) can be made. Features must be
//! well mixed 64-bit values, as [`crate::feature`] makes them.

mod minhash;
mod signature;
mod simhash;

pub use minhash::MinHash;
pub use signature::{LengthMismatch, Signature, SuperShingles};
pub use simhash::{Fingerprint, ParseFingerprintError, Simhash};

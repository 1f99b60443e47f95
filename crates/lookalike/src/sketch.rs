//! Features to sketches: the third step of the way of the data.
//!
//! [`Simhash`] makes a [`Fingerprint`] of 8 bytes (Manku et al. 2007, section 2), [`MinHash`] a [`Signature`] of 4 bytes a
//! function (Vassilvitskii 2007), of which [`SuperShingles`] of 8 bytes a group (Vassilvitskii 2007) can be made. Features must be
//! well mixed 64-bit values, as [`crate::feature`] makes them.
//!
//! The other schemes of the survey (Manku et al. 2007, section 5.4) stand beside them: [`OnePermutation`] (min-hash at the
//! price of one function), [`mod_p`] and [`winnow`] (selected features), [`IMatch`] and
//! [`bucket_checksums`] (hashes of parts), simhash of 32 and 128 bits ([`Simhash::wide`]).
//! [`Sketcher`] makes whichever a scheme names.

mod checksum;
mod minhash;
mod one_permutation;
mod recall;
mod selection;
mod signature;
mod simhash;
mod sketcher;
mod wide;

pub use checksum::{IMatch, bucket_checksums};
pub use minhash::MinHash;
pub use one_permutation::OnePermutation;
pub use recall::{binomial_at_most, one_changed_word, simhash_recall};
pub use selection::{mod_p, winnow};
pub use signature::{LengthMismatch, Signature, SuperShingles};
pub use simhash::{Fingerprint, ParseFingerprintError, Simhash};
pub use sketcher::{SketchValue, Sketcher, SketcherError};
pub use wide::WideFingerprint;

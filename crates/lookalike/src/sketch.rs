//! Features to sketches: the third step of the pipeline.
//!
//! [`Simhash`] computes a [`Fingerprint`] of 8 bytes (Manku et al. 2007, section 2), [`MinHash`] a [`Signature`] of 4 bytes per function (Vassilvitskii
//! 2007), from which [`SuperShingles`] of 8 bytes per group (Vassilvitskii 2007) can be made. Features must be well mixed 64-bit values, like those of
//! [`crate::feature`].
//!
//! The other sketches of the survey (Manku et al. 2007, section 5.4) are here, too: [`OnePermutation`] (min-hash at the cost of one function),
//! [`mod_p`] and [`winnow`] (selected features), [`IMatch`] and [`bucket_checksums`] (hashes of parts), simhash of 32 and 128 bits
//! ([`Simhash::wide`]). [`Sketcher`] computes the sketch that a scheme names.

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
pub use simhash::{Fingerprint, Simhash};
pub use sketcher::{SketchValue, Sketcher, SketcherError};
pub use wide::WideFingerprint;

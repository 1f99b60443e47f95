//! The hot loops, each with vector versions that are chosen at run time and a portable twin.
//!
//! The only modules of this crate with `unsafe` in them. All versions of a kernel give equal
//! results; tests compare all that the machine can run.

pub(crate) mod intersect;
pub(crate) mod minhash;
pub(crate) mod shingle;
pub(crate) mod simhash;
pub(crate) mod token_hash;
pub(crate) mod tokenise;

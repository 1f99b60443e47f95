//! The hot loops, each with vector versions that are chosen at run time and a portable twin.
//!
//! Only these modules of the crate contain `unsafe`. A kernel is written once, as an inlined body; [`versions!`](versions) compiles it for each
//! [`CpuLevel`] of instructions, and the compiler or a few intrinsics do the rest. All levels give equal results; the tests compare all levels that
//! the machine has.

mod level;
mod versions;

pub(crate) mod bins;
pub(crate) mod densify;
pub(crate) mod intersect;
pub(crate) mod minhash;
pub(crate) mod one_permutation;
pub(crate) mod settle;
pub(crate) mod shingle;
pub(crate) mod simhash;
pub(crate) mod token_hash;
pub(crate) mod tokenise;

pub(crate) use level::CpuLevel;
pub use level::{force_level, level_name};
pub(crate) use versions::versions;

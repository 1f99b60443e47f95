//! The kernels: operations on many words at a time, with the best instructions that the processor has.
//!
//! Each algorithm is a [`Kernel`], written once over a [`Vector`]: some words that are compared together. Vectors are those of AVX-512 (with and
//! without VPOPCNTDQ), of AVX2, of NEON, and single words of plain Rust, whose results all others must equal. [`run`] compiles a kernel for each of
//! them and chooses one by the level of instructions, which is detected once.
//!
//! Nothing here knows tables or queries: searches and joins are outside, and pass the words to compare to the kernels.

pub(super) use address_filter::{FilterKind, PAYLOAD_BITS, filter_item, insert};
pub(super) use dense::{BitWriter, Dense, GROUP as DENSE_GROUP, PADDING as DENSE_PADDING};
pub(super) use dispatch::{run, run_one_by_one};
pub use level::{force_level, level_name};
pub(super) use memory::{end_streaming, prefetch, prefetch_overflow, prefetch_run, stream_line};
pub(super) use pages::{advise_huge_pages, claim_huge_pages, gather_huge_pages};
pub use pairs::ClosePairs;
pub use permute::Permute;
pub(super) use probe::LocateDense;
pub(super) use probe::ProbeDense;
pub use probe::{ProbeBuckets, ProbePacked};
pub use probe_set::{BucketVisitor, CacheLine, EntryRange, ProbeLocations, ProbeSet};
pub(super) use ranks::PADDING as RANK_PADDING;
pub use ranks::{RankBytes, Ranks};
pub use scan::{ScanLine, ScanPacked, ScanWords};
pub(super) use scan::{ScanRun, hit_positions};
pub(super) use specialised::select_members;
pub use vector::{Kernel, Vector};
pub(super) use windows::{NearWindows, WINDOW};

mod address_filter;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that a value stands for")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that a value stands for")]
mod avx512;
pub(super) mod bits;
mod dense;
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(
        unsafe_code,
        reason = "calls of code for instructions that were detected"
    )
)]
mod dispatch;
mod level;
pub(super) mod memory;
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "instructions that a value stands for")]
mod neon;
mod one_by_one;
mod pages;
mod pairs;
mod permute;
mod probe;
mod probe_set;
mod ranks;
mod scan;
mod specialised;
mod vector;
mod windows;

#[cfg(test)]
mod tests;

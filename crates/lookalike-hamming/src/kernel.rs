//! The machine-dependent kernels of the engine, each with a portable twin of equal results.
//!
//! Everything above calls the safe functions of the modules here; which instructions they use is decided once, at
//! the first call, from what the processor offers ([`KernelLevel`]): those of `x86` or `arm`, or plain Rust.

pub(super) use address_filter::{FilterKind, PAYLOAD_BITS, filter_item, insert, select_members};
pub(super) use bits::{deposit, extract, low_ones, permute};
pub use dense::Dense;
pub(super) use dense::{BitWriter, GROUP as DENSE_GROUP, PADDING as DENSE_PADDING};
pub use level::KernelLevel;
pub(super) use memory::{end_streaming, prefetch, prefetch_overflow, prefetch_run, stream_line};
pub(super) use pages::{ask_huge_pages, claim_huge_pages, gather_huge_pages};
pub(super) use pairs::{WINDOW, close_pairs, each_group, near_windows};
pub use probe::{BucketVisitor, CacheLine, EntryRange, ProbeLocations, ProbeSet};
pub(super) use probe::{locate_dense, probe_buckets, probe_dense, probe_packed};
pub(super) use scan::{scan_cache_line, scan_packed, scan_words};
pub use single_probe::{AddressSplit, BucketTable, EntryRun, PackedTable, SingleProbeTable};
pub(super) use single_probe::{
    Found, MOST_TABLES, ProbeStages, search_buckets, search_packed, search_with,
};

mod address_filter;
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "vector loads take pointers")]
mod arm;
mod bits;
mod dense;
mod level;
mod memory;
mod pages;
mod pairs;
mod probe;
mod scan;
mod single_probe;
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "vector loads, prefetch and calls behind run-time detection"
)]
mod x86;

#[cfg(test)]
mod tests;

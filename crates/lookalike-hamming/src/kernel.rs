//! The machine-dependent kernels of the engine, each with a portable twin of equal results.
//!
//! Everything above calls the safe functions of the modules here; which instructions they use is decided once, at
//! the first call, from what the processor offers ([`Level`]): those of `x86` or `arm`, or plain Rust.

pub(super) use bits::{deposit, extract, low_ones, permute};
pub use dense::Dense;
pub(super) use dense::{BitWriter, GROUP as DENSE_GROUP, PADDING as DENSE_PADDING};
pub use level::Level;
pub(super) use marks::{MarkKind, OWN_BITS, mark, mark_item, marked};
pub(super) use memory::{end_streaming, prefetch, prefetch_beside, prefetch_run, stream_line};
pub(super) use once::{Found, MOST_TABLES, Steps, search_lines, search_packed, search_with};
pub use once::{LineTable, OnceTable, PackedTable, Run, Split};
pub(super) use pages::{ask_huge_pages, claim_huge_pages, gather_huge_pages};
pub(super) use pairs::{WINDOW, close_pairs, each_group, near_windows};
pub use probe::{Extent, Flipped, Line, LineVisitor, Located};
pub(super) use probe::{locate_dense, probe_dense, probe_lines, probe_packed};
pub(super) use scan::{scan_line, scan_packed, scan_words};

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "vector loads take pointers")]
mod arm;
mod bits;
mod dense;
mod level;
mod marks;
mod memory;
mod once;
mod pages;
mod pairs;
mod probe;
mod scan;
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "vector loads, prefetch and calls behind run-time detection"
)]
mod x86;

#[cfg(test)]
mod tests;

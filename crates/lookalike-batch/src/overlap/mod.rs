//! All-pairs overlap: counts the chunks that every two documents, or servers, share (Shivakumar and Garcia-Molina 1998, section 2).
//!
//! An [`OverlapJob`] uses the readers of other jobs, but its own steps:
//!
//! ```text
//! read       every record once: id, site, class of equal texts, chunks once a class    read, site
//! rank       ids in order, sets of equal texts, servers                                collection, units
//! group      chunks to the units that share them                                       postings
//! defer      very common chunks are deferred, exactly                                   defer
//! count      pairs: in memory, or coarsely and then exactly, or by sorting             plan, count, coarse, sort
//! write      rows in the order of names                                                rows
//! atlas      replicas, savings, pages, mirrors, aliases, servers, the page              atlas_dir, replicas, places,
//!                                                                                     families, page_sets, mirrors,
//!                                                                                     aliases, similar_lists, atlas
//! ```
//!
//! The rows depend only on the documents and the [`OverlapSettings`], not on the engine, the order of the input, the threads or the memory.

mod aliases;
mod atlas;
mod atlas_dir;
mod atlas_summary;
mod checkpoint;
mod coarse;
mod collection;
mod count;
mod defer;
mod families;
mod interned_lists;
mod job;
mod mirrors;
mod page_sets;
mod pair_sort;
mod places;
mod plan;
mod postings;
mod read;
mod replicas;
mod requests;
mod row_log;
mod rows;
mod server_name;
mod settings;
pub(crate) mod settings_error;
mod similar_lists;
mod site;
mod skip;
mod sort;
#[cfg(test)]
mod tests;
mod text_chunks;
mod units;

pub use atlas_dir::{ATLAS_RESULTS, AtlasOptions};
pub use atlas_summary::AtlasSummary;
pub use coarse::CoarseFigures;
pub use job::{ChunkingSummary, OverlapJob, OverlapSummary};
pub use mirrors::{ApproximateServer, MirrorSettings, MirroredSet};
pub use replicas::{ReplicaClass, ReplicaLevel};
pub use rows::OverlapRow;
pub use server_name::ServerName;
pub use settings::{ExactCopies, MinShared, OverlapEngine, OverlapSettings, OverlapUnit};
pub use settings_error::OverlapSettingsError;
pub use text_chunks::TextChunks;

/// Two units, the first before the second, with their number of shared chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedCount {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) shared: u32,
}

/// Receiver of the rows of an engine.
type RowSink<'a> = dyn FnMut(SharedCount) -> Result<(), crate::error::BatchError> + 'a;

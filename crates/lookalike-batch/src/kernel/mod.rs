//! Steps of a distributed deduplication: pure functions without files, threads or clock.
//!
//! An engine that moves rows between machines, such as Spark, brings documents together; these functions process them, as they do in a job on
//! one machine. No result depends on how a collection is divided into parts, nor on the order in which parts arrive:
//!
//! ```text
//! scan        a document: the class of its text, and its place in the order of survivors       KernelWorker::scan
//! levels      counts of features from all machines, added up; rough ones cost time only        FeatureFrequency, FrequencyLevels
//! keys        a class, by its rank: two that must be compared share a key                      KernelWorker::keys
//! work edges  the classes of a key: edges, linear in the members of a large group              DedupKernel::work_edges
//! promising   edges added up: those that sizes and counts do not rule out                      DedupKernel::is_promising
//! settle      the classes that such edges connect: who survives, who joins whom                KernelWorker::settle
//! ```
//!
//! Between these steps, rows are sent to other machines in packed form: [`DocumentPacker`], [`DedupKernel::group`],
//! [`DedupKernel::promising`], [`DedupKernel::members`]. There a class that has no rank yet is numbered by some bits of its hash.
//!
//! The components of edges only divide the work. Classes that resemble each other are connected, and the decision on a class depends only on
//! similar classes of smaller ranks, so processing each component in the order of ranks decides as processing the whole collection would.
//!
//! ```
//! use lookalike_batch::JobSettings;
//! use lookalike_batch::kernel::{DedupKernel, KernelDocument, KernelMember};
//! use lookalike_corpus::InputOptions;
//!
//! let kernel = DedupKernel::new(JobSettings::default(), &InputOptions::default())?;
//! let mut worker = kernel.worker();
//! let texts = [("a", "a rose is a rose is a rose"), ("b", "A rose is a rose is a rose!")];
//!
//! // One machine or many: each document by itself.
//! let mut ranked: Vec<_> = texts
//!     .map(|(id, text)| (worker.scan(&KernelDocument { id, ..KernelDocument::of_text(text) }, true).order, text))
//!     .into();
//! ranked.sort();
//!
//! // Levels of all counts, then keys, edges, and what they connect.
//! let plan = kernel.key_plan(2, Some(worker.frequency().levels()))?;
//! let mut keys = Vec::new();
//! for (rank, (_, text)) in (0..).zip(&ranked) {
//!     worker.keys(&plan, KernelMember { rank, ..KernelMember::of_text(text) }, |key| keys.push(key.class))?;
//! }
//! let mut edges = std::collections::BTreeMap::new();
//! kernel.work_edges(keys, Some(32), |edge| *edges.entry((edge.x, edge.y, edge.size_x, edge.size_y)).or_insert(0) += edge.shared);
//! assert_eq!(edges.len(), 1);
//!
//! let mut component: Vec<_> =
//!     (0..).zip(&ranked).map(|(rank, (_, text))| KernelMember { rank, ..KernelMember::of_text(text) }).collect();
//! let joined = worker.settle(&mut component)?;
//! assert_eq!((joined[0].rank, joined[0].survivor, joined[0].similarity), (1, 0, 1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod candidate_rule;
pub(crate) mod checked_bytes;
pub(crate) mod class_keys;
mod component;
mod dedup_kernel;
mod error;
mod exchange;
mod packed_rows;
pub(crate) mod placed_text;
pub(crate) mod survivor_order;
#[cfg(test)]
mod tests;
mod work_edges;
mod worker;

pub use crate::dedup::frequency::{FeatureFrequency, FrequencyLevels};
pub use crate::kernel::checked_bytes::CheckedBytesError;
pub use crate::kernel::dedup_kernel::{DedupKernel, KeyPlan};
pub use crate::kernel::error::KernelError;
pub use crate::kernel::exchange::{
    ClassMembers, DocumentPacker, GroupedDocuments, PackedDocuments, connected_nodes,
    packed_components,
};
pub use crate::kernel::packed_rows::NodeComponent;
pub use crate::kernel::work_edges::{CHAIN, ClassKey, FingerprintKey, WorkEdge};
pub use crate::kernel::worker::{
    JoinedClass, KernelDocument, KernelMember, KernelWorker, ScannedDocument, SimilarClasses,
};

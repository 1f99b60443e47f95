//! A durable collection of document sketches with exact search and expiry.
//!
//! A [`Store`] is a directory of [`Collection`]s. A collection keeps documents by id, with their sketches, and finds every document within
//! a given distance: the number of fingerprint bits, super-shingles or minima that differ. Acknowledged writes are durable, batches are
//! atomic, readers see a consistent snapshot while others write, and expired documents stop matching at once.
//!
//! A write takes this path: the writer thread drains its queue (`collection`), evaluates the requests in order (`engine::commit`), appends
//! them to the log as one frame with one sync (`log`), and then makes them visible to readers (`view`). A full `memtable` is flushed to an
//! immutable run (`run`), whose fingerprint tables come from [`lookalike_hamming`]; sketches of several places have an index in memory
//! (`place_index`). Runs are merged by levels (`engine::install`). All files are accessed through [`fs::FileSystem`]; the feature
//! `simulation` adds a simulated medium that loses power.
//!
//! ```
//! use lookalike::{Fingerprint, Scheme};
//! use lookalike_store::{
//!     CollectionSettings, Store, StoreOptions, StoredDocument, UnixMillis, Verdict, WriteOp,
//! };
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let store = Store::open(folder, StoreOptions::default().create(true))?;
//! let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
//! let now = UnixMillis(1_700_000_000_000);
//! let page = StoredDocument::new("http://a.example/", Fingerprint(0b1011));
//! pages.write(vec![WriteOp::Insert(page)], now)?;
//! assert_eq!(pages.check(Fingerprint(0b1000), 3, now)?, Verdict::Near { distance: 2 });
//! store.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch_writer;
mod bits;
mod checksum;
mod clean_shutdown;
mod codec;
mod collection;
mod disk_reserve;
mod document;
mod document_sketch;
mod engine;
mod error;
mod file_copy;
mod file_names;
mod found_document;
pub mod fs;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod id_hash;
mod log;
mod maintenance;
mod manifest;
mod memtable;
mod neighbour_cursor;
mod neighbour_hits;
mod operations;
mod pair_rule;
mod paragraph_hits;
mod place_index;
mod rebuild;
mod run;
mod scheme_part;
mod searches;
mod settings;
mod store;
#[doc(hidden)]
pub mod sync;
#[cfg(test)]
mod tests;
mod time;
mod tombstones;
mod trait_index;
mod verdict;
mod view;
mod write_receipt;

pub use collection::{Collection, CollectionHealth};
pub use document::{
    ContentKey, MAX_DOCUMENT_BYTES, MAX_ID_BYTES, ParseTextHashError, StoredDocument,
    StoredParagraph, TextHash, check_id,
};
pub use document_sketch::{DocumentSketch, MAX_PLACES, MAX_RADIUS, SketchForm, UnsupportedSketch};
pub use engine::{CollectionStats, MAX_BATCH_BYTES, ParagraphLookup, RecoveryReport};
pub use error::{Result, StoreError};
pub use maintenance::{
    SalvageReport, SnapshotSummary, StoreInfo, info, restore, restore_on, salvage, salvage_on,
    verify, verify_on,
};
pub use neighbour_cursor::{NeighbourCursor, ParseCursorError};
pub use operations::{
    InsertWhen, Neighbour, NeighbourPage, ParagraphMatches, QueryResult, WriteOp, WriteOutcome,
};
pub use pair_rule::{CategoryScope, NeighbourScope, PairRule, PairTraits};
pub use rebuild::{RebuildReport, RebuildTarget};
pub use scheme_part::SchemePart;
pub use settings::{CollectionSettings, RetainedParts, StoreTuning, StoredScheme};
pub use store::{Store, StoreId, StoreOptions, is_name};
pub use time::{UnixMillis, WriteTime};
pub use verdict::{SimilarParagraph, Verdict};
pub use write_receipt::WriteReceipt;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct StoreReadme;

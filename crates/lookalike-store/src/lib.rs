//! A durable, expiring, exact collection of near-duplicate fingerprints.
//!
//! A [`Store`] is a directory of [`Collection`]s. Each keeps documents by id, with their fingerprints, and answers whether
//! anything is within a Hamming distance, completely. What is acknowledged is on the disk; batches are atomic; readers see
//! one moment while others write; what expires stops to match at once.
//!
//! The way of a write: the writer thread drains its queue (`collection`), evaluates the requests one after the other
//! (`engine::commit`), writes them as one frame of the log with one sync (`log`), and shows them to readers (`memory`). When the
//! memory is full it becomes an immutable run (`run`), whose fingerprint tables are those of
//! [`lookalike_hamming`]; runs are merged by levels (`engine::install`). All files go through [`fs::Fs`], which has a simulated
//! twin that loses power.
//!
//! ```
//! use lookalike::{Fingerprint, Scheme};
//! use lookalike_store::{CollectionSettings, Document, OpenOptions, Store, Time, Verdict, Write};
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let store = Store::open(folder, OpenOptions { create: true, ..OpenOptions::default() })?;
//! let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()))?;
//! let now = Time(1_700_000_000_000);
//! pages.write(vec![Write::Insert(Document::new("http://a.example/", Fingerprint(0b1011)))], now, 0)?;
//! assert_eq!(pages.check(Fingerprint(0b1000), 3, now)?, Verdict::Near { distance: 2 });
//! store.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod bits;
mod codec;
mod collection;
mod dead;
mod document;
mod engine;
mod error;
pub mod fs;
mod id_hash;
mod log;
mod maintenance;
mod manifest;
mod marker;
mod memory;
mod run;
mod seal;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod time;

pub use answer::{Answer, InsertWhen, Neighbour, Outcome, ParagraphSeen, Verdict, Write};
pub use collection::{Collection, Health, LARGEST_BATCH};
pub use document::{Document, LARGEST_DOCUMENT, LONGEST_ID};
pub use engine::{Recovery, Stats, Tuning};
pub use error::{Result, StoreError};
pub use maintenance::{Salvage, SnapshotSummary, StoreInfo, info, restore, salvage, verify};
pub use settings::{CollectionSettings, Keep, LARGEST_RADIUS, StoredScheme};
pub use store::{OpenOptions, Store, StoreId};
pub use time::Time;

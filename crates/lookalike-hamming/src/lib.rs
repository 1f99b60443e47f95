//! Exact Hamming search over fingerprints of 32, 64 and 128 bits.
//!
//! An index finds every stored code that differs from a query in at most k bits, and nothing else: [`TableIndex`] in memory, [`IndexFile`] on disk.
//! [`self_join`] and [`BatchJoin`] find all close pairs without an index. [`plan`] lists the table designs for a collection with the cost of each.
//!
//! ```
//! use lookalike_hamming::{PlanLimits, TableIndex, plan};
//!
//! let codes: Vec<u64> = (0..10_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
//! let plans = plan(codes.len() as u64, 64, 3, &PlanLimits::default(), &Default::default());
//! let cheapest = plans.iter().find(|costed| costed.cheapest).expect("a scan fits without limits");
//! let index = TableIndex::build(&codes, &cheapest.design, cheapest.layout)?;
//!
//! let mut found = Vec::new();
//! index.search(codes[7] ^ 0b101, 3, &mut |code, distance| found.push((code, distance)))?;
//! assert_eq!(found, [(codes[7], 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Distances are inclusive everywhere. Each distinct code is stored and reported once. Codes are bare integers ([`Word`]) whose meaning is up to the
//! caller. Files store a number chosen by the caller that identifies this meaning, the *scheme*.
//!
//! # Modules
//!
//! 1. `design`: the bits of a code that are the key of each table, and the number of errors that a probe tolerates; `family` lists the ways to choose
//!    them, `nested` the recursion of Manku, Jain, Das Sarma (WWW 2007).
//! 2. `plan`: all designs for a given number of fingerprints, with the cost of each (`cost`) and the cheapest.
//! 3. `table`, `index`: the tables in memory, in one of three layouts ([`Layout`]), and their search.
//! 4. `self_join`: all pairs of a collection without an index; `batch`: all pairs between a streamed file and a set of queries.
//! 5. `stored`: an index as a file; `archive`: the paper's compressed table; `file`: fingerprint files; `analysis`: how evenly fingerprints are
//!    spread.

#[macro_use]
mod limits;

mod analysis;
mod archive;
mod batch;
mod build;
mod code;
mod cost;
mod design;
mod entropy;
mod family;
mod family_name;
mod file;
mod file_error;
mod huffman;
mod index;
mod kernel;
mod layout;
mod nested;
mod plan;
mod scatter;
mod self_join;
mod shared_bytes;
mod stored;
mod table;
mod table_key;
#[doc(hidden)]
pub mod threads;

pub use analysis::{Analysis, Analyzer, RANGES, Spike};
pub use archive::{ArchiveWriter, DEFAULT_BLOCK_BYTES, FingerprintArchiveReader, GapCounts};
pub use batch::{BatchJoin, BatchLimits, JoinScratch};
pub use build::{BuildError, CodeSource};
pub use code::{Integer, Word};
pub use cost::{CostConstants, DesignCosts, calibrate, neighbours};
pub use design::{Design, NoSuchDesign};
pub use entropy::BitBalance;
pub use family::{BlockGroup, Family, FamilyKind, ParseFamilyKindError};
pub use family_name::FamilyNameError;
pub use file::{FingerprintChunk, FingerprintReader, FingerprintWriter, SketchWords};
pub use file_error::FileError;
#[doc(hidden)]
pub use file_error::FileFormat;
pub use index::{BucketLoads, BuildLimits, TableIndex, balanced_design};
#[doc(hidden)]
pub use kernel::{
    BucketVisitor, CacheLine, ClosePairs, EntryRange, Kernel, Permute, ProbeBuckets,
    ProbeLocations, ProbePacked, ProbeSet, RankBytes, Ranks, ScanLine, ScanPacked, ScanWords,
    Vector, force_level, level_name,
};
pub use layout::{Layout, ParseLayoutError};
pub use nested::{Nesting, fewest_tables, longest_prefix};
pub use plan::{CostedDesign, PlanGoal, PlanLimits, designs, plan, plan_of};
pub use self_join::{
    JoinedTables, SelfJoinLimits, SelfJoinProgress, self_join, self_join_from, self_join_until,
};
pub use shared_bytes::{SharedBytes, huge_page_buffer, share};
#[doc(hidden)]
pub use stored::{CheckedFile, PageChecks};
pub use stored::{IdTexts, IndexFile, IndexFileWriter, index_width};
pub use table_key::TableKey;

/// Amount of work done by a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effort {
    /// Buckets that were probed.
    pub probes: u64,
    /// Codes that were compared with the query.
    pub candidates: u64,
}

/// Error for a search beyond the radius that an index answers completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("radius {asked} is larger than {built}, which the index was built for")]
pub struct RadiusTooLarge {
    /// The radius of the search.
    pub asked: u32,
    /// The radius that the index was built for.
    pub built: u32,
}

impl RadiusTooLarge {
    fn check(asked: u32, built: u32) -> Result<(), Self> {
        if asked > built {
            Err(Self { asked, built })
        } else {
            Ok(())
        }
    }
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

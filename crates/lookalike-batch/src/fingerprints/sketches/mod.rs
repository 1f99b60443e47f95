//! Compares sketches of several places without their texts: finds those of a collection with enough places in common.
//!
//! ```text
//! min_equal            how many places must be equal
//! reading              files and indexes of one shape and scheme, as one
//! distinct_sketches    each different sketch once, in ascending order
//! bands                in one of which two such sketches agree
//! exact_bands          all pairs with enough equal places: exact, whatever the data
//! sketch_index         a file that finds those with enough places in common with a query
//! ```
//!
//! Used by `lookalike join --equal`, `cluster --equal` and `index build --equal`.

mod bands;
mod distinct_sketches;
mod exact_bands;
pub(super) mod min_equal;
mod reading;
mod sketch_index;

pub(crate) use distinct_sketches::{DistinctSketches, GroupedSketches, SketchPositions};
pub(crate) use exact_bands::NearSketches;
pub use min_equal::{EqualPlaces, MinEqual, MinEqualError, ParseMinEqualError};
pub(crate) use reading::{SketchReading, stored_bytes};
pub use sketch_index::{
    BandLoads, SketchIndexFile, is_sketch_index, open_sketches, open_sketches_unchecked,
};
pub(crate) use sketch_index::{
    BandSections, IdCounts, SketchIndexHeader, SketchIndexSections, bucket, tail_bytes,
};

//! Sketches of several places without their texts: which of a collection have enough places in common.
//!
//! ```text
//! least_equal          how many places must be equal
//! reading              files of one shape and scheme, within the memory
//! distinct_sketches    each different sketch once, in ascending order
//! exact_bands          all pairs with enough equal places: exact, whatever the data
//! ```
//!
//! `lookalike join --equal` and `cluster --equal` stand on it.

mod distinct_sketches;
mod exact_bands;
mod least_equal;
mod reading;

pub(crate) use distinct_sketches::{DistinctSketches, GroupedSketches};
pub(crate) use exact_bands::NearSketches;
pub use least_equal::{EqualPlaces, LeastEqual, LeastEqualError, ParseLeastEqualError};
pub(crate) use reading::{SketchMemory, SketchReading, stored_bytes};

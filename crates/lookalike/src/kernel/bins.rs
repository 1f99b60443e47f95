//! Bins of one-permutation min-hash, which the kernels fill and densify.

/// Value of a bin without a feature.
pub(crate) const HIGHEST: u32 = u32::MAX;
/// Mark of an empty bin; a full bin has its number instead, of seven bits.
pub(crate) const EMPTY: u8 = 0x80;
/// Number of bins that seven bits can tell apart.
pub(crate) const MAX_SMALL_BINS: usize = 128;

/// Up to [`MAX_SMALL_BINS`] bins.
pub(crate) struct Bins {
    /// The smallest value of each bin, [`HIGHEST`] if there is none.
    pub(crate) least: [u32; MAX_SMALL_BINS],
    /// The number of each full bin, [`EMPTY`] for the others.
    pub(crate) full: [u8; MAX_SMALL_BINS],
}

//! Bins of one-permutation min-hash, which the kernels fill and densify.

/// Value of a bin without a feature.
pub(crate) const HIGHEST: u32 = u32::MAX;
/// Stands beside a bin that is empty; beside a full one its number, of seven bits.
pub(crate) const EMPTY: u8 = 0x80;
/// As many bins as bytes can tell apart.
pub(crate) const FEW: usize = 128;

/// Up to [`FEW`] bins.
pub(crate) struct Bins {
    /// The least value of each, [`HIGHEST`] where there is none.
    pub(crate) least: [u32; FEW],
    /// The number of each, or [`EMPTY`].
    pub(crate) full: [u8; FEW],
}

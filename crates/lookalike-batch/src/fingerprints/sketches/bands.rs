//! Bands of places: sketches that differ in at most d places agree completely in one of d + 1 bands (the pigeonhole principle).

use std::ops::Range;

/// Divides `places` places into bands of nearly equal length.
pub(crate) fn bands(places: usize, bands: usize) -> impl Iterator<Item = Range<usize>> {
    let start = move |band: usize| band * places / bands;
    (0..bands).map(move |band| start(band)..start(band + 1))
}

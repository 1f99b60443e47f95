//! Sorting features: they are uniform 64-bit values, so their leading bits are their place.

/// Sorts `features` and drops repetitions. `scratch` is working space, its contents are lost.
pub fn sort_dedup(features: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    let _ = scratch;
    features.sort_unstable();
    features.dedup();
}

//! Collections made from a seed that a Hamming index must handle, and a linear scan that defines the search.

use lookalike_hamming::{TableIndex, Word};

/// All distinct codes, searched by comparing every one.
pub(crate) struct LinearScan<C> {
    /// In ascending order.
    pub(crate) codes: Vec<C>,
}

impl<C: Word + Into<u128>> LinearScan<C> {
    pub(crate) fn new(codes: &[C]) -> Self {
        let mut codes = codes.to_vec();
        codes.sort_unstable();
        codes.dedup();
        Self { codes }
    }

    pub(crate) fn found(&self, query: C, radius: u32) -> Vec<(u128, u32)> {
        let all = self.codes.iter();
        all.map(|&code| -> (u128, u32) { (code.into(), code.bits_apart(query)) })
            .filter(|(_, distance)| *distance <= radius)
            .collect()
    }
}

/// Returns the codes and distances that an index finds, in ascending order.
pub(crate) fn found<C: Word + Into<u128>>(
    index: &TableIndex<C>,
    query: C,
    radius: u32,
) -> Vec<(u128, u32)> {
    let mut found = Vec::new();
    let visit = &mut |code: C, distance| found.push((code.into(), distance));
    index.search(query, radius, visit).unwrap();
    found.sort_unstable();
    found
}

/// Returns a generator of pseudo-random words (SplitMix64).
pub(crate) fn words(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// The kind of a test collection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Independent codes with even bits.
    Random,
    /// A few centres, each with neighbours at distances 0 to 2k.
    Clustered,
    /// Each bit is set with probability 1/16.
    Sparse,
    /// Only the low 12 bits vary.
    Narrow,
    /// Only the high 12 bits vary.
    High,
    /// Every second code is the same.
    Spike,
    /// Small integers.
    Counting,
}

pub(crate) const SHAPES: [Shape; 7] = [
    Shape::Random,
    Shape::Clustered,
    Shape::Sparse,
    Shape::Narrow,
    Shape::High,
    Shape::Spike,
    Shape::Counting,
];

/// Returns `count` codes of `bits` bits, each in the low bits of a `u128`.
pub(crate) fn collection(
    shape: Shape,
    bits: u32,
    count: usize,
    radius: u32,
    seed: u64,
) -> Vec<u128> {
    let mut next = words(seed);
    let kept = u128::MAX >> (128 - bits);
    let mut wide = move || u128::from(next()) << 64 | u128::from(next());
    let centres: Vec<u128> = (0..5).map(|_| wide() & kept).collect();
    let mut codes = Vec::with_capacity(count);
    for i in 0..count {
        let code = match shape {
            Shape::Random => wide(),
            Shape::Clustered => {
                let wrong = wide() as u32 % (2 * radius + 2);
                flip(centres[i % centres.len()], wrong, bits, &mut wide)
            }
            Shape::Sparse => wide() & wide() & wide() & wide(),
            Shape::Narrow => wide() & 0xfff,
            Shape::High => wide() << (bits - 12),
            Shape::Spike if i % 2 == 0 => centres[0],
            Shape::Spike => flip(centres[0], i as u32 % 9, bits, &mut wide),
            Shape::Counting => i as u128 / 2,
        };
        codes.push(code & kept);
    }
    codes
}

/// Flips up to `wrong` random bits of `code`; a bit that is chosen twice is flipped back.
pub(crate) fn flip(code: u128, wrong: u32, bits: u32, wide: &mut impl FnMut() -> u128) -> u128 {
    (0..wrong).fold(code, |code, _| code ^ 1 << (wide() % u128::from(bits)))
}

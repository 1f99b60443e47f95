//! Pairs with scores.

/// A pair of positions, a < b, with the score of its sketches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredPair {
    /// The smaller position.
    pub a: u32,
    /// The larger position.
    pub b: u32,
    /// [`lookalike::sketch::SketchValue::score`]; larger means more similar.
    pub score: f64,
}

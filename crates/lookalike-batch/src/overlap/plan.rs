//! Chooses the counting engine.

use super::defer::all_pairs;
use super::postings::Postings;
use super::settings::OverlapEngine;

/// Maximum number of pairs a chunk record for which sorting is as cheap as counting twice.
const FEW_PAIRS: u64 = 3;

/// The engines to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineChoice {
    Sort,
    /// Counts in memory: [`super::count`].
    InMemory,
    /// Counts coarsely first: [`super::coarse`].
    Coarse,
}

/// The chosen engine, with the reason in words.
pub(crate) struct CountPlan {
    pub(crate) way: EngineChoice,
    pub(crate) why: String,
}

impl CountPlan {
    /// Chooses an engine. The number of pairs is known exactly, because the chunks are already grouped.
    ///
    /// `needed` are the bytes of the lists in memory, and `left` the bytes available.
    pub(crate) fn new(engine: OverlapEngine, postings: &Postings, needed: u64, left: u64) -> Self {
        let pairs = all_pairs(postings);
        // Lists in the file would have to be read back next to the index.
        let fits = postings.lists.resident() && needed <= left;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let room = format!(
            "{} MiB for the lists of shared chunks, {} MiB left",
            mib(needed),
            mib(left)
        );
        let (way, why) = match (engine, fits) {
            (OverlapEngine::Sort, _) => (EngineChoice::Sort, "asked for".to_owned()),
            (OverlapEngine::Count, true) => (EngineChoice::InMemory, format!("asked for; {room}")),
            (OverlapEngine::Count, false) => (EngineChoice::Coarse, format!("asked for; {room}")),
            (OverlapEngine::Auto, true) => {
                (EngineChoice::InMemory, format!("fits in memory: {room}"))
            }
            (OverlapEngine::Auto, false) if pairs <= FEW_PAIRS * postings.records => (
                EngineChoice::Sort,
                format!("few pairs share a chunk ({pairs}), and memory is short: {room}"),
            ),
            (OverlapEngine::Auto, false) => (
                EngineChoice::Coarse,
                format!("many pairs share a chunk ({pairs}), and memory is short: {room}"),
            ),
        };
        Self { way, why }
    }
}

impl EngineChoice {
    /// Returns the name of the engine as results show it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::InMemory => "count",
            Self::Coarse => "count (coarse)",
        }
    }
}

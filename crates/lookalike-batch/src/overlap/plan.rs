//! Choice of the counting engine.

use super::defer::all_pairs;
use super::postings::Postings;
use super::settings::OverlapEngine;

/// Pairs a chunk record up to which sorting them is as cheap as counting them twice.
const FEW_PAIRS: u64 = 3;

/// The ways of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineChoice {
    Sort,
    /// [`super::count`].
    InMemory,
    /// [`super::coarse`].
    Coarse,
}

/// A way, and the reason in words.
pub(crate) struct CountPlan {
    pub(crate) way: EngineChoice,
    pub(crate) why: String,
}

impl CountPlan {
    /// Decides. The number of pairs is known exactly: the chunks are grouped by then, and their sizes counted.
    ///
    /// `needed` and `left` are bytes: those of the lists in memory, and those there are.
    pub(crate) fn new(engine: OverlapEngine, postings: &Postings, needed: u64, left: u64) -> Self {
        let pairs = all_pairs(postings);
        // Lists that have gone to the file would be read back beside the index.
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
    /// The name of the engine in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::InMemory => "count",
            Self::Coarse => "count (coarse)",
        }
    }
}

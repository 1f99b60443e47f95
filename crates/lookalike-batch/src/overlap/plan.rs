//! Which engine counts, and why.

use super::defer::all_pairs;
use super::postings::Postings;
use super::settings::Engine;

/// Pairs a chunk record up to which sorting them is as cheap as counting them twice.
const FEW_PAIRS: u64 = 3;

/// The ways of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sort,
    /// [`super::count`].
    InMemory,
    /// [`super::coarse`].
    Coarse,
}

/// A way, and the reason in words.
pub(crate) struct Plan {
    pub(crate) way: Way,
    pub(crate) why: String,
}

impl Plan {
    /// Decides. The number of pairs is known exactly: the chunks are grouped by then, and their sizes counted.
    ///
    /// `needed` and `left` are bytes: those of the lists in memory, and those there are.
    pub(crate) fn new(engine: Engine, postings: &Postings, needed: u64, left: u64) -> Self {
        let pairs = all_pairs(postings);
        let fits = postings.lists.resident() && needed <= left;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let room = format!(
            "{} MiB for the lists of shared chunks, {} MiB left",
            mib(needed),
            mib(left)
        );
        let (way, why) = match (engine, fits) {
            (Engine::Sort, _) => (Way::Sort, "asked for".to_owned()),
            (Engine::Count, true) => (Way::InMemory, format!("asked for; {room}")),
            (Engine::Count, false) => (Way::Coarse, format!("asked for; {room}")),
            (Engine::Auto, true) => (Way::InMemory, format!("fits in memory: {room}")),
            (Engine::Auto, false) if pairs <= FEW_PAIRS * postings.records => (
                Way::Sort,
                format!("few pairs share a chunk ({pairs}), and memory is short: {room}"),
            ),
            (Engine::Auto, false) => (
                Way::Coarse,
                format!("many pairs share a chunk ({pairs}), and memory is short: {room}"),
            ),
        };
        Self { way, why }
    }
}

impl Way {
    /// The name of the engine in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::InMemory => "count",
            Self::Coarse => "count (coarse)",
        }
    }
}

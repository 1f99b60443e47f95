//! Designs of a run's tables, chosen by the number of fingerprints and by which of their bits vary.
//!
//! Blocks of neighbouring bits are good addresses if bits are evenly distributed. If all fingerprints agree in a block (pages of one
//! template, or crafted fingerprints), they would all be in one bucket. So bits are dealt out to the blocks such that each gets an equal
//! share of the bits that split the fingerprints most evenly. A design is complete under any permutation of the bits.

use lookalike_hamming::{BitBalance, CostConstants, Design, Family, Layout, PlanLimits, plan};

/// Number of fingerprints below which planning is not worth its milliseconds.
const PLANNING_MIN: usize = 1 << 14;
/// Number of fingerprints beyond which tables are chosen for minimal memory.
const COMPACT_MIN: usize = 1 << 20;
/// Maximum number of fingerprints in a sample.
const SAMPLED: usize = 1 << 16;

/// A sample of fingerprints, evenly spaced in the order of documents.
#[derive(Debug)]
pub(super) struct CodeSample {
    step: usize,
    seen: usize,
    codes: Vec<u64>,
}

impl CodeSample {
    /// Creates a sample for a run of `count` fingerprints.
    pub(super) fn of(count: usize) -> Self {
        Self {
            step: count.div_ceil(SAMPLED).max(1),
            seen: 0,
            codes: Vec::new(),
        }
    }

    /// Adds a fingerprint to the sample if it is its turn.
    pub(super) fn sample(&mut self, code: u64) {
        if self.seen.is_multiple_of(self.step) {
            self.codes.push(code);
        }
        self.seen += 1;
    }

    /// Permutes the bits of a design according to the sample.
    fn permute_by_sample(&self, design: Design) -> Design {
        let balance = BitBalance::sample(&self.codes, self.codes.len());
        design.permuted(&balance.order())
    }
}

/// Returns a design for few fingerprints: one table more than the radius, but at most four unless the radius is larger than 16.
pub(super) fn small_design(radius: u32, sample: &CodeSample) -> Design {
    // More tables mean smaller budgets, but each takes memory and costs a cache miss. With four tables, budgets beyond a radius of 16 would
    // grow past four, whose probes outnumber the codes of a small run.
    let count = (radius + 1).min(4.max(radius.div_ceil(4)));
    // The budgets plus one for each table add up to the radius plus one (the general pigeonhole principle).
    let left = radius + 1 - count;
    let budgets: Vec<u32> = (0..count)
        .map(|at| left / count + u32::from(at < left % count))
        .collect();
    let design = Design::new(Family::budgets(&budgets), 64, radius);
    sample.permute_by_sample(design.unwrap_or_else(|_| Design::scan(64, radius)))
}

/// Returns the fastest design of packed tables; for many fingerprints, the fastest with as few tables as possible.
pub(super) fn large_design(radius: u32, codes: usize, sample: &CodeSample) -> Design {
    if codes < PLANNING_MIN {
        return small_design(radius, sample);
    }
    // With this many tables, budgets of one are enough for the radius; fewer tables would need budgets of two.
    let fewest = radius as usize / 2 + 1;
    let most = if codes > COMPACT_MIN {
        fewest
    } else {
        fewest.max(4)
    };
    let plans = plan(
        codes as u64,
        64,
        radius,
        &PlanLimits::default(),
        &CostConstants::default(),
    );
    let fitting = plans.into_iter().filter(|costed| {
        costed.layout == Layout::Packed
            && costed.design.tables().len() <= most
            && costed.design.family() != &Family::Scan
    });
    // By assumed instead of measured costs, because a run must be the same file on every machine that merges it.
    let best = fitting.min_by(|a, b| a.costs.query_ns.total_cmp(&b.costs.query_ns));
    best.map_or_else(
        || small_design(radius, sample),
        |costed| sample.permute_by_sample(costed.design),
    )
}

//! Designs of a run's tables: by how many fingerprints there are, and by which of their bits tell them apart.
//!
//! Blocks of neighbouring bits are good addresses where bits are even. A block that all fingerprints share (pages of one template, or
//! fingerprints that somebody made) would be one bucket with all of them, so the bits are dealt out: each block gets its share
//! of those that are split most evenly. Any order of the bits keeps a design complete.

use lookalike_hamming::{BitBalance, CostConstants, Design, Family, Layout, PlanLimits, plan};

/// Fingerprints below which no design is worth the milliseconds of planning.
const FEW: usize = 1 << 14;
/// Documents beyond which tables take as little memory as they can.
const MANY: usize = 1 << 20;
/// Fingerprints that are looked at.
const SAMPLED: usize = 1 << 16;

/// Fingerprints evenly spaced over a run, in the order of its documents.
#[derive(Debug)]
pub(super) struct CodeSample {
    step: usize,
    seen: usize,
    codes: Vec<u64>,
}

impl CodeSample {
    /// A sample of so many fingerprints.
    pub(super) fn of(count: usize) -> Self {
        Self {
            step: count.div_ceil(SAMPLED).max(1),
            seen: 0,
            codes: Vec::new(),
        }
    }

    /// Takes a fingerprint, or lets it pass.
    pub(super) fn see(&mut self, code: u64) {
        if self.seen.is_multiple_of(self.step) {
            self.codes.push(code);
        }
        self.seen += 1;
    }

    /// A design with its bits dealt out by the sample.
    fn dealt(&self, design: Design) -> Design {
        let balance = BitBalance::sample(&self.codes, self.codes.len());
        if balance.worst_bias() == 0.0 {
            return design;
        }
        design.permuted(&balance.order())
    }
}

/// Tables for few fingerprints: as many as there are, up to four, with exact keys.
pub(super) fn small_design(radius: u32, sample: &CodeSample) -> Design {
    // More tables mean exact keys, but each takes memory and a cache miss; beyond a radius of 16 budgets would
    // grow past four, whose probes outnumber the codes of a small run.
    let count = (radius + 1).min(4.max(radius.div_ceil(4)));
    // Budgets with one more for each table add up to the radius plus one: the general pigeonhole principle.
    let left = radius + 1 - count;
    let budgets: Vec<u32> = (0..count)
        .map(|at| left / count + u32::from(at < left % count))
        .collect();
    let design = Design::new(Family::budgets(&budgets), 64, radius);
    sample.dealt(design.unwrap_or_else(|_| Design::scan(64, radius)))
}

/// The fastest design of packed tables, of as few as the radius needs when there are many fingerprints.
pub(super) fn large_design(radius: u32, codes: usize, sample: &CodeSample) -> Design {
    if codes < FEW {
        return small_design(radius, sample);
    }
    // With one more for each table, budgets of one reach the radius with this many; fewer tables need budgets
    // of two.
    let fewest = radius as usize / 2 + 1;
    let most = if codes > MANY { fewest } else { fewest.max(4) };
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
    // By assumed costs, not by measured ones: a run must be the same file on every machine that merges it.
    let best = fitting.min_by(|a, b| a.costs.query_ns.total_cmp(&b.costs.query_ns));
    best.map_or_else(
        || small_design(radius, sample),
        |costed| sample.dealt(costed.design),
    )
}

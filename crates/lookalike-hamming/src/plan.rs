//! The planner: all promising designs for a number of fingerprints, and the cheapest.
//!
//! `plan` makes the designs of the families in `family` for a width and radius, drops those that another of the same kind beats in both number of
//! tables and key length, and computes the costs of the rest in every layout.

use super::cost::{CostConstants, DesignCosts};
use super::design::Design;
use super::family::{BlockGroup, Family, FamilyKind, choose};
use super::layout::Layout;

/// Limits of a plan.
///
/// ```
/// use lookalike_hamming::{CostConstants, PlanLimits, plan};
///
/// let limits = PlanLimits::default().memory_bytes(1 << 30).tables(8);
/// let plans = plan(10_000_000, 64, 3, &limits, &CostConstants::default());
/// let best = plans.iter().find(|costed| costed.cheapest).expect("a gibibyte is enough");
/// assert!(best.fits && best.design.tables().len() <= 8);
/// assert!(best.costs.bytes_per_fingerprint * 1e7 <= (1 << 30) as f64);
/// // What does not fit is listed too, with what it would cost.
/// assert!(plans.iter().any(|costed| !costed.fits));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PlanLimits {
    /// Maximum number of tables.
    pub tables: Option<u32>,
    /// Maximum bytes of all tables.
    pub memory_bytes: Option<u64>,
    /// Minimum bits of the key of every table.
    pub min_prefix_bits: Option<u32>,
    /// Allows only designs of this kind.
    pub kind: Option<FamilyKind>,
    /// The criterion that selects the best of the designs within the limits.
    pub goal: PlanGoal,
}

impl PlanLimits {
    /// Sets the maximum number of tables.
    #[must_use]
    pub fn tables(mut self, tables: impl Into<Option<u32>>) -> Self {
        self.tables = tables.into();
        self
    }

    /// Sets the maximum bytes of all tables.
    #[must_use]
    pub fn memory_bytes(mut self, memory_bytes: impl Into<Option<u64>>) -> Self {
        self.memory_bytes = memory_bytes.into();
        self
    }

    /// Sets the minimum bits of a key.
    #[must_use]
    pub fn min_prefix_bits(mut self, min_prefix_bits: impl Into<Option<u32>>) -> Self {
        self.min_prefix_bits = min_prefix_bits.into();
        self
    }

    /// Allows only designs of one kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Option<FamilyKind>>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Sets the criterion of the best design.
    #[must_use]
    pub fn goal(mut self, goal: PlanGoal) -> Self {
        self.goal = goal;
        self
    }
}

/// Criterion of the best design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanGoal {
    /// The least expected time of a query.
    #[default]
    Time,
    /// The fewest tables; among equals, the least time.
    Tables,
    /// The least memory.
    Memory,
}

impl PlanGoal {
    /// Returns the numbers to minimise, the first before the second.
    fn key(self, costed: &CostedDesign) -> [f64; 2] {
        let costs = &costed.costs;
        match self {
            Self::Time => [costs.query_ns, costs.bytes_per_fingerprint],
            Self::Tables => [costed.design.tables().len() as f64, costs.query_ns],
            Self::Memory => [costs.bytes_per_fingerprint, costs.query_ns],
        }
    }
}

/// A design in a layout, with its costs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CostedDesign {
    /// The design of the tables.
    pub design: Design,
    /// The layout of the tables.
    pub layout: Layout,
    /// The costs of the tables.
    pub costs: DesignCosts,
    /// True if the design is within the limits.
    pub fits: bool,
    /// True if it is the best of those that fit, by [`PlanLimits::goal`]; true for at most one entry.
    pub cheapest: bool,
}

impl CostedDesign {
    /// Computes the costs of a design in a layout for `fingerprints` distinct codes, without limits.
    pub fn of(
        design: Design,
        layout: Layout,
        fingerprints: u64,
        constants: &CostConstants,
    ) -> Self {
        Self {
            costs: DesignCosts::of(&design, layout, fingerprints, constants),
            design,
            layout,
            fits: true,
            cheapest: false,
        }
    }
}

/// Number of tables above which designs are only considered if a limit allows them explicitly.
const MAX_TABLES: u32 = 64;
/// Number of probes per query above which a design never beats a realistic scan.
const MAX_PROBES: f64 = 1e7;

/// Returns all designs for `fingerprints` distinct codes of `bits` bits (32, 64 or 128) and distances up to `radius`, ordered by number of tables,
/// then key length, then layout; the scan comes first.
///
/// The best of those within `limits` is marked: unless another goal is set, the one with the least expected time of a query. Designs outside the
/// limits are listed with `fits` false, so that a caller can show what they would cost. Without limits at least the scan fits; with limits, it may be
/// that nothing fits and no design is marked. Takes a few milliseconds for radii up to 16. A radius beyond `bits` counts as `bits`.
pub fn plan(
    fingerprints: u64,
    bits: u32,
    radius: u32,
    limits: &PlanLimits,
    constants: &CostConstants,
) -> Vec<CostedDesign> {
    let most_tables = limits.tables.unwrap_or(MAX_TABLES);
    // A low limit hides no design: those beyond it are listed as not fitting.
    let designs = designs(bits, radius, most_tables.max(MAX_TABLES));
    cost_all(fingerprints, designs, limits, constants, MAX_PROBES)
}

/// Like [`plan`], for these designs only, however many probes they take.
pub fn plan_of(
    fingerprints: u64,
    designs: Vec<Design>,
    limits: &PlanLimits,
    constants: &CostConstants,
) -> Vec<CostedDesign> {
    cost_all(fingerprints, designs, limits, constants, f64::INFINITY)
}

fn cost_all(
    fingerprints: u64,
    designs: Vec<Design>,
    limits: &PlanLimits,
    constants: &CostConstants,
    most_probes: f64,
) -> Vec<CostedDesign> {
    let mut plan = Vec::new();
    for design in designs {
        // Each layout is priced by itself, because the best one depends on the number of fingerprints, not on the keys.
        for layout in Layout::ALL {
            let is_scan = design.family() == &Family::Scan;
            let mut costed = CostedDesign::of(design.clone(), layout, fingerprints, constants);
            // A scan reads its only bucket whole, at the same cost in every layout.
            if costed.costs.probes > most_probes || (is_scan && layout != Layout::Packed) {
                continue;
            }
            costed.fits = limits.allow(&design, &costed.costs, fingerprints);
            plan.push(costed);
        }
    }
    let least = |costed: &CostedDesign| limits.goal.key(costed);
    let fitting = plan.iter_mut().filter(|costed| costed.fits);
    let best = fitting.min_by(|a, b| {
        let ([a, then_a], [b, then_b]) = (least(a), least(b));
        a.total_cmp(&b).then(then_a.total_cmp(&then_b))
    });
    if let Some(best) = best {
        best.cheapest = true;
    }
    plan
}

impl PlanLimits {
    fn allow(&self, design: &Design, costs: &DesignCosts, fingerprints: u64) -> bool {
        let bytes = costs.bytes_per_fingerprint * fingerprints as f64;
        let is_scan = design.family() == &Family::Scan;
        self.tables
            .is_none_or(|most| design.tables().len() <= most as usize)
            && self.memory_bytes.is_none_or(|most| bytes <= most as f64)
            && self
                .min_prefix_bits
                .is_none_or(|least| design.prefix_range().0 >= least)
            && self.kind.is_none_or(|kind| design.family().kind() == kind)
            && !(is_scan && self.min_prefix_bits.is_some())
    }
}

/// Returns the designs on the frontier of their kind.
///
/// ```
/// use lookalike_hamming::{Family, designs};
///
/// let all = designs(64, 3, 16);
/// assert_eq!(all[0].family(), &Family::Scan);
/// assert!(all.iter().all(|design| design.tables().len() <= 16 && design.is_complete()));
/// ```
///
/// They have at most `most_tables` tables; the scan is first. A radius beyond `bits` counts as `bits`.
///
/// Of two designs of one kind and one error budget, only the one with fewer tables or longer keys is kept.
pub fn designs(bits: u32, radius: u32, most_tables: u32) -> Vec<Design> {
    let radius = radius.min(bits).min(128);
    let mut all: Vec<Design> = promising(bits, radius, most_tables)
        .into_iter()
        .filter_map(|family| Design::new(family, bits, radius).ok())
        .collect();
    // A design that may beat another comes before it: fewer tables, then longer keys.
    all.sort_by_key(|design| {
        let (shortest, longest) = design.prefix_range();
        let length = std::cmp::Reverse((shortest, longest));
        let keyed = design.family() != &Family::Scan;
        (keyed, design.tables().len(), length, design.budget())
    });
    let mut kept: Vec<Design> = Vec::new();
    for design in all {
        if !kept.iter().any(|earlier| beats(earlier, &design)) {
            kept.push(design);
        }
    }
    kept
}

/// Returns the families that no other clearly beats. Estimated key lengths are off by a bit or so, and making every design would take seconds for a
/// radius of 16.
fn promising(bits: u32, radius: u32, most_tables: u32) -> Vec<Family> {
    let families = families(bits, radius, most_tables);
    let estimate = |family: &Family| {
        let prefix = f64::from(bits) * family.prefix_share(radius);
        (
            family.kind(),
            family.table_count(radius),
            prefix,
            family.budget(),
        )
    };
    let estimates: Vec<_> = families.iter().map(estimate).collect();
    let beaten = |&(kind, tables, prefix, budget): &(FamilyKind, u64, f64, u32)| {
        estimates.iter().any(|other| {
            // Two bits of slack, because estimates ignore that blocks are whole bits.
            other.0 == kind && other.1 <= tables && other.2 > prefix + 2.0 && other.3 <= budget
        })
    };
    let both = families.iter().zip(&estimates);
    both.filter(|(_, estimate)| !beaten(estimate))
        .map(|(family, _)| family.clone())
        .collect()
}

/// Returns true if `design`, which has no more tables than `other`, makes `other` pointless.
fn beats(design: &Design, other: &Design) -> bool {
    let comparable = match (design.family().kind(), other.family().kind()) {
        (FamilyKind::Budgets, FamilyKind::Budgets) => design.budget() <= other.budget(),
        // The paper's designs stay, although covers beat them, because they are well known.
        (FamilyKind::Blocks, kind) => kind == FamilyKind::Blocks || kind == FamilyKind::Covers,
        (a, b) => a == b,
    };
    comparable && design.prefix_range().0 >= other.prefix_range().0
}

/// Returns a few families of exact designs that suit a self-join, for codes of any width.
pub(super) fn exact_families(radius: u32, most_tables: u32) -> Vec<Family> {
    let mut families = vec![Family::Affine, Family::Projective];
    families.extend((radius == 3).then_some(Family::Biplane));
    families.extend((1..=8).map(|extra| Family::block_choice(radius + extra, radius)));
    // Each group has a table at least.
    for groups in 2..=(radius + 1).min(most_tables) {
        // The most even partition of k + 1.
        let errors = |i| (radius + 1) / groups + u32::from(i < (radius + 1) % groups) - 1;
        for extra in 1..=4 {
            let blocks = |errors| if errors == 0 { 1 } else { errors + extra };
            let shapes: Vec<_> = (0..groups).map(errors).map(|t| (t, blocks(t))).collect();
            families.push(Family::exact_groups(&shapes));
        }
    }
    families.retain(|family| family.table_count(radius) <= u64::from(most_tables));
    families
}

fn families(bits: u32, radius: u32, most_tables: u32) -> Vec<Family> {
    let mut families = vec![
        Family::Scan,
        Family::Biplane,
        Family::Affine,
        Family::Projective,
    ];
    families.extend(single_groups(bits, radius, most_tables));
    families.extend(nestings(bits, radius, most_tables));
    for parts in useful_partitions(radius + 1, most_tables) {
        families.extend(groupings(&parts));
    }
    families.retain(|family| family.table_count(radius) <= u64::from(most_tables));
    families
}

/// Returns every choice of some of up to 16 blocks, exact or within a budget.
fn single_groups(bits: u32, radius: u32, most_tables: u32) -> Vec<Family> {
    let shapes =
        (1..=bits.min(16)).flat_map(|blocks| (1..=blocks).map(move |chosen| (blocks, chosen)));
    let groups = shapes.map(|(blocks, chosen)| BlockGroup {
        errors: radius,
        blocks,
        chosen,
    });
    let few = groups.filter(|group| group.tables() <= u64::from(most_tables));
    few.map(|group| Family::Groups(vec![group])).collect()
}

/// Returns two or three levels of block choice, ascending.
fn nestings(bits: u32, radius: u32, most_tables: u32) -> Vec<Family> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(levels) = open.pop() {
        // Ascending, because the order of levels changes neither the number of tables nor the length of keys.
        let least = levels.last().copied().unwrap_or(radius + 1);
        for blocks in least..=bits.min(32) {
            let mut levels: Vec<u32> = levels.clone();
            levels.push(blocks);
            let tables = levels
                .iter()
                .map(|&r| choose(r, radius))
                .fold(1, u64::saturating_mul);
            // More blocks only take more tables.
            if radius == 0 || tables > u64::from(most_tables) {
                break;
            }
            if levels.len() > 1 {
                found.push(Family::Nested(levels.clone()));
            }
            if levels.len() < 3 {
                open.push(levels);
            }
        }
    }
    found
}

/// Number of parts up to which uneven partitions are tried. Uneven ones of more parts never win, because their largest group sets the key length.
const MAX_UNEVEN_PARTS: u32 = 4;
/// Number up to which uneven partitions are tried: those of larger ones are too many, and beyond this radius a scan is faster anyway.
const MAX_UNEVEN_TOTAL: u32 = 33;

/// Returns the partitions of `total` into 2 to `most` descending parts that may give good designs, the largest parts first.
fn useful_partitions(total: u32, most: u32) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = (2..=total.min(most))
        .map(|parts| even_partition(total, parts))
        .collect();
    if total <= MAX_UNEVEN_TOTAL {
        all.extend(partitions(total, total, most.min(MAX_UNEVEN_PARTS)));
    }
    all.retain(|parts| parts.len() > 1);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all
}

fn even_partition(total: u32, parts: u32) -> Vec<u32> {
    let part = |i| total / parts + u32::from(i < total % parts);
    (0..parts).map(part).collect()
}

/// Returns the partitions of `total` into at most `most` descending parts of at most `largest`.
fn partitions(total: u32, largest: u32, most: u32) -> Vec<Vec<u32>> {
    if total == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    if most > 0 {
        for first in (1..=largest.min(total)).rev() {
            for rest in partitions(total - first, first, most - 1) {
                all.push([vec![first], rest].concat());
            }
        }
    }
    all
}

/// Returns families of groups that each take one error less than a part; groups of equal size are treated alike. Each size is probed whole within its
/// budget, or exactly with one to four blocks more than errors.
fn groupings(parts: &[u32]) -> Vec<Family> {
    let (most, least) = (parts[0], parts[parts.len() - 1]);
    let group = |part: u32, extra: u32| {
        let errors = part - 1;
        if extra == 0 || errors == 0 {
            BlockGroup {
                errors,
                blocks: 1,
                chosen: 1,
            }
        } else {
            BlockGroup {
                errors,
                blocks: errors + extra,
                chosen: extra,
            }
        }
    };
    // The largest and the smallest parts each have their own way; those in between follow the largest.
    let family = |large: u32, small: u32| {
        let way = |&part: &u32| group(part, if part == least { small } else { large });
        Family::Groups(parts.iter().map(way).collect())
    };
    let small_ways = if most == least { 0..=0 } else { 0..=4 };
    let ways = (0..=4).flat_map(|large| small_ways.clone().map(move |small| (large, small)));
    ways.map(|(large, small)| family(large, if most == least { large } else { small }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_four() {
        let expected: [&[u32]; 5] = [&[4], &[3, 1], &[2, 2], &[2, 1, 1], &[1, 1, 1, 1]];
        assert_eq!(partitions(4, 4, 4), expected);
        assert_eq!(partitions(17, 17, 17).len(), 297);
    }

    #[test]
    fn useful_partitions_are_those_of_few_parts_and_the_even_ones() {
        for total in 1..=17 {
            for most in [1, 3, 8, 64] {
                let mut expected = partitions(total, total, most);
                expected.retain(|parts| match parts.as_slice() {
                    [] | [_] => false,
                    [_, .., last] => parts.len() <= 4 || parts[0] - last <= 1,
                });
                assert_eq!(useful_partitions(total, most), expected, "{total} {most}");
            }
        }
    }

    /// Regression test: all partitions of the radius were listed, which took 6 seconds at 52 and did not end at 64.
    #[test]
    fn plans_of_large_radii_did_not_end() {
        for radius in [40, 52, 64, 127, 128, u32::MAX] {
            for bits in [32, 64, 128] {
                let all = designs(bits, radius, u32::MAX);
                assert_eq!(all[0].family(), &Family::Scan);
                assert_eq!(all[0].radius(), radius.min(bits));
                let limits = PlanLimits::default();
                let plans = plan(1_000, bits, radius, &limits, &CostConstants::default());
                assert!(plans.iter().any(|costed| costed.cheapest));
            }
        }
    }
}

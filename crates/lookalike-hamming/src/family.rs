//! The families of designs, and the tables of each.
//!
//! | family | source | tables for k = 3, f = 64 |
//! |---|---|---|
//! | block choice | section 3.1: r blocks, key = r - k of them | 4, 10, 20, ... |
//! | nested | section 3.1.2: block choice among the bits that block choice left over | 16 (4 of 4) |
//! | budgets | general pigeonhole: groups of bits with budgets `t`, sum of `t + 1` = k + 1 | 2 (1, 1) |
//! | groups | the same, with a block choice inside each group | 6 (two triangles), 8 (4 + 4) |
//! | biplane | the symmetric design 2-(11, 5, 2) | 11, key 29 bits |
//! | affine | hyperplanes of AG(k, 2); for k = 3 the Steiner system S(3, 4, 8) | 14, key 32 bits |
//! | projective | complements of the hyperplanes of PG(k, 2) | 15, key 34 bits |
//!
//! Every family cuts the bits into nearly equal runs, the longer ones first.

use super::table_key::TableKey;
use std::fmt;
use std::str::FromStr;

/// Construction of a design.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// One table without a key.
    Scan,
    /// Groups of bits; see [`BlockGroup`]. One group is the block choice of the paper (Manku et al. 2007, section 3.1).
    Groups(Vec<BlockGroup>),
    /// Block choice in levels (Manku et al. 2007, section 3.1.2): at each level the bits that are not yet in the key are cut into this many blocks,
    /// all but k of which join the key.
    Nested(Vec<u32>),
    /// Eleven runs of bits; the keys are the blocks of the biplane 2-(11, 5, 2); k = 3.
    Biplane,
    /// 2^k runs of bits; the keys are the 2 (2^k - 1) hyperplanes of the affine space AG(k, 2): any k points lie on a hyperplane, so its parallel
    /// avoids them.
    Affine,
    /// 2^(k+1) - 1 runs of bits; the keys are the complements of the hyperplanes of the projective space PG(k, 2).
    Projective,
}

/// Group of bits that may hold at most `errors` of the errors.
///
/// By the pigeonhole principle k errors leave some group with no more than its `errors` if the sum of `errors + 1` over the groups is k + 1. The
/// group is cut into `blocks`, and every choice of `chosen` of them is the key of a table, which is probed at every key within
/// [`BlockGroup::budget`].
///
/// ```
/// use lookalike_hamming::BlockGroup;
///
/// // Six blocks, of which three errors spoil three at most: every choice of three others is a table.
/// let paper = BlockGroup { errors: 3, blocks: 6, chosen: 3 };
/// assert_eq!((paper.tables(), paper.budget()), (20, 0));
/// // Two halves: one of them has no more than one of three errors.
/// let halves = BlockGroup { errors: 3, blocks: 2, chosen: 1 };
/// assert_eq!((halves.tables(), halves.budget()), (2, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockGroup {
    /// Number of errors that the group may hold.
    pub errors: u32,
    /// Number of blocks that the group is cut into, at least one.
    pub blocks: u32,
    /// Number of blocks that make a key: 1 to `blocks`.
    pub chosen: u32,
}

impl BlockGroup {
    /// Returns the number of errors that the best choice of blocks may still hold: those of the `chosen` cleanest blocks if the errors are spread as
    /// evenly as possible.
    pub fn budget(&self) -> u32 {
        // The worst case for the cleanest blocks is an even spread: `extra` blocks hold one error more, and the choice avoids them as long as it can.
        // Without blocks, which no design has, there is no key that could hold an error.
        let Some(each) = self.errors.checked_div(self.blocks) else {
            return 0;
        };
        let extra = self.errors % self.blocks;
        let more = self.chosen.saturating_sub(self.blocks - extra);
        each.saturating_mul(self.chosen).saturating_add(more)
    }

    /// Returns true if some of the blocks, or all, make a key.
    pub(super) fn is_well_formed(&self) -> bool {
        (1..=self.blocks).contains(&self.chosen)
    }

    /// Returns the number of tables of the group: `blocks` choose `chosen`.
    pub fn tables(&self) -> u64 {
        choose(self.blocks, self.chosen)
    }
}

/// Class of families that the planner shows separately.
///
/// ```
/// use lookalike_hamming::FamilyKind;
///
/// assert_eq!("cover".parse(), Ok(FamilyKind::Covers));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FamilyKind {
    /// No key.
    Scan,
    /// Constructions of the paper: block choice and nested block choice, exact probes.
    Blocks,
    /// Probes that tolerate errors in the key.
    Budgets,
    /// Exact probes of better covers than block choice.
    Covers,
}

impl FamilyKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Scan, Self::Blocks, Self::Budgets, Self::Covers];

    /// Returns the lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Blocks => "blocks",
            Self::Budgets => "budgets",
            Self::Covers => "cover",
        }
    }
}

impl fmt::Display for FamilyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for a text that is not the name of a kind of families.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind {0:?}: use blocks, budgets, cover or scan")]
pub struct ParseFamilyKindError(String);

impl FromStr for FamilyKind {
    type Err = ParseFamilyKindError;

    fn from_str(text: &str) -> Result<Self, ParseFamilyKindError> {
        let named = Self::ALL.into_iter().find(|kind| kind.name() == text);
        named.ok_or_else(|| ParseFamilyKindError(text.to_owned()))
    }
}

impl Family {
    /// Creates the block choice of the paper (Manku et al. 2007, section 3.1): keys are all but `radius` of `blocks` blocks.
    pub fn block_choice(blocks: u32, radius: u32) -> Self {
        let chosen = blocks.saturating_sub(radius);
        Self::Groups(vec![BlockGroup {
            errors: radius,
            blocks,
            chosen,
        }])
    }

    /// Creates one table for each group of bits, with these error budgets (the general pigeonhole).
    pub fn budgets(budgets: &[u32]) -> Self {
        let group = |&errors| BlockGroup {
            errors,
            blocks: 1,
            chosen: 1,
        };
        Self::Groups(budgets.iter().map(group).collect())
    }

    /// Creates groups, given as `(errors, blocks)`, each with the block choice that leaves out as many blocks as it may hold errors.
    pub fn exact_groups(groups: &[(u32, u32)]) -> Self {
        let group = |&(errors, blocks): &(u32, u32)| BlockGroup {
            errors,
            blocks,
            chosen: blocks.saturating_sub(errors),
        };
        Self::Groups(groups.iter().map(group).collect())
    }

    /// Returns the class under which the family is shown.
    pub fn kind(&self) -> FamilyKind {
        match self {
            Self::Scan => FamilyKind::Scan,
            Self::Nested(_) => FamilyKind::Blocks,
            Self::Groups(groups) if groups.iter().any(|group| group.budget() > 0) => {
                FamilyKind::Budgets
            }
            Self::Groups(groups) if groups.len() == 1 => FamilyKind::Blocks,
            // k + 1 groups, one of which has no error: the block choice of k + 1 blocks, one of which is the key.
            Self::Groups(groups) if groups.iter().all(|group| group.errors == 0) => {
                FamilyKind::Blocks
            }
            _ => FamilyKind::Covers,
        }
    }

    /// Returns the number of tables of the family for a radius, without making them.
    pub fn table_count(&self, radius: u32) -> u64 {
        match self {
            Self::Scan => 1,
            Self::Groups(groups) => groups
                .iter()
                .map(BlockGroup::tables)
                .fold(0, u64::saturating_add),
            Self::Nested(levels) => levels
                .iter()
                .map(|&r| choose(r, radius))
                .fold(1, u64::saturating_mul),
            Self::Biplane => 11,
            // Limited only so that the shift does not overflow: nobody builds so many tables.
            Self::Affine => 2 * ((1 << radius.min(60)) - 1),
            Self::Projective => (1 << (radius.min(60) + 1)) - 1,
        }
    }

    /// Returns the largest error budget of a table.
    pub(super) fn budget(&self) -> u32 {
        match self {
            Self::Groups(groups) => groups.iter().map(BlockGroup::budget).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the length of a key as a share of the bits, before blocks are rounded to whole bits.
    pub(super) fn prefix_share(&self, radius: u32) -> f64 {
        let radius = f64::from(radius);
        match self {
            Self::Scan => 0.0,
            Self::Groups(groups) => {
                // `shares` makes all keys equally long: a group gets bits in proportion to blocks / chosen, and a key has chosen / blocks of them.
                let part = |group: &BlockGroup| f64::from(group.blocks) / f64::from(group.chosen);
                1.0 / groups.iter().map(part).sum::<f64>()
            }
            Self::Nested(levels) => {
                // Each level leaves k / r of the bits outside of the key (`nested`).
                1.0 - levels
                    .iter()
                    .map(|&blocks| radius / f64::from(blocks))
                    .product::<f64>()
            }
            Self::Biplane => 5.0 / 11.0,
            Self::Affine => 0.5,
            // A hyperplane leaves out 2^k of the 2^(k+1) - 1 points.
            Self::Projective => radius.exp2() / (2.0 * radius.exp2() - 1.0),
        }
    }

    /// Returns the tables for this width and radius, or the reason why there are none.
    pub(super) fn tables(&self, bits: u32, radius: u32) -> Result<Vec<TableKey>, &'static str> {
        const MOST: u64 = 1 << 16;
        if self.table_count(radius) > MOST {
            return Err("it would take more than 65536 tables");
        }
        let all = low_mask(bits);
        let masks = match self {
            Self::Scan => Some(vec![0]),
            Self::Groups(groups) => return grouped(groups, bits, radius),
            Self::Nested(levels) => nested(all, levels, radius),
            Self::Biplane if radius == 3 => biplane(all),
            Self::Biplane => return Err("it is for distance 3 only"),
            Self::Affine if radius > 0 => affine(all, radius),
            Self::Affine => return Err("it is for distance 1 or more"),
            Self::Projective => projective(all, radius),
        };
        let keys = masks.ok_or(NO_FIT)?.into_iter();
        Ok(keys.map(|mask| TableKey { mask, budget: 0 }).collect())
    }
}

/// Text for people; [`Family::named`] parses [`Family::name`].
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scan => f.pad("linear scan"),
            Self::Biplane => f.pad("biplane (11,5,2)"),
            Self::Affine => f.pad("affine hyperplanes"),
            Self::Projective => f.pad("projective hyperplanes"),
            Self::Nested(levels) => {
                let levels: Vec<_> = levels.iter().map(u32::to_string).collect();
                f.pad(&format!("nested {} blocks", levels.join(", then ")))
            }
            Self::Groups(groups) => {
                let parts: Vec<_> = groups.iter().map(group_text).collect();
                f.pad(&parts.join(" + "))
            }
        }
    }
}

fn group_text(group: &BlockGroup) -> String {
    let BlockGroup { blocks, chosen, .. } = group;
    let key = match (blocks, chosen) {
        (1, _) => "whole".to_owned(),
        _ => format!("{chosen} of {blocks} blocks"),
    };
    match group.budget() {
        0 => key,
        budget => format!("{key} within {budget}"),
    }
}

/// Computes `n` choose `k`, saturating.
pub(super) fn choose(n: u32, k: u32) -> u64 {
    if k > n {
        return 0;
    }
    // After each step the product is n choose i + 1, so every division is exact.
    let product = (0..k.min(n - k)).try_fold(1_u128, |product, i| {
        Some(product.checked_mul(u128::from(n - i))? / u128::from(i + 1))
    });
    product
        .and_then(|product| u64::try_from(product).ok())
        .unwrap_or(u64::MAX)
}

/// Returns a mask of the lowest `bits` bits, at most 128.
pub(super) fn low_mask(bits: u32) -> u128 {
    if bits >= 128 {
        u128::MAX
    } else {
        (1 << bits) - 1
    }
}

/// Cuts a set of bits, from the highest down, into `count` runs of nearly equal length, the longer ones first; `None` if there are fewer bits than
/// runs.
pub(super) fn cut(bits: u128, count: u32) -> Option<Vec<u128>> {
    let total = bits.count_ones();
    let sizes = (0..count).map(|i| (total / count) + u32::from(i < total % count));
    (1..=total)
        .contains(&count)
        .then(|| cut_to_sizes(bits, sizes))
}

fn cut_to_sizes(mut bits: u128, sizes: impl Iterator<Item = u32>) -> Vec<u128> {
    let take = |size| {
        let mut run = 0;
        for _ in 0..size {
            let highest = bits.checked_ilog2().map_or(0, |bit| 1 << bit);
            run |= highest;
            bits &= !highest;
        }
        run
    };
    sizes.map(take).collect()
}

/// Returns the union of every choice of `chosen` of the blocks, in lexicographic order.
fn unions(blocks: &[u128], chosen: u32) -> Vec<u128> {
    if chosen == 0 {
        return vec![0];
    }
    let Some((first, rest)) = blocks
        .split_first()
        .filter(|_| chosen as usize <= blocks.len())
    else {
        return Vec::new();
    };
    let with = unions(rest, chosen - 1)
        .into_iter()
        .map(|union| union | first);
    with.chain(unions(rest, chosen)).collect()
}

/// Reason that there are no tables for a width.
const NO_FIT: &str = "its blocks do not fit the bits";

fn grouped(groups: &[BlockGroup], bits: u32, radius: u32) -> Result<Vec<TableKey>, &'static str> {
    // The pigeonhole: if every group exceeded what it may hold, there would be at least this many errors.
    let errors = |group: &BlockGroup| u64::from(group.errors) + 1;
    let errors: u64 = groups.iter().map(errors).sum();
    // A smaller sum would lose pairs, a larger one would search for more than is asked.
    if errors != u64::from(radius) + 1 {
        return Err("its groups hold another number of errors");
    }
    if !groups.iter().all(BlockGroup::is_well_formed) {
        return Err("its keys have no blocks, or more than there are");
    }
    let mut tables = Vec::new();
    for (group, share) in groups.iter().zip(shares(groups, bits).ok_or(NO_FIT)?) {
        let keys = unions(&cut(share, group.blocks).ok_or(NO_FIT)?, group.chosen);
        let key = |mask| TableKey {
            mask,
            budget: group.budget(),
        };
        tables.extend(keys.into_iter().map(key));
    }
    Ok(tables)
}

/// Distributes the bits over the groups so that all keys are about equally long: a group whose keys are a part of its blocks needs more bits.
fn shares(groups: &[BlockGroup], bits: u32) -> Option<Vec<u128>> {
    let weight = |group: &BlockGroup| f64::from(group.blocks) / f64::from(group.chosen);
    let total: f64 = groups.iter().map(weight).sum();
    let mut upto = 0.0;
    // Ends are rounded, not sizes, so that all bits are used.
    let ends = groups.iter().map(|group| {
        upto += weight(group);
        (f64::from(bits) * upto / total).round() as u32
    });
    let ends: Vec<_> = ends.collect();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let sizes: Vec<_> = starts.zip(&ends).map(|(start, end)| end - start).collect();
    let enough = sizes
        .iter()
        .zip(groups)
        .all(|(&size, group)| size >= group.blocks);
    enough.then(|| cut_to_sizes(low_mask(bits), sizes.into_iter()))
}

fn nested(free: u128, levels: &[u32], radius: u32) -> Option<Vec<u128>> {
    let Some((&blocks, deeper)) = levels.split_first() else {
        return Some(vec![0]);
    };
    let chosen = blocks.checked_sub(radius).filter(|&chosen| chosen > 0)?;
    let mut masks = Vec::new();
    for leading in unions(&cut(free, blocks)?, chosen) {
        let below = nested(free & !leading, deeper, radius)?;
        masks.extend(below.into_iter().map(|mask| leading | mask));
    }
    Some(masks)
}

/// Returns the blocks of 2-(11, 5, 2): the quadratic residues modulo 11, shifted. A point is in five blocks, two points are in two, so three points
/// meet at most ten of the eleven.
fn biplane(bits: u128) -> Option<Vec<u128>> {
    let runs = cut(bits, 11)?;
    let block = |shift: usize| {
        // Paley's difference set: every non-zero residue modulo 11 is the difference of two of these in exactly two ways.
        let residues = [1, 3, 4, 5, 9].into_iter();
        residues.fold(0, |mask, residue| mask | runs[(residue + shift) % 11])
    };
    Some((0..11).map(block).collect())
}

fn affine(bits: u128, dimension: u32) -> Option<Vec<u128>> {
    let points = 1_u32.checked_shl(dimension)?;
    let runs = cut(bits, points)?;
    let mut masks = Vec::new();
    for normal in 1..points {
        // A hyperplane and its parallel: errors that lie on one of them leave the other clean. Any k points of AG(k, 2) lie on some hyperplane,
        // because k vectors span at most k of the k + 1 dimensions of the affine functions. Its parallel is clean.
        masks.extend([0, 1].map(|side| hyperplane(&runs, 0, normal, side)));
    }
    Some(masks)
}

fn projective(bits: u128, dimension: u32) -> Option<Vec<u128>> {
    let points = 1_u32.checked_shl(dimension + 1)?;
    let runs = cut(bits, points - 1)?;
    // The longer runs go to a basis first, which no hyperplane contains, so that every key gets one of them.
    let mut order: Vec<u32> = (1..points).collect();
    order.sort_by_key(|point| point.count_ones());
    let mut by_point: Vec<_> = order.into_iter().zip(runs).collect();
    by_point.sort_unstable();
    let runs: Vec<_> = by_point.into_iter().map(|(_, run)| run).collect();
    Some(
        (1..points)
            .map(|normal| hyperplane(&runs, 1, normal, 1))
            .collect(),
    )
}

/// Returns the union of the runs whose point `x`, counted from `first`, has `normal . x = side` over GF(2).
fn hyperplane(runs: &[u128], first: u32, normal: u32, side: u32) -> u128 {
    let on_side = (first..)
        .zip(runs)
        // The parity of the common bits is the dot product over GF(2).
        .filter(|(x, _)| (normal & x).count_ones() % 2 == side);
    on_side.fold(0, |mask, (_, run)| mask | run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_as_in_the_paper() {
        let sizes = |count| -> Vec<u32> {
            cut(low_mask(64), count)
                .unwrap()
                .iter()
                .map(|run| run.count_ones())
                .collect()
        };
        assert_eq!(sizes(6), [11, 11, 11, 11, 10, 10]);
        assert_eq!(sizes(5), [13, 13, 13, 13, 12]);
        assert_eq!(sizes(4), [16; 4]);
        assert_eq!(cut(low_mask(64), 4).unwrap()[0], 0xffff << 48);
        assert_eq!(cut(0b111, 4), None);
        assert_eq!(cut(0b111, 0), None);
    }

    #[test]
    fn binomials() {
        assert_eq!(choose(6, 3), 20);
        assert_eq!(choose(3, 3), 1);
        assert_eq!(choose(3, 4), 0);
        assert_eq!(choose(64, 32), 1_832_624_140_942_590_534);
        assert_eq!(choose(128, 64), u64::MAX);
    }

    #[test]
    fn budgets_of_groups() {
        let budget = |errors, blocks, chosen| {
            BlockGroup {
                errors,
                blocks,
                chosen,
            }
            .budget()
        };
        assert_eq!(budget(3, 6, 3), 0);
        assert_eq!(budget(3, 2, 1), 1);
        assert_eq!(budget(3, 1, 1), 3);
        assert_eq!(budget(8, 5, 1), 1);
        assert_eq!(budget(5, 4, 2), 2);
        assert_eq!(budget(5, 3, 2), 3);
    }
}

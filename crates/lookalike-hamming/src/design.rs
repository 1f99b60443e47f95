//! Designs: which bits of a code are the key of each table, and how many errors a probe tolerates.
//!
//! A design for codes of `bits` bits and a radius `k` is a list of [`TableKey`]s. It is *complete*
//! when every set of at most `k` wrong bits is seen by some table, that is, has at most `budget`
//! wrong bits under that table's mask: then probing each table at all keys within its budget finds
//! every code within distance `k`. [`Design::is_complete`] checks this by program, for every
//! family. The families stand in `family`, what they cost in `plan`.

use super::family::Family;
use super::table_key::TableKey;
use std::collections::BTreeMap;

/// A complete set of tables for one width and radius.
///
/// ```
/// use lookalike_hamming::{Design, Family};
///
/// // Two tables, each keyed by a half of the code, of which one bit may be wrong.
/// let design = Design::new(Family::budgets(&[1, 1]), 64, 3)?;
/// assert_eq!((design.tables().len(), design.prefix_range()), (2, (32, 32)));
/// assert!(design.is_complete());
/// // Four errors can be two in each half, which neither table sees.
/// assert!(!design.tables().iter().any(|table| table.sees(0x3_0000_0003)));
/// # Ok::<(), lookalike_hamming::NoSuchDesign>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    bits: u32,
    radius: u32,
    family: Family,
    tables: Vec<TableKey>,
}

/// A width or radius that no design of a family exists for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no design {family} for {bits}-bit codes at distance {radius}: {reason}")]
pub struct NoSuchDesign {
    family: String,
    bits: u32,
    radius: u32,
    reason: &'static str,
}

impl Design {
    /// The design of a family, or an error when the family has none for this width and radius.
    ///
    /// `bits` is 1 to 128 (indexes take 32, 64 and 128); `radius` at most `bits`.
    ///
    /// # Errors
    ///
    /// [`NoSuchDesign`] when the blocks of the family do not fit the width, or its budgets do not
    /// fit the radius.
    pub fn new(family: Family, bits: u32, radius: u32) -> Result<Self, NoSuchDesign> {
        let tables = match (1..=128).contains(&bits) {
            true => family.tables(bits, radius),
            false => Err("codes have 1 to 128 bits"),
        };
        let tables = tables.map_err(|reason| NoSuchDesign {
            family: family.name(),
            bits,
            radius,
            reason,
        })?;
        Ok(Self {
            bits,
            radius,
            family,
            tables,
        })
    }

    /// One table without a key: every query reads every code.
    pub fn scan(bits: u32, radius: u32) -> Self {
        let tables = vec![TableKey { mask: 0, budget: 0 }];
        Self {
            bits,
            radius,
            family: Family::Scan,
            tables,
        }
    }

    /// A design whose tables were stored.
    pub(super) fn stored(bits: u32, radius: u32, family: Family, tables: Vec<TableKey>) -> Self {
        Self {
            bits,
            radius,
            family,
            tables,
        }
    }

    /// Width of the codes.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The largest distance that is answered completely; inclusive.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// Construction of the tables.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The tables, in the order in which they are probed.
    pub fn tables(&self) -> &[TableKey] {
        &self.tables
    }

    /// Length of the shortest and the longest key.
    pub fn prefix_range(&self) -> (u32, u32) {
        let lengths = self.tables.iter().map(TableKey::prefix_bits);
        (
            lengths.clone().min().unwrap_or(0),
            lengths.max().unwrap_or(0),
        )
    }

    /// The largest error budget of a table: 0 when every probe is for an exact key.
    pub fn budget(&self) -> u32 {
        self.tables
            .iter()
            .map(|table| table.budget)
            .max()
            .unwrap_or(0)
    }

    /// The same design with its bits renamed: bit `i` becomes bit `order[i]`.
    ///
    /// Any renaming keeps a design complete, so bits that carry little information can be dealt out
    /// evenly over the tables; `entropy` finds such an order.
    ///
    /// # Panics
    ///
    /// When `order` is not a permutation of `0..bits`.
    #[must_use]
    pub fn permuted(&self, order: &[u32]) -> Self {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(
            sorted.iter().copied().eq(0..self.bits),
            "order must be a permutation of the bits"
        );
        let rename = |mask: u128| {
            let set = (0..self.bits).filter(|&bit| mask >> bit & 1 == 1);
            set.fold(0, |renamed, bit| renamed | 1 << order[bit as usize])
        };
        let renamed = self.tables.iter().map(|key| TableKey {
            mask: rename(key.mask),
            ..*key
        });
        Self {
            tables: renamed.collect(),
            family: self.family.clone(),
            ..*self
        }
    }

    /// Returns true if every set of at most `radius` wrong bits is seen by a table.
    ///
    /// Bits that lie under the same masks are alike, so it is enough to try every way to deal
    /// `radius` errors over those classes: C(classes + radius, radius) patterns, in general a few
    /// thousand. For tests and for designs from elsewhere: what [`Design::new`] makes is complete.
    pub fn is_complete(&self) -> bool {
        // Twenty tables cut 64 bits into some ten to twenty classes: patterns of errors are counted by class,
        // not by bit.
        let mut classes: BTreeMap<Vec<bool>, u32> = BTreeMap::new();
        for bit in 0..self.bits {
            let under = self
                .tables
                .iter()
                .map(|table| table.mask >> bit & 1 == 1)
                .collect();
            *classes.entry(under).or_default() += 1;
        }
        let classes: Vec<_> = classes.into_iter().collect();
        let mut left: Vec<_> = self
            .tables
            .iter()
            .map(|table| i64::from(table.budget))
            .collect();
        seen_by_some(&classes, self.radius, &mut left)
    }
}

/// Returns true if, for every way to deal `errors` over the classes, some table keeps its budget; `left` is
/// what the errors dealt so far have left of each.
fn seen_by_some(classes: &[(Vec<bool>, u32)], errors: u32, left: &mut [i64]) -> bool {
    // A table that can take all errors that are left sees them wherever they fall.
    if left.iter().any(|&left| left >= i64::from(errors)) {
        return true;
    }
    let Some(((under, size), rest)) = classes.split_first() else {
        return left.iter().any(|&left| left >= 0);
    };
    let charge = |errors: i64, left: &mut [i64]| {
        for (left, &under) in left.iter_mut().zip(under) {
            *left -= if under { errors } else { 0 };
        }
    };
    // Fewer errors than the radius are easier to see, so the last class takes what it can.
    let least = if rest.is_empty() {
        errors.min(*size)
    } else {
        0
    };
    (least..=errors.min(*size)).all(|here| {
        // Charged and given back: one list serves the whole recursion.
        charge(here.into(), left);
        let seen = seen_by_some(rest, errors - here, left);
        charge(-i64::from(here), left);
        seen
    })
}

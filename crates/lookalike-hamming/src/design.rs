//! Designs: the bits of a code that are the key of each table, and the number of errors that a probe tolerates.
//!
//! A design for codes of `bits` bits and a radius `k` is a list of [`TableKey`]s. It is *complete* if every set of at most `k` wrong bits is seen by
//! some table, that is, has at most `budget` wrong bits under that table's mask. Then probing each table at all keys within its budget finds every
//! code within distance `k`. [`Design::is_complete`] checks this by computation, for every family. The families are in `family`, their costs in
//! `plan`.

use super::entropy::permuted_mask;
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
/// assert!(!design.tables().iter().any(|table| table.detects(0x3_0000_0003)));
/// # Ok::<(), lookalike_hamming::NoSuchDesign>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    bits: u32,
    radius: u32,
    family: Family,
    tables: Vec<TableKey>,
}

/// Error for a width or radius for which a family has no design.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no design {family} for {bits}-bit codes at distance {radius}: {reason}")]
pub struct NoSuchDesign {
    family: String,
    bits: u32,
    radius: u32,
    reason: &'static str,
}

impl Design {
    /// Creates the design of a family, or returns an error if the family has none for this width and radius.
    ///
    /// `bits` is 1 to 128 (indexes take 32, 64 and 128); `radius` at most `bits`.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchDesign`] if the blocks of the family do not fit the width, or its budgets do not fit the radius.
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

    /// Creates a design of one table without a key: every query reads every code.
    ///
    /// # Panics
    ///
    /// Panics if `bits` is not 1 to 128.
    pub fn scan(bits: u32, radius: u32) -> Self {
        assert!((1..=128).contains(&bits), "codes have 1 to 128 bits");
        let tables = vec![TableKey { mask: 0, budget: 0 }];
        Self {
            bits,
            radius,
            family: Family::Scan,
            tables,
        }
    }

    /// Creates a design from tables that were stored.
    pub(super) fn stored(bits: u32, radius: u32, family: Family, tables: Vec<TableKey>) -> Self {
        Self {
            bits,
            radius,
            family,
            tables,
        }
    }

    /// Returns the width of the codes in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the largest distance that is answered completely; inclusive.
    pub fn radius(&self) -> u32 {
        self.radius
    }

    /// Returns the construction of the tables.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// Returns the tables, in the order in which they are probed.
    pub fn tables(&self) -> &[TableKey] {
        &self.tables
    }

    /// Returns the lengths of the shortest and the longest key in bits.
    pub fn prefix_range(&self) -> (u32, u32) {
        let lengths = self.tables.iter().map(TableKey::prefix_bits);
        (
            lengths.clone().min().unwrap_or(0),
            lengths.max().unwrap_or(0),
        )
    }

    /// Returns the largest error budget of a table: 0 if every probe is for an exact key.
    pub fn budget(&self) -> u32 {
        self.tables
            .iter()
            .map(|table| table.budget)
            .max()
            .unwrap_or(0)
    }

    /// Returns the same design with its bits renamed: bit `i` becomes bit `order[i]`.
    ///
    /// Any renaming keeps a design complete, so bits that carry little information can be distributed evenly over the tables:
    /// [`BitBalance::order`](super::BitBalance::order) is such an order, and [`balanced_design`](super::balanced_design) applies it where it helps.
    ///
    /// # Panics
    ///
    /// Panics if `order` is not a permutation of `0..bits`.
    #[must_use]
    pub fn permuted(&self, order: &[u32]) -> Self {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(
            sorted.iter().copied().eq(0..self.bits),
            "order must be a permutation of the bits"
        );
        let renamed = self.tables.iter().map(|key| TableKey {
            mask: permuted_mask(key.mask, order),
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
    /// Bits under the same masks are equivalent, so it is enough to try every way to distribute `radius` errors over these classes: C(classes +
    /// radius, radius) patterns, in general a few thousand. For tests, and for designs from other sources: those made by [`Design::new`] are
    /// complete.
    pub fn is_complete(&self) -> bool {
        // Twenty tables divide 64 bits into about ten to twenty classes, so patterns of errors are counted by class, not by bit.
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
        detected_by_some(&classes, self.radius, &mut left)
    }
}

/// Returns true if, for every way to distribute `errors` over the classes, some table keeps its budget; `left` is what the errors distributed so far
/// have left of each budget.
fn detected_by_some(classes: &[(Vec<bool>, u32)], errors: u32, left: &mut [i64]) -> bool {
    // A table that can take all remaining errors sees them wherever they fall.
    if left.iter().any(|&left| left >= i64::from(errors)) {
        return true;
    }
    let Some(((under, size), rest)) = classes.split_first() else {
        // All bits have got their errors: a table sees them if they did not exceed its budget.
        return left.iter().any(|&left| left >= 0);
    };
    let charge = |errors: i64, left: &mut [i64]| {
        for (left, &under) in left.iter_mut().zip(under) {
            *left -= if under { errors } else { 0 };
        }
    };
    // Fewer errors than the radius are easier to see, so the last class takes as many as it can.
    let least = if rest.is_empty() {
        errors.min(*size)
    } else {
        0
    };
    (least..=errors.min(*size)).all(|here| {
        // Charged and then given back, so that one list serves the whole recursion.
        charge(here.into(), left);
        let seen = detected_by_some(rest, errors - here, left);
        charge(-i64::from(here), left);
        seen
    })
}

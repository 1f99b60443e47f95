//! Min-hash signatures, and super-shingles made from them.

use thiserror::Error;

use crate::hash::xxh3_values;

/// Minima of the hash functions of a [`MinHash`](crate::MinHash) over a set of features.
///
/// ```
/// use lookalike::Signature;
///
/// let (a, b) = (Signature::from(vec![3, 1, 4, 1]), Signature::from(vec![3, 1, 5, 9]));
/// assert_eq!(a.agreement(&b)?, 0.5);
/// assert!(a.agreement(&Signature::from(vec![3])).is_err());
/// # Ok::<(), lookalike::sketch::LengthMismatch>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Signature(Box<[u32]>);

/// Error for a signature that is too short, or whose length differs from the one that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the signature must have {expected} minima, but has {found}")]
pub struct LengthMismatch {
    /// Number of minima that are needed.
    pub expected: usize,
    /// Number of minima that the signature has.
    pub found: usize,
}

impl From<Vec<u32>> for Signature {
    fn from(minima: Vec<u32>) -> Self {
        Self(minima.into())
    }
}

impl From<Signature> for Vec<u32> {
    fn from(signature: Signature) -> Self {
        signature.0.into()
    }
}

impl Signature {
    /// Returns the minima.
    #[must_use]
    pub fn values(&self) -> &[u32] {
        &self.0
    }

    /// Returns the share of the places in which the two agree, an estimate of the resemblance, in [0, 1]; 0 for two empty signatures.
    ///
    /// # Errors
    /// Returns [`LengthMismatch`] if the lengths differ.
    pub fn agreement(&self, other: &Self) -> Result<f64, LengthMismatch> {
        if self.0.len() != other.0.len() {
            return Err(LengthMismatch {
                expected: self.0.len(),
                found: other.0.len(),
            });
        }
        let agreeing = self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count();
        Ok(agreeing as f64 / self.0.len().max(1) as f64)
    }

    /// Computes the super-shingles of the first `groups * rows` minima (Vassilvitskii 2007): group g is hashed to the XXH3-64, with seed g, of the
    /// little-endian bytes of its `rows` minima. There are none if `rows` is zero.
    ///
    /// # Errors
    /// Returns [`LengthMismatch`] if there are fewer minima than that.
    pub fn super_shingles(
        &self,
        groups: usize,
        rows: usize,
    ) -> Result<SuperShingles, LengthMismatch> {
        // Saturate: a product that is too large must not wrap to one that fits.
        let expected = groups.saturating_mul(rows);
        if self.0.len() < expected {
            return Err(LengthMismatch {
                expected,
                found: self.0.len(),
            });
        }
        // Groups of nothing would all be alike, and no number of them too large.
        let groups = if rows == 0 { 0 } else { groups };
        let group = |g: usize| xxh3_values(&self.0[g * rows..(g + 1) * rows], g as u64);
        Ok(SuperShingles((0..groups).map(group).collect()))
    }
}

/// Hashes of groups of minima (Vassilvitskii 2007): near-duplicates agree on some of them.
///
/// Two documents of resemblance J agree on a group of r minima with probability J^r. The paper uses 6 groups of 14 and calls two pages
/// near-duplicates if at least 2 groups agree.
///
/// ```
/// use lookalike::Signature;
///
/// let (a, b) = (Signature::from(vec![3, 1, 4, 1]), Signature::from(vec![3, 1, 5, 9]));
/// // Two groups of two minima: the first agrees.
/// assert_eq!(a.super_shingles(2, 2)?.agreeing(&b.super_shingles(2, 2)?), 1);
/// # Ok::<(), lookalike::sketch::LengthMismatch>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SuperShingles(Box<[u64]>);

impl From<Vec<u64>> for SuperShingles {
    fn from(values: Vec<u64>) -> Self {
        Self(values.into())
    }
}

impl From<SuperShingles> for Vec<u64> {
    fn from(shingles: SuperShingles) -> Self {
        shingles.0.into()
    }
}

impl SuperShingles {
    /// Returns the hash of each group.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.0
    }

    /// Returns the number of groups that agree; a group that only one side has does not.
    #[must_use]
    pub fn agreeing(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_no_minima_took_all_memory() {
        let signature = Signature::from(vec![1, 2]);
        let shingles = signature.super_shingles(usize::MAX, 0).unwrap();
        assert!(shingles.values().is_empty());
    }
}

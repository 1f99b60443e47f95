//! The optimal number of tables of nested block choice (Manku et al. 2007, section 3.1.2), and its dual.
//!
//! With fractional blocks, a level of r blocks multiplies the number of tables by C(r, k) and leaves k / r of the bits outside the key, whatever the
//! levels before it. So X(f, k, d) = min over r of C(r, k) X(fk/r, k, d - (r-k)f/r) asks for levels r_1, r_2, ... that leave at most f - p_min bits
//! and have the smallest product of C(r_i, k). Its stopping rule, that fewer than tau = d - p_min bits are not yet in the key, counts *fingerprints*:
//! 2^d of them, 2^(d - p) per probe. The search here stops when p reaches p_min, so that p_min = 28 gives the 16 tables of the paper's own example.
//!
//! Fractions are exact here: numerators and denominators are integers.

use super::family::choose;

/// Result of [`fewest_tables`] or [`longest_prefix`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Nesting {
    /// Number of tables.
    pub tables: u64,
    /// Length of the keys in bits, before blocks are rounded to whole bits.
    pub prefix_bits: f64,
    /// Blocks at each level, ascending; empty for one table without a key.
    pub levels: Vec<u32>,
}

/// Search over ascending levels, whose order does not matter to either product.
struct NestingSearch {
    bits: u32,
    radius: u32,
    levels: Vec<u32>,
    best: Option<Nesting>,
}

impl NestingSearch {
    fn run(
        bits: u32,
        radius: u32,
        step: impl Fn(&Option<Nesting>, &Nesting) -> NestingStep,
    ) -> Nesting {
        let mut search = Self {
            bits,
            radius,
            levels: Vec::new(),
            best: None,
        };
        search.visit(1, 1, 1, &step);
        let scan = Nesting {
            tables: 1,
            prefix_bits: 0.0,
            levels: Vec::new(),
        };
        search.best.unwrap_or(scan)
    }

    /// Visits the node at which `left / of` of the bits are outside the key, with `tables` tables.
    fn visit(
        &mut self,
        tables: u64,
        left: u128,
        of: u128,
        step: &impl Fn(&Option<Nesting>, &Nesting) -> NestingStep,
    ) -> NestingStep {
        let bits = u128::from(self.bits);
        // Rounded once, at the end: with floating-point fractions, equal key lengths would differ in the last bit, and one would seem better.
        let prefix_bits = (bits * (of - left)) as f64 / of as f64;
        let here = Nesting {
            tables,
            prefix_bits,
            levels: self.levels.clone(),
        };
        let taken = step(&self.best, &here);
        if matches!(taken, NestingStep::Accept | NestingStep::AcceptAndDeepen) {
            self.best = Some(here);
        }
        if matches!(taken, NestingStep::Prune | NestingStep::Accept) {
            return taken;
        }
        // With `radius` blocks or fewer, errors may be in every block, which leaves no key.
        let least = self
            .levels
            .last()
            .copied()
            .unwrap_or(self.radius.saturating_add(1));
        for blocks in least..=self.bits {
            let Some((left, of)) = reduced_product((left, of), (self.radius, blocks)) else {
                break;
            };
            // A block needs at least one bit. `left / of` already counts the level's k blocks, so at least k bits must remain for them.
            if bits * left < of * u128::from(self.radius) {
                break;
            }
            // Counts that no number holds would all be alike.
            let tables = tables.saturating_mul(choose(blocks, self.radius));
            if tables == u64::MAX {
                break;
            }
            self.levels.push(blocks);
            let taken = self.visit(tables, left, of, step);
            self.levels.pop();
            if matches!(taken, NestingStep::Prune) {
                break;
            }
        }
        NestingStep::AcceptAndDeepen
    }
}

/// Multiplies two fractions and reduces the product, or returns `None` if a part of it has more than 112 bits, so that it can still be multiplied by
/// a number of bits.
fn reduced_product(fraction: (u128, u128), by: (u32, u32)) -> Option<(u128, u128)> {
    let left = fraction.0.checked_mul(by.0.into())?;
    let of = fraction.1.checked_mul(by.1.into())?;
    // Euclid's algorithm.
    let (mut common, mut rest) = (of, left);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    let (left, of) = (left / common, of / common);
    (left.max(of) >> 112 == 0).then_some((left, of))
}

/// Next step at a node of the search. More blocks and more levels only ever take more tables.
enum NestingStep {
    /// Too many tables: skip this node and those after it.
    Prune,
    /// The best so far, and its descendants are worse.
    Accept,
    /// The best so far, and a descendant may be better.
    AcceptAndDeepen,
    /// Not good enough, or not better, but a descendant may be.
    Deepen,
}

/// Computes X(f, k, d) of the paper: the fewest tables whose keys have at least `prefix_bits` bits and, among these, the longest keys. `None` if no
/// nesting of blocks of at least one bit reaches that length with fewer than 2^64 tables.
///
/// A `radius` of 0 needs one table, whose key is the whole code.
///
/// ```
/// use lookalike_hamming::fewest_tables;
///
/// // The paper's example: 16 tables, by four blocks and again four, for keys of 28 bits.
/// let nesting = fewest_tables(64, 3, 28).expect("there is one");
/// assert_eq!((nesting.tables, nesting.levels), (16, vec![4, 4]));
/// ```
pub fn fewest_tables(bits: u32, radius: u32, prefix_bits: u32) -> Option<Nesting> {
    if radius == 0 {
        return Some(exact_match(bits));
    }
    let wanted = f64::from(prefix_bits);
    let found = NestingSearch::run(bits, radius, |best, here| match best {
        Some(best) if here.tables > best.tables => NestingStep::Prune,
        Some(best) if here.tables == best.tables && here.prefix_bits <= best.prefix_bits => {
            NestingStep::Deepen
        }
        _ if here.prefix_bits >= wanted => NestingStep::Accept,
        _ => NestingStep::Deepen,
    });
    (found.prefix_bits >= wanted).then_some(found)
}

/// Computes the dual of [`fewest_tables`]: the longest keys of at most `tables` tables and, among these, the fewest tables.
pub fn longest_prefix(bits: u32, radius: u32, tables: u64) -> Nesting {
    if radius == 0 {
        return exact_match(bits);
    }
    NestingSearch::run(bits, radius, |best, here| match best {
        _ if here.tables > tables => NestingStep::Prune,
        Some(best) if here.prefix_bits < best.prefix_bits => NestingStep::Deepen,
        Some(best) if here.prefix_bits == best.prefix_bits && here.tables >= best.tables => {
            NestingStep::Deepen
        }
        _ => NestingStep::AcceptAndDeepen,
    })
}

fn exact_match(bits: u32) -> Nesting {
    Nesting {
        tables: 1,
        prefix_bits: bits.into(),
        levels: vec![1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_radius_overflowed() {
        assert_eq!(fewest_tables(64, u32::MAX, 1), None);
        assert_eq!(longest_prefix(64, u32::MAX, 16).tables, 1);
    }
}

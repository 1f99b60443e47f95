//! The linear scan: the definition of a Hamming search, and the oracle of every index.

use super::code::sealed::Sealed;
use super::code::{Code, Integer, Word};
use super::kernel::{ScanWords, each_hit};
use super::{Effort, HammingIndex, RadiusTooLarge};

/// All codes in one sorted list; a search reads every one.
///
/// Memory: the codes. A search costs n comparisons, some 0.1 to 0.3 ns each for 64-bit codes.
///
/// ```
/// use lookalike_hamming::{HammingIndex, LinearScan};
///
/// let scan = LinearScan::new(&[0b0000_u64, 0b0111, 0b1111, 0b0111]);
/// assert_eq!(scan.len(), 3);
/// let mut found = Vec::new();
/// scan.search(0b0011, 2, &mut |code, distance| found.push((code, distance)))?;
/// assert_eq!(found, [(0b0000, 2), (0b0111, 1), (0b1111, 2)]);
/// # Ok::<(), lookalike_hamming::RadiusTooLarge>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinearScan<C: Code> {
    words: Vec<C::Word>,
}

impl<C: Code> LinearScan<C> {
    /// Keeps each distinct code once. O(n log n).
    pub fn new(codes: &[C]) -> Self {
        let mut words: Vec<_> = codes.iter().map(|code| code.word()).collect();
        words.sort_unstable();
        words.dedup();
        Self { words }
    }

    /// The distinct codes, ascending as integers.
    pub fn codes(&self) -> impl ExactSizeIterator<Item = C> + '_ {
        self.words.iter().map(|&word| C::from_word(word))
    }
}

impl<C: Code> Sealed for LinearScan<C> {}

impl<C: Code> HammingIndex for LinearScan<C> {
    type Code = C;

    fn len(&self) -> usize {
        self.words.len()
    }

    fn radius(&self) -> u32 {
        C::Word::BITS
    }

    fn search(
        &self,
        query: C,
        radius: u32,
        visit: &mut dyn FnMut(C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        RadiusTooLarge::check(radius, self.radius())?;
        let needle = query.word();
        // As many at a time as a mask has bits.
        for chunk in self.words.chunks(64) {
            let scan = ScanWords {
                words: chunk,
                needle,
                radius,
            };
            for at in each_hit(C::Word::run(scan)) {
                let word = chunk[at];
                visit(C::from_word(word), (word ^ needle).ones());
            }
        }
        Ok(Effort {
            probes: 1,
            candidates: self.words.len() as u64,
        })
    }
}

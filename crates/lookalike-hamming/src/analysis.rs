//! Statistics of a collection of fingerprints (Manku et al. 2007, section 4.2), which show how evenly its bits are spread.

use super::code::Word;

/// Number of equal ranges of the code space in which codes are counted.
pub const RANGES: usize = 128;

/// Gathers an [`Analysis`] from codes in ascending order.
///
/// ```
/// use lookalike_hamming::Analyzer;
///
/// // A thousand codes spread evenly, and one that 500 pages share.
/// let mut codes: Vec<u64> = (0..1000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
/// codes.extend([0xdead_beef; 500]);
/// codes.sort_unstable();
/// let mut analyzer = Analyzer::default();
/// codes.iter().for_each(|&code| analyzer.push(code));
/// let analysis = analyzer.finish();
/// assert_eq!((analysis.count, analysis.distinct), (1500, 1001));
/// assert_eq!(analysis.spikes.len(), 1);
/// assert_eq!((analysis.spikes[0].code, analysis.spikes[0].copies), (0xdead_beef, 500));
/// ```
#[derive(Clone, Debug)]
pub struct Analyzer<C: Word> {
    analysis: Analysis<C>,
    last: Option<C>,
    run: u64,
    /// The most frequent code of each range, with the number of its copies.
    commonest: Vec<Option<(C, u64)>>,
}

/// Statistics of a collection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Analysis<C: Word> {
    /// Number of codes.
    pub count: u64,
    /// Number of distinct codes.
    pub distinct: u64,
    /// For each bit position, counted from the lowest, the number of neighbours in ascending order whose highest differing bit it is. With evenly
    /// spread codes, each position above log2(2^bits / count) has half as many as the one below it; clusters show as more at the low positions.
    pub leading_gaps: Vec<u64>,
    /// Number of codes in each of 128 equal ranges.
    pub ranges: Vec<u64>,
    /// Ranges with far more codes than others, the fullest first.
    pub spikes: Vec<Spike<C>>,
}

/// A range with far more codes than the others.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spike<C: Word> {
    /// Index of the range.
    pub range: usize,
    /// Number of codes in it.
    pub count: u64,
    /// The most frequent code in it.
    pub code: C,
    /// Number of its copies.
    pub copies: u64,
}

impl<C: Word> Default for Analyzer<C> {
    fn default() -> Self {
        let analysis = Analysis {
            count: 0,
            distinct: 0,
            leading_gaps: vec![0; C::BITS as usize],
            ranges: vec![0; RANGES],
            spikes: Vec::new(),
        };
        Self {
            analysis,
            last: None,
            run: 0,
            commonest: vec![None; RANGES],
        }
    }
}

/// Returns the range of a code.
fn range<C: Word>(code: C) -> usize {
    code.above(C::BITS - RANGES.ilog2()) as usize
}

impl<C: Word> Analyzer<C> {
    /// Counts the next code.
    ///
    /// # Panics
    ///
    /// Panics if it is less than the one before.
    pub fn push(&mut self, code: C) {
        self.analysis.count += 1;
        self.analysis.ranges[range(code)] += 1;
        if let Some(last) = self.last.replace(code) {
            assert!(last <= code, "codes must be ascending");
            let apart = (last ^ code).to_u128();
            // Equal codes differ in no bit: they lengthen the run and count for no position.
            if let Some(position) = apart.checked_ilog2() {
                self.analysis.leading_gaps[position as usize] += 1;
                self.end_run(last);
            }
        }
        self.run += 1;
    }

    fn end_run(&mut self, code: C) {
        self.analysis.distinct += 1;
        let run = std::mem::take(&mut self.run);
        let commonest = &mut self.commonest[range(code)];
        if commonest.is_none_or(|(_, copies)| copies < run) {
            *commonest = Some((code, run));
        }
    }

    /// Returns the statistics. A range is a spike if it has more than twice its share of the codes, and more than chance would give it: six standard
    /// deviations above its share.
    pub fn finish(mut self) -> Analysis<C> {
        if let Some(last) = self.last {
            self.end_run(last);
        }
        let share = self.analysis.count as f64 / RANGES as f64;
        // Counts of a range are Poisson-distributed: if the share is small, twice as many are chance; if it is large, a few standard deviations are
        // not a visible spike.
        let limit = (2.0 * share).max(share + 6.0 * share.sqrt());
        let spike = |(range, commonest): (usize, Option<(C, u64)>)| {
            let count = self.analysis.ranges[range];
            let (code, copies) = commonest.filter(|_| count as f64 > limit)?;
            Some(Spike {
                range,
                count,
                code,
                copies,
            })
        };
        let mut spikes: Vec<_> = self
            .commonest
            .into_iter()
            .enumerate()
            .filter_map(spike)
            .collect();
        spikes.sort_by_key(|spike| (std::cmp::Reverse(spike.count), spike.range));
        self.analysis.spikes = spikes;
        self.analysis
    }
}

impl<C: Word> Analysis<C> {
    /// Returns the gaps that evenly spread codes would have: position p is the highest to differ between two neighbours if they are in different
    /// halves of an aligned cell of 2^(p + 1) codes.
    pub fn expected_gaps(&self) -> Vec<f64> {
        let bits = C::BITS as i32;
        let count = self.distinct as f64;
        // Of 2^(bits - p - 1) aligned cells of 2^(p + 1) codes, those with codes in both halves have one pair of neighbours whose highest differing
        // bit is p.
        let gap = |position: i32| {
            let cells = 2_f64.powi(bits - position - 1);
            // Not 1 - exp, which cancels if cells are rarely filled.
            let in_half = -f64::exp_m1(-count / cells / 2.0);
            cells * in_half * in_half
        };
        (0..bits).map(gap).collect()
    }
}

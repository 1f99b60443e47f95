//! The batch query (Manku et al. 2007, section 3.3): a large file of codes streams past a set of queries in memory.
//!
//! The queries are in an index, with filters in front of it. Of the k errors between a code and a near query, the high half of the code has at most
//! (k - 1) / 2, rounded up, or the low half at most (k - 1) / 2, rounded down. So a filter for each half marks all values that the halves of the
//! queries take with that many errors, and a code that passes neither filter is far from every query. For a million queries and distance 3, two
//! filters of 128 MiB let two codes in a hundred through.

use super::build::BuildError;
use super::code::Word;
use super::cost::CostConstants;
use super::entropy::{BitBalance, permuted_mask};
use super::index::TableIndex;
use super::plan::{CostedDesign, PlanLimits, plan};
use super::threads::map_parallel;
use super::{Design, Layout, kernel};
use buckets::QueryBuckets;
use filter::{FilterShape, QueryFilter, half_budgets};

mod buckets;
mod filter;

/// Queries to compare with a stream of codes. Immutable, so several threads may share them.
///
/// ```
/// use lookalike_hamming::{BatchJoin, BatchLimits, JoinScratch};
///
/// let queries = [0b0000_u64, 0b1111_0000];
/// let join = BatchJoin::new(&queries, 1, BatchLimits::default().stream_codes(3))?;
/// // One scratch for each thread, and for all chunks of the stream.
/// let mut scratch = JoinScratch::default();
/// let mut pairs = Vec::new();
/// let chunk = [0b0001_u64, 0b0110, 0b1111_0100];
/// join.join(&chunk, &mut scratch, &mut |at, query, distance| pairs.push((at, query, distance)));
/// assert_eq!(pairs, [(0, 0b0000, 1), (2, 0b1111_0000, 1)]);
/// # Ok::<(), lookalike_hamming::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchJoin<C: Word> {
    index: TableIndex<C>,
    radius: u32,
    /// Empty if the filters would let most codes through.
    filters: Vec<QueryFilter<C>>,
}

limits! {
    /// Memory and threads that a batch join may take.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BatchLimits {
        /// Memory of tables and filters, in bytes; those of a million queries cannot use more than a little over 2^30. If no design fits, tables are
        /// built anyway: see [`BatchJoin::least_bytes`].
        memory_bytes: u64 = u64::MAX,
        /// Approximate number of codes that will stream past: large filters only pay off for many.
        stream_codes: u64 = u64::MAX,
        /// Number of threads that prepare the queries: with two, the filters are made in parallel.
        threads: usize = 1,
    }
}

/// Memory of one thread of a batch join, reused from chunk to chunk: ten bytes for each code of a chunk of up to 2^24 codes.
#[derive(Debug, Default)]
pub struct JoinScratch {
    buckets: QueryBuckets,
    passed: Vec<u32>,
}

/// Number of codes that are filtered together.
const BLOCK: usize = 1 << kernel::PAYLOAD_BITS;
/// Number of codes that are searched together.
const GROUP: usize = 256;
/// Factor by which a design may be slower than the fastest to save memory.
const MAX_SLOWDOWN: f64 = 8.0;

impl<C: Word> BatchJoin<C> {
    /// Prepares the queries, which may be in any order and have duplicates.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError`] if the tables of the queries cannot be built, as [`TableIndex::build`].
    pub fn new(queries: &[C], radius: u32, limits: BatchLimits) -> Result<Self, BuildError> {
        Self::new_until(queries, radius, limits, &|| false)
    }

    /// Like [`BatchJoin::new`], until `is_cancelled` returns true; it is called at least every 65,536 codes of a table, and before each filter.
    ///
    /// # Errors
    ///
    /// As for [`BatchJoin::new`], and [`BuildError::Cancelled`].
    pub fn new_until(
        queries: &[C],
        radius: u32,
        limits: BatchLimits,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, BuildError> {
        let bits = C::BITS;
        let radius = radius.min(bits);
        let within = PlanLimits {
            // Building needs a second copy of every query.
            memory_bytes: Some(
                limits
                    .memory_bytes
                    .saturating_sub(size_of_val(queries) as u64),
            ),
            ..PlanLimits::default()
        };
        let plans = plans(queries.len() as u64, bits, radius, &within);
        let best = plans.iter().find(|costed| costed.cheapest);
        // If nothing fits, the smallest design that is fast enough is built anyway: see `BatchLimits`.
        let best = best.or_else(|| least(&plans));
        let (design, layout) = match best {
            Some(best) => (best.design.clone(), best.layout),
            None => (Design::scan(bits, radius), Layout::Packed),
        };
        // Only now is the number of distinct queries known, which determines the size of the filters.
        let index = TableIndex::build_until(queries, &design, layout, is_cancelled)?;
        let (distinct, stream) = (index.len() as u64, limits.stream_codes);
        let left = limits.memory_bytes.saturating_sub(index.bytes() as u64);
        let balance = BitBalance::sample(queries, 1 << 16);
        let shapes = half_budgets(bits, radius).into_iter();
        let shapes = shapes.map(|(half, budget)| {
            let shape = FilterShape::cheapest(distinct, budget, bits / 2, left, BLOCK, stream)?;
            Some((half, budget, shape))
        });
        // Both filters or none: a query may be near in either half, so one filter alone would lose pairs.
        let mut shapes: Vec<_> = shapes.collect::<Option<_>>().unwrap_or_default();
        // Halves, like keys, may be any bits, and a constant half would let everything pass.
        let masks: Vec<_> = shapes
            .iter()
            .map(|&(half, _, shape)| (half, shape.address_bits()))
            .collect();
        if let Some(order) = balance.better_order(&masks) {
            shapes
                .iter_mut()
                .for_each(|(half, ..)| *half = permuted_mask(*half, &order));
        }
        let made = |(half, budget, shape)| match is_cancelled() {
            true => Err(BuildError::Cancelled),
            false => Ok(QueryFilter::new(queries, &balance, half, budget, shape)),
        };
        let filters = if limits.threads > 1 {
            map_parallel(shapes, made)
                .into_iter()
                .collect::<Result<_, _>>()
        } else {
            shapes.into_iter().map(made).collect::<Result<_, _>>()
        };
        let filters = filters?;
        Ok(Self {
            index,
            radius,
            filters,
        })
    }

    /// Returns the least memory, building included, in which `queries` distinct queries are searched at a tolerable speed.
    pub fn least_bytes(queries: u64, radius: u32) -> u64 {
        let bits = C::BITS;
        let plans = plans(queries, bits, radius.min(bits), &PlanLimits::default());
        let tables = least(&plans).map_or(0.0, |costed| costed.costs.bytes_per_fingerprint);
        (queries as f64 * (tables + f64::from(bits / 8))) as u64
    }

    /// Returns the index of the queries.
    pub fn queries(&self) -> &TableIndex<C> {
        &self.index
    }

    /// Returns the memory of tables and filters, in bytes.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + self.filters.iter().map(QueryFilter::bytes).sum::<usize>()
    }

    /// Visits every pair of a code of `chunk`, given as its index, and a distinct query within the radius, with their distance. Pairs come in the
    /// order of the index, each once.
    ///
    /// Large chunks are best, because filters are read through once for every 2^24 codes.
    pub fn join(
        &self,
        chunk: &[C],
        scratch: &mut JoinScratch,
        visit: &mut dyn FnMut(usize, C, u32),
    ) {
        for (number, block) in chunk.chunks(BLOCK).enumerate() {
            let base = number * BLOCK;
            if self.filters.is_empty() {
                for (at, group) in block.chunks(GROUP).enumerate() {
                    let first = base + at * GROUP;
                    self.search(group, &mut |at, code, distance| {
                        visit(first + at, code, distance);
                    });
                }
                continue;
            }
            let JoinScratch { buckets, passed } = &mut *scratch;
            passed.clear();
            for filter in &self.filters {
                filter.pass(block, buckets, passed);
            }
            // Codes come out of the filters by stretches, and twice if both halves are near. Sorting restores the promised order of positions, and
            // each code is searched once.
            passed.sort_unstable();
            passed.dedup();
            for group in passed.chunks(GROUP) {
                // Gathered first, because the group search takes its queries as one slice, and only two codes in a hundred get here.
                let codes: Vec<C> = group.iter().map(|&at| block[at as usize]).collect();
                self.search(&codes, &mut |at, code, distance| {
                    visit(base + group[at] as usize, code, distance);
                });
            }
        }
    }

    fn search(&self, codes: &[C], visit: &mut dyn FnMut(usize, C, u32)) {
        let searched = self.index.search_group(codes, self.radius, visit);
        debug_assert!(searched.is_ok(), "the index was built for this radius");
    }
}

fn plans(queries: u64, bits: u32, radius: u32, limits: &PlanLimits) -> Vec<CostedDesign> {
    plan(queries, bits, radius, limits, &CostConstants::default())
}

/// Returns the design with the least memory among those that are fast enough.
fn least(plans: &[CostedDesign]) -> Option<&CostedDesign> {
    let fastest = plans.iter().map(|costed| costed.costs.query_ns);
    let slowest = fastest.fold(f64::INFINITY, f64::min) * MAX_SLOWDOWN;
    let fast = plans
        .iter()
        .filter(|costed| costed.costs.query_ns <= slowest);
    fast.min_by(|a, b| {
        let bytes = |costed: &CostedDesign| costed.costs.bytes_per_fingerprint;
        bytes(a).total_cmp(&bytes(b))
    })
}

//! The index: the tables of a design, and the search over them.
//!
//! Single queries and groups run as the same stream of probes ([`search`]). Tables that are probed once each are searched by a shorter loop
//! ([`single_probe`]).

use super::build::{BuildError, CancellableSource, CodeSource};
use super::code::Word;
use super::design::Design;
use super::layout::Layout;
use super::table::{BucketTable, MAX_TABLES, PackedTable, ProbeTable, SingleProbeTable};
use super::{Effort, RadiusTooLarge};
pub use builder::BuildLimits;
pub(super) use builder::{Builder, MAX_PROBES};
use search::IndexSearch;
use single_probe::Found;
pub(super) use single_probe::SingleProbeSearch;

mod builder;
mod search;
mod single_probe;

/// Index of distinct codes, in the tables of a [`Design`].
///
/// Immutable. For its memory see [`DesignCosts::bytes_per_fingerprint`](super::DesignCosts); a search costs the probes and candidates given there.
/// Buckets hold any number of codes, so skewed collections are slower, but never wrong. Addresses are taken from bits that are evenly distributed in
/// a sample of the codes.
///
/// ```
/// use lookalike_hamming::{Design, Family, Layout, TableIndex};
///
/// let codes = [0_u64, 0b0111, u64::MAX];
/// let design = Design::new(Family::block_choice(4, 3), 64, 3)?;
/// let index = TableIndex::build(&codes, &design, Layout::CacheLineBuckets)?;
/// let mut found = Vec::new();
/// let effort = index.search_group(&[0b0001, 1 << 63], 2, &mut |query, code, distance| {
///     found.push((query, code, distance));
/// })?;
/// found.sort_unstable();
/// assert_eq!(found, [(0, 0, 1), (0, 0b0111, 2), (1, 0, 1)]);
/// assert_eq!(effort.probes, 2 * 4);
/// assert!(index.search(0, 4, &mut |_, _| ()).is_err(), "beyond the radius of the design");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableIndex<C: Word> {
    design: Design,
    layout: Layout,
    tables: Vec<ProbeTable<C>>,
    /// True if a query probes each table once.
    each_unit: bool,
    len: usize,
}

/// Loads of the buckets of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BucketLoads {
    /// Number of bits of a bucket's address.
    pub address_bits: u32,
    /// Average number of entries in the bucket of a stored code: the candidates of an exact probe.
    pub observed: f64,
    /// The same for evenly spread codes.
    pub expected: f64,
    /// Entries of the fullest bucket.
    pub largest: usize,
}

/// Number of queries that are searched as one list if tables are probed once each.
const QUERIES_PER_LIST: usize = 64;

impl<C: Word> TableIndex<C> {
    /// Builds the tables of `design` over `codes`, which may be in any order and have duplicates. If some bits are constant or uneven, the bits of the
    /// design may be renamed: see [`balanced_design`].
    ///
    /// # Errors
    ///
    /// Returns [`BuildError`] if the design is for another width or has too many probes, if more codes than 2^32 - 1 agree in the bits of an address,
    /// or if there are too many codes for cache-line buckets.
    pub fn build(codes: &[C], design: &Design, layout: Layout) -> Result<Self, BuildError> {
        Self::build_from(codes, design, layout, BuildLimits::default())
    }

    /// Like [`TableIndex::build`], until `is_cancelled`, which is called at least every 65,536 codes.
    pub(super) fn build_until(
        codes: &[C],
        design: &Design,
        layout: Layout,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, BuildError> {
        // The sample depends on the pieces in which codes arrive, so it is taken without checks for cancellation in between.
        let builder = Builder::analyze(codes, layout, BuildLimits::default())?;
        let source = &CancellableSource {
            source: codes,
            is_cancelled,
        };
        Self::built(&builder.reading(source), design, layout).map_err(|error| {
            match is_cancelled() {
                true => BuildError::Cancelled,
                false => error,
            }
        })
    }

    /// Builds from a source that is never held in memory, such as a file.
    ///
    /// The source is read once for a sample, and at least twice for each table.
    ///
    /// # Errors
    ///
    /// As for [`TableIndex::build`], and if the source fails or changes.
    pub fn build_from(
        source: &(impl CodeSource<C> + ?Sized),
        design: &Design,
        layout: Layout,
        limits: BuildLimits,
    ) -> Result<Self, BuildError> {
        let builder = Builder::analyze(source, layout, limits)?;
        Self::built(&builder, design, layout)
    }

    fn built<S: CodeSource<C> + ?Sized>(
        builder: &Builder<'_, C, S>,
        design: &Design,
        layout: Layout,
    ) -> Result<Self, BuildError> {
        check_width::<C>(design)?;
        let design = builder.balanced(design);
        let tables = builder.tables(design.tables())?;
        tables.iter().for_each(ProbeTable::settle);
        // Every table has every code.
        let len = tables.first().map_or(0, ProbeTable::len);
        Ok(Self::of_tables(design, layout, tables, len))
    }

    /// Creates the index from existing tables.
    pub(super) fn of_tables(
        design: Design,
        layout: Layout,
        tables: Vec<ProbeTable<C>>,
        len: usize,
    ) -> Self {
        // The shorter loop keeps the views of all tables on the stack, so their number is limited.
        let few = (1..=MAX_TABLES).contains(&tables.len());
        Self {
            design,
            layout,
            each_unit: few && tables.iter().all(ProbeTable::has_single_probe),
            tables,
            len,
        }
    }

    /// Returns the number of codes before this one in the order of [`TableIndex::for_each`]. `None` if the code is not stored, or if the tables have
    /// cache-line buckets and are not those of a file with ids. Takes one probe.
    ///
    /// Callers that keep data about the codes keep it in this order.
    pub fn rank(&self, code: C) -> Option<usize> {
        self.tables
            .first()
            .filter(|table| table.has_ranks())?
            .find(code)
    }

    /// Returns the design of the tables.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Returns the layout of the tables.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the memory of the tables in bytes.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(ProbeTable::bytes).sum()
    }

    /// Returns the number of distinct codes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no code is stored.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the largest radius of a search.
    pub fn radius(&self) -> u32 {
        self.design.radius()
    }

    /// Returns true if the code is stored. Takes one probe.
    pub fn contains(&self, code: C) -> bool {
        self.tables
            .first()
            .is_some_and(|table| table.contains(code))
    }

    /// Visits every stored code once, in an order that depends only on the codes and on how they are stored.
    pub fn for_each(&self, visit: &mut dyn FnMut(C)) {
        if let Some(table) = self.tables.first() {
            table.for_each(visit);
        }
    }

    /// Returns the loads of the buckets of each table. Linear in the number of buckets.
    pub fn loads(&self) -> Vec<BucketLoads> {
        let codes = self.len as f64;
        let of = |table: &ProbeTable<C>| {
            let (mut squares, mut largest) = (0.0, 0);
            for load in table.loads() {
                // Each code of a bucket meets all of them, so the mean over codes is the sum of squares over n.
                squares += (load as f64).powi(2);
                largest = largest.max(load);
            }
            let buckets = 2_f64.powi(table.addressing.address_bits as i32);
            BucketLoads {
                address_bits: table.addressing.address_bits,
                observed: squares / codes.max(1.0),
                // The code itself, and its share of the others.
                expected: 1.0 + (codes - 1.0).max(0.0) / buckets,
                largest,
            }
        };
        self.tables.iter().map(of).collect()
    }

    /// Visits every stored code once, ascending. Unless the order of [`TableIndex::for_each`] is already ascending, the codes are collected and
    /// sorted first, which takes their size in memory.
    pub fn for_each_ascending(&self, visit: &mut dyn FnMut(C)) {
        let Some(table) = self.tables.first() else {
            return;
        };
        let addressing = &table.addressing;
        let highest = !C::joined(0, !C::ZERO, 0).low(addressing.rest_bits);
        // Buckets in order are codes in order only if buckets are numbered by the leading bits.
        if addressing.address == highest {
            return self.for_each(visit);
        }
        // Do not trust the number of codes in a stored index: it has not been verified.
        let mut words = Vec::with_capacity(self.len.min(8 * table.bytes()));
        table.for_each(&mut |word| words.push(word));
        words.sort_unstable();
        words.into_iter().for_each(visit);
    }

    /// Visits every stored code within `radius` of `query`, inclusive, each once, with its distance. The order is the same in every run, but
    /// otherwise unspecified. Allocates no memory.
    ///
    /// # Errors
    ///
    /// Returns [`RadiusTooLarge`] if `radius` is larger than [`TableIndex::radius`].
    pub fn search(
        &self,
        query: C,
        radius: u32,
        visit: &mut dyn FnMut(C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        self.search_group(&[query], radius, &mut |_, code, distance| {
            visit(code, distance)
        })
    }

    /// Like [`TableIndex::search`], for many queries, whose probes overlap in time. The first argument of `visit` is the index of the query. The
    /// results of one query come together.
    ///
    /// # Errors
    ///
    /// Returns [`RadiusTooLarge`] if `radius` is larger than that of the design.
    pub fn search_group(
        &self,
        queries: &[C],
        radius: u32,
        visit: &mut dyn FnMut(usize, C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        RadiusTooLarge::check(radius, self.radius())?;
        if self.each_unit {
            return Ok(self.search_single_probes(queries, radius, visit));
        }
        let mut search = IndexSearch {
            index: self,
            queries,
            radius,
            visit,
            effort: Effort::default(),
        };
        let tables = self.tables.len();
        // All tables of one query come before the next query, because its results must come together.
        let tasks =
            (0..queries.len()).flat_map(|query| (0..tables).map(move |table| (query, table)));
        search.run(tasks);
        Ok(search.effort)
    }

    /// Searches tables that a query probes once each.
    fn search_single_probes(
        &self,
        queries: &[C],
        radius: u32,
        visit: &mut dyn FnMut(usize, C, u32),
    ) -> Effort {
        let probes = (queries.len() * self.tables.len()) as u64;
        let mut candidates = 0;
        for (number, chunk) in queries.chunks(QUERIES_PER_LIST).enumerate() {
            let found = &mut |query: usize, code, distance| {
                visit(number * QUERIES_PER_LIST + query, code, distance);
            };
            let tables = &self.tables;
            candidates += match self.layout {
                Layout::CacheLineBuckets => {
                    // On the stack, because a search allocates nothing.
                    let mut views = [BucketTable::default(); MAX_TABLES];
                    let tables = gathered(
                        &mut views,
                        tables.iter().filter_map(ProbeTable::bucket_table),
                    );
                    search_tables(tables, chunk, radius, found)
                }
                // Dense tables do not get here, because they need another stage (`ProbeTable::has_single_probe`).
                Layout::Packed | Layout::Dense => {
                    let mut views = [PackedTable::default(); MAX_TABLES];
                    let tables = gathered(
                        &mut views,
                        tables.iter().filter_map(ProbeTable::packed_table),
                    );
                    search_tables(tables, chunk, radius, found)
                }
            };
        }
        Effort { probes, candidates }
    }

    /// Like [`TableIndex::search_group`], for so many queries that ordering them pays: each table is searched by itself, in the order of its buckets,
    /// so that probes walk through memory instead of jumping about in it. The results of one query do not come together. Takes eight bytes per query.
    ///
    /// # Errors
    ///
    /// Returns [`RadiusTooLarge`] if `radius` is larger than that of the design.
    ///
    /// # Panics
    ///
    /// Panics if there are 2^32 queries or more.
    pub fn search_all(
        &self,
        queries: &[C],
        radius: u32,
        visit: &mut dyn FnMut(usize, C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        RadiusTooLarge::check(radius, self.radius())?;
        assert!(
            u32::try_from(queries.len()).is_ok(),
            "positions have 32 bits"
        );
        let mut effort = Effort::default();
        let mut order: Vec<(u32, u32)> = Vec::with_capacity(queries.len());
        for (at, table) in self.tables.iter().enumerate() {
            order.clear();
            let buckets = queries
                .iter()
                .map(|query| table.addressing.bucket(*query) as u32);
            order.extend(buckets.zip(0..));
            // Queries in the order of buckets walk through table and directory, so the stream prefetcher fetches each page and each cache line once.
            // Random probes would fetch a line each.
            order.sort_unstable();
            let mut search = IndexSearch {
                index: self,
                queries,
                radius,
                visit,
                effort: Effort::default(),
            };
            search.run(order.iter().map(|&(_, query)| (query as usize, at)));
            effort.probes += search.effort.probes;
            effort.candidates += search.effort.candidates;
        }
        Ok(effort)
    }
}

/// Returns a design with its bits renamed such that constant and uneven bits of the codes are distributed over the keys of its tables, instead of
/// making a key whose buckets hold most codes. Returns the design as it is unless the buckets of some table then have less than half as many codes.
///
/// [`TableIndex::build`] and [`BatchJoin`](super::BatchJoin) do this by themselves. For an index file, call it before
/// [`IndexFileWriter::new`](super::IndexFileWriter::new), and before resuming. The result depends on which codes there are, not on their order.
///
/// ```
/// use lookalike_hamming::{Design, Family, Layout, balanced_design};
///
/// // The upper half of these codes says nothing.
/// let codes: Vec<u64> = (0..4096_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).collect();
/// let design = Design::new(Family::budgets(&[1, 1]), 64, 3)?;
/// let balanced = balanced_design(codes.as_slice(), &design, Layout::Packed)?;
/// let useful = |mask: u128| (mask & 0xffff_ffff).count_ones();
/// assert!(balanced.tables().iter().all(|table| useful(table.mask) == 16));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns [`BuildError`] if the source fails, or if the design is for another width.
pub fn balanced_design<C: Word>(
    source: &(impl CodeSource<C> + ?Sized),
    design: &Design,
    layout: Layout,
) -> Result<Design, BuildError> {
    check_width::<C>(design)?;
    let builder = Builder::analyze(source, layout, BuildLimits::default())?;
    Ok(builder.balanced(design))
}

/// Returns an error if a design is for codes of another width.
pub(super) fn check_width<C: Word>(design: &Design) -> Result<(), BuildError> {
    match design.bits() == C::BITS {
        true => Ok(()),
        false => Err(BuildError::OtherWidth {
            design: design.bits(),
            codes: C::BITS,
        }),
    }
}

/// Searches tables that a query probes once each; returns the number of entries that were compared.
fn search_tables<W: Word, T: SingleProbeTable<W>>(
    tables: &[T],
    queries: &[W],
    radius: u32,
    found: Found<'_, W>,
) -> u64 {
    W::run(SingleProbeSearch {
        tables,
        queries,
        radius,
        found,
    })
}

/// Puts the items into `room`, and returns the part of it that they fill.
fn gathered<T>(room: &mut [T], items: impl Iterator<Item = T>) -> &[T] {
    let both = room.iter_mut().zip(items);
    let used = both.map(|(room, item)| *room = item).count();
    &room[..used]
}

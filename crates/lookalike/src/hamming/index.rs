//! The index: the tables of a design, and the search over them.
//!
//! A search is a stream of probes (query, table, flip) that moves through stages some probes
//! apart: ask for the directory entry, in dense tables for the marks, find the bucket and ask for its entries, compare.
//! Single queries and groups are the same stream, so the memory always has a dozen or two requests in flight. Tables that
//! are probed once each are searched by a shorter loop (`kernel::once`).

use super::build::{BuildError, CodeSource, buckets};
use super::code::sealed::Sealed;
use super::code::{Code, Word};
use super::cost::neighbours;
use super::design::{Design, TableKey};
use super::entropy::BitBalance;
use super::ids::IdLists;
use super::kernel::{Extent, Flipped, LineTable, MOST_TABLES, PackedTable};
use super::layout::{Geometry, Layout};
use super::table::{PIECE, Table};
use super::{Effort, HammingIndex, RadiusTooLarge};

/// Distinct codes in the tables of a [`Design`], and optionally ids beside them.
///
/// Immutable. Memory: see [`Costs::bytes_per_fingerprint`](super::Costs); a search costs the probes
/// and candidates given there. Buckets hold any number of codes, so skewed collections are slower,
/// never wrong; addresses are taken from the bits that a sample of the codes shows to be even.
#[derive(Clone, Debug)]
pub struct TableIndex<C: Code> {
    design: Design,
    layout: Layout,
    tables: Vec<Table<C::Word>>,
    /// Whether a query has one probe of each table.
    once_each: bool,
    len: usize,
    ids: Option<IdLists>,
}

/// How full the buckets of a table are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketLoads {
    /// Bits that number the bucket.
    pub address_bits: u32,
    /// Entries of the bucket of a stored code, on average: the candidates of an exact probe.
    pub observed: f64,
    /// The same for codes spread evenly.
    pub expected: f64,
    /// Entries of the fullest bucket.
    pub largest: usize,
}

/// What a build may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildLimits {
    /// Memory for sorting, beside the tables. With less than eight bytes a 64-bit code the source is
    /// read several times for each table.
    pub scratch_bytes: usize,
    /// Tables that are built at the same time, each with its share of the memory; at least one.
    pub threads: usize,
}

impl Default for BuildLimits {
    fn default() -> Self {
        Self {
            scratch_bytes: usize::MAX,
            threads: 1,
        }
    }
}

/// Queries that are searched as one list where tables are probed once each.
const TOGETHER: usize = 64;
/// A table is probed at no more addresses than this.
const MOST_PROBES: u64 = 1 << 20;
/// Codes that are looked at to judge the bits.
const SAMPLE: usize = 1 << 16;

impl<C: Code> TableIndex<C> {
    /// Builds the tables of `design` over `codes`, in any order and with repetitions.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the design is for another width or has too many probes, or there are
    /// 2^32 - 1 codes or more.
    pub fn build(codes: &[C], design: &Design, layout: Layout) -> Result<Self, BuildError> {
        Self::build_from(codes, design, layout, BuildLimits::default())
    }

    /// Builds from a source that is never held in memory, such as a file.
    ///
    /// The source is read once to look at it, and twice or more for each table.
    ///
    /// # Errors
    ///
    /// As [`TableIndex::build`], and when the source fails or changes.
    pub fn build_from(
        source: &(impl CodeSource<C> + ?Sized),
        design: &Design,
        layout: Layout,
        limits: BuildLimits,
    ) -> Result<Self, BuildError> {
        let codes = C::Word::BITS;
        if design.bits() != codes {
            return Err(BuildError::OtherWidth {
                design: design.bits(),
                codes,
            });
        }
        let builder = Builder::look_at(source, layout, limits)?;
        let tables = builder.tables(design.tables())?;
        let len = tables.first().map_or(0, Table::len);
        Ok(Self::of_tables(design.clone(), layout, tables, len))
    }

    /// Builds with an id for each code; codes that occur several times have several ids.
    ///
    /// # Errors
    ///
    /// As [`TableIndex::build`], and when there are not as many ids as codes.
    pub fn build_with_ids(
        codes: &[C],
        ids: &[u64],
        design: &Design,
        layout: Layout,
    ) -> Result<Self, BuildError> {
        if codes.len() != ids.len() {
            return Err(BuildError::IdCount {
                codes: codes.len(),
                ids: ids.len(),
            });
        }
        let mut index = Self::build(codes, design, layout)?;
        if let Some(table) = index.tables.first_mut() {
            table.count_ranks();
            let rank = |i: usize| table.find(codes[i].word()).unwrap_or(0);
            index.ids = Some(IdLists::new(ids, index.len, rank));
        }
        Ok(index)
    }

    /// The index of tables that are there already.
    pub(super) fn of_tables(
        design: Design,
        layout: Layout,
        tables: Vec<Table<C::Word>>,
        len: usize,
    ) -> Self {
        let few = (1..=MOST_TABLES).contains(&tables.len());
        Self {
            design,
            layout,
            once_each: few && tables.iter().all(Table::is_probed_once),
            tables,
            len,
            ids: None,
        }
    }

    /// The number of codes before this one in the order of [`TableIndex::for_each`]; `None` when it is
    /// not stored, or when the tables are in lines and were built without ids. One probe.
    ///
    /// Whoever keeps something beside the codes keeps it in this order.
    pub fn rank(&self, code: C) -> Option<usize> {
        self.tables
            .first()
            .filter(|table| table.has_ranks())?
            .find(code.word())
    }

    /// The design of the tables.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// How the tables are stored.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Memory of tables and ids in bytes.
    pub fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        tables + self.ids.as_ref().map_or(0, IdLists::bytes)
    }

    /// Whether a code is stored. One probe.
    pub fn contains(&self, code: C) -> bool {
        self.tables
            .first()
            .is_some_and(|table| table.contains(code.word()))
    }

    /// The ids of a code, ascending; none when it is not stored or the index has no ids.
    pub fn ids(&self, code: C) -> impl Iterator<Item = u64> + '_ {
        let found = self.ids.as_ref().zip(self.tables.first());
        let list = found.and_then(|(ids, table)| Some(ids.of(table.find(code.word())?)));
        list.into_iter().flatten()
    }

    /// Visits every stored code once, in an order that depends only on what is stored and how.
    pub fn for_each(&self, visit: &mut dyn FnMut(C)) {
        if let Some(table) = self.tables.first() {
            table.for_each(&mut |word| visit(C::from_word(word)));
        }
    }

    /// How full the buckets of each table are. Linear in the number of buckets.
    pub fn loads(&self) -> Vec<BucketLoads> {
        let codes = self.len as f64;
        let of = |table: &Table<C::Word>| {
            let (mut squares, mut largest) = (0.0, 0);
            for load in table.loads() {
                squares += (load as f64).powi(2);
                largest = largest.max(load);
            }
            let buckets = 2_f64.powi(table.addressing.address_bits as i32);
            BucketLoads {
                address_bits: table.addressing.address_bits,
                observed: squares / codes.max(1.0),
                expected: 1.0 + (codes - 1.0).max(0.0) / buckets,
                largest,
            }
        };
        self.tables.iter().map(of).collect()
    }

    /// As [`TableIndex::for_each`] when that happens to be ascending; else the codes are gathered
    /// and sorted first, which takes their size in memory.
    pub fn for_each_ascending(&self, visit: &mut dyn FnMut(C)) {
        let Some(table) = self.tables.first() else {
            return;
        };
        let addressing = &table.addressing;
        let highest = !C::Word::joined(0, !C::Word::ZERO, 0).low(addressing.rest_bits);
        if addressing.address == highest {
            return self.for_each(visit);
        }
        let mut words = Vec::with_capacity(self.len);
        table.for_each(&mut |word| words.push(word));
        words.sort_unstable();
        words.into_iter().for_each(|word| visit(C::from_word(word)));
    }

    /// As [`HammingIndex::search`] for many queries, whose probes overlap in time; the first argument
    /// of `visit` is the position of the query. What is found for one query comes together.
    ///
    /// # Errors
    ///
    /// [`RadiusTooLarge`] when `radius` is larger than that of the design.
    pub fn search_group(
        &self,
        queries: &[C],
        radius: u32,
        visit: &mut dyn FnMut(usize, C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        RadiusTooLarge::check(radius, self.radius())?;
        if self.once_each {
            return Ok(self.search_once_each(queries, radius, visit));
        }
        let mut search = Search {
            index: self,
            queries,
            radius,
            visit,
            effort: Effort::default(),
        };
        let tables = self.tables.len();
        let tasks =
            (0..queries.len()).flat_map(|query| (0..tables).map(move |table| (query, table)));
        search.run(tasks);
        Ok(search.effort)
    }

    /// The search of tables that a query probes once each.
    fn search_once_each(
        &self,
        queries: &[C],
        radius: u32,
        visit: &mut dyn FnMut(usize, C, u32),
    ) -> Effort {
        let mut words = [C::Word::ZERO; TOGETHER];
        let probes = (queries.len() * self.tables.len()) as u64;
        let mut candidates = 0;
        for (number, chunk) in queries.chunks(TOGETHER).enumerate() {
            let words = &mut words[..chunk.len()];
            let all = words.iter_mut().zip(chunk);
            all.for_each(|(word, code)| *word = code.word());
            let found = &mut |query: usize, word, distance| {
                visit(number * TOGETHER + query, C::from_word(word), distance);
            };
            candidates += match self.layout {
                Layout::Lines => {
                    let mut views = [LineTable::default(); MOST_TABLES];
                    let tables = gathered(&mut views, self.tables.iter().filter_map(Table::lines));
                    C::Word::search_lines(tables, words, radius, found)
                }
                Layout::Packed | Layout::Dense => {
                    let mut views = [PackedTable::default(); MOST_TABLES];
                    let tables = gathered(&mut views, self.tables.iter().filter_map(Table::packed));
                    C::Word::search_packed(tables, words, radius, found)
                }
            };
        }
        Effort { probes, candidates }
    }

    /// As [`TableIndex::search_group`] for so many queries that they are worth ordering: each table is searched by
    /// itself, in the order of its buckets, so that probes walk through the memory instead of jumping about in it. What
    /// is found for one query does not come together. Takes eight bytes a query.
    ///
    /// # Errors
    ///
    /// [`RadiusTooLarge`] when `radius` is larger than that of the design.
    ///
    /// # Panics
    ///
    /// When there are 2^32 queries or more.
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
                .map(|query| table.addressing.bucket(query.word()) as u32);
            order.extend(buckets.zip(0..));
            order.sort_unstable();
            let mut search = Search {
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

impl<C: Code> Sealed for TableIndex<C> {}

impl<C: Code> HammingIndex for TableIndex<C> {
    type Code = C;

    fn len(&self) -> usize {
        self.len
    }

    fn radius(&self) -> u32 {
        self.design.radius()
    }

    fn search(
        &self,
        query: C,
        radius: u32,
        visit: &mut dyn FnMut(C, u32),
    ) -> Result<Effort, RadiusTooLarge> {
        self.search_group(&[query], radius, &mut |_, code, distance| {
            visit(code, distance)
        })
    }
}

/// What is known of the codes before the first table is built.
pub(super) struct Builder<'a, C: Code, S: ?Sized> {
    source: &'a S,
    layout: Layout,
    limits: BuildLimits,
    count: usize,
    balance: BitBalance,
    code: std::marker::PhantomData<C>,
}

impl<'a, C: Code, S: CodeSource<C> + ?Sized> Builder<'a, C, S> {
    pub(super) fn look_at(
        source: &'a S,
        layout: Layout,
        limits: BuildLimits,
    ) -> Result<Self, BuildError> {
        let (mut count, mut sample) = (0_usize, Vec::<C>::new());
        source.replay(&mut |codes| {
            count += codes.len();
            let step = (codes.len() / SAMPLE).max(1);
            let room = SAMPLE.saturating_sub(sample.len());
            sample.extend(codes.iter().step_by(step).take(room));
        })?;
        if count >= u32::MAX as usize {
            return Err(BuildError::TooMany(count as u64));
        }
        let balance = BitBalance::sample(&sample, SAMPLE);
        Ok(Self {
            source,
            layout,
            limits,
            count,
            balance,
            code: std::marker::PhantomData,
        })
    }

    /// Codes of the source, equal ones included.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn tables(&self, keys: &[TableKey]) -> Result<Vec<Table<C::Word>>, BuildError> {
        let Some((first, others)) = keys.split_first() else {
            return Ok(Vec::new());
        };
        let threads = self.limits.threads.clamp(1, keys.len());
        let limits = self.limits;
        let mut tables = vec![self.first_table(first, limits)?];
        let distinct = tables[0].len() as u64;
        // Each table by itself in a thread.
        let each = BuildLimits {
            scratch_bytes: limits.scratch_bytes / threads,
            threads: 1,
        };
        if threads == 1 {
            for key in others {
                tables.push(self.table(key, distinct, limits)?);
            }
            return Ok(tables);
        }
        for keys in others.chunks(threads) {
            let built = std::thread::scope(|scope| {
                let build = |key| scope.spawn(move || self.table(key, distinct, each));
                let running: Vec<_> = keys.iter().map(build).collect();
                let joined = running.into_iter().map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                joined.collect::<Result<Vec<_>, _>>()
            });
            tables.extend(built?);
        }
        Ok(tables)
    }

    /// The table that finds out how many distinct codes there are; made again, smaller, when they
    /// are far fewer than was thought.
    pub(super) fn first_table(
        &self,
        key: &TableKey,
        limits: BuildLimits,
    ) -> Result<Table<C::Word>, BuildError> {
        let table = self.table(key, self.count as u64, limits)?;
        let distinct = table.len();
        if distinct < self.count / 4 {
            self.table(key, distinct as u64, limits)
        } else {
            Ok(table)
        }
    }

    pub(super) fn table(
        &self,
        key: &TableKey,
        distinct: u64,
        limits: BuildLimits,
    ) -> Result<Table<C::Word>, BuildError> {
        let prefix = key.prefix_bits();
        let geometry = Geometry::choose(self.layout, C::Word::BITS, prefix, distinct);
        let probes = neighbours(geometry.address_bits, key.budget);
        if probes > MOST_PROBES {
            return Err(BuildError::TooManyProbes(probes));
        }
        let address = self.balance.best(key.mask, geometry.address_bits);
        let mut table = Table::new(key, address, self.layout);
        table.reserve(distinct as usize);
        let addressing = table.addressing;
        let mut push = |rests: &[C::Word]| table.push(rests);
        buckets(
            self.source,
            self.count,
            &addressing,
            (limits.scratch_bytes, limits.threads),
            &mut push,
        )?;
        table.finish();
        Ok(table)
    }
}

/// As many of `room` as there are items, which they are put into.
fn gathered<T>(room: &mut [T], items: impl Iterator<Item = T>) -> &[T] {
    let mut used = 0;
    for (at, item) in room.iter_mut().zip(items) {
        *at = item;
        used += 1;
    }
    &room[..used]
}

/// One search over the tables.
struct Search<'a, 'v, C: Code> {
    index: &'a TableIndex<C>,
    queries: &'a [C],
    radius: u32,
    visit: &'v mut dyn FnMut(usize, C, u32),
    effort: Effort,
}

/// Some probes of one query in one table, on their way.
#[derive(Clone, Copy, Default)]
struct Task<W> {
    query: u32,
    table: u32,
    /// Which of the flips of the table.
    piece: u32,
    /// Where the query itself would stand.
    bucket: u32,
    /// Its stored bits.
    needle: W,
    /// Where among the extents those of this task begin, once it is located.
    at: usize,
    /// Probes of the search up to and with this task.
    probes: u64,
}

/// Probes that are made between two stages of another.
const APART: u64 = 12;
/// Tasks on their way: each has a probe at least, and a stage is behind the one before by [`APART`] probes and a task.
const RING: usize = 64;
/// Extents on their way: [`APART`], those of the task before them, of the one after, and what a task that does not fit
/// before the end leaves there.
const EXTENTS: usize = 4 * PIECE;

/// The tasks of a search, which move through four stages: made, marks asked for, located, compared.
struct Pipeline<W> {
    tasks: [Task<W>; RING],
    made: usize,
    marked: usize,
    located: usize,
    compared: usize,
    extents: [Extent; EXTENTS],
    /// Where the next extents go.
    free: usize,
}

impl<W: Word> Pipeline<W> {
    fn new() -> Self {
        Self {
            tasks: [Task::default(); RING],
            made: 0,
            marked: 0,
            located: 0,
            compared: 0,
            extents: [Extent::default(); EXTENTS],
            free: 0,
        }
    }

    fn task(&self, number: usize) -> &Task<W> {
        &self.tasks[number % RING]
    }

    /// Probes of the first so many tasks.
    fn probes(&self, tasks: usize) -> u64 {
        tasks
            .checked_sub(1)
            .map_or(0, |last| self.task(last).probes)
    }

    /// Whether a task is at least `apart` probes before the end of the first `tasks` tasks, and among them.
    fn is_due(&self, number: usize, tasks: usize, apart: u64) -> bool {
        number < tasks && self.task(number).probes + apart <= self.probes(tasks)
    }

    /// Room for the extents of the next task, which are as many as its flips.
    fn room(&mut self, flips: usize) -> usize {
        if self.free + flips > EXTENTS {
            self.free = 0;
        }
        let at = self.free;
        self.free += flips;
        at
    }
}

impl<C: Code> Search<'_, '_, C> {
    /// Searches each of these tables for each of these queries.
    fn run(&mut self, tasks: impl Iterator<Item = (usize, usize)>) {
        let mut line = Pipeline::new();
        for (query, number) in tasks {
            let (word, table) = (self.queries[query].word(), &self.index.tables[number]);
            let bucket = table.addressing.bucket(word) as u32;
            let needle = word.extract(table.addressing.rest);
            for piece in 0..table.pieces() {
                let flips = table.piece(piece);
                table.prefetch_directory(bucket, flips);
                let task = Task {
                    query: query as u32,
                    table: number as u32,
                    piece: piece as u32,
                    bucket,
                    needle,
                    at: 0,
                    probes: line.probes(line.made) + flips.len() as u64,
                };
                line.tasks[line.made % RING] = task;
                line.made += 1;
                self.advance(&mut line, APART);
            }
        }
        self.advance(&mut line, 0);
        self.effort.probes = line.probes(line.made);
    }

    /// Moves every task on that is `apart` probes before those of the stage it comes from.
    fn advance(&mut self, line: &mut Pipeline<C::Word>, apart: u64) {
        let tables = &self.index.tables;
        while line.marked < line.made {
            let task = line.task(line.marked);
            let table = &tables[task.table as usize];
            if table.has_marks() {
                if !line.is_due(line.marked, line.made, apart) {
                    break;
                }
                table.prefetch_marks(task.bucket, table.piece(task.piece as usize));
            }
            line.marked += 1;
        }
        // Without marks, a task is located once its directory is there.
        while line.is_due(line.located, line.marked, apart) {
            let Task {
                table,
                bucket,
                piece,
                ..
            } = *line.task(line.located);
            let table = &tables[table as usize];
            let flips = table.piece(piece as usize);
            let at = line.room(flips.len());
            table.locate(bucket, flips, &mut line.extents[at..at + flips.len()]);
            line.tasks[line.located % RING].at = at;
            line.located += 1;
            while line.is_due(line.compared, line.located, APART) {
                self.compare(line);
            }
        }
        while line.is_due(line.compared, line.located, apart) {
            self.compare(line);
        }
    }

    /// The last stage, of the next task.
    fn compare(&mut self, line: &mut Pipeline<C::Word>) {
        let task = *line.task(line.compared);
        line.compared += 1;
        let index = self.index;
        let table = &index.tables[task.table as usize];
        let earlier = &index.tables[..task.table as usize];
        let query = self.queries[task.query as usize].word();
        let visit = &mut self.visit;
        let flips = table.piece(task.piece as usize);
        let probes = Flipped {
            bucket: task.bucket,
            flips,
            radius: self.radius,
        };
        let extents = &line.extents[task.at..task.at + flips.len()];
        let candidates = table.probe(probes, extents, task.needle, &mut |bucket, rest| {
            let word = table.addressing.restored(bucket.into(), rest);
            let apart = word ^ query;
            // A code that several tables find belongs to the first of them.
            let finds =
                |table: &Table<C::Word>| (apart & table.addressing.address).ones() <= table.budget;
            if !earlier.iter().any(finds) {
                visit(task.query as usize, C::from_word(word), apart.ones());
            }
        });
        self.effort.candidates += candidates;
    }
}

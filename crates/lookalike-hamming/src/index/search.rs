//! A search as a stream of tasks.
//!
//! A task is some probes (query, table, xor masks). Tasks move through stages that are some probes apart: prefetch the directory entry, in dense
//! tables also the unary directory, find the buckets and prefetch their entries, compare. So there are always a dozen or two memory requests in
//! flight, for single queries as for groups.

use super::super::Effort;
use super::super::code::Word;
use super::super::kernel::{EntryRange, ProbeSet};
use super::super::table::{PIECE, ProbeTable};
use super::TableIndex;

/// One search over the tables.
pub(super) struct IndexSearch<'a, 'v, C: Word> {
    pub(super) index: &'a TableIndex<C>,
    pub(super) queries: &'a [C],
    pub(super) radius: u32,
    pub(super) visit: &'v mut dyn FnMut(usize, C, u32),
    pub(super) effort: Effort,
}

/// Some probes of one query in one table.
#[derive(Clone, Copy, Default)]
struct SearchTask<W> {
    query: u32,
    table: u32,
    /// Index of the piece of the table's xor masks.
    piece: u32,
    /// Bucket of the query itself.
    bucket: u32,
    /// Stored bits of the query.
    needle: W,
    /// Start of the ranges of this task among all ranges, once it is located.
    at: usize,
    /// Number of probes of the search up to and including this task.
    probes: u64,
}

/// Number of probes that are made between two stages of another.
const STAGE_DISTANCE: u64 = 12;
/// Maximum number of unfinished tasks: each has at least one probe, and a stage is behind the one before by [`STAGE_DISTANCE`] probes and a task.
const RING: usize = 64;
/// Maximum number of unfinished entry ranges: [`STAGE_DISTANCE`], those of the task before them, those of the one after, and the slots that a task leaves
/// empty if it does not fit before the end.
const RANGES: usize = 4 * PIECE;

/// The tasks of a search, which move through four stages: made, unary directory requested, located, compared.
struct TaskPipeline<W> {
    tasks: [SearchTask<W>; RING],
    // Number of tasks that have passed each stage.
    made: usize,
    unary_asked: usize,
    located: usize,
    compared: usize,
    ranges: [EntryRange; RANGES],
    /// Position of the next ranges.
    free: usize,
}

impl<W: Word> TaskPipeline<W> {
    fn new() -> Self {
        Self {
            tasks: [SearchTask::default(); RING],
            made: 0,
            unary_asked: 0,
            located: 0,
            compared: 0,
            ranges: [EntryRange::default(); RANGES],
            free: 0,
        }
    }

    fn task(&self, number: usize) -> &SearchTask<W> {
        &self.tasks[number % RING]
    }

    /// Returns the number of probes of the first `tasks` tasks.
    fn probes(&self, tasks: usize) -> u64 {
        tasks
            .checked_sub(1)
            .map_or(0, |last| self.task(last).probes)
    }

    /// Returns true if a task is one of the first `tasks` tasks and at least `apart` probes before their end.
    fn is_due(&self, number: usize, tasks: usize, apart: u64) -> bool {
        number < tasks && self.task(number).probes + apart <= self.probes(tasks)
    }

    /// Returns the position for the ranges of the next task, one for each of its xor masks.
    fn room(&mut self, xor_masks: usize) -> usize {
        if self.free + xor_masks > RANGES {
            self.free = 0;
        }
        let at = self.free;
        self.free += xor_masks;
        at
    }
}

impl<C: Word> IndexSearch<'_, '_, C> {
    /// Searches each of these pairs of a query and a table.
    pub(super) fn run(&mut self, tasks: impl Iterator<Item = (usize, usize)>) {
        let mut line = TaskPipeline::new();
        for (query, number) in tasks {
            let (word, table) = (self.queries[query], &self.index.tables[number]);
            // Once for each query and table; every probe is this number with some bits flipped.
            let bucket = table.addressing.bucket(word) as u32;
            let needle = word.extract(table.addressing.rest);
            for piece in 0..table.pieces() {
                let xor_masks = table.piece(piece);
                table.prefetch_directory(bucket, xor_masks);
                let task = SearchTask {
                    query: query as u32,
                    table: number as u32,
                    piece: piece as u32,
                    bucket,
                    needle,
                    at: 0,
                    probes: line.probes(line.made) + xor_masks.len() as u64,
                };
                line.tasks[line.made % RING] = task;
                line.made += 1;
                self.advance(&mut line, STAGE_DISTANCE);
            }
        }
        // Nothing follows that could hide the latency of the last tasks, so each stage is made at once.
        self.advance(&mut line, 0);
        self.effort.probes = line.probes(line.made);
    }

    /// Advances every task that is `apart` probes before the last ones of the stage that it leaves.
    fn advance(&mut self, line: &mut TaskPipeline<C>, apart: u64) {
        let tables = &self.index.tables;
        // Stages advance in the order of tasks, so a plain ring holds all of them.
        while line.unary_asked < line.made {
            let task = line.task(line.unary_asked);
            let table = &tables[task.table as usize];
            if table.has_unary_directory() {
                if !line.is_due(line.unary_asked, line.made, apart) {
                    break;
                }
                table.prefetch_unary(task.bucket, table.piece(task.piece as usize));
            }
            line.unary_asked += 1;
        }
        // Without a unary directory, a task can be located once its directory has arrived.
        while line.is_due(line.located, line.unary_asked, apart) {
            let SearchTask {
                table,
                bucket,
                piece,
                ..
            } = *line.task(line.located);
            let table = &tables[table as usize];
            let xor_masks = table.piece(piece as usize);
            let at = line.room(xor_masks.len());
            table.locate(
                bucket,
                xor_masks,
                &mut line.ranges[at..at + xor_masks.len()],
            );
            line.tasks[line.located % RING].at = at;
            line.located += 1;
            // Compare before more are located, whose ranges would overwrite those that wait.
            while line.is_due(line.compared, line.located, STAGE_DISTANCE) {
                self.compare(line);
            }
        }
        while line.is_due(line.compared, line.located, apart) {
            self.compare(line);
        }
    }

    /// Runs the last stage of the next task.
    fn compare(&mut self, line: &mut TaskPipeline<C>) {
        let task = *line.task(line.compared);
        line.compared += 1;
        let index = self.index;
        let table = &index.tables[task.table as usize];
        // No list of results is kept: whether an earlier table finds a code follows from the bits in which it differs. A search allocates nothing,
        // and its memory does not grow with its hits.
        let earlier = &index.tables[..task.table as usize];
        let query = self.queries[task.query as usize];
        let visit = &mut self.visit;
        let xor_masks = table.piece(task.piece as usize);
        let probes = ProbeSet {
            bucket: task.bucket,
            xor_masks,
            radius: self.radius,
        };
        let ranges = &line.ranges[task.at..task.at + xor_masks.len()];
        let candidates = table.probe(probes, ranges, task.needle, &mut |bucket, rest| {
            let word = table.addressing.restored(bucket.into(), rest);
            let apart = word ^ query;
            // A code that several tables find belongs to the first of them.
            let finds =
                |table: &ProbeTable<C>| (apart & table.addressing.address).ones() <= table.budget;
            if !earlier.iter().any(finds) {
                visit(task.query as usize, word, apart.ones());
            }
        });
        self.effort.candidates += candidates;
    }
}

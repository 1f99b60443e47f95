//! Maps chunks to the units that share them: the sorted FPrint-DocID file of the paper.
//!
//! Chunk records are scattered by fingerprint and grouped part by part. A chunk of a single unit is counted in the unit's size and dropped. What
//! remains is one list of ascending units for each shared chunk. The chunks are in no particular order, and no result depends on it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::read::ChunkSets;
use super::units::UnitPlacement;
use crate::dedup::candidate_groups::{KeyRecord, KeySink};
use crate::locks::{into_inner, lock};
use crate::observer::SharedProgress;
use crate::parallel::run_on_threads;
use crate::spill::partitions::PARTS;
use crate::spill::table_column::TableColumn;
use crate::spill::temporary_file;

/// Number of words read from the file at once.
const STEP: usize = 1 << 16;

/// Lists of units, each preceded by its length: in memory up to a budget, in a file beyond that.
pub(crate) struct PostingLists {
    words: Vec<u32>,
    file: Option<File>,
    /// Number of words in the file.
    filed: u64,
    /// Maximum number of words in memory.
    budget: usize,
}

impl PostingLists {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            words: Vec::new(),
            file: None,
            filed: 0,
            budget: (budget / 4) as usize,
        }
    }

    /// Returns the number of words of all lists.
    pub(crate) fn words(&self) -> u64 {
        self.filed + self.words.len() as u64
    }

    /// Tells whether all lists are in memory.
    pub(crate) fn resident(&self) -> bool {
        self.file.is_none()
    }

    /// Returns the bytes of the lists in memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        4 * self.words.len() as u64
    }

    fn push(&mut self, list: impl ExactSizeIterator<Item = u32>) {
        self.words.push(list.len() as u32);
        self.words.extend(list);
    }

    fn append(&mut self, words: &[u32], folder: &Path) -> io::Result<()> {
        self.words.extend_from_slice(words);
        self.spill_beyond_budget(folder)
    }

    /// Adds one list.
    pub(crate) fn add(&mut self, list: &[u32], folder: &Path) -> io::Result<()> {
        self.push(list.iter().copied());
        self.spill_beyond_budget(folder)
    }

    fn spill_beyond_budget(&mut self, folder: &Path) -> io::Result<()> {
        // Once there is a file, words only gather in memory for one long write.
        let most = if self.file.is_some() {
            STEP
        } else {
            self.budget
        };
        if self.words.len() <= most {
            return Ok(());
        }
        let file = temporary_file(&mut self.file, folder)?;
        file.write_all_at(bytemuck::cast_slice(&self.words), self.filed * 4)?;
        self.filed += self.words.len() as u64;
        self.words.clear();
        self.words.shrink_to(STEP);
        Ok(())
    }

    /// Visits all lists in the order in which they were added, each with its position.
    pub(crate) fn scan(
        &self,
        mut visit: impl FnMut(u64, &[u32]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut position = 0;
        while position < self.filed {
            buffer.clear();
            self.fill(
                position,
                STEP.min((self.filed - position) as usize),
                &mut buffer,
            )?;
            // The position is always the start of a list, so the first word is a length.
            let length = buffer[0] as usize + 1;
            if length > buffer.len() {
                let from = position + buffer.len() as u64;
                self.fill(from, length - buffer.len(), &mut buffer)?;
            }
            // If the step cuts a list off, the list is read again with the next step.
            let whole = visit_lists(&buffer, position, &mut visit)?;
            position += whole as u64;
        }
        visit_lists(&self.words, position, &mut visit).map(|_| ())
    }

    fn fill(&self, from: u64, count: usize, buffer: &mut Vec<u32>) -> io::Result<()> {
        let start = buffer.len();
        buffer.resize(start + count, 0);
        let file = self.file.as_ref().expect("words are filed in a file");
        file.read_exact_at(bytemuck::cast_slice_mut(&mut buffer[start..]), from * 4)
    }

    /// Returns the list of `length` units at a position that [`PostingLists::scan`] reported.
    pub(crate) fn get<'a>(
        &'a self,
        position: u64,
        length: u32,
        buffer: &'a mut Vec<u32>,
    ) -> io::Result<&'a [u32]> {
        let length = length as usize;
        if position >= self.filed {
            // Skip the length, which the caller knows.
            let start = (position - self.filed) as usize + 1;
            return Ok(&self.words[start..start + length]);
        }
        buffer.clear();
        self.fill(position + 1, length, buffer)?;
        Ok(buffer)
    }
}

/// Visits the lists that are complete in `words`. Returns the number of words that they take.
fn visit_lists(
    words: &[u32],
    position: u64,
    visit: &mut impl FnMut(u64, &[u32]) -> io::Result<()>,
) -> io::Result<usize> {
    let mut at = 0;
    while at < words.len() {
        let end = at + 1 + words[at] as usize;
        // A list that is cut off here is complete in the next words.
        if end > words.len() {
            break;
        }
        visit(position + at as u64, &words[at + 1..end])?;
        at = end;
    }
    Ok(at)
}

/// The shared chunks of one chunking.
pub(crate) struct Postings {
    pub(crate) lists: PostingLists,
    /// Number of chunks by the number of units that share them, from 2.
    pub(crate) histogram: BTreeMap<u32, u64>,
    /// Number of chunk records: every distinct chunk of every unit.
    pub(crate) records: u64,
    /// Number of distinct chunks.
    pub(crate) distinct: u64,
    /// Number of distinct chunks of each unit.
    pub(crate) sizes: TableColumn<u32>,
}

/// Resources for [`collect`].
pub(crate) struct CountResources<'a> {
    pub(crate) threads: usize,
    /// Bytes of scattered records that stay in memory.
    pub(crate) keys: u64,
    /// Bytes of lists that stay in memory.
    pub(crate) lists: u64,
    /// Bytes of the parts that threads group.
    pub(crate) parts: u64,
    pub(crate) folder: &'a Path,
    /// Receiver of the number of finished [`steps`], which may end the work.
    pub(crate) advance: &'a (dyn Fn(u64) -> io::Result<()> + Sync),
}

/// Returns the number of steps of [`collect`]: segments to scatter plus parts to group.
pub(crate) fn steps(chunks: &ChunkSets) -> u64 {
    (chunks.sets.segments() + PARTS) as u64
}

/// Groups the chunks of all classes by fingerprint.
///
/// Memory: the budgets, or what one thread needs if that is more: 28 bytes for each record of the largest part, and 4 for each unit.
pub(crate) fn collect(
    chunks: &ChunkSets,
    placement: &UnitPlacement,
    units: usize,
    means: &CountResources<'_>,
) -> io::Result<Postings> {
    let sink = KeySink::new(means.folder, means.keys)?;
    scatter(chunks, placement, &sink, means)?;
    let scattered = chunks.sets.segments();
    let whole = Mutex::new(Postings {
        lists: PostingLists::new(means.lists),
        histogram: BTreeMap::new(),
        records: 0,
        distinct: 0,
        sizes: TableColumn::zeroed(units),
    });
    let next = AtomicUsize::new(0);
    let done = SharedProgress::starting_at(scattered as u64);
    // Each thread holds a part as it was scattered, and in the order of chunks.
    let record_bytes = size_of::<KeyRecord>() + size_of::<(u64, u32)>();
    let thread_bytes = sink.largest() * record_bytes as u64 + 4 * units as u64;
    let fitting = (means.parts / thread_bytes.max(1)).clamp(1, means.threads as u64);
    run_on_threads(fitting as usize, || -> io::Result<()> {
        let mut grouper = PartGrouper::new(units);
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS {
                break;
            }
            grouper.group(&sink.take(part)?);
            // Grouping needs no lock; only finished lists are handed over under it.
            grouper.append_to(&mut lock(&whole), means.folder)?;
            done.add(1, means.advance)?;
        }
        // Each thread has counted sizes separately, so one lock at its end is enough.
        let mut whole = lock(&whole);
        whole
            .sizes
            .iter_mut()
            // Integer sums do not depend on the order of the threads.
            .zip(&grouper.sizes)
            .for_each(|(all, own)| *all += own);
        Ok(())
    })?;
    Ok(into_inner(whole))
}

fn scatter(
    chunks: &ChunkSets,
    placement: &UnitPlacement,
    sink: &KeySink,
    means: &CountResources<'_>,
) -> io::Result<()> {
    let (next, done) = (AtomicUsize::new(0), SharedProgress::default());
    let scattered = run_on_threads(means.threads, || -> io::Result<()> {
        let mut writer = sink.writer();
        let mut buffer = Vec::new();
        loop {
            let segment = next.fetch_add(1, Ordering::Relaxed);
            if segment >= chunks.sets.segments() {
                return writer.finish();
            }
            chunks.sets.walk(segment, &mut buffer, |class, set| {
                for &unit in placement.of(class) {
                    set.iter().try_for_each(|&chunk| writer.push(chunk, unit))?;
                }
                Ok(())
            })?;
            done.add(1, means.advance)?;
        }
    });
    scattered.map(drop)
}

/// Sorts the records of a bucket, of which there are mostly one or two.
#[inline]
fn sort_bucket(bucket: &mut [(u64, u32)]) {
    // Insertion sort is the fastest for so few records; large buckets come from chunks with many units.
    if bucket.len() > 12 {
        return bucket.sort_unstable();
    }
    for next in 1..bucket.len() {
        let mut at = next;
        while at > 0 && bucket[at] < bucket[at - 1] {
            bucket.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Groups the records of parts, one part after another. Each thread has one.
struct PartGrouper {
    sizes: TableColumn<u32>,
    records: Vec<(u64, u32)>,
    places: Vec<u32>,
    part: PostingLists,
    histogram: BTreeMap<u32, u64>,
    count: u64,
    distinct: u64,
}

impl PartGrouper {
    fn new(units: usize) -> Self {
        Self {
            sizes: TableColumn::zeroed(units),
            records: Vec::new(),
            places: Vec::new(),
            // Never written to disk here: `append_to` hands the words over after each part.
            part: PostingLists::new(u64::MAX),
            histogram: BTreeMap::new(),
            count: 0,
            distinct: 0,
        }
    }

    fn group(&mut self, records: &[KeyRecord]) {
        self.sort(records);
        for group in self.records.chunk_by(|a, b| a.0 == b.0) {
            group
                .iter()
                .for_each(|&(_, unit)| self.sizes[unit as usize] += 1);
            self.count += group.len() as u64;
            self.distinct += 1;
            // A chunk of one unit makes no pair.
            if group.len() > 1 {
                self.part.push(group.iter().map(|record| record.1));
                *self.histogram.entry(group.len() as u32).or_default() += 1;
            }
        }
    }

    /// Sorts by fingerprint and unit and removes duplicates. Records are first distributed into buckets of a few records, by bits that the scattering
    /// did not use.
    fn sort(&mut self, records: &[KeyRecord]) {
        // About one record a bucket, and at most 4 MiB of places.
        let bits = records.len().max(2).ilog2().min(20);
        let key = |record: &KeyRecord| u64::from(record[0]) << 32 | u64::from(record[1]);
        // The scattering used the lowest byte, which all keys of a part share.
        let bucket = |key: u64| (key >> 8) as usize & ((1 << bits) - 1);
        self.places.clear();
        self.places.resize((1 << bits) + 1, 0);
        records
            .iter()
            .for_each(|record| self.places[bucket(key(record)) + 1] += 1);
        for i in 0..1 << bits {
            self.places[i + 1] += self.places[i];
        }
        self.records.clear();
        self.records.resize(records.len(), (0, 0));
        for record in records {
            let place = &mut self.places[bucket(key(record))];
            self.records[*place as usize] = (key(record), record[2]);
            *place += 1;
        }
        // Each place has moved to the end of its bucket.
        let mut start = 0;
        for &end in &self.places[..1 << bits] {
            sort_bucket(&mut self.records[start as usize..end as usize]);
            start = end;
        }
        // Equal records are in the same bucket and adjacent there, although the buckets together are in no order.
        self.records.dedup();
    }

    fn append_to(&mut self, whole: &mut Postings, folder: &Path) -> io::Result<()> {
        whole.lists.append(&self.part.words, folder)?;
        self.part.words.clear();
        for (&units, &chunks) in &self.histogram {
            // A chunk is in one part only, so the counts of the parts add up.
            *whole.histogram.entry(units).or_default() += chunks;
        }
        self.histogram.clear();
        whole.records += std::mem::take(&mut self.count);
        whole.distinct += std::mem::take(&mut self.distinct);
        Ok(())
    }
}

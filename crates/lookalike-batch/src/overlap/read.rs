//! Reads every record once: its id, its site, the class of its text and, once for each class, its chunks under every chunking.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::chunk::Chunker;
use lookalike_corpus::{FieldPath, Record, TextState};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::settings::OverlapSettings;
use super::site::DocumentSite;
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::dedup::id_table::IdTable;
use crate::dedup::scan_tally::ScanTally;
use crate::dedup::seen_texts::SeenTexts;
use crate::document_memory::DocumentUse;
use crate::error::BatchError;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::skipped::{SkippedLine, SkippedRow, SkippedRows};
use crate::spill::feature_sets::{SetStore, header};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::{self, TableShareSizes};

/// Options and resources of the reading.
pub(crate) struct ReadPlan<'a> {
    pub(crate) scan: RecordScan<'a>,
    pub(crate) settings: &'a OverlapSettings,
    /// True if URLs and servers are needed.
    pub(crate) sites: bool,
    /// Bytes for chunks, tables and lists together.
    pub(crate) budget: OverlapBudget,
    pub(crate) folder: &'a Path,
}

/// Everything that was read.
pub(crate) struct OverlapInput {
    pub(crate) documents: DocumentTable,
    pub(crate) classes: TextClasses,
    pub(crate) sites: DocumentSites,
    /// Chunks of every class, under each chunking.
    pub(crate) chunks: Vec<ChunkSets>,
    pub(crate) facts: ReadingFacts,
}

/// Counts of the records, and what could not be read.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct ReadingFacts {
    pub(crate) tally: ScanTally,
    pub(crate) skipped: Vec<SkippedRow>,
    pub(crate) lines: Vec<SkippedLine>,
    pub(crate) unreadable: u64,
}

/// The chunk sets of one chunking.
pub(crate) struct ChunkSets {
    pub(crate) sets: SetStore,
    /// Number of chunks of each class.
    pub(crate) sizes: TableColumn<u32>,
}

/// Memory apart from the fixed part. Tables of documents get a share of it and are in files beyond that: see [`table_memory`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverlapBudget {
    pub(crate) all: u64,
    /// Bytes of the limit that are not in `all`.
    pub(crate) fixed: u64,
}

impl OverlapBudget {
    /// Minimum memory for grouping and counting, besides tables and lists.
    pub(crate) const MIN_MEMORY: u64 = 2 << 20;

    pub(crate) fn table_share(&self) -> TableShareSizes {
        TableShareSizes::of(self.all)
    }

    /// Returns the memory that `tables` and `lists` leave for chunk sets, or for grouping and counting. Lists always stay in memory.
    ///
    /// # Errors
    /// If the lists do not fit next to the tables.
    pub(crate) fn remaining_after(
        &self,
        tables: u64,
        lists: ResidentLists,
    ) -> Result<u64, BatchError> {
        let kept = lists.names + lists.unread + Self::MIN_MEMORY;
        let beside_tables = self.all - tables.min(self.table_share().all());
        if kept <= beside_tables {
            // The minimum is only demanded here; it is part of what the caller gets.
            return Ok(beside_tables - (kept - Self::MIN_MEMORY));
        }
        let largest = [
            (Self::MIN_MEMORY, "counting"),
            (lists.names, "the list of servers"),
            (lists.unread, "the list of what could not be read"),
        ];
        let (_, what) = largest.into_iter().max().expect("three of them");
        Err(BatchError::Memory {
            what,
            needed: kept,
            left: beside_tables,
            least: self.least(lists, Self::MIN_MEMORY),
        })
    }

    /// Returns the smallest limit that leaves `needed` bytes beside tables and `lists`.
    pub(super) fn least(&self, lists: ResidentLists, needed: u64) -> u64 {
        self.fixed + TableShareSizes::min_memory_beside(lists.names + lists.unread + needed)
    }
}

/// Bytes of data that stay in memory whatever the limit is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResidentLists {
    /// Names and addresses of servers.
    pub(crate) names: u64,
    /// Reports of parts that could not be read.
    pub(crate) unread: u64,
}

/// URLs and servers of documents; empty if not requested.
#[derive(Default)]
pub(crate) struct DocumentSites {
    /// URLs, stored like ids. An empty URL means that the id is the URL.
    pub(crate) urls: IdTable,
    /// Number of each document's server: one more than its position in `names`.
    pub(crate) servers: TableColumn<Option<NonZeroU32>>,
    /// Names of servers, in the order in which they first occurred.
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, NonZeroU32>,
    /// Known addresses of servers, with the servers' numbers.
    pub(crate) addresses: BTreeSet<(NonZeroU32, String)>,
    /// Memory of these names and addresses, in bytes.
    name_bytes: u64,
}

/// Returns the bytes that the name of a server takes in both tables.
fn bytes_of_name(name: &str) -> u64 {
    2 * name.len() as u64 + 96
}

/// Returns the bytes that the address of a server takes.
fn bytes_of_address(address: &str) -> u64 {
    64 + address.len() as u64
}

impl DocumentSites {
    fn push(&mut self, site: DocumentSite) {
        self.urls.push(site.url.as_deref().unwrap_or_default());
        let server = site.server.map(|name| {
            // Never saturates, since there are at most as many servers as documents.
            let next = NonZeroU32::MIN.saturating_add(self.names.len() as u32);
            *self.numbers.entry(name).or_insert_with_key(|name| {
                self.name_bytes += bytes_of_name(name);
                self.names.push(name.clone());
                next
            })
        });
        self.servers.push(server);
        if let (Some(server), Some(address)) = (server, site.address) {
            // Most documents repeat a known address, which takes nothing more.
            let bytes = bytes_of_address(&address);
            let is_new = self.addresses.insert((server, address));
            self.name_bytes += if is_new { bytes } else { 0 };
        }
    }

    /// Returns the URL of a document if it has one that differs from its id.
    pub(crate) fn url(&self, document: usize) -> Option<&str> {
        if self.urls.is_empty() {
            return None;
        }
        Some(self.urls.get(document)).filter(|url| !url.is_empty())
    }

    /// Puts the sites of documents in another order.
    pub(super) fn reorder(&mut self, order: &[u32]) {
        if !self.urls.is_empty() {
            let servers = order.iter();
            let servers = servers.map(|&document| self.servers[document as usize]);
            self.servers = servers.collect();
            self.urls = self.urls.in_order(order);
        }
    }

    /// Returns the bytes of the columns.
    pub(crate) fn bytes(&self) -> u64 {
        (self.urls.bytes() + self.servers.capacity() * 4) as u64
    }

    /// Sets the names and addresses of the servers.
    pub(crate) fn set_names(
        &mut self,
        names: Vec<String>,
        addresses: BTreeSet<(NonZeroU32, String)>,
    ) {
        let of_names: u64 = names.iter().map(|name| bytes_of_name(name)).sum();
        let of_addresses = addresses
            .iter()
            .map(|(_, address)| bytes_of_address(address));
        self.name_bytes = of_names + of_addresses.sum::<u64>();
        (self.names, self.addresses) = (names, addresses);
    }
}

/// Result of one worker for one chunk of input.
#[derive(Default)]
struct ChunkedBatch {
    ids: String,
    rows: Vec<ChunkedRow>,
    classes: Vec<(ClassId, u128)>,
    /// Feature sets with headers, for each chunking.
    words: Vec<Vec<u64>>,
    /// Records and files that could not be read.
    lines: Vec<SkippedLine>,
    tally: ScanTally,
}

struct ChunkedRow {
    id_end: u32,
    class: Option<ClassId>,
    length: u64,
    record_hash: u64,
    site: DocumentSite,
}

struct OverlapReader<'a> {
    plan: &'a ReadPlan<'a>,
    seen: &'a SeenTexts,
    too_many: &'a AtomicBool,
    chunker: Chunker,
    url_field: FieldPath,
}

impl RecordWorker for OverlapReader<'_> {
    const VISIBLE: bool = true;

    type Product = ChunkedBatch;

    fn add(&mut self, record: &Record<'_>, batch: &mut ChunkedBatch) {
        let site = match self.plan.sites {
            true => {
                let source = &self.plan.scan.inputs.sources[record.source as usize];
                DocumentSite::of(
                    record,
                    !source.is_document(),
                    &self.plan.settings.server,
                    &self.url_field,
                    &self.plan.settings.address,
                )
            }
            false => DocumentSite::default(),
        };
        let chunkings = self.plan.settings.chunkings.len();
        batch.words.resize_with(chunkings, Vec::new);
        if !batch.add(record, site, self.seen, &mut self.chunker) {
            // Read when all workers have ended.
            self.too_many.store(true, Ordering::Relaxed);
        }
    }

    fn add_skipped(&mut self, line: &dyn Fn() -> SkippedLine, batch: &mut ChunkedBatch) {
        batch.lines.push(line());
    }

    fn shrink(&mut self) {
        self.chunker.shrink();
    }
}

impl ChunkedBatch {
    /// Adds a record. Returns false if there are too many texts.
    fn add(
        &mut self,
        record: &Record<'_>,
        site: DocumentSite,
        seen: &SeenTexts,
        chunker: &mut Chunker,
    ) -> bool {
        let text = &*record.text;
        let tally = &mut self.tally;
        tally.count(record);
        let class = if text.trim().is_empty() {
            // A text that is too long arrives as an empty one and is counted separately.
            tally.empty += u64::from(record.text_state != TextState::TooLong);
            None
        } else {
            // Of all that a reader sees: pages with the same main content in other surroundings are not the same text.
            let hash = record.seen_hash();
            // No class numbers are left. Reading continues, and the job fails at its end.
            let Some((class, is_new)) = seen.class(hash) else {
                return false;
            };
            // Equal texts have equal chunks, so only the worker that sees a text first splits it.
            if is_new {
                self.classes.push((class, hash));
                self.add_chunks(class, text, chunker);
            }
            Some(class)
        };
        self.ids.push_str(&record.id);
        self.rows.push(ChunkedRow {
            // The ids of one chunk of the input are far below 4 GiB.
            id_end: self.ids.len() as u32,
            class,
            length: text.len() as u64,
            // Orders documents that have both id and text in common, so that the order of the input does not decide which one is renamed.
            record_hash: xxh3_64(record.raw),
            site,
        });
        true
    }

    fn add_chunks(&mut self, class: ClassId, text: &str, chunker: &mut Chunker) {
        chunker.chunk(text);
        for (chunking, words) in self.words.iter_mut().enumerate() {
            let set = chunker.set(chunking);
            words.push(header(class.position() as u32, set.len()));
            words.extend_from_slice(set);
        }
    }
}

impl OverlapInput {
    /// Creates an empty result.
    pub(crate) fn new(plan: &ReadPlan<'_>) -> Self {
        // At first; `shrink` lowers it as tables grow. The settings have at least one chunking; `OverlapSettings::check` refuses others.
        let share = plan.budget.all / 3 / plan.settings.chunkings.len() as u64;
        let chunks = plan.settings.chunkings.iter();
        Self {
            documents: DocumentTable::default(),
            classes: TextClasses::default(),
            sites: DocumentSites::default(),
            chunks: chunks
                .map(|_| ChunkSets {
                    sets: SetStore::new(share),
                    sizes: TableColumn::new(),
                })
                .collect(),
            facts: ReadingFacts::default(),
        }
    }

    /// Returns the bytes of the tables and of the hash table of texts.
    fn bytes(&self) -> u64 {
        let (documents, texts) = (self.documents.len() as u64, self.classes.len() as u64);
        let tables = self.documents.bytes() + self.classes.bytes() + self.sites.bytes();
        tables + 40 * documents + 36 * texts
    }

    /// Returns the bytes of names, and of the lines about what could not be read; `line_bytes` are those of their texts.
    pub(crate) fn lists(&self, line_bytes: u64) -> ResidentLists {
        // A growing list is briefly in memory twice.
        let lines = 2 * self.facts.lines.capacity() * size_of::<SkippedLine>();
        ResidentLists {
            names: self.sites.name_bytes,
            unread: lines as u64 + line_bytes,
        }
    }

    /// Moves chunk sets to disk to make room for tables.
    pub(crate) fn shrink(&mut self, left: u64, folder: &Path) -> Result<(), BatchError> {
        let share = left / self.chunks.len() as u64;
        let mut chunks = self.chunks.iter_mut();
        chunks
            .try_for_each(|chunks| chunks.sets.shrink(share, folder))
            .and_then(|()| table_memory::check(folder))
            .map_err(BatchError::temporary(folder))
    }

    fn append(&mut self, batch: ChunkedBatch, plan: &ReadPlan<'_>) -> Result<(), BatchError> {
        let mut start = 0;
        for row in batch.rows {
            self.documents
                .push_id(&batch.ids[start..row.id_end as usize]);
            start = row.id_end as usize;
            self.documents.classes.push(row.class);
            self.documents.lengths.push(row.length);
            self.documents.record_hashes.push(row.record_hash);
            if plan.sites {
                self.sites.push(row.site);
            }
        }
        for (class, hash) in batch.classes {
            self.classes.set(class, hash, 0, 0);
        }
        for (chunks, mut words) in self.chunks.iter_mut().zip(batch.words) {
            // The store keeps and counts the whole capacity.
            words.shrink_to_fit();
            chunks
                .push(words, plan.folder)
                .map_err(BatchError::temporary(plan.folder))?;
        }
        self.facts.tally += batch.tally;
        self.facts.lines.extend(batch.lines);
        Ok(())
    }
}

impl ChunkSets {
    pub(crate) fn push(&mut self, words: Vec<u64>, folder: &Path) -> std::io::Result<()> {
        let mut at = 0;
        while at < words.len() {
            let (class, length) = crate::spill::feature_sets::split(words[at]);
            // Threads number texts as they find them, so a higher number may come first.
            if self.sizes.len() <= class as usize {
                self.sizes.resize(class as usize + 1, 0);
            }
            self.sizes[class as usize] = length as u32;
            at += 1 + length;
        }
        self.sets.push(words, folder).map(|_| ())
    }
}

/// Reads all inputs.
pub(crate) fn read(plan: &ReadPlan<'_>) -> Result<OverlapInput, BatchError> {
    let RecordScan { inputs, losses, .. } = &plan.scan;
    losses.refuse_undiscovered(inputs)?;
    let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
    let reader = || OverlapReader {
        plan,
        seen: &seen,
        too_many: &too_many,
        chunker: Chunker::new(
            &plan.settings.chunkings,
            plan.settings.bits,
            &plan.settings.scheme,
        ),
        url_field: FieldPath::name("url"),
    };
    let mut out = OverlapInput::new(plan);
    let mut rows = SkippedRows::default();
    out.facts.lines = inputs.skips.iter().map(SkippedLine::of_part).collect();
    let mut line_bytes = 0;
    let documents = DocumentUse::Chunks(plan.settings);
    let read = (plan.scan).read(documents, &mut rows, reader, |batch: ChunkedBatch, _| {
        line_bytes += batch.lines.iter().map(SkippedLine::text_bytes).sum::<u64>();
        out.append(batch, plan)?;
        let left = plan
            .budget
            .remaining_after(out.bytes(), out.lists(line_bytes))?;
        // Tables grow with every batch, so chunk sets get less and less until they move to disk.
        out.shrink(left, plan.folder)
    })?;
    // One 32-bit value means no document, so the number itself is one too many.
    if too_many.load(Ordering::Relaxed) || out.documents.len() >= u32::MAX as usize {
        return Err(BatchError::TooMany);
    }
    out.facts.unreadable = read.unreadable;
    out.facts.skipped = rows.finish();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_that_do_not_fit_are_refused_with_the_least_that_does(
            all in 0..1_u64 << 36,
            fixed in 0..1_u64 << 30,
            tables in 0..1_u64 << 40,
            names in 0..1_u64 << 32,
            unread in 0..1_u64 << 32,
        ) {
            let budget = OverlapBudget { all, fixed };
            let lists = ResidentLists { names, unread };
            match budget.remaining_after(tables, lists) {
                Ok(left) => prop_assert!((OverlapBudget::MIN_MEMORY..=all).contains(&left)),
                Err(BatchError::Memory { least, .. }) => {
                    prop_assert!(least > all + fixed);
                    let more = OverlapBudget { all: least - fixed, fixed };
                    prop_assert!(more.remaining_after(tables, lists).is_ok());
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}

//! The first stage: every record once; its id, site and text's class, and once a class its chunks under every chunking.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::chunk::Chunker;
use lookalike_corpus::{
    BadRecord, FieldPath, InputOptions, Inputs, Parser, Record, RecordChunk, TextState,
};
use xxhash_rust::xxh3::xxh3_64;

use super::settings::OverlapSettings;
use super::site::DocumentSite;
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::dedup::scan_tally::ScanTally;
use crate::dedup::seen_texts::SeenTexts;
use crate::document_memory::DocumentMemory;
use crate::error::BatchError;
use crate::observer::{JobObserver, ensure_wanted};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::skipped::SkippedLine;
use crate::skipped::{SkippedInput, SkippedRow, SkippedRows};
use crate::spill::feature_sets::{SetStore, header};

/// Options of the reading.
pub(crate) struct ReadPlan<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) options: &'a InputOptions,
    pub(crate) settings: &'a OverlapSettings,
    /// True if URLs and servers are wanted.
    pub(crate) sites: bool,
    pub(crate) threads: usize,
    pub(crate) memory: DocumentMemory<'a>,
    /// Bytes of chunks to keep in memory.
    pub(crate) sets_budget: u64,
    /// Bytes of chunks and tables together.
    pub(crate) tables: TableLimit,
    pub(crate) folder: &'a Path,
}

/// All that was read.
pub(crate) struct ReadOut {
    pub(crate) documents: DocumentTable,
    pub(crate) classes: TextClasses,
    pub(crate) sites: DocumentSites,
    /// Chunks of every class, under each chunking.
    pub(crate) chunks: Vec<ChunkSets>,
    pub(crate) tally: ScanTally,
    pub(crate) skipped: Vec<SkippedRow>,
    pub(crate) lines: Vec<SkippedLine>,
    pub(crate) unreadable: u64,
}

/// The chunk sets of one chunking.
pub(crate) struct ChunkSets {
    pub(crate) sets: SetStore,
    /// Chunks of each class.
    pub(crate) sizes: Vec<u32>,
}

/// Memory that tables may take while records are read: looked at from the first one, so that a job that cannot end is refused before it
/// has taken what it must not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLimit {
    pub(crate) left: u64,
    /// Bytes of the memory that are not left.
    pub(crate) fixed: u64,
}

impl TableLimit {
    /// Memory that `tables` leave for sets of chunks, after `read` of `total` bytes of input; an error where they leave nothing.
    /// The need of all of the input is guessed from that of this part.
    fn left_by(&self, tables: u64, read: u64, total: u64) -> Result<u64, BatchError> {
        /// Records ahead may take more than those that were read: one of so many parts of what they are expected to take.
        const UNSURE: f64 = 20.0;
        self.left.checked_sub(tables).ok_or_else(|| {
            let parts = (total as f64 / read.max(1) as f64).max(1.0);
            let needed = tables as f64 * parts;
            let unsure = (needed - tables as f64) / UNSURE;
            BatchError::Memory {
                what: "the table of documents",
                needed: needed as u64,
                left: self.left,
                least: self.fixed.saturating_add((needed + unsure) as u64),
            }
        })
    }
}

/// URLs and servers of documents; empty when nobody asked.
#[derive(Default)]
pub(crate) struct DocumentSites {
    urls: String,
    /// Ends of the URLs in `urls`, by document; an empty one stands for the id.
    url_ends: Vec<u64>,
    /// Numbers of servers, one more than their position in `names`.
    pub(crate) servers: Vec<Option<NonZeroU32>>,
    /// Servers as they turned up.
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, NonZeroU32>,
    /// Addresses of servers.
    pub(crate) addresses: BTreeSet<(NonZeroU32, String)>,
}

impl DocumentSites {
    fn push(&mut self, site: DocumentSite) {
        self.urls.push_str(site.url.as_deref().unwrap_or_default());
        self.url_ends.push(self.urls.len() as u64);
        let server = site.server.map(|name| {
            let next = NonZeroU32::MIN.saturating_add(self.names.len() as u32);
            *self.numbers.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                next
            })
        });
        self.servers.push(server);
        if let (Some(server), Some(address)) = (server, site.address) {
            self.addresses.insert((server, address));
        }
    }

    /// URLs, their ends, and numbers of servers.
    pub(crate) fn columns(&self) -> (&str, &[u64], &[Option<NonZeroU32>]) {
        (&self.urls, &self.url_ends, &self.servers)
    }

    /// From its columns, without the names of servers; nothing can be added.
    pub(crate) fn from_columns(
        urls: String,
        url_ends: Vec<u64>,
        servers: Vec<Option<NonZeroU32>>,
    ) -> Self {
        Self {
            urls,
            url_ends,
            servers,
            ..Self::default()
        }
    }

    /// The URL of a document, if it has one that is not its id.
    pub(crate) fn url(&self, document: usize) -> Option<&str> {
        let end = *self.url_ends.get(document)? as usize;
        let start = document
            .checked_sub(1)
            .map_or(0, |before| self.url_ends[before] as usize);
        (end > start).then(|| &self.urls[start..end])
    }

    pub(crate) fn bytes(&self) -> u64 {
        let names: usize = self.names.iter().map(|name| 2 * name.len() + 96).sum();
        let addresses: usize = self
            .addresses
            .iter()
            .map(|address| 64 + address.1.len())
            .sum();
        let columns = self.urls.capacity() + self.url_ends.capacity() * 8;
        (columns + self.servers.capacity() * 4 + names + addresses) as u64
    }
}

/// Result of one worker for one chunk of input.
#[derive(Default)]
struct ChunkedBatch {
    ids: String,
    rows: Vec<ChunkedRow>,
    classes: Vec<(ClassId, u128)>,
    /// Sets with headers, for each chunking.
    words: Vec<Vec<u64>>,
    skipped: Vec<(SkippedInput, SkippedLine)>,
    unreadable: u64,
    tally: ScanTally,
    disk_bytes: u64,
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
    parser: Parser<'a>,
    chunker: Chunker,
    url_field: FieldPath,
}

impl ChunkWorker<RecordChunk> for OverlapReader<'_> {
    type Output = ChunkedBatch;

    fn run(&mut self, chunk: &RecordChunk) -> Result<ChunkedBatch, BatchError> {
        let mut batch = ChunkedBatch {
            words: vec![Vec::new(); self.plan.settings.chunkings.len()],
            disk_bytes: chunk.disk_bytes,
            ..ChunkedBatch::default()
        };
        let skips = chunk.skips.iter();
        batch.skipped = skips
            .map(|skip| (SkippedInput::part(skip), SkippedLine::of_part(skip)))
            .collect();
        let Self {
            plan,
            seen,
            too_many,
            parser,
            chunker,
            url_field,
        } = self;
        parser.parse(chunk, &mut |record| match record {
            Err(bad) => batch.add_bad(plan.inputs, &bad),
            Ok(record) => {
                let site = match plan.sites {
                    true => {
                        let source = &plan.inputs.sources[record.source as usize];
                        DocumentSite::of(
                            &record,
                            !source.is_document(),
                            &plan.settings.server,
                            url_field,
                            &plan.settings.address,
                        )
                    }
                    false => DocumentSite::default(),
                };
                if !batch.add(&record, site, seen, chunker) {
                    too_many.store(true, Ordering::Relaxed);
                }
            }
        });
        Ok(batch)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        self.chunker.shrink();
    }
}

impl ChunkedBatch {
    fn add_bad(&mut self, inputs: &Inputs, bad: &BadRecord) {
        self.unreadable += 1;
        let line = SkippedLine::of_record(inputs, bad);
        self.skipped.push((SkippedInput::record(inputs, bad), line));
    }

    /// Adds a record; false when there are too many texts.
    fn add(
        &mut self,
        record: &Record<'_>,
        site: DocumentSite,
        seen: &SeenTexts,
        chunker: &mut Chunker,
    ) -> bool {
        let text = &*record.text;
        let tally = &mut self.tally;
        tally.text_bytes += text.len() as u64;
        tally.missing += u64::from(record.text_state == TextState::Missing);
        tally.too_long += u64::from(record.text_state == TextState::TooLong);
        tally.replaced += u64::from(record.replaced);
        tally.generated_ids += u64::from(record.id_generated);
        tally.named_ids += u64::from(record.id_named);
        tally.removed.count(&record.removed);
        let class = if text.trim().is_empty() {
            // A text that is too long comes as an empty one, and has its own count.
            tally.empty += u64::from(record.text_state != TextState::TooLong);
            None
        } else {
            let hash = record.seen_hash();
            // The numbers of classes are full: reading goes on, and the job is refused at its end.
            let Some((class, is_new)) = seen.class(hash) else {
                return false;
            };
            // Equal texts have equal chunks: whoever sees a text first cuts it, and nobody else.
            if is_new {
                self.classes.push((class, hash));
                self.add_chunks(class, text, chunker);
            }
            Some(class)
        };
        self.ids.push_str(&record.id);
        self.rows.push(ChunkedRow {
            id_end: self.ids.len() as u32,
            class,
            length: text.len() as u64,
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

impl ReadOut {
    /// Nothing yet.
    pub(crate) fn new(plan: &ReadPlan<'_>) -> Self {
        let share = plan.sets_budget / plan.settings.chunkings.len() as u64;
        let chunks = plan.settings.chunkings.iter();
        Self {
            documents: DocumentTable::default(),
            classes: TextClasses::default(),
            sites: DocumentSites::default(),
            chunks: chunks
                .map(|_| ChunkSets {
                    sets: SetStore::new(share),
                    sizes: Vec::new(),
                })
                .collect(),
            tally: ScanTally::default(),
            skipped: Vec::new(),
            lines: Vec::new(),
            unreadable: 0,
        }
    }

    /// Bytes of the tables, and of the hash table of texts.
    fn bytes(&self) -> u64 {
        let (documents, texts) = (self.documents.len() as u64, self.classes.len() as u64);
        let tables = self.documents.bytes() + self.classes.bytes() + self.sites.bytes();
        // A list that grows is in memory twice for a moment.
        let lines = 2 * self.lines.capacity() * size_of::<SkippedLine>();
        let tables = tables + lines as u64;
        tables + 40 * documents + 36 * texts
    }

    /// Has chunks make room for tables.
    fn shrink(&mut self, left: u64, plan: &ReadPlan<'_>) -> Result<(), BatchError> {
        let share = left / self.chunks.len() as u64;
        let mut chunks = self.chunks.iter_mut();
        chunks
            .try_for_each(|chunks| chunks.sets.shrink(share, plan.folder))
            .map_err(BatchError::temporary(plan.folder))
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
            // The store keeps the whole capacity, and counts it.
            words.shrink_to_fit();
            chunks
                .push(words, plan.folder)
                .map_err(BatchError::temporary(plan.folder))?;
        }
        self.tally.add(&batch.tally);
        self.unreadable += batch.unreadable;
        Ok(())
    }
}

impl ChunkSets {
    pub(crate) fn push(&mut self, words: Vec<u64>, folder: &Path) -> std::io::Result<()> {
        let mut at = 0;
        while at < words.len() {
            let (class, length) = crate::spill::feature_sets::split(words[at]);
            // Threads number texts as they meet them: a higher number may come first.
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
pub(crate) fn read(plan: &ReadPlan<'_>, observer: &dyn JobObserver) -> Result<ReadOut, BatchError> {
    plan.settings.losses.refuse_undiscovered(plan.inputs)?;
    let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
    let reader = || OverlapReader {
        plan,
        seen: &seen,
        too_many: &too_many,
        parser: Parser::new(plan.inputs, plan.options).with_visible(),
        chunker: Chunker::new(
            &plan.settings.chunkings,
            plan.settings.bits,
            &plan.settings.scheme,
        ),
        url_field: FieldPath::name("url"),
    };
    let mut out = ReadOut::new(plan);
    let mut rows = SkippedRows::default();
    for skip in &plan.inputs.skips {
        rows.take(SkippedInput::part(skip));
        out.lines.push(SkippedLine::of_part(skip));
    }
    let (mut read, mut line_bytes, total) = (0, 0, plan.inputs.total_bytes());
    run_in_order(
        plan.inputs.chunks(plan.options),
        plan.memory,
        observer,
        (0..plan.threads).map(|_| reader()).collect(),
        |mut batch| {
            for (skipped, line) in batch.skipped.drain(..) {
                plan.settings.losses.refuse_first(&skipped)?;
                rows.take(skipped);
                line_bytes += line.text_bytes();
                out.lines.push(line);
            }
            read += batch.disk_bytes;
            out.append(batch, plan)?;
            let left = plan.tables.left_by(out.bytes() + line_bytes, read, total)?;
            out.shrink(left, plan)?;
            observer.advance(read);
            ensure_wanted(observer).map_err(BatchError::temporary(plan.folder))
        },
    )?;
    if too_many.load(Ordering::Relaxed) || out.documents.len() >= u32::MAX as usize {
        return Err(BatchError::TooMany);
    }
    out.skipped = rows.finish();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_will_need_is_guessed_from_a_part() {
        let limit = TableLimit {
            left: 100,
            fixed: 10,
        };
        assert_eq!(limit.left_by(60, 1, 4).unwrap(), 40);
        let refused = |read| match limit.left_by(120, read, 100) {
            Err(BatchError::Memory { needed, least, .. }) => (needed, least),
            _ => panic!("120 of 100 bytes"),
        };
        // A twentieth of the 360 bytes that are a guess.
        assert_eq!(refused(25), (480, 10 + 480 + 18));
        assert_eq!(refused(100), (120, 10 + 120));
    }
}

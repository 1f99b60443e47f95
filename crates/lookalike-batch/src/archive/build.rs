//! Builds an archive from inputs: decides, reads them again, orders the records and compresses them.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use lookalike_corpus::{
    AtomicFile, Compression, ExactPiece, FileTree, InputOptions, Inputs, ReadError, exact_pieces,
    path_text,
};
use serde::Serialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zstd::zstd_safe::{self, CCtx};

use crate::archive::blocks::{BlockSettings, RecordBlocks, thread_bytes};
use crate::archive::error::CollectionArchiveError;
use crate::archive::format::{
    ArchiveDirectory, ArchivedKind, ArchivedRecord, ArchivedSource, END_MAGIC, HEADER_BYTES, MAGIC,
    VERSION, record_hash,
};
use crate::archive::read::{CollectionArchive, CollectionArchiveInfo};
use crate::archive::settings::{ArchiveBlockSize, ArchiveLevel, ArchiveSettings};
use crate::dedup::counts::InputCounts;
use crate::dedup::decided::DedupDecisions;
use crate::dedup::documents::DocumentTable;
use crate::dedup::job::DedupJob;
use crate::dedup::record_cursor::RecordCursor;
use crate::document_memory::{DocumentUse, fixed_bytes, most_decoded_bytes};
use crate::error::{BatchError, is_cancelled};
use crate::free_memory::release_free_memory;
use crate::observer::JobStage;
use crate::skipped::SkippedRow;
use crate::spill::arrange::{ExpectedRecords, RecordArranger};
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::max_mapped;

/// Maximum bytes of a piece that goes through the arranger's memory. Longer pieces, and all but the first piece of a record, go to disk.
const SHORT: usize = 1 << 19;

/// Summary of an archive that was built.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArchiveSummary {
    /// Facts about the archive, as [`CollectionArchive::info`] returns them.
    #[serde(flatten)]
    pub archive: CollectionArchiveInfo,
    /// Counts of the input.
    pub counts: InputCounts,
    /// Parts of the input that were not read, by reason.
    pub skipped: Vec<SkippedRow>,
    /// Number of files that come back under another path than their own, because another file has that: `a.txt` beside `a.txt.gz`.
    pub renamed: u64,
    /// The first of them.
    pub first_renamed: Option<RenamedFile>,
}

/// A file that comes back under another path than its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenamedFile {
    /// Its name, as [`lookalike_corpus::Source::name`] returns it.
    pub source: String,
    /// Its path in the archive, written in the same way.
    pub path: String,
}

/// The order of documents in an archive.
struct ArchiveOrder {
    /// Place of each document.
    places: TableColumn<u32>,
    /// Document in each place.
    documents: TableColumn<u32>,
    /// Kind of the record in each place.
    kinds: TableColumn<ArchivedKind>,
}

impl ArchiveOrder {
    /// Orders survivors by their ids, each followed by its copies, which are ordered by their ids too.
    fn new(decided: &DedupDecisions) -> Self {
        let mut order = Self {
            places: TableColumn::zeroed(decided.len()),
            documents: TableColumn::with_capacity(decided.len()),
            kinds: TableColumn::with_capacity(decided.len()),
        };
        let mut clusters = decided.clusters().peekable();
        for &document in &decided.ranking.by_id {
            // A removed document follows its survivor, below.
            if !decided.outcomes.is_kept(document as usize) {
                continue;
            }
            order.push(document, ArchivedKind::Kept);
            // Clusters are ordered by their survivors' ids, as documents are here, so one pass over both is enough.
            if let Some(cluster) = clusters.next_if(|cluster| cluster.survivor == document) {
                let members = cluster.members.iter();
                members.for_each(|&copy| order.push(copy, ArchivedKind::Copy));
            }
        }
        order
    }

    fn push(&mut self, document: u32, kind: ArchivedKind) {
        self.places[document as usize] = self.documents.len() as u32;
        self.documents.push(document);
        self.kinds.push(kind);
    }
}

/// The parts of the decisions that building needs.
struct ArchivePlan {
    order: ArchiveOrder,
    documents: DocumentTable,
    /// Source and record number of unreadable records, ascending.
    bad: Vec<[u64; 2]>,
    /// Number of records of each source.
    records: Vec<u64>,
    counts: InputCounts,
    skipped: Vec<SkippedRow>,
}

impl ArchivePlan {
    /// Keeps what is needed and drops the rest.
    fn new(decided: DedupDecisions) -> Self {
        let order = ArchiveOrder::new(&decided);
        let bad = decided.scanned.bad.iter();
        Self {
            order,
            bad: bad.map(|bad| [u64::from(bad.source), bad.number]).collect(),
            documents: decided.scanned.documents,
            records: decided.scanned.records,
            counts: decided.counts,
            skipped: decided.skipped,
        }
    }

    /// Adds the ids of all records. Bytes between documents get empty ids.
    fn put_ids(&self, directory: &mut ArchiveDirectory) {
        directory.ids.reserve_exact(self.documents.ids.bytes());
        directory.id_ends.reserve_exact(directory.records.len());
        for &document in &self.order.documents {
            directory.push_id(self.documents.id(document as usize));
        }
        // Parts between documents have no id, but the ids are a column for all records.
        for _ in self.order.documents.len()..directory.records.len() {
            directory.push_id("");
        }
    }
}

/// Second reading of the inputs: passes records to the arranger, which puts them in order.
struct RecordIntake<'a> {
    order: &'a ArchiveOrder,
    cursor: RecordCursor<'a>,
    arranger: RecordArranger,
    /// Bytes between documents, in reading order.
    gaps: BufWriter<File>,
    /// Number of each input source in the archive.
    numbers: &'a [u32],
    /// Records by place.
    records: Vec<ArchivedRecord>,
    /// Parts between documents, in reading order. They come after all documents.
    between: Vec<ArchivedRecord>,
    /// Length of each input source, and number of its records.
    lengths: Vec<u64>,
    counts: Vec<u64>,
    /// Place of the current record, and its hash so far.
    place: Option<u32>,
    hash: Xxh3,
    /// Hash so far of the last entry of `between`.
    between_hash: Xxh3,
}

impl RecordIntake<'_> {
    fn take(&mut self, piece: &ExactPiece<'_>) -> io::Result<()> {
        if piece.begins {
            self.counts[piece.source as usize] += 1;
            // Identify records by number, as in the first reading; they are not parsed again.
            let document = self.cursor.next(piece.source, piece.record.unwrap_or(0));
            let places = &self.order.places;
            // A record more than before means that the source has changed; the counts reveal that later.
            self.place = document.and_then(|document| places.get(document).copied());
            self.hash.reset();
            if let Some(place) = self.place {
                let record = &mut self.records[place as usize];
                record.source = self.numbers[piece.source as usize];
                record.offset = piece.offset;
            }
        }
        // Every byte counts, whether a document has it or not, because extraction restores whole sources.
        self.lengths[piece.source as usize] += piece.bytes.len() as u64;
        let place = self.place.filter(|_| piece.record.is_some());
        let Some(place) = place else {
            return self.add_gap(piece);
        };
        let record = &mut self.records[place as usize];
        self.hash.update(piece.bytes);
        record.length += piece.bytes.len() as u64;
        // Nothing marks the last piece of a record, so its hash is brought up to date with each.
        record.hash = record_hash(self.hash.digest());
        self.arrange(place, piece)
    }

    /// Takes bytes that belong to no document, and joins them to the part before if they directly follow it.
    fn add_gap(&mut self, piece: &ExactPiece<'_>) -> io::Result<()> {
        let source = self.numbers[piece.source as usize];
        // Pieces that continue each other are one part, so a long gap takes a single record.
        let follows = |last: &&mut ArchivedRecord| {
            last.source == source && last.offset + last.length == piece.offset
        };
        let last = match self.between.last_mut().filter(follows) {
            Some(last) => last,
            None => {
                self.between_hash.reset();
                let kind = ArchivedKind::Between;
                let empty = ArchivedRecord::empty(kind, source, piece.offset);
                self.between.push_mut(empty)
            }
        };
        self.between_hash.update(piece.bytes);
        last.length += piece.bytes.len() as u64;
        last.hash = record_hash(self.between_hash.digest());
        self.gaps.write_all(piece.bytes)
    }

    fn arrange(&mut self, place: u32, piece: &ExactPiece<'_>) -> io::Result<()> {
        // A long record arrives in many pieces, which in memory would need a frame each and all of its bytes.
        match piece.bytes.len() <= SHORT && piece.begins {
            true => self.arranger.add(0, place, piece.bytes),
            false => self.arranger.add_long(0, place, piece.bytes),
        }
    }
}

impl DedupJob<'_> {
    /// Writes all records of the inputs into one file, with near-copies next to the one that [`DedupJob::dedup`] would keep. The file appears under
    /// its name only when it is complete, and replaces any existing file. Equal inputs and settings give equal bytes.
    ///
    /// # Errors
    /// [`BatchError`]; [`CollectionArchiveError::Inexact`] for sources that cannot be restored byte for byte.
    pub fn archive(
        &self,
        path: &Path,
        archive: ArchiveSettings,
    ) -> Result<ArchiveSummary, BatchError> {
        let sources = &self.inputs.sources;
        if let Some(source) = sources.iter().find(|source| !source.is_exact()) {
            return Err(BatchError::Archive(CollectionArchiveError::Inexact {
                name: source.name().into_owned(),
                format: source.format.to_string(),
            }));
        }
        self.ensure_compressor_fits(archive.block)?;
        let _tables = self.open_tables();
        let decided = self.choose_survivors(self.prepare(None)?, None)?;
        let plan = ArchivePlan::new(decided);
        self.ensure_directory_fits(&plan.documents)?;
        // `RecordBlocks` is a writer, so it can report a cancellation only as an I/O error.
        let failed = |error: io::Error| match is_cancelled(&error) {
            true => BatchError::Cancelled,
            false => BatchError::Archive(CollectionArchiveError::unwritable(path)(error)),
        };
        let mut file = AtomicFile::create(path, Compression::None).map_err(failed)?;
        let numbers = source_numbers(self.inputs);
        let intake = self.start_second_pass(&plan, &numbers)?;
        // Check before compressing: decisions about other records than these would put wrong ones together.
        self.refuse_changed(&intake, &plan.records)?;
        let tree = FileTree::decompressed(self.inputs);
        let mut directory = ArchiveDirectory {
            sources: source_table(self.inputs, &tree, &intake.lengths),
            // In the order in which the bytes are written below.
            records: [intake.records, intake.between].concat(),
            ..ArchiveDirectory::default()
        };
        // `fixed_bytes` does not count what the threads that have read may leave behind.
        release_free_memory();
        let total = directory.records.iter().map(|record| record.length).sum();
        self.observer.stage(JobStage::Compress, total);
        let settings = BlockSettings {
            archive,
            threads: self.compressing_threads(
                &directory.records,
                archive.block.bytes().min(total),
                plan.documents.bytes(),
            )?,
            observer: self.observer,
        };
        // The last four bytes are reserved.
        let head = [&MAGIC[..], &VERSION.to_le_bytes(), &[0; 4]].concat();
        file.write_all(&head).map_err(failed)?;
        let mut blocks = RecordBlocks::new(&directory.records, settings, &mut file);
        intake.arranger.finish(0, &mut blocks).map_err(failed)?;
        let gaps = intake
            .gaps
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        let mut gaps = gaps.map_err(BatchError::temporary(self.folder))?;
        gaps.rewind()
            .and_then(|()| io::copy(&mut gaps, &mut blocks))
            .map_err(failed)?;
        directory.blocks = blocks.finish().map_err(failed)?;
        plan.put_ids(&mut directory);
        drop(plan.documents);
        let packed = directory.blocks.iter().map(|block| block.packed);
        let offset = HEADER_BYTES + packed.sum::<u64>();
        // The directory follows the blocks, because their compressed lengths are known only now.
        let encoded = directory.encode();
        drop(directory);
        write_directory(&encoded, offset, archive.level, &mut file).map_err(failed)?;
        drop(encoded);
        file.commit().map_err(failed)?;
        let mut renamed = renamed_files(self.inputs, &tree);
        let first_renamed = renamed.next();
        Ok(ArchiveSummary {
            renamed: u64::from(first_renamed.is_some()) + renamed.count() as u64,
            first_renamed,
            // Reading the archive back makes the directory pass the checks of every reader.
            archive: CollectionArchive::open(path)?.info(),
            counts: InputCounts {
                tables_on_disk: max_mapped(self.folder),
                ..plan.counts
            },
            skipped: plan.skipped,
        })
    }

    /// Reads the sources for the second time.
    fn start_second_pass<'i>(
        &'i self,
        plan: &'i ArchivePlan,
        numbers: &'i [u32],
    ) -> Result<RecordIntake<'i>, BatchError> {
        let (inputs, order) = (self.inputs, &plan.order);
        self.observer
            .stage(JobStage::Write, order.documents.len() as u64);
        let empty = |&kind| ArchivedRecord::empty(kind, 0, 0);
        let budget = self.memory().keys();
        // Compressed input may be many times larger once decompressed, so the text length is then the better estimate.
        let bytes = inputs.total_bytes().max(plan.counts.text_bytes);
        let expected = ExpectedRecords {
            places: order.documents.len(),
            bytes,
        };
        let temporary = BatchError::temporary(self.folder);
        let threads = self.limits.workers();
        let arranger = RecordArranger::new(self.folder, 1, &expected, budget, threads);
        let mut intake = RecordIntake {
            order,
            cursor: RecordCursor::new(&plan.bad, self.observer),
            arranger: arranger.map_err(&temporary)?,
            gaps: BufWriter::new(tempfile::tempfile_in(self.folder).map_err(&temporary)?),
            numbers,
            records: order.kinds.iter().map(empty).collect(),
            between: Vec::new(),
            lengths: vec![0; inputs.sources.len()],
            counts: vec![0; inputs.sources.len()],
            place: None,
            hash: Xxh3::new(),
            between_hash: Xxh3::new(),
        };
        let options: &InputOptions = &self.options;
        exact_pieces::<BatchError>(inputs, options, &mut |piece| {
            intake.take(&piece).map_err(&temporary)
        })?;
        Ok(intake)
    }

    /// Fails if a source has another number of records than in the first reading.
    fn refuse_changed(&self, intake: &RecordIntake<'_>, records: &[u64]) -> Result<(), BatchError> {
        let sources = self.inputs.sources.iter().zip(&intake.counts).zip(records);
        let mut present = sources.filter(|((source, _), _)| !source.is_lost());
        match present.find(|((_, count), before)| count != before) {
            None => Ok(()),
            Some(((source, _), _)) => Err(BatchError::Read(ReadError::Changed {
                name: source.name().into_owned(),
            })),
        }
    }

    /// Checks the memory for compressing before hours of comparisons.
    fn ensure_compressor_fits(&self, block: ArchiveBlockSize) -> Result<(), BatchError> {
        let sources = self.inputs.sources.iter();
        let decoded = sources.map(|source| most_decoded_bytes(source, &self.options));
        // A small input never fills a block, and needs no memory for a full one.
        let largest = decoded.fold(0, u64::saturating_add).min(block.bytes());
        self.compressing_threads(&[], largest, 0).map(drop)
    }

    /// Refuses a directory that does not fit in memory beside the documents whose ids it gets. Then the memory of compressors is free.
    fn ensure_directory_fits(&self, documents: &DocumentTable) -> Result<(), BatchError> {
        let fixed = self.fixed_bytes();
        let ids = documents.ids.bytes() as u64;
        // The table has the ids, too, and is dropped before they are encoded.
        let needed =
            documents.bytes() + ArchiveDirectory::memory(documents.len() as u64, ids) - ids;
        let limit = self.limits.memory;
        BatchError::ensure_memory("the directory of the archive", needed, limit, fixed)
    }

    /// Returns the bytes that are taken besides tables, compressors and the directory. Only one thread counts: those that read have ended by then.
    fn fixed_bytes(&self) -> u64 {
        let scheme = DocumentUse::Features(&self.settings.scheme);
        let limits = self.limits.clone().threads(1);
        fixed_bytes(&limits, scheme, self.inputs, &self.options)
    }

    /// Returns the number of threads that fit in memory next to the tables, with blocks of at most `block` bytes or one longer record. Fails if not
    /// even one fits.
    fn compressing_threads(
        &self,
        records: &[ArchivedRecord],
        block: u64,
        tables: u64,
    ) -> Result<usize, BatchError> {
        let fixed = self.fixed_bytes();
        // Ordering the records takes their budget and a quarter more.
        let arranging = self.memory().keys() / 4 * 5;
        let tables = tables + 2 * size_of_val(records) as u64;
        let held = fixed + arranging + tables;
        let left = self.limits.memory.saturating_sub(held);
        let each = thread_bytes(records, block);
        match left / each {
            0 => Err(BatchError::Archive(CollectionArchiveError::BuildMemory {
                needed: each,
                left,
                // Arranging takes less than a quarter of what is left beside the fixed part, so 4/3 of the rest are enough; 4 more for the division.
                least: fixed + (tables + each) / 3 * 4 + 4,
            })),
            fitting => Ok(self.limits.workers().min(fitting as usize)),
        }
    }
}

/// Returns the number of each source in the archive. Lost sources get no number of their own.
fn source_numbers(inputs: &Inputs) -> Vec<u32> {
    let mut next = 0;
    let number = |source: &lookalike_corpus::Source| {
        let number = next;
        // A lost source repeats the number of the next one, but no piece ever comes from it.
        next += u32::from(!source.is_lost());
        number
    };
    inputs.sources.iter().map(number).collect()
}

/// Returns the sources of the archive.
fn source_table(inputs: &Inputs, tree: &FileTree, lengths: &[u64]) -> Vec<ArchivedSource> {
    let sources = (0..).zip(&inputs.sources).zip(lengths);
    let present = sources.filter(|((_, source), _)| !source.is_lost());
    present
        .map(|((number, _), &length)| ArchivedSource {
            name: tree.path(number).to_owned(),
            length,
        })
        .collect()
}

/// Returns the sources of the archive that come back under another path than their own.
fn renamed_files<'t>(
    inputs: &'t Inputs,
    tree: &'t FileTree,
) -> impl Iterator<Item = RenamedFile> + use<'t> {
    let sources = tree.renamed().iter();
    let sources = sources.map(|&number| (&inputs.sources[number as usize], number));
    let present = sources.filter(|(source, _)| !source.is_lost());
    present.map(|(source, number)| RenamedFile {
        source: source.name().into_owned(),
        path: path_text(tree.path(number)).into_owned(),
    })
}

/// Writes the directory, which starts at `offset`, and the trailer.
pub(super) fn write_directory(
    raw: &[u8],
    offset: u64,
    level: ArchiveLevel,
    out: &mut impl Write,
) -> io::Result<()> {
    let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    context
        .compress(&mut packed, raw, level.number())
        .map_err(failed)?;
    let (length, hash) = (raw.len() as u64, xxh3_64(&packed));
    // A trailer of fixed length at the very end: a reader finds the directory from there, and a file that is cut off has none.
    let place = [offset, packed.len() as u64, length, hash];
    let place = place.map(u64::to_le_bytes);
    let place = place.as_flattened();
    out.write_all(&packed)?;
    out.write_all(place)?;
    out.write_all(&xxh3_64(place).to_le_bytes())?;
    out.write_all(&END_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::NoProgress;

    #[test]
    fn all_bytes_between_documents_were_held_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let order = ArchiveOrder {
            places: TableColumn::new(),
            documents: TableColumn::new(),
            kinds: TableColumn::new(),
        };
        let expected = ExpectedRecords {
            places: 0,
            bytes: 0,
        };
        let mut intake = RecordIntake {
            order: &order,
            cursor: RecordCursor::new(&[], &NoProgress),
            arranger: RecordArranger::new(folder.path(), 1, &expected, 0, 1).unwrap(),
            gaps: BufWriter::new(tempfile::tempfile_in(folder.path()).unwrap()),
            numbers: &[0],
            records: Vec::new(),
            between: Vec::new(),
            lengths: vec![0],
            counts: vec![0],
            place: None,
            hash: Xxh3::new(),
            between_hash: Xxh3::new(),
        };
        for offset in [0, 10, 20] {
            let piece = ExactPiece {
                source: 0,
                record: None,
                offset,
                bytes: b"bad line.\n",
                begins: false,
            };
            intake.take(&piece).unwrap();
        }
        assert_eq!(intake.between.len(), 1);
        let mut arranged = Vec::new();
        intake.arranger.finish(0, &mut arranged).unwrap();
        assert!(arranged.is_empty());
        let gaps = intake.gaps.into_inner().unwrap();
        assert_eq!(gaps.metadata().unwrap().len(), 30);
    }
}

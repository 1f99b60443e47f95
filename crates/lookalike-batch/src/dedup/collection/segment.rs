//! One segment of a collection: the documents of one addition, or of several that were merged, in one immutable file of checked blocks.
//!
//! A *record* is all documents of one class, with the facts and feature sets of the class; a document without a text is a record of its own.
//! Records are numbered: classes come first, in ascending order of hash. Little-endian, one section after another:
//!
//! ```text
//! records     of each: documents (u64), features, features of what a reader sees (u32 x 2), flags (u32), what the flags say is there
//!             (fingerprint 16 bytes; category u64; hash of the visible text 16 bytes; identity of the page u64), sizes of the sets of
//!             further tests (u32 each), features (u64 each, the sets one after another), and of each document: order, bytes of
//!             text, hash of the record (u64 x 3), length of the id (u32), the value that ranks survivors, the id
//! rows        of each record, and one more: hash of the class (upper half, lower half), position of the record (u64 x 3)
//! sizes       of each record: features, as in the record (u32)
//! keys        ascending: a key, the record that has it (u64, u32)
//! ids         ascending: hash of an id, a record with a document that has it (u64, u32)
//! indexes     of rows of classes, keys and ids: the first u64 of each block
//! ```
//!
//! Rows, sizes, keys and ids each start at a block, and none of their entries is split between blocks
//! ([`BlockTable`](crate::dedup::collection::blocks::BlockTable)). Keys are rotated by eight bits ([`partition_first`]), so that those of one partition of a
//! [`KeySink`] are adjacent.

use std::io;
use std::path::Path;

use lookalike_corpus::OrderNumber;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::dedup::candidate_groups::{KeyRecord, KeySink, key_of, key_record};
use crate::dedup::class_id::ClassId;
use crate::dedup::collection::blocks::{CONTENT, CheckedBlockWriter};
use crate::dedup::documents::RankingFacts;
use crate::dedup::frequency::FrequencyLevels;
use crate::dedup::scan::ScannedCollection;
use crate::settings::JobSettings;
use crate::spill::feature_sets::SetStore;
use crate::spill::partitions::PARTS;
use crate::spill::table_column::TableColumn;

/// Number of bytes of an entry of rows, of sizes, and of keys and ids.
pub(crate) const ROW: usize = 24;
pub(crate) const SIZE: usize = 4;
pub(crate) const PAIR: usize = 12;

pub(crate) const FINGERPRINT: u32 = 1;
pub(crate) const CATEGORY: u32 = 2;
pub(crate) const VISIBLE: u32 = 4;
pub(crate) const PAGE: u32 = 8;
/// Kinds of a document's value: none, a number, a text.
pub(crate) const NO_VALUE: u8 = 0;
pub(crate) const NUMBER: u8 = 1;
pub(crate) const TEXT: u8 = 2;

/// Hash in the row of a document without a text, so that rows are ascending to the end; readers never look it up.
pub(crate) const NO_CLASS: u128 = u128::MAX;

/// Returns a key as segments sort it: first by its partition, then by the rest.
pub(crate) fn partition_first(key: u64) -> u64 {
    // A key sink chooses the partition by the last byte of a key.
    const { assert!(PARTS == 256) };
    key.rotate_right(8)
}

/// A segment, as recorded in the manifest.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    /// Name of the file in the directory of the collection.
    pub(crate) file: String,
    /// Seed of the checksums of the file: a hash of its contents.
    #[serde(with = "hexadecimal")]
    pub(crate) identity: u64,
    /// Number of bytes of content.
    pub(crate) content: u64,
    pub(crate) documents: u64,
    /// Number of different texts.
    pub(crate) classes: u64,
    /// Bytes of the texts of all documents.
    pub(crate) text_bytes: u64,
    /// Number of records: classes, and documents without a text.
    pub(crate) records: u64,
    /// Numbers of entries of keys and of ids.
    pub(crate) keys: u64,
    pub(crate) ids: u64,
    /// The largest number in the order of documents plus one.
    pub(crate) orders: u64,
    /// Position of the rows; all other positions follow from it.
    pub(crate) rows_at: u64,
}

/// Serialises numbers as 16 hexadecimal digits, because other JSON readers would round them.
pub(crate) mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(value: &u64, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&format_args!("{value:016x}"))
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

/// Facts about new documents that a job consumes before it has decided which of them to add.
pub(crate) struct AdditionFacts {
    pub(crate) facts: RankingFacts,
    /// Keys of all classes, which writing a segment consumes.
    pub(crate) keys: KeySink,
    /// The order of features for a new collection. The keys of one that exists are in its own order.
    pub(crate) levels: FrequencyLevels,
}

/// The data of a job from which a segment with some of its documents is written.
pub(crate) struct SegmentSource<'a> {
    pub(crate) settings: &'a JobSettings,
    pub(crate) scanned: &'a ScannedCollection,
    /// Facts of the documents that are not stored already.
    pub(crate) new: &'a AdditionFacts,
}

/// A document that is added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
// In the order of comparison: documents without a class are last, and each class is in the order of the input.
struct AddedDocument {
    has_no_class: bool,
    hash: u128,
    document: u32,
}

/// Writes a segment from the data of a job.
struct SegmentBuilder<'a> {
    source: &'a SegmentSource<'a>,
    sections: SegmentSections,
    ids: TableColumn<KeyRecord>,
    /// Record of each class; `u32::MAX` if it is not added.
    record_of: TableColumn<u32>,
    record: Vec<u8>,
    set: Vec<u64>,
}

/// The file of a segment that is being written, beginning with its records.
pub(crate) struct SegmentSections {
    out: CheckedBlockWriter,
    rows: TableColumn<[u64; 3]>,
    sizes: TableColumn<u32>,
}

/// A table of keys or of ids that is being written.
pub(crate) struct PairSection<'w> {
    out: &'w mut CheckedBlockWriter,
    count: u64,
    index: Vec<u64>,
}

impl SegmentSource<'_> {
    /// Writes the documents to the file `name` in `folder` and syncs it to disk.
    ///
    /// Memory: about 100 bytes per document added.
    pub(crate) fn write(
        &self,
        chosen: impl Iterator<Item = u32>,
        folder: &Path,
        name: &str,
    ) -> io::Result<SegmentEntry> {
        // The salt of new documents is taken off, because in the collection they are documents that are only compared with.
        let (documents, classes) = (&self.scanned.documents, &self.scanned.classes);
        let salt = self.settings.scope.class_salt(false);
        let added = |document: u32| {
            let class = documents.classes[document as usize];
            AddedDocument {
                has_no_class: class.is_none(),
                hash: class.map_or(0, |class| classes.hashes[class.position()] ^ salt),
                document,
            }
        };
        let mut chosen: TableColumn<AddedDocument> = chosen.map(added).collect();
        // By class, those without one last, so that equal texts are adjacent and hashes ascend.
        chosen.sort_unstable();
        let identity = self.identity(&chosen);
        let mut builder = SegmentBuilder {
            source: self,
            sections: SegmentSections::create(&folder.join(name), identity)?,
            ids: TableColumn::with_capacity(chosen.len()),
            record_of: std::iter::repeat_n(u32::MAX, classes.len()).collect(),
            record: Vec::new(),
            set: Vec::new(),
        };
        let same = |a: &AddedDocument, b: &AddedDocument| {
            !a.has_no_class && !b.has_no_class && a.hash == b.hash
        };
        for documents in chosen.chunk_by(same) {
            builder.add_record(documents)?;
        }
        let with_text = chosen.partition_point(|added| !added.has_no_class);
        let records = builder.sections.records();
        let last = chosen.iter().map(|added| added.document as usize).max();
        let entry = SegmentEntry {
            file: name.to_owned(),
            identity,
            documents: chosen.len() as u64,
            classes: records - (chosen.len() - with_text) as u64,
            text_bytes: chosen
                .iter()
                .map(|added| documents.lengths.get(added.document as usize))
                .sum(),
            records,
            orders: last.map_or(0, |last| (last - documents.stored + 1) as u64),
            // `SegmentSections::finish` sets the others.
            ..SegmentEntry::default()
        };
        builder.finish(entry)
    }

    /// Returns a hash of the texts and ids of documents, which almost always differs between different segments.
    fn identity(&self, chosen: &[AddedDocument]) -> u64 {
        let mut hash = Xxh3::new();
        for added in chosen {
            hash.update(&added.hash.to_le_bytes());
            hash.update(self.scanned.documents.given_id(added.document).as_bytes());
        }
        hash.digest()
    }
}

impl SegmentBuilder<'_> {
    /// Writes the record of the documents of one class, or of one document without a text.
    fn add_record(&mut self, documents: &[AddedDocument]) -> io::Result<()> {
        let AddedDocument { hash, document, .. } = documents[0];
        let scanned = self.source.scanned;
        let class = scanned.documents.classes[document as usize].map(ClassId::position);
        let number = match class {
            Some(class) => self.sections.begin(hash, scanned.classes.sizes[class]),
            None => self.sections.begin(NO_CLASS, 0),
        };
        self.record.clear();
        match class {
            Some(class) => {
                self.record_of[class] = number;
                self.put_class(class, documents.len())?;
            }
            None => {
                self.put_count(documents.len());
                self.put_words(&[0, 0, 0]);
            }
        }
        for added in documents {
            self.put_document(added.document, number);
        }
        self.sections.write(&self.record)
    }

    /// Appends the number of documents. In 64 bits, because a merged segment may have more of one text than a job.
    fn put_count(&mut self, documents: usize) {
        let count = documents as u64;
        self.record.extend_from_slice(&count.to_le_bytes());
    }

    fn put_words(&mut self, words: &[u32]) {
        self.record.extend_from_slice(bytemuck::cast_slice(words));
    }

    /// Appends the facts and sets of a class.
    fn put_class(&mut self, class: usize, documents: usize) -> io::Result<()> {
        let (settings, scanned) = (self.source.settings, self.source.scanned);
        let classes = &scanned.classes;
        let page = classes.pages.of_class(class);
        let page_set = page.and_then(|(_, set)| set);
        let visible = classes.visible_text(class);
        let mut flags = 0;
        let mut facts = Vec::new();
        // In the order of the flags' values, in which `RecordBytes::class` reads the facts.
        let mut put = |flag: u32, bytes: &[u8]| {
            flags |= flag;
            facts.extend_from_slice(bytes);
        };
        if settings.method.has_fingerprints() {
            put(FINGERPRINT, &classes.fingerprint(class).to_le_bytes());
        }
        if settings.by_category() {
            put(CATEGORY, &classes.categories[class].to_le_bytes());
        }
        // The hash of a class is that of its text only if nothing else counts.
        if visible != classes.hashes[class] {
            put(VISIBLE, &visible.to_le_bytes());
        }
        if let Some((identity, _)) = page {
            put(PAGE, &identity.to_bits().to_le_bytes());
        }
        let page_size = page_set.map_or(0, |(_, size)| size);
        self.put_count(documents);
        self.put_words(&[classes.sizes[class], page_size, flags]);
        self.record.extend_from_slice(&facts);
        for tests in &scanned.test_sets {
            let (_, size) = tests.set_of(class);
            self.put_words(&[size]);
        }
        let number = class as u32;
        let own = (classes.places[class], classes.sizes[class]);
        self.put_set(&scanned.sets, number, own)?;
        if let Some(set) = page_set {
            self.put_set(&scanned.page_sets, number, set)?;
        }
        for tests in &scanned.test_sets {
            self.put_set(&tests.sets, number, tests.set_of(class))?;
        }
        Ok(())
    }

    fn put_set(&mut self, sets: &SetStore, class: u32, set: (u64, u32)) -> io::Result<()> {
        let (place, size) = set;
        let set = sets.get(class, place, size as usize, &mut self.set)?;
        self.record.extend_from_slice(bytemuck::cast_slice(set));
        Ok(())
    }

    fn put_document(&mut self, document: u32, record: u32) {
        let (documents, facts) = (&self.source.scanned.documents, &self.source.new.facts);
        // As it was read: which number a repeated id gets depends on the other documents of a job.
        let id = documents.given_id(document);
        let hash = xxh3_64(id.as_bytes());
        self.ids.push(key_record(hash, record));
        // Facts were taken before the documents of the collection were put before the others.
        let new = document as usize - documents.stored;
        let numbers = [
            new as u64,
            documents.lengths.get(document as usize),
            facts.record_hash(new),
        ];
        self.record
            .extend_from_slice(bytemuck::cast_slice(&numbers));
        self.put_words(&[id.len() as u32]);
        match facts.value(new) {
            None => self.record.push(NO_VALUE),
            Some((OrderNumber { nearest, rest }, None)) => {
                self.record.push(NUMBER);
                self.record.extend_from_slice(&nearest.to_le_bytes());
                self.record.extend_from_slice(&rest.to_le_bytes());
            }
            Some((_, Some(text))) => {
                self.record.push(TEXT);
                self.record
                    .extend_from_slice(&(text.len() as u32).to_le_bytes());
                self.record.extend_from_slice(text);
            }
        }
        self.record.extend_from_slice(id.as_bytes());
    }

    /// Writes everything after the records.
    fn finish(mut self, entry: SegmentEntry) -> io::Result<SegmentEntry> {
        self.ids.sort_unstable();
        // Documents of one class may have the same id.
        self.ids.dedup();
        self.sections.finish(
            entry,
            |keys| put_keys(&self.source.new.keys, &self.record_of, keys),
            |out| self.ids.iter().try_for_each(|&id| out.put(id)),
        )
    }
}

/// Writes the keys of the classes that are added.
fn put_keys(source: &KeySink, record_of: &[u32], out: &mut PairSection<'_>) -> io::Result<()> {
    for part in 0..PARTS {
        let mut keys = source.take(part)?;
        keys.retain_mut(|key| {
            let turned = partition_first(key_of(key));
            let record = record_of[key[2] as usize];
            // Rotated keys ascend from partition to partition, so sorting each partition sorts all keys.
            *key = key_record(turned, record);
            record != u32::MAX
        });
        keys.sort_unstable();
        keys.dedup();
        keys.iter().try_for_each(|&key| out.put(key))?;
    }
    Ok(())
}

impl SegmentSections {
    pub(crate) fn create(path: &Path, identity: u64) -> io::Result<Self> {
        Ok(Self {
            out: CheckedBlockWriter::create(path, identity)?,
            rows: TableColumn::new(),
            sizes: TableColumn::new(),
        })
    }

    /// Begins the next record, of a class with `size` features, and returns its number.
    pub(crate) fn begin(&mut self, hash: u128, size: u32) -> u32 {
        let number = self.rows.len() as u32;
        self.rows
            .push([(hash >> 64) as u64, hash as u64, self.out.position()]);
        self.sizes.push(size);
        number
    }

    /// Writes bytes of the current record.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write(bytes)
    }

    pub(crate) fn records(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Writes everything after the records. `keys` and `ids` write the entries of their tables in ascending order.
    pub(crate) fn finish<E: From<io::Error>>(
        mut self,
        mut entry: SegmentEntry,
        keys: impl FnOnce(&mut PairSection<'_>) -> Result<(), E>,
        ids: impl FnOnce(&mut PairSection<'_>) -> Result<(), E>,
    ) -> Result<SegmentEntry, E> {
        // One more row has the end of the last record; rows start at a block.
        self.rows.push([u64::MAX, u64::MAX, self.out.position()]);
        self.out.fill_block()?;
        entry.rows_at = self.out.position();
        for row in &self.rows {
            self.out.write_entry(bytemuck::cast_slice(row))?;
        }
        self.out.fill_block()?;
        // Only rows of classes are searched by hash; others are found by number.
        let row_index: Vec<u64> = self.rows[..entry.classes as usize]
            .iter()
            .step_by(CONTENT / ROW)
            .map(|row| row[0])
            .collect();
        for size in &self.sizes {
            self.out.write_entry(&size.to_le_bytes())?;
        }
        self.out.fill_block()?;
        let (key_count, key_index) = self.write_pairs(keys)?;
        let (id_count, id_index) = self.write_pairs(ids)?;
        // Indexes come last, because they are only known when their tables have been written.
        for index in [row_index, key_index, id_index] {
            self.out.write(bytemuck::cast_slice(&index))?;
        }
        (entry.keys, entry.ids) = (key_count, id_count);
        entry.content = self.out.commit()?;
        Ok(entry)
    }

    /// Writes a table of keys or ids. Returns the number of its entries, and its index.
    fn write_pairs<E: From<io::Error>>(
        &mut self,
        write: impl FnOnce(&mut PairSection<'_>) -> Result<(), E>,
    ) -> Result<(u64, Vec<u64>), E> {
        let mut table = PairSection {
            out: &mut self.out,
            count: 0,
            index: Vec::new(),
        };
        write(&mut table)?;
        let written = (table.count, table.index);
        self.out.fill_block()?;
        Ok(written)
    }
}

impl PairSection<'_> {
    /// Writes the next entry: a key in two halves, and a record.
    pub(crate) fn put(&mut self, pair: KeyRecord) -> io::Result<()> {
        let key = key_of(&pair);
        // The first of each block, as `BlockTable::per_block` divides them.
        if self.count.is_multiple_of((CONTENT / PAIR) as u64) {
            self.index.push(key);
        }
        self.count += 1;
        let mut entry = [0; PAIR];
        entry[..8].copy_from_slice(&key.to_le_bytes());
        entry[8..].copy_from_slice(&pair[2].to_le_bytes());
        self.out.write_entry(&entry)
    }
}

//! An open run: tables and small parts are in memory; documents and indexes of ids are read on demand.

use std::ops::Range;
use std::path::Path;

use hashbrown::HashMap;
use lookalike_hamming::TableIndex;

use super::code_groups::CodeGroups;
use super::expiry::ExpiryTimes;
use super::footer::{NEVER, RunFooter};
use super::id_filter::IdFilter;
use super::pages::BlockReader;
use super::sorted::{IndexEntry, IndexKey, SortedIndex};
use super::tables::{RunSketches, RunTables};
use crate::bits::AtomicBits;
use crate::checksum::FileIdentity;
use crate::codec::{ByteDecoder, fixed};
use crate::document::{DocumentHeader, DocumentOutline, StoredDocument, StoredParagraph};
use crate::document_sketch::sketch_key;
use crate::error::{Result, StoreError};
use crate::fs::FileSystem;
use crate::pair_rule::{PairFilter, PairTraits};
use crate::searches::ContentSearch;
use crate::settings::IndexShape;
use crate::time::UnixMillis;
use crate::trait_index::{LINEAR_MAX, TraitIndex};

/// A visitor of encoded documents, each with its number in the run.
type DocumentVisitor<'a, E> = dyn FnMut(u32, &[u8]) -> Result<(), E> + 'a;

/// An open run file.
pub(crate) struct StoredRun {
    pub(crate) number: u64,
    reader: BlockReader,
    footer: RunFooter,
    shape: IndexShape,
    sketches: RunSketches,
    groups: CodeGroups,
    expires: ExpiryTimes,
    lists: DocumentLists,
    /// Indexes, in the order of [`IndexKey`].
    indexes: [SortedIndex; 4],
    filter: IdFilter,
    paragraph_tables: RunTables,
    /// Hashes of categories, followed by lengths of texts; either is empty if no document has one.
    categories: Vec<u64>,
    lengths: Vec<u32>,
    /// Indexes of the documents of a sketch if they are many, by its rank; and of those without a sketch, by [`NO_SKETCH`].
    by_traits: HashMap<usize, TraitIndex>,
    pub(crate) tombstones: AtomicBits,
}

/// Stands for the rank of documents without a sketch.
const NO_SKETCH: usize = usize::MAX;
/// Number of documents with a text that are looked at in turn, before those with its sketch that are compared.
const TEXT_WALK_MAX: usize = if cfg!(test) { 3 } else { 1000 };
/// Number of documents with a sketch that are read in vain for a text before all documents with the text are looked at.
const TEXT_READ_MAX: usize = if cfg!(test) { 2 } else { 64 };

/// Takes the number of each document and its sketch, if it has one.
type SketchVisitor<'a> = dyn FnMut(u32, Option<&[u8]>) -> Result<()> + 'a;

/// Lists that locate the documents of a run: the first document and the offset of each block, and the documents without a sketch;
/// see [`RunFooter`].
struct DocumentLists {
    firsts: Vec<u32>,
    offsets: Vec<u64>,
    absent: Vec<u32>,
}

/// Entries of documents, as the indexes of their run must have them.
#[derive(Default)]
struct DocumentEntries {
    /// The key of the sketch of each document.
    sketches: Vec<Option<u64>>,
    /// The entries of each index, in no order.
    indexes: [Vec<IndexEntry>; 4],
}

impl DocumentLists {
    /// Tells whether the lists ascend and are within bounds.
    fn fit(&self, footer: &RunFooter) -> bool {
        let is_below =
            |last: Option<&u32>| last.is_none_or(|&last| u64::from(last) < footer.documents);
        let ascend = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let end = self.offsets.last().copied().unwrap_or_default();
        self.firsts.first().is_none_or(|&first| first == 0)
            && ascend(&self.firsts)
            && is_below(self.firsts.last())
            && ascend(&self.absent)
            && is_below(self.absent.last())
            && self.offsets.is_sorted()
            && end <= footer.firsts.offset
    }
}

impl std::fmt::Debug for StoredRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("StoredRun");
        shown
            .field("number", &self.number)
            .field("documents", &self.len())
            .finish()
    }
}

impl StoredRun {
    /// Opens a run. The parts that stay in memory are read and verified now.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub(crate) fn open(
        fs: &dyn FileSystem,
        path: &Path,
        identity: FileIdentity,
        shape: IndexShape,
    ) -> Result<Self> {
        let file = fs
            .open(path, false)
            .map_err(StoreError::io(path, "opening a run"))?;
        let reader = BlockReader::new(file, path, identity);
        let footer = RunFooter::read(&reader, identity, shape.form.bytes())?;
        let small = |section| -> Result<Vec<u32>> {
            let bytes = reader.section(section)?;
            Ok(bytes
                .chunks_exact(4)
                .map(|word| fixed(word) as u32)
                .collect())
        };
        let mut indexes: [SortedIndex; 4] = Default::default();
        for (index, location) in indexes.iter_mut().zip(footer.indexes) {
            *index = SortedIndex::open(&reader, location)?;
        }
        // Tables and lists stay in memory, so a search reads no file. Parts that are only shown (ids, metadata, texts) stay on the medium.
        let (sketches, groups) = RunSketches::open(&reader, &footer, shape)?;
        let (stored, radius) = (footer.paragraph_tables, shape.paragraph_radius);
        let codes = &indexes[IndexKey::ParagraphCode as usize];
        let paragraph_tables = RunTables::of_paragraphs(&reader, stored, codes, radius)?;
        let expires = ExpiryTimes::new(reader.words(footer.expires)?);
        let lists = DocumentLists {
            firsts: small(footer.firsts)?,
            offsets: reader.words(footer.offsets)?,
            absent: small(footer.absent)?,
        };
        if !lists.fit(&footer) {
            let what = "the lists of documents are inconsistent";
            return Err(reader.damaged(footer.firsts.offset, what));
        }
        let mut run = Self {
            number: identity.number,
            shape,
            sketches,
            groups,
            expires,
            lists,
            indexes,
            filter: IdFilter::from_words(reader.words(footer.filter)?),
            paragraph_tables,
            categories: reader.words(footer.categories)?,
            lengths: small(footer.lengths)?,
            by_traits: HashMap::new(),
            tombstones: AtomicBits::new(footer.documents as usize),
            footer,
            reader,
        };
        run.by_traits = run.trait_indexes();
        Ok(run)
    }

    fn has_no_traits(&self) -> bool {
        self.categories.is_empty() && self.lengths.is_empty()
    }

    /// Builds indexes of the documents of each sketch that has many, unless no document has a category or length.
    fn trait_indexes(&self) -> HashMap<usize, TraitIndex> {
        if self.has_no_traits() {
            return HashMap::new();
        }
        let index = |places| TraitIndex::new(places, |document| self.traits(document));
        let ranks = self.groups.longer_than(LINEAR_MAX);
        let mut indexes: HashMap<usize, TraitIndex> = ranks
            .map(|rank| (rank, index(self.groups.of(rank).collect())))
            .collect();
        if self.lists.absent.len() > LINEAR_MAX {
            indexes.insert(NO_SKETCH, index(self.lists.absent.clone()));
        }
        indexes
    }

    pub(crate) fn path(&self) -> &Path {
        self.reader.path()
    }

    /// Returns the number of documents, including deleted ones.
    pub(crate) fn len(&self) -> usize {
        self.footer.documents as usize
    }

    /// Returns the expiry time of a document, all ones for never.
    pub(crate) fn expires(&self, document: u32) -> u64 {
        self.expires.of(document)
    }

    /// Returns the size in bytes of all documents as they are stored.
    pub(crate) fn document_bytes(&self) -> u64 {
        // The header is counted too.
        self.lists.offsets.last().copied().unwrap_or_default()
    }

    /// Returns the number of documents that only take space at a given time: exact in a small run, estimated in a larger one.
    pub(crate) fn waste(&self, now: UnixMillis) -> usize {
        self.expires.waste(now, &self.tombstones)
    }

    /// Counts the documents that are live at a given time. Takes between some nanoseconds for every 64 documents and that much for each.
    pub(crate) fn live(&self, now: UnixMillis) -> usize {
        self.expires.live(now, &self.tombstones)
    }

    /// Tells whether a document is live at a given time.
    pub(crate) fn is_alive(&self, document: u32, now: UnixMillis) -> bool {
        self.expires(document) > now.0 && self.is_present(document)
    }

    /// Tells whether a document exists and has no tombstone.
    fn is_present(&self, document: u32) -> bool {
        (document as usize) < self.len() && !self.tombstones.get(document as usize)
    }

    /// Tells whether all documents are live at any time, so that none need be looked at.
    pub(crate) fn is_whole(&self) -> bool {
        self.tombstones.count() == 0 && self.expires.is_empty()
    }

    /// Returns category and length of a document.
    pub(crate) fn traits(&self, document: u32) -> PairTraits {
        let document = document as usize;
        PairTraits {
            category: self.categories.get(document).copied().unwrap_or_default(),
            length: self.lengths.get(document).copied().unwrap_or_default(),
        }
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn resident(&self) -> usize {
        let lists =
            self.expires.resident() + self.lists.firsts.len() * 4 + self.lists.offsets.len() * 8;
        let groups: usize = self
            .groups
            .words()
            .iter()
            .map(|words| words.len() * 8)
            .sum();
        let firsts: usize = self.indexes.iter().map(|index| index.firsts.len()).sum();
        let keys = (firsts + self.filter.words.len()) * 8;
        let tables = self.sketches.bytes() + self.paragraph_tables.index().bytes();
        let indexed: usize = self.by_traits.values().map(TraitIndex::bytes).sum();
        let traits = self.categories.len() * 8 + self.lengths.len() * 4 + indexed;
        tables + lists + groups + keys + traits + self.len() / 8
    }

    /// Visits the name of every sketch within the radius, with its distance.
    pub(crate) fn search(&self, sketch: &[u8], radius: u32, visit: &mut dyn FnMut(u64, u32)) {
        self.sketches.search(sketch, radius, visit);
    }

    /// Searches for several sketches at once. Visits also get the position of the sketch in the list.
    pub(crate) fn search_group(
        &self,
        sketches: &[Vec<u8>],
        radius: u32,
        visit: &mut dyn FnMut(usize, u64, u32),
    ) {
        self.sketches.search_group(sketches, radius, visit);
    }

    /// Returns the documents with a sketch, given its name, in ascending order and including dead ones.
    fn with_sketch(&self, name: u64) -> impl Iterator<Item = u32> + '_ {
        let rank = self.sketches.rank(name);
        rank.into_iter().flat_map(|rank| self.groups.of(rank))
    }

    /// Returns the documents with a sketch, given its name, that a filter admits, in ascending order and including dead ones.
    pub(crate) fn admitted(
        &self,
        name: u64,
        filter: PairFilter,
    ) -> Box<dyn Iterator<Item = u32> + '_> {
        match self.sketches.rank(name) {
            Some(rank) => self.admitted_of(rank, self.groups.of(rank), filter),
            None => Box::new(std::iter::empty()),
        }
    }

    /// Returns those of the documents with a rank that a filter admits.
    fn admitted_of<'a>(
        &'a self,
        rank: usize,
        documents: impl Iterator<Item = u32> + 'a,
        filter: PairFilter,
    ) -> Box<dyn Iterator<Item = u32> + 'a> {
        let traits = |document| self.traits(document);
        match self.by_traits.get(&rank) {
            _ if filter.is_open() => Box::new(documents),
            // No document has a category or length, so all count or none does.
            _ if self.has_no_traits() => match filter.admits(PairTraits::default()) {
                true => Box::new(documents),
                false => Box::new(std::iter::empty()),
            },
            Some(index) => Box::new(index.admitted(filter, traits)),
            None => Box::new(documents.filter(move |&document| filter.admits(traits(document)))),
        }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub(crate) fn document(&self, document: u32) -> Result<StoredDocument> {
        self.with_bytes(document, |bytes| {
            StoredDocument::decode(&mut ByteDecoder::new(bytes))
        })
    }

    /// Reads id, key and metadata of a document, with a single read.
    pub(crate) fn header(&self, document: u32) -> Result<DocumentHeader> {
        self.with_bytes(document, |bytes| {
            let outline = DocumentOutline::read(ByteDecoder::new(bytes))?;
            Some(DocumentHeader {
                id: outline.id.to_owned(),
                content: outline.content(self.shape.form)?,
                metadata: outline.metadata()?.to_vec(),
            })
        })
    }

    fn with_bytes<T>(&self, document: u32, read: impl FnOnce(&[u8]) -> Option<T>) -> Result<T> {
        // The first block begins with document 0 (`DocumentLists::fit`), so the subtraction cannot overflow. One read of about four KiB,
        // then documents before this one are skipped by their lengths: offsets of single documents would take eight bytes each in memory.
        let block = self
            .lists
            .firsts
            .partition_point(|&first| first <= document)
            - 1;
        let mut bytes = Vec::new();
        self.block(block, &mut bytes)?;
        let mut decoder = ByteDecoder::new(&bytes);
        let skipped = (self.lists.firsts[block]..document).try_for_each(|_| {
            decoder.bytes()?;
            Some(())
        });
        let found = skipped.and_then(|()| read(decoder.bytes()?));
        found.ok_or_else(|| self.malformed(block))
    }

    fn malformed(&self, block: usize) -> StoreError {
        self.reader
            .damaged(self.lists.offsets[block], "a document cannot be read")
    }

    fn block(&self, block: usize, into: &mut Vec<u8>) -> Result<()> {
        // Offsets ascend and end before the lists (`DocumentLists::fit`), so no block is longer than the file.
        let (offset, end) = (self.lists.offsets[block], self.lists.offsets[block + 1]);
        self.reader.block(offset, (end - offset) as usize, into)
    }

    /// Returns the documents in a block.
    fn documents_of(&self, block: usize) -> Range<u32> {
        let next = self.lists.firsts.get(block + 1);
        self.lists.firsts[block]..next.copied().unwrap_or(self.len() as u32)
    }

    /// Finds the document with an id that has no tombstone; it may have expired. Usually takes no read or two.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub(crate) fn find(&self, id: &str, hash: u64) -> Result<Option<u32>> {
        // Every insert looks up its id in every run, and usually none has it.
        if !self.filter.may_contain(hash) {
            return Ok(None);
        }
        // The candidates are read after the visit, because its callback cannot return errors.
        let mut candidates = Vec::new();
        self.find_key(IndexKey::Id, hash, &mut |document| {
            if self.is_present(document) {
                candidates.push(document);
            }
            true
        })?;
        // Hashes may collide, so compare the ids.
        for document in candidates {
            let same = self.with_bytes(document, |bytes| {
                Some(DocumentOutline::read(ByteDecoder::new(bytes))?.id == id)
            })?;
            if same {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    fn index(&self, of: IndexKey) -> &SortedIndex {
        &self.indexes[of as usize]
    }

    /// Visits the documents with a key in ascending order, including dead ones, until `each` returns false.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub(crate) fn find_key(
        &self,
        of: IndexKey,
        key: u64,
        each: &mut dyn FnMut(u32) -> bool,
    ) -> Result<()> {
        self.index(of).find(&self.reader, key, each)
    }

    /// Returns the tables of paragraph fingerprints.
    pub(crate) fn paragraph_index(&self) -> &TableIndex<u64> {
        self.paragraph_tables.index()
    }

    /// Reads id and paragraphs of a document, with a single read.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub(crate) fn paragraphs(&self, document: u32) -> Result<(String, Vec<StoredParagraph>)> {
        self.with_bytes(document, |bytes| {
            let outline = DocumentOutline::read(ByteDecoder::new(bytes))?;
            Some((outline.id.to_owned(), outline.paragraphs()?.collect()))
        })
    }

    /// Finds the oldest live document that has the text searched for, leaving out those for which `skip` returns true, and returns it with
    /// its id. Usually takes no read or two.
    ///
    /// # Errors
    /// Failures of the medium, and damage.
    pub(crate) fn find_text(
        &self,
        search: &ContentSearch,
        skip: &dyn Fn(u32) -> bool,
    ) -> Result<Option<(u32, String)>> {
        let Some(hash) = search.content.text_hash else {
            return Ok(None);
        };
        let is_shown = |document| self.is_alive(document, search.now) && !skip(document);
        let walk = |most: usize| {
            let (mut found, mut left) = (Ok(None), most);
            self.find_key(IndexKey::Text, hash.key(), &mut |document| {
                if search.filter.admits(self.traits(document)) && is_shown(document) {
                    found = self.read_copy(document, search);
                }
                left -= 1;
                // Go on only if this document was neither a copy nor an error.
                left > 0 && matches!(found, Ok(None))
            })?;
            // Whether all documents were visited.
            found.map(|found| (left > 0 || found.is_some(), found))
        };
        if let (true, found) = walk(TEXT_WALK_MAX)? {
            return Ok(found);
        }
        // A million documents may have the text, none of which is compared. Equal texts have equal sketches, by which those that are
        // compared are found at once.
        let similar = self
            .with_sketch_of(search)
            .filter(|&document| is_shown(document));
        for (tried, document) in similar.enumerate() {
            if tried == TEXT_READ_MAX {
                return Ok(walk(usize::MAX)?.1);
            }
            if let Some(found) = self.read_copy(document, search)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the documents with the sketch searched for, or without a sketch if it has none, that the filter of the search admits.
    fn with_sketch_of(&self, search: &ContentSearch) -> Box<dyn Iterator<Item = u32> + '_> {
        match &search.sketch {
            None => {
                let absent = self.lists.absent.iter().copied();
                self.admitted_of(NO_SKETCH, absent, search.filter)
            }
            Some(sketch) => match self.sketches.find(sketch) {
                Some(name) => self.admitted(name, search.filter),
                None => Box::new(std::iter::empty()),
            },
        }
    }

    /// Reads a document, and returns it with its id if it has the text searched for.
    fn read_copy(&self, document: u32, search: &ContentSearch) -> Result<Option<(u32, String)>> {
        let header = self.header(document)?;
        // Indexes have only eight bytes of the hash, so compare all sixteen.
        let is_copy = header.content.is_same_text(&search.content);
        Ok(is_copy.then_some((document, header.id)))
    }

    /// Visits all documents, including dead ones.
    ///
    /// # Errors
    /// Failures of the medium, damage, and errors of `each`.
    pub(crate) fn for_each<E: From<StoreError>>(
        &self,
        each: &mut DocumentVisitor<'_, E>,
    ) -> Result<(), E> {
        let mut bytes = Vec::new();
        for block in 0..self.lists.firsts.len() {
            self.block(block, &mut bytes)?;
            let mut decoder = ByteDecoder::new(&bytes);
            for document in self.documents_of(block) {
                let bytes = decoder.bytes().ok_or_else(|| self.malformed(block))?;
                each(document, bytes)?;
            }
        }
        Ok(())
    }

    /// Passes all documents of intact blocks to `each`, for a salvage. Returns the errors of the other blocks.
    pub(crate) fn salvage(&self, each: &mut dyn FnMut(u32, StoredDocument)) -> Vec<StoreError> {
        let (mut bytes, mut lost) = (Vec::new(), Vec::new());
        for block in 0..self.lists.firsts.len() {
            if let Err(error) = self.block(block, &mut bytes) {
                lost.push(error);
                continue;
            }
            let mut decoder = ByteDecoder::new(&bytes);
            for number in self.documents_of(block) {
                let document = decoder
                    .bytes()
                    .and_then(|bytes| StoredDocument::decode(&mut ByteDecoder::new(bytes)));
                match document {
                    Some(document) => each(number, document),
                    // One error for each lost document.
                    None => lost.push(self.malformed(block)),
                }
            }
        }
        lost
    }

    /// Visits the sketches of all documents.
    ///
    /// # Errors
    /// Failures of the medium, damage, and errors of `each`.
    pub(crate) fn for_each_sketch(&self, each: &mut SketchVisitor<'_>) -> Result<()> {
        let (mut document, mut absent) = (0, self.lists.absent.iter().peekable());
        let (codes, bytes) = (self.footer.codes, self.shape.form.bytes());
        self.reader.rows(codes, bytes, &mut |sketch| {
            while absent.next_if_eq(&&document).is_some() {
                each(document, None)?;
                document += 1;
            }
            each(document, Some(sketch))?;
            document += 1;
            Ok(())
        })?;
        // After the last sketch, only documents without one are left.
        (document..self.len() as u32).try_for_each(|document| each(document, None))
    }

    /// The entries of an index, ascending. Those of documents that do not exist are damage.
    pub(crate) fn entries(&self, of: IndexKey) -> impl Iterator<Item = Result<IndexEntry>> + '_ {
        let index = self.index(of);
        index.iter(&self.reader).map(|entry| {
            let (key, document) = entry?;
            if (document as usize) < self.len() {
                return Ok((key, document));
            }
            let what = format!("an index names document {document} of {}", self.len());
            Err(self.reader.damaged(index.offset, what))
        })
    }

    /// Reads and checks everything that opening did not, and how the parts fit each other.
    ///
    /// # Errors
    /// Failures of the medium, and the first damage.
    pub(crate) fn verify(&self, hash: &dyn Fn(&str) -> u64) -> Result<()> {
        let entries = self.document_entries(hash)?;
        self.verify_sketches(&entries.sketches)?;
        self.verify_paragraph_tables()?;
        for (key, entries) in IndexKey::ALL.into_iter().zip(entries.indexes) {
            if !self.has_entries(self.index(key), entries)? {
                let name = key.name();
                return self.damaged(format!("the index of {name} is not that of the documents"));
            }
        }
        Ok(())
    }

    fn damaged<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(self.reader.damaged(0, what))
    }

    /// Reads all documents, checks what the run keeps of each in memory, and returns what belongs into its indexes.
    fn document_entries(&self, hash: &dyn Fn(&str) -> u64) -> Result<DocumentEntries> {
        let mut entries = DocumentEntries {
            sketches: Vec::with_capacity(self.len()),
            ..DocumentEntries::default()
        };
        let (mut is_filtered, mut same_expiry, mut same_traits) = (false, true, true);
        self.for_each(&mut |document, bytes| {
            let outline = DocumentOutline::read(ByteDecoder::new(bytes));
            let whole = StoredDocument::decode(&mut ByteDecoder::new(bytes)).is_some();
            let Some(outline) = outline.filter(|_| whole) else {
                return self.damaged(format!("document {document} cannot be read"));
            };
            let mut add =
                |of: IndexKey, key: u64| entries.indexes[of as usize].push((key, document));
            let id = hash(outline.id);
            is_filtered |= !self.filter.may_contain(id);
            add(IndexKey::Id, id);
            let sketch = outline.sketch(self.shape.form).flatten();
            let sketch = sketch.map(|sketch| sketch_key(&sketch.to_bytes()));
            entries.sketches.push(sketch);
            same_expiry &= outline.expires.map_or(NEVER, |end| end.0) == self.expires(document);
            same_traits &= outline.traits == self.traits(document);
            for paragraph in outline.paragraphs().into_iter().flatten() {
                add(IndexKey::Paragraph, paragraph.hash);
                if let Some(code) = paragraph.fingerprint {
                    add(IndexKey::ParagraphCode, code.0);
                }
            }
            if let Some(hash) = outline.text_hash {
                add(IndexKey::Text, hash.key());
            }
            Ok(())
        })?;
        match (is_filtered, same_expiry, same_traits) {
            (true, ..) => self.damaged("the filter over ids leaves out the id of a document"),
            (_, false, _) => self.damaged("the times of expiry are not those of the documents"),
            (_, _, false) => {
                self.damaged("the categories or lengths are not those of the documents")
            }
            _ => Ok(entries),
        }
    }

    /// Checks that the stored sketches and their tables are those of the documents, of which `sketches` has the keys.
    fn verify_sketches(&self, sketches: &[Option<u64>]) -> Result<()> {
        let mut fits = true;
        self.for_each_sketch(&mut |document, sketch| {
            fits &= sketches.get(document as usize) == Some(&sketch.map(sketch_key));
            Ok(())
        })?;
        // The lists of all sketches must contain each document with a sketch once, under its own sketch.
        let mut listed = 0;
        self.sketches.for_each(&mut |name, code| {
            let mut before = None;
            for document in self.with_sketch(name) {
                fits &=
                    sketches.get(document as usize) == Some(&Some(code)) && before < Some(document);
                before = Some(document);
                listed += 1;
            }
        });
        fits &= listed == self.footer.coded && sketches.iter().flatten().count() as u64 == listed;
        match fits {
            true => Ok(()),
            false => self.damaged("the tables are not those of the documents"),
        }
    }

    /// Checks that the tables of paragraphs have the fingerprints of the index, each once.
    fn verify_paragraph_tables(&self) -> Result<()> {
        let (mut distinct, mut fits, tables) = (0, true, self.paragraph_index());
        let codes = self.index(IndexKey::ParagraphCode);
        codes.keys(&self.reader, &mut |codes| {
            distinct += codes.len();
            fits &= codes.iter().all(|&code| tables.rank(code).is_some());
            Ok(())
        })?;
        match fits && distinct == tables.len() {
            true => Ok(()),
            false => self.damaged("the tables of paragraphs are not those of their index"),
        }
    }

    /// Returns true if an index has these entries, and finds each of them.
    fn has_entries(&self, stored: &SortedIndex, mut entries: Vec<IndexEntry>) -> Result<bool> {
        // All entries are sorted in memory: this verifies a whole store on request, and is not part of serving it.
        entries.sort_unstable();
        // A document may repeat a paragraph, and the index has it once.
        entries.dedup();
        let mut at = 0;
        for entry in stored.iter(&self.reader) {
            let entry = entry?;
            if entries.get(at) != Some(&entry) || !stored.is_found_by_lookup(at, entry.0) {
                return Ok(false);
            }
            at += 1;
        }
        Ok(at == entries.len())
    }
}

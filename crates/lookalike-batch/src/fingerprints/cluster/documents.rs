//! Documents of a decision, which can be read repeatedly: those of fingerprint files, or the ids of pairs.

use lookalike_corpus::ReadError;
use lookalike_hamming::Word;
use xxhash_rust::xxh3::Xxh3;

use super::error::ClusterError;
use super::id_table::IdTable;
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFiles, CodesSummary, FingerprintFile, FingerprintName, FingerprintSource, ListedId,
    check_losses,
};
use crate::fingerprints::sketches::{SketchPositions, SketchReading};
use crate::fingerprints::with_word::with_word;
use crate::losses::LossPolicy;
use crate::observer::JobObserver;
use crate::spill::table_column::TableColumn;

/// Bytes of fingerprints and ids in memory at once.
const CHUNK_BYTES: u64 = 4 << 20;

/// A document, with its place among all.
pub(super) struct ClusterDocument<'a> {
    pub(super) place: u32,
    pub(super) id: DocumentId<'a>,
    /// True if it has no id, so that all documents with the same fingerprint or sketch are one.
    pub(super) is_bare: bool,
    /// Its fingerprint, if it comes from a file.
    pub(super) fingerprint: Option<u128>,
}

/// Id of a document.
#[derive(Clone, Copy)]
pub(super) enum DocumentId<'a> {
    /// Name in a file; a fingerprint without an id stands for itself.
    Named(FingerprintName<'a>),
    /// Number of an id in the table of ids of the pairs.
    Listed(&'a IdTable, u32),
}

impl<'a> DocumentId<'a> {
    pub(super) fn listed(self) -> ListedId<'a> {
        match self {
            Self::Named(name) => name.into(),
            Self::Listed(ids, number) => ids.id(number),
        }
    }
}

/// Documents that can be read repeatedly.
pub(super) enum ClusterDocuments<'a> {
    /// Documents of files, in file order.
    Files(DocumentFiles<'a>),
    /// Ids of pairs, in ascending order.
    Ids(&'a IdTable, TableColumn<u32>),
}

/// Fingerprint files, in the order in which they are named.
#[derive(Clone)]
pub(super) struct DocumentFiles<'a> {
    pub(super) paths: &'a [FingerprintSource],
    pub(super) losses: LossPolicy,
    pub(super) observer: &'a dyn JobObserver,
    /// Digest of the fingerprints, once the files have been read.
    pub(super) digest: Option<u64>,
    /// The distinct sketches of the files, if these hold sketches of several places. A sketch's position among them then serves as its fingerprint.
    pub(super) sketches: Option<&'a SketchPositions>,
}

/// Facts about the files that were read.
#[derive(Default)]
pub(super) struct ReadDocuments {
    pub(super) files: Vec<CodesSummary>,
    pub(super) documents: u32,
    /// True if fingerprints or sketches have no ids, so that equal ones are one document.
    pub(super) is_bare: bool,
    pub(super) digest: u64,
}

impl ClusterDocuments<'_> {
    /// Visits every document in the order of places. Returns facts about the files, or `None` if there are none.
    pub(super) fn for_each(
        &self,
        visit: &mut dyn FnMut(ClusterDocument<'_>) -> Result<(), BatchError>,
    ) -> Result<Option<ReadDocuments>, BatchError> {
        let (ids, order) = match self {
            Self::Files(files) => return files.read(visit).map(Some),
            Self::Ids(ids, order) => (ids, order),
        };
        for (place, &number) in (0..).zip(order.iter()) {
            visit(ClusterDocument {
                place,
                id: DocumentId::Listed(ids, number),
                is_bare: false,
                // Lists of pairs name documents but do not tell their fingerprints.
                fingerprint: None,
            })?;
        }
        Ok(None)
    }
}

impl DocumentFiles<'_> {
    /// Opens all files and checks that their schemes agree.
    pub(super) fn open(&self) -> Result<CodeFiles, BatchError> {
        // Open all headers before reading fingerprints, so that a wrong scheme in the last file is reported at once, not after hours.
        Ok(CodeFiles::open(self.paths, self.losses.is_strict())?)
    }

    /// Reads all files.
    pub(super) fn read(
        &self,
        visit: &mut dyn FnMut(ClusterDocument<'_>) -> Result<(), BatchError>,
    ) -> Result<ReadDocuments, BatchError> {
        let mut read = ReadDocuments::default();
        if let Some(sketches) = self.sketches {
            self.read_sketches(sketches, &mut read, visit)?;
            return self.unchanged(read);
        }
        let files = self.open()?;
        with_word!(files.word_bits(), W => self.read_codes::<W>(files, &mut read, visit)?);
        self.unchanged(read)
    }

    fn read_codes<W: Word>(
        &self,
        mut files: CodeFiles,
        read: &mut ReadDocuments,
        visit: &mut dyn FnMut(ClusterDocument<'_>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let show = |files: &CodeFiles, chunk: &mut FingerprintFile<W>| {
            read.show(chunk, chunk.ids.is_none(), files.name(), visit)
        };
        files.for_each_chunk(CHUNK_BYTES, self.observer, show)?;
        read.files = files.summaries();
        check_losses(self.losses, &read.files)
    }

    fn changed(&self) -> BatchError {
        let names = self.paths.iter().map(FingerprintSource::name);
        let name = names.collect::<Vec<_>>().join(", ");
        ReadError::Changed { name }.into()
    }

    /// Reads all files of sketches, which must be unchanged since they were first read.
    fn read_sketches(
        &self,
        sketches: &SketchPositions,
        read: &mut ReadDocuments,
        visit: &mut dyn FnMut(ClusterDocument<'_>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let mut reading = SketchReading::new(self.observer, self.losses);
        let mut chunk = FingerprintFile::<u64>::default();
        let (mut rest, mut digest) = (&sketches.of_documents[..], Xxh3::new());
        let shape = sketches.distinct.shape;
        read.files = reading.for_each(self.paths, &mut |reading, name, rows| {
            // `None` if the files have more sketches now than in the first reading.
            let positions = rest.split_off(..rows.count);
            let Some(positions) =
                positions.filter(|_| reading.shape().is_none_or(|it| it == shape))
            else {
                return Err(self.changed());
            };
            digest.update(bytemuck::cast_slice(&rows.words));
            // The first reading found the position of each document's sketch, so nothing is looked up again.
            // The words only show that the files are the same.
            chunk.clear();
            chunk
                .codes
                .extend(positions.iter().map(|&at| u64::from(at)));
            chunk.ids.clone_from(&rows.ids);
            chunk.has_both = rows.has_both;
            // Not by the names: a sketch without an id is named by its digits, which are a text as ids are.
            read.show(&chunk, !rows.has_ids, name, visit)
        })?;
        match rest.is_empty() && digest.digest() == sketches.digest {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    fn unchanged(&self, read: ReadDocuments) -> Result<ReadDocuments, BatchError> {
        match self.digest.is_some_and(|digest| digest != read.digest) {
            true => Err(self.changed()),
            false => Ok(read),
        }
    }
}

impl ReadDocuments {
    fn show<W: Word>(
        &mut self,
        chunk: &FingerprintFile<W>,
        is_bare: bool,
        file: &str,
        visit: &mut dyn FnMut(ClusterDocument<'_>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        if chunk.codes.is_empty() {
            return Ok(());
        }
        // Bare fingerprints are one document however often they occur, those with ids are not, so their counts cannot be mixed.
        if chunk.has_both || self.documents > 0 && is_bare != self.is_bare {
            let name = file.to_owned();
            return Err(ClusterError::MixedIds { name }.into());
        }
        self.is_bare = is_bare;
        let all = u64::from(self.documents) + chunk.codes.len() as u64;
        // Places have 32 bits, and one value means no document.
        if all >= u64::from(u32::MAX) {
            return Err(BatchError::TooManyFingerprints(all));
        }
        for (at, &fingerprint) in chunk.codes.iter().enumerate() {
            // The digest depends on the order, since later readings identify a document by its place.
            let value = fingerprint.to_u128();
            // Each step is a bijection of the digest, so one changed fingerprint of 64 bits cannot go unnoticed.
            // This guards against mistakes, not against forgery.
            self.digest = (self.digest ^ value as u64 ^ ((value >> 64) as u64).rotate_left(32))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
            visit(ClusterDocument {
                place: self.documents,
                id: DocumentId::Named(chunk.ids.name(at, fingerprint)),
                is_bare,
                fingerprint: Some(value),
            })?;
            self.documents += 1;
        }
        Ok(())
    }
}

//! The footer of a run, which locates its parts.

use super::id_filter::FILTER_BLOCK;
use super::pages::{BlockReader, BlockWriter, IndexLocation, RunSection};
use super::sorted;
use super::{END, HEADER, MAGIC, TRAILER, VERSION};
use crate::checksum::{self, FileIdentity, check_header};
use crate::codec::{ByteDecoder, fixed, put_number};
use crate::error::{Result, StoreError};

/// Expiry time of a document that never expires, as stored in runs.
pub(crate) const NEVER: u64 = u64::MAX;

/// The parts of a run, in the order of the file. Encoded as the numbers in turn, in variable length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFooter {
    /// Number of documents.
    pub(crate) documents: u64,
    /// Number of documents with a sketch.
    pub(crate) coded: u64,
    /// Number of the first document in each block of documents, 4 bytes each.
    pub(crate) firsts: RunSection,
    /// Offset of each block of documents, then the end of the last, 8 bytes each.
    pub(crate) offsets: RunSection,
    /// Sketches in the order of documents: 64-bit fingerprints, super-shingles of 8 bytes each, minima of 4 bytes each, or the bytes of
    /// other fingerprints.
    pub(crate) codes: RunSection,
    /// Documents without a sketch, in ascending order, 4 bytes each.
    pub(crate) absent: RunSection,
    /// A fingerprint index (`LKIX`). Empty in small runs, whose tables are built when they are opened, and for sketches other than 64-bit
    /// fingerprints.
    pub(crate) tables: RunSection,
    /// Starts of the documents of each fingerprint, in the order of ranks: one bit for each document.
    pub(crate) starts: RunSection,
    /// Documents in the order of their fingerprints' ranks, packed into as few bits each as the largest number needs.
    pub(crate) order: RunSection,
    /// Expiry times of documents, 8 bytes each, all ones for never; empty if none expires.
    pub(crate) expires: RunSection,
    /// Indexes, in the order of [`IndexKey`](super::sorted::IndexKey).
    pub(crate) indexes: [IndexLocation; 4],
    /// Filter over the hashes of ids.
    pub(crate) filter: RunSection,
    /// A fingerprint index (`LKIX`) of the paragraph fingerprints; empty if there are few.
    pub(crate) paragraph_tables: RunSection,
    /// Hashes of the categories of documents, 8 bytes each; empty if none has one.
    pub(crate) categories: RunSection,
    /// Lengths of texts, 4 bytes each; empty if none is known.
    pub(crate) lengths: RunSection,
}

impl RunFooter {
    /// Returns all sections but those of indexes, in their order in the footer.
    fn sections(&mut self) -> [&mut RunSection; 12] {
        [
            &mut self.firsts,
            &mut self.offsets,
            &mut self.codes,
            &mut self.absent,
            &mut self.tables,
            &mut self.starts,
            &mut self.order,
            &mut self.expires,
            &mut self.filter,
            &mut self.paragraph_tables,
            &mut self.categories,
            &mut self.lengths,
        ]
    }

    fn numbers(&mut self, each: &mut dyn FnMut(&mut u64)) {
        // Reading and writing share this function, so they cannot disagree about the order.
        each(&mut self.documents);
        each(&mut self.coded);
        for section in self.sections() {
            each(&mut section.offset);
            each(&mut section.length);
        }
        for index in &mut self.indexes {
            each(&mut index.offset);
            each(&mut index.count);
            each(&mut index.first_keys.offset);
            each(&mut index.first_keys.length);
        }
    }

    /// Writes the footer and the trailer, and finishes the file.
    pub(super) fn write(mut self, mut out: BlockWriter<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        self.numbers(&mut |number| put_number(&mut bytes, *number));
        let section = out.section(&bytes)?;
        let mut trailer = [section.offset, section.length]
            .map(u64::to_le_bytes)
            .concat();
        let check = out.checksum().of_block(&trailer, out.offset());
        trailer.extend_from_slice(&check.to_le_bytes());
        trailer.extend_from_slice(&END);
        out.raw(&trailer)?;
        out.finish()
    }

    /// Reads the footer of a run whose sketches have `sketch_bytes` bytes each.
    pub(super) fn read(
        reader: &BlockReader,
        identity: FileIdentity,
        sketch_bytes: usize,
    ) -> Result<Self> {
        let length = reader.length()?;
        if length < (HEADER + TRAILER) as u64 {
            return Err(reader.damaged(length, "the run is cut off"));
        }
        check_identity(reader.path(), &reader.raw(0)?, identity)?;
        let at = length - TRAILER as u64;
        let trailer: [u8; TRAILER] = reader.raw(at)?;
        let check = reader.checksum().of_block(&trailer[..16], at);
        // The trailer is written last: a run that was truncated anywhere lacks its end mark, even if everything else is intact.
        if trailer[24..] != END || check != fixed(&trailer[16..24]) {
            let what = "the end of the run does not match its checksum: it is damaged or truncated";
            return Err(reader.damaged(at, what));
        }
        let section = RunSection {
            offset: fixed(&trailer[..8]),
            length: fixed(&trailer[8..16]),
        };
        if section.end() != Some(at) {
            return Err(reader.damaged(at, "the footer does not end where the run ends"));
        }
        // The footer was found to end before the trailer, so it is not longer than the file.
        let bytes = reader.section(section)?;
        let (mut footer, mut decoder, mut whole) =
            (Self::default(), ByteDecoder::new(&bytes), true);
        footer.numbers(&mut |slot| match decoder.number() {
            Some(number) => *slot = number,
            None => whole = false,
        });
        let damaged = |what| Err(reader.damaged(section.offset, what));
        if !whole || !decoder.rest().is_empty() {
            return damaged("the footer has another length");
        }
        if !footer.fits(at, sketch_bytes as u64) {
            return damaged("the sections in the footer are inconsistent");
        }
        Ok(footer)
    }

    /// Tells whether all parts end before `end`, and have the lengths that the counts require. Memory is allocated by these numbers.
    fn fits(&mut self, end: u64, sketch_bytes: u64) -> bool {
        let is_inside = |section: &RunSection| section.end().is_some_and(|at| at <= end);
        let are_inside = self.sections().iter().all(|section| is_inside(section));
        let blocks = self.firsts.length / 4;
        // A document takes at least one byte. The products below cannot overflow: there are fewer than 2^32 documents, and sections end
        // within the file.
        self.documents <= end.min(u32::MAX.into())
            && self.coded <= self.documents
            && are_inside
            && self.firsts.length == blocks * 4
            && self.offsets.length == (blocks + 1) * 8
            && (blocks == 0) == (self.documents == 0)
            && self.codes.length == self.coded * sketch_bytes
            // This relies on `coded <= documents`, checked above.
            && self.absent.length == (self.documents - self.coded) * 4
            && [0, self.documents * 8].contains(&self.expires.length)
            && [0, self.documents * 8].contains(&self.categories.length)
            && [0, self.documents * 4].contains(&self.lengths.length)
            && self.filter.length > 0
            && self.filter.length.is_multiple_of(FILTER_BLOCK)
            && (self.indexes.iter())
                .all(|index| is_inside(&index.first_keys) && sorted::fits(index, end))
    }
}

/// Returns the first bytes of a run.
pub(super) fn header(identity: FileIdentity) -> [u8; HEADER] {
    let FileIdentity { collection, number } = identity;
    checksum::header(MAGIC, VERSION, &[collection, number])
}

/// Returns an error unless these are the first bytes of this run.
fn check_identity(
    path: &std::path::Path,
    bytes: &[u8; HEADER],
    identity: FileIdentity,
) -> Result<()> {
    let other = "not a run of a collection: it does not begin with \"LKRN\"";
    check_header(path, bytes, MAGIC, other, VERSION)?;
    if *bytes != header(identity) {
        let what = "a run of another collection, or under another name";
        return Err(StoreError::foreign(path, what));
    }
    Ok(())
}

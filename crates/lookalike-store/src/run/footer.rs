//! What a run says of its parts.

use std::path::Path;

use super::pages::{BlockReader, BlockWriter, Section};
use super::{END, HEADER, MAGIC, TRAILER, VERSION};
use crate::codec::{Decoder, fixed, put_number};
use crate::error::{Result, StoreError};
use crate::fs::{File, read_exact};
use crate::seal::{Seal, whole};

/// The parts of a run, in the order of the file. As bytes: each number in turn, as short numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footer {
    /// Documents.
    pub(crate) documents: u64,
    /// Documents with a fingerprint.
    pub(crate) coded: u64,
    /// First document of each block of documents, 4 bytes each.
    pub(crate) firsts: Section,
    /// Where each block of documents begins, and where the last ends, 8 bytes each.
    pub(crate) offsets: Section,
    /// Fingerprints in the order of the documents, 8 bytes each.
    pub(crate) codes: Section,
    /// Documents without a fingerprint, ascending, 4 bytes each.
    pub(crate) absent: Section,
    /// A fingerprint index (`LKIX`); empty in small runs, whose tables are made when they are opened.
    pub(crate) tables: Section,
    /// Where the documents of another fingerprint begin, in the order of ranks: a bit each.
    pub(crate) starts: Section,
    /// Documents in the order of the ranks of their fingerprints, as few bits each as the largest needs.
    pub(crate) order: Section,
    /// When documents expire, 8 bytes each, all ones for never; empty when none does.
    pub(crate) expires: Section,
    /// Hashes of ids: where the blocks begin, how many entries, the first key of each block.
    pub(crate) ids: (u64, u64, Section),
    /// The filter over hashes of ids.
    pub(crate) filter: Section,
    /// Paragraphs, as ids.
    pub(crate) paragraphs: (u64, u64, Section),
}

impl Footer {
    fn numbers(&mut self, each: &mut dyn FnMut(&mut u64)) {
        let section = |section: &mut Section, each: &mut dyn FnMut(&mut u64)| {
            each(&mut section.offset);
            each(&mut section.length);
        };
        each(&mut self.documents);
        each(&mut self.coded);
        for part in [
            &mut self.firsts,
            &mut self.offsets,
            &mut self.codes,
            &mut self.absent,
            &mut self.tables,
            &mut self.starts,
            &mut self.order,
            &mut self.expires,
            &mut self.filter,
        ] {
            section(part, each);
        }
        for (offset, count, firsts) in [&mut self.ids, &mut self.paragraphs] {
            each(offset);
            each(count);
            section(firsts, each);
        }
    }

    /// Ends a file.
    pub(super) fn write(mut self, mut out: BlockWriter<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        self.numbers(&mut |number| put_number(&mut bytes, *number));
        let section = out.section(&bytes)?;
        let mut trailer = [section.offset, section.length]
            .map(u64::to_le_bytes)
            .concat();
        let check = out.seal().of(&trailer, out.offset());
        trailer.extend_from_slice(&check.to_le_bytes());
        trailer.extend_from_slice(&END);
        out.raw(&trailer)?;
        out.finish()
    }

    pub(super) fn read(file: &dyn File, path: &Path, collection: u64, number: u64) -> Result<Self> {
        let length = file
            .length()
            .map_err(StoreError::io(path, "reading a run"))?;
        if length < (HEADER + TRAILER) as u64 {
            return Err(StoreError::damaged(path, length, "the run is cut off"));
        }
        let read = |bytes: &mut [u8], offset| {
            read_exact(file, bytes, offset).map_err(StoreError::io(path, "reading a run"))
        };
        let mut header = [0; HEADER];
        read(&mut header, 0)?;
        check_header(path, &header, collection, number)?;
        let mut trailer = [0; TRAILER];
        let at = length - TRAILER as u64;
        read(&mut trailer, at)?;
        let seal = Seal::new(collection, number);
        if trailer[24..] != END || seal.of(&trailer[..16], at) != fixed(&trailer[16..24]) {
            let what = "the end of the run does not match its check: it is damaged or cut off";
            return Err(StoreError::damaged(path, at, what));
        }
        let section = Section {
            offset: fixed(&trailer[..8]),
            length: fixed(&trailer[8..16]),
        };
        if section.offset + section.stored() != at {
            return Err(StoreError::damaged(
                path,
                at,
                "the footer does not end where the run ends",
            ));
        }
        let bytes = BlockReader { file, path, seal }.section(section)?;
        let (mut footer, mut decoder, mut whole) = (Self::default(), Decoder::new(&bytes), true);
        footer.numbers(&mut |slot| match decoder.number() {
            Some(number) => *slot = number,
            None => whole = false,
        });
        if whole && decoder.rest().is_empty() {
            Ok(footer)
        } else {
            Err(StoreError::damaged(
                path,
                section.offset,
                "the footer has another length",
            ))
        }
    }
}

/// The first bytes of a run.
pub(super) fn header(collection: u64, number: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&VERSION.to_le_bytes());
    header[8..16].copy_from_slice(&collection.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let check = whole(&header[..24]);
    header[24..].copy_from_slice(&check.to_le_bytes());
    header
}

fn check_header(path: &Path, bytes: &[u8; HEADER], collection: u64, number: u64) -> Result<()> {
    let path = || path.to_owned();
    if bytes[..4] != MAGIC {
        let what = "not a run of a collection: it does not begin with \"LKRN\"";
        return Err(StoreError::Foreign { path: path(), what });
    }
    let found = fixed(&bytes[4..8]) as u32;
    if found != VERSION {
        return Err(StoreError::Version {
            path: path(),
            found,
            known: VERSION,
        });
    }
    if whole(&bytes[..24]) != fixed(&bytes[24..]) {
        return Err(StoreError::damaged(
            &path(),
            0,
            "the header does not match its check",
        ));
    }
    if *bytes != header(collection, number) {
        let what = "a run of another collection, or under another name";
        return Err(StoreError::Foreign { path: path(), what });
    }
    Ok(())
}

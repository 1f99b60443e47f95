//! A window over the decompressed bytes of a source, which moves step by step.

use crate::decode::{DecodeStep, SourceDecoder};
use crate::error::ReadError;
use crate::source::{SkippedPart, Source};

/// The bytes of a byte order mark in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decompressed bytes that are read at once.
const STEP_BYTES: usize = 256 << 10;

/// The bytes that were read and not yet passed.
pub(crate) struct InputWindow<'a> {
    pub(crate) source: &'a Source,
    decoder: SourceDecoder<'a>,
    bytes: Vec<u8>,
    at: usize,
    /// Offset of the first byte of the rest in the decompressed source.
    pub(crate) offset: u64,
    pub(crate) is_at_end: bool,
    pub(crate) is_damaged: bool,
}

impl<'a> InputWindow<'a> {
    pub(crate) fn open(source: &'a Source) -> Result<InputWindow<'a>, ReadError> {
        Ok(InputWindow {
            source,
            decoder: SourceDecoder::open(source)?,
            bytes: Vec::new(),
            at: 0,
            offset: 0,
            is_at_end: false,
            is_damaged: false,
        })
    }

    /// Returns the bytes from the reading position on.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Passes over bytes of the rest.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.offset += bytes as u64;
    }

    /// Puts a byte behind the rest.
    pub(crate) fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Reads the next step in place of the rest, which must have been passed, without a byte order mark at the start of the source. Damage ends the
    /// source.
    pub(crate) fn read(&mut self, skips: &mut Vec<SkippedPart>) -> Result<(), ReadError> {
        self.bytes.clear();
        self.at = 0;
        match self.decoder.append(&mut self.bytes, STEP_BYTES)? {
            DecodeStep::More => {}
            DecodeStep::End => self.is_at_end = true,
            DecodeStep::Damaged(reason) => {
                let offset = self.offset + self.bytes.len() as u64;
                skips.push(SkippedPart::damaged(self.source, offset, &reason));
                (self.is_at_end, self.is_damaged) = (true, true);
            }
        }
        if self.offset == 0 && self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.advance(BYTE_ORDER_MARK.len());
        }
        Ok(())
    }

    /// Returns the number of bytes of the file that were consumed so far.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.decoder.disk_bytes()
    }
}

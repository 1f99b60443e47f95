//! Reading of archives, block by block.

use super::super::file_error::{FileError, expect_end, number, read_or_truncated};
use super::super::huffman::HuffmanDecoder;
use super::{BLOCK_BYTES, BLOCK_HEADER, FORMAT, HEADER, block_check};
use std::fmt;
use std::io::Read;
use xxhash_rust::xxh3::Xxh3;

/// Contents of the header.
#[derive(Clone, Debug)]
struct ArchiveHeader {
    scheme: u64,
    block_bytes: usize,
    decoder: HuffmanDecoder,
}

impl ArchiveHeader {
    fn parse(bytes: &[u8; HEADER]) -> Result<Self, FileError> {
        let damaged = |what| FileError::Damaged { offset: 0, what };
        FORMAT.check(bytes)?;
        let block_bytes = number(&bytes[16..20]) as u32;
        if !BLOCK_BYTES.contains(&block_bytes) {
            return Err(damaged("the block size is out of range"));
        }
        let decoder = HuffmanDecoder::new(&bytes[20..85])
            .ok_or(damaged("the code lengths do not form a valid code"))?;
        let scheme = number(&bytes[8..16]);
        Ok(Self {
            scheme,
            block_bytes: block_bytes as usize,
            decoder,
        })
    }

    /// Appends the fingerprints of block `at`.
    fn decode(&self, block: &[u8], at: u64, out: &mut Vec<u64>) -> Result<(), FileError> {
        let offset = HEADER as u64 + at * self.block_bytes as u64;
        let damaged = |what| FileError::Damaged { offset, what };
        // Before any bit is decoded: the code below trusts that a writer made this block.
        if u64::from(block_check(block, at)) != number(&block[..4]) {
            return Err(damaged("the block does not match its checksum"));
        }
        let mut code = number(&block[6..BLOCK_HEADER]);
        out.push(code);
        let mut bits = BitReader {
            bytes: &block[BLOCK_HEADER..],
            at: 0,
        };
        for _ in 1..number(&block[4..6]) {
            let (symbol, length) = self.decoder.decode(bits.peek());
            if length == 0 {
                return Err(damaged("the block holds an unknown code"));
            }
            bits.at += length as usize;
            if symbol < 64 {
                let below = if symbol == 0 {
                    0
                } else {
                    bits.peek() >> (64 - symbol)
                };
                bits.at += symbol as usize;
                // The bit at the position flips, and the bits above it stay.
                code = (code >> symbol ^ 1) << symbol | below;
            }
            out.push(code);
        }
        Ok(())
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// Returns the next 64 bits, with zeros beyond the end.
    fn peek(&self) -> u64 {
        // 64 bits that begin within a byte reach into a ninth byte.
        let from = self.bytes.get(self.at / 8..).unwrap_or_default();
        let (high, next) = match from.first_chunk::<9>() {
            Some(nine) => {
                let [first @ .., last] = *nine;
                (u64::from_be_bytes(first), last)
            }
            None => {
                let mut nine = [0; 9];
                nine[..from.len()].copy_from_slice(from);
                let [first @ .., last] = nine;
                (u64::from_be_bytes(first), last)
            }
        };
        let shift = self.at % 8;
        high << shift | u64::from(next) >> (8 - shift)
    }
}

/// Reader of an archive in one pass, which checks every byte.
pub struct FingerprintArchiveReader<R: Read> {
    input: R,
    header: ArchiveHeader,
    block: Vec<u8>,
    blocks: u64,
    /// Number of the fingerprints so far, and the last of them.
    count: u64,
    last: u64,
    /// Digest of the keys of the blocks so far.
    keys: Xxh3,
}

impl<R: Read> fmt::Debug for FingerprintArchiveReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FingerprintArchiveReader");
        shown.field("header", &self.header);
        shown.field("blocks", &self.blocks);
        shown.field("count", &self.count);
        shown.finish_non_exhaustive()
    }
}

impl<R: Read> FingerprintArchiveReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if it is not that of an archive of a known version.
    pub fn new(mut input: R) -> Result<Self, FileError> {
        let mut header = [0; HEADER];
        read_or_truncated(&mut input, &mut header, 0)?;
        let header = ArchiveHeader::parse(&header)?;
        let block = vec![0; header.block_bytes];
        Ok(Self {
            input,
            header,
            block,
            blocks: 0,
            count: 0,
            last: 0,
            keys: Xxh3::new(),
        })
    }

    /// Returns the scheme of the fingerprints.
    pub fn scheme(&self) -> u64 {
        self.header.scheme
    }

    /// Appends the fingerprints of the next block to `out`. Returns false after the last, once the end of the archive has been checked, too.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the block or the end is damaged or cut off, or reading fails.
    pub fn read_block(&mut self, out: &mut Vec<u64>) -> Result<bool, FileError> {
        let offset = HEADER as u64 + self.blocks * self.block.len() as u64;
        let damaged = |what| FileError::Damaged { offset, what };
        let (start, rest) = self.block.split_at_mut(6);
        read_or_truncated(&mut self.input, start, offset)?;
        // A block has at least one fingerprint, so zero is the end.
        if start[4..] == [0; 2] {
            if start[..4] != [0; 4] {
                return Err(damaged("a block without fingerprints"));
            }
            self.check_end(offset + 6)?;
            return Ok(false);
        }
        read_or_truncated(&mut self.input, rest, offset + 6)?;
        let before = out.len();
        self.header.decode(&self.block, self.blocks, out)?;
        let codes = &out[before..];
        // A correct check does not prove order, because another program may have made it.
        if codes[0] < self.last || !codes.is_sorted() {
            return Err(damaged("the fingerprints do not ascend"));
        }
        self.blocks += 1;
        self.count += codes.len() as u64;
        self.last = codes[codes.len() - 1];
        self.keys.update(&self.last.to_le_bytes());
        Ok(true)
    }

    /// Compares the keys and numbers behind the blocks, which begin at `offset`, with the blocks.
    fn check_end(&mut self, mut offset: u64) -> Result<(), FileError> {
        let start = offset;
        let mut found = Xxh3::new();
        let mut left = 8 * self.blocks + 16;
        while left > 0 {
            let length = left.min(self.block.len() as u64);
            let part = &mut self.block[..length as usize];
            read_or_truncated(&mut self.input, part, offset)?;
            found.update(part);
            offset += length;
            left -= length;
        }
        let mut check = [0; 8];
        read_or_truncated(&mut self.input, &mut check, offset)?;
        let mut expected = self.keys.clone();
        expected.update(&self.count.to_le_bytes());
        expected.update(&self.blocks.to_le_bytes());
        let check = number(&check);
        if found.digest() != check || expected.digest() != check {
            return Err(FileError::Damaged {
                offset: start,
                what: "the keys do not match the blocks",
            });
        }
        expect_end(&mut self.input, offset + 8)
    }
}

//! Reading of archives: as a whole in memory, or block by block from a stream.

use super::super::file_error::{FileError, number, read_or_truncated};
use super::super::huffman::HuffmanDecoder;
use super::{BLOCK_BYTES, BLOCK_HEADER, HEADER, MAGIC, VERSION, block_check};
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

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
        if bytes[..4] != MAGIC {
            return Err(FileError::WrongMagic {
                expected: "fingerprint archive",
                magic: "LKAR",
            });
        }
        // Compared before the check, because the header of another version may have another length.
        let version = number(&bytes[4..8]) as u32;
        if version != VERSION {
            return Err(FileError::Version {
                kind: "archive",
                found: version,
                known: VERSION,
            });
        }
        if xxh3_64(&bytes[..88]) != number(&bytes[88..96]) {
            return Err(damaged("the header does not match its checksum"));
        }
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

/// An archive that the caller has in memory or has mapped.
///
/// ```
/// use lookalike_hamming::{Archive, ArchiveWriter, FingerprintArchiveReader, GapCounts};
///
/// let mut writer = ArchiveWriter::new(Vec::new(), 7, &GapCounts::default(), 1024)?;
/// for fingerprint in [0x01 << 56, 0x02 << 56, 0x02ff << 48, 0x03 << 56] {
///     writer.push(fingerprint)?;
/// }
/// let bytes = writer.finish()?;
/// let archive = Archive::open(&bytes)?;
/// let mut found = Vec::new();
/// archive.with_prefix(0x02 << 56, 8, &mut |fingerprint| found.push(fingerprint))?;
/// assert_eq!(found, [0x02 << 56, 0x02ff << 48]);
///
/// // Or from a stream, block by block.
/// let mut reader = FingerprintArchiveReader::new(bytes.as_slice())?;
/// let mut all = Vec::new();
/// while reader.read_block(&mut all)? {}
/// assert_eq!(all.len() as u64, archive.len());
/// # Ok::<(), lookalike_hamming::FileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Archive<'a> {
    header: ArchiveHeader,
    blocks: &'a [u8],
    keys: Vec<u64>,
    count: u64,
}

impl<'a> Archive<'a> {
    /// Reads the header and the keys, and checks both; blocks are checked when they are read.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the bytes are not a whole archive of a known version.
    pub fn open(bytes: &'a [u8]) -> Result<Self, FileError> {
        let cut = FileError::Truncated {
            offset: bytes.len() as u64,
        };
        let header = ArchiveHeader::parse(bytes.first_chunk().ok_or(cut)?)?;
        let cut = || FileError::Truncated {
            offset: bytes.len() as u64,
        };
        let [count_at, blocks_at, check_at] =
            [24, 16, 8].map(|before| bytes.len().saturating_sub(before));
        let blocks = number(&bytes[blocks_at..check_at]);
        // Nothing is checked yet: the number may be anything, and must not overflow.
        let tail = blocks.checked_mul(8).and_then(|keys| {
            let keys_at = (count_at as u64).checked_sub(keys)?;
            let blocks_end = HEADER as u64 + blocks.checked_mul(header.block_bytes as u64)?;
            (blocks_end + 6 == keys_at).then_some((keys_at as usize, blocks_end as usize))
        });
        let (keys_at, blocks_end) = tail.ok_or_else(cut)?;
        let offset = blocks_end as u64;
        if xxh3_64(&bytes[keys_at..check_at]) != number(&bytes[check_at..]) {
            return Err(FileError::Damaged {
                offset,
                what: "the keys do not match their checksum",
            });
        }
        if bytes[blocks_end..keys_at] != [0; 6] {
            return Err(FileError::Damaged {
                offset,
                what: "the padding after the blocks is not zero",
            });
        }
        let keys = bytes[keys_at..count_at]
            .chunks_exact(8)
            .map(number)
            .collect();
        let count = number(&bytes[count_at..blocks_at]);
        Ok(Self {
            header,
            blocks: &bytes[HEADER..blocks_end],
            keys,
            count,
        })
    }

    /// Returns the scheme of the fingerprints.
    pub fn scheme(&self) -> u64 {
        self.header.scheme
    }

    /// Returns the number of fingerprints, including equal ones.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns true if there are no fingerprints.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Visits all fingerprints, ascending, and checks every byte.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset of the first bad block.
    pub fn for_each(&self, visit: &mut dyn FnMut(u64)) -> Result<(), FileError> {
        let mut decoded = Vec::new();
        for at in 0..self.keys.len() {
            decoded.clear();
            self.decode(at, &mut decoded)?;
            decoded.iter().for_each(|&fingerprint| visit(fingerprint));
        }
        Ok(())
    }

    fn decode(&self, at: usize, out: &mut Vec<u64>) -> Result<(), FileError> {
        let size = self.header.block_bytes;
        let block = &self.blocks[at * size..(at + 1) * size];
        let before = out.len();
        self.header.decode(block, at as u64, out)?;
        // `with_prefix` relies on both: codes ascend, and a block ends with its key. A correct check does not prove order, because another program
        // may have made it.
        let sorted = out[before..].windows(2).all(|two| two[0] <= two[1]);
        if !sorted || out.last() != Some(&self.keys[at]) {
            let offset = (HEADER + at * size) as u64;
            return Err(FileError::Damaged {
                offset,
                what: "the block does not end with its key",
            });
        }
        Ok(())
    }

    /// Visits the fingerprints that share their `bits` leading bits with `prefix`, ascending: the keys identify the block of the first one, and
    /// blocks are decoded until one is beyond the last.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Damaged`] with the offset of the first bad block that is read.
    pub fn with_prefix(
        &self,
        prefix: u64,
        bits: u32,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), FileError> {
        let kept = !u64::MAX.checked_shr(bits).unwrap_or(0);
        let (first, last) = (prefix & kept, prefix | !kept);
        let mut decoded = Vec::new();
        // The key of a block is its last code, so all codes in earlier blocks are less.
        for at in self.keys.partition_point(|&key| key < first)..self.keys.len() {
            decoded.clear();
            self.decode(at, &mut decoded)?;
            if decoded.first().is_some_and(|&code| code > last) {
                break;
            }
            let within = decoded.iter().filter(|code| (first..=last).contains(*code));
            within.for_each(|&code| visit(code));
        }
        Ok(())
    }
}

/// Reader of an archive in one pass, block by block, without its keys.
#[derive(Debug)]
pub struct FingerprintArchiveReader<R: Read> {
    input: R,
    header: ArchiveHeader,
    block: Vec<u8>,
    blocks: u64,
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
        })
    }

    /// Returns the scheme of the fingerprints.
    pub fn scheme(&self) -> u64 {
        self.header.scheme
    }

    /// Appends the fingerprints of the next block to `out`; returns false if there is none.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the block is damaged or cut off, or reading fails.
    pub fn read_block(&mut self, out: &mut Vec<u64>) -> Result<bool, FileError> {
        let offset = HEADER as u64 + self.blocks * self.block.len() as u64;
        let (start, rest) = self.block.split_at_mut(6);
        read_or_truncated(&mut self.input, start, offset)?;
        // A block has at least one fingerprint, so zero is the end.
        if start[4..] == [0; 2] {
            return match start {
                [0, 0, 0, 0, ..] => Ok(false),
                _ => Err(FileError::Damaged {
                    offset,
                    what: "a block without fingerprints",
                }),
            };
        }
        read_or_truncated(&mut self.input, rest, offset + 6)?;
        self.header.decode(&self.block, self.blocks, out)?;
        self.blocks += 1;
        Ok(true)
    }
}

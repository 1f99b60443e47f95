//! The paper's compressed table (M6) as an archive of sorted fingerprints.
//!
//! Neighbours in sorted order share their leading bits. Each fingerprint is stored as the Huffman
//! code of the position of the highest bit in which it differs from the one before, and the bits to
//! the right of it. Blocks have a fixed size; the key of a block is its last fingerprint. Equal
//! neighbours, which differ nowhere, have a symbol of their own.
//!
//! # Bytes
//!
//! All numbers little-endian; checks are XXH3-64, in blocks its low 32 bits.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `LKAR` |
//! | 4 | 4 | version, 1 |
//! | 8 | 8 | scheme id |
//! | 16 | 4 | bytes of a block, B |
//! | 20 | 65 | code lengths of the symbols: positions 0 to 63, then "equal"; 0 for none |
//! | 85 | 3 | zero |
//! | 88 | 8 | check of the bytes before |
//! | 96 | B each | blocks: check (4) of the rest with the block number as seed; fingerprints in it (2, never 0); the first of them (8); bits, most significant first, zeros to the end |
//! | | 6 | end of the blocks: zeros |
//! | | 8 each | key of each block |
//! | | 8, 8 | number of fingerprints, of blocks |
//! | | 8 | check of everything from the keys on |

use super::huffman::{Decoder, Encoder, code_lengths};
use crate::scheme::SchemeId;
use crate::sketch::Fingerprint;
use std::io::{self, Read, Write};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const MAGIC: [u8; 4] = *b"LKAR";
const VERSION: u32 = 1;
/// Positions of the highest differing bit, and "equal".
const SYMBOLS: usize = 65;
const HEADER: usize = 96;
const BLOCK_HEADER: usize = 14;
/// The block size of the paper.
pub const DEFAULT_BLOCK_BYTES: u32 = 1024;
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 64..=1 << 16;

/// What is wrong with a fingerprint file or archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The medium failed.
    #[error("reading or writing fingerprints")]
    Io(#[from] io::Error),
    /// The first bytes are not those of this kind of file.
    #[error("not a {expected}: it does not begin with {magic:?}")]
    NotOurs {
        /// The kind of file.
        expected: &'static str,
        /// What such a file begins with.
        magic: &'static str,
    },
    /// A version that this program does not know.
    #[error(
        "version {found} of the {kind} format is not known; this program reads version {known}"
    )]
    Version {
        /// The kind of file.
        kind: &'static str,
        /// Version of the file.
        found: u32,
        /// Version that is read here.
        known: u32,
    },
    /// Fingerprints of another scheme.
    #[error("the file holds fingerprints of scheme {found}, not {wanted}: they cannot be compared")]
    OtherScheme {
        /// Scheme of the file.
        found: SchemeId,
        /// Scheme that was asked for.
        wanted: SchemeId,
    },
    /// A check failed, or something impossible was read.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Where the damaged part begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file ends too early.
    #[error("cut off at byte {offset}")]
    Cut {
        /// Where it ends.
        offset: u64,
    },
    /// Fingerprints that must be ascending are not.
    #[error("fingerprint {at} is less than the one before it: sort them first")]
    NotSorted {
        /// Position of the fingerprint.
        at: u64,
    },
    /// A size out of range.
    #[error("blocks of {0} bytes are not possible; choose 64 to 65536")]
    BlockSize(u32),
}

/// The symbol of a fingerprint after another: the position of the highest bit that differs.
fn symbol(before: u64, code: u64) -> usize {
    (before ^ code)
        .checked_ilog2()
        .map_or(SYMBOLS - 1, |position| position as usize)
}

/// How often each gap between sorted neighbours occurs: the statistics of a code.
#[derive(Clone, Debug)]
pub struct Gaps {
    counts: [u64; SYMBOLS],
    last: Option<u64>,
}

impl Default for Gaps {
    /// Every gap once: a code of the counts so far can express gaps that come later.
    fn default() -> Self {
        Self {
            counts: [1; SYMBOLS],
            last: None,
        }
    }
}

impl Gaps {
    /// Counts one fingerprint more, in the order in which they will be written.
    pub fn observe(&mut self, fingerprint: Fingerprint) {
        if let Some(last) = self.last.replace(fingerprint.0) {
            self.counts[symbol(last, fingerprint.0)] += 1;
        }
    }
}

/// Writes an archive of ascending fingerprints.
///
/// ```
/// use lookalike::hamming::{Archive, ArchiveWriter, Gaps};
/// use lookalike::{Fingerprint, Scheme};
///
/// let sorted: Vec<_> = (0..1_000).map(|i| Fingerprint(i * 0x1234_5678_9abc)).collect();
/// let mut gaps = Gaps::default();
/// sorted.iter().for_each(|&fingerprint| gaps.observe(fingerprint));
/// let mut writer = ArchiveWriter::new(Vec::new(), Scheme::default().id(), &gaps, 1024)?;
/// for &fingerprint in &sorted {
///     writer.push(fingerprint)?;
/// }
/// let bytes = writer.finish()?;
/// let archive = Archive::open(&bytes)?;
/// let mut back = Vec::new();
/// archive.for_each(&mut |fingerprint| back.push(fingerprint))?;
/// assert_eq!(back, sorted);
/// # Ok::<(), lookalike::hamming::FileError>(())
/// ```
#[derive(Debug)]
pub struct ArchiveWriter<W: Write> {
    out: W,
    encoder: Encoder,
    block_bytes: usize,
    block: Vec<u8>,
    /// Bits not yet in the block, from the highest down.
    pending: u128,
    pending_bits: u32,
    in_block: u16,
    last: u64,
    count: u64,
    keys: Vec<u64>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins an archive with the code that suits `gaps` and blocks of `block_bytes`.
    ///
    /// # Errors
    ///
    /// [`FileError::BlockSize`] unless `block_bytes` is 64 to 65536, and those of `out`.
    pub fn new(
        mut out: W,
        scheme: SchemeId,
        gaps: &Gaps,
        block_bytes: u32,
    ) -> Result<Self, FileError> {
        if !BLOCK_BYTES.contains(&block_bytes) {
            return Err(FileError::BlockSize(block_bytes));
        }
        let lengths = code_lengths(&gaps.counts);
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&scheme.0.to_le_bytes());
        header.extend_from_slice(&block_bytes.to_le_bytes());
        header.extend_from_slice(&lengths);
        header.extend_from_slice(&[0; 3]);
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        out.write_all(&header)?;
        Ok(Self {
            out,
            encoder: Encoder::new(&lengths),
            block_bytes: block_bytes as usize,
            block: Vec::with_capacity(block_bytes as usize),
            pending: 0,
            pending_bits: 0,
            in_block: 0,
            last: 0,
            count: 0,
            keys: Vec::new(),
        })
    }

    /// Adds a fingerprint, not less than the one before; equal ones are kept.
    ///
    /// # Errors
    ///
    /// [`FileError::NotSorted`], and those of the output.
    pub fn push(&mut self, fingerprint: Fingerprint) -> Result<(), FileError> {
        let code = fingerprint.0;
        if self.count > 0 && code < self.last {
            return Err(FileError::NotSorted { at: self.count });
        }
        let symbol = symbol(self.last, code);
        let (huffman, length) = self.encoder.code(symbol);
        let below = if symbol == SYMBOLS - 1 {
            0
        } else {
            symbol as u32
        };
        let used = 8 * self.block.len() as u32 + self.pending_bits;
        let fits = used + length + below <= 8 * self.block_bytes as u32;
        if self.in_block > 0 && self.in_block < u16::MAX && fits {
            self.put(huffman.into(), length);
            self.put(code & ((1_u128 << below) - 1) as u64, below);
        } else {
            self.end_block()?;
            self.block.extend_from_slice(&[0; BLOCK_HEADER - 8]);
            self.block.extend_from_slice(&code.to_le_bytes());
        }
        self.in_block += 1;
        self.count += 1;
        self.last = code;
        Ok(())
    }

    /// Appends the low `bits <= 64` bits of `value`.
    fn put(&mut self, value: u64, bits: u32) {
        if bits == 0 {
            return;
        }
        // Fewer than eight bits are pending, so the value ends above bit 56.
        self.pending |= u128::from(value) << (128 - self.pending_bits - bits);
        self.pending_bits += bits;
        while self.pending_bits >= 8 {
            self.block.push((self.pending >> 120) as u8);
            self.pending <<= 8;
            self.pending_bits -= 8;
        }
    }

    fn end_block(&mut self) -> Result<(), FileError> {
        if self.in_block == 0 {
            return Ok(());
        }
        if self.pending_bits > 0 {
            self.block.push((self.pending >> 120) as u8);
        }
        (self.pending, self.pending_bits) = (0, 0);
        self.block.resize(self.block_bytes, 0);
        self.block[4..6].copy_from_slice(&self.in_block.to_le_bytes());
        let check = block_check(&self.block, self.keys.len() as u64);
        self.block[..4].copy_from_slice(&check.to_le_bytes());
        self.out.write_all(&self.block)?;
        self.keys.push(self.last);
        self.block.clear();
        self.in_block = 0;
        Ok(())
    }

    /// Writes what follows the blocks, and gives the output back, flushed.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(mut self) -> Result<W, FileError> {
        self.end_block()?;
        self.out.write_all(&[0; 6])?;
        let mut tail: Vec<u8> = self.keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        tail.extend_from_slice(&self.count.to_le_bytes());
        tail.extend_from_slice(&(self.keys.len() as u64).to_le_bytes());
        tail.extend_from_slice(&xxh3_64(&tail).to_le_bytes());
        self.out.write_all(&tail)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The check of a block, which it begins with.
fn block_check(block: &[u8], number: u64) -> u32 {
    xxh3_64_with_seed(&block[4..], number) as u32
}

/// What the header says.
#[derive(Clone, Debug)]
struct Header {
    scheme: SchemeId,
    block_bytes: usize,
    decoder: Decoder,
}

impl Header {
    fn parse(bytes: &[u8; HEADER]) -> Result<Self, FileError> {
        let damaged = |what| FileError::Damaged { offset: 0, what };
        if bytes[..4] != MAGIC {
            return Err(FileError::NotOurs {
                expected: "fingerprint archive",
                magic: "LKAR",
            });
        }
        let version = number(&bytes[4..8]) as u32;
        if version != VERSION {
            return Err(FileError::Version {
                kind: "archive",
                found: version,
                known: VERSION,
            });
        }
        if xxh3_64(&bytes[..88]) != number(&bytes[88..96]) {
            return Err(damaged("the header does not match its check"));
        }
        let block_bytes = number(&bytes[16..20]) as u32;
        if !BLOCK_BYTES.contains(&block_bytes) {
            return Err(damaged("the block size is out of range"));
        }
        let decoder =
            Decoder::new(&bytes[20..85]).ok_or(damaged("the code lengths are no code"))?;
        let scheme = SchemeId(number(&bytes[8..16]));
        Ok(Self {
            scheme,
            block_bytes: block_bytes as usize,
            decoder,
        })
    }

    /// Appends the fingerprints of block `at`.
    fn decode(&self, block: &[u8], at: u64, out: &mut Vec<Fingerprint>) -> Result<(), FileError> {
        let offset = HEADER as u64 + at * self.block_bytes as u64;
        let damaged = |what| FileError::Damaged { offset, what };
        if u64::from(block_check(block, at)) != number(&block[..4]) {
            return Err(damaged("the block does not match its check"));
        }
        let mut code = number(&block[6..BLOCK_HEADER]);
        out.push(Fingerprint(code));
        let mut bits = Bits {
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
                code = (code >> symbol ^ 1) << symbol | below;
            }
            out.push(Fingerprint(code));
        }
        Ok(())
    }
}

/// A little-endian number of at most eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next 64 bits; zeros beyond the end.
    fn peek(&self) -> u64 {
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

/// An archive in memory, or mapped into it by the caller.
#[derive(Clone, Debug)]
pub struct Archive<'a> {
    header: Header,
    blocks: &'a [u8],
    keys: Vec<u64>,
    count: u64,
}

impl<'a> Archive<'a> {
    /// Reads header and keys, and checks both; the blocks are checked when they are read.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the bytes are not a whole archive of a known version.
    pub fn open(bytes: &'a [u8]) -> Result<Self, FileError> {
        let cut = FileError::Cut {
            offset: bytes.len() as u64,
        };
        let header = Header::parse(bytes.first_chunk().ok_or(cut)?)?;
        let cut = || FileError::Cut {
            offset: bytes.len() as u64,
        };
        let [count_at, blocks_at, check_at] =
            [24, 16, 8].map(|before| bytes.len().saturating_sub(before));
        let blocks = number(&bytes[blocks_at..check_at]);
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
                what: "the keys do not match their check",
            });
        }
        if bytes[blocks_end..keys_at] != [0; 6] {
            return Err(FileError::Damaged {
                offset,
                what: "the end of the blocks is not zero",
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

    /// The scheme of the fingerprints.
    pub fn scheme(&self) -> SchemeId {
        self.header.scheme
    }

    /// How many fingerprints there are, equal ones included.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Visits all fingerprints, ascending, and checks every byte.
    ///
    /// # Errors
    ///
    /// [`FileError::Damaged`] with the place of the first bad block.
    pub fn for_each(&self, visit: &mut dyn FnMut(Fingerprint)) -> Result<(), FileError> {
        let mut decoded = Vec::new();
        for at in 0..self.keys.len() {
            decoded.clear();
            self.decode(at, &mut decoded)?;
            decoded.iter().for_each(|&fingerprint| visit(fingerprint));
        }
        Ok(())
    }

    fn decode(&self, at: usize, out: &mut Vec<Fingerprint>) -> Result<(), FileError> {
        let size = self.header.block_bytes;
        let block = &self.blocks[at * size..(at + 1) * size];
        let before = out.len();
        self.header.decode(block, at as u64, out)?;
        let sorted = out[before..].windows(2).all(|two| two[0].0 <= two[1].0);
        if !sorted || out.last().map(|last| last.0) != Some(self.keys[at]) {
            let offset = (HEADER + at * size) as u64;
            return Err(FileError::Damaged {
                offset,
                what: "the block does not end with its key",
            });
        }
        Ok(())
    }

    /// Visits the fingerprints that share their `bits` leading bits with `prefix`, ascending: the
    /// keys tell the block of the first, and blocks are decoded until one goes beyond.
    ///
    /// # Errors
    ///
    /// [`FileError::Damaged`] with the place of a bad block among those read.
    pub fn with_prefix(
        &self,
        prefix: Fingerprint,
        bits: u32,
        visit: &mut dyn FnMut(Fingerprint),
    ) -> Result<(), FileError> {
        let kept = !u64::MAX.checked_shr(bits).unwrap_or(0);
        let (first, last) = (prefix.0 & kept, prefix.0 | !kept);
        let mut decoded = Vec::new();
        for at in self.keys.partition_point(|&key| key < first)..self.keys.len() {
            decoded.clear();
            self.decode(at, &mut decoded)?;
            if decoded.first().is_some_and(|code| code.0 > last) {
                break;
            }
            let within = decoded
                .iter()
                .filter(|code| (first..=last).contains(&code.0));
            within.for_each(|&code| visit(code));
        }
        Ok(())
    }
}

/// Reads an archive in one pass, block by block, without its keys.
#[derive(Debug)]
pub struct ArchiveReader<R: Read> {
    input: R,
    header: Header,
    block: Vec<u8>,
    blocks: u64,
}

impl<R: Read> ArchiveReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it is not that of an archive of a known version.
    pub fn new(mut input: R) -> Result<Self, FileError> {
        let mut header = [0; HEADER];
        read_or_cut(&mut input, &mut header, 0)?;
        let header = Header::parse(&header)?;
        let block = vec![0; header.block_bytes];
        Ok(Self {
            input,
            header,
            block,
            blocks: 0,
        })
    }

    /// The scheme of the fingerprints.
    pub fn scheme(&self) -> SchemeId {
        self.header.scheme
    }

    /// Appends the fingerprints of the next block to `out`; false when there was none.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the block is damaged or cut off, or reading fails.
    pub fn read_block(&mut self, out: &mut Vec<Fingerprint>) -> Result<bool, FileError> {
        let offset = HEADER as u64 + self.blocks * self.block.len() as u64;
        let (start, rest) = self.block.split_at_mut(6);
        read_or_cut(&mut self.input, start, offset)?;
        if start[4..] == [0; 2] {
            return match start {
                [0, 0, 0, 0, ..] => Ok(false),
                _ => Err(FileError::Damaged {
                    offset,
                    what: "a block without fingerprints",
                }),
            };
        }
        read_or_cut(&mut self.input, rest, offset + 6)?;
        self.header.decode(&self.block, self.blocks, out)?;
        self.blocks += 1;
        Ok(true)
    }
}

/// Fills `bytes`; a file that ends before is cut off.
pub(super) fn read_or_cut(
    input: &mut impl Read,
    bytes: &mut [u8],
    offset: u64,
) -> Result<(), FileError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => {
                return Err(FileError::Cut {
                    offset: offset + filled as u64,
                });
            }
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

//! The paper's compressed table (Manku et al. 2007, section 3.2) as an archive of sorted fingerprints.
//!
//! Neighbours in sorted order share their leading bits. Each fingerprint is stored as the Huffman code of the position of the highest bit in which it
//! differs from the one before, followed by the bits to the right of that bit. Blocks have a fixed size; the key of a block is its last fingerprint.
//! Equal neighbours, which differ in no bit, have a symbol of their own.
//!
//! # Bytes
//!
//! All numbers are little-endian; checks are XXH3-64, of which blocks keep the low 32 bits.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `LKAR` |
//! | 4 | 4 | version, 1 |
//! | 8 | 8 | scheme id |
//! | 16 | 4 | bytes of a block, B |
//! | 20 | 65 | code lengths of the symbols: positions 0 to 63, then "equal"; 0 for unused ones |
//! | 85 | 3 | zero |
//! | 88 | 8 | check of the bytes before |
//! | 96 | B each | blocks: check (4) of the rest with the block number as seed; number of fingerprints in the block (2, never 0); the first of them (8); bits, most significant first, zeros to the end |
//! | | 6 | end of the blocks: zeros |
//! | | 8 each | key of each block |
//! | | 8, 8 | number of fingerprints, number of blocks |
//! | | 8 | check of everything from the keys on |

use super::file_error::{FileError, FileFormat};
use super::huffman::{HuffmanEncoder, code_lengths};
use std::io::Write;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

mod read;

pub use read::FingerprintArchiveReader;

const FORMAT: FileFormat = FileFormat {
    magic: "LKAR",
    file: "fingerprint archive",
    kind: "archive",
    version: 1,
};
/// Number of symbols: the positions of the highest differing bit, and "equal".
const SYMBOLS: usize = 65;
const HEADER: usize = 96;
const BLOCK_HEADER: usize = 14;
/// The block size of the paper.
pub const DEFAULT_BLOCK_BYTES: u32 = 1024;
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 64..=1 << 16;

/// Returns the symbol of a fingerprint that follows another: the position of the highest bit that differs.
fn symbol(before: u64, code: u64) -> usize {
    (before ^ code)
        .checked_ilog2()
        .map_or(SYMBOLS - 1, |position| position as usize)
}

/// Counts of the gaps between sorted neighbours, which a Huffman code is made from.
#[derive(Clone, Debug)]
pub struct GapCounts {
    counts: [u64; SYMBOLS],
    last: Option<u64>,
}

impl Default for GapCounts {
    /// Counts every gap once, so that a code made from these counts can also express gaps that come later.
    fn default() -> Self {
        Self {
            counts: [1; SYMBOLS],
            last: None,
        }
    }
}

impl GapCounts {
    /// Counts one more fingerprint, in the order in which they will be written.
    pub fn observe(&mut self, fingerprint: u64) {
        if let Some(last) = self.last.replace(fingerprint) {
            self.counts[symbol(last, fingerprint)] += 1;
        }
    }
}

/// Writer of an archive of ascending fingerprints.
///
/// ```
/// use lookalike_hamming::{ArchiveWriter, FingerprintArchiveReader, GapCounts};
///
/// let sorted: Vec<_> = (0..1_000).map(|i| i * 0x1234_5678_9abc).collect();
/// let mut gaps = GapCounts::default();
/// sorted.iter().for_each(|&fingerprint| gaps.observe(fingerprint));
/// let mut writer = ArchiveWriter::new(Vec::new(), 7, &gaps, 1024)?;
/// for &fingerprint in &sorted {
///     writer.push(fingerprint)?;
/// }
/// let bytes = writer.finish()?;
/// let mut reader = FingerprintArchiveReader::new(bytes.as_slice())?;
/// let mut back = Vec::new();
/// while reader.read_block(&mut back)? {}
/// assert_eq!(back, sorted);
/// # Ok::<(), lookalike_hamming::FileError>(())
/// ```
#[derive(Debug)]
pub struct ArchiveWriter<W: Write> {
    out: W,
    encoder: HuffmanEncoder,
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
    /// Begins an archive with blocks of `block_bytes` and the code that suits `gaps`.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::BlockSize`] unless `block_bytes` is 64 to 65536, and the errors of `out`.
    pub fn new(
        mut out: W,
        scheme: u64,
        gaps: &GapCounts,
        block_bytes: u32,
    ) -> Result<Self, FileError> {
        if !BLOCK_BYTES.contains(&block_bytes) {
            return Err(FileError::BlockSize(block_bytes));
        }
        let lengths = code_lengths(&gaps.counts);
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&FORMAT.start());
        header.extend_from_slice(&scheme.to_le_bytes());
        header.extend_from_slice(&block_bytes.to_le_bytes());
        // A canonical code needs only the lengths: the reader derives the codes from them.
        header.extend_from_slice(&lengths);
        header.extend_from_slice(&[0; 3]);
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        out.write_all(&header)?;
        Ok(Self {
            out,
            encoder: HuffmanEncoder::new(&lengths),
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

    /// Adds a fingerprint, which must not be less than the one before; equal ones are kept.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::NotSorted`], and the errors of the output.
    pub fn push(&mut self, code: u64) -> Result<(), FileError> {
        if self.count > 0 && code < self.last {
            return Err(FileError::NotSorted { at: self.count });
        }
        let symbol = symbol(self.last, code);
        let (huffman, length) = self.encoder.code(symbol);
        // The symbol says all about a fingerprint that equals the one before.
        let below = if symbol == SYMBOLS - 1 {
            0
        } else {
            symbol as u32
        };
        // The room is known before anything is written, so a code is never divided between blocks, and nothing has to be undone.
        let used = 8 * self.block.len() as u32 + self.pending_bits;
        let fits = used + length + below <= 8 * self.block_bytes as u32;
        // The header of a block has two bytes for the number of its fingerprints.
        if self.in_block > 0 && self.in_block < u16::MAX && fits {
            self.put(huffman.into(), length);
            // The differing bit itself is left out: fingerprints ascend, so it is a one (Manku et al. 2007, section 3.2).
            self.put(code & ((1_u128 << below) - 1) as u64, below);
        } else {
            self.end_block()?;
            // The first fingerprint of a block is stored whole, so that a block is decoded without the one before.
            self.block.extend_from_slice(&[0; BLOCK_HEADER - 8]);
            self.block.extend_from_slice(&code.to_le_bytes());
        }
        self.in_block += 1;
        self.count += 1;
        self.last = code;
        Ok(())
    }

    /// Appends the low `bits` bits of `value`, at most 64.
    fn put(&mut self, value: u64, bits: u32) {
        if bits == 0 {
            return;
        }
        // Fewer than eight bits are pending, so the value ends above bit 56.
        // From the top down, because the reader finds the code of a symbol by looking up the leading bits.
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
        // Seeded with the number of the block, so that a correct block in the wrong place fails.
        let check = block_check(&self.block, self.keys.len() as u64);
        self.block[..4].copy_from_slice(&check.to_le_bytes());
        self.out.write_all(&self.block)?;
        // The last code, not the first: a search for a prefix begins in the first block whose key is not less than it.
        self.keys.push(self.last);
        self.block.clear();
        self.in_block = 0;
        Ok(())
    }

    /// Writes the part after the blocks, flushes the output, and returns it.
    ///
    /// # Errors
    ///
    /// Returns an error if writing to the output fails.
    pub fn finish(mut self) -> Result<W, FileError> {
        self.end_block()?;
        // Zeros in place of a block's check and count: a reader of the stream sees an empty block, and stops.
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

/// Computes the check of a block, which is stored at its beginning.
fn block_check(block: &[u8], number: u64) -> u32 {
    xxh3_64_with_seed(&block[4..], number) as u32
}

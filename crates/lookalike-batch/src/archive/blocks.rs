//! Splits the stream of records into blocks and compresses them.
//!
//! A block ends before a record that would make it longer than the settings allow. It also ends before a survivor whose copies would not fit, if the
//! cluster needs no more blocks when it starts in the next one; near-copies then lie in one block. If a block starts with a copy whose survivor lies
//! in an earlier block, the survivor is its prefix, and the block holds copies of that survivor only. Near-copies thus compress against their
//! survivor however large a cluster is, and reading a record takes at most two blocks.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use lookalike_hamming::threads::map_parallel;
use xxhash_rust::xxh3::xxh3_64;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DParameter};

use crate::archive::format::{ArchivedBlock, ArchivedKind, ArchivedRecord, MAX_RECORD_IN_BLOCK};
use crate::archive::settings::ArchiveSettings;
use crate::observer::{JobObserver, check_cancelled};

/// Bytes of a compressor's tables at the highest level, except those for long-distance matches, which take half as many bytes as it compresses.
const COMPRESSOR_BYTES: u64 = 96 << 20;

/// Log2 of the largest window that the highest level searches completely without long-distance matching.
const NEAR_LOG: u32 = 23;

/// Log2 of the largest window: the longest block and its prefix.
const WINDOW_LOG: u32 = 26;

/// Returns the bytes that one thread takes to compress: the tables, a block of at most `ordinary` bytes or one longer record, and the block's prefix
/// and compressed form.
pub(super) fn thread_bytes(records: &[ArchivedRecord], ordinary: u64) -> u64 {
    let fits = |record: &&ArchivedRecord| record.length <= MAX_RECORD_IN_BLOCK;
    let lengths = records.iter().filter(fits).map(|record| record.length);
    let block = lengths.max().unwrap_or(0).max(ordinary);
    // The record before a copy is its survivor or another copy; the longest of all these is a bound for the prefix.
    let kept = |pair: &&[ArchivedRecord]| pair[1].kind == ArchivedKind::Copy;
    let survivors = records.windows(2).filter(kept).map(|pair| pair[0].length);
    let prefix = survivors
        .filter(|&length| length <= MAX_RECORD_IN_BLOCK)
        .max();
    // A block that grew takes up to twice its length, its compressed form as much again, and long matches half; a prefix one and a half.
    COMPRESSOR_BYTES + 4 * block + 2 * prefix.unwrap_or(0)
}

/// Settings and resources for making blocks.
pub(super) struct BlockSettings<'a> {
    pub(super) archive: ArchiveSettings,
    pub(super) threads: usize,
    pub(super) observer: &'a dyn JobObserver,
}

/// A survivor used as the prefix of a block.
#[derive(Clone)]
struct BlockPrefix {
    record: u32,
    bytes: Arc<Vec<u8>>,
}

/// The survivor of the current cluster.
enum ClusterSurvivor {
    /// There is no survivor, or it is too long for a prefix.
    None,
    /// It lies in the current block.
    Here { record: u32, range: Range<usize> },
    /// It lies in an earlier block.
    Earlier(BlockPrefix),
}

impl ClusterSurvivor {
    /// Returns the record number of a survivor in an earlier block.
    fn earlier(&self) -> Option<u32> {
        match self {
            Self::Earlier(prefix) => Some(prefix.record),
            _ => None,
        }
    }
}

/// A block waiting to be compressed.
struct WaitingBlock {
    bytes: Vec<u8>,
    prefix: Option<BlockPrefix>,
}

/// Writer that takes the stream of records in order and splits it into blocks. The blocks depend only on the records and [`ArchiveSettings`].
pub(super) struct RecordBlocks<'a, W> {
    records: &'a [ArchivedRecord],
    settings: BlockSettings<'a>,
    /// Record that the next byte belongs to or, if `left` is 0, the record after the last complete one.
    at: usize,
    /// Bytes of that record still to come.
    left: u64,
    block: WaitingBlock,
    survivor: ClusterSurvivor,
    waiting: Vec<WaitingBlock>,
    blocks: Vec<ArchivedBlock>,
    done: u64,
    out: W,
}

impl<'a, W: Write> RecordBlocks<'a, W> {
    pub(super) fn new(records: &'a [ArchivedRecord], settings: BlockSettings<'a>, out: W) -> Self {
        Self {
            records,
            settings,
            at: 0,
            left: 0,
            block: WaitingBlock {
                bytes: Vec::new(),
                prefix: None,
            },
            survivor: ClusterSurvivor::None,
            waiting: Vec::new(),
            blocks: Vec::new(),
            done: 0,
            out,
        }
    }

    /// Compresses the waiting blocks and returns all blocks. Fails if bytes are missing.
    pub(super) fn finish(mut self) -> io::Result<Vec<ArchivedBlock>> {
        let rest = &self.records[self.at..];
        // Empty records at the end get no bytes; of all others every byte must have come.
        if self.left > 0 || rest.iter().any(|record| record.length > 0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.end_block(false)?;
        self.compress_waiting()?;
        Ok(self.blocks)
    }

    /// Moves on to the next record that is not empty.
    fn begin_record(&mut self) -> io::Result<()> {
        let record = loop {
            let record = *self
                .records
                .get(self.at)
                .ok_or(io::ErrorKind::InvalidInput)?;
            // Also if the record is empty: it ends the cluster before it all the same.
            if record.kind != ArchivedKind::Copy {
                self.survivor = ClusterSurvivor::None;
            }
            if record.length > 0 {
                break record;
            }
            self.at += 1;
        };
        // Only an empty block takes a record that is longer than its settings allow, so only a block of one record exceeds them.
        let fits = record.length <= self.room();
        let before = self.block.prefix.as_ref().map(|prefix| prefix.record);
        // A block with a prefix holds copies of that survivor only; otherwise readers would unpack the prefix for records that do not need it.
        let is_other = before.is_some() && before != self.survivor.earlier();
        if !fits || is_other || self.belongs_in_next_block() {
            self.end_block(record.kind == ArchivedKind::Copy)?;
        }
        if self.block.bytes.is_empty() {
            // If the survivor lies in this block, or there is none, the block needs no prefix.
            self.block.prefix = match &self.survivor {
                ClusterSurvivor::Earlier(prefix) => Some(prefix.clone()),
                _ => None,
            };
        }
        if record.kind == ArchivedKind::Kept && record.length <= MAX_RECORD_IN_BLOCK {
            let start = self.block.bytes.len();
            self.survivor = ClusterSurvivor::Here {
                record: self.at as u32,
                range: start..start + record.length as usize,
            };
        }
        self.left = record.length;
        Ok(())
    }

    /// Returns the free bytes of the current block.
    fn room(&self) -> u64 {
        let block = self.settings.archive.block.bytes();
        // 0 if the block holds a single record that is longer than the settings allow.
        block.saturating_sub(self.block.bytes.len() as u64)
    }

    /// Tells whether the next record is a survivor whose cluster does not fit the current block and would need no more blocks if it started in the
    /// next one.
    fn belongs_in_next_block(&self) -> bool {
        let (survivor, rest) = match self.records[self.at..].split_first() {
            Some((first, rest)) if first.kind == ArchivedKind::Kept => (first, rest),
            _ => return false,
        };
        let is_copy = |record: &&ArchivedRecord| record.kind == ArchivedKind::Copy;
        let copies = rest.iter().take_while(is_copy);
        let cluster = survivor.length + copies.map(|copy| copy.length).sum::<u64>();
        let block = self.settings.archive.block.bytes();
        let beyond = cluster.saturating_sub(self.room());
        // A cluster that starts here also uses the rest of this block. Starting in the next block must not take more blocks than the part that does
        // not fit here.
        beyond > 0 && cluster.div_ceil(block) <= beyond.div_ceil(block)
    }

    /// Moves the current block to the waiting ones unless it is empty. `is_before_copy` tells that a copy of the survivor follows.
    fn end_block(&mut self, is_before_copy: bool) -> io::Result<()> {
        if self.block.bytes.is_empty() {
            return Ok(());
        }
        if let (true, ClusterSurvivor::Here { record, range }) = (is_before_copy, &self.survivor) {
            // Reserve one extra byte: zstd produces other output if the prefix is adjacent to the block in memory.
            let mut bytes = Vec::with_capacity(range.len() + 1);
            bytes.extend_from_slice(&self.block.bytes[range.clone()]);
            self.survivor = ClusterSurvivor::Earlier(BlockPrefix {
                record: *record,
                bytes: Arc::new(bytes),
            });
        }
        // The prefix stays set: if a long copy continues in the next block, that one needs it too. `begin_record` replaces it otherwise.
        let prefix = self.block.prefix.clone();
        let bytes = std::mem::take(&mut self.block.bytes);
        self.waiting.push(WaitingBlock { bytes, prefix });
        // Keep at most one block for each thread in memory, as the memory plan assumes.
        match self.waiting.len() >= self.settings.threads {
            true => self.compress_waiting(),
            false => Ok(()),
        }
    }

    /// Compresses the waiting blocks, each on its own thread, and writes them in order.
    fn compress_waiting(&mut self) -> io::Result<()> {
        check_cancelled(self.settings.observer)?;
        let waiting = std::mem::take(&mut self.waiting);
        let level = self.settings.archive.level.number();
        let packed = map_parallel(&waiting, |block| compress(block, level));
        for (block, packed) in waiting.iter().zip(packed) {
            let packed = packed?;
            self.out.write_all(&packed)?;
            self.blocks.push(ArchivedBlock {
                packed: packed.len() as u64,
                length: block.bytes.len() as u64,
                // Hash the compressed bytes, so that damaged data never reaches the decompressor.
                hash: xxh3_64(&packed),
                prefix: block
                    .prefix
                    .as_ref()
                    .map_or(0, |prefix| u64::from(prefix.record) + 1),
            });
            self.done += block.bytes.len() as u64;
        }
        self.settings.observer.progress(self.done);
        Ok(())
    }
}

impl<W: Write> Write for RecordBlocks<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            self.begin_record()?;
        }
        // Such a record starts in an empty block, since `begin_record` found no room for it in the previous one.
        let is_long = self.records[self.at].length > MAX_RECORD_IN_BLOCK;
        let room = match is_long {
            true => self.room(),
            false => u64::MAX,
        };
        // A write takes bytes of one record only; `write_all` repeats for the rest.
        let count = self.left.min(room).min(bytes.len() as u64) as usize;
        self.block.bytes.extend_from_slice(&bytes[..count]);
        self.left -= count as u64;
        if self.left == 0 {
            self.at += 1;
        }
        // A record that takes several blocks shares them with no other.
        if is_long && (self.left == 0 || count as u64 == room) {
            self.end_block(false)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn compress(block: &WaitingBlock, level: i32) -> io::Result<Vec<u8>> {
    let prefix = block.prefix.as_ref().map(|prefix| &prefix.bytes[..]);
    // The window spans the prefix and the block, so that the last copy still reaches its survivor. 10 is zstd's minimum.
    let span = block.bytes.len() + prefix.map_or(0, <[u8]>::len);
    let window = span.next_power_of_two().ilog2().clamp(10, WINDOW_LOG);
    // Create a new context each time, since the result must not depend on what was compressed before.
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    for parameter in [
        CParameter::CompressionLevel(level),
        // The checksum of the content also reveals a wrong prefix, which the hash of the compressed bytes cannot.
        CParameter::ChecksumFlag(true),
        CParameter::WindowLog(window),
        CParameter::EnableLongDistanceMatching(window > NEAR_LOG),
    ] {
        context.set_parameter(parameter).map_err(failed)?;
    }
    if let Some(prefix) = prefix {
        context.ref_prefix(prefix).map_err(failed)?;
    }
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(block.bytes.len()));
    context
        .compress2(&mut packed, &block.bytes)
        .map_err(failed)?;
    // The compressed blocks of all threads wait until they are written in order, so free what `compress_bound` reserved.
    packed.shrink_to_fit();
    Ok(packed)
}

fn failed(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

/// Decompresses a block of `length` bytes. The error is the reason in words.
pub(super) fn decompress(
    packed: &[u8],
    length: u64,
    prefix: Option<&[u8]>,
) -> Result<Vec<u8>, &'static str> {
    let name = zstd_safe::get_error_name;
    let mut context = DCtx::try_create().ok_or("there is not enough memory to decompress it")?;
    let window = DParameter::WindowLogMax(WINDOW_LOG);
    context.set_parameter(window).map_err(name)?;
    if let Some(prefix) = prefix {
        context.ref_prefix(prefix).map_err(name)?;
    }
    // Lengths are bounded when they are read. A frame with more content gets no more room and fails.
    let mut bytes = Vec::with_capacity(length as usize);
    context.decompress(&mut bytes, packed).map_err(name)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err("it decompresses to another length"),
    }
}

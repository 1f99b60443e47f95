//! The stream of records in blocks, compressed.
//!
//! A block ends before the record with which it would be longer than the settings say. It ends before a survivor too, if the copies of
//! this one would go beyond it and the whole cluster takes no more blocks from the next one on: near-copies then lie in one block. Where
//! a block begins with a copy whose survivor lies further back, the survivor stands before it as prefix, and the block holds copies of
//! that survivor only: near-copies find each other however long a family is, and a reader needs two blocks at most.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use lookalike_hamming::threads::on_each;
use xxhash_rust::xxh3::xxh3_64;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DParameter};

use crate::archive::format::{ArchivedBlock, ArchivedKind, ArchivedRecord, LONGEST_IN_BLOCK};
use crate::archive::settings::ArchiveSettings;
use crate::observer::{JobObserver, ensure_wanted};

/// Bytes of tables that a compressor takes at the highest level, but for those of matches far back: half as many as it compresses.
const COMPRESSOR_BYTES: u64 = 96 << 20;

/// Largest window, as a power of two, whose matches the highest level finds by itself.
const NEAR_LOG: u32 = 23;

/// Largest window, as a power of two: the longest block and its prefix.
const WINDOW_LOG: u32 = 26;

/// Bytes that one thread takes while it compresses: its tables, a block of at most `ordinary` bytes or one record, and the prefix and
/// result of it.
pub(super) fn thread_bytes(records: &[ArchivedRecord], ordinary: u64) -> u64 {
    let fits = |record: &&ArchivedRecord| record.length <= LONGEST_IN_BLOCK;
    let lengths = records.iter().filter(fits).map(|record| record.length);
    let block = lengths.max().unwrap_or(0).max(ordinary);
    let kept = |pair: &&[ArchivedRecord]| pair[1].kind == ArchivedKind::Copy;
    let survivors = records.windows(2).filter(kept).map(|pair| pair[0].length);
    let prefix = survivors.filter(|&length| length <= LONGEST_IN_BLOCK).max();
    COMPRESSOR_BYTES + 4 * block + 2 * prefix.unwrap_or(0)
}

/// The way in which blocks are made.
pub(super) struct BlockSettings<'a> {
    pub(super) archive: ArchiveSettings,
    pub(super) threads: usize,
    pub(super) observer: &'a dyn JobObserver,
}

/// A survivor that stands before a block.
#[derive(Clone)]
struct BlockPrefix {
    record: u32,
    bytes: Arc<Vec<u8>>,
}

/// The survivor of the cluster at hand.
enum ClusterSurvivor {
    /// There is none, or it is too long.
    None,
    /// It lies in the block at hand.
    Here { record: u32, range: Range<usize> },
    /// It lies in an earlier one.
    Earlier(BlockPrefix),
}

impl ClusterSurvivor {
    /// The survivor that lies in an earlier block.
    fn earlier(&self) -> Option<u32> {
        match self {
            Self::Earlier(prefix) => Some(prefix.record),
            _ => None,
        }
    }
}

/// A block that waits to be compressed.
struct WaitingBlock {
    bytes: Vec<u8>,
    prefix: Option<BlockPrefix>,
}

/// Writer of the stream of records, in their order, that cuts it into blocks. The blocks depend on the records and [`ArchiveSettings`]
/// only.
pub(super) struct RecordBlocks<'a, W> {
    records: &'a [ArchivedRecord],
    settings: BlockSettings<'a>,
    /// The record that the next byte is of, unless `left` is 0: then the next one.
    at: usize,
    /// Bytes of it that are still to come.
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

    /// Compresses what waits. Returns the blocks; an error if bytes are missing.
    pub(super) fn finish(mut self) -> io::Result<Vec<ArchivedBlock>> {
        let rest = &self.records[self.at..];
        if self.left > 0 || rest.iter().any(|record| record.length > 0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.end_block(false)?;
        self.compress_waiting()?;
        Ok(self.blocks)
    }

    /// Goes to the next record with bytes.
    fn begin_record(&mut self) -> io::Result<()> {
        let record = loop {
            let record = *self
                .records
                .get(self.at)
                .ok_or(io::ErrorKind::InvalidInput)?;
            if record.kind != ArchivedKind::Copy {
                self.survivor = ClusterSurvivor::None;
            }
            if record.length > 0 {
                break record;
            }
            self.at += 1;
        };
        let fits = record.length <= self.room();
        let before = self.block.prefix.as_ref().map(|prefix| prefix.record);
        // A block with a prefix holds copies of that survivor only, or a reader would unpack it for records
        // that do not need it.
        let is_other = before.is_some() && before != self.survivor.earlier();
        if !fits || is_other || self.is_late_cluster() {
            self.end_block(record.kind == ArchivedKind::Copy)?;
        }
        if self.block.bytes.is_empty() {
            self.block.prefix = match &self.survivor {
                ClusterSurvivor::Earlier(prefix) => Some(prefix.clone()),
                _ => None,
            };
        }
        if record.kind == ArchivedKind::Kept && record.length <= LONGEST_IN_BLOCK {
            let start = self.block.bytes.len();
            self.survivor = ClusterSurvivor::Here {
                record: self.at as u32,
                range: start..start + record.length as usize,
            };
        }
        self.left = record.length;
        Ok(())
    }

    /// Bytes that the block at hand still takes.
    fn room(&self) -> u64 {
        let block = self.settings.archive.block.bytes();
        block.saturating_sub(self.block.bytes.len() as u64)
    }

    /// Returns true if the next record is a survivor whose cluster would go beyond the block at hand, and takes no more blocks if it
    /// begins the next one.
    fn is_late_cluster(&self) -> bool {
        let (survivor, rest) = match self.records[self.at..].split_first() {
            Some((first, rest)) if first.kind == ArchivedKind::Kept => (first, rest),
            _ => return false,
        };
        let is_copy = |record: &&ArchivedRecord| record.kind == ArchivedKind::Copy;
        let copies = rest.iter().take_while(is_copy);
        let cluster = survivor.length + copies.map(|copy| copy.length).sum::<u64>();
        let block = self.settings.archive.block.bytes();
        let beyond = cluster.saturating_sub(self.room());
        // Begun here the cluster takes what is left of this block besides, so from the next one on it must take
        // no more whole ones.
        beyond > 0 && cluster.div_ceil(block) <= beyond.div_ceil(block)
    }

    /// Puts the block at hand to those that wait, unless it is empty. `is_before_copy` says that a copy of the survivor comes next.
    fn end_block(&mut self, is_before_copy: bool) -> io::Result<()> {
        if self.block.bytes.is_empty() {
            return Ok(());
        }
        if let (true, ClusterSurvivor::Here { record, range }) = (is_before_copy, &self.survivor) {
            // One byte of room: zstd compresses otherwise where a prefix touches the block in memory.
            let mut bytes = Vec::with_capacity(range.len() + 1);
            bytes.extend_from_slice(&self.block.bytes[range.clone()]);
            self.survivor = ClusterSurvivor::Earlier(BlockPrefix {
                record: *record,
                bytes: Arc::new(bytes),
            });
        }
        let prefix = self.block.prefix.clone();
        let bytes = std::mem::take(&mut self.block.bytes);
        self.waiting.push(WaitingBlock { bytes, prefix });
        // As many blocks in memory as threads: that is what the plan of memory counts.
        match self.waiting.len() >= self.settings.threads {
            true => self.compress_waiting(),
            false => Ok(()),
        }
    }

    /// Compresses the blocks that wait, each on a thread of its own, and writes them in their order.
    fn compress_waiting(&mut self) -> io::Result<()> {
        ensure_wanted(self.settings.observer)?;
        let waiting = std::mem::take(&mut self.waiting);
        let level = self.settings.archive.level.number();
        let packed = on_each(&waiting, |block| compress(block, level));
        for (block, packed) in waiting.iter().zip(packed) {
            let packed = packed?;
            self.out.write_all(&packed)?;
            self.blocks.push(ArchivedBlock {
                packed: packed.len() as u64,
                length: block.bytes.len() as u64,
                // Of the packed bytes: what is damaged never reaches the decompressor.
                hash: xxh3_64(&packed),
                prefix: block.prefix.as_ref().map(|prefix| prefix.record),
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
        let is_long = self.records[self.at].length > LONGEST_IN_BLOCK;
        let room = match is_long {
            true => self.room(),
            false => u64::MAX,
        };
        // A write takes bytes of one record only; `write_all` comes back with the rest.
        let count = self.left.min(room).min(bytes.len() as u64) as usize;
        self.block.bytes.extend_from_slice(&bytes[..count]);
        self.left -= count as u64;
        if self.left == 0 {
            self.at += 1;
        }
        // A record over several blocks has them for itself.
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
    // The window spans the prefix and the block, so that the last copy still reaches its survivor; 10 is the
    // least of zstd.
    let span = block.bytes.len() + prefix.map_or(0, <[u8]>::len);
    let window = span.next_power_of_two().ilog2().clamp(10, WINDOW_LOG);
    // A new one each time: the result must not depend on what was compressed before.
    let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
    for parameter in [
        CParameter::CompressionLevel(level),
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
    packed.shrink_to_fit();
    Ok(packed)
}

fn failed(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

/// Unpacks a block of so many bytes; the error is a reason in words.
pub(super) fn decompress(
    packed: &[u8],
    length: u64,
    prefix: Option<&[u8]>,
) -> Result<Vec<u8>, &'static str> {
    let name = zstd_safe::get_error_name;
    let mut context = DCtx::try_create().ok_or("there is no memory to unpack it")?;
    let window = DParameter::WindowLogMax(WINDOW_LOG);
    context.set_parameter(window).map_err(name)?;
    if let Some(prefix) = prefix {
        context.ref_prefix(prefix).map_err(name)?;
    }
    // Lengths are bounded where they are read. A frame that holds more gets no more room, and fails.
    let mut bytes = Vec::with_capacity(length as usize);
    context.decompress(&mut bytes, packed).map_err(name)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err("it unpacks to another length"),
    }
}

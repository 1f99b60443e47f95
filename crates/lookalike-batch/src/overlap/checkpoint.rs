//! Counts of what was read, on disk, so that a job that was killed later need not read and chunk everything again.
//!
//! One file, `read.bin`, replaced atomically. Little-endian:
//!
//! ```text
//! 8 bytes   "LOOKOVL1"
//! u64       length of a JSON object: settings, input, counts, what was skipped, names and
//!           addresses of servers
//! ...       that object
//! u64 x 6   numbers of id bytes, documents, URL bytes, sites, classes, chunkings
//! ...       ids, each preceded by its length (7 bits per byte, lowest first); classes (u32, their position plus one, or 0);
//!           text lengths (u64); record hashes (u64); URL bytes; URL ends (u64); servers (u32, their position plus
//!           one, or 0); text hashes of classes (u128)
//! ...       for each chunking: number of segments (u64), and of each its words (u64) and the words themselves
//! u64       XXH3-64 of all before
//! ```

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::path::Path;

use bytemuck::cast_slice;
use lookalike_corpus::{AtomicFile, Compression};
use serde::{Deserialize, Serialize};

use super::read::{DocumentSites, ReadOut, ReadPlan};
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::DocumentTable;
use crate::dedup::hashing_stream::{HashingStream, damaged};
use crate::dedup::id_table::IdTable;
use crate::dedup::scan_tally::ScanTally;
use crate::output_dir::JobIdentity;
use crate::skipped::SkippedLine;
use crate::skipped::SkippedRow;

const MAGIC: [u8; 8] = *b"LOOKOVL1";

/// Path of what was read, and the job that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct OverlapCheckpoint<'a> {
    pub(crate) path: &'a Path,
    /// Path of the sums of the inputs.
    pub(crate) contents: &'a Path,
    pub(crate) identity: &'a JobIdentity,
}

/// The small part.
#[derive(Serialize, Deserialize)]
struct OverlapHead {
    settings: String,
    input: String,
    tally: ScanTally,
    skipped: Vec<SkippedRow>,
    lines: Vec<SkippedLine>,
    unreadable: u64,
    servers: Vec<String>,
    addresses: BTreeSet<(NonZeroU32, String)>,
}

impl OverlapCheckpoint<'_> {
    /// Writes what was read under its final name, all or nothing.
    pub(crate) fn save(&self, read: &ReadOut) -> io::Result<()> {
        let mut file = AtomicFile::create(self.path, Compression::None)?;
        let mut out = HashingStream::new(&mut file);
        let head = serde_json::to_vec(&self.head(read))?;
        out.write_all(&MAGIC)?;
        out.write_all(&(head.len() as u64).to_le_bytes())?;
        out.write_all(&head)?;
        write_columns(&mut out, read)?;
        let mut buffer = Vec::new();
        for chunks in &read.chunks {
            let segments = chunks.sets.segments();
            out.write_all(&(segments as u64).to_le_bytes())?;
            for segment in 0..segments {
                let words = chunks.sets.segment(segment, &mut buffer)?;
                out.write_all(&(words.len() as u64).to_le_bytes())?;
                out.write_all(cast_slice(words))?;
            }
        }
        let sum = out.digest();
        file.write_all(&sum.to_le_bytes())?;
        file.commit()
    }

    fn head(&self, read: &ReadOut) -> OverlapHead {
        OverlapHead {
            settings: self.identity.settings.clone(),
            input: self.identity.input.clone(),
            tally: read.tally,
            skipped: read.skipped.clone(),
            lines: read.lines.clone(),
            unreadable: read.unreadable,
            servers: read.sites.names.clone(),
            addresses: read.sites.addresses.clone(),
        }
    }

    /// Reads back what the same job read. `None` when there is nothing, it belongs to another job, or it is damaged: then
    /// everything is read again.
    pub(crate) fn load(&self, plan: &ReadPlan<'_>) -> Option<ReadOut> {
        let file = std::fs::File::open(self.path).ok()?;
        self.read(
            HashingStream::new(io::BufReader::with_capacity(1 << 18, file)),
            plan,
        )
        .ok()
    }

    fn read(&self, mut file: HashingStream<impl Read>, plan: &ReadPlan<'_>) -> io::Result<ReadOut> {
        let mut magic = [0; 8];
        file.take(&mut magic)?;
        let length = if magic == MAGIC {
            file.word()?
        } else {
            return Err(damaged());
        };
        let head: OverlapHead = serde_json::from_slice(&file.column::<u8>(length)?)?;
        // Before the columns, which may be gigabytes.
        if head.settings != self.identity.settings || head.input != self.identity.input {
            return Err(damaged());
        }
        let mut read = ReadOut::new(plan);
        let chunkings = read_columns(&mut file, &mut read)?;
        if chunkings != read.chunks.len() as u64 {
            return Err(damaged());
        }
        for chunks in &mut read.chunks {
            for _ in 0..file.word()? {
                let length = file.word()?;
                let words = file.column(length)?;
                // Classes index tables from here on, and the checksum is compared only at the end.
                if !crate::spill::feature_sets::is_whole(&words, read.classes.len()) {
                    return Err(damaged());
                }
                chunks.push(words, plan.folder)?;
            }
        }
        // The checksum of all of it. Until here nothing was believed that could do harm: columns are read piece
        // by piece.
        file.end()?;
        read.sites.names = head.servers;
        read.sites.addresses = head.addresses;
        read.tally = head.tally;
        read.skipped = head.skipped;
        read.lines = head.lines;
        read.unreadable = head.unreadable;
        Ok(read)
    }
}

fn write_columns(out: &mut impl Write, read: &ReadOut) -> io::Result<()> {
    let documents = &read.documents;
    let ids = documents.ids().encoded();
    let (urls, url_ends, servers) = read.sites.columns();
    let sizes = [
        ids.len(),
        documents.len(),
        urls.len(),
        url_ends.len(),
        read.classes.len(),
        read.chunks.len(),
    ];
    for size in sizes {
        out.write_all(&(size as u64).to_le_bytes())?;
    }
    let class = |class: &Option<ClassId>| class.map_or(0, |class| class.position() as u32 + 1);
    let classes: Vec<u32> = documents.classes.iter().map(class).collect();
    let server = |server: &Option<NonZeroU32>| server.map_or(0, NonZeroU32::get);
    let servers: Vec<u32> = servers.iter().map(server).collect();
    out.write_all(&ids)?;
    out.write_all(cast_slice(&classes))?;
    documents.lengths.write(out)?;
    out.write_all(cast_slice(&documents.record_hashes))?;
    out.write_all(urls.as_bytes())?;
    out.write_all(cast_slice(url_ends))?;
    out.write_all(cast_slice(&servers))?;
    out.write_all(cast_slice(&read.classes.hashes))
}

/// Fills in all columns; the number of chunkings.
fn read_columns(file: &mut HashingStream<impl Read>, read: &mut ReadOut) -> io::Result<u64> {
    let mut sizes = [0; 6];
    for size in &mut sizes {
        *size = file.word()?;
    }
    let [id_bytes, documents, url_bytes, sites, classes, chunkings] = sizes;
    let ids = IdTable::decoded(file.column(id_bytes)?, documents as usize).ok_or_else(damaged)?;
    let of: Vec<u32> = file.column(documents)?;
    let lengths = file.column(documents)?.into_iter().collect();
    read.documents = DocumentTable::from_columns(ids, lengths, 0);
    let class = |&number: &u32| (number as usize).checked_sub(1).and_then(ClassId::new);
    read.documents.classes = of.iter().map(class).collect();
    read.documents.record_hashes = file.column(documents)?;
    let urls = String::from_utf8(file.column(url_bytes)?).map_err(|_| damaged())?;
    let url_ends = file.column(sites)?;
    let servers: Vec<u32> = file.column(sites)?;
    let servers = servers.into_iter().map(NonZeroU32::new).collect();
    read.sites = DocumentSites::from_columns(urls, url_ends, servers);
    for (position, hash) in file.column::<u128>(classes)?.into_iter().enumerate() {
        let class = ClassId::new(position).ok_or_else(damaged)?;
        read.classes.set(class, hash, 0, 0);
    }
    Ok(chunkings)
}

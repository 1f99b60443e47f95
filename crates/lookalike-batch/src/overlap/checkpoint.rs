//! Saves what was read to disk, so that a job that is killed later need not read and chunk everything again.
//!
//! One file, `read.bin`, replaced atomically. Little-endian:
//!
//! ```text
//! 8 bytes   "LOOKOVL3"
//! u64       length of a JSON object: settings, input, counts, what was skipped, names and
//!           addresses of servers
//! ...       that object
//! u64 x 6   numbers of id bytes, documents, URL bytes, sites, classes, chunkings
//! ...       ids, each preceded by its length (7 bits per byte, lowest first); classes (their position plus one, or 0);
//!           text lengths (u64); record hashes (u64); URLs, stored like ids; servers (their position plus one, or 0);
//!           text hashes of classes (u128)
//! ...       for each chunking: number of segments (u64), and of each the numbers of its sets and of their chunks (u64 x 2),
//!           the classes of these sets, how many chunks each has, and the chunks (u64)
//! u64       XXH3-64 of all before
//! ```
//!
//! Classes, servers and numbers of chunks are columns of numbers, which may have any size: see
//! [`number_column`](crate::dedup::number_column).

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::path::Path;

use bytemuck::cast_slice;
use serde::{Deserialize, Serialize};

use super::read::{OverlapInput, ReadPlan, ReadingFacts};
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::DocumentTable;
use crate::dedup::hashing_stream::{HashingStream, damaged, save_hashed, write_words};
use crate::dedup::id_table::IdTable;
use crate::dedup::number_column::{ExpectedNumber, read_numbers, write_numbers};
use crate::output_dir::JobIdentity;
use crate::spill::feature_sets::{SetStore, header};
use crate::spill::table_column::TableColumn;

const MAGIC: [u8; 8] = *b"LOOKOVL3";

/// Location of the saved reading, and the job that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct OverlapCheckpoint<'a> {
    pub(crate) path: &'a Path,
    /// Path of the checksums of the inputs.
    pub(crate) contents: &'a Path,
    pub(crate) identity: &'a JobIdentity,
}

/// The small part of the file, stored as JSON.
#[derive(Serialize, Deserialize)]
struct OverlapHeader {
    settings: String,
    input: String,
    facts: ReadingFacts,
    servers: Vec<String>,
    addresses: BTreeSet<(NonZeroU32, String)>,
}

impl OverlapCheckpoint<'_> {
    /// Writes what was read to the final path, atomically.
    pub(crate) fn save(&self, read: &OverlapInput) -> io::Result<()> {
        save_hashed(self.path, MAGIC, &self.head(read), |out| {
            write_columns(out, read)?;
            let mut buffer = Vec::new();
            for chunks in &read.chunks {
                // Divided as in the store, so that loading holds one segment at a time.
                let segments = chunks.sets.segments();
                write_words(out, &[segments])?;
                for segment in 0..segments {
                    write_sets(out, &chunks.sets, segment, &mut buffer)?;
                }
            }
            Ok(())
        })
    }

    fn head(&self, read: &OverlapInput) -> OverlapHeader {
        OverlapHeader {
            settings: self.identity.settings.clone(),
            input: self.identity.input.clone(),
            facts: read.facts.clone(),
            servers: read.sites.names.clone(),
            addresses: read.sites.addresses.clone(),
        }
    }

    /// Loads what an earlier run of the same job read. Returns `None` if there is no file, if it belongs to another job, or if it is damaged;
    /// everything is then read again.
    pub(crate) fn load(&self, plan: &ReadPlan<'_>) -> Option<OverlapInput> {
        let file = std::fs::File::open(self.path).ok()?;
        self.read(
            HashingStream::new(io::BufReader::with_capacity(1 << 18, file)),
            plan,
        )
        .ok()
    }

    fn read(
        &self,
        mut file: HashingStream<impl Read>,
        plan: &ReadPlan<'_>,
    ) -> io::Result<OverlapInput> {
        let head: OverlapHeader = file.head(MAGIC)?;
        // Check this before reading the columns, which may be gigabytes.
        if head.settings != self.identity.settings || head.input != self.identity.input {
            return Err(damaged());
        }
        // Sets go through the store again, so that the memory limit of this run decides what goes to disk.
        let mut read = OverlapInput::new(plan);
        let chunkings = read_columns(&mut file, &mut read)?;
        if chunkings != read.chunks.len() as u64 {
            return Err(damaged());
        }
        for chunks in &mut read.chunks {
            for _ in 0..file.word()? {
                let words = read_sets(&mut file, read.classes.len())?;
                chunks.push(words, plan.folder)?;
            }
        }
        // Now verify the checksum of the whole file. Until here damage could do no harm, because columns are read piece by piece.
        file.end()?;
        read.sites.set_names(head.servers, head.addresses);
        read.facts = head.facts;
        Ok(read)
    }
}

/// Writes one segment of sets.
fn write_sets(
    out: &mut impl Write,
    sets: &SetStore,
    segment: usize,
    buffer: &mut Vec<u64>,
) -> io::Result<()> {
    let (mut classes, mut lengths, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
    sets.walk(segment, buffer, |class, set| {
        classes.push(u64::from(class));
        lengths.push(set.len() as u64);
        chunks.extend_from_slice(set);
        Ok(())
    })?;
    write_words(out, &[classes.len(), chunks.len()])?;
    for column in [classes, lengths] {
        write_numbers(out, column.into_iter(), ExpectedNumber::Next)?;
    }
    out.write_all(cast_slice(&chunks))
}

/// Reads one segment of sets, whose classes must be below `classes`.
fn read_sets(file: &mut HashingStream<impl Read>, classes: usize) -> io::Result<Vec<u64>> {
    let [sets, chunks] = file.words()?;
    let of: TableColumn<u32> = read_numbers(file, sets, ExpectedNumber::Next)?;
    let lengths: TableColumn<u32> = read_numbers(file, sets, ExpectedNumber::Next)?;
    let chunks: Vec<u64> = file.column(chunks)?;
    let mut words = Vec::with_capacity(of.len() + chunks.len());
    let mut rest = &chunks[..];
    for (class, length) in of.into_iter().zip(lengths) {
        let (set, others) = rest
            .split_at_checked(length as usize)
            // Classes will index tables, and the checksum is verified only at the end.
            .filter(|_| (class as usize) < classes)
            .ok_or_else(damaged)?;
        words.push(header(class, set.len()));
        words.extend_from_slice(set);
        rest = others;
    }
    match rest.is_empty() {
        true => Ok(words),
        false => Err(damaged()),
    }
}

fn write_columns(out: &mut impl Write, read: &OverlapInput) -> io::Result<()> {
    let documents = &read.documents;
    let ids = documents.ids.encoded();
    let (urls, servers) = (read.sites.urls.encoded(), &read.sites.servers);
    let sizes = [
        ids.len(),
        documents.len(),
        urls.len(),
        servers.len(),
        read.classes.len(),
        read.chunks.len(),
    ];
    write_words(out, &sizes)?;
    // 0 stands for documents without a text, so classes are stored from 1.
    let class = |class: &Option<ClassId>| class.map_or(0, |class| class.position() as u64 + 1);
    let server = |server: &Option<NonZeroU32>| server.map_or(0, |server| server.get().into());
    out.write_all(&ids)?;
    let classes = documents.classes.iter().map(class);
    write_numbers(out, classes, ExpectedNumber::Next)?;
    documents.lengths.write(out)?;
    out.write_all(cast_slice(&documents.record_hashes))?;
    out.write_all(&urls)?;
    write_numbers(out, servers.iter().map(server), ExpectedNumber::Next)?;
    out.write_all(cast_slice(&read.classes.hashes))
}

/// Reads all columns into `read` and returns the number of chunkings.
fn read_columns(file: &mut HashingStream<impl Read>, read: &mut OverlapInput) -> io::Result<u64> {
    let [id_bytes, documents, url_bytes, sites, classes, chunkings] = file.words()?;
    let ids =
        IdTable::decoded(file.table_column(id_bytes)?, documents as usize).ok_or_else(damaged)?;
    let of: TableColumn<u64> = read_numbers(file, documents, ExpectedNumber::Next)?;
    let lengths = file.column(documents)?.into_iter().collect();
    read.documents = DocumentTable::from_columns(ids, lengths, 0);
    let class = |number: u64| match usize::try_from(number).map_err(|_| damaged())? {
        0 => Ok(None),
        // The number exceeds what an in-memory job can have.
        number => ClassId::new(number - 1).map(Some).ok_or_else(damaged),
    };
    read.documents.classes = of.into_iter().map(class).collect::<io::Result<_>>()?;
    read.documents.record_hashes = file.table_column(documents)?;
    let urls = file.table_column(url_bytes)?;
    read.sites.urls = IdTable::decoded(urls, sites as usize).ok_or_else(damaged)?;
    let servers: TableColumn<u32> = read_numbers(file, sites, ExpectedNumber::Next)?;
    read.sites.servers = servers.into_iter().map(NonZeroU32::new).collect();
    for (position, hash) in file.column::<u128>(classes)?.into_iter().enumerate() {
        let class = ClassId::new(position).ok_or_else(damaged)?;
        // Zero places and sizes of features: an overlap job keeps its sets in `chunks`.
        read.classes.set(class, hash, 0, 0);
    }
    Ok(chunkings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], classes: usize) -> io::Result<Vec<u64>> {
        read_sets(&mut HashingStream::new(bytes), classes)
    }

    proptest! {
        #[test]
        fn sets_come_back(sets in prop::collection::vec((0..50_u32, prop::collection::vec(any::<u64>(), 0..5)), 0..20)) {
            let folder = tempfile::tempdir().unwrap();
            let set = |(class, set): &(u32, Vec<u64>)| [&[header(*class, set.len())], &set[..]].concat();
            let words: Vec<u64> = sets.iter().flat_map(set).collect();
            let mut store = SetStore::new(u64::MAX);
            store.push(words.clone(), folder.path()).unwrap();
            let mut bytes = Vec::new();
            write_sets(&mut bytes, &store, 0, &mut Vec::new()).unwrap();
            prop_assert_eq!(read(&bytes, 50).unwrap(), words);
            let least = sets.iter().map(|set| set.0 as usize + 1).max().unwrap_or(0);
            prop_assert_eq!(read(&bytes, least).is_ok(), true);
            prop_assert_eq!(least == 0 || read(&bytes, least - 1).is_err(), true);
        }
    }

    #[test]
    fn a_class_beyond_32_bits_had_no_place_in_the_file_and_is_no_other_class() {
        let mut bytes = Vec::new();
        for count in [1_u64, 2] {
            bytes.extend(count.to_le_bytes());
        }
        write_numbers(
            &mut bytes,
            [(1 << 32) + 5].into_iter(),
            ExpectedNumber::Next,
        )
        .unwrap();
        write_numbers(&mut bytes, [2].into_iter(), ExpectedNumber::Next).unwrap();
        bytes.extend([7; 16]);
        assert!(read(&bytes, 100).is_err());
    }
}

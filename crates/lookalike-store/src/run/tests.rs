//! Runs whose checksums are right, but whose contents no store writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lookalike::{Fingerprint, Scheme};

use super::footer::RunFooter;
use super::pages::{BlockReader, BlockWriter, RunSection};
use super::sorted::{self, IndexKey};
use super::{DocumentSource, RunOptions, StoredRun, TRAILER, write_run};
use crate::checksum::FileIdentity;
use crate::codec::fixed;
use crate::document::StoredDocument;
use crate::error::{Result, StoreError};
use crate::fs::{FileSystem, SimulatedFs, read_whole};
use crate::id_hash::IdHasher;
use crate::memtable::MemTable;
use crate::settings::CollectionSettings;
use crate::time::UnixMillis;

/// Writes a run of one document, changes its end, and opens it.
fn opened(change: impl FnOnce(&mut RunFooter, &mut BlockWriter<'_>)) -> Result<StoredRun> {
    let (fs, path) = (SimulatedFs::new(), Path::new("/run"));
    let shape = CollectionSettings::new(&Scheme::default()).index_shape();
    let (mut memtable, hasher) = (MemTable::new(shape), IdHasher::new(1));
    let document = StoredDocument::new("a", Fingerprint(1));
    memtable.push(Arc::new(document), &hasher);
    let source = DocumentSource::of_memtable(&memtable, &hasher, UnixMillis(0));
    let identity = FileIdentity {
        collection: 7,
        number: 1,
    };
    let options = RunOptions {
        identity,
        shape,
        small: 10,
        scratch: 1 << 16,
    };
    let cancelled = AtomicBool::new(false);
    write_run(&fs, path, &options, &[source], &cancelled)?;
    let file = fs.open(path, false).expect("a file");
    let reader = BlockReader::new(file, path, identity);
    let mut footer = RunFooter::read(&reader, identity, shape.form.bytes())?;
    let bytes = read_whole(&fs, path).expect("a file");
    // The trailer begins with the offset of the footer.
    let trailer = &bytes[bytes.len() - TRAILER..];
    let mut out = BlockWriter::create(&fs, path, identity, &cancelled)?;
    out.raw(&bytes[..fixed(&trailer[..8]) as usize])?;
    change(&mut footer, &mut out);
    footer.write(out)?;
    StoredRun::open(&fs, path, identity, shape)
}

/// The offset was always that of the index of ids.
#[test]
fn damage_of_an_index_was_placed_in_the_index_of_ids() {
    let mut offset = 0;
    let run = opened(|footer, out| {
        let index = sorted::write(out, std::iter::once(Ok((17, 9))));
        let of_run = &mut footer.indexes[IndexKey::Paragraph as usize];
        *of_run = index.expect("an index");
        offset = of_run.offset;
    });
    let run = run.expect("only a read finds it");
    let damage = run.entries(IndexKey::Paragraph).find_map(Result::err);
    match damage.expect("there is no document 9") {
        StoreError::Damaged { offset: found, .. } => assert_eq!(found, offset),
        other => panic!("{other}"),
    }
}

/// Such a filter holds no id, so no document was found by its id.
#[test]
fn a_run_whose_filter_is_missing_was_opened() {
    let run = opened(|footer, _| footer.filter = RunSection::default());
    assert!(matches!(run, Err(StoreError::Damaged { .. })), "{run:?}");
    opened(|_, _| ()).expect("a run with its filter opens");
}

//! Files whose checksums are right, but whose contents no store of this version writes.

use std::path::{Path, PathBuf};

use super::model_runs::{FOLDER, IDENTITY, create};
use super::random_writes::RandomWrites;
use crate::engine::{LogChange, salvage};
use crate::error::StoreError;
use crate::file_names::file_path;
use crate::fs::SimulatedFs;
use crate::log::{AppendResult, FRAME_HEADER, LogEnd, LogHeader, LogWriter};
use crate::settings::StoreTuning;

/// Creates an empty collection.
fn empty() -> SimulatedFs {
    let fs = SimulatedFs::new();
    create(&fs, &RandomWrites::new(1, 1), &StoreTuning::default()).expect("a collection");
    fs
}

fn folder() -> &'static Path {
    Path::new(FOLDER)
}

/// Returns path and offset of some damage.
fn place(error: &StoreError) -> (PathBuf, u64) {
    match error {
        StoreError::Damaged { path, offset, .. } => (path.clone(), *offset),
        other => panic!("{other}"),
    }
}

/// Groups that could not be decoded were left out of the list of losses.
#[test]
fn a_salvage_lost_a_group_in_an_unknown_format_in_silence() {
    let fs = empty();
    let path = file_path(folder(), 1, "log");
    let header = LogHeader {
        collection: IDENTITY,
        file: 1,
        first: 1,
        before: LogEnd::default(),
        recovered: 0,
    };
    let mut log = LogWriter::create(&fs, &path, header, 4096).expect("a log");
    // One change each: of a kind that does not exist, and the deletion of "a".
    for change in [&[3, 0][..], &[2, 1, b'a']] {
        let mut frame = vec![0; FRAME_HEADER];
        frame.extend(1000_u64.to_le_bytes());
        frame.push(1);
        frame.extend(change);
        assert!(matches!(
            log.append(&mut frame, false),
            AppendResult::Durable
        ));
    }
    let mut saved = Vec::new();
    let lost = salvage(&fs, folder(), &mut |_, changes| {
        saved.extend(changes);
        Ok(())
    });
    let lost: Vec<_> = lost.expect("a salvage").iter().map(place).collect();
    // The first frame begins after the header.
    assert_eq!(lost, [(path, 512)]);
    assert_eq!(saved, [LogChange::Delete("a".to_owned())]);
}

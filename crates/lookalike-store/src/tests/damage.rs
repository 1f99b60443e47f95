//! Damage of every kind: every byte flipped, and every file truncated at every length, removed, or exchanged. It is reported with the name
//! of the file, and no answer is wrong.

use std::path::{Path, PathBuf};

use lookalike_hamming::threads::map_parallel;

use super::model::Model;
use super::model_runs::{FOLDER, IDENTITY, commit, compare_all, create, open, share};
use super::random_writes::RandomWrites;
use super::rng::TestRng;
use crate::engine::verify;
use crate::error::StoreError;
use crate::fs::SimulatedFs;
use crate::pair_rule::PairRule;
use crate::settings::StoreTuning;

/// A collection with files of all kinds.
struct Subject {
    fs: SimulatedFs,
    files: Vec<(PathBuf, Vec<u8>)>,
    model: Model,
    random_writes: RandomWrites,
}

const TUNING: StoreTuning = StoreTuning {
    memory_bytes: 1 << 20,
    memory_documents: 400,
    log_step: 4096,
    fan_out: 4,
    small_run: 100,
    scratch_bytes: 1 << 16,
};

fn subject(seed: u64, orderly: bool) -> Subject {
    let mut random_writes = RandomWrites::new(seed, 700);
    random_writes.settings.radius = 3;
    random_writes.settings.keep.paragraphs = true;
    random_writes.settings.time_to_live = None;
    // Settings with which files have all sections.
    random_writes.settings.pairs = PairRule::default().within("site").length_share(0.5);
    let mut model = Model::new(&random_writes.settings);
    let fs = SimulatedFs::new();
    create(&fs, &random_writes, &TUNING).expect("a collection");
    let engine = open(&fs, TUNING).expect("it opens");
    let mut run = |groups: u64, flush: bool| {
        for _ in 0..groups {
            let (batch, now) = (random_writes.batch(), model.now(random_writes.now));
            let heard = commit(&engine, vec![batch.clone()], now).remove(0);
            assert_eq!(heard.expect("a write"), model.write(&batch));
        }
        if flush {
            engine.rotate_log().expect("a new log");
            while engine.flush().expect("a flush") {}
        }
    };
    run(500, true);
    run(60, true);
    run(30, false);
    if orderly {
        engine.close().expect("an end");
    }
    drop(engine);
    let files = fs.files().into_iter().collect();
    Subject {
        fs,
        files,
        model,
        random_writes,
    }
}

impl Subject {
    fn file(&self, kind: &str) -> &(PathBuf, Vec<u8>) {
        // The newest file of its kind.
        let mut files = self.files.iter().rev();
        let found = files.find(|(path, _)| path.to_str().expect("ours").ends_with(kind));
        found.expect("there is one")
    }

    fn bytes(&self) -> usize {
        self.files.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Returns the file that contains a byte, given the byte's position in all files together, and its offset there.
    fn place(&self, mut at: usize) -> (&Path, &[u8], usize) {
        for (path, bytes) in &self.files {
            if at < bytes.len() {
                return (path, bytes, at);
            }
            at -= bytes.len();
        }
        panic!("beyond the last byte");
    }

    /// Checks that the damage is reported for this file, and that any answers given in spite of it are right.
    fn is_told(&self, path: &Path, bytes: Option<Vec<u8>>, how: &str) {
        let fs = self.fs.copy();
        fs.damage(path, bytes);
        let told = verify(&fs, Path::new(FOLDER), IDENTITY).expect_err(how);
        let named = match &told {
            StoreError::Damaged { path, .. }
            | StoreError::Foreign { path, .. }
            | StoreError::Missing { path, .. }
            | StoreError::Version { path, .. } => path,
            other => panic!("{how}: {other}"),
        };
        // For a truncated log, the error may name the mark of a clean shutdown.
        assert_eq!(named, path, "{how}: {told}");
        if let Ok(engine) = open(&fs, TUNING) {
            let mut all = Vec::new();
            let read = engine.for_each::<StoreError>(self.model.time, &mut |document| {
                all.push(document);
                Ok(())
            });
            assert!(
                read.is_err() || all == self.model.all(),
                "{how}: another answer"
            );
            for document in self.model.all().iter().step_by(17) {
                let found = engine.get(&document.id, self.model.time);
                assert!(
                    found.is_err() || found.is_ok_and(|found| found.as_deref() == Some(document)),
                    "{how}"
                );
            }
        }
    }
}

/// Calls `each` for `wanted` random numbers below `count`, in two threads.
fn sample(count: usize, wanted: u64, each: impl Fn(usize) + Sync) {
    let run = |first: u64| {
        let mut rng = TestRng::new(first);
        if wanted >= count as u64 {
            (first as usize..count).step_by(2).for_each(&each);
        } else {
            (0..wanted / 2).for_each(|_| each(rng.below(count as u64) as usize));
        }
    };
    map_parallel(0..2, run);
}

#[test]
fn any_flipped_byte_is_told() {
    let subject = subject(3, true);
    let mut kinds: Vec<_> = subject
        .files
        .iter()
        .filter_map(|(path, _)| path.extension())
        .collect();
    kinds.dedup();
    assert!(kinds.len() >= 3, "{kinds:?}");
    let count = subject.bytes();
    sample(count, share(20_000), |at| {
        let (path, bytes, at) = subject.place(at);
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1 << (at % 8);
        subject.is_told(
            path,
            Some(flipped),
            &format!("{} byte {at}", path.display()),
        );
    });
}

#[test]
fn any_cut_file_is_told() {
    let subject = subject(4, true);
    sample(subject.bytes(), share(10_000), |at| {
        let (path, bytes, at) = subject.place(at);
        // Missing zeros after the frames of a log do not matter.
        if path.to_str().is_some_and(|path| path.ends_with(".log"))
            && bytes[at..].iter().all(|&byte| byte == 0)
        {
            return;
        }
        subject.is_told(
            path,
            Some(bytes[..at].to_vec()),
            &format!("{} cut at {at}", path.display()),
        );
    });
}

#[test]
fn any_missing_or_foreign_file_is_told() {
    let subject = subject(5, true);
    let other = self::subject(8, true);
    for (path, _) in &subject.files {
        if !path.ends_with("CLEAN") {
            subject.is_told(path, None, &format!("{} removed", path.display()));
        }
    }
    for kind in [".log", ".run", ".tombstones"] {
        let (path, _) = subject.file(kind);
        let (_, bytes) = other.file(kind);
        if subject.file(kind).1 != *bytes {
            subject.is_told(path, Some(bytes.clone()), &format!("another {kind}"));
        }
    }
}

#[test]
fn after_a_crash_only_the_last_group_can_be_dropped_and_that_is_told() {
    let mut subject = subject(7, false);
    let (path, bytes) = subject.file(".log").clone();
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("frames");
    let mut dropped = 0;
    for at in (0..=end).rev().step_by(3) {
        let fs = subject.fs.copy();
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs.damage(&path, Some(flipped));
        let shared: std::sync::Arc<dyn crate::fs::FileSystem> = std::sync::Arc::new(fs);
        match crate::engine::CollectionEngine::open(shared, Path::new(FOLDER), IDENTITY, TUNING) {
            Err(
                StoreError::Damaged { .. }
                | StoreError::Foreign { .. }
                | StoreError::Version { .. },
            ) => {}
            Err(other) => panic!("{other}"),
            Ok((engine, recovery)) => {
                assert!(recovery.torn_bytes > 0, "byte {at}: dropped in silence");
                assert!(engine.stats().documents + 6 >= subject.model.all().len() as u64);
                dropped += 1;
            }
        }
    }
    assert!(dropped > 0 && dropped < 1300, "{dropped}");
    let engine = open(&subject.fs.copy(), TUNING).expect("it opens");
    compare_all(&engine, &mut subject.model, &mut subject.random_writes);
}

//! Power cuts at every call, including during recovery and during the recovery after that: acknowledged writes survive, and the group that
//! was being written survives entirely or not at all.

use std::path::{Path, PathBuf};

use lookalike::Fingerprint;
use lookalike_hamming::threads::map_parallel;

use super::model::Model;
use super::model_runs::{FOLDER, IDENTITY, commit, compare_all, create, open, share};
use super::random_writes::RandomWrites;
use super::rng::TestRng;
use crate::checksum;
use crate::document::StoredDocument;
use crate::engine::CollectionEngine;
use crate::file_names::file_path;
use crate::fs::{CrashPoint, IgnoredSync, SimulatedFs};
use crate::log::SECTOR;
use crate::operations::WriteOp;
use crate::settings::StoreTuning;

/// A run of random writes, and its crash points.
struct Life {
    random_writes: RandomWrites,
    tuning: StoreTuning,
    /// The model after each acknowledged group.
    history: Vec<Model>,
    crashes: Vec<CrashPoint>,
}

/// Commits groups of writes, with background work between them.
fn live(seed: u64, lie: Option<IgnoredSync>) -> Life {
    let mut random_writes = RandomWrites::new(seed, 12);
    let mut tuning = random_writes.tuning();
    tuning.memory_documents = 4 + random_writes.rng.below(12) as usize;
    if !random_writes.rng.one_in(6) {
        // Planning stored tables takes long, so most lives do without.
        tuning.small_run = tuning.small_run.max(100);
    }
    let fs = SimulatedFs::new();
    let mut history = vec![Model::new(&random_writes.settings)];
    create(&fs, &random_writes, &tuning).expect("a collection");
    fs.ignore_syncs(lie);
    fs.record();
    let mut engine = open(&fs, tuning).expect("it opens");
    for step in 0..6 + random_writes.rng.below(12) {
        random_writes.pass_time();
        let group: Vec<_> = (0..1 + random_writes.rng.below(3))
            .map(|_| random_writes.batch())
            .collect();
        let mut model = history.last().cloned().expect("the beginning");
        let now = model.now(random_writes.now);
        let expected: Vec<_> = group.iter().map(|batch| model.write(batch)).collect();
        // A cut within the call leaves the state after it or the one before.
        history.push(model);
        let heard = commit(&engine, group, now);
        fs.mark(step + 1);
        for (heard, expected) in heard.into_iter().zip(expected) {
            assert_eq!(heard.expect("a write"), expected, "seed {seed}");
        }
        match random_writes.rng.below(8) {
            0 | 1 => drop(engine.flush().expect("a flush")),
            2 => drop(engine.merge().expect("a merge")),
            3 => engine.compact().expect("a merge of all"),
            4 => engine.rotate_log().expect("a new log"),
            6 => engine.idle(),
            5 if random_writes.rng.one_in(2) => {
                if random_writes.rng.one_in(2) {
                    engine.close().expect("an end");
                }
                drop(engine);
                engine = open(&fs, tuning).expect("it opens");
            }
            _ => {}
        }
    }
    let crashes = fs.recorded();
    Life {
        random_writes,
        tuning,
        history,
        crashes,
    }
}

impl Life {
    /// Restarts after a cut. Returns an error if the state found is not a valid one.
    fn survives(&self, crash: &CrashPoint, seed: u64) -> Result<u64, String> {
        let mut rng = TestRng::new(seed);
        if rng.one_in(6) {
            return self.survives_a_kill(crash, &mut rng).map(|()| 1);
        }
        let mut fs = crash.cut(rng.next_u64());
        let mut cuts = 1;
        // The power may fail again during recovery, and again during the next one.
        while cuts < 6 && rng.one_in(if cuts == 1 { 5 } else { 2 }) {
            fs = self.cut_in_recovery(&fs, &mut rng)?;
            cuts += 1;
        }
        let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
        let mark = crash.mark as usize;
        let mut possible = self.history[mark..].iter().take(2);
        let model = possible.find(|model| is(&engine, model));
        let model = model
            .ok_or_else(|| format!("after group {mark}: neither it nor the next one stands"))?;
        if rng.one_in(16) {
            self.goes_on(&fs, engine, model.clone(), &mut rng);
        }
        Ok(cuts)
    }

    /// Opens and recovers the collection, and cuts the power at some call meanwhile.
    fn cut_in_recovery(&self, fs: &SimulatedFs, rng: &mut TestRng) -> Result<SimulatedFs, String> {
        fs.record();
        let engine = open(fs, self.tuning).map_err(|error| error.to_string())?;
        if rng.one_in(2) {
            let _ = engine.flush().and_then(|_| engine.merge());
        }
        let crashes = fs.recorded();
        Ok(crashes[rng.below(crashes.len() as u64) as usize].cut(rng.next_u64()))
    }

    /// Kills the process, starts another one and reads what it finds, and then cuts the power.
    fn survives_a_kill(&self, crash: &CrashPoint, rng: &mut TestRng) -> Result<(), String> {
        let fs = crash.kill();
        let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
        let mut possible = self.history[crash.mark as usize..].iter().take(2);
        let shown = possible.find(|model| is(&engine, model));
        let shown = shown.ok_or("after a kill: neither the last group nor the next one stands")?;
        fs.record();
        let _ = engine.flush().and_then(|_| engine.merge());
        drop(engine);
        let crashes = fs.recorded();
        let fs = crashes[rng.below(crashes.len() as u64) as usize].cut(rng.next_u64());
        let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
        if is(&engine, shown) {
            Ok(())
        } else {
            Err("what was shown after a kill is gone after a power cut".to_owned())
        }
    }

    /// Checks that a restarted collection works like a new one.
    fn goes_on(
        &self,
        fs: &SimulatedFs,
        engine: CollectionEngine,
        mut model: Model,
        rng: &mut TestRng,
    ) {
        let mut random_writes = self.random_writes.clone();
        random_writes.rng = rng.clone();
        // A group that was lost, or a closing frame, may have reported a later time.
        model.now(engine.stats().time);
        for _ in 0..4 {
            random_writes.pass_time();
            let (batch, now) = (random_writes.batch(), model.now(random_writes.now));
            let heard = commit(&engine, vec![batch.clone()], now).remove(0);
            assert_eq!(heard.expect("a write"), model.write(&batch));
        }
        engine.flush().expect("a flush");
        compare_all(&engine, &mut model, &mut random_writes);
        engine.close().expect("an end");
        drop(engine);
        crate::engine::verify(fs, Path::new(FOLDER), IDENTITY).expect("whole");
        let engine = open(fs, self.tuning).expect("it opens");
        compare_all(&engine, &mut model, &mut random_writes);
    }

    /// Cuts the power several times at each recorded call. Returns the number of cuts and the first failure.
    fn crash(&self, times: u64, seed: u64) -> (u64, Option<String>) {
        let mut cuts = 0;
        for (at, crash) in self.crashes.iter().enumerate() {
            for time in 0..times {
                match self.survives(crash, seed ^ (at as u64) << 20 ^ time << 50) {
                    Ok(made) => cuts += made,
                    Err(why) => return (cuts, Some(format!("call {at}, time {time}: {why}"))),
                }
            }
        }
        (cuts, None)
    }
}

fn is(engine: &CollectionEngine, model: &Model) -> bool {
    let mut all = Vec::new();
    let read = engine.for_each::<crate::StoreError>(model.time, &mut |document| {
        all.push(document);
        Ok(())
    });
    read.expect("all documents are read");
    all == model.all()
}

#[test]
#[expect(clippy::print_stdout, reason = "the campaign shows how much it did")]
fn no_acknowledged_write_is_lost_in_any_power_cut() {
    let wanted = share(100_000);
    // Another campaign uses other seeds.
    let beginning = std::env::var("STORE_TEST_SEED").ok();
    let beginning: u64 = beginning.and_then(|text| text.parse().ok()).unwrap_or(0);
    let run = |first: u64| {
        let (mut cuts, mut seed) = (0, beginning + first);
        while cuts < wanted / 2 {
            let life = live(seed, None);
            let (made, failure) = life.crash(3, seed);
            assert_eq!(failure, None, "seed {seed}");
            cuts += made;
            seed += 2;
        }
        println!(
            "{cuts} power cuts in {} lives, nothing lost",
            (seed - beginning) / 2
        );
    };
    map_parallel(0..2, run);
}

/// Tells whether crashes reveal a planted bug.
fn is_found(lie: Option<IgnoredSync>) -> bool {
    (0..200).any(|seed| {
        let found = std::panic::catch_unwind(|| live(seed, lie).crash(2, seed).1.is_some());
        found.unwrap_or(true)
    })
}

/// Creates a collection to which three groups were written in turn; the last is followed by a closing frame if `closed`.
fn three_groups(closed: bool) -> (SimulatedFs, Model) {
    let random_writes = RandomWrites::new(8, 30);
    let fs = SimulatedFs::new();
    create(&fs, &random_writes, &TUNING).expect("a collection");
    let engine = open(&fs, TUNING).expect("it opens");
    let mut model = Model::new(&random_writes.settings);
    for group in 0..3_u64 {
        let documents = (0..20)
            .map(|at| StoredDocument::new(format!("{group}/{at}"), Fingerprint(group * 77 + at)));
        let batch: Vec<_> = documents.map(WriteOp::Insert).collect();
        let now = model.now(random_writes.now);
        let heard = commit(&engine, vec![batch.clone()], now).remove(0);
        assert_eq!(heard.expect("a write"), model.write(&batch));
    }
    if closed {
        engine.idle();
    }
    (fs, model)
}

const TUNING: StoreTuning = StoreTuning {
    memory_bytes: 1 << 20,
    memory_documents: 1000,
    log_step: 4096,
    fan_out: 4,
    small_run: 1000,
    scratch_bytes: 1 << 16,
};

fn log(number: u64) -> PathBuf {
    file_path(Path::new(FOLDER), number, "log")
}

#[test]
fn a_flipped_bit_in_the_last_group_is_no_torn_write_once_the_group_is_closed() {
    let (fs, model) = three_groups(true);
    let bytes = fs.files()[&log(1)].clone();
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("frames");
    for at in (0..=end).step_by(7) {
        let fs = fs.copy();
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs.damage(&log(1), Some(flipped));
        match open(&fs, TUNING) {
            // A flipped bit in the closing frame itself loses nothing.
            Ok(engine) => assert!(
                is(&engine, &model),
                "byte {at}: acknowledged documents are gone"
            ),
            Err(error) => assert!(error.to_string().contains("00000001.log"), "{error}"),
        }
    }
}

#[test]
fn recovery_writes_no_byte_of_the_log_that_it_finds() {
    let (fs, model) = three_groups(false);
    let before = fs.files()[&log(1)].clone();
    let recovered = fs.copy();
    let engine = open(&recovered, TUNING).expect("it opens");
    assert!(is(&engine, &model));
    assert_eq!(recovered.files()[&log(1)], before);
    assert!(
        recovered.files().contains_key(&log(3)),
        "it goes on in a new log; file 2 is a part of the scheme"
    );
    // From now on the end of the old log no longer matters, because the new one contains the last group.
    let engine = open(&recovered, TUNING).expect("it opens again");
    let mut garbage = before.clone();
    let end = before.iter().rposition(|&byte| byte != 0).expect("frames");
    garbage[end / SECTOR * SECTOR..].fill(0x55);
    drop(engine);
    recovered.damage(&log(1), Some(garbage));
    assert!(is(&open(&recovered, TUNING).expect("it opens"), &model));
}

#[test]
fn a_lost_sector_takes_no_group_with_it_that_was_acknowledged_before() {
    let (fs, model) = three_groups(false);
    let before = fs.files()[&log(1)].clone();
    let engine = open(&fs, TUNING).expect("it opens");
    let newest = fs
        .files()
        .into_keys()
        .rfind(|path| path.extension().is_some_and(|kind| kind == "log"));
    let newest = newest.expect("a log");
    let found = fs.files()[&newest].clone();
    let more = WriteOp::Insert(StoredDocument::new("more", Fingerprint(1)));
    commit(&engine, vec![vec![more]], model.time)
        .remove(0)
        .expect("a write");
    let written = fs.files()[&newest].clone();
    for sector in (0..found.len()).step_by(SECTOR) {
        let (old, new) = (
            &found[sector..sector + SECTOR],
            &written[sector..sector + SECTOR],
        );
        assert!(
            old == new || old.iter().all(|&byte| byte == 0),
            "a sector with data was written again"
        );
    }
    assert_eq!(fs.files()[&log(1)], before);
}

#[test]
fn planted_bugs_are_found() {
    assert!(
        is_found(Some(IgnoredSync::Sync)),
        "acknowledged before it is durable"
    );
    assert!(
        is_found(Some(IgnoredSync::SyncDir)),
        "names that are not made durable"
    );
    checksum::disable_checks(true);
    let found = is_found(None);
    checksum::disable_checks(false);
    assert!(found, "no checks");
}

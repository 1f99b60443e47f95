//! A fault at the n-th call of a fixed script, for every n: acknowledged writes survive, reads continue, and no partial change is ever
//! visible.

use std::path::Path;

use super::model::Model;
use super::model_runs::{FOLDER, commit, create, open};
use super::random_writes::RandomWrites;
use crate::engine::CollectionEngine;
use crate::error::StoreError;
use crate::fs::{InjectedFault, SimulatedFs};
use crate::operations::WriteOp;
use crate::settings::StoreTuning;

/// The result of a script.
struct Story {
    model: Model,
    /// The other valid state, if writes stopped within a group.
    maybe: Option<Model>,
    refused: u32,
}

const TUNING: StoreTuning = StoreTuning {
    memory_bytes: 1 << 20,
    memory_documents: 6,
    log_step: 512,
    fan_out: 2,
    small_run: 10,
    scratch_bytes: 1 << 16,
};

fn random_writes() -> RandomWrites {
    let mut random_writes = RandomWrites::new(8, 30);
    random_writes.settings.radius = 3;
    random_writes
}

/// Plays the script: groups of writes, with flushes and merges between them. Failures are tolerated.
fn play(fs: &SimulatedFs, full: bool) -> Story {
    let mut random_writes = random_writes();
    let mut story = Story {
        model: Model::new(&random_writes.settings),
        maybe: None,
        refused: 0,
    };
    let mut engine: Option<CollectionEngine> = None;
    for step in 0..24 {
        random_writes.pass_time();
        let group: Vec<_> = (0..2).map(|_| random_writes.batch()).collect();
        if step == 12 {
            // Close and reopen in between.
            if let Some(engine) = engine.take() {
                let _ = engine.close();
            }
        }
        if engine.is_none() {
            engine = open(fs, TUNING).ok();
            if let Some(engine) = &engine {
                story.settle(engine);
            }
        }
        let Some(engine) = &engine else {
            continue;
        };
        story.group(engine, &group, &random_writes, full);
        let _ = engine.flush();
        let _ = engine.merge();
        story.reads_go_on(engine);
    }
    story
}

impl Story {
    fn group(
        &mut self,
        engine: &CollectionEngine,
        group: &[Vec<WriteOp>],
        random_writes: &RandomWrites,
        full: bool,
    ) {
        let mut after = self.model.clone();
        let now = after.now(random_writes.now);
        self.model.time = now;
        let heard = commit(engine, group.to_vec(), now);
        let stopped = heard
            .iter()
            .any(|heard| matches!(heard, Err(StoreError::Stopped(_))));
        for (batch, heard) in group.iter().zip(heard) {
            match heard {
                Ok(outcomes) => {
                    let expected = after.write(batch);
                    assert_eq!(outcomes, expected);
                    self.model = after.clone();
                }
                // The call that fails read a neighbour of what is written.
                Err(StoreError::WrittenUnread(_)) => {
                    let checks = |write: &WriteOp| matches!(write, WriteOp::CheckAndInsert { .. });
                    assert!(batch.iter().any(checks));
                    after.write(batch);
                    self.model = after.clone();
                }
                Err(error) => {
                    self.refused += 1;
                    assert!(!full || error.is_disk_full(), "{error}");
                    if stopped {
                        after.write(batch);
                    }
                }
            }
        }
        if stopped && self.maybe.is_none() {
            self.maybe = Some(after);
        }
    }

    fn reads_go_on(&self, engine: &CollectionEngine) {
        let mut all = Vec::new();
        let read = engine.for_each::<StoreError>(self.model.time, &mut |document| {
            all.push(document);
            Ok(())
        });
        // The read may be the call that fails.
        if read.is_ok() {
            assert_eq!(all, self.model.all());
        }
    }

    /// Determines after a restart whether the group at which writes stopped was written.
    fn settle(&mut self, engine: &CollectionEngine) {
        let Some(maybe) = self.maybe.take() else {
            return;
        };
        let stands = || {
            let mut all = Vec::new();
            engine.for_each::<StoreError>(maybe.time, &mut |document| {
                all.push(document);
                Ok(())
            })?;
            Ok::<_, StoreError>(all == maybe.all())
        };
        // Only one call fails, so retry once.
        if stands()
            .or_else(|_| stands())
            .expect("all documents are read")
        {
            self.model = maybe;
        }
    }

    /// Tells whether the state after a restart is valid: everything acknowledged, perhaps with the group at which writes stopped.
    fn stands(&self, engine: &CollectionEngine) -> bool {
        [Some(&self.model), self.maybe.as_ref()]
            .into_iter()
            .flatten()
            .any(|model| {
                // The time advanced while writes were stopped, and does not go back.
                let mut model = model.clone();
                let now = model.now(self.model.time);
                let mut all = Vec::new();
                let read = engine.for_each::<StoreError>(now, &mut |document| {
                    all.push(document);
                    Ok(())
                });
                read.expect("all documents are read");
                all == model.all()
            })
    }
}

/// Plays the script with a fault at each call. Returns the number of calls.
fn every_call(fault: InjectedFault) -> u64 {
    let mut call = 0;
    loop {
        let fs = SimulatedFs::new();
        create(&fs, &random_writes(), &TUNING).expect("a collection");
        let before = fs.calls();
        fs.fail_at(before + call, fault);
        let story = play(&fs, false);
        let calls = fs.calls() - before;
        if call >= calls {
            assert_eq!(story.refused, 0);
            return calls;
        }
        fs.heal();
        // A restart finds a valid state, also after a power failure.
        for fs in [fs.copy(), fs.cut(call), fs.cut(call ^ 77)] {
            let engine = open(&fs, TUNING)
                .unwrap_or_else(|error| panic!("{fault:?} at call {call}: {error}"));
            assert!(story.stands(&engine), "{fault:?} at call {call}");
        }
        call += 1;
    }
}

#[test]
fn an_input_or_output_error_at_any_call_loses_nothing() {
    assert!(every_call(InjectedFault::Io) > 300);
}

#[test]
fn a_short_write_at_any_call_loses_nothing() {
    every_call(InjectedFault::ShortWrite);
}

#[test]
fn a_failed_sync_at_any_call_loses_nothing() {
    every_call(InjectedFault::FailedSync);
}

#[test]
fn a_full_disk_at_any_call_refuses_and_goes_on_when_there_is_room() {
    let calls = {
        let fs = SimulatedFs::new();
        create(&fs, &random_writes(), &TUNING).expect("a collection");
        let before = fs.calls();
        play(&fs, false);
        fs.calls() - before
    };
    for call in 0..calls {
        let fs = SimulatedFs::new();
        create(&fs, &random_writes(), &TUNING).expect("a collection");
        fs.fail_at(fs.calls() + call, InjectedFault::Full);
        let mut story = play(&fs, true);
        assert!(story.maybe.is_none(), "a full disk stops nothing for good");
        // The collection opens on a full disk, and then there is space again.
        let engine =
            open(&fs, TUNING).unwrap_or_else(|error| panic!("full at call {call}: {error}"));
        assert!(story.stands(&engine), "full at call {call}");
        fs.heal();
        let mut random_writes = random_writes();
        random_writes.now = story.model.time;
        story.refused = 0;
        for _ in 0..3 {
            let group = vec![random_writes.batch()];
            story.group(&engine, &group, &random_writes, true);
        }
        assert_eq!(story.refused, 0);
        drop(engine);
        let engine = open(&fs, TUNING).expect("it opens");
        assert!(story.stands(&engine), "full at call {call}, then not");
    }
}

/// Plays the script with a shortage that begins at each call in turn and passes at the end: nothing stops permanently.
fn every_lack(fault: InjectedFault) {
    let calls = {
        let fs = SimulatedFs::new();
        create(&fs, &random_writes(), &TUNING).expect("a collection");
        let before = fs.calls();
        play(&fs, false);
        fs.calls() - before
    };
    for call in 0..calls {
        let fs = SimulatedFs::new();
        create(&fs, &random_writes(), &TUNING).expect("a collection");
        let engine = open(&fs, TUNING).expect("it opens");
        fs.fail_at(fs.calls() + call, fault);
        let mut story = Story {
            model: Model::new(&random_writes().settings),
            maybe: None,
            refused: 0,
        };
        let mut random_writes = random_writes();
        for _ in 0..12 {
            random_writes.pass_time();
            let group: Vec<_> = (0..2).map(|_| random_writes.batch()).collect();
            story.group(&engine, &group, &random_writes, false);
            let _ = engine.flush();
            let _ = engine.merge();
            engine.idle();
        }
        assert_eq!(engine.stopped(), None, "{fault:?} at call {call}");
        // Without a restart.
        fs.heal();
        story.refused = 0;
        for _ in 0..3 {
            story.group(&engine, &[random_writes.batch()], &random_writes, true);
        }
        assert_eq!(story.refused, 0, "{fault:?} at call {call}");
        engine.flush().expect("a flush");
        drop(engine);
        for fs in [fs.copy(), fs.cut(call)] {
            let engine = open(&fs, TUNING).expect("it opens");
            assert!(story.stands(&engine), "{fault:?} at call {call}");
        }
    }
}

#[test]
fn too_many_open_files_at_any_call_stop_nothing_for_good() {
    every_lack(InjectedFault::OutOfFiles);
}

#[test]
fn a_full_disk_at_any_call_stops_nothing_for_good() {
    every_lack(InjectedFault::Full);
}

#[test]
fn deletes_go_on_for_a_while_on_a_full_disk() {
    use crate::document::StoredDocument;
    use crate::operations::{WriteOp, WriteOutcome};
    use lookalike::Fingerprint;
    let fs = SimulatedFs::new();
    let random_writes = random_writes();
    create(
        &fs,
        &random_writes,
        &StoreTuning {
            log_step: 32_768,
            ..TUNING
        },
    )
    .expect("a collection");
    let engine = open(
        &fs,
        StoreTuning {
            log_step: 32_768,
            memory_documents: 1000,
            ..TUNING
        },
    )
    .expect("it opens");
    fs.fill();
    let mut inserted = 0;
    loop {
        let document = StoredDocument::new(format!("{inserted}"), Fingerprint(inserted));
        let heard = commit(
            &engine,
            vec![vec![WriteOp::Insert(document)]],
            random_writes.now,
        )
        .remove(0);
        match heard {
            Ok(_) => inserted += 1,
            Err(error) => {
                assert!(error.is_disk_full());
                assert!(error.to_string().contains("free some space"), "{error}");
                break;
            }
        }
    }
    assert!(inserted > 10);
    for id in 0..10 {
        // In a group with an insert that is refused.
        let insert = WriteOp::Insert(StoredDocument::new("new", Fingerprint(7)));
        let group = vec![vec![insert], vec![WriteOp::Delete(format!("{id}"))]];
        let heard = commit(&engine, group, random_writes.now);
        assert!(heard[0].as_ref().is_err_and(StoreError::is_disk_full));
        assert_eq!(
            heard[1].as_ref().expect("a delete"),
            &[WriteOutcome::Deleted { existed: true }]
        );
    }
    drop(engine);
    let engine = open(&fs, TUNING).expect("it opens");
    assert_eq!(engine.get("3", random_writes.now).expect("a read"), None);
    assert!(
        engine
            .get("11", random_writes.now)
            .expect("a read")
            .is_some()
    );
    assert!(fs.files().contains_key(&Path::new(FOLDER).join("MANIFEST")));
}

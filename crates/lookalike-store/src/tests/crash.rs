//! Power cuts at every call, also while starting again: what was acknowledged is there, and of the group that was being
//! written all or nothing.

use std::path::Path;

use super::dice::Dice;
use super::model::Model;
use super::peace::{FOLDER, IDENTITY, commit, compare_all, create, open, share};
use super::world::World;
use crate::engine::{Engine, Tuning};
use crate::fs::{Crash, Lie, SimulatedFs};
use crate::seal;

/// A life and all its crashes.
struct Life {
    world: World,
    tuning: Tuning,
    /// What stands after each acknowledged group.
    history: Vec<Model>,
    crashes: Vec<Crash>,
}

/// Some groups of writes, with everything that happens behind the scenes between them.
fn live(seed: u64, lie: Option<Lie>) -> Life {
    let mut world = World::new(seed, 12);
    let mut tuning = world.tuning();
    tuning.memory_documents = 4 + world.dice.below(12) as usize;
    if !world.dice.one_in(6) {
        // Tables in files take long to plan; most lives do without.
        tuning.small_run = tuning.small_run.max(100);
    }
    let fs = SimulatedFs::new();
    let mut history = vec![Model::new(&world.settings)];
    create(&fs, &world, &tuning).expect("a collection");
    fs.lie(lie);
    fs.record();
    let mut engine = open(&fs, tuning).expect("it opens");
    for step in 0..6 + world.dice.below(12) {
        world.pass_time();
        let group: Vec<_> = (0..1 + world.dice.below(3))
            .map(|_| world.batch())
            .collect();
        let mut model = history.last().cloned().expect("the beginning");
        let now = model.now(world.now);
        let expected: Vec<_> = group.iter().map(|batch| model.write(batch, 2)).collect();
        // A cut within the call finds the state after it, or the one before.
        history.push(model);
        let heard = commit(&engine, group, now, 2);
        fs.mark(step + 1);
        for (heard, expected) in heard.into_iter().zip(expected) {
            assert_eq!(heard.expect("a write"), expected, "seed {seed}");
        }
        match world.dice.below(7) {
            0 | 1 => drop(engine.flush().expect("a flush")),
            2 => drop(engine.merge().expect("a merge")),
            3 => engine.compact().expect("a merge of all"),
            4 => engine.seal_log().expect("a new log"),
            5 if world.dice.one_in(2) => {
                if world.dice.one_in(2) {
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
        world,
        tuning,
        history,
        crashes,
    }
}

impl Life {
    /// Starts again after a cut; why what is there is not what should be.
    fn survives(&self, crash: &Crash, seed: u64) -> Result<u64, String> {
        let mut dice = Dice::new(seed);
        if dice.one_in(6) {
            return self.survives_a_kill(crash, &mut dice).map(|()| 1);
        }
        let mut fs = crash.cut(dice.roll());
        let mut cuts = 1;
        if dice.one_in(8) {
            // The power fails again while the collection is opened and put in order.
            fs.record();
            let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
            let _ = engine.flush().and_then(|_| engine.merge());
            let crashes = fs.recorded();
            let at = dice.below(crashes.len() as u64) as usize;
            fs = crashes[at].cut(dice.roll());
            cuts += 1;
        }
        let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
        let mark = crash.mark as usize;
        let mut possible = self.history[mark..].iter().take(2);
        let model = possible.find(|model| is(&engine, model));
        let model = model
            .ok_or_else(|| format!("after group {mark}: neither it nor the next one stands"))?;
        if dice.one_in(16) {
            self.goes_on(&fs, engine, model.clone(), &mut dice);
        }
        Ok(cuts)
    }

    /// The process is killed, another one starts and shows what it finds, and then the power fails.
    fn survives_a_kill(&self, crash: &Crash, dice: &mut Dice) -> Result<(), String> {
        let fs = crash.kill();
        let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
        let mut possible = self.history[crash.mark as usize..].iter().take(2);
        let shown = possible.find(|model| is(&engine, model));
        let shown = shown.ok_or("after a kill: neither the last group nor the next one stands")?;
        fs.record();
        let _ = engine.flush().and_then(|_| engine.merge());
        drop(engine);
        let crashes = fs.recorded();
        let fs = crashes[dice.below(crashes.len() as u64) as usize].cut(dice.roll());
        let engine = open(&fs, self.tuning).map_err(|error| error.to_string())?;
        if is(&engine, shown) {
            Ok(())
        } else {
            Err("what was shown after a kill is gone after a power cut".to_owned())
        }
    }

    /// What has started again is as good as new.
    fn goes_on(&self, fs: &SimulatedFs, engine: Engine, mut model: Model, dice: &mut Dice) {
        let mut world = self.world.clone();
        world.dice = dice.clone();
        for _ in 0..4 {
            world.pass_time();
            let (batch, now) = (world.batch(), model.now(world.now));
            let heard = commit(&engine, vec![batch.clone()], now, 2).remove(0);
            assert_eq!(heard.expect("a write"), model.write(&batch, 2));
        }
        engine.flush().expect("a flush");
        compare_all(&engine, &mut model, &mut world);
        engine.close().expect("an end");
        drop(engine);
        crate::engine::verify(fs, Path::new(FOLDER), IDENTITY).expect("whole");
        let engine = open(fs, self.tuning).expect("it opens");
        compare_all(&engine, &mut model, &mut world);
    }

    /// Cuts the power at each recorded call, some times each; how often, and the first failure.
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

fn is(engine: &Engine, model: &Model) -> bool {
    let mut all = Vec::new();
    let read = engine.for_each(model.time, &mut |document| {
        all.push(document);
        Ok(())
    });
    read.expect("all documents are read");
    all == model.all()
}

#[test]
fn no_acknowledged_write_is_lost_in_any_power_cut() {
    let wanted = share(100_000);
    let run = |first: u64| {
        let (mut cuts, mut seed) = (0, first);
        while cuts < wanted / 2 {
            let life = live(seed, None);
            let (made, failure) = life.crash(3, seed);
            assert_eq!(failure, None, "seed {seed}");
            cuts += made;
            seed += 2;
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0));
        run(1);
    });
}

/// Whether crashes show that something is wrong with the store.
fn is_found(lie: Option<Lie>) -> bool {
    (0..200).any(|seed| {
        let found = std::panic::catch_unwind(|| live(seed, lie).crash(2, seed).1.is_some());
        found.unwrap_or(true)
    })
}

#[test]
fn planted_bugs_are_found() {
    assert!(
        is_found(Some(Lie::Sync)),
        "acknowledged before it is durable"
    );
    assert!(
        is_found(Some(Lie::SyncDir)),
        "names that are not made durable"
    );
    seal::blind(true);
    let found = is_found(None);
    seal::blind(false);
    assert!(found, "no checks");
}

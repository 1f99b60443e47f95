//! Random work on a medium without faults, with merges, snapshots and restarts at any time: every answer must equal that of the model.

use std::path::Path;
use std::sync::Arc;

use lookalike_hamming::threads::map_parallel;

use super::model::Model;
use super::random_writes::RandomWrites;
use crate::document::ContentKey;
use crate::engine::{CollectionEngine, CollectionSecrets, WriteRequest};
use crate::error::Result;
use crate::fs::{FileSystem, SimulatedFs};
use crate::operations::{NeighbourPage, WriteOp, WriteOutcome};
use crate::settings::StoreTuning;
use crate::time::UnixMillis;
use crate::write_receipt::WriteReceipt;

pub(crate) const FOLDER: &str = "/c";
pub(crate) const IDENTITY: u64 = 42;

pub(crate) fn create(
    fs: &SimulatedFs,
    random_writes: &RandomWrites,
    tuning: &StoreTuning,
) -> Result<()> {
    fs.create_dir(Path::new(FOLDER)).expect("a folder");
    fs.sync_dir(Path::new("/")).expect("its name");
    CollectionEngine::create(
        fs,
        Path::new(FOLDER),
        &random_writes.settings,
        &random_writes.parts,
        CollectionSecrets {
            identity: IDENTITY,
            key: 4711,
        },
        tuning,
    )
}

pub(crate) fn open(fs: &SimulatedFs, tuning: StoreTuning) -> Result<CollectionEngine> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    CollectionEngine::open(fs, Path::new(FOLDER), IDENTITY, tuning).map(|(engine, _)| engine)
}

/// Commits requests as one group, and returns the result of each.
pub(crate) fn commit(
    engine: &CollectionEngine,
    group: Vec<Vec<WriteOp>>,
    now: UnixMillis,
) -> Vec<Result<Vec<WriteOutcome>>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let requests = group.into_iter().enumerate().map(|(at, writes)| {
        let sender = sender.clone();
        let done = Box::new(move |result: Result<WriteReceipt>| {
            let outcomes = result.and_then(WriteReceipt::outcomes);
            let heard = outcomes.map(|outcomes| outcomes.into_iter().map(without_cursor).collect());
            sender.send((at, heard)).expect("the test listens");
        });
        WriteRequest {
            writes,
            time: now.into(),
            done,
        }
    });
    engine.commit(requests.collect());
    drop(sender);
    let mut heard: Vec<_> = receiver.iter().collect();
    heard.sort_by_key(|(at, _)| *at);
    heard.into_iter().map(|(_, result)| result).collect()
}

/// Removes the cursor from an outcome, because the model has none.
fn without_cursor(mut outcome: WriteOutcome) -> WriteOutcome {
    if let WriteOutcome::Checked { answer, .. } = &mut outcome {
        assert_eq!(answer.next.is_some(), answer.more);
        answer.next = None;
    }
    outcome
}

/// Compares all kinds of answers with the model.
pub(crate) fn compare_all(
    engine: &CollectionEngine,
    model: &mut Model,
    random_writes: &mut RandomWrites,
) {
    let now = model.now(random_writes.now);
    let mut all = Vec::new();
    engine
        .for_each::<crate::StoreError>(now, &mut |document| {
            all.push(document);
            Ok(())
        })
        .expect("all documents are read");
    assert_eq!(all, model.all());
    for document in &all {
        let found = engine.get(&document.id, now).expect("a read");
        assert_eq!(found.as_deref(), Some(document));
    }
    (0..10).for_each(|_| compare(engine, model, random_writes));
}

/// Compares some answers with the model.
pub(crate) fn compare(
    engine: &CollectionEngine,
    model: &mut Model,
    random_writes: &mut RandomWrites,
) {
    let now = model.now(random_writes.now);
    let (code, id) = (random_writes.code(), random_writes.id());
    let scope = random_writes.scope();
    let limit = [0, 1, 5, 100][random_writes.rng.below(4) as usize];
    assert_eq!(engine.stats().documents, model.count() as u64);
    let content = random_writes.content(code);
    let expected = model.query(&content, scope, limit, None);
    let found = engine.query(&content, scope, now, limit.into());
    let mut found = found.expect("a query");
    let next = found.next.take();
    assert_eq!(found, expected, "near {code:016x} within {scope:?}");
    if let Some(after) = next {
        // Read page by page what the first page left out, even if that is everything.
        let mut page = NeighbourPage {
            limit: limit.max(1),
            after: Some(after),
        };
        while page.after.is_some() {
            let more = engine.query(&content, scope, now, page).expect("a page");
            assert_eq!(
                (more.verdict, &more.copy_of),
                (found.verdict, &found.copy_of)
            );
            found.neighbours.extend(more.neighbours);
            page.after = more.next;
        }
        let all = model.query(&content, scope, usize::MAX, None);
        assert_eq!(found.neighbours, all.neighbours);
    }
    let code = random_writes.code();
    let other = ContentKey::from(random_writes.sketch(code));
    let verdicts = engine.check_many(&[content, other.clone()], scope, now);
    let far = model.query(&other, scope, 0, None);
    assert_eq!(verdicts.expect("a check"), [expected.verdict, far.verdict]);
    assert_eq!(engine.get(&id, now).expect("a read"), model.get(&id));
    if random_writes.settings.keep.paragraphs {
        let paragraph = random_writes.paragraph();
        let radius = scope.radius.min(random_writes.settings.paragraph_radius());
        let mut lookup = engine.paragraph_lookup(radius, now).expect("a lookup");
        let found = lookup.find(paragraph, limit);
        let expected = model.paragraph(&paragraph, radius, limit);
        assert_eq!(found.expect("a read"), expected);
    }
}

/// Maximum number of memtables that may wait for a flush.
const MAX_WAITING: usize = 12;

/// Performs random operations: writes, and as many reads.
pub(crate) fn live(mut random_writes: RandomWrites, operations: u64) {
    let seed = random_writes.seed;
    let tuning = random_writes.tuning();
    let mut model = Model::new(&random_writes.settings);
    let fs = SimulatedFs::new();
    create(&fs, &random_writes, &tuning).expect("a collection");
    let mut engine = open(&fs, tuning).expect("it opens");
    let mut done = 0;
    while done < operations {
        random_writes.pass_time();
        let group: Vec<_> = (0..1 + random_writes.rng.below(3))
            .map(|_| random_writes.batch())
            .collect();
        let now = model.now(random_writes.now);
        for (batch, heard) in group.clone().iter().zip(commit(&engine, group, now)) {
            assert_eq!(heard.expect("a write"), model.write(batch), "seed {seed}");
            done += batch.len() as u64;
        }
        compare(&engine, &mut model, &mut random_writes);
        done += 1;
        // Wait for flushes as the writer of a collection does, so that memtables do not pile up.
        while engine.pending_flushes() > MAX_WAITING {
            engine.flush().expect("a flush");
        }
        match random_writes.rng.below(60) {
            0..=9 => drop(engine.flush().expect("a flush")),
            10..=19 => drop(engine.merge().expect("a merge")),
            24 => engine.end_expired_memory().expect("an end"),
            20 => engine.compact().expect("a merge of all"),
            21 => {
                engine.close().expect("an end");
                drop(engine);
                crate::engine::verify(&fs, Path::new(FOLDER), IDENTITY).expect("whole");
                engine = open(&fs, tuning).expect("it opens");
                compare_all(&engine, &mut model, &mut random_writes);
            }
            22 => {
                drop(engine);
                engine = open(&fs, tuning).expect("it opens");
            }
            23 if random_writes.rng.one_in(4) => {
                snapshot(&fs, &engine, &mut model, &mut random_writes, tuning)
            }
            _ => {}
        }
    }
    while engine.flush().expect("a flush") {}
    while engine.merge().expect("a merge") {}
    compare_all(&engine, &mut model, &mut random_writes);
}

/// Takes a snapshot and checks that it is an independent collection.
fn snapshot(
    fs: &SimulatedFs,
    engine: &CollectionEngine,
    model: &mut Model,
    random_writes: &mut RandomWrites,
    tuning: StoreTuning,
) {
    let folder = Path::new("/snapshot");
    fs.create_dir(folder).expect("a folder");
    engine.snapshot(folder).expect("a snapshot");
    crate::engine::verify(fs, folder, IDENTITY).expect("whole");
    let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let (copy, recovery) =
        CollectionEngine::open(shared, folder, IDENTITY, tuning).expect("it opens");
    assert!(recovery.clean);
    compare_all(&copy, model, random_writes);
    fs.remove_dir(folder).expect("gone");
}

/// Scales an amount of work by the percentage in an environment variable, which `scripts/crash-campaign` raises.
pub(crate) fn share(of: u64) -> u64 {
    let percent = std::env::var("STORE_TEST_PERCENT")
        .ok()
        .and_then(|text| text.parse().ok());
    (of * percent.unwrap_or(100_u64)).div_ceil(100)
}

#[test]
#[expect(clippy::print_stdout, reason = "the campaign shows how far it is")]
fn every_answer_is_that_of_the_model() {
    let each = share(4000);
    let run = |from: u64| {
        for seed in (from..50).step_by(2) {
            live(RandomWrites::new(seed, 200), each);
            println!("seed {seed}: {each} operations, every answer equal");
        }
    };
    map_parallel(0..2, run);
}

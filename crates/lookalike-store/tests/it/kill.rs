//! A writing process is killed at any moment, including while it starts: the writes that it reported survive, and batches survive only as a
//! whole.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lookalike::{Fingerprint, Scheme};
use lookalike_store::{
    CollectionSettings, Store, StoreError, StoreOptions, StoreTuning, StoredDocument, UnixMillis,
    WriteOp, verify,
};

const FOLDER: &str = "STORE_KILL_FOLDER";
const NOW: UnixMillis = UnixMillis(1_000_000);
/// Number of documents in a batch.
const BATCH: u64 = 3;
/// Number of newest batches that are kept: older ones are deleted.
const KEPT: u64 = 200;

fn open(folder: &Path) -> Store {
    let tuning = StoreTuning::default()
        .memory_documents(16)
        .log_step(4096)
        .fan_out(2)
        .small_run(100);
    Store::open(folder, StoreOptions::default().create(true).tuning(tuning)).expect("it opens")
}

fn id(batch: u64, at: u64) -> String {
    format!("{batch}/{at}")
}

fn code(batch: u64, at: u64) -> Fingerprint {
    Fingerprint((batch * BATCH + at).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Runs as the process to be killed, but only when the other test starts it.
#[test]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut out = std::io::stdout();
    writeln!(out, "opening").expect("somebody listens");
    let store = open(Path::new(&folder));
    let settings = CollectionSettings::new(&Scheme::default());
    let pages = store
        .create_collection("pages", &settings)
        .expect("a collection");
    let first = pages.get("next", NOW).expect("a read");
    let first = first.map_or(0, |next| next.fingerprint.expect("a number").0);
    writeln!(out, "open {first}").expect("somebody listens");
    for batch in first.. {
        let inserts = (0..BATCH)
            .map(|at| WriteOp::Insert(StoredDocument::new(id(batch, at), code(batch, at))));
        let next = WriteOp::Insert(StoredDocument::new("next", Fingerprint(batch + 1)));
        let old = batch.checked_sub(KEPT);
        let deletes = old
            .into_iter()
            .flat_map(|old| (0..BATCH).map(move |at| WriteOp::Delete(id(old, at))));
        let writes = inserts.chain([next]).chain(deletes).collect();
        pages.write(writes, NOW).expect("a write");
        writeln!(out, "{batch}").expect("somebody listens");
    }
}

/// Starts a writer and kills it, while it opens the store if `early`. Updates the number of batches that are certain to be durable.
fn run(folder: &Path, certain: &mut u64, early: bool, after: Duration) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["kill::writer", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let begins = if early { "opening" } else { "open " };
    for line in lines.by_ref().map_while(Result::ok) {
        if line.contains(begins) {
            break;
        }
    }
    let started = Instant::now();
    std::thread::sleep(after.saturating_sub(started.elapsed()));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    // Lines left in the pipe were written before the kill.
    for line in lines.map_while(Result::ok) {
        if let Ok(batch) = line.trim().parse::<u64>() {
            *certain = (*certain).max(batch + 1);
        }
    }
}

fn check(folder: &Path, certain: u64) -> usize {
    for (name, found) in verify(folder).expect("a store") {
        found.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let store = open(folder);
    let Ok(pages) = store.collection("pages") else {
        assert_eq!(certain, 0);
        return 0;
    };
    let removed = pages
        .recovery()
        .removed
        .iter()
        .filter(|name| name.ends_with(".run"))
        .count();
    let next = pages.get("next", NOW).expect("a read");
    let next = next.map_or(0, |next| next.fingerprint.expect("a number").0);
    assert!(next >= certain, "{next} batches are left of {certain}");
    let mut count = 0;
    pages
        .for_each(NOW, &mut |_| {
            count += 1;
            Ok::<_, StoreError>(())
        })
        .expect("all documents are read");
    assert_eq!(count, next.min(KEPT) * BATCH + u64::from(next > 0));
    for batch in next.saturating_sub(KEPT)..next {
        for at in 0..BATCH {
            let found = pages
                .get(&id(batch, at), NOW)
                .expect("a read")
                .expect("it was written");
            assert_eq!(found.fingerprint, Some(code(batch, at)));
        }
    }
    // The lock ends with its process, so the next process can open the store without a clean shutdown.
    drop(pages);
    drop(store);
    removed
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the campaign shows where the kills fell"
)]
fn nothing_is_lost_when_the_process_is_killed() {
    let cycles: u64 = std::env::var("STORE_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    let folder = tempfile::tempdir().expect("a folder");
    let (mut certain, mut in_run, mut in_open) = (0, 0, 0);
    for cycle in 0..cycles {
        let early = cycle % 3 == 2;
        // After between a fraction of a millisecond and a tenth of a second.
        let micros = if early {
            100 + cycle * 977 % 8000
        } else {
            3000 + cycle * 7919 % 97_000
        };
        run(
            folder.path(),
            &mut certain,
            early,
            Duration::from_micros(micros),
        );
        in_open += u64::from(early);
        in_run += u64::from(check(folder.path(), certain) > 0);
    }
    println!(
        "{cycles} kills, {in_run} of them while a run was made, {in_open} while starting; {certain} batches"
    );
    assert!(certain > cycles, "{certain}");
}

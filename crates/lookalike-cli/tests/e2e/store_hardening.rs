//! The data directory of a service under attack and after failures: crafted snapshots, damage after a crash, a medium that is not mounted, too few
//! file descriptors.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use lookalike::hash::xxh3_64;
use serde_json::{Value, json};

use crate::serve::Service;
use crate::support::{Finish as _, Finished, Folder, lookalike};

fn store(words: &[&str], paths: &[&Path]) -> Command {
    let mut command = lookalike("store");
    command.args(words).args(paths);
    command
}

fn documents(group: usize, count: usize) -> Value {
    let one = |at: usize| {
        let code = ((group * 1000 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        json!({"id": format!("g{group}-{at:03}"), "fingerprint": format!("{code:016x}")})
    };
    (0..count).map(one).collect()
}

/// Starts a service, writes three groups of a hundred documents, and kills it after some seconds without writes, as a crash would.
fn crashed(data: &Path) {
    let service = Service::start(data, &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    for group in 0..3 {
        service.pages("insert", &documents(group, 100));
    }
    // The log is closed behind the last group after a twentieth of a second, or as long as the disk takes to sync.
    std::thread::sleep(Duration::from_secs(3));
    service.kill();
}

/// Returns the path and bytes of the collection's newest file of a kind.
fn newest(data: &Path, kind: &str) -> (PathBuf, Vec<u8>) {
    let folder = data.join("collections/pages");
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let of_kind = paths.filter(|path| path.extension().is_some_and(|it| it == kind));
    let path = of_kind.max().unwrap();
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    let mut places = bytes.windows(wanted.len());
    places.position(|window| window == wanted).unwrap()
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at as u64).unwrap();
}

#[test]
fn a_flipped_bit_in_the_last_group_is_damage_after_a_crash() {
    let folder = Folder::new();
    let data = folder.path("data");
    crashed(&data);
    let (log, bytes) = newest(&data, "log");
    let at = find(&bytes, b"g2-050");
    overwrite(&log, at, &[bytes[at] ^ 1]);
    let told = store(&["verify"], &[&data]).fail(1);
    assert_eq!(told.lines()[0]["state"], "damaged");
    // The service does not serve the collection as if these documents had never existed either.
    let service = Service::start(&data, &[]);
    let (status, answer) = service.ask("GET", "/readyz", &Value::Null);
    assert_eq!(
        (status, &answer["collections"][0]["state"]),
        (503, &json!("damaged"))
    );
    service.stop();
}

#[test]
fn a_write_that_a_crash_interrupted_is_called_torn_and_recovery_keeps_what_it_found() {
    let folder = Folder::new();
    let data = folder.path("data");
    crashed(&data);
    let (log, bytes) = newest(&data, "log");
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    overwrite(
        &log,
        end.next_multiple_of(512),
        b"LKFR and then the power failed",
    );
    let found = fs::read(&log).unwrap();
    let told = store(&["verify"], &[&data]).succeed();
    assert_eq!(told.lines()[0]["state"], "torn", "{}", told.err);
    told.says(&["never acknowledged"]);
    let service = Service::start(&data, &[]);
    let (_, shown) = service.ask("GET", "/v1/collections/pages", &Value::Null);
    assert_eq!(shown["documents"], 300);
    let (newer, _) = newest(&data, "log");
    assert_ne!(newer, log, "it goes on in a new log");
    assert!(!log.exists() || fs::read(&log).unwrap() == found);
    service.stop();
    assert_eq!(
        store(&["verify"], &[&data]).succeed().lines()[0]["state"],
        "whole"
    );
}

/// Returns the first line of a file with a checksum.
fn line(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// Adds a checksum as the store does; anyone can compute it.
fn checked(value: &Value) -> Vec<u8> {
    let line = format!("{value}\n");
    let check = xxh3_64(line.as_bytes(), 0);
    format!("{line}check {check:016x}\n").into_bytes()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns everything below a folder, with the bytes of files.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(everything(&path));
            all.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            all.insert(path, Some(bytes));
        }
    }
    all
}

/// Makes a snapshot with one document in `snapshot` below the folder.
fn snapshot(folder: &Folder) -> PathBuf {
    let data = folder.path("data");
    let service = Service::start(&data, &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    service.pages("insert", &documents(0, 1));
    service.stop();
    let snapshot = folder.path("snapshot");
    store(&["snapshot"], &[&data, &snapshot]).succeed();
    snapshot
}

#[test]
fn a_crafted_snapshot_writes_nothing_outside_its_target() {
    let folder = Folder::new();
    let honest = snapshot(&folder);
    let precious = folder.add("precious.txt", b"precious data\n");
    let sum = |bytes: &[u8]| json!([bytes.len(), xxh3_64(bytes, 0)]);
    // The file exists where the crafted name says, and its checksum is right.
    fs::create_dir_all(folder.path("crafted/deep")).unwrap();
    folder.add("crafted/cron", b"evil\n");
    fs::create_dir_all(folder.path("out/deep")).unwrap();
    let cases = [
        (
            precious.to_str().unwrap().to_owned(),
            sum(b"precious data\n"),
        ),
        ("collections/../../../cron".to_owned(), sum(b"evil\n")),
        (
            "collections/pages/../../../../cron".to_owned(),
            sum(b"evil\n"),
        ),
        ("../../cron".to_owned(), sum(b"evil\n")),
        ("SNAPSHOT".to_owned(), sum(b"")),
        ("collections/pages/other.txt".to_owned(), sum(b"evil\n")),
        ("collections/Pages/MANIFEST".to_owned(), sum(b"evil\n")),
    ];
    for (name, sum) in cases {
        let crafted = folder.path("crafted/deep/snapshot");
        copy(&honest, &crafted);
        let mut list = line(&crafted.join("SNAPSHOT"));
        list["files"][&name] = sum;
        fs::write(crafted.join("SNAPSHOT"), checked(&list)).unwrap();
        let before = everything(&folder.path(""));
        let refused = store(&["restore"], &[&crafted, &folder.path("out/deep/data")]).fail(1);
        refused.says(&["is not the name of a file of a snapshot"]);
        assert_eq!(everything(&folder.path("")), before, "{name}");
        fs::remove_dir_all(crafted).unwrap();
    }
}

#[test]
fn a_store_in_place_of_a_snapshot_was_called_damaged() {
    let folder = Folder::new();
    snapshot(&folder);
    store(&["restore"], &[&folder.path("data"), &folder.path("new")])
        .fail(1)
        .says(&["data: this is a store, not a snapshot of one"]);
}

#[test]
fn a_collection_whose_name_is_a_path_is_refused_wherever_a_catalog_is_read() {
    let folder = Folder::new();
    let honest = snapshot(&folder);
    let data = folder.path("data");
    for name in ["../../outside", "/tmp/outside", "", ".", "Pages"] {
        let crafted = folder.path("crafted");
        copy(&honest, &crafted);
        let mut catalog = line(&crafted.join("CATALOG"));
        catalog["collections"][name] = json!(5);
        let catalog = checked(&catalog);
        fs::write(crafted.join("CATALOG"), &catalog).unwrap();
        let mut list = line(&crafted.join("SNAPSHOT"));
        list["files"]["CATALOG"] = json!([catalog.len(), xxh3_64(&catalog, 0)]);
        fs::write(crafted.join("SNAPSHOT"), checked(&list)).unwrap();
        let before = everything(&folder.path(""));
        let restored = folder.path("restored");
        store(&["restore"], &[&crafted, &restored])
            .fail(1)
            .says(&["is not a valid name of a collection"]);
        assert_eq!(everything(&folder.path("")), before, "{name:?}");
        fs::remove_dir_all(&crafted).unwrap();

        let honest = fs::read(data.join("CATALOG")).unwrap();
        fs::write(data.join("CATALOG"), &catalog).unwrap();
        let refused: [Finished; 2] = [
            store(&["verify"], &[&data]).fail(1),
            lookalike("serve")
                .args(["--listen", "127.0.0.1:0", "--data"])
                .arg(&data)
                .fail(1),
        ];
        assert!(
            refused
                .iter()
                .all(|refused| refused.err.contains("is not a valid name of a collection"))
        );
        fs::write(data.join("CATALOG"), honest).unwrap();
    }
}

#[test]
fn a_store_that_cannot_be_made_gave_no_remedy() {
    let folder = Folder::new();
    let file = folder.add("file", "");
    let mut serve = lookalike("serve");
    serve
        .args(["--listen", "127.0.0.1:0", "--data"])
        .arg(file.join("data"));
    let refused = serve.fail(1);
    refused.says(&["creating the store", "check that the directory of --data"]);
}

#[test]
fn a_store_that_is_not_mounted_is_not_begun_anew() {
    let folder = Folder::new();
    let (data, empty) = (folder.path("data"), folder.path("empty"));
    let service = Service::start(&data, &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    service.stop();
    fs::create_dir(&empty).unwrap();
    let serve = |data: &Path, words: &[&str]| {
        let mut command = lookalike("serve");
        command
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(words);
        command
    };
    serve(&empty, &["--require-existing"])
        .fail(1)
        .says(&["there is no store in this directory", "mounted"]);
    let shown = store(&["info"], &[&data]).succeed().json();
    assert_eq!(shown["collections"], json!(["pages"]));
    let identity = shown["identity"].as_str().unwrap();
    serve(&empty, &["--store-id", identity])
        .fail(1)
        .says(&["there is no store in this directory"]);
    // Not even a lock: the next mount may refuse a directory that holds something.
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    let missing = folder.path("missing");
    serve(&missing, &["--store-id", identity])
        .fail(1)
        .says(&["there is no store in this directory"]);
    assert!(!missing.exists());
    // Another store is not served in its place either.
    let other = folder.path("other");
    Service::start(&other, &[]).stop();
    serve(&other, &["--store-id", identity])
        .fail(1)
        .says(&[identity, "mounted"]);
    Service::start(&data, &["--require-existing", "--store-id", identity]).stop();
    // A restored snapshot of the store counts as the same store.
    let (made, restored) = (folder.path("made"), folder.path("restored"));
    store(&["snapshot"], &[&data, &made]).succeed();
    store(&["restore"], &[&made, &restored]).succeed();
    Service::start(&restored, &["--store-id", identity]).stop();
}

#[test]
fn the_data_is_nobody_elses() {
    let folder = Folder::new();
    let (data, snapshots) = (folder.path("data"), folder.path("snapshots"));
    let service = Service::start(&data, &["--snapshots", snapshots.to_str().unwrap()]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    service.ask("POST", "/v1/snapshots", &json!({"name": "monday"}));
    service.stop();
    for path in [
        &data,
        &data.join("collections/pages"),
        &snapshots,
        &snapshots.join("monday"),
    ] {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }
}

#[test]
fn verify_writes_nothing() {
    let folder = Folder::new();
    let data = folder.path("data");
    crashed(&data);
    // Simulate a copy on a read-only medium, which was never locked.
    fs::remove_file(data.join("LOCK")).unwrap();
    let before = everything(&data);
    store(&["verify"], &[&data]).succeed();
    assert_eq!(everything(&data), before);
}

/// Returns a command that runs with the folder mounted read-only, even for root, or `None` if mounting is not permitted.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "a test that was skipped says so")]
fn mounted_to_read(data: &Path) -> Option<Command> {
    let mounted = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\"";
    let in_it = |line: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", line]).arg(data);
        command
    };
    let refused = format!("{mounted} && ! touch \"$0/anything\"");
    if !in_it(&refused)
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped: nobody may mount a folder here");
        return None;
    }
    let mut command = in_it(&format!("{mounted} && exec \"$@\""));
    command.arg(lookalike("store").get_program());
    Some(command)
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_on_a_medium_that_cannot_be_written_is_verified() {
    let folder = Folder::new();
    let data = folder.path("data");
    crashed(&data);
    for is_locked in [true, false] {
        if !is_locked {
            fs::remove_file(data.join("LOCK")).unwrap();
        }
        let Some(mut command) = mounted_to_read(&data) else {
            return;
        };
        let verified = command.args(["store", "verify"]).arg(&data).succeed();
        let said = String::from_utf8_lossy(&verified.out);
        assert!(said.contains("pages"), "{said}");
    }
    let (log, bytes) = newest(&data, "log");
    overwrite(&log, find(&bytes, b"g1-050"), b"G");
    let Some(mut command) = mounted_to_read(&data) else {
        return;
    };
    command.args(["store", "verify"]).arg(&data).fail(1);
}

fn limited(files: u32, data: &Path, words: &str) -> Command {
    let binary = lookalike("serve").get_program().to_owned();
    let line = format!(
        "ulimit -n {files}; exec \"$0\" serve --listen 127.0.0.1:0 --header-timeout 1 --data \"$1\" {words}"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).arg(binary).arg(data);
    command
}

#[test]
fn more_connections_than_files_are_refused_at_the_start() {
    let folder = Folder::new();
    let refused = limited(300, &folder.path("data"), "--max-connections 6000").fail(1);
    refused.says(&["too many open files", "--max-connections 236"]);
    Service::run(limited(300, &folder.path("data"), "--max-connections 236")).stop();
}

#[test]
fn the_connections_that_a_refusal_advised_were_refused_with_health_checks() {
    let folder = Folder::new();
    let start = |connections: u32| {
        let words = format!("--health-listen 127.0.0.1:0 --max-connections {connections}");
        limited(300, &folder.path("data"), &words)
    };
    // 64 of them are for health checks.
    start(236).fail(1).says(&["--max-connections 172"]);
    Service::run(start(172)).stop();
}

#[test]
fn a_soft_limit_on_files_is_raised() {
    let folder = Folder::new();
    let service = Service::run({
        let binary = lookalike("serve").get_program().to_owned();
        let line = "ulimit -S -n 100; exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"";
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .arg(binary)
            .arg(folder.path("data"));
        command
    });
    service.stop();
}

#[test]
fn a_collection_goes_on_taking_writes_when_files_run_out() {
    let folder = Folder::new();
    let service = Service::run(limited(1000, &folder.path("data"), "--max-connections 100"));
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    // To the service it looks as if another process used up the files.
    let open = fs::read_dir(format!("/proc/{}/fd", service.child.id()))
        .unwrap()
        .count();
    let lowered = Command::new("prlimit")
        .args(["--pid", &service.child.id().to_string()])
        .arg(format!("--nofile={}:1000", open + 2))
        .status();
    assert!(lowered.unwrap().success());
    let mut answers = Vec::new();
    for group in 0..6 {
        let (status, _) = service.try_ask("/v1/collections/pages/insert", &documents(group, 10));
        answers.push(status);
        service.try_ask("/v1/collections/pages/compact", &Value::Null);
        std::thread::sleep(Duration::from_millis(300));
    }
    let raised = Command::new("prlimit")
        .args([
            "--pid",
            &service.child.id().to_string(),
            "--nofile=1000:1000",
        ])
        .status();
    assert!(raised.unwrap().success());
    // What failed is tried again after some seconds.
    let begun = Instant::now();
    loop {
        let (status, answer) = service.ask("GET", "/readyz", &Value::Null);
        if status == 200 {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{answer} after {answers:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    service.pages("insert", &documents(9, 10));
    service.stop();
}

#[test]
fn a_service_whose_folder_was_moved_overwrote_the_store_at_its_path() {
    let folder = Folder::new();
    let data = folder.path("data");
    let first = Service::start(&data, &[]);
    first.ask("PUT", "/v1/collections/pages", &json!({}));
    first.pages("insert", &documents(0, 10));
    fs::rename(&data, folder.path("moved")).unwrap();
    let second = Service::start(&data, &[]);
    second.ask("PUT", "/v1/collections/pages", &json!({}));
    second.pages("insert", &documents(1, 100));
    // It would write files and a manifest of its own.
    let (status, answer) = first.ask("POST", "/v1/collections/pages/compact", &json!({}));
    assert_ne!(status, 200, "{answer}");
    first.signal("TERM");
    let ended = first.ended();
    assert!(ended.said.contains("moved or replaced"), "{}", ended.said);
    second.kill();
    let found = store(&["verify"], &[&data]).succeed();
    assert_eq!(found.json()["state"], "whole");
    let again = Service::start(&data, &[]);
    let (_, known) = again.ask("GET", "/v1/collections/pages", &json!({}));
    assert_eq!(known["documents"], 100, "{known}");
    again.stop();
}

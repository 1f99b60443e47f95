//! A file of records that changes while it is read: it is reported as lost, and the job continues.
//!
//! The job is stopped in the middle of the file. In a file of lines, the records are followed by a gap that takes a while to read; other formats have
//! many records instead.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::losses::readers;
use crate::results::Results;
use crate::support::{Finished, Folder, Numbers, lookalike, record};

/// Length in bytes of the file that changes; everything after the records at its start is a gap.
const LENGTH: u64 = 128 << 20;

const RECORDS: usize = 2000;

/// Writes two files to a folder: `a.jsonl`, which will change, and `b.jsonl`, which has the first texts of the other.
fn two_files(folder: &Folder) -> [PathBuf; 2] {
    let mut numbers = Numbers(11);
    let texts: Vec<String> = (0..RECORDS).map(|_| numbers.words(30, 100_000)).collect();
    let lines = |name: &str, texts: &[String]| -> String {
        let line = |(number, text): (usize, &String)| record(&format!("{name}{number}"), text);
        texts.iter().enumerate().map(line).collect()
    };
    let changing = folder.add("in/a.jsonl", lines("a", &texts));
    let file = OpenOptions::new().write(true).open(&changing).unwrap();
    file.set_len(LENGTH).unwrap();
    let other = folder.add("in/b.jsonl", lines("b", &texts[..10]));
    [changing, other]
}

/// Truncates a file to a length before the current read position.
fn truncate(file: &Path) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length / 128).unwrap();
}

fn grow(file: &Path) {
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    file.write_all(record("late", "a text that came late").as_bytes())
        .unwrap();
}

fn replace(file: &Path) {
    let other = file.with_extension("new");
    fs::write(&other, record("new", "the text of another file")).unwrap();
    fs::rename(other, file).unwrap();
}

/// Number of bytes that a job reads at a time when it reads a table again to hash its contents, after all records are read.
const SUM_PIECE: u64 = 1 << 20;

/// Returns the offset at which a process reads a file, or `None` if it has not opened it.
fn reads_at(process: u32, file: &Path) -> Option<u64> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let mut open = open.filter(|open| fs::read_link(open.path()).is_ok_and(|to| to == file));
    let number = open.next()?.file_name().into_string().unwrap();
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
    let place = info.lines().find_map(|line| line.strip_prefix("pos:"))?;
    place.trim().parse().ok()
}

fn is_stopped(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    status.rsplit(')').next().unwrap().trim().starts_with('T')
}

/// Stops a process as soon as it reads a file within `places`. Returns false if the process ended without being seen there: on a busy machine it may
/// read the whole file between two checks.
fn stop_within(child: &mut Child, file: &Path, places: &Range<u64>) -> bool {
    let process = child.id();
    let pid = Pid::from_child(child);
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        kill_process(pid, Signal::STOP).unwrap();
        // A process that has ended stays a zombie until it is waited for, and cannot be stopped any more.
        while !is_stopped(process) {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::yield_now();
        }
        match reads_at(process, file) {
            Some(at) if places.contains(&at) && at % SUM_PIECE != 0 => return true,
            _ => kill_process(pid, Signal::CONT).unwrap(),
        }
        // The process reads for tens of milliseconds and must make progress; without a pause it would hardly run.
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
}

/// Runs a command that reads a file, and changes the file while it is being read.
fn change_midway(command: &mut Command, file: &Path, change: fn(&Path)) -> Finished {
    const TRIES: usize = 50;
    let file = file.canonicalize().unwrap();
    let length = fs::metadata(&file).unwrap().len();
    // All records are before the gap. A table is read from its end at first.
    let places = match length {
        LENGTH => LENGTH / 128..LENGTH,
        _ => length / 8..length / 4 * 3,
    };
    let folder = file.ancestors().nth(2).unwrap();
    let (out, err) = (
        folder.join("standard-output"),
        folder.join("standard-error"),
    );
    for _ in 0..TRIES {
        // Output goes to files, because a job whose pipe is full would not proceed.
        command.stdout(File::create(&out).unwrap());
        command.stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let is_stopped = stop_within(&mut child, &file, &places);
        // After its decisions a job reads a second time, to write results; a change at that time ends the job.
        if !is_stopped || folder.join("out/.lookalike/decided.bin").exists() {
            child.kill().unwrap();
            child.wait().unwrap();
            // Remove the results of an attempt that failed, since the next job would refuse to overwrite them.
            let _ = fs::remove_dir_all(folder.join("out"));
            continue;
        }
        change(&file);
        kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
        let status = child.wait().unwrap();
        return Finished {
            status: status.code(),
            out: fs::read(&out).unwrap(),
            err: fs::read_to_string(&err).unwrap(),
        };
    }
    panic!("{command:?} was over {TRIES} times before it was seen to read");
}

fn dedup(folder: &Folder) -> Command {
    let mut command = lookalike("dedup");
    command.arg(folder.path("in")).arg("-o");
    command.arg(folder.path("out"));
    command
}

/// Checks that the job lost the file `changing` of two files, and nothing else.
#[track_caller]
fn lost_one(folder: &Folder, finished: &Finished, changing: &Path, other: &Path) {
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    let results = Results::read(&folder.path("out"));
    // No document is removed for a text that is only in the lost file.
    assert!(results.kept.concat() == fs::read(other).unwrap());
    assert!(results.removed.is_empty());
    let name = changing.file_name().unwrap().to_str().unwrap();
    for skip in &results.skipped {
        assert!(skip["source"].as_str().unwrap().ends_with(name), "{skip}");
    }
    let is_it = |skip: &&Value| skip["kind"] == "unreadable";
    // A table that is truncated in the middle of a batch is also reported as damaged.
    let others = results.skipped.iter().filter(|skip| !is_it(skip));
    assert!(others.clone().count() <= 1, "{:?}", results.skipped);
    assert!(others.clone().all(|skip| skip["kind"] == "damaged"));
    let skip = results.skipped.iter().find(is_it).unwrap();
    assert!(
        skip["reason"].as_str().unwrap().contains("changed"),
        "{skip}"
    );
    let rows = results.run["skipped"].as_array().unwrap();
    let row = rows.iter().find(is_it).unwrap();
    assert_eq!(row["count"], 1, "{row}");
    assert_eq!(row["loss"], "unknown", "{row}");
    finished.says(&[name, "changed"]);
}

#[test]
fn one_file_that_changed_while_it_was_read_ended_the_job() {
    for change in [truncate, grow, replace] {
        let folder = Folder::new();
        let [changing, other] = two_files(&folder);
        let finished = change_midway(&mut dedup(&folder), &changing, change);
        lost_one(&folder, &finished, &changing, &other);
    }
}

/// Number of records in a file without a gap.
const MANY_RECORDS: usize = 30_000;

/// A record: its id and its text.
type IdText = (String, String);

/// Returns many records, and writes the first ten of them under other ids to `b.jsonl`.
fn many_records(folder: &Folder) -> (Vec<IdText>, PathBuf) {
    let mut numbers = Numbers(11);
    let texts = (0..MANY_RECORDS).map(|number| (number, numbers.words(30, 100_000)));
    let records: Vec<IdText> = texts
        .map(|(number, text)| (format!("a{number}"), text))
        .collect();
    let lines = records.iter().take(10).enumerate();
    let lines: String = lines
        .map(|(number, (_, text))| record(&format!("b{number}"), text))
        .collect();
    let other = folder.add("in/b.jsonl", lines);
    (records, other)
}

fn table(records: &[IdText]) -> RecordBatch {
    let column = |value: fn(&IdText) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(records.iter().map(value)))
    };
    let columns = [("id", column(|row| &row.0)), ("text", column(|row| &row.1))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(folder: &Folder, records: &[IdText]) -> PathBuf {
    let path = folder.add("in/a.parquet", "");
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(500));
    let (file, rows) = (File::create(&path).unwrap(), table(records));
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(groups.build())).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    path
}

fn arrow(folder: &Folder, records: &[IdText]) -> PathBuf {
    let path = folder.add("in/a.arrow", "");
    let file = File::create(&path).unwrap();
    let mut writer = FileWriter::try_new(file, &table(&records[..1]).schema()).unwrap();
    for rows in records.chunks(500) {
        writer.write(&table(rows)).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    liblzma::encode_all(bytes, 0).unwrap()
}

/// Returns a web archive with one compressed member per record.
fn archive(records: &[IdText], pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let page = |(id, text): &IdText| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{text}");
        let length = block.len();
        let head = format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{id}\r\n"
        );
        let head = head + "Content-Type: application/http\r\n";
        pack(format!("{head}Content-Length: {length}\r\n\r\n{block}\r\n\r\n").as_bytes())
    };
    records.iter().flat_map(page).collect()
}

fn lines(records: &[IdText]) -> String {
    records.iter().map(|(id, text)| record(id, text)).collect()
}

/// Copies two files to a new folder.
fn copies(files: [&Path; 2]) -> (Folder, [PathBuf; 2]) {
    let folder = Folder::new();
    let copies = files.map(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        folder.add(format!("in/{name}"), fs::read(file).unwrap())
    });
    (folder, copies)
}

#[test]
fn a_table_or_a_packed_file_that_changes_while_it_is_read_is_a_loss_alone() {
    let formats: [fn(&Folder, &[IdText]) -> PathBuf; 8] = [
        parquet,
        arrow,
        |folder, records| folder.add("in/a.warc.gz", archive(records, gzip)),
        |folder, records| folder.add("in/a.warc.zst", archive(records, zstd)),
        |folder, records| folder.add("in/a.jsonl.gz", gzip(lines(records).as_bytes())),
        |folder, records| folder.add("in/a.jsonl.zst", zstd(lines(records).as_bytes())),
        |folder, records| folder.add("in/a.jsonl.bz2", bzip2(lines(records).as_bytes())),
        |folder, records| folder.add("in/a.jsonl.xz", xz(lines(records).as_bytes())),
    ];
    let made = Folder::new();
    let (records, other) = many_records(&made);
    for (number, write) in formats.into_iter().enumerate() {
        let packed = write(&made, &records);
        // How files notice each change is tested above; two of them for each format.
        let changes = [truncate, grow, replace];
        let (folder, [changing, left]) = copies([&packed, &other]);
        let finished = change_midway(&mut dedup(&folder), &changing, changes[number % 3]);
        lost_one(&folder, &finished, &changing, &left);
        let change = changes[(number + 1) % 2];
        let (folder, [changing, _]) = copies([&packed, &other]);
        let mut extract = lookalike("extract");
        extract.arg(folder.path("in"));
        let finished = change_midway(&mut extract, &changing, change);
        assert_eq!(finished.status, Some(3), "{}", finished.err);
        finished.says(&[changing.file_name().unwrap().to_str().unwrap(), "changed"]);
        let lines = finished.lines();
        let of_other = lines
            .iter()
            .filter(|line| line["id"].as_str().unwrap().starts_with('b'));
        assert_eq!(of_other.count(), 10, "the other file is read whole");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_a_loss_to_every_command() {
    let folder = Folder::new();
    for change in [truncate, grow] {
        let [changing, _] = two_files(&folder);
        for mut command in readers(&folder, &folder.path("in")) {
            File::options()
                .write(true)
                .open(&changing)
                .and_then(|file| file.set_len(LENGTH))
                .unwrap();
            let finished = change_midway(&mut command, &changing, change);
            assert_eq!(finished.status, Some(3), "{command:?}: {}", finished.err);
            finished.says(&["a.jsonl", "changed"]);
        }
    }
}

#[test]
fn limits_on_losses_hold_for_a_file_that_changes_while_it_is_read() {
    let changed = |flags: &[&str]| {
        let folder = Folder::new();
        let [changing, _] = two_files(&folder);
        let finished = change_midway(dedup(&folder).args(flags), &changing, grow);
        let is_written = folder.path("out/run.json").exists();
        assert_eq!(is_written, finished.status == Some(0), "{}", finished.err);
        finished
    };
    assert_eq!(changed(&["--max-skipped", "1"]).status, Some(0));
    for flags in [&["--max-skipped", "0"][..], &["--strict"]] {
        let refused = changed(flags);
        assert_eq!(refused.status, Some(1), "{}", refused.err);
        refused.says(&["a.jsonl", "changed", flags[0]]);
    }
}

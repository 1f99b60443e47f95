//! `--memory` counts from the first record: data that do not fit go to disk, or the job ends before it takes more.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::results::Results;
use crate::support::{Finish, Folder, STORY, SmallDisk, json_lines, lookalike, record};

const MIB: u64 = 1 << 20;

/// Memory that the code of a release takes. A test build, with assertions and unoptimised formats, has 25 to 40 MiB of its file in memory, depending
/// on how the system shares its pages.
const RELEASED_CODE: u64 = 16 * MIB;

/// Maximum memory of pages that a busy machine frees late.
pub(crate) const FREED_LATE: u64 = 8 * MIB;

/// Compresses a line that is repeated `times` times, in members of some kilobytes.
fn packed(line: &str, times: usize) -> Vec<u8> {
    let member = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let first = member(record("first", STORY).as_bytes());
    let many = member(line.repeat(100_000).as_bytes());
    [first, many.repeat(times / 100_000)].concat()
}

/// Runs a command that must end with `status`. Returns its messages and its peak memory in bytes.
pub(crate) fn measured(command: &mut Command, status: i32) -> (String, u64) {
    let (said, most) = measured_apart(command, status);
    (said, most.all)
}

/// Peak memory of a process in bytes.
#[derive(Default)]
pub(crate) struct MostMemory {
    /// Counts at most [`RELEASED_CODE`] of code.
    pub(crate) all: u64,
    /// Without code and mapped files. It is polled every 2 ms, whereas the kernel tracks the peak of `all`.
    anonymous: u64,
}

fn measured_apart(command: &mut Command, status: i32) -> (String, MostMemory) {
    let (found, said, most) = watched(command);
    assert_eq!(found, Some(status), "{said}");
    (said, most)
}

/// Runs a command. Returns its exit status, its messages and its peak memory.
pub(crate) fn watched(command: &mut Command) -> (Option<i32>, String, MostMemory) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let facts = format!("/proc/{}/status", child.id());
    let program = format!("/proc/{}/exe", child.id());
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let (mut most, mut code) = (MostMemory::default(), 0);
    while child.try_wait().unwrap().is_none() {
        // For a moment after its start, the child has the memory of this process, which other tests fill.
        if std::fs::read_link(&program).is_ok_and(|program| program == own) {
            continue;
        }
        let text = std::fs::read_to_string(&facts).unwrap_or_default();
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kib =
                line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
            kib.unwrap_or(0) << 10
        };
        most.all = most.all.max(bytes("VmHWM:"));
        most.anonymous = most.anonymous.max(bytes("RssAnon:"));
        code = resident_code(child.id()).max(code);
        std::thread::sleep(Duration::from_millis(2));
    }
    most.all -= code.saturating_sub(RELEASED_CODE);
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said, most)
}

/// Returns the bytes of a process's program file that are in memory.
fn resident_code(process: u32) -> u64 {
    let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    let mappings = std::fs::read_to_string(format!("/proc/{process}/smaps")).unwrap_or_default();
    let (mut of_program, mut kib) = (false, 0);
    for line in mappings.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("Rss:") if of_program => kib += words.next().unwrap().parse::<u64>().unwrap(),
            Some(word) if !word.ends_with(':') => of_program = words.nth(4) == program.to_str(),
            _ => {}
        }
    }
    kib << 10
}

/// Runs a command that keeps something of every record, and checks that its messages contain the words and its memory exceeds the limit by at most a
/// tenth.
fn limited(folder: &Folder, arguments: &[&str], input: &Path, (status, words): (i32, &[&str])) {
    const MEMORY: u64 = 64 * MIB;
    let name = arguments[0];
    let mut command = lookalike(name);
    command
        .arg(input)
        .args(["--threads", "2", "--memory", "64M"]);
    let out = folder.path(format!("{name}-{status}"));
    command.args(&arguments[1..]).arg(out);
    let (said, most) = measured(&mut command, status);
    for words in words {
        assert!(said.contains(words), "{name}: {said}");
    }
    let enough = MEMORY / 10 * 11 + FREED_LATE;
    let (most_mib, limit) = (most / MIB, MEMORY / MIB);
    assert!(most <= enough, "{name}: {most_mib} of {limit} MiB");
}

#[test]
fn records_without_end_take_a_tenth_more_than_the_limit_at_most() {
    let folder = Folder::new();
    let braces = folder.add("braces.jsonl.gz", packed("{}\n", 1_000_000));
    let bad = folder.add("bad.jsonl.gz", packed("[]\n", 5_000_000));
    let list = ["--memory", "raise", "the list of what could not be read"];
    let overlap = ["overlap", "--chunk", "lines:1", "-o"];
    for job in [&overlap[..], &["dedup", "-o"]] {
        limited(&folder, job, &braces, (0, &["of tables on disk"]));
        limited(&folder, job, &bad, (1, &list));
    }
}

/// Half a million notes, a quarter of which are copies, and the results of a job whose tables fit in memory.
struct Notes {
    records: String,
    results: Vec<Vec<u8>>,
}

impl Notes {
    fn get() -> &'static Self {
        static NOTES: OnceLock<Notes> = OnceLock::new();
        NOTES.get_or_init(|| {
            let (folder, records) = (Folder::new(), Self::records());
            let (input, out) = (folder.add("in.jsonl", &records), folder.path("much"));
            let mut command = lookalike("dedup");
            command.arg(&input).arg("-o").arg(&out);
            command.args(["--threads", "3", "--memory", "2G"]);
            let (said, _) = measured(&mut command, 0);
            assert!(!said.contains("on disk"), "{said}");
            let run = Results::read(&out);
            assert_eq!(run.count("counts", "tables_on_disk"), 0);
            let results = Self::results(&out);
            Self { records, results }
        })
    }

    fn records() -> String {
        const NOTES: u64 = 500_000;
        let mut lines = String::new();
        for number in 0..NOTES {
            let text = number - number % 4 / 3;
            let (id, other) = (number * 7_919 % NOTES, text * 31 % 9_973);
            lines += &format!(
                "{{\"id\":\"page-{id:07}-of-a-site\",\"text\":\"note {text} of {other}\"}}\n"
            );
        }
        lines
    }

    fn write(&self, folder: &Folder) -> PathBuf {
        folder.add("in.jsonl", &self.records)
    }

    fn results(out: &Path) -> Vec<Vec<u8>> {
        let files = DECISIONS.into_iter().chain(["pairs.jsonl"]);
        files
            .map(|file| std::fs::read(out.join(file)).unwrap())
            .collect()
    }
}

/// A document table of twice the memory limit is kept in files, with the same results.
#[test]
fn a_table_that_does_not_fit_goes_to_disk() {
    let (folder, notes) = (Folder::new(), Notes::get());
    let little = folder.path("little");
    let mut command = lookalike("dedup");
    command.arg(notes.write(&folder)).arg("-o").arg(&little);
    command.args(["--threads", "2", "--memory", "56M"]);
    let (said, most) = measured(&mut command, 0);
    assert!(most <= 56 * MIB + FREED_LATE, "{} MiB", most / MIB);
    assert!(said.contains("of tables on disk"), "{said}");
    let on_disk = Results::read(&little).count("counts", "tables_on_disk");
    assert!(on_disk > 32 * MIB);
    assert!(Notes::results(&little) == notes.results);
}

/// The same holds for tables of shared chunks, sites and pages.
#[test]
fn overlap_refused_a_table_that_does_not_fit() {
    let folder = Folder::new();
    const PAGES: u64 = 240_000;
    let lines = (0..PAGES).map(|number| {
        let text = number - number % 4 / 3;
        let (site, page, three) = (number % 17, number * 7_919 % PAGES, text / 3);
        let url = format!("http://s{site}.example/page-{page}");
        let text = format!("note {three}\\nof {three}\\nand an end\\n{text}");
        format!("{{\"url\":\"{url}\",\"text\":\"{text}\"}}\n")
    });
    let input = folder.add("in.jsonl", lines.collect::<String>());
    let job = |out: &Path, memory: &str| {
        let mut command = lookalike("overlap");
        command
            .arg(&input)
            .args(["--chunk", "lines:1", "--min-shared", "2"]);
        command.args(["--threads", "2", "--memory", memory, "-o"]);
        command.arg(out);
        command
    };
    let files = ["pairs.jsonl", "servers.jsonl", "copies.jsonl", "skip.jsonl"];
    goes_to_disk(&folder, &files, job);
}

/// Runs a job with little memory, so that its tables do not fit, and with much memory. Checks that these result files are equal.
fn goes_to_disk(folder: &Folder, files: &[&str], job: impl Fn(&Path, &str) -> Command) {
    let (little, much) = (folder.path("little"), folder.path("much"));
    let (said, most) = measured(&mut job(&little, "56M"), 0);
    assert!(said.contains("of tables on disk"), "{said}");
    assert!(most <= 56 * MIB + FREED_LATE, "{} MiB", most / MIB);
    let (said, _) = measured(&mut job(&much, "2G"), 0);
    assert!(!said.contains("of tables on disk"), "{said}");
    for file in files {
        let [found, expected] = [&little, &much].map(|out| std::fs::read(out.join(file)).unwrap());
        assert!(!found.is_empty() && found == expected, "{file}");
    }
}

/// Result files of `lookalike cluster`.
const DECISIONS: [&str; 3] = ["kept.jsonl", "removed.jsonl", "clusters.jsonl"];

/// Writes a file of sketches with six places, an eighth of which have three places in common with another.
fn sketches(folder: &Folder) -> PathBuf {
    static SKETCHES: OnceLock<String> = OnceLock::new();
    folder.add("in.jsonl", SKETCHES.get_or_init(made_sketches))
}

fn made_sketches() -> String {
    let mixed = |number: u64| {
        let mixed = (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let lines = (0..250_000_u64).map(|number| {
        let place = |place: u64| match number % 8 == 1 && place.is_multiple_of(2) {
            true => mixed(6 * (number - 1) + place),
            false => mixed(6 * number + place),
        };
        let digits: String = (0..6).map(|at| format!("{:016x}", place(at))).collect();
        format!("{{\"id\":\"n{number}\",\"super_shingles\":\"{digits}\"}}\n")
    });
    lines.collect()
}

/// The same holds for sketches.
#[test]
fn cluster_refused_sketches_that_do_not_fit() {
    let folder = Folder::new();
    let input = sketches(&folder);
    let job = |out: &Path, memory: &str| {
        let mut command = lookalike("cluster");
        command.arg(&input).args(["--equal", "3", "--threads", "2"]);
        command.args(["--memory", memory, "-o"]).arg(out);
        command
    };
    goes_to_disk(&folder, &DECISIONS, job);
    let removed = std::fs::read_to_string(folder.path("much/removed.jsonl")).unwrap();
    assert_eq!(removed.lines().count(), 250_000 / 8);
    let (said, _) = measured(&mut job(&folder.path("refused"), "44M"), 1);
    assert!(said.contains("the sketches do not fit in 44 MiB"), "{said}");
}

#[test]
fn join_refused_sketches_that_do_not_fit() {
    for times in [1, 2] {
        let folder = Folder::new();
        let inputs = vec![sketches(&folder); times];
        let job = |out: &Path, memory: &str| {
            let mut command = lookalike("join");
            command
                .args(&inputs)
                .args(["--equal", "3", "--threads", "2"]);
            std::fs::create_dir_all(out).unwrap();
            command
                .args(["--memory", memory, "-o"])
                .arg(out.join("pairs.jsonl"));
            command
        };
        goes_to_disk(&folder, &["pairs.jsonl"], job);
        let pairs = std::fs::read_to_string(folder.path("much/pairs.jsonl")).unwrap();
        let alone = 250_000 / 8;
        // A join of two equal files has each sketch with itself, and each pair in both orders.
        let expected = [alone, 250_000 + 2 * alone];
        assert_eq!(pairs.lines().count(), expected[times - 1]);
        let refused = job(&folder.path("refused"), "32M").fail(1);
        refused.says(&[
            "a join of sketches takes at least",
            "raise --memory to at least",
        ]);
    }
}

/// The same holds for fingerprints, an eighth of which have a neighbour.
#[test]
fn cluster_refused_fingerprints_that_do_not_fit() {
    let folder = Folder::new();
    let fingerprint = |number: u64| {
        let is_near = number % 8 == 1;
        let other = (number - u64::from(is_near)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (other ^ other >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ u64::from(is_near)
    };
    let mut bytes = Vec::new();
    for number in 0..2_000_000 {
        bytes.extend_from_slice(&fingerprint(number).to_le_bytes());
    }
    let input = folder.add("in.u64", bytes);
    let job = |out: &Path, memory: &str| {
        let mut command = lookalike("cluster");
        command
            .arg(&input)
            .args(["--distance", "1", "--threads", "2"]);
        command.args(["--memory", memory, "-o"]).arg(out);
        command
    };
    goes_to_disk(&folder, &DECISIONS, job);
    let (said, _) = measured(&mut job(&folder.path("refused"), "44M"), 1);
    assert!(said.contains("do not fit in 44 MiB"), "{said}");
}

#[test]
fn a_table_that_fills_the_disk_ends_the_job_which_goes_on_with_more_room() {
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mounted(folder.path("disk"), 30) else {
        return;
    };
    let notes = Notes::get();
    let (input, out) = (notes.write(&folder), folder.path("out"));
    let job = || {
        let mut command = lookalike("dedup");
        command.arg(&input).arg("-o").arg(&out);
        command.args(["--threads", "2", "--checkpoint", "1M", "--resume"]);
        command.args(["--memory", "56M", "--tmp"]).arg(disk.path());
        command
    };
    let full = job().fail(1);
    full.says(&["No space left on device", "--tmp", "--resume continues"]);
    disk.grow(400);
    job().succeed();
    assert_eq!(Results::read(&out).run["resumed"], true);
    assert!(Notes::results(&out) == notes.results);
}

/// The tables of a job take memory in proportion to the number of documents, however short these are.
#[test]
fn a_short_document_takes_a_hundred_bytes_of_memory_at_most() {
    const RECORDS: u64 = 600_000;
    let folder = Folder::new();
    let lines: String = (0..RECORDS)
        // Ids are out of order, so they have to be sorted. Every eighth text is a copy, and every eighth a near-copy.
        .map(|number| {
            let id = format!("doc-{:07}", number * 7_919 % RECORDS);
            let story = match number % 8 {
                6 | 7 => number - number % 8,
                _ => number,
            };
            let end = if number % 8 == 7 { " indeed" } else { "" };
            let (a, b) = (story * 31 % 9_973, story * 17 % 7_919);
            let text = format!("note {story} of {a} and {b} in {a} or {b}{end}");
            format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n")
        })
        .collect();
    let input = folder.add("in.jsonl", lines);
    // The sum of code, two threads, and the documents.
    let code = 16 * MIB;
    let memory = code + 2 * 10 * MIB + RECORDS * 100;
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(folder.path("out"));
    let limit = format!("{}K", memory >> 10);
    command.args(["--threads", "2", "--memory", &limit]);
    let (_, most) = measured_apart(&mut command, 0);
    // The code of this build is larger than that of a release, and the part that is in memory varies by megabytes.
    for (found, enough) in [
        (most.anonymous, memory - code),
        (most.all, memory + FREED_LATE),
    ] {
        assert!(found <= enough, "{} of {} MiB", found / MIB, enough / MIB);
    }
}

#[test]
fn a_document_that_two_hundred_thousand_others_promise_to_resemble_is_compared_with_all() {
    const FAMILY: usize = 200_000;
    let folder = Folder::new();
    let common = "one two three four five six seven eight nine ten eleven twelve";
    let family = |number| {
        record(
            &format!("old-{number:06}"),
            &format!("{common} n{number:06}"),
        )
    };
    let old = folder.add("old.jsonl", (0..FAMILY).map(family).collect::<String>());
    // It shares 12 of 15 words with each old document, which is just enough.
    let new = folder.add("new.jsonl", record("new", &format!("{common} x y")));
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    command
        .arg(&new)
        .arg("--against")
        .arg(&old)
        .arg("-o")
        .arg(&out);
    command.args(["--shingle", "words:1", "--threads", "2", "--memory", "96M"]);
    let (_, most) = measured(&mut command, 0);
    assert!(most <= 96 * MIB + FREED_LATE, "{} MiB", most / MIB);
    let results = Results::read(&out);
    assert_eq!(results.run["comparisons"]["compared"], FAMILY);
    assert_eq!(results.removals()["new"], ("old-000000", 0.8, false));
}

/// Checks that a job states how much memory a long document needs, and then takes no more than that.
fn keeps_its_word(mut command: impl FnMut() -> Command) {
    let (said, most) = measured(command().args(["--threads", "2", "--memory", "48M"]), 1);
    assert!(most < 48 * MIB + FREED_LATE, "{most}");
    let least = said.split("--memory to at least ").nth(1).unwrap();
    let (mebibytes, _) = least.split_once('M').unwrap();
    let granted = mebibytes.parse::<u64>().unwrap() * MIB;
    let memory = format!("{mebibytes}M");
    let (_, most) = measured(command().args(["--threads", "2", "--memory", &memory]), 0);
    let enough = granted + FREED_LATE;
    assert!(most <= enough, "{} of {mebibytes} MiB", most / MIB);
}

#[test]
fn a_letter_a_line_took_up_to_three_times_the_memory_that_was_asked_for_it() {
    let folder = Folder::new();
    let alphabet: String = ('a'..='z').flat_map(|c| [c, '\n']).collect();
    let letters = alphabet.repeat(12_000_000 / 26);
    let input = folder.add("letters.txt", letters);
    let chunkings = [
        "lines:1",
        "words:2:sliding",
        "lines:1,words:1,sentences",
        "paragraphs,lines:20:sliding",
    ];
    for chunking in chunkings {
        keeps_its_word(|| {
            let mut command = lookalike("overlap");
            command
                .arg(&input)
                .args(["--chunk", chunking, "--max-document", "64M"])
                .args(["--overwrite", "-o"]);
            command.arg(folder.path("out"));
            command.stdout(Stdio::null());
            command
        });
    }
}

#[test]
fn control_characters_took_more_memory_in_json_than_was_asked_for_them() {
    let folder = Folder::new();
    let input = folder.add("control.txt", vec![1; 24_000_000]);
    keeps_its_word(|| {
        let mut command = lookalike("extract");
        command.arg(&input).args(["--max-document", "64M"]);
        command.stdout(Stdio::null());
        command
    });
}

#[test]
fn documents_of_up_to_16_mib_took_more_than_the_limit_without_a_word() {
    let folder = Folder::new();
    let words = |seed: usize| -> String {
        (0..750_000)
            .map(|n: usize| format!("{:x} ", (n * 7 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect()
    };
    // Each of two threads has a long document at the same time.
    let long: Vec<String> = (0..2).map(|seed| words(seed)[..12 << 20].into()).collect();
    let mut lines: Vec<(String, &str)> = (0..200).map(|n| (format!("short {n}"), STORY)).collect();
    lines.extend(
        long.iter()
            .enumerate()
            .map(|(n, text)| (format!("long {n}"), text.as_str())),
    );
    let lines: Vec<(&str, &str)> = lines
        .iter()
        .map(|(id, text)| (id.as_str(), *text))
        .collect();
    folder.records("records.jsonl", &lines);
    for (n, text) in long.iter().enumerate() {
        let page = text.replace("a ", "a <p>");
        folder.add(format!("pages/{n}.html"), page);
    }
    let mut command = lookalike("dedup");
    command.arg(folder.path("records.jsonl"));
    command.args(["--threads", "2", "--memory", "64M", "-o"]);
    let (said, _) = measured(command.arg(folder.path("refused")), 1);
    let place = "records.jsonl, record 201: a document of 1";
    assert!(said.contains(place), "{said}");
    // Each command, each kind of feature and each format.
    let all = ["dedup", "pairs", "fingerprint"];
    for (input, option, subcommands) in [
        ("records.jsonl", "words:3", &all[..]),
        ("records.jsonl", "chars:5", &all[1..2]),
        ("pages", "words:1", &all[..1]),
        ("pages", "chars:5", &all[2..]),
    ] {
        for &subcommand in subcommands {
            keeps_its_word(|| {
                let mut command = lookalike(subcommand);
                command.arg(folder.path(input)).args(["--shingle", option]);
                if subcommand == "dedup" {
                    command.arg("--overwrite");
                    command.arg("-o").arg(folder.path("out"));
                }
                command.stdout(Stdio::null());
                command
            });
        }
    }
}

#[test]
#[cfg(feature = "parquet")]
fn long_rows_of_parquet_among_short_ones_were_decoded_as_one_batch() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    let folder = Folder::new();
    let texts: Vec<String> = (0..6_080)
        .map(|row| match row {
            3_000..3_080 => format!("{row:08} ").repeat(100_000),
            _ => format!("row {row}"),
        })
        .collect();
    let column: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let rows = RecordBatch::try_from_iter([("text", column)]).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        // Pages end after each row that is longer than a page should be.
        .set_write_batch_size(1)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    let input = folder.add("in.parquet", writer.into_inner().unwrap());
    let mut command = lookalike("extract");
    command
        .args(["--threads", "1", "--memory", "64M"])
        .arg(input);
    let out = folder.path("out.jsonl");
    let (_, most) = measured(command.arg("-o").arg(&out), 0);
    assert!(most <= 64 * MIB + FREED_LATE, "{} MiB", most / MIB);
    let found = json_lines(&std::fs::read(out).unwrap());
    assert_eq!(found.len(), texts.len());
    for (found, text) in found.iter().zip(&texts) {
        let found = found["text"].as_str().unwrap();
        assert!(found.trim_end() == text.trim_end(), "{}", found.len());
    }
}

/// Returns nested elements, each with its own text.
fn nested(bytes: usize, seed: usize) -> String {
    let piece = format!("<div>a b{seed} ");
    piece.repeat(bytes / piece.len())
}

#[test]
fn long_pages_took_their_memory_once_for_every_thread() {
    let folder = Folder::new();
    for page in 0..8 {
        folder.add(format!("in/{page}.html"), nested(6 << 20, page));
    }
    let mut command = lookalike("dedup");
    command
        .arg(folder.path("in"))
        .arg("-o")
        .arg(folder.path("out"));
    command.args(["--threads", "8", "--memory", "256M"]);
    let (_, most) = measured(&mut command, 0);
    assert!(most <= 256 * MIB + FREED_LATE, "{} MiB", most / MIB);
}

#[test]
fn the_trees_of_pages_took_up_to_three_times_the_memory_that_was_planned_for_a_thread() {
    let folder = Folder::new();
    for page in 0..48 {
        let elements = (0..90_000).map(|at| format!("<p>{}", (at + page) % 10));
        folder.add(format!("in/{page}.html"), elements.collect::<String>());
    }
    let out = |threads: &str| {
        let mut command = lookalike("extract");
        command.arg(folder.path("in")).args(["--threads", threads]);
        let out = folder.path(format!("{threads}.jsonl"));
        command.args(["--memory", "128M", "-o"]).arg(&out);
        let (_, most) = measured(&mut command, 0);
        assert!(most <= 128 * MIB + FREED_LATE, "{} MiB", most / MIB);
        std::fs::read(out).unwrap()
    };
    assert!(out("8") == out("1"));
}

#[test]
fn a_folder_for_temporary_files_is_cleaned_of_those_of_killed_commands() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY)]);
    let tmp = folder.path("tmp");
    std::fs::create_dir(&tmp).unwrap();
    let mut killed = lookalike("dedup");
    killed
        .arg("-")
        .arg("-o")
        .arg(folder.path("killed"))
        .arg("--tmp")
        .arg(&tmp);
    let mut killed = killed
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&tmp).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    };
    // When the copy of its standard input exists, the command holds its lock.
    while names()
        .first()
        .is_none_or(|name| !tmp.join(name).join("standard-input").exists())
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    let left = names();
    let mut other = lookalike("dedup");
    other.arg(&input).arg("--tmp").arg(&tmp).arg("-o");
    other.arg(folder.path("beside")).succeed();
    assert_eq!(names(), left, "it is in use");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(names(), left, "a killed command leaves it");
    let mut next = lookalike("dedup");
    next.arg(&input).arg("--tmp").arg(&tmp).arg("-o");
    next.arg(folder.path("next")).succeed();
    assert!(names().is_empty(), "{:?}", names());
}

#[test]
fn names_of_files_cannot_act_on_the_terminal() {
    let folder = Folder::new();
    folder.add("in/a\u{1b}[2J\u{202e}.jsonl", "nonsense\n");
    folder.add("in/b.jsonl", record("b", STORY));
    let mut command = lookalike("dedup");
    command
        .arg(folder.path("in"))
        .arg("-o")
        .arg(folder.path("out"));
    let done = command.finish();
    done.says(&["a\\u{1b}[2J\\u{202e}.jsonl"]);
    assert!(!done.err.contains(['\u{1b}', '\u{202e}']), "{}", done.err);
}

#[test]
fn named_files_that_cannot_be_read_are_skipped_only_when_asked() {
    let folder = Folder::new();
    let text = folder.add("a.txt", STORY);
    let picture = folder.add("picture.png", "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR");
    let dedup = || {
        let mut dedup = lookalike("dedup");
        dedup
            .args([&text, &picture])
            .arg("-o")
            .arg(folder.path("out"));
        dedup
    };
    dedup().fail(1).says(&["picture.png", "--skip-unreadable"]);
    dedup().arg("--skip-unreadable").succeed();
    assert!(folder.path("out/skipped").exists());
    // With no input left, an empty list is no error, unlike a folder of pictures: it may be one list of many.
    let mut extract = lookalike("extract");
    let out = folder.path("texts.jsonl");
    extract.arg(&picture).arg("-o").arg(&out);
    extract.arg("--skip-unreadable").succeed();
    assert_eq!(std::fs::read_to_string(out).unwrap(), "");
}

#[test]
fn links_that_lead_out_of_a_folder_are_followed_only_when_asked() {
    let folder = Folder::new();
    let secret = folder.add("elsewhere/secret.txt", STORY);
    folder.add("in/a.txt", "a text of its own, and not a long one");
    std::os::unix::fs::symlink(secret, folder.path("in/link.txt")).unwrap();
    std::os::unix::fs::symlink(folder.path("elsewhere"), folder.path("in/more")).unwrap();
    let results = folder.dedup(&folder.path("in"), &[]);
    assert_eq!(results.kept.len(), 1);
    let told: Vec<_> = results.skipped.iter().map(|row| &row["kind"]).collect();
    assert_eq!(told, ["outside", "outside"]);
    let reason = results.skipped[0]["reason"].as_str().unwrap();
    assert!(reason.contains("leads out of the folder"), "{reason}");
    let mut again = lookalike("dedup");
    again
        .arg(folder.path("in"))
        .arg("-o")
        .arg(folder.path("again"));
    again.succeed().says(&["--follow-links"]);
    let results = folder.dedup(&folder.path("in"), &["--follow-links"]);
    assert_eq!(results.kept.len(), 2);
}

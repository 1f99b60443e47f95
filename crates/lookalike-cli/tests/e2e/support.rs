//! Shared helpers: running the binary, folders of input, and the real corpora.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT};
use signal_hook::flag;

/// The options under which features are those of the truth files: sets of `\w+` words, without normalisation.
pub(crate) const TRUTH: [&str; 4] = ["--segment", "word-chars", "--normalize", "none"];

/// A sentence that many tests use as a text.
pub(crate) const STORY: &str =
    "the ferry left the harbour at nine with forty people on board and came back before noon";

/// Returns the path of a fixture that the tests of the corpus crate share.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../lookalike-corpus/tests/fixtures")
        .join(name)
}

/// Returns a command with a subcommand and no standard input.
pub(crate) fn lookalike(subcommand: &str) -> Command {
    hear_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lookalike"));
    command.arg(subcommand).stdin(Stdio::null());
    command
}

/// Makes signals end the commands of tests even where the caller of the tests ignores them, as a shell does for a job in the background.
fn hear_signals() {
    static HEARD: Once = Once::new();
    HEARD.call_once(|| {
        for signal in [SIGHUP, SIGINT] {
            // A signal with a handler has its default effect in a process that is started.
            let ends = Arc::new(AtomicBool::new(true));
            flag::register_conditional_shutdown(signal, 128 + signal, ends).unwrap();
        }
    });
}

/// The result of a command.
pub(crate) struct Finished {
    /// Exit status; `None` after a signal.
    pub(crate) status: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Finished {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Returns the JSON values on standard output, one per line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        json_lines(&self.out)
    }

    /// Returns the JSON object on standard output.
    pub(crate) fn json(&self) -> Value {
        parsed(&self.out)
    }

    /// Asserts that standard error contains each of `words`.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in: {}", self.err);
        }
        self
    }
}

/// Ways to run a command to its end.
pub(crate) trait Finish {
    fn finish(&mut self) -> Finished;
    /// Runs the command with bytes on standard input.
    fn finish_with(&mut self, input: &[u8]) -> Finished;
    /// Asserts status 0.
    fn succeed(&mut self) -> Finished;
    /// Asserts status 3: done, but some input could not be read.
    fn lose(&mut self) -> Finished;
    /// Asserts this status, and a message that is not a panic.
    fn fail(&mut self, status: i32) -> Finished;
}

impl Finish for Command {
    fn finish(&mut self) -> Finished {
        let output = self.output().unwrap();
        let (status, out) = (output.status.code(), output.stdout);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Finished { status, out, err }
    }

    fn finish_with(&mut self, input: &[u8]) -> Finished {
        self.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let (status, out) = (output.status.code(), output.stdout);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Finished { status, out, err }
    }

    #[track_caller]
    fn succeed(&mut self) -> Finished {
        let finished = self.finish();
        assert_eq!(finished.status, Some(0), "{self:?}: {}", finished.err);
        finished
    }

    #[track_caller]
    fn lose(&mut self) -> Finished {
        let finished = self.finish();
        assert_eq!(finished.status, Some(3), "{self:?}: {}", finished.err);
        finished.says(&["could not be read", "--max-skipped"]);
        finished
    }

    #[track_caller]
    fn fail(&mut self, status: i32) -> Finished {
        let finished = self.finish();
        assert_eq!(finished.status, Some(status), "{self:?}: {}", finished.err);
        assert!(!finished.err.contains("panicked"), "{}", finished.err);
        assert!(finished.err.contains("error:"), "{}", finished.err);
        finished
    }
}

/// A temporary directory of inputs and results that is removed with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn add(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Adds a JSONL file of ids and texts.
    pub(crate) fn records<S: AsRef<str>>(&self, name: &str, records: &[(S, S)]) -> PathBuf {
        let lines = records
            .iter()
            .map(|(id, text)| record(id.as_ref(), text.as_ref()));
        self.add(name, lines.collect::<String>())
    }

    /// Adds the first records of a JSONL file, for tests that would only take longer with all of them.
    pub(crate) fn first_records(&self, of: &Path, records: usize) -> PathBuf {
        let all = contents(of);
        let first = all.split_inclusive(|&byte| byte == b'\n').take(records);
        self.add("first.jsonl", first.flatten().copied().collect::<Vec<u8>>())
    }

    /// Runs `dedup` on one input into the folder `out`. Returns the results.
    #[track_caller]
    pub(crate) fn dedup(&self, input: &Path, flags: &[&str]) -> crate::results::Results {
        self.dedup_into("out", input, flags)
    }

    /// Runs `dedup` on one input into a folder. Returns the results.
    #[track_caller]
    pub(crate) fn dedup_into(
        &self,
        out: &str,
        input: &Path,
        flags: &[&str],
    ) -> crate::results::Results {
        self.deduplication(out, input, flags).succeed();
        crate::results::Results::read(&self.path(out))
    }

    /// Runs `dedup` into the folder `out`, on an input that cannot be read completely.
    #[track_caller]
    pub(crate) fn dedup_with_losses(
        &self,
        input: &Path,
        flags: &[&str],
    ) -> crate::results::Results {
        self.deduplication("out", input, flags).lose();
        crate::results::Results::read(&self.path("out"))
    }

    fn deduplication(&self, out: &str, input: &Path, flags: &[&str]) -> Command {
        let mut command = lookalike("dedup");
        command.arg(input).arg("-o").arg(self.path(out));
        command.arg("--overwrite").args(flags);
        command
    }
}

/// Returns a path as a string.
pub(crate) fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

/// Returns a line of JSONL.
pub(crate) fn record(id: &str, text: &str) -> String {
    format!("{}\n", serde_json::json!({ "id": id, "text": text }))
}

/// Returns the texts of the features of a kind that `explain --json` lists.
pub(crate) fn listed<'a>(told: &'a Value, kind: &str) -> Vec<&'a str> {
    let features = told[kind]["listed"].as_array().unwrap();
    let texts = features.iter().map(|feature| feature["text"].as_str());
    texts.map(Option::unwrap).collect()
}

/// Returns the rows of the table below a heading of a page, as the texts of their cells.
pub(crate) fn table_below(html: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = html.split_once(&format!("<h2>{heading}</h2>")).unwrap();
    let section = section.split("<h2>").next().unwrap();
    let text = |cell: &str| -> String {
        let pieces = cell.split('<').enumerate();
        let texts = pieces.map(|(at, piece)| match at {
            0 => piece,
            _ => piece.split_once('>').unwrap().1,
        });
        let text = texts.collect::<String>();
        let text = text.trim().replace("&lt;", "<").replace("&gt;", ">");
        text.replace("&#x2f;", "/").replace("&amp;", "&")
    };
    let row = |row: &str| {
        let cells = row.replace("</th>", "</td>");
        let (cells, _) = cells.rsplit_once("</td>").unwrap();
        cells.split("</td>").map(text).collect()
    };
    section.split("<tr>").skip(1).map(row).collect()
}

/// Parses a JSON value with the code that serde_json compiles for `FromStr`. Generic functions of serde_json would be compiled with the tests, without
/// optimisation, and take several times as long.
pub(crate) fn parsed(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).unwrap().parse().unwrap()
}

pub(crate) fn json_lines(bytes: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(bytes).unwrap().split('\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| line.parse().unwrap()).collect()
}

/// Verified pairs by their ids, smaller first.
pub(crate) type Pairs = BTreeMap<(String, String), f64>;

/// Reads `{"a":..,"b":..,KEY:..}` rows; the ids of a row may be in either order.
pub(crate) fn pairs_of(rows: &[Value], key: &str) -> Pairs {
    let pair = |row: &Value| {
        let [a, b] = ["a", "b"].map(|end| row[end].as_str().unwrap().to_owned());
        (
            if a < b { (a, b) } else { (b, a) },
            row[key].as_f64().unwrap(),
        )
    };
    rows.iter().map(pair).collect()
}

/// Returns the bytes of a file, decompressed if its name says so.
pub(crate) fn contents(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match path.extension().and_then(OsStr::to_str) {
        Some("gz") => {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(&bytes[..])
                .read_to_end(&mut plain)
                .unwrap();
            plain
        }
        Some("zst") => zstd::decode_all(&bytes[..]).unwrap(),
        _ => bytes,
    }
}

/// Returns the path of a file of the real corpora, which are beside the repository.
///
/// If it is missing, the test is skipped with a message that is shown even if the test passes; in CI the test fails.
pub(crate) fn corpus(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{} is missing",
        path.display()
    );
    // A macro would be captured by the test harness.
    let line = format!("SKIPPED: {} is missing\n", path.display());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

/// Returns the folder of example inputs in the repository.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A generator of pseudo-random numbers (SplitMix64) that is the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Returns `count` words out of `vocabulary` different ones.
    pub(crate) fn words(&mut self, count: usize, vocabulary: usize) -> String {
        let words: Vec<String> = (0..count)
            .map(|_| format!("w{}", self.below(vocabulary)))
            .collect();
        words.join(" ")
    }
}

/// Sends a signal, such as `INT`.
pub(crate) fn send(signal: &str, child: &Child) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Sends the signal of Ctrl-C. Returns the exit status of the command and its messages.
pub(crate) fn interrupt(child: Child) -> (Option<i32>, String) {
    send("INT", &child);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    (ended.status.code(), said)
}

/// Waits until a command has a folder for temporary files in `folder`.
pub(crate) fn wait_for_spool(folder: &Path, child: &mut Child) {
    let is_there = || {
        let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().join("in-use").exists())
    };
    while !is_there() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        sleep(Duration::from_millis(1));
    }
}

/// An in-memory file system of limited size.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system of `megabytes` MB, or prints a message and returns `None` if this user may not mount.
    pub(crate) fn mounted(place: PathBuf, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(&place).unwrap();
        let size = format!("size={megabytes}M");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&place);
        match mount.output() {
            Ok(done) if done.status.success() => Some(Self(place)),
            _ => {
                let line = b"SKIPPED: no file system can be mounted here\n";
                std::io::stderr().write_all(line).unwrap();
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn grow(&self, megabytes: u32) {
        let size = format!("remount,size={megabytes}M");
        let mut mount = Command::new("mount");
        let done = mount.args(["-o", &size]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

//! The file of labels: one line per label, each on disk before the next question.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use lookalike_eval::SampledPair;
use serde::{Deserialize, Serialize};

use crate::console;
use crate::failure::Failure;

/// A line of the file: the pair as drawn, and the answer.
#[derive(Serialize, Deserialize)]
struct ReferenceLabel {
    #[serde(flatten)]
    pair: SampledPair,
    label: Option<bool>,
}

/// Number of times that each answer was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct LabelCounts {
    #[serde(rename = "true")]
    pub(super) trues: u64,
    #[serde(rename = "false")]
    pub(super) falses: u64,
    pub(super) unknown: u64,
}

impl LabelCounts {
    pub(super) fn all(self) -> u64 {
        self.trues + self.falses + self.unknown
    }
}

/// The labels of a sample, open for appending and locked.
pub(super) struct LabelFile {
    path: PathBuf,
    file: File,
    labels: HashMap<(String, String), Option<bool>>,
    /// Start of each line, and its pair.
    lines: Vec<(u64, (String, String))>,
    end: u64,
}

fn key(pair: &SampledPair) -> (String, String) {
    (pair.a.clone(), pair.b.clone())
}

impl LabelFile {
    /// Opens or creates the file. An incomplete last line, left by a crash, is removed, and its pair is asked again.
    ///
    /// # Errors
    /// Fails if the file is open elsewhere, or contains anything but labels of these pairs.
    pub(super) fn open(path: &Path, pairs: &[SampledPair]) -> Result<Self, Failure> {
        let failed = |reason: String| Failure::Failed(format!("{}: {reason}", path.display()));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options
            .open(path)
            .map_err(|error| failed(format!("{error}: choose another file with -o")))?;
        // Each process keeps the end of the file in memory, so two processes would overwrite each other's labels.
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(failed(
                    "another process is adding labels to this file: choose another one with -o"
                        .to_owned(),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error.to_string())),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| failed(error.to_string()))?;
        let whole = bytes
            .iter()
            // A label counts once its line end is on disk.
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        if whole < bytes.len() {
            console::warning(&format!(
                "{}: the last line was cut short; its pair will be asked again",
                path.display()
            ));
            file.set_len(whole as u64)
                .map_err(|error| failed(error.to_string()))?;
        }
        let mut labels = Self {
            path: path.to_owned(),
            file,
            labels: HashMap::new(),
            lines: Vec::new(),
            end: 0,
        };
        let known: HashMap<_, _> = pairs.iter().map(|pair| (key(pair), pair)).collect();
        let lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
        for (at, line) in lines.enumerate() {
            let wrong = |reason: &str| failed(format!("line {}: {reason}", at + 1));
            let label: ReferenceLabel = serde_json::from_slice(line)
                .map_err(|error| wrong(&format!("not a label: {error}")))?;
            // The whole pair, with score and stratum: a pair of another sample would stand for another number of pairs.
            if known.get(&key(&label.pair)) != Some(&&label.pair) {
                return Err(wrong(
                    "a label of another sample: give the --pairs that it was made with, or another file with -o",
                ));
            }
            labels.record(line.len() as u64, key(&label.pair), label.label);
        }
        Ok(labels)
    }

    fn record(&mut self, len: u64, key: (String, String), label: Option<bool>) {
        self.lines.push((self.end, key.clone()));
        self.labels.insert(key, label);
        self.end += len;
    }

    /// Returns true if a pair has a label.
    pub(super) fn has(&self, pair: &SampledPair) -> bool {
        self.labels.contains_key(&key(pair))
    }

    pub(super) fn counts(&self) -> LabelCounts {
        let count = |wanted: Option<bool>| {
            let labels = self.labels.values();
            labels.filter(|label| **label == wanted).count() as u64
        };
        LabelCounts {
            trues: count(Some(true)),
            falses: count(Some(false)),
            unknown: count(None),
        }
    }

    /// Writes a label, which is on disk when this returns.
    pub(super) fn append(
        &mut self,
        pair: &SampledPair,
        label: Option<bool>,
    ) -> Result<(), Failure> {
        let pair_label = ReferenceLabel {
            pair: pair.clone(),
            label,
        };
        let line = serde_json::to_string(&pair_label).map_err(std::io::Error::from)? + "\n";
        self.file
            // Not at the end of the file, where a failed write may have left half a line.
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.write_all(line.as_bytes()))
            .and_then(|()| self.file.sync_data())
            .map_err(|error| self.failed(&error))?;
        self.record(line.len() as u64, key(pair), label);
        Ok(())
    }

    /// Removes the last label. Returns false if there is none.
    pub(super) fn undo_last(&mut self) -> Result<bool, Failure> {
        let Some((start, key)) = self.lines.pop() else {
            return Ok(false);
        };
        self.file
            // Cut off instead of marked: the file holds labels only, and the pair is asked again.
            .set_len(start)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| self.failed(&error))?;
        self.labels.remove(&key);
        self.end = start;
        Ok(true)
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::Failed(format!(
            "{}: {error}: the labels before this one are safe; free some space, then run the same command to continue",
            self.path.display()
        ))
    }
}

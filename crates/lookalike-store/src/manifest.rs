//! The manifest of a collection: its settings, and the files that it consists of. It is replaced as a whole, atomically.
//!
//! Format: one line of JSON, then `check `, sixteen hexadecimal digits (XXH3-64 of the line with its `\n`) and `\n`.

use std::path::Path;
use std::time::Duration;

use lookalike::ParagraphRule;
use serde::{Deserialize, Serialize};

use crate::checksum::{FileIdentity, whole_file};
use crate::error::{Result, StoreError};
use crate::file_names::{MANIFEST, PART};
use crate::fs::{FileSystem, read_whole, write_file};
use crate::pair_rule::PairRule;
use crate::scheme_part::{PartEntry, SchemePart};
use crate::settings::{CollectionSettings, RetainedParts, StoredScheme};

/// Name of a manifest until it is complete.
pub(crate) const NEW_MANIFEST: &str = "MANIFEST.new";
const VERSION: u32 = 1;
/// Largest number of a file or frame. Numbers count up from one, so no collection ever reaches it.
pub(crate) const MAX_NUMBER: u64 = 1 << 62;

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectionManifest {
    pub(crate) version: u32,
    /// Identity of the collection, which is also in each of its files.
    pub(crate) collection: u64,
    /// Key of the hashes of ids.
    #[serde(with = "hex_key")]
    pub(crate) key: u128,
    pub(crate) scheme: StoredScheme,
    pub(crate) radius: u32,
    pub(crate) time_to_live_ms: Option<u64>,
    pub(crate) keep: RetainedParts,
    /// Rule by which texts are divided into paragraphs.
    #[serde(with = "paragraph_rule")]
    pub(crate) paragraphs: ParagraphRule,
    /// Pairs that are compared.
    pub(crate) pairs: PairRule,
    /// Number of the next file.
    pub(crate) next_file: u64,
    /// Number of the first frame of the first log.
    pub(crate) frame: u64,
    /// Numbers of the logs from the oldest to the newest, which is the one that is written.
    pub(crate) logs: Vec<u64>,
    /// Runs from the oldest to the newest.
    pub(crate) runs: Vec<RunEntry>,
    /// Latest time at which expired documents were dropped, in milliseconds since 1970.
    pub(crate) time: u64,
    /// Parts of the scheme.
    pub(crate) parts: Vec<PartEntry>,
}

/// Serializes a rule for paragraphs as its name.
mod paragraph_rule {
    use lookalike::ParagraphRule;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        rule: &ParagraphRule,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(rule)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ParagraphRule, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// Serializes a key as 32 hexadecimal digits.
mod hex_key {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(key: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{key:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<u128, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let key = lookalike::hash::parse_hex(&digits, 32);
        key.ok_or_else(|| D::Error::custom("the key is not 32 hexadecimal digits"))
    }
}

/// The entry of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunEntry {
    pub(crate) file: u64,
    pub(crate) documents: u64,
    /// Number of the file with the run's tombstones.
    pub(crate) tombstones: Option<u64>,
}

/// An error while replacing a checked file.
pub(crate) enum ReplaceError {
    /// The old file is still in place.
    Before(StoreError),
    /// It is unknown which of the two files is in place.
    Unknown(StoreError),
}

impl ReplaceError {
    pub(crate) fn is_disk_full(&self) -> bool {
        let (Self::Before(error) | Self::Unknown(error)) = self;
        error.is_disk_full()
    }
}

impl From<ReplaceError> for StoreError {
    fn from(error: ReplaceError) -> Self {
        match error {
            ReplaceError::Before(error) | ReplaceError::Unknown(error) => error,
        }
    }
}

/// Returns a duration in milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl CollectionManifest {
    pub(crate) fn new(
        settings: &CollectionSettings,
        parts: &[SchemePart],
        collection: u64,
        key: u128,
    ) -> Self {
        // File 1 is the first log.
        let numbered = parts.iter().zip(2..);
        let parts: Vec<PartEntry> = numbered
            .map(|(part, number)| PartEntry::new(part, FileIdentity { collection, number }))
            .collect();
        Self {
            version: VERSION,
            collection,
            key,
            scheme: settings.scheme.clone(),
            radius: settings.radius,
            time_to_live_ms: settings.time_to_live.map(millis),
            keep: settings.keep,
            paragraphs: settings.paragraphs,
            pairs: settings.pairs.clone(),
            next_file: 2 + parts.len() as u64,
            frame: 1,
            logs: vec![1],
            runs: Vec::new(),
            time: 0,
            parts,
        }
    }

    pub(crate) fn set_time_to_live(&mut self, time_to_live: Option<Duration>) {
        self.time_to_live_ms = time_to_live.map(millis);
    }

    pub(crate) fn settings(&self) -> CollectionSettings {
        CollectionSettings {
            scheme: self.scheme.clone(),
            radius: self.radius,
            time_to_live: self.time_to_live_ms.map(Duration::from_millis),
            keep: self.keep,
            paragraphs: self.paragraphs,
            pairs: self.pairs.clone(),
        }
    }

    /// Returns the numbers and kinds of all files that the manifest names. All numbers come from the same counter, so no two files of any kind share
    /// one.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let logs = self.logs.iter().map(|&log| (log, "log"));
        let parts = self.parts.iter().map(|part| (part.file, PART));
        let runs = self.runs.iter().map(|run| (run.file, "run"));
        let tombstones = self.runs.iter().filter_map(|run| run.tombstones);
        let tombstones = tombstones.map(|file| (file, "tombstones"));
        parts.chain(runs).chain(tombstones).chain(logs)
    }

    /// Returns the identity of a file of the collection.
    pub(crate) fn file(&self, number: u64) -> FileIdentity {
        FileIdentity {
            collection: self.collection,
            number,
        }
    }

    pub(crate) fn read(fs: &dyn FileSystem, folder: &Path) -> Result<Self> {
        read_checked(fs, folder, MANIFEST, "the catalog").and_then(|manifest: Self| {
            let path = folder.join(MANIFEST);
            if manifest.version != VERSION {
                return Err(StoreError::version(path, manifest.version, VERSION));
            }
            match manifest.contradiction() {
                Some(what) => Err(StoreError::damaged(&path, 0, what)),
                None => Ok(manifest),
            }
        })
    }

    /// Describes an inconsistency that no manifest written by a store can have.
    fn contradiction(&self) -> Option<&'static str> {
        let mut files: Vec<u64> = self.files().map(|(file, _)| file).collect();
        files.sort_unstable();
        if self.logs.is_empty() {
            return Some("the manifest names no log");
        }
        // A file with the number `next_file` or a larger one would be overwritten when that number is assigned.
        if !files.is_sorted_by(|a, b| a < b) || files.last() >= Some(&self.next_file) {
            return Some("the manifest names a file twice, or one that does not exist yet");
        }
        if self.next_file.max(self.frame) > MAX_NUMBER {
            return Some("the manifest has a larger number than was ever given");
        }
        let is_wrong = self.settings().check().is_err();
        is_wrong
            .then_some("the manifest has a radius or a rule for pairs that no collection can have")
    }

    /// Replaces the manifest on disk. All files that it names must be durable.
    pub(crate) fn write(&self, fs: &dyn FileSystem, folder: &Path) -> Result<(), ReplaceError> {
        replace_checked(fs, folder, MANIFEST, NEW_MANIFEST, self)
    }
}

/// Replaces a checked file by one that contains `value`, atomically.
pub(crate) fn replace_checked<T: Serialize>(
    fs: &dyn FileSystem,
    folder: &Path,
    name: &str,
    new: &str,
    value: &T,
) -> Result<(), ReplaceError> {
    let new = folder.join(new);
    let prepare = || -> Result<()> {
        write_file(fs, &new, &to_checked(value))
            .map_err(StoreError::io(&new, "writing a list of files"))?;
        // Make the names of the listed files durable before the list.
        fs.sync_dir(folder)
            .map_err(StoreError::io(folder, "syncing the folder"))
    };
    prepare().map_err(ReplaceError::Before)?;
    let path = folder.join(name);
    let failed = |error| StoreError::io(&path, "replacing a list of files")(error);
    fs.rename(&new, &path)
        .map_err(failed)
        .map_err(|error| match error.is_transient() {
            // If the disk is full or there are too many open files, the rename has not started.
            true => ReplaceError::Before(error),
            false => ReplaceError::Unknown(error),
        })?;
    // Until this sync, a power failure may bring the old list back. Both lists are complete, and so are the files that they name.
    fs.sync_dir(folder)
        .map_err(|error| ReplaceError::Unknown(failed(error)))
}

fn to_checked<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).expect("plain values are JSON");
    bytes.push(b'\n');
    let check = whole_file(&bytes);
    bytes.extend_from_slice(format!("check {check:016x}\n").as_bytes());
    bytes
}

/// Size of the last line in bytes.
const CHECK_LINE: usize = 23;

/// Reads a file that [`replace_checked`] wrote, and verifies its checksum.
pub(crate) fn read_checked<T: for<'a> Deserialize<'a>>(
    fs: &dyn FileSystem,
    folder: &Path,
    name: &str,
    named_by: &'static str,
) -> Result<T> {
    let path = folder.join(name);
    let bytes = read_whole(fs, &path).map_err(|error| {
        StoreError::io(&path, "reading a list of files")(error).or_missing(named_by)
    })?;
    // A file that is too short for a check line does not match either. The checksum is verified before parsing, so the parser never sees
    // JSON from elsewhere, and a parse error means a newer or faulty program, not a flipped bit.
    let (line, check) = bytes.split_at(bytes.len().saturating_sub(CHECK_LINE));
    if format!("check {:016x}\n", whole_file(line)).as_bytes() != check {
        let what = "the file does not match its checksum";
        return Err(StoreError::damaged(&path, 0, what));
    }
    serde_json::from_slice(line).map_err(|error| {
        let what = format!("unexpected content: {error}");
        StoreError::damaged(&path, error.column() as u64, what)
    })
}

#[cfg(test)]
mod tests {
    use lookalike::{Scheme, Sketch};

    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let plain = CollectionSettings::new(&Scheme::default());
        let ruled = plain.clone().pairs(PairRule::default().within("site"));
        let part = [SchemePart::new("terms", vec![7])];
        let minima = Scheme::default().sketch(Sketch::MinHash { functions: 9 });
        let minima = CollectionSettings::new(&minima);
        for (settings, parts) in [(&plain, &[][..]), (&ruled, &part[..]), (&minima, &[])] {
            let manifest = CollectionManifest::new(settings, parts, 1, 2);
            let json = serde_json::to_value(&manifest).expect("plain values");
            let read: CollectionManifest = serde_json::from_value(json).expect("its own");
            assert_eq!(read, manifest);
            assert_eq!(read.contradiction(), None);
        }
    }

    /// Any other text was read as the key zero, under which no id is found.
    #[test]
    fn a_key_that_is_no_number_was_read_as_zero() {
        let settings = CollectionSettings::new(&Scheme::default());
        let manifest = CollectionManifest::new(&settings, &[], 1, 0xabc);
        let mut json = serde_json::to_value(&manifest).expect("plain values");
        assert_eq!(json["key"], "00000000000000000000000000000abc");
        for wrong in [
            "",
            "abc",
            "+0000000000000000000000000000abc",
            "0000000000000000000000000000000g",
        ] {
            json["key"] = wrong.into();
            let read = serde_json::from_value::<CollectionManifest>(json.clone());
            let error = read.expect_err("a wrong key").to_string();
            assert!(error.contains("32 hexadecimal digits"), "{error}");
        }
    }
}

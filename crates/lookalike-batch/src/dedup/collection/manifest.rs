//! The manifest of a collection: its settings, its additions, and its segments.
//!
//! It is one file, replaced atomically: a line of JSON, and a line with the XXH3-64 of the first in 16 hexadecimal digits. A reader sees
//! the collection before or after an addition, never in between. Files that it does not name are not part of the collection.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use lookalike_corpus::{COLLECTION_FILE, InputOptions, PROGRAM};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::dedup::collection::error::CollectionError;
use crate::dedup::collection::segment::{SegmentEntry, hexadecimal};
use crate::settings::{JobSettings, Method, PairScope};
use crate::unfinished::write_whole;

/// Version of the format of all files.
const FORMAT: u64 = 5;

/// A setting that determines which data of a document is stored, and so must be the same in every job.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct CollectionSetting {
    /// Name of the setting.
    pub name: String,
    /// Value of the setting.
    pub value: String,
}

/// The order of features for all prefixes of a collection, which is stored in a separate file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct OrderEntry {
    pub(crate) file: String,
    #[serde(with = "hexadecimal")]
    pub(crate) checksum: u64,
}

/// An addition to a collection. It remains in the list when its segment is merged with others.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct AdditionEntry {
    /// Identity of the segment that was written for it.
    #[serde(with = "hexadecimal")]
    pub(crate) identity: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct DirectoryManifest {
    pub(crate) program: String,
    pub(crate) format: u64,
    pub(crate) settings: Vec<CollectionSetting>,
    pub(crate) order: OrderEntry,
    /// All additions, the oldest first.
    pub(crate) additions: Vec<AdditionEntry>,
    /// Segments, each with the documents of consecutive additions, the oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
}

/// The part of a manifest that all versions have in common.
#[derive(Deserialize)]
struct ManifestVersion {
    program: String,
    format: u64,
}

impl DirectoryManifest {
    pub(crate) fn new(settings: Vec<CollectionSetting>, order: OrderEntry) -> Self {
        Self {
            program: PROGRAM.to_owned(),
            format: FORMAT,
            settings,
            order,
            additions: Vec::new(),
            segments: Vec::new(),
        }
    }

    /// Returns the names of the files with the data of the collection.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let segments = self.segments.iter().map(|segment| &*segment.file);
        segments.chain([&*self.order.file])
    }

    /// Reads the manifest in a directory and returns it with its checksum, or `None` if there is no manifest.
    pub(crate) fn load(folder: &Path) -> Result<Option<(Self, u64)>, CollectionError> {
        let path = folder.join(COLLECTION_FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CollectionError::unreadable(&path)(error)),
        };
        let damaged = |reason: &str| CollectionError::damaged(&path, reason);
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged("it is not text"))?;
        let mut lines = text.split_inclusive('\n');
        let line = |line: Option<&str>| {
            line.and_then(|line| line.strip_suffix('\n'))
                .map(str::to_owned)
        };
        let (Some(json), Some(sum), None) = (line(lines.next()), line(lines.next()), lines.next())
        else {
            return Err(damaged("it does not have two lines"));
        };
        let checksum = xxh3_64(json.as_bytes());
        if sum != format!("{checksum:016x}") {
            return Err(damaged("its checksum is not that of its first line"));
        }
        // First the part that all versions have: another version may lack fields of this one, and needs a better
        // message.
        let version: ManifestVersion = serde_json::from_slice(json.as_bytes())
            .map_err(|error| damaged(&format!("it is not a manifest: {error}")))?;
        if version.program != PROGRAM {
            return Err(damaged("another program wrote it"));
        }
        if version.format != FORMAT {
            return Err(CollectionError::Version {
                path,
                found: version.format,
                known: FORMAT,
            });
        }
        let manifest = serde_json::from_slice(json.as_bytes())
            .map_err(|error| damaged(&format!("it is not a manifest: {error}")))?;
        Ok(Some((manifest, checksum)))
    }

    /// Replaces the manifest in a directory, in one step.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), CollectionError> {
        let path = folder.join(COLLECTION_FILE);
        let json = serde_json::to_string(self)
            .map_err(|error| CollectionError::unwritable(&path)(error.into()))?;
        let lines = format!("{json}\n{:016x}\n", xxh3_64(json.as_bytes()));
        let written = write_whole(&path, lines.as_bytes());
        written.map_err(|cause| CollectionError::unsaved(path, cause, lines.as_bytes()))
    }

    /// Returns an error if the settings of a job differ from those of the collection.
    pub(crate) fn ensure_same(
        &self,
        folder: &Path,
        wanted: &[CollectionSetting],
    ) -> Result<(), CollectionError> {
        let of = |all: &[CollectionSetting], name: &str| {
            let setting = all.iter().find(|setting| setting.name == name);
            setting.map_or_else(|| "none".to_owned(), |setting| setting.value.clone())
        };
        let mut differences = String::new();
        let new = wanted
            .iter()
            .filter(|setting| self.settings.iter().all(|known| known.name != setting.name));
        for CollectionSetting { name, .. } in self.settings.iter().chain(new) {
            let (theirs, own) = (of(&self.settings, name), of(wanted, name));
            if theirs != own {
                // A scheme has many words, most of which agree.
                let (theirs, own) = (
                    differing_words(&theirs, &own),
                    differing_words(&own, &theirs),
                );
                let comma = if differences.is_empty() { "" } else { "; " };
                let _ = write!(
                    differences,
                    "{comma}{name} of the collection: {theirs}, of the job: {own}"
                );
            }
        }
        match differences.is_empty() {
            true => Ok(()),
            false => Err(CollectionError::Settings {
                folder: folder.to_owned(),
                differences,
            }),
        }
    }

    pub(crate) fn documents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.documents).sum()
    }
}

/// Returns the words of a value that another one lacks, or the whole value if there are none.
fn differing_words(value: &str, other: &str) -> String {
    let words = value
        .split(' ')
        .filter(|word| !other.split(' ').any(|theirs| theirs == *word));
    let words: Vec<&str> = words.collect();
    match words.is_empty() {
        true => value.to_owned(),
        false => words.join(" "),
    }
}

/// Returns the settings of a job that must equal those of the collection.
pub(crate) fn settings_of(job: &JobSettings, read: &InputOptions) -> Vec<CollectionSetting> {
    let none = || "none".to_owned();
    let scope = match job.scope {
        PairScope::Everything => "everything",
        PairScope::Within => "within",
        PairScope::Across => "across",
    };
    // A category that the job reads but does not use may differ.
    let category = read.category.as_ref().filter(|_| job.by_category());
    let tests: Vec<String> = job.tests.iter().map(ToString::to_string).collect();
    let mut settings = vec![
        ("method", job.method.to_string()),
        ("scheme", job.scheme.to_string()),
        ("scope", scope.to_owned()),
        ("category", category.map_or_else(none, ToString::to_string)),
        (
            "ranking field",
            job.keep.field_rule().map_or_else(none, ToString::to_string),
        ),
        ("longest document", read.max_document_bytes.to_string()),
    ];
    // Settings that this method does not use may differ.
    if job.method != Method::Exact {
        settings.push(("threshold", job.threshold.to_string()));
        settings.push(("further tests", tests.join(" ")));
    }
    if job.method.has_fingerprints() {
        settings.push(("distance", job.distance.to_string()));
        settings.push(("distance counts for", job.distance_for.to_string()));
    }
    if matches!(job.method, Method::MinHash | Method::Oph | Method::BBit) {
        settings.push(("recall", job.recall.to_string()));
    }
    let setting = |(name, value): (&str, String)| CollectionSetting {
        name: name.to_owned(),
        value: match value.is_empty() {
            true => none(),
            false => value,
        },
    };
    settings.into_iter().map(setting).collect()
}

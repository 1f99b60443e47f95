//! The results of `dedup`, and the laws that hold for them whatever the input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use lookalike::{FeatureExtractor, Scheme, resemblance};
use serde_json::Value;

use crate::support::{Pairs, contents, json_lines, pairs_of};

/// The files whose bytes depend only on the input and the settings.
pub(crate) const STABLE: [&str; 5] = [
    "kept.jsonl",
    "removed.jsonl",
    "clusters.jsonl",
    "pairs.jsonl",
    "skipped.jsonl",
];

/// The results of a finished job.
pub(crate) struct Results {
    pub(crate) folder: PathBuf,
    pub(crate) kept: Vec<Vec<u8>>,
    pub(crate) removed: Vec<Vec<u8>>,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) pairs: Pairs,
    pub(crate) skipped: Vec<Value>,
    pub(crate) run: Value,
}

/// A line of `clusters.jsonl`.
#[derive(Debug, PartialEq)]
pub(crate) struct Cluster {
    pub(crate) survivor: String,
    pub(crate) members: Vec<Member>,
}

/// A removed document.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) similarity: f64,
    pub(crate) exact: bool,
}

/// An input document with the properties that tests need.
pub(crate) struct Document {
    pub(crate) text: String,
    /// The line expected in `kept.jsonl` or `removed.jsonl`.
    pub(crate) line: Vec<u8>,
}

impl Results {
    pub(crate) fn read(folder: &Path) -> Self {
        let rows = |name: &str| json_lines(&fs::read(folder.join(name)).unwrap());
        let run = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
        Self {
            folder: folder.to_owned(),
            kept: records(folder, "kept.jsonl"),
            removed: records(folder, "removed.jsonl"),
            clusters: rows("clusters.jsonl").iter().map(cluster).collect(),
            pairs: pairs_of(&rows("pairs.jsonl"), "similarity"),
            skipped: rows("skipped.jsonl"),
            run,
        }
    }

    /// Returns the bytes of the files that must not depend on how the job ran.
    pub(crate) fn stable(folder: &Path) -> Vec<(&'static str, Vec<u8>)> {
        STABLE
            .iter()
            .map(|name| (*name, contents(&find(folder, name))))
            .collect()
    }

    pub(crate) fn count(&self, group: &str, name: &str) -> u64 {
        self.run[group][name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {group}.{name}"))
    }

    /// Returns the removed ids, each with its survivor, its similarity and whether it is an exact copy.
    pub(crate) fn removals(&self) -> BTreeMap<&str, (&str, f64, bool)> {
        let members = self.clusters.iter().flat_map(|cluster| {
            cluster
                .members
                .iter()
                .map(|m| (&*m.id, (&*cluster.survivor, m.similarity, m.exact)))
        });
        members.collect()
    }

    /// Returns the ids of the kept records of JSONL input.
    pub(crate) fn kept_ids(&self) -> Vec<String> {
        ids(&self.kept)
    }

    /// Returns the ids of the removed records of JSONL input.
    pub(crate) fn removed_ids(&self) -> Vec<String> {
        ids(&self.removed)
    }

    /// Checks the laws that hold for every job over `documents`, by id, with the default list of pairs.
    #[track_caller]
    pub(crate) fn obey(&self, documents: &BTreeMap<String, Document>) {
        self.keep_every_record(documents);
        self.name_every_document(documents);
        self.have_true_similarities(documents);
        self.agree_with_pairs();
    }

    /// Checks that kept + removed = input, byte for byte.
    #[track_caller]
    fn keep_every_record(&self, documents: &BTreeMap<String, Document>) {
        let mut found: Vec<&[u8]> = self
            .kept
            .iter()
            .chain(&self.removed)
            .map(Vec::as_slice)
            .collect();
        let mut wanted: Vec<&[u8]> = documents.values().map(|d| d.line.as_slice()).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert!(
            found == wanted,
            "kept {} + removed {} is not the input",
            self.kept.len(),
            self.removed.len()
        );
    }

    /// Checks that the kept documents are the input without the members of clusters, that survivors are kept, and that the counts agree.
    #[track_caller]
    fn name_every_document(&self, documents: &BTreeMap<String, Document>) {
        let removals = self.removals();
        let members: usize = self
            .clusters
            .iter()
            .map(|cluster| cluster.members.len())
            .sum();
        assert_eq!(members, removals.len(), "a document is removed twice");
        assert!(
            self.clusters
                .iter()
                .all(|cluster| !cluster.members.is_empty())
        );
        let survivors: BTreeSet<&str> = self.clusters.iter().map(|c| &*c.survivor).collect();
        assert_eq!(
            survivors.len(),
            self.clusters.len(),
            "a document survives for two clusters"
        );
        assert!(
            survivors
                .iter()
                .all(|id| !removals.contains_key(id) && documents.contains_key(*id))
        );
        let (removed, kept): (Vec<_>, Vec<_>) = documents
            .iter()
            .partition(|(id, _)| removals.contains_key(id.as_str()));
        let lines = |rows: Vec<(&String, &Document)>| {
            rows.into_iter()
                .map(|row| row.1.line.clone())
                .collect::<Vec<_>>()
        };
        assert!(
            lines(kept) == self.kept,
            "kept.jsonl is not what no cluster removes, by id"
        );
        assert!(
            lines(removed) == self.removed,
            "removed.jsonl is not what clusters remove, by id"
        );
        assert_eq!(self.count("decisions", "kept"), self.kept.len() as u64);
        assert_eq!(
            self.count("decisions", "clusters"),
            self.clusters.len() as u64
        );
        let exact = removals.values().filter(|removal| removal.2).count();
        assert_eq!(self.count("decisions", "removed_exact"), exact as u64);
        assert_eq!(
            self.count("decisions", "removed_near"),
            (removals.len() - exact) as u64
        );
    }

    /// Checks that every removal has the similarity stated, which is at least the threshold.
    #[track_caller]
    fn have_true_similarities(&self, documents: &BTreeMap<String, Document>) {
        let threshold = self.run["threshold"].as_f64().unwrap();
        let scheme: Scheme = self.run["scheme"].as_str().unwrap().parse().unwrap();
        let mut extractor = FeatureExtractor::new(&scheme);
        for (id, (survivor, similarity, exact)) in self.removals() {
            let [a, b] = [id, survivor].map(|id| &documents[id].text);
            assert_eq!(a == b, exact, "{id} and {survivor}");
            if exact {
                assert!(
                    similarity == 1.0 && !a.trim().is_empty(),
                    "{id} and {survivor}"
                );
                continue;
            }
            let set = extractor.feature_set(a).to_vec();
            let real = resemblance(&set, extractor.feature_set(b));
            assert!(
                (real - similarity).abs() < 1e-12,
                "{id} and {survivor}: {similarity}, really {real}"
            );
            assert!(real >= threshold, "{id} and {survivor}: {real}");
        }
    }

    /// Checks that `pairs.jsonl` has each removed document with its survivor.
    #[track_caller]
    fn agree_with_pairs(&self) {
        let pair = |(id, (survivor, similarity, _)): (&str, (&str, f64, bool))| {
            let (a, b) = if id < survivor {
                (id, survivor)
            } else {
                (survivor, id)
            };
            ((a.to_owned(), b.to_owned()), similarity)
        };
        let deciding: Pairs = self.removals().into_iter().map(pair).collect();
        assert_eq!(self.pairs, deciding);
    }
}

fn ids(records: &[Vec<u8>]) -> Vec<String> {
    let id = |line: &Vec<u8>| {
        let record: Value = serde_json::from_slice(line).unwrap();
        record["id"].as_str().unwrap().to_owned()
    };
    records.iter().map(id).collect()
}

fn cluster(row: &Value) -> Cluster {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let member = |row: &Value| Member {
        id: text(&row["id"]),
        similarity: row["similarity"].as_f64().unwrap(),
        exact: match row["reason"].as_str() {
            Some("exact") => true,
            Some("near" | "same-main-text") => false,
            other => panic!("unknown reason {other:?}"),
        },
    };
    let members = row["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(member)
        .collect();
    Cluster {
        survivor: text(&row["survivor"]),
        members,
    }
}

/// Returns the path of a result, which may be compressed.
pub(crate) fn find(folder: &Path, name: &str) -> PathBuf {
    let candidates = ["", ".gz", ".zst"].map(|suffix| folder.join(format!("{name}{suffix}")));
    let found = candidates.iter().find(|path| path.exists());
    found
        .unwrap_or_else(|| panic!("no {name} in {}", folder.display()))
        .clone()
}

fn records(folder: &Path, name: &str) -> Vec<Vec<u8>> {
    let bytes = contents(&find(folder, name));
    assert!(
        bytes.is_empty() || bytes.ends_with(b"\n"),
        "{name} ends within a line"
    );
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

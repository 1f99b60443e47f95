//! Joins of many files, whole and in shards, against the comparison of all with all.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lookalike::SchemeId;
use lookalike_hamming::FingerprintWriter;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fingerprints::files::{PlaceKind, SketchShape, SketchWriter};
use crate::observer::NoProgress;

/// A name in the order of results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TestName {
    Number(u64),
    Text(String),
}

impl TestName {
    fn json(&self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
        }
    }
}

/// Ids of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestIds {
    Numbers,
    Texts,
    Nothing,
}

/// A file of numbers for ids and fingerprints.
#[derive(Clone, Debug)]
struct TestFile {
    ids: TestIds,
    documents: Vec<(u64, u64)>,
}

impl TestFile {
    fn named(&self) -> Vec<(TestName, u64)> {
        let name = |id: u64, code: u64| match self.ids {
            TestIds::Numbers => TestName::Number(id),
            // Texts that number 8 bytes as numbers do, some of them as a fingerprint is called.
            TestIds::Texts => TestName::Text(format!("{id:08}")),
            TestIds::Nothing => TestName::Text(format!("{code:016x}")),
        };
        let documents = self.documents.iter();
        documents
            .map(|&(id, code)| (name(id, code), code))
            .collect()
    }

    fn write(&self, folder: &Path, name: &str) -> FingerprintSource {
        let (end, bytes) = match self.ids {
            TestIds::Numbers => {
                let mut writer = FingerprintWriter::with_ids(Vec::new(), 7).unwrap();
                for &(id, code) in &self.documents {
                    writer.push(code, id).unwrap();
                }
                ("lkfp", writer.finish().unwrap())
            }
            TestIds::Texts => {
                let line = |(name, code): (TestName, u64)| {
                    format!(
                        "{}\n",
                        json!({"id": name.json(), "fingerprint": format!("{code:016x}")})
                    )
                };
                let lines: String = self.named().into_iter().map(line).collect();
                ("jsonl", lines.into_bytes())
            }
            TestIds::Nothing => {
                let codes = self
                    .documents
                    .iter()
                    .flat_map(|(_, code)| code.to_le_bytes());
                ("u64", codes.collect())
            }
        };
        let path = folder.join(format!("{name}.{end}"));
        fs::write(&path, bytes).unwrap();
        path.into()
    }
}

/// Fingerprints in families, some equal; ids that repeat now and then.
fn files() -> impl Strategy<Value = Vec<TestFile>> {
    let code = (0..5_u64, prop::collection::vec(0..12_u32, 0..5)).prop_map(|(family, flips)| {
        let base = (family + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        flips.iter().fold(base, |code, flip| code ^ 1 << (5 * flip))
    });
    let ids = prop::sample::select(vec![TestIds::Numbers, TestIds::Texts, TestIds::Nothing]);
    let documents = prop::collection::vec((0..60_u64, code), 0..25);
    let file = (ids, documents).prop_map(|(ids, documents)| TestFile { ids, documents });
    prop::collection::vec(file, 1..5)
}

fn write(files: &[TestFile], folder: &Path, side: &str) -> Vec<FingerprintSource> {
    let written = files.iter().enumerate();
    written
        .map(|(at, file)| file.write(folder, &format!("{side}{at}")))
        .collect()
}

fn all_of(files: &[TestFile]) -> Vec<(TestName, u64)> {
    files.iter().flat_map(TestFile::named).collect()
}

/// Lines of pairs in order.
fn lines(pairs: BTreeSet<(TestName, TestName, u32)>, sides: [&str; 2]) -> String {
    let line = |(a, b, distance): (TestName, TestName, u32)| {
        let [first, second] = sides;
        let (a, b) = (a.json(), b.json());
        format!("{{\"{first}\":{a},\"{second}\":{b},\"distance\":{distance}}}\n")
    };
    pairs.into_iter().map(line).collect()
}

fn slow_two(f: &[TestFile], q: &[TestFile], radius: u32) -> String {
    let mut pairs = BTreeSet::new();
    for (f, a) in all_of(f) {
        for (q, b) in all_of(q) {
            let distance = (a ^ b).count_ones();
            if distance <= radius {
                pairs.insert((f.clone(), q, distance));
            }
        }
    }
    lines(pairs, ["f", "q"])
}

fn slow_alone(files: &[TestFile], radius: u32) -> String {
    let all = all_of(files);
    let least = |code: u64| {
        let equal = all.iter().filter(|document| document.1 == code);
        equal.map(|document| &document.0).min().unwrap().clone()
    };
    let ordered = |a: TestName, b: TestName, distance| match a <= b {
        true => (a, b, distance),
        false => (b, a, distance),
    };
    let mut pairs = BTreeSet::new();
    for (name, a) in &all {
        if *name != least(*a) {
            pairs.insert(ordered(least(*a), name.clone(), 0));
        }
        for (_, b) in &all {
            let distance = (a ^ b).count_ones();
            if a < b && distance <= radius {
                pairs.insert(ordered(least(*a), least(*b), distance));
            }
        }
    }
    lines(pairs, ["a", "b"])
}

/// A join with limits of the machine.
struct TestJoin<'a> {
    f: &'a [FingerprintSource],
    q: &'a [FingerprintSource],
    distance: u32,
    equal: Option<LeastEqual>,
    threads: usize,
    memory: u64,
}

impl TestJoin<'_> {
    fn run(&self, shard: FingerprintShard) -> (String, JoinSummary) {
        let folder = tempfile::tempdir().unwrap();
        let join = FingerprintJoin {
            f: self.f,
            q: self.q,
            distance: self.distance,
            equal: self.equal,
            shard,
            losses: LossPolicy::Tolerate,
            limits: &JobLimits {
                threads: self.threads,
                memory: self.memory,
            },
            folder: folder.path(),
            observer: &NoProgress,
        };
        let mut out = Vec::new();
        let summary = join.write(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), summary)
    }

    /// The lists of all shards, merged from the last to the first.
    fn merged(&self, shards: u32) -> (String, MergeSummary) {
        let folder = tempfile::tempdir().unwrap();
        let lists: Vec<FingerprintSource> = (1..=shards)
            .rev()
            .map(|number| {
                let shard = format!("{number}/{shards}").parse().unwrap();
                let path = folder.path().join(format!("{number}.jsonl"));
                fs::write(&path, self.run(shard).0).unwrap();
                path.into()
            })
            .collect();
        let merge = PairMerge {
            lists: &lists,
            observer: &NoProgress,
        };
        let mut out = Vec::new();
        let summary = merge.write(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), summary)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn many_files_of_two_sides_in_shards_give_the_pairs_of_all_with_all(
        f in files(),
        q in files(),
        distance in 0..6_u32,
        shards in 1..5_u32,
        threads in 1..4_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (f_files, q_files) = (write(&f, folder.path(), "f"), write(&q, folder.path(), "q"));
        let join = TestJoin { f: &f_files, q: &q_files, distance, equal: None, threads, memory: 64 << 20 };
        let expected = slow_two(&f, &q, distance);
        let (whole, summary) = join.run(FingerprintShard::ALL);
        prop_assert_eq!(&whole, &expected);
        prop_assert_eq!((summary.f.len(), summary.q.len()), (f.len(), q.len()));
        let (merged, summary) = join.merged(shards);
        prop_assert_eq!(&merged, &expected);
        prop_assert_eq!(summary.pairs as usize, expected.lines().count());
    }

    #[test]
    fn many_files_alone_in_shards_give_the_pairs_of_all_with_all(
        files in files(),
        distance in 0..6_u32,
        shards in 1..5_u32,
        threads in 1..4_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let f = write(&files, folder.path(), "f");
        let join = TestJoin { f: &f, q: &[], distance, equal: None, threads, memory: 64 << 20 };
        let expected = slow_alone(&files, distance);
        prop_assert_eq!(&join.run(FingerprintShard::ALL).0, &expected);
        let (merged, summary) = join.merged(shards);
        prop_assert_eq!(&merged, &expected);
        // A pair of fingerprints belongs to one shard; names of two fingerprints may be the same pair twice.
        prop_assert_eq!(summary.pairs as usize, expected.lines().count());
    }
}

/// A file of sketches: of super-shingles or minima, as lines, a fingerprint file, a table or raw numbers.
#[derive(Clone, Debug)]
struct SketchTestFile {
    ending: &'static str,
    /// Ids, and six values.
    documents: Vec<(u64, Vec<u32>)>,
}

fn sketch_files() -> impl Strategy<Value = Vec<SketchTestFile>> {
    let endings = prop::sample::select(vec!["jsonl", "lkfp", "raw", "jsonl.gz", "lkfp.zst"]);
    let sketch = prop::collection::vec(0..3_u32, 6);
    let documents = prop::collection::vec((0..60_u64, sketch), 0..50);
    let file =
        (endings, documents).prop_map(|(ending, documents)| SketchTestFile { ending, documents });
    prop::collection::vec(file, 1..4)
}

impl SketchTestFile {
    /// Words of a sketch as its kind has them.
    fn words(values: &[u32], kind: PlaceKind) -> Vec<u64> {
        let mut words = Vec::new();
        match kind {
            PlaceKind::SuperShingles => {
                words.extend(values.iter().map(|&value| u64::from(value) << 33))
            }
            PlaceKind::Minima => SketchShape::pack(values, &mut words),
        }
        words
    }

    /// Names and values: a sketch without an id is called by its digits.
    fn named(&self, kind: PlaceKind) -> Vec<(TestName, Vec<u32>)> {
        let name = |id: u64, values: &[u32]| match (self.ending, kind) {
            ("raw", PlaceKind::SuperShingles) => {
                let digits = values
                    .iter()
                    .map(|&value| format!("{:016x}", u64::from(value) << 33));
                TestName::Text(digits.collect())
            }
            ("raw", PlaceKind::Minima) => {
                TestName::Text(values.iter().map(|value| format!("{value:08x}")).collect())
            }
            _ => TestName::Text(format!("{id:08}")),
        };
        let documents = self.documents.iter();
        documents
            .map(|(id, values)| (name(*id, values), values.clone()))
            .collect()
    }

    fn write(&self, folder: &Path, name: &str, kind: PlaceKind) -> FingerprintSource {
        let shape = SketchShape { kind, places: 6 };
        let ending = match self.ending {
            "raw" => shape.raw_ending(),
            other => other.to_owned(),
        };
        let path = folder.join(format!("{name}.{ending}"));
        let mut writer = SketchWriter::create(&path, shape, SchemeId(7)).unwrap();
        for (id, values) in &self.documents {
            writer
                .push(&format!("{id:08}"), Some(&Self::words(values, kind)))
                .unwrap();
        }
        writer.commit().unwrap();
        path.into()
    }
}

fn values_apart(a: &[u32], b: &[u32]) -> u32 {
    a.iter().zip(b).filter(|(a, b)| a != b).count() as u32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn sketches_in_shards_give_the_pairs_of_all_with_all_that_have_enough_in_common(
        f in sketch_files(),
        q in prop::option::of(sketch_files()),
        is_minima in any::<bool>(),
        least in 1..7_u32,
        shards in 1..4_u32,
        threads in 1..4_usize,
    ) {
        let kind = if is_minima { PlaceKind::Minima } else { PlaceKind::SuperShingles };
        let folder = tempfile::tempdir().unwrap();
        let write = |files: &[SketchTestFile], side: &str| -> Vec<FingerprintSource> {
            let files = files.iter().enumerate();
            files.map(|(at, file)| file.write(folder.path(), &format!("{side}{at}"), kind)).collect()
        };
        let named = |files: &[SketchTestFile]| -> Vec<(TestName, Vec<u32>)> {
            files.iter().flat_map(|file| file.named(kind)).collect()
        };
        let (all, mut pairs) = (named(&f), BTreeSet::new());
        let sides = match &q {
            Some(q) => {
                for (a, x) in &all {
                    for (b, y) in named(q) {
                        pairs.insert((a.clone(), b, values_apart(x, &y)));
                    }
                }
                ["f", "q"]
            }
            None => {
                let least_name = |sketch: &[u32]| {
                    all.iter().filter(|(_, other)| other == sketch).map(|(name, _)| name).min().unwrap()
                };
                for (a, x) in &all {
                    for (_, y) in all.iter().filter(|(_, y)| x != y) {
                        let (one, other) = (least_name(x), least_name(y));
                        pairs.insert((one.min(other).clone(), one.max(other).clone(), values_apart(x, y)));
                    }
                    if a != least_name(x) {
                        pairs.insert((least_name(x).clone(), a.clone(), 0));
                    }
                }
                ["a", "b"]
            }
        };
        pairs.retain(|(_, _, apart)| *apart <= 6 - least);
        let expected = lines(pairs, sides);
        let (f, q) = (write(&f, "f"), q.map(|q| write(&q, "q")).unwrap_or_default());
        let equal = Some(LeastEqual::Places(least));
        let join = TestJoin { f: &f, q: &q, distance: 0, equal, threads, memory: 64 << 20 };
        prop_assert_eq!(&join.run(FingerprintShard::ALL).0, &expected);
        prop_assert_eq!(&join.merged(shards).0, &expected);
    }
}

#[test]
fn lists_that_are_no_shards_of_one_join_are_refused_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |lines: &[&str]| {
        let lists: Vec<FingerprintSource> = (lines.iter().enumerate())
            .map(|(at, lines)| {
                let path = folder.path().join(format!("{at}.jsonl"));
                fs::write(&path, lines).unwrap();
                path.into()
            })
            .collect();
        let merge = PairMerge {
            lists: &lists,
            observer: &NoProgress,
        };
        merge.write(&mut Vec::new()).unwrap_err().to_string()
    };
    let pair = |a: &str, b: &str| format!("{{\"a\":{a},\"b\":{b},\"distance\":1}}\n");
    let error = refused(&[&(pair("\"b\"", "\"c\"") + &pair("7", "\"c\""))]);
    assert!(error.contains("0.jsonl, line 2: comes before"), "{error}");
    let two = pair("1", "2")
        .replace("\"a\"", "\"f\"")
        .replace("\"b\"", "\"q\"");
    let error = refused(&[&pair("1", "2"), &two]);
    assert!(
        error.contains("1.jsonl, line 1: a pair of f and q"),
        "{error}"
    );
    let error = refused(&[&pair("1", "2"), "{\"a\":1}\n"]);
    assert!(error.contains("1.jsonl, line 1: has neither"), "{error}");
}

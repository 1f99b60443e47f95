//! Joins of many files, whole and in shards, compared with comparing all pairs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike::SchemeId;
use lookalike::hash::xxh3_64;
use lookalike_corpus::AtomicFile;
use lookalike_hamming::FingerprintWriter;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::can_resume;
use crate::fingerprints::files::{
    ArchiveScratch, CodeWriter, FingerprintName, PlaceKind, SizedFingerprint, SketchKind,
    SketchShape,
};

/// A name, ordered as in results.
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

/// Kind of a file's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestIds {
    Numbers,
    Texts,
    Nothing,
}

/// A file with numbers for ids and fingerprints.
#[derive(Clone, Debug)]
struct TestFile {
    bits: u32,
    ids: TestIds,
    documents: Vec<(u64, u128)>,
}

impl TestFile {
    fn named(&self) -> Vec<(TestName, u128)> {
        let digits = self.bits as usize / 4;
        let name = |id: u64, code: u128| match self.ids {
            TestIds::Numbers if self.bits == 64 => TestName::Number(id),
            // Files of other widths store numbers as texts.
            TestIds::Numbers => TestName::Text(id.to_string()),
            // Texts of eight digits, which sort as the numbers do. Some look like the digits of a fingerprint.
            TestIds::Texts => TestName::Text(format!("{id:08}")),
            TestIds::Nothing => TestName::Text(format!("{code:0digits$x}")),
        };
        let documents = self.documents.iter();
        documents
            .map(|&(id, code)| (name(id, code), code))
            .collect()
    }

    /// Writes a file of fingerprints with a width other than 64 bits. All of these are written the same way.
    fn write_other(&self, folder: &Path, name: &str) -> FingerprintSource {
        let end = match self.ids {
            TestIds::Numbers => "lkfp".to_owned(),
            TestIds::Texts => "jsonl".to_owned(),
            TestIds::Nothing => format!("u{}", self.bits),
        };
        let path = folder.join(format!("{name}.{end}"));
        let scratch = ArchiveScratch {
            folder,
            memory: 1 << 20,
        };
        let kind = SketchKind::Fingerprints(self.bits);
        let mut writer =
            CodeWriter::create(&path, AtomicFile::create, Some(SchemeId(7)), kind, scratch)
                .unwrap();
        for (id, (name, code)) in self.documents.iter().map(|(id, _)| *id).zip(self.named()) {
            let words = &[code as u64, (code >> 64) as u64][..kind.words()];
            let name = match (&name, self.ids) {
                (_, TestIds::Nothing) => {
                    FingerprintName::Fingerprint(SizedFingerprint::of_words(self.bits, words))
                }
                (_, TestIds::Numbers) => FingerprintName::Number(id),
                (TestName::Text(text), _) => FingerprintName::Text(text),
                (TestName::Number(number), _) => FingerprintName::Number(*number),
            };
            writer.push(name, Some(words)).unwrap();
        }
        writer.commit().unwrap();
        path.into()
    }

    fn write(&self, folder: &Path, name: &str) -> FingerprintSource {
        if self.bits != 64 {
            return self.write_other(folder, name);
        }
        let (end, bytes) = match self.ids {
            TestIds::Numbers => {
                let mut writer = FingerprintWriter::with_ids(Vec::new(), 7).unwrap();
                for &(id, code) in &self.documents {
                    writer.push(code as u64, id).unwrap();
                }
                ("lkfp", writer.finish().unwrap())
            }
            TestIds::Texts => {
                let line = |(name, code): (TestName, u128)| {
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
                    .flat_map(|(_, code)| (*code as u64).to_le_bytes());
                ("u64", codes.collect())
            }
        };
        let path = folder.join(format!("{name}.{end}"));
        fs::write(&path, bytes).unwrap();
        path.into()
    }
}

/// Generates fingerprints in families, some of them equal, with ids that sometimes repeat.
fn files(bits: u32) -> impl Strategy<Value = Vec<TestFile>> {
    let flips = prop::collection::vec(0..12_u32, 0..5);
    let code = (0..5_u128, flips).prop_map(move |(family, flips)| {
        let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        let base = (family + 1).wrapping_mul(spread) >> (128 - bits);
        let flip = |code: u128, flip: &u32| code ^ 1 << (bits / 12 * flip);
        flips.iter().fold(base, flip)
    });
    let ids = prop::sample::select(vec![TestIds::Numbers, TestIds::Texts, TestIds::Nothing]);
    let documents = prop::collection::vec((0..60_u64, code), 0..25);
    let file = (ids, documents).prop_map(move |(ids, documents)| TestFile {
        bits,
        ids,
        documents,
    });
    prop::collection::vec(file, 1..5)
}

fn write(files: &[TestFile], folder: &Path, side: &str) -> Vec<FingerprintSource> {
    let written = files.iter().enumerate();
    written
        .map(|(at, file)| file.write(folder, &format!("{side}{at}")))
        .collect()
}

fn all_of(files: &[TestFile]) -> Vec<(TestName, u128)> {
    files.iter().flat_map(TestFile::named).collect()
}

/// Returns the lines of pairs in order.
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
    let least = |code: u128| {
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

/// A join with its inputs and distance.
struct TestJoin<'a> {
    f: &'a [FingerprintSource],
    q: &'a [FingerprintSource],
    distance: u32,
    equal: Option<MinEqual>,
    threads: usize,
    memory: u64,
}

impl TestJoin<'_> {
    fn run(&self, shard: FingerprintShard) -> (String, JoinSummary) {
        let mut out = Vec::new();
        let summary = self.write(shard, None, &NoProgress, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), summary)
    }

    /// Returns the pairs of a join that is interrupted repeatedly and each time resumed with another number of threads, until it is done; and the
    /// number of times that it was resumed.
    fn resumed(&self, shard: FingerprintShard, step: usize) -> (String, usize) {
        let folder = tempfile::tempdir().unwrap();
        let (output, mut resumed) = (folder.path().join("out"), 0);
        for attempt in 0.. {
            let checkpoint = JobFolder::of_join(&output, attempt > 0).unwrap();
            resumed += usize::from(can_resume(checkpoint.path()));
            let observer = CancelledAfter(AtomicUsize::new((attempt + 1) * step));
            let join = TestJoin {
                threads: 1 + (self.threads + attempt) % 3,
                ..*self
            };
            let mut out = Vec::new();
            match join.write(shard, Some(&checkpoint), &observer, &mut out) {
                Ok(_) => {
                    checkpoint.finish().unwrap();
                    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
                    return (String::from_utf8(out).unwrap(), resumed);
                }
                Err(BatchError::Cancelled) => {}
                Err(other) => panic!("{other}"),
            }
        }
        unreachable!("each attempt has more time than the one before")
    }

    fn write(
        &self,
        shard: FingerprintShard,
        checkpoint: Option<&JobFolder>,
        observer: &dyn JobObserver,
        out: &mut Vec<u8>,
    ) -> Result<JoinSummary, BatchError> {
        let folder = tempfile::tempdir().unwrap();
        let limits = JobLimits {
            threads: self.threads,
            memory: self.memory,
        };
        FingerprintJoin::new(self.f, folder.path())
            .queries(self.q)
            .distance(self.distance)
            .equal(self.equal)
            .shard(shard)
            .limits(limits)
            .checkpoint(checkpoint)
            .observer(observer)
            .write(out)
    }

    /// Merges the lists of all shards, given from the last to the first.
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
        let merge = PairMerge::new(&lists);
        let mut out = Vec::new();
        let summary = merge.write(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), summary)
    }
}

/// Observer that cancels a job after a number of checks.
struct CancelledAfter(AtomicUsize);

impl JobObserver for CancelledAfter {
    fn is_cancelled(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        // Once true it stays true.
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        left == 0
    }
}

/// Generates two collections with fingerprints of the same width.
fn two_sides() -> impl Strategy<Value = (Vec<TestFile>, Vec<TestFile>)> {
    prop::sample::select(vec![32, 64, 128]).prop_flat_map(|bits| (files(bits), files(bits)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn many_files_of_two_sides_in_shards_give_the_pairs_of_all_with_all(
        (f, q) in two_sides(),
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
        prop_assert_eq!(&join.resumed(FingerprintShard::ALL, 1).0, &expected);
    }

    #[test]
    fn many_files_alone_in_shards_give_the_pairs_of_all_with_all(
        (files, _) in two_sides(),
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
        // A pair of fingerprints belongs to one shard, but two pairs of fingerprints may have the same names.
        prop_assert_eq!(summary.pairs as usize, expected.lines().count());
        prop_assert_eq!(&join.resumed(FingerprintShard::ALL, 2).0, &expected);
        let part = format!("1/{shards}").parse().unwrap();
        prop_assert_eq!(join.resumed(part, 1).0, join.run(part).0);
    }
}

/// A file of super-shingles or minima: lines, a fingerprint file, a table or raw numbers.
#[derive(Clone, Debug)]
struct SketchTestFile {
    ending: &'static str,
    /// Ids, each with six values.
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
    /// Returns the words of a sketch of a kind.
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

    /// Returns names and values. A sketch without an id is named by its digits.
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
        let (sketches, scheme) = (SketchKind::Places(shape), Some(SchemeId(7)));
        let scratch = ArchiveScratch { folder, memory: 0 };
        let mut writer =
            CodeWriter::create(&path, AtomicFile::create, scheme, sketches, scratch).unwrap();
        for (id, values) in &self.documents {
            let id = format!("{id:08}");
            let words = Self::words(values, kind);
            writer
                .push(FingerprintName::Text(&id), Some(&words))
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
        let equal = Some(MinEqual::Places(least));
        let join = TestJoin { f: &f, q: &q, distance: 0, equal, threads, memory: 64 << 20 };
        prop_assert_eq!(&join.run(FingerprintShard::ALL).0, &expected);
        prop_assert_eq!(&join.merged(shards).0, &expected);
        prop_assert_eq!(&join.resumed(FingerprintShard::ALL, 3).0, &expected);
    }
}

/// Observer that notes the stages of a job.
#[derive(Default)]
struct NotedStages(Mutex<Vec<JobStage>>);

impl JobObserver for NotedStages {
    fn stage(&self, stage: JobStage, _: u64) {
        self.0.lock().unwrap().push(stage);
    }
}

/// Each of n queries was compared with all n sketches of its bucket.
#[test]
fn a_join_of_an_index_compared_all_pages_of_a_template() {
    let folder = tempfile::tempdir().unwrap();
    let mixed = |number: u64| xxh3_64(&number.to_le_bytes(), 0) as u32;
    // Half of Q's sketches have two places in common with one of F, besides the template's.
    let sketch = |number: u64, has_template: bool| -> Vec<u32> {
        let own = |place: u64| match place {
            0 if has_template => 7,
            1 | 2 => mixed(number % 3000 * 6 + place),
            _ => mixed(number * 6 + place),
        };
        (0..6).map(own).collect()
    };
    let joined = |has_template: bool| {
        let file = |name: &str, numbers: std::ops::Range<u64>| {
            let documents = numbers.map(|at| (at, sketch(at, has_template))).collect();
            let ending = "lkfp";
            let file = SketchTestFile { ending, documents };
            file.write(
                folder.path(),
                &format!("{name}-{has_template}"),
                PlaceKind::SuperShingles,
            )
        };
        let [f, q] = [[file("f", 0..2000)], [file("q", 4000..6000)]];
        let path = folder.path().join(format!("{has_template}.lkix"));
        let equal = Some(MinEqual::Places(2));
        let build = index::IndexBuild::new(&f, &path).equal(equal);
        build.run(&build.enter().unwrap()).unwrap();
        let pairs = |f: &[FingerprintSource], stages: &NotedStages| {
            let (mut out, distance, threads, memory) = (Vec::new(), 0, 2, 64 << 20);
            let join = TestJoin {
                f,
                q: &q,
                distance,
                equal,
                threads,
                memory,
            };
            let summary = join
                .write(FingerprintShard::ALL, None, stages, &mut out)
                .unwrap();
            (String::from_utf8(out).unwrap(), summary.f[0].fingerprints)
        };
        let stages = NotedStages::default();
        let of_index = pairs(&[path.into()], &stages);
        assert_eq!(of_index, pairs(&f, &NotedStages::default()));
        assert_eq!(of_index.0.lines().count(), 1000);
        stages.0.into_inner().unwrap()
    };
    assert!(joined(true).contains(&JobStage::Compare), "divided");
    assert!(joined(false).contains(&JobStage::Join), "searched");
}

/// Observer that counts how often a job asks whether it is cancelled.
#[derive(Default)]
struct CountedChecks(AtomicUsize);

impl JobObserver for CountedChecks {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        false
    }
}

#[test]
fn a_join_whose_pairs_found_no_room_on_the_disk_went_on_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    // All 3^6 sketches of three values. Each shares no place with 2^6 others, so there are 729 * (728 - 64) / 2 = 242,028 pairs.
    let values = |at: u64| -> Vec<u32> {
        let places = (0..6).map(|place| (at / 3_u64.pow(place) % 3) as u32);
        places.collect()
    };
    let file = SketchTestFile {
        ending: "lkfp",
        documents: (0..729).map(|at| (at, values(at))).collect(),
    };
    let f = [file.write(folder.path(), "f", PlaceKind::Minima)];
    let join = |temporary: &Path| {
        let checks = CountedChecks::default();
        let limits = JobLimits {
            threads: 1,
            memory: 44 << 20,
        };
        let ended = FingerprintJoin::new(&f, temporary)
            .equal(Some(MinEqual::Places(1)))
            .limits(limits)
            .observer(&checks)
            .write(&mut std::io::sink());
        (ended, checks.0.into_inner())
    };
    let (whole, all) = join(folder.path());
    let whole = whole.unwrap();
    assert_eq!(whole.pairs, 242_028);
    assert!(whole.temporary_bytes > 0);
    let (failed, asked) = join(&folder.path().join("missing"));
    assert!(
        matches!(failed, Err(BatchError::Temporary { .. })),
        "{failed:?}"
    );
    // The first two of six bands have more pairs than fit in memory.
    assert!(asked < all / 2, "{asked} of {all}");
}

#[test]
fn indexes_of_two_schemes_were_joined_after_one_without_a_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let index = |name: &str, ending: &str, bytes: Vec<u8>| -> FingerprintSource {
        let input = folder.path().join(format!("{name}.{ending}"));
        fs::write(&input, bytes).unwrap();
        let output = folder.path().join(format!("{name}.lkix"));
        let inputs = [input.into()];
        let build = index::IndexBuild::new(&inputs, &output);
        build.run(&build.enter().unwrap()).unwrap();
        output.into()
    };
    let of_scheme = |scheme: u64| {
        let mut writer = FingerprintWriter::with_ids(Vec::new(), scheme).unwrap();
        writer.push(5, 1).unwrap();
        writer.finish().unwrap()
    };
    let f = [
        index("none", "u64", vec![5; 8]),
        index("seven", "lkfp", of_scheme(7)),
        index("eight", "lkfp", of_scheme(8)),
    ];
    let join = TestJoin {
        f: &f,
        q: &raw_files(folder.path(), "q", 1, 10),
        distance: 3,
        equal: None,
        threads: 1,
        memory: 256 << 20,
    };
    let refused = join.write(FingerprintShard::ALL, None, &NoProgress, &mut Vec::new());
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("seven") && told.contains("eight"), "{told}");
}

/// Writes raw files of fingerprints; some in each file are near some in every other file.
fn raw_files(folder: &Path, side: &str, files: u64, each: u64) -> Vec<FingerprintSource> {
    let file = |file: u64| {
        let code = |at: u64| {
            let base = (at / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            base ^ 1 << (at % 61) ^ 1 << ((at + 7 * file) % 59)
        };
        let path = folder.join(format!("{side}{file}.u64"));
        let bytes: Vec<u8> = (0..each).flat_map(|at| code(at).to_le_bytes()).collect();
        fs::write(&path, bytes).unwrap();
        path.into()
    };
    (0..files).map(file).collect()
}

#[test]
fn joins_that_are_interrupted_again_and_again_go_on_and_find_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let f = raw_files(folder.path(), "f", 7, 20_000);
    let q = raw_files(folder.path(), "q", 2, 3_000);
    let part = "2/3".parse().unwrap();
    for (q, shard, step, least) in [
        (q.as_slice(), FingerprintShard::ALL, 2, 2),
        (&[], FingerprintShard::ALL, 40, 2),
        (&[], part, 4, 2),
    ] {
        let join = TestJoin {
            f: &f,
            q,
            distance: 3,
            equal: None,
            threads: 2,
            memory: 256 << 20,
        };
        let whole = join.run(shard).0;
        assert!(whole.lines().count() > 1000, "{}", whole.lines().count());
        let (found, resumed) = join.resumed(shard, step);
        assert!(found == whole);
        assert!(resumed >= least, "{resumed}");
    }
}

#[test]
fn what_an_interrupted_join_left_is_not_believed_of_other_inputs_or_when_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let f = raw_files(folder.path(), "f", 4, 5_000);
    let q = raw_files(folder.path(), "q", 1, 3_000);
    let join = TestJoin {
        f: &f,
        q: &q,
        distance: 3,
        equal: None,
        threads: 1,
        memory: 256 << 20,
    };
    let whole = join.run(FingerprintShard::ALL).0;
    let output = folder.path().join("out");
    let state = folder.path().join("out.joining");
    // Q is read in one chunk, and two chunks of F are joined.
    let interrupt = || {
        let checkpoint = JobFolder::of_join(&output, false).unwrap();
        let observer = CancelledAfter(AtomicUsize::new(3));
        let ended = join.write(
            FingerprintShard::ALL,
            Some(&checkpoint),
            &observer,
            &mut Vec::new(),
        );
        assert!(matches!(ended, Err(BatchError::Cancelled)));
        drop(checkpoint);
        assert!(can_resume(&state));
    };
    let resume = |join: &TestJoin<'_>| {
        let checkpoint = JobFolder::of_join(&output, true).unwrap();
        let mut out = Vec::new();
        let done = join.write(
            FingerprintShard::ALL,
            Some(&checkpoint),
            &NoProgress,
            &mut out,
        );
        done.map(|_| String::from_utf8(out).unwrap())
    };
    interrupt();
    let refused = resume(&TestJoin {
        distance: 4,
        ..join
    })
    .unwrap_err()
    .to_string();
    assert!(refused.contains("other inputs or settings"), "{refused}");
    for changed in [f[0].path(), q[0].path()] {
        let good = fs::read(changed).unwrap();
        let mut bad = good.clone();
        bad[8] ^= 1;
        fs::write(changed, bad).unwrap();
        let refused = resume(&join).unwrap_err().to_string();
        assert!(refused.contains("the inputs have changed"), "{refused}");
        fs::write(changed, good).unwrap();
    }
    // Files that were not yet read may change: the result is that of the current inputs.
    let last = fs::read(f[3].path()).unwrap();
    fs::write(f[3].path(), &last[..800]).unwrap();
    assert!(resume(&join).unwrap() == join.run(FingerprintShard::ALL).0);
    fs::write(f[3].path(), last).unwrap();
    for damage in [
        |pairs: &mut Vec<u8>| pairs.truncate(100),
        |pairs: &mut Vec<u8>| pairs[50] ^= 1,
    ] {
        interrupt();
        let mut pairs = fs::read(state.join("pairs")).unwrap();
        assert!(pairs.len() > 100);
        damage(&mut pairs);
        fs::write(state.join("pairs"), pairs).unwrap();
        assert!(resume(&join).unwrap() == whole);
    }
    interrupt();
    fs::write(state.join("job.json"), "nonsense").unwrap();
    assert!(resume(&join).unwrap() == whole);
    // Without --resume nothing of it is left.
    interrupt();
    drop(JobFolder::of_join(&output, false).unwrap());
    assert!(!state.exists());
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
        let merge = PairMerge::new(&lists);
        merge.write(&mut Vec::new()).unwrap_err().to_string()
    };
    let pair = |a: &str, b: &str| format!("{{\"a\":{a},\"b\":{b},\"distance\":1}}\n");
    let error = refused(&[&(pair("\"b\"", "\"c\"") + &pair("7", "\"c\""))]);
    assert!(error.contains("0.jsonl, line 2: sorts before"), "{error}");
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

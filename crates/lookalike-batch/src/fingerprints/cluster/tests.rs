//! The job on small collections, compared with the slow definition.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;

use lookalike::{Decision, survivors};
use lookalike_hamming::FingerprintWriter;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{FingerprintJoin, JobLimits};

/// A document of a test: its id and fingerprint.
type Numbered = (u64, u64);

/// Generates fingerprints in families: chains, copies, and some far from all others. Ids are distinct numbers in no particular order.
fn collections() -> impl Strategy<Value = Vec<Numbered>> {
    let fingerprint = (0..6_u64, prop::collection::vec(0..12_u32, 0..5));
    prop::collection::vec(fingerprint, 1..60).prop_map(|all| {
        let of = |(family, flips): &(u64, Vec<u32>)| {
            let base = (family + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            flips.iter().fold(base, |code, flip| code ^ 1 << (5 * flip))
        };
        let id = |at: usize| (at as u64 + 1) * 7919 % 10_007;
        all.iter()
            .enumerate()
            .map(|(at, one)| (id(at), of(one)))
            .collect()
    })
}

fn keeps() -> impl Strategy<Value = FingerprintKeep> {
    prop::sample::select(vec![
        FingerprintKeep::First,
        FingerprintKeep::Last,
        FingerprintKeep::Id,
    ])
}

fn file_of(documents: &[Numbered]) -> Vec<u8> {
    let mut writer = FingerprintWriter::with_ids(Vec::new(), 7).unwrap();
    for &(id, fingerprint) in documents {
        writer.push(fingerprint, id).unwrap();
    }
    writer.finish().unwrap()
}

/// Bytes of `kept.jsonl`, `removed.jsonl` and `clusters.jsonl`.
type ResultBytes = [Vec<u8>; 3];

/// Options of a job in a test.
#[derive(Clone, Copy)]
struct TestJob {
    distance: Option<u32>,
    equal: Option<MinEqual>,
    keep: FingerprintKeep,
    rule: FingerprintRule,
    threads: usize,
    memory: u64,
}

impl TestJob {
    fn run(
        self,
        inputs: &[PathBuf],
        pairs: &[PathBuf],
    ) -> Result<(ResultBytes, ClusterSummary), BatchError> {
        let folder = tempfile::tempdir().unwrap();
        let spool = tempfile::tempdir().unwrap();
        let (inputs, pairs) = (sources(inputs), sources(pairs));
        let limits = JobLimits {
            threads: self.threads,
            memory: self.memory,
        };
        let job = FingerprintClustering::new(&inputs, spool.path())
            .pairs(&pairs)
            .distance(self.distance)
            .equal(self.equal)
            .keep(Some(self.keep))
            .rule(self.rule)
            .limits(limits);
        let summary = job.cluster(folder.path(), IfExists::New, "")?;
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        Ok((
            ["kept.jsonl", "removed.jsonl", "clusters.jsonl"].map(read),
            summary,
        ))
    }
}

fn lines(values: impl IntoIterator<Item = Value>) -> Vec<u8> {
    let lines = values.into_iter().map(|value| format!("{value}\n"));
    lines.collect::<String>().into_bytes()
}

/// Returns the positions of the documents of each fingerprint, the best first, with fingerprints in the order in which they are wanted.
fn wanted(documents: &[Numbered], keep: FingerprintKeep) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..documents.len()).collect();
    match keep {
        FingerprintKeep::First => {}
        FingerprintKeep::Last => order.reverse(),
        FingerprintKeep::Id => order.sort_by_key(|&at| documents[at].0),
    }
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for at in order {
        let mut known = classes.iter_mut();
        match known.find(|class| documents[class[0]].1 == documents[at].1) {
            Some(class) => class.push(at),
            None => classes.push(vec![at]),
        }
    }
    classes
}

fn bits_apart(a: u64, b: u64) -> u32 {
    (a ^ b).count_ones()
}

/// Returns the number of places of four bits that differ.
fn places_apart(a: u64, b: u64) -> u32 {
    (0..16)
        .filter(|place| (a ^ b) >> (4 * place) & 15 != 0)
        .count() as u32
}

/// Computes the results by the slow definition.
fn slow(
    documents: &[Numbered],
    distance: u32,
    keep: FingerprintKeep,
    rule: FingerprintRule,
) -> ResultBytes {
    slow_by(bits_apart, documents, distance, keep, rule)
}

fn slow_by(
    distance_of: fn(u64, u64) -> u32,
    documents: &[Numbered],
    distance: u32,
    keep: FingerprintKeep,
    rule: FingerprintRule,
) -> ResultBytes {
    let classes = wanted(documents, keep);
    let apart =
        |a: usize, b: usize| distance_of(documents[classes[a][0]].1, documents[classes[b][0]].1);
    let mut pairs = Vec::new();
    for b in 0..classes.len() {
        for a in (0..b).filter(|&a| apart(a, b) <= distance) {
            pairs.push((a, b, 1.0 / f64::from(apart(a, b))));
        }
    }
    let priority: Vec<usize> = (0..classes.len()).collect();
    let survivor_of: Vec<usize> = match rule {
        FingerprintRule::Stars => (survivors(&priority, &pairs).iter().enumerate())
            .map(|(class, decision)| match decision {
                Decision::Survivor => class,
                Decision::Removed { survivor, .. } => *survivor,
            })
            .collect(),
        FingerprintRule::Components => {
            // The smallest number spreads along pairs until nothing changes.
            let mut first = priority.clone();
            for _ in 0..classes.len() {
                for &(a, b, _) in &pairs {
                    let least = first[a].min(first[b]);
                    (first[a], first[b]) = (least, least);
                }
            }
            first
        }
    };
    // The survivor's position and the member's entry, by position.
    let mut removed: BTreeMap<usize, (usize, Value)> = BTreeMap::new();
    for (class, members) in classes.iter().enumerate() {
        let survivor = survivor_of[class];
        for &at in members {
            let id = documents[at].0;
            let member = match (survivor == class, rule) {
                (true, _) if at == members[0] => continue,
                (true, _) => json!({"id": id, "distance": 0, "reason": "same-fingerprint"}),
                (false, FingerprintRule::Stars) => {
                    json!({"id": id, "distance": apart(class, survivor), "reason": "near"})
                }
                (false, FingerprintRule::Components) => json!({"id": id, "reason": "connected"}),
            };
            removed.insert(at, (survivor, member));
        }
    }
    let id = |at: usize| json!({ "id": documents[at].0 });
    let is_removed = |at: &usize| removed.contains_key(at);
    let all = 0..documents.len();
    let mut clusters = Vec::new();
    for (class, members) in classes.iter().enumerate() {
        let mine = removed.values().filter(|(survivor, _)| *survivor == class);
        let mine: Vec<Value> = mine.map(|(_, member)| member.clone()).collect();
        if !mine.is_empty() {
            let survivor = documents[members[0]].0;
            clusters.push(
                json!({"cluster": clusters.len() + 1, "survivor": survivor, "members": mine}),
            );
        }
    }
    [
        lines(all.clone().filter(|at| !is_removed(at)).map(id)),
        lines(all.filter(is_removed).map(id)),
        lines(clusters),
    ]
}

/// Parses JSON lines with fields in a fixed order.
fn sorted_fields(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn sources(paths: &[PathBuf]) -> Vec<FingerprintSource> {
    paths.iter().map(|path| path.as_path().into()).collect()
}

/// Returns the pairs of a collection as `join` writes them.
fn joined(file: &Path, folder: &Path, distance: u32) -> Vec<u8> {
    let inputs = [file.into()];
    let join = FingerprintJoin::new(&inputs, folder).distance(distance);
    let mut out = Vec::new();
    join.write(&mut out).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn decisions_are_those_of_the_slow_definition_for_any_threads_and_memory(
        documents in collections(),
        distance in 0..6_u32,
        keep in keeps(),
        is_stars in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let rule = if is_stars { FingerprintRule::Stars } else { FingerprintRule::Components };
        let folder = tempfile::tempdir().unwrap();
        let inputs = ["a.lkfp", "b.lkfp"].map(|name| folder.path().join(name));
        let (first, second) = documents.split_at(cut.index(documents.len()));
        fs::write(&inputs[0], file_of(first)).unwrap();
        fs::write(&inputs[1], file_of(second)).unwrap();
        let job = TestJob { distance: Some(distance), equal: None, keep, rule, threads: 1, memory: 1 << 30 };
        let (found, summary) = job.run(&inputs, &[]).unwrap();
        let expected = slow(&documents, distance, keep, rule);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(sorted_fields(found), sorted_fields(expected));
        }
        let decisions = &summary.decisions;
        prop_assert_eq!(summary.counts.documents, documents.len() as u64);
        prop_assert_eq!(decisions.kept, sorted_fields(&expected[0]).len() as u64);
        prop_assert_eq!(decisions.removed(), sorted_fields(&expected[1]).len() as u64);
        prop_assert_eq!(decisions.clusters, sorted_fields(&expected[2]).len() as u64);
        let sizes = sorted_fields(&expected[2]).into_iter().map(|cluster| cluster["members"].as_array().unwrap().len() as u64);
        prop_assert_eq!(decisions.largest_cluster.as_ref().map(|largest| largest.removed), sizes.max());
        let other = TestJob { threads: 3, memory: 44 << 20, ..job };
        prop_assert_eq!(&other.run(&inputs, &[]).unwrap().0, &found);
    }

    #[test]
    fn sketches_of_several_places_are_decided_by_their_equal_places(
        documents in prop::collection::vec(prop::collection::vec(0..4_u64, 6), 1..90),
        least in 1..7_u32,
        keep in keeps(),
        is_stars in any::<bool>(),
        is_minima in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let rule = if is_stars { FingerprintRule::Stars } else { FingerprintRule::Components };
        let folder = tempfile::tempdir().unwrap();
        // Documents are named by texts here, all with the same number of digits, so that texts ascend as numbers do.
        let id = |at: usize| (at as u64 + 1) * 7919 % 10_007 + 20_000;
        let digits = if is_minima { 8 } else { 16 };
        let field = if is_minima { "signature" } else { "super_shingles" };
        let line = |at: usize| {
            let sketch: String = documents[at].iter().map(|value| format!("{value:0digits$x}")).collect();
            json!({"id": id(at).to_string(), field: sketch})
        };
        let inputs = ["a.jsonl", "b.jsonl"].map(|name| folder.path().join(name));
        let cut = cut.index(documents.len());
        fs::write(&inputs[0], lines((0..cut).map(line))).unwrap();
        fs::write(&inputs[1], lines((cut..documents.len()).map(line))).unwrap();
        let numbered: Vec<Numbered> = documents.iter().enumerate().map(|(at, places)| {
            (id(at), places.iter().fold(0, |code, value| code << 4 | value))
        }).collect();
        let equal = Some(MinEqual::Places(least));
        let job = TestJob { distance: None, equal, keep, rule, threads: 1, memory: 1 << 30 };
        let (found, summary) = job.run(&inputs, &[]).unwrap();
        let expected = slow_by(places_apart, &numbered, 6 - least, keep, rule);
        let as_texts = |bytes: &[u8]| -> Vec<Value> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let ids = 20_000..30_007;
            sorted_fields(ids.fold(text, |text, id| match text.contains(&id.to_string()) {
                true => text.replace(&id.to_string(), &format!("\"{id}\"")),
                false => text,
            }).as_bytes())
        };
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(sorted_fields(found), as_texts(expected));
        }
        prop_assert_eq!(summary.counts.documents, documents.len() as u64);
        prop_assert_eq!(summary.equal.map(|equal| equal.least), Some(least as usize));
        let other = TestJob { threads: 3, memory: 44 << 20, ..job };
        prop_assert_eq!(&other.run(&inputs, &[]).unwrap().0, &found);
    }

    #[test]
    fn pairs_of_a_join_in_any_order_decide_as_the_files_do(
        documents in collections(),
        distance in 0..6_u32,
        keep in keeps(),
        is_stars in any::<bool>(),
        shuffle in any::<u64>(),
        is_listed_in_full in any::<bool>(),
    ) {
        let rule = if is_stars { FingerprintRule::Stars } else { FingerprintRule::Components };
        let folder = tempfile::tempdir().unwrap();
        let inputs = [folder.path().join("a.lkfp")];
        fs::write(&inputs[0], file_of(&documents)).unwrap();
        let mut rows: Vec<String> = match is_listed_in_full {
            // A join of two collections lists every pair of ids both ways, and each id with itself.
            true => documents.iter().flat_map(|&(f, x)| documents.iter().filter_map(move |&(q, y)| {
                let apart = (x ^ y).count_ones();
                (apart <= distance).then(|| json!({"f": f, "q": q, "distance": apart}).to_string())
            })).collect(),
            false => String::from_utf8(joined(&inputs[0], folder.path(), distance)).unwrap().lines().map(str::to_owned).collect(),
        };
        let mut state = shuffle;
        rows.sort_by_cached_key(|_| { state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1); state >> 7 });
        let lists = ["1.jsonl", "2.jsonl"].map(|name| folder.path().join(name));
        let (first, second) = rows.split_at(rows.len() / 3);
        fs::write(&lists[0], first.join("\n")).unwrap();
        fs::write(&lists[1], second.join("\n")).unwrap();
        let job = TestJob { distance: Some(distance), equal: None, keep, rule, threads: 2, memory: 1 << 30 };
        let straight = job.run(&inputs, &[]).unwrap().0;
        prop_assert_eq!(&job.run(&inputs, &lists).unwrap().0, &straight);

        // Without files the ids of the pairs are all documents, and the smallest id is wanted most.
        let job = TestJob { keep: FingerprintKeep::Id, ..job };
        let mut ordered = documents.clone();
        ordered.sort_unstable();
        let expected = slow(&ordered, distance, FingerprintKeep::Id, rule);
        let found = job.run(&[], &lists).unwrap().0;
        prop_assert_eq!(sorted_fields(&found[1]), sorted_fields(&expected[1]));
        prop_assert_eq!(sorted_fields(&found[2]), sorted_fields(&expected[2]));
        let is_listed = |line: &Value| rows.iter().any(|row| {
            let row: Value = serde_json::from_str(row).unwrap();
            ["a", "b", "f", "q"].iter().any(|side| row[side] == line["id"])
        });
        let kept: Vec<Value> = sorted_fields(&expected[0]).into_iter().filter(is_listed).collect();
        prop_assert_eq!(sorted_fields(&found[0]), kept);
    }

    #[test]
    fn fingerprints_without_ids_are_one_document_each(documents in collections(), distance in 0..5_u32) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = [folder.path().join("a.u64")];
        let bytes = documents.iter().flat_map(|document| document.1.to_le_bytes());
        fs::write(&inputs[0], bytes.collect::<Vec<u8>>()).unwrap();
        let mut distinct: Vec<Numbered> = Vec::new();
        for &(_, fingerprint) in &documents {
            if distinct.iter().all(|known| known.1 != fingerprint) {
                distinct.push((fingerprint, fingerprint));
            }
        }
        let job = TestJob { distance: Some(distance), equal: None, keep: FingerprintKeep::First, rule: FingerprintRule::Stars, threads: 2, memory: 1 << 30 };
        let (found, summary) = job.run(&inputs, &[]).unwrap();
        let expected = slow(&distinct, distance, FingerprintKeep::First, FingerprintRule::Stars);
        // The same with fingerprints as ids, in hexadecimal.
        let hexadecimal = |bytes: &[u8]| {
            let named = |value: &mut Value| {
                if let Some(number) = value.as_u64() {
                    *value = format!("{number:016x}").into();
                }
            };
            sorted_fields(bytes).into_iter().map(|mut line| {
                for name in ["id", "survivor"] {
                    line.get_mut(name).map(named);
                }
                if let Some(members) = line.get_mut("members") {
                    members.as_array_mut().unwrap().iter_mut().for_each(|member| named(&mut member["id"]));
                }
                line
            }).collect::<Vec<Value>>()
        };
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(sorted_fields(found), hexadecimal(expected));
        }
        prop_assert_eq!(summary.counts.repeated, (documents.len() - distinct.len()) as u64);
    }
}

/// Observer that changes a file when a stage starts.
struct FileChange<'a> {
    path: &'a Path,
    at: JobStage,
    content: Vec<u8>,
}

impl JobObserver for FileChange<'_> {
    fn stage(&self, stage: JobStage, _: u64) {
        if stage == self.at {
            fs::write(self.path, &self.content).unwrap();
        }
    }
}

#[test]
fn a_file_with_and_without_ids_was_decided_if_its_first_chunk_had_an_id() {
    let folder = tempfile::tempdir().unwrap();
    let [with, without] = [
        r#"{"id":"a","fingerprint":"0000000000000001"}"#,
        r#"{"fingerprint":"0000000000000002"}"#,
    ];
    for lines in [[with, without], [without, with]] {
        let path = folder.path().join("a.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        let job = TestJob {
            distance: Some(3),
            equal: None,
            keep: FingerprintKeep::First,
            rule: FingerprintRule::Stars,
            threads: 1,
            memory: 1 << 30,
        };
        let refused = job.run(&[path], &[]).err().unwrap();
        assert!(
            matches!(refused, BatchError::Cluster(ClusterError::MixedIds { .. })),
            "{refused}"
        );
    }
}

#[test]
fn a_fingerprint_without_an_id_that_no_pair_has_was_as_many_documents_as_it_occurred() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a.jsonl", "b.jsonl", "pairs.jsonl"];
    let [first, second, pairs] = names.map(|name| folder.path().join(name));
    let hexadecimal = |code: u64| format!("{code:016x}");
    let line = |code: &u64| json!({"fingerprint": hexadecimal(*code)});
    // One occurs three times and another twice, in both files. The others are alone, and a pair.
    fs::write(
        &first,
        lines([7 << 40, 1, u64::MAX, 7 << 40].iter().map(line)),
    )
    .unwrap();
    fs::write(
        &second,
        lines([u64::MAX, 9 << 20, 3, 7 << 40].iter().map(line)),
    )
    .unwrap();
    let pair = json!({"a": hexadecimal(1), "b": hexadecimal(3), "distance": 1});
    fs::write(&pairs, lines([pair])).unwrap();
    let inputs = [first, second];
    for keep in [
        FingerprintKeep::First,
        FingerprintKeep::Last,
        FingerprintKeep::Id,
    ] {
        let job = TestJob {
            distance: Some(1),
            equal: None,
            keep,
            rule: FingerprintRule::Stars,
            threads: 1,
            memory: 1 << 30,
        };
        let (found, summary) = job.run(&inputs, from_ref(&pairs)).unwrap();
        assert_eq!(found, job.run(&inputs, &[]).unwrap().0, "{keep:?}");
        let ids = match keep {
            FingerprintKeep::Last => [9 << 20, 3, 7 << 40],
            FingerprintKeep::First | FingerprintKeep::Id => [7 << 40, 1, u64::MAX],
        };
        let kept = sorted_fields(&found[0]);
        assert_eq!(kept.len(), 4);
        for id in ids {
            assert!(
                kept.contains(&json!({"id": hexadecimal(id)})),
                "{keep:?} {id}"
            );
        }
        assert_eq!(summary.counts.documents, 5);
        assert_eq!(summary.counts.repeated, 3);
    }
}

/// Job of a test that clusters sketches with at least one equal place.
const OF_SKETCHES: TestJob = TestJob {
    distance: None,
    equal: Some(MinEqual::Places(1)),
    keep: FingerprintKeep::First,
    rule: FingerprintRule::Stars,
    threads: 1,
    memory: 1 << 30,
};

#[test]
fn equal_sketches_without_ids_were_refused_as_documents_with_one_id() {
    let folder = tempfile::tempdir().unwrap();
    // The second and the last equal one before them. The third shares a place with the first.
    let sketches = [[1_u64, 2, 3], [1, 2, 3], [1, 8, 9], [5, 6, 7], [5, 6, 7]];
    let digits = |sketch: &[u64; 3]| sketch.map(|place| format!("{place:016x}")).concat();
    let bytes = sketches
        .as_flattened()
        .iter()
        .flat_map(|place| place.to_le_bytes());
    let raw = folder.path().join("a.u64x3");
    fs::write(&raw, bytes.collect::<Vec<u8>>()).unwrap();
    let as_lines = folder.path().join("a.jsonl");
    let line = |sketch| json!({"super_shingles": digits(sketch)});
    fs::write(&as_lines, lines(sketches.iter().map(line))).unwrap();
    for path in [raw, as_lines] {
        for rule in [FingerprintRule::Stars, FingerprintRule::Components] {
            let job = TestJob {
                rule,
                ..OF_SKETCHES
            };
            let (found, summary) = job.run(from_ref(&path), &[]).unwrap();
            let kept = [0, 3].map(|at: usize| json!({"id": digits(&sketches[at])}));
            assert_eq!(sorted_fields(&found[0]), kept);
            assert_eq!(
                sorted_fields(&found[1]),
                [json!({"id": digits(&sketches[2])})]
            );
            assert_eq!(summary.counts.documents, 3);
            assert_eq!(summary.counts.repeated, 2);
        }
    }
}

#[test]
fn sketches_with_and_without_ids_in_one_file_are_refused_as_fingerprints_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let [with, without] = [
        json!({"id": "a", "signature": "00000001"}),
        json!({"signature": "00000002"}),
    ];
    for both in [[&with, &without], [&without, &with]] {
        fs::write(&path, lines(both.map(Value::clone))).unwrap();
        let refused = OF_SKETCHES.run(from_ref(&path), &[]).err().unwrap();
        assert!(
            matches!(refused, BatchError::Cluster(ClusterError::MixedIds { .. })),
            "{refused}"
        );
    }
}

#[test]
fn the_memory_of_ids_that_decide_was_counted_without_their_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    // A class for each fingerprint, because every document has a copy.
    let documents = (0..100_000_u64).flat_map(|at| {
        let fingerprint = format!("{:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        ["a", "b"].map(|copy| json!({"id": format!("{copy}{at}"), "fingerprint": fingerprint}))
    });
    fs::write(&path, lines(documents)).unwrap();
    let job = TestJob {
        distance: Some(0),
        equal: None,
        keep: FingerprintKeep::Id,
        rule: FingerprintRule::Stars,
        threads: 1,
        memory: 40 << 20,
    };
    let refused = job.run(&[path], &[]).err().unwrap();
    // Of 40 MiB, 28 are fixed and up to 7.5 are for tables. The texts of the ids take 0.6 MiB, and their table 2.3 MiB with 1.5 MiB for allocations.
    let BatchError::Cluster(ClusterError::Memory { what, .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(what, "the fingerprints that have a neighbour");
}

#[test]
fn files_of_sketches_that_change_between_two_readings_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let content = |places: &[u64]| {
        let line = |(at, place): (usize, &u64)| {
            let sketch = format!("{place:016x}{:016x}", 7);
            json!({"id": format!("d{at}"), "super_shingles": sketch})
        };
        lines(places.iter().enumerate().map(line))
    };
    for at in [JobStage::Rank, JobStage::Write] {
        // Another sketch, two sketches swapped, one removed, one added.
        for changed in [&[1, 2, 4][..], &[2, 1, 3], &[1, 2], &[1, 2, 3, 3]] {
            fs::write(&path, content(&[1, 2, 3])).unwrap();
            let change = FileChange {
                path: &path,
                at,
                content: content(changed),
            };
            let inputs = sources(std::slice::from_ref(&path));
            let (out, spool) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let job = FingerprintClustering::new(&inputs, spool.path())
                .equal(Some(MinEqual::Places(1)))
                .observer(&change);
            let error = job.cluster(out.path(), IfExists::New, "").unwrap_err();
            assert!(
                error.to_string().contains("changed"),
                "{changed:?}: {error}"
            );
            assert!(!out.path().join("kept.jsonl").exists());
        }
    }
}

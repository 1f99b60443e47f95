//! The kernel over collections in parts, compared with all pairs and a brute-force choice of survivors.

use std::collections::{BTreeMap, BTreeSet};

use lookalike::resemblance::{intersection_size, resemblance_of};
use lookalike::sketch::Simhash;
use lookalike::{Decision, FeatureExtractor, survivors};
use lookalike_corpus::{InputOptions, OrderKey};
use proptest::prelude::*;

use super::*;
use crate::settings::{JobSettings, KeepRules, Method, PairScope};

/// A row of a collection.
#[derive(Clone, Debug)]
struct Row {
    id: String,
    text: Option<String>,
    category: Option<String>,
    value: Option<f64>,
    is_against: bool,
}

impl Row {
    fn document(&self, position: usize) -> KernelDocument<'_> {
        KernelDocument {
            id: &self.id,
            text: self.text.as_deref(),
            category: self.category.as_deref(),
            value: match self.value {
                Some(nearest) => {
                    OrderKey::Number(lookalike_corpus::OrderNumber { nearest, rest: 0 })
                }
                None => OrderKey::Missing,
            },
            position: position as i64,
            is_against: self.is_against,
        }
    }

    fn member(&self, rank: i64) -> KernelMember<'_> {
        KernelMember {
            rank,
            text: self.text.as_deref().unwrap_or_default(),
            category: self.category.as_deref(),
            is_against: self.is_against,
        }
    }
}

fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    // Few words, so that many texts resemble each other, and few starts, so that clusters are large.
    let words = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 0..14);
    let text = (0..3_u32, words).prop_map(|(family, words)| {
        let start = match family {
            0 => String::new(),
            family => (0..12).map(|at| format!("{family}{at} ")).collect(),
        };
        start + &words.join(" ")
    });
    let row = (
        prop::option::weighted(0.95, text),
        prop::option::weighted(0.8, prop::sample::select(vec!["x", "y"])),
        prop::option::weighted(0.8, prop::sample::select(vec![1.0, 2.0, 3.0])),
        prop::bool::weighted(0.2),
    );
    prop::collection::vec(row, 1..most).prop_map(|rows| {
        let row = |(at, (text, category, value, is_against)): (
            usize,
            (Option<String>, Option<&str>, _, _),
        )| Row {
            // Ids in another order than the rows.
            id: format!("{:03}", at * 37 % 101),
            text,
            category: category.map(str::to_owned),
            value,
            is_against,
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

/// The classes that join a survivor, by rank, with the survivor's rank and the similarity.
type Joined = BTreeMap<i64, (i64, f64)>;

/// Distribution of rows among machines.
#[derive(Clone, Copy, Debug)]
struct Spread {
    partitions: u64,
    batch: usize,
    group_limit: Option<usize>,
    /// Offset by which each machine's rows are rotated.
    turned: usize,
}

fn spread() -> impl Strategy<Value = Spread> {
    let limit = prop::sample::select(vec![Some(2), Some(3), Some(32), None]);
    (1..5_u64, 1..20_usize, limit, 0..50_usize).prop_map(
        |(partitions, batch, group_limit, turned)| Spread {
            partitions,
            batch,
            group_limit,
            turned,
        },
    )
}

/// Returns the first row of each class, in the order of survivors.
fn ranked(kernel: &DedupKernel, rows: &[Row]) -> Vec<usize> {
    let mut worker = kernel.worker();
    let mut first: BTreeMap<u128, (Vec<u8>, usize)> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let ScannedDocument { text_hash, order } = worker.scan(&row.document(at), false);
        if let Some(hash) = text_hash {
            let best = first.entry(hash).or_insert((order.clone(), at));
            if order < best.0 {
                *best = (order, at);
            }
        }
    }
    let mut classes: Vec<(Vec<u8>, usize)> = first.into_values().collect();
    classes.sort();
    classes.into_iter().map(|(_, at)| at).collect()
}

/// Runs the steps of the kernel, as an engine does.
fn decided(kernel: &DedupKernel, rows: &[Row], spread: Spread) -> Joined {
    let classes = ranked(kernel, rows);
    let in_turn: Vec<i64> = (0..classes.len())
        .map(|at| ((at + spread.turned) % classes.len()) as i64)
        .collect();
    // Counts of only a part of the rows, from two machines.
    let mut frequency = FeatureFrequency::new();
    for part in rows.chunks(spread.batch).step_by(2) {
        let mut worker = kernel.worker();
        for row in part {
            worker.scan(&row.document(0), true);
        }
        frequency.merge(&FeatureFrequency::from_bytes(&worker.frequency().to_bytes()).unwrap());
    }
    let levels = frequency.levels().to_bytes();
    let mut partitions: Vec<Vec<FingerprintKey>> = vec![Vec::new(); spread.partitions as usize];
    for part in in_turn.chunks(spread.batch) {
        let levels = FrequencyLevels::from_bytes(&levels).unwrap();
        let plan = kernel.key_plan(classes.len() as u64, Some(levels)).unwrap();
        let mut worker = kernel.worker();
        for &rank in part {
            let member = rows[classes[rank as usize]].member(rank);
            let show = |key: FingerprintKey| {
                partitions[(key.class.key % spread.partitions) as usize].push(key)
            };
            worker.keys(&plan, member, show).unwrap();
        }
    }
    let mut edges: BTreeMap<(i64, i64, i32, i32), i64> = BTreeMap::new();
    for keys in partitions {
        let mut add = |edge: WorkEdge| {
            *edges
                .entry((edge.x, edge.y, edge.size_x, edge.size_y))
                .or_insert(0) += edge.shared
        };
        match kernel.needs_fingerprints() {
            true => kernel.fingerprint_edges(keys, &mut add),
            false => kernel.work_edges(
                keys.iter().map(|key| key.class).collect(),
                spread.group_limit,
                &mut add,
            ),
        }
    }
    let mut component: Vec<i64> = (0..classes.len() as i64).collect();
    for ((x, y, size_x, size_y), shared) in edges {
        if kernel.is_promising(&WorkEdge {
            x,
            y,
            size_x,
            size_y,
            shared,
        }) {
            let (a, b) = (component[x as usize], component[y as usize]);
            component
                .iter_mut()
                .filter(|own| **own == b)
                .for_each(|own| *own = a);
        }
    }
    let mut joined = Joined::new();
    for root in component.iter().collect::<BTreeSet<_>>() {
        let members = in_turn
            .iter()
            .filter(|rank| component[**rank as usize] == *root);
        let mut members: Vec<KernelMember<'_>> = members
            .map(|&rank| rows[classes[rank as usize]].member(rank))
            .collect();
        for class in kernel.worker().settle(&mut members).unwrap() {
            joined.insert(class.rank, (class.survivor, class.similarity));
        }
    }
    joined
}

/// Runs the steps with packed rows, in which classes have numbers but no ranks until they are settled.
fn decided_packed(kernel: &DedupKernel, rows: &[Row], spread: Spread) -> Joined {
    const BUCKETS: u32 = 7;
    let mut packed = Vec::new();
    let positions: Vec<usize> = (0..rows.len()).collect();
    for part in positions.chunks(spread.batch * 3) {
        let levels = FeatureFrequency::new().levels();
        let plan = kernel.key_plan(rows.len() as u64, Some(levels)).unwrap();
        let mut packer = DocumentPacker::new(kernel, plan, BUCKETS);
        for &at in part {
            packer.add(&rows[at].document(at)).unwrap();
            if at % spread.batch == 0 {
                packed.append(&mut packer.take());
            }
        }
        packed.append(&mut packer.take());
    }
    let in_part = |bucket: u32, part: u64| u64::from(bucket) % spread.partitions == part;
    let (mut edges, mut documents, mut texts) = (Vec::new(), 0, 0);
    for part in 0..spread.partitions {
        let own = packed.iter().filter(|row| in_part(row.bucket, part));
        let own = own.map(|row| (row.bucket, [&row.classes[..], &row.ids, &row.keys]));
        let mut found = kernel.group(own, BUCKETS, spread.group_limit).unwrap();
        assert_eq!(found.repeated, 0);
        documents += found.documents;
        texts += found.texts;
        edges.append(&mut found.edges);
    }
    assert_eq!(documents, rows.len() as u64);
    let mut promising = Vec::new();
    for part in 0..spread.partitions {
        let own = edges.iter().filter(|(bucket, _)| in_part(*bucket, part));
        let own = own.map(|(_, rows)| &rows[..]);
        kernel
            .promising(own, |edge| promising.push([edge.x, edge.y]))
            .unwrap();
    }
    let components = packed_components(connected_nodes(&promising).unwrap(), BUCKETS);
    let rank_of: BTreeMap<(bool, &str), i64> = (0..)
        .zip(ranked(kernel, rows))
        .map(|(rank, at)| ((rows[at].is_against, &*rows[at].id), rank))
        .collect();
    assert_eq!(texts, rank_of.len() as u64);
    let mut members: BTreeMap<i64, Vec<KernelMember<'_>>> = BTreeMap::new();
    for part in 0..spread.partitions {
        let classes = packed.iter().filter(|row| in_part(row.bucket, part));
        let own = components
            .iter()
            .filter(|(bucket, _)| in_part(*bucket, part));
        let visit = |class: ClassMembers<'_>| {
            let Some(component) = class.component.filter(|_| class.copies.is_empty()) else {
                return;
            };
            let rank = rank_of[&(class.is_against, class.id)];
            let row = rows.iter().find(|row| row.id == class.id).unwrap();
            members.entry(component).or_default().push(row.member(rank));
        };
        kernel
            .members(
                classes.map(|row| &row.classes[..]),
                own.map(|(_, rows)| &rows[..]),
                visit,
            )
            .unwrap();
    }
    let mut joined = Joined::new();
    for component in members.values_mut() {
        for class in kernel.worker().settle(component).unwrap() {
            joined.insert(class.rank, (class.survivor, class.similarity));
        }
    }
    joined
}

/// Returns the decisions from all pairs by brute force and the slow choice of survivors.
fn slow(kernel: &DedupKernel, rows: &[Row]) -> Joined {
    let classes = ranked(kernel, rows);
    let job = kernel.settings();
    let row = |rank: usize| &rows[classes[rank]];
    let texts = |rank: usize| row(rank).text.as_deref().unwrap_or_default();
    let mut extractor = FeatureExtractor::new(&job.scheme);
    let sets: Vec<Vec<u64>> = (0..classes.len())
        .map(|rank| extractor.feature_set(texts(rank)).to_vec())
        .collect();
    let fingerprints: Vec<u128> = (0..classes.len())
        .map(|rank| {
            let bits = job.fingerprint_bits();
            Simhash::wide(&extractor.extract(texts(rank)), bits).map_or(0, |f| f.0)
        })
        .collect();
    let mut pairs = Vec::new();
    for y in 0..classes.len() {
        for x in 0..y {
            let same_category = row(x).category == row(y).category;
            if !job.scope.allows(same_category) && job.scope != PairScope::Everything
                || row(y).is_against
            {
                continue;
            }
            if texts(x) == texts(y) && job.by_category() {
                pairs.push((x, y, 1.0));
                continue;
            }
            let shared = intersection_size(&sets[x], &sets[y]);
            let similarity = resemblance_of(shared, sets[x].len(), sets[y].len());
            let is_candidate = match job.method {
                Method::Exact => false,
                Method::Simhash => {
                    !sets[x].is_empty()
                        && !sets[y].is_empty()
                        && (fingerprints[x] ^ fingerprints[y]).count_ones() <= job.distance
                }
                _ => shared > 0,
            };
            if is_candidate && similarity >= job.threshold {
                pairs.push((x, y, similarity));
            }
        }
    }
    let priority: Vec<usize> = (0..classes.len()).collect();
    let decisions = survivors(&priority, &pairs);
    let joined = (0..)
        .zip(decisions)
        .filter_map(|(rank, decision)| match decision {
            Decision::Survivor => None,
            Decision::Removed {
                survivor,
                similarity,
            } => Some((rank, (survivor as i64, similarity))),
        });
    joined.collect()
}

fn kernel(settings: JobSettings) -> DedupKernel {
    DedupKernel::new(settings, &InputOptions::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn pieces_decide_as_all_pairs_do(
        rows in rows(50),
        spread in spread(),
        method in prop::sample::select(vec![Method::AllPairs, Method::AllPairs, Method::Simhash, Method::Exact]),
        scope in prop::sample::select(vec![PairScope::Everything, PairScope::Within, PairScope::Across]),
        keep in prop::sample::select(vec!["longest", "shortest", "first", "max:f,longest", "min:f"]),
        threshold in 0.1..=1.0_f64,
        shingle in 1..4_u8,
        distance in 0..12_u32,
    ) {
        let mut settings = JobSettings { scope, threshold, distance, ..JobSettings::of_method(method) };
        settings.keep = keep.parse::<KeepRules>().unwrap();
        settings.scheme.shingle = format!("words:{shingle}").parse().unwrap();
        let kernel = kernel(settings);
        let expected = slow(&kernel, &rows);
        prop_assert_eq!(&decided(&kernel, &rows, spread), &expected);
        prop_assert_eq!(decided_packed(&kernel, &rows, spread), expected);
    }

    #[test]
    fn bands_decide_alike_in_one_piece_and_in_many(
        rows in rows(50),
        spread in spread(),
        method in prop::sample::select(vec![Method::MinHash, Method::Oph, Method::BBit, Method::SuperShingle, Method::Henzinger, Method::ModP]),
        threshold in 0.3..=1.0_f64,
        shingle in 1..4_u8,
    ) {
        let mut settings = JobSettings { threshold, ..JobSettings::of_method(method) };
        settings.scheme.shingle = format!("words:{shingle}").parse().unwrap();
        let kernel = kernel(settings);
        let whole = Spread { partitions: 1, batch: 100, group_limit: None, turned: 0 };
        prop_assert_eq!(decided(&kernel, &rows, spread), decided(&kernel, &rows, whole));
    }

    #[test]
    fn verified_pairs_of_a_component_are_those_of_all_pairs(rows in rows(40), threshold in 0.1..=1.0_f64) {
        let kernel = kernel(JobSettings { threshold, ..JobSettings::default() });
        let classes = ranked(&kernel, &rows);
        let mut extractor = FeatureExtractor::new(&kernel.settings().scheme);
        let sets: Vec<Vec<u64>> =
            classes.iter().map(|&at| extractor.feature_set(rows[at].text.as_deref().unwrap()).to_vec()).collect();
        let mut expected = Vec::new();
        for y in 0..sets.len() {
            for x in 0..y {
                let similarity = lookalike::resemblance::resemblance(&sets[x], &sets[y]);
                if similarity > 0.0 && similarity >= threshold {
                    expected.push(SimilarClasses { x: x as i64, y: y as i64, similarity });
                }
            }
        }
        let mut members: Vec<KernelMember<'_>> = (0..).zip(&classes).map(|(rank, &at)| rows[at].member(rank)).collect();
        members.reverse();
        let mut found = Vec::new();
        kernel.worker().verify(&mut members, |pair| found.push(pair)).unwrap();
        prop_assert_eq!(found, expected);
    }
}

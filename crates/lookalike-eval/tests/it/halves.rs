//! Choices made on one half of the documents, compared with sweeps over each half alone.

use std::ops::ControlFlow;

use lookalike::hash::xxh3_64;
use lookalike::{Scheme, Weight};
use lookalike_eval::sweep::sketches_of;
use lookalike_eval::{
    AccuracyTarget, DocumentHalves, DocumentSet, GroundTruth, SettingTally, SweepLimits, SweepRow,
    SweepSetting, expected_accuracy_of_halves, for_each_tally, sweep,
};
use proptest::prelude::*;

/// Generates texts of a few words from a small vocabulary, so that many resemble each other, with ids in both halves.
fn documents() -> impl Strategy<Value = Vec<(String, String)>> {
    let text = prop::collection::vec(0..9_u8, 2..9);
    prop::collection::vec(text, 12..50).prop_map(|texts| {
        let text = |words: Vec<u8>| words.iter().map(|word| format!("w{word} ")).collect();
        let named = texts.into_iter().enumerate();
        named
            .map(|(at, words)| (format!("d{at:02}"), text(words)))
            .collect()
    })
}

fn settings(lengths: Option<f64>) -> Vec<SweepSetting> {
    let sketches = [
        "simhash:64",
        "simhash:64",
        "none",
        "super-shingle:4x2",
        "minhash:16",
    ];
    let shingles = ["words:1", "words:2", "words:2", "words:1", "words:1"];
    let settings = sketches.iter().zip(shingles);
    settings
        .map(|(sketch, shingle)| {
            let scheme = Scheme::default()
                .shingle(shingle.parse().unwrap())
                .sketch(sketch.parse().unwrap())
                .weight(Weight::Set);
            SweepSetting::from(scheme).lengths(lengths)
        })
        .collect()
}

/// Counts the pairs that score at least `cut`, and the true ones among them, by comparing all pairs.
fn by_hand(
    documents: &DocumentSet,
    setting: &SweepSetting,
    truth: &GroundTruth,
    cut: f64,
) -> [u64; 2] {
    let GroundTruth::Complete { pairs: truth, .. } = truth else {
        unreachable!()
    };
    let sketches = sketches_of(documents, &setting.scheme);
    let mut counts = [0; 2];
    for b in 0..documents.len() {
        for a in 0..b {
            let both = sketches[a].as_ref().zip(sketches[b].as_ref());
            let bytes = |at: usize| documents.text(at as u32).len() as f64;
            let (short, long) = (bytes(a).min(bytes(b)), bytes(a).max(bytes(b)));
            let is_close = setting.lengths.is_none_or(|share| short >= share * long);
            if is_close && both.is_some_and(|(x, y)| x.score(y) >= cut) {
                counts[0] += 1;
                counts[1] += u64::from(truth.contains(&(a as u32, b as u32)));
            }
        }
    }
    counts
}

proptest! {
    #[test]
    fn each_half_chooses_as_if_it_were_alone(
        rows in documents(),
        lengths in prop_oneof![Just(None), Just(Some(0.7))],
        threads in 1..3_usize,
        memory in prop_oneof![Just(u64::MAX), Just(30_000)],
    ) {
        let settings = settings(lengths);
        let target = AccuracyTarget { precision: 0.6, recall: 0.3 };
        let threshold = 0.5;
        let all = DocumentSet::new(rows.clone()).unwrap();
        let truth = GroundTruth::exact(&all, &settings[0].scheme, threshold);
        let limits = SweepLimits::default().threads(threads).memory(memory);
        let mut tallies = vec![SettingTally::default(); settings.len()];
        let counted = for_each_tally(&all, &settings, &truth, limits, &mut |at, tally| {
            tallies[at] = tally;
            ControlFlow::Continue(())
        });
        prop_assume!(counted.is_ok());
        let halves = DocumentHalves::new(rows.iter().map(|(id, _)| id.as_str()));
        let expected = expected_accuracy_of_halves(&settings, &tallies, &truth, &halves, target);

        let half = |which: u64| rows.iter().filter(move |(id, _)| xxh3_64(id.as_bytes(), 0) & 1 == which);
        let alone = [0, 1].map(|which| DocumentSet::new(half(which).cloned()).unwrap());
        let truths = [0, 1].map(|at| GroundTruth::exact(&alone[at], &settings[0].scheme, threshold));
        let trues = truths.each_ref().map(GroundTruth::true_pairs);
        prop_assert_eq!(expected.is_empty(), trues.contains(&0));
        if expected.is_empty() {
            return Ok(());
        }
        // Choices among three sketches of one setting and one of two, among all, and the cheapest of all.
        prop_assert_eq!(expected.len(), 6);
        let swept_by = |documents, truth| sweep(documents, &settings, truth, 1, |_| ControlFlow::Continue(())).unwrap();
        let swept = [0, 1].map(|at| swept_by(&alone[at], &truths[at]));
        // The cost of a setting is measured on all documents, since feature sets are larger in one half than in the other.
        let costs: Vec<f64> = swept_by(&all, &truth).rows.iter().map(|row| row.bytes).collect();
        for one in expected {
            let own: Vec<usize> = (0..settings.len())
                .filter(|&at| ["any", "cheapest"].contains(&&*one.choice) || settings[at].scheme.sketch.to_string() == one.choice)
                .collect();
            prop_assert_eq!(one.settings, own.len());
            let mut sums = [0; 2];
            for which in 0..2 {
                let mut part = swept[which].clone();
                part.rows = own.iter().map(|&at| SweepRow { bytes: costs[at], ..part.rows[at].clone() }).collect();
                let chosen = match &*one.choice {
                    "cheapest" => part.recommendations(target).into_iter().next(),
                    _ => part.best(target),
                };
                let name = chosen.as_ref().map(|chosen| format!("{} at {}", chosen.setting, chosen.point.parameter));
                prop_assert_eq!(&one.chosen[which], &name);
                if let Some(chosen) = chosen {
                    let setting = &settings[own[chosen.row]];
                    let counts = by_hand(&alone[1 - which], setting, &truths[1 - which], chosen.point.cut);
                    sums = [sums[0] + counts[0], sums[1] + counts[1]];
                }
            }
            prop_assert_eq!([one.found, one.correct], sums, "{}", one.choice);
            prop_assert_eq!(one.true_pairs, trues[0] + trues[1]);
        }
    }
}

//! Rules of two tests, compared with trying every pair of cuts.

use std::ops::ControlFlow;

use lookalike::Scheme;
use lookalike::sketch::SketchValue;
use lookalike_eval::sweep::sketches_of;
use lookalike_eval::{
    DocumentSet, GroundTruth, JudgedPair, JudgedScores, SetMeasure, SettingTally, SweepLimits,
    SweepSetting, for_each_tally, score,
};

fn setting(shingle: &str, measure: SetMeasure) -> SweepSetting {
    let scheme = Scheme::default().shingle(shingle.parse().unwrap());
    SweepSetting::from(scheme).measure(measure)
}

/// Makes texts whose words and function words belong to independent families, so that two tests know more than one.
fn crossed() -> (DocumentSet, Vec<JudgedPair>) {
    let stops = ["the", "of", "and", "a", "in", "to", "is"];
    let text = |words: usize, skeleton: usize, own: usize| -> String {
        let word = |at: usize| match at % 2 {
            0 if at / 2 % 9 == own % 9 => format!("own{own} "),
            0 => format!("w{words}x{at} "),
            _ => format!(
                "{} ",
                stops[(at * (skeleton + 2) / 2 + at / 7 * skeleton) % 7]
            ),
        };
        (0..120).map(word).collect()
    };
    let mut documents = Vec::new();
    for at in 0..36 {
        documents.push((format!("d{at:02}"), text(at % 4, at / 4 % 3, at)));
    }
    let collection = DocumentSet::new(documents).unwrap();
    let mut judged = Vec::new();
    for a in 0..36_u32 {
        for b in a + 1..36 {
            let alike = a % 4 == b % 4 && a / 4 % 3 == b / 4 % 3;
            // A few labels are wrong, as in practice.
            let is_true = alike != ((a * 7 + b) % 41 == 0);
            judged.push(JudgedPair {
                a,
                b,
                is_true,
                has_equal_texts: false,
            });
        }
    }
    (collection, judged)
}

/// Returns the scores that a sweep finds.
fn scored(
    collection: &DocumentSet,
    settings: &[SweepSetting],
    judged: &[JudgedPair],
) -> JudgedScores {
    let mut tallies = vec![SettingTally::default(); settings.len()];
    let truth = GroundTruth::Judged(judged.to_vec());
    let limits = SweepLimits::default();
    for_each_tally(collection, settings, &truth, limits, &mut |at, tally| {
        tallies[at] = tally;
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut scores = JudgedScores::new(collection, judged);
    scores.add_tallies(settings, &tallies);
    scores
}

#[test]
fn the_best_cuts_are_the_best_of_all_cuts() {
    for lengths in [None, Some(0.99)] {
        are_the_best(lengths);
    }
}

fn are_the_best(lengths: Option<f64>) {
    let (collection, judged) = crossed();
    let settings = [
        setting("words:1", SetMeasure::Resemblance),
        setting("stops:3", SetMeasure::Coverage),
    ];
    let settings = settings.map(|setting| setting.lengths(lengths));
    let is_close = |pair: &JudgedPair| {
        let bytes = [pair.a, pair.b].map(|at| collection.text(at).len() as f64);
        lengths.is_none_or(|least| bytes[0].min(bytes[1]) / bytes[0].max(bytes[1]) >= least)
    };
    assert_eq!(judged.iter().all(is_close), lengths.is_none());
    let found = scored(&collection, &settings, &judged).conjunctive_rules(10);
    assert_eq!(found.len(), 1);
    let scores = settings.map(|setting| {
        let sketches = sketches_of(&collection, &setting.scheme);
        let score = |pair: &JudgedPair| {
            let both = sketches[pair.a as usize]
                .as_ref()
                .zip(sketches[pair.b as usize].as_ref())
                .filter(|_| is_close(pair));
            both.map_or(0.0, |(a, b)| score(setting.measure, a, b))
        };
        judged.iter().map(score).collect::<Vec<f64>>()
    });
    let trues = judged.iter().filter(|pair| pair.is_true).count();
    let mut best: f64 = 0.0;
    let cuts = scores.each_ref().map(|scores| {
        let mut cuts = scores.clone();
        cuts.sort_by(f64::total_cmp);
        cuts.dedup();
        cuts
    });
    for &x in &cuts[0] {
        for &y in &cuts[1] {
            let passing = (0..judged.len()).filter(|&at| scores[0][at] >= x && scores[1][at] >= y);
            let (mut count, mut correct) = (0, 0);
            for at in passing {
                count += 1;
                correct += usize::from(judged[at].is_true);
            }
            if x > 0.0 && y > 0.0 {
                best = best.max(2.0 * correct as f64 / (trues + count) as f64);
            }
        }
    }
    assert!((found[0].f1 - best).abs() < 1e-12, "{} {best}", found[0].f1);
    // The printed cuts find the same pairs.
    let [x, y] = found[0]
        .cuts
        .map(|cut| cut.to_string().parse::<f64>().unwrap());
    let passing = (0..judged.len()).filter(|&at| scores[0][at] >= x && scores[1][at] >= y);
    assert_eq!(passing.count() as u64, found[0].found);
    // The rule is better than either test alone.
    for setting in settings {
        let doubled = scored(&collection, &[setting; 2], &judged).conjunctive_rules(1);
        assert!(doubled[0].f1 < found[0].f1);
    }
}

#[test]
fn measures_of_sets_by_hand() {
    let set = |features: &[u64]| SketchValue::Set(features.into());
    let (a, b) = (set(&[1, 2, 3, 4]), set(&[3, 4, 5, 6, 7, 8, 9, 10]));
    for (measure, expected) in [
        (SetMeasure::Resemblance, 0.2),
        (SetMeasure::Containment, 0.5),
        (SetMeasure::Coverage, 0.25),
    ] {
        assert!((score(measure, &a, &b) - expected).abs() < 1e-12);
        assert!((score(measure, &b, &a) - expected).abs() < 1e-12);
        assert_eq!(measure.to_string().parse(), Ok(measure));
    }
    assert!(
        "jaccard"
            .parse::<SetMeasure>()
            .unwrap_err()
            .to_string()
            .contains("coverage")
    );
}

#[test]
fn a_choice_is_worth_less_on_labels_that_had_no_say() {
    // Labels are random and documents unrelated, so whatever is chosen on some labels is no better than chance on the others.
    let mut state = 7;
    let mut word = || lookalike::hash::splitmix64(&mut state) % 40;
    let text = |word: &mut dyn FnMut() -> u64| -> String {
        (0..30).map(|_| format!("w{} ", word())).collect()
    };
    let documents: Vec<(String, String)> = (0..240)
        .map(|at| (format!("d{at:03}"), text(&mut word)))
        .collect();
    let judged: Vec<JudgedPair> = (0..120)
        .map(|at| JudgedPair {
            a: 2 * at,
            b: 2 * at + 1,
            is_true: word() % 4 == 0,
            has_equal_texts: false,
        })
        .collect();
    let collection = DocumentSet::new(documents).unwrap();
    let mut settings = Vec::new();
    for shingle in ["words:1", "words:2", "chars:3", "chars:4"] {
        for measure in SetMeasure::ALL {
            settings.push(setting(shingle, measure));
        }
    }
    let scores = scored(&collection, &settings, &judged);
    let chosen = &scores.conjunctive_rules(1)[0];
    let expected = scores.expectations(true);
    let [one, two] = &expected[..] else {
        panic!("{expected:?}");
    };
    assert_eq!((&*one.choice, &*two.choice), ("none", "two tests"));
    assert_eq!(one.families, 120);
    assert!(
        two.f1 < chosen.f1 && two.low <= two.f1 && two.f1 <= two.high,
        "{two:?}"
    );
    assert_eq!(expected, scores.expectations(true), "no chance in it");
}

#[test]
fn sketches_made_a_rule_with_lengths_that_they_had_not_applied() {
    let (collection, judged) = crossed();
    let setting = |shingle| setting(shingle, SetMeasure::Resemblance).lengths(0.99);
    let mut scores = scored(&collection, &[setting("words:1")], &judged);
    let sketched = setting("stops:3");
    let sketches = sketches_of(&collection, &sketched.scheme);
    scores.add_sketches(sketched, "none".to_owned(), &sketches);
    assert_eq!(scores.conjunctive_rules(1), []);
}

//! Sweeps: known answers, independence of the number of threads, and the page.

use std::ops::ControlFlow;

use lookalike::{FeatureExtractor, Scheme, Sketch, SketchValue, TermCounts, Weight};
use lookalike_eval::page::{PageHead, render};
use lookalike_eval::sweep::DocumentSketcher;
use lookalike_eval::{
    AccuracyTarget, DocumentSet, GroundTruth, ScoreCurve, SettingTally, SweepError, SweepLimits,
    SweepResult, SweepSetting, for_each_tally, sweep,
};
use proptest::prelude::*;

use crate::families;

fn settings() -> Vec<Scheme> {
    let mut all = Vec::new();
    for sketch in ["none", "simhash:64", "super-shingle:6x4", "minhash:64"] {
        for weight in [Weight::Set, Weight::Idf] {
            all.push(
                Scheme::default()
                    .shingle("words:2".parse().unwrap())
                    .sketch(sketch.parse::<Sketch>().unwrap())
                    .weight(weight),
            );
        }
    }
    all
}

fn swept(threads: usize) -> SweepResult {
    let collection = families(8, 3);
    let truth = GroundTruth::exact(&collection, &settings()[0], 0.5);
    // Members of a family share 6 of 7 words: three pairs in each of eight families.
    assert_eq!(truth.true_pairs(), 24);
    let settings: Vec<SweepSetting> = settings().into_iter().map(SweepSetting::from).collect();
    sweep(&collection, &settings, &truth, threads, |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

#[test]
fn the_exact_sketch_is_exact_and_threads_change_nothing() {
    let one = swept(1);
    assert_eq!(one, swept(3));
    let best = one.rows[0].curve.best.as_ref().unwrap();
    assert_eq!((best.precision.value, best.recall.value), (1.0, 1.0));
    assert_eq!(one.rows[0].curve.average_precision, 1.0);
    // Looser cuts find no less.
    for row in &one.rows {
        assert!(
            row.curve.points.is_sorted_by_key(|point| point.found),
            "{}",
            row.scheme
        );
    }
}

#[test]
fn advice_is_cheapest_first_and_only_what_reaches_the_wish() {
    let sweep = swept(2);
    let target = AccuracyTarget {
        precision: 0.9,
        recall: 0.9,
    };
    let recommendations = sweep.recommendations(target);
    assert!(!recommendations.is_empty() && recommendations.is_sorted_by(|a, b| a.bytes <= b.bytes));
    for found in &recommendations {
        assert!(found.point.precision.value >= 0.9 && found.point.recall.value >= 0.9);
        assert_eq!(
            found.is_sure,
            found.point.precision.low >= 0.9 && found.point.recall.low >= 0.9
        );
    }
    let all = AccuracyTarget {
        precision: 1.1,
        recall: 0.0,
    };
    assert!(sweep.recommendations(all).is_empty());
}

#[test]
fn the_page_holds_every_setting_and_loads_nothing() {
    let sweep = swept(1);
    let head = PageHead {
        command: "lookalike evaluate sweep <in> & co".to_owned(),
        truth: "True are 24 pairs.".to_owned(),
        target: AccuracyTarget {
            precision: 0.9,
            recall: 0.9,
        },
        job: Some("lookalike pairs <in> --distance 4".to_owned()),
    };
    let page = render(&sweep, &head, None).unwrap();
    assert_eq!(
        page.matches("<section class=\"card\">").count(),
        sweep.rows.len()
    );
    assert!(page.contains("&lt;in&gt; &amp; co") && !page.contains("<in>"));
    assert!(page.contains("lookalike pairs &lt;in&gt; --distance 4"));
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
    // Vassilvitskii's table accompanies the sketches that count hashes.
    let counting = sweep
        .rows
        .iter()
        .filter(|row| !row.curve.exactly.is_empty());
    let counting: Vec<&str> = counting.map(|row| &*row.sketch).collect();
    assert_eq!(counting, ["super-shingle:6x4"; 2]);
    assert_eq!(page.matches("Hashes that agree, exactly").count(), 2);
}

/// Generates texts of a few words from a small vocabulary, so that many resemble each other.
fn documents() -> impl Strategy<Value = DocumentSet> {
    let text = prop::collection::vec(0..12_u8, 0..9);
    prop::collection::vec(text, 2..30).prop_map(|texts| {
        let text =
            |words: Vec<u8>| -> String { words.iter().map(|word| format!("w{word} ")).collect() };
        let named = texts.into_iter().enumerate();
        DocumentSet::new(named.map(|(at, words)| (format!("d{at:02}"), text(words)))).unwrap()
    })
}

fn setting(shingle: &str, sketch: &str, weight: Weight, lengths: Option<f64>) -> SweepSetting {
    let scheme = Scheme::default()
        .shingle(shingle.parse().unwrap())
        .sketch(sketch.parse().unwrap())
        .weight(weight);
    SweepSetting::from(scheme).lengths(lengths)
}

/// The sketches of all documents, each by itself.
fn one_by_one(documents: &DocumentSet, scheme: &Scheme) -> Vec<Option<SketchValue>> {
    let counts = scheme.needs_terms().then(|| {
        let mut extractor = FeatureExtractor::new(&scheme.counted());
        let mut counts = TermCounts::new(scheme);
        for text in documents.texts() {
            counts.add(extractor.extract(text).set);
        }
        counts
    });
    let mut sketcher = DocumentSketcher::new(scheme, counts);
    let all = documents.documents().iter();
    all.map(|document| sketcher.sketch(document).sketch)
        .collect()
}

/// The curve of a setting by comparing each document with each; its cuts are those of `cuts`.
fn by_hand(
    documents: &DocumentSet,
    setting: &SweepSetting,
    truth: &[(u32, u32)],
    cuts: &ScoreCurve,
) -> ScoreCurve {
    let sketches = one_by_one(documents, &setting.scheme);
    let cuts: Vec<f64> = cuts.points.iter().map(|point| point.cut).collect();
    let least = cuts.last().copied().unwrap();
    let mut scores = Vec::new();
    for b in 0..documents.len() {
        for a in 0..b {
            let Some((x, y)) = sketches[a].as_ref().zip(sketches[b].as_ref()) else {
                continue;
            };
            let bytes = |at: usize| documents.text(at as u32).len() as f64;
            let (short, long) = (bytes(a).min(bytes(b)), bytes(a).max(bytes(b)));
            let is_close = setting.lengths.is_none_or(|share| short / long >= share);
            if x.score(y) >= least && is_close {
                scores.push((x.score(y), truth.contains(&(a as u32, b as u32))));
            }
        }
    }
    let mut curve = ScoreCurve::new(scores, truth.len() as u64, &cuts, |_| String::new());
    // Cuts below the last one would find more.
    if let Some(best) = &mut curve.best {
        best.cut = best.cut.max(least);
    }
    curve
}

/// The part of a curve that does not depend on names: found and correct pairs of its points, the cut and counts of the best point, and the area.
type CurveFigures = (Vec<(u64, u64)>, Option<(f64, u64, u64)>, f64);

fn figures(curve: &ScoreCurve) -> CurveFigures {
    let points = curve
        .points
        .iter()
        .map(|point| (point.found, point.correct));
    let best = curve.best.as_ref();
    let best = best.map(|best| (best.cut, best.found, best.correct));
    (points.collect(), best, curve.average_precision)
}

proptest! {
    #[test]
    fn a_sweep_counts_what_comparing_each_with_each_counts(
        documents in documents(),
        threshold in prop_oneof![Just(0.07), Just(0.2), Just(0.5), Just(0.8), Just(1.0)],
        lengths in prop_oneof![Just(None), Just(Some(0.7))],
        threads in 1..4_usize,
        memory in prop_oneof![Just(u64::MAX), Just(8_000), Just(5_000)],
    ) {
        let words = "words:1";
        let mut settings = vec![
            setting(words, "none", Weight::Set, lengths),
            setting("words:2", "none", Weight::Set, lengths),
            setting("chars:5", "none", Weight::Set, lengths),
        ];
        let whole_sets = settings.len();
        for weight in [Weight::Set, Weight::Tf, Weight::Idf] {
            settings.push(setting(words, "simhash:64", weight, lengths));
        }
        for sketch in ["simhash:32", "simhash:128", "minhash:16", "b-bit:16x2", "super-shingle:4x2", "mod-p:2", "winnow:2"] {
            settings.push(setting(words, sketch, Weight::Set, lengths));
        }
        let limits = SweepLimits::default().threads(threads).memory(memory);
        let exact = GroundTruth::exact(&documents, &settings[0].scheme, threshold);
        let GroundTruth::Complete { pairs, .. } = &exact else { unreachable!() };
        // The truth does not depend on the memory limit, as long as the pairs fit.
        match GroundTruth::of_documents(&documents, &settings[0].scheme, threshold, limits) {
            Ok(GroundTruth::Complete { pairs: found, .. }) => prop_assert_eq!(&found, pairs),
            Ok(GroundTruth::Judged(_)) => unreachable!("nothing was judged"),
            Err(error) => {
                let is_known = matches!(error, SweepError::TooLarge { .. });
                prop_assert!(is_known && memory < u64::MAX, "{}", error);
            }
        }
        let mut rows = vec![None; settings.len()];
        let swept = for_each_tally(&documents, &settings, &exact, limits, &mut |at, tally: SettingTally| {
            // A tally survives writing and reading.
            let line = serde_json::to_string(&tally).unwrap();
            let again: SettingTally = serde_json::from_str(&line).unwrap();
            assert_eq!(again, tally);
            rows[at] = Some(again.row_of(&settings[at], &exact));
            ControlFlow::Continue(())
        });
        let is_whole = swept.is_ok();
        prop_assert!(is_whole || memory < 8_000, "{:?}", swept);
        prop_assert!(!is_whole || rows.iter().all(Option::is_some));
        prop_assert!(memory < 8_000 || rows[..whole_sets].iter().all(Option::is_some));
        for (setting, row) in settings.iter().zip(rows) {
            let Some(row) = row else { continue };
            let expected = by_hand(&documents, setting, pairs, &row.curve);
            prop_assert_eq!(figures(&row.curve), figures(&expected), "{}", row.scheme);
        }
    }
}

#[test]
fn the_definition_of_the_truth_missed_pairs_below_a_low_threshold() {
    // Of 12 different words 4 are in both texts.
    let texts = ["a b c d e f g h", "a b c d i j k l", "m n"];
    let documents = DocumentSet::new(["1", "2", "3"].into_iter().zip(texts)).unwrap();
    let scheme = Scheme::default().shingle("words:1".parse().unwrap());
    for threshold in [0.3, 0.2, 0.05, 0.004] {
        let truth = GroundTruth::exact(&documents, &scheme, threshold);
        let swept = sweep(&documents, &[scheme.into()], &truth, 1, |_| {
            ControlFlow::Continue(())
        });
        let curve = &swept.unwrap().rows[0].curve;
        let best = curve.best.as_ref().unwrap();
        assert_eq!(
            (best.f1, curve.average_precision),
            (1.0, 1.0),
            "{threshold}"
        );
        assert!(curve.points.last().unwrap().cut <= threshold, "{threshold}");
        assert!(!curve.is_best_at_end);
    }
}

#[test]
fn distances_that_jobs_accept_were_not_tried() {
    let documents = families(8, 3);
    let truth = GroundTruth::exact(&documents, &settings()[0], 0.5);
    for bits in [32, 64, 128] {
        let setting = setting("words:2", &format!("simhash:{bits}"), Weight::Set, None);
        let swept = sweep(&documents, &[setting], &truth, 1, |_| {
            ControlFlow::Continue(())
        });
        let loosest = swept.unwrap().rows.remove(0).curve.loosest;
        assert_eq!(loosest, Some(format!("k <= {}", bits / 4)));
    }
}

#[test]
fn a_sweep_ends_when_its_caller_wants_no_more() {
    let documents = families(4, 2);
    let truth = GroundTruth::exact(&documents, &settings()[0], 0.5);
    let settings: Vec<SweepSetting> = settings().into_iter().map(SweepSetting::from).collect();
    let mut seen = 0;
    let ended = for_each_tally(
        &documents,
        &settings,
        &truth,
        SweepLimits::default(),
        &mut |_, _| {
            seen += 1;
            ControlFlow::Break(())
        },
    );
    assert_eq!((ended, seen), (Err(SweepError::Ended), 1));
}

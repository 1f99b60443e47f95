//! Sweeps: known answers, the same for any number of threads, and the page.

use std::ops::ControlFlow;

use lookalike::{Scheme, Sketch, Weight};
use lookalike_eval::page::{PageHead, render};
use lookalike_eval::{AccuracyTarget, GroundTruth, SweepResult, SweepSetting, sweep};

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
    };
    let page = render(&sweep, &head).unwrap();
    assert_eq!(
        page.matches("<section class=\"card\">").count(),
        sweep.rows.len()
    );
    assert!(page.contains("&lt;in&gt; &amp; co") && !page.contains("<in>"));
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
    // Vassilvitskii's table stands with the sketches that count hashes.
    let counting = sweep
        .rows
        .iter()
        .filter(|row| !row.curve.exactly.is_empty());
    let counting: Vec<&str> = counting.map(|row| &*row.sketch).collect();
    assert_eq!(counting, ["super-shingle:6x4"; 2]);
    assert_eq!(page.matches("Hashes that agree, exactly").count(), 2);
}

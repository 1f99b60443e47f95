//! The answer of a sweep, and its text form.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lookalike_eval::halves::NOTHING_CHOSEN;
use lookalike_eval::page::SweepExpectation;
use lookalike_eval::sweep::FeatureSensitivity;
use lookalike_eval::{
    AccuracyTarget, ConjunctiveRule, ExpectedAccuracy, HalvedAccuracy, Recommendation, SweepResult,
};
use serde::Serialize;

use crate::console;
use crate::evaluate::labels::describe_points;
use crate::evaluate::{copies_note, shown};

/// A recommendation, and the job that follows it.
#[derive(Serialize)]
pub(super) struct RecommendedJob<T> {
    #[serde(flatten)]
    pub(super) advice: T,
    /// `None` if no job decides like that.
    pub(super) command: Option<String>,
}

/// Output as JSON. Everything except `expected` and `halves` was chosen on the same data to which its figures apply.
#[derive(Serialize)]
pub(super) struct SweepOutput<'a> {
    pub(super) truth: &'a str,
    /// Number of documents that were set aside because another one has the same text.
    pub(super) copies: u64,
    pub(super) target: AccuracyTarget,
    pub(super) best: Option<RecommendedJob<Recommendation>>,
    pub(super) advice: Vec<RecommendedJob<Recommendation>>,
    pub(super) sensitivity: Vec<FeatureSensitivity>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) expected: &'a [ExpectedAccuracy],
    /// Expected accuracy on other documents, without labels. `None` if one half of the documents has no true pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) halves: Option<&'a [HalvedAccuracy]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) two_tests: Vec<RecommendedJob<ConjunctiveRule>>,
    /// True if each cut of each setting is shown: given sketches have few settings.
    #[serde(skip)]
    pub(super) shows_points: bool,
    #[serde(flatten)]
    pub(super) sweep: &'a SweepResult,
}

pub(super) fn describe(answer: &SweepOutput<'_>) -> String {
    let mut text = describe_rows(answer);
    describe_advice(&mut text, answer);
    describe_together(&mut text, &answer.two_tests);
    if let Some(expectation) = expectation_of(answer.expected, answer.halves) {
        describe_expectation(&mut text, &expectation);
    }
    text
}

fn describe_rows(answer: &SweepOutput<'_>) -> String {
    let swept = answer.sweep;
    let mut text = format!(
        "{} settings over {} documents. {}\n{}Each cut is chosen on the data that its figures describe.\n\n",
        swept.rows.len(),
        swept.documents,
        answer.truth,
        copies_note(answer.copies)
    );
    let features = swept.rows.iter().map(|row| row.features.len());
    let width = features.max().unwrap_or(0).max(12);
    let sketches = swept.rows.iter().map(|row| row.sketch.len());
    let sketch_width = sketches.max().unwrap_or(0).max(18);
    let _ = writeln!(
        text,
        "{:sketch_width$} {:width$} {:11} {:>6}  {:>7} {:>6}  best cut",
        "sketch", "features", "weight", "bytes", "best F1", "AP"
    );
    for row in &swept.rows {
        let best = row.curve.best.as_ref();
        let (f1, cut) = best.map_or((0.0, "nothing found"), |best| (best.f1, &*best.parameter));
        let end = match row.curve.is_best_at_end {
            true => ", the last that was tried",
            false => "",
        };
        let _ = writeln!(
            text,
            "{:sketch_width$} {:width$} {:11} {:>6.0}  {f1:>7.4} {:>6.3}  {cut}{end}",
            row.sketch, row.features, row.weight, row.bytes, row.curve.average_precision
        );
    }
    let loosest: BTreeSet<&str> = (swept.rows.iter())
        .filter_map(|row| row.curve.loosest.as_deref())
        .collect();
    if !loosest.is_empty() {
        let loosest: Vec<&str> = loosest.into_iter().collect();
        let _ = writeln!(
            text,
            "The last cuts that were tried: {}. AP, the average precision, counts true pairs beyond them as missed.",
            loosest.join(", ")
        );
    }
    for row in swept.rows.iter().filter(|_| answer.shows_points) {
        let _ = writeln!(text, "\n{} of {}", row.sketch, row.features);
        describe_points(&mut text, &row.curve);
    }
    text
}

fn describe_advice(text: &mut String, answer: &SweepOutput<'_>) {
    let target = answer.target;
    let _ = writeln!(
        text,
        "\nTarget: precision {} and recall {}. The cheapest settings that reach it, on the data they are chosen on:",
        target.precision, target.recall
    );
    if answer.advice.is_empty() {
        text.push_str("none\n");
    }
    // JSON has all of them.
    for advised in answer.advice.iter().take(5) {
        let not_sure = match advised.advice.is_sure {
            true => "",
            false => "; not certain, the limits reach below the target",
        };
        describe_setting(text, advised, not_sure);
    }
    if let Some(best) = &answer.best {
        text.push_str("\nThe best by F1, whatever its cost:\n");
        describe_setting(text, best, "");
    }
}

fn describe_setting(text: &mut String, advised: &RecommendedJob<Recommendation>, note: &str) {
    let advice = &advised.advice;
    let _ = writeln!(
        text,
        "  {} at {}: precision {}, recall {}, F1 {:.4}, {:.0} bytes a document{note}",
        advice.setting,
        advice.point.parameter,
        shown(&advice.point.precision),
        shown(&advice.point.recall),
        advice.point.f1,
        advice.bytes
    );
    describe_command(text, advised.command.as_deref());
}

fn describe_command(text: &mut String, command: Option<&str>) {
    let _ = match command {
        Some(command) if command.contains("lookalike join ") => writeln!(
            text,
            "    {command}\n    (of equal sketches, join pairs each with the first only)"
        ),
        Some(command) => writeln!(text, "    {command}"),
        None => writeln!(text, "    no single command does this"),
    };
}

fn describe_together(text: &mut String, together: &[RecommendedJob<ConjunctiveRule>]) {
    if !together.is_empty() {
        text.push_str("\nTwo tests, both of which must pass; the best, chosen on these labels:\n");
    }
    for RecommendedJob {
        advice: two,
        command,
    } in together
    {
        let _ = writeln!(
            text,
            "  {} and {}: precision {}, recall {}, F1 {:.4}",
            two.first,
            two.second,
            shown(&two.precision),
            shown(&two.recall),
            two.f1
        );
        describe_command(text, command.as_deref());
    }
}

/// Returns the expected accuracy elsewhere, and how it was measured, or `None` if it was not.
pub(super) fn expectation_of<'a>(
    labels: &'a [ExpectedAccuracy],
    halves: Option<&'a [HalvedAccuracy]>,
) -> Option<SweepExpectation<'a>> {
    let (elsewhere, basis) = match (labels.first(), halves) {
        // All expectations of a sweep have the same families.
        (Some(first), _) => {
            let (of, resampled) = match first.pairs_alone {
                true => (
                    "labelled pairs, each alone because fewer than five groups of them share no documents",
                    "pairs; the true limits are wider",
                ),
                false => ("families of labelled pairs", "families"),
            };
            (
                "labels",
                format!(
                    "settings and cuts chosen on four fifths of {} {of}, tested on the last fifth;\n\
                     95 % limits by resampling {resampled}",
                    first.families
                ),
            )
        }
        (None, Some(halves)) => {
            let known = match halves.first() {
                Some(first) => format!(
                    " added; {} true pairs lie in a half",
                    console::grouped(first.true_pairs)
                ),
                None => ": unknown, for one of the halves has no true pair".to_owned(),
            };
            (
                "documents",
                format!(
                    "settings and cuts chosen on one half of the documents, tested on the other, both ways{known}"
                ),
            )
        }
        (None, None) => return None,
    };
    Some(SweepExpectation {
        heading: format!("Expected on other {elsewhere}"),
        basis,
        labels,
        halves: halves.unwrap_or_default(),
    })
}

fn describe_expectation(text: &mut String, expectation: &SweepExpectation<'_>) {
    let _ = writeln!(text, "\n{}: {}", expectation.heading, expectation.basis);
    let labels = expectation.labels.iter().map(|one| one.choice.len());
    let halves = expectation.halves.iter().map(|one| one.choice.len());
    let width = labels.chain(halves).max().unwrap_or(0).max(18);
    for one in expectation.labels {
        let _ = writeln!(
            text,
            "  best of {:5} {:width$} F1 {:.3} [{:.3}, {:.3}], precision {:.3}, recall {:.3}",
            one.settings, one.choice, one.f1, one.low, one.high, one.precision, one.recall
        );
    }
    for one in expectation.halves {
        let _ = writeln!(
            text,
            "  best of {:5} {:width$} F1 {:.3}, precision {}, recall {}",
            one.settings,
            one.choice,
            one.f1,
            shown(&one.precision),
            shown(&one.recall)
        );
        let chosen = one.chosen.each_ref();
        let chosen = chosen.map(|chosen| chosen.as_deref().unwrap_or(NOTHING_CHOSEN));
        let _ = writeln!(text, "    chosen: {}", chosen.join("; "));
    }
}

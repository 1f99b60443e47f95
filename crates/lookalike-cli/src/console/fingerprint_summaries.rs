//! Summaries of jobs over fingerprints.

use std::path::Path;

use lookalike_batch::{FingerprintSummary, JoinSummary, MeasuredCost, MergeSummary};

use lookalike_batch::fingerprints::cluster::{ClusterSummary, FingerprintRule};
use lookalike_batch::fingerprints::files::{CodesSummary, ImportSummary};
use lookalike_batch::fingerprints::index::{
    FingerprintIndexSummary, IndexSummary, SketchIndexSummary,
};
use lookalike_batch::fingerprints::sketches::EqualPlaces;

use crate::size::show;

use super::lines::{
    NO_TEXT, boilerplate, bytes_each, cost, counted, grouped, line, notes, on_disk, share, skipped,
};

/// Prints the summary of `fingerprint`.
pub(crate) fn fingerprint_summary(summary: &FingerprintSummary, measured: &MeasuredCost) {
    line!(
        "input",
        "{}, {} of text",
        counted(summary.documents, "record"),
        show(summary.text_bytes)
    );
    line!(
        "none",
        "{} without features",
        grouped(summary.without_features)
    );
    notes([
        (summary.missing_text, NO_TEXT),
        (summary.too_long, "longer than --max-document: no sketch"),
    ]);
    boilerplate(summary.boilerplate.as_ref());
    skipped(&summary.skipped);
    line!("scheme", "{} ({})", summary.scheme, summary.scheme_id);
    cost(measured);
}

/// Prints the summary of `fingerprint --import`.
pub(crate) fn import_summary(summary: &ImportSummary, measured: &MeasuredCost) {
    for input in &summary.inputs {
        let count = counted(input.fingerprints, "fingerprint");
        let none = counted(input.without_features, "text");
        line!("input", "{}: {count}, {none} without", input.name);
        skipped(&input.skipped);
    }
    line!(
        "written",
        "{}",
        counted(summary.fingerprints, "fingerprint")
    );
    let scheme = summary.scheme_id.as_deref().unwrap_or("not known");
    line!("scheme", "{scheme}");
    cost(measured);
}

/// Prints the summary of `join`.
pub(crate) fn join_summary(summary: &JoinSummary, measured: &MeasuredCost) {
    let f = summary.f.iter().map(|side| ("f", side));
    let q = summary.q.iter().map(|side| ("q", side));
    for (label, side) in f.chain(q) {
        let scheme = side.scheme_id.as_deref().map_or_else(
            || "scheme not stored in the file".to_owned(),
            |id| format!("scheme {id}"),
        );
        let count = match &summary.equal {
            Some(_) => counted_sketches(side.fingerprints),
            None => counted(side.fingerprints, "fingerprint"),
        };
        line!(label, "{count}, {scheme}");
        left_out(side);
    }
    let pairs = grouped(summary.pairs);
    let rule = pair_rule(Some(summary.distance), summary.equal.as_ref());
    let part = summary.shard.as_ref();
    let part = part.map_or_else(String::new, |shard| format!(", of shard {shard}"));
    line!("pairs", "{pairs}{rule}{part}");
    if summary.temporary_bytes > 0 {
        line!("sorted", "{} on disk", show(summary.temporary_bytes));
    }
    on_disk(summary.tables_on_disk);
    cost(measured);
}

/// Prints what was left out of a file of sketches.
fn left_out(side: &CodesSummary) {
    notes([(side.without_features, "null: texts without features")]);
    skipped(&side.skipped);
}

/// Formats the condition on pairs, to follow their number.
fn pair_rule(distance: Option<u32>, equal: Option<&EqualPlaces>) -> String {
    match (distance, equal) {
        (_, Some(equal)) => format!(" with at least {} of {} equal", equal.least, equal.of),
        (Some(distance), None) => format!(" within {distance} bits"),
        (None, None) => String::new(),
    }
}

/// Prints the summary of `merge`.
pub(crate) fn merge_summary(summary: &MergeSummary, measured: &MeasuredCost) {
    for list in &summary.lists {
        line!("list", "{}: {}", list.name, counted(list.pairs, "pair"));
    }
    let repeated = match summary.repeated {
        0 => String::new(),
        1 => ", 1 was in several lists".to_owned(),
        count => format!(", {} were in several lists", grouped(count)),
    };
    line!("pairs", "{}{repeated}", grouped(summary.pairs));
    cost(measured);
}

/// Prints the summary of `cluster`.
pub(crate) fn cluster_summary(summary: &ClusterSummary, folder: &Path) {
    let (counts, decisions) = (&summary.counts, &summary.decisions);
    line!("input", "{}", counted(counts.documents, "document"));
    notes([
        (
            counts.repeated,
            "fingerprints without ids equal an earlier one: counted as one document",
        ),
        (
            counts.without_features,
            "null: texts without features, neither kept nor removed here",
        ),
    ]);
    summary
        .inputs
        .iter()
        .for_each(|input| skipped(&input.skipped));
    on_disk(counts.tables_on_disk);
    let pairs = grouped(counts.pairs);
    let rule = pair_rule(summary.distance, summary.equal.as_ref());
    line!("pairs", "{pairs}{rule}");
    let same = grouped(decisions.removed_same_fingerprint);
    let what = match summary.equal {
        Some(_) => "sketch",
        None => "fingerprint",
    };
    line!("same", "{same} removed, each with the {what} of a kept one");
    match summary.rule {
        FingerprintRule::Stars => line!(
            "near",
            "{} removed, each within the distance of a kept one",
            grouped(decisions.removed_near)
        ),
        FingerprintRule::Components => line!(
            "connected",
            "{} removed, each connected to a kept one by a chain of pairs, not compared with it",
            grouped(decisions.removed_connected)
        ),
    }
    line!(
        "kept",
        "{} ({})",
        grouped(decisions.kept),
        share(decisions.kept, counts.documents)
    );
    match &summary.verification {
        None if summary.inputs.is_empty() => {
            line!("verified", "nothing: pairs decided, no text was read")
        }
        None => line!(
            "verified",
            "nothing: fingerprints decided, no text was compared"
        ),
        Some(texts) => {
            let (removed, counts) = (grouped(decisions.removed()), &texts.counts);
            let least = texts.threshold;
            line!(
                "verified",
                "{removed} removed, each with a text that resembles that of a kept one by {least} or more"
            );
            // Those without a text are among those kept after all, so they are subtracted there.
            let without = counts.without_text;
            for (count, why) in [
                (
                    counts.kept_after_all - without,
                    "their texts do not resemble those of their survivors",
                ),
                (
                    without,
                    "their texts, or those of their survivors, are in none of the --verify files",
                ),
            ] {
                if count > 0 {
                    line!("", "{} kept after all: {why}", grouped(count));
                }
            }
            skipped(&texts.skipped);
        }
    }
    cost(&summary.measured);
    line!("results", "{}", folder.display().to_string());
}

/// Prints the summary of `index build`.
pub(crate) fn index_summary(summary: &IndexSummary, measured: &MeasuredCost) {
    match summary {
        IndexSummary::Fingerprints(summary) => fingerprint_index_summary(summary),
        IndexSummary::Sketches(summary) => sketch_index_summary(summary),
    }
    cost(measured);
}

fn fingerprint_index_summary(summary: &FingerprintIndexSummary) {
    line!(
        "input",
        "{}, {} of them different",
        counted(summary.fingerprints, "fingerprint"),
        grouped(summary.distinct)
    );
    summary.inputs.iter().for_each(left_out);
    line!(
        "index",
        "{}{}{}",
        show(summary.bytes),
        bytes_each(summary.bytes_per_fingerprint, summary.distinct),
        if summary.ids { " with its ids" } else { "" }
    );
    line!(
        "design",
        "{} ({}), {}, distance up to {}",
        counted(summary.tables as u64, "table"),
        summary.design,
        summary.layout,
        summary.distance
    );
}

fn sketch_index_summary(summary: &SketchIndexSummary) {
    line!(
        "input",
        "{}, {} of them different",
        counted_sketches(summary.sketches),
        grouped(summary.distinct)
    );
    summary.inputs.iter().for_each(left_out);
    line!(
        "index",
        "{}, {:.2} bytes a sketch{}",
        show(summary.bytes),
        summary.bytes_per_sketch,
        if summary.ids { " with its ids" } else { "" }
    );
    line!(
        "design",
        "{}, at least {} of {} equal",
        counted(summary.bands as u64, "band"),
        summary.equal.least,
        summary.equal.of
    );
}

/// Formats a number of sketches.
pub(crate) fn counted_sketches(count: u64) -> String {
    match count {
        1 => "1 sketch".to_owned(),
        count => format!("{} sketches", grouped(count)),
    }
}

//! Everything that is printed: progress on a terminal, warnings, summaries. The only module that may.
//!
//! A reader of standard error that has gone is no failure: what cannot be said is left unsaid.

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use cpu_time::ProcessTime;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lookalike_batch::{
    BoilerplateCounts, Counts, DedupSummary, ExtractionSummary, FingerprintSummary, JoinSummary,
    Measured, Observer, PairsSummary, SkippedRow, Stage, TermsSummary,
};

use lookalike_batch::codes::ImportSummary;
use lookalike_batch::overlap::{AtlasSummary, ChunkingSummary, OverlapSummary};

use crate::machine;
use crate::size::show;

fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// One line about what went wrong.
pub(crate) fn error(reason: &str) {
    say(&format!("lookalike: error: {reason}"));
}

/// One line about what to know.
pub(crate) fn warning(text: &str) {
    say(&format!("lookalike: warning: {text}"));
}

/// Shows progress on a terminal, and measures each stage.
pub(crate) struct Console {
    bar: ProgressBar,
    state: Mutex<State>,
}

struct State {
    stages: Vec<(&'static str, f64, f64)>,
    /// Entries from here on are of the stage that runs: its own, and what it wrote.
    first: usize,
    /// The stage, and what its time goes to since when.
    running: Option<(Stage, Stage, Instant, ProcessTime)>,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        let visible = !quiet && stderr().is_terminal();
        let bar = if visible {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            state: Mutex::new(State {
                stages: Vec::new(),
                first: 0,
                running: None,
            }),
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    /// Stages with the running one up to now.
    fn stages(&self) -> Vec<(&'static str, f64, f64)> {
        let mut stages = self.stages.clone();
        let Some((_, what, wall, cpu)) = &self.running else {
            return stages;
        };
        let wall = wall.elapsed().as_secs_f64();
        let cpu = cpu.try_elapsed().map_or(0.0, |cpu| cpu.as_secs_f64());
        let mut own = stages[self.first..].iter_mut();
        match own.find(|entry| entry.0 == what.name()) {
            Some(entry) => *entry = (entry.0, entry.1 + wall, entry.2 + cpu),
            None => stages.push((what.name(), wall, cpu)),
        }
        stages
    }
}

impl Observer for Console {
    fn stage(&self, stage: Stage, total: u64) {
        let mut state = self.state();
        state.stages = state.stages();
        state.first = state.stages.len();
        state.running = Some((stage, stage, Instant::now(), ProcessTime::now()));
        let counts = if stage.counts_bytes() {
            "{binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}"
        } else {
            "{human_pos} of {human_len}, {rate}"
        };
        let template = format!("{:8} [{{bar:30}}] {counts}, {{eta}} left", stage.name());
        // The style first: what follows draws.
        self.bar.set_style(
            ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("rate", rate),
        );
        self.bar.reset();
        self.bar.set_length(total);
    }

    fn advance(&self, done: u64) {
        self.bar.set_position(done);
    }

    fn writing(&self, is_writing: bool) {
        let mut state = self.state();
        let Some((stage, ..)) = state.running else {
            return;
        };
        let what = if is_writing { Stage::Write } else { stage };
        state.stages = state.stages();
        state.running = Some((stage, what, Instant::now(), ProcessTime::now()));
    }

    fn measured(&self) -> Measured {
        Measured {
            stages: self.state().stages(),
            peak_memory: machine::peak_memory(),
        }
    }
}

/// Whole things a second.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let _ = write!(out, "{}/s", grouped(state.per_sec() as u64));
}

/// A number with separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn line(name: &str, value: &str) {
    say(&format!("{name:>12}  {value}"));
}

/// What a person wants to know after `dedup`.
pub(crate) fn dedup_summary(summary: &DedupSummary, folder: &Path) {
    let (counts, decisions) = (&summary.counts, &summary.decisions);
    let records = counts.documents - counts.against;
    let removed = decisions.removed_exact + decisions.removed_near;
    let share = |part: u64, whole: u64| {
        if whole == 0 {
            0.0
        } else {
            100.0 * part as f64 / whole as f64
        }
    };
    line(
        "input",
        &format!("{} records, {}", grouped(records), show(counts.input_bytes)),
    );
    line(
        "exact",
        &format!("{} removed", grouped(decisions.removed_exact)),
    );
    line(
        "near",
        &format!(
            "{} removed, each verified at {} or more",
            grouped(decisions.removed_near),
            summary.threshold
        ),
    );
    line(
        "kept",
        &format!(
            "{} ({:.1}%)",
            grouped(decisions.kept),
            share(decisions.kept, records)
        ),
    );
    line(
        "saved",
        &format!(
            "{} of {} of text ({:.1}%)",
            show(decisions.removed_text_bytes),
            show(counts.text_bytes),
            share(decisions.removed_text_bytes, counts.text_bytes)
        ),
    );
    let families = if decisions.clusters == 1 {
        "cluster"
    } else {
        "clusters"
    };
    line(
        "",
        &format!(
            "{} in {} {families}",
            grouped(removed),
            grouped(decisions.clusters)
        ),
    );
    noteworthy(counts);
    skipped(&summary.skipped);
    cost(&summary.measured);
    line(
        "results",
        &format!("{} (open report.html)", folder.display()),
    );
}

/// What a person wants to know after `pairs`.
pub(crate) fn pairs_summary(summary: &PairsSummary, measured: &Measured) {
    line(
        "input",
        &format!(
            "{} records, {}",
            grouped(summary.counts.documents),
            show(summary.counts.input_bytes)
        ),
    );
    line("pairs", &grouped(summary.pairs));
    noteworthy(&summary.counts);
    skipped(&summary.skipped);
    cost(measured);
}

/// The note on texts that came in damaged.
const MOJIBAKE: &str =
    "with text that was decoded wrongly before (such as \u{c3}\u{a9} for \u{e9}): read as it is";

/// What a person wants to know after `extract`.
pub(crate) fn extraction_summary(summary: &ExtractionSummary, measured: &Measured) {
    line(
        "input",
        &format!(
            "{} records, {} ({} as read)",
            grouped(summary.documents),
            show(summary.input_bytes),
            show(summary.record_bytes)
        ),
    );
    line("text", &show(summary.text_bytes));
    let mut charsets: Vec<_> = summary.charsets.iter().collect();
    charsets.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let charsets = charsets.iter().take(8);
    let charsets: Vec<String> = charsets
        .map(|(name, count)| format!("{} {name}", grouped(**count)))
        .collect();
    if !charsets.is_empty() {
        line("charsets", &charsets.join(", "));
    }
    let notes = [
        (summary.missing_text, "without a text field"),
        (summary.too_long, "longer than --max-document: left out"),
        (
            summary.charset_wrong,
            "in another character set than is declared: read as what they are",
        ),
        (
            summary.characters_replaced,
            "with broken characters, read as U+FFFD",
        ),
        (summary.mojibake, MOJIBAKE),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
    let mut languages: Vec<_> = summary.languages.iter().collect();
    languages.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let languages = languages.iter().take(12);
    let languages: Vec<String> = languages
        .map(|(name, count)| format!("{} {name}", grouped(**count)))
        .collect();
    if !languages.is_empty() {
        line("languages", &languages.join(", "));
    }
    boilerplate(summary.boilerplate.as_ref());
    skipped(&summary.skipped);
    let wall: f64 = measured.stages.iter().map(|stage| stage.1).sum();
    if wall > 0.0 {
        let rate = summary.record_bytes as f64 / 1e6 / wall;
        line("rate", &format!("{rate:.0} MB/s of records as read"));
    }
    cost(measured);
}

/// What a person wants to know after `fingerprint`.
pub(crate) fn fingerprint_summary(summary: &FingerprintSummary, measured: &Measured) {
    line(
        "input",
        &format!(
            "{} records, {} of text",
            grouped(summary.documents),
            show(summary.text_bytes)
        ),
    );
    line(
        "none",
        &format!("{} without features", grouped(summary.without_features)),
    );
    boilerplate(summary.boilerplate.as_ref());
    skipped(&summary.skipped);
    line(
        "scheme",
        &format!("{} ({})", summary.scheme, summary.scheme_id),
    );
    cost(measured);
}

/// What a person wants to know after `fingerprint --import`.
pub(crate) fn import_summary(summary: &ImportSummary, measured: &Measured) {
    for input in &summary.inputs {
        let (count, none) = (grouped(input.fingerprints), grouped(input.without_features));
        line(
            "input",
            &format!("{}: {count} fingerprints, {none} texts without", input.name),
        );
        skipped(&input.skipped);
    }
    line(
        "written",
        &format!("{} fingerprints", grouped(summary.fingerprints)),
    );
    let scheme = summary.scheme_id.as_deref().unwrap_or("not known");
    line("scheme", scheme);
    cost(measured);
}

/// What a person wants to know after `join`.
pub(crate) fn join_summary(summary: &JoinSummary, measured: &Measured) {
    let sides = [("f", Some(&summary.f)), ("q", summary.q.as_ref())];
    for (label, side) in sides
        .into_iter()
        .filter_map(|(label, side)| Some((label, side?)))
    {
        let scheme = side.scheme_id.as_deref().map_or_else(
            || "scheme not stored in the file".to_owned(),
            |id| format!("scheme {id}"),
        );
        let count = grouped(side.fingerprints);
        line(label, &format!("{count} fingerprints, {scheme}"));
        if side.without_features > 0 {
            let count = grouped(side.without_features);
            line("note", &format!("{count} null: texts without features"));
        }
        skipped(&side.skipped);
    }
    let (pairs, distance) = (grouped(summary.pairs), summary.distance);
    line("pairs", &format!("{pairs} within {distance} bits"));
    if summary.spilled_bytes > 0 {
        line(
            "sorted",
            &format!("{} on disk", show(summary.spilled_bytes)),
        );
    }
    cost(measured);
}

/// What a person wants to know after `terms`.
pub(crate) fn terms_summary(summary: &TermsSummary, measured: &Measured) {
    line("input", &format!("{} records", grouped(summary.documents)));
    line(
        "terms",
        &format!("{} in two records or more", grouped(summary.terms)),
    );
    boilerplate(summary.boilerplate.as_ref());
    skipped(&summary.skipped);
    line("table", &summary.id);
    line("scheme", &summary.scheme);
    cost(measured);
}

/// What a person wants to know after `index build`.
pub(crate) fn index_summary(
    summary: &lookalike_batch::index::IndexBuildSummary,
    measured: &Measured,
) {
    line(
        "input",
        &format!(
            "{} fingerprints, {} of them different",
            grouped(summary.fingerprints),
            grouped(summary.distinct)
        ),
    );
    summary
        .inputs
        .iter()
        .for_each(|input| skipped(&input.skipped));
    line(
        "index",
        &format!(
            "{}, {:.2} bytes a fingerprint{}",
            show(summary.bytes),
            summary.bytes_per_fingerprint,
            if summary.ids { " with its ids" } else { "" }
        ),
    );
    line(
        "design",
        &format!(
            "{} tables ({}), {}, distance up to {}",
            summary.tables, summary.design, summary.layout, summary.distance
        ),
    );
    cost(measured);
}

/// What a person wants to know after `overlap`.
pub(crate) fn overlap_summary(summary: &OverlapSummary, measured: &Measured) {
    let counts = &summary.counts;
    line(
        "input",
        &format!(
            "{} documents, {}",
            grouped(counts.documents),
            show(counts.input_bytes)
        ),
    );
    line(
        "exact",
        &format!(
            "{} copies in {} sets of equal text",
            grouped(summary.exact_copies),
            grouped(summary.exact_sets)
        ),
    );
    if summary.servers > 0 {
        let without = match summary.without_server {
            0 => String::new(),
            without => format!("; {} documents have none", grouped(without)),
        };
        line("servers", &format!("{}{without}", grouped(summary.servers)));
    }
    summary.chunkings.iter().for_each(chunking_summary);
    noteworthy(counts);
    skipped(&summary.skipped);
    cost(measured);
}

/// What a person wants to know after `overlap -o`.
pub(crate) fn atlas_summary(summary: &AtlasSummary, folder: &Path) {
    let documents = summary.overlap.counts.documents;
    for level in &summary.levels {
        line(
            &level.level,
            &format!(
                "{} visits saved ({:.1}%), {} of text",
                grouped(level.visits_saved),
                100.0 * level.visits_saved as f64 / documents.max(1) as f64,
                show(level.bytes_saved)
            ),
        );
    }
    overlap_summary(&summary.overlap, &summary.measured);
    line(
        "mirrors",
        &format!(
            "{} page sets on several servers, {} aliases",
            grouped(summary.mirrored_sets),
            grouped(summary.aliases)
        ),
    );
    line(
        "results",
        &format!("{} (open atlas.html)", folder.display()),
    );
}

fn chunking_summary(chunking: &ChunkingSummary) {
    line(
        &chunking.chunking,
        &format!("{} rows", grouped(chunking.rows)),
    );
    line(
        "",
        &format!(
            "{} chunks, {} of them shared; counted by {} ({})",
            grouped(chunking.distinct_chunks),
            grouped(chunking.shared_chunks),
            chunking.engine,
            chunking.why
        ),
    );
    if chunking.common_chunks > 0 {
        line(
            "",
            &format!(
                "{} chunks of more than {} units each were put off and counted exactly afterwards",
                grouped(chunking.common_chunks),
                grouped(u64::from(chunking.common_above))
            ),
        );
    }
    if chunking.expected_collisions >= 1e-3 {
        line(
            "",
            &format!(
                "{:.3} pairs of different chunks are expected to have the same fingerprint",
                chunking.expected_collisions
            ),
        );
    }
}

/// A JSON object as one line on standard error: beside results on standard output, or of a log.
pub(crate) fn json_beside(object: &impl serde::Serialize) {
    match serde_json::to_string(object) {
        Ok(text) => say(&text),
        Err(reason) => error(&reason.to_string()),
    }
}

/// A JSON object as one line on standard output.
pub(crate) fn json(object: &impl serde::Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(object)?;
    line.push(b'\n');
    std::io::stdout().lock().write_all(&line)
}

/// A summary as JSON: on standard output, unless the results are there because no `output` was named.
pub(crate) fn json_summary(
    summary: &impl serde::Serialize,
    output: Option<&Path>,
) -> std::io::Result<()> {
    match output {
        Some(_) => json(summary),
        None => {
            json_beside(summary);
            Ok(())
        }
    }
}

/// What became of lines that recur on many pages, where they were looked for.
fn boilerplate(counts: Option<&BoilerplateCounts>) {
    let Some(counts) = counts else { return };
    line(
        "template",
        &format!(
            "{} lines learned; {} ({}) taken out of {} records",
            grouped(counts.learned),
            grouped(counts.lines),
            show(counts.bytes),
            grouped(counts.documents)
        ),
    );
    let notes = [
        (
            counts.kept_whole,
            "that are next to nothing but template: kept it",
        ),
        (
            counts.without_site,
            "of no site, for they have no URL: kept all lines",
        ),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
}

/// Counts that are usually zero.
pub(crate) fn noteworthy(counts: &Counts) {
    boilerplate(counts.boilerplate.as_ref());
    let notes = [
        (counts.empty, "without any text: kept, equal to nothing"),
        (
            counts.too_long,
            "longer than --max-document: kept, not compared",
        ),
        (
            counts.without_features,
            "texts without a word: compared as exact copies only",
        ),
        (
            counts.characters_replaced,
            "with broken characters, read as U+FFFD",
        ),
        (counts.mojibake, MOJIBAKE),
        (counts.ids_repeated, "with the id of another: numbered"),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
}

pub(crate) fn skipped(rows: &[SkippedRow]) {
    for row in rows {
        line(
            "skipped",
            &format!(
                "{} {}, the first: {}",
                grouped(row.count),
                row.kind,
                row.first
            ),
        );
    }
}

pub(crate) fn cost(measured: &Measured) {
    let wall: f64 = measured.stages.iter().map(|stage| stage.1).sum();
    let cpu: f64 = measured.stages.iter().map(|stage| stage.2).sum();
    line("time", &format!("{wall:.2} s ({cpu:.2} s of processor)"));
    if measured.peak_memory > 0 {
        line("memory", &format!("{} at most", show(measured.peak_memory)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}

//! Everything that is printed: progress on a terminal, warnings, summaries. The only module that may.
//!
//! A reader of standard error that has gone is no failure: what cannot be said is left unsaid.

use std::borrow::Cow;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use console::Term;
use cpu_time::ProcessTime;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lookalike_batch::{
    AddedDocuments, ArchiveSummary, BoilerplateCounts, CollectionSummary, DedupSummary,
    ExtractionSummary, FingerprintSummary, InputCounts, JobObserver, JobStage, JoinSummary,
    MeasuredCost, MergeSummary, PageCounts, PairsSummary, ParagraphCounts, SkippedRow,
    TermsSummary, WrittenBytes,
};

use lookalike_batch::fingerprints::cluster::{ClusterSummary, FingerprintRule};
use lookalike_batch::fingerprints::files::ImportSummary;
use lookalike_batch::overlap::{AtlasSummary, ChunkingSummary, CoarseFigures, OverlapSummary};
use lookalike_batch::report::diff;

use crate::size::show;
use crate::{caller, machine};

/// Condition on which output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorOption {
    /// On a terminal, unless the environment variable NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorOption {
    /// Decides whether to colour what goes to a terminal, or to something else.
    pub(crate) fn wanted(self, is_terminal: bool) -> bool {
        match self {
            // By no-color.org an empty value counts as unset.
            Self::Auto => {
                let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                is_terminal && !forbidden
            }
            Self::Always => true,
            Self::Never => false,
        }
    }
}

fn say(line: &str) {
    let _ = writeln!(stderr(), "{}", harmless(line));
}

/// The line without characters that act on a terminal or turn its text around: names of files may hold any.
pub(crate) fn harmless(line: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
        turns || (c.is_control() && c != '\n' && c != '\t')
    };
    if !line.contains(acts) {
        return line.into();
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match acts(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// A word that stands out on a terminal.
fn coloured(word: &str, color: &str) -> String {
    match ColorOption::Auto.wanted(stderr().is_terminal()) {
        true => format!("\x1b[1;{color}m{word}\x1b[0m"),
        false => word.to_owned(),
    }
}

const RED: &str = "31";
const YELLOW: &str = "33";

/// One line about what went wrong.
pub(crate) fn error(reason: &str) {
    say(&format!("lookalike: {} {reason}", coloured("error:", RED)));
}

/// One line about what to know.
pub(crate) fn warning(text: &str) {
    if caller::keep_warning(text) {
        return;
    }
    say(&format!(
        "lookalike: {} {text}",
        coloured("warning:", YELLOW)
    ));
}

/// One line about what is missing in the results, all of which stands out.
pub(crate) fn losses(text: &str) {
    warning(&coloured(text, YELLOW));
}

/// Shows progress on a terminal, and measures each stage.
pub(crate) struct Console<'o> {
    bar: ProgressBar,
    /// Another program that hears of progress instead.
    program: Option<&'o dyn JobObserver>,
    quiet: bool,
    /// Width of the terminal.
    columns: u16,
    state: Mutex<ConsoleState>,
}

struct ConsoleState {
    stages: Vec<(&'static str, f64, f64)>,
    /// Entries from here on are of the stage that runs: its own, and what it wrote.
    first: usize,
    /// The stage, and what its time goes to since when.
    running: Option<(JobStage, JobStage, Instant, ProcessTime)>,
}

impl<'o> Console<'o> {
    /// Measures for another program, which hears of progress.
    pub(crate) fn for_program(observer: &'o dyn JobObserver) -> Self {
        Self {
            program: Some(observer),
            quiet: false,
            ..Self::new(true)
        }
    }

    pub(crate) fn new(quiet: bool) -> Self {
        let visible = !quiet && stderr().is_terminal();
        let bar = if visible {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            program: None,
            quiet,
            columns: Term::stderr().size().1,
            state: Mutex::new(ConsoleState {
                stages: Vec::new(),
                first: 0,
                running: None,
            }),
        }
    }

    /// Says what to know while a job is at work, unless nothing is to be said.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| warning(text));
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ConsoleState> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ConsoleState {
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

impl JobObserver for Console<'_> {
    fn stage(&self, stage: JobStage, total: u64) {
        if let Some(program) = self.program {
            program.stage(stage, total);
        }
        let mut state = self.state();
        state.stages = state.stages();
        state.first = state.stages.len();
        state.running = Some((stage, stage, Instant::now(), ProcessTime::now()));
        let template = template(stage, total, self.columns);
        // The style first: what follows draws.
        self.bar.set_style(
            ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("rate", rate),
        );
        self.bar.set_length(total);
        self.bar.reset();
        // What does not advance for a while is seen to live.
        self.bar.enable_steady_tick(TICK);
    }

    fn advance(&self, done: u64) {
        if let Some(program) = self.program {
            program.advance(done);
        }
        self.bar.set_position(done);
    }

    fn is_cancelled(&self) -> bool {
        self.program.is_some_and(JobObserver::is_cancelled)
    }

    fn writing(&self, is_writing: bool) {
        let mut state = self.state();
        let Some((stage, ..)) = state.running else {
            return;
        };
        let what = if is_writing { JobStage::Write } else { stage };
        state.stages = state.stages();
        state.running = Some((stage, what, Instant::now(), ProcessTime::now()));
    }

    fn measured(&self) -> MeasuredCost {
        MeasuredCost {
            stages: self.state().stages(),
            peak_memory: machine::peak_memory(),
        }
    }
}

/// Interval between drawings of the line.
const TICK: Duration = Duration::from_millis(200);
/// Columns in which all that is known of a stage has room beside a bar of ten.
const WIDE: u16 = 80;
/// Columns in which a bar and counts without a rate have room.
const NARROW: u16 = 54;

/// The line of a stage. It never has more columns than the terminal, for a line that wraps cannot be drawn over.
fn template(stage: JobStage, total: u64, columns: u16) -> String {
    let name = stage.name();
    // The library may use the last column, where some terminals wrap.
    let bar = |rest: u16| columns.saturating_sub(rest).clamp(4, 40);
    match (total, stage.counts_bytes()) {
        (0, _) => format!("{name:8} {{spinner}} {{elapsed}}"),
        (_, true) if columns >= WIDE => format!(
            "{name:8} [{{bar:{}}}] {{binary_bytes}} of {{binary_total_bytes}}, {{binary_bytes_per_sec}}, {{eta}} left",
            bar(70)
        ),
        (_, false) if columns >= WIDE => format!(
            "{name:8} [{{bar:{}}}] {{human_pos}} of {{human_len}}, {{rate}}, {{eta}} left",
            bar(70)
        ),
        (_, is_bytes) if columns >= NARROW => {
            let counts = match is_bytes {
                true => "{binary_bytes} of {binary_total_bytes}",
                false => "{human_pos} of {human_len}",
            };
            format!("{name:8} [{{bar:{}}}] {counts}", bar(44))
        }
        _ => format!("{name:8} {{percent}}%"),
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

/// A number of things, by the name of one: `1 table`, `2 tables`.
pub(crate) fn counted(number: u64, name: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {name}{ending}", grouped(number))
}

fn line(name: &str, value: &str) {
    say(&format!("{name:>12}  {value}"));
}

/// Prints the summary of `dedup`.
pub(crate) fn dedup_summary(summary: &DedupSummary, folder: &Path) {
    let (counts, decisions) = (&summary.counts, &summary.decisions);
    let records = counts.documents - counts.against;
    let removed = decisions.removed_exact + decisions.removed_near;
    line(
        "input",
        &format!(
            "{}, {} as stored",
            counted(records, "record"),
            show(counts.input_bytes - counts.against_bytes)
        ),
    );
    if counts.against > 0 {
        line(
            "against",
            &format!(
                "{}, {} as stored: never removed",
                counted(counts.against, "record"),
                show(counts.against_bytes)
            ),
        );
    }
    if let Some(used) = counts.collection {
        line(
            "against",
            &format!(
                "{} of a collection, {} of them looked at: never removed",
                counted(used.documents, "document"),
                grouped(used.looked_at)
            ),
        );
    }
    texts(counts, None);
    line(
        "exact",
        &format!(
            "{} removed, each for a kept one of equal text",
            grouped(decisions.removed_exact)
        ),
    );
    line(
        "near",
        &format!(
            "{} removed, each verified at {} or more",
            grouped(decisions.removed_near),
            summary.threshold
        ),
    );
    if decisions.removed_same_main_text > 0 {
        line(
            "",
            &format!(
                "of these {} with the main text of a kept page, of which a reader sees something else",
                grouped(decisions.removed_same_main_text)
            ),
        );
    }
    line(
        "kept",
        &format!(
            "{} ({})",
            grouped(decisions.kept),
            share(decisions.kept, records)
        ),
    );
    let text_bytes = counts.text_bytes - counts.against_text_bytes;
    line(
        "saved",
        &format!(
            "{} of {} of text ({})",
            show(decisions.removed_text_bytes),
            show(text_bytes),
            share(decisions.removed_text_bytes, text_bytes)
        ),
    );
    line(
        "",
        &format!(
            "{} in {}",
            grouped(removed),
            counted(decisions.clusters, "cluster")
        ),
    );
    if let Some(largest) = decisions.dominant_cluster() {
        line(
            "alert",
            &format!(
                "{} of {} removed records are in one cluster, that of {}: look at it before you believe the rest",
                grouped(largest.removed),
                grouped(removed),
                diff::visible(&largest.survivor)
            ),
        );
    }
    if decisions.kept_as_pages > 0 {
        line(
            "note",
            &format!(
                "{} pages whose main text is like that of a kept one: kept, for they differ in the rest",
                grouped(decisions.kept_as_pages)
            ),
        );
    }
    noteworthy(counts);
    skipped(&summary.skipped);
    skipped_files(&summary.written, folder);
    cost(&summary.measured);
    line(
        "results",
        &format!("{} (open report.html)", folder.display()),
    );
}

/// Prints what was added to a collection.
pub(crate) fn added(added: &AddedDocuments, folder: &Path) {
    line(
        "added",
        &format!(
            "{} to {}, which has {} now",
            counted(added.added, "document"),
            folder.display(),
            grouped(added.documents)
        ),
    );
}

/// Prints the summary of `collection build` and `add`.
pub(crate) fn collection_summary(
    summary: &CollectionSummary,
    folder: &Path,
    measured: &MeasuredCost,
) {
    let counts = &summary.counts;
    line(
        "input",
        &format!(
            "{}, {} as stored",
            counted(counts.documents, "record"),
            show(counts.input_bytes)
        ),
    );
    texts(counts, None);
    noteworthy(counts);
    skipped(&summary.skipped);
    cost(measured);
    added(&summary.added, folder);
}

/// Prints the summary of `archive build`.
pub(crate) fn archive_summary(summary: &ArchiveSummary, file: &Path, measured: &MeasuredCost) {
    let (counts, archive) = (&summary.counts, &summary.archive);
    line(
        "input",
        &format!(
            "{}, {} as stored",
            counted(counts.documents, "record"),
            show(counts.input_bytes)
        ),
    );
    texts(counts, None);
    noteworthy(counts);
    skipped(&summary.skipped);
    line(
        "copies",
        &format!("{} beside another document", grouped(archive.copies)),
    );
    cost(measured);
    line(
        "archive",
        &format!(
            "{}, {} of {}: {:.2} to 1",
            file.display(),
            show(archive.archive_bytes),
            show(archive.source_bytes),
            archive.ratio
        ),
    );
}

/// A part of a whole: `18.7%`; nothing is no part of nothing.
fn share(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Prints the number of texts, and of records that repeat one: the same count for every job over the same input.
fn texts(counts: &InputCounts, shared: Option<u64>) {
    let shared = match shared {
        Some(shared) if shared > 0 => format!(", in {} of equal text", counted(shared, "set")),
        _ => String::new(),
    };
    line(
        "texts",
        &format!(
            "{} different, {} one of them{shared}",
            grouped(counts.distinct_texts),
            repeating(counts.repeated_texts)
        ),
    );
}

/// The records that repeat others, with their verb.
fn repeating(records: u64) -> String {
    match records {
        1 => "1 record repeats".to_owned(),
        records => format!("{} records repeat", grouped(records)),
    }
}

/// Prints the summary of `pairs`.
///
/// `divided` counts the documents whose paragraphs were compared.
pub(crate) fn pairs_summary(
    summary: &PairsSummary,
    divided: Option<&ParagraphCounts>,
    measured: &MeasuredCost,
) {
    let bytes = show(summary.counts.input_bytes);
    let input = match divided {
        Some(divided) => format!(
            "{} in {}, {bytes}",
            counted(divided.paragraphs, "paragraph"),
            counted(divided.documents, "document")
        ),
        None => format!("{}, {bytes}", counted(summary.counts.documents, "record")),
    };
    line("input", &input);
    line("pairs", &grouped(summary.pairs));
    noteworthy(&summary.counts);
    if let Some(divided) = divided {
        let notes = [
            (divided.missing, "records without a text: left out"),
            (
                divided.too_long,
                "records longer than --max-document: left out",
            ),
            (
                divided.repeated_records,
                "records with the id and text of another: left out",
            ),
        ];
        for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
            line("note", &format!("{} {note}", grouped(count)));
        }
    }
    skipped(divided.map_or(&summary.skipped, |divided| &divided.skipped));
    cost(measured);
}

/// The note on texts that came in damaged.
const MOJIBAKE: &str =
    "with text that was decoded wrongly before (such as \u{c3}\u{a9} for \u{e9}): read as it is";

const HOMOGLYPHS: &str =
    "with words that mix look-alike letters of Latin, Greek and Cyrillic: compared as they are";

/// Prints the summary of `extract`.
pub(crate) fn extraction_summary(summary: &ExtractionSummary, measured: &MeasuredCost) {
    line(
        "input",
        &format!(
            "{}, {} ({} as read)",
            counted(summary.documents, "record"),
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
        (summary.homoglyphs, HOMOGLYPHS),
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

/// Prints the summary of `fingerprint`.
pub(crate) fn fingerprint_summary(summary: &FingerprintSummary, measured: &MeasuredCost) {
    line(
        "input",
        &format!(
            "{}, {} of text",
            counted(summary.documents, "record"),
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

/// Prints the summary of `fingerprint --import`.
pub(crate) fn import_summary(summary: &ImportSummary, measured: &MeasuredCost) {
    for input in &summary.inputs {
        let count = counted(input.fingerprints, "fingerprint");
        let none = counted(input.without_features, "text");
        line("input", &format!("{}: {count}, {none} without", input.name));
        skipped(&input.skipped);
    }
    line("written", &counted(summary.fingerprints, "fingerprint"));
    let scheme = summary.scheme_id.as_deref().unwrap_or("not known");
    line("scheme", scheme);
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
        let count = counted(side.fingerprints, "fingerprint");
        line(label, &format!("{count}, {scheme}"));
        if side.without_features > 0 {
            let count = grouped(side.without_features);
            line("note", &format!("{count} null: texts without features"));
        }
        skipped(&side.skipped);
    }
    let (pairs, distance) = (grouped(summary.pairs), summary.distance);
    let part = summary.shard.as_ref();
    let part = part.map_or_else(String::new, |shard| format!(", of shard {shard}"));
    line("pairs", &format!("{pairs} within {distance} bits{part}"));
    if summary.spilled_bytes > 0 {
        line(
            "sorted",
            &format!("{} on disk", show(summary.spilled_bytes)),
        );
    }
    cost(measured);
}

/// Prints the summary of `merge`.
pub(crate) fn merge_summary(summary: &MergeSummary, measured: &MeasuredCost) {
    for list in &summary.lists {
        line(
            "list",
            &format!("{}: {}", list.name, counted(list.pairs, "pair")),
        );
    }
    let repeated = match summary.repeated {
        0 => String::new(),
        count => format!(", {} stood in several lists", grouped(count)),
    };
    line("pairs", &format!("{}{repeated}", grouped(summary.pairs)));
    cost(measured);
}

/// Prints the summary of `cluster`.
pub(crate) fn cluster_summary(summary: &ClusterSummary, folder: &Path) {
    let (counts, decisions) = (&summary.counts, &summary.decisions);
    line("input", &counted(counts.documents, "document"));
    for (count, what) in [
        (
            counts.repeated,
            "fingerprints without ids equal an earlier one: one document with it",
        ),
        (
            counts.without_features,
            "null: texts without features, neither kept nor removed here",
        ),
    ] {
        if count > 0 {
            line("note", &format!("{} {what}", grouped(count)));
        }
    }
    summary
        .inputs
        .iter()
        .for_each(|input| skipped(&input.skipped));
    let pairs = grouped(counts.pairs);
    match summary.distance {
        Some(distance) => line("pairs", &format!("{pairs} within {distance} bits")),
        None => line("pairs", &pairs),
    }
    let same = grouped(decisions.removed_same_fingerprint);
    line(
        "same",
        &format!("{same} removed, each for a kept one of equal fingerprint"),
    );
    match summary.rule {
        FingerprintRule::Stars => line(
            "near",
            &format!(
                "{} removed, each for a kept one within the distance",
                grouped(decisions.removed_near)
            ),
        ),
        FingerprintRule::Components => line(
            "connected",
            &format!(
                "{} removed for a kept one that a chain of pairs leads to, and not compared with it",
                grouped(decisions.removed_connected)
            ),
        ),
    }
    line(
        "kept",
        &format!(
            "{} ({})",
            grouped(decisions.kept),
            share(decisions.kept, counts.documents)
        ),
    );
    match &summary.verification {
        None => line(
            "verified",
            "nothing: fingerprints decided, no text was compared",
        ),
        Some(texts) => {
            let (removed, counts) = (grouped(decisions.removed()), &texts.counts);
            let least = texts.threshold;
            line(
                "verified",
                &format!(
                    "{removed} removed, each text resembling that of the kept one by {least} or more"
                ),
            );
            line(
                "",
                &format!(
                    "{} kept after all: their texts do not",
                    grouped(counts.kept_after_all)
                ),
            );
            if counts.missing > 0 {
                let missing = counted(counts.missing, "document");
                line(
                    "note",
                    &format!("{missing} without a text there: not removed, and nothing for it"),
                );
            }
            skipped(&texts.skipped);
        }
    }
    cost(&summary.measured);
    line("results", &folder.display().to_string());
}

/// Prints the summary of `links`.
pub(crate) fn links_summary(summary: &lookalike_batch::LinksSummary, measured: &MeasuredCost) {
    line("input", &counted(summary.pages, "record"));
    let to_pages = grouped(summary.links_to_pages);
    line(
        "links",
        &format!("{}, {to_pages} of them to a record", grouped(summary.links)),
    );
    line(
        "fields",
        &format!(
            "{}, {}, {}; links to {}",
            counted(summary.anchors, "anchor"),
            counted(summary.in_links, "in-link"),
            counted(summary.out_links, "out-link"),
            counted(summary.linked_pages, "page"),
        ),
    );
    let notes = [
        (
            summary.without_address,
            "with neither a URL nor a path: no links",
        ),
        (summary.too_long, "longer than --max-document: left out"),
        (summary.cut, "links beyond --most: left out"),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
    skipped(&summary.skipped);
    cost(measured);
}

/// Prints the summary of `terms`.
pub(crate) fn terms_summary(summary: &TermsSummary, measured: &MeasuredCost) {
    line("input", &counted(summary.documents, "record"));
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

/// Prints the summary of `index build`.
pub(crate) fn index_summary(
    summary: &lookalike_batch::fingerprints::index::IndexBuildSummary,
    measured: &MeasuredCost,
) {
    line(
        "input",
        &format!(
            "{}, {} of them different",
            counted(summary.fingerprints, "fingerprint"),
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
            "{} ({}), {}, distance up to {}",
            counted(summary.tables as u64, "table"),
            summary.design,
            summary.layout,
            summary.distance
        ),
    );
    cost(measured);
}

/// Prints the summary of `overlap`.
pub(crate) fn overlap_summary(summary: &OverlapSummary, measured: &MeasuredCost) {
    let counts = &summary.counts;
    line(
        "input",
        &format!(
            "{}, {} as stored",
            counted(counts.documents, "document"),
            show(counts.input_bytes)
        ),
    );
    texts(counts, Some(summary.shared_texts));
    let notes = [
        (
            summary.pages_again,
            "of these are of the same URL as another: the same page, read again",
        ),
        (
            summary.same_page,
            "that overlap are of the same URL: no copies, not listed",
        ),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
    if summary.servers > 0 {
        let without = match summary.without_server {
            0 => String::new(),
            1 => "; 1 document has none".to_owned(),
            without => format!("; {} documents have none", grouped(without)),
        };
        line("servers", &format!("{}{without}", grouped(summary.servers)));
    }
    summary.chunkings.iter().for_each(chunking_summary);
    noteworthy(counts);
    skipped(&summary.skipped);
    cost(measured);
}

/// Prints the summary of `overlap -o`.
pub(crate) fn atlas_summary(summary: &AtlasSummary, folder: &Path) {
    let counts = &summary.overlap.counts;
    for level in &summary.levels {
        line(
            &level.level,
            &format!(
                "{} of {} saved ({}), {} of {} of text",
                grouped(level.visits_saved),
                counted(counts.documents, "document"),
                share(level.visits_saved, counts.documents),
                show(level.bytes_saved),
                show(counts.text_bytes)
            ),
        );
    }
    line(
        "skip",
        &format!(
            "{} of {} pages (documents of one URL are one) need no visit",
            grouped(summary.skip),
            grouped(summary.pages)
        ),
    );
    overlap_summary(&summary.overlap, &summary.measured);
    line(
        "mirrors",
        &format!(
            "{} of {} on several servers, {}{}",
            counted(summary.mirrored_sets, "page set"),
            counted(summary.mirrored_pages, "page"),
            match summary.aliases {
                1 => "1 alias".to_owned(),
                aliases => format!("{} aliases", grouped(aliases)),
            },
            match summary.apart_by_address {
                0 => String::new(),
                1 => "; 1 server is none by its address".to_owned(),
                apart => format!("; {} servers are none by their addresses", grouped(apart)),
            }
        ),
    );
    line(
        "results",
        &format!("{} (open atlas.html)", folder.display()),
    );
}

fn chunking_summary(chunking: &ChunkingSummary) {
    line(&chunking.chunking, &counted(chunking.rows, "row"));
    line(
        "",
        &format!(
            "{}, {} of them shared; counted by {} ({})",
            counted(chunking.distinct_chunks, "chunk"),
            grouped(chunking.shared_chunks),
            chunking.engine,
            chunking.why
        ),
    );
    if let Some(coarse) = &chunking.coarse {
        coarse_figures(coarse, chunking.passes);
    }
    if chunking.common_chunks > 0 {
        line(
            "",
            &format!(
                "{} of more than {} units each deferred and counted exactly afterwards",
                counted(chunking.common_chunks, "chunk"),
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

/// Prints what the pilot of coarse counting saw, and what came of its choice.
fn coarse_figures(coarse: &CoarseFigures, passes: u64) {
    line(
        "",
        &format!(
            "pilot: {} and {}; expected of all: {}, of which {} may share enough chunks",
            counted(coarse.pilot_units, "unit"),
            counted(coarse.pilot_pairs, "pair"),
            counted(coarse.expected_pairs, "pair"),
            grouped(coarse.expected_enough)
        ),
    );
    let counters = match coarse.hashes {
        0 => "no coarse counters: they would not pay".to_owned(),
        hashes => format!(
            "{} of each pair in {} of counters",
            match hashes {
                1 => "1 hash".to_owned(),
                hashes => format!("{hashes} hashes"),
            },
            show(coarse.counters)
        ),
    };
    line(
        "",
        &format!(
            "{counters}; {} counted exactly ({} expected) in {}{}",
            counted(coarse.candidates, "candidate"),
            grouped(coarse.expected_candidates),
            match passes {
                1 => "1 pass".to_owned(),
                passes => format!("{} passes", grouped(passes)),
            },
            match coarse.halved {
                0 => String::new(),
                halved => format!("; {} did not fit", counted(halved, "range")),
            }
        ),
    );
}

/// A JSON object as one line on standard error: beside results on standard output, or of a log.
pub(crate) fn json_beside(object: &impl serde::Serialize) {
    match serde_json::to_string(object) {
        // It escapes by itself, and means every character.
        Ok(text) => {
            let _ = writeln!(stderr(), "{text}");
        }
        Err(reason) => error(&reason.to_string()),
    }
}

/// A line on standard error as it is.
#[cfg(feature = "service")]
pub(crate) fn line_beside(line: &str) {
    say(line);
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

/// Tells what became of lines that recur on many pages, where they were looked for.
fn boilerplate(counts: Option<&BoilerplateCounts>) {
    let Some(counts) = counts else { return };
    line(
        "template",
        &format!(
            "{} learned; {} ({}) taken out of {}",
            counted(counts.learned, "line"),
            grouped(counts.lines),
            show(counts.bytes),
            counted(counts.documents, "record")
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

/// Pages of which more than the main content was compared.
fn pages(counts: Option<&PageCounts>) {
    let Some(counts) = counts else { return };
    let notes = [
        (
            counts.little_content,
            "pages with next to no main content: more of their text was compared",
        ),
        (
            counts.apart_from_headline,
            "pages whose main content stands apart from their headline: more of their text was compared",
        ),
        (
            counts.template,
            "pages whose main content is a template: what else is visible was compared",
        ),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
}

/// Counts that are usually zero.
pub(crate) fn noteworthy(counts: &InputCounts) {
    boilerplate(counts.boilerplate.as_ref());
    pages(counts.html.as_ref());
    let notes = [
        (
            counts.empty - counts.missing_text,
            "with an empty text: kept, equal to nothing",
        ),
        (
            counts.too_long,
            "longer than --max-document: compared for equal bytes only",
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
        (counts.homoglyphs, HOMOGLYPHS),
        (counts.ids_repeated, "with the id of another: numbered"),
    ];
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line("note", &format!("{} {note}", grouped(count)));
    }
    for note in counts.field_notes() {
        line("note", &note);
    }
}

/// Prints where the copies of unread files are.
fn skipped_files(written: &WrittenBytes, folder: &Path) {
    if written.skipped_files == 0 {
        return;
    }
    line(
        "",
        &format!(
            "{} ({}) of which nothing was read: in {}",
            counted(written.skipped_files, "file"),
            show(written.skipped),
            folder.join("skipped").display()
        ),
    );
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

pub(crate) fn cost(measured: &MeasuredCost) {
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

    /// The longest that the library prints for each part of a line.
    #[test]
    fn no_line_of_progress_is_wider_than_the_terminal() {
        let parts = [
            ("{spinner}", 1),
            ("{elapsed}", 8),
            ("{binary_bytes}", 12),
            ("{binary_total_bytes}", 12),
            ("{binary_bytes_per_sec}", 14),
            ("{human_pos}", 13),
            ("{human_len}", 13),
            ("{rate}", 14),
            ("{eta}", 4),
            ("{percent}", 3),
        ];
        for columns in [20, 40, 53, 54, 60, 79, 80, 81, 100, 200] {
            for (stage, total) in [
                (JobStage::Scan, 9),
                (JobStage::Compare, 9),
                (JobStage::Truth, 0),
            ] {
                let mut line = template(stage, total, columns);
                for (part, width) in parts {
                    line = line.replace(part, &"x".repeat(width));
                }
                if let Some((before, rest)) = line.split_once("{bar:") {
                    let (width, rest) = rest.split_once('}').unwrap();
                    line = format!("{before}{}{rest}", "#".repeat(width.parse().unwrap()));
                }
                assert!(!line.contains('{'), "{line}");
                assert!(line.len() < usize::from(columns), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn names_cannot_act_on_the_terminal() {
        assert_eq!(
            harmless("a\u{1b}[2Jb\u{9b}\u{202e}c\r.txt\n"),
            "a\\u{1b}[2Jb\\u{9b}\\u{202e}c\\u{d}.txt\n"
        );
        assert!(matches!(harmless("gr\u{fc}n\t1"), Cow::Borrowed(_)));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        let counted = |number| counted(number, "table");
        assert_eq!(
            [0, 1, 2, 1000].map(counted),
            ["0 tables", "1 table", "2 tables", "1,000 tables"]
        );
    }
}

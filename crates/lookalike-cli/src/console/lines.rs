//! Lines shared by several summaries.

use lookalike_batch::{BoilerplateCounts, InputCounts, MeasuredCost, PageCounts, SkippedRow};

use crate::remedy;
use crate::size::show;

/// Prints a line of a summary: its name, and a text with the syntax of `format!`.
macro_rules! line {
    ($name:expr, $($text:tt)+) => {
        $crate::console::print_line(&format!("{:>12}  {}", $name, format_args!($($text)+)))
    };
}

pub(super) use line;

/// Note on values that were replaced.
pub(super) const REPLACED: &str = "with invalid characters or values: read in another character set, as U+FFFD, or as null; JSON lines are copied as they are";
pub(super) const NO_TEXT: &str = "without a text field";
/// Note on texts that were already damaged.
pub(super) const MOJIBAKE: &str =
    "with text that was already decoded wrongly (such as \u{c3}\u{a9} for \u{e9}): read as it is";
pub(super) const HOMOGLYPHS: &str =
    "with words that mix look-alike letters of Latin, Greek and Cyrillic: compared as they are";

/// Formats a number with separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// Formats a number of things, given the name of one: `1 table`, `2 tables`.
pub(crate) fn counted(number: u64, name: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {name}{ending}", grouped(number))
}

/// Formats the bytes per fingerprint, as the end of a list; empty if there are no fingerprints.
pub(crate) fn bytes_each(bytes: f64, fingerprints: u64) -> String {
    match fingerprints {
        0 => String::new(),
        _ => format!(", {bytes:.2} bytes a fingerprint"),
    }
}

/// Formats the share of a part in a whole: `18.7%`. A share of nothing is 0.
pub(super) fn share(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

pub(crate) fn cost(measured: &MeasuredCost) {
    // A command that only joins files has no stages.
    if !measured.stages.is_empty() {
        let wall: f64 = measured.stages.iter().map(|stage| stage.1).sum();
        let cpu: f64 = measured.stages.iter().map(|stage| stage.2).sum();
        line!("time", "{wall:.2} s ({cpu:.2} s of CPU)");
    }
    if measured.peak_memory > 0 {
        line!("memory", "{} at peak", show(measured.peak_memory));
    }
}

/// Prints the size of the tables on disk, if any.
pub(super) fn on_disk(tables: u64) {
    if tables > 0 {
        line!(
            "",
            "{} of tables on disk: more --memory would be faster",
            show(tables)
        );
    }
}

/// Prints the number of texts, and of records that repeat one. The counts are the same for every job over the same input.
pub(super) fn texts(counts: &InputCounts, shared: Option<u64>) {
    let shared = match shared {
        Some(shared) if shared > 0 => format!(", in {} of equal text", counted(shared, "set")),
        _ => String::new(),
    };
    // All other lines leave earlier documents out; which texts only they have was not counted.
    let earlier = match counts.against {
        0 => "",
        _ => ", with those of --against",
    };
    line!(
        "texts",
        "{} different, {} one of them{shared}{earlier}",
        grouped(counts.distinct_texts),
        repeating(counts.repeated_texts)
    );
    if counts.stop_features > 0 {
        line!(
            "",
            "{} proposed no candidates: in more texts than --stop-features allows",
            counted(counts.stop_features, "common feature")
        );
    }
}

/// Formats the number of records that repeat others, with the verb.
fn repeating(records: u64) -> String {
    match records {
        1 => "1 record repeats".to_owned(),
        records => format!("{} records repeat", grouped(records)),
    }
}

/// Prints the number and size of the records or documents that were read.
pub(super) fn input(count: u64, name: &str, bytes: u64) {
    line!(
        "input",
        "{}, {} as stored",
        counted(count, name),
        show(bytes)
    );
}

/// Prints those counts that are not zero; usually all are zero.
pub(super) fn notes<const N: usize>(notes: [(u64, &str); N]) {
    for (count, note) in notes.into_iter().filter(|(count, _)| *count > 0) {
        line!("note", "{} {note}", grouped(count));
    }
}

pub(crate) fn skipped(rows: &[SkippedRow]) {
    for row in rows {
        // These were read, but not as they should be.
        let label = match &*row.kind {
            "raw-body" | "cut-body" | "shared-member" | "swallowed-rows" | "repeated-column" => {
                "note"
            }
            _ => "skipped",
        };
        line!(
            label,
            "{} {}, the first: {}",
            grouped(row.count),
            row.kind,
            row.first
        );
        if let Some(remedy) = remedy::of_skipped(&row.kind, &row.first) {
            line!("", "{remedy}");
        }
    }
}

/// Prints the counts that are usually zero.
pub(crate) fn print_notable_counts(counts: &InputCounts) {
    let empty = "with an empty text: never a duplicate";
    let too_long = "longer than --max-document: compared for equal bytes only";
    print_notable_counts_with(counts, empty, too_long);
}

/// Works like `print_notable_counts`, with other notes on texts that are empty or too long.
pub(crate) fn print_notable_counts_with(counts: &InputCounts, empty: &str, too_long: &str) {
    boilerplate(counts.boilerplate.as_ref());
    pages(counts.html.as_ref());
    notes([
        // A missing text is empty, too, but has its own note.
        (counts.empty - counts.missing_text, empty),
        (counts.too_long, too_long),
        (
            counts.without_features,
            "without a word: compared as exact copies only",
        ),
        (counts.characters_replaced, REPLACED),
        (counts.mojibake, MOJIBAKE),
        (counts.homoglyphs, HOMOGLYPHS),
        (counts.ids_repeated, "with the id of another: numbered"),
    ]);
    for note in counts.field_notes() {
        line!("note", "{note}");
    }
}

/// Prints the removal of recurring lines, if it was requested.
pub(super) fn boilerplate(counts: Option<&BoilerplateCounts>) {
    let Some(counts) = counts else { return };
    line!(
        "boilerplate",
        "{} learned; {} ({}) removed from {}",
        counted(counts.learned, "line"),
        grouped(counts.lines),
        show(counts.bytes),
        counted(counts.documents, "record")
    );
    notes([
        (
            counts.kept_whole,
            "that are almost all boilerplate: kept whole",
        ),
        (
            counts.without_site,
            "of no site, as they have no URL: all lines kept",
        ),
    ]);
}

/// Prints the number of pages of which more than the main content was compared.
fn pages(counts: Option<&PageCounts>) {
    let Some(counts) = counts else { return };
    notes([
        (
            counts.little_content,
            "pages with almost no main content: more of their text was compared",
        ),
        (
            counts.apart_from_headline,
            "pages whose main content stands apart from their headline: more of their text was compared",
        ),
        (
            counts.template,
            "pages whose main content is a template: the rest of the visible text was compared",
        ),
        (
            counts.nearly_empty,
            "pages with less than 100 bytes of text, as if scripts drew the rest: equal ones are exact copies, whatever their titles",
        ),
    ]);
}

//! Renders one cluster of the report: its row in the table and the differences of its example pair.

use std::fmt::Write;

use minijinja::{Value, context};
use serde::Serialize;

use super::diff::{DiffLine, DiffPiece, DiffRow, fold, side_by_side};
use super::figure::count;
use super::{BelowThresholdRow, ClusterRow, ReportExample, serialized, visible};

/// Number of equal rows shown before and after a change.
const CONTEXT: usize = 2;
/// Number of rows shown if the two texts have the same words.
const PREVIEW: usize = 6;
/// Maximum number of rows shown of one example.
const MAX_ROWS: usize = 400;
/// Tag for words that only the kept text has; they stay in the collection.
const KEPT: &str = "ins";
/// Tag for words that only the removed text has; they are lost with it.
const REMOVED: &str = "del";

/// An example pair. Its texts are in the rows.
#[derive(Debug, Serialize)]
pub(super) struct ExampleView<'r> {
    a_id: &'r str,
    b_id: &'r str,
    similarity: f64,
    /// Notes about the rows.
    notes: Vec<String>,
    /// The rows as HTML.
    rows: Value,
}

/// Returns a cluster in the form that the template needs.
pub(super) fn cluster_view(row: &ClusterRow) -> Value {
    // The survivor is a member, but neither a sample nor a copy of itself.
    let removed = row.members.saturating_sub(1);
    context! {
        row => serialized(row),
        more => removed.saturating_sub(row.sample_ids.len() as u64),
        all_exact => row.exact >= removed,
        example => example(row.example.as_ref(), [KEPT, REMOVED]),
    }
}

/// Returns a pair just below the threshold in the form that the template needs.
pub(super) fn below_threshold_view(row: &BelowThresholdRow) -> Value {
    // Both texts stay in the collection, so no word of either is marked as lost.
    context! { row => serialized(row), example => example(row.example.as_ref(), [KEPT, KEPT]) }
}

fn example(example: Option<&ReportExample>, tags: [&'static str; 2]) -> Value {
    serialized(example.map(|example| ExampleView::new(example, tags)))
}

impl<'r> ExampleView<'r> {
    /// Renders the texts side by side. Changed words of each side are marked with its tag.
    pub(super) fn new(example: &'r ReportExample, tags: [&'static str; 2]) -> Self {
        let rows = side_by_side(&example.a_text, &example.b_text);
        let mut pieces = fold(&rows, CONTEXT);
        let mut notes = Vec::new();
        if example.whole_pages {
            notes.push(
                "The main texts are equal; all visible text of the pages is shown.".to_owned(),
            );
        }
        if example.cut {
            notes.push("Only the beginning of the texts is shown, so the last rows may seem to differ; the similarity is that of the whole texts.".to_owned());
        }
        if rows.iter().all(DiffRow::is_same) {
            notes.push(sameness(example).to_owned());
            // Folded, equal rows would show nothing of the text.
            pieces = preview(&rows);
        }
        if pieces.len() > MAX_ROWS {
            let hidden = count((pieces.len() - MAX_ROWS) as u64);
            notes.push(format!("{hidden} more rows are not shown."));
            pieces.truncate(MAX_ROWS);
        }
        ExampleView {
            a_id: &example.a_id,
            b_id: &example.b_id,
            similarity: example.similarity,
            notes,
            rows: html(&pieces, tags),
        }
    }
}

/// Describes how two texts without a changed word are the same.
fn sameness(example: &ReportExample) -> &'static str {
    match (example.a_text == example.b_text, example.cut) {
        (true, false) => "The two texts are equal.",
        (true, true) => "The two texts are equal as far as they are shown.",
        (false, _) => "The two texts differ only in white space.",
    }
}

/// Returns the first rows of two texts that do not differ.
fn preview(rows: &[DiffRow]) -> Vec<DiffPiece<'_>> {
    let full = rows.iter().filter(|row| !row.is_blank());
    let mut pieces: Vec<_> = full.map(DiffPiece::Row).collect();
    // A line about a single hidden row would take as much room as the row.
    if pieces.len() > PREVIEW + 1 {
        let hidden = pieces.len() - PREVIEW;
        pieces.truncate(PREVIEW);
        pieces.push(DiffPiece::Folded(hidden));
    }
    pieces
}

/// Renders table rows of four columns: number and text of each side.
fn html(pieces: &[DiffPiece<'_>], tags: [&str; 2]) -> Value {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            DiffPiece::Folded(rows) => {
                let rows = count(*rows as u64);
                // Writing to a string never fails.
                let _ = write!(
                    out,
                    "<tr class=\"fold\"><td colspan=\"4\">{rows} equal lines</td></tr>"
                );
            }
            DiffPiece::Row(row) => push_row(&mut out, row, tags),
        }
    }
    Value::from_safe_string(out)
}

fn push_row(out: &mut String, row: &DiffRow, [left, right]: [&str; 2]) {
    out.push_str(if row.is_same() {
        "<tr class=\"same\">"
    } else {
        "<tr>"
    });
    push_side(out, row.left.as_ref(), "left", left);
    push_side(out, row.right.as_ref(), "right", right);
    out.push_str("</tr>");
}

/// Appends the two cells of one side. Marked words get `tag`, which screen readers announce.
fn push_side(out: &mut String, line: Option<&DiffLine>, class: &str, tag: &str) {
    let Some(line) = line else {
        let _ = write!(
            out,
            "<td class=\"no {class} none\"></td><td class=\"{class} none\"></td>"
        );
        return;
    };
    let changed = match line.is_changed() {
        true => format!(" hit {tag}"),
        false => String::new(),
    };
    let _ = write!(out, "<td class=\"no {class}{changed}\">");
    if !line.continued {
        let _ = write!(out, "{}", line.number);
    }
    let _ = write!(out, "</td><td class=\"{class}{changed}\" dir=\"auto\">");
    for span in &line.spans {
        if span.changed {
            let _ = write!(out, "<{tag}>");
            visible::push_html(out, &span.text);
            let _ = write!(out, "</{tag}>");
        } else {
            visible::push_html(out, &span.text);
        }
    }
    out.push_str("</td>");
}

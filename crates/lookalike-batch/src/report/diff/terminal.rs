//! Formats differences for a terminal.

use super::{DiffLine, DiffPiece, DiffRow, fold, side_by_side};
use crate::report::visible;

/// Number of equal lines shown before and after a change.
const CONTEXT: usize = 2;

/// Style of a side: its sign, the text before and after marked words, and the text at the end of a line.
type SideStyle = [&'static str; 4];

// The marks of `git diff --word-diff`.
const PLAIN: [SideStyle; 2] = [["- ", "[-", "-]", ""], ["+ ", "{+", "+}", ""]];
/// Red and green lines, marked words inverted (ECMA-48 codes 31, 32, 7, 27, 0).
const COLORED: [SideStyle; 2] = [
    ["\x1b[31m- ", "\x1b[7m", "\x1b[27m", "\x1b[0m"],
    ["\x1b[32m+ ", "\x1b[7m", "\x1b[27m", "\x1b[0m"],
];

/// Formats the differences of two texts, one row a line: `-` for `a`, `+` for `b`, with marked words in `[-...-]` and `{+...+}`, or in colour.
///
/// Blank lines are left out. Equal lines far from a change are folded into one line with their number. Control characters of the texts are written as
/// `[U+001B]`, so none reaches the terminal. Every line ends in a line feed. Time and memory are those of [`side_by_side`].
#[must_use]
pub fn unified_terminal(a: &str, b: &str, color: bool) -> String {
    let rows = side_by_side(a, b);
    let [removed, added] = if color { &COLORED } else { &PLAIN };
    let mut out = String::new();
    for piece in fold(&rows, CONTEXT) {
        match piece {
            DiffPiece::Folded(count) => {
                out.push_str(&format!("  ... {count} equal lines ...\n"));
            }
            DiffPiece::Row(row) => push_row(&mut out, row, removed, added),
        }
    }
    out
}

fn push_row(out: &mut String, row: &DiffRow, removed: &SideStyle, added: &SideStyle) {
    match (&row.left, &row.right) {
        (Some(left), Some(_)) if row.is_same() => {
            out.push_str("  ");
            left.spans
                .iter()
                .for_each(|span| out.push_str(&visible::plain(&span.text)));
            out.push('\n');
        }
        (left, right) => {
            left.iter().for_each(|line| push_line(out, line, removed));
            right.iter().for_each(|line| push_line(out, line, added));
        }
    }
}

fn push_line(out: &mut String, line: &DiffLine, &[sign, open, close, end]: &SideStyle) {
    out.push_str(sign);
    for span in &line.spans {
        let text = visible::plain(&span.text);
        if span.changed {
            out.extend([open, &text, close]);
        } else {
            out.push_str(&text);
        }
    }
    out.push_str(end);
    out.push('\n');
}

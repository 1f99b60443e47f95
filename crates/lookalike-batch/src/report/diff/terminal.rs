//! Formats differences for a terminal.

use super::{DiffLine, DiffPiece, DiffRow, fold, side_by_side};
use crate::report::visible;

/// Number of equal lines shown before and after a change.
const CONTEXT: usize = 2;

/// Style of a side: its sign, and the text before and after marked words.
struct SideStyle {
    sign: &'static str,
    open: &'static str,
    close: &'static str,
    end: &'static str,
}

// The marks of `git diff --word-diff`.
const PLAIN: [SideStyle; 2] = [
    SideStyle {
        sign: "- ",
        open: "[-",
        close: "-]",
        end: "",
    },
    SideStyle {
        sign: "+ ",
        open: "{+",
        close: "+}",
        end: "",
    },
];
/// Red and green lines, marked words inverted (ECMA-48 codes 31, 32, 7, 27, 0).
const COLORED: [SideStyle; 2] = [
    SideStyle {
        sign: "\x1b[31m- ",
        open: "\x1b[7m",
        close: "\x1b[27m",
        end: "\x1b[0m",
    },
    SideStyle {
        sign: "\x1b[32m+ ",
        open: "\x1b[7m",
        close: "\x1b[27m",
        end: "\x1b[0m",
    },
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

fn push_line(out: &mut String, line: &DiffLine, style: &SideStyle) {
    out.push_str(style.sign);
    for span in &line.spans {
        let text = visible::plain(&span.text);
        if span.changed {
            out.extend([style.open, &text, style.close]);
        } else {
            out.push_str(&text);
        }
    }
    out.push_str(style.end);
    out.push('\n');
}

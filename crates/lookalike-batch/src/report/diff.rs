//! Compares two texts side by side: aligns lines and marks changed words, in bounded time.
//!
//! The texts are split into units: lines, or the sentences of a long line. Equal units are aligned first, then the words of what is left between
//! them. White space is ignored, so a text that was only wrapped differently shows no change.
//!
//! The work is bounded by the sizes, not by a clock; see [`side_by_side`].

mod align;
mod rows;
mod terminal;
#[cfg(test)]
mod tests;
mod text;

pub use rows::side_by_side;
pub use terminal::unified_terminal;

/// Returns a text as one line that is safe for a terminal: control and direction characters, line ends included, are written as `[U+001B]`.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for part in text.split_inclusive('\n') {
        line.push_str(&super::visible::plain(part.trim_end_matches('\n')));
        if part.ends_with('\n') {
            line.push_str("[U+000A]");
        }
    }
    line
}

/// A stretch of a line that is marked or unmarked as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffSpan {
    /// The characters, as they are in the text.
    pub text: String,
    /// True if the other text does not have these words at this place.
    pub changed: bool,
}

/// One line of one of the texts, or a part of a long line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Number of the line in its text, from 1.
    pub number: usize,
    /// True if this continues the line of the previous entry.
    pub continued: bool,
    /// The stretches of the line, in order; neighbours differ in `changed`. Line ends are not included.
    pub spans: Vec<DiffSpan>,
}

impl DiffLine {
    /// Tells whether any word of the line is marked.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.spans.iter().any(|span| span.changed)
    }
}

/// One row of the side-by-side view. At least one side is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffRow {
    /// The line of the first text.
    pub left: Option<DiffLine>,
    /// The line of the second text.
    pub right: Option<DiffLine>,
}

impl DiffRow {
    /// Tells whether both sides are present and no word of either is marked.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let same = |side: &Option<DiffLine>| side.as_ref().is_some_and(|line| !line.is_changed());
        same(&self.left) && same(&self.right)
    }

    /// Tells whether both sides hold only white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let lines = [&self.left, &self.right].into_iter().flatten();
        let mut spans = lines.flat_map(|line| &line.spans);
        spans.all(|span| span.text.trim().is_empty())
    }
}

/// Rows as shown: equal rows far from any change are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiffPiece<'r> {
    Row(&'r DiffRow),
    /// A number of folded rows without a change.
    Folded(usize),
}

/// Folds runs of equal rows, except for `context` rows next to a change. Blank rows are left out.
pub(super) fn fold(rows: &[DiffRow], context: usize) -> Vec<DiffPiece<'_>> {
    let rows: Vec<&DiffRow> = rows.iter().filter(|row| !row.is_blank()).collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let run = rows[at..].iter().take_while(|row| row.is_same()).count();
        // The start and the end of the texts are not changes, so no rows are kept next to them.
        let before = if at == 0 { 0 } else { context };
        let after = if at + run == rows.len() { 0 } else { context };
        push_run(&mut pieces, &rows[at..at + run], before, after);
        at += run;
        let changed = rows[at..].iter().take_while(|row| !row.is_same());
        let changed = changed.map(|row| DiffPiece::Row(row));
        let from = pieces.len();
        pieces.extend(changed);
        at += pieces.len() - from;
    }
    pieces
}

/// Appends a run of equal rows and folds its middle, unless that would hide only one row.
fn push_run<'r>(pieces: &mut Vec<DiffPiece<'r>>, run: &[&'r DiffRow], before: usize, after: usize) {
    let row = |row: &&'r DiffRow| DiffPiece::Row(row);
    if run.len() <= before + after + 1 {
        return pieces.extend(run.iter().map(row));
    }
    pieces.extend(run[..before].iter().map(row));
    pieces.push(DiffPiece::Folded(run.len() - before - after));
    pieces.extend(run[run.len() - after..].iter().map(row));
}

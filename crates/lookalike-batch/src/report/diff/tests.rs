//! Differences: their properties, the worst case, and the output for a terminal.

use proptest::prelude::*;

use super::*;

const OLD: &str = "The lamp stands at the window.\nIts light was seen by all who came late.\n\nNobody knew who lit it.";
const NEW: &str = "The lamp stands at the window.\nIts light was seen by few who came late.\n\nNobody knew who lit it.\nIt burns yet.";

/// Joins the lines of one side of all rows into its text.
fn rejoined(rows: &[DiffRow], side: impl Fn(&DiffRow) -> Option<&DiffLine>) -> String {
    let mut text = String::new();
    for (index, line) in rows.iter().filter_map(side).enumerate() {
        if index > 0 && !line.continued {
            text.push('\n');
        }
        line.spans.iter().for_each(|span| text.push_str(&span.text));
    }
    text
}

/// Returns the unmarked words of one side.
fn unmarked(rows: &[DiffRow], side: impl Fn(&DiffRow) -> Option<&DiffLine>) -> String {
    let spans = rows.iter().filter_map(side).flat_map(|line| &line.spans);
    spans
        .filter(|span| !span.changed)
        .flat_map(|span| span.text.split_whitespace())
        .collect()
}

fn assert_laws(a: &str, b: &str) {
    let rows = side_by_side(a, b);
    let plain = |text: &str| text.replace("\r\n", "\n");
    let strip = |text: String| text.trim_end_matches('\r').to_owned();
    assert_eq!(rejoined(&rows, |row| row.left.as_ref()), strip(plain(a)));
    assert_eq!(rejoined(&rows, |row| row.right.as_ref()), strip(plain(b)));
    assert_eq!(
        unmarked(&rows, |row| row.left.as_ref()),
        unmarked(&rows, |row| row.right.as_ref())
    );
    assert!(
        rows.iter()
            .all(|row| row.left.is_some() || row.right.is_some())
    );
}

proptest! {
    #[test]
    fn rows_hold_both_texts_and_common_words_agree(
        a in "([a-c]{1,3}[ .\n]{1,2}|\u{6c34}\u{3002}|x\r\n){0,60}",
        b in "([a-c]{1,3}[ .\n]{1,2}|\u{6c34}\u{3002}|x\r\n){0,60}",
    ) {
        assert_laws(&a, &b);
    }

    #[test]
    fn any_text_equals_itself(a in "\\PC{0,300}") {
        prop_assert!(side_by_side(&a, &a).iter().all(DiffRow::is_same));
    }
}

#[test]
fn long_line_is_cut_into_sentences_and_only_the_changed_one_is_marked() {
    let sentence =
        |n: usize| format!("Sentence number {n} speaks of the river and of the mill beside it. ");
    let old: String = (0..40).map(sentence).collect();
    let new = old.replace(
        "number 17 speaks of the river",
        "number 17 speaks of the brook",
    );
    let rows = side_by_side(&old, &new);
    assert_laws(&old, &new);
    let changed: Vec<_> = rows.iter().filter(|row| !row.is_same()).collect();
    assert_eq!(changed.len(), 1);
    let marked = |line: &DiffLine| -> Vec<String> {
        line.spans
            .iter()
            .filter(|span| span.changed)
            .map(|span| span.text.clone())
            .collect()
    };
    assert_eq!(marked(changed[0].left.as_ref().expect("left")), ["river"]);
    assert_eq!(marked(changed[0].right.as_ref().expect("right")), ["brook"]);
}

#[test]
fn chinese_is_compared_by_characters() {
    let rows = side_by_side(
        "\u{6cb3}\u{6c34}\u{5f88}\u{51b7}",
        "\u{6cb3}\u{6c34}\u{5f88}\u{6696}",
    );
    let left = rows[0].left.as_ref().expect("left");
    assert_eq!(left.spans[0].text.chars().count(), 3);
    assert!(!left.spans[0].changed && left.spans[1].changed);
}

#[test]
fn texts_wrapped_differently_show_no_change() {
    let text = "one two three four five six seven eight nine ten ".repeat(30);
    let wrapped = text.replace("six ", "six\n");
    let rows = side_by_side(&text, &wrapped);
    assert!(
        rows.iter()
            .flat_map(|row| [&row.left, &row.right])
            .flatten()
            .all(|line| !line.is_changed())
    );
}

#[test]
fn large_texts_are_compared_by_units() {
    let old: String = (0..25_000)
        .map(|n| format!("line {n} of a long text\n"))
        .collect();
    let new = old.replace("line 11007 of", "line 11007 in");
    let rows = side_by_side(&old, &new);
    assert_eq!(rows.iter().filter(|row| !row.is_same()).count(), 1);
    assert_laws(&old, &new);
}

#[test]
fn crafted_texts_end_in_bounded_work() {
    // Two words in ever-changing order, without anchors: the worst case for shortest edit scripts.
    let word = |bit: bool| if bit { "on " } else { "off " };
    let old: String = (0..40_000_u32)
        .map(|n| word(n.wrapping_mul(2_654_435_761) >> 31 == 0))
        .collect();
    let new: String = (0..40_000_u32)
        .map(|n| word(n.wrapping_mul(2_246_822_519) >> 31 == 0))
        .collect();
    assert_laws(&old, &new);
}

#[test]
fn terminal_difference_is_plain_text() {
    assert_eq!(
        unified_terminal(OLD, NEW, false),
        "  The lamp stands at the window.\n\
         - Its light was seen by [-all-] who came late.\n\
         + Its light was seen by {+few+} who came late.\n  Nobody knew who lit it.\n\
         + {+It burns yet.+}\n"
    );
}

#[test]
fn terminal_difference_lets_no_escape_through() {
    let shown = unified_terminal("a \u{1b}[31m b\u{202e}", "a c", false);
    assert!(!shown.contains(['\u{1b}', '\u{202e}']) && shown.contains("[U+001B]"));
    assert!(unified_terminal("a b", "a c", true).contains("\u{1b}[7mb\u{1b}[27m"));
}

#[test]
fn terminal_difference_folds_equal_lines() {
    let old: String = (0..50).map(|n| format!("line {n}\n")).collect();
    let new = old.replace("line 20\n", "line twenty\n");
    let shown = unified_terminal(&old, &new, false);
    assert!(shown.contains("  ... 18 equal lines ...\n") && shown.lines().count() == 8);
}

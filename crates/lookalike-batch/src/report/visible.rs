//! Makes characters visible that cannot be seen or that change how others are displayed.
//!
//! Ids and texts come from hostile documents. A NUL, an escape sequence or a direction override must neither affect the page or the terminal nor hide
//! its presence.

use std::fmt::Write;

/// Tells whether the character is shown as its code point instead of itself.
///
/// The zero-width joiner and non-joiner are not hidden, because Indic and Persian orthography need them.
fn is_hidden(c: char) -> bool {
    // Controls except tab and line feed, soft hyphen, direction marks and overrides, zero-width space, line separators, invisible operators,
    // byte order mark, interlinear annotations, and tags, which can hide whole sentences.
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}'
        | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A stretch of a text: characters to show unchanged, or one hidden character with its number of repetitions.
enum TextStretch<'t> {
    Shown(&'t str),
    Hidden(char, usize),
}

/// Calls `visit` for each stretch of `text` in order.
fn stretches<'t>(text: &'t str, mut visit: impl FnMut(TextStretch<'t>)) {
    let mut rest = text;
    while let Some(at) = rest.find(is_hidden) {
        if at > 0 {
            visit(TextStretch::Shown(&rest[..at]));
        }
        rest = &rest[at..];
        let hidden = rest.chars().next().expect("find returned a character");
        let after = rest.trim_start_matches(hidden);
        // Repetitions are counted: a megabyte of zero bytes becomes one label.
        let times = (rest.len() - after.len()) / hidden.len_utf8();
        visit(TextStretch::Hidden(hidden, times));
        rest = after;
    }
    if !rest.is_empty() {
        visit(TextStretch::Shown(rest));
    }
}

/// Returns the name of a hidden character: `U+0000`, with a count if it is repeated.
fn name(hidden: char, times: usize) -> String {
    let mut name = format!("U+{:04X}", u32::from(hidden));
    if times > 1 {
        // Writing to a string never fails.
        let _ = write!(name, " \u{d7}{times}");
    }
    name
}

/// Appends `text` as HTML content: markup escaped, hidden characters as small labels.
pub(super) fn push_html(out: &mut String, text: &str) {
    stretches(text, |stretch| match stretch {
        TextStretch::Shown(shown) => push_escaped(out, shown),
        TextStretch::Hidden(hidden, times) => {
            let _ = write!(out, "<span class=\"hid\">{}</span>", name(hidden, times));
        }
    });
}

/// Appends a value, such as an id, as HTML content. A value of white space only is shown by its code points, because its cell would look empty.
pub(super) fn push_value(out: &mut String, text: &str) {
    if !text.trim().is_empty() {
        return push_html(out, text);
    }
    for c in text.chars() {
        let _ = write!(out, "<span class=\"hid\">{}</span>", name(c, 1));
    }
}

/// Appends `text` with the special characters of HTML escaped.
fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
}

/// Returns `text` with hidden characters written as `[U+202E]`, for terminals and places without markup.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    stretches(text, |stretch| match stretch {
        TextStretch::Shown(shown) => out.push_str(shown),
        TextStretch::Hidden(hidden, times) => {
            let _ = write!(out, "[{}]", name(hidden, times));
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reverses the formatting: labels become characters again, and escapes are undone.
    fn unformatted(html: &str) -> String {
        let mut text = String::new();
        let mut rest = html;
        while let Some(at) = rest.find("<span class=\"hid\">U+") {
            text.push_str(&rest[..at]);
            let (label, after) = rest[at + "<span class=\"hid\">U+".len()..]
                .split_once("</span>")
                .unwrap();
            let (code, times) = label.split_once(" \u{d7}").unwrap_or((label, "1"));
            let hidden = char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap();
            text.extend(std::iter::repeat_n(hidden, times.parse().unwrap()));
            rest = after;
        }
        text.push_str(rest);
        let escapes = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&amp;", "&"),
        ];
        escapes.iter().fold(text, |text, (escape, character)| {
            text.replace(escape, character)
        })
    }

    proptest! {
        #[test]
        fn html_shows_every_character_and_lets_none_act(
            text in "([<>&\"' a]|\\PC|[\\x00-\\x1f\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}]{1,3}){0,20}",
        ) {
            for push in [push_html, push_value] {
                let mut html = String::new();
                push(&mut html, &text);
                prop_assert!(!html.contains(is_hidden), "{html:?}");
                let markup = html.replace("<span class=\"hid\">", "").replace("</span>", "");
                prop_assert!(!markup.contains(['<', '>', '"', '\'']), "{html:?}");
                prop_assert_eq!(unformatted(&html), text.as_str());
            }
            prop_assert!(!plain(&text).contains(is_hidden));
        }
    }

    #[test]
    fn a_value_of_blanks_alone_is_not_empty_on_the_page() {
        let mut html = String::new();
        push_value(&mut html, " \u{3000}");
        assert_eq!(
            html,
            "<span class=\"hid\">U+0020</span><span class=\"hid\">U+3000</span>"
        );
    }
}

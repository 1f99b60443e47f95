//! Extracts the visible text of HTML pages: a simple stripper for trusted manuals, not for hostile pages.
//!
//! Comments, scripts and styles are removed, block elements start new lines, other tags are dropped, entities are
//! resolved, and white space is collapsed. The race does not measure this; it is used to make the long documents.

use memchr::{memchr, memmem};

/// Returns the text of a page, one line per block, or an empty string if it has none.
#[must_use]
pub fn visible_text(page: &str) -> String {
    let text = without_tags(page);
    let mut lines = String::with_capacity(text.len());
    for line in html_escape::decode_html_entities(&text).split('\n') {
        let before = lines.len();
        for word in line.split_whitespace() {
            lines.push_str(if lines.len() > before { " " } else { "" });
            lines.push_str(word);
        }
        if lines.len() > before {
            lines.push('\n');
        }
    }
    lines.pop();
    lines
}

/// Replaces each tag of a block element by a line break, and removes other markup.
fn without_tags(page: &str) -> String {
    let mut text = String::with_capacity(page.len() / 3);
    let mut rest = page;
    while let Some(at) = memchr(b'<', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let closing = rest.starts_with('/');
        let name = element_name(&rest[usize::from(closing)..]);
        if is_block(&name) {
            text.push('\n');
        }
        rest = if rest.starts_with("!--") {
            after(rest, "-->")
        } else if !closing && matches!(name.as_str(), "script" | "style" | "template") {
            after_element(rest, &name)
        } else {
            after(rest, ">")
        };
    }
    text.push_str(rest);
    text
}

/// Returns whether an element is on lines of its own.
#[rustfmt::skip]
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address" | "article" | "aside" | "blockquote" | "body" | "br" | "caption" | "dd" | "details"
            | "div" | "dl" | "dt" | "fieldset" | "figcaption" | "figure" | "footer" | "form" | "h1"
            | "h2" | "h3" | "h4" | "h5" | "h6" | "head" | "header" | "hr" | "html" | "li" | "main"
            | "nav" | "ol" | "option" | "p" | "pre" | "section" | "summary" | "table" | "tbody"
            | "td" | "tfoot" | "th" | "thead" | "title" | "tr" | "ul"
    )
}

/// Returns the lower-cased element name at the start of the text, cut off after twelve characters.
fn element_name(text: &str) -> String {
    let letters = text.bytes().take_while(u8::is_ascii_alphanumeric).take(12);
    letters
        .map(|byte| byte.to_ascii_lowercase() as char)
        .collect()
}

/// Returns the text after the first `mark`, or an empty string if there is none.
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    let found = memmem::find(text.as_bytes(), mark.as_bytes());
    found.map_or("", |at| &text[at + mark.len()..])
}

/// Returns the text after the end tag of an element whose content is not text.
fn after_element<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    loop {
        rest = after(rest, "</");
        let ends = rest
            .get(..name.len())
            .is_some_and(|s| s.eq_ignore_ascii_case(name));
        if rest.is_empty() || ends {
            return after(rest, ">");
        }
    }
}

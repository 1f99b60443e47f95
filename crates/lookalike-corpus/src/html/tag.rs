//! Tags: what their names mean for the layout, where they end, and where raw text ends.

use memchr::{memchr, memchr2, memmem};

/// The effect of an element on the layout of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagLayout {
    /// No effect.
    Inline,
    /// A table cell: on the same line as its neighbours.
    Cell,
    /// `br`.
    Break,
    /// Begins and ends a line.
    Line,
    /// Surrounded by blank lines.
    Paragraph,
    /// Like a paragraph, and keeps white space.
    Pre,
    /// `svg` and `math`.
    Foreign,
    /// Not shown, although its content is markup.
    Template,
    /// Its content is not markup.
    Raw(RawText),
}

/// Elements whose content is not markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawText {
    Script,
    /// Not shown: `style`, `noscript`, ...
    Skipped,
    /// Not shown on the page: the title of its window.
    Title,
    /// Markup that is never shown: suggestions for a field.
    Unseen,
    /// Markup that is never shown in SVG and MathML, and means nothing elsewhere: a description, or a formula in another language.
    UnseenForeign,
    /// Shown, with character references.
    Textarea,
    /// Shown unchanged.
    Xmp,
    /// The rest of the page, unchanged.
    Plaintext,
}

/// Maximum length of a known name.
const MAX_NAME: usize = 10;

/// The name of a tag in lower case, as a number, so that comparing takes one operation. Names longer than all known ones are represented by a value
/// that equals no known name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TagName(u128);

impl TagName {
    /// The value for names that are not known.
    pub(super) const UNKNOWN: TagName = TagName(0);
    pub(super) const LINK: TagName = TagName::new("a");
    pub(super) const AREA: TagName = TagName::new("area");

    /// Creates the value for a name of at most ten letters.
    pub(super) const fn new(name: &str) -> TagName {
        TagName(key(name))
    }
}

/// Reads the tag name at `from`. Returns its layout, its value and its end.
pub(super) fn name(bytes: &[u8], from: usize) -> (TagLayout, TagName, usize) {
    let mut key: u128 = 0;
    let mut end = from;
    while end < bytes.len() && !ends_name(bytes[end]) {
        // Longer names lose their beginning, but no known name is that long. Names are in lower case in HTML (tag name state); non-ASCII bytes stay,
        // and match no known name.
        key = key << 8 | u128::from(bytes[end].to_ascii_lowercase());
        end += 1;
    }
    if end - from > MAX_NAME {
        return (TagLayout::Inline, TagName::UNKNOWN, end);
    }
    (kind(key), TagName(key), end)
}

fn ends_name(byte: u8) -> bool {
    matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace()
}

/// Packs a name into a number.
const fn key(name: &str) -> u128 {
    let bytes = name.as_bytes();
    let mut key = 0;
    let mut at = 0;
    while at < bytes.len() {
        key = key << 8 | bytes[at] as u128;
        at += 1;
    }
    key
}

/// Returns the effect of the element with this name on the layout of text.
pub(super) const fn kind_of(name: &str) -> TagLayout {
    kind(key(name))
}

/// Defines a function from names to layouts. The compiler makes a search tree of the comparisons.
macro_rules! kinds {
    ($($($name:literal)+ => $kind:expr,)+) => {
        const fn kind(name: u128) -> TagLayout {
            $($(if name == const { key($name) } {
                return $kind;
            })+)+
            TagLayout::Inline
        }
    };
}

/// A function that tells whether a name is one of some.
macro_rules! tag_set {
    ($function:ident: $($name:literal)+) => {
        fn $function(name: TagName) -> bool {
            $(if name == const { TagName::new($name) } {
                return true;
            })+
            false
        }
    };
}

pub(super) use tag_set;

kinds! {
    "td" "th" => TagLayout::Cell,
    "br" => TagLayout::Break,
    "div" "li" "tr" "dt" "dd" "address" "article" "aside" "body" "caption" "center" "details"
    "dialog" "fieldset" "figcaption" "footer" "form" "frameset" "head" "header" "hgroup" "html"
    "legend" "main" "menu" "nav" "optgroup" "option" "search" "section" "summary" "tbody" "tfoot"
    "thead" => TagLayout::Line,
    "p" "h1" "h2" "h3" "h4" "h5" "h6" "blockquote" "dir" "dl" "figure" "hr" "ol" "table" "ul"
    => TagLayout::Paragraph,
    "pre" "listing" => TagLayout::Pre,
    "svg" "math" => TagLayout::Foreign,
    "template" => TagLayout::Template,
    "script" => TagLayout::Raw(RawText::Script),
    "style" "noscript" "iframe" "noembed" "noframes" => TagLayout::Raw(RawText::Skipped),
    "title" => TagLayout::Raw(RawText::Title),
    "datalist" => TagLayout::Raw(RawText::Unseen),
    "desc" "metadata" "annotation" => TagLayout::Raw(RawText::UnseenForeign),
    "textarea" => TagLayout::Raw(RawText::Textarea),
    "xmp" => TagLayout::Raw(RawText::Xmp),
    "plaintext" => TagLayout::Raw(RawText::Plaintext),
}

/// Returns the offset just after the `>` of a tag, starting at the end of its name, and whether a `/` comes before it. Returns `None` if the page
/// ends first: such a tag does not count, and nothing follows it.
pub(crate) fn attributes_end(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
    loop {
        match *bytes.get(at)? {
            // In `<a href=x/>` the slash is part of the value, so the tag does not close itself, and `unquoted_end` has passed the slash. It counts
            // here nevertheless, because `<br clear=all/>` is much more common.
            b'>' => return Some((at + 1, bytes[at - 1] == b'/')),
            byte if byte == b'/' || byte.is_ascii_whitespace() => at += 1,
            _ => at = attribute_end(bytes, at)?,
        }
    }
}

/// Returns the end of the attribute that begins at `at`. Quotes count only directly after `=`.
fn attribute_end(bytes: &[u8], at: usize) -> Option<usize> {
    // A name may begin with `=`.
    let mut at = at + 1;
    while !matches!(*bytes.get(at)?, b'=' | b'>' | b'/') && !bytes[at].is_ascii_whitespace() {
        at += 1;
    }
    let name_end = at;
    while bytes.get(at)?.is_ascii_whitespace() {
        at += 1;
    }
    if bytes[at] != b'=' {
        // Back to the end of the name: the white space after it belongs to the next part.
        return Some(name_end);
    }
    at += 1;
    while bytes.get(at)?.is_ascii_whitespace() {
        at += 1;
    }
    match bytes[at] {
        // `None` without a closing quote: the page, and so the walk, ends within the tag. So this search fails at most once.
        quote @ (b'"' | b'\'') => Some(at + 1 + memchr(quote, &bytes[at + 1..])? + 1),
        // A missing value (before attribute value state): the tag ends here.
        b'>' => Some(at),
        _ => unquoted_end(bytes, at),
    }
}

fn unquoted_end(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes[at..]
        .iter()
        .position(|byte| *byte == b'>' || byte.is_ascii_whitespace())?;
    Some(at + length)
}

/// Returns the offset just after the comment that begins with the `<!--` at `at`.
pub(super) fn comment_end(bytes: &[u8], at: usize) -> usize {
    let content = at + 4;
    let mut from = content;
    while let Some(found) = memchr(b'>', &bytes[from..]) {
        let greater = from + found;
        // `<!-->` is closed by the dashes of its own start.
        let closed =
            // `--!>` ends a comment, too (comment end bang state), but not with the dashes of `<!--`.
            bytes[at + 2..greater].ends_with(b"--") || bytes[content..greater].ends_with(b"--!");
        if closed {
            return greater + 1;
        }
        from = greater + 1;
    }
    bytes.len()
}

/// Returns the start of the end tag of a raw text element, or the end of the page.
pub(crate) fn raw_end(bytes: &[u8], from: usize, name: &[u8]) -> usize {
    let mut at = from;
    // Search for two bytes instead of the whole name, which may be in any case.
    while let Some(found) = memmem::find(&bytes[at..], b"</") {
        at += found;
        if is_tag(&bytes[at + 2..], name) {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// Returns true if the bytes begin with the given tag name, in any case, and the name ends there.
pub(crate) fn is_tag(bytes: &[u8], name: &[u8]) -> bool {
    bytes.len() > name.len()
        && bytes[..name.len()].eq_ignore_ascii_case(name)
        && ends_name(bytes[name.len()])
}

/// Returns the start of the end tag of a script. After `<!--`, a `<script` needs an end tag of its own ("script data double escaped state").
pub(super) fn script_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut end = from;
    loop {
        // Searched once, not once per escape, so that the time stays linear.
        if end <= at {
            end = raw_end(bytes, at, b"script");
        }
        let Some(found) = memmem::find(&bytes[at..end], b"<!--") else {
            return end;
        };
        match escaped_script(bytes, at + found + 4) {
            ScriptEscape::Closed(end) => return end,
            ScriptEscape::Left(next) => at = next,
        }
    }
}

enum ScriptEscape {
    /// The end tag of the script begins here.
    Closed(usize),
    /// The escape ended here.
    Left(usize),
}

fn escaped_script(bytes: &[u8], from: usize) -> ScriptEscape {
    let mut doubly = false;
    let mut at = from;
    while let Some(found) = memchr2(b'<', b'>', &bytes[at..]) {
        at += found;
        let rest = &bytes[at + 1..];
        if bytes[at] == b'>' {
            // From the dashes of `<!--` on: `<!-->` ends the escape at once.
            if bytes[from - 2..at].ends_with(b"--") {
                return ScriptEscape::Left(at + 1);
            }
        } else if is_tag(rest, b"script") {
            doubly = true;
        } else if rest.first() == Some(&b'/') && is_tag(&rest[1..], b"script") {
            if !doubly {
                return ScriptEscape::Closed(at);
            }
            doubly = false;
        }
        at += 1;
    }
    ScriptEscape::Closed(bytes.len())
}

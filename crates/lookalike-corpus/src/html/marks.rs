//! Marks of an element, derived from its attributes: its purpose and its visibility.
//!
//! The words for and against an element in its class and id, and the roles, are those of Readability.js (Arc90 and Mozilla, Apache License 2.0).

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::attribute::TagAttributes;
use super::element::HtmlElement;

/// Invisible: `hidden`, `aria-hidden=true`, `style="display: none"`.
pub(super) const HIDDEN: u16 = 1;
/// Its class, id or role is that of page chrome.
pub(super) const UNLIKELY: u16 = 1 << 1;
/// A dialog over the page.
pub(super) const DIALOG: u16 = 1 << 2;
/// Buttons to share the page.
pub(super) const SHARE: u16 = 1 << 3;
/// A link to a position on this page.
pub(super) const FRAGMENT: u16 = 1 << 4;
/// A film from one of the known video sites.
pub(super) const FILM: u16 = 1 << 5;
/// A table used for layout.
pub(super) const LAYOUT: u16 = 1 << 6;
/// A table with a summary.
pub(super) const SUMMARY: u16 = 1 << 7;
/// A picture with a source.
pub(super) const SOURCE: u16 = 1 << 8;
/// Names the author of the page.
pub(super) const BYLINE: u16 = 1 << 9;
/// Its role is that of page chrome.
pub(super) const UNLIKELY_ROLE: u16 = 1 << 10;

/// Marks of one element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AttributeMarks {
    flags: u16,
    /// Number of columns of a table that a cell spans, minus one.
    more_columns: u16,
    /// Weight of its class and id: -50 to 50, or more if these attributes are repeated.
    pub(super) weight: i8,
}

impl AttributeMarks {
    /// Returns true if the element has one of these marks.
    pub(super) fn has(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Returns the number of columns of a table that a cell spans.
    pub(super) fn columns(self) -> u32 {
        u32::from(self.more_columns) + 1
    }

    fn set(&mut self, flag: u16, on: bool) {
        // Never cleared, because several attributes may give the same mark.
        if on {
            self.flags |= flag;
        }
    }
}

const ROLES: [&str; 7] = [
    "menu",
    "menubar",
    "complementary",
    "navigation",
    "alert",
    "alertdialog",
    "dialog",
];

/// Suffixes of the names of picture files.
const PICTURES: [&str; 6] = [".jpg", ".jpeg", ".png", ".webp", ".avif", ".gif"];

const FILMS: [&str; 8] = [
    "dailymotion.com",
    "youtube.com",
    "youtube-nocookie.com",
    "player.vimeo.com",
    "v.qq.com",
    "archive.org",
    "upload.wikimedia.org",
    "player.twitch.tv",
];

/// Weights and marks of words in a class or an id.
mod meaning {
    pub(super) const UNLIKELY: u8 = 1;
    pub(super) const MAYBE: u8 = 1 << 1;
    pub(super) const NEGATIVE: u8 = 1 << 2;
    pub(super) const POSITIVE: u8 = 1 << 3;
    pub(super) const BYLINE: u8 = 1 << 4;
    pub(super) const SHARE: u8 = 1 << 5;
    pub(super) const HIDING_PREFIX: u8 = 1 << 6;
}

const WORDS: [(u8, &str); 7] = [
    (
        meaning::UNLIKELY,
        "-ad-|ai2html|banner|breadcrumbs|combx|comment|community|cover-wrap|disqus|extra\
         |footer|gdpr|header|legends|menu|related|remark|replies|rss|shoutbox|sidebar\
         |skyscraper|social|sponsor|supplemental|ad-break|agegate|pagination|pager|popup\
         |yom-remote",
    ),
    (
        meaning::MAYBE,
        "and|article|body|column|content|layout|main|mathjax|shadow",
    ),
    (
        meaning::NEGATIVE,
        "-ad-|hidden|banner|combx|comment|com-|contact|footer|gdpr|masthead|media|meta\
         |outbrain|promo|related|scroll|share|shoutbox|sidebar|skyscraper|sponsor|shopping\
         |tags|widget",
    ),
    (
        meaning::POSITIVE,
        "article|body|content|entry|hentry|h-entry|main|page|post|text|blog|story",
    ),
    (meaning::BYLINE, "byline|author|dateline|writtenby|p-author"),
    (meaning::SHARE, "share"),
    (meaning::HIDING_PREFIX, "hid"),
];

/// An automaton of all words, with the meaning of each.
struct KeywordTable {
    automaton: AhoCorasick,
    says: Vec<u8>,
}

static ALL_WORDS: LazyLock<KeywordTable> = LazyLock::new(|| {
    let mut all: Vec<(&str, u8)> = Vec::new();
    for (says, words) in WORDS {
        for word in words.split('|') {
            match all.iter_mut().find(|(known, _)| *known == word) {
                // A word stands in several lists; the automaton may hold each once only, or the second one
                // would hide the first.
                Some((_, known)) => *known |= says,
                None => all.push((word, says)),
            }
        }
    }
    // A DFA reads each byte of a value once, however many words there are.
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(all.iter().map(|(word, _)| word));
    KeywordTable {
        automaton: automaton.expect("a few short words"),
        says: all.into_iter().map(|(_, says)| says).collect(),
    }
});

impl KeywordTable {
    /// Combines the meanings of all words in a value.
    fn meanings(&self, value: &str) -> u8 {
        let found = self.automaton.find_overlapping_iter(value);
        found.fold(0, |said, found| {
            said | self.says[found.pattern().as_usize()]
        })
    }
}

/// Reads the attributes of a start tag. O(length of the attributes).
pub(super) fn read(element: HtmlElement, attributes: &str) -> AttributeMarks {
    let mut marks = AttributeMarks::default();
    let (mut said, mut modal, mut dialog) = (0, false, false);
    let (mut hidden, mut streamed, mut aria_hidden, mut fallback) = (false, false, false, false);
    for (name, value) in TagAttributes::new(attributes) {
        match &*name {
            "class" | "id" if element != HtmlElement::Font => {
                let says = ALL_WORDS.meanings(value);
                said |= says;
                // Attributes may be repeated any number of times. Readability.js only sees the first of each, with weights up to 50.
                marks.weight = marks.weight.saturating_add(weight(says, value));
                marks.set(SHARE, says & meaning::SHARE != 0 && is_share(value));
                fallback |= name == "class" && value.contains("fallback-image");
                streamed |= name == "id" && is_streamed(value);
            }
            "hidden" => hidden = true,
            "style" => marks.set(HIDDEN, is_invisible(value)),
            "aria-hidden" => aria_hidden |= value == "true",
            "aria-modal" => modal |= value == "true",
            "role" => {
                marks.set(UNLIKELY_ROLE, ROLES.contains(&value));
                marks.set(LAYOUT, value == "presentation");
                dialog |= value == "dialog";
            }
            "rel" => marks.set(BYLINE, value == "author"),
            "itemprop" => marks.set(BYLINE, value.contains("author")),
            "href" if element == HtmlElement::A => {
                marks.set(FRAGMENT, value.len() > 1 && value.starts_with('#'));
            }
            "datatable" => marks.set(LAYOUT, value == "0"),
            "summary" => marks.set(SUMMARY, true),
            "colspan" => marks.more_columns = columns(value) - 1,
            "src" | "srcset" | "data-src" | "data-srcset" if element == HtmlElement::Img => {
                marks.set(SOURCE, true);
            }
            _ => {}
        }
        if element == HtmlElement::Img {
            marks.set(SOURCE, PICTURES.iter().any(|end| value.contains(end)));
        } else if element.is_embed() {
            marks.set(FILM, is_film(value));
        }
    }
    // Only now, because the class may come after `aria-hidden`, and the id after `hidden`.
    marks.set(HIDDEN, aria_hidden && !fallback || hidden && !streamed);
    marks.set(BYLINE, said & meaning::BYLINE != 0);
    marks.set(DIALOG, element == HtmlElement::Dialog || (modal && dialog));
    // `okMaybeItsACandidate` of Readability.js: one word in favour outweighs all words against.
    let unlikely = said & (meaning::UNLIKELY | meaning::MAYBE) == meaning::UNLIKELY;
    // As in Readability.js, links are never dropped by their class; they count by their text.
    marks.set(UNLIKELY, unlikely && element != HtmlElement::A);
    marks
}

/// Returns the weight of the words in a class or an id.
fn weight(says: u8, value: &str) -> i8 {
    let against = says & meaning::NEGATIVE != 0
        || (says & meaning::HIDING_PREFIX != 0
            && value
                .split_ascii_whitespace()
                .any(|word| word.eq_ignore_ascii_case("hid")));
    25 * (i8::from(says & meaning::POSITIVE != 0) - i8::from(against))
}

/// Returns true if `share` or `sharedaddy` is a part of a class or an id.
fn is_share(value: &str) -> bool {
    value
        .split([' ', '_'])
        .any(|part| part.eq_ignore_ascii_case("share") || part.eq_ignore_ascii_case("sharedaddy"))
}

/// Returns true for the id of an element in which React sends a late part of the page, hidden until a script moves it to its place: `S:` and a number.
pub(super) fn is_streamed(id: &str) -> bool {
    let number = id.strip_prefix("S:").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true if a style hides its element: `display: none` or `visibility: hidden`.
fn is_invisible(style: &str) -> bool {
    is_undisplayed(style) || declares(style, "visibility", "hidden")
}

/// Returns true if a style contains `display: none`.
pub(super) fn is_undisplayed(style: &str) -> bool {
    declares(style, "display", "none")
}

fn declares(style: &str, property: &str, value: &str) -> bool {
    declared(style, property).is_some_and(|declared| declared.eq_ignore_ascii_case(value))
}

/// Returns the value of a property in a style. As in browsers, the last declaration counts, or the last one with `!important`.
fn declared<'s>(style: &'s str, property: &str) -> Option<&'s str> {
    let (mut declared, mut is_important) = (None, false);
    for part in style.split(';') {
        let Some((name, value)) = part.split_once(':') else {
            continue;
        };
        let (value, priority) = value.split_once('!').unwrap_or((value, ""));
        let is_final = priority.trim().eq_ignore_ascii_case("important");
        if name.trim().eq_ignore_ascii_case(property) && (is_final || !is_important) {
            (declared, is_important) = (Some(value.trim()), is_final);
        }
    }
    declared
}

/// Returns true if a value contains the URL of a film.
fn is_film(value: &str) -> bool {
    FILMS.iter().any(|site| {
        value
            // Only the first occurrence counts: `//evil.example/youtube.com` is no film, because the name must start the host.
            .split_once(site)
            .is_some_and(|(before, _)| before.ends_with("//") || before.ends_with("//www."))
    })
}

/// Returns the number of columns that a cell spans: 1 to 1000.
fn columns(value: &str) -> u16 {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse::<u16>() {
        Ok(columns) => columns.clamp(1, 1000),
        // More digits than fit u16; the standard clamps `colspan` to 1000 (HTML, 4.9.11).
        Err(_) if digits => 1000,
        Err(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_what_attributes_say() {
        let has = |element, attributes: &str, flag| read(element, attributes).has(flag);
        let div = |attributes: &str, flag| has(HtmlElement::Div, attributes, flag);
        assert!(div(" hidden", HIDDEN));
        assert!(div(
            " style='color: red; DISPLAY : none !important'",
            HIDDEN
        ));
        assert!(div(" style=visibility:hidden", HIDDEN));
        assert!(div(" aria-hidden=true", HIDDEN));
        assert!(div(" STYLE=display:none", HIDDEN) && div(" Hidden", HIDDEN));
        assert!(div(" CLASS=site-footer", UNLIKELY));
        assert!(div(" class='Site-Footer x'", UNLIKELY));
        assert!(!div(" class='footer main'", UNLIKELY));
        assert!(!has(HtmlElement::A, " class=footer", UNLIKELY));
        assert!(div(" role=navigation", UNLIKELY_ROLE));
        assert!(div(" role=dialog aria-modal=true", DIALOG));
        assert!(div(" class='a share_b'", SHARE) && !div(" class=shares", SHARE));
        assert!(div(" class=p-author", BYLINE) && div(" rel=author", BYLINE));
        assert!(has(HtmlElement::A, " href='#top'", FRAGMENT));
        assert!(!has(HtmlElement::A, " href='#'", FRAGMENT));
        assert!(has(HtmlElement::Img, " data-x=a.png?1", SOURCE));
        assert!(!has(HtmlElement::Img, " alt=x", SOURCE));
        let film = " src=https://www.youtube.com/embed/1";
        assert!(has(HtmlElement::Iframe, film, FILM));
        assert!(!has(
            HtmlElement::Iframe,
            " src=https://example.com/youtube.com",
            FILM
        ));
    }

    #[test]
    fn an_important_or_a_second_display_hid_nothing() {
        for style in [
            "display: none!important",
            "DISPLAY:NONE ! Important",
            "display:block; display:none",
            "display: none !important; display: block",
            "color:red;;visibility :hidden ",
        ] {
            assert!(is_invisible(style), "{style}");
        }
        for style in [
            "",
            "display",
            "display:none; display:block",
            "display:none; display:block !important; display:none",
            "--display: none",
            "display: nonesuch",
            "visibility: none",
        ] {
            assert!(!is_invisible(style), "{style}");
        }
    }

    #[test]
    fn a_fallback_image_was_hidden_if_its_class_came_late() {
        for attributes in [
            " class='x fallback-image' aria-hidden=true",
            " aria-hidden=true class='x fallback-image'",
        ] {
            assert!(!read(HtmlElement::Img, attributes).has(HIDDEN));
        }
    }

    #[test]
    fn classes_and_ids_weigh() {
        let weight = |attributes: &str| read(HtmlElement::Div, attributes).weight;
        assert_eq!(weight(" class=post id=content"), 50);
        assert_eq!(weight(" class=sidebar id=promo"), -50);
        assert_eq!(weight(" class='post share'"), 0);
        assert_eq!(weight(" class='a hid'"), -25);
        assert_eq!(weight(" class=hide"), 0);
        // The sum, an i8, used to overflow.
        assert_eq!(weight(&" class=post".repeat(9)), 127);
        assert_eq!(weight(&" class=sidebar".repeat(9)), -128);
        assert_eq!(read(HtmlElement::Td, " colspan=3").columns(), 3);
        assert_eq!(read(HtmlElement::Td, " colspan=99999999").columns(), 1000);
        assert_eq!(read(HtmlElement::Td, " colspan=x").columns(), 1);
    }
}

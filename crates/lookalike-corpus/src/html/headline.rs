//! The headline of a page: the subject that the page states, and its position on the page.
//!
//! Two pages of one template may share everything that an extractor takes for their main content, and still have different subjects; one article in
//! the frames of two sites has one subject. The headline distinguishes these cases best. It is chosen among the headings outside of menus, page
//! headers and footers: the longest one that the title repeats, otherwise the first one of the first level, otherwise the first. Its words count only
//! if one of them is in the title.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::attribute;
use super::blocks::OpenRegion;
use super::sink::{self, TextSink};
use super::tag::{TagName, tag_set};
use super::target::{PageEvent, PageTarget, StartTag};

/// Maximum number of headings that are examined, and maximum number of bytes of each.
const MAX_HEADINGS: usize = 64;
const MAX_BYTES: usize = 400;

/// Minimum length of a significant word, in bytes.
const LONG_WORD: usize = 4;

/// Separators between the name of a page and that of its site in a title.
const SEPARATORS: [&str; 11] = [
    " - ",
    " | ",
    " \u{2013} ",
    " \u{2014} ",
    " \u{b7} ",
    " \u{bb} ",
    " / ",
    " (",
    " [",
    ": ",
    " :: ",
];

/// The subject of a page by its headline and title, for comparing two pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PageIdentity {
    /// Hash of the words of the headline, without numbers; `None` if no heading has a word of the title.
    headline: Option<u32>,
    /// Hash of the words of the first part of the title.
    title: u32,
}

impl PageIdentity {
    /// Returns true if both pages have the same headline.
    #[must_use]
    pub fn has_headline_of(self, other: Self) -> bool {
        self.headline.is_some() && self.headline == other.headline
    }

    /// Returns true if nothing indicates that the pages have different subjects: neither their headlines nor, if one of them has none, their titles.
    #[must_use]
    pub fn may_share_subject(self, other: Self) -> bool {
        match (self.headline, other.headline) {
            (Some(own), Some(other)) => own == other,
            _ => self.has_title_of(other),
        }
    }

    /// Returns true if both titles begin with the same part.
    #[must_use]
    pub fn has_title_of(self, other: Self) -> bool {
        self.title == other.title
    }

    /// Returns the identity as one number, which is not 0.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        // Neither hash is ever 0 (see `hash`), so a zero half can mean that there is none.
        u64::from(self.headline.unwrap_or(0)) << 32 | u64::from(self.title)
    }

    /// Restores an identity from [`PageIdentity::to_bits`]. Returns `None` for 0.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let headline = (bits >> 32) as u32;
        (bits != 0).then_some(Self {
            headline: (headline != 0).then_some(headline),
            title: bits as u32,
        })
    }
}

/// A headline and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHeadline {
    pub(super) identity: PageIdentity,
    /// End of the heading on the page; `None` if there is no heading.
    pub(super) end: Option<usize>,
    /// True if the page says what its parts are, by `og:type`, `main` or `article`, and does not say that it is an article.
    pub(super) is_no_article: bool,
}

/// A target that looks for the headline, and forwards everything to another target.
pub(super) struct HeadlineFinder<'t> {
    target: &'t mut dyn PageTarget,
    /// Address of the page in memory; texts are slices of the page.
    base: usize,
    title: Option<String>,
    is_open: bool,
    current: FoundHeading,
    found: Vec<FoundHeading>,
    chrome: OpenRegion,
    header: OpenRegion,
    content: OpenRegion,
    is_article: bool,
    is_annotated: bool,
}

#[derive(Debug, Default)]
struct FoundHeading {
    is_first_level: bool,
    text: String,
    end: usize,
    /// True within a menu or a footer.
    aside: bool,
    /// True within the header of the page.
    header: bool,
}

tag_set!(is_heading: "h1" "h2" "h3" "h4" "h5" "h6");
tag_set!(is_menu: "nav" "footer" "aside");
tag_set!(is_content: "article" "main");

const FIRST_LEVEL: TagName = TagName::new("h1");
const HEADER: TagName = TagName::new("header");
const META: TagName = TagName::new("meta");

impl<'t> HeadlineFinder<'t> {
    pub(super) fn new(html: &str, target: &'t mut dyn PageTarget) -> HeadlineFinder<'t> {
        HeadlineFinder {
            target,
            base: html.as_ptr().addr(),
            title: None,
            is_open: false,
            current: FoundHeading::default(),
            found: Vec::new(),
            chrome: OpenRegion::default(),
            header: OpenRegion::default(),
            content: OpenRegion::default(),
            is_article: false,
            is_annotated: false,
        }
    }

    /// Returns the headline of the page that was walked.
    pub(super) fn finish(mut self) -> PageHeadline {
        // The end of the page closes an open heading.
        self.end_heading();
        let title = self.title.unwrap_or_default();
        let known: HashSet<String> = words(&title).collect();
        // A header contains the name of the site, or that of the page.
        let is_aside = |heading: &FoundHeading| {
            // A heading in a header that does not repeat the title is the name of the site, the same on all its pages.
            heading.aside || heading.header && missing(&heading.text, &known) > 0.75
        };
        // If all headings are in such frames, the headline is one of them.
        let aside = self.found.iter().all(is_aside);
        let candidates = || {
            let found = self.found.iter();
            found.filter(move |heading| aside || !is_aside(heading))
        };
        let titled = candidates().filter(|heading| missing(&heading.text, &known) < 0.25);
        // Of several with the same length, the first counts.
        let longest = titled
            // `max_by_key` returns the last of several equal ones.
            .rev()
            .max_by_key(|heading| words(&heading.text).count());
        let chosen = longest
            .or_else(|| candidates().find(|heading| heading.is_first_level))
            .or_else(|| candidates().next());
        // "Documentation" or "Contents" occurs on many pages, and does not identify their subject.
        let says = |heading: &&FoundHeading| {
            words(&heading.text).any(|word| word.len() >= LONG_WORD && known.contains(&word))
        };
        let telling = longest
            .or_else(|| chosen.filter(says))
            .or_else(|| candidates().find(says));
        PageHeadline {
            identity: PageIdentity {
                headline: telling.map(|heading| hash(&heading.text)),
                title: hash(first_part(&title)),
            },
            end: chosen.map(|heading| heading.end),
            is_no_article: self.is_annotated && !self.is_article,
        }
    }
}

impl PageTarget for HeadlineFinder<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        match event {
            PageEvent::Text(text) => self.add(text, false),
            PageEvent::Verbatim(text) => self.add(text, true),
            PageEvent::Gap(_) | PageEvent::LineBreak if self.is_open => {
                self.current.text.push(' ');
            }
            PageEvent::Title(text) if self.title.is_none() => {
                let text = &text[..text.floor_char_boundary(MAX_BYTES)];
                self.title = Some(sink::text_of(text));
            }
            PageEvent::Open(tag) => self.open(tag),
            PageEvent::Close(name) => self.close(name),
            _ => {}
        }
        self.target.receive(event);
    }
}

impl HeadlineFinder<'_> {
    fn open(&mut self, tag: StartTag<'_>) {
        let name = tag.name;
        if is_heading(name) {
            self.end_heading();
            self.is_open = true;
            self.current.is_first_level = name == FIRST_LEVEL;
            self.current.aside = self.chrome.is_open();
            self.current.header = self.header.is_open();
        } else if name == META {
            let kind = PageKind::of_meta(tag.attributes);
            self.is_article |= kind == Some(PageKind::Article);
            self.is_annotated |= kind.is_some();
        } else if !tag.self_closing {
            self.chrome.opened(name, || is_menu(name));
            self.content.opened(name, || is_content(name));
            self.is_annotated |= is_content(name);
            // A header within an article belongs to the article.
            let of_page = !self.content.is_open();
            self.header.opened(name, || name == HEADER && of_page);
        }
    }

    fn close(&mut self, name: TagName) {
        if is_heading(name) {
            self.end_heading();
        } else {
            self.chrome.closed(name);
            self.content.closed(name);
            self.header.closed(name);
        }
    }

    fn end_heading(&mut self) {
        self.is_open = false;
        let heading = std::mem::take(&mut self.current);
        // Headings that are pictures have no words, and do not count towards the 64.
        if words(&heading.text).next().is_some() && self.found.len() < MAX_HEADINGS {
            self.found.push(heading);
        }
    }

    fn add(&mut self, text: &str, verbatim: bool) {
        if !self.is_open || self.current.text.len() >= MAX_BYTES {
            return;
        }
        // An offset by subtraction of addresses: all texts of the walk are slices of the page. No pointer is made from it.
        self.current.end = text.as_ptr().addr() - self.base + text.len();
        // The sink collapses white space only within a part; blanks at the edges are added here, because `a</b> c` is two words.
        let part = &text[..text.floor_char_boundary(MAX_BYTES)];
        if part.starts_with(char::is_whitespace) {
            self.current.text.push(' ');
        }
        let mut sink = TextSink::new(&mut self.current.text);
        match verbatim {
            true => sink.verbatim(part),
            false => sink.text(part),
        }
        sink.finish();
        if part.ends_with(char::is_whitespace) {
            self.current.text.push(' ');
        }
    }
}

/// The kind of a page, as it declares it (Open Graph, "Object types").
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageKind {
    Article,
    Other,
}

impl PageKind {
    /// Returns the kind that the attributes of a `meta` declare.
    fn of_meta(attributes: &str) -> Option<PageKind> {
        let value = |name: &str| attribute::value(attributes, name);
        let is_article = match value("property").or_else(|| value("name")).as_deref() {
            Some("og:type") => {
                value("content").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("article"))
            }
            Some("article:published_time") => true,
            Some("og:title") => false,
            _ => return None,
        };
        Some(if is_article {
            PageKind::Article
        } else {
            PageKind::Other
        })
    }
}

/// Returns the words of a text, in lower case. Han and Kana are written without spaces, so each pair of neighbours counts as a word.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_unspaced = |c: char| matches!(c, '\u{3000}'..='\u{9fff}');
    let kind = |c: char| (c.is_alphanumeric(), is_unspaced(c));
    let letters: Vec<char> = text.chars().collect();
    let runs = letters.chunk_by(|&a, &b| kind(a) == kind(b));
    let words = runs.filter(|run| run[0].is_alphanumeric()).flat_map(|run| {
        let length = if is_unspaced(run[0]) { 2 } else { run.len() };
        run.windows(length.min(run.len()))
    });
    let words = words.map(|word| word.iter().collect::<String>().to_lowercase());
    words.collect::<Vec<_>>().into_iter()
}

/// Returns the share of the letters of a heading that are not in the `known` words.
pub(super) fn missing(heading: &str, known: &HashSet<String>) -> f64 {
    let (mut all, mut missing) = (0, 0);
    for word in words(heading) {
        let length = word.chars().count();
        all += length;
        // Counts letters, not words: it means little that the title has "the" and "of".
        missing += length * usize::from(!known.contains(&word));
    }
    missing as f64 / all.max(1) as f64
}

/// Returns the part of a title before the first separator.
fn first_part(title: &str) -> &str {
    let ends = SEPARATORS.iter().filter_map(|part| title.find(part));
    &title[..ends.filter(|end| *end > 0).min().unwrap_or(title.len())]
}

/// Hashes the words of a text, never to 0. Numbers are skipped unless there is nothing else, because those of chapters and versions change.
fn hash(text: &str) -> u32 {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let only_numbers = words(text).all(|word| is_number(&word));
    let mut hash = Xxh3::new();
    for word in words(text).filter(|word| only_numbers || !is_number(word)) {
        hash.update(word.as_bytes());
        hash.update(b" ");
    }
    // The lower half of XXH3, whose bits are equally good. 0 means "none", so it becomes 1, once in 2^32.
    (hash.digest() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headline(html: &str) -> PageHeadline {
        crate::html::headline(html, &mut TextSink::new(&mut String::new()))
    }

    fn chosen(html: &str) -> Option<&str> {
        let end = headline(html).end?;
        let from = html[..end].rfind('>').unwrap() + 1;
        Some(&html[from..end])
    }

    #[test]
    fn the_headline_is_the_heading_that_the_title_repeats() {
        for (page, expected) in [
            (
                "<title>Storm hits coast - Daily</title><h1>Daily</h1><h2>Storm hits coast</h2>",
                Some("Storm hits coast"),
            ),
            (
                "<title>Other</title><h2>a</h2><h1>b</h1><h1>c</h1>",
                Some("b"),
            ),
            ("<h3>a</h3><h2>b</h2>", Some("a")),
            (
                "<title>Menu</title><nav><h1>Menu</h1></nav><h2>Story</h2>",
                Some("Story"),
            ),
            (
                "<title>Two jets, one flight</title><header><h1>Two jets on one flight</h1></header><h2>More</h2>",
                Some("Two jets on one flight"),
            ),
            (
                "<header><h1>Site</h1></header><article><header><h2>Story</h2></header></article>",
                Some("Story"),
            ),
            ("<nav><h2>All in here</h2>", Some("All in here")),
            ("<h1> </h1><p>text</p>", None),
            ("text", None),
        ] {
            assert_eq!(chosen(page), expected, "{page}");
        }
    }

    #[test]
    fn a_heading_that_says_nothing_is_no_headline() {
        let page = |name: &str| {
            let title = format!("<title>{name}</title>");
            headline(&(title + "<h1>Documentation</h1><h2>Synopsis</h2>")).identity
        };
        let (lens, splice) = (page("Data.Lens"), page("Tc.Splice"));
        assert!(!lens.has_headline_of(splice) && !lens.may_share_subject(splice));
        assert!(lens.may_share_subject(page("Data.Lens")));
    }

    #[test]
    fn a_chinese_headline_was_not_repeated_by_a_title_that_cuts_or_extends_it() {
        let page = |title: &str, name: &str| {
            format!("<title>{title}</title><h1>{name}</h1><h2>新桥梁通车典礼今日在城市举行</h2>")
        };
        let whole = headline(&page("新桥梁通车典礼今日在城市举行_新浪网", "新闻")).identity;
        for title in [
            "新桥梁通车典礼今日在城市举…_新浪网",
            "搜狐新闻新桥梁通车典礼今日在城市举行",
            "快讯 新桥梁通车典礼 今日在城市举行",
        ] {
            let page = page(title, "搜狐");
            assert_eq!(
                chosen(&page),
                Some("新桥梁通车典礼今日在城市举行"),
                "{title}"
            );
            assert!(headline(&page).identity.has_headline_of(whole), "{title}");
        }
        // One letter in common says nothing.
        let other = headline("<title>在家_新浪网</title><h1>新桥梁通车典礼今日在城市举行</h1>");
        assert!(!other.identity.has_headline_of(whole));
        let japanese = |title: &str| {
            headline(&format!(
                "<title>{title}</title><h1>AI時代の橋が今日ひらいた</h1>"
            ))
            .identity
        };
        assert!(
            japanese("AI時代の橋が今日…").has_headline_of(japanese("速報AI時代の橋が今日ひらいた"))
        );
    }

    #[test]
    fn numbers_case_and_marks_do_not_tell_headlines_apart() {
        let a = headline("<title>51.12. pg_class</title><h2>51.12. pg_<code>class</code></h2>")
            .identity;
        let b =
            headline("<title>53.7. PG_CLASS (new)</title><h1>53.7.\n<code>pg_class</code></h1>")
                .identity;
        assert!(a.has_headline_of(b) && a.has_title_of(b));
        let c = headline("<title>Hotel - Lucky Star</title><h1>Hotel</h1>").identity;
        assert!(!a.has_headline_of(c) && !a.has_title_of(c));
        let nothing = headline("text").identity;
        assert!(!nothing.has_headline_of(nothing));
        for identity in [a, b, c, nothing] {
            assert_eq!(PageIdentity::from_bits(identity.to_bits()), Some(identity));
        }
        assert_eq!(PageIdentity::from_bits(0), None);
    }
}

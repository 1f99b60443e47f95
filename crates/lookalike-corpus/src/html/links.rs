//! Links of a page, each with its text and the words around it.

use lookalike::{Anchor, Extraction};

use super::attribute;
use super::notes::PageNotes;
use super::page;
use super::sink::TextSink;
use super::tag::TagName;
use super::target::{PageEvent, PageTarget, StartTag};

const BASE: TagName = TagName::new("base");

/// Maximum number of words of a link's text that count.
const ANCHOR_WORDS: usize = 100;

/// Number of bytes that are searched per word of a window.
const WORD_BYTES: usize = 64;

/// A link as written on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HtmlLink {
    /// The target, not resolved.
    pub target: String,
    /// The text, at most its first 100 words, and the words around it; `None` if the link has no text.
    pub anchor: Option<Anchor>,
}

/// The links of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HtmlLinks {
    /// The address against which links are resolved, if the page declares one.
    pub base: Option<String>,
    /// All links in page order, with those of image maps last.
    pub links: Vec<HtmlLink>,
}

/// A link and the range of its text.
struct FoundLink {
    target: String,
    start: usize,
    end: usize,
}

/// Collects the text of a page and the positions of links in it.
struct LinkFinder<'o> {
    sink: TextSink<'o>,
    base: Option<String>,
    open: Option<(String, usize)>,
    found: Vec<FoundLink>,
    /// Links of image maps, which have no position in the text.
    areas: Vec<HtmlLink>,
}

impl HtmlLinks {
    /// Finds the links of a page. The alternative text of an image counts as text. `window` is the number of words before and after a link that are
    /// taken from the same block. Never fails; O(length of the page and of all windows).
    ///
    /// ```
    /// use lookalike_corpus::HtmlLinks;
    /// let page = "<p>Take the <a href='/ferry'>night ferry</a> at nine.<p>Or not.";
    /// let links = HtmlLinks::read(page, 2).links;
    /// let anchor = links[0].anchor.as_ref().unwrap();
    /// assert_eq!((&*anchor.before, &*anchor.text, &*anchor.after), ("Take the", "night ferry", "at nine."));
    /// ```
    pub fn read(html: &str, window: usize) -> HtmlLinks {
        let mut text = String::new();
        let mut finder = LinkFinder {
            sink: TextSink::new(&mut text),
            base: None,
            open: None,
            found: Vec::new(),
            areas: Vec::new(),
        };
        let with_images = Extraction {
            alt: true,
            ..Extraction::default()
        };
        page::walk(html, &mut PageNotes::new(&mut finder, with_images));
        // The page may end within a link.
        finder.end_link();
        let LinkFinder {
            sink,
            base,
            found,
            areas,
            ..
        } = finder;
        sink.finish();
        let link = |link: FoundLink| HtmlLink {
            anchor: anchor(&text, link.start, link.end, window),
            target: link.target,
        };
        HtmlLinks {
            base,
            links: found.into_iter().map(link).chain(areas).collect(),
        }
    }
}

/// Returns the anchor of the link whose text is in this range, or `None` if there is no text.
fn anchor(text: &str, start: usize, end: usize, window: usize) -> Option<Anchor> {
    // The sink has removed white space at the end of the text, which the offsets of a link may still count.
    let end = end.min(text.len());
    let written = &text[start.min(end)..end];
    // Blanks within the link but before its text belong to neither part.
    let start = end - written.trim_start().len();
    let words = joined(written.split_whitespace().take(ANCHOR_WORDS));
    // Limited, so that a page with one long text and many links takes linear time.
    let reach = window * WORD_BYTES;
    let before = &text[text.ceil_char_boundary(start.saturating_sub(reach))..start];
    // Blocks are lines in this text; a window does not extend into the next paragraph.
    let before = before.rsplit('\n').next().unwrap_or_default();
    let behind = &text[end..text.floor_char_boundary(end.saturating_add(reach))];
    let behind = behind.split('\n').next().unwrap_or_default();
    let mut nearest: Vec<&str> = before.split_whitespace().rev().take(window).collect();
    nearest.reverse();
    (!words.is_empty()).then(|| Anchor {
        text: words,
        before: joined(nearest.into_iter()),
        after: joined(behind.split_whitespace().take(window)),
    })
}

fn joined<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

impl LinkFinder<'_> {
    fn open(&mut self, tag: StartTag<'_>) {
        let target = || attribute::value(tag.attributes, "href").map(String::from);
        if tag.name == TagName::LINK {
            self.end_link();
            // Without `href` it is not a link but the target of one; it still ends the previous link.
            self.open = target().map(|target| (target, self.sink.len()));
        } else if tag.name == TagName::AREA {
            let text = attribute::value(tag.attributes, "alt").unwrap_or_default();
            let text = joined(text.split_whitespace().take(ANCHOR_WORDS));
            let anchor = (!text.is_empty()).then(|| Anchor {
                text,
                ..Anchor::default()
            });
            self.areas
                .extend(target().map(|target| HtmlLink { target, anchor }));
        } else if tag.name == BASE && self.base.is_none() {
            self.base = target();
        }
    }

    /// Ends the open link. Links do not nest.
    fn end_link(&mut self) {
        let end = self.sink.len();
        let link = self.open.take();
        self.found
            .extend(link.map(|(target, start)| FoundLink { target, start, end }));
    }
}

impl PageTarget for LinkFinder<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        match event {
            PageEvent::Open(tag) => self.open(tag),
            PageEvent::Close(TagName::LINK) => self.end_link(),
            _ => self.sink.receive(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns links as target, words before, text, words after.
    fn found(html: &str) -> Vec<[String; 4]> {
        let links = HtmlLinks::read(html, 3).links.into_iter();
        let row = |link: HtmlLink| {
            let anchor = link.anchor.unwrap_or_default();
            [link.target, anchor.before, anchor.text, anchor.after]
        };
        links.map(row).collect()
    }

    #[test]
    fn links_have_their_texts_and_windows() {
        for (html, expected) in [
            (
                "<p>one two three four <a href=x>five <b>six</b></a>, seven eight nine ten",
                [["x", "two three four", "five six", ", seven eight"]].as_slice(),
            ),
            (
                "before<p><a href='a&amp;b'>x</a><p>behind",
                &[["a&b", "", "x", ""]],
            ),
            (
                "<ul><li>a <a href=1>b</a> c<li>d <a href=2>e</a> f</ul>",
                &[["1", "a", "b", "c"], ["2", "d", "e", "f"]],
            ),
            (
                "a <a href=1>b <a href=2>c</a> d",
                &[["1", "a", "b", "c d"], ["2", "a b", "c", "d"]],
            ),
            (
                "<a href=1><img src=i alt='a ferry'></a> x",
                &[["1", "", "a ferry", "x"]],
            ),
            ("x <a href=1><img src=i></a> y", &[["1", "", "", ""]]),
            ("<a name=n>x</a> <a HREF=1>y", &[["1", "x", "y", ""]]),
            (
                "<a href=1><div>x</div><div>y</div></a>",
                &[["1", "", "x y", ""]],
            ),
            (
                "<map><area href=1 alt='north  isle'></map>",
                &[["1", "", "north isle", ""]],
            ),
            ("<template><a href=1>x</a></template>", &[]),
        ] {
            assert_eq!(found(html), expected, "{html}");
        }
    }

    #[test]
    fn the_first_base_counts() {
        let page = "<base target=x><base href='/a/'><base href='/b/'><a href=c>d</a>";
        assert_eq!(HtmlLinks::read(page, 0).base.as_deref(), Some("/a/"));
    }

    #[test]
    fn a_giant_line_full_of_links_takes_no_quadratic_time() {
        let page = "<a href=x>y</a> ".repeat(300_000);
        assert_eq!(HtmlLinks::read(&page, 64).links.len(), 300_000);
    }

    proptest! {
        /// Tests a page of one block of words, some of them links: the windows equal those computed from the list of words.
        #[test]
        fn windows_are_the_neighbouring_words(words in prop::collection::vec((any::<bool>(), "[a-zé]{1,6}"), 0..30), window in 0..6_usize) {
            let written = |(is_link, word): &(bool, String)| match is_link {
                true => format!("<a href=h>{word}</a>"),
                false => word.clone(),
            };
            let page = words.iter().map(written).collect::<Vec<_>>().join(" ");
            let plain: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
            let expected: Vec<Anchor> = (0..words.len()).filter(|at| words[*at].0).map(|at| Anchor {
                text: plain[at].to_owned(),
                before: plain[at.saturating_sub(window)..at].join(" "),
                after: plain[at + 1..].iter().take(window).copied().collect::<Vec<_>>().join(" "),
            }).collect();
            let found: Vec<Anchor> = HtmlLinks::read(&page, window).links.into_iter().map(|link| link.anchor.unwrap()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

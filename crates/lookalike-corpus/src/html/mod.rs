//! HTML to text, in four modes.
//!
//! - *visible*: all that a reader of the page would see ([`sink`]);
//! - *fast*: of that, the blocks that are text rather than links and labels ([`blocks`], [`fast`]);
//! - *main*: the element that the browsers' reading views would choose ([`reading`], on a flat tree of the page,
//!   [`tree`]; former versions: [`main_content`]);
//! - *quality*: of the answers of *fast*, the reading view and a slower library the one that agrees best with the others, with
//!   the Cargo feature `quality`.
//!
//! All come out of walks through the page ([`page`]). The last two build trees: a page that is made to hurt ([`shape`])
//! gets the text of *fast*; with *main* so does one in which next to nothing is found, and a page of reference, which
//! has no one element that it is about. What becomes of white space follows `innerText` in all modes: runs collapse to one space, block
//! elements begin a line, paragraphs and the like are set off by a blank line, `pre` is kept.
//!
//! Not seen: `script`, `style`, `noscript`, `template`, `iframe`, comments; title and attributes unless asked for
//! ([`notes`]). Style sheets are not consulted, the `hidden` attribute by *fast* only.

mod attribute;
mod blocks;
mod element;
mod entity;
mod fast;
mod main_content;
mod notes;
mod page;
#[cfg(feature = "quality")]
mod quality;
mod reading;
mod shape;
mod sink;
mod tag;
mod tree;

use lookalike::{Extraction, HtmlMode};

use blocks::words;
use fast::{Fast, Version};
use notes::Notes;
use page::Target;
use reading::{Found, ReadingView};
use shape::Kind;
use sink::Sink;

/// Turns HTML into text. Keeps nothing but buffers from one page to the next.
///
/// ```
/// use lookalike::Extraction;
/// use lookalike_corpus::HtmlText;
///
/// let mut text = String::new();
/// let page = "<title>t</title><h1>Caf&eacute;</h1><p>Open <b>all</b>\n day<script>1<2</script>";
/// HtmlText::new(Extraction::default())?.extract(page, &mut text);
/// assert_eq!(text, "Caf\u{e9}\n\nOpen all day");
/// # Ok::<(), lookalike_corpus::UnsupportedHtml>(())
/// ```
#[derive(Debug, Clone)]
pub struct HtmlText {
    extraction: Extraction,
    fast: Fast,
    reading: ReadingView,
    #[cfg(feature = "quality")]
    answers: quality::Answers,
    /// The text of the fast mode, where it may be needed.
    plain: String,
}

/// A mode for which this build has no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this build cannot extract HTML in the mode `{mode}`: build with the Cargo feature `quality`, or use another mode"
)]
pub struct UnsupportedHtml {
    /// The mode.
    pub mode: HtmlMode,
}

/// Fewer words than this as the main content of a page are few...
const FEW_WORDS: u32 = 50;

/// ...and too few if *fast* finds so many times as many.
const MANY_TIMES: u32 = 2;

impl HtmlText {
    /// An extractor of this kind.
    ///
    /// # Errors
    /// [`UnsupportedHtml`] when this build lacks the mode.
    pub fn new(extraction: Extraction) -> Result<HtmlText, UnsupportedHtml> {
        check(extraction)?;
        Ok(HtmlText {
            extraction,
            fast: Fast::default(),
            reading: ReadingView::default(),
            #[cfg(feature = "quality")]
            answers: quality::Answers::default(),
            plain: String::new(),
        })
    }

    /// Appends the text of a page to `out`. Never fails. O(length of the page) for all pages in the modes *visible*, *fast* and
    /// *main*, and for those made to hurt in the others.
    pub fn extract(&mut self, html: &str, out: &mut String) {
        let start = out.len();
        let title = match self.extraction.mode {
            HtmlMode::Visible => self.visible(html, out),
            HtmlMode::Fast => self.fast(Version::Second, html, out),
            HtmlMode::Fast1 => self.fast(Version::First, html, out),
            HtmlMode::Main => self.main(html, out),
            HtmlMode::Quality => self.agreed(html, out),
            HtmlMode::Main1 | HtmlMode::Main2 | HtmlMode::Quality1 => {
                if self.has_content(html)
                    && let Some(content) = self.content(html)
                {
                    self.visible(content.as_str(), out);
                }
                self.or_fast(Version::First, html, start, out)
            }
        };
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            let gap = if out.len() == start { "" } else { "\n\n" };
            out.insert_str(start, &(title + gap));
        }
    }

    /// Whether something besides the text counts.
    fn has_notes(&self) -> bool {
        self.extraction.title || self.extraction.alt || self.extraction.links
    }

    /// Lets `walk` go through a page or a part of it; returns its title if that is asked for.
    fn walk<T: Target>(&self, target: &mut T, walk: impl Walk) -> Option<String> {
        if !self.has_notes() {
            walk.walk(target);
            return None;
        }
        let mut notes = Notes::new(target, self.extraction);
        walk.walk(&mut notes);
        notes.title
    }

    fn visible(&self, walk: impl Walk, out: &mut String) -> Option<String> {
        let mut sink = Sink::new(out);
        let title = self.walk(&mut sink, walk);
        sink.finish();
        title
    }

    fn fast(&mut self, version: Version, html: &str, out: &mut String) -> Option<String> {
        let mut fast = std::mem::take(&mut self.fast);
        let mut title = None;
        fast.extract(version, |blocks| title = self.walk(blocks, html), out);
        self.fast = fast;
        title
    }

    /// The text of the article, else that of the fast mode.
    fn main(&mut self, html: &str, out: &mut String) -> Option<String> {
        let start = out.len();
        self.article(html, out);
        self.or_fast(Version::Second, html, start, out)
    }

    /// The text of the article, if the page has one.
    fn article(&mut self, html: &str, out: &mut String) {
        let mut reading = std::mem::take(&mut self.reading);
        match reading.read(html) {
            Found::Article => drop(self.visible((&reading, html), out)),
            Found::Reference | Found::Nothing => {}
        }
        self.reading = reading.recycled();
    }

    /// The text of the fast mode in place of what was found from `start` on, if that is next to nothing.
    fn or_fast(
        &mut self,
        version: Version,
        html: &str,
        start: usize,
        out: &mut String,
    ) -> Option<String> {
        let found = words(&out.as_bytes()[start..]);
        if found >= FEW_WORDS && !self.extraction.title {
            return None;
        }
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let title = self.fast(version, html, &mut plain);
        if found < FEW_WORDS && words(plain.as_bytes()) > MANY_TIMES * found {
            out.truncate(start);
            out.push_str(&plain);
        }
        self.plain = plain;
        title
    }

    /// Of the texts of several extractors the one that agrees best with the others; that of the mode *main* for pages that are
    /// too much for some.
    #[cfg(feature = "quality")]
    fn agreed(&mut self, html: &str, out: &mut String) -> Option<String> {
        if !quality::bears(html) {
            return self.main(html, out);
        }
        for focus in [quality::Focus::FavorPrecision, quality::Focus::FavorRecall] {
            let mut text = String::new();
            if let Some(content) = quality::content(html, self.extraction, focus) {
                self.visible(content.as_str(), &mut text);
            }
            self.answers.add(text);
        }
        let (mut article, mut plain) = (String::new(), String::new());
        self.article(html, &mut article);
        let title = self.fast(Version::Second, html, &mut plain);
        self.answers.add(article);
        self.answers.add(plain);
        out.push_str(&self.answers.take_best());
        title
    }

    /// Never asked for: see [`check`].
    #[cfg(not(feature = "quality"))]
    fn agreed(&mut self, html: &str, out: &mut String) -> Option<String> {
        self.fast(Version::Second, html, out)
    }

    /// Whether a library is to look for the main content.
    fn has_content(&self, html: &str) -> bool {
        match shape::kind(html) {
            Kind::Tame => true,
            Kind::Reference => self.extraction.mode != HtmlMode::Main2,
            Kind::Wild => false,
        }
    }

    #[cfg(feature = "quality")]
    fn content(&self, html: &str) -> Option<String> {
        match self.extraction.mode {
            HtmlMode::Quality1 => quality::content(html, self.extraction, quality::Focus::Balanced),
            _ => main_content::main_content(html),
        }
    }

    #[cfg(not(feature = "quality"))]
    fn content(&self, html: &str) -> Option<String> {
        main_content::main_content(html)
    }
}

/// Something that targets can hear of.
trait Walk {
    fn walk<T: Target>(self, target: &mut T);
}

/// A page.
impl Walk for &str {
    fn walk<T: Target>(self, target: &mut T) {
        page::walk(self, target);
    }
}

/// The article of a page.
impl Walk for (&ReadingView, &str) {
    fn walk<T: Target>(self, target: &mut T) {
        self.0.tell(self.1, target);
    }
}

/// Refuses a mode that this build lacks.
pub(crate) fn check(extraction: Extraction) -> Result<(), UnsupportedHtml> {
    match extraction.mode {
        mode @ (HtmlMode::Quality | HtmlMode::Quality1) if !cfg!(feature = "quality") => {
            Err(UnsupportedHtml { mode })
        }
        _ => Ok(()),
    }
}

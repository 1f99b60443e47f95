//! HTML to text, in four modes.
//!
//! - *visible*: all text that a reader of the page sees ([`sink`]);
//! - *fast*: those blocks of it that are text rather than links and labels ([`blocks`], [`fast`]);
//! - *main*: the element that the reading views of browsers would choose ([`readability`], on a flat tree of the page, [`tree`]);
//! - *quality*: of the answers of *fast*, the reading view and a slower library, the one that agrees best with the others; needs the Cargo feature
//!   `quality`.
//!
//! All modes walk through the page ([`page`]). The last two build trees, so an adversarial page ([`shape`]) gets the text of *fast*. With *main*, so
//! does a page in which next to nothing is found, or only something far from the headline ([`headline`]), or less than half of the text of *fast*
//! though the page says what it is, and not that it is an article, and a reference page, which has no single element with its content. If *fast* finds next to nothing either, the whole page counts, without its chrome. White space follows `innerText` in
//! all modes: runs collapse to one space, block elements begin a line, paragraphs and the like are surrounded by blank lines, and `pre` is kept.
//!
//! Feeds and other XML have no main content, so all their text counts in every mode ([`syntax`]).
//!
//! Ignored: `script`, `style`, `template`, `iframe` and comments; `noscript` unless nearly all text is there ([`noscript`]); the title and attributes
//! unless requested ([`notes`]). Style sheets are never consulted, and the `hidden` attribute not by *visible*.

mod attribute;
mod blocks;
mod element;
mod fast;
mod headline;
mod links;
mod marks;
mod noscript;
mod notes;
mod page;
#[cfg(feature = "quality")]
mod quality;
mod readability;
mod shape;
mod sink;
mod syntax;
mod tag;
mod target;
mod tree;

use lookalike::{Extraction, HtmlMode};

pub(crate) use attribute::TagAttributes;
use blocks::words;
use fast::FastExtractor;
pub use headline::PageIdentity;
use headline::{HeadlineFinder, PageHeadline};
pub use links::{HtmlLink, HtmlLinks};
use notes::PageNotes;
use readability::ArticleFinder;
use sink::TextSink;
use syntax::PageSyntax;
pub(crate) use syntax::{after_prologue, begins_page, begins_with};
pub(crate) use tag::{attributes_end, is_tag, raw_end};
use target::PageTarget;

/// Converts HTML to text. Keeps only buffers from one page to the next.
///
/// ```
/// use lookalike::HtmlMode;
/// use lookalike_corpus::HtmlText;
///
/// let mut text = String::new();
/// let page = "<title>t</title><h1>Caf&eacute;</h1><p>Open <b>all</b>\n day<script>1<2</script>";
/// HtmlText::new(HtmlMode::Visible.into())?.extract(page, &mut text);
/// assert_eq!(text, "Caf\u{e9}\n\nOpen all day");
/// # Ok::<(), lookalike_corpus::UnsupportedHtml>(())
/// ```
#[derive(Debug, Clone)]
pub struct HtmlText {
    extraction: Extraction,
    fast: FastExtractor,
    reading: ArticleFinder,
    #[cfg(feature = "quality")]
    answers: quality::ExtractorAnswers,
    /// A text that may replace that of the article.
    plain: String,
}

/// An error for a mode that this build lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this build cannot extract HTML in the mode `{mode}`, which needs the Cargo feature `quality`: use another mode, or install \
     lookalike with the features `full,quality`"
)]
pub struct UnsupportedHtml {
    /// The mode.
    pub mode: HtmlMode,
}

/// Reason why the text of a page is not just the main content that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fallback {
    /// It is the main content.
    #[default]
    None,
    /// Next to nothing was found, or less than half of the text of *fast* on a page that says it is no article: one of many posts.
    TooShort,
    /// The main content is far from the headline: before it, or after more words than it has itself; or it is in a footer, a menu or an aside.
    FarFromHeadline,
    /// The main content consists of lines that recur on many pages.
    Template,
}

/// Facts about a page other than its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageFacts {
    /// The subject of the page.
    pub identity: PageIdentity,
    /// The reason why its text is not just the main content.
    pub fallback: Fallback,
}

/// Anything with fewer words than this is next to nothing.
const MIN_WORDS: u32 = 50;

/// A short main content, or that of a page that is no article, is too short if *fast* finds more than this many times as many words.
const MIN_FAST_RATIO: u32 = 2;

impl HtmlText {
    /// Creates an extractor.
    ///
    /// # Errors
    /// Returns [`UnsupportedHtml`] if this build lacks the mode.
    pub fn new(extraction: Extraction) -> Result<HtmlText, UnsupportedHtml> {
        check(extraction)?;
        Ok(HtmlText {
            extraction,
            fast: FastExtractor::default(),
            reading: ArticleFinder::default(),
            #[cfg(feature = "quality")]
            answers: quality::ExtractorAnswers::default(),
            plain: String::new(),
        })
    }

    /// Returns true if the mode selects only a part of the visible text.
    pub fn chooses(&self) -> bool {
        self.extraction.mode != HtmlMode::Visible
    }

    /// Frees the buffers, which grow with the longest page.
    pub fn shrink(&mut self) {
        self.fast = FastExtractor::default();
        self.reading = ArticleFinder::default();
        self.plain = String::new();
    }

    /// Appends the text of a page to `out`. Never fails. O(length of the page) for all pages in the modes *visible*, *fast* and *main*, and for
    /// adversarial pages in the others.
    pub fn extract(&mut self, html: &str, out: &mut String) {
        let shown = noscript::shown(html);
        let html = shown.as_deref().unwrap_or(html);
        self.text(html, None, out);
    }

    /// Works like [`HtmlText::extract`], and also appends all visible text of the page to `visible`.
    pub fn extract_with_visible(
        &mut self,
        html: &str,
        out: &mut String,
        visible: &mut String,
    ) -> PageFacts {
        let shown = noscript::shown(html);
        let html = shown.as_deref().unwrap_or(html);
        let start = visible.len();
        let mut sink = TextSink::new(visible);
        let mut notes = PageNotes::new(&mut sink, self.extraction);
        let headline = headline(html, &mut notes);
        let title = notes.title.take();
        sink.finish();
        insert_title(title, start, visible);
        let fallback = self.text(html, Some(headline), out);
        PageFacts {
            identity: headline.identity,
            fallback,
        }
    }

    /// Appends the text of a page, given its headline if that is known.
    fn text(&mut self, html: &str, headline: Option<PageHeadline>, out: &mut String) -> Fallback {
        let start = out.len();
        let mut fallback = Fallback::None;
        let title = match self.extraction.mode {
            _ if PageSyntax::of(html) == PageSyntax::Xml => self.visible(html, out),
            HtmlMode::Visible => self.visible(html, out),
            HtmlMode::Fast => self.fast(html, || shape::is_reference(html), out),
            HtmlMode::Main => {
                let (title, how) = self.main(html, headline, out);
                fallback = how;
                title
            }
            HtmlMode::Quality => self.consensus(html, out),
        };
        // Only now, because the position of the article is examined after it was found.
        self.reading.recycle();
        insert_title(title, start, out);
        fallback
    }

    fn visible(&self, html: &str, out: &mut String) -> Option<String> {
        write_text(self.extraction, |target| page::walk(html, target), out)
    }

    fn fast(
        &mut self,
        html: &str,
        is_reference: impl FnOnce() -> bool,
        out: &mut String,
    ) -> Option<String> {
        self.fast.extract(html, self.extraction, is_reference, out)
    }

    /// Appends the text of the article. Uses that of the fast mode instead if the article is far from the headline and *fast* finds more, or if it may
    /// be one of many parts and *fast* finds much more, or if the article is page chrome. If that is next to nothing too, uses all text outside of
    /// chrome.
    fn main(
        &mut self,
        html: &str,
        mut headline: Option<PageHeadline>,
        out: &mut String,
    ) -> (Option<String>, Fallback) {
        let start = out.len();
        let is_reference = shape::is_reference(html);
        let found = !is_reference && self.article(html, &mut headline, out);
        let is_far = |headline: usize| self.reading.is_far_from(html, headline);
        let stands_apart = found && headline.and_then(|known| known.end).is_some_and(is_far);
        let is_chrome = found && self.reading.is_chrome(html);
        let mut fallback = Fallback::None;
        let article = words(&out.as_bytes()[start..]);
        // A post of many, or a card of a list, looks like an article. Old pages, which do not say what they are, are mostly articles.
        let may_be_part = article < MIN_WORDS || headline.is_some_and(|known| known.is_no_article);
        let mut title = None;
        // The walk through the article skips the title; that of *fast* visits it.
        if may_be_part || stands_apart || is_chrome || self.extraction.title {
            // It may be correct: it is replaced only by more than twice as much.
            let is_better = |more: u32| {
                is_chrome
                    || stands_apart && more > article
                    || may_be_part && more > MIN_FAST_RATIO * article
            };
            let fast = |own: &mut Self, plain: &mut String| {
                title = own.fast(html, || is_reference, plain);
            };
            if self.replace_if(is_better, out, start, fast) {
                fallback = match found {
                    _ if stands_apart || is_chrome => Fallback::FarFromHeadline,
                    true => Fallback::TooShort,
                    false => Fallback::None,
                };
            }
        }
        let outside = |own: &mut Self, text: &mut String| {
            own.fast.outside_chrome(html, own.extraction, text);
        };
        // The article is in a menu or footer. Then neither text can be trusted, and a page with little else is taken as a whole.
        if is_chrome {
            // *fast* believes in page chrome only if a tenth of the page is outside of it.
            self.replace_if(|own| own < MIN_WORDS, out, start, outside);
        }
        let kept = words(&out.as_bytes()[start..]);
        // Require at least half as much again: smaller differences are labels and captions.
        let is_better = |whole: u32| 2 * whole > 3 * kept;
        if kept < MIN_WORDS
            && self.replace_if(is_better, out, start, outside)
            && fallback == Fallback::None
        {
            fallback = Fallback::TooShort;
        }
        (title, fallback)
    }

    /// Replaces the text of `out` from `start` on by what `write` writes, if its number of words satisfies `is_better`. Returns true if so.
    fn replace_if(
        &mut self,
        is_better: impl FnOnce(u32) -> bool,
        out: &mut String,
        start: usize,
        write: impl FnOnce(&mut Self, &mut String),
    ) -> bool {
        // Taken out and put back, so that its memory serves all pages.
        let mut other = std::mem::take(&mut self.plain);
        other.clear();
        write(self, &mut other);
        let replaces = is_better(words(other.as_bytes()));
        if replaces {
            out.truncate(start);
            out.push_str(&other);
        }
        self.plain = other;
        replaces
    }

    /// Appends the text of the article, and finds the headline if that is not known. Returns false if the page has none, as for an adversarial one.
    fn article(&mut self, html: &str, known: &mut Option<PageHeadline>, out: &mut String) -> bool {
        let found = self.reading.read(html, |target| match known {
            Some(_) => page::walk(html, target),
            None => *known = Some(headline(html, target)),
        });
        if found {
            write_text(
                self.extraction,
                |target| self.reading.emit(html, target),
                out,
            );
        }
        found
    }

    /// Appends the text of several extractors that agrees best with the others. For pages that are too large for some of them, appends that of the
    /// mode *main*.
    #[cfg(feature = "quality")]
    fn consensus(&mut self, html: &str, out: &mut String) -> Option<String> {
        if !quality::within_limits(html) {
            return self.main(html, None, out).0;
        }
        for focus in [quality::Focus::FavorPrecision, quality::Focus::FavorRecall] {
            let mut text = String::new();
            if let Some(content) = quality::content(html, self.extraction, focus) {
                self.visible(content.as_str(), &mut text);
            }
            self.answers.add(text);
        }
        let (mut article, mut plain) = (String::new(), String::new());
        let is_reference = shape::is_reference(html);
        if !is_reference {
            self.article(html, &mut None, &mut article);
        }
        let title = self.fast(html, || is_reference, &mut plain);
        self.answers.add(article);
        self.answers.add(plain);
        out.push_str(&self.answers.take_best());
        title
    }

    /// Never called: see [`check`].
    #[cfg(not(feature = "quality"))]
    fn consensus(&mut self, html: &str, out: &mut String) -> Option<String> {
        self.fast(html, || false, out)
    }
}

/// Walks through a page, and finds its headline.
fn headline(html: &str, target: &mut dyn PageTarget) -> PageHeadline {
    let mut headings = HeadlineFinder::new(html, target);
    page::walk(html, &mut headings);
    headings.finish()
}

/// Inserts a title before the text that begins at `start`.
fn insert_title(title: Option<String>, start: usize, text: &mut String) {
    if let Some(title) = title.filter(|title| !title.is_empty()) {
        let gap = if text.len() == start { "" } else { "\n\n" };
        // Moves the text by the length of a title, once per page; the title is known only after the walk.
        text.insert_str(start, &(title + gap));
    }
}

/// Appends the text that `walk` visits. Returns the title if it is requested.
fn write_text(
    extraction: Extraction,
    walk: impl FnOnce(&mut dyn PageTarget),
    out: &mut String,
) -> Option<String> {
    let mut sink = TextSink::new(out);
    let title = notes::walk(extraction, &mut sink, walk);
    sink.finish();
    title
}

/// Refuses a mode that this build lacks.
pub(crate) fn check(extraction: Extraction) -> Result<(), UnsupportedHtml> {
    match extraction.mode {
        mode @ HtmlMode::Quality if !cfg!(feature = "quality") => Err(UnsupportedHtml { mode }),
        _ => Ok(()),
    }
}

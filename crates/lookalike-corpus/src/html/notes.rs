//! Text that counts only on request: the title of a page, the alternative texts of images, the targets of links (Vassilvitskii 2007).

use lookalike::Extraction;

use super::attribute;
use super::sink::TextSink;
use super::tag::TagName;
use super::target::{PageTarget, TextGap};

const IMAGE: TagName = TagName::new("img");
const AREA: TagName = TagName::new("area");
const LINK: TagName = TagName::new("a");

/// A target that forwards alternative texts and link targets as if they were text at the start of their element, and keeps the first title.
pub(super) struct PageNotes<'t, T> {
    pub(super) target: &'t mut T,
    extraction: Extraction,
    pub(super) title: Option<String>,
}

impl<'t, T: PageTarget> PageNotes<'t, T> {
    pub(super) fn new(target: &'t mut T, extraction: Extraction) -> PageNotes<'t, T> {
        PageNotes {
            target,
            extraction,
            title: None,
        }
    }

    fn note(&mut self, attributes: &str, name: &str) {
        if let Some(value) = attribute::value(attributes, name) {
            self.target.gap(TextGap::Space);
            self.target.verbatim(&value);
            self.target.gap(TextGap::Space);
        }
    }
}

impl<T: PageTarget> PageTarget for PageNotes<'_, T> {
    fn text(&mut self, text: &str) {
        self.target.text(text);
    }

    fn verbatim(&mut self, text: &str) {
        self.target.verbatim(text);
    }

    fn gap(&mut self, gap: TextGap) {
        self.target.gap(gap);
    }

    fn line_break(&mut self) {
        self.target.line_break();
    }

    fn set_preformatted(&mut self, preformatted: bool) {
        self.target.set_preformatted(preformatted);
    }

    fn title(&mut self, text: &str) {
        if self.extraction.title && self.title.is_none() {
            let mut title = String::new();
            let mut sink = TextSink::new(&mut title);
            sink.text(text);
            sink.finish();
            self.title = Some(title);
        }
    }

    fn open(&mut self, name: TagName, attributes: &str, self_closing: bool) {
        self.target.open(name, attributes, self_closing);
        if self.extraction.alt && (name == IMAGE || name == AREA) {
            self.note(attributes, "alt");
        }
        if self.extraction.links && (name == LINK || name == AREA) {
            self.note(attributes, "href");
        }
    }

    fn close(&mut self, name: TagName) {
        self.target.close(name);
    }
}

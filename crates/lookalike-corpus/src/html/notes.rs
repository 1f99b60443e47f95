//! Text that counts when it is asked for: the title of a page, the alternative
//! texts of images, the targets of links (V5).

use lookalike::Extraction;

use super::attribute;
use super::sink::Sink;
use super::tag::Name;
use super::target::{Gap, Target};

const IMAGE: Name = Name::new("img");
const AREA: Name = Name::new("area");
const LINK: Name = Name::new("a");

/// A target that hears of alternative texts and link targets as if they were text, each before
/// what it belongs to, and keeps the first title.
pub(super) struct Notes<'t, T> {
    pub(super) target: &'t mut T,
    extraction: Extraction,
    pub(super) title: Option<String>,
}

impl<'t, T: Target> Notes<'t, T> {
    pub(super) fn new(target: &'t mut T, extraction: Extraction) -> Notes<'t, T> {
        Notes {
            target,
            extraction,
            title: None,
        }
    }

    fn note(&mut self, attributes: &str, name: &str) {
        if let Some(value) = attribute::value(attributes, name) {
            self.target.gap(Gap::Space);
            self.target.verbatim(&value);
            self.target.gap(Gap::Space);
        }
    }
}

impl<T: Target> Target for Notes<'_, T> {
    fn text(&mut self, text: &str) {
        self.target.text(text);
    }

    fn verbatim(&mut self, text: &str) {
        self.target.verbatim(text);
    }

    fn gap(&mut self, gap: Gap) {
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
            let mut sink = Sink::new(&mut title);
            sink.text(text);
            sink.finish();
            self.title = Some(title);
        }
    }

    fn open(&mut self, name: Name, attributes: &str, self_closing: bool) {
        self.target.open(name, attributes, self_closing);
        if self.extraction.alt && (name == IMAGE || name == AREA) {
            self.note(attributes, "alt");
        }
        if self.extraction.links && (name == LINK || name == AREA) {
            self.note(attributes, "href");
        }
    }

    fn close(&mut self, name: Name) {
        self.target.close(name);
    }
}

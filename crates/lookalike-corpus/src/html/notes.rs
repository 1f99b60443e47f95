//! Text that counts only on request: the title of a page, the alternative texts of images, the targets of links (Vassilvitskii 2007).

use lookalike::Extraction;

use super::attribute;
use super::sink;
use super::tag::TagName;
use super::target::{PageEvent, PageTarget, StartTag, TextGap};

const IMAGE: TagName = TagName::new("img");

/// A target that forwards alternative texts and link targets as if they were text at the start of their element, and keeps the first title.
pub(super) struct PageNotes<'t> {
    pub(super) target: &'t mut dyn PageTarget,
    extraction: Extraction,
    pub(super) title: Option<String>,
}

/// Runs `walk` over a page or a part of it. Returns the title if it is requested.
pub(super) fn walk(
    extraction: Extraction,
    target: &mut dyn PageTarget,
    walk: impl FnOnce(&mut dyn PageTarget),
) -> Option<String> {
    if !(extraction.title || extraction.alt || extraction.links) {
        walk(target);
        return None;
    }
    let mut notes = PageNotes::new(target, extraction);
    walk(&mut notes);
    notes.title
}

impl<'t> PageNotes<'t> {
    pub(super) fn new(target: &'t mut dyn PageTarget, extraction: Extraction) -> PageNotes<'t> {
        PageNotes {
            target,
            extraction,
            title: None,
        }
    }

    fn note(&mut self, attributes: &str, name: &str) {
        if let Some(value) = attribute::value(attributes, name) {
            self.target.receive(PageEvent::Gap(TextGap::Space));
            self.target.receive(PageEvent::Verbatim(&value));
            self.target.receive(PageEvent::Gap(TextGap::Space));
        }
    }
}

impl PageTarget for PageNotes<'_> {
    fn receive(&mut self, event: PageEvent<'_>) {
        self.target.receive(event);
        match event {
            PageEvent::Title(text) if self.extraction.title && self.title.is_none() => {
                self.title = Some(sink::text_of(text));
            }
            PageEvent::Open(StartTag {
                name, attributes, ..
            }) => {
                if self.extraction.alt && (name == IMAGE || name == TagName::AREA) {
                    self.note(attributes, "alt");
                }
                if self.extraction.links && (name == TagName::LINK || name == TagName::AREA) {
                    self.note(attributes, "href");
                }
            }
            _ => {}
        }
    }
}

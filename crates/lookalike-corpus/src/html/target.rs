//! The receiver of what a walk through a page finds.

use super::tag::Name;

/// A receiver of the parts of a page. Calls come in page order; nothing inside a `template`, a
/// script or a style sheet is told.
pub(super) trait Target {
    /// Text with character references.
    fn text(&mut self, text: &str);
    /// Text in which `&` means itself.
    fn verbatim(&mut self, text: &str);
    /// Separates the text that follows from the text before.
    fn gap(&mut self, gap: Gap);
    /// A `br`.
    fn line_break(&mut self);
    /// Keeps white space from here on, or collapses it.
    fn set_preformatted(&mut self, preformatted: bool);
    /// The page's title, with character references.
    fn title(&mut self, _text: &str) {}
    /// A start tag, before its gap; `attributes` is what stands between its name and its end.
    fn open(&mut self, _name: Name, _attributes: &str, _self_closing: bool) {}
    /// An end tag, after its gap.
    fn close(&mut self, _name: Name) {}
}

/// A gap between two pieces of text, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

impl Gap {
    /// The white space that it is written as.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Gap::None => "",
            Gap::Space => " ",
            Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        }
    }
}

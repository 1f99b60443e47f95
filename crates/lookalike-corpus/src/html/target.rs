//! The receiver of the results of a walk through a page.

use super::tag::TagName;

/// A receiver of the parts of a page, which ignores those that it has no method for. Calls come in page order; nothing inside a
/// `template`, a script or a style sheet is told.
pub(super) trait PageTarget {
    /// Text with character references.
    fn text(&mut self, _text: &str) {}
    /// Text in which `&` means itself.
    fn verbatim(&mut self, _text: &str) {}
    /// Separates the text that follows from the text before.
    fn gap(&mut self, _gap: TextGap) {}
    /// A `br`.
    fn line_break(&mut self) {}
    /// Keeps white space from here on, or collapses it.
    fn set_preformatted(&mut self, _preformatted: bool) {}
    /// The page's title, with character references.
    fn title(&mut self, _text: &str) {}
    /// Receives a start tag, before its gap. `attributes` is the text between its name and its end.
    fn open(&mut self, _name: TagName, _attributes: &str, _self_closing: bool) {}
    /// Receives an end tag, after its gap.
    fn close(&mut self, _name: TagName) {}
}

/// A gap between two pieces of text, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextGap {
    None,
    Space,
    Line,
    Paragraph,
}

impl TextGap {
    /// Returns the white space that represents it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            TextGap::None => "",
            TextGap::Space => " ",
            TextGap::Line => "\n",
            TextGap::Paragraph => "\n\n",
        }
    }
}

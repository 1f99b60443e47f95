//! The receiver of the results of a walk through a page.

use super::tag::TagName;

/// A receiver of the parts of a page. Calls come in page order; parts inside a `template`, a script or a style sheet are skipped.
pub(super) trait PageTarget {
    /// Receives text with character references.
    fn text(&mut self, text: &str);
    /// Receives text in which `&` stands for itself.
    fn verbatim(&mut self, text: &str);
    /// Separates the following text from the text before.
    fn gap(&mut self, gap: TextGap);
    /// Receives a `br`.
    fn line_break(&mut self);
    /// Switches between keeping and collapsing white space from here on.
    fn set_preformatted(&mut self, preformatted: bool);
    /// Receives the title of the page, with character references.
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

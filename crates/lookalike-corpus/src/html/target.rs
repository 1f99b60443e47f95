//! The receiver of the results of a walk through a page.

use super::tag::TagName;

/// A receiver of the parts of a page, in page order. Nothing inside a `template`, a script or a style sheet is told.
pub(super) trait PageTarget {
    fn receive(&mut self, event: PageEvent<'_>);
}

/// A part of a page.
#[derive(Debug, Clone, Copy)]
pub(super) enum PageEvent<'p> {
    /// Text with character references.
    Text(&'p str),
    /// Text in which `&` means itself.
    Verbatim(&'p str),
    /// Separates the text that follows from the text before.
    Gap(TextGap),
    /// A `br`.
    LineBreak,
    /// Keeps white space from here on, or collapses it.
    Preformatted(bool),
    /// The page's title, with character references.
    Title(&'p str),
    /// A start tag, before its gap.
    Open(StartTag<'p>),
    /// An end tag, after its gap.
    Close(TagName),
}

/// A start tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTag<'p> {
    pub(super) name: TagName,
    /// The text between its name and its end.
    pub(super) attributes: &'p str,
    pub(super) self_closing: bool,
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

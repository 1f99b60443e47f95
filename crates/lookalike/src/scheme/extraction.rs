//! Extraction of text from pages: the part of a scheme that acts before the first word is cut.

use std::fmt;

use super::parse_error::option_from_str;

crate::words! {
    /// Part of an HTML page's text that is compared, from the simplest mode to the slowest. The crate that reads documents implements the modes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum HtmlMode {
        /// All text that a reader of the page would see.
        Visible = "visible",
        /// Blocks of text rather than of links and labels; one pass, no tree.
        Fast = "fast",
        /// The main content, by the rules of the browsers' reading views; on reference pages, the text that `Fast` finds.
        #[default]
        Main = "main",
        /// The main content, by several extractors: the result that agrees best with the others.
        Quality = "quality",
    }
}

impl HtmlMode {
    /// Returns the name in a scheme, with the version of the rules if the mode has rules.
    const fn versioned(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Fast => "fast/1",
            Self::Main => "main/1",
            Self::Quality => "quality/1",
        }
    }
}

option_from_str!(HtmlMode, "HTML mode", "visible, fast, main or quality");

/// Extraction of text from HTML: the mode, and the other parts of the page that count as text.
///
/// In a scheme: `html=main/1+title+alt+links`, with the version of the rules if the mode has rules.
///
/// ```
/// use lookalike::scheme::{Extraction, HtmlMode};
/// let main = Extraction { mode: HtmlMode::Main, title: true, ..Extraction::default() };
/// assert_eq!(main.to_string(), "main/1+title");
/// assert_eq!("main/1+title".parse(), Ok(main));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extraction {
    /// The part of the page's text that is compared.
    pub mode: HtmlMode,
    /// True if the page's title is put first.
    pub title: bool,
    /// True if the alternative texts of images count.
    pub alt: bool,
    /// True if the targets of links count, as they are written.
    pub links: bool,
}

impl From<HtmlMode> for Extraction {
    /// Takes the text of this mode alone.
    fn from(mode: HtmlMode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }
}

impl fmt::Display for Extraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.versioned())?;
        for (word, on) in [
            ("title", self.title),
            ("alt", self.alt),
            ("links", self.links),
        ] {
            if on {
                write!(f, "+{word}")?;
            }
        }
        Ok(())
    }
}

option_from_str!(
    Extraction,
    "HTML extraction",
    "visible, fast/1, main/1 or quality/1, then +title, +alt, +links where wanted",
    parse_extraction
);

fn parse_extraction(text: &str) -> Option<Extraction> {
    let mut words = text.split('+');
    let name = words.next()?;
    let mut modes = HtmlMode::ALL.into_iter();
    let mode = modes.find(|mode| mode.versioned() == name)?;
    // A part is accepted only in its place: parts have one order, so that a scheme has one text. The clone looks ahead: a word that is not
    // the expected one is left for the next part.
    let mut has = |word| words.clone().next() == Some(word) && words.next().is_some();
    let parsed = Extraction {
        mode,
        title: has("title"),
        alt: has("alt"),
        links: has("links"),
    };
    // Parts that are unknown or out of place were not taken, so the text of the result differs.
    (parsed.to_string() == text).then_some(parsed)
}

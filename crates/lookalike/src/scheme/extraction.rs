//! How a page becomes text: the part of a scheme that acts before the first word is cut.

use std::fmt;
use std::str::FromStr;

use super::ParseOptionError;

/// Which text of an HTML page counts. The modes themselves are in the crate that reads documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HtmlMode {
    /// All that a reader of the page would see.
    #[default]
    Visible,
    /// Blocks that are text rather than links and labels; one pass, no tree.
    Fast,
    /// The main content, by the rules of the browsers' reading views; of reference pages what `Fast` finds.
    Main,
    /// The main content, by several extractors: the answer that agrees best with the others.
    Quality,
    /// `Fast` as it was when blanks around buttons in a line were lost: for sketches made with it.
    Fast1,
    /// `Main` as it was before reference pages were told apart: for sketches made with it.
    Main1,
    /// `Main` with the reading view of a library, much slower: for sketches made with it.
    Main2,
    /// `Main` as it was when a page kept what was found, however far from its headline: for sketches made with it.
    Main3,
    /// `Quality` as it was when one library decided: for sketches made with it.
    Quality1,
}

impl HtmlMode {
    /// Every mode, from the plainest to the slowest, then those of former versions.
    pub const ALL: [Self; 9] = [
        Self::Visible,
        Self::Fast,
        Self::Main,
        Self::Quality,
        Self::Fast1,
        Self::Main1,
        Self::Main2,
        Self::Main3,
        Self::Quality1,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Fast => "fast",
            Self::Main => "main",
            Self::Quality => "quality",
            Self::Fast1 => "fast/1",
            Self::Main1 => "main/1",
            Self::Main2 => "main/2",
            Self::Main3 => "main/3",
            Self::Quality1 => "quality/1",
        }
    }

    /// The name in a scheme: with the version of the rules where rules choose.
    const fn versioned(self) -> &'static str {
        match self {
            Self::Fast => "fast/2",
            Self::Main => "main/4",
            Self::Quality => "quality/2",
            Self::Visible
            | Self::Fast1
            | Self::Main1
            | Self::Main2
            | Self::Main3
            | Self::Quality1 => self.name(),
        }
    }
}

impl fmt::Display for HtmlMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for HtmlMode {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let known = Self::ALL.into_iter().find(|mode| mode.name() == text);
        known.ok_or_else(|| {
            ParseOptionError::new(
                "HTML mode",
                "visible, fast, main or quality; as they were: fast/1, main/1, main/2, main/3 or quality/1",
                text,
            )
        })
    }
}

/// What becomes of HTML: the mode, and what else of the page is text (V5).
///
/// In a scheme: `html=main/4+title+alt+links`, with the version of the rules where rules choose.
/// `html=visible` is what every scheme meant before there were modes, so it is left out.
///
/// ```
/// use lookalike::scheme::{Extraction, HtmlMode};
/// let main = Extraction { mode: HtmlMode::Main, title: true, ..Extraction::default() };
/// assert_eq!(main.to_string(), "main/4+title");
/// assert_eq!("main/4+title".parse(), Ok(main));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Extraction {
    /// Which text counts.
    pub mode: HtmlMode,
    /// Whether the page's title stands first.
    pub title: bool,
    /// Whether the alternative texts of images count.
    pub alt: bool,
    /// Whether the targets of links count, as they are written.
    pub links: bool,
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

impl FromStr for Extraction {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let mut words = text.split('+');
        let name = words.next().unwrap_or_default();
        let mode = HtmlMode::ALL
            .into_iter()
            .find(|mode| mode.versioned() == name);
        let parsed = mode.map(|mode| {
            let mut has = |word| words.clone().next() == Some(word) && words.next().is_some();
            let (title, alt, links) = (has("title"), has("alt"), has("links"));
            Self {
                mode,
                title,
                alt,
                links,
            }
        });
        parsed
            .filter(|parsed| parsed.to_string() == text)
            .ok_or_else(|| {
                ParseOptionError::new(
                    "HTML extraction of this build",
                    "visible, fast/1, fast/2, main/1, main/2, main/3, main/4, quality/1 or quality/2, then +title, +alt, +links where wanted",
                    text,
                )
            })
    }
}

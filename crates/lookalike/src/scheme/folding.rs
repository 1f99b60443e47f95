//! Folding of variants of characters.

use std::fmt;

use super::parse_error::option_from_str;

/// Variants of characters that count as one, in addition to the effect of the normalisation form; none by default. `vectors/README.md` lists the
/// characters of each.
///
/// ```
/// use lookalike::scheme::Folding;
/// let folding: Folding = "punctuation,accents".parse()?;
/// assert!(folding.accents && folding.punctuation);
/// assert_eq!(folding.to_string(), "accents,punctuation");
/// # Ok::<(), lookalike::scheme::ParseOptionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Folding {
    /// Letters of Latin, Greek and Cyrillic with and without accents.
    pub accents: bool,
    /// Kinds of quotation marks, and kinds of dashes.
    pub punctuation: bool,
    /// Arabic words with and without tatweel and vowel signs.
    pub arabic: bool,
    /// Full-width and half-width characters and the usual ones.
    pub width: bool,
}

impl Folding {
    /// Returns true if nothing is folded.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Returns each kind with its name, in the order of a scheme.
    fn kinds(&mut self) -> [(&'static str, &mut bool); 4] {
        [
            ("accents", &mut self.accents),
            ("punctuation", &mut self.punctuation),
            ("arabic", &mut self.arabic),
            ("width", &mut self.width),
        ]
    }
}

impl fmt::Display for Folding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A copy, because `kinds` also serves parsing and lends the fields for writing.
        let mut own = *self;
        let kinds = own.kinds().into_iter().filter(|(_, on)| **on);
        let names: Vec<&str> = kinds.map(|(name, _)| name).collect();
        match names.is_empty() {
            true => f.pad("none"),
            false => f.pad(&names.join(",")),
        }
    }
}

option_from_str!(
    Folding,
    "folding",
    "accents, punctuation, arabic or width, separated by commas, or none",
    parse_folding
);

/// Accepts the kinds in any order.
fn parse_folding(text: &str) -> Option<Folding> {
    let mut folding = Folding::default();
    if text == "none" {
        return Some(folding);
    }
    for name in text.split(',') {
        let mut kinds = folding.kinds().into_iter();
        let (_, on) = kinds.find(|(kind, _)| *kind == name)?;
        *on = true;
    }
    Some(folding)
}

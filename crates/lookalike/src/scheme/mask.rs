//! Masks: numbers and dates that are replaced before a text is cut into words.

use std::fmt;

use super::parse_error::option_from_str;

/// Numbers and dates that are replaced by `0` (Manku et al. 2007, section 6); none by default.
///
/// ```
/// use lookalike::scheme::Mask;
/// let both = Mask { numbers: true, dates: true };
/// assert_eq!(both.to_string(), "numbers,dates");
/// assert_eq!("numbers,dates".parse(), Ok(both));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mask {
    /// True if each number becomes `0`.
    pub numbers: bool,
    /// True if each date and time of day becomes `0`.
    pub dates: bool,
}

impl Mask {
    const WORDS: [(&str, Self); 4] = [
        ("none", Self::of(false, false)),
        ("numbers", Self::of(true, false)),
        ("dates", Self::of(false, true)),
        ("numbers,dates", Self::of(true, true)),
    ];

    const fn of(numbers: bool, dates: bool) -> Self {
        Self { numbers, dates }
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, mask)| mask == self);
        f.pad(word.map_or("none", |(word, _)| word))
    }
}

option_from_str!(
    Mask,
    "mask",
    "none, numbers, dates or numbers,dates",
    |text: &str| {
        let known = Self::WORDS.iter().find(|(word, _)| *word == text);
        known.map(|(_, mask)| *mask)
    }
);

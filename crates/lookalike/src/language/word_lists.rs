//! Lists of stop words, and stemmers, by language.

use std::collections::HashSet;
use std::sync::OnceLock;

use frostem::{Algorithm, Stemmer};

use super::Language;

/// The stop words of a language.
pub(crate) type StopWordList = HashSet<&'static str>;

/// Returns the stop words of a language, if there is a list.
pub(crate) fn stop_words(language: Language) -> Option<&'static StopWordList> {
    // Made on first use. There are at most 128 languages (`CODES`).
    static LISTS: [OnceLock<Option<StopWordList>>; 128] = [const { OnceLock::new() }; 128];
    let list = LISTS[usize::from(language.0)].get_or_init(|| {
        let words = stop_words::lookup(language.code())?;
        Some(words.iter().copied().collect())
    });
    list.as_ref()
}

/// Returns the stemmer of a language, if there is one.
pub(crate) fn stemmer(language: Language) -> Option<Stemmer> {
    let algorithm = Algorithm::from_name(language.code()).ok()?;
    Some(Stemmer::new(algorithm))
}

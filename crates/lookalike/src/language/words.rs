//! Stop words and stems: filtering of words after they are cut.

use std::borrow::Cow;

use frostem::Stemmer;

use super::detect;
use super::word_lists::{StopWordList, stemmer, stop_words};
use crate::scheme::{Scheme, Stemming, StopWords};
use crate::text::WordBatch;

/// Maximum bytes of a word that is stemmed: longer ones are not words of a language.
const MAX_WORD_BYTES: usize = 64;

/// Removes stop words and replaces the other words by their stems. Use one per thread.
#[derive(Clone)]
pub(crate) struct WordListFilter {
    stop: StopWords,
    stem: Stemming,
    lists: Vec<&'static StopWordList>,
    stemmer: Option<Stemmer>,
    out: WordBatch,
}

impl std::fmt::Debug for WordListFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordListFilter")
            .field("stop", &self.stop)
            .field("stem", &self.stem)
            .finish_non_exhaustive()
    }
}

impl WordListFilter {
    /// Creates the filter of a scheme; `None` if there is nothing to do.
    pub(crate) fn new(scheme: &Scheme) -> Option<Self> {
        let (stop, stem) = (scheme.stop, scheme.stem);
        if (stop, stem) == (StopWords::NONE, Stemming::NONE) {
            return None;
        }
        let lists = stop.languages().filter_map(stop_words).collect();
        Some(Self {
            stop,
            stem,
            lists,
            stemmer: stem.language().and_then(stemmer),
            out: WordBatch::default(),
        })
    }

    /// Chooses the lists and the stemmer for a new text.
    pub(crate) fn begin(&mut self, text: &str) {
        if !(self.stop.is_auto() || self.stem.is_auto()) {
            return;
        }
        // Once per text, not once per word: the lists of one language apply to the whole text.
        let language = detect(text);
        if self.stop.is_auto() {
            self.lists = language.and_then(stop_words).into_iter().collect();
        }
        if self.stem.is_auto() {
            self.stemmer = language.and_then(stemmer);
        }
    }

    /// Filters a word; `None` if it is left out.
    pub(crate) fn word<'w>(&self, word: &'w str) -> Option<Cow<'w, str>> {
        if self.lists.iter().any(|list| list.contains(word)) {
            return None;
        }
        let stemmer = self.stemmer.filter(|_| word.len() <= MAX_WORD_BYTES);
        let stem = stemmer.map(|stemmer| stemmer.stem(word));
        // Ignore a stemmer that leaves nothing: it has cut too much.
        let stem = stem.filter(|stem| !stem.is_empty());
        Some(stem.unwrap_or(Cow::Borrowed(word)))
    }

    /// Filters the words of a batch.
    pub(crate) fn apply(&mut self, batch: &WordBatch) -> &WordBatch {
        // Taken out, because `word` borrows the whole filter.
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        for word in batch.words() {
            if let Some(word) = self.word(word) {
                out.push(&word);
            }
        }
        self.out = out;
        &self.out
    }
}

//! Detection of nouns, for the weights of Yu, Hu and Zhang.
//!
//! English: the transformation-based tagger of Brill (1992) with the model of harper-brill 3.0.0 (Apache-2.0; `data/english_tags.txt` has it in the
//! form that is read here): the most frequent tag of 26,900 words, then 201 rules that change tags depending on their neighbours. A word that the
//! model does not know is a noun if it is all letters. Chinese: the tag of jieba's dictionary, or of its hidden Markov model for words that are not
//! in it; nouns are the words whose tag begins with n.
//!
//! The run that contains a word decides which of them tags it, as it decides which dictionary cuts it: Han runs are Chinese, Latin letters English,
//! and words of other scripts are not nouns. The rules see one line at a time, and within it a sequence of words that is not interrupted by another
//! script. So a line in another language does not change the tags of any other word.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::dictionary::{CHINESE, RunDictionary};

/// A universal part of speech, named as in the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NounTag(&'static str);

/// Condition under which the tag of a word is changed.
enum NounCondition {
    /// The word at this offset is this one.
    Word(isize, &'static str),
    /// The word at this offset has this tag.
    Tagged(isize, NounTag),
    /// A word from here to just before this offset, or from this offset to just before here, has this tag.
    Any(isize, NounTag),
    /// The words before and after have these tags.
    Between(NounTag, NounTag),
}

struct NounRule {
    from: NounTag,
    to: NounTag,
    conditions: Vec<NounCondition>,
}

struct NounModel {
    tags: HashMap<&'static str, NounTag>,
    rules: Vec<NounRule>,
}

static ENGLISH: LazyLock<NounModel> =
    LazyLock::new(|| NounModel::parse(include_str!("../../data/english_tags.txt")));

impl NounModel {
    fn parse(text: &'static str) -> Self {
        let mut model = Self {
            tags: HashMap::new(),
            rules: Vec::new(),
        };
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next() {
                Some("words") => {
                    let tag = NounTag(words.next().expect("a tag follows"));
                    model.tags.extend(words.map(|word| (word, tag)));
                }
                Some("patch") => model.rules.push(NounRule::parse(&mut words)),
                other => unreachable!("the model has no line {other:?}"),
            }
        }
        model
    }

    /// Returns the tags of consecutive words.
    fn tag(&self, words: &[&str]) -> Vec<Option<NounTag>> {
        let mut tags: Vec<_> = words
            .iter()
            .map(|word| self.tags.get(word.to_lowercase().as_str()).copied())
            .collect();
        // Apply rule by rule to all words, in the order in which the rules were learned (Brill 1992): each rule sees the changes of the rules before
        // it.
        for rule in &self.rules {
            // In place and from left to right, as in Brill's tagger: later words see earlier changes of the same rule.
            for at in 0..words.len() {
                let holds = |condition: &NounCondition| condition.holds(words, &tags, at);
                if tags[at] == Some(rule.from) && rule.conditions.iter().all(holds) {
                    tags[at] = Some(rule.to);
                }
            }
        }
        tags
    }
}

impl NounRule {
    fn parse(words: &mut impl Iterator<Item = &'static str>) -> Self {
        let mut next = || words.next();
        let complete = "the model is complete";
        let (from, to) = (
            NounTag(next().expect(complete)),
            NounTag(next().expect(complete)),
        );
        let mut conditions = Vec::new();
        while let Some(kind) = next() {
            let (first, second) = (next().expect(complete), next().expect(complete));
            let place = || first.parse().expect(complete);
            conditions.push(match kind {
                "word" => NounCondition::Word(place(), second),
                "tag" => NounCondition::Tagged(place(), NounTag(second)),
                "any" => NounCondition::Any(place(), NounTag(second)),
                _ => NounCondition::Between(NounTag(first), NounTag(second)),
            });
        }
        Self {
            from,
            to,
            conditions,
        }
    }
}

impl NounCondition {
    fn holds(&self, words: &[&str], tags: &[Option<NounTag>], at: usize) -> bool {
        let tagged = |at: Option<usize>, tag| {
            at.and_then(|at| tags.get(at))
                .is_some_and(|&it| it == Some(tag))
        };
        match *self {
            Self::Word(places, word) => at
                .checked_add_signed(places)
                .and_then(|at| words.get(at))
                .is_some_and(|other| begins_like(other, word)),
            Self::Tagged(places, tag) => tagged(at.checked_add_signed(places), tag),
            Self::Any(places, tag) => at.checked_add_signed(places).is_some_and(|far| {
                (far.min(at)..far.max(at)).any(|between| tagged(Some(between), tag))
            }),
            Self::Between(before, behind) => {
                tagged(at.checked_sub(1), before) && tagged(at.checked_add(1), behind)
            }
        }
    }
}

/// Returns true if the shorter word is a prefix of the longer one, ignoring ASCII case: the comparison with which the rules were learned.
fn begins_like(a: &str, b: &str) -> bool {
    a.chars()
        .zip(b.chars())
        .all(|(a, b)| a.eq_ignore_ascii_case(&b))
}

/// The position of a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordPosition {
    /// The number of its line, from 0.
    pub(crate) line: usize,
    /// The dictionary of the run in which it begins.
    pub(crate) dictionary: RunDictionary,
}

/// Source of a word's tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tagger {
    /// None: the word is not a noun.
    None,
    English,
    Chinese,
}

impl Tagger {
    fn of(word: &str, dictionary: RunDictionary) -> Self {
        match dictionary {
            RunDictionary::Chinese => Self::Chinese,
            RunDictionary::Other => Self::None,
            RunDictionary::None => {
                let mut letters = word.chars().filter(|c| c.is_alphabetic());
                // Numbers are part of a sentence, too.
                match letters.all(is_latin) {
                    true => Self::English,
                    false => Self::None,
                }
            }
        }
    }
}

/// Returns true for a letter in the blocks from Basic Latin to Latin Extended-B, in Latin Extended Additional, a Latin ligature or a full-width
/// letter.
fn is_latin(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{fb00}'..='\u{fb06}' | '\u{ff21}'..='\u{ff5a}'
    )
}

/// Returns true for each noun among a text's words, in text order; `places` has the place of each word.
pub(crate) fn nouns(words: &[&str], places: &[WordPosition]) -> Vec<bool> {
    let source =
        |(word, place): (&&str, &WordPosition)| (place.line, Tagger::of(word, place.dictionary));
    let sources: Vec<_> = words.iter().zip(places).map(source).collect();
    let mut nouns = Vec::with_capacity(words.len());
    // Rules see no further than consecutive words of one line and one tagger.
    for context in sources.chunk_by(|a, b| a == b) {
        let words = &words[nouns.len()..][..context.len()];
        match context[0].1 {
            Tagger::None => nouns.resize(nouns.len() + words.len(), false),
            Tagger::English => nouns.extend(english_nouns(words)),
            Tagger::Chinese => nouns.extend(words.iter().map(|word| is_chinese_noun(word))),
        }
    }
    nouns
}

fn english_nouns(words: &[&str]) -> Vec<bool> {
    let tags = ENGLISH.tag(words);
    let is_noun = |(word, tag): (&&str, Option<NounTag>)| match tag {
        Some(tag) => matches!(tag.0, "NOUN" | "PROPN"),
        None => word.chars().all(char::is_alphabetic),
    };
    words.iter().zip(tags).map(is_noun).collect()
}

fn is_chinese_noun(word: &str) -> bool {
    // `tag` may cut the word again; its last part decides.
    let tags = CHINESE.tag(word, true);
    tags.last().is_some_and(|last| last.tag.starts_with('n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_words_are_tagged_by_their_neighbours() {
        let words = [
            "they",
            "plan",
            "to",
            "plan",
            "the",
            "plan",
            "of",
            "a",
            "frobnicator",
        ];
        let nouns = english_nouns(&words);
        assert!(nouns[5] && nouns[8] && !nouns[0] && !nouns[4], "{nouns:?}");
        assert!(!nouns[3], "to plan: {nouns:?}");
        assert_eq!((ENGLISH.tags.len(), ENGLISH.rules.len()), (26_900, 201));
    }

    #[test]
    fn chinese_words_have_the_tags_of_the_dictionary() {
        for (word, noun) in [
            ("北京", true),
            ("法律", true),
            ("来到", false),
            ("的", false),
        ] {
            assert_eq!(is_chinese_noun(word), noun, "{word}");
        }
    }
}

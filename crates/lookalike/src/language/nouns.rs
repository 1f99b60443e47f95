//! Detection of nouns, for the weights of Yu, Hu and Zhang.
//!
//! English: the transformation-based tagger of Brill (1992) with the model of harper-brill 3.0.0
//! (Apache-2.0; `data/english_tags.txt` holds it in the form read here): the commonest tag of
//! 26,900 words, then 201 rules that change tags by their neighbours. A word that the model does
//! not know is a noun when it is all letters. Chinese: the tag of jieba's dictionary, or of its
//! hidden Markov model for words that are not in it; nouns are those whose tag begins with n.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::dictionary::CHINESE;
use super::{Language, detect};

/// Universal parts of speech, as the model calls them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NounTag(&'static str);

/// Condition at a word for its tag to be changed.
enum NounCondition {
    /// The word so many places on is this one.
    Word(isize, &'static str),
    /// The word so many places on has this tag.
    Tagged(isize, NounTag),
    /// A word from here to just before the place so far on, or from there to just before here, has
    /// this tag.
    Any(isize, NounTag),
    /// The words before and behind have these tags.
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

    /// The tags of a text's words.
    fn tag(&self, words: &[&str]) -> Vec<Option<NounTag>> {
        let mut tags: Vec<_> = words
            .iter()
            .map(|word| self.tags.get(word.to_lowercase().as_str()).copied())
            .collect();
        for rule in &self.rules {
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

/// Returns true if the shorter word is the beginning of the longer one, case aside: what the rules were
/// learned with.
fn begins_like(a: &str, b: &str) -> bool {
    a.chars()
        .zip(b.chars())
        .all(|(a, b)| a.eq_ignore_ascii_case(&b))
}

/// For each of a text's words, in text order, whether it is a noun; none is where the text is
/// neither English nor Chinese.
pub(crate) fn nouns(text: &str, words: &[&str]) -> Vec<bool> {
    let code = detect(text).map(Language::code);
    match code {
        Some("en") => english_nouns(words),
        Some("zh") => words.iter().map(|word| is_chinese_noun(word)).collect(),
        _ => vec![false; words.len()],
    }
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

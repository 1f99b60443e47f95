//! Words of scripts without spaces between words, from dictionaries (point 2 of the definition in [`crate::text`], `languages`).
//!
//! The run decides which dictionary cuts it, not the document: a run with kana is Japanese, one of Han alone Chinese. So a sentence has the same
//! words in every document, and a near-duplicate that gained a paragraph in another language keeps its features.

use std::sync::LazyLock;

use icu_segmenter::WordSegmenter;
use icu_segmenter::WordSegmenterBorrowed;
use jieba_rs::Jieba;
use unicode_segmentation::UnicodeSegmentation;

/// Number of characters after which a longer run is cut, because the cutters' memory grows with the run.
const MAX_RUN_CHARS: usize = 1024;

/// Maximum memory of [`CHINESE`], while it is read and afterwards.
pub(crate) const CHINESE_BYTES: u64 = 64 << 20;

/// Chinese words and their parts of speech, read at first use.
pub(crate) static CHINESE: LazyLock<Jieba> = LazyLock::new(|| {
    let mut jieba = Jieba::empty();
    visit_chinese_words(|word, frequency, tag| {
        jieba.add_word(word, Some(frequency), Some(tag));
    })
    .expect("the dictionary is complete");
    jieba
});

/// Calls `visit` with each word of jieba's dictionary in its order, with its frequency and part of speech, from `data/chinese_words.zst`, which
/// `scripts/pack-dictionary` describes: the crate's own copy is .9 MB larger.
fn visit_chinese_words(mut visit: impl FnMut(&str, usize, &str)) -> Option<()> {
    let packed = include_bytes!("../../data/chinese_words.zst");
    let columns = String::from_utf8(zstd::decode_all(&packed[..]).ok()?).ok()?;
    let mut columns = columns.split("\n\n").map(str::lines);
    let (words, frequencies, tags) = (columns.next()?, columns.next()?, columns.next()?);
    let mut word = String::new();
    for ((differs, frequency), tag) in words.zip(frequencies).zip(tags) {
        // The first byte counts, from `0` up, the characters that the word shares with the one before it.
        let shared = usize::from(differs.as_bytes().first()? - b'0');
        let end = word
            .char_indices()
            .nth(shared)
            .map_or(word.len(), |(at, _)| at);
        word.truncate(end);
        word.push_str(&differs[1..]);
        visit(&word, frequency.parse().ok()?, tag);
    }
    Some(())
}

/// Words of Japanese, Thai, Lao, Khmer and Burmese. Uses dictionaries, not the neural networks of the same library, which compute in floating point.
static OTHERS: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(Default::default()));

/// Script of a character, which decides on its run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Any other script: the rules of Unicode apply.
    Other,
    Han,
    Kana,
    Thai,
    Lao,
    Burmese,
    Khmer,
}

impl Script {
    pub(super) fn of(c: char) -> Self {
        match c {
            '\0'..'\u{e01}' => Self::Other,
            '\u{e01}'..='\u{e7f}' => Self::Thai,
            '\u{e80}'..='\u{eff}' => Self::Lao,
            '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' => {
                Self::Burmese
            }
            '\u{1780}'..='\u{17ff}' => Self::Khmer,
            '\u{3041}'..='\u{309f}'
            | '\u{30a1}'..='\u{30fa}'
            | '\u{30fc}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{ff66}'..='\u{ff9f}' => Self::Kana,
            '\u{3005}'..='\u{3007}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Self::Han,
            _ => Self::Other,
        }
    }

    /// Returns true if characters of both scripts belong to one run.
    fn joins(self, other: Self) -> bool {
        let east = |script| matches!(script, Self::Han | Self::Kana);
        self == other || east(self) && east(other)
    }
}

/// Returns true if a dictionary cuts a part of this piece.
pub(crate) fn has_runs(piece: &str) -> bool {
    piece.chars().any(|c| Script::of(c) != Script::Other)
}

/// Dictionary that cuts a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunDictionary {
    /// None: the rules of Unicode cut the run.
    None,
    /// jieba's dictionary, for a run of Han alone.
    Chinese,
    /// One of ICU's dictionaries.
    Other,
}

/// Returns the runs of a piece in order, each with its dictionary. Linear time.
pub(crate) fn runs(piece: &str) -> impl Iterator<Item = (&str, RunDictionary)> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let (run, dictionary) = first_run(rest)?;
        rest = &rest[run.len()..];
        Some((run, dictionary))
    })
}

fn first_run(text: &str) -> Option<(&str, RunDictionary)> {
    let script = Script::of(text.chars().next()?);
    // Cut a run at a fixed number of characters from its beginning, so that near-duplicates whose runs begin alike are cut alike.
    let longest = match script {
        // Unicode's rules need no memory for a run.
        Script::Other => usize::MAX,
        _ => MAX_RUN_CHARS,
    };
    let end = text
        .char_indices()
        .enumerate()
        .find(|&(number, (_, c))| number == longest || !script.joins(Script::of(c)))
        .map_or(text.len(), |(_, (at, _))| at);
    let run = &text[..end];
    let is_kana = |c| Script::of(c) == Script::Kana;
    let dictionary = match script {
        Script::Other => RunDictionary::None,
        Script::Han | Script::Kana if !run.chars().any(is_kana) => RunDictionary::Chinese,
        _ => RunDictionary::Other,
    };
    Some((run, dictionary))
}

/// Calls `visit` with the words of a piece: dictionaries cut the runs of their scripts, Unicode's rules all others.
pub(crate) fn words<'t>(piece: &'t str, mut visit: impl FnMut(&'t str)) {
    for (run, dictionary) in runs(piece) {
        match dictionary {
            RunDictionary::None => run.unicode_words().for_each(&mut visit),
            RunDictionary::Chinese => chinese_words(run, &mut visit),
            RunDictionary::Other => other_words(run, &mut visit),
        }
    }
}

fn is_word(segment: &str) -> bool {
    segment.chars().any(char::is_alphanumeric)
}

fn chinese_words<'t>(run: &'t str, visit: &mut impl FnMut(&'t str)) {
    // `true` also finds words that are not in the dictionary, by the library's hidden Markov model.
    let tokens = CHINESE.cut(run, true);
    let words = tokens.iter().map(|token| token.word);
    words.filter(|word| is_word(word)).for_each(visit);
}

fn other_words<'t>(run: &'t str, visit: &mut impl FnMut(&'t str)) {
    let mut start = 0;
    for end in OTHERS.segment_str(run) {
        let segment = &run[start..end];
        if is_word(segment) {
            visit(segment);
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(piece: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(piece, |word| found.push(word.to_owned()));
        found
    }

    /// jieba's suggested frequency of a word depends on its own frequency, the sum of all, and how the word is cut.
    #[test]
    fn the_packed_dictionary_is_the_one_of_jieba() {
        let whole = Jieba::new();
        let tags = |jieba: &Jieba, word: &str| -> Vec<String> {
            let tags = jieba.tag(word, false);
            tags.iter().map(|tag| tag.tag.to_owned()).collect()
        };
        let mut words = 0;
        visit_chinese_words(|word, _, _| {
            assert!(whole.has_word(word), "{word}");
            assert_eq!(
                CHINESE.suggest_freq(word),
                whole.suggest_freq(word),
                "{word}"
            );
            assert_eq!(tags(&CHINESE, word), tags(&whole, word), "{word}");
            words += 1;
        });
        // `wc -l` of the file in the crate.
        assert_eq!(words, 349_045);
    }

    #[test]
    fn each_script_is_cut_by_its_dictionary() {
        let expected = [
            ("plain words, 3.14", "plain|words|3.14"),
            ("我们来到北京清华大学。", "我们|来到|北京|清华大学"),
            ("用Python编写程序", "用|python|编写程序"),
            ("東京都に住んでいます", "東京|都|に|住|んで|いま|す"),
            ("กฎหมายไทย", "กฎหมาย|ไทย"),
            ("ພາສາລາວ", "ພາສາ|ລາວ"),
            ("ភាសាខ្មែរ", "ភាសាខ្មែរ"),
            ("မြန်မာဘာသာ", "မြန်မာဘာသာ"),
        ];
        let found = expected.map(|(piece, _)| (piece, cut(&piece.to_lowercase()).join("|")));
        assert_eq!(
            found,
            expected.map(|(piece, words)| (piece, words.to_owned()))
        );
    }

    /// If a run is cut at its maximum length, kana after the cut belong to the next run.
    #[test]
    fn han_that_is_cut_before_kana_is_chinese() {
        let han = "中".repeat(MAX_RUN_CHARS);
        let text = format!("{han}の");
        let found: Vec<_> = runs(&text).collect();
        let expected = [
            (&*han, RunDictionary::Chinese),
            ("の", RunDictionary::Other),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_run_without_end_is_cut() {
        let run = "\u{4e00}".repeat(3 * MAX_RUN_CHARS + 1);
        let found = cut(&run);
        assert_eq!(found.concat(), run);
        assert!(found.len() > 3);
    }
}

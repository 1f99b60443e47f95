//! Rules for single languages: dictionaries, stop words, stems, nouns, language detection.

use std::collections::{BTreeMap, HashMap, HashSet};

use lookalike::language::detect;
use lookalike::scheme::Lambda;
use lookalike::{
    FeatureExtractor, Language, Nouns, Scheme, Segmentation, Segmenter, Shingle, Stemming,
    StopWords, Weight,
};
use proptest::prelude::*;

fn words(scheme: &Scheme, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    Segmenter::new(scheme).words(text, |word| words.push(word.to_owned()));
    words
}

fn by_dictionary() -> Scheme {
    Scheme::default().segmentation(Segmentation::Languages)
}

fn with_filter(stop: &str, stem: &str) -> Scheme {
    Scheme::default()
        .stop(stop.parse().unwrap())
        .stem(stem.parse().unwrap())
}

#[test]
fn schemes_name_the_data_of_this_build() {
    let lock = include_str!("../../../../Cargo.lock");
    let help =
        "new data move features: raise the version in the schemes with it, publish new vectors";
    for (name, version) in [
        ("jieba-rs", "0.11.0"),
        ("icu_segmenter", "2.4.0"),
        ("icu_segmenter_data", "2.4.0"),
        ("stop-words", "0.10.1"),
        ("frostem", "2.20261016.1"),
        ("whatlang", "0.18.0"),
    ] {
        let package = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&package), "{name}: {help}");
    }
    let scheme = Scheme::default()
        .segmentation(Segmentation::Languages)
        .weight(Weight::TfLengthNoun(Lambda::BY_LENGTH))
        .shingle(Shingle::words(1).unwrap())
        .stop("de,en".parse().unwrap())
        .stem("auto".parse().unwrap())
        .nouns(Nouns::TAGGED);
    let text = "lookalike/1 html=main/1 boilerplate=kept mask=none normalize=nfc fold=none case=lower \
                segment=languages/jieba-0.11.0/icu-2.4.0 stop=de,en/stop-words-0.10.1 \
                stem=auto/whatlang-0.18.0/frostem-2.20261016.1 shingle=words:1 hash=xxh3-64 seed=0 \
                weight=tf-length-noun nouns=harper-brill-3.0.0/jieba-0.11.0 fields=none \
                terms=none sketch=none unicode=17";
    assert_eq!(scheme.to_string(), text);
    assert_eq!(text.parse(), Ok(scheme));
}

#[test]
fn short_forms_and_other_versions_stand_in_no_scheme() {
    let text = by_dictionary().to_string();
    let text = text.replace("stop=none", "stop=en/stop-words-0.10.1");
    assert!(text.parse::<Scheme>().is_ok());
    for (from, to, part) in [
        (
            "/jieba-0.11.0/icu-2.4.0",
            "",
            "is not the form used in a scheme",
        ),
        ("jieba-0.11.0", "jieba-0.10.0", "use unicode, word-chars"),
        ("/stop-words-0.10.1", "", "is not the form used in a scheme"),
        ("stop=en", "stop=en,de", "is not the form used in a scheme"),
        ("0.10.1", "0.10.0", "codes of languages with a list"),
        ("stop=en", "stop=ja", "codes of languages with a list"),
    ] {
        let refused = text.replace(from, to).parse::<Scheme>().unwrap_err();
        assert!(refused.to_string().contains(part), "{to}: {refused}");
    }
}

#[test]
fn every_language_that_an_error_names_can_be_had() {
    let named = |error: String| -> Vec<String> {
        let codes = error.rsplit(": ").next().unwrap_or_default();
        let codes = codes.rsplit("one of ").next().unwrap_or_default();
        codes.split(", ").map(str::to_owned).collect()
    };
    let lists = named("xx".parse::<StopWords>().unwrap_err().to_string());
    let stems = named("xx".parse::<Stemming>().unwrap_err().to_string());
    for language in Language::all() {
        let code = language.code();
        let has = |codes: &[String]| codes.iter().any(|named| named == code);
        assert_eq!(code.parse::<StopWords>().is_ok(), has(&lists), "{code}");
        assert_eq!(code.parse::<Stemming>().is_ok(), has(&stems), "{code}");
    }
    assert!(lists.len() > 30 && stems.len() == 20);
}

#[test]
fn sentences_have_the_same_words_wherever_they_stand() {
    let scheme = by_dictionary();
    let chinese = "\u{4e2d}\u{534e}\u{4eba}\u{6c11}\u{5171}\u{548c}\u{56fd}";
    let japanese = "\u{6771}\u{4eac}\u{306b}\u{4f4f}\u{3093}\u{3067}\u{3044}\u{307e}\u{3059}";
    let alone = words(&scheme, chinese);
    assert_eq!(alone, [chinese]);
    let mixed = format!("{japanese}\u{3002}{chinese}\u{ff0c}and English {japanese}");
    let found = words(&scheme, &mixed);
    let japanese = words(&scheme, japanese);
    let expected: Vec<String> = japanese
        .iter()
        .chain(&alone)
        .cloned()
        .chain(["and".to_owned(), "english".to_owned()])
        .chain(japanese.iter().cloned())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn stop_words_are_left_out_and_stems_are_made() {
    let text = "The runners were running in the connected forests";
    assert_eq!(
        words(&with_filter("en", "none"), text),
        ["runners", "running", "connected", "forests"]
    );
    assert_eq!(
        words(&with_filter("en", "en"), text),
        ["runner", "run", "connect", "forest"]
    );
    assert_eq!(
        words(&with_filter("de", "none"), text).len(),
        7,
        "in is German too"
    );
    // Shingles are made of the words that are left.
    let scheme = with_filter("en", "en").shingle(Shingle::words(2).unwrap());
    let mut extractor = FeatureExtractor::new(&scheme);
    let features = extractor.features(text).to_vec();
    assert_eq!(
        features,
        extractor.features("The runner runs: connect a forest!")
    );
}

#[test]
fn lists_and_stems_follow_the_language_of_the_text() {
    let scheme = with_filter("auto", "auto");
    let english =
        "The connected forests are all that the villages of this country have left to sell";
    let german = "Die verbundenen W\u{e4}lder sind alles, was den D\u{f6}rfern dieses Landes noch geblieben ist";
    assert_eq!(
        words(&scheme, english),
        words(&with_filter("en", "en"), english)
    );
    assert_eq!(
        words(&scheme, german),
        words(&with_filter("de", "de"), german)
    );
    assert!(words(&scheme, german).contains(&"wald".to_owned()));
    // The language is unknown, so nothing is removed.
    assert_eq!(words(&scheme, "qwx zzv 17"), ["qwx", "zzv", "17"]);
}

fn with_nouns(lambda: Lambda) -> Scheme {
    Scheme::default()
        .weight(Weight::TfLengthNoun(lambda))
        .shingle(Shingle::words(1).unwrap())
        .nouns(Nouns::TAGGED)
}

fn weights_of_words(scheme: &Scheme, text: &str) -> BTreeMap<String, i32> {
    let mut extractor = FeatureExtractor::new(scheme);
    let weights: HashMap<u64, i32> = extractor.extract(text).weights.iter().copied().collect();
    let hashes = extractor.features(text);
    let words = words(scheme, text);
    assert_eq!(words.len(), hashes.len());
    let found = words.into_iter().zip(hashes);
    found.map(|(word, hash)| (word, weights[hash])).collect()
}

/// Regression test: an English line in a Chinese text made the whole text count as English, and all its Chinese words as nouns.
#[test]
fn an_english_line_does_not_make_chinese_words_nouns() {
    let chinese = "\u{6211}\u{4eec}\u{6765}\u{5230}\u{5317}\u{4eac}\u{3002}";
    let english =
        "The engineers quickly repaired every bridge that the rivers had destroyed during spring.";
    let scheme = with_nouns(Lambda::new(1).unwrap()).segmentation(Segmentation::Languages);
    let [alone, behind, before] = [
        chinese.to_owned(),
        format!("{english}\n{chinese}"),
        format!("{chinese}\n{english}"),
    ]
    .map(|text| weights_of_words(&scheme, &text));
    // The verb scores 1 and the noun 1 + 1. "bridge", long and a noun, scores 1 + 1 + 1.
    let (verb, noun) = ("\u{6765}\u{5230}", "\u{5317}\u{4eac}");
    assert_eq!((alone[verb], alone[noun]), (512, 1024));
    for mixed in [behind, before] {
        assert_eq!(
            (mixed[verb], mixed[noun], mixed["bridge"]),
            (341, 683, 1024)
        );
        assert!(mixed["bridge"] > mixed["quickly"]);
    }
}

/// A run with kana is Japanese, so jieba's tags do not apply to it. Thai and Russian words are not tagged as nouns either.
#[test]
fn words_of_other_scripts_are_no_nouns() {
    let scheme = with_nouns(Lambda::new(1).unwrap());
    for text in [
        "\u{5317}\u{4eac}\u{3067}",
        "\u{e01}\u{e0e}\u{e2b}\u{e21}",
        "\u{434}\u{43e}\u{43c} \u{441}\u{43e}\u{43d}",
        "42 17",
    ] {
        let scheme = scheme.segmentation(Segmentation::Languages);
        let plain = scheme.nouns(Nouns::NONE);
        assert_eq!(
            weights_of_words(&scheme, text),
            weights_of_words(&plain, text),
            "{text}"
        );
    }
}

/// Generates lines of words whose tags depend on their neighbours, and of words that the model does not know.
fn english_line() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "to", "plan", "the", "that", "her", "can", "run", "walks", "back", "like", "is", "a",
        "old", "cut", "having", "of", "zorbs", "7", "they", "left", "will", "first", "more",
    ]);
    prop::collection::vec(words, 1..8).prop_map(|words| words.join(" "))
}

fn chinese_line() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "\u{6211}\u{4eec}",
        "\u{6765}\u{5230}",
        "\u{5317}\u{4eac}",
        "\u{6cd5}\u{5f8b}",
        "\u{4eba}\u{6c11}",
        "\u{89c4}\u{5b9a}",
        "\u{ff0c}",
        "\u{3002}",
        "\u{56fd}\u{5bb6}",
        "\u{4e0d}\u{5f97}",
    ]);
    prop::collection::vec(words, 1..8).prop_map(|words| words.concat())
}

fn other_line() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\u{6771}\u{4eac}\u{306b}\u{4f4f}\u{3093}\u{3067}",
        "\u{434}\u{43e}\u{43c} \u{438} \u{441}\u{430}\u{434}",
        "\u{e01}\u{e0e}\u{e2b}\u{e21}\u{e32}\u{e22}\u{e44}\u{e17}\u{e22}",
        "",
    ])
    .prop_map(str::to_owned)
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        english_line(),
        chinese_line(),
        other_line(),
        (chinese_line(), english_line(), chinese_line())
            .prop_map(|(front, middle, back)| front + &middle + &back),
    ]
}

proptest! {
    /// A line changes the weights of its own words only, not of other words in the same or another language.
    #[test]
    fn a_line_moves_no_other_words_weight(
        mut lines in prop::collection::vec(any_line(), 1..8),
        line in any_line(),
        at in any::<prop::sample::Index>(),
        lambda in prop::sample::select(vec![1, 3, 255]),
        segmentation in prop::sample::select(vec![Segmentation::Unicode, Segmentation::Languages]),
    ) {
        let scheme = with_nouns(Lambda::new(lambda).unwrap()).segmentation(segmentation);
        // Weights are relative to the largest score, so add words that always have it.
        lines.insert(0, "most ".repeat(300));
        let before = weights_of_words(&scheme, &lines.join("\n"));
        lines.insert(at.index(lines.len() + 1), line.clone());
        let after = weights_of_words(&scheme, &lines.join("\n"));
        let own = words(&scheme, &line);
        for (word, weight) in before {
            prop_assert!(own.contains(&word) || after[&word] == weight, "{word} in {lines:?}");
        }
    }

    /// Within a line, a run of Latin letters between Han runs changes the weight of no Chinese word.
    #[test]
    fn an_english_run_moves_no_chinese_words_weight(
        parts in prop::collection::vec(chinese_line(), 1..6),
        run in english_line(),
        at in any::<prop::sample::Index>(),
    ) {
        let scheme = with_nouns(Lambda::new(2).unwrap()).segmentation(Segmentation::Languages);
        let mut parts = [vec!["most ".repeat(300)], parts].concat();
        let before = weights_of_words(&scheme, &parts.join(" "));
        parts.insert(at.index(parts.len() + 1), run.clone());
        let after = weights_of_words(&scheme, &parts.join(" "));
        let own = words(&scheme, &run);
        for (word, weight) in before {
            let is_chinese = !word.is_ascii();
            prop_assert!(!is_chinese || own.contains(&word) || after[&word] == weight, "{word} in {parts:?}");
        }
    }

    /// The weighted features are those of the unweighted set, wherever lines and pieces end.
    #[test]
    fn words_with_nouns_are_the_words_without(
        text in "[a-cA-C0-9 ,._'\n\r\t\u{b}\u{4e00}-\u{4e10}\u{3040}-\u{3050}\u{30a0}-\u{30b0}\u{301}\u{ad}\u{e01}-\u{e10}]{0,60}",
        segmentation in prop::sample::select(vec![Segmentation::Unicode, Segmentation::WordChars, Segmentation::Languages]),
        mask in prop::sample::select(vec!["none", "numbers", "dates"]),
    ) {
        let scheme = with_nouns(Lambda::BY_LENGTH).segmentation(segmentation).mask(mask.parse().unwrap());
        let mut extractor = FeatureExtractor::new(&scheme);
        let features = extractor.extract(&text);
        let weighed: Vec<u64> = features.weights.iter().map(|weight| weight.0).collect();
        prop_assert_eq!(weighed, features.set);
    }
}

#[test]
fn nouns_weigh_more() {
    let text = "The old engineers quickly repaired every bridge that the rivers had destroyed during spring";
    let weight_of = |nouns, word: &str| {
        let scheme = with_nouns(Lambda::BY_LENGTH).nouns(nouns);
        weights_of_words(&scheme, text)[word]
    };
    assert_eq!(
        weight_of(Nouns::NONE, "bridge"),
        weight_of(Nouns::NONE, "quickly")
    );
    assert!(weight_of(Nouns::TAGGED, "bridge") > weight_of(Nouns::TAGGED, "quickly"));
    assert!(weight_of(Nouns::TAGGED, "rivers") > weight_of(Nouns::TAGGED, "destroyed"));
}

#[test]
fn texts_without_a_known_language_have_features() {
    for scheme in [by_dictionary(), with_filter("auto", "auto")] {
        let mut extractor = FeatureExtractor::new(&scheme);
        for text in [
            "zzv",
            "\u{1980}\u{1981}",
            "\u{13a0}\u{13a1}",
            "\u{a000} \u{a001}",
            "7",
        ] {
            assert!(!extractor.features(text).is_empty(), "{text}");
        }
    }
}

proptest! {
    /// No text that the dictionaries segment is lost, repeated or moved.
    #[test]
    fn words_are_parts_of_the_text_in_order(
        text in "[a-z0-9 ,.\u{4e00}-\u{4e40}\u{3040}-\u{30ff}\u{e01}-\u{e5b}\u{e81}-\u{edf}\u{1000}-\u{1050}\u{1780}-\u{17e9}\u{fe0f}]{0,80}"
    ) {
        let scheme = by_dictionary().normalization("none".parse().unwrap());
        let mut rest = text.as_str();
        for word in words(&scheme, &text) {
            let at = rest.find(&word);
            prop_assert!(at.is_some(), "{word:?} in {text:?}");
            let skipped = &rest[..at.unwrap_or_default()];
            let lost = skipped.chars().any(|c| c.is_ascii_alphanumeric() || c.is_alphabetic());
            prop_assert!(!lost, "{skipped:?} before {word:?} in {text:?}");
            rest = &rest[at.unwrap_or_default() + word.len()..];
        }
    }

    /// If a text has no script of a dictionary, its words are those of Unicode segmentation.
    #[test]
    fn other_scripts_keep_the_rules_of_unicode(text in "[a-zA-Z0-9\u{a0}-\u{dff} '.,_]{0,60}") {
        prop_assert_eq!(words(&by_dictionary(), &text), words(&Scheme::default(), &text));
    }

    /// Stemmers accept any text.
    #[test]
    fn stems_are_words_again(text in "\\PC{0,60}") {
        for language in Language::all() {
            let Ok(stem) = language.code().parse::<Stemming>() else { continue };
            let scheme = Scheme::default().stem(stem);
            let stems = words(&scheme, &text);
            prop_assert_eq!(stems.len(), words(&Scheme::default(), &text).len());
            prop_assert!(stems.iter().all(|stem| !stem.is_empty()));
        }
    }
}

#[test]
fn a_chinese_text_with_english_names_was_english() {
    let code = |text: &str| detect(&text.repeat(9)).map(Language::code);
    let chinese = "这篇文章介绍如何测试组件";
    let japanese = "この記事は部品を試す方法です";
    // Six words of 40 letters, beside 18 or 21 words of no more letters in any one script.
    let names = " React Router, TypeScript, Storybook and Webpack ";
    assert_eq!(
        code(&[chinese, chinese, names, chinese].concat()),
        Some("zh")
    );
    assert_eq!(
        code(&[japanese, names, japanese, japanese].concat()),
        Some("ja")
    );
    let english = " The components of the application are tested with a library of their own. ";
    assert_eq!(code(&[chinese, english].concat()), Some("en"));
}

#[test]
fn detection_looks_at_the_front_and_says_when_it_does_not_know() {
    let french =
        "Tous les \u{ea}tres humains naissent libres et \u{e9}gaux en dignit\u{e9} et en droits. ";
    assert_eq!(detect(&french.repeat(200)).map(Language::code), Some("fr"));
    assert_eq!(
        detect("\u{e9e}\u{eb0}\u{e99}\u{eb1}\u{e81}").map(Language::code),
        Some("lo")
    );
    assert_eq!(detect(""), None);
    assert_eq!(detect("0x17 ... 42"), None);
    let known: HashSet<&str> = Language::all().map(Language::code).collect();
    assert_eq!(known.len(), Language::all().count());
}

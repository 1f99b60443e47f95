//! The text form of schemes: it is canonical and complete, and text without a meaning is refused.

use lookalike::hash::siphash::SipKey;
use lookalike::scheme::{
    BoilerplateScope, Lambda, ParseSchemeError, ShortTexts, UNICODE_MAJOR, Widths,
};
use lookalike::{
    Boilerplate, Case, Extraction, FieldWeights, Folding, HtmlMode, Mask, Normalization, Nouns,
    Scheme, Segmentation, Shingle, Sketch, Stemming, StopWords, TermsId, TokenHash, Weight, Width,
};
use proptest::prelude::*;

pub(crate) fn any_scheme() -> impl Strategy<Value = Scheme> {
    let shingle = prop_oneof![
        (1..=64u8).prop_map(|width| Shingle::words(width).unwrap()),
        (2..=64u8, 2..=u16::MAX, any::<u8>()).prop_map(|(width, below, short)| {
            let short = Width::new(1 + short % (width - 1)).unwrap();
            let short = ShortTexts::new(below, short).unwrap();
            Shingle::words(width).unwrap().with_short(short).unwrap()
        }),
        (1..=64u8).prop_map(|width| Shingle::chars(width).unwrap()),
        (1..=64u8).prop_map(|width| Shingle::Stops(Width::new(width).unwrap())),
        (2..=64u8).prop_map(|least| Shingle::Phrases(Width::new(least).unwrap())),
        prop::collection::btree_set(1..=64u8, 2..4).prop_map(|widths| {
            let widths: Vec<Width> = widths.into_iter().filter_map(Width::new).collect();
            Shingle::WordSizes(Widths::new(&widths).unwrap())
        }),
    ];
    let sketch = prop_oneof![
        Just(Sketch::None),
        Just(Sketch::Simhash),
        (1..=u16::MAX).prop_map(|functions| Sketch::MinHash { functions }),
        (1..=u8::MAX, 1..=u8::MAX).prop_map(|(groups, rows)| Sketch::SuperShingle { groups, rows }),
        Just(Sketch::Simhash32),
        Just(Sketch::Simhash128),
        (1..=4096_u16).prop_map(|bins| Sketch::OnePermutation { bins }),
        (1..=u16::MAX, 1..=16u8).prop_map(|(functions, bits)| Sketch::BBit { functions, bits }),
        (1..=u16::MAX).prop_map(|modulus| Sketch::ModP { modulus }),
        (1..=u16::MAX).prop_map(|window| Sketch::Winnowing { window }),
        (1..=u8::MAX).prop_map(|lexicons| Sketch::IMatch { lexicons }),
        (1..=u8::MAX).prop_map(|buckets| Sketch::Buckets { buckets }),
    ];
    let normalization = prop::sample::select(vec![
        Normalization::None,
        Normalization::Nfc,
        Normalization::Nfkc,
    ]);
    let case = prop::sample::select(vec![Case::Keep, Case::Lower]);
    let segmentation = prop::sample::select(vec![
        Segmentation::Unicode,
        Segmentation::WordChars,
        #[cfg(feature = "languages")]
        Segmentation::Languages,
    ]);
    let weight = prop::sample::select(vec![
        Weight::Set,
        Weight::Tf,
        Weight::LogTf,
        Weight::Idf,
        Weight::TfIdf,
        Weight::LogTfIdf,
        Weight::TfLengthNoun(Lambda::BY_LENGTH),
        Weight::TfLengthNoun(Lambda::new(1).unwrap()),
        Weight::TfLengthNoun(Lambda::new(255).unwrap()),
    ]);
    let hash = prop::sample::select(vec![TokenHash::Xxh3, TokenHash::Lookup3]);
    let mask = any::<[bool; 2]>().prop_map(|[numbers, dates]| Mask { numbers, dates });
    let folding = any::<[bool; 4]>().prop_map(|[accents, punctuation, arabic, width]| Folding {
        accents,
        punctuation,
        arabic,
        width,
    });
    let html = (
        prop::sample::select(HtmlMode::ALL.to_vec()),
        any::<[bool; 3]>(),
    );
    let html = html.prop_map(|(mode, [title, alt, links])| Extraction {
        mode,
        title,
        alt,
        links,
    });
    let fields = (any::<[u8; 3]>(), 0..=64_u8);
    let fields = fields.prop_map(|([anchors, in_links, out_links], window)| {
        let around = (window > 0).then(|| format!("~{window}"));
        let parts: Vec<String> = [
            ("anchors", anchors, around),
            ("in-links", in_links, None),
            ("out-links", out_links, None),
        ]
        .into_iter()
        .filter(|&(_, weight, _)| weight > 0)
        .map(|(name, weight, end)| format!("{name}:{weight}{}", end.unwrap_or_default()))
        .collect();
        match parts.is_empty() {
            true => FieldWeights::default(),
            false => parts.join(",").parse().unwrap(),
        }
    });
    let scope = prop::sample::select(vec![BoilerplateScope::Site, BoilerplateScope::Collection]);
    let boilerplate = prop_oneof![
        Just(Boilerplate::Kept),
        (scope, any::<u64>()).prop_map(|(scope, id)| Boilerplate::Removed { scope, id }),
    ];
    let words = any_words();
    let terms = prop::option::of(any::<u64>().prop_map(TermsId));
    (
        normalization,
        case,
        segmentation,
        shingle,
        weight,
        (hash, any::<u64>()),
        sketch,
        (html, (mask, folding), fields, words, (boilerplate, terms)),
    )
        .prop_map(
            |(
                normalization,
                case,
                segmentation,
                shingle,
                weight,
                (hash, seed),
                sketch,
                (html, (mask, folding), fields, (stop, stem, nouns), (boilerplate, terms)),
            )| {
                Scheme::default()
                    .normalization(normalization)
                    .case(case)
                    .segmentation(segmentation)
                    .shingle(shingle)
                    .weight(weight)
                    .hash(hash)
                    .seed(seed)
                    .sketch(sketch)
                    .html(html)
                    .mask(mask)
                    .folding(folding)
                    .fields(fields)
                    .stop(stop)
                    .stem(stem)
                    .nouns(nouns)
                    .boilerplate(boilerplate)
                    .terms(terms)
            },
        )
}

/// Generates schemes without rules for single languages.
pub(crate) fn any_plain_scheme() -> impl Strategy<Value = Scheme> {
    any_scheme().prop_map(|scheme| {
        scheme
            .segmentation(match scheme.segmentation {
                Segmentation::WordChars => Segmentation::WordChars,
                _ => Segmentation::Unicode,
            })
            .stop(StopWords::NONE)
            .stem(Stemming::NONE)
    })
}

#[cfg(feature = "languages")]
fn any_words() -> impl Strategy<Value = (StopWords, Stemming, Nouns)> {
    let stop = prop::sample::select(vec!["none", "auto", "en", "de,en", "ar,fr,zh"]);
    let stem = prop::sample::select(vec!["none", "auto", "en", "ru"]);
    let nouns = prop::sample::select(vec![Nouns::NONE, Nouns::TAGGED]);
    (stop, stem, nouns)
        .prop_map(|(stop, stem, nouns)| (stop.parse().unwrap(), stem.parse().unwrap(), nouns))
}

#[cfg(not(feature = "languages"))]
fn any_words() -> impl Strategy<Value = (StopWords, Stemming, Nouns)> {
    Just((StopWords::NONE, Stemming::NONE, Nouns::NONE))
}

#[cfg(not(feature = "languages"))]
#[test]
fn schemes_that_need_a_feature_are_refused_by_name() {
    let refused = |text: String| text.parse::<Scheme>().unwrap_err().to_string();
    let base = Scheme::default().to_string();
    for text in [
        base.replace(
            "segment=unicode",
            "segment=languages/jieba-0.11.0/icu-2.4.0",
        ),
        base.replace("stop=none", "stop=en/stop-words-0.10.1"),
        base.replace("stem=none", "stem=en/frostem-2.20261016.1"),
        base.replace("nouns=none", "nouns=harper-brill-3.0.0/jieba-0.11.0"),
    ] {
        let message = refused(text);
        assert!(message.contains("Cargo feature `languages`"), "{message}");
    }
}

proptest! {
    #[test]
    fn text_form_and_back(scheme in any_scheme()) {
        let text = scheme.to_string();
        prop_assert_eq!(text.parse::<Scheme>(), Ok(scheme));
        // Only the exact printed text is accepted.
        let (after, before) = (format!("{text} "), format!(" {text}"));
        prop_assert!(after.parse::<Scheme>().is_err());
        prop_assert!(before.parse::<Scheme>().is_err());
        prop_assert!(text.replace("seed=", "seed=0").parse::<Scheme>().is_err());
        prop_assert!(text.replace("seed=", "seed=+").parse::<Scheme>().is_err());
        prop_assert!(text[..text.len() - 1].parse::<Scheme>().is_err());
    }

    #[test]
    fn different_schemes_have_different_ids_and_are_not_compared(
        a in any_scheme(), b in any_scheme()
    ) {
        prop_assert_eq!(a == b, a.id() == b.id());
        prop_assert_eq!(a == b, a.ensure_same(&b).is_ok());
        prop_assert_eq!(a.id().to_string().len(), 16);
    }
}

#[test]
fn the_id_is_published() {
    let text = "lookalike/1 html=main/1 boilerplate=kept mask=none normalize=nfc fold=none case=lower \
                segment=unicode stop=none stem=none shingle=words:5 hash=xxh3-64 seed=0 weight=set \
                nouns=none fields=none terms=none sketch=none unicode=17";
    assert_eq!(Scheme::default().to_string(), text);
    assert_eq!(Scheme::default().id().to_string(), SCHEME_ID);
    assert_eq!(
        Scheme::default().id().0,
        lookalike::hash::xxh3_64(text.as_bytes(), 0)
    );
}

/// XXH3-64 of the default scheme's text, confirmed with Python's xxhash.
const SCHEME_ID: &str = "0d78a68851b19251";

fn error(from: &str, to: &str) -> String {
    let text = Scheme::default().to_string();
    assert!(text.contains(from));
    text.replace(from, to)
        .parse::<Scheme>()
        .unwrap_err()
        .to_string()
}

#[test]
fn errors_say_what_to_do() {
    for (from, to, part) in [
        ("lookalike/1", "lookalike/2", "expected \"lookalike/1\""),
        (
            "words:5",
            "words:0",
            "use words:N or chars:N with N from 1 to 64",
        ),
        ("words:5", "words:65", "use words:N"),
        ("words:5", "words:05", "use words:N"),
        ("words:5", "lines:5", "use words:N"),
        ("=nfc", "=nfd", "use none, nfc or nfkc"),
        ("xxh3-64", "jenkins", "use xxh3-64, lookup3 or"),
        (
            "seed=0",
            "seed=18446744073709551616",
            "from 0 to 18446744073709551615",
        ),
        ("sketch=none", "sketch=minhash:0", "minhash:N (1 to 65535"),
        ("sketch=none", "sketch=simhash:48", "simhash:64"),
        ("unicode=17", "unicode=16", "build with Unicode 16"),
        ("case=", "fold=", "\"case\" expected"),
        (
            "unicode=17",
            "unicode=17 more=1",
            "\"more=1\" after the last field",
        ),
        (" unicode=17", "", "\"unicode\" expected"),
        (" mask=none", "", "\"mask\" expected"),
        (
            "main/1",
            "main/9",
            "use visible, fast/1, main/1 or quality/1",
        ),
        ("main/1", "main", "use visible, fast/1"),
        ("main/1", "main/1+alt+title", "use visible, fast/1"),
        (
            "mask=none",
            "mask=dates,numbers",
            "use none, numbers, dates",
        ),
        ("fold=none", "fold=width,accents", "write \"accents,width\""),
        ("fold=none", "fold=case", "use accents, punctuation"),
        ("terms=none", "terms=AB", "16 hexadecimal digits"),
        (
            "terms=none",
            "terms=0000000000000ab",
            "16 hexadecimal digits",
        ),
    ] {
        let message = error(from, to);
        assert!(message.contains(part), "{from} -> {to}: {message}");
    }
    assert!(matches!(
        "".parse::<Scheme>(),
        Err(ParseSchemeError::Version { .. })
    ));
    assert_eq!(UNICODE_MAJOR, 17);
}

#[test]
fn a_mismatch_names_the_fields() {
    let other = Scheme::default()
        .shingle("chars:9".parse().unwrap())
        .seed(7);
    let mismatch = Scheme::default().ensure_same(&other).unwrap_err();
    assert_eq!(
        mismatch.differences(),
        "shingle (words:5 and chars:9), seed (0 and 7)"
    );
    assert!(
        mismatch
            .to_string()
            .contains("make both sides with the same scheme")
    );
    let html = Scheme::default().html("fast/1+links".parse().unwrap());
    let mismatch = html.ensure_same(&Scheme::default()).unwrap_err();
    assert_eq!(mismatch.differences(), "html (fast/1+links and main/1)");
}

#[test]
fn a_secret_key_is_named_and_not_shown() {
    let key: SipKey = "00112233445566778899aabbccddeeff".parse().unwrap();
    let other: SipKey = "10112233445566778899aabbccddeeff".parse().unwrap();
    let scheme = Scheme::default().hash(TokenHash::SipHash(key));
    let text = scheme.to_string();
    assert!(!text.contains("00112233") && !format!("{scheme:?}").contains("7766554433221100"));
    assert_eq!(Scheme::parse_with_key(&text, Some(key)), Ok(scheme));
    for wrong in [None, Some(other)] {
        let refused = Scheme::parse_with_key(&text, wrong).unwrap_err();
        assert!(matches!(refused, ParseSchemeError::Key { .. }), "{refused}");
    }
}

#[test]
fn a_table_of_terms_is_named_by_its_id() {
    let scheme = Scheme::default().terms(Some(TermsId(0xAB)));
    let text = scheme.to_string();
    assert!(text.contains(" terms=00000000000000ab "), "{text}");
    assert_eq!(text.parse(), Ok(scheme));
    let mismatch = scheme.ensure_same(&Scheme::default()).unwrap_err();
    assert_eq!(mismatch.differences(), "terms (00000000000000ab and none)");
}

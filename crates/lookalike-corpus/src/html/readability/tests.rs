//! Compares the reading view with a library that implements the same rules independently, on real trees.

use std::io::{BufRead, BufReader};
use std::path::Path;

use dom_smoothie::Readability;
use flate2::read::MultiGzDecoder;
use lookalike::Extraction;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::guard::catch_panic;
use crate::html::shape;
use crate::html::{HtmlText, MIN_FAST_RATIO, MIN_WORDS};

/// Returns the words of the article by this crate's reading view.
fn ours(html: &str) -> Vec<String> {
    let mut extractor = HtmlText::new(Extraction::default()).unwrap();
    let mut article = String::new();
    if !shape::is_reference(html) {
        extractor.article(html, &mut None, &mut article);
    }
    words_or_fast(&mut extractor, &article, html)
}

/// Returns the words of the article by the library, which only gets pages that it can read in time.
fn theirs(html: &str) -> Vec<String> {
    let mut extractor = HtmlText::new(Extraction::default()).unwrap();
    let mut article = String::new();
    let parse = || {
        let article = Readability::new(html, None, None).ok()?.parse().ok()?;
        Some(article.content.to_string())
    };
    if !shape::is_reference(html)
        && !shape::is_adversarial(html)
        && let Some(content) = catch_panic(parse).ok().flatten()
    {
        extractor.visible(content.as_str(), &mut article);
    }
    words_or_fast(&mut extractor, &article, html)
}

/// Returns the words of an article, or of the page in the fast mode if next to nothing was found, because then both are guesses.
fn words_or_fast(extractor: &mut HtmlText, article: &str, html: &str) -> Vec<String> {
    let mut fast = String::new();
    extractor.fast(html, || shape::is_reference(html), &mut fast);
    let count = |text: &str| crate::html::blocks::words(text.as_bytes());
    let found = count(article);
    let text = match found < MIN_WORDS && count(&fast) > MIN_FAST_RATIO * found {
        true => &fast,
        false => article,
    };
    text.split_whitespace().map(str::to_owned).collect()
}

/// Returns the pages of a shared corpus. If the corpora are missing, says so and returns none.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test must not look like a passed one"
)]
fn corpus(name: &str) -> Option<Vec<String>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(packed) = std::fs::File::open(data.join(name)) else {
        eprintln!("skipped: {name} is not at hand");
        return None;
    };
    let html = |line: String| {
        let page: Value = serde_json::from_str(&line).unwrap();
        page["html"].as_str().unwrap().to_owned()
    };
    let lines = BufReader::new(MultiGzDecoder::new(packed)).lines();
    Some(lines.map(|line| html(line.unwrap())).collect())
}

/// The results differ if the library finds the author or the title in JSON-LD, and on pages with malformed markup.
#[test]
fn real_pages_have_the_words_that_the_library_finds() {
    for (corpus, least) in [
        ("article-extraction-benchmark/pages.jsonl.gz", 0.8),
        ("wcxb-pages/pages.jsonl.gz", 0.95),
        ("java-api-html/docs.jsonl.gz", 0.99),
        ("manual-versions-html/docs.jsonl.gz", 1.0),
        ("install-guide-html/docs.jsonl.gz", 1.0),
    ] {
        let Some(pages) = self::corpus(corpus) else {
            return;
        };
        let (same, all) = (
            pages
                .iter()
                .filter(|page| ours(page) == theirs(page))
                .count(),
            pages.len(),
        );
        assert!(
            same as f64 >= least * all as f64,
            "{corpus}: {same} of {all}"
        );
    }
}

/// Generates words with a comma after every `commas`th, and a full stop.
fn prose() -> impl Strategy<Value = String> {
    let words = [
        "harbour", "ferry", "tide", "of", "the", "before", "noon", "captain",
    ];
    (1usize..60, 3usize..12, 0usize..8).prop_map(move |(length, commas, first)| {
        let word = |i: usize| words[(first + i * i) % words.len()].to_owned();
        let text: Vec<String> = (0..length)
            .map(|i| word(i) + if i % commas == commas - 1 { "," } else { "" })
            .collect();
        text.join(" ") + "."
    })
}

fn attributes() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        1 => proptest::sample::select(vec![
            " class=content", " class='post entry'", " class=sidebar", " class=related id=x",
            " id=main-menu", " class='site-footer'", " class=widget", " hidden", " role=navigation",
            " style='display:none'", " class=share", " class='text comment'", " aria-hidden=true",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Generates a piece of a paragraph, without links to positions on the page: those count three tenths, so the order of adding could break ties.
fn inline() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prose(),
        1 => Just("<br>".to_owned()),
        1 => Just(" ".to_owned()),
        1 => Just("<img src=a.png>".to_owned()),
        1 => Just("<input>".to_owned()),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let tag = proptest::sample::select(vec!["b", "span", "em", "a href=/x", "small"]);
        (tag, proptest::collection::vec(inner, 1..3)).prop_map(|(tag, inner)| {
            // A link within a link would become two links.
            let inner = inner.concat();
            let tag = if inner.contains("<a ") { "i" } else { tag };
            let name = tag.split(' ').next().unwrap_or(tag);
            format!("<{tag}>{inner}</{name}>")
        })
    })
}

/// Generates elements nested as the standard allows, all closed.
fn block() -> impl Strategy<Value = String> {
    let pieces = || proptest::collection::vec(inline(), 0..4).prop_map(|pieces| pieces.concat());
    let leaf = prop_oneof![
        4 => (attributes(), pieces()).prop_map(|(a, text)| format!("<p{a}>{text}</p>")),
        2 => (attributes(), pieces()).prop_map(|(a, text)| format!("<div{a}>{text}</div>")),
        1 => (attributes(), pieces()).prop_map(|(a, text)| format!("<h3{a}>{text}</h3>")),
        1 => pieces().prop_map(|text| format!("<pre>{text}</pre>")),
        1 => (pieces(), pieces()).prop_map(|(a, b)| format!("<div>{a}<br><br>{b}</div>")),
        1 => (attributes(), proptest::collection::vec(pieces(), 1..5)).prop_map(|(a, items)| {
            format!("<ul{a}><li>{}</li></ul>", items.join("</li><li>"))
        }),
        1 => (1usize..13, proptest::collection::vec(pieces(), 1..5)).prop_map(|(rows, cells)| {
            let row = format!("<tr><td>{}</td></tr>", cells.join("</td><td>"));
            format!("<table><tbody>{}</tbody></table>", row.repeat(rows))
        }),
        1 => Just("<footer>Imprint and contact of the harbour.</footer>".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let tag = proptest::sample::select(vec![
            "div",
            "div",
            "section",
            "article",
            "blockquote",
            "form",
            "main",
            "nav",
            "aside",
            "center",
        ]);
        let piece = prop_oneof![8 => inner.prop_map(Ok), 1 => inline().prop_map(Err)];
        let inner = proptest::collection::vec(piece, 1..5);
        (tag, attributes(), inner).prop_map(|(tag, attributes, inner)| {
            let loose = inner.iter().any(Result::is_err);
            let inner: String = inner
                .into_iter()
                .map(|piece| piece.unwrap_or_else(|text| text))
                .collect();
            // Forms do not nest, and the library loses loose text beside the only block in an element that it turns into a `div`.
            let tag = match tag {
                "form" if inner.contains("<form") => "div",
                _ if loose => "div",
                _ => tag,
            };
            format!("<{tag}{attributes}>{inner}</{tag}>")
        })
    })
}

/// The results differ on about one page in ten thousand, if scores are equal except for the order of adding, and if next to nothing is cleaned.
#[test]
fn orderly_pages_have_the_words_that_the_library_finds() {
    let (pages, mut runner) = (
        proptest::collection::vec(block(), 1..8),
        TestRunner::default(),
    );
    let differing: Vec<String> = (0..1000)
        .map(|_| pages.new_tree(&mut runner).unwrap().current().concat())
        .map(|blocks| format!("<!DOCTYPE html><html><body>{blocks}</body></html>"))
        // The library joins the words of cells when it removes their row.
        .filter(|page| ours(page).concat() != theirs(page).concat())
        .collect();
    assert!(differing.len() <= 3, "{differing:#?}");
}

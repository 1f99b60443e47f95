//! The reading view of the mode `main` against the library whose rules it has (`main/2`), as an independent
//! implementation on real trees; and what its own trees promise.

use lookalike::Extraction;
use lookalike_corpus::HtmlText;
use proptest::prelude::*;
use serde_json::Value;

/// The words of a page under an extraction as a scheme writes it.
fn words(extraction: &str, html: &str) -> Vec<String> {
    let extraction: Extraction = extraction.parse().unwrap();
    let mut out = String::new();
    HtmlText::new(extraction).unwrap().extract(html, &mut out);
    out.split_whitespace().map(str::to_owned).collect()
}

/// Pages with the same words in both, and all pages.
fn agreement(corpus: &str) -> Option<(usize, usize)> {
    let lines = crate::support::shared_lines(corpus)?;
    let same = |line: &&String| {
        let page: Value = serde_json::from_str(line).unwrap();
        let html = page["html"].as_str().unwrap();
        words("main/2", html) == words("main/3", html)
    };
    Some((lines.iter().filter(same).count(), lines.len()))
}

/// They part where the library knows the author or the title from JSON-LD, and on pages whose tags are in disorder.
#[test]
fn real_pages_have_the_words_that_the_library_finds() {
    for (corpus, least) in [
        ("article-extraction-benchmark/pages.jsonl.gz", 0.8),
        ("wcxb-pages/pages.jsonl.gz", 0.95),
        ("java-api-html/docs.jsonl.gz", 0.99),
        ("manual-versions-html/docs.jsonl.gz", 1.0),
        ("install-guide-html/docs.jsonl.gz", 1.0),
    ] {
        let Some((same, all)) = agreement(corpus) else {
            return;
        };
        assert!(
            same as f64 >= least * all as f64,
            "{corpus}: {same} of {all}"
        );
    }
}

/// Words with a comma after every `commas`th, and a full stop.
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

/// A piece of a paragraph. No link to a place on the page: those count three tenths, and what is a tie in one order of
/// adding them is none in another.
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
            // A link in a link is two links.
            let inner = inner.concat();
            let tag = if inner.contains("<a ") { "i" } else { tag };
            let name = tag.split(' ').next().unwrap_or(tag);
            format!("<{tag}>{inner}</{name}>")
        })
    })
}

/// Elements as the standard allows them to nest, all closed.
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
            // Forms do not nest, and the library loses loose text beside the only block in what it makes a `div`.
            let tag = match tag {
                "form" if inner.contains("<form") => "div",
                _ if loose => "div",
                _ => tag,
            };
            format!("<{tag}{attributes}>{inner}</{tag}>")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn orderly_pages_have_the_words_that_the_library_finds(
        blocks in proptest::collection::vec(block(), 1..8)
    ) {
        let page = format!("<!DOCTYPE html><html><body>{}</body></html>", blocks.concat());
        // The library glues cells together when it takes their row away.
        let (ours, theirs) = (words("main/3", &page).concat(), words("main/2", &page).concat());
        prop_assert_eq!(ours, theirs, "{}", page);
    }

    /// Whatever the disorder: no panic, the same again, no word that the page does not have.
    #[test]
    fn disorderly_pages_have_no_other_words(
        tags in proptest::collection::vec((any::<bool>(), 0usize..26, prose()), 1..120)
    ) {
        let names = [
            "a", "p", "div", "li", "ul", "table", "tr", "td", "tbody", "b", "h2", "h3", "form", "button",
            "option", "select", "svg", "br", "dd", "span", "object", "section", "caption", "pre", "font", "x-y",
        ];
        let page: String = tags
            .iter()
            .map(|(ends, name, text)| {
                format!("<{}{}>{text} ", if *ends { "/" } else { "" }, names[*name])
            })
            .collect();
        let letters = |extraction: &str| -> Vec<String> {
            let text = words(extraction, &page).join(" ");
            text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
        };
        let all: std::collections::HashSet<String> = letters("visible").into_iter().collect();
        let found = letters("main/3");
        prop_assert_eq!(&found, &letters("main/3"));
        let other: Vec<_> = found.iter().filter(|word| !all.contains(*word)).collect();
        prop_assert!(other.is_empty(), "{:?} in {}", other, page);
    }
}

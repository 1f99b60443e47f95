//! Visible text of pages, and adversarial pages.

use std::time::Instant;

use lookalike::HtmlMode;
use lookalike_corpus::HtmlText;

fn visible() -> HtmlText {
    HtmlText::new(HtmlMode::Visible.into()).unwrap()
}

fn text(html: &str) -> String {
    let mut out = String::new();
    visible().extract(html, &mut out);
    out
}

#[test]
fn visible_text() {
    let cases = [
        ("plain", "plain"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("a<br>b<br/><br />c", "a\nb\n\nc"),
        ("un<b>broken</b> word", "unbroken word"),
        ("  a \n\t b  <i> c</i>  d ", "a b c d"),
        ("<ul><li>a<li>b</ul>c", "a\nb\n\nc"),
        ("<tr><td>a</td><td>b</td></tr><tr><th>c", "a b\nc"),
        ("<h1>T</h1>text", "T\n\ntext"),
        ("a<!-- b --!>c<!-->d<!--->e<!-- -- > --->f", "acdef"),
        ("<!DOCTYPE html><?xml x?></ bogus>a", "a"),
        ("1 < 2 && 3 > 2 <", "1 < 2 && 3 > 2 <"),
        ("a </", "a </"),
        ("<a title='>' href=\">\" x=it's>b</a>", "b"),
        ("<a =x y = z>b", "b"),
        ("a<b", "a"),
        ("a<b c='", "a"),
        ("<script>if (a<b) '</scripty>'</script>x", "x"),
        ("<SCRIPT>a</ScRiPt >x", "x"),
        ("<script/>a</script>x", "x"),
        ("<script><!-- <script>a</script>b --></script>x", "x"),
        ("<script><!-- a --> b</script>x", "x"),
        ("<script><!-- a</script>x", "x"),
        (
            "<style>a{}</style><noscript><p>b</noscript><title>&lt;t</title>x",
            "x",
        ),
        ("<textarea><b>&amp;</textarea>", "<b>&"),
        ("<template><p>a<template>b</template>c</template>x", "x"),
        ("<xmp><b>&amp;</xmp>", "<b>&amp;"),
        ("<plaintext></plaintext>x", "</plaintext>x"),
        ("<svg><title>t</title><text>a</text><style/>b</svg>c", "abc"),
        ("<svg><![CDATA[a<b]]></svg><![CDATA[c>d", "a<bd"),
        ("<svg><script/>a<p><script/>b</script>c", "a\n\nc"),
        ("<pre>\n a\n  b\r\n</pre>c  d", " a\n  b\n\nc d"),
        ("a<pre>b  c</pre>d", "a\n\nb  c\n\nd"),
        (
            "&lt;b&gt; &eacute;&#233;&#xe9; &AMP &nosuch; &notit;",
            "<b> \u{e9}\u{e9}\u{e9} & &nosuch; \u{ac}it;",
        ),
        ("a &#32; b &amp; c&\u{1}d", "a b & c&\u{1}d"),
        ("a&nbsp;b&#32;&#10; c", "a\u{a0}b c"),
        (
            "gr\u{fc}\u{df}e <b>\u{4e2d}</b>\u{6587}",
            "gr\u{fc}\u{df}e \u{4e2d}\u{6587}",
        ),
        ("", ""),
        ("<p> </p>", ""),
    ];
    for (html, expected) in cases {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn xhtml_behind_an_empty_title_or_script_was_lost() {
    let cases = [
        (
            "<html><head><title/></head><body><p>a</p></body></html>",
            "a",
        ),
        (
            "<html><head><script src='a.js'/><style/></head><p>a</p>",
            "a",
        ),
        ("<html><textarea/><iframe/><template/><p>a</p>", "a"),
        ("<!DOCTYPE html PUBLIC 'x'><html><script>a</script>b", "b"),
        ("<html><p><![CDATA[a<b]]></p>", "a<b"),
        ("<html><script>//<![CDATA[\na<b\n//]]></script>b", "b"),
    ];
    for (page, expected) in cases {
        for declaration in [
            "<?xml version='1.0'?>",
            "\u{feff}\n<?xml version='1.0'?><!-- a -->",
        ] {
            let page = format!("{declaration}{page}");
            assert_eq!(
                text(&page).trim_matches('\u{feff}').trim(),
                expected,
                "{page}"
            );
        }
    }
}

#[test]
fn the_titles_and_articles_of_feeds_were_lost() {
    let cases = [
        ("<rss><title>a</title><link>b</link><x:y>c</x:y>", "a\nb\nc"),
        ("<feed><title>a <b>b</b>c</title><_d>e</_d>", "a bc\ne"),
        ("<rss><d><![CDATA[a > b & c]]></d>", "a > b & c"),
        (
            "<rss><d><![CDATA[<p>a &amp; <b>b</b></p><pre>c]]></d> d  e",
            "a & b\n\nc\nd e",
        ),
        ("<rss><d><![CDATA[a<!-- b<br>]]></d>c", "a\nc"),
        (
            "<?xml version='1.0'?><note><style>a</style><script/>b",
            "a\nb",
        ),
        (
            "<?xml version='1.0'?><!DOCTYPE wml><wml><card title='a'>b",
            "b",
        ),
    ];
    for (page, expected) in cases {
        assert_eq!(text(page), expected, "{page}");
    }
    // A feed has no main content: each entry may be a line.
    let feed =
        "<rss><item><title>Rail strike ends</title></item><item><title>Harvest</title></item>";
    for mode in [HtmlMode::Fast, HtmlMode::Main] {
        let mut out = String::new();
        HtmlText::new(mode.into()).unwrap().extract(feed, &mut out);
        assert_eq!(out, "Rail strike ends\nHarvest");
    }
}

#[test]
fn what_no_browser_shows_was_glued_to_the_words_beside_it() {
    let cases = [
        (
            "<svg><desc>Created with Sketch.</desc><metadata><a>b</a></metadata></svg>Home",
            "Home",
        ),
        (
            "<math><mi>x</mi><annotation encoding='application/x-tex'>\\x</annotation></math>",
            "x",
        ),
        ("a<datalist><option>b</datalist>c", "ac"),
        (
            "<desc>a</desc> <metadata>b</metadata> <svg><desc/></svg>c",
            "a b c",
        ),
        // Without an end tag, nothing is lost.
        (
            "<svg><desc>a</svg><p>b<datalist><option>c</datalist>",
            "a\n\nb\nc",
        ),
        (
            "<x-a><template shadowrootmode=open>a<template>b</template>c</template>d</x-a>",
            "acd",
        ),
        (
            "<template><template shadowrootmode=open>a</template>b</template>c",
            "c",
        ),
        ("<template shadowrootmode=none>a</template>b", "b"),
    ];
    for (html, expected) in cases {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn text_is_appended() {
    let mut out = "before".to_owned();
    visible().extract("<p>a ", &mut out);
    visible().extract("<p>b", &mut out);
    assert_eq!(out, "beforeab");
}

/// Pages of 4 MB on which careless readers take quadratic time, which would be minutes. The stack is small, because nothing may recurse.
#[test]
fn time_is_linear_in_hostile_pages() {
    let patterns = [
        ("", "<ul><li>"),
        ("", "<div><pre>"),
        ("<a ", "b=c "),
        ("<a ", "b='c' "),
        ("<a ", "= "),
        ("", "<a b='"),
        ("", "<script><!--"),
        ("<script>", "<!-- -->"),
        ("<script>", "<!-- <script>"),
        ("<script>", "</scrip"),
        ("", "<!-"),
        ("<!--", "->"),
        ("", "<svg><title>"),
        ("<svg>", "<![CDATA["),
        ("<svg>", "<title></"),
        ("", "<template>"),
        ("&", "a"),
        ("&#", "1"),
        ("", "&notit"),
        ("<p>x", " \n"),
    ];
    let check = move || {
        for (head, unit) in patterns {
            let page = format!("{head}{}", unit.repeat((4 << 20) / unit.len()));
            let start = Instant::now();
            text(&page);
            let seconds = start.elapsed().as_secs();
            assert!(seconds < 10, "{head}{unit}...: {seconds} s");
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(check).unwrap().join().unwrap();
}

/// Real pages, if the shared corpora are available: the text contains the sentences of the page.
#[test]
fn real_pages_keep_their_sentences() {
    let Some(lines) = crate::support::shared_lines("java-api-html/docs.jsonl.gz") else {
        return;
    };
    let mut compared = 0;
    for line in lines {
        let page: serde_json::Value = serde_json::from_str(&line).unwrap();
        let (Some(html), Some(expected)) = (page["html"].as_str(), page["text"].as_str()) else {
            continue;
        };
        let ours = text(html);
        let words = |text: &str| -> std::collections::BTreeSet<String> {
            let words = text.split(|c: char| !c.is_alphanumeric());
            words.map(str::to_lowercase).collect()
        };
        let (ours, expected) = (words(&ours), words(expected));
        let missing = expected.difference(&ours).count();
        // The other program shows `noscript`.
        assert!(
            missing * 20 <= expected.len(),
            "{}: {missing} of {}",
            page["id"],
            expected.len()
        );
        compared += 1;
    }
    assert!(compared > 100);
}

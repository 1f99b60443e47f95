//! The modes that select among the text of a page, and the additional text that counts.

use lookalike::Extraction;
use lookalike_corpus::HtmlText;
use proptest::prelude::*;

/// Extracts the text of a page. The extraction is written as in a scheme.
fn text(extraction: &str, html: &str) -> String {
    let extraction: Extraction = extraction.parse().unwrap();
    let mut out = String::new();
    HtmlText::new(extraction).unwrap().extract(html, &mut out);
    out
}

/// Returns a page with a menu, a heading, two paragraphs, a list of links and a footer.
fn page() -> String {
    let sentence =
        "The ferry left the harbour at nine with forty people on board and came back before noon. ";
    format!(
        "<html><head><title>Ferry &amp; harbour</title></head><body>\
         <nav><ul><li><a href=/>Home</a><li><a href=/news>News</a></ul></nav>\
         <div class=page><h1>The ferry</h1><p>{}</p><p>{} <img src=a.png alt=\"a white ferry\"> \
         See <a href=\"/tides?a=1&amp;b=2\">the tides</a>.</p><div hidden>{0}secret</div></div>\
         <ul><li><a href=/1>Older story</a><li><a href=/2>Newer story</a></ul>\
         <footer>Imprint {0}</footer></body></html>",
        sentence.repeat(4),
        sentence.repeat(3),
    )
}

#[test]
fn fast_and_main_leave_page_chrome_out_and_keep_paragraphs() {
    for mode in ["fast/1", "main/1"] {
        let text = text(mode, &page());
        for absent in ["Home", "Older story", "Imprint", "Ferry & harbour"] {
            assert!(!text.contains(absent), "{mode}: {absent} in {text}");
        }
        let paragraphs: Vec<_> = text.split("\n\n").collect();
        let bodies = paragraphs
            .iter()
            .filter(|p| p.starts_with("The ferry left"));
        assert_eq!(bodies.count(), 2, "{mode}: {text}");
        assert!(text.ends_with("See the tides."), "{mode}: {text}");
    }
    assert!(!text("fast/1", &page()).contains("secret"));
    assert!(text("visible", &page()).contains("Imprint"));
}

#[test]
fn elements_were_shown_whose_style_hides_them_in_another_writing() {
    for style in ["DISPLAY : None", "display:block;display:none!important"] {
        let page = page().replace("<div hidden>", &format!("<div style='{style}'>"));
        assert!(page.contains(style));
        for mode in ["fast/1", "main/1"] {
            assert!(!text(mode, &page).contains("secret"), "{mode}: {style}");
        }
    }
}

#[test]
fn elements_were_shown_whose_hiding_attribute_is_in_capitals() {
    for attribute in ["HIDDEN", "Style=display:none", "ARIA-HIDDEN='true'"] {
        let page = page().replace("<div hidden>", &format!("<DIV {attribute}>"));
        assert!(page.contains(attribute));
        for mode in ["fast/1", "main/1"] {
            assert!(!text(mode, &page).contains("secret"), "{mode}: {attribute}");
        }
    }
}

#[test]
fn notes_count_when_asked_for() {
    for mode in ["visible", "fast/1", "main/1"] {
        let plain = text(mode, &page());
        assert!(
            !plain.contains("a white ferry") && !plain.contains("/tides"),
            "{mode}"
        );
        let title = text(&format!("{mode}+title"), &page());
        assert_eq!(title, format!("Ferry & harbour\n\n{plain}"), "{mode}");
        let alt = text(&format!("{mode}+alt"), &page());
        assert!(alt.contains("a white ferry See"), "{mode}: {alt}");
        let links = text(&format!("{mode}+links"), &page());
        assert!(
            links.contains("See /tides?a=1&b=2 the tides."),
            "{mode}: {links}"
        );
    }
}

#[test]
fn a_list_of_links_is_not_lost() {
    let links: String = (0..40)
        .map(|i| format!("<li><a href=/{i}>Harbour number {i}</a>"))
        .collect();
    let page = format!("<nav><a href=/>Home</a></nav><ul>{links}</ul>");
    for mode in ["fast/1", "main/1"] {
        let text = text(mode, &page);
        assert!(
            text.contains("Harbour number 0") && text.contains("Harbour number 39"),
            "{mode}: {text}"
        );
    }
    assert!(!text("fast/1", &page).contains("Home"));
}

#[test]
fn an_unclosed_menu_does_not_take_the_page_with_it() {
    let page = page().replace("</nav>", "");
    assert!(text("fast/1", &page).contains("The ferry left the harbour"));
}

#[test]
fn a_mode_that_is_not_built_in_is_refused_by_name() {
    let quality = HtmlText::new("quality/1".parse().unwrap());
    if cfg!(feature = "quality") {
        quality.unwrap();
        assert!(text("quality/1", &page()).contains("The ferry left the harbour"));
        return;
    }
    let error = quality.unwrap_err().to_string();
    assert!(error.contains("`full,quality`"), "{error}");
    assert!(error.contains("mode `quality`"), "{error}");
}

#[test]
fn what_several_extractors_agree_on_has_its_notes_too() {
    if cfg!(feature = "quality") {
        let plain = text("quality/1", &page());
        assert!(
            !plain.contains("Imprint") && !plain.contains("Home"),
            "{plain}"
        );
        let title = text("quality/1+title", &page());
        assert_eq!(title, format!("Ferry & harbour\n\n{plain}"));
        let links = text("quality/1+links", &page());
        assert!(links.contains("/tides?a=1&b=2 the tides."), "{links}");
    }
}

#[test]
fn words_beside_a_button_are_not_glued() {
    for (page, expected) in [
        ("<nav>sort <button>by date</button></nav>", "sort by date"),
        ("<button>on</button> <button>off</button>", "on off"),
        ("<p>press <button>stop</button> twice", "press twice"),
        ("<p>press<br><button>stop</button> twice", "press\ntwice"),
        ("<pre>a <button>b</button>c</pre>", "a c"),
        ("<nav><pre>a <button>b</button></pre></nav>", "a b"),
        ("<p>one<nav>home</nav><p>two", "one\n\ntwo"),
        ("<tr><td>one<td hidden>1<td>two", "one 1 two"),
    ] {
        assert_eq!(text("fast/1", page), expected, "{page}");
    }
}

/// Returns true if all of `some` occur in `all`, in that order.
fn is_subsequence<T: PartialEq>(
    some: impl Iterator<Item = T>,
    all: impl Iterator<Item = T>,
) -> bool {
    let mut all = all;
    some.into_iter().all(|one| all.any(|other| other == one))
}

/// Generates pages of words with white space around them and tags of all kinds, closed or not.
fn spaced_page() -> impl Strategy<Value = String> {
    let piece = "( [a-z]{1,3}[0-9] | ([a-z] ){5,20}|<br>|</?(p|div|button|select|option|nav|article|table|tr|td|li|b|pre)>\
                 |<(a href=/x|div hidden|/a)>){0,60}";
    proptest::string::string_regex(piece).unwrap()
}

proptest! {
    #[test]
    fn words_of_fast_are_words_of_the_page_in_their_order(page in spaced_page()) {
        let (visible, fast) = (text("visible", &page), text("fast/1", &page));
        prop_assert!(
            is_subsequence(fast.split_whitespace(), visible.split_whitespace()),
            "{page}: {fast:?} of {visible:?}"
        );
        prop_assert!(!fast.starts_with([' ', '\n']) && !fast.ends_with([' ', '\n']), "{page}: {fast:?}");
    }

    /// Tags in any disorder: no panic, and no word that the page does not contain.
    #[test]
    fn disorderly_pages_have_no_other_words(
        tags in proptest::collection::vec((any::<bool>(), 0usize..26, "([a-z]{2,8} ){1,40}"), 1..120)
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
        let words = |mode: &str| -> Vec<String> {
            text(mode, &page).split_whitespace().map(str::to_owned).collect()
        };
        let all: std::collections::HashSet<String> = words("visible").into_iter().collect();
        let other: Vec<_> = words("main/1").into_iter().filter(|word| !all.contains(word)).collect();
        prop_assert!(other.is_empty(), "{:?} in {}", other, page);
    }
}

/// Pages on which tree builders take quadratic time: they get the text of the fast mode, on a stack of 2 MiB. Those just within the limits get a
/// tree, and must not take long either.
#[test]
fn hostile_pages_fall_back_to_the_fast_mode() {
    let check = || {
        let story = page();
        for (hostile, is_adversarial) in [
            ("<div>".repeat(100_000), true),
            ("<ul><li>".repeat(100_000), true),
            ("<table><tr><td>".repeat(50_000), true),
            ("<b>".repeat(100_000), true),
            (format!("<a {}>", "b=c ".repeat(1_000_000)), false),
            ("<a><div>".repeat(50_000), true),
            (
                format!("{}{}", "<div>".repeat(200), "</i>".repeat(1_000_000)),
                true,
            ),
            ("<i></i>".repeat(200_000), true),
            ("a<!---->".repeat(900_000), true),
            ("<<<<".repeat(1_000_000), false),
            (
                format!("{}{}", "<br>".repeat(40_000), "<br> a".repeat(20_000)),
                false,
            ),
            ("<table><tr><td>".repeat(80), false),
            (
                format!("{}<p>a", "<form><ul>".repeat(120)).repeat(300),
                true,
            ),
            ("<div><a>b<div>".repeat(120), false),
            (format!("<script>{}", "a<b ".repeat(1_000_000)), false),
            ("<div>".repeat(250), false),
            ("<i>a</i>".repeat(50_000), false),
            ("<p>a".repeat(50_000), false),
            (format!("<a {}>", "b=c ".repeat(250)).repeat(400), false),
        ] {
            let page = format!("{story}{hostile}");
            let start = &hostile[..20];
            let main = text("main/1", &page);
            assert!(main.contains("The ferry left the harbour"), "main: {start}");
            assert!(!is_adversarial || main == text("fast/1", &page), "{start}");
            if cfg!(feature = "quality") {
                let quality = text("quality/1", &page);
                assert!(
                    quality.contains("The ferry left the harbour"),
                    "quality: {start}"
                );
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(check).unwrap().join().unwrap();
}

#[test]
fn one_post_of_many_was_the_main_content_of_a_forum() {
    let post = |n: usize| {
        let words: Vec<String> = (0..60).map(|word| format!("word{n}of{word}")).collect();
        format!("<div class=comment><span>{}</span></div>", words.join(" "))
    };
    let opening = |words: usize| {
        format!(
            "<div class=article><p>{}</p></div>",
            "opening words, many of them ".repeat(words)
        )
    };
    let posts: String = (0..9).map(post).collect();
    let page = |head: &str, words: usize| {
        format!(
            "<head>{head}</head><body><h1>Thread</h1>{}{posts}</body>",
            opening(words)
        )
    };
    let is_whole = |page: &str| text("main/1", page).contains("word8of59");
    assert!(is_whole(&page(
        "<meta property='og:title' content='Thread'>",
        20
    )));
    assert!(is_whole(&page(
        "<meta property='og:type' content='website'>",
        20
    )));
    // An article with comments, and one that is longer than they are.
    assert!(!is_whole(&page(
        "<meta property='og:type' content='article'>",
        20
    )));
    assert!(!is_whole(&page(
        "<meta name='article:published_time' content='2024-03-01'>",
        20
    )));
    assert!(!is_whole(&page(
        "<meta property='og:type' content='website'>",
        300
    )));
    // A page of old says nothing about itself.
    assert!(!is_whole(&page("", 20)));
}

#[test]
fn pages_whose_text_is_for_readers_without_scripts_were_empty() {
    let words: Vec<String> = (0..100).map(|n| format!("word{n}")).collect();
    let words = words.join(" ");
    let inside = format!("<h1>Thread</h1><p>{words}</p>");
    let page = |inside: &str, outside: &str| {
        format!(
            "<title>T</title><head><noscript><link rel=stylesheet></noscript></head><NoScript data-path=x>{inside}</noscript><section>{outside}</section><script>'<noscript>{words}</noscript>'</script>"
        )
    };
    for mode in ["visible", "fast/1", "main/1"] {
        let found = text(mode, &page(&inside, "Loading"));
        assert!(
            found.contains("word0 word1 ") && found.contains("word99"),
            "{mode}: {found}"
        );
        assert_eq!(found.matches("word99").count(), 1, "{mode}");
    }
    assert_eq!(
        text("visible", &page(&inside, "Loading")),
        format!("Thread\n\n{words}\n\nLoading")
    );
    // The page is shown to everybody, or asks to switch scripts on.
    assert!(!text("visible", &page(&inside, &"other words ".repeat(30))).contains("word0"));
    assert_eq!(
        text("visible", &page("Please enable JavaScript.", "Loading")),
        "Loading"
    );
    // Never closed.
    let open = format!("<p>Loading<noscript>{words}");
    assert_eq!(text("visible", &open), format!("Loading\n{words}"));
}

#[test]
fn a_part_that_a_page_streams_was_hidden() {
    let body = "The ferry left the harbour at nine with forty people on board. ".repeat(20);
    let menu = "<a href=/>Menu item</a> and words about it, for shoppers. ".repeat(20);
    let page = |id: &str| {
        format!(
            "<title>The bridge</title><div class=menu>{menu}</div><div hidden id='{id}'><main><h1>The bridge</h1><p>{body}</p></main></div>"
        )
    };
    for mode in ["fast/1", "main/1"] {
        assert!(text(mode, &page("S:2a")).contains("forty people"), "{mode}");
        for id in ["S:", "S:2x", "dialog"] {
            assert!(
                !text(mode, &page(id)).contains("forty people"),
                "{mode} {id}"
            );
        }
    }
}

#[test]
fn scripts_without_spaces_had_too_few_words_for_a_main_content() {
    for (sentence, item) in [
        (
            "การประชุมสภาเมืองเรื่องสะพานแม่น้ำใหม่ของประชาชนและถนนหน้าโรงเรียนตลาด",
            "เมนู",
        ),
        ("ការប្រជុំក្រុមប្រឹក្សាទីក្រុងអំពីស្ពានទន្លេថ្មីរបស់ប្រជាជននិងផ្លូវមុខសាលារៀន", "ម៉ឺនុយ"),
        ("မြို့တော်ကောင်စီအစည်းအဝေးသည်မြစ်ကူးတံတားအသစ်နှင့်ပတ်သက်၍ဆွေးနွေးခဲ့သည်", "မီနူး"),
        (
            "市议会关于新建大桥的会议决定了学校门口道路和市场的改造计划并将于下周公布",
            "菜单",
        ),
    ] {
        let paragraphs: String = (0..6)
            .map(|n| format!("<p>{}{n}</p>", sentence.repeat(3)))
            .collect();
        let menu: String = (0..40)
            .map(|n| format!("<a href=/{n}>{item}{n}</a> "))
            .collect();
        let page = format!(
            "<title>{sentence}</title><div class=top>{menu}</div><div class=content><h1>{sentence}</h1>{paragraphs}</div>"
        );
        for mode in ["fast/1", "main/1"] {
            let found = text(mode, &page);
            assert!(
                found.matches(sentence).count() >= 18 && !found.contains(item),
                "{mode}: {found}"
            );
        }
    }
}

#[test]
fn definitions_were_lost_with_the_terms_that_are_links() {
    let entry = |n: usize, definition: &str| {
        format!("<dt><a href=#{n}><code>WebSocket.member{n}</code></a> Read only<dd>{definition}")
    };
    let definition = "The number of bytes of queued data.";
    let entries: String = (0..8).map(|n| entry(n, definition)).collect();
    let banner = "This feature works in all browsers, across many devices and versions, since the year 2015. ";
    let aliases = "<dt><a href=#a>alias</a><dt><a href=#b>other alias</a><dd>An older name of it.";
    let links: String = (0..8)
        .map(|n| format!("<dt>Topic {n}<dd><a href=/{n}>See the page on it</a>"))
        .collect();
    let page = format!(
        "<nav><dl>{}</dl></nav><h1>WebSocket</h1><p>{}</p><dl>{entries}{aliases}</dl><h2>Topics</h2><dl>{links}</dl>",
        entry(9, "This is in the menu."),
        banner.repeat(3)
    );
    for mode in ["fast/1", "main/1"] {
        let found = text(mode, &page);
        assert_eq!(found.matches(definition).count(), 8, "{mode}: {found}");
        assert_eq!(
            found.matches("WebSocket.member").count(),
            8,
            "{mode}: {found}"
        );
        assert!(
            found.contains("alias\nother alias\nAn older"),
            "{mode}: {found}"
        );
        for absent in ["menu", "See the page", "Topic 3"] {
            assert!(!found.contains(absent), "{mode}: {absent} in {found}");
        }
    }
}

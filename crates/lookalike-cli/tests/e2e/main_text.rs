//! The main content of a page is not the whole page: pages with equal main content are not exact copies, and text of a template is not main content.

use serde_json::Value;

use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, json_lines, lookalike};

/// The footer of every page of a reference manual.
const LEGAL: &str = "<footer><hr><p class=legal><small><a href=/bugs>Report a bug or suggest an enhancement</a><br> For \
    further reference and developer documentation see the <a href=/docs>Harbour Documentation</a>, which contains more detailed, \
    developer-targeted descriptions, with conceptual overviews, definitions of terms, workarounds, and working code examples.<br> \
    Harbour is a trademark or registered trademark of Lighthouse and its affiliates in the north and other countries.<br> \
    <a href=/legal>Copyright</a> 1993, 2026, Lighthouse and its affiliates, 500 Lighthouse Parkway, Northern Shores, 94065. \
    All rights reserved. Use is subject to license terms and the documentation redistribution policy.</small></p></footer>";

/// Returns a Javadoc page that lists the uses of a class: few words between a menu and the footer.
fn class_use(class: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>Uses of Class org.harbour.{class} (Harbour 4)</title></head>\
         <body class=class-use-page><header class=flex-header><nav><ul class=nav-list><li><a href=o>Overview</a></li>\
         <li><a href=m>Module</a></li><li><a href=p>Package</a></li><li><a href=c>Class</a></li><li>Use</li><li><a href=t>Tree\
         </a></li><li><a href=d>Deprecated</a></li><li><a href=i>Index</a></li><li><a href=h>Help</a></li></ul></nav></header>\
         <div class=flex-content><main><div class=header><h1 class=title>Uses of Class<br>org.harbour.{class}</h1></div>\
         No usage of org.harbour.{class}</main>{LEGAL}</div></body></html>"
    )
}

const CLASSES: [&str; 24] = [
    "Anchor", "Barge", "Buoy", "Cabin", "Canal", "Captain", "Cargo", "Chart", "Compass", "Crane",
    "Dock", "Ferry", "Gull", "Jetty", "Keel", "Lantern", "Mast", "Pier", "Pilot", "Rope", "Sail",
    "Signal", "Tide", "Wharf",
];

/// Returns a page of an old site: a menu, few words in a table cell, and a longer notice.
fn casino(page: &str, own: &str) -> String {
    let menu: String = [
        "Home",
        "Hotel",
        "Dining",
        "Contact",
        "Slots",
        "Shows",
        "Directions",
        "Careers",
    ]
    .iter()
    .map(|name| format!("<td><a href=/{name}.html>{name}</a></td>"))
    .collect();
    format!(
        "<html><head><title>{page} - Lucky Gull Casino</title></head><body><table width=700><tr>{menu}</tr></table>\
         <table width=700><tr><td><img src=/{page}.gif></td><td><font size=2><b>{page}</b><br>{own}</font></td></tr></table>\
         <table width=700><tr><td><p>Guests of the Lucky Gull Casino must be of legal age, must carry a document with a picture, \
         and must leave the floor when they are asked to, whatever they have won, lost, eaten, or been promised by others.</p>\
         <p>The management reserves the right to change, cancel, or end any game, promotion, dinner, show, or shuttle at any time, \
         for any reason, without notice, and is bound by the rules of the gaming commission of the northern counties only.</p>\
         <p>If you think that you, or somebody whom you know, has a problem with gambling, call the free helpline of the county, \
         by day and by night, where trained people listen, speak your language, and tell nobody that you called them.</p>\
         </td></tr></table></body></html>"
    )
}

fn casino_pages() -> [(&'static str, String); 4] {
    [
        ("Hotel", "Forty quiet rooms look over the old harbour. Each has a bath and a balcony, and breakfast is served until eleven in the hall of mirrors on the second floor."),
        ("Dining", "Smoked herring, rye bread, cider from the orchard behind the dunes: our cooks open at six. Tables by the window want a call before noon, children eat for half."),
        ("Contact", "Write to the front desk, ring the bell twice after midnight, or send a pigeon. Lost umbrellas stay with the porter for a year, then they go to the lifeboat crew."),
        ("Directions", "Leave the coast road at the water tower, cross both bridges, and follow the tram line to its end. Parking below the cliff is free, the lift runs all night."),
    ]
    .map(|(page, own)| (page, casino(page, own)))
}

/// Returns a short article about a thing within the template of a site, which has many more words.
fn framed(site: u64, thing: &str) -> String {
    let mut numbers = Numbers(site);
    let mut words = |count: usize| numbers.words(count, 100_000);
    let links: String = (0..60)
        .map(|i| format!("<li><a href=/{i}>{}</a></li>", words(5)))
        .collect();
    let paragraph = words(90);
    format!(
        "<html><head><title>The {thing} that came by sea - {}</title></head><body><header><a href=/>{}</a></header>\
         <nav><ul>{links}</ul></nav><div class=content><h1>The {thing} that came by sea</h1>\
         <p>The {thing} was seen at nine off the northern pier by forty people on board of the ferry, who said that the {thing} \
         came back before noon, stayed for an hour near the lighthouse, and left again with the tide.</p>\
         <p>Nobody knows where the {thing} goes at night, but the keeper of the lighthouse has written down every day on which it \
         was there, with the wind and the weather, in a book that now lies in the town hall for all.</p></div>\
         <footer><p>{paragraph}</p></footer></body></html>",
        words(2),
        words(3),
    )
}

/// Returns the members of all clusters.
fn members(results: &Results) -> Vec<Value> {
    let clusters = json_lines(&std::fs::read(results.folder.join("clusters.jsonl")).unwrap());
    clusters
        .iter()
        .flat_map(|cluster| cluster["members"].as_array().unwrap().clone())
        .collect()
}

fn write(folder: &Folder, pages: impl IntoIterator<Item = (String, String)>) -> std::path::PathBuf {
    for (name, page) in pages {
        folder.add(format!("pages/{name}.html"), page);
    }
    folder.path("pages")
}

#[test]
fn pages_that_share_the_foot_of_a_reference_are_all_kept() {
    let folder = Folder::new();
    let input = write(
        &folder,
        CLASSES.map(|class| (class.to_owned(), class_use(class))),
    );
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.count("decisions", "removed_exact"), 0);
    assert_eq!(results.count("decisions", "removed_near"), 0);
    assert_eq!(results.count("decisions", "kept"), CLASSES.len() as u64);
}

#[test]
fn the_hotel_of_a_casino_is_not_its_dining_room() {
    let folder = Folder::new();
    let pages = casino_pages().map(|(name, page)| (name.to_owned(), page));
    let input = write(&folder, pages);
    for flags in [
        &[][..],
        &["--method", "minhash"],
        &["--method", "exact"],
        &["--boilerplate", "collection"],
    ] {
        let results = folder.dedup(&input, flags);
        assert_eq!(results.count("decisions", "kept"), 4, "{flags:?}");
    }
    let pairs = lookalike("pairs")
        .arg(&input)
        .arg("--quiet")
        .succeed()
        .lines();
    assert!(pairs.is_empty(), "{pairs:?}");
}

#[test]
fn copies_under_many_titles_are_found_whatever_is_common() {
    let page = |title: &str| {
        let page = class_use("Anchor");
        page.replacen("Uses of Class org.harbour.Anchor", title, 1)
    };
    let folder = Folder::new();
    let input = write(
        &folder,
        CLASSES.map(|title| (title.to_owned(), page(title))),
    );
    let common = ["--method", "mod-p", "--stop-features", "2"];
    for flags in [&[][..], &common, &["--method", "exact"]] {
        let results = folder.dedup(&input, flags);
        let copies = CLASSES.len() as u64 - 1;
        assert_eq!(results.count("decisions", "removed_exact"), copies);
        assert_eq!(results.count("counts", "repeated_texts"), copies);
        assert_eq!(results.count("counts", "stop_features"), 0);
    }
}

#[test]
fn one_article_in_two_frames_is_near_and_not_exact() {
    let folder = Folder::new();
    let input = write(
        &folder,
        [
            ("a", 1, "whale"),
            ("b", 2, "whale"),
            ("c", 3, "balloon"),
            ("d", 1, "balloon"),
        ]
        .map(|(name, site, thing)| (name.to_owned(), framed(site, thing))),
    );
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.count("decisions", "removed_exact"), 0);
    assert_eq!(results.count("decisions", "removed_near"), 2);
    assert_eq!(results.count("decisions", "removed_same_main_text"), 2);
    for member in members(&results) {
        assert_eq!(member["reason"], "same-main-text", "{member}");
        assert_eq!(member["similarity"], 1.0, "{member}");
        let visible = member["visible_similarity"].as_f64().unwrap();
        assert!(visible < 0.5, "{member}");
    }
    let pairs = lookalike("pairs")
        .arg(&input)
        .arg("--quiet")
        .succeed()
        .lines();
    assert_eq!(pairs.len(), 2, "{pairs:?}");
    assert!(
        pairs
            .iter()
            .all(|pair| pair["visible_similarity"].as_f64().unwrap() < 0.5)
    );
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("2 of 4 records are removed: 2 near copies. 2 are kept."));
    assert!(report.contains("2 near copies have the main text of the kept page"));
    assert!(report.contains("The main texts are equal; all visible text of the pages is shown."));
}

#[test]
fn an_article_and_its_print_version_were_no_near_duplicates() {
    let page = framed(1, "whale");
    let (head, rest) = page.split_once("<header>").unwrap();
    let (_, rest) = rest.split_once("<div class=content>").unwrap();
    let (article, _) = rest.split_once("</div>").unwrap();
    let print = format!("{head}{article}");
    // Another article, with the headline of the first.
    let other = framed(2, "balloon").replace("The balloon that", "The whale that");
    let folder = Folder::new();
    let pages = [("a-print", print), ("page", page), ("z-other", other)];
    let input = write(&folder, pages.map(|(name, page)| (name.to_owned(), page)));
    let results = folder.dedup(&input, &[]);
    let members = members(&results);
    assert_eq!(members.len(), 1, "{members:?}");
    assert_eq!(members[0]["reason"], "same-main-text");
    assert!(members[0]["visible_similarity"].as_f64().unwrap() < 0.5);
}

#[test]
fn explain_tells_a_template_from_an_article() {
    let folder = Folder::new();
    let explain = |a: &std::path::Path, b: &std::path::Path| {
        lookalike("explain")
            .args([a, b])
            .arg("--json")
            .succeed()
            .json()
    };
    let [hotel, dining] = ["Hotel", "Dining"].map(|name| {
        let page = casino_pages()
            .into_iter()
            .find(|(page, _)| *page == name)
            .unwrap();
        folder.add(format!("{name}.html"), page.1)
    });
    let template = explain(&hotel, &dining);
    assert_eq!(template["equal_text"], false);
    assert_eq!(template["near_duplicates"], false);
    assert_eq!(template["found"]["found"], false);
    let a = folder.add("a.html", framed(1, "whale"));
    let b = folder.add("b.html", framed(2, "whale"));
    let article = explain(&a, &b);
    assert_eq!(article["equal_text"], false);
    assert_eq!(article["equal_main_text"], true);
    assert_eq!(article["near_duplicates"], true);
    assert_eq!(article["found"]["found"], true);
    let said = lookalike("explain").args([&a, &b]).succeed();
    assert!(
        said.text()
            .starts_with("near-duplicates: resemblance 1.0000 of the main texts"),
        "{}",
        said.text()
    );
}

#[test]
fn exact_is_what_a_reader_sees_as_equal() {
    let folder = Folder::new();
    let page = framed(1, "whale");
    let retold = page.replace("<div class=content>", "<div class='content wide'>");
    let input = write(
        &folder,
        [
            ("a", page.clone()),
            ("b", page),
            ("c", retold),
            ("d", framed(4, "whale")),
        ]
        .map(|(name, page)| (name.to_owned(), page)),
    );
    let results = folder.dedup(&input, &["--keep", "first"]);
    let members = members(&results);
    let reasons: Vec<&str> = members
        .iter()
        .map(|member| member["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["exact", "exact", "same-main-text"]);
    let copies = folder.dedup(&input, &["--method", "exact", "--keep", "first"]);
    assert_eq!(copies.count("decisions", "removed_exact"), 2);
    assert_eq!(copies.count("decisions", "kept"), 2);
}

#[test]
fn pages_that_scripts_draw_were_removed_without_a_word() {
    let page = |title: &str, text: &str| {
        format!(
            "<!DOCTYPE html><html><head><title>{title} - Wood forum</title></head><body><div id=root>{text}</div><script src=app.js></script></body></html>"
        )
    };
    let whole =
        "The bridge over the river is open again, and all of the town came to see it. ".repeat(3);
    let folder = Folder::new();
    let pages = [
        ("a", page("Sharpen a chisel", "Wood forum: loading")),
        ("b", page("Oil for an oak table", "Wood forum: loading")),
        ("c", page("First dovetail joint", " ")),
        ("d", page("The bridge", &whole)),
    ];
    let input = write(&folder, pages.map(|(name, page)| (name.to_owned(), page)));
    let mut command = lookalike("dedup");
    let done = command
        .arg(&input)
        .arg("-o")
        .arg(folder.path("out"))
        .succeed();
    done.says(&["2 pages with less than 100 bytes of text"]);
    let results = Results::read(&folder.path("out"));
    assert_eq!(results.run["counts"]["html"]["nearly_empty"], 2);
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("2 pages have less than 100 bytes of text"));
}

#[test]
fn a_template_that_was_learned_is_not_compared() {
    let folder = Folder::new();
    let mut numbers = Numbers(9);
    let mut pages: Vec<String> = (0..12).map(|_| numbers.words(40, 5000)).collect();
    pages.push(pages[0].clone() + " and one word more");
    let lines: String = pages
        .iter()
        .enumerate()
        .map(|(at, own)| {
            let html = casino(&format!("Room {at}"), own);
            format!(
                "{}\n",
                serde_json::json!({"id": format!("{at:02}"), "html": html})
            )
        })
        .collect();
    let input = folder.add("in.jsonl", lines);
    let results = folder.dedup(&input, &["--boilerplate", "collection"]);
    let html = &results.run["counts"]["html"];
    assert_eq!(html["pages"], 13);
    assert_eq!(html["template"], 13, "{html}");
    assert_eq!(results.count("decisions", "kept"), 12);
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("13 of them had almost none, or it was not what the page is about"));
    let told = lookalike("dedup")
        .arg(&input)
        .args(["--boilerplate", "collection", "--overwrite", "-o"])
        .arg(folder.path("out"))
        .succeed();
    told.says(&[
        "13 pages whose main content is a template: the rest of the visible text was compared",
    ]);
}

#[test]
fn neither_order_nor_threads_change_what_becomes_of_pages() {
    let folder = Folder::new();
    let mut pages: Vec<(String, String)> = CLASSES
        .iter()
        .map(|class| (format!("class-{class}"), class_use(class)))
        .collect();
    pages.extend(casino_pages().map(|(name, page)| (name.to_owned(), page)));
    pages.extend((0..12).map(|site| {
        (
            format!("site-{site}"),
            framed(site, ["whale", "balloon"][site as usize % 2]),
        )
    }));
    let lines = |pages: &[(String, String)]| -> String {
        let line = |(id, html): &(String, String)| {
            format!("{}\n", serde_json::json!({"id": id, "html": html}))
        };
        pages.iter().map(line).collect()
    };
    let first = folder.add("in.jsonl", lines(&pages));
    let expected = folder.dedup(&first, &["--threads", "1"]);
    assert_eq!(expected.count("decisions", "kept"), 24 + 4 + 2);
    let clusters = members(&expected);
    for seed in 0..3 {
        Numbers(seed).shuffle(&mut pages);
        let other = folder.add("in.jsonl", lines(&pages));
        let results = folder.dedup(&other, &["--threads", "3"]);
        assert_eq!(members(&results), clusters);
        assert_eq!(results.run["decisions"], expected.run["decisions"]);
    }
}

#[test]
fn a_cluster_that_holds_most_removals_is_an_alert() {
    let folder = Folder::new();
    let mut numbers = Numbers(3);
    let notice = numbers.words(60, 5000);
    let mut texts: Vec<String> = (0..30).map(|_| notice.clone()).collect();
    texts.extend((0..10).flat_map(|_| vec![numbers.words(60, 5000); 2]));
    let lines: String = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            format!(
                "{}\n",
                serde_json::json!({"id": format!("{at:02}"), "text": text})
            )
        })
        .collect();
    let input = folder.add("in.jsonl", &lines);
    let run = |input: &std::path::Path| {
        let mut command = lookalike("dedup");
        command
            .arg(input)
            .arg("-o")
            .arg(folder.path("out"))
            .arg("--overwrite")
            .succeed()
    };
    run(&input).says(&["alert  29 of 39 removed records are in one cluster, that of 00"]);
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("29 of 39 removed records are in one cluster, that of 00"));
    let results = folder.dedup(&input, &[]);
    assert_eq!(
        results.run["decisions"]["largest_cluster"],
        serde_json::json!({"survivor": "00", "removed": 29})
    );
    let few: String = lines
        .lines()
        .skip(15)
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(!run(&folder.add("few.jsonl", few)).err.contains("alert"));
}

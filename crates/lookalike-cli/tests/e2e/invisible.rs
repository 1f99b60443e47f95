//! Invisible characters and variants of characters, in all commands.

use crate::support::{Finish as _, Folder, STORY, lookalike};

/// Returns the story with a soft hyphen in every third word and a zero-width space after every third.
fn hidden() -> String {
    let mark = |(at, word): (usize, &str)| {
        let (front, end) = word.split_at(word.len() / 2);
        match at % 3 {
            0 => format!("{front}\u{ad}{end}"),
            1 => format!("{word}\u{200b}"),
            _ => word.to_owned(),
        }
    };
    let words: Vec<String> = STORY.split(' ').enumerate().map(mark).collect();
    words.join(" ")
}

#[test]
fn soft_hyphens_and_zero_width_spaces_hide_no_copy() {
    let folder = Folder::new();
    let hidden = hidden();
    let input = folder.records("a.jsonl", &[("plain", STORY), ("hidden", &hidden)]);
    // Most readers see no difference, but the texts are not equal, so they are near-duplicates with all features in common.
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.count("decisions", "removed_near"), 1);
    assert_eq!(results.count("decisions", "removed_exact"), 0);
    for method in ["minhash", "simhash", "super-shingle"] {
        let flags = ["--method", method, "--threshold", "1"];
        let done = lookalike("pairs").arg(&input).args(flags).succeed();
        assert_eq!(done.lines().len(), 1, "{method}");
        assert_eq!(done.lines()[0]["similarity"], 1.0, "{method}");
    }
    let prints = lookalike("fingerprint").arg(&input).succeed().lines();
    assert_eq!(prints[0]["fingerprint"], prints[1]["fingerprint"]);
    let [a, b] = ["a.txt", "b.txt"];
    let (a, b) = (folder.add(a, STORY), folder.add(b, &hidden));
    let done = lookalike("explain").args([&a, &b]).arg("--json").succeed();
    assert_eq!(done.json()["resemblance"], 1.0, "{}", done.text());
}

#[test]
fn a_text_that_is_not_normalised_keeps_what_nobody_sees() {
    let folder = Folder::new();
    let input = folder.records("a.jsonl", &[("plain", STORY), ("hidden", &hidden())]);
    let flags = ["--normalize", "none", "--threshold", "0.5"];
    let done = lookalike("pairs").arg(&input).args(flags).succeed();
    assert!(done.out.is_empty(), "{}", done.text());
}

/// Regression test: invisible characters made every chunk of a text a different chunk.
#[test]
fn overlap_counts_what_is_seen_of_a_chunk() {
    let folder = Folder::new();
    let lines = |text: &str| text.replacen(" forty", "\n\u{200b}\nforty", 1);
    let (plain, hidden) = (STORY.replacen(" forty", "\n\nforty", 1), lines(&hidden()));
    assert_ne!(plain, hidden.replace('\u{200b}', ""));
    let input = folder.records("a.jsonl", &[("plain", &*plain), ("hidden", &*hidden)]);
    for chunking in [
        "doc",
        "lines:1",
        "sentences",
        "paragraphs",
        "words:3:sliding",
    ] {
        let mut overlap = lookalike("overlap");
        let rows = overlap
            .arg(&input)
            .args(["--chunk", chunking])
            .succeed()
            .lines();
        assert_eq!(rows.len(), 1, "{chunking}");
        assert_eq!(rows[0]["resemblance"], 1.0, "{chunking}");
    }
}

/// Regression test: a template was not recognised if its lines had a soft hyphen on every second page.
#[test]
fn boilerplate_is_known_by_what_is_seen_of_its_lines() {
    let folder = Folder::new();
    let page = |number: usize| {
        let mark = if number.is_multiple_of(2) {
            "\u{ad}"
        } else {
            ""
        };
        let own = format!("page number {number} says something else ");
        let text = format!(
            "Ho{mark}me and menu of the site\n{}\nall rights re{mark}served",
            own.repeat(9)
        );
        (number.to_string(), text)
    };
    let pages: Vec<_> = (0..8).map(page).collect();
    let input = folder.records("a.jsonl", &pages);
    let mut extract = lookalike("extract");
    extract
        .arg(&input)
        .args(["--boilerplate", "collection", "--boilerplate-share", "1"]);
    let done = extract.succeed();
    for line in done.lines() {
        let text = line["text"].as_str().unwrap();
        assert!(
            text.starts_with("page number") && !text.contains("rights"),
            "{text}"
        );
    }
}

#[test]
fn the_report_counts_documents_with_look_alike_letters() {
    let folder = Folder::new();
    let mixed = STORY.replace('a', "\u{430}");
    let input = folder.records("a.jsonl", &[("plain", STORY), ("mixed", &mixed)]);
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.count("counts", "homoglyphs"), 1);
    let page = std::fs::read_to_string(results.folder.join("report.html")).unwrap();
    assert!(page.contains("1 record has words that mix look-alike letters"));
}

#[cfg(unix)]
#[test]
fn the_service_sees_through_invisible_characters() {
    use crate::serve::Service;
    use serde_json::json;
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    service.ask("PUT", "/v1/collections/pages", &json!({}));
    let see = |id: &str, text: &str| {
        service.pages("check-and-insert", &json!({ "id": id, "text": text }))
    };
    see("plain", STORY);
    let answer = see("hidden", &hidden());
    assert_eq!(answer["neighbours"][0]["id"], "plain", "{answer}");
    assert_eq!(answer["distance"], 0, "{answer}");
}

#[test]
fn variants_of_characters_are_folded_on_request() {
    let folder = Folder::new();
    for (fold, a, b) in [
        (
            "accents",
            "le caf\u{e9} o\u{f9} l'\u{e9}l\u{e8}ve a mang\u{e9} d\u{e9}j\u{e0}",
            "le cafe ou l'eleve a mange deja",
        ),
        (
            "punctuation",
            "don\u{2019}t say it isn\u{2019}t so, they can\u{2019}t",
            "don't say it isn't so, they can't",
        ),
        (
            "arabic",
            "\u{645}\u{64f}\u{62d}\u{64e}\u{645}\u{64e}\u{651}\u{62f} \u{643}\u{640}\u{62a}\u{628} \u{62f}\u{631}\u{633} \u{648}\u{644}\u{62f} \u{628}\u{64a}\u{62a}",
            "\u{645}\u{62d}\u{645}\u{62f} \u{643}\u{62a}\u{628} \u{62f}\u{631}\u{633} \u{648}\u{644}\u{62f} \u{628}\u{64a}\u{62a}",
        ),
        (
            "width",
            "\u{ff11}\u{ff12} \u{ff21}\u{ff22} one two three",
            "12 AB one two three",
        ),
    ] {
        let input = folder.records("a.jsonl", &[("a", a), ("b", b)]);
        let found = |flags: &[&str]| {
            let mut command = lookalike("pairs");
            command.arg(&input).args(["--threshold", "1"]).args(flags);
            command.succeed().lines().len()
        };
        assert_eq!(found(&[]), 0, "{fold}");
        assert_eq!(found(&["--fold", fold]), 1, "{fold}");
        assert_eq!(
            found(&["--fold", "accents,punctuation,arabic,width"]),
            1,
            "{fold}"
        );
    }
    let input = folder.records("a.jsonl", &[("a", STORY), ("b", STORY)]);
    let done = lookalike("pairs")
        .arg(&input)
        .args(["--fold", "case"])
        .fail(2);
    done.says(&["accents, punctuation, arabic or width"]);
}

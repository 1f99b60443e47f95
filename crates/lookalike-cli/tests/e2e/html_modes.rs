//! `--html`: the text of pages that is compared.

use std::path::PathBuf;

use crate::support::{Finish, Folder, lookalike, pairs_of};

const MENU: &str = "<nav><ul><li><a href=/>Home and harbour news of today</a><li><a href=/w>Weather at \
                    sea and on the islands</a><li><a href=/t>Tide tables of the whole coast</a></ul></nav>";

const OTHER_MENU: &str = "<nav><ul><li><a href=/>Front page with all that happened since yesterday morning</a>\
    <li><a href=/s>Sports results from every ground in the county and beyond</a><li><a href=/c>Concerts and plays of \
    the coming week with prices and seats</a><li><a href=/r>Recipes for fish soup and rye bread and apple cake</a>\
    <li><a href=/l>Letters that our readers wrote to us about roads and schools</a></ul></nav>";

/// Returns a page with a menu and three paragraphs about a thing.
fn page(thing: &str, menu: &str) -> String {
    let story = format!(
        "<p>The {thing} was seen at nine off the northern pier by forty people on board of the ferry, who said that \
         the {thing} came back before noon, stayed for an hour near the lighthouse, and left again with the tide.</p>\
         <p>Nobody knows where the {thing} goes at night, but the keeper of the lighthouse has written down every day \
         on which it was there, with the wind and the weather, in a book that now lies in the town hall for all.</p>\
         <p>The mayor, who has never seen the {thing} himself, wants to put up a bench and a sign on the pier, so that \
         those who wait for it can sit down, and has asked the council for the money, which will decide in autumn.</p>"
    );
    format!(
        "<html><title>{thing}</title><body>{menu}<article><h1>A visitor</h1>{story}</article></body></html>"
    )
}

fn pages(folder: &Folder) -> PathBuf {
    folder.add("pages/a.html", page("whale", MENU));
    folder.add("pages/b.html", page("whale", OTHER_MENU));
    folder.add("pages/c.html", page("balloon", OTHER_MENU));
    folder.path("pages")
}

/// Returns the pairs of pages found, by the last letters of their names.
fn found(folder: &Folder, flags: &[&str]) -> Vec<String> {
    let mut command = lookalike("pairs");
    let rows = command
        .arg(pages(folder))
        .arg("--quiet")
        .args(flags)
        .succeed()
        .lines();
    let letter = |name: &str| name.trim_end_matches(".html").chars().last().unwrap();
    let pairs = pairs_of(&rows, "similarity");
    pairs
        .keys()
        .map(|(a, b)| format!("{}{}", letter(a), letter(b)))
        .collect()
}

#[test]
fn menus_do_not_hide_a_copy() {
    let folder = Folder::new();
    let none: [&str; 0] = [];
    assert_eq!(found(&folder, &["--html", "visible"]), none);
    assert_eq!(found(&folder, &["--html", "fast"]), ["ab"]);
    assert_eq!(found(&folder, &[]), ["ab"]);
}

/// Regression test: a way of reading HTML that gives other documents was silently left out of the sweep. With `--html main`, three pages are read
/// three times: for their ids, for the exact pairs, and to be measured. A converter that fails on its tenth call therefore fails when `visible` is
/// tried.
#[cfg(unix)]
#[test]
fn a_sweep_says_which_way_to_read_html_it_cannot_try() {
    let folder = Folder::new();
    for (name, menu, hour) in [
        ("a", MENU, "nine"),
        ("b", OTHER_MENU, "ten"),
        ("c", MENU, "noon"),
    ] {
        let page = page("whale", menu).replace("at nine", &format!("at {hour}"));
        folder.add(format!("in/{name}.page"), page);
    }
    let count = folder.path("count");
    let script = format!(
        "echo >> {0}; test $(wc -l < {0}) -ne 10 && cat",
        count.display()
    );
    let mut sweep = lookalike("evaluate");
    sweep.arg("sweep").arg(folder.path("in"));
    sweep.args([
        "--sketches",
        "none",
        "--shingles",
        "words:3",
        "--masks",
        "none",
    ]);
    sweep
        .arg("--convert")
        .arg(format!(".page=sh -c '{script}'"));
    let done = sweep.arg("--json").lose();
    done.says(&[
        "--html-modes visible is not tried",
        "2 documents",
        "the same 3 as with --html main",
    ]);
    assert_eq!(done.json()["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn the_scheme_names_the_mode() {
    let folder = Folder::new();
    let scheme = |flags: &[&str]| {
        let out = folder.path("fingerprints.jsonl");
        let mut command = lookalike("fingerprint");
        let done = command
            .arg(pages(&folder))
            .arg("-o")
            .arg(&out)
            .arg("--json")
            .args(flags)
            .succeed();
        done.json()["scheme"].as_str().unwrap().to_owned()
    };
    assert!(scheme(&[]).contains(" html=main/1 "));
    assert!(scheme(&["--html", "visible"]).contains(" html=visible "));
    let all = scheme(&[
        "--html",
        "fast",
        "--html-title",
        "--html-alt",
        "--html-links",
    ]);
    assert!(all.contains(" html=fast/1+title+alt+links "), "{all}");
}

#[test]
fn explain_reads_pages_as_the_jobs_do() {
    let folder = Folder::new();
    let pages = pages(&folder);
    let shared = |flags: &[&str]| {
        let mut command = lookalike("explain");
        let files = [pages.join("a.html"), pages.join("b.html")];
        command
            .args(files)
            .arg("--json")
            .args(flags)
            .succeed()
            .json()
    };
    let main = shared(&[]);
    assert_eq!(main["equal_main_text"], true);
    assert_eq!(main["equal_text"], false);
    assert!(
        main["visible_resemblance"].as_f64().unwrap() < 0.8,
        "{main}"
    );
    let visible = shared(&["--html", "visible"]);
    assert_eq!(visible["equal_main_text"], false);
    assert_eq!(visible["visible_resemblance"], serde_json::Value::Null);
}

#[test]
fn an_unknown_mode_and_one_not_built_in_are_refused() {
    let folder = Folder::new();
    let pages = pages(&folder);
    let fail = |mode: &str, status| {
        let mut command = lookalike("pairs");
        command.arg(&pages).args(["--html", mode]).fail(status)
    };
    for unknown in ["best", "main/1"] {
        fail(unknown, 2).says(&["visible, fast, main or quality"]);
    }
    if !cfg!(feature = "quality") {
        fail("quality", 1).says(&["the mode `quality`", "`full,quality`"]);
    }
}

/// Returns a page that documents a class: its own entries, then longer ones that many classes inherit.
fn reference(class: &str, version: &str, verbs: [&str; 6]) -> String {
    let entry = |verb: &str, told: String| {
        format!("<tr><td><code>{verb}</code></td><td><div>{told}</div></td></tr>")
    };
    let own = verbs.map(|verb| {
        let told = format!(
            "{verb}s what the {class} was given, and tells how often the {class} had to {verb} since it was made."
        );
        entry(verb, told)
    });
    let inherited = ["clone", "compare", "finish", "hash", "notify", "wait"].map(|verb| {
        let told = format!(
            "To {verb} an object is to ask it for what it was before others came to {verb} it, which takes time, and \
             the time to {verb} is not bounded, so that whoever must {verb} many of them should not {verb} in a hurry."
        );
        entry(verb, told)
    });
    format!(
        "<html><body><div><h1>Class {class} {version}</h1><p>Since {version}.</p><table>{}</table></div>\
         <div><h2>Inherited</h2><table>{}</table></div></body></html>",
        own.concat(),
        inherited.concat()
    )
}

#[test]
fn different_pages_of_reference_are_not_one_because_of_what_they_inherit() {
    let folder = Folder::new();
    let shelf = ["put", "take", "count", "sort", "find", "dust"];
    folder.add("pages/a.html", reference("shelf", "8", shelf));
    folder.add("pages/b.html", reference("shelf", "9", shelf));
    let engine = ["start", "stop", "fuel", "cool", "turn", "oil"];
    folder.add("pages/c.html", reference("engine", "9", engine));
    let pairs = |mode: &str| {
        let mut command = lookalike("pairs");
        let flags = ["--quiet", "--threshold", "0.7", "--html", mode];
        let rows = command
            .arg(folder.path("pages"))
            .args(flags)
            .succeed()
            .lines();
        let names = pairs_of(&rows, "similarity").into_keys();
        let letter = |name: String| name.chars().rev().nth(5).unwrap();
        names
            .map(|(a, b)| (letter(a), letter(b)))
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs("main"), [('a', 'b')]);
}

/// Chunks come from the text of the mode, so pages overlap by their menus only if the mode includes menus.
#[test]
fn overlap_cuts_the_text_of_the_mode() {
    let folder = Folder::new();
    let pages = pages(&folder);
    let found = |flags: &[&str]| -> Vec<String> {
        let mut command = lookalike("overlap");
        command
            .arg(&pages)
            .args(["--quiet", "--chunk", "lines:1", "--min-shared", "3"]);
        let rows = command.args(flags).succeed().lines();
        let letter = |end: &serde_json::Value| {
            let name = end.as_str().unwrap().trim_end_matches(".html");
            name.chars().last().unwrap()
        };
        rows.iter()
            .map(|row| format!("{}{}", letter(&row["a"]), letter(&row["b"])))
            .collect()
    };
    assert_eq!(found(&["--html", "visible"]), ["ab", "bc"]);
    assert_eq!(found(&["--html", "fast"]), ["ab"]);
    assert_eq!(found(&["--html", "main"]), ["ab"]);
    assert_eq!(found(&[]), ["ab"]);
    // The mode is one of the job's settings in `run.json`.
    let out = folder.path("atlas");
    let run = |flags: &[&str]| {
        let mut command = lookalike("overlap");
        command
            .arg(&pages)
            .args(["--quiet", "--chunk", "lines:1", "-o"])
            .arg(&out)
            .args(flags);
        command
    };
    run(&["--html", "visible"]).succeed();
    let settings = std::fs::read_to_string(out.join("run.json")).unwrap();
    assert!(settings.contains("html=visible"), "{settings}");
    run(&["--html", "fast"]).fail(1);
    run(&["--html", "fast", "--overwrite"]).succeed();
}

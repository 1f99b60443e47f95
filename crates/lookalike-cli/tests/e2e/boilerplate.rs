//! `--boilerplate`: lines that recur on many pages are removed before texts are compared.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, json_lines, lookalike, pairs_of};

/// Returns the top and bottom lines that all pages of a site have.
fn template(site: usize) -> (String, String) {
    let mut numbers = Numbers(site as u64 + 100);
    let line = |numbers: &mut Numbers| format!("{}\n", numbers.words(9, 5000));
    let head: String = (0..30).map(|_| line(&mut numbers)).collect();
    let foot: String = (0..30).map(|_| line(&mut numbers)).collect();
    (head, foot)
}

/// Returns 3 sites of 20 pages, each with 30 words of its own within its site's template; page 0 of site 0 and of site 1 have the same words.
fn sites() -> Vec<Value> {
    let mut pages = Vec::new();
    let mut numbers = Numbers(5);
    let shared = numbers.words(60, 5000);
    for site in 0..3 {
        let (head, foot) = template(site);
        for page in 0..20 {
            let own = match (site, page) {
                (0 | 1, 0) => shared.clone(),
                _ => numbers.words(60, 5000),
            };
            pages.push(json!({
                "id": format!("{site}/{page}"),
                "url": format!("https://site{site}.example/{page}"),
                "text": format!("{head}{own}\n{foot}"),
            }));
        }
    }
    pages
}

fn write(folder: &Folder, name: &str, pages: &[Value]) -> PathBuf {
    let lines: String = pages.iter().map(|page| format!("{page}\n")).collect();
    folder.add(name, lines)
}

fn found(input: &std::path::Path, flags: &[&str]) -> Vec<(String, String)> {
    let mut command = lookalike("pairs");
    let rows = command
        .arg(input)
        .arg("--quiet")
        .args(flags)
        .succeed()
        .lines();
    pairs_of(&rows, "similarity").into_keys().collect()
}

fn pair(a: &str, b: &str) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

#[test]
fn pages_that_share_a_template_are_no_copies_and_copies_in_two_templates_are() {
    let folder = Folder::new();
    let input = write(&folder, "in.jsonl", &sites());
    let with_template = found(&input, &[]);
    assert_eq!(with_template.len(), 3 * 20 * 19 / 2, "all pages of a site");
    assert!(!with_template.contains(&pair("0/0", "1/0")));
    assert_eq!(
        found(&input, &["--boilerplate", "site"]),
        [pair("0/0", "1/0")]
    );
    // Each template is on a third of all pages, which is more than a tenth.
    assert_eq!(
        found(&input, &["--boilerplate", "collection"]),
        [pair("0/0", "1/0")]
    );
    let large = ["--boilerplate", "collection", "--boilerplate-share", "0.5"];
    assert_eq!(found(&input, &large), with_template);
}

#[test]
fn counts_stand_in_the_summary_and_the_report() {
    let folder = Folder::new();
    let input = write(&folder, "in.jsonl", &sites());
    let results = folder.dedup(&input, &["--boilerplate", "site"]);
    let counts = &results.run["counts"]["boilerplate"];
    assert_eq!(counts["learned"], 180);
    assert_eq!(counts["documents"], 60);
    assert_eq!(counts["lines"], 60 * 60);
    assert_eq!(counts["kept_whole"], 0);
    let scheme = results.run["scheme"].as_str().unwrap();
    let lines_of = counts["lines_of"].as_str().unwrap();
    assert!(
        scheme.contains(&format!(" boilerplate={lines_of} ")),
        "{scheme}"
    );
    // The words of both pages are equal, but their visible texts differ.
    assert_eq!(results.count("decisions", "removed_exact"), 0);
    assert_eq!(results.count("decisions", "removed_near"), 1);
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("3,600 were removed from 60 records"));
    // The records themselves are written unchanged.
    let kept = std::fs::read_to_string(folder.path("out/kept.jsonl")).unwrap();
    assert!(
        std::fs::read_to_string(&input)
            .unwrap()
            .contains(kept.lines().next().unwrap())
    );
    let off = folder.dedup(&input, &["--boilerplate", "off"]);
    assert!(off.run["counts"]["boilerplate"].is_null());
    assert!(
        off.run["scheme"]
            .as_str()
            .unwrap()
            .contains(" boilerplate=kept ")
    );
}

#[test]
fn neither_order_nor_threads_nor_memory_nor_copies_change_what_is_learned() {
    let folder = Folder::new();
    let mut pages = sites();
    let scheme = |pages: &[Value], flags: &[&str]| {
        let input = write(&folder, "in.jsonl", pages);
        let mut command = lookalike("fingerprint");
        command
            .arg(input)
            .args(["--boilerplate", "site", "--json", "-o"]);
        let done = command.arg(folder.path("f.jsonl")).args(flags).succeed();
        done.json()["scheme"].as_str().unwrap().to_owned()
    };
    let first = scheme(&pages, &["--threads", "1"]);
    Numbers(1).shuffle(&mut pages);
    assert_eq!(
        scheme(&pages, &["--threads", "3", "--memory", "64M"]),
        first
    );
    // A page with a hundred copies counts as one page, so its lines are no template.
    let mut copy = pages[0].clone();
    for number in 0..100 {
        copy["id"] = json!(format!("copy {number}"));
        pages.push(copy.clone());
    }
    assert_eq!(scheme(&pages, &[]), first);
    // Other templates give another scheme.
    pages.retain(|page| page["url"].as_str().unwrap().contains("site1"));
    assert_ne!(scheme(&pages, &[]), first);
}

#[test]
fn pages_without_url_belong_to_no_site() {
    let folder = Folder::new();
    let mut pages = sites();
    let bare = |page: &mut Value| page.as_object_mut().unwrap().remove("url");
    pages[0..5].iter_mut().for_each(|page| drop(bare(page)));
    let input = write(&folder, "some.jsonl", &pages);
    let mut command = lookalike("pairs");
    let done = command
        .arg(&input)
        .args(["--boilerplate", "site"])
        .succeed();
    done.says(&["5 of no site"]);
    pages.iter_mut().for_each(|page| drop(bare(page)));
    let input = write(&folder, "none.jsonl", &pages);
    let mut command = lookalike("pairs");
    command.arg(&input).args(["--boilerplate", "site"]);
    command
        .fail(2)
        .says(&["no document has a site", "--boilerplate collection"]);
}

#[test]
fn pages_of_nothing_but_template_keep_it() {
    let folder = Folder::new();
    let (head, foot) = template(0);
    let page = |number: usize, own: &str| json!({ "id": number.to_string(), "text": format!("{head}{own}\n{foot}") });
    let mut numbers = Numbers(9);
    let mut pages: Vec<Value> = (0..20).map(|n| page(n, &numbers.words(40, 9999))).collect();
    pages.push(page(20, "few words"));
    let input = write(&folder, "in.jsonl", &pages);
    let mut command = lookalike("extract");
    let done = command
        .arg(&input)
        .args(["--boilerplate", "collection"])
        .succeed();
    done.says(&["1 that are almost all boilerplate"]);
    let lines = done.lines();
    assert_eq!(lines[20]["text"], pages[20]["text"]);
    assert!(lines[0]["text"].as_str().unwrap().lines().count() == 1);
}

#[test]
fn jobs_with_other_boilerplate_are_not_resumed_and_tables_of_terms_must_fit() {
    let folder = Folder::new();
    let input = write(&folder, "in.jsonl", &sites());
    let terms = folder.path("words.terms");
    let table = |flags: &[&str]| {
        let mut command = lookalike("terms");
        command
            .arg(&input)
            .args(["--shingle", "words:1", "-o"])
            .arg(&terms);
        command.args(flags).succeed();
    };
    let idf = |flags: &[&str]| {
        let mut command = lookalike("fingerprint");
        command
            .arg(&input)
            .args(["--shingle", "words:1", "--weight", "idf", "--terms"]);
        command.arg(&terms).args(flags).finish()
    };
    table(&["--boilerplate", "site"]);
    assert_eq!(idf(&["--boilerplate", "site"]).status, Some(0));
    let refused = idf(&[]);
    assert_eq!(refused.status, Some(1));
    refused.says(&["boilerplate"]);
}

#[test]
fn overlap_counts_chunks_without_the_template() {
    let folder = Folder::new();
    let input = write(&folder, "in.jsonl", &sites());
    let rows = |flags: &[&str]| {
        let mut command = lookalike("overlap");
        let done = command
            .arg(&input)
            .args(["--chunk", "lines:1", "--copies", "listed"])
            .args(flags);
        done.succeed()
    };
    assert_eq!(rows(&[]).lines().len(), 3 * 20 * 19 / 2 + 1);
    let without = rows(&["--boilerplate", "site"]);
    assert_eq!(without.lines().len(), 1);
    without.says(&["180 lines learned"]);
}

#[test]
fn a_killed_job_goes_on_with_the_same_lines() {
    let folder = Folder::new();
    let input = write(&folder, "in.jsonl", &sites());
    let whole = folder.dedup(&input, &["--boilerplate", "site"]);
    let out = folder.path("again");
    // A job that was stopped before it wrote results leaves nothing but its state.
    std::fs::create_dir_all(out.join(".lookalike")).unwrap();
    let mut command = lookalike("dedup");
    command
        .arg(&input)
        .args(["--boilerplate", "site", "--resume", "-o"])
        .arg(&out)
        .succeed();
    let again = Results::read(&out);
    assert_eq!(again.run["scheme"], whole.run["scheme"]);
    assert_eq!(again.run["decisions"], whole.run["decisions"]);
    assert!(!json_lines(&std::fs::read(out.join("clusters.jsonl")).unwrap()).is_empty());
}

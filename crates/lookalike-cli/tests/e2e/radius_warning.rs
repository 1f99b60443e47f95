//! A small radius for fingerprints of runs of words causes one warning, on standard error only.

use std::process::Command;

use crate::client::client;
use crate::serve::Service;
use crate::support::{Finish, Folder, STORY, lookalike};

/// Returns how many times a command warns about its radius.
#[track_caller]
fn warnings(command: &mut Command) -> usize {
    let done = command.succeed();
    assert!(!done.text().contains("warning"), "{}", done.text());
    let count = done.err.matches("warning:").count();
    if count > 0 {
        // The resemblance is 2 * 0.9010 / 1.9010; from its angle follows the probability that at most three of 64 bits differ.
        done.says(&["about 9% of 100-word pages", "single words 67%"]);
    }
    count
}

#[test]
fn fingerprints_of_runs_of_words_are_warned_of_and_single_words_are_not() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let count = |flags: &[&str]| warnings(lookalike("fingerprint").arg(&input).args(flags));
    assert_eq!(count(&[]), 1);
    assert_eq!(count(&["--weight", "tf"]), 1);
    for flags in [
        &["--quiet"][..],
        &["--json"],
        &["--shingle", "words:1"],
        &["--sketch", "minhash:64"],
        &["--sketch", "super-shingle:6x14"],
    ] {
        assert_eq!(count(flags), 0, "{flags:?}");
    }
}

#[test]
fn jobs_over_such_fingerprints_warn_by_the_scheme_that_a_file_names() {
    let folder = Folder::new();
    let input = folder.records("in.jsonl", &[("a", STORY), ("b", STORY)]);
    let make = |name: &str, flags: &[&str]| {
        let path = folder.path(name);
        let mut command = lookalike("fingerprint");
        command
            .arg(&input)
            .args(["-q", "-o"])
            .arg(&path)
            .args(flags)
            .succeed();
        path
    };
    let (runs, single) = (
        make("runs.lkfp", &[]),
        make("single.lkfp", &["--shingle", "words:1"]),
    );
    let unnamed = make("runs.jsonl", &[]);
    let out = folder.path("out");
    for (file, flags, expected) in [
        (&runs, &[][..], 1),
        (&runs, &["--quiet"], 0),
        (&runs, &["--distance", "16"], 0),
        (&single, &[], 0),
        (&unnamed, &[], 0),
    ] {
        let mut join = lookalike("join");
        assert_eq!(
            warnings(join.arg(file).args(flags)),
            expected,
            "join {file:?} {flags:?}"
        );
        let mut cluster = lookalike("cluster");
        cluster
            .arg(file)
            .args(flags)
            .args(["--overwrite", "-o"])
            .arg(&out);
        assert_eq!(
            warnings(&mut cluster),
            expected,
            "cluster {file:?} {flags:?}"
        );
        let mut build = lookalike("index");
        build
            .arg("build")
            .arg(file)
            .args(flags)
            .args(["--overwrite", "-o"]);
        assert_eq!(
            warnings(build.arg(folder.path("x.lkix"))),
            expected,
            "index {file:?} {flags:?}"
        );
    }
}

#[test]
fn new_collections_of_the_service_are_warned_of_too() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    let create = |name: &str, flags: &[&str]| {
        warnings(&mut client(&service, &[&["create", name], flags].concat()))
    };
    assert_eq!(create("plain", &[]), 1);
    assert_eq!(create("quiet", &["--quiet"]), 0);
    assert_eq!(create("wide", &["--radius", "16"]), 0);
}

#[test]
fn the_remedy_of_the_warning_could_not_be_followed() {
    let folder = Folder::new();
    let service = Service::start(&folder.path("data"), &[]);
    let told = client(&service, &["create", "runs"]).succeed();
    told.says(&["or with --shingle words:1"]);
    let scheme = |words: &[&str]| {
        let shown = client(&service, words).succeed().json();
        shown["scheme"].as_str().unwrap().to_owned()
    };
    let runs = scheme(&["show", "runs"]);
    let words = runs.replace("shingle=words:5", "shingle=words:1");
    assert_ne!(runs, words);
    assert_eq!(
        warnings(&mut client(
            &service,
            &["create", "w", "--shingle", "words:1"]
        )),
        0
    );
    assert_eq!(scheme(&["show", "w"]), words);
    let with_sketch = [
        "create",
        "s",
        "--shingle",
        "words:1",
        "--sketch",
        "simhash:128",
    ];
    assert!(scheme(&with_sketch).contains("shingle=words:1 "));
    client(&service, &["create", "kept", "--keep", "texts", "-q"]).succeed();
    client(
        &service,
        &["resketch", "kept", "--shingle", "words:1", "--wait"],
    )
    .succeed();
    assert_eq!(scheme(&["show", "kept"]), words);
    let preset = [
        "create",
        "p",
        "--preset",
        "one-topic",
        "--shingle",
        "words:1",
    ];
    client(&service, &preset).fail(2);
    service.stop();
    let (page, codes) = (folder.add("page.txt", STORY), folder.path("page.lkfp"));
    let mut made = lookalike("fingerprint");
    made.arg(page)
        .args(["--shingle", "words:1", "-o"])
        .arg(&codes);
    made.succeed();
    let load = |collection: &str, flags: &[&str]| {
        let mut load = lookalike("store");
        load.arg("load").arg(folder.path("data")).arg(collection);
        load.arg(&codes).args(flags);
        load
    };
    load("loaded", &[])
        .fail(2)
        .says(&["with --scheme, --shingle or --sketch"]);
    load("loaded", &["--shingle", "words:1"]).succeed();
    let other = load("loaded", &["--shingle", "words:2"]).fail(2);
    other.says(&["--shingle has no effect here", "words:1 and words:2"]);
}

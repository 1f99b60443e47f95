//! Presets: they are equivalent to the options that they stand for, and are not mixed with fingerprints of another kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::serve::{Service, client};
use crate::support::{Finish, Folder, contents, corpus, examples, json_lines, lookalike, path};

const PRESET: [&str; 2] = ["--preset", "one-topic"];

fn command(name: &str, inputs: &[&Path], flags: &[&str]) -> Command {
    let mut command = lookalike(name);
    command.args(inputs).args(flags).arg("-q");
    command
}

fn index(input: &Path, output: &Path, flags: &[&str]) -> Command {
    let mut build = lookalike("index");
    build.args(["build", "-q"]).arg(input).arg("-o").arg(output);
    build.args(flags);
    build
}

#[test]
fn a_preset_is_the_options_that_it_stands_for() {
    let folder = Folder::new();
    let articles = examples().join("articles.jsonl");
    let [file, same] = ["topic.lkfp", "same.lkfp"].map(|name| folder.path(name));
    let named = [&PRESET[..], &["-o", path(&file)]].concat();
    command("fingerprint", &[&articles], &named).succeed();
    let options = [
        "--shingle",
        "words:3",
        "--sketch",
        "simhash:128",
        "-o",
        path(&same),
    ];
    command("fingerprint", &[&articles], &options).succeed();
    assert_eq!(fs::read(&file).unwrap(), fs::read(&same).unwrap());

    let distance = ["--distance", "12"];
    let joined = command("join", &[&file], &PRESET).succeed().out;
    assert!(!joined.is_empty());
    assert_eq!(joined, command("join", &[&file], &distance).succeed().out);
    assert_ne!(joined, command("join", &[&file], &[]).succeed().out);
    let kept = [PRESET, distance].map(|flags| {
        let out = folder.path(flags[1]);
        command(
            "cluster",
            &[&file],
            &[&flags[..], &["-o", path(&out)]].concat(),
        )
        .succeed();
        fs::read(out.join("clusters.jsonl")).unwrap()
    });
    assert_eq!(kept[0], kept[1]);
    let built = [PRESET, distance].map(|flags| {
        let out = folder.path(format!("{}.lkix", flags[1]));
        index(&file, &out, &flags).succeed();
        fs::read(out).unwrap()
    });
    assert!(built[0] == built[1]);
    let service = Service::start(&folder.path("data"), &[]);
    let created = ["create", "topic", "--quiet", "--preset", "one-topic"];
    let created = client(&service, &created).succeed().json();
    assert_eq!(created["radius"], 12);
    let scheme = created["scheme"].as_str().unwrap();
    assert!(
        scheme.contains("shingle=words:3 ") && scheme.contains("sketch=simhash:128 "),
        "{scheme}"
    );
}

#[test]
fn a_preset_is_refused_where_it_does_not_fit() {
    let folder = Folder::new();
    let articles = examples().join("articles.jsonl");
    let file = folder.path("plain.lkfp");
    command("fingerprint", &[&articles], &["-o", path(&file)]).succeed();
    let indexed = folder.path("plain.lkix");
    index(&file, &indexed, &[]).succeed();
    let out = folder.path("out");
    let to_folder = [&PRESET[..], &["-o", path(&out)]].concat();
    let misfits = [
        command("join", &[&file], &PRESET),
        command("join", &[&indexed, &file], &PRESET),
        command("cluster", &[&file], &to_folder),
        index(&file, &folder.path("x.lkix"), &PRESET),
    ];
    for mut misfit in misfits {
        misfit
            .fail(1)
            .says(&["64 bits", "--preset one-topic", "is for 128", "--distance"]);
    }
    let both = [
        command(
            "fingerprint",
            &[&articles],
            &["--preset", "one-topic", "--sketch", "simhash:64"],
        ),
        command(
            "fingerprint",
            &[&file],
            &["--preset", "one-topic", "--import"],
        ),
        command(
            "join",
            &[&file],
            &["--preset", "one-topic", "--distance", "3"],
        ),
        command("join", &[&file], &["--preset", "one-topic", "--equal", "2"]),
    ];
    for mut both in both {
        both.fail(2).says(&["cannot be used with"]);
    }
    command("join", &[&file], &["--preset", "news"])
        .fail(2)
        .says(&["one-topic"]);
}

/// Regression test: fingerprints with the width of the preset but of other runs of words were silently joined within its distance.
#[test]
fn a_preset_took_features_of_another_kind() {
    let folder = Folder::new();
    let articles = examples().join("articles.jsonl");
    let make = |name: &str, flags: &[&str]| {
        let file = folder.path(name);
        let flags = [flags, &["-o", path(&file)]].concat();
        command("fingerprint", &[&articles], &flags).succeed();
        file
    };
    let wide = ["--sketch", "simhash:128"];
    let other = make("other.lkfp", &wide);
    let tagged = [&wide[..], &["--shingle", "chars:9", "--html", "visible"]].concat();
    let characters = make("characters.lkfp", &tagged);
    let indexed = folder.path("other.lkix");
    index(&other, &indexed, &[]).succeed();
    let out = folder.path("out");
    let to_folder = [&PRESET[..], &["-o", path(&out)]].concat();
    let says = ["--preset one-topic", "is for words:3", "--distance"];
    for (mut misfit, features) in [
        (command("join", &[&other], &PRESET), "over words:5"),
        (
            command("join", &[&indexed, &other], &PRESET),
            "over words:5",
        ),
        (command("cluster", &[&other], &to_folder), "over words:5"),
        (command("join", &[&characters], &PRESET), "over chars:9"),
        (
            index(&characters, &folder.path("x.lkix"), &PRESET),
            "over chars:9",
        ),
    ] {
        misfit.fail(1).says(&[&says[..], &[features]].concat());
    }
    // Options that differ from those of the preset cause a message only if the id of the scheme does not identify them.
    for (name, flags, is_known) in [
        ("visible.lkfp", &["--html", "visible"][..], true),
        ("tf.lkfp", &["--weight", "tf"], true),
        ("stems.lkfp", &["--stem", "en", "--case", "keep"], false),
        // A format without a scheme causes no message.
        ("lines.jsonl", &[], true),
    ] {
        let file = make(name, &[&PRESET[..], flags].concat());
        let mut join = lookalike("join");
        let joined = join.arg(&file).args(PRESET).succeed();
        let told = joined.err.contains("the id of its scheme");
        assert_eq!(told, !is_known, "{name}: {}", joined.err);
    }
}

/// Checks the figures of the guide on a corpus that was not used to choose the preset: within its distance no pair joins two pages of a manual, and
/// more pairs are found than with the defaults.
#[test]
fn pages_of_one_topic_stay_apart() {
    let Some(pages) = corpus("manual-versions-html/docs.jsonl.gz") else {
        return;
    };
    let folder = Folder::new();
    let rows = json_lines(&contents(&pages));
    // Use each text once.
    let mut first: BTreeMap<&str, &Value> = BTreeMap::new();
    for row in &rows {
        first.entry(row["text"].as_str().unwrap()).or_insert(row);
    }
    let lines: Vec<String> = first.values().map(|row| format!("{row}\n")).collect();
    let input = folder.add("pages.jsonl", lines.concat());
    let names: BTreeMap<&str, &str> = first
        .values()
        .map(|row| (row["id"].as_str().unwrap(), row["page"].as_str().unwrap()))
        .collect();
    let counts = |preset: &[&str]| {
        let file = folder.path("pages.lkfp");
        let flags = [&["--text", "text", "-o", path(&file)], preset].concat();
        command("fingerprint", &[&input], &flags).succeed();
        let pairs = command("join", &[&file], preset).succeed().lines();
        let page = |pair: &Value, side: &str| names[pair[side].as_str().unwrap()].to_owned();
        let wrong = pairs
            .iter()
            .filter(|pair| page(pair, "a") != page(pair, "b"));
        [pairs.len(), wrong.count()]
    };
    let ([found, wrong], [fewer, _]) = (counts(&PRESET), counts(&[]));
    assert!(found > 250 && wrong == 0, "{wrong} of {found}");
    assert!(fewer < found / 2, "{fewer} of {found}");
}

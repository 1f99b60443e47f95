//! Input of evaluations: other fields of a record, texts without the lines of a template, standard input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hostile_files::{fifo, wait_for};
use crate::support::{Finish, Folder, Numbers, interrupt, lookalike, path, record, table_below};

fn evaluate(what: &str, input: &Path, flags: &[&str]) -> Value {
    let mut command = lookalike("evaluate");
    command.arg(what).arg(input).args(flags);
    command.args(["--json", "--quiet"]).succeed().json()
}

fn pairs(input: &Path, flags: &[&str]) -> usize {
    let mut command = lookalike("pairs");
    command.arg(input).args(flags).arg("--quiet");
    command.succeed().lines().len()
}

/// Checks that every evaluation has as many true pairs as `pairs` lists with the same flags, and returns that number.
fn agree(folder: &Folder, input: &Path, threshold: &str, flags: &[&str]) -> usize {
    let flags = [flags, &["--threshold", threshold]].concat();
    let expected = pairs(input, &flags);
    let sketches = [
        "--sketches",
        "none,simhash:64",
        "--shingles",
        "words:1",
        "--weights",
        "set,idf",
    ];
    let sweep = evaluate("sweep", input, &[&flags[..], &sketches].concat());
    assert_eq!(sweep["true_pairs"], expected, "{flags:?}");
    // There are rows with and without a mask.
    assert_eq!(sweep["rows"].as_array().unwrap().len(), 6);
    let audit = evaluate(
        "audit",
        input,
        &[&flags[..], &["--method", "oph", "--functions", "64"]].concat(),
    );
    assert_eq!(audit["true_pairs"], expected, "{flags:?}");
    let flags = &flags[..flags.len() - 2];
    let sampled = folder.path("pairs.jsonl");
    let sample = ["--sketch", "none", "--each", "1000", "--bands", threshold];
    let sample = [flags, &sample, &["-o", sampled.to_str().unwrap()]].concat();
    assert_eq!(
        evaluate("sample", input, &sample)["pairs"],
        expected,
        "{flags:?}"
    );
    expected
}

#[test]
fn other_fields_are_looked_at() {
    let folder = Folder::new();
    let page = |id: usize, link: usize| {
        let text = format!("page number{id} about topic{} and no more", id / 2);
        let links = [
            format!("http://a/{link}"),
            format!("http://b/{link}"),
            format!("http://c/{link}"),
        ];
        json!({"id": format!("p{id:02}"), "text": text, "in_links": links}).to_string() + "\n"
    };
    // Pages 2n and 2n + 1 have the same topic, pages n and n + 10 the same links.
    let input = folder.add(
        "in.jsonl",
        (0..20).map(|id| page(id, id % 10)).collect::<String>(),
    );
    let (plain, fields) = (
        ["--shingle", "words:1"],
        ["--shingle", "words:1", "--fields", "in-links:3"],
    );
    assert_eq!(agree(&folder, &input, "0.7", &plain), 10);
    assert_eq!(agree(&folder, &input, "0.6", &fields), 10);
    let label = |a: usize, b: usize, is_true: bool| {
        json!({"a": format!("p{a:02}"), "b": format!("p{b:02}"), "label": is_true}).to_string()
            + "\n"
    };
    let labels: String = (0..10)
        .map(|at| label(at, at + 10, true) + &label(2 * at, 2 * at + 1, false))
        .collect();
    let labels = folder.add("labels.jsonl", labels);
    let f1 = |flags: &[&str]| {
        let flags = [flags, &["--labels", labels.to_str().unwrap()]].concat();
        let answer = evaluate("labels", &input, &flags);
        let scheme = answer["row"]["scheme"].as_str().unwrap().to_owned();
        (
            answer["row"]["curve"]["best"]["f1"].as_f64().unwrap(),
            scheme,
        )
    };
    let ((with, scheme), (without, _)) = (f1(&fields), f1(&plain));
    assert!(with == 1.0 && without < 0.8, "{with} {without}");
    assert!(scheme.contains(" fields=in-links:3 "), "{scheme}");
    let simhash = [&fields[..], &["--sketch", "simhash:64"]].concat();
    assert!(f1(&simhash).0 > f1(&[&plain[..], &["--sketch", "simhash:64"]].concat()).0);
}

#[test]
fn templates_are_taken_out_where_that_is_asked_for() {
    let folder = Folder::new();
    let template = "home news sport weather\nthis site was made by people who like templates\nall rights reserved by them\n";
    let page = |id: usize| {
        let own: Vec<String> = (0..30)
            .map(|word| format!("story{}word{word}", id / 2))
            .collect();
        let own = own.join(" ");
        let url = format!("http://site{}.example/{id}", id % 2);
        json!({"url": url, "text": format!("{template}{own} page{id}")}).to_string() + "\n"
    };
    let input = folder.add("in.jsonl", (0..20).map(page).collect::<String>());
    let flags = ["--shingle", "words:1", "--boilerplate", "site"];
    // With the template all pages resemble each other a little; without it, each story is on both sites.
    assert_eq!(agree(&folder, &input, "0.2", &flags[..2]), 190);
    assert_eq!(agree(&folder, &input, "0.2", &flags), 10);
    let sweep = evaluate(
        "sweep",
        &input,
        &[&flags[..], &["--sketches", "none"]].concat(),
    );
    let scheme = sweep["rows"][0]["scheme"].as_str().unwrap();
    assert!(scheme.contains(" boilerplate=site/1:"), "{scheme}");
    let audit = evaluate(
        "audit",
        &input,
        &[&flags[..], &["--method", "oph"]].concat(),
    );
    assert!(
        audit["scheme"]
            .as_str()
            .unwrap()
            .contains(" boilerplate=site/1:")
    );
}

/// An audit reads its input twice, but standard input can be read only once.
#[test]
fn standard_input_is_read_as_often_as_an_audit_needs() {
    let lines: String = (0..30)
        .map(|at| {
            // Two versions of a story differ in one of 18 words, two stories in two.
            let text = format!(
                "story{} begins here and goes on for a dozen words and more until the end of it {at}",
                at / 2
            );
            json!({"id": at, "text": text}).to_string() + "\n"
        })
        .collect();
    let mut command = lookalike("evaluate");
    command.args([
        "audit", "-", "--format", "jsonl", "--method", "minhash", "--json", "--quiet",
    ]);
    let done = command.finish_with(lines.as_bytes());
    assert_eq!(done.status, Some(0), "{}", done.err);
    assert_eq!(
        (&done.json()["documents"], &done.json()["true_pairs"]),
        (&json!(30), &json!(15))
    );
}

#[test]
fn a_sample_that_memory_cannot_hold_is_refused() {
    let folder = Folder::new();
    let words = "one two three four ".repeat(50_000);
    let lines: String = (0..80)
        .map(|at| json!({"id": at, "text": format!("{at} {words}")}).to_string() + "\n")
        .collect();
    let input = folder.add("long.jsonl", &lines);
    let run = |sample: &str| {
        let mut command = lookalike("evaluate");
        command.arg("audit").arg(&input);
        command.args([
            "--method", "minhash", "--memory", "64M", "--sample", sample, "--quiet",
        ]);
        command
    };
    run("80")
        .fail(1)
        .says(&["a sample of 80 documents", "--memory", "--sample"]);
    run("10").succeed();
}

/// The memory of threads that do not fit, and are left out, was missing for the documents.
#[test]
fn more_threads_than_fit_had_documents_refused() {
    let folder = Folder::new();
    let words = "one two three four ".repeat(50_000);
    let lines: String = (0..19)
        .map(|at| json!({"id": at, "text": format!("{at} {words}")}).to_string() + "\n")
        .collect();
    // Only inputs that may have a document of more than 16 MiB are checked.
    assert!(lines.len() > 16 << 20);
    let input = folder.add("long.jsonl", &lines);
    let flags = ["--memory", "1G", "--threads", "96"];
    let flags = [
        &flags[..],
        &["--max-document", "32M", "--method", "simhash"],
    ]
    .concat();
    assert_eq!(evaluate("audit", &input, &flags)["documents"], 19);
}

/// Texts larger than the memory limit are read repeatedly instead.
#[test]
fn a_sweep_does_not_hold_the_texts() {
    let folder = Folder::new();
    let words = "one two three four ".repeat(50_000);
    let lines: String = (0..26)
        .map(|at| json!({"id": at, "text": format!("{at} {words}")}).to_string() + "\n")
        .collect();
    assert!(lines.len() > 16 << 20);
    let input = folder.add("long.jsonl", &lines);
    let flags = [
        "--memory",
        "16M",
        "--max-document",
        "2M",
        "--sketches",
        "none,simhash:64",
        "--masks",
        "none",
    ];
    let flags = [
        &flags[..],
        &[
            "--shingles",
            "words:2",
            "--weights",
            "set",
            "--threshold",
            "0.6",
        ],
    ]
    .concat();
    let swept = evaluate("sweep", &input, &flags);
    // Any two texts share four of their five features, so the resemblance is 4 / 6.
    assert_eq!(swept["true_pairs"], 26 * 25 / 2);
    let labels = r#"{"a":"0","b":"1","label":true}
{"a":"2","b":"3","label":false}
"#;
    let labels = folder.add("labels.jsonl", labels);
    // The labels take the place of the threshold.
    let flags = &flags[..flags.len() - 2];
    let flags = [flags, &["--labels", labels.to_str().unwrap()]].concat();
    assert_eq!(evaluate("sweep", &input, &flags)["true_pairs"], 1);
    let mut refused = lookalike("evaluate");
    refused
        .arg("sweep")
        .arg(families(&folder))
        .args(["--memory", "4K"]);
    refused.fail(1).says(&["--memory"]);
}

#[test]
fn features_that_memory_cannot_hold_were_called_sketches() {
    let folder = Folder::new();
    let input = families(&folder);
    let mut refused = lookalike("evaluate");
    refused
        .arg("labels")
        .arg(&input)
        .arg("--labels")
        .arg(folder.add("labels.jsonl", "{}\n"));
    refused.args(["--sketch", "none", "--memory", "16K"]);
    let done = refused.fail(1);
    done.says(&["the features need", "raise --memory"]);
    assert!(!done.err.contains("audit"), "{}", done.err);
}

/// Returns 60 texts in families of four that differ in one to four inserted words.
fn families(folder: &Folder) -> PathBuf {
    let mut numbers = Numbers(5);
    let mut rows = String::new();
    for family in 0..15 {
        let text = numbers.words(120, 5000);
        for member in 0..4 {
            let changed = text.replacen(' ', &format!(" v{member} "), 1 + member);
            rows += &record(&format!("d{family:02}-{member}"), &changed);
        }
    }
    folder.add("families.jsonl", rows)
}

/// Fingerprint files and indexes give the same sample and figures as the documents that they were made from.
#[test]
fn fingerprints_stand_for_their_documents() {
    let folder = Folder::new();
    let documents = families(&folder);
    let [file, lines, index] = ["d.lkfp", "d.jsonl", "d.lkix"].map(|name| folder.path(name));
    for out in [&file, &lines] {
        let mut fingerprint = lookalike("fingerprint");
        fingerprint.arg(&documents).arg("-o").arg(out);
        fingerprint.arg("--quiet").succeed();
    }
    let mut build = lookalike("index");
    build.arg("build").arg(&file).arg("-o").arg(&index);
    build.arg("--quiet").succeed();
    let [expected, sampled] = ["expected", "sampled"].map(|name| folder.path(name));
    let flags = |out: &Path| ["--each", "7", "-o", out.to_str().unwrap()].map(str::to_owned);
    let sample = |input: &Path, more: &[&str], out: &Path| {
        let flags = flags(out);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        evaluate("sample", input, &[&flags, more].concat())
    };
    let of_documents = sample(&documents, &[], &expected);
    let drawn = std::fs::read_to_string(&expected).unwrap();
    assert!(of_documents["pairs"].as_u64() > Some(20), "{of_documents}");
    let mut labels = String::new();
    for (at, line) in drawn.lines().enumerate() {
        let mut pair: Value = serde_json::from_str(line).unwrap();
        pair["label"] = json!(at % 3 != 0);
        labels += &format!("{pair}\n");
    }
    let labels = folder.add("labels.jsonl", labels);
    let labels = ["--labels", labels.to_str().unwrap()];
    let sketch = ["--sketch", "simhash:64"];
    let figures = evaluate("labels", &documents, &[labels, sketch].concat());
    for input in [&file, &lines, &index] {
        let given = sample(input, &["--fingerprints"], &sampled);
        assert_eq!(given["bands"], of_documents["bands"], "{}", input.display());
        assert_eq!(std::fs::read_to_string(&sampled).unwrap(), drawn);
        let given = evaluate(
            "labels",
            input,
            &[&labels[..], &["--fingerprints"]].concat(),
        );
        assert_eq!(given["row"]["curve"], figures["row"]["curve"]);
        assert_eq!(given["bands"], figures["bands"]);
    }
    let mut refused = lookalike("evaluate");
    refused.args([
        "sample",
        "--fingerprints",
        "--shingle",
        "words:3",
        "-o",
        "x",
    ]);
    refused
        .arg(&file)
        .fail(2)
        .says(&["--shingle has no effect here", "--fingerprints"]);
    let mut refused = lookalike("evaluate");
    refused.args(["sample", "--fingerprints", "-o", "x"]);
    refused.args(["--memory", "4K"]).arg(&file);
    refused.fail(1).says(&["--memory allows"]);
    let mut refused = lookalike("evaluate");
    refused.args(["sample", "--fingerprints", "-o", "x"]);
    refused.arg(&file).arg(folder.path("none.lkfp"));
    refused.fail(1).says(&["none.lkfp"]);
}

/// Equal texts are not shown to a person, so all copies of a text count as one document.
#[test]
fn copies_are_set_aside_before_pairs_are_drawn() {
    let folder = Folder::new();
    let documents = families(&folder);
    let once = std::fs::read_to_string(&documents).unwrap();
    let copies = once.replace("\"id\":\"d", "\"id\":\"e");
    let both = folder.add("both.jsonl", format!("{copies}{once}"));
    let [a, b] = ["a", "b"].map(|name| folder.path(name));
    let sample = |input: &Path, out: &Path| {
        let flags = ["--sketch", "none", "--bands", "0.3,0.9", "-o"];
        evaluate(
            "sample",
            input,
            &[&flags[..], &[out.to_str().unwrap()]].concat(),
        )
    };
    let (plain, copied) = (sample(&documents, &a), sample(&both, &b));
    assert_eq!(
        (&plain["copies"], &copied["copies"]),
        (&json!(0), &json!(60))
    );
    assert_eq!(
        (&plain["bands"], &plain["documents"]),
        (&copied["bands"], &copied["documents"])
    );
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
}

/// Every method finds copies, so they do not count: an audit and a sweep give the same figures with and without copies of the documents.
#[test]
fn copies_are_set_aside_before_a_method_is_measured() {
    let folder = Folder::new();
    let documents = families(&folder);
    let once = std::fs::read_to_string(&documents).unwrap();
    let copies = once.replace("\"id\":\"d", "\"id\":\"e");
    let both = folder.add(
        "both.jsonl",
        format!("{copies}{once}{}", copies.replace("\"e", "\"f")),
    );
    let audit = ["--method", "simhash", "--distance", "9", "--sample", "20"];
    let sweep = [
        "--sketches",
        "none,simhash:64,super-shingle:6x3",
        "--shingles",
        "words:1,words:3",
    ];
    let sweep = [
        &sweep[..],
        &["--weights", "set,tf", "--masks", "none", "--lengths", "0.9"],
    ]
    .concat();
    for (what, flags) in [("audit", &audit[..]), ("sweep", &sweep)] {
        let (mut plain, mut copied) = (
            evaluate(what, &documents, flags),
            evaluate(what, &both, flags),
        );
        let take = |answer: &mut Value| answer.as_object_mut().unwrap().remove("copies").unwrap();
        assert_eq!(
            (take(&mut plain), take(&mut copied)),
            (json!(0), json!(120)),
            "{what}"
        );
        // The advice names the input file.
        let text = |answer: &Value| answer.to_string().replace("both.jsonl", "families.jsonl");
        assert_eq!(text(&plain), text(&copied), "{what}");
        assert!(plain["true_pairs"].as_u64().unwrap() > 20, "{plain}");
    }
    let mut told = lookalike("evaluate");
    told.arg("sweep").arg(&both).args(&sweep);
    let told = told.succeed();
    assert!(
        told.text()
            .contains("copies      120 documents with the same text as another, set aside")
    );
}

/// Jobs keep every document without a text, so an evaluation counts each as a document of its own too.
#[test]
fn documents_without_a_text_were_set_aside_as_copies_of_each_other() {
    let folder = Folder::new();
    let documents = families(&folder);
    let with_text = std::fs::read_to_string(&documents).unwrap();
    let empty = ["", "", " \n"].iter().zip(0..);
    let empty: String = empty
        .map(|(text, at)| record(&format!("e{at}"), text))
        .collect();
    let all = folder.add("all.jsonl", format!("{with_text}{empty}"));
    let audit = ["--method", "simhash", "--distance", "9"];
    let sweep = [
        "--sketches",
        "none",
        "--shingles",
        "words:3",
        "--masks",
        "none",
    ];
    for (what, flags) in [("audit", &audit[..]), ("sweep", &sweep)] {
        let (before, after) = (
            evaluate(what, &documents, flags),
            evaluate(what, &all, flags),
        );
        assert_eq!(after["copies"], 0, "{what}");
        let count = |answer: &Value| answer["documents"].as_u64().unwrap();
        assert_eq!(count(&after), count(&before) + 3, "{what}");
        assert_eq!(after["true_pairs"], before["true_pairs"], "{what}");
    }
    let drawn = folder.path("drawn.jsonl");
    let flags = ["--sketch", "none", "--bands", "0.5", "-o"].map(String::from);
    let mut sample = lookalike("evaluate");
    sample.arg("sample").arg(&all).args(&flags).arg(&drawn);
    let sample = sample.arg("--json").succeed().json();
    assert_eq!(
        (&sample["documents"], &sample["copies"]),
        (&json!(63), &json!(0))
    );
}

/// Figures measured before an interruption are reused to the last digit, but an incomplete line is not.
#[test]
fn a_sweep_goes_on_from_its_checkpoint() {
    let folder = Folder::new();
    let documents = families(&folder);
    let flags = [
        "--sketches",
        "none,simhash:64",
        "--shingles",
        "words:1,words:3",
        "--masks",
        "none",
    ];
    let plain = evaluate("sweep", &documents, &flags);
    let (kept, page) = (folder.path("kept"), folder.path("no-folder/page.html"));
    // A file cannot be the folder of the page.
    folder.add("no-folder", "a file");
    let with = |more: &[&str]| {
        let mut command = lookalike("evaluate");
        command.arg("sweep").arg(&documents).args(flags).args([
            "--json",
            "--quiet",
            "--checkpoint",
        ]);
        command.arg(&kept).args(more);
        command
    };
    // The sweep measures everything and then cannot write the page.
    with(&["--page", page.to_str().unwrap()])
        .fail(1)
        .says(&["no-folder", "choose another file"]);
    let lines = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(lines.lines().count(), 1 + 10, "{lines}");
    with(&[]).fail(2).says(&["kept", "--resume"]);
    // Mark the second setting and cut off the end of the last line.
    let torn = &lines[..lines.len() - 20];
    let marked = torn.replacen("\"without_sketch\":0", "\"without_sketch\":7", 1);
    std::fs::write(&kept, &marked).unwrap();
    let resumed = with(&["--resume"]).succeed().json();
    let mark = |row: &&Value| row["without_sketch"] == 7;
    let rows = resumed["rows"].as_array().unwrap();
    assert_eq!(rows.iter().filter(mark).count(), 1);
    let unmarked = resumed
        .to_string()
        .replace("\"without_sketch\":7", "\"without_sketch\":0");
    assert_eq!(unmarked, plain.to_string());
    assert!(!kept.exists(), "a sweep that is done needs no checkpoint");
    // A checkpoint of other documents is refused, and so is any other file.
    std::fs::write(&kept, &lines).unwrap();
    let mut others = std::fs::read_to_string(&documents).unwrap();
    others += &record("new", "a text that was not there before");
    std::fs::write(&documents, others).unwrap();
    with(&["--resume"])
        .fail(1)
        .says(&["kept", "another measurement"]);
    std::fs::write(&kept, "something else\n").unwrap();
    with(&["--resume"])
        .fail(1)
        .says(&["kept", "not a checkpoint"]);
    let mut alone = lookalike("evaluate");
    alone.arg("sweep").arg(&documents).arg("--resume");
    alone.fail(2).says(&["--checkpoint"]);
}

#[test]
fn an_interrupted_sweep_did_not_say_that_it_can_go_on() {
    let folder = Folder::new();
    let (documents, kept) = (families(&folder), folder.path("kept"));
    // The page is a pipe without a reader, so the sweep waits there after measuring everything.
    let page = folder.path("page.html");
    fifo(&page);
    let mut command = lookalike("evaluate");
    command
        .arg("sweep")
        .arg(&documents)
        .args(["--sketches", "none", "--shingles", "words:1"]);
    command
        .arg("--checkpoint")
        .arg(&kept)
        .arg("--page")
        .arg(&page);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&kept, &mut child);
    let (status, said) = interrupt(child);
    assert_eq!(status, Some(130), "{said}");
    assert!(
        said.contains("interrupted: --resume continues from"),
        "{said}"
    );
    assert!(kept.exists());
}

/// Documents that were compared before an interruption are not compared again.
#[test]
fn an_audit_goes_on_from_its_checkpoint() {
    let folder = Folder::new();
    let rows: String = (0..20_000)
        .map(|at| {
            record(
                &format!("d{at}"),
                &format!("record{} has words and other{at}", at / 2),
            )
        })
        .collect();
    let input = folder.add("many.jsonl", rows);
    let flags = [
        "--method",
        "simhash",
        "--shingle",
        "words:1",
        "--threshold",
        "0.5",
        "--sample",
        "50",
    ];
    let plain = evaluate("audit", &input, &flags);
    assert_eq!(plain["true_pairs"], 50);
    let kept = folder.path("kept");
    let with = |more: &[&str]| {
        let mut command = lookalike("evaluate");
        command
            .arg("audit")
            .arg(&input)
            .args(flags)
            .args(["--json", "--quiet", "--checkpoint"]);
        command.arg(&kept).args(more);
        command
    };
    // The audit compares everything and then cannot print the answer.
    let mut full = with(&[]);
    full.stdout(
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap(),
    );
    assert!(!full.status().unwrap().success());
    // Add the temporary file that is left if a command is killed while it replaces its checkpoint.
    let half = folder.add("kept.tmp-abcdef", "half a checkpoint");
    let lines = std::fs::read_to_string(&kept).unwrap();
    let progress: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(progress["documents"], 16_384);
    let marked = lines.replacen("\"proposed\":", "\"proposed\":10000", 1);
    std::fs::write(&kept, &marked).unwrap();
    let mut resumed = with(&["--resume"]).succeed().json();
    let number = |answer: &Value| answer["proposed"].as_u64().unwrap();
    assert!(number(&resumed) >= number(&plain) + 10_000, "{resumed}");
    std::fs::write(&kept, &lines).unwrap();
    resumed = with(&["--resume"]).succeed().json();
    assert_eq!(resumed, plain);
    assert!(!kept.exists() && !half.exists());
}

/// Only the number of compared documents is known, so the same documents in another order must be refused.
#[test]
fn an_audit_does_not_go_on_over_documents_in_another_order() {
    let folder = Folder::new();
    let rows = |name: &str| -> String {
        (0..200)
            .map(|at| record(&format!("{name}{at}"), &format!("the record {name} {at}")))
            .collect()
    };
    let (a, b) = (
        folder.add("a.jsonl", rows("a")),
        folder.add("b.jsonl", rows("b")),
    );
    let kept = folder.path("kept");
    let audit = |inputs: [&std::path::Path; 2], more: &[&str]| {
        let mut command = lookalike("evaluate");
        command.arg("audit").args(inputs).args(more);
        command.args(["--method", "simhash", "--sample", "10"]);
        command
            .args(["--json", "--quiet", "--checkpoint"])
            .arg(&kept);
        command
    };
    let mut full = audit([&a, &b], &[]);
    full.stdout(
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap(),
    );
    assert!(!full.status().unwrap().success());
    audit([&b, &a], &["--resume"])
        .fail(1)
        .says(&["kept", "another measurement"]);
    audit([&a, &b], &["--resume"]).succeed();
}

/// The table of the source has both rows for super-shingles: at least and exactly a number of them.
#[test]
fn super_shingles_are_counted_exactly_too() {
    let folder = Folder::new();
    let documents = families(&folder);
    let pair = |a: &str, b: &str, label: bool| json!({"a": a, "b": b, "label": label});
    let labels: String = (0..14)
        .flat_map(|family| {
            let id = |member: usize| format!("d{family:02}-{member}");
            let other = format!("d{:02}-0", family + 1);
            [
                pair(&id(0), &id(1), true),
                pair(&id(2), &id(3), family % 2 == 0),
                pair(&id(1), &other, false),
            ]
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let labels = folder.add("labels.jsonl", labels);
    let flags = [
        "--sketch",
        "super-shingle:6x3",
        "--labels",
        labels.to_str().unwrap(),
    ];
    let curve = evaluate("labels", &documents, &flags)["row"]["curve"].clone();
    let rows = |name: &str| curve[name].as_array().unwrap().clone();
    let (points, exactly) = (rows("points"), rows("exactly"));
    assert_eq!((points.len(), exactly.len()), (6, 6));
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let mut sums = (0, 0);
    for (at_least, exact) in points.iter().zip(&exactly) {
        sums = (
            sums.0 + number(exact, "found"),
            sums.1 + number(exact, "correct"),
        );
        assert_eq!(
            sums,
            (number(at_least, "found"), number(at_least, "correct"))
        );
        assert_eq!(exact["cut"], at_least["cut"]);
    }
    assert!(sums.0 > 20 && sums.1 < sums.0, "{sums:?}");
    let mut command = lookalike("evaluate");
    command.arg("labels").arg(&documents).args(flags);
    let text = command.succeed();
    assert!(
        text.text().contains("equal >= 2") && text.text().contains("equal = 2"),
        "{}",
        text.text()
    );
}

/// Regression test: without labels, the advice of a sweep came with figures of the documents that it was chosen on, which were too good.
#[test]
fn a_sweep_chooses_on_one_half_and_tests_on_the_other() {
    let folder = Folder::new();
    let mut numbers = Numbers(7);
    let (mut rows, mut halves) = (String::new(), [String::new(), String::new()]);
    for family in 0..60 {
        let text = numbers.words(60, 900);
        for member in 0..3 {
            let mut words: Vec<&str> = text.split(' ').collect();
            for _ in 0..numbers.below(4) {
                words[numbers.below(60)] = "other";
            }
            let id = format!("d{family:02}-{member}");
            // No text occurs twice, since a copy in the other half would be set aside.
            let row = record(&id, &format!("{} {member}", words.join(" ")));
            rows += &row;
            halves[(lookalike::hash::xxh3_64(id.as_bytes(), 0) & 1) as usize] += &row;
        }
    }
    let all = folder.add("all.jsonl", rows);
    let halves = [0, 1].map(|at| folder.add(format!("{at}.jsonl"), &halves[at]));
    let flags = ["--sketches", "simhash:64", "--shingles", "words:2"];
    let flags = [&flags[..], &["--weights", "set", "--masks", "none"]].concat();
    let whole = evaluate("sweep", &all, &flags);
    let [expected, cheapest] = &whole["halves"].as_array().unwrap()[..] else {
        panic!("{}", whole["halves"]);
    };
    let alone = [0, 1].map(|at| evaluate("sweep", &halves[at], &flags));
    let (mut found, mut correct) = (0, 0);
    for (own, other) in [(0, 1), (1, 0)] {
        let chosen = alone[own]["best"]["point"]["parameter"].as_str().unwrap();
        let told = expected["chosen"][own].as_str().unwrap();
        assert!(told.ends_with(&format!(" at {chosen}")), "{told}: {chosen}");
        let points = alone[other]["rows"][0]["curve"]["points"].as_array();
        let mut points = points.unwrap().iter();
        let point = points.find(|point| point["parameter"] == chosen).unwrap();
        found += point["found"].as_u64().unwrap();
        correct += point["correct"].as_u64().unwrap();
    }
    assert_eq!(
        (&expected["found"], &expected["correct"]),
        (&json!(found), &json!(correct))
    );
    let trues = alone
        .each_ref()
        .map(|alone| alone["true_pairs"].as_u64().unwrap());
    assert_eq!(expected["true_pairs"], trues[0] + trues[1]);
    let [low, high] = ["low", "high"].map(|limit| expected["recall"][limit].as_f64().unwrap());
    let recall = correct as f64 / (trues[0] + trues[1]) as f64;
    assert!(low < recall && recall < high, "{expected}");
    assert_eq!(cheapest["choice"], "cheapest");
    let page = folder.path("sweep.html");
    let flags = [&flags[..], &["--page", path(&page)]].concat();
    let mut told = lookalike("evaluate");
    told.arg("sweep").arg(&all).args(&flags);
    let told = told.succeed();
    let html = fs::read_to_string(&page).unwrap();
    let shares = |one: &Value| {
        let [value, low, high] = ["value", "low", "high"].map(|key| one[key].as_f64().unwrap());
        format!("{value:.3} [{low:.3}, {high:.3}]")
    };
    let rows = [expected, cheapest].map(|one| {
        let chosen = [0, 1].map(|half| one["chosen"][half].as_str());
        let [first, second] = chosen.map(|one| one.unwrap_or("nothing that reaches the target"));
        vec![
            one["choice"].as_str().unwrap().to_owned(),
            one["settings"].to_string(),
            format!("{:.3}", one["f1"].as_f64().unwrap()),
            shares(&one["precision"]),
            shares(&one["recall"]),
            format!("{first}; {second}"),
        ]
    });
    assert_eq!(table_below(&html, "Expected on other documents")[1..], rows);
    let (_, basis) = told
        .text()
        .split_once("Expected on other documents: ")
        .unwrap();
    let basis = basis.lines().next().unwrap();
    assert!(html.contains(&format!(">{basis}.</p>")), "{basis}");
    for words in [
        "Expected on other documents",
        "best of     1 cheapest",
        "chosen: simhash:64",
    ] {
        assert!(told.text().contains(words), "{words:?}: {}", told.text());
    }
    // Two documents cannot have a true pair in each half.
    let few = folder.add(
        "few.jsonl",
        record("a", "one two three four five six")
            + &record("b", "one two three four five six seven"),
    );
    let mut told = lookalike("evaluate");
    told.arg("sweep")
        .arg(&few)
        .args(&flags)
        .args(["--threshold", "0.5"]);
    let told = told.succeed();
    let html = fs::read_to_string(&page).unwrap();
    for told in [told.text(), &html] {
        let words = "one of the halves has no true pair";
        assert!(told.contains(words), "{told}");
    }
    assert!(!html.contains("Chosen</th>"), "{html}");
}

//! The help texts and messages of the command, and the shapes of its output.

use serde_json::{Value, json};

use crate::refusals::two;
use crate::support::{Finish, Folder, STORY, examples, lookalike, record};

const INPUT: [&str; 5] = ["--format", "--id", "--text", "--max-document", "--strict"];
const METHOD: [&str; 6] = [
    "--method",
    "--threshold",
    "--distance",
    "--weight",
    "--functions",
    "--recall",
];
const SCHEME: [&str; 5] = ["--shingle", "--segment", "--normalize", "--case", "--seed"];
const RUN: [&str; 5] = ["--threads", "--memory", "--tmp", "--json", "--quiet"];
const OUTPUT: [&str; 9] = [
    "--output",
    "--against",
    "--keep",
    "--order",
    "--pairs",
    "--compress",
    "--resume",
    "--overwrite",
    "--repeated-ids",
];

/// Returns the options of each subcommand.
fn options() -> [(&'static str, Vec<&'static str>); 6] {
    [
        (
            "dedup",
            [&INPUT[..], &METHOD, &SCHEME, &RUN, &OUTPUT].concat(),
        ),
        (
            "pairs",
            [&INPUT[..], &METHOD, &SCHEME, &RUN, &["--repeated-ids"]].concat(),
        ),
        (
            "fingerprint",
            [&INPUT[..], &SCHEME, &RUN, &["--weight", "--output"]].concat(),
        ),
        (
            "explain",
            [&SCHEME[..], &["--in", "--threshold", "--json"]].concat(),
        ),
        ("completions", vec![]),
        ("man", vec![]),
    ]
}

#[test]
fn help_tells_of_every_option() {
    let overview = lookalike("--help").succeed();
    for (subcommand, options) in options() {
        assert!(overview.text().contains(subcommand), "{subcommand}");
        let help = lookalike(subcommand).arg("--help").succeed();
        for option in options {
            assert!(
                help.text().contains(&format!("{option} "))
                    || help.text().contains(&format!("{option}\n")),
                "{subcommand} {option}"
            );
        }
        assert!(help.err.is_empty());
    }
}

#[test]
fn the_version_is_that_of_the_command() {
    assert_eq!(
        lookalike("--version").succeed().text(),
        format!("lookalike {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef lookalike"),
        ("fish", "complete -c lookalike"),
    ] {
        let script = lookalike("completions").arg(shell).succeed();
        for part in [word, "dedup", "threshold", "overwrite"] {
            assert!(script.text().contains(part), "{shell} {part}");
        }
    }
    lookalike("completions")
        .arg("tcsh")
        .fail(2)
        .says(&["tcsh", "bash"]);
    let folder = Folder::new();
    lookalike("man").arg(folder.path("man/man1")).succeed();
    for (subcommand, options) in options() {
        let page =
            std::fs::read_to_string(folder.path(format!("man/man1/lookalike-{subcommand}.1")))
                .unwrap();
        let page = page.replace("\\-", "-");
        assert!(
            page.contains(".TH") && options.iter().all(|option| page.contains(option)),
            "{subcommand}"
        );
    }
    assert!(folder.path("man/man1/lookalike.1").exists());
    let file = folder.add("file", "");
    lookalike("man")
        .arg(file.join("man"))
        .fail(1)
        .says(&["file/man", "name a writable directory"]);
}

#[test]
fn json_summaries_have_their_shape() {
    let (folder, input) = two();
    let dedup = lookalike("dedup")
        .arg(&input)
        .args(["--json", "-o"])
        .arg(folder.path("out"))
        .succeed();
    assert!(dedup.err.is_empty());
    let (summary, written) = (
        dedup.json(),
        std::fs::read(folder.path("out/run.json")).unwrap(),
    );
    let mut written: Value = serde_json::from_slice(&written).unwrap();
    // What a resumed job is recognised by.
    let job = written.as_object_mut().unwrap().remove("job");
    assert!(job.is_some_and(|job| job.is_object()));
    assert_eq!(summary, written, "run.json is the summary");
    assert_eq!(summary["decisions"]["kept"], 1);
    assert_eq!(summary["decisions"]["removed_exact"], 1);
    assert_eq!(summary["threshold"], 0.8);
    let pairs = lookalike("pairs")
        .arg(&input)
        .args(["--json", "--method", "simhash"])
        .succeed();
    assert_eq!(
        pairs.lines(),
        [json!({ "a": "a", "b": "b", "similarity": 1.0, "distance": 0 })]
    );
    let summary: Value = serde_json::from_str(&pairs.err).unwrap();
    assert_eq!(
        (&summary["pairs"], &summary["documents"]),
        (&json!(1), &json!(2))
    );
    let prints = lookalike("fingerprint").arg(&input).arg("--json").succeed();
    let summary: Value = serde_json::from_str(&prints.err).unwrap();
    assert_eq!(
        (&summary["documents"], &summary["without_features"]),
        (&json!(2), &json!(0))
    );
    assert!(
        summary["scheme"]
            .as_str()
            .unwrap()
            .contains("sketch=simhash")
    );
}

/// The JSON summary goes to standard output if the results go to a file, and to standard error if the results go to standard output.
#[test]
fn a_json_summary_goes_where_the_results_do_not() {
    let (folder, input) = two();
    let out = |name: &str| folder.path(name);
    let with_file = [
        ("terms", "w.terms"),
        ("fingerprint", "f.jsonl"),
        ("extract", "t.jsonl"),
        ("overlap", "atlas"),
        ("dedup", "kept"),
    ];
    for (subcommand, name) in with_file {
        let mut command = lookalike(subcommand);
        command.arg(&input).arg("--json").arg("-o").arg(out(name));
        let done = command.succeed();
        assert!(done.json().is_object(), "{subcommand}");
        assert!(done.err.is_empty(), "{subcommand}: {}", done.err);
    }
    let fingerprints = out("f.jsonl");
    let mut import = lookalike("fingerprint");
    import.arg("--import").arg(&fingerprints);
    import.arg("--json").arg("-o").arg(out("f.lkfp"));
    let mut join = lookalike("join");
    join.arg(&fingerprints).arg("--json");
    join.arg("-o").arg(out("pairs.jsonl"));
    let mut build = lookalike("index");
    build.arg("build").arg(&fingerprints);
    build.arg("--json").arg("-o").arg(out("f.lkix"));
    for command in [&mut import, &mut join, &mut build] {
        let done = command.succeed();
        assert!(
            done.json().is_object() && done.err.is_empty(),
            "{command:?}"
        );
    }
    for subcommand in ["fingerprint", "extract", "overlap", "pairs"] {
        let done = lookalike(subcommand).arg(&input).arg("--json").succeed();
        assert!(!done.lines().is_empty(), "{subcommand}");
        let summary: Value = serde_json::from_str(&done.err).unwrap();
        let documents = summary
            .get("documents")
            .unwrap_or(&summary["counts"]["documents"]);
        assert_eq!(documents, 2, "{subcommand}");
    }
    let mut search = lookalike("index");
    search.arg("search").arg(out("f.lkix")).arg(&fingerprints);
    let done = search.arg("--json").succeed();
    let summary: Value = serde_json::from_str(&done.err).unwrap();
    assert_eq!((done.lines().len(), &summary["queries"]), (4, &json!(2)));
}

#[test]
fn quiet_is_silent_and_loud_is_readable() {
    let (folder, input) = two();
    let out = folder.path("out");
    for (subcommand, flags) in [
        ("dedup", vec!["--overwrite", "-o", out.to_str().unwrap()]),
        ("pairs", vec![]),
        ("fingerprint", vec![]),
    ] {
        let quiet = lookalike(subcommand)
            .arg(&input)
            .args(&flags)
            .arg("--quiet")
            .succeed();
        assert_eq!(quiet.err, "", "{subcommand}");
        let loud = lookalike(subcommand).arg(&input).args(&flags).succeed();
        loud.says(&["2 records", "time"]);
        assert!(
            !loud.err.contains('\u{1b}') && !loud.err.contains('\r'),
            "no terminal, no progress"
        );
        assert_eq!(quiet.out, loud.out);
    }
    let loud = lookalike("dedup")
        .arg(&input)
        .args(["--overwrite", "-o"])
        .arg(&out)
        .succeed();
    loud.says(&[
        "exact  1 removed",
        "near  0 removed",
        "kept  1 (50.0%)",
        "saved",
        "memory",
        "report.html",
    ]);
}

#[test]
fn fingerprints_are_sixteen_digits_or_null_in_input_order() {
    let folder = Folder::new();
    let texts = [
        ("z", STORY),
        ("a", ""),
        ("m", "!!!"),
        ("b", STORY),
        ("c", "THE ferry"),
    ];
    let input = folder.records("in.jsonl", &texts);
    let rows = lookalike("fingerprint")
        .arg(&input)
        .arg("-q")
        .succeed()
        .lines();
    assert!(
        rows.iter()
            .map(|row| row["id"].as_str().unwrap())
            .eq(texts.iter().map(|text| text.0))
    );
    let print = |at: usize| rows[at]["fingerprint"].as_str();
    assert!([1, 2].iter().all(|&at| rows[at]["fingerprint"].is_null()));
    assert!([0, 3, 4].iter().all(|&at| print(at).unwrap().len() == 16
        && print(at).unwrap().bytes().all(|b| b.is_ascii_hexdigit())));
    assert!(print(0) == print(3) && print(0) != print(4));
    let other = lookalike("fingerprint")
        .arg(&input)
        .args(["-q", "--seed", "1"])
        .succeed()
        .lines();
    assert_ne!(rows[0], other[0], "another seed, another fingerprint");
    for threads in ["1", "3"] {
        assert_eq!(
            lookalike("fingerprint")
                .arg(&input)
                .args(["-q", "--threads", threads])
                .succeed()
                .lines(),
            rows
        );
    }
    for name in ["f.jsonl", "f.jsonl.gz", "f.jsonl.zst"] {
        let file = folder.path(name);
        lookalike("fingerprint")
            .arg(&input)
            .arg("-o")
            .arg(&file)
            .succeed();
        assert_eq!(
            crate::support::json_lines(&crate::support::contents(&file)),
            rows,
            "{name}"
        );
    }
    lookalike("fingerprint")
        .arg(&input)
        .arg("-o")
        .arg(folder.path("f.bin"))
        .fail(2)
        .says(&["f.bin", ".jsonl"]);
}

#[test]
fn explain_of_two_files() {
    let page = |name: &str| examples().join("pages/en").join(name);
    let (a, b) = (
        page("harbour-clock.html"),
        page("harbour-clock-revised.html"),
    );
    let told = lookalike("explain").args([&a, &b]).succeed();
    for part in [
        "near-duplicates: resemblance",
        "at or above the threshold 0.8",
        "containment of a in b",
        "super-shingles",
        "scheme",
        "\n- ",
        "\n+ ",
    ] {
        assert!(told.text().contains(part), "{part}: {}", told.text());
    }
    let row = lookalike("explain")
        .args([&a, &b])
        .arg("--json")
        .succeed()
        .json();
    let pairs = lookalike("pairs")
        .args([&a, &b])
        .arg("-q")
        .succeed()
        .lines();
    assert_eq!(row["resemblance"], pairs[0]["similarity"]);
    assert_eq!(
        (&row["near_duplicates"], &row["equal_text"]),
        (&json!(true), &json!(false))
    );
    let apart = lookalike("explain")
        .args([&a, &page("rye-bread.txt")])
        .succeed();
    assert!(
        apart
            .text()
            .starts_with("not near-duplicates: resemblance 0.0"),
        "{}",
        apart.text()
    );
    let equal = lookalike("explain").args([&a, &a]).succeed();
    assert!(equal.text().starts_with("exact copies"));
}

#[test]
fn explain_of_two_ids() {
    let folder = Folder::new();
    let retold = format!("{STORY} as it does");
    let input = folder.add(
        "in.jsonl",
        record("a", STORY) + &record("b", &retold) + &record("c", ""),
    );
    let row = lookalike("explain")
        .args(["a", "b", "--json", "--in"])
        .arg(&input)
        .succeed()
        .json();
    // The texts have 17 and 20 words: all 13 shingles of the shorter are among the 16 of the longer.
    assert_eq!(
        (&row["features_a"], &row["features_b"], &row["shared"]),
        (&json!(13), &json!(16), &json!(13))
    );
    assert_eq!(
        (
            row["resemblance"].as_f64(),
            row["containment_of_a"].as_f64()
        ),
        (Some(0.8125), Some(1.0))
    );
    let none = lookalike("explain")
        .args(["a", "c", "--in"])
        .arg(&input)
        .succeed();
    assert!(none.text().starts_with("not comparable"));
    lookalike("explain")
        .args(["a", "zz", "--in"])
        .arg(&input)
        .fail(1)
        .says(&["\"zz\"", "--in"]);
    lookalike("explain").args([&input, &input]).fail(2).says(&[
        "in.jsonl",
        "3 documents",
        "--in FILE",
    ]);
    lookalike("explain")
        .args(["no-such-file", "b"])
        .fail(1)
        .says(&["no-such-file"]);
}

#[test]
fn options_of_a_collection_were_mixed_with_those_of_the_connection() {
    let mut command = lookalike("client");
    let help = command.args(["create", "--help"]).succeed();
    let (_, groups) = help.text().split_once("\nCollection:\n").unwrap();
    let (collection, connection) = groups.split_once("\nConnection:\n").unwrap();
    let has = |group: &str, options: &[&str]| {
        options
            .iter()
            .all(|option| group.contains(&format!(" {option} ")))
    };
    let of_collection = ["--radius", "--shingle", "--sketch", "--keep", "--lengths"];
    assert!(has(collection, &of_collection), "{collection}");
    assert!(
        has(connection, &["--url", "--key-file", "--ca", "--retry-for"]),
        "{connection}"
    );
    assert!(!collection.contains("--url"), "{collection}");
}

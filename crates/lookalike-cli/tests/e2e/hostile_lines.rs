//! Malformed JSONL: broken lines, missing and repeated ids, odd JSON. Each line that cannot be read is reported with its position, and does not
//! affect the others.

use std::collections::BTreeMap;

use serde_json::json;

use crate::hostile::kept_and_removed;
use crate::results::Results;
use crate::support::{Finish, Folder, Numbers, STORY, lookalike, record};

#[test]
fn row_16_lines_of_every_kind() {
    let folder = Folder::new();
    let lines = [
        "\u{feff}{\"id\":\"a\",\"text\":\"one\"}\r\n",
        "not json\n",
        "\n",
        "{\"id\":\"b\",\"text\":\"two\"}\n",
        "[1]\n",
        "   \r\n",
        "{\"id\":\"c\",\"text\":\"three\"}",
    ];
    let input = folder.add("in.jsonl", lines.concat());
    let results = folder.dedup_with_losses(&input, &[]);
    assert_eq!(results.kept_ids_plain(), ["a", "b", "c"]);
    let places: Vec<_> = results
        .skipped
        .iter()
        .map(|row| {
            (
                row["line"].clone(),
                row["offset"].clone(),
                row["kind"].clone(),
            )
        })
        .collect();
    let offset = |line: usize| lines[..line - 1].concat().len();
    assert_eq!(
        places,
        [
            (json!(2), json!(offset(2)), json!("invalid-json")),
            (json!(5), json!(offset(5)), json!("not-an-object"))
        ]
    );
    assert_eq!(results.count("counts", "unreadable"), 2);
    let strict = lookalike("dedup")
        .arg(&input)
        .arg("--strict")
        .arg("-o")
        .arg(folder.path("strict"))
        .fail(1);
    strict.says(&["in.jsonl", "line 2", "invalid JSON", "--strict"]);
}

impl Results {
    /// Returns the ids of the kept lines, without a byte order mark before the first.
    fn kept_ids_plain(&self) -> Vec<String> {
        let id = |line: &Vec<u8>| {
            let line = std::str::from_utf8(line)
                .unwrap()
                .trim_start_matches('\u{feff}');
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        self.kept.iter().map(id).collect()
    }
}

/// Breaks each line of a file in turn, in several ways: only that line is reported, with its position, and the others are kept.
#[test]
fn row_16_a_broken_line_harms_no_other() {
    let folder = Folder::new();
    let mut numbers = Numbers(11);
    let good: Vec<String> = (0..8)
        .map(|number| record(&number.to_string(), &numbers.words(30, 500)))
        .collect();
    let breakages: [fn(&str) -> String; 5] = [
        |line| format!("{}\n", &line[..line.len() / 2]),
        |line| line.replacen('{', "", 1),
        |line| line.replace("\"}", "\"} x"),
        |line| line.replace("\"text\":\"", "\"text\":\"\u{1}"),
        |_| "\u{0}\u{0}\n".to_owned(),
    ];
    for broken in 0..good.len() {
        let mut lines = good.clone();
        lines[broken] = breakages[broken % 5](&lines[broken]);
        let results = folder.dedup_with_losses(&folder.add("in.jsonl", lines.concat()), &[]);
        let others = [&good[..broken], &good[broken + 1..]].concat().concat();
        assert_eq!(results.kept.concat(), others.as_bytes(), "line {broken}");
        assert_eq!(results.skipped.len(), 1);
        assert_eq!(results.skipped[0]["line"], broken as u64 + 1);
        assert_eq!(
            results.skipped[0]["offset"],
            lines[..broken].concat().len() as u64
        );
        assert!(
            results.skipped[0]["source"]
                .as_str()
                .unwrap()
                .ends_with("in.jsonl")
        );
    }
}

#[test]
fn row_17_ids_missing_null_repeated_numbers_and_strings() {
    let folder = Folder::new();
    let words = [
        "one two three",
        "four five six",
        "seven eight nine",
        "ten eleven twelve",
        "a b c",
        "d e f",
        "g h i",
    ];
    let ids = [
        "\"id\":1,",
        "\"id\":\"1\",",
        "\"id\":null,",
        "",
        "\"url\":\"http://x/\",",
        "\"id\":[1],",
        "\"id\":\"1\",",
    ];
    let line = |(id, text): (&&str, &str)| format!("{{{id}\"text\":\"{text}\"}}\n");
    let input = folder.add(
        "in.jsonl",
        ids.iter().zip(words).map(line).collect::<String>(),
    );
    let prints = lookalike("fingerprint")
        .arg(&input)
        .arg("-q")
        .lose()
        .lines();
    let name = input.to_str().unwrap();
    let read: Vec<_> = prints
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        read,
        [
            "1",
            "1",
            &format!("{name}:3"),
            &format!("{name}:4"),
            "http://x/",
            "1"
        ]
    );
    let results = folder.dedup_with_losses(&input, &[]);
    assert_eq!(
        (results.kept.len(), results.count("counts", "unreadable")),
        (6, 1)
    );
    assert_eq!(
        (
            results.count("counts", "ids_repeated"),
            results.count("counts", "ids_generated")
        ),
        (2, 2)
    );
    let refused = lookalike("dedup")
        .arg(&input)
        .args(["--repeated-ids", "refuse", "-o"])
        .arg(folder.path("no"))
        .fail(1);
    refused.says(&[
        "repeat the id of another: 2",
        "\"1\"",
        "--id",
        "--repeated-ids number",
    ]);
}

#[test]
fn row_18_odd_json_is_read_or_told_of_never_fatal() {
    let folder = Folder::new();
    let deep =
        |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let rows: BTreeMap<&str, String> = [
        ("deep-list", format!("{{\"id\":\"deep-list\",\"x\":{},\"text\":\"a b c\"}}", deep("[", "]"))),
        ("deep-map", format!("{{\"id\":\"deep-map\",\"text\":\"d e f\",\"x\":{}1{}}}", "{\"a\":".repeat(100_000), "}".repeat(100_000))),
        ("unclosed", format!("{{\"id\":\"unclosed\",\"text\":\"d e f\",\"x\":{}", "[".repeat(100_000))),
        ("huge", "{\"id\":\"huge\",\"x\":[1e99999,-1e-99999,123456789012345678901234567890],\"text\":\"g h i\"}".to_owned()),
        ("nan", "{\"id\":\"nan\",\"x\":NaN,\"text\":\"j k l\"}".to_owned()),
        ("twice", format!("{{\"id\":\"first\",\"text\":\"m n o\",\"id\":\"twice\",\"text\":{}}}", json!(STORY))),
        ("story", record("story", STORY).trim_end().to_owned()),
    ]
    .into();
    let input = folder.add(
        "in.jsonl",
        rows.values()
            .map(|row| format!("{row}\n"))
            .collect::<String>(),
    );
    let results = folder.dedup_with_losses(&input, &[]);
    let mut handed_back = kept_and_removed(&results);
    for name in ["huge", "twice", "story"] {
        let line = format!("{}\n", rows[name]).into_bytes();
        assert!(
            handed_back.windows(line.len()).any(|window| window == line),
            "{name}"
        );
    }
    handed_back.retain(|&byte| byte == b'\n');
    assert_eq!(
        handed_back.len() as u64 + results.count("counts", "unreadable"),
        rows.len() as u64
    );
    assert!(
        results.skipped.iter().any(|row| row["line"] == 4),
        "NaN is no JSON: {:?}",
        results.skipped
    );
    assert!(
        results.removals()["twice"].2,
        "of a name given twice the last counts"
    );
}

#[test]
fn a_pipe_without_a_byte_was_a_document() {
    let folder = Folder::new();
    for (flags, kept) in [(&[] as &[&str], 0), (&["--format", "text"], 1)] {
        let out = folder.path(kept.to_string());
        let mut command = lookalike("dedup");
        command.args(["-", "-o"]).arg(&out).args(flags);
        let done = command.finish_with(b"");
        assert_eq!(done.status, Some(0), "{}", done.err);
        assert_eq!(Results::read(&out).kept_ids().len(), kept);
    }
}

#[test]
fn a_damaged_first_line_made_one_text_of_all_records() {
    let folder = Folder::new();
    let whole = [record("b", "two"), record("c", STORY)].concat();
    for first in [
        "{\"id\":\"a\",\"text\":\"cut o\n",
        "null\n",
        "end of one\"}\n",
    ] {
        let out = folder.path(first.len().to_string());
        let mut command = lookalike("dedup");
        command.arg("-").arg("-o").arg(&out);
        let done = command.finish_with((first.to_owned() + &whole).as_bytes());
        assert_eq!(done.status, Some(3), "{}", done.err);
        let results = Results::read(&out);
        assert_eq!(results.kept_ids(), ["b", "c"]);
        assert_eq!(results.skipped[0]["line"], json!(1));
    }
}

//! JSON arrays of objects, and tables without a header line or with other separators than commas.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::results::Results;
use crate::support::{Finish, Folder, STORY, json_lines, lookalike};

fn records() -> Value {
    json!([
        {"id": "a", "text": STORY, "tags": [1, {"x": "], }"}]},
        {"id": "b", "text": "quite \"another\" story\\ of [a mill]"},
        {"id": "c", "text": STORY, "n": 1.50}
    ])
}

fn lines(path: &Path) -> Vec<Value> {
    json_lines(&fs::read(path).unwrap())
}

fn extract(folder: &Folder, name: &str, flags: &[&str]) -> Vec<(String, String)> {
    let mut command = lookalike("extract");
    command.arg(folder.path(name)).args(flags);
    let out = command.args(["--quiet"]).succeed().lines();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    out.iter()
        .map(|row| (text(row, "id"), text(row, "text")))
        .collect()
}

#[test]
fn an_array_of_objects_is_read_as_records() {
    let folder = Folder::new();
    let pretty = serde_json::to_string_pretty(&records()).unwrap();
    let plain = serde_json::to_string(&records()).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(pretty.as_bytes()).unwrap();
    folder.add("pretty.json", &pretty);
    folder.add("plain.json", format!("\u{feff}{plain}\n"));
    folder.add("packed.json.gz", packed.finish().unwrap());
    for (name, kept) in [
        ("pretty.json", "kept.jsonl"),
        ("plain.json", "kept.jsonl"),
        ("packed.json.gz", "kept.jsonl.gz"),
    ] {
        let results = folder.dedup(&folder.path(name), &[]);
        assert!(results.folder.join(kept).exists(), "{name}");
        assert_eq!(results.kept_ids(), ["a", "b"], "{name}");
        assert_eq!(results.removed_ids(), ["c"], "{name}");
        let found: Vec<Value> = (results.kept.iter().chain(&results.removed))
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(Value::from(found), records(), "{name}");
        // An element that is on one line is output unchanged.
        let inside = |line: &Vec<u8>| plain.contains(std::str::from_utf8(line).unwrap().trim());
        assert!(name != "plain.json" || results.kept.iter().all(inside));
    }
    let mut piped = lookalike("extract");
    let out = piped.args(["-", "--quiet"]).finish_with(pretty.as_bytes());
    assert_eq!(out.lines().len(), 3, "{}", out.err);
}

#[test]
fn a_broken_element_is_named_and_harms_no_other() {
    let folder = Folder::new();
    let array = |broken: &str| {
        let good = |id: usize| format!("{{\"id\":\"{id}\",\"text\":\"text number {id} here\"}}");
        format!(
            "[\n  {},\n  {broken},\n  {},\n  {}\n]\n",
            good(1),
            good(3),
            good(4)
        )
    };
    for broken in [
        "{\"id\":\"2\",\"text\":oops}",
        "{\"id\":\"2\",\"text\":\"no end}",
        "{\"id\":\"2\",\"tags\":[1}",
        "17",
        "{\"id\":{},\"text\":\"x\"}",
    ] {
        let input = folder.add("in.json", array(broken));
        let results = folder.dedup_with_losses(&input, &[]);
        assert_eq!(results.kept_ids(), ["1", "3", "4"], "{broken}");
        assert_eq!(results.skipped.len(), 1, "{broken}: {:?}", results.skipped);
        assert_eq!(results.skipped[0]["record"], 2, "{broken}");
        assert_eq!(results.skipped[0]["source"], input.to_str().unwrap());
    }
    // If the elements are not on separate lines, everything after the broken one is lost, and this is reported.
    let input = folder.add(
        "in.json",
        array("{\"id\":\"2\",\"tags\":[1}").replace('\n', " "),
    );
    let results = folder.dedup_with_losses(&input, &[]);
    assert_eq!(results.kept_ids(), ["1"]);
    let kinds: Vec<&Value> = results.skipped.iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["invalid-json", "damaged"]);
    // An array that breaks off is reported as well.
    let whole = array("{\"id\":\"2\",\"text\":\"the second of all\"}");
    let input = folder.add("in.json", &whole[..whole.len() - 20]);
    let results = folder.dedup_with_losses(&input, &[]);
    assert_eq!(results.kept_ids(), ["1", "2", "3"]);
}

#[test]
fn an_element_that_is_too_long_is_kept_whole() {
    let folder = Folder::new();
    let long = "many words ".repeat(60_000);
    let array =
        json!([{"id": "a", "text": STORY}, {"id": "b", "text": long}, {"id": "c", "text": STORY}]);
    let input = folder.add("in.json", serde_json::to_string_pretty(&array).unwrap());
    let results = folder.dedup(&input, &["--max-document", "100K", "--order", "input"]);
    assert_eq!(results.count("counts", "too_long"), 1);
    let found = lines(&results.folder.join("kept.jsonl"));
    assert_eq!(found, [array[0].clone(), array[1].clone()]);
}

#[test]
fn an_object_that_was_never_closed_took_all_that_followed_along_in_silence() {
    let folder = Folder::new();
    let pretty =
        |id: usize| format!("{{\n  \"id\": \"{id}\",\n  \"text\": \"number {id} here\"\n}}\n");
    let unclosed = pretty(2).replace('}', "");
    let behind: String = (3..900).map(pretty).collect();
    let input = folder.add("x.json", format!("{}{unclosed}{behind}", pretty(1)));
    let dedup = |flags: &[&str]| {
        let mut command = lookalike("dedup");
        command.arg(&input).arg("-o").arg(folder.path(flags[0]));
        command.args(["--max-document", "1K"]).args(&flags[1..]);
        command
    };
    dedup(&["a"]).lose().says(&["object 2 is never closed"]);
    dedup(&["b", "--strict"]).fail(1);
    // The share that is missing is unknown.
    dedup(&["c", "--max-skipped", "50%"]).fail(1);
    dedup(&["d", "--max-skipped", "1"]).succeed();
}

#[test]
fn tables_of_every_dialect_are_read() {
    let folder = Folder::new();
    folder.add(
        "semicolon.csv",
        "id;text;n\na;one, two, three;1,5\nb;\"four; five\";2\n",
    );
    folder.add("bar.csv", "id|text\na|one, two, three\nb|four; five\n");
    folder.add("tab.csv", "id\ttext\na\tone, two, three\nb\tfour; five\n");
    let wanted = [("a", "one, two, three"), ("b", "four; five")];
    let wanted = wanted.map(|(id, text)| (id.to_owned(), text.to_owned()));
    for name in ["semicolon.csv", "bar.csv", "tab.csv"] {
        assert_eq!(extract(&folder, name, &[]), wanted, "{name}");
        let mut piped = lookalike("extract");
        let bytes = fs::read(folder.path(name)).unwrap();
        let out = piped.args(["-", "--quiet"]).finish_with(&bytes);
        assert_eq!(
            out.lines().len(),
            2,
            "{name} on standard input: {}",
            out.err
        );
    }
    folder.add("colon.csv", "id:text\na:one, two, three\nb:four; five\n");
    assert_eq!(extract(&folder, "colon.csv", &["--delimiter", ":"]), wanted);
    let prose = "It was late, and dark,\nbut text, as they say,\n";
    let mut piped = lookalike("extract");
    let out = piped.args(["-", "--quiet"]).finish_with(prose.as_bytes());
    assert_eq!(out.lines().len(), 1, "prose is no table");
}

#[test]
fn a_table_without_a_line_of_names_is_read_by_numbers() {
    let folder = Folder::new();
    let input = folder.add(
        "in.csv",
        format!("a;{STORY}\nb;{STORY}\nc;another story, quite\n"),
    );
    let flags = ["--no-header", "--id", "1", "--text", "2"];
    assert_eq!(extract(&folder, "in.csv", &flags).len(), 3);
    let results: Results = folder.dedup(&input, &flags);
    let kept = lines(&results.folder.join("kept.jsonl"));
    assert_eq!(kept[0], json!({"1": "a", "2": STORY}));
    assert_eq!(kept.len(), 2);
    let mut command = lookalike("extract");
    command.arg(&input).arg("--no-header");
    command.fail(2).says(&["--text"]);
    let text = folder.add("in.txt", STORY);
    let mut command = lookalike("extract");
    command.arg(&text).args(["--delimiter", ";"]);
    command.fail(2).says(&["--delimiter", "--format csv"]);
}

#[test]
fn rows_that_a_stray_quote_swallows_are_not_lost_in_silence() {
    let folder = Folder::new();
    let table = "id\ttext\na\tone and two\nb\t\"Three,\" she said\nc\tfour of five\nd\t\"Six\" is next\ne\tseven\n";
    let input = folder.add("in.tsv", table.replace("\"Three,\"", "\"Three,"));
    let results = folder.dedup_with_losses(&input, &[]);
    assert_eq!(results.kept_ids(), ["a", "e"]);
    assert_eq!(results.skipped[0]["record"], 2);
    assert!(results.skipped[0].to_string().contains("a quote that"));
    assert_eq!(
        extract(&folder, "in.tsv", &["--max-skipped", "1"])[1].1,
        "seven"
    );
    let results = folder.dedup(&input, &["--no-quotes"]);
    assert_eq!(results.kept_ids(), ["a", "b", "c", "d", "e"]);
    let texts = extract(&folder, "in.tsv", &["--no-quotes"]);
    assert_eq!(texts[1].1, "\"Three, she said");
}

#[test]
fn json_that_is_compared_with_its_braces_is_warned_of() {
    let folder = Folder::new();
    for name in ["a.json", "b.json", "c.json"] {
        let page = json!({"name": name, "body": STORY});
        folder.add(
            format!("in/{name}"),
            serde_json::to_string_pretty(&page).unwrap(),
        );
    }
    let mut command = lookalike("extract");
    let told = command.arg(folder.path("in")).succeed();
    told.says(&[
        "a.json and 2 other files are JSON without a field text or html",
        "--text",
    ]);
    let mut command = lookalike("extract");
    let told = command
        .arg(folder.path("in"))
        .args(["--text", "body"])
        .succeed();
    assert!(!told.err.contains("warning"), "{}", told.err);
    assert_eq!(told.lines()[0]["text"], STORY);
}

#[test]
fn a_record_that_lines_nest_deeply_was_refused_in_an_array() {
    let folder = Folder::new();
    let record = |id: &str| {
        let (open, close) = ("[".repeat(5_000), "]".repeat(5_000));
        format!("{{\"id\":\"{id}\",\"text\":\"{STORY}\",\"deep\":{open}{close}}}")
    };
    let (a, b) = (record("a"), record("b"));
    let lines = folder.add("lines.jsonl", format!("{a}\n{b}\n"));
    let array = folder.add("array.json", format!("[\n{a},\n{b}\n]\n"));
    let found = |input: &Path| lookalike("pairs").arg(input).arg("-q").succeed().lines();
    assert_eq!(found(&lines).len(), 1);
    assert_eq!(found(&array), found(&lines));
}

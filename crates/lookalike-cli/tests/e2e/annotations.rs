//! `dedup --annotate`: the decision on each record, in the order of the input.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::results::Results;
use crate::scope::mixed;
use crate::support::{Finish, Folder, json_lines, lookalike};

/// Returns the lines that follow from `clusters.jsonl` for records with these ids.
fn expected(results: &Results, ids: &[String]) -> Vec<Value> {
    let clusters = json_lines(&fs::read(results.folder.join("clusters.jsonl")).unwrap());
    let mut by_id = BTreeMap::new();
    for cluster in &clusters {
        let members = cluster["members"].as_array().unwrap();
        let survivor = json!({"id": cluster["survivor"]});
        let is_own = cluster["against"].is_null();
        for member in members.iter().chain(is_own.then_some(&survivor)) {
            let id = member["id"].as_str().unwrap().to_owned();
            let line = json!({
                "id": id,
                "cluster_id": cluster["cluster"],
                "cluster_size": members.len() + 1,
                "survivor_id": cluster["survivor"],
                "similarity": member["similarity"],
                "reason": member["reason"],
                "representative_id": cluster["survivor"],
                "is_duplicate": member.get("reason").is_some(),
            });
            by_id.insert(id, line);
        }
    }
    let alone = |id: &String| {
        json!({
            "id": id, "cluster_id": null, "cluster_size": 1, "survivor_id": id, "similarity": null, "reason": null,
            "representative_id": id, "is_duplicate": false,
        })
    };
    let line = |id: &String| by_id.get(id).cloned().unwrap_or_else(|| alone(id));
    ids.iter().map(line).collect()
}

#[test]
fn each_record_has_its_decision_in_the_order_of_the_input() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    let text = fs::read_to_string(input).unwrap();
    // Not in the order of ids, and in two files.
    let lines: Vec<&str> = text.lines().rev().collect();
    let old = folder.add("old.jsonl", lines[..40].join("\n"));
    let [b, a] = [("b.jsonl", &lines[40..150]), ("a.jsonl", &lines[150..])]
        .map(|(name, lines)| folder.add(name, lines.join("\n")));
    let id = |line: &&str| {
        serde_json::from_str::<Value>(line).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let ids: Vec<String> = lines[40..].iter().map(id).collect();
    let run = |out: &str, more: &[&str]| {
        let mut job = lookalike("dedup");
        job.arg(&b)
            .arg(&a)
            .args(["--threshold", "0.7", "--annotate"]);
        job.arg("-o").arg(folder.path(out)).args(more).succeed();
        folder.path(out)
    };
    let against = ["--against", old.to_str().unwrap()];
    for (name, more) in [("plain", &[][..]), ("against", &against[..])] {
        let one = run(name, &[more, &["--threads", "1"]].concat());
        let results = Results::read(&one);
        let annotations = fs::read(one.join("annotations.jsonl")).unwrap();
        let found = json_lines(&annotations);
        assert_eq!(found, expected(&results, &ids), "{name}");
        assert!(found.iter().any(|line| line["reason"] == "near"));
        assert!(
            results.run["results"]
                .as_array()
                .unwrap()
                .contains(&json!("annotations.jsonl"))
        );
        let report = fs::read_to_string(one.join("report.html")).unwrap();
        assert!(report.contains("annotations.jsonl"));
        let many = run(
            &format!("{name}-16"),
            &[more, &["--threads", "16"]].concat(),
        );
        assert!(fs::read(many.join("annotations.jsonl")).unwrap() == annotations);
    }
    // Without the option, the file of an earlier job is removed with its other results.
    let mut job = lookalike("dedup");
    job.arg(&a)
        .arg("--overwrite")
        .arg("-o")
        .arg(folder.path("plain"))
        .succeed();
    assert!(!folder.path("plain/annotations.jsonl").exists());
}

#[test]
fn shards_of_parquet_have_one_table_of_decisions() {
    let folder = Folder::new();
    let (input, _) = mixed(&folder);
    let text = fs::read_to_string(input).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let shard = |name: &str, lines: &[&str]| {
        let input = folder.add(format!("{name}.jsonl"), lines.join("\n"));
        let mut job = lookalike("dedup");
        job.arg(input).args([
            "--method",
            "exact",
            "--output-format",
            "parquet",
            "--within",
            "id",
            "-o",
        ]);
        job.arg(folder.path(name)).succeed();
        folder.path(name).join("kept.parquet")
    };
    let shards = [shard("x", &lines[..100]), shard("y", &lines[100..])];
    let mut tables = Vec::new();
    for format in ["parquet", "jsonl"] {
        let out = folder.path(format!("out-{format}"));
        let mut job = lookalike("dedup");
        job.args(&shards).args([
            "--threshold",
            "0.7",
            "--annotate",
            "--output-format",
            format,
        ]);
        job.arg("-o").arg(&out).succeed();
        let file = out.join(format!("annotations.{format}"));
        // As lines, by an extraction of nothing but the records.
        tables.push(match format {
            "parquet" => {
                let mut read = lookalike("dedup");
                let lines = folder.path("lines");
                read.arg(&file).args([
                    "--text", "id", "--id", "id", "--within", "id", "--method", "exact",
                ]);
                read.args(["--output-format", "jsonl", "--order", "input", "-o"])
                    .arg(&lines)
                    .succeed();
                json_lines(&fs::read(lines.join("kept.jsonl")).unwrap())
            }
            _ => json_lines(&fs::read(&file).unwrap()),
        });
    }
    let [table, lines]: [Vec<Value>; 2] = tables.try_into().unwrap();
    assert_eq!(lines.len(), 240);
    let without_nulls = |line: &Value| {
        let fields = line.as_object().unwrap().clone().into_iter();
        // A number of a table is written without a fraction if it has none.
        let as_double = |value: Value| value.as_f64().map_or(value, Value::from);
        fields
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, as_double(value)))
            .collect::<BTreeMap<_, _>>()
    };
    let [table, lines] = [&table, &lines]
        .map(|lines: &Vec<Value>| lines.iter().map(without_nulls).collect::<Vec<_>>());
    assert_eq!(table, lines);
}

//! Evaluations of given sketches, in files and indexes of every kind, compared with evaluations of documents and with brute force.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::hostile_memory::measured;
use crate::support::{Finish, Folder, Numbers, json_lines, lookalike, path, record, table_below};

/// The kinds of sketches, with the field of their lines and the number of hexadecimal digits per place (for fingerprints, of the whole value).
const KINDS: [(&str, &str, usize); 5] = [
    ("simhash:32", "fingerprint", 8),
    ("simhash:64", "fingerprint", 16),
    ("simhash:128", "fingerprint", 32),
    ("minhash:33", "signature", 8),
    ("super-shingle:6x3", "super_shingles", 16),
];

fn evaluate(what: &str, inputs: &[&Path], flags: &[&str]) -> Value {
    let mut command = lookalike("evaluate");
    command.arg(what).args(inputs).args(flags);
    command.args(["--json", "--quiet"]).succeed().json()
}

/// Returns 80 texts in families of four that differ in one to ten inserted words.
fn families(folder: &Folder) -> PathBuf {
    let mut numbers = Numbers(5);
    let mut rows = String::new();
    for family in 0..20 {
        let text = numbers.words(150, 5000);
        for member in 0..4 {
            let changed = 1 + member * numbers.below(4);
            let changed = text.replacen(' ', &format!(" v{member} "), changed);
            rows += &record(&format!("d{family:02}-{member}"), &changed);
        }
    }
    folder.add("families.jsonl", rows)
}

#[track_caller]
fn fingerprint(documents: &Path, sketch: &str, output: &Path) {
    let mut command = lookalike("fingerprint");
    command
        .arg(documents)
        .args(["--sketch", sketch, "-q", "-o"]);
    command.arg(output).succeed();
}

#[track_caller]
fn index(input: &Path, equal: Option<&str>, output: &Path) {
    let mut command = lookalike("index");
    command
        .arg("build")
        .arg(input)
        .arg("-q")
        .arg("-o")
        .arg(output);
    if let Some(equal) = equal {
        command.args(["--equal", equal]);
    }
    command.succeed();
}

/// Labels the pairs of each family, of which that of the first two members is always true, and as many pairs across families, which are false.
fn labels(folder: &Folder) -> PathBuf {
    let mut lines = String::new();
    for family in 0..20 {
        for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let label = (a, b) == (0, 1) || (a + b + family) % 3 > 0;
            let pair = |a: String, b: String, label: bool| json!({"a": a, "b": b, "label": label});
            let id = |family: usize, member: usize| format!("d{:02}-{member}", family % 20);
            let near = pair(id(family, a), id(family, b), label);
            let far = pair(id(family, a), id(family + 1, b), false);
            lines += &format!("{near}\n{far}\n");
        }
    }
    folder.add("labels.jsonl", lines)
}

/// Returns the places of each sketch in a file of lines; a fingerprint is one place.
fn places(lines: &Path, field: &str, digits: usize) -> BTreeMap<String, Vec<u128>> {
    let read = |line: &Value| {
        let sketch = line[field].as_str().unwrap().as_bytes().chunks(digits);
        let place = |place| u128::from_str_radix(std::str::from_utf8(place).unwrap(), 16).unwrap();
        (
            line["id"].as_str().unwrap().to_owned(),
            sketch.map(place).collect(),
        )
    };
    json_lines(&fs::read(lines).unwrap())
        .iter()
        .map(read)
        .collect()
}

fn equal(a: &[u128], b: &[u128]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

#[test]
fn sketches_of_every_kind_stand_for_their_documents() {
    let folder = Folder::new();
    let documents = families(&folder);
    for (sketch, _, _) in KINDS {
        let name = sketch.replace(':', "-");
        let [file, lines, table, indexed] = ["lkfp", "jsonl", "parquet", "lkix"]
            .map(|ending| folder.path(format!("{name}.{ending}")));
        for out in [&file, &lines, &table] {
            fingerprint(&documents, sketch, out);
        }
        index(
            &file,
            (!sketch.starts_with("simhash")).then_some("2"),
            &indexed,
        );
        let [expected, sampled] = ["expected", "sampled"].map(|name| folder.path(name));
        let of_documents = evaluate(
            "sample",
            &[&documents],
            &["--sketch", sketch, "--each", "7", "-o", path(&expected)],
        );
        let drawn = fs::read_to_string(&expected).unwrap();
        assert!(of_documents["pairs"].as_u64() > Some(20), "{of_documents}");
        let labelled = drawn.lines().enumerate().map(|(at, line)| {
            let mut pair: Value = serde_json::from_str(line).unwrap();
            pair["label"] = json!(at % 3 != 0);
            format!("{pair}\n")
        });
        let labels = folder.add("drawn.jsonl", labelled.collect::<String>());
        let labels = ["--labels", path(&labels)];
        let figures = evaluate(
            "labels",
            &[&documents],
            &[&labels[..], &["--sketch", sketch]].concat(),
        );
        for input in [&file, &lines, &table, &indexed] {
            let shown = input.display();
            let given = evaluate(
                "sample",
                &[input],
                &["--fingerprints", "--each", "7", "-o", path(&sampled)],
            );
            assert_eq!(given["bands"], of_documents["bands"], "{shown}");
            assert_eq!(fs::read_to_string(&sampled).unwrap(), drawn, "{shown}");
            let given = evaluate(
                "labels",
                &[input],
                &[&labels[..], &["--fingerprints"]].concat(),
            );
            assert_eq!(given["row"]["curve"], figures["row"]["curve"], "{shown}");
            assert_eq!(given["row"]["bytes"], figures["row"]["bytes"], "{shown}");
        }
        // Sample from a pipe, which can be read only once.
        let mut piped = lookalike("evaluate");
        piped.args(["sample", "-", "--fingerprints", "--each", "7", "-q", "-o"]);
        let piped = piped.arg(&sampled).finish_with(&fs::read(&lines).unwrap());
        assert_eq!(piped.status, Some(0), "{}", piped.err);
        assert_eq!(fs::read_to_string(&sampled).unwrap(), drawn, "{sketch}");
    }
}

/// Raw numbers have no ids. The bands contain all pairs of different sketches, whatever their names are.
#[test]
fn raw_numbers_are_sampled_by_their_digits() {
    let folder = Folder::new();
    let documents = families(&folder);
    let endings = ["u32", "u64", "u128", "u32x33", "u64x6"];
    for ((sketch, field, digits), ending) in KINDS.into_iter().zip(endings) {
        let (raw, lines) = (folder.path(format!("raw.{ending}")), folder.path("l.jsonl"));
        fingerprint(&documents, sketch, &raw);
        fingerprint(&documents, sketch, &lines);
        let mut different: Vec<Vec<u128>> = places(&lines, field, digits).into_values().collect();
        different.sort();
        different.dedup();
        let out = folder.path("pairs.jsonl");
        let given = evaluate(
            "sample",
            &[&raw],
            &["--fingerprints", "--each", "100000", "-o", path(&out)],
        );
        assert_eq!(given["documents"], different.len(), "{sketch}");
        let mut pairs = 0;
        for (at, a) in different.iter().enumerate() {
            for b in &different[at + 1..] {
                pairs += usize::from(match digits * a.len() {
                    // The default bands start at 10 bits, a share of 0.3, or one place.
                    _ if a.len() == 1 => (a[0] ^ b[0]).count_ones() <= 10,
                    _ if field == "signature" => equal(a, b) as f64 / a.len() as f64 >= 0.3,
                    _ => equal(a, b) >= 1,
                });
            }
        }
        assert_eq!(given["pairs"], pairs, "{sketch}");
    }
}

/// Returns the lower and upper 95 % limits by Wilson's formula.
fn wilson(successes: f64, trials: f64) -> [f64; 2] {
    let (share, z) = (successes / trials, 1.959_964);
    let centre = share + z * z / (2.0 * trials);
    let half = z * (share * (1.0 - share) / trials + z * z / (4.0 * trials * trials)).sqrt();
    [-half, half].map(|half| (centre + half) / (1.0 + z * z / trials))
}

/// A sweep has a row for every input and a point for each radius or number of equal places; both are compared with counts over all pairs.
#[test]
fn a_sweep_over_sketches_counts_what_the_labels_say() {
    let folder = Folder::new();
    let (documents, labels) = (families(&folder), labels(&folder));
    let mut inputs = Vec::new();
    let mut sketches = Vec::new();
    for (at, (sketch, field, digits)) in KINDS.into_iter().enumerate() {
        let lines = folder.path(format!("{at}.jsonl"));
        fingerprint(&documents, sketch, &lines);
        let input = folder.path(format!("{at}.{}", if at == 1 { "lkix" } else { "lkfp" }));
        match at {
            1 => index(&lines, None, &input),
            _ => fingerprint(&documents, sketch, &input),
        }
        sketches.push((field, digits, places(&lines, field, digits)));
        inputs.push(input);
    }
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let page = folder.path("sweep.html");
    let flags = ["--fingerprints", "--labels", path(&labels)];
    // A third of the labels of near pairs are false.
    let target = ["--precision", "0.5", "--recall", "0.5"];
    let flags = [&flags[..], &target, &["--page", path(&page)]].concat();
    let answer = evaluate("sweep", &inputs, &flags);
    assert_eq!(answer["documents"], 80);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("33 minima"));
    let judged = json_lines(&fs::read(&labels).unwrap());
    let trues = judged.iter().filter(|pair| pair["label"] == true).count();
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), KINDS.len());
    for (row, (field, digits, sketches)) in rows.iter().zip(&sketches) {
        // Applies `k <= 3`, `equal >= 2` or `share >= 0.85` to a pair.
        let found = |parameter: &str, pair: &Value| {
            let [a, b] = ["a", "b"].map(|side| &sketches[pair[side].as_str().unwrap()]);
            let (name, number) = parameter.rsplit_once(' ').unwrap();
            let number: f64 = number.parse().unwrap();
            match name {
                "k <=" => f64::from((a[0] ^ b[0]).count_ones()) <= number,
                "equal >=" => equal(a, b) as f64 >= number,
                "equal =" => equal(a, b) as f64 == number,
                "share >=" => equal(a, b) as f64 / a.len() as f64 >= number,
                other => panic!("{other}"),
            }
        };
        let points = row["curve"]["points"].as_array().unwrap();
        let exactly = row["curve"]["exactly"].as_array();
        assert_eq!(exactly.is_some(), *field == "super_shingles");
        assert!(points.len() >= 6, "{row}");
        for point in points.iter().chain(exactly.into_iter().flatten()) {
            let parameter = point["parameter"].as_str().unwrap();
            let own = judged.iter().filter(|pair| found(parameter, pair));
            let own: Vec<&Value> = own.collect();
            let correct = own.iter().filter(|pair| pair["label"] == true).count();
            assert_eq!(point["found"], own.len(), "{parameter} of {field}:{digits}");
            assert_eq!(point["correct"], correct, "{parameter} of {field}:{digits}");
            let limits = [("precision", own.len()), ("recall", trues)];
            for (share, trials) in limits.into_iter().filter(|(_, trials)| *trials > 0) {
                let wanted = wilson(correct as f64, trials as f64);
                for (limit, wanted) in ["low", "high"].into_iter().zip(wanted) {
                    let given = point[share][limit].as_f64().unwrap();
                    assert!((given - wanted.clamp(0.0, 1.0)).abs() < 1e-9, "{point}");
                }
            }
        }
    }
    // The figures expected on other labels are given for each kind and for all together, on the page too.
    let expected = answer["expected"].as_array().unwrap();
    let choices: Vec<&Value> = expected.iter().map(|one| &one["choice"]).collect();
    assert_eq!(choices.len(), 6);
    assert_eq!(
        (choices[4], choices[5]),
        (&json!("6 super-shingles"), &json!("any"))
    );
    let rows = expected.iter().map(|one| {
        let keys = ["f1", "low", "high", "precision", "recall"];
        let [f1, low, high, precision, recall] =
            keys.map(|key| format!("{:.3}", one[key].as_f64().unwrap()));
        let choice = one["choice"].as_str().unwrap().to_owned();
        let f1 = format!("{f1} [{low}, {high}]");
        vec![choice, one["settings"].to_string(), f1, precision, recall]
    });
    let shown = table_below(&html, "Expected on other labels");
    assert_eq!(shown[1..], rows.collect::<Vec<_>>());
    let advice = answer["advice"].as_array().unwrap();
    assert!(advice.len() >= 3, "{advice:?}");
    for advised in advice {
        let parameter = advised["point"]["parameter"].as_str().unwrap();
        let Some(command) = advised["command"].as_str() else {
            // An index is not joined with itself, and no join goes beyond 16 bits.
            let most = parameter.strip_prefix("k <= ").map(str::parse::<f64>);
            assert!(
                advised["row"] == 1 || most.unwrap().unwrap() > 16.0,
                "{advised}"
            );
            continue;
        };
        let mut words = command.split(' ').skip(1);
        let mut join = lookalike(words.next().unwrap());
        let pairs = join.args(words).arg("-q").succeed().lines();
        // A join names only one of several equal sketches, so its number of pairs may be smaller.
        let found = advised["point"]["found"].as_u64().unwrap();
        assert!(!pairs.is_empty() && found > 0, "{command}");
        let far = pairs.iter().map(|pair| pair["distance"].as_f64().unwrap());
        let far = far.fold(0.0, f64::max);
        match parameter.rsplit_once(' ').unwrap() {
            ("k <=", most) => assert!(far <= most.parse().unwrap(), "{command}"),
            ("equal >=", least) => assert!(6.0 - far >= least.parse().unwrap(), "{command}"),
            (_, least) => {
                assert!((33.0 - far) / 33.0 >= least.parse().unwrap(), "{command}");
            }
        }
    }
    let mut shown = lookalike("evaluate");
    shown.arg("sweep").args(&inputs[3..]);
    let shown = shown.args(&flags[..3]).succeed();
    for words in [
        "\n33 minima of ",
        "\nshare >= 0.85",
        "\nequal = 3",
        "\nExpected on other",
    ] {
        assert!(shown.text().contains(words), "{words:?}: {}", shown.text());
    }
}

#[test]
fn pairs_that_all_share_documents_were_called_families() {
    let folder = Folder::new();
    let (documents, labels) = (families(&folder), labels(&folder));
    let shown = |labels: &Path| {
        let mut command = lookalike("evaluate");
        command.arg("sweep").arg(&documents).arg("--labels");
        command
            .arg(labels)
            .args(["--sketches", "none", "--shingles", "words:2"]);
        command.succeed().text().to_owned()
    };
    // Each family is connected with the next, in a circle.
    let text = shown(&labels);
    let alone = "of 240 labelled pairs, each alone because fewer than five groups of them share no documents, tested";
    assert!(text.contains(alone), "{text}");
    assert!(
        text.contains("by resampling pairs; the true limits are wider"),
        "{text}"
    );
    let apart = fs::read_to_string(&labels).unwrap();
    let apart = apart.lines().filter(|line| {
        let pair: Value = serde_json::from_str(line).unwrap();
        let [a, b] = ["a", "b"].map(|side| pair[side].as_str().unwrap()[..3].to_owned());
        a == b
    });
    let apart = apart.map(|line| line.to_owned() + "\n").collect::<String>();
    let text = shown(&folder.add("apart.jsonl", apart));
    assert!(
        text.contains("of 20 families of labelled pairs, tested"),
        "{text}"
    );
}

/// Compares the join of signatures, and the share that their bands find, with brute force.
#[test]
fn an_audit_of_signatures_counts_what_the_bands_miss() {
    let folder = Folder::new();
    let documents = families(&folder);
    // A copy has the signature of another document and does not count.
    let mut rows = fs::read_to_string(&documents).unwrap();
    let first = rows.lines().next().unwrap().replace("d00-0", "e00-0");
    rows += &format!("{first}\n");
    let documents = folder.add("documents.jsonl", rows);
    let [file, lines, indexed] = ["m.lkfp", "m.jsonl", "m.lkix"].map(|name| folder.path(name));
    fingerprint(&documents, "minhash:40", &file);
    fingerprint(&documents, "minhash:40", &lines);
    index(&file, Some("0.5"), &indexed);
    let mut different: Vec<Vec<u128>> = places(&lines, "signature", 8).into_values().collect();
    let all = different.len();
    different.sort();
    different.dedup();
    assert!(different.len() < all);
    let method = ["--fingerprints", "--method", "minhash"];
    let mut missed = 0;
    for limits in [["0.8", "0.7"], ["0.9", "0.2"], ["0.6", "0.999"]] {
        let limits = ["--threshold", limits[0], "--recall", limits[1]];
        let flags = [&method[..], &limits].concat();
        let answer = evaluate("audit", &[&file], &flags);
        let of = |name: &str| answer["bands"][name].as_u64().unwrap() as usize;
        let (number, minima) = (of("number"), of("minima"));
        let least: f64 = limits[1].parse().unwrap();
        let (mut pairs, mut found, mut proposed) = (0, 0, 0);
        for (at, a) in different.iter().enumerate() {
            for b in &different[at + 1..] {
                let is_true = equal(a, b) as f64 / 40.0 >= least;
                let shares = (0..number).any(|band| {
                    let places = band * minima..(band + 1) * minima;
                    a[places.clone()] == b[places]
                });
                pairs += u64::from(is_true);
                proposed += u64::from(shares);
                found += u64::from(is_true && shares);
            }
        }
        assert_eq!(answer["documents"], different.len());
        assert_eq!(answer["copies"], all - different.len());
        assert_eq!(answer["true_pairs"], pairs, "{limits:?}");
        assert_eq!(answer["found"], found, "{limits:?}");
        assert_eq!(answer["proposed"], proposed, "{limits:?}");
        let recall = answer["recall"]["value"].as_f64().unwrap();
        assert!((recall - found as f64 / pairs as f64).abs() < 1e-12);
        assert_eq!(evaluate("audit", &[&indexed], &flags), answer);
        missed += pairs - found;
    }
    assert!(missed > 0, "bands that miss nothing show nothing");
    let mut told = lookalike("evaluate");
    told.arg("audit").arg(&file).args(method);
    let told = told.succeed();
    for words in ["with the same signature", "of equal minima", "\nbands  "] {
        assert!(told.text().contains(words), "{words:?}: {}", told.text());
    }
}

#[test]
fn what_sketches_cannot_tell_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let (documents, labels) = (families(&folder), labels(&folder));
    let [prints, minima, shingles] =
        ["f.lkfp", "m.lkfp", "s.parquet"].map(|name| folder.path(name));
    fingerprint(&documents, "simhash:64", &prints);
    fingerprint(&documents, "minhash:16", &minima);
    fingerprint(&documents, "super-shingle:6x14", &shingles);
    let refuse = |what: &str, inputs: &[&Path], flags: &[&str], status: i32, words: &[&str]| {
        let mut command = lookalike("evaluate");
        command.arg(what).args(inputs).arg("--fingerprints");
        command.args(flags).fail(status).says(words);
    };
    let labels = ["--labels", path(&labels)];
    let out = ["-o", "x"];
    refuse(
        "sample",
        &[&prints, &shingles],
        &out,
        1,
        &["64-bit fingerprints", "6 super-shingles", "--sketch"],
    );
    refuse(
        "sample",
        &[&documents],
        &out,
        1,
        &["no field named fingerprint"],
    );
    refuse(
        "sample",
        &[&shingles],
        &["-o", "x", "--bands", "0.5,0.9"],
        2,
        &["whole numbers from 1"],
    );
    refuse("sweep", &[&prints], &[], 2, &["--labels", "the documents"]);
    let twice = ["standard input is read once", "in files"];
    refuse("sweep", &["-".as_ref(); 2], &labels, 2, &twice);
    let with = |flags: &[&'static str]| [&labels[..], flags].concat();
    for flags in [
        &["--sketches", "none"][..],
        &["--two-tests"],
        &["--lengths", "0.8"],
        &["--case", "keep"],
    ] {
        let words = [flags[0], "has no effect here", "--fingerprints"];
        refuse("sweep", &[&prints], &with(flags), 2, &words);
    }
    refuse(
        "sweep",
        &[&prints],
        &with(&["--checkpoint", "c"]),
        2,
        &["--checkpoint has no effect here"],
    );
    refuse(
        "sweep",
        &[&prints, &minima],
        &with(&["--memory", "4K"]),
        1,
        &["--memory allows"],
    );
    refuse(
        "audit",
        &[&prints],
        &[],
        2,
        &["--method minhash", "exact join"],
    );
    for method in ["simhash", "super-shingle", "henzinger"] {
        refuse(
            "audit",
            &[&prints],
            &["--method", method],
            2,
            &[method, "shows only in texts", "without --fingerprints"],
        );
    }
    let minhash = ["--method", "minhash"];
    for input in [&prints, &shingles] {
        refuse(
            "audit",
            &[input],
            &minhash,
            1,
            &["have no bands", "--sketch minhash:128"],
        );
    }
    refuse(
        "audit",
        &[&minima],
        &["--method", "minhash", "--sample", "5"],
        2,
        &["--sample has no effect here"],
    );
    refuse(
        "audit",
        &[&minima],
        &["--method", "minhash", "--threshold", "0.1"],
        2,
        &["16 functions cannot find"],
    );
}

/// All pairs of a large cluster were held: here 18 million, of the labels and of the sketches.
#[test]
fn a_large_cluster_took_memory_for_each_of_its_pairs() {
    let folder = Folder::new();
    let (mut codes, mut clusters) = (String::new(), String::new());
    for id in 0..6000 {
        codes += &format!(
            "{}\n",
            json!({"id": id.to_string(), "fingerprint": "00000000000000ff"})
        );
        clusters += &format!("{}\n", json!({"id": id.to_string(), "cluster": 1}));
    }
    let codes = folder.add("codes.jsonl", codes);
    let clusters = folder.add("clusters.jsonl", clusters);
    let mut command = lookalike("evaluate");
    command.args(["labels", "--fingerprints", "--json", "--memory", "256M"]);
    command.arg(codes).arg("--labels").arg(clusters);
    let out = folder.path("answer.json");
    command.stdout(std::fs::File::create(&out).unwrap());
    let (_, most) = measured(&mut command, 0);
    assert!(most < 256 << 20, "{most}");
    let answer: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    // 6000 times 5999 halves.
    assert_eq!(answer["pairs"]["correct"], 17_997_000);
    assert_eq!(answer["adjusted_rand_index"], 1.0);
}

/// Regression test: the cut used to compare known clusters was so loose that nearly all pairs of fingerprints passed.
#[test]
fn fingerprints_were_merged_into_one_cluster_by_default() {
    let folder = Folder::new();
    let documents = families(&folder);
    let file = folder.path("f.lkfp");
    let mut fingerprint = lookalike("fingerprint");
    fingerprint.arg(&documents).args(["--shingle", "words:1"]);
    fingerprint.arg("-q").arg("-o").arg(&file).succeed();
    let mut clusters = String::new();
    for family in 0..20 {
        for member in 0..4 {
            let id = format!("d{family:02}-{member}");
            clusters += &format!("{}\n", json!({"id": id, "cluster": family}));
        }
    }
    let clusters = folder.add("clusters.jsonl", clusters);
    let labels = ["--labels", path(&clusters)];
    let given = evaluate(
        "labels",
        &[&file],
        &[&labels[..], &["--fingerprints"]].concat(),
    );
    assert_eq!(given["cut"], "k <= 3");
    assert!(given["adjusted_rand_index"].as_f64() > Some(0.5), "{given}");
    assert_eq!(given["pairs"]["precision"]["value"], 1.0, "{given}");
    let flags = ["--sketch", "simhash:64", "--shingle", "words:1"];
    let of_documents = evaluate("labels", &[&documents], &[&labels[..], &flags].concat());
    assert_eq!(of_documents, given);
}

/// The memory of the command itself, of the set that is made of the sketches, and of the ids for the labels was not counted, and what did not fit
/// was held until the end.
#[test]
fn sketches_took_more_memory_than_allowed() {
    let folder = Folder::new();
    let mut lines = String::new();
    for at in 0..20_000_u64 {
        // Each shares a third of its minima with some others.
        let minima = (0..64).map(|place| at / if place < 21 { 4 } else { 1 } * 64 + place);
        let digits: String = minima.map(|minimum| format!("{minimum:08x}")).collect();
        lines += &format!("{{\"id\":\"d{at}\",\"signature\":\"{digits}\"}}\n");
    }
    let sketches = folder.add("minima.jsonl", lines);
    let label = |b: &str, label| json!({"a": "d0", "b": b, "label": label}).to_string() + "\n";
    let labels = folder.add("labels.jsonl", label("d1", true) + &label("d9", false));
    let run = |what: &str, memory: u64, status: i32| {
        let mut command = lookalike("evaluate");
        command.args([what, "--fingerprints", "-q", "--threads", "2"]);
        command
            .arg("--memory")
            .arg(format!("{memory}M"))
            .arg(&sketches);
        match what {
            "sample" => command.args(["--bands", "0.2,0.3", "-o", path(&folder.path("pairs"))]),
            _ => command.arg("--labels").arg(&labels),
        };
        let (said, most) = measured(&mut command, status);
        assert!(most < memory << 20, "{what} {memory}M took {most}: {said}");
    };
    for what in ["sample", "labels", "sweep"] {
        run(what, 48, 1);
        run(what, 56, 0);
        run(what, 90, 0);
    }
}

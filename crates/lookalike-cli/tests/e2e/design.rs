//! `design`: the numbers of the paper, the limits, and the constants of a machine.

use serde_json::Value;

use crate::support::{Finish, Folder, lookalike};

fn designs(flags: &[&str]) -> Vec<Value> {
    let all = lookalike("design")
        .arg("--json")
        .args(flags)
        .succeed()
        .json();
    all["designs"].as_array().unwrap().clone()
}

/// Returns tables, key bits and matches per probe of the packed designs of a kind.
fn of_kind(designs: &[Value], kind: &str) -> Vec<(u64, u64, u64, f64)> {
    let packed = designs
        .iter()
        .filter(|d| d["kind"] == kind && d["layout"] == "packed");
    let row = |d: &Value| {
        let key = |at: usize| d["prefix_bits"][at].as_u64().unwrap();
        let matches = d["matches_per_probe"].as_f64().unwrap();
        (d["tables"].as_u64().unwrap(), key(0), key(1), matches)
    };
    packed.map(row).collect()
}

#[test]
fn the_example_of_the_paper_has_its_numbers() {
    let flags = [
        "--fingerprints",
        "17179869184",
        "--distance",
        "3",
        "--memory",
        "4T",
    ];
    let designs = designs(&flags);
    let blocks = of_kind(&designs, "blocks");
    for row in [
        (20, 31, 33, 8.0),
        (16, 28, 28, 64.0),
        (10, 25, 26, 512.0),
        (4, 16, 16, 262_144.0),
    ] {
        assert!(blocks.contains(&row), "{row:?} is not in {blocks:?}");
    }
    assert!(of_kind(&designs, "budgets").contains(&(2, 32, 32, 4.0)));
    let covers = of_kind(&designs, "cover");
    assert!(
        covers.iter().any(|row| (row.0, row.1) == (14, 32)),
        "{covers:?}"
    );
    assert_eq!(designs.iter().filter(|d| d["cheapest"] == true).count(), 1);
}

#[test]
fn a_kind_was_only_marked_and_other_kinds_were_listed() {
    for kind in ["blocks", "cover", "scan"] {
        let designs = designs(&["--fingerprints", "1e6", "--kind", kind]);
        assert!(!designs.is_empty() && designs.iter().all(|d| d["kind"] == kind));
    }
}

#[test]
fn a_named_design_of_many_probes_was_not_shown() {
    let flags = ["--distance", "16", "--design", "1-of-1x1"];
    let designs = designs(&[&["--fingerprints", "1e9"][..], &flags].concat());
    assert_eq!(designs.len(), 3, "three layouts");
    assert!(designs.iter().all(|d| d["probes"].as_f64() > Some(1e7)));
}

#[test]
fn nested_blocks_had_more_tables_than_were_allowed() {
    let nested = |tables: &str| {
        let mut command = lookalike("design");
        command.args(["--json", "--fingerprints", "1e6", "--bits", "128"]);
        command.args(["--min-prefix", "40", "--tables", tables]);
        command.succeed().json()["nested_blocks"]["tables"].as_u64()
    };
    assert_eq!(["3", "10"].map(nested), [None, Some(10)]);
}

#[test]
fn people_see_the_same_table() {
    let table = lookalike("design")
        .args(["--fingerprints", "2^34", "--memory", "4T"])
        .succeed();
    let text = table.text();
    assert!(
        text.contains("17,179,869,184 fingerprints of 64 bits, distance 3"),
        "{text}"
    );
    assert_eq!(
        text.lines().filter(|line| line.starts_with('*')).count(),
        1,
        "{text}"
    );
    assert!(text.contains("31-33") && text.contains("262,144"), "{text}");
}

/// Finds the designs of example 3.1 of the paper by name, and by its question: how few tables have keys of at least so many bits?
#[test]
fn designs_are_asked_for_by_name_and_by_the_length_of_their_keys() {
    for (name, prefix, tables) in [
        ("3-of-6x1", "31", 20),
        ("nested-4-4", "28", 16),
        ("2-of-5x1", "25", 10),
        ("1-of-4x1", "16", 4),
    ] {
        let base = ["--fingerprints", "2^34", "--memory", "4T"];
        let named = designs(&[&base[..], &["--design", name]].concat());
        assert!(
            named
                .iter()
                .all(|d| d["name"] == name && d["tables"] == tables),
            "{name}"
        );
        assert_eq!(named.len(), 3, "three layouts");
        let wish = [
            "--kind",
            "blocks",
            "--min-prefix",
            prefix,
            "--prefer",
            "tables",
        ];
        let few = designs(&[&base[..], &wish].concat());
        let best = few.iter().find(|d| d["cheapest"] == true).unwrap();
        assert_eq!(
            (&best["name"], &best["tables"]),
            (&name.into(), &tables.into())
        );
        let fewer = few.iter().filter(|d| d["fits"] == true);
        assert!(
            fewer
                .clone()
                .all(|d| d["tables"].as_u64().unwrap() >= tables)
        );
    }
    // Other exact designs need fewer tables.
    let flags = [
        "--kind",
        "cover",
        "--min-prefix",
        "31",
        "--prefer",
        "tables",
    ];
    let covers = designs(&[&["--fingerprints", "1e6"][..], &flags].concat());
    let best = covers.iter().find(|d| d["cheapest"] == true).unwrap();
    assert_eq!(
        (&best["name"], &best["tables"]),
        (&"affine".into(), &14.into())
    );
    let told = lookalike("design")
        .args(["--fingerprints", "2^34", "--min-prefix", "28"])
        .succeed();
    let formula = "Nested blocks (X of the paper, before blocks are rounded to whole bits): 16 tables of 28.0 bits, levels [4, 4]";
    assert!(told.text().contains(formula), "{}", told.text());
    for (name, distance, why) in [
        ("4-of-7x2", "4", "2 groups do not share distance 4 evenly"),
        ("five", "3", "no design is called \"five\""),
        ("1-of-65", "3", "there is no design 1-of-65 for 64 bits"),
        ("biplane", "2", "there is no design biplane"),
    ] {
        let mut command = lookalike("design");
        command.args([
            "--fingerprints",
            "1e6",
            "--design",
            name,
            "--distance",
            distance,
        ]);
        command.fail(2).says(&[why]);
    }
}

/// A layout of two tebibytes is no advice for a machine with gibibytes.
#[test]
fn no_design_is_the_best_that_does_not_fit_this_machine() {
    let flags = ["--fingerprints", "1e15"];
    assert!(
        designs(&flags)
            .iter()
            .all(|d| d["fits"] == false && d["cheapest"] == false)
    );
    let table = lookalike("design").args(flags).succeed();
    let text = table.text();
    for words in ["the smallest needs", "of this machine", "--memory"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.lines().any(|line| line.starts_with('*')), "{text}");
    let small = designs(&["--fingerprints", "1e6", "--prefer", "memory"]);
    let bytes = |d: &Value| d["bytes"].as_f64().unwrap();
    let best = small.iter().find(|d| d["cheapest"] == true).unwrap();
    assert!(small.iter().all(|d| bytes(d) >= bytes(best)));
}

#[test]
fn limits_are_kept_or_said_to_be_too_tight() {
    let limited = designs(&["--fingerprints", "1e9", "--memory", "12G", "--tables", "3"]);
    let best = limited.iter().find(|d| d["cheapest"] == true).unwrap();
    assert!(best["tables"].as_u64().unwrap() <= 3 && best["bytes"].as_f64().unwrap() <= 12e9 * 1.1);
    let over = limited.iter().find(|d| d["fits"] == false);
    assert!(over.is_some(), "designs outside the limits are shown too");
    let none = lookalike("design")
        .args(["--fingerprints", "1e9", "--memory", "1M"])
        .succeed();
    assert!(none.text().contains("No design is within the limits"));
}

#[test]
fn other_widths_and_distances_have_designs() {
    for bits in ["32", "64", "128"] {
        for distance in ["0", "3", "8"] {
            let flags = [
                "--fingerprints",
                "1e6",
                "--bits",
                bits,
                "--distance",
                distance,
            ];
            let cheapest = |d: &&Value| d["cheapest"] == true;
            assert_eq!(
                designs(&flags).iter().filter(cheapest).count(),
                1,
                "{flags:?}"
            );
        }
    }
}

#[test]
fn constants_are_read_from_a_file() {
    let folder = Folder::new();
    let mut plain = lookalike("design");
    let plain = plain.args(["--json", "--fingerprints", "1e6"]).succeed();
    let mut slow = plain.json()["constants"].clone();
    for name in ["query_ns", "single_probe_ns", "bucket_single_probe_ns"] {
        slow[name] = 1e6.into();
    }
    let path = folder.add("slow.json", slow.to_string());
    let flags = [
        "--fingerprints",
        "1e6",
        "--constants",
        path.to_str().unwrap(),
    ];
    let slowest = designs(&flags);
    assert!(
        slowest
            .iter()
            .all(|d| d["query_ns"].as_f64().unwrap() >= 1e6)
    );
    slow.as_object_mut().unwrap().remove("select_ns");
    let path = folder.add("broken.json", slow.to_string());
    let broken = lookalike("design")
        .args(["--fingerprints", "1e6", "--constants"])
        .arg(path)
        .fail(1);
    broken.says(&["broken.json", "missing field `select_ns`", "--calibrate"]);
    // An array used to be taken for the constants, in order.
    let array = format!("[{} [[1e6, 2.0]]]", "1.5, ".repeat(13));
    let path = folder.add("array.json", array);
    let refused = lookalike("design")
        .args(["--fingerprints", "1e6", "--constants"])
        .arg(path)
        .fail(1);
    refused.says(&["array.json", "an array, not an object"]);
}

#[test]
fn constants_are_measured_kept_and_read_back() {
    let folder = Folder::new();
    let path = folder.path("here.json");
    let run = |flags: &[&str]| {
        lookalike("design")
            .args(["--json", "--fingerprints", "2^27", "--constants"])
            .arg(&path)
            .args(flags)
            .succeed()
            .json()
    };
    // Memory is no faster than a cache, unless other processes disturb the measurement.
    let is_slower = |measured: &Value| {
        let lines = measured["constants"]["line_ns"].as_array().unwrap();
        let ns = |at: usize| lines[at][1].as_f64().unwrap();
        assert!(lines.len() > 4 && ns(0) > 0.0, "{lines:?}");
        ns(lines.len() - 1) > ns(0)
    };
    let mut tries = (0..5).map(|_| run(&["--calibrate"]));
    let measured = tries.find(is_slower).expect("memory is slower");
    assert_eq!(measured["constants_from"], "measured on this machine");
    let constants = measured["constants"].as_object().unwrap();
    for (name, value) in constants {
        // `select_ns` is negative if a dense probe costs less than a packed one.
        let least = if name == "select_ns" { -1e3 } else { 0.0 };
        let told = value
            .as_f64()
            .is_none_or(|ns| ns.is_finite() && ns >= least);
        assert!(told, "{name}: {value}");
    }
    // The file has the printed constants, and plans made from it are the same.
    let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(kept, measured["constants"]);
    let again = run(&[]);
    assert_eq!(again["designs"], measured["designs"]);
    assert_eq!(again["constants_from"], path.display().to_string());
}

#[test]
fn nonsense_is_refused() {
    for flags in [
        &["--fingerprints", "many"][..],
        &["--fingerprints", "5", "--distance", "17"],
        &["--fingerprints", "5", "--bits", "48"],
        &["--fingerprints", "4294967297", "--bits", "32"],
        &[],
    ] {
        assert_eq!(lookalike("design").args(flags).fail(2).status, Some(2));
    }
}

//! Tables of terms that follow a collection, made by the command.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Finish, Finished, Folder, Numbers, lookalike, record, wait_for_spool};

/// Returns texts of 60 words, common and rare.
fn texts(seed: u64, count: usize) -> Vec<String> {
    let mut numbers = Numbers(seed);
    let text = |_| {
        let (common, rare) = (numbers.words(30, 40), numbers.words(30, 4000));
        format!("{common} {rare}")
    };
    (0..count).map(text).collect()
}

fn input(folder: &Folder, name: &str, texts: &[String]) -> PathBuf {
    let rows = texts.iter().enumerate();
    let rows: String = rows
        .map(|(at, text)| record(&format!("{name}{at}"), text))
        .collect();
    folder.add(format!("{name}.jsonl"), rows)
}

fn terms(words: &[&str], paths: &[&Path], flags: &[&str], out: &Path) -> Finished {
    let mut command = lookalike("terms");
    command.args(words).args(paths).args(flags).arg("-o");
    command.arg(out).arg("--json").finish()
}

const WORDS: [&str; 2] = ["--shingle", "words:1"];

fn fingerprints(input: &Path, table: &Path, out: &Path) -> Finished {
    let mut command = lookalike("fingerprint");
    command
        .arg(input)
        .args(WORDS)
        .args(["--weight", "idf", "--terms"]);
    command.arg(table).arg("-o").arg(out).finish()
}

#[test]
fn a_table_that_grew_a_little_is_the_same_scheme_and_one_that_grew_much_is_not() {
    let folder = Folder::new();
    let all = texts(7, 2000);
    let (first, little, much) = (&all[..1000], &all[1000..1040], &texts(8, 3000));
    let [first, little, much] =
        [("a", first), ("b", little), ("c", much)].map(|(name, texts)| input(&folder, name, texts));
    let [old, grown, far] = ["old", "grown", "far"].map(|name| folder.path(name));
    let made = terms(&[], &[&first], &WORDS, &old).json();
    let added = terms(&["add"], &[&old, &little], &WORDS, &grown).json();
    assert_eq!(added["id"], made["id"]);
    assert_eq!(
        (&added["read"], &added["documents"]),
        (&40.into(), &1040.into())
    );
    assert_eq!(added["drift"]["renewed"], false);
    assert!(added["drift"]["bits"].as_f64().unwrap() > 0.01, "{added}");
    // Old and new fingerprints can be compared, and those of the old documents are unchanged.
    let [a, b] = ["a.lkfp", "b.lkfp"].map(|name| folder.path(name));
    fingerprints(&first, &old, &a).says(&["1,000"]);
    fingerprints(&first, &grown, &b).says(&["1,000"]);
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    let mut join = lookalike("join");
    let pairs = join.arg(&a).arg(&b).args(["--distance", "0"]).succeed();
    assert!(pairs.lines().len() >= 1000);
    // The table renews its weights if those in use are too far off, and fingerprints made before are refused.
    let followed = terms(&["add"], &[&grown, &much], &WORDS, &far).json();
    assert_eq!(followed["documents"], 4040);
    assert_eq!(followed["drift"]["renewed"], true);
    assert_ne!(followed["id"], made["id"]);
    fingerprints(&little, &far, &b).says(&["40"]);
    let mut join = lookalike("join");
    join.arg(&a).arg(&b).fail(1).says(&["scheme"]);
    // A higher tolerance keeps the weights, and the new table replaces the old file.
    let kept = terms(
        &["add", "--tolerance", "20"],
        &[&grown, &much],
        &WORDS,
        &grown,
    )
    .json();
    assert_eq!(
        (&kept["id"], &kept["documents"]),
        (&made["id"], &4040.into())
    );
    fingerprints(&first, &grown, &b).says(&["1,000"]);
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
}

#[test]
fn tables_of_parts_make_the_table_of_the_whole() {
    let folder = Folder::new();
    let all = texts(9, 600);
    let flags = [WORDS[0], WORDS[1], "--singles"];
    let whole = folder.path("whole");
    let told = terms(&[], &[&input(&folder, "d", &all)], &flags, &whole).json();
    let parts: Vec<PathBuf> = all
        .chunks(200)
        .enumerate()
        .map(|(at, texts)| {
            let path = folder.path(format!("part{at}"));
            terms(
                &[],
                &[&input(&folder, &format!("p{at}"), texts)],
                &flags,
                &path,
            )
            .json();
            path
        })
        .collect();
    let [a, b, c] = [&parts[0], &parts[1], &parts[2]];
    let merged = folder.path("merged");
    for order in [[a, b, c], [c, a, b]] {
        let done = terms(&["merge"], &order.map(PathBuf::as_path), &[], &merged).json();
        assert_eq!(
            (&done["id"], &done["documents"]),
            (&told["id"], &600.into())
        );
        assert_eq!(
            std::fs::read(&merged).unwrap(),
            std::fs::read(&whole).unwrap()
        );
    }
    let grown = folder.path("grown");
    let more = folder.path("p1.jsonl");
    let words = ["add", "--tolerance", "0"];
    terms(
        &words,
        &[a, &more, &folder.path("p2.jsonl")],
        &WORDS,
        &grown,
    )
    .json();
    assert_eq!(
        std::fs::read(&grown).unwrap(),
        std::fs::read(&whole).unwrap()
    );
    // The result has the weights of the first table and the counts of both.
    let kept = terms(&["merge", "--tolerance", "64"], &[a, b], &[], &merged).json();
    let copy = &folder.add("copy", std::fs::read(a).unwrap());
    let first = terms(&["merge", "--tolerance", "64"], &[a, copy], &[], &grown).json();
    assert_eq!(
        (&kept["id"], &kept["documents"]),
        (&first["id"], &400.into())
    );
}

#[test]
fn tables_are_the_same_bytes_for_any_threads_and_memory() {
    let folder = Folder::new();
    let all = texts(11, 12_000);
    let [first, more] =
        [("a", &all[..8000]), ("b", &all[8000..])].map(|(name, texts)| input(&folder, name, texts));
    let [made, grown] = ["made", "grown"].map(|name| folder.path(name));
    for singles in [&[][..], &["--singles"]] {
        let limits = [
            &["--threads", "1"][..],
            &["--threads", "2", "--memory", "60M"],
            &["--threads", "7"],
        ];
        let tables = limits.map(|limits| {
            // Runs of two words, most of which occur once.
            let features = &["--shingle", "words:2"][..];
            let (making, adding) = ([features, singles, limits], [features, limits]);
            terms(&[], &[&first], &making.concat(), &made);
            let added = terms(&["add"], &[&made, &more], &adding.concat(), &grown).json();
            assert_eq!(added["documents"], 12_000);
            [&made, &grown].map(|table| std::fs::read(table).unwrap())
        });
        assert!(tables[1] == tables[0] && tables[2] == tables[0]);
    }
}

#[test]
fn a_document_that_was_added_alone_was_not_counted() {
    let folder = Folder::new();
    let all = texts(12, 300);
    let (first, rest) = all.split_at(280);
    let [table, whole] = ["table", "whole"].map(|name| folder.path(name));
    terms(&[], &[&input(&folder, "d", first)], &WORDS, &table).json();
    let mut last = None;
    for (at, text) in rest.iter().enumerate() {
        let one = input(&folder, &format!("n{at}"), std::slice::from_ref(text));
        let words = ["add", "--tolerance", "0"];
        last = Some(terms(&words, &[&table, &one], &WORDS, &table).json());
    }
    let told = terms(&[], &[&input(&folder, "all", &all)], &WORDS, &whole).json();
    assert_eq!(last.unwrap()["documents"], told["documents"]);
    // A word that occurs in a single record is forgotten, so the tables differ in rare words.
    let counts = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        let read = lookalike::Terms::from_bytes(&bytes, None).unwrap();
        let scheme = read.scheme().to_string().parse().unwrap();
        let mut extractor = lookalike::feature::FeatureExtractor::new(&scheme);
        let text = texts(12, 1).remove(0);
        let common = text.split(' ').take(30).collect::<Vec<_>>().join(" ");
        let set = extractor.feature_set(&common).to_vec();
        set.iter()
            .map(|&feature| read.count(feature))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(&table), counts(&whole));
}

#[test]
fn old_documents_fade() {
    let folder = Folder::new();
    let (old, new) = (folder.path("old"), folder.path("new"));
    terms(&[], &[&input(&folder, "d", &texts(10, 500))], &WORDS, &old).json();
    let faded = terms(&["decay", "--factor", "0.9"], &[&old], &[], &new).json();
    assert_eq!(faded["documents"], 450);
    assert_eq!(faded["drift"]["renewed"], false, "{faded}");
    let half = ["decay", "--factor", "0.5", "--tolerance", "0"];
    let again = terms(&half, &[&new], &[], &new).json();
    assert_eq!(
        (&again["documents"], &again["drift"]["renewed"]),
        (&225.into(), &true.into())
    );
    assert!(again["terms"].as_u64() < faded["terms"].as_u64());
}

#[test]
fn weights_were_off_by_nothing_when_no_counts_were_left() {
    let folder = Folder::new();
    let (old, new) = (folder.path("old"), folder.path("new"));
    terms(&[], &[&input(&folder, "d", &texts(10, 50))], &WORDS, &old).json();
    let mut command = lookalike("terms");
    command.args(["decay", "--factor", "0.001"]).arg(&old);
    let done = command.arg("-o").arg(&new).succeed();
    done.says(&["not compared, because no counts are left: kept, and with them the scheme"]);
}

#[test]
fn tables_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    let documents = input(&folder, "d", &texts(11, 20));
    let [words, pairs, out] = ["words", "pairs", "out"].map(|name| folder.path(name));
    terms(&[], &[&documents], &WORDS, &words).json();
    terms(&[], &[&documents], &["--shingle", "words:2"], &pairs).json();
    let refused = |words: &[&str], paths: &[&Path], flags: &[&str], status: u8, says: &[&str]| {
        let finished = terms(words, paths, flags, &out);
        assert_eq!(finished.status, Some(status.into()), "{}", finished.err);
        finished.says(says);
        assert!(!out.exists());
    };
    let other = ["shingle (words:1 and words:2)", "counts other features"];
    refused(&["merge"], &[&words, &pairs], &[], 1, &other);
    refused(
        &["add"],
        &[&words, &documents],
        &["--shingle", "words:2"],
        1,
        &other,
    );
    refused(&["merge"], &[&words], &[], 2, &["TABLE"]);
    refused(
        &["merge"],
        &[&words, &documents],
        &[],
        1,
        &["d.jsonl: not a table of terms: make one with `lookalike terms"],
    );
    refused(
        &["decay", "--factor", "1"],
        &[&words],
        &[],
        2,
        &["above 0 and below 1"],
    );
    refused(&["decay"], &[&words], &[], 2, &["--factor"]);
    refused(
        &["add", "--tolerance", "65"],
        &[&words, &documents],
        &WORDS,
        2,
        &["from 0 to 64"],
    );
    refused(
        &["merge", "--memory", "1K"],
        &[&words, &pairs],
        &[],
        1,
        &["table of terms", "--memory"],
    );
    refused(
        &["decay", "--factor", "0.5"],
        &[&folder.path("none")],
        &[],
        1,
        &["none"],
    );
}

#[test]
fn of_two_additions_to_a_table_at_once_one_was_lost() {
    let folder = Folder::new();
    let [old, more] =
        [("d", 11), ("e", 12)].map(|(name, seed)| input(&folder, name, &texts(seed, 20)));
    let [table, other, tmp] = ["table", "other", "tmp"].map(|name| folder.path(name));
    terms(&[], &[&old], &WORDS, &table).json();
    std::fs::create_dir(&tmp).unwrap();
    let mut first = lookalike("terms");
    first.arg("add").arg(&table).arg("-").args(WORDS).arg("-q");
    first.arg("-o").arg(&table).arg("--tmp").arg(&tmp);
    let mut child = first.stdin(Stdio::piped()).spawn().unwrap();
    wait_for_spool(&tmp, &mut child);
    let refused = |words: &[&str], tables: &[&Path]| {
        let refused = terms(words, tables, &[], &table);
        assert_eq!(refused.status, Some(1), "{}", refused.err);
        refused.says(&["another command is changing this table"]);
    };
    refused(&["add", "--shingle", "words:1"], &[&table, &more]);
    refused(&["decay", "--factor", "0.5"], &[&table]);
    // Nothing is lost in another file.
    terms(&["add"], &[&table, &more], &WORDS, &other).json();
    refused(&["merge"], &[&other, &table]);
    let mut rest = child.stdin.take().unwrap();
    rest.write_all(&std::fs::read(&more).unwrap()).unwrap();
    drop(rest);
    assert!(child.wait().unwrap().success());
    let again = terms(&["add"], &[&table, &more], &WORDS, &table).json();
    assert_eq!(again["documents"], 60);
}

//! Bad records and strange texts: each is named and counted, and does not affect the others. Lines, files and pipes have modules of their own.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write as _};
use std::path::Path;

use crate::hostile_memory::{FREED_LATE, measured};
use crate::promises::documents;
use crate::results::Results;
use crate::support::{Finish, Folder, STORY, lookalike, record};

/// Returns a record whose text is inserted between the quotes without escaping.
fn raw(id: &str, text: impl AsRef<[u8]>) -> Vec<u8> {
    [
        format!("{{\"id\":\"{id}\",\"text\":\"").as_bytes(),
        text.as_ref(),
        b"\"}\n",
    ]
    .concat()
}

pub(crate) fn kept_and_removed(results: &Results) -> Vec<u8> {
    let mut lines: Vec<_> = results
        .kept
        .iter()
        .chain(&results.removed)
        .cloned()
        .collect();
    lines.sort();
    lines.concat()
}

#[test]
fn row_1_broken_utf_8_is_read_counted_and_handed_back_as_it_was() {
    let folder = Folder::new();
    let broken = [STORY.as_bytes(), b" \xff\xfe caf\xe9 \xc3 end"].concat();
    let lines = [
        raw("a", &broken),
        raw("b", &broken),
        raw("c", format!("{STORY} \u{ff}\u{fe} caf\u{e9} \u{c3} end")),
    ];
    let input = folder.add("in.jsonl", lines.concat());
    let results = folder.dedup(&input, &[]);
    assert_eq!(kept_and_removed(&results), lines.concat());
    assert_eq!(results.count("counts", "characters_replaced"), 2);
    assert_eq!(
        results.count("decisions", "removed_exact"),
        2,
        "the same bytes are the same text, and that of their character set"
    );
    let prints = || lookalike("fingerprint").arg(&input).arg("-q").succeed().out;
    assert_eq!(prints(), prints());
}

#[test]
fn row_2_a_wrong_charset_never_fails_a_page_and_a_right_one_is_understood() {
    let folder = Folder::new();
    let russian = "\u{43f}\u{430}\u{440}\u{43e}\u{43c} \u{432}\u{44b}\u{448}\u{435}\u{43b} \u{438}\u{437} \u{433}\u{430}\u{432}\u{430}\u{43d}\u{438} \u{432} \u{434}\u{435}\u{432}\u{44f}\u{442}\u{44c} \u{447}\u{430}\u{441}\u{43e}\u{432}";
    let cp1251: Vec<u8> = russian
        .chars()
        .map(|c| {
            if c == ' ' {
                b' '
            } else {
                (u32::from(c) - 0x430 + 0xe0) as u8
            }
        })
        .collect();
    let page = |charset: &str, text: &[u8]| {
        let head = format!("<html><head><meta charset=\"{charset}\"></head><body><p>");
        [head.as_bytes(), text, b"</p></body></html>"].concat()
    };
    folder.add("in/declared.html", page("windows-1251", &cp1251));
    folder.add("in/utf8.html", page("utf-8", russian.as_bytes()));
    folder.add(
        "in/bom.html",
        [
            b"\xef\xbb\xbf",
            &page("windows-1251", russian.as_bytes())[..],
        ]
        .concat(),
    );
    for (number, label) in ["utf-8", "shift_jis", "nonsense", "utf-16"]
        .iter()
        .enumerate()
    {
        folder.add(format!("in/wrong{number}.html"), page(label, &cp1251));
    }
    let results = folder.dedup(&folder.path("in"), &[]);
    assert_eq!(results.kept.len() + results.removed.len(), 7);
    assert_eq!(results.count("counts", "unreadable"), 0);
    let right = |name: &str| {
        results.clusters.iter().position(|cluster| {
            cluster.survivor.ends_with(name)
                || cluster
                    .members
                    .iter()
                    .any(|member| member.id.ends_with(name))
        })
    };
    assert!(right("utf8.html").is_some());
    assert_eq!(right("utf8.html"), right("declared.html"));
    assert_eq!(
        right("utf8.html"),
        right("bom.html"),
        "a byte order mark wins over the label"
    );
}

#[test]
fn row_3_control_characters_and_lone_surrogates_have_one_reading() {
    let folder = Folder::new();
    let odd = [
        "\\u0000",
        "\\u202e\\u2066",
        "\\u200b\\u200d\\ufeff",
        "\\ud800",
        "\\udc00 \\ud83d",
        "\\u0007\\u001b[31m",
    ];
    let mut lines = Vec::new();
    for (number, odd) in odd.iter().enumerate() {
        lines.push(raw(
            &format!("{number}a"),
            format!("{STORY} {odd} {number} and on it went"),
        ));
        lines.push(raw(
            &format!("{number}b"),
            format!("{STORY} {odd} {number} and on it went"),
        ));
    }
    lines.push(raw("z", format!("{STORY} \u{fffd} 3 and on it went")));
    let input = folder.add("in.jsonl", lines.concat());
    let results = folder.dedup(&input, &["--threshold", "1"]);
    assert_eq!(kept_and_removed(&results), lines.concat());
    assert_eq!(results.count("counts", "unreadable"), 0);
    assert_eq!(results.count("counts", "characters_replaced"), 4);
    let removals = results.removals();
    assert!((0..6).all(|number| removals[&*format!("{number}b")].2));
    assert_eq!(removals["z"].0, "3a", "a lone surrogate reads as U+FFFD");
    let page = std::fs::read_to_string(results.folder.join("report.html")).unwrap();
    assert!(
        !page.contains(['\u{0}', '\u{202e}', '\u{1b}', '\u{200b}']),
        "the report shows what is invisible"
    );
}

/// One line of 200 MB beside two of ordinary length.
#[test]
fn row_4_a_line_of_200_mb_passes_through_64_mib() {
    let folder = Folder::new();
    let input = folder.path("in.jsonl");
    let mut file = BufWriter::new(File::create(&input).unwrap());
    file.write_all(record("a", STORY).as_bytes()).unwrap();
    file.write_all(b"{\"id\":\"long\",\"text\":\"").unwrap();
    let piece = "all work and no play ".repeat(50_000);
    for _ in 0..200 {
        file.write_all(piece.as_bytes()).unwrap();
    }
    file.write_all(format!("\"}}\n{}", record("b", STORY)).as_bytes())
        .unwrap();
    file.into_inner().unwrap();
    let out = folder.path("out");
    let mut command = lookalike("dedup");
    command.arg(&input).arg("-o").arg(&out);
    let (_, most) = measured(command.args(["--memory", "64M"]), 0);
    assert!(most <= (64 << 20) + FREED_LATE, "{} MiB", most >> 20);
    let results = Results::read(&out);
    assert_eq!(results.count("counts", "too_long"), 1);
    assert_eq!(results.count("decisions", "removed_exact"), 1);
    let removed = std::fs::read(out.join("removed.jsonl")).unwrap();
    assert_eq!(removed, record("b", STORY).as_bytes());
    // The long line has no readable id, so it may come before or after the other.
    let (kept, long) = (
        out.join("kept.jsonl"),
        std::fs::metadata(&input).unwrap().len() - removed.len() as u64,
    );
    assert_eq!(std::fs::metadata(&kept).unwrap().len(), long);
    assert_eq!(
        letters(&kept)[b'y' as usize],
        200 * 50_000 + count(&record("a", STORY), b'y')
    );
}

/// Counts each byte value in a file.
fn letters(path: &Path) -> [usize; 256] {
    let (mut counts, mut buffer) = ([0; 256], vec![0; 1 << 20]);
    let mut file = File::open(path).unwrap();
    loop {
        let read = file.read(&mut buffer).unwrap();
        if read == 0 {
            return counts;
        }
        buffer[..read]
            .iter()
            .for_each(|&byte| counts[byte as usize] += 1);
    }
}

fn count(text: &str, byte: u8) -> usize {
    text.bytes().filter(|&b| b == byte).count()
}

#[test]
fn row_4_the_longest_document_is_set_by_a_flag() {
    let folder = Folder::new();
    let long = record("long", &"word ".repeat(300));
    let lines = [
        record("a", STORY),
        long.clone(),
        long.replace("long", "longer"),
        record("b", STORY),
    ]
    .concat();
    let input = folder.add("in.jsonl", &lines);
    let results = folder.dedup(&input, &["--max-document", "1K"]);
    assert_eq!(results.count("counts", "too_long"), 2);
    assert_eq!(
        (results.kept.len(), results.removed_ids()),
        (3, vec!["b".to_owned()])
    );
    folder.add("pages/long.txt", "word ".repeat(300));
    folder.add("pages/short.txt", STORY);
    let results = folder.dedup(&folder.path("pages"), &["--max-document", "1K"]);
    assert_eq!(
        (results.count("counts", "too_long"), results.kept.len()),
        (1, 2)
    );
}

#[test]
fn row_5_100_000_empty_documents_are_nobody_s_duplicates() {
    let folder = Folder::new();
    let mut lines = String::new();
    for number in 0..100_000 {
        let text = [
            "\"text\":\"\"",
            "\"text\":null",
            "\"other\":1",
            "\"text\":\" \\n\\t\"",
        ][number % 4];
        writeln!(lines, "{{\"id\":\"{number}\",{text}}}").unwrap();
    }
    lines += &record("real", STORY);
    let input = folder.add("in.jsonl", lines);
    let results = folder.dedup(&input, &["--method", "minhash"]);
    assert_eq!((results.kept.len(), results.clusters.len()), (100_001, 0));
    assert_eq!(
        (
            results.count("counts", "empty"),
            results.count("counts", "missing_text")
        ),
        (100_000, 50_000)
    );
    let prints = lookalike("fingerprint")
        .arg(&input)
        .arg("-q")
        .succeed()
        .lines();
    assert_eq!(
        prints
            .iter()
            .filter(|row| row["fingerprint"].is_null())
            .count(),
        100_000
    );
}

#[test]
fn row_5_short_texts_have_features_of_their_own_kind() {
    let folder = Folder::new();
    let texts = [
        "yes",
        "yes",
        "Yes",
        "yes no",
        "yes no maybe",
        "no",
        "?!",
        "?!",
        "...",
    ];
    let lines = texts
        .iter()
        .enumerate()
        .map(|(at, text)| record(&at.to_string(), text))
        .collect::<String>();
    let input = folder.add("in.jsonl", &lines);
    for method in ["allpairs", "minhash", "super-shingle", "simhash"] {
        let results = folder.dedup(&input, &["--method", method]);
        results.obey(&documents(lines.as_bytes()));
        assert_eq!(results.removed_ids(), ["1", "2", "7"], "{method}");
        assert_eq!(results.count("counts", "without_features"), 2);
    }
}

#[test]
fn row_6_one_text_30_000_times_is_one_cluster_in_linear_time() {
    let folder = Folder::new();
    let lines = (0..30_000)
        .map(|number| record(&format!("{number:05}"), STORY))
        .collect::<String>();
    let input = folder.add("in.jsonl", &lines);
    let results = folder.dedup(&input, &[]);
    assert_eq!(results.kept_ids(), ["00000"]);
    assert_eq!(
        (results.clusters.len(), results.pairs.len()),
        (1, 29_999),
        "no pair is listed that decides nothing"
    );
    assert!(
        std::fs::metadata(results.folder.join("report.html"))
            .unwrap()
            .len()
            < 1 << 20
    );
}

/// A hundred texts, each slightly different from the one before; the first and the last have no word in common.
#[test]
fn row_7_a_chain_does_not_collapse() {
    let folder = Folder::new();
    let text = |number: usize| {
        (number * 3..number * 3 + 90)
            .map(|word| format!("w{word}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let lines = (0..100)
        .map(|number| record(&format!("{number:03}"), &text(number)))
        .collect::<String>();
    let input = folder.add("in.jsonl", &lines);
    for method in ["allpairs", "minhash"] {
        let results = folder.dedup(&input, &["--method", method, "--threshold", "0.8"]);
        results.obey(&documents(lines.as_bytes()));
        // At 0.8 a text resembles its three neighbours on either side, so a survivor represents at most seven texts.
        assert!(
            (15..=50).contains(&results.kept.len()),
            "{method}: {}",
            results.kept.len()
        );
        assert!(
            results
                .clusters
                .iter()
                .all(|cluster| cluster.members.len() <= 6)
        );
    }
}

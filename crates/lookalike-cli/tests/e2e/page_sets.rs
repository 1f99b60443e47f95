//! Imperfect mirrors: page sets on servers that lack pages or add to them, and aliases distinguished from mirrors (Shivakumar and Garcia-Molina 1998,
//! section 3, table 2).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Finish, Folder, Numbers, contents, json_lines, lookalike};

/// Numbers of servers and of pages of the four manuals.
const MANUALS: [(usize, usize); 4] = [(100, 24), (75, 30), (55, 20), (50, 26)];
/// Number of servers.
const SERVERS: usize = 140;

fn overlap(input: &Path, out: &Path, flags: &[&str]) -> Value {
    let mut command = lookalike("overlap");
    command.arg(input).arg("-o").arg(out).arg("--quiet");
    command.args(["--chunk", "lines:1", "--min-shared", "5"]);
    command.args(flags).succeed();
    serde_json::from_slice(&contents(&out.join("run.json"))).unwrap()
}

fn read(out: &Path, name: &str) -> Vec<Value> {
    json_lines(&contents(&out.join(name)))
}

/// Returns the lines of a page: those of all pages of its manual, its own, and the head and foot of a server that adds them.
fn page(manual: usize, number: usize, dress: Option<usize>) -> String {
    let part = |name: &str, server: usize| {
        (0..3)
            .map(move |line| format!("{name} {line} of server {server}\n"))
            .collect::<String>()
    };
    let all: String = (0..6)
        .map(|line| format!("manual {manual} says on every page {line}\n"))
        .collect();
    let own: String = (0..20)
        .map(|line| format!("manual {manual} page {number} line {line}\n"))
        .collect();
    let (head, foot) = match dress {
        Some(server) => (part("head", server), part("foot", server)),
        None => Default::default(),
    };
    format!("{head}{all}{own}{foot}")
}

/// Writes records with a URL and a text each.
fn records(folder: &Folder, name: &str, pages: &[(String, String)]) -> PathBuf {
    let line = |(url, text): &(String, String)| format!("{}\n", json!({"url": url, "text": text}));
    folder.add(name, pages.iter().map(line).collect::<String>())
}

/// Writes four manuals on random servers, with a share of the pages missing at random; three of ten servers add a head and foot of their own. Every
/// server has other pages as well.
fn planted(folder: &Folder, thousandths: usize) -> (PathBuf, Vec<Vec<String>>) {
    let mut numbers = Numbers(29);
    let name = |server: usize| format!("s{server}.example");
    let (mut pages, mut planted) = (Vec::new(), Vec::new());
    for server in 0..SERVERS {
        for number in 0..2 {
            pages.push((
                format!("http://{}/own/{number}", name(server)),
                page(100 + server, number, None),
            ));
        }
    }
    for (manual, (servers, size)) in MANUALS.into_iter().enumerate() {
        let mut drawn: Vec<usize> = (0..SERVERS).collect();
        numbers.shuffle(&mut drawn);
        drawn.truncate(servers);
        for &server in &drawn {
            let base = if server % 2 == 0 {
                "doc"
            } else {
                "~mirror/old"
            };
            let dress = (server % 10 < 3).then_some(server);
            for number in 0..size {
                let url = format!(
                    "http://{}/{base}/manual-{manual}/{number}.html",
                    name(server)
                );
                if numbers.below(1000) >= thousandths {
                    pages.push((url, page(manual, number, dress)));
                }
            }
        }
        planted.push(drawn.into_iter().map(name).collect());
    }
    numbers.shuffle(&mut pages);
    (
        records(folder, &format!("planted-{thousandths}.jsonl"), &pages),
        planted,
    )
}

fn names(set: &Value) -> Vec<String> {
    let text = |name: &Value| name.as_str().unwrap().to_owned();
    let core = set["core"].as_array().unwrap().iter().map(text);
    let approximate = set["approximate"].as_array().unwrap().iter();
    core.chain(approximate.map(|server| text(&server["server"])))
        .collect()
}

/// Checks that the sets found are those planted: the numbers of servers and pages may be off by a twentieth.
#[track_caller]
fn are_the_planted(sets: &[Value], planted: &[Vec<String>]) {
    assert_eq!(sets.len(), planted.len(), "{sets:#?}");
    for set in sets {
        let (found, pages) = (names(set), set["pages"].as_u64().unwrap() as usize);
        let missed = |(manual, servers): (usize, &Vec<String>)| {
            let of_servers = servers
                .iter()
                .filter(|server| !found.contains(server))
                .count();
            let more = found
                .iter()
                .filter(|server| !servers.contains(server))
                .count();
            (
                of_servers + more,
                servers.len(),
                MANUALS[manual].1.abs_diff(pages),
                MANUALS[manual].1,
            )
        };
        let (servers, of_servers, pages, of_pages) = planted
            .iter()
            .enumerate()
            .map(missed)
            .min_by_key(|missed| missed.0)
            .unwrap();
        assert!(
            servers * 20 <= of_servers && pages * 20 <= of_pages,
            "{servers} {pages} wrong: {set}"
        );
    }
}

#[test]
fn four_manuals_are_four_sets_however_many_pages_are_missing() {
    let folder = Folder::new();
    for thousandths in [0, 20, 50] {
        let (input, planted) = planted(&folder, thousandths);
        let out = folder.path(format!("out-{thousandths}"));
        let run = overlap(&input, &out, &[]);
        let sets = read(&out, "mirrors.jsonl");
        are_the_planted(&sets, &planted);
        assert_eq!(
            (&run["mirrored_sets"], &run["mirrored_pages"]),
            (&json!(4), &json!(100))
        );

        let pages = read(&out, "mirror_pages.jsonl");
        assert_eq!(pages.len(), 100);
        for set in &sets {
            let of_set = |page: &&Value| page["set"] == set["set"];
            let held: u64 = pages
                .iter()
                .filter(of_set)
                .map(|page| page["servers"].as_u64().unwrap())
                .sum();
            assert_eq!(held, set["held"].as_u64().unwrap());
            assert_eq!(names(set).len() as u64, set["servers"].as_u64().unwrap());
            assert!((set["approximate"].as_array().unwrap().is_empty()) == (thousandths == 0));
            let enough = |share: &Value| (0.8..=1.0).contains(&share.as_f64().unwrap());
            assert!(
                set["approximate"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|server| enough(&server["share"]))
            );
            assert!(
                pages
                    .iter()
                    .filter(of_set)
                    .all(|page| enough(&page["share"]))
            );
        }
        let html = String::from_utf8(contents(&out.join("atlas.html"))).unwrap();
        assert!(html.contains("With all pages"));
        // Eight servers of a set are named, and the others are counted.
        let more = format!("and {} more", sets[0]["servers"].as_u64().unwrap() - 8);
        assert!(html.contains(&more), "{more}");
    }
}

/// With shares of 1, sets need equal lists of servers, as perfect mirrors have.
#[test]
fn shares_of_sets_are_options() {
    let folder = Folder::new();
    let (input, _) = planted(&folder, 20);
    let out = folder.path("out");
    overlap(
        &input,
        &out,
        &["--set-page-share", "1", "--set-server-share", "1"],
    );
    let strict = read(&out, "mirrors.jsonl");
    assert!(strict.len() > 60, "{} sets", strict.len());
    assert!(strict.iter().all(|set| set["approximate"] == json!([])));
    lookalike("overlap")
        .arg(&input)
        .args(["-o", "x", "--set-page-share", "0.3"])
        .fail(2)
        .says(&["not a share from 0.5 to 1"]);
}

/// 0.56 * 25 is 14.000000000000002 in floating point.
#[test]
fn a_page_on_exactly_its_share_of_the_servers_was_no_page_of_the_set() {
    let folder = Folder::new();
    let text = |page: usize| -> String {
        let lines = (0..6).map(|line| format!("page {page} line {line}\n"));
        lines.collect()
    };
    let pages: Vec<(String, String)> = (0..25)
        .flat_map(|server| (0..20).map(move |page| (server, page)))
        .filter(|&(server, page)| page < 19 || server < 14)
        .map(|(server, page)| (format!("http://s{server}.example/{page}.html"), text(page)))
        .collect();
    let (input, out) = (records(&folder, "in.jsonl", &pages), folder.path("out"));
    overlap(&input, &out, &["--set-page-share", "0.56"]);
    let sets = read(&out, "mirrors.jsonl");
    let sizes: Vec<_> = sets
        .iter()
        .map(|set| (&set["pages"], &set["servers"]))
        .collect();
    assert_eq!(sizes, [(&json!(20), &json!(25))]);
}

#[test]
fn sets_do_not_depend_on_threads_memory_or_order() {
    let folder = Folder::new();
    let (input, _) = planted(&folder, 50);
    let files = ["mirrors.jsonl", "mirror_pages.jsonl", "aliases.jsonl"];
    let stable = |input: &Path, flags: &[&str]| {
        let out = folder.path("out");
        overlap(input, &out, &[flags, &["--overwrite"]].concat());
        files.map(|name| contents(&out.join(name)))
    };
    let reference = stable(&input, &[]);
    let text = String::from_utf8(contents(&input)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.reverse();
    let reversed = folder.add("reversed.jsonl", lines.join("\n"));
    for flags in [
        &["--threads", "1", "--memory", "64M", "--engine", "sort"][..],
        &["--threads", "2", "--engine", "count"],
    ] {
        assert!(stable(&reversed, flags) == reference, "{flags:?}");
    }
}

/// Returns records of a server's pages: URL, text, address.
fn site(server: &str, base: &str, pages: std::ops::Range<usize>, ip: Option<&str>) -> String {
    pages
        .map(|number| {
            let url = format!("http://{server}/{base}{number}");
            format!("{}\n", json!({"url": url, "text": page(1, number, None), "ip": ip, "peer": {"address": "x"}}))
        })
        .collect()
}

#[test]
fn servers_are_aliases_by_pages_paths_and_addresses() {
    let folder = Folder::new();
    let (one, two) = (Some("192.0.2.1"), Some("192.0.2.2"));
    let input = folder.add(
        "in.jsonl",
        [
            site("a.example", "", 0..20, one),
            site("www.a.example", "", 0..19, one),
            // The same paths at another address and at an unknown one, and other paths at the same address.
            site("mirror.example", "", 0..20, two),
            site("unknown.example", "", 0..20, None),
            site("elsewhere.example", "manuals/", 0..20, one),
            // Four common pages may be chance, but not five.
            site("four.example", "", 30..34, one),
            site("quattro.example", "", 30..34, one),
            site("five.example", "", 40..45, one),
            site("cinque.example", "", 40..45, one),
        ]
        .concat(),
    );
    let out = folder.path("out");
    let run = overlap(&input, &out, &[]);
    let aliases = read(&out, "aliases.jsonl");
    let expected = [
        json!({"kind": "server", "servers": ["a.example", "unknown.example", "www.a.example"], "pages": [20, 20, 19],
            "shared": [20, 20, 19], "address": "unknown"}),
        json!({"kind": "server", "servers": ["cinque.example", "five.example"], "pages": [5, 5], "shared": [5, 5],
            "address": "same"}),
    ];
    assert_eq!(aliases, expected);
    assert_eq!(run["apart_by_address"], 1);
    let html = String::from_utf8(contents(&out.join("atlas.html"))).unwrap();
    assert!(html.contains("1 server has another address") && html.contains("server, same address"));

    overlap(&input, &out, &["--overwrite", "--alias-pages", "4"]);
    assert_eq!(read(&out, "aliases.jsonl").len(), 3);
    // The address comes from another field, in which all servers have the same value.
    overlap(&input, &out, &["--overwrite", "--address", "peer.address"]);
    let aliases = read(&out, "aliases.jsonl");
    assert_eq!(
        (
            aliases[0]["servers"].as_array().unwrap().len(),
            &aliases[0]["address"]
        ),
        (4, &json!("same"))
    );
}

/// Regression test: a misnamed field silently made aliases of servers with different addresses.
#[test]
fn a_field_of_addresses_that_no_record_has_is_refused() {
    let folder = Folder::new();
    let sites = site("a.example", "", 0..6, Some("192.0.2.1"));
    let input = folder.add("in.jsonl", sites);
    let out = folder.path("out");
    let mut command = lookalike("overlap");
    command.arg(&input).arg("-o").arg(&out);
    command.args(["--address", "IP"]);
    let refused = command.fail(1);
    refused.says(&[
        "6 records has a value in the field",
        "--address",
        "ip, peer",
    ]);
    assert!(!out.join("aliases.jsonl").exists());
}

/// Regression test: more than 300 servers with equal pages were silently not recognised as aliases.
#[test]
fn any_number_of_servers_is_one_class() {
    let folder = Folder::new();
    let sites: String = (0..320)
        .map(|server| site(&format!("s{server}.example"), "", 0..6, None))
        .collect();
    let out = folder.path("out");
    let run = overlap(&folder.add("in.jsonl", sites), &out, &[]);
    assert_eq!(
        (&run["aliases"], &run["mirrored_sets"]),
        (&json!(1), &json!(1))
    );
    let aliases = read(&out, "aliases.jsonl");
    assert_eq!(aliases[0]["servers"].as_array().unwrap().len(), 320);
    assert_eq!(
        read(&out, "mirrors.jsonl")[0]["core"]
            .as_array()
            .unwrap()
            .len(),
        320
    );
}

/// The addresses in a WARC archive are read from its record headers.
#[test]
fn addresses_of_archives_tell_mirrors_from_aliases() {
    let folder = Folder::new();
    let record = |server: &str, number: usize, ip: &str| {
        let text = page(1, number, None);
        format!(
            "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: http://{server}/{number}\r\nWARC-IP-Address: {ip}\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    let servers = [
        ("a.example", "192.0.2.1"),
        ("b.example", "192.0.2.1"),
        ("c.example", "2001:db8::3"),
    ];
    let all = servers
        .iter()
        .flat_map(|(server, ip)| (0..8).map(move |number| record(server, number, ip)));
    let input = folder.add("crawl.warc", all.collect::<String>());
    let out = folder.path("out");
    let run = overlap(&input, &out, &[]);
    let aliases = read(&out, "aliases.jsonl");
    assert_eq!(aliases.len(), 1);
    assert_eq!(
        (&aliases[0]["servers"], &aliases[0]["address"]),
        (&json!(["a.example", "b.example"]), &json!("same"))
    );
    assert_eq!(run["apart_by_address"], 1);
    assert_eq!(read(&out, "mirrors.jsonl")[0]["servers"], 3);
}

/// Pages of one server at different paths are different pages, even if they are near copies of one another and a mirror has them all. Each counts as
/// one page.
#[test]
fn different_pages_of_a_manual_are_not_one() {
    let folder = Folder::new();
    // Each of ten pages differs from the others in two of 26 lines.
    let text = |number: usize| {
        (0..26)
            .map(|line| match line {
                0 | 13 => format!("page {number} line {line}\n"),
                _ => format!("all pages line {line}\n"),
            })
            .collect::<String>()
    };
    let pages: Vec<(String, String)> = ["a", "b", "c"]
        .into_iter()
        .flat_map(|server| (0..10).map(move |number| (server, number)))
        .map(|(server, number)| {
            let dress = if server == "c" { "a foot of c\n" } else { "" };
            (
                format!("http://{server}.example/{number}.html"),
                text(number) + dress,
            )
        })
        .collect();
    let out = folder.path("out");
    overlap(&records(&folder, "in.jsonl", &pages), &out, &[]);
    let sets = read(&out, "mirrors.jsonl");
    assert_eq!(sets.len(), 1);
    assert_eq!(
        (&sets[0]["pages"], &sets[0]["held"]),
        (&json!(10), &json!(30))
    );
}

/// Two pages of a server became one if both were like a page of a third server, which only lacked one of them.
#[test]
fn a_page_that_one_mirror_lacks_is_not_another_page_of_the_manual() {
    let folder = Folder::new();
    let text = |own: usize| {
        let line = |line| match line {
            0..30 => format!("all pages line {line}\n"),
            _ => format!("page {own} line {line}\n"),
        };
        (0..35).map(line).collect::<String>()
    };
    let mut pages = Vec::new();
    for (at, server) in ["a", "b", "c", "d", "e", "f", "g", "h"]
        .into_iter()
        .enumerate()
    {
        for number in 0..20 {
            // Each server lacks one page, and the first one two.
            if number != at && (number, at) != (10, 0) {
                let head = format!("head of {server}\n");
                pages.push((
                    format!("http://{server}.example/m/{number}.html"),
                    head + &text(number),
                ));
            }
        }
    }
    let out = folder.path("out");
    overlap(&records(&folder, "in.jsonl", &pages), &out, &[]);
    let sets = read(&out, "mirrors.jsonl");
    assert_eq!(sets.len(), 1, "{sets:#?}");
    assert_eq!(
        (&sets[0]["pages"], &sets[0]["servers"]),
        (&json!(20), &json!(8))
    );
}

/// The pages of a server were told apart from those of the page's first server only.
#[test]
fn two_pages_of_a_server_do_not_meet_in_a_page_of_another() {
    let folder = Folder::new();
    let text = |own: &str| {
        let line = |line| match line {
            0 => format!("own line of {own}\n"),
            _ => format!("line {line}\n"),
        };
        (0..20).map(line).collect::<String>()
    };
    let pages = [
        "a.example/m/one",
        "b.example/m/one",
        "b.example/m/two",
        "c.example/m/two",
    ];
    let pages = pages.map(|page| (format!("http://{page}.html"), text(page)));
    let out = folder.path("out");
    overlap(&records(&folder, "in.jsonl", &pages), &out, &[]);
    let pages = read(&out, "mirror_pages.jsonl");
    assert_eq!(pages.len(), 2, "{pages:#?}");
    assert!(pages.iter().all(|page| page["servers"] == 2), "{pages:#?}");
}

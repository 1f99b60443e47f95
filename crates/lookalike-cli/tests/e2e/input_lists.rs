//! Names of inputs in lists (`--inputs-from`).

use crate::support::{Finish, Folder, STORY, lookalike};

#[test]
fn a_list_of_files_had_to_fit_a_command_line() {
    let folder = Folder::new();
    for number in 0..1000 {
        folder.add(format!("in/{number:03}.txt"), format!("{number} {STORY}"));
    }
    // 11 MB of names, of which a command line holds 2 MiB: each file is named a hundred times, in different words.
    let name = |number: usize| {
        let same = "/.".repeat(number / 1000);
        format!("in{same}/{:03}.txt\n", number % 1000)
    };
    let list = folder.add("list", (0..100_000).map(name).collect::<String>());
    let mut command = lookalike("extract");
    command.current_dir(folder.path("")).arg("in/999.txt");
    let told = command.arg("--inputs-from").arg(list).succeed();
    let rows = told.says(&["99,001"]).lines();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    // Inputs on the command line come first; a file is read where it is named first.
    assert_eq!(ids.len(), 1000);
    assert_eq!(ids[..2], ["in/999.txt", "in/000.txt"]);
    assert_eq!(ids[999], "in/998.txt");
}

#[test]
fn names_with_spaces_and_line_breaks_were_split() {
    let folder = Folder::new();
    let names = ["a name.txt", "two\nlines.txt", "gr\u{fc}n.txt"];
    for name in names {
        folder.add(name, format!("{name} {STORY}"));
    }
    folder.add("more", "other.txt\r\n\r\n");
    folder.add("other.txt", "another text");
    let mut command = lookalike("extract");
    command.current_dir(folder.path(""));
    command.args(["--inputs-from", "-", "--inputs-from", "more"]);
    // As `find -print0` and `git ls-files -z` write them.
    let told = command.finish_with(format!("{}\0", names.join("\0")).as_bytes());
    assert_eq!(told.status, Some(0), "{}", told.err);
    let rows = told.lines();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&names[..], &["other.txt"]].concat());
}

#[test]
fn an_error_in_a_list_did_not_name_its_line() {
    let folder = Folder::new();
    folder.add("a.txt", STORY);
    folder.add("b.zip", "PK\x03\x04");
    folder.add("list", "a.txt\n\nmissing.txt\n");
    folder.add("archives", "a.txt\nb.zip\n");
    folder.add("empty", "\n");
    let run = |name: &str, words: &[&str]| {
        let mut command = lookalike(name);
        command.current_dir(folder.path("")).args(words);
        command
    };
    let said = |name: &str, words: &[&str], status: i32, parts: &[&str]| {
        run(name, words).fail(status).says(parts);
    };
    let of_list = ["list, line 3: missing.txt: no such file"];
    said("extract", &["--inputs-from", "list"], 1, &of_list);
    said("links", &["--inputs-from", "list"], 1, &of_list);
    let dedup = ["--inputs-from", "list", "-o", "out"];
    said("dedup", &dedup, 1, &of_list);
    let two = ["a.txt", "b.txt", "--inputs-from", "list"];
    said("explain", &two, 1, &of_list);
    let of_archive = ["archives, line 2: b.zip", "--skip-unreadable"];
    said("pairs", &["--inputs-from", "archives"], 1, &of_archive);
    said("links", &["--inputs-from", "archives"], 1, &of_archive);
    said(
        "extract",
        &["--inputs-from", "empty"],
        1,
        &["empty: names no input"],
    );
    said(
        "extract",
        &["--inputs-from", "none"],
        1,
        &["none: No such file"],
    );
    // Nothing is left on standard input after the list.
    let again = ["standard input is named more than once"];
    said("extract", &["-", "--inputs-from", "-"], 2, &again);
    let against = ["--inputs-from", "-", "--against", "-", "-o", "out"];
    said("dedup", &against, 2, &again);
    let told = run("extract", &["--inputs-from", "-"]).finish_with(b"a.txt\n-\n");
    assert_eq!(told.status, Some(2), "{}", told.err);
    said("extract", &[], 2, &["<INPUT>"]);
    // Documents can be explained by their ids in the inputs of a list.
    folder.add("one", "a.txt\n");
    let explain = ["a.txt", "a.txt#2", "--in", "a.txt", "--inputs-from", "one"];
    said("explain", &explain, 1, &["no record of --in has the id"]);
    let alone = ["a.txt", "a.txt", "--inputs-from", "one"];
    assert!(run("explain", &alone).succeed().text().contains("a.txt"));
}

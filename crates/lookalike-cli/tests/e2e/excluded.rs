//! Files and folders that `--exclude` leaves out.

use serde_json::json;

use crate::support::{Finish, Folder, lookalike};

#[test]
fn files_of_a_folder_could_not_be_left_out() {
    let folder = Folder::new();
    folder.add("in/a.txt", "a text of its own");
    folder.add("in/list.json", json!([{"text": "one"}]).to_string());
    folder.add("in/old/b.txt", "another text");
    folder.add("in/new/c.txt", "a third text");
    let mut command = lookalike("archive");
    command.arg("build").arg(folder.path("in"));
    command.arg("-o").arg(folder.path("in.lka"));
    command.fail(1).says(&["list.json", "--exclude GLOB"]);
    command.args(["--exclude", "*.json"]).succeed();
    let kept = |flags: &[&str]| {
        let mut command = lookalike("extract");
        command.current_dir(folder.path("")).arg("in").args(flags);
        let told = command.succeed();
        let ids = told.lines().into_iter();
        let ids: Vec<String> = ids
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, told.err)
    };
    let (ids, told) = kept(&["--exclude", "*.json", "--exclude", "old"]);
    assert_eq!(ids, ["in/a.txt", "in/new/c.txt"]);
    assert!(told.contains("2 excluded"), "{told}");
    let (ids, _) = kept(&["--exclude", "in/**/*.txt"]);
    assert_eq!(ids.len(), 1);
    let mut command = lookalike("extract");
    command
        .args(["a", "--exclude", "[a"])
        .fail(2)
        .says(&["is not a valid glob"]);
    // Named files, too: a shell expands globs.
    let mut command = lookalike("extract");
    command.current_dir(folder.path("in"));
    command.args(["a.txt", "list.json", "--exclude", "*.json"]);
    assert_eq!(command.succeed().lines().len(), 1);
}

#[test]
fn links_read_all_files_of_a_folder() {
    let folder = Folder::new();
    folder.add("in/a.html", "<a href=b.html>the second page</a>");
    folder.add("in/b.html", "<a href=a.html>the first page</a>");
    folder.add("in/list.zip", "PK\x03\x04");
    let mut command = lookalike("links");
    command.current_dir(folder.path("in"));
    command.args(["a.html", "b.html", "list.zip"]);
    command.fail(1).says(&["list.zip", "--skip-unreadable"]);
    command.args(["--exclude", "b.*", "--skip-unreadable"]);
    let rows = command.succeed().says(&["1 excluded"]).lines();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["id"], "a.html");
}

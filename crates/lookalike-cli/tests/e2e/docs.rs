//! The commands of the guides, run as a reader would run them; their output is compared with the output that the guides show.
//!
//! Blocks marked `console` are run. Each page is one bash session in a folder that contains only `examples/`. A line `...` in a page stands for any
//! lines, and lines of time and memory may have any figures. A command may fail only if `echo $?` follows it. Commands in blocks marked `sh` need
//! things that a test does not have, so only their options are looked up in the help. `LOOKALIKE_BLESS=1` writes the output of the commands into the
//! pages.

use std::fs;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Finish, Folder, examples, lookalike};

/// A command of a page, and the lines of the page that show its output.
struct Step {
    command: String,
    shown: Range<usize>,
}

/// The output and exit status of a command.
struct Ran {
    printed: String,
    status: String,
}

fn docs() -> PathBuf {
    examples().join("../docs")
}

/// Returns the pages below a folder, ordered by path.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// Returns the lines of each block of one kind, with their numbers in the page.
fn block_lines<'a>(lines: &[&'a str], kind: &str) -> Vec<Vec<(usize, &'a str)>> {
    let (mut blocks, mut inside) = (Vec::new(), None::<bool>);
    for (at, line) in lines.iter().enumerate() {
        match (line.trim_start().strip_prefix("```"), inside) {
            (Some(info), None) => {
                inside = Some(info.trim() == kind);
                blocks.push(Vec::new());
            }
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => blocks.last_mut().unwrap().push((at, *line)),
            _ => {}
        }
    }
    blocks
}

/// Returns the commands of a block. A command begins with a dollar sign and continues after a backslash; the lines below it show its output.
fn steps(block: &[(usize, &str)]) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut unfinished = false;
    for (at, line) in block {
        if let Some(command) = line.strip_prefix("$ ") {
            let (command, shown) = (command.to_owned(), at + 1..at + 1);
            found.push(Step { command, shown });
            unfinished = line.ends_with('\\');
        } else if unfinished {
            let step = found.last_mut().unwrap();
            step.command = format!("{}\n{line}", step.command);
            step.shown = at + 1..at + 1;
            unfinished = line.ends_with('\\');
        } else {
            let step = found
                .last_mut()
                .expect("a console block begins with a command");
            step.shown.end = at + 1;
        }
    }
    found
}

/// Returns a script that runs all steps in one shell and saves the output and status of each.
fn script(steps: &[Step], port: u16) -> String {
    let mut script = String::from("mkdir ../ran\n");
    for (number, step) in steps.iter().enumerate() {
        let command = step
            .command
            .replace("localhost:7280", &format!("localhost:{port}"));
        script += &format!(
            "{{ {command}\n}} >../ran/{number}.out 2>&1 </dev/null; status=$?; echo $status >../ran/{number}.status\n"
        );
        if command.trim_end().ends_with('&') {
            script += &format!(
                "for _ in {{1..1200}}; do (: </dev/tcp/127.0.0.1/{port}) 2>&- && break; sleep .05; done\n"
            );
        }
        script += "(exit $status)\n";
    }
    script + "kill $(jobs -p) 2>&-\nwait\n"
}

/// Runs all steps of a page.
fn run(steps: &[Step]) -> Vec<Ran> {
    let folder = Folder::new();
    let there = folder.path("there");
    copy(&examples(), &there.join("examples"));
    // Below the ports that systems give to others, because a page takes a while to come to its service.
    let mut ports = 20_000 + (std::process::id() % 10_000) as u16..32_000;
    let port = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let port = port.unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_lookalike")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let finished = Command::new("timeout")
        .args(["-k", "5", "300", "bash", "-c", &script(steps, port)])
        .current_dir(&there)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("LOOKALIKE_LISTEN", format!("127.0.0.1:{port}"))
        .env("LOOKALIKE_URL", format!("http://127.0.0.1:{port}"))
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .finish();
    let read = |number: usize, what: &str| {
        let path = folder.path(format!("ran/{number}.{what}"));
        fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("step {number}: {error}: {}", finished.err))
    };
    (0..steps.len())
        .map(|number| Ran {
            printed: read(number, "out"),
            status: read(number, "status"),
        })
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns whether the lines shown in a page match the printed ones, where `...` matches any lines.
fn stand_for(shown: &[&str], printed: &[&str]) -> bool {
    match (shown.first(), printed.first()) {
        (None, None) => true,
        (Some(&"..."), _) => (0..=printed.len()).any(|at| stand_for(&shown[1..], &printed[at..])),
        (Some(one), Some(other)) => same(one, other) && stand_for(&shown[1..], &printed[1..]),
        _ => false,
    }
}

/// Returns whether lines are equal, or are lines of a summary whose figures change from run to run.
fn same(shown: &str, printed: &str) -> bool {
    let label = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let varies = matches!(label(shown).as_deref(), Some("time" | "memory"));
    let end = |line: &str| line.trim_end().to_owned();
    end(shown) == end(printed) || varies && label(shown) == label(printed)
}

/// Runs the commands of a page. Returns the page with their actual output, and the errors found.
fn checked(page: &str) -> (String, Vec<String>) {
    let lines: Vec<&str> = page.lines().collect();
    let blocks = block_lines(&lines, "console");
    let steps: Vec<Step> = blocks.iter().flat_map(|block| steps(block)).collect();
    if steps.is_empty() {
        return (page.to_owned(), Vec::new());
    }
    let ran = run(&steps);
    let (mut text, mut done, mut wrong) = (Vec::new(), 0, Vec::new());
    for (number, (step, ran)) in steps.iter().zip(&ran).enumerate() {
        let status = ran.status.trim();
        let asked = steps
            .get(number + 1)
            .is_some_and(|next| next.command == "echo $?");
        if status != "0" && !asked {
            let (command, printed) = (&step.command, &ran.printed);
            wrong.push(format!(
                "$ {command}\nends with status {status}:\n{printed}"
            ));
        }
        let shown = &lines[step.shown.clone()];
        let printed: Vec<&str> = ran.printed.lines().collect();
        text.extend_from_slice(&lines[done..step.shown.start]);
        done = step.shown.end;
        // A command in the background may print at any time.
        if step.command.ends_with('&') || stand_for(shown, &printed) {
            text.extend_from_slice(shown);
        } else {
            text.extend_from_slice(&printed);
            let (command, shown) = (&step.command, shown.join("\n"));
            let printed = &ran.printed;
            wrong.push(format!(
                "$ {command}\nis shown to print:\n{shown}\nand prints:\n{printed}"
            ));
        }
    }
    text.extend_from_slice(&lines[done..]);
    (text.join("\n") + "\n", wrong)
}

#[test]
fn commands_of_the_guides_print_what_the_guides_show() {
    let bless = std::env::var_os("LOOKALIKE_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in pages_below(&docs()) {
        let page = fs::read_to_string(&path).unwrap();
        let (text, found) = checked(&page);
        if bless {
            fs::write(&path, text).unwrap();
        }
        let named = |what| format!("{}: {what}", path.display());
        wrong.extend(found.into_iter().map(named));
    }
    let remedy = "LOOKALIKE_BLESS=1 writes what is printed into the pages; then read them again";
    assert!(wrong.is_empty(), "{}\n{remedy}", wrong.join("\n"));
}

/// Returns the options of each `lookalike` command in a text, with the names of the command and its subcommand.
fn options(commands: &str) -> Vec<(Vec<String>, String)> {
    let commands = commands.replace("\\\n", " ");
    let mut found = Vec::new();
    for command in commands.split(['\n', '|', ';', '&']) {
        let command = command.split(" # ").next().unwrap_or_default();
        let words: Vec<&str> = command
            .split_whitespace()
            .skip_while(|word| *word == "$")
            .collect();
        let Some((&"lookalike", words)) = words.split_first() else {
            continue;
        };
        let nested = words.first().is_some_and(|name| {
            [
                "archive",
                "client",
                "collection",
                "evaluate",
                "index",
                "store",
            ]
            .contains(name)
        });
        let (names, rest) = words.split_at(words.len().min(1 + usize::from(nested)));
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        for option in rest.iter().filter(|word| word.starts_with("--")) {
            let option = option.split('=').next().unwrap_or(option);
            found.push((names.clone(), option.to_owned()));
        }
    }
    found
}

/// Commands on files that the repository does not have cannot be run, but options that no longer exist are detected.
#[test]
fn options_of_commands_that_are_not_run_exist() {
    let mut pages = pages_below(&docs());
    pages.push(examples().join("../README.md"));
    let mut looked_up = 0;
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = page.lines().collect();
        for block in block_lines(&lines, "sh") {
            let text: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
            for (names, option) in options(&text.join("\n")) {
                let (name, parts) = names.split_first().unwrap();
                let help = lookalike(name).args(parts).arg("--help").succeed();
                let known = help
                    .text()
                    .split([' ', '\n', ',', '`'])
                    .any(|word| word == option);
                assert!(known, "{}: {names:?} has no {option}", path.display());
                looked_up += 1;
            }
        }
    }
    assert!(looked_up > 20, "{looked_up}");
}

#[test]
fn an_output_that_is_not_what_a_page_shows_is_seen() {
    let page = "```console\n$ echo one; echo two\none\nthree\n$ false\n```\n";
    let (text, wrong) = checked(page);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    let right = "```console\n$ echo one; echo two\none\ntwo\n$ false\n```\n";
    assert_eq!(text, right);
    let page = "```console\n$ echo one; echo two; echo 'time 3 s'\n...\ntime 4 s\n$ (exit 3)\n$ echo $?\n3\n```\n";
    assert_eq!(checked(page), (page.to_owned(), Vec::new()));
}

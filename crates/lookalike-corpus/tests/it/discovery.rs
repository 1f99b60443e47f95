//! Discovery: which sources arguments become.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use lookalike_corpus::{Format, InputError, InputOptions, Inputs, SkipKind};

use crate::support::{Corpus, gzip, read};

fn discover(corpus: &Corpus, names: &[&str]) -> Result<Inputs, InputError> {
    let arguments: Vec<OsString> = names.iter().map(|name| corpus.path(name).into()).collect();
    Inputs::discover_with(
        &arguments,
        &InputOptions::default(),
        corpus.dir(),
        &mut &b""[..],
    )
}

/// Returns the names relative to the corpus.
fn names(corpus: &Corpus, inputs: &Inputs) -> Vec<String> {
    let root = corpus.path("");
    let relative = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    inputs
        .sources
        .iter()
        .map(|source| relative(source.path().unwrap()))
        .collect()
}

fn kinds(inputs: &Inputs) -> Vec<SkipKind> {
    inputs.skips.iter().map(|skip| skip.kind).collect()
}

fn sample() -> Corpus {
    let corpus = Corpus::with("b/two.txt", b"two");
    corpus.add("b/one.md", b"one");
    corpus.add("a.txt", b"a");
    corpus.add("b.html", b"<p>b");
    corpus.add("c/d/e/deep.jsonl", b"{}");
    corpus
}

#[test]
fn a_directory_is_walked_in_the_order_of_names() {
    let corpus = sample();
    let inputs = discover(&corpus, &[""]).unwrap();
    // `b` comes before `b.html`, because names are compared component by component.
    let expected = [
        "a.txt",
        "b/one.md",
        "b/two.txt",
        "b.html",
        "c/d/e/deep.jsonl",
    ];
    assert_eq!(names(&corpus, &inputs), expected);
    assert_eq!(inputs.skips, []);
    assert_eq!(inputs.sources[3].format, Format::Html);
}

#[test]
fn arguments_keep_their_order_and_are_read_once() {
    let corpus = sample();
    let inputs = discover(&corpus, &["b.html", "a.txt", "", "b/../a.txt"]).unwrap();
    let expected = [
        "b.html",
        "a.txt",
        "b/one.md",
        "b/two.txt",
        "c/d/e/deep.jsonl",
    ];
    assert_eq!(names(&corpus, &inputs), expected);
    assert_eq!(kinds(&inputs), [SkipKind::Duplicate; 3]);
    // Naming the same directory twice is not an error.
    assert_eq!(discover(&corpus, &["b", "b"]).unwrap().sources.len(), 2);
}

#[test]
fn globs_are_expanded() {
    let corpus = sample();
    corpus.add("b/.hidden.txt", b"h");
    corpus.add("new/!n.rst", b"n");
    corpus.add("new/1.rst.gz", b"not compressed");
    let cases: [(&str, &[&str]); 10] = [
        ("*.txt", &["a.txt"]),
        ("b/*", &["b/one.md", "b/two.txt"]),
        ("?/*.{md,txt}", &["b/one.md", "b/two.txt"]),
        ("**/*.txt", &["a.txt", "b/two.txt"]),
        ("c/**/deep.*", &["c/d/e/deep.jsonl"]),
        ("[a-b]", &["b/one.md", "b/two.txt"]),
        ("b/.*.txt", &["b/.hidden.txt"]),
        // As in a shell, an alternative may be empty, and a leading exclamation mark is part of the name.
        ("new/*.rst{,.gz}", &["new/!n.rst", "new/1.rst.gz"]),
        ("new/!*", &["new/!n.rst"]),
        ("new/[!a-z].*", &["new/1.rst.gz"]),
    ];
    for (pattern, expected) in cases {
        let inputs = discover(&corpus, &[pattern]).unwrap();
        assert_eq!(names(&corpus, &inputs), expected, "{pattern}");
    }
    assert!(matches!(
        discover(&corpus, &["*.csv"]),
        Err(InputError::NoMatch { .. })
    ));
    assert!(matches!(
        discover(&corpus, &["[a.txt"]),
        Err(InputError::Pattern { .. })
    ));
}

/// Regression test: with a line end as its delimiter, a table had no documents, and nothing was said.
#[test]
fn a_delimiter_that_cannot_separate_values_lost_the_table() {
    let corpus = sample();
    let arguments: [OsString; 1] = [corpus.path("a.txt").into()];
    for byte in [b'\n', b'\r', b'"', b'a', b'7', 0xff] {
        let options = InputOptions::default().delimiter(Some(byte));
        let refused = Inputs::discover_with(&arguments, &options, corpus.dir(), &mut &b""[..]);
        assert!(
            matches!(refused, Err(InputError::Delimiter(refused)) if refused == byte),
            "{byte}"
        );
    }
    for byte in [b';', b'|', b'\t', b' ', 1] {
        let options = InputOptions::default().delimiter(Some(byte));
        assert!(Inputs::discover_with(&arguments, &options, corpus.dir(), &mut &b""[..]).is_ok());
    }
}

#[test]
fn what_a_glob_could_not_look_at_was_no_match() {
    let corpus = sample();
    // A name that no file system accepts: an error other than "no such file", even for the administrator.
    let long = "x".repeat(300);
    let error = discover(&corpus, &[&format!("*/{long}")]).unwrap_err();
    assert!(matches!(error, InputError::Empty { .. }), "{error}");
    let inputs = discover(&corpus, &[&format!("{{b,c}}/{{{long},two.txt}}")]).unwrap();
    assert_eq!(names(&corpus, &inputs), ["b/two.txt"]);
    let inputs = discover(&corpus, &["a.txt", "*/{one.md,two.txt}"]).unwrap();
    assert_eq!(kinds(&inputs), []);
}

#[cfg(unix)]
#[test]
fn links_to_nothing_and_to_themselves_match_nothing() {
    let corpus = sample();
    std::os::unix::fs::symlink("self", corpus.path("self")).unwrap();
    std::os::unix::fs::symlink("nowhere", corpus.path("link")).unwrap();
    let inputs = discover(&corpus, &["*/one.md"]).unwrap();
    assert_eq!(
        (names(&corpus, &inputs), kinds(&inputs)),
        (vec!["b/one.md".to_owned()], vec![])
    );
}

#[test]
fn any_depth_twice_found_everything_many_times() {
    let corpus = sample();
    for pattern in ["**/**/**/*.jsonl", "**/d/**/*.jsonl", "**/*/**/*.jsonl"] {
        let inputs = discover(&corpus, &[pattern]).unwrap();
        assert_eq!(names(&corpus, &inputs), ["c/d/e/deep.jsonl"], "{pattern}");
        assert_eq!(kinds(&inputs), [], "{pattern}");
    }
}

#[test]
fn a_file_that_looks_like_a_glob_is_a_file() {
    let corpus = Corpus::with("a[1]*.txt", b"literal");
    corpus.add("a1.txt", b"other");
    assert_eq!(
        names(&corpus, &discover(&corpus, &["a[1]*.txt"]).unwrap()),
        ["a[1]*.txt"]
    );
}

#[test]
fn what_names_nothing_is_an_error() {
    let corpus = sample();
    fs::create_dir(corpus.path("empty")).unwrap();
    corpus.add("only/image.png", b"\x89PNG\0");
    assert!(matches!(
        discover(&corpus, &["no.txt"]),
        Err(InputError::NotFound { .. })
    ));
    let error = discover(&corpus, &["empty"]).unwrap_err();
    assert!(matches!(error, InputError::Empty { skipped: 0, .. }));
    assert!(
        error
            .to_string()
            .ends_with("empty: no document in it: it is empty")
    );
    let error = discover(&corpus, &["only"]).unwrap_err().to_string();
    assert!(
        error.contains("1 entry skipped") && error.contains("image.png"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_read_is_skipped_when_found_and_refused_when_named() {
    let corpus = sample();
    corpus.add("x/a.orc", b"ORC");
    corpus.add("x/b.png", b"\x89PNG\0");
    corpus.add("x/c.txt.gz", &gzip(b"nul \0 byte"));
    corpus.add("x/.git/config", b"[core]");
    corpus.add("x/z.txt", b"z");
    let inputs = discover(&corpus, &["x"]).unwrap();
    assert_eq!(names(&corpus, &inputs), ["x/z.txt"]);
    assert_eq!(
        kinds(&inputs),
        [
            SkipKind::Hidden,
            SkipKind::Unsupported,
            SkipKind::Binary,
            SkipKind::Binary
        ]
    );
    let error = discover(&corpus, &["x/a.orc"]).unwrap_err().to_string();
    for word in [
        "a.orc",
        "table format is not supported yet",
        "convert it to JSON Lines",
    ] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn standard_input_is_copied() {
    let corpus = Corpus::with("a.txt", b"a");
    let arguments = ["-".into(), corpus.path("a.txt").into()];
    let options = InputOptions::default();
    let line = b"{\"text\":\"from a pipe\"}\n";
    let spools: Vec<tempfile::TempDir> = (0..5).map(|_| tempfile::tempdir().unwrap()).collect();
    let discovered = |spool: usize, mut bytes: &[u8]| {
        Inputs::discover_with(&arguments, &options, spools[spool].path(), &mut bytes)
    };
    let run = |spool: usize, bytes: &[u8]| discovered(spool, bytes).unwrap();
    let inputs = run(0, &gzip(line));
    assert_eq!(inputs.sources[0].name(), "-");
    assert_eq!(inputs.sources[0].path(), None);
    assert_eq!(inputs.sources[0].format, Format::Jsonl);
    let reading = read(&inputs, &options);
    assert_eq!(reading.texts(), ["from a pipe", "a"]);
    assert_eq!(reading.ids()[0], "-:1");
    let print = |spool: usize, bytes: &[u8]| run(spool, bytes).fingerprint();
    assert_eq!(print(1, line), print(2, line));
    let pine = b"{\"text\":\"from a pine\"}\n";
    assert_ne!(print(3, line), print(4, pine));
    // Standard input has already been read for this job.
    let again = discovered(4, pine).unwrap_err();
    assert!(matches!(again, InputError::StandardInputAgain), "{again}");
}

#[test]
fn standard_input_was_named_twice_and_read_once_without_a_word() {
    let spool = tempfile::tempdir().unwrap();
    let (arguments, options) = (["-".into(), "-".into()], InputOptions::default());
    let twice = Inputs::discover_with(&arguments, &options, spool.path(), &mut &b"text"[..]);
    let error = twice.unwrap_err();
    assert!(matches!(error, InputError::StandardInputAgain), "{error}");
}

#[test]
fn the_fingerprint_tells_inputs_apart() {
    let corpus = sample();
    let print = |names: &[&str]| discover(&corpus, names).unwrap().fingerprint();
    assert_eq!(print(&["a.txt", "b"]), print(&["a.txt", "b"]));
    assert_ne!(print(&["a.txt", "b"]), print(&["b", "a.txt"]));
    let before = print(&["b"]);
    corpus.add("b/two.txt", b"two!");
    assert_ne!(before, print(&["b"]));
    assert_eq!(before.len(), 32);
}

mod unix {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn links_are_followed_but_not_in_circles() {
        let corpus = sample();
        symlink(corpus.path(""), corpus.path("c/up")).unwrap();
        symlink("self", corpus.path("c/self")).unwrap();
        symlink("nowhere", corpus.path("c/broken")).unwrap();
        symlink(corpus.path("b/two.txt"), corpus.path("c/d/two.txt")).unwrap();
        let outside = Corpus::with("far.txt", b"far");
        symlink(outside.path(""), corpus.path("d")).unwrap();
        symlink(outside.path("far.txt"), corpus.path("e.txt")).unwrap();
        let within = [SkipKind::Unreadable, SkipKind::Loop, SkipKind::Loop];
        // Targets outside of the folder are not read, whatever they are, but reported. Links to files come last.
        let inputs = discover(&corpus, &[""]).unwrap();
        assert_eq!(inputs.sources.len(), 5);
        let links = [SkipKind::Outside, SkipKind::Duplicate, SkipKind::Outside];
        assert_eq!(kinds(&inputs), [within, links].concat());
        let options = InputOptions::default().follow_links(true);
        let inputs = corpus.inputs("", &options);
        assert_eq!(names(&corpus, &inputs).last().unwrap(), "d/far.txt");
        assert_eq!(inputs.sources.len(), 6);
        assert_eq!(
            kinds(&inputs),
            [&within[..], &[SkipKind::Duplicate; 2]].concat()
        );
        // A named link stands for its target.
        assert_eq!(discover(&corpus, &["d"]).unwrap().sources.len(), 1);
        assert_eq!(discover(&corpus, &["e.txt"]).unwrap().sources.len(), 1);
    }

    #[test]
    fn a_link_took_the_place_of_the_file_that_sorts_behind_it() {
        let corpus = sample();
        symlink("d/e/deep.jsonl", corpus.path("c/a.jsonl")).unwrap();
        let inputs = discover(&corpus, &["c"]).unwrap();
        assert_eq!(names(&corpus, &inputs), ["c/d/e/deep.jsonl"]);
        assert_eq!(kinds(&inputs), [SkipKind::Duplicate]);
        let outside = Corpus::with("far.txt", b"far");
        for link in ["c/b.txt", "c/d/x.txt", "c/z.txt"] {
            symlink(outside.path("far.txt"), corpus.path(link)).unwrap();
        }
        // A file that the walk finds only through links has the position of the first of them.
        let inputs = corpus.inputs("", &InputOptions::default().follow_links(true));
        let expected = [
            "a.txt",
            "b/one.md",
            "b/two.txt",
            "b.html",
            "c/b.txt",
            "c/d/e/deep.jsonl",
        ];
        assert_eq!(names(&corpus, &inputs), expected);
        assert_eq!(kinds(&inputs), [SkipKind::Duplicate; 3]);
    }

    #[test]
    fn a_named_file_that_cannot_be_read_is_skipped_when_asked() {
        let corpus = Corpus::with("a.txt", b"a text");
        corpus.add("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        let arguments = ["a.txt", "picture.png"].map(|name| corpus.path(name).into_os_string());
        let discover = |options| Inputs::discover(&arguments, &options, corpus.dir());
        let refused = discover(InputOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("picture.png"), "{refused}");
        let inputs = discover(InputOptions::default().skip_unreadable(true)).unwrap();
        assert_eq!(names(&corpus, &inputs), ["a.txt"]);
        let [skip] = &inputs.skips[..] else {
            panic!("{:?}", inputs.skips)
        };
        // So that jobs can copy it to the skipped files.
        assert_eq!(skip.file.as_deref(), Some(&*corpus.path("picture.png")));
    }

    #[test]
    fn a_named_file_that_is_missing_is_a_loss_when_asked() {
        let corpus = Corpus::with("a.txt", b"a text");
        let discover = |name: &str, skip: bool| {
            let arguments = ["a.txt", name].map(|name| corpus.path(name).into_os_string());
            let options = InputOptions::default().skip_unreadable(skip);
            Inputs::discover(&arguments, &options, corpus.dir())
        };
        // The second path is below a file, which fails in another way.
        for name in ["none.txt", "a.txt/none.txt"] {
            assert!(discover(name, false).is_err(), "{name}");
            let inputs = discover(name, true).unwrap();
            assert_eq!(names(&corpus, &inputs), ["a.txt"]);
            assert_eq!(kinds(&inputs), [SkipKind::Unreadable]);
        }
        // A pattern is not a file in a list.
        assert!(matches!(
            discover("n*.txt", true),
            Err(InputError::NoMatch { .. })
        ));
    }

    #[test]
    fn sockets_and_devices_are_no_files() {
        let corpus = sample();
        let _listener = UnixListener::bind(corpus.path("b/socket")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(corpus.path("b/pipe"))
            .status();
        assert!(made.unwrap().success());
        let inputs = discover(&corpus, &["b"]).unwrap();
        assert_eq!(kinds(&inputs), [SkipKind::NotAFile; 2]);
        let error = discover(&corpus, &["b/pipe"]).unwrap_err().to_string();
        assert!(error.contains(": a named pipe,"), "{error}");
        let error = discover(&corpus, &["b/socket"]).unwrap_err().to_string();
        assert!(error.contains(": a socket,"), "{error}");
        let named = Inputs::discover(
            &["/dev/zero".into()],
            &InputOptions::default(),
            corpus.dir(),
        );
        assert!(matches!(
            named,
            Err(InputError::NotAFile { kind: "device", .. })
        ));
    }

    #[test]
    fn names_that_are_not_utf8_work() {
        let corpus = sample();
        let name = OsStr::from_bytes(b"odd\xff.txt");
        corpus.add(Path::new("o").join(name), b"odd");
        let options = InputOptions::default();
        let inputs = discover(&corpus, &["o"]).unwrap();
        let reading = read(&inputs, &options);
        assert_eq!(reading.texts(), ["odd"]);
        assert!(
            reading.ids()[0].ends_with("/odd\\xff.txt"),
            "{}",
            reading.ids()[0]
        );
        assert_eq!(discover(&corpus, &["o/*.txt"]).unwrap().sources.len(), 1);
    }
}

#[test]
fn bookkeeping_of_spark_and_delta_was_taken_for_documents() {
    let corpus = Corpus::with("t/part-0.jsonl", b"{\"text\":\"a\"}\n");
    corpus.add("t/day=1/part-1.jsonl", b"{\"text\":\"b\"}\n");
    corpus.add("t/_SUCCESS", b"");
    corpus.add("t/_committed_12", b"{\"added\":[]}");
    corpus.add("t/_delta_log/0.jsonl", b"{\"text\":\"log\"}\n");
    corpus.add("t/_temporary/0/part-0.jsonl", b"{\"text\":\"half\"}\n");
    corpus.add("t/_other.jsonl", b"{\"text\":\"c\"}\n");
    let all = ["t/_other.jsonl", "t/day=1/part-1.jsonl", "t/part-0.jsonl"];
    for name in ["t", "t/*", "t/**"] {
        let inputs = discover(&corpus, &[name]).unwrap();
        assert_eq!(names(&corpus, &inputs), all, "{name}");
        assert_eq!(kinds(&inputs)[..4], [SkipKind::Bookkeeping; 4], "{name}");
        assert!(!inputs.skips[0].kind.is_loss());
    }
    // `*` matches no file below the folders, and `**` does not enter them.
    for name in ["t/*/*.jsonl", "t/*/**/*.jsonl"] {
        let inputs = discover(&corpus, &[name]).unwrap();
        assert_eq!(names(&corpus, &inputs), all[1..2], "{name}");
    }
    // A name that the user wrote is meant.
    for (name, found) in [
        ("t/_SUCCESS", "t/_SUCCESS"),
        ("t/_S*", "t/_SUCCESS"),
        ("t/_d*", "t/_delta_log/0.jsonl"),
        ("t/_delta_log", "t/_delta_log/0.jsonl"),
        ("t/_delta_log/*", "t/_delta_log/0.jsonl"),
    ] {
        let inputs = discover(&corpus, &[name]).unwrap();
        assert_eq!(names(&corpus, &inputs), [found], "{name}");
        assert_eq!(kinds(&inputs), [], "{name}");
    }
}

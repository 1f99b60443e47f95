//! Files that appear complete or not at all, and copies of documents.

use std::fs;
use std::io::{Read, Write};

use lookalike_corpus::{
    AtomicFile, Compression, FileTree, InputOptions, Inputs, Transfer, remove_leftovers,
    remove_leftovers_of,
};

use crate::support::{Corpus, gzip, zstd};

fn entries(dir: &std::path::Path) -> Vec<String> {
    let list = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = list
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_error_named_a_temporary_path() {
    // Not even root can create a file there.
    let path = std::path::Path::new("/proc/kept.jsonl");
    let error = AtomicFile::create(path, Compression::None).unwrap_err();
    assert!(!error.to_string().contains("tmp-"), "{error}");
}

#[test]
fn a_file_gets_its_name_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kept.jsonl");
    fs::write(&path, "old").unwrap();
    let mut file = AtomicFile::create(&path, Compression::None).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(entries(dir.path()).len(), 2);
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(entries(dir.path()), ["kept.jsonl"]);
    let mut dropped = AtomicFile::create(&path, Compression::None).unwrap();
    dropped.write_all(b"half").unwrap();
    drop(dropped);
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(entries(dir.path()), ["kept.jsonl"]);
}

#[test]
fn compressed_files_are_the_same_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let lines = b"{\"text\":\"again\"}\n".repeat(100);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let write = |name: &str| {
            let path = dir.path().join(name);
            let mut file = AtomicFile::create(&path, compression).unwrap();
            file.write_all(&lines).unwrap();
            file.commit().unwrap();
            fs::read(&path).unwrap()
        };
        let packed = write("a");
        assert_eq!(packed, write("b"));
        let mut back = Vec::new();
        match compression {
            Compression::Gzip => {
                flate2::read::GzDecoder::new(&packed[..])
                    .read_to_end(&mut back)
                    .unwrap();
            }
            _ => back = zstd::decode_all(&packed[..]).unwrap(),
        }
        assert_eq!(back, lines);
    }
}

#[test]
fn leftovers_of_a_killed_job_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kept.jsonl");
    // A killed process drops nothing.
    std::mem::forget(AtomicFile::create(&path, Compression::None).unwrap());
    for name in ["kept.jsonl", "x.tmp-long-name", "x.tmp-12345"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    assert_eq!(remove_leftovers(dir.path(), |_| true).unwrap(), 1);
    assert_eq!(
        entries(dir.path()),
        ["kept.jsonl", "x.tmp-12345", "x.tmp-long-name"]
    );
    fs::write(dir.path().join("notes.tmp-backup"), "").unwrap();
    fs::write(dir.path().join("notes.tmp-backup.tmp-AbC123"), "").unwrap();
    assert_eq!(
        remove_leftovers(dir.path(), |name| name == "kept.jsonl").unwrap(),
        0
    );
}

#[test]
fn what_a_killed_command_left_beside_its_output_stayed_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pairs.jsonl");
    let mut running = AtomicFile::create(&path, Compression::None).unwrap();
    running.write_all(b"pairs").unwrap();
    // After a kill, no process holds a lock.
    for name in ["pairs.jsonl.tmp-AbC123", "pairs.jsonl.tmp-000000"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let others = [
        "a.pairs.jsonl.tmp-AbC123",
        "pairs.jsonl.tmp-AbC123.tmp-AbC123",
        "pairs.jsonl.tmp-x",
    ];
    for name in others {
        fs::write(dir.path().join(name), "").unwrap();
    }
    assert_eq!(remove_leftovers_of(&path).unwrap(), 2);
    running.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"pairs");
    let mut left = others.to_vec();
    left.push("pairs.jsonl");
    left.sort_unstable();
    assert_eq!(entries(dir.path()), left);
}

#[test]
fn others_may_read_results() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        dir.path()
            .join(name)
            .metadata()
            .unwrap()
            .permissions()
            .mode()
    };
    fs::write(dir.path().join("plain"), "").unwrap();
    AtomicFile::create(&dir.path().join("ours"), Compression::None)
        .unwrap()
        .commit()
        .unwrap();
    assert_eq!(mode("ours"), mode("plain"));
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(AtomicFile::create(&dir.path().join("no/file"), Compression::None).is_err());
}

#[test]
fn documents_are_copied_byte_for_byte() {
    let corpus = Corpus::with("sub/a.txt.gz", &gzip(b"packed"));
    corpus.add("b.html", b"<p>b");
    let inputs = corpus.inputs("", &InputOptions::default());
    let tree = FileTree::new(&inputs);
    let out = tempfile::tempdir().unwrap();
    for source in 0..2 {
        assert!(tree.path(source).is_relative());
        let bytes = tree
            .copy(&inputs, source, out.path(), Transfer::Copy)
            .unwrap();
        assert_eq!(bytes, inputs.sources[source as usize].bytes);
        let original = fs::read(inputs.sources[source as usize].path().unwrap()).unwrap();
        assert_eq!(
            fs::read(out.path().join(tree.path(source))).unwrap(),
            original
        );
    }
    assert!(tree.path(1).ends_with("sub/a.txt.gz"));
    corpus.add("b.html", b"longer now");
    assert!(tree.copy(&inputs, 0, out.path(), Transfer::Copy).is_err());
}

#[test]
fn a_link_that_an_interrupted_job_had_made_failed_when_it_was_made_again() {
    let corpus = Corpus::with("a.html", b"<p>a");
    let inputs = corpus.inputs("", &InputOptions::default());
    let tree = FileTree::new(&inputs);
    let out = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let linked = tree.copy(&inputs, 0, out.path(), Transfer::Link);
        assert_eq!(linked.unwrap(), 4);
    }
    assert_eq!(fs::read(out.path().join(tree.path(0))).unwrap(), b"<p>a");
    assert_eq!(fs::read(corpus.path("a.html")).unwrap(), b"<p>a");
}

#[test]
fn the_longer_ending_of_zstd_stayed_behind_unpacked_bytes() {
    let corpus = Corpus::new();
    for name in ["a.txt.zst", "b.txt.ZSTD", "c.txt.zstd"] {
        corpus.add(name, &zstd(b"packed"));
    }
    corpus.add("d.zstd.txt", b"plain");
    let inputs = corpus.inputs("", &InputOptions::default());
    let tree = FileTree::decompressed(&inputs);
    let names = (0..4).map(|source| tree.path(source).file_name().unwrap().to_str().unwrap());
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["a.txt", "b.txt", "c.txt", "d.zstd.txt"]);
}

#[cfg(target_os = "linux")]
#[test]
fn paths_never_collide_and_never_leave_the_directory() {
    let corpus = Corpus::new();
    let names = [
        "a.txt",
        "A.TXT",
        "a.txt.d/x",
        "x/a",
        "x/a~2",
        "..a/b",
        "b/c.tar.gz",
        "B/c.tar.gz",
        "b/C.tar.txt",
    ];
    let mut arguments = Vec::new();
    for name in names {
        arguments.push(
            corpus
                .add(name.replace("tar", "t"), b"text")
                .into_os_string(),
        );
    }
    arguments.push(corpus.path("x/../x/../../in/zz.txt").into_os_string());
    corpus.add("zz.txt", b"text");
    arguments.push("-".into());
    let options = InputOptions::default();
    let inputs =
        Inputs::discover_with(&arguments, &options, corpus.dir(), &mut &b"in"[..]).unwrap();
    let tree = FileTree::new(&inputs);
    let out = tempfile::tempdir().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for source in 0..inputs.sources.len() as u32 {
        let path = tree.path(source).to_str().unwrap().to_lowercase();
        assert!(!path.split('/').any(|name| name == ".."), "{path}");
        assert!(seen.insert(path));
        tree.copy(&inputs, source, out.path(), Transfer::Copy)
            .unwrap();
    }
    assert_eq!(seen.len(), names.len() + 2);
}

//! Options that would have no effect in combination with others: they are refused, because a user who gives one expects an effect.
//!
//! Values of options are checked where they are parsed; this module checks which options belong together.

use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;
use lookalike::Sketch;
use lookalike_batch::Method::{
    self, AllPairs, BBit, Buckets, Henzinger, IMatch, MinHash, ModP, Oph, Simhash, SuperShingle,
    Winnow,
};

use lookalike_corpus::Format;

use crate::arguments::is_standard_output;
use crate::failure::Failure;
use crate::output_file::is_in_system_folder;

/// All methods that compare features.
const NEAR: &[Method] = &[
    AllPairs,
    MinHash,
    Oph,
    BBit,
    SuperShingle,
    Simhash,
    Henzinger,
    ModP,
    Winnow,
    IMatch,
    Buckets,
];

/// Options that apply only to some methods; all others apply to each.
const METHOD_OPTIONS: [(&str, &[Method]); 10] = [
    ("threshold", NEAR),
    ("lengths", NEAR),
    ("distance", &[Simhash, Henzinger]),
    ("distance_for", &[Henzinger]),
    ("bits", &[Simhash]),
    ("weight", &[Simhash, Henzinger]),
    (
        "equal",
        &[SuperShingle, Henzinger, Buckets, ModP, Winnow, IMatch],
    ),
    ("size", &[ModP, Winnow, IMatch, Buckets]),
    ("stop_features", &[ModP, Winnow]),
    ("functions", &[MinHash, BBit, Oph]),
];

/// A further such option, for bands of signatures.
const RECALL: (&str, &[Method]) = ("recall", &[MinHash, BBit, Oph]);

/// Options that define the features of texts; `explain` shows features whatever the method.
const FEATURES: [&str; 14] = [
    "shingle",
    "short",
    "segment",
    "normalize",
    "case",
    "folding",
    "mask",
    "stop",
    "stem",
    "nouns",
    "seed",
    "hash",
    "hash_key",
    "terms",
];

/// Other options that affect how documents are read.
const READING: [&str; 13] = [
    "format",
    "id",
    "text",
    "max_document",
    "converters",
    "convert_limit",
    "html",
    "html_title",
    "html_alt",
    "html_links",
    "weight",
    "fields",
    "boilerplate",
];

/// Further such options, for files.
const READING_FILES: [&str; 6] = [
    "delimiter",
    "no_header",
    "no_quotes",
    "pdf_limit",
    "follow_links",
    "skip_unreadable",
];

/// Options of evaluations that apply only to documents.
const DOCUMENT_OPTIONS: [&str; 13] = [
    "sketch",
    "measure",
    "shingles",
    "weights",
    "sketches",
    "masks",
    "html_modes",
    "measures",
    "two_tests",
    "lengths",
    "distance_for",
    "functions",
    "sample",
];
/// Options of long measurements.
const CHECKPOINT_OPTIONS: [&str; 2] = ["checkpoint", "resume"];

/// Returns true if an option is on the command line.
fn is_set(read: &ArgMatches, id: &str) -> bool {
    // clap panics if it is asked for an option that the command does not have.
    let is_known = read.try_contains_id(id).is_ok();
    // Defaults and the environment do not count, because the user did not give them for this command.
    is_known && read.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the value of an option, if the command has that option.
fn value<'r, T: Clone + Send + Sync + 'static>(read: &'r ArgMatches, id: &str) -> Option<&'r T> {
    read.try_get_one(id).ok().flatten()
}

fn flag(id: &str) -> String {
    // Fields of arguments whose names differ from those of their options.
    let name = match id {
        "converters" => "convert",
        "folding" => "fold",
        id => id,
    };
    format!("--{}", name.replace('_', "-"))
}

fn refused<T>(id: &str, why: &str) -> Result<T, Failure> {
    Err(Failure::Usage(format!(
        "{} has no effect here: {why}",
        flag(id)
    )))
}

/// Refuses options on the command line that have no effect.
pub(crate) fn check(read: &ArgMatches) -> Result<(), Failure> {
    let Some((name, read)) = read.subcommand() else {
        return Ok(());
    };
    match (name, read.subcommand()) {
        ("evaluate", Some((what, read))) => {
            of_method(read)?;
            of_evaluation(what, read)?;
            check_shared_options(read)
        }
        ("client" | "terms", Some((_, read))) => check_shared_options(read),
        ("archive" | "collection", Some((_, read))) => {
            of_method(read)?;
            of_copies(read)?;
            check_shared_options(read)
        }
        ("dedup" | "pairs", _) => {
            of_method(read)?;
            of_copies(read)?;
            check_shared_options(read)
        }
        ("explain", _) => {
            of_method(read)?;
            of_explained_files(read)?;
            check_shared_options(read)
        }
        ("cluster", _) => of_verification(read).and_then(|()| check_shared_options(read)),
        ("fingerprint", _) => of_import(read).and_then(|()| check_shared_options(read)),
        ("extract", _) => of_texts(read).and_then(|()| check_shared_options(read)),
        ("overlap", _) => of_overlap(read).and_then(|()| check_shared_options(read)),
        _ => check_shared_options(read),
    }
}

/// Checks options that several commands share.
fn check_shared_options(read: &ArgMatches) -> Result<(), Failure> {
    for id in ["boilerplate_share", "boilerplate_lines"] {
        if is_set(read, id) && !is_set(read, "boilerplate") {
            return refused(id, "add --boilerplate site or collection");
        }
    }
    if is_set(read, "convert_limit") && !is_set(read, "converters") {
        return refused("convert_limit", "it limits the commands of --convert");
    }
    of_standard_output(read)?;
    of_html(read)
}

/// Refuses options of checkpoints if the output is standard output: they are kept beside a file.
fn of_standard_output(read: &ArgMatches) -> Result<(), Failure> {
    let is_stream = value::<PathBuf>(read, "output")
        .is_some_and(|path| is_standard_output(path) || is_in_system_folder(path));
    match CHECKPOINT_OPTIONS.iter().find(|id| is_set(read, id)) {
        Some(id) if is_stream => refused(id, "a stream has no checkpoints; name a file with -o"),
        _ => Ok(()),
    }
}

/// Refuses options for HTML with a format that never contains any; for others this is known only after reading.
fn of_html(read: &ArgMatches) -> Result<(), Failure> {
    let format = value::<Format>(read, "format").copied();
    // Records of all other formats may have a field with HTML.
    let Some(format @ (Format::Text | Format::Pdf)) = format else {
        return Ok(());
    };
    let mut ids = ["html", "html_title", "html_alt", "html_links"].iter();
    match ids.find(|id| is_set(read, id)) {
        Some(id) => refused(id, &format!("--format {format} reads no HTML")),
        None => Ok(()),
    }
}

fn of_method(read: &ArgMatches) -> Result<(), Failure> {
    let Some(&method) = value::<Method>(read, "method") else {
        return Ok(());
    };
    for (id, methods) in METHOD_OPTIONS.iter().chain([&RECALL]) {
        if is_set(read, id) && !methods.contains(&method) {
            let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
            let others = match *methods == NEAR {
                true => "methods that compare features".to_owned(),
                false => format!("--method {}", names.join(", ")),
            };
            let why = format!("it applies to {others}, and the method is {method}; leave it out");
            return refused(id, &why);
        }
    }
    Ok(())
}

fn of_copies(read: &ArgMatches) -> Result<(), Failure> {
    let is_copies = value::<Method>(read, "method") == Some(&Method::Copies);
    let mut ids = FEATURES.iter().chain(&["fields"]);
    match ids.find(|id| is_copies && is_set(read, id)) {
        Some(id) => refused(
            id,
            "--method copies compares the bytes of texts, not features",
        ),
        None => Ok(()),
    }
}

/// Refuses to skip one of two files that are compared.
fn of_explained_files(read: &ArgMatches) -> Result<(), Failure> {
    match is_set(read, "skip_unreadable") && !is_set(read, "inputs") {
        true => refused("skip_unreadable", "it applies to the files of --in"),
        false => Ok(()),
    }
}

/// Refuses options for reading and comparing texts if there are no texts.
fn of_verification(read: &ArgMatches) -> Result<(), Failure> {
    let texts = FEATURES.iter().chain(&READING).chain(&READING_FILES);
    let mut ids = texts.chain(&["threshold"]);
    match ids.find(|id| !is_set(read, "verify") && is_set(read, id)) {
        Some(id) => refused(id, "it applies to the texts that --verify names"),
        None => Ok(()),
    }
}

fn of_import(read: &ArgMatches) -> Result<(), Failure> {
    let mut ids = FEATURES.iter().chain(&READING).chain(&READING_FILES);
    match ids.find(|id| read.get_flag("import") && is_set(read, id)) {
        Some(id) => refused(id, "--import reads fingerprints, not texts"),
        None => Ok(()),
    }
}

fn of_texts(read: &ArgMatches) -> Result<(), Failure> {
    let is_text = value(read, "output_format") == Some(&lookalike_batch::TextFormat::Text);
    match is_text && is_set(read, "language") {
        true => refused("language", "--output-format text cannot store it"),
        false => Ok(()),
    }
}

fn of_overlap(read: &ArgMatches) -> Result<(), Failure> {
    use lookalike::Chunking;
    use lookalike_batch::overlap::OverlapUnit;

    let mut chunkings = read.get_many::<Chunking>("chunk").into_iter().flatten();
    let of_words = ["segment", "normalize", "case", "mask", "folding"];
    if let Some(id) = of_words
        .into_iter()
        .find(|id| is_set(read, id))
        .filter(|_| !chunkings.any(|chunking| chunking.needs_scheme()))
    {
        return refused(
            id,
            "it applies to chunks of words or characters; add --chunk words:N or chars:N",
        );
    }
    of_overlap_questions(read)?;
    let to_folder = is_set(read, "output");
    if is_set(read, "copy_containment") && !to_folder {
        return refused(
            "copy_containment",
            "it applies to skip.jsonl, which only -o DIR writes",
        );
    }
    let of_mirrors = [
        "set_page_share",
        "set_server_share",
        "alias_pages",
        "address",
    ];
    if let Some(id) = of_mirrors
        .into_iter()
        .find(|id| is_set(read, id))
        .filter(|_| !to_folder)
    {
        return refused(
            id,
            "it applies to mirrors.jsonl and aliases.jsonl, which only -o DIR writes",
        );
    }
    let has_servers = to_folder || is_set(read, "copies_of") || is_set(read, "rerank");
    if is_set(read, "server") && !has_servers && value(read, "by") != Some(&OverlapUnit::Server) {
        return refused(
            "server",
            "rows of documents name no servers; add --by server or -o DIR",
        );
    }
    Ok(())
}

/// Refuses options about all pairs if one list or document is asked about.
fn of_overlap_questions(read: &ArgMatches) -> Result<(), Failure> {
    let of_pairs = ["min_shared", "min_containment", "engine", "copies"];
    let first = |ids: &[&'static str]| ids.iter().copied().find(|id| is_set(read, id));
    if let Some(id) = first(&of_pairs).filter(|_| is_set(read, "rerank")) {
        return refused(id, "--rerank lists no pairs");
    }
    // The pairs of one document have minima too, but no engine counts them, and copies of its copies are always listed.
    match first(&of_pairs[2..]).filter(|_| is_set(read, "copies_of")) {
        Some(id) => refused(id, "--copies-of compares one document and lists every copy"),
        None => Ok(()),
    }
}

fn of_evaluation(what: &str, read: &ArgMatches) -> Result<(), Failure> {
    let fingerprints = |sketch: &Sketch| sketch.fingerprint_bits() > 0;
    let has_labels = is_set(read, "labels");
    if matches!(value(read, "fingerprints"), Some(true)) {
        let texts = FEATURES.iter().chain(&READING).chain(&READING_FILES);
        if let Some(id) = texts.chain(&DOCUMENT_OPTIONS).find(|id| is_set(read, id)) {
            return refused(
                id,
                "--fingerprints reads sketches as they are, all of them, and no texts",
            );
        }
        if let Some(id) = CHECKPOINT_OPTIONS.iter().find(|id| is_set(read, id)) {
            return refused(
                id,
                "sketches are measured in little more time than it takes to read them",
            );
        }
    }
    match what {
        "sample" | "labels" => {
            let weighs = value(read, "sketch").is_some_and(fingerprints);
            match is_set(read, "weight") && !weighs {
                true => refused(
                    "weight",
                    "only fingerprints (--sketch simhash:64) weigh features",
                ),
                false => Ok(()),
            }
        }
        "sweep" if has_labels => {
            match ["threshold", "shingle"].iter().find(|id| is_set(read, id)) {
                Some(id) => refused(
                    id,
                    "with --labels the labels are the truth; give the features to try with --shingles",
                ),
                None => Ok(()),
            }
        }
        "sweep" if is_set(read, "positive") => {
            refused("positive", "it applies to the grades of --labels")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn options_of_texts_did_nothing_and_said_nothing() {
        for words in [
            "dedup in.jsonl -o out --method copies --fold accents",
            "pairs in.jsonl --method copies --fold accents",
            "fingerprint in.jsonl --import --delimiter ;",
            "fingerprint in.jsonl --import --pdf-limit 3",
            "fingerprint in.jsonl --import --follow-links",
            "fingerprint in.jsonl --import --fold accents",
            "evaluate sample in.jsonl -o drawn.jsonl --fingerprints --follow-links",
            "explain a.txt b.txt --skip-unreadable",
            "overlap in.jsonl --rerank ids --min-shared 2",
            "overlap in.jsonl --rerank ids --min-containment 0.5",
            "overlap in.jsonl --rerank ids --engine sort",
            "overlap in.jsonl --rerank ids --copies apart",
            "overlap in.jsonl --copies-of a --engine sort",
            "overlap in.jsonl --copies-of a --copies apart",
        ] {
            let words = ["lookalike"].into_iter().chain(words.split(' '));
            let read = crate::Cli::command()
                .try_get_matches_from(words.clone())
                .unwrap();
            let refused = check(&read).unwrap_err().to_string();
            assert!(refused.contains("has no effect here"), "{refused}");
        }
        let words = "lookalike overlap in.jsonl --copies-of a --min-shared 2 --min-containment 0.5";
        let read = crate::Cli::command().try_get_matches_from(words.split(' '));
        assert!(check(&read.unwrap()).is_ok());
    }

    #[test]
    fn options_of_other_methods_are_refused() {
        let options = [
            ("--distance", "3", "simhash henzinger"),
            ("--distance-for", "all", "henzinger"),
            ("--bits", "64", "simhash"),
            ("--weight", "tf", "simhash henzinger"),
            (
                "--equal",
                "2",
                "supershingle henzinger buckets mod-p winnow i-match",
            ),
            ("--size", "8", "mod-p winnow i-match buckets"),
            ("--stop-features", "8", "mod-p winnow"),
            ("--functions", "128", "minhash b-bit oph"),
            ("--recall", "0.9", "minhash b-bit oph"),
            ("--threshold", "0.7", "!copies"),
            ("--lengths", "0.5", "!copies"),
            ("--shingle", "words:3", "!copies"),
            ("--mask", "numbers", "!copies"),
        ];
        for (option, value, fitting) in options {
            for method in NEAR.iter().chain(&[Method::Copies]) {
                let method = method.name();
                let fits = match fitting {
                    "!copies" => method != "copies",
                    _ => fitting.split(' ').any(|name| name == method),
                };
                let words = ["lookalike", "pairs", "in.jsonl", "--method", method];
                let words = words.into_iter().chain([option, value]);
                let read = crate::Cli::command().try_get_matches_from(words).unwrap();
                let told = check(&read).map_err(|failure| failure.to_string());
                match fits {
                    true => assert_eq!(told, Ok(()), "{option} {method}"),
                    false => {
                        let told = told.unwrap_err();
                        let parts = [option, "has no effect", method];
                        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
                    }
                }
            }
        }
    }
}

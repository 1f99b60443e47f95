//! Options that would have no effect in combination with others: they are refused, because a user who gives one expects an effect.
//!
//! Values of options are checked where they are parsed; this module checks which options belong together.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;
use lookalike::{Chunking, Sketch};
use lookalike_batch::Method::{
    self, AllPairs, BBit, Buckets, Henzinger, IMatch, MinHash, ModP, Oph, Simhash, SuperShingle,
    Winnow,
};
use lookalike_batch::TextFormat;
use lookalike_batch::overlap::OverlapUnit;
use lookalike_corpus::{Format, InputError};

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
const METHOD_OPTIONS: [(&str, &[Method]); 11] = [
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
    ("recall", &[MinHash, BBit, Oph]),
];

/// Options that define the features of texts, and the group of those that define words; `explain` shows features whatever the method. Groups have the
/// names of their structs, but clap leaves the group of a struct empty that holds another.
const FEATURES: [&str; 11] = [
    "WordArguments",
    "shingle",
    "short",
    "stop",
    "stem",
    "nouns",
    "seed",
    "hash",
    "hash_key",
    "fields",
    "terms",
];

/// Other options and groups that affect how texts are read and weighed.
const READING: [&str; 6] = [
    "RecordArguments",
    "ConvertArguments",
    "FileArguments",
    "HtmlArguments",
    "BoilerplateArguments",
    "weight",
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

/// Returns true if an option, or any option of a group, is on the command line.
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

/// Refuses these options, and those of these groups.
fn refuse_all(read: &ArgMatches, ids: &[&str], why: &str) -> Result<(), Failure> {
    let Some(found) = ids.iter().find(|id| is_set(read, id)) else {
        return Ok(());
    };
    // The value of a group is the options of it that were given.
    let option = value::<clap::Id>(read, found);
    refused(option.map_or(found, clap::Id::as_str), why)
}

/// Refuses all options about texts.
fn refuse_texts(read: &ArgMatches, why: &str) -> Result<(), Failure> {
    refuse_all(read, &FEATURES, why)?;
    refuse_all(read, &READING, why)
}

/// Refuses options on the command line that have no effect.
pub(crate) fn check(read: &ArgMatches) -> Result<(), Failure> {
    let Some((name, read)) = read.subcommand() else {
        return Ok(());
    };
    let (what, read) = read.subcommand().unwrap_or(("", read));
    of_method(read)?;
    match name {
        "archive" | "collection" | "dedup" | "pairs" => of_copies(read)?,
        "evaluate" => of_evaluation(what, read)?,
        // Neither of two files that are compared can be skipped.
        "explain" if !is_set(read, "records_of") => {
            refuse_all(
                read,
                &["skip_unreadable"],
                "it applies to the files of --in",
            )?;
        }
        "cluster" if is_set(read, "inputs_from") => {
            refuse_all(read, &["inputs_from"], "INPUT are fingerprints, not texts")?;
        }
        "cluster" if !is_set(read, "verify") => {
            let why = "it applies to the texts that --verify names";
            refuse_texts(read, why)?;
            refuse_all(read, &["threshold"], why)?;
        }
        "fingerprint" if read.get_flag("import") => {
            refuse_texts(read, "--import reads fingerprints, not texts")?;
        }
        "extract" if value(read, "output_format") == Some(&TextFormat::Text) => {
            refuse_all(read, &["language"], "--output-format text cannot store it")?;
        }
        "overlap" => of_overlap(read)?,
        _ => {}
    }
    check_shared_options(read)
}

/// Checks options that several commands share.
fn check_shared_options(read: &ArgMatches) -> Result<(), Failure> {
    let learns = read.try_contains_id("boilerplate").is_ok();
    if learns && !is_set(read, "boilerplate") {
        let why = "add --boilerplate site or collection";
        refuse_all(read, &["boilerplate_share", "boilerplate_lines"], why)?;
    }
    if !is_set(read, "converters") {
        let why = "it limits the commands of --convert";
        refuse_all(read, &["convert_limit"], why)?;
    }
    of_standard_input(read)?;
    of_standard_output(read)?;
    of_html(read)
}

/// Refuses a list of inputs on standard input if that is also an input, which is then found empty.
fn of_standard_input(read: &ArgMatches) -> Result<(), Failure> {
    let count = |id: &&str| {
        let values = read.try_get_many::<OsString>(id).ok().flatten();
        values
            .into_iter()
            .flatten()
            .filter(|name| *name == "-")
            .count()
    };
    let others = ["inputs", "against", "from", "verify"]
        .iter()
        .map(count)
        .sum::<usize>();
    match count(&"inputs_from") {
        0 => Ok(()),
        1 if others == 0 => Ok(()),
        _ => Err(InputError::StandardInputAgain.into()),
    }
}

/// Refuses options of checkpoints if the output is standard output: they are kept beside a file.
fn of_standard_output(read: &ArgMatches) -> Result<(), Failure> {
    let is_stream = |path: &PathBuf| is_standard_output(path) || is_in_system_folder(path);
    if value(read, "output").is_some_and(is_stream) {
        let why = "a stream has no checkpoints; name a file with -o";
        refuse_all(read, &CHECKPOINT_OPTIONS, why)?;
    }
    Ok(())
}

/// Refuses options for HTML with a format that never contains any; for others this is known only after reading.
fn of_html(read: &ArgMatches) -> Result<(), Failure> {
    match value::<Format>(read, "format") {
        Some(format @ (Format::Text | Format::Pdf)) => {
            let why = format!("--format {format} reads no HTML");
            refuse_all(read, &["HtmlArguments"], &why)
        }
        // Records of all other formats may have a field with HTML.
        _ => Ok(()),
    }
}

fn of_method(read: &ArgMatches) -> Result<(), Failure> {
    let Some(&method) = value::<Method>(read, "method") else {
        return Ok(());
    };
    for (id, methods) in METHOD_OPTIONS {
        if is_set(read, id) && !methods.contains(&method) {
            let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
            let others = match methods == NEAR {
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
    match value(read, "method") {
        Some(Method::Exact) => {
            let why = "--method exact compares the bytes of texts, not features";
            refuse_all(read, &FEATURES, why)
        }
        _ => Ok(()),
    }
}

fn of_overlap(read: &ArgMatches) -> Result<(), Failure> {
    let mut chunkings = read.get_many::<Chunking>("chunk").into_iter().flatten();
    if !chunkings.any(|chunking| chunking.needs_scheme()) {
        let why = "it applies to chunks of words or characters; add --chunk words:N or chars:N";
        refuse_all(read, &["WordArguments"], why)?;
    }
    of_overlap_questions(read)?;
    let to_folder = is_set(read, "output");
    if !to_folder {
        let why = "it applies to skip.jsonl, which only -o DIR writes";
        refuse_all(read, &["copy_containment"], why)?;
        let of_mirrors = [
            "set_page_share",
            "set_server_share",
            "alias_pages",
            "address",
        ];
        let why = "it applies to mirrors.jsonl and aliases.jsonl, which only -o DIR writes";
        refuse_all(read, &of_mirrors, why)?;
    }
    let has_servers = to_folder || is_set(read, "copies_of") || is_set(read, "rerank");
    if !has_servers && value(read, "by") != Some(&OverlapUnit::Server) {
        let why = "rows of documents name no servers; add --by server or -o DIR";
        refuse_all(read, &["server"], why)?;
    }
    Ok(())
}

/// Refuses options about all pairs if one list or document is asked about.
fn of_overlap_questions(read: &ArgMatches) -> Result<(), Failure> {
    let of_pairs = ["min_shared", "min_containment", "engine", "copies"];
    if is_set(read, "rerank") {
        refuse_all(read, &of_pairs, "--rerank lists no pairs")?;
    }
    // The pairs of one document have minima too, but no engine counts them, and copies of its copies are always listed.
    if is_set(read, "copies_of") {
        let why = "--copies-of compares one document and lists every copy";
        refuse_all(read, &of_pairs[2..], why)?;
    }
    Ok(())
}

fn of_evaluation(what: &str, read: &ArgMatches) -> Result<(), Failure> {
    if matches!(value(read, "fingerprints"), Some(true)) {
        let why = "--fingerprints reads sketches as they are, all of them, and no texts";
        refuse_texts(read, why)?;
        refuse_all(read, &DOCUMENT_OPTIONS, why)?;
        let why = "sketches are measured in little more time than it takes to read them";
        refuse_all(read, &CHECKPOINT_OPTIONS, why)?;
    }
    let weighs = |sketch: &Sketch| sketch.fingerprint_bits() > 0;
    match what {
        "sample" | "labels" if !value(read, "sketch").is_some_and(weighs) => {
            let why = "only fingerprints (--sketch simhash:64) weigh features";
            refuse_all(read, &["weight"], why)
        }
        "sweep" if is_set(read, "labels") => {
            let why =
                "with --labels the labels are the truth; give the features to try with --shingles";
            refuse_all(read, &["threshold", "shingle"], why)
        }
        "sweep" => {
            let why = "it applies to the grades of --labels";
            refuse_all(read, &["positive"], why)
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
            "dedup in.jsonl -o out --method exact --fold accents",
            "pairs in.jsonl --method exact --fold accents",
            "fingerprint in.jsonl --import --delimiter ;",
            "fingerprint in.jsonl --import --pdf-limit 3",
            "fingerprint in.jsonl --import --follow-links",
            "fingerprint in.jsonl --import --inputs-from list",
            "cluster in.lkfp --verify in.jsonl --inputs-from list -o out",
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
                "super-shingle henzinger buckets mod-p winnow i-match",
            ),
            ("--size", "8", "mod-p winnow i-match buckets"),
            ("--stop-features", "8", "mod-p winnow"),
            ("--functions", "128", "minhash b-bit oph"),
            ("--recall", "0.9", "minhash b-bit oph"),
            ("--threshold", "0.7", "!exact"),
            ("--lengths", "0.5", "!exact"),
            ("--shingle", "words:3", "!exact"),
            ("--mask", "numbers", "!exact"),
        ];
        for (option, value, fitting) in options {
            for method in NEAR.iter().chain(&[Method::Exact]) {
                let method = method.name();
                let fits = match fitting {
                    "!exact" => method != "exact",
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

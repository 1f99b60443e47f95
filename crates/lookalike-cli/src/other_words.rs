//! Words of other tools for options of this one, so that an error names the option that is meant.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words of other tools, without hyphens, and the option that they mean.
const OTHER_WORDS: [(&str, &str); 8] = [
    ("ngram ngrams ngramsize shinglesize", "shingle"),
    ("numperm numperms permutations numhashes", "functions"),
    (
        "jaccard jaccardthreshold similarity similaritythreshold",
        "threshold",
    ),
    (
        "column columns textcolumn textfield textkey content",
        "text",
    ),
    ("idcolumn idfield idkey", "id"),
    ("hamming hammingdistance maxdistance radius", "distance"),
    ("numworkers workers numproc jobs njobs", "threads"),
    ("outputdir outputpath", "output"),
];

/// Words for which there is no option.
const MIN_LENGTH: &str = "minlength minlen minwords minchars";

fn is_among(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Returns the error with the option that an unknown one probably means, if the command of the words has that option.
pub(crate) fn with_meant(
    mut error: clap::Error,
    command: &Command,
    words: &[OsString],
) -> clap::Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let name = unknown.replace(['-', '_'], "");
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    if is_among(&name, MIN_LENGTH) {
        return clap::Error::raw(
            error.kind(),
            format!(
                "unexpected argument '{unknown}' found: short texts are compared too, so leave them out of the input\n"
            ),
        );
    }
    let mut meant = OTHER_WORDS
        .iter()
        .filter(|(words, _)| is_among(&name, words));
    let command = words
        .iter()
        .filter_map(|word| word.to_str())
        .fold(command, |command, word| {
            command.find_subcommand(word).unwrap_or(command)
        });
    let has = |option: &str| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_long() == Some(option))
    };
    if let Some((_, option)) = meant.find(|(_, option)| has(option)) {
        let option = ContextValue::String(format!("--{option}"));
        error.insert(ContextKind::SuggestedArg, option);
    }
    error
}

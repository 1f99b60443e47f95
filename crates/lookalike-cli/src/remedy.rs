//! Remedies in the words of the command line: the libraries report causes, and know of no options.

use lookalike_batch::fingerprints::cluster::ClusterError;
use lookalike_batch::fingerprints::files::CodesError;
use lookalike_batch::{BatchError, CollectionArchiveError};

/// An error with its remedy behind it, if there is one.
pub(crate) fn told(error: &BatchError) -> String {
    with(error, of_job(error))
}

/// The same of a file of fingerprints.
#[cfg(feature = "service")]
pub(crate) fn told_of_codes(error: &CodesError) -> String {
    with(error, of_codes(error))
}

fn with(error: &dyn std::error::Error, remedy: Option<String>) -> String {
    match remedy {
        Some(remedy) => format!("{error}: {remedy}"),
        None => error.to_string(),
    }
}

/// A size as options take it, rounded up.
fn mebibytes(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

const SPLIT: &str = "split the input (`dedup --against` compares a part with earlier ones)";

fn of_job(error: &BatchError) -> Option<String> {
    let remedy = match error {
        BatchError::Codes(error) => return of_codes(error),
        BatchError::Cluster(error) => return of_clusters(error),
        BatchError::Archive(error) => return of_archive(error),
        BatchError::RepeatedId { .. } => {
            "give the records different ids, name another field with --id, or number them with --repeated-ids number"
        }
        BatchError::Strict(_) => {
            "repair the record, or run without --strict to skip and count such records"
        }
        BatchError::Losses {
            is_uncounted: true, ..
        } => "repair the input, or allow a number of records and files with --max-skipped N",
        BatchError::Losses { .. } => "repair the input, or allow more with --max-skipped",
        BatchError::NoText { .. } => "name the one that holds the text with --text FIELD",
        BatchError::TooMany => SPLIT,
        BatchError::ResumedInput { .. } => "start again with --overwrite",
        BatchError::Memory { least, .. } => {
            let least = mebibytes(*least);
            return Some(format!("raise --memory to at least {least}, or {SPLIT}"));
        }
        BatchError::LongDocuments { least, fitting, .. } => {
            let (least, fitting) = (mebibytes(*least), fitting >> 20);
            return Some(format!(
                "raise --memory to at least {least}, or lower --max-document to {fitting}M (longer documents are counted, and only \
                 their bytes are compared for equality)"
            ));
        }
        BatchError::JoinMemory { least, .. } => {
            return Some(format!(
                "raise --memory to about {least}M, swap F and Q if F is the smaller one, split Q and merge the lists of \
                 its parts with `lookalike merge`, or use more shards for a self-join"
            ));
        }
        BatchError::SelfJoinMemory { least, .. } => {
            return Some(format!(
                "raise --memory to about {least}M, or join it in shards (--shard), each of which keeps only its share, and \
                 merge their lists with `lookalike merge`"
            ));
        }
        BatchError::SketchMemory { least, .. } => {
            return Some(format!(
                "raise --memory to about {least}M, or make shorter ones"
            ));
        }
        BatchError::IndexMemory { least, .. } => {
            return Some(format!(
                "raise --memory to at least {least}M, or split the input"
            ));
        }
        _ => return None,
    };
    Some(remedy.to_owned())
}

fn of_codes(error: &CodesError) -> Option<String> {
    let remedy = match error {
        CodesError::OtherWidth { .. } | CodesError::OtherShape { .. } => {
            "make both with the same --sketch"
        }
        CodesError::Width { wanted, .. } => {
            return Some(format!("make them with --sketch simhash:{wanted}"));
        }
        CodesError::Places { .. } => {
            "`lookalike join`, `cluster` and `index build` read them with --equal, the number that must agree; everything else needs \
             fingerprints, made by `lookalike fingerprint` without --sketch"
        }
        CodesError::NoPlaces { .. } => {
            "use --distance instead of --equal, or make sketches with `lookalike fingerprint --sketch super-shingle:6x14`"
        }
        CodesError::Index { .. } => {
            "one of fingerprints takes the place of files of fingerprints in `index build`, and of F in `join`; one of sketches does so \
             with --equal"
        }
        CodesError::UnknownSketch { .. } => {
            "--equal reads files of `lookalike fingerprint --sketch`, and raw little-endian numbers in files named .u64xN or \
             .u32xN"
        }
        CodesError::Strict(_) => {
            "repair the line, or run without --strict to skip and count such lines"
        }
        _ => return None,
    };
    Some(remedy.to_owned())
}

fn of_clusters(error: &ClusterError) -> Option<String> {
    match error {
        ClusterError::Beyond { most, .. } => Some(format!(
            "allow that many with --distance, or join again with --distance {most}"
        )),
        ClusterError::NoTexts { .. } => Some(
            "name the files that the fingerprints were made from, with the same --id".to_owned(),
        ),
        ClusterError::Memory { least, .. } => Some(format!("raise --memory to about {least}M")),
        _ => None,
    }
}

fn of_archive(error: &CollectionArchiveError) -> Option<String> {
    match error {
        CollectionArchiveError::BuildMemory { least, .. } => {
            let least = mebibytes(*least);
            Some(format!(
                "raise --memory to at least {least}, or choose a smaller --block"
            ))
        }
        CollectionArchiveError::ReadMemory { needed, .. } => {
            Some(format!("raise --memory to {}", mebibytes(*needed)))
        }
        _ => None,
    }
}

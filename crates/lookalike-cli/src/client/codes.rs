//! Files of fingerprints, sent in the compact form, and of exported documents, sent as they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike_batch::SkippedRow;
use lookalike_batch::fingerprints::files::{CodeFile, CodesError, FingerprintFile};
use serde_json::json;

use super::exported;
use super::http::{ServiceClient, collection, escaped};
use super::output::print;
use crate::arguments::LossArguments;
use crate::failure::Failure;
use crate::remedy;
use crate::store::id_of;

/// Bytes of fingerprints and ids that are read at once.
const READ: u64 = 4 << 20;

#[derive(clap::Args)]
pub(super) struct LoadOptions {
    /// Name of the collection
    collection: String,

    /// Files written by `lookalike fingerprint -o` (.lkfp, .jsonl, .u64, .parquet or .lkar), or exports
    ///
    /// If a file has no ids, the digits of each fingerprint are its id. Exports are inserted unchanged.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Number of fingerprints per request
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    /// Lifetime of documents without one of their own [default: that of the collection]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Id of the scheme of the fingerprints, for files that do not store it
    ///
    /// A collection with another scheme is refused.
    #[arg(long, value_name = "ID")]
    scheme: Option<String>,

    #[command(flatten)]
    losses: LossArguments,

    /// Do not merge all documents into one run at the end, because more files will follow
    #[arg(long)]
    no_compact: bool,
}

/// Counts of a load.
#[derive(Default)]
struct LoadCounts {
    loaded: u64,
    replaced: u64,
    /// Documents that lost a part, by part, which the collection does not keep.
    dropped: BTreeMap<String, u64>,
    skipped: Vec<SkippedRow>,
}

pub(super) fn load(client: &ServiceClient, arguments: &LoadOptions) -> Result<(), Failure> {
    let started = Instant::now();
    let mut counts = LoadCounts::default();
    let folder = tempfile::tempdir().map_err(|error| Failure::Failed(error.to_string()))?;
    for path in &arguments.files {
        let spooled;
        let path = if path == Path::new("-") {
            spooled = exported::spooled_stdin(folder.path())?;
            &spooled
        } else {
            path
        };
        // By its first line: names of both end in .jsonl.
        if exported::is_export(path)? {
            load_documents(client, arguments, path, &mut counts)?;
        } else {
            load_codes(client, arguments, path, &mut counts)?;
        }
    }
    if !arguments.no_compact {
        // It goes on behind the scenes.
        client.json("POST", &collection(&arguments.collection, "/compact"), None)?;
    }
    let mut summary = json!({
        "loaded": counts.loaded, "replaced": counts.replaced, "skipped": counts.skipped,
        "seconds": started.elapsed().as_secs_f64(),
    });
    if !counts.dropped.is_empty() {
        summary["dropped"] = json!(counts.dropped);
    }
    print(&summary)?;
    let losses = arguments.losses.policy();
    losses.check(&counts.skipped, counts.loaded)?;
    arguments.losses.end(&counts.skipped)
}

/// The options of requests, of which the file tells the scheme unless the caller does.
fn question(arguments: &LoadOptions, of_file: Option<String>) -> String {
    let scheme = arguments.scheme.clone().or(of_file);
    let scheme = scheme.map(|id| format!("scheme={}", escaped(&id)));
    let ttl = arguments
        .ttl
        .map(|seconds| format!("ttl_seconds={seconds}"));
    let options: Vec<String> = scheme.into_iter().chain(ttl).collect();
    if options.is_empty() {
        return String::new();
    }
    format!("?{}", options.join("&"))
}

fn load_codes(
    client: &ServiceClient,
    arguments: &LoadOptions,
    path: &Path,
    counts: &mut LoadCounts,
) -> Result<(), Failure> {
    let failed = |error: CodesError| Failure::Failed(remedy::told_of_codes(&error));
    // Strict stops at the first bad row. A limit on their number is checked at the end, when documents are sent
    // already: they can be loaded again without harm.
    let strict = arguments.losses.policy().is_strict();
    let mut file = CodeFile::open(&path.into(), strict).map_err(failed)?;
    let question = question(arguments, file.scheme().map(|id| id.to_string()));
    let path = collection(&arguments.collection, &format!("/insert{question}"));
    let (mut codes, mut more) = (FingerprintFile::<u64>::default(), true);
    while more {
        codes.clear();
        more = file.fill(&mut codes, READ).map_err(failed)?;
        let mut at = 0;
        for chunk in codes.codes.chunks(arguments.batch as usize) {
            let mut body = Vec::new();
            for &code in chunk {
                let id = id_of(codes.ids.name(at, code));
                // The compact form: 8 bytes of fingerprint, 2 of length, both little-endian, and the id. See
                // `docs/service.md`.
                let length = u16::try_from(id.len()).map_err(|_| {
                    Failure::Failed(format!(
                        "an id of {} bytes is too long for a collection",
                        id.len()
                    ))
                })?;
                body.extend(code.to_le_bytes());
                body.extend(length.to_le_bytes());
                body.extend(id.as_bytes());
                at += 1;
            }
            let answers = client.packed(&path, body)?;
            counts.loaded += answers.len() as u64;
            // A byte an item; the highest bit says that a document of this id was there.
            let replaced = answers.iter().filter(|answer| **answer & 0x80 != 0);
            counts.replaced += replaced.count() as u64;
        }
    }
    counts.skipped.extend(file.summary().skipped);
    Ok(())
}

fn load_documents(
    client: &ServiceClient,
    arguments: &LoadOptions,
    file: &Path,
    counts: &mut LoadCounts,
) -> Result<(), Failure> {
    let question = question(arguments, None);
    let path = collection(&arguments.collection, &format!("/load{question}"));
    exported::for_each_batch(file, arguments.batch as usize, &mut |body| {
        let answers = client.json_bytes("POST", &path, body)?;
        for answer in answers.as_array().into_iter().flatten() {
            counts.loaded += 1;
            counts.replaced += u64::from(answer["replaced"] == true);
            for part in answer["dropped"].as_array().into_iter().flatten() {
                let part = part.as_str().unwrap_or_default().to_owned();
                *counts.dropped.entry(part).or_default() += 1;
            }
        }
        Ok(())
    })
}

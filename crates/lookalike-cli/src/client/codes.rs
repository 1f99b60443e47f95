//! Files of fingerprints, sent in the compact form.

use std::path::PathBuf;
use std::time::Instant;

use lookalike_batch::fingerprints::files::{CodeFile, FingerprintFile};
use serde_json::json;

use super::http::{ServiceClient, collection};
use super::output::print;
use crate::arguments::LossArguments;
use crate::failure::Failure;
use crate::store::id_of;

/// Bytes of fingerprints and ids that are read at once.
const READ: u64 = 4 << 20;

#[derive(clap::Args)]
pub(super) struct FingerprintOptions {
    /// Name of the collection
    collection: String,

    /// Files that `lookalike fingerprint -o` wrote: .lkfp, .jsonl, .u64 or .parquet
    ///
    /// If a file has no ids, the digits of each fingerprint are its id.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Number of fingerprints in one request
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    #[command(flatten)]
    losses: LossArguments,

    /// Do not merge all documents into one run at the end, because more files follow
    #[arg(long)]
    no_compact: bool,
}

pub(super) fn load(client: &ServiceClient, arguments: &FingerprintOptions) -> Result<(), Failure> {
    let failed = |error: lookalike_batch::fingerprints::files::CodesError| {
        Failure::Failed(error.to_string())
    };
    let started = Instant::now();
    let (mut loaded, mut replaced, mut skipped) = (0_u64, 0_u64, Vec::new());
    for path in &arguments.files {
        let mut file =
            CodeFile::open(path, arguments.losses.policy().is_strict()).map_err(failed)?;
        let scheme = file
            .scheme()
            .map_or(String::new(), |id| format!("?scheme={id}"));
        let path = collection(&arguments.collection, &format!("/insert{scheme}"));
        let (mut codes, mut more) = (FingerprintFile::default(), true);
        while more {
            codes.clear();
            more = file.fill(&mut codes, READ).map_err(failed)?;
            let mut at = 0;
            for chunk in codes.codes.chunks(arguments.batch as usize) {
                let mut body = Vec::new();
                for &code in chunk {
                    let id = id_of(codes.ids.name(at, code));
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
                loaded += answers.len() as u64;
                replaced += answers.iter().filter(|answer| **answer & 0x80 != 0).count() as u64;
            }
        }
        skipped.extend(file.summary().skipped);
    }
    if !arguments.no_compact {
        // It goes on behind the scenes.
        client.json("POST", &collection(&arguments.collection, "/compact"), None)?;
    }
    print(&json!({
        "loaded": loaded, "replaced": replaced, "skipped": skipped,
        "seconds": started.elapsed().as_secs_f64(),
    }))?;
    arguments.losses.policy().check(&skipped, loaded)?;
    arguments.losses.end(&skipped)
}

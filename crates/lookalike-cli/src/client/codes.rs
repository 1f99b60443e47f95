//! Loading of files of fingerprints and longer sketches, and of exported documents, which are sent unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike::{Fingerprint, Scheme, Sketch};
use lookalike_batch::SkippedRow;
use lookalike_batch::fingerprints::files::FingerprintSource;
use lookalike_store::DocumentSketch;
use serde_json::{Value, json};

use super::exported::{self, ExportedLine};
use super::http::{RequestError, ServiceClient, UrlOptions, collection};
use super::output::print;
use super::record_sender::{RecordRequest, RecordSender};
use crate::arguments::LossArguments;
use crate::collection_file::CollectionFile;
use crate::failure::Failure;

/// Number of bytes of fingerprints and ids that are read at once.
const READ: u64 = 4 << 20;

#[derive(clap::Args)]
pub(super) struct LoadOptions {
    /// Name of the collection
    collection: String,

    /// Files written by `lookalike fingerprint -o` (.lkfp, .jsonl, .u64, .parquet or .lkar), or exports
    ///
    /// They hold the sketches of the collection (`fingerprint --sketch`): fingerprints of its width, super-shingles or minima. If a file has no
    /// ids, the digits of each sketch are its id. Exports are inserted unchanged.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Maximum number of documents per request
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    /// Lifetime of documents without one of their own [default: that of the collection]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Id of the scheme of the sketches, for files that do not store it
    ///
    /// A collection with another scheme is refused.
    #[arg(long, value_name = "ID")]
    scheme_id: Option<String>,

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
    /// Number of documents for each part that the collection does not store and that was dropped.
    dropped: BTreeMap<String, u64>,
    /// Number of documents whose sketch is null, which are not loaded.
    without_features: u64,
    skipped: Vec<SkippedRow>,
}

pub(super) fn load(client: &ServiceClient, arguments: &LoadOptions) -> Result<(), Failure> {
    let started = Instant::now();
    let mut counts = LoadCounts::default();
    // For standard input and pipes, which are copied there because their first line decides how they are read.
    let folder = tempfile::tempdir().map_err(|error| Failure::Failed(error.to_string()))?;
    for path in &arguments.files {
        let source = FingerprintSource::from(path.as_path());
        // Under its own name, whose ending may tell the format.
        let copy = folder.path().join(path.file_name().unwrap_or_default());
        let source = source.copy_pipe_to(copy);
        let source =
            source.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        let path = source.path();
        // Decided by its first line, because the names of both kinds end in .jsonl.
        if exported::is_export(path)? {
            load_documents(client, arguments, path, &mut counts)?;
        } else {
            load_sketches(client, arguments, path, &mut counts)?;
        }
        // A bad row of other files is reported as an error there.
        let is_lost = counts.skipped.iter().any(SkippedRow::is_loss);
        if arguments.losses.policy().is_strict() && is_lost {
            break;
        }
    }
    if !arguments.no_compact {
        // Merging continues in the background.
        client.json("POST", &collection(&arguments.collection, "/compact"), None)?;
    }
    let mut summary = json!({
        "loaded": counts.loaded, "replaced": counts.replaced,
        "without_features": counts.without_features, "skipped": counts.skipped,
        "seconds": started.elapsed().as_secs_f64(),
    });
    if !counts.dropped.is_empty() {
        summary["dropped"] = json!(counts.dropped);
    }
    print(&summary)?;
    let losses = arguments.losses.policy();
    // After the summary, which says what has been loaded even if the command fails for its losses.
    losses.check(&counts.skipped, counts.loaded)?;
    arguments.losses.end(&counts.skipped)
}

/// Returns the options of requests. The scheme is that of the file unless the user specified one.
fn request_options(arguments: &LoadOptions, of_file: Option<String>) -> String {
    let options = UrlOptions::default().with("scheme", arguments.scheme_id.clone().or(of_file));
    options.with("ttl_seconds", arguments.ttl).0
}

/// Returns the sketch of a collection. If this program cannot parse the scheme, the service decides.
fn sketch_of(client: &ServiceClient, name: &str) -> Result<Sketch, Failure> {
    let shown = client.json("GET", &collection(name, ""), None)?;
    let scheme = shown["scheme"].as_str().and_then(|text| text.parse().ok());
    Ok(scheme.map_or(Sketch::Simhash, |scheme: Scheme| scheme.sketch))
}

fn load_sketches(
    client: &ServiceClient,
    arguments: &LoadOptions,
    path: &Path,
    counts: &mut LoadCounts,
) -> Result<(), Failure> {
    let sketch = sketch_of(client, &arguments.collection)?;
    // In strict mode the first bad row stops the load. A limit on their number is checked at the end, when documents have already been sent, but
    // loading them again does no harm.
    let strict = arguments.losses.policy().is_strict();
    let mut file = CollectionFile::open(path, sketch, strict)?;
    let question = request_options(arguments, file.scheme().map(|id| id.to_string()));
    let request = LoadRequest {
        client,
        path: collection(&arguments.collection, &format!("/insert{question}")),
        file: path,
        counts,
    };
    let mut sender = RecordSender::new(request, arguments.batch, strict);
    let mut more = true;
    while more && !sender.is_finished() {
        // The last call may return rows too, so they are sent before its answer ends the loop.
        more = file.read(READ)?;
        for document in file.documents()? {
            let bytes = document.0.len() + written_bytes(&document.1);
            sender.push(document, bytes)?;
        }
    }
    sender.send()?;
    let refused = sender.finish()?;
    let (without, skipped) = file.left_out();
    counts.without_features += without;
    counts.skipped.extend(skipped);
    counts.skipped.extend(refused);
    Ok(())
}

/// An id and its sketch.
type SentSketch = (String, DocumentSketch);

/// A request that loads the documents of a file, and counts them.
struct LoadRequest<'a> {
    client: &'a ServiceClient,
    path: String,
    file: &'a Path,
    counts: &'a mut LoadCounts,
}

impl RecordRequest<SentSketch> for LoadRequest<'_> {
    fn send(&mut self, batch: &[SentSketch]) -> Result<(), RequestError> {
        // The compact form saves the service from parsing JSON, but holds 64-bit fingerprints only.
        let packed: Option<Vec<Vec<u8>>> = batch.iter().map(packed).collect();
        let replaced = match packed {
            Some(items) => {
                let answers = self.client.packed(&self.path, items.concat())?;
                // One byte per item; the highest bit means that a document with this id existed.
                let replaced = answers.iter().filter(|answer| **answer & 0x80 != 0);
                replaced.count()
            }
            None => {
                let items: Vec<Value> = batch.iter().map(written).collect();
                let answers = self.client.items(&self.path, &items)?;
                let replaced = answers.iter().filter(|answer| answer["replaced"] == true);
                replaced.count()
            }
        };
        self.counts.loaded += batch.len() as u64;
        self.counts.replaced += replaced as u64;
        Ok(())
    }

    fn place(&self, (id, _): &SentSketch) -> String {
        format!("{}, id {id}", self.file.display())
    }
}

/// Encodes a 64-bit fingerprint: 8 bytes, a length of 2 bytes, both little-endian, and the id. See `docs/reference/formats.md`.
fn packed((id, sketch): &SentSketch) -> Option<Vec<u8>> {
    let DocumentSketch::Fingerprint(Fingerprint(code)) = sketch else {
        return None;
    };
    // Never more: ids of collections have fewer bytes.
    let length = u16::try_from(id.len()).ok()?;
    let parts = [
        &code.to_le_bytes()[..],
        &length.to_le_bytes(),
        id.as_bytes(),
    ];
    Some(parts.concat())
}

fn written((id, sketch): &SentSketch) -> Value {
    let (field, digits) = match sketch {
        DocumentSketch::Fingerprint(Fingerprint(code)) => ("fingerprint", format!("{code:016x}")),
        DocumentSketch::Bits(code, bits) => {
            let digits = *bits as usize / 4;
            ("fingerprint", format!("{:0digits$x}", code.0))
        }
        DocumentSketch::SuperShingles(values) => {
            let digits = values.iter().map(|value| format!("{value:016x}"));
            ("super_shingles", digits.collect())
        }
        DocumentSketch::Minima(values) => {
            let digits = values.iter().map(|value| format!("{value:08x}"));
            ("signature", digits.collect())
        }
    };
    json!({"id": id, field: digits})
}

/// Returns the approximate size of a sketch in a request, in bytes.
fn written_bytes(sketch: &DocumentSketch) -> usize {
    match sketch {
        DocumentSketch::Fingerprint(_) => 16,
        DocumentSketch::Bits(_, bits) => *bits as usize / 4,
        DocumentSketch::SuperShingles(values) => 16 * values.len(),
        DocumentSketch::Minima(values) => 8 * values.len(),
    }
}

fn load_documents(
    client: &ServiceClient,
    arguments: &LoadOptions,
    file: &Path,
    counts: &mut LoadCounts,
) -> Result<(), Failure> {
    let question = request_options(arguments, None);
    let request = LoadRequest {
        client,
        path: collection(&arguments.collection, &format!("/load{question}")),
        file,
        counts,
    };
    let strict = arguments.losses.policy().is_strict();
    let mut sender = RecordSender::new(request, arguments.batch, strict);
    exported::send_lines(file, &mut sender)?;
    let refused = sender.finish()?;
    counts.skipped.extend(refused);
    Ok(())
}

impl RecordRequest<ExportedLine> for LoadRequest<'_> {
    fn send(&mut self, lines: &[ExportedLine]) -> Result<(), RequestError> {
        let documents = exported::array(lines);
        for answer in self
            .client
            .written_items(&self.path, documents, lines.len())?
        {
            self.counts.loaded += 1;
            self.counts.replaced += u64::from(answer["replaced"] == true);
            for part in answer["dropped"].as_array().into_iter().flatten() {
                let part = part.as_str().unwrap_or_default().to_owned();
                *self.counts.dropped.entry(part).or_default() += 1;
            }
        }
        Ok(())
    }

    fn place(&self, line: &ExportedLine) -> String {
        format!("{}, line {}", self.file.display(), line.number)
    }

    /// Adds the lines concerned.
    fn failed(&self, failure: Failure, lines: &[ExportedLine], _: u64) -> Failure {
        match (failure, lines.first(), lines.last()) {
            (Failure::Failed(what), Some(first), Some(last)) => {
                let (shown, first, last) = (self.file.display(), first.number, last.number);
                Failure::Failed(format!("{shown}: lines {first} to {last}: {what}"))
            }
            (other, ..) => other,
        }
    }
}

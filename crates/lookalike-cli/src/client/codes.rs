//! Files of fingerprints and longer sketches, and of exported documents, which are sent as they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike::{Fingerprint, Scheme, Sketch};
use lookalike_batch::SkippedRow;
use lookalike_store::DocumentSketch;
use serde_json::{Value, json};

use super::exported;
use super::http::{ServiceClient, collection, escaped};
use super::output::print;
use super::record_sender::RecordSender;
use crate::arguments::LossArguments;
use crate::collection_file::CollectionFile;
use crate::failure::Failure;

/// Bytes of sketches of a request in JSON, unless one has more.
const SENT: usize = 2 << 20;
/// Bytes of fingerprints and ids that are read at once.
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
            load_sketches(client, arguments, path, &mut counts)?;
        }
        // A bad row of other files is an error there.
        let is_lost = counts.skipped.iter().any(SkippedRow::is_loss);
        if arguments.losses.policy().is_strict() && is_lost {
            break;
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

/// The sketches that a collection holds. A scheme that this program cannot read is the business of the service.
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
    // Strict stops at the first bad row. A limit on their number is checked at the end, when documents are sent
    // already: they can be loaded again without harm.
    let strict = arguments.losses.policy().is_strict();
    let mut file = CollectionFile::open(path, sketch, strict)?;
    let question = question(arguments, file.scheme().map(|id| id.to_string()));
    let path = collection(&arguments.collection, &format!("/insert{question}"));
    let mut batch = SketchBatch {
        client,
        path,
        most: arguments.batch as usize,
        counts,
        packed: Vec::new(),
        items: Vec::new(),
        bytes: 0,
        documents: 0,
    };
    let mut more = true;
    while more {
        more = file.read(READ)?;
        for (id, sketch) in file.documents()? {
            batch.push(&id, &sketch)?;
        }
    }
    batch.send()?;
    counts.skipped.extend(file.skipped());
    Ok(())
}

/// Documents of one request: 64-bit fingerprints in the compact form, other sketches as JSON.
struct SketchBatch<'a> {
    client: &'a ServiceClient,
    path: String,
    most: usize,
    counts: &'a mut LoadCounts,
    packed: Vec<u8>,
    items: Vec<Value>,
    bytes: usize,
    documents: usize,
}

impl SketchBatch<'_> {
    fn push(&mut self, id: &str, sketch: &DocumentSketch) -> Result<(), Failure> {
        if self.documents == self.most || self.bytes > SENT {
            self.send()?;
        }
        match sketch {
            DocumentSketch::Fingerprint(code) => self.pack(id, *code)?,
            DocumentSketch::Bits(code, bits) => {
                let digits = *bits as usize / 4;
                self.add(id, "fingerprint", format!("{:0digits$x}", code.0));
            }
            DocumentSketch::SuperShingles(values) => {
                let digits = values.iter().map(|value| format!("{value:016x}"));
                self.add(id, "super_shingles", digits.collect());
            }
            DocumentSketch::Minima(values) => {
                let digits = values.iter().map(|value| format!("{value:08x}"));
                self.add(id, "signature", digits.collect());
            }
        }
        self.documents += 1;
        Ok(())
    }

    /// Adds 8 bytes of fingerprint, 2 of length, both little-endian, and the id. See `docs/reference/formats.md`.
    fn pack(&mut self, id: &str, Fingerprint(code): Fingerprint) -> Result<(), Failure> {
        let length = u16::try_from(id.len()).map_err(|_| {
            Failure::Failed(format!(
                "an id of {} bytes is too long for a collection",
                id.len()
            ))
        })?;
        self.packed.extend(code.to_le_bytes());
        self.packed.extend(length.to_le_bytes());
        self.packed.extend(id.as_bytes());
        Ok(())
    }

    fn add(&mut self, id: &str, field: &str, digits: String) {
        self.bytes += id.len() + digits.len();
        self.items.push(json!({"id": id, field: digits}));
    }

    fn send(&mut self) -> Result<(), Failure> {
        let (loaded, replaced) = if self.documents == 0 {
            (0, 0)
        } else if self.items.is_empty() {
            let body = std::mem::take(&mut self.packed);
            let answers = self.client.packed(&self.path, body)?;
            // A byte an item; the highest bit says that a document of this id was there.
            let replaced = answers.iter().filter(|answer| **answer & 0x80 != 0);
            (answers.len(), replaced.count())
        } else {
            let items = std::mem::take(&mut self.items);
            let answers = self.client.items(&self.path, &items)?;
            let replaced = answers.iter().filter(|answer| answer["replaced"] == true);
            (answers.len(), replaced.count())
        };
        self.counts.loaded += loaded as u64;
        self.counts.replaced += replaced as u64;
        (self.bytes, self.documents) = (0, 0);
        Ok(())
    }
}

fn load_documents(
    client: &ServiceClient,
    arguments: &LoadOptions,
    file: &Path,
    counts: &mut LoadCounts,
) -> Result<(), Failure> {
    let question = question(arguments, None);
    let path = collection(&arguments.collection, &format!("/load{question}"));
    let mut sender = RecordSender::new(arguments.losses.policy().is_strict());
    let most = arguments.batch as usize;
    exported::send_lines(file, most, &mut sender, &mut |lines| {
        for answer in client.written_items(&path, exported::array(lines), lines.len())? {
            counts.loaded += 1;
            counts.replaced += u64::from(answer["replaced"] == true);
            for part in answer["dropped"].as_array().into_iter().flatten() {
                let part = part.as_str().unwrap_or_default().to_owned();
                *counts.dropped.entry(part).or_default() += 1;
            }
        }
        Ok(())
    })?;
    counts.skipped.extend(sender.finish()?);
    Ok(())
}

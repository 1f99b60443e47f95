//! `lookalike store`: checks, copies, salvages or fills a data directory that no service has open.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Subcommand;
use lookalike::{Fingerprint, Scheme, Sketch};
use lookalike_batch::fingerprints::files::{CodeFile, FingerprintFile, FingerprintName};
use lookalike_server::default_scheme;
use lookalike_store::fs::{FileSystem, RealFs};
use lookalike_store::{
    Collection, CollectionSettings, SketchForm, Store, StoreError, StoreOptions, StoreTuning,
    StoredDocument, StoredScheme, UnixMillis, WriteOp, info, restore, salvage, verify,
};
use serde_json::json;

use crate::arguments::LossArguments;
use crate::console;
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Stop the service first: these commands need exclusive access to the directory. For a
snapshot of a running service, use `lookalike client snapshot NAME`.

Examples:
  lookalike store verify store                     check every byte of all files
  lookalike store info store                       show the identity and the collections
  lookalike store snapshot store monday            copy, by hard links where possible
  lookalike store restore monday new-store         check the snapshot, make a store from it
  lookalike store salvage broken-store new-store   copy everything that can still be read
  lookalike store load store pages crawl.lkfp      insert fingerprints from files")]
pub(crate) struct StoreArguments {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// Check every byte and the consistency of all files
    Verify {
        /// Data directory
        data: PathBuf,
    },
    /// Show the identity of the store, for `serve --store-id`, and its collections
    Info {
        /// Data directory
        data: PathBuf,
    },
    /// Copy all collections into a new directory, with a list of checksums
    Snapshot {
        /// Data directory
        data: PathBuf,
        /// A new directory
        target: PathBuf,
    },
    /// Check every byte of a snapshot, then make a data directory from it
    Restore {
        /// The snapshot
        snapshot: PathBuf,
        /// A new directory
        target: PathBuf,
    },
    /// Copy everything readable from a damaged directory into a new one
    Salvage {
        /// Damaged data directory; it is not changed
        data: PathBuf,
        /// A new directory
        target: PathBuf,
    },
    /// Insert fingerprints from files, under their ids; create the collection if it does not exist
    Load(Box<LoadArguments>),
}

#[derive(clap::Args)]
struct LoadArguments {
    /// Data directory; created if missing
    data: PathBuf,

    /// Name of the collection
    collection: String,

    /// Files written by `lookalike fingerprint -o`: .lkfp, .jsonl, .u64, .parquet or .lkar
    ///
    /// If a file has no ids, the digits of each fingerprint are its id.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Maximum distance of queries, in bits, if the collection is created [default: 3]
    #[arg(long, value_name = "BITS")]
    radius: Option<u32>,

    /// Full text of the scheme of the fingerprints, if the collection is created [default: that of `lookalike fingerprint`]
    #[arg(long, value_name = "TEXT")]
    scheme: Option<Scheme>,

    /// Lifetime of the documents [default: that of the collection]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    ttl: Option<u64>,

    #[command(flatten)]
    losses: LossArguments,

    /// Do not merge all documents into one run at the end, because more files will follow
    #[arg(long)]
    no_compact: bool,
}

/// Documents that are written at once.
const BATCH: usize = 4096;
/// Documents in memory before they become a run: four times as many as in a service, since nobody asks for anything meanwhile.
const IN_MEMORY: usize = 1 << 20;
/// Runs that are merged into one: so many that each document of a hundred million is written three times, the last compaction
/// included.
const FAN_OUT: usize = 16;
/// Bytes of fingerprints and ids that are read at once.
const READ: u64 = 16 << 20;

fn failed(error: StoreError) -> Failure {
    Failure::Failed(error.to_string())
}

pub(crate) fn run(arguments: &StoreArguments) -> Result<(), Failure> {
    match &arguments.command {
        StoreCommand::Verify { data } => verify_all(data),
        StoreCommand::Info { data } => {
            let info = info(&RealFs::default(), data).map_err(failed)?;
            say(&json!({"identity": info.identity.to_string(), "collections": info.collections}))
        }
        StoreCommand::Snapshot { data, target } => {
            let store = Store::open(data, StoreOptions::default()).map_err(failed)?;
            let made = store.snapshot(target).map_err(failed)?;
            store.close().map_err(failed)?;
            say(&json!({"collections": made.collections, "files": made.files, "bytes": made.bytes}))
        }
        StoreCommand::Restore { snapshot, target } => {
            let made = restore(&RealFs::default(), snapshot, target).map_err(failed)?;
            say(&json!({"collections": made.collections, "files": made.files, "bytes": made.bytes}))
        }
        StoreCommand::Salvage { data, target } => salvage_all(data, target),
        StoreCommand::Load(arguments) => load(arguments),
    }
}

fn say(summary: &serde_json::Value) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{summary}")?)
}

fn verify_all(data: &Path) -> Result<(), Failure> {
    let found = verify(&RealFs::default(), data).map_err(failed)?;
    let (mut damaged, mut torn) = (0, 0);
    for (name, found) in &found {
        let line = match found {
            Ok(recovery) => {
                // The last bytes of a log, without a valid sum: a write that was cut off before it was
                // acknowledged.
                torn += u64::from(recovery.torn_bytes > 0);
                json!({
                    "collection": name, "state": if recovery.torn_bytes > 0 { "torn" } else { "whole" },
                    "clean": recovery.clean, "torn_bytes": recovery.torn_bytes,
                })
            }
            Err(error) => {
                damaged += 1;
                json!({"collection": name, "state": "damaged", "reason": error.to_string()})
            }
        };
        say(&line)?;
    }
    if torn > 0 {
        console::warning(&format!(
            "{torn} of {} collections end with a write that a crash interrupted; it was never acknowledged, and the next start drops it",
            found.len()
        ));
    }
    if damaged == 0 {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{damaged} of {} collections are damaged: restore a snapshot, or copy what is readable with `lookalike store salvage`",
        found.len()
    )))
}

fn salvage_all(data: &Path, target: &Path) -> Result<(), Failure> {
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs::default());
    let saved = salvage(&fs, data, target, StoreOptions::default()).map_err(failed)?;
    let lost: Vec<String> = saved.lost.iter().map(ToString::to_string).collect();
    say(&json!({"changes_saved": saved.saved, "lost": lost}))?;
    match lost.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Incomplete(format!(
            "done, but {} could not be read, for example {first}; status 3",
            console::counted(lost.len() as u64, "part")
        ))),
    }
}

/// Files of fingerprints have 64 bits.
fn ensure_width(scheme: &Scheme) -> Result<(), Failure> {
    if scheme.sketch == Sketch::Simhash {
        return Ok(());
    }
    let sketch = scheme.sketch;
    Err(Failure::Usage(format!(
        "--scheme: what is loaded are 64-bit fingerprints (sketch=simhash:64), not {sketch}; the low half of simhash:128 equals \
         simhash:64 of the same text, and other sketches come into a collection by the service: `lookalike client insert`"
    )))
}

impl LoadArguments {
    /// Refuses settings that the collection, which is there already, does not have.
    fn check_settings(&self, collection: &Collection) -> Result<(), Failure> {
        let own = collection.settings();
        let refused = |option: &str, why: String| {
            Err(Failure::Usage(format!(
                "{option} has no effect here: the collection {} already exists, {why}; leave it out, or load into a new collection",
                self.collection
            )))
        };
        if own.sketch_form() != SketchForm::Fingerprint {
            return Err(Failure::Usage(format!(
                "the collection {} holds no fingerprints: insert the documents with `lookalike client insert`, or load into another \
                 collection",
                self.collection
            )));
        }
        if self.radius.is_some_and(|radius| radius != own.radius) {
            return refused("--radius", format!("with radius {}", own.radius));
        }
        if !own.pairs.is_open() {
            return Err(Failure::Usage(format!(
                "the collection {} compares categories or lengths of texts, which fingerprints do not have: insert the documents, or \
                 load into another collection",
                self.collection
            )));
        }
        let scheme = self.scheme.as_ref().map(StoredScheme::from);
        match scheme.filter(|scheme| *scheme != own.scheme) {
            Some(scheme) => refused(
                "--scheme",
                format!("with another scheme: {}", own.scheme.differences(&scheme)),
            ),
            None => Ok(()),
        }
    }
}

fn load(arguments: &LoadArguments) -> Result<(), Failure> {
    arguments.scheme.as_ref().map_or(Ok(()), ensure_width)?;
    let tuning = StoreTuning::default()
        .memory_documents(IN_MEMORY)
        // 512 bytes for each of them.
        .memory_bytes(512 << 20)
        .fan_out(FAN_OUT);
    let options = StoreOptions::default().create(true).tuning(tuning);
    let store = Store::open(&arguments.data, options).map_err(failed)?;
    let name = arguments.collection.as_str();
    let collection = match store.collection(name) {
        Err(StoreError::NoCollection(_)) => {
            let scheme = default_scheme();
            let mut settings =
                CollectionSettings::new(arguments.scheme.as_ref().unwrap_or(&scheme));
            settings.radius = arguments.radius.unwrap_or(settings.radius);
            store.create_collection(name, &settings).map_err(failed)?
        }
        found => {
            let collection = found.map_err(failed)?;
            arguments.check_settings(&collection)?;
            collection
        }
    };
    let started = Instant::now();
    let (mut loaded, mut replaced, mut skipped) = (0_u64, 0_u64, Vec::new());
    for path in &arguments.files {
        let refused = |error| Failure::Failed(format!("{}: {error}", path.display()));
        let mut file = CodeFile::open(
            &path.as_path().into(),
            arguments.losses.policy().is_strict(),
        )
        .map_err(|error| Failure::Failed(error.to_string()))?;
        if let Some(scheme) = file.scheme() {
            collection.ensure_scheme_id(scheme).map_err(refused)?;
        }
        let mut codes = FingerprintFile::<u64>::default();
        let mut more = true;
        while more {
            codes.clear();
            more = file
                .fill(&mut codes, READ)
                .map_err(|error| Failure::Failed(error.to_string()))?;
            // From now, for each piece that is read: loading may take hours, and documents live as long as is
            // said from when they are there.
            let expires = arguments
                .ttl
                .map(|seconds| now().after(Duration::from_secs(seconds)));
            for documents in batches(&codes, expires) {
                loaded += documents.len() as u64;
                let outcomes = collection.write(documents, now(), 0).map_err(failed)?;
                let again = |outcome: &&_| {
                    matches!(
                        outcome,
                        lookalike_store::WriteOutcome::Inserted { replaced: true }
                    )
                };
                replaced += outcomes.iter().filter(again).count() as u64;
            }
        }
        skipped.extend(file.summary().skipped);
    }
    let too_many_losses = arguments.losses.policy().check(&skipped, loaded);
    let filled = started.elapsed().as_secs_f64();
    if arguments.no_compact {
        // What is in memory becomes a run, so that the next start reads no long log.
        collection.flush().map_err(failed)?;
    } else {
        collection.compact().map_err(failed)?;
    }
    let stats = collection.stats();
    let (documents, runs) = (stats.documents, stats.runs.len());
    drop(collection);
    store.close().map_err(failed)?;
    say(&json!({
        "loaded": loaded, "replaced": replaced, "documents": documents, "skipped": skipped,
        "runs": runs, "filled_after_seconds": filled, "seconds": started.elapsed().as_secs_f64(),
    }))?;
    // After the store is closed and the summary is printed: what was loaded stays loaded.
    too_many_losses?;
    arguments.losses.end(&skipped)
}

/// Inserts of some fingerprints, by batches, with one end for all.
fn batches(
    codes: &FingerprintFile,
    expires: Option<UnixMillis>,
) -> impl Iterator<Item = Vec<WriteOp>> + '_ {
    let all = codes.codes.chunks(BATCH).enumerate();
    all.map(move |(batch, chunk)| {
        let one = move |(at, &code): (usize, &u64)| {
            let id = id_of(codes.ids.name(batch * BATCH + at, code));
            WriteOp::Insert(StoredDocument {
                expires,
                ..StoredDocument::new(id, Fingerprint(code))
            })
        };
        chunk.iter().enumerate().map(one).collect()
    })
}

/// Name of a fingerprint in a collection.
pub(crate) fn id_of(name: FingerprintName<'_>) -> String {
    match name {
        FingerprintName::Fingerprint(code) => code.to_string(),
        FingerprintName::Number(number) => number.to_string(),
        FingerprintName::Text(text) => text.to_owned(),
    }
}

/// The wall clock.
pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixMillis(since.map_or(0, |since| since.as_millis() as u64))
}

//! `lookalike store`: checks, copies, salvages or fills a data directory that is not open in a service.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use clap::Subcommand;
use lookalike::{Scheme, Sketch};
use lookalike_batch::SkippedRow;
use lookalike_batch::fingerprints::files::SketchShape;
use lookalike_batch::fingerprints::sketches::MinEqual;
use lookalike_server::{GuardedClock, default_scheme};
use lookalike_store::{
    Collection, CollectionSettings, ContentKey, Store, StoreError, StoreOptions, StoreTuning,
    StoredDocument, StoredScheme, UnixMillis, WriteOp, WriteOutcome, info, restore, salvage,
    verify,
};
use serde_json::json;

use crate::arguments::LossArguments;
use crate::client::exported::is_export;
use crate::client::output::print;
use crate::client::sketches::SketchSettings;
use crate::collection_file::CollectionFile;
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
  lookalike store load store pages crawl.lkfp      insert sketches from files
  lookalike store load store pages crawl.lkfp --sketch super-shingle:6x14 --equal 2")]
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
    /// Insert fingerprints or other sketches from files, under their ids; create the collection if it does not exist
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
    /// They hold the sketches of the collection: fingerprints of its width, super-shingles or minima. If a file has no ids, the digits of each
    /// sketch are its id.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Maximum distance of queries, in bits, if the collection is created [default: 3]
    #[arg(long, value_name = "BITS")]
    radius: Option<u32>,

    /// Full text of the scheme of the sketches, if the collection is created [default: that of `lookalike fingerprint`]
    #[arg(long, value_name = "TEXT")]
    scheme: Option<Scheme>,

    #[command(flatten)]
    sketches: SketchSettings,

    /// Lifetime of the documents [default: that of the collection]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    ttl: Option<u64>,

    #[command(flatten)]
    losses: LossArguments,

    /// Do not merge all documents into one run at the end, because more files will follow
    #[arg(long)]
    no_compact: bool,
}

/// Number of documents that are written at once.
const BATCH: usize = 4096;
/// Number of documents in memory before they become a run: four times as many as in a service, because there are no requests meanwhile.
const IN_MEMORY: usize = 1 << 20;
/// Number of runs that are merged into one: with this, each document of a hundred million is written three times, including the last compaction.
const FAN_OUT: usize = 16;
/// Number of bytes of fingerprints and ids that are read at once.
const READ: u64 = 16 << 20;

pub(crate) fn failed(error: StoreError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Returns the absolute path of a folder that may not exist yet.
fn resolved(folder: &Path) -> Option<PathBuf> {
    let existing = folder.ancestors().find(|folder| folder.exists());
    // A relative path has no existing part if its first folder is missing.
    let existing = existing.unwrap_or(Path::new("."));
    let missing = folder.strip_prefix(existing).unwrap_or(folder);
    // The code that uses the path reports errors.
    let mut place = existing.canonicalize().ok()?;
    if !missing
        .components()
        .any(|part| part == Component::ParentDir)
    {
        return Some(place.join(missing));
    }
    // `..` leads back from folders that will be made, perhaps to some that exist.
    for part in missing.components() {
        match part {
            Component::ParentDir => {
                place.pop();
            }
            other => place.push(other),
        }
    }
    resolved(&place)
}

/// Refuses a snapshot within the data directory, where a collection with its name would replace its files.
pub(crate) fn refuse_within(data: &Path, target: &Path) -> Result<(), Failure> {
    let places = resolved(target).zip(resolved(data));
    match places.is_some_and(|(target, data)| target.starts_with(data)) {
        true => Err(Failure::Usage(format!(
            "{}: is within the data directory {}: choose a directory outside of it",
            target.display(),
            data.display()
        ))),
        false => Ok(()),
    }
}

/// Refuses a new store within another one, where a collection with its name would replace its files.
pub(crate) fn refuse_nested(data: &Path) -> Result<(), Failure> {
    if info(data).is_ok() {
        return Ok(());
    }
    let place = resolved(data).unwrap_or_default();
    let outer = place.ancestors().skip(1).find(|outer| info(outer).is_ok());
    match outer {
        Some(outer) => Err(Failure::Usage(format!(
            "{}: is within the store {}: choose a directory outside of it",
            data.display(),
            outer.display()
        ))),
        None => Ok(()),
    }
}

pub(crate) fn run(arguments: &StoreArguments) -> Result<(), Failure> {
    match &arguments.command {
        StoreCommand::Verify { data } => verify_all(data),
        StoreCommand::Info { data } => {
            let info = info(data).map_err(failed)?;
            print(&json!({"identity": info.identity.to_string(), "collections": info.collections}))
        }
        StoreCommand::Snapshot { data, target } => {
            refuse_within(data, target)?;
            let store = Store::open(data, StoreOptions::default()).map_err(failed)?;
            let made = store.snapshot(target).map_err(failed)?;
            store.close().map_err(failed)?;
            print(
                &json!({"collections": made.collections, "files": made.files, "bytes": made.bytes}),
            )
        }
        StoreCommand::Restore { snapshot, target } => {
            refuse_nested(target)?;
            let made = restore(snapshot, target).map_err(failed)?;
            print(
                &json!({"collections": made.collections, "files": made.files, "bytes": made.bytes}),
            )
        }
        StoreCommand::Salvage { data, target } => salvage_all(data, target),
        StoreCommand::Load(arguments) => load(arguments),
    }
}

fn verify_all(data: &Path) -> Result<(), Failure> {
    let found = verify(data).map_err(failed)?;
    let (mut damaged, mut foreign, mut torn) = (0, 0, 0);
    for (name, found) in &found {
        let line = match found {
            Ok(recovery) => {
                // The last bytes of a log, without a valid checksum, are a write that was cut off before it was acknowledged.
                torn += u64::from(recovery.torn_bytes > 0);
                json!({
                    "collection": name, "state": if recovery.torn_bytes > 0 { "torn" } else { "whole" },
                    "clean": recovery.clean, "torn_bytes": recovery.torn_bytes,
                })
            }
            Err(error) => {
                damaged += 1;
                // Another version can read these, so salvaging them would be the wrong advice.
                foreign += u64::from(matches!(error, StoreError::Version { .. }));
                json!({"collection": name, "state": "damaged", "reason": error.to_string()})
            }
        };
        print(&line)?;
    }
    if torn > 0 {
        console::warning(&format!(
            "a crash interrupted the last write to {} of {}; it was never acknowledged, and the next start drops it",
            console::counted(torn, "collection"),
            found.len()
        ));
    }
    if damaged == 0 {
        return Ok(());
    }
    let remedy = if foreign == damaged {
        "of a version that this program does not read: use the command that wrote the data"
    } else {
        "damaged: restore a snapshot, or copy what is readable with `lookalike store salvage`"
    };
    Err(Failure::Failed(format!(
        "{} of {} {} {remedy}",
        console::counted(damaged, "collection"),
        found.len(),
        if damaged == 1 { "is" } else { "are" }
    )))
}

fn salvage_all(data: &Path, target: &Path) -> Result<(), Failure> {
    refuse_nested(target)?;
    let saved = salvage(data, target, StoreOptions::default()).map_err(failed)?;
    let lost: Vec<String> = saved.lost.iter().map(ToString::to_string).collect();
    print(&json!({"changes_saved": saved.saved, "lost": lost}))?;
    match lost.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Incomplete(format!(
            "done, but {} could not be read, for example {first}; status 3",
            console::counted(lost.len() as u64, "part")
        ))),
    }
}

/// Refuses schemes whose sketches cannot be stored in files.
fn ensure_loadable(scheme: &Scheme) -> Result<(), Failure> {
    let sketch = scheme.sketch;
    if sketch.fingerprint_bits() > 0 || SketchShape::of(sketch).is_some() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--scheme: no file holds {sketch}: use simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N"
    )))
}

impl LoadArguments {
    /// Refuses settings that differ from those of an existing collection.
    fn check_settings(&self, collection: &Collection) -> Result<(), Failure> {
        let own = collection.settings();
        let refused = |option: &str, why: String| {
            Err(Failure::Usage(format!(
                "{option} has no effect here: the collection {} already exists, {why}; leave it out, or load into a new collection",
                self.collection
            )))
        };
        if self.radius.is_some_and(|radius| radius != own.radius) {
            return refused("--radius", format!("with radius {}", own.radius));
        }
        if !own.pairs.is_open() {
            return Err(Failure::Usage(format!(
                "the collection {} compares categories or lengths of texts, which sketches do not have: insert the documents, or \
                 load into another collection",
                self.collection
            )));
        }
        if let Some(equal) = self.sketches.equal {
            let radius = self.radius_of(own.scheme.text().parse().ok(), equal)?;
            if radius != own.radius {
                let why = match own.sketch_form().places() {
                    Some(places) => format!("for at least {} equal", places as u32 - own.radius),
                    None => format!("with radius {}", own.radius),
                };
                return refused("--equal", why);
            }
        }
        // Then only the files must fit the collection, which is checked for each.
        if self.scheme.is_none() && !self.sketches.change_scheme() {
            return Ok(());
        }
        let base = self.scheme.or_else(|| own.scheme.text().parse().ok());
        let base = base.unwrap_or_else(default_scheme);
        let named = StoredScheme::from(&self.sketches.scheme(base));
        match named == own.scheme {
            true => Ok(()),
            false => refused(
                match (self.scheme, self.sketches.shingle) {
                    (Some(_), _) => "--scheme",
                    (None, Some(_)) => "--shingle",
                    (None, None) => "--sketch",
                },
                format!("with another scheme: {}", own.scheme.differences(&named)),
            ),
        }
    }

    /// Returns the scheme for a new collection.
    fn scheme(&self) -> Scheme {
        let scheme = self.scheme;
        self.sketches.scheme(scheme.unwrap_or_else(default_scheme))
    }

    /// Converts a minimum number of equal places to the number of places that may differ.
    fn radius_of(&self, scheme: Option<Scheme>, equal: MinEqual) -> Result<u32, Failure> {
        let shape = scheme.and_then(|scheme| SketchShape::of(scheme.sketch));
        let shape = shape.ok_or_else(|| {
            Failure::Usage(format!(
                "--equal: the collection {} holds fingerprints: use --radius, or name super-shingles or minima with --sketch",
                self.collection
            ))
        })?;
        let least = equal.places(shape);
        let least = least.map_err(|error| Failure::Usage(format!("--equal: {error}")))?;
        Ok((shape.places - least) as u32)
    }

    /// Refuses files with another scheme before a collection is created for them.
    fn ensure_files(&self, scheme: &Scheme) -> Result<(), Failure> {
        // Opening a pipe would read from it.
        for path in self.files.iter().filter(|path| path.is_file()) {
            let file = CollectionFile::open(path, scheme.sketch, false)?;
            let other = file.scheme().filter(|found| *found != scheme.id());
            if let Some(found) = other {
                return Err(Failure::Usage(format!(
                    "{}: of scheme {found}, and the collection {} would have {} ({scheme}): name the scheme of the file with --scheme, --shingle or --sketch",
                    path.display(),
                    self.collection,
                    scheme.id()
                )));
            }
        }
        Ok(())
    }

    /// Returns the settings for a new collection.
    fn settings(&self) -> Result<CollectionSettings, Failure> {
        let scheme = self.scheme();
        ensure_loadable(&scheme)?;
        let mut settings = CollectionSettings::new(&scheme);
        match (self.sketches.equal, settings.sketch_form().places()) {
            (Some(equal), _) => settings.radius = self.radius_of(Some(scheme), equal)?,
            (None, Some(_)) => {
                return Err(Failure::Usage(format!(
                    "{} would be a collection of {}: say how many of them near-duplicates have in common with --equal NUMBER",
                    self.collection, scheme.sketch
                )));
            }
            (None, None) => settings.radius = self.radius.unwrap_or(settings.radius),
        }
        Ok(settings)
    }
}

fn load(arguments: &LoadArguments) -> Result<(), Failure> {
    ensure_loadable(&arguments.scheme())?;
    refuse_nested(&arguments.data)?;
    // Before a store or a collection is created for them.
    refuse_exports(&arguments.files)?;
    let tuning = StoreTuning::default()
        .memory_documents(IN_MEMORY)
        // 512 bytes for each of them.
        .memory_bytes(512 << 20)
        .fan_out(FAN_OUT);
    let options = StoreOptions::default().create(true).tuning(tuning);
    let store = Store::open(&arguments.data, options).map_err(failed)?;
    let collection = arguments.collection_of(&store)?;
    // Of all collections, as when a service starts its clock.
    let last = store.collections().into_iter();
    let last = last.filter_map(|(_, opened)| Some(opened.ok()?.stats().time));
    let last = last.max().unwrap_or_default();
    // Asked for each batch: loading may take hours, and a clock that jumps must not decide what expires.
    let clock = GuardedClock::new(Arc::new(now), last, false);
    let started = Instant::now();
    let LoadedCounts {
        loaded,
        replaced,
        without_features,
        skipped,
    } = arguments.load_files(&collection, &clock)?;
    let too_many_losses = arguments.losses.policy().check(&skipped, loaded);
    let filled = started.elapsed().as_secs_f64();
    if arguments.no_compact {
        // Documents in memory become a run, so that the next start need not read a long log.
        collection.flush().map_err(failed)?;
    } else {
        collection.compact().map_err(failed)?;
    }
    let stats = collection.stats();
    let (documents, runs) = (stats.documents, stats.runs.len());
    store.close().map_err(failed)?;
    print(&json!({
        "loaded": loaded, "replaced": replaced, "documents": documents,
        "without_features": without_features, "skipped": skipped,
        "runs": runs, "filled_after_seconds": filled, "seconds": started.elapsed().as_secs_f64(),
    }))?;
    // After the store is closed and the summary is printed, because loaded documents stay.
    too_many_losses?;
    arguments.losses.end(&skipped)
}

/// Refuses missing files, and exports of a service, whose documents have more than sketches.
fn refuse_exports(files: &[PathBuf]) -> Result<(), Failure> {
    for path in files.iter().filter(|path| path.as_os_str() != "-") {
        let found = path.metadata();
        let found =
            found.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        // Opening a pipe would read from it.
        if found.is_file() && is_export(path)? {
            return Err(Failure::Failed(format!(
                "{}: is an export, whose documents have more than sketches: serve the data, and load it with `lookalike client load`",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Counts of documents in files that were loaded.
#[derive(Default)]
struct LoadedCounts {
    loaded: u64,
    replaced: u64,
    /// Number of documents whose sketch is null, which are not loaded.
    without_features: u64,
    skipped: Vec<SkippedRow>,
}

impl LoadArguments {
    /// Opens the collection of the store, or creates it.
    fn collection_of(&self, store: &Store) -> Result<Arc<Collection>, Failure> {
        let name = self.collection.as_str();
        match store.collection(name) {
            Err(StoreError::NoCollection(_)) => {
                let settings = self.settings()?;
                // Before the collection exists: a wrong file must not leave an empty one.
                self.ensure_files(&self.scheme())?;
                store.create_collection(name, &settings).map_err(failed)
            }
            found => {
                let collection = found.map_err(failed)?;
                self.check_settings(&collection)?;
                Ok(collection)
            }
        }
    }

    /// Inserts the documents of all files into a collection.
    fn load_files(
        &self,
        collection: &Collection,
        clock: &GuardedClock,
    ) -> Result<LoadedCounts, Failure> {
        // If this program cannot parse the scheme, a newer one created the collection, with sketches that are unknown here.
        let scheme: Option<Scheme> = collection.settings().scheme.text().parse().ok();
        let sketch = scheme.map_or(Sketch::Simhash, |scheme| scheme.sketch);
        let mut counts = LoadedCounts::default();
        for path in &self.files {
            let refused = |error| Failure::Failed(format!("{}: {error}", path.display()));
            let mut file = CollectionFile::open(path, sketch, self.losses.policy().is_strict())?;
            if let Some(scheme) = file.scheme() {
                collection.ensure_scheme_id(scheme).map_err(refused)?;
            }
            let mut more = true;
            while more {
                more = file.read(READ)?;
                // The lifetime of documents starts when they are inserted.
                let lives_from = clock.write_time().lives_from;
                let expires = self
                    .ttl
                    .map(|seconds| lives_from.after(Duration::from_secs(seconds)));
                let mut all = file.documents()?.into_iter().map(|(id, sketch)| {
                    WriteOp::Insert(StoredDocument {
                        id,
                        expires,
                        ..StoredDocument::of_content(ContentKey::from(sketch))
                    })
                });
                loop {
                    let documents: Vec<WriteOp> = all.by_ref().take(BATCH).collect();
                    if documents.is_empty() {
                        break;
                    }
                    counts.loaded += documents.len() as u64;
                    let outcomes = collection.write(documents, clock.write_time());
                    let outcomes = outcomes.map_err(failed)?;
                    let again =
                        |outcome: &&_| matches!(outcome, WriteOutcome::Inserted { replaced: true });
                    counts.replaced += outcomes.iter().filter(again).count() as u64;
                }
            }
            let (without, skipped) = file.left_out();
            counts.without_features += without;
            counts.skipped.extend(skipped);
        }
        Ok(counts)
    }
}

/// Returns the time of the wall clock.
pub(crate) fn now() -> UnixMillis {
    SystemTime::now().into()
}

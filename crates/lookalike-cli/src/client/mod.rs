//! `lookalike client`: the operations of a service, for scripts.

mod codes;
mod documents;
pub(crate) mod exported;
mod http;
mod lines;
pub(crate) mod output;
mod overlap;
mod record_sender;
mod resketch;
pub(crate) mod sketches;
mod terms;

use std::io::{Read, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use lookalike::{Preset, Scheme, Sketch};
use lookalike_server::default_scheme;
use serde_json::{Value, json};

use crate::arguments::{preset_distance, preset_name};
use crate::console;
use crate::failure::Failure;
use crate::radius_warning::{self, CheckedFeatures, RadiusUse};
use documents::{
    CheckAndInsertArguments, CheckArguments, InsertArguments, ParagraphArguments, QueryArguments,
};
use http::{RequestError, ServiceClient};
use output::{AnswerLines, print};
use sketches::SketchSettings;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lookalike client create pages --radius 3 --keep texts,paragraphs
  lookalike client create pages --shingle words:1           features for small changes
  lookalike client create pages --sketch super-shingle:6x14 --equal 2
  lookalike client check-and-insert pages crawl.jsonl       one line of JSON per document
  lookalike client query pages page.html --verify --diff
  lookalike client copies-of pages http://gone.example/1 --chunk words:8:sliding
  lookalike client load pages crawl.lkfp                    sketches from files
  lookalike client export pages > pages.jsonl               whole documents
  lookalike client load copy pages.jsonl                    the same elsewhere, unchanged
  lookalike client expire pages --ttl 3600 http://a.example/1
  lookalike client resketch pages --radius 6 --wait         while the service is in use
  lookalike client --url https://dedup.example:7280 --key-file key check pages page.html

When the service is busy, requests are retried after the delay it asks for, for up to
--retry-for, and also while a service that has answered before restarts.")]
pub(crate) struct ClientArguments {
    /// URL of the service
    #[arg(
        long,
        value_name = "URL",
        env = "LOOKALIKE_URL",
        default_value = "http://127.0.0.1:7280",
        global = true,
        help_heading = "Connection"
    )]
    url: String,

    /// File with the API key [default: the environment variable LOOKALIKE_KEY]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Connection")]
    key_file: Option<PathBuf>,

    /// Trusted certificates in PEM for https [default: those of the system]
    #[arg(
        long,
        value_name = "FILE",
        env = "LOOKALIKE_CA",
        global = true,
        help_heading = "Connection"
    )]
    ca: Option<PathBuf>,

    /// Retry requests while the service is busy or is restarted, for up to this long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = crate::serve::seconds, global = true, help_heading = "Connection")]
    retry_for: std::time::Duration,

    #[command(subcommand)]
    command: ClientCommand,
}

#[derive(Subcommand)]
enum ClientCommand {
    /// Check which documents were seen before; print only verdicts
    Check(CheckArguments),
    /// Check which documents were seen before; print verdicts and neighbours
    Query(QueryArguments),
    /// Insert documents; each replaces any with the same id
    Insert(InsertArguments),
    /// Print verdicts and insert new documents, in one step
    CheckAndInsert(CheckAndInsertArguments),
    /// Check which paragraphs were seen before, equal or similar, and what share of each page is known
    Paragraphs(ParagraphArguments),
    /// Print the documents of a list, ordered by how much is new in each
    Rerank(overlap::RerankArguments),
    /// Print the documents that share chunks with one, highest containment first
    CopiesOf(overlap::CopiesArguments),
    /// Delete documents by id
    Delete {
        /// Name of the collection
        collection: String,
        /// Ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Print documents by id, one line of JSON each; `null` for missing ones
    Get {
        /// Name of the collection
        collection: String,
        /// Ids
        #[arg(required = true)]
        ids: Vec<String>,
        /// Also print their texts, if the collection keeps them
        #[arg(long)]
        texts: bool,
    },
    /// Change the lifetime of documents
    Expire(ExpireArguments),
    /// Insert fingerprints from files, under their ids, or documents from an export, unchanged
    Load(codes::LoadOptions),
    /// Print all documents in full, one line of JSON each, as `load` reads them
    Export {
        /// Name of the collection
        collection: String,
    },
    /// Create a collection
    Create(CreateArguments),
    /// Show all collections, or one
    Show {
        /// Name of a collection
        collection: Option<String>,
    },
    /// Change the default lifetime of documents inserted from now on
    Change {
        /// Name of the collection
        collection: String,

        #[command(flatten)]
        lifetime: LifetimeArguments,
    },
    /// Delete a collection with all its documents
    Drop {
        /// Name of the collection
        collection: String,
    },
    /// Check whether the service is ready; exit with status 1 if it is not
    Ready,
    /// Merge all documents into one run in the background, to speed up checks and reclaim space
    Compact {
        /// Name of the collection
        collection: String,
    },
    /// Recompute all sketches under another scheme, sketch, table of terms or radius, from the texts that the collection keeps
    ///
    /// The job runs in the service while it is in use; the collection changes in one step at the end. If the service is killed, the
    /// collection stays as it was.
    Resketch(resketch::ResketchArguments),
    /// Make a snapshot of all collections in the service's --snapshots directory
    Snapshot {
        /// A new name: a-z, 0-9, - and _
        name: String,
    },
}

#[derive(clap::Args)]
#[command(mut_arg("ttl", |ttl| ttl.help("Lifetime of the documents from now on")))]
struct ExpireArguments {
    /// Name of the collection
    collection: String,

    /// Ids
    #[arg(required = true)]
    ids: Vec<String>,

    #[command(flatten)]
    lifetime: LifetimeArguments,
}

/// Lifetime of documents; without `ttl`, `never` is set.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct LifetimeArguments {
    /// Lifetime of documents inserted from now on
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Keep them forever
    #[arg(long)]
    never: bool,
}

#[derive(clap::Args)]
#[command(mut_arg("radius", preset_distance), next_help_heading = "Collection")]
struct CreateArguments {
    /// Name of the collection
    collection: String,

    /// Maximum distance of fingerprints in queries, in bits [default: 3]
    #[arg(long, value_name = "BITS")]
    radius: Option<u32>,

    /// Scheme and radius for collections of a kind: one-topic, pages of a focused crawl (words:3, simhash:128, radius 12)
    #[arg(long, value_name = "NAME", value_parser = preset_name(), conflicts_with_all = ["radius", "shingle", "sketch", "equal", "scheme", "terms"])]
    preset: Option<Preset>,

    #[command(flatten)]
    sketches: SketchSettings,

    /// Print no warnings
    #[arg(long, short)]
    quiet: bool,

    /// Lifetime of documents without one of their own [default: forever]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Full text of the scheme [default: that of `lookalike fingerprint`]
    #[arg(long, value_name = "TEXT")]
    scheme: Option<String>,

    /// Table made by `lookalike terms` that the scheme uses; without --scheme, its features are used, weighted by idf
    #[arg(long, value_name = "FILE")]
    terms: Option<PathBuf>,

    /// Lines to leave out of texts: a file made by `lookalike fingerprint --boilerplate-lines`
    #[arg(long = "boilerplate-lines", value_name = "FILE")]
    learned_lines: Option<PathBuf>,

    /// Parts of documents to store besides sketches and hashes of texts: texts, signatures, paragraphs
    #[arg(long, value_name = "WHAT", value_delimiter = ',', hide_possible_values = true,
        value_parser = ["texts", "signatures", "paragraphs", "text_hashes"])]
    keep: Vec<String>,

    /// End stored paragraphs at blank lines (blank) or at every line (lines) [default: auto, lines if no line is blank]
    #[arg(long, value_name = "RULE")]
    paragraphs: Option<String>,

    /// Compare only documents with the same value in a field, or of the same site
    ///
    /// The site is the host of the URL. Records without a value form a category of their own. A search can override it with
    /// `--pairs`.
    #[arg(long, value_name = "FIELD|site", conflicts_with = "across")]
    within: Option<String>,

    /// Compare only documents with different values in a field, or of different sites
    #[arg(long, value_name = "FIELD|site")]
    across: Option<String>,

    /// Second test: minimum length of the shorter text relative to the longer one, in bytes, above 0 and at most 1
    #[arg(long, value_name = "SHARE", value_parser = crate::arguments::share)]
    lengths: Option<f64>,

    /// Store no hashes of texts (16 bytes per document): verdicts are then same-fingerprint instead of exact
    #[arg(long)]
    no_text_hashes: bool,
}

pub(crate) fn run(arguments: &ClientArguments) -> Result<(), Failure> {
    let client = ServiceClient::new(
        &arguments.url,
        arguments.key_file.as_deref(),
        arguments.ca.as_deref(),
        arguments.retry_for,
    )?;
    match &arguments.command {
        ClientCommand::Check(arguments) => documents::check(&client, arguments),
        ClientCommand::Query(arguments) => documents::query(&client, arguments),
        ClientCommand::Insert(arguments) => documents::insert(&client, arguments),
        ClientCommand::CheckAndInsert(arguments) => documents::check_and_insert(&client, arguments),
        ClientCommand::Paragraphs(arguments) => documents::paragraphs(&client, arguments),
        ClientCommand::Rerank(arguments) => overlap::rerank(&client, arguments),
        ClientCommand::CopiesOf(arguments) => overlap::copies_of(&client, arguments),
        ClientCommand::Delete { collection, ids } => {
            let path = http::collection(collection, "/delete");
            print_existed(&client, &path, ids, |id| json!({"id": id}))
        }
        ClientCommand::Get {
            collection,
            ids,
            texts,
        } => get(&client, collection, ids, *texts),
        ClientCommand::Expire(arguments) => expire(&client, arguments),
        ClientCommand::Change {
            collection,
            lifetime,
        } => {
            // null means forever.
            let body = json!({"ttl_seconds": lifetime.ttl});
            print(&client.json("PATCH", &http::collection(collection, ""), Some(&body))?)
        }
        ClientCommand::Drop { collection } => {
            client.empty("DELETE", &http::collection(collection, ""))
        }
        ClientCommand::Ready => ready(&client),
        ClientCommand::Load(arguments) => codes::load(&client, arguments),
        ClientCommand::Export { collection } => export(&client, collection),
        ClientCommand::Create(arguments) => create(&client, arguments),
        ClientCommand::Show { collection } => {
            let name = collection.as_ref();
            // Without a name there must be no slash at the end, which would be another resource for the service.
            let below = name.map_or(String::new(), |name| format!("/{}", http::escaped(name)));
            print(&client.json("GET", &format!("/v1/collections{below}"), None)?)
        }
        ClientCommand::Compact { collection } => {
            print(&client.json("POST", &http::collection(collection, "/compact"), None)?)
        }
        ClientCommand::Resketch(arguments) => resketch::resketch(&client, arguments),
        ClientCommand::Snapshot { name } => {
            let body = json!({"name": name});
            // The answer comes when all files are copied.
            let client = client.without_answer_timeout();
            print(&client.json("POST", "/v1/snapshots", Some(&body))?)
        }
    }
}

fn create(client: &ServiceClient, arguments: &CreateArguments) -> Result<(), Failure> {
    let kept = arguments.keep.iter();
    let mut keep: serde_json::Map<String, Value> =
        kept.map(|part| (part.clone(), Value::Bool(true))).collect();
    if arguments.no_text_hashes {
        keep.insert("text_hashes".to_owned(), Value::Bool(false));
    }
    let mut body = json!({"keep": keep});
    terms::add_scheme_and_table(
        arguments.terms.as_deref(),
        arguments.scheme.as_deref(),
        &mut body,
    )?;
    if let Some(preset) = arguments.preset {
        body["scheme"] = preset.scheme(default_scheme()).to_string().into();
    }
    if let Some(path) = &arguments.learned_lines {
        lines::add(path, &mut body)?;
    }
    // Last, because features and sketch go into the scheme that the options above have chosen.
    arguments
        .sketches
        .add(&default_scheme().to_string(), &mut body)?;
    let given = [
        ("radius", arguments.radius.map(Value::from)),
        ("ttl_seconds", arguments.ttl.map(Value::from)),
        ("paragraphs", arguments.paragraphs.clone().map(Value::from)),
        ("within", arguments.within.clone().map(Value::from)),
        ("across", arguments.across.clone().map(Value::from)),
        ("lengths", arguments.lengths.map(Value::from)),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    let path = http::collection(&arguments.collection, "");
    let created = client.json("PUT", &path, Some(&body))?;
    if !arguments.quiet {
        warn_of_collection(&created);
    }
    print(&created)
}

/// Warns of a collection that would miss most pages in which one word was changed.
fn warn_of_collection(created: &Value) {
    let scheme = created["scheme"]
        .as_str()
        .and_then(|text| text.parse::<Scheme>().ok());
    let features = scheme.as_ref().and_then(CheckedFeatures::of);
    let radius = created["radius"]
        .as_u64()
        .and_then(|radius| u32::try_from(radius).ok());
    if let (Some(features), Some(radius)) = (features, radius) {
        radius_warning::warn(features, radius, RadiusUse::Collection);
    }
    warn_of_paragraphs(scheme.as_ref(), created);
}

/// Warns of a collection that keeps paragraphs beside sketches whose radius does not apply to them. `scheme` is its scheme, if it is known.
fn warn_of_paragraphs(scheme: Option<&Scheme>, shown: &Value) {
    let has_other_sketch = scheme.is_some_and(|scheme| scheme.sketch != Sketch::Simhash);
    if has_other_sketch && shown["keep"]["paragraphs"] == true {
        console::warning(
            "paragraphs are compared by fingerprints of 64 bits, here always up to 3 bits, which misses most paragraphs with a changed word: for \
             more, use another collection with --sketch simhash:64, --keep paragraphs and a larger --radius",
        );
    }
}

/// Requests ids in batches, smaller ones if the service accepts no more, or if their documents are too large.
fn request_in_batches(
    ids: &[String],
    mut ask: impl FnMut(&[String]) -> Result<(), RequestError>,
) -> Result<(), Failure> {
    // Requests have a limit on their items, which a command line can exceed. Reversed, because batches are popped from the end.
    let mut waiting: Vec<&[String]> = ids.chunks(100).rev().collect();
    while let Some(ids) = waiting.pop() {
        match ask(ids) {
            Err(RequestError::Refused(refusal)) if refusal.status == 413 && ids.len() > 1 => {
                let (first, rest) = ids.split_at(ids.len() / 2);
                // The first half is popped next, so answers stay in the order of the ids.
                waiting.extend([rest, first]);
            }
            done => done?,
        }
    }
    Ok(())
}

fn get(
    client: &ServiceClient,
    collection: &str,
    ids: &[String],
    texts: bool,
) -> Result<(), Failure> {
    if texts {
        // Texts are returned for one document at a time.
        let path = http::collection(collection, "/get?text=true");
        let mut shown = ids.iter().map(|id| json!({"id": id}));
        return shown.try_for_each(|item| print(&client.json_if_there(&path, &item)?));
    }
    let path = http::collection(collection, "/get");
    request_in_batches(ids, |ids| {
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        let found = client.items(&path, &items)?;
        Ok(found.iter().try_for_each(print)?)
    })
}

/// Asks something of each document, and prints whether it was there.
fn print_existed(
    client: &ServiceClient,
    path: &str,
    ids: &[String],
    item: impl Fn(&String) -> Value,
) -> Result<(), Failure> {
    let mut lines = AnswerLines::new(true);
    request_in_batches(ids, |ids| {
        let items: Vec<Value> = ids.iter().map(&item).collect();
        for (id, answer) in ids.iter().zip(client.items(path, &items)?) {
            let line = json!({"id": id, "existed": answer["existed"]});
            lines.write(&line).map_err(Failure::from)?;
        }
        Ok(())
    })?;
    Ok(lines.flush()?)
}

fn expire(client: &ServiceClient, arguments: &ExpireArguments) -> Result<(), Failure> {
    let path = http::collection(&arguments.collection, "/expire");
    print_existed(client, &path, &arguments.ids, |id| {
        match arguments.lifetime.ttl {
            Some(seconds) => json!({"id": id, "ttl_seconds": seconds}),
            None => json!({"id": id, "expires_ms": null}),
        }
    })
}

/// Prints the readiness of the service. Fails unless it is ready.
fn ready(client: &ServiceClient) -> Result<(), Failure> {
    let (status, answer) = client.status("/readyz")?;
    print(&answer)?;
    Err(Failure::Failed(match status {
        200 => return Ok(()),
        503 => "the service is not ready: wait, or see its log".to_owned(),
        _ => {
            format!("status {status}: this is not the address of a lookalike service: check --url")
        }
    }))
}

fn export(client: &ServiceClient, collection: &str) -> Result<(), Failure> {
    let mut lines = client.stream(&http::collection(collection, "/export"))?;
    let (mut out, mut piece) = (std::io::stdout().lock(), vec![0; 1 << 16]);
    loop {
        // Copied as it arrives, however large the collection. A broken connection must not look like the end: chunked bodies end with a mark, and
        // without it this read fails.
        let count = lines.read(&mut piece).map_err(|error| {
            Failure::Failed(format!(
                "the export was interrupted: {error}; the output is incomplete"
            ))
        })?;
        if count == 0 {
            return Ok(out.flush()?);
        }
        out.write_all(&piece[..count])?;
    }
}

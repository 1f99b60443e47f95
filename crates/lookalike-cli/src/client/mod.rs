//! `lookalike client`: the operations of a service, for scripts.

mod codes;
mod documents;
mod http;
mod output;

use std::io::{Read, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::failure::Failure;
use documents::DocumentArguments;
use http::ServiceClient;
use output::print;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lookalike client create pages --radius 3 --keep texts,paragraphs
  lookalike client check-and-insert pages crawl.jsonl       a line of JSON for each document
  lookalike client query pages page.html --verify --diff
  lookalike client load pages crawl.lkfp                    fingerprints of files
  lookalike client export pages > pages.jsonl
  lookalike client --url https://dedup.example:7280 --key-file key check pages page.html

When the service is busy, requests are repeated after the delay that it names, for at most
--retry-for.")]
pub(crate) struct ClientArguments {
    /// URL of the service
    #[arg(
        long,
        value_name = "URL",
        env = "LOOKALIKE_URL",
        default_value = "http://127.0.0.1:7280",
        global = true
    )]
    url: String,

    /// File with the API key [default: LOOKALIKE_KEY of the environment]
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,

    /// Trusted certificates in PEM for https [default: those of the system]
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CA", global = true)]
    ca: Option<PathBuf>,

    /// Repeat requests that a busy service refuses, for this long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = crate::serve::seconds, global = true)]
    retry_for: std::time::Duration,

    #[command(subcommand)]
    command: ClientCommand,
}

#[derive(Subcommand)]
enum ClientCommand {
    /// Tell which documents were seen before: verdicts only
    Check(DocumentArguments),
    /// Tell which documents were seen before, with their neighbours
    Query(DocumentArguments),
    /// Insert documents; each replaces any with its id
    Insert(DocumentArguments),
    /// Give the verdict and insert what is new, in one step
    CheckAndInsert(DocumentArguments),
    /// Tell which paragraphs were seen before, and the known share of each page
    Paragraphs(DocumentArguments),
    /// Delete documents by id
    Delete {
        /// Name of the collection
        collection: String,
        /// Ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Insert fingerprints from files under their ids
    Load(codes::FingerprintOptions),
    /// Print all documents, one line of JSON each
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
    /// Merge all documents into one run in the background: speeds up checks and reclaims space
    Compact {
        /// Name of the collection
        collection: String,
    },
    /// Make a snapshot of all collections in the --snapshots directory of the service
    Snapshot {
        /// A new name: a-z, 0-9, - and _
        name: String,
    },
}

#[derive(clap::Args)]
struct CreateArguments {
    /// Name of the collection
    collection: String,

    /// Largest distance of queries
    #[arg(long, value_name = "BITS")]
    radius: Option<u32>,

    /// Lifetime of documents without one of their own [default: forever]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Full text of the scheme [default: that of `lookalike fingerprint`]
    #[arg(long, value_name = "TEXT")]
    scheme: Option<String>,

    /// Parts of documents to keep beside fingerprints and hashes of texts: texts, signatures, paragraphs
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    keep: Vec<String>,

    /// Keep no hashes of texts, 16 bytes a document: no verdict is exact then, but same-fingerprint
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
        ClientCommand::Check(documents) => documents::send(&client, "check", documents),
        ClientCommand::Query(documents) => documents::send(&client, "query", documents),
        ClientCommand::Insert(documents) => documents::send(&client, "insert", documents),
        ClientCommand::CheckAndInsert(documents) => {
            documents::send(&client, "check-and-insert", documents)
        }
        ClientCommand::Paragraphs(documents) => documents::send(&client, "paragraphs", documents),
        ClientCommand::Delete { collection, ids } => delete(&client, collection, ids),
        ClientCommand::Load(arguments) => codes::load(&client, arguments),
        ClientCommand::Export { collection } => export(&client, collection),
        ClientCommand::Create(arguments) => create(&client, arguments),
        ClientCommand::Show { collection } => {
            let name = collection.as_ref();
            let below = name.map_or(String::new(), |name| format!("/{}", http::escaped(name)));
            print(&client.json("GET", &format!("/v1/collections{below}"), None)?)
        }
        ClientCommand::Compact { collection } => {
            print(&client.json("POST", &http::collection(collection, "/compact"), None)?)
        }
        ClientCommand::Snapshot { name } => {
            let body = json!({"name": name});
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
    let given = [
        ("radius", arguments.radius.map(Value::from)),
        ("ttl_seconds", arguments.ttl.map(Value::from)),
        ("scheme", arguments.scheme.clone().map(Value::from)),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    let path = http::collection(&arguments.collection, "");
    print(&client.json("PUT", &path, Some(&body))?)
}

fn delete(client: &ServiceClient, collection: &str, ids: &[String]) -> Result<(), Failure> {
    for ids in ids.chunks(100) {
        let body: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        let path = http::collection(collection, "/delete");
        let answers = client.json("POST", &path, Some(&body.into()))?;
        for (id, answer) in ids.iter().zip(answers.as_array().into_iter().flatten()) {
            print(&json!({"id": id, "existed": answer["existed"]}))?;
        }
    }
    Ok(())
}

fn export(client: &ServiceClient, collection: &str) -> Result<(), Failure> {
    let mut lines = client.stream(&http::collection(collection, "/export"))?;
    let (mut out, mut piece) = (std::io::stdout().lock(), vec![0; 1 << 16]);
    loop {
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

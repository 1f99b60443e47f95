//! `lookalike client`: what a service can be asked, for scripts.

mod codes;
mod documents;
mod http;

use std::io::{Read, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use http::Client;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  lookalike client create pages --radius 3 --keep texts,paragraphs
  lookalike client check-and-insert pages crawl.jsonl       a line of JSON for each document, in input order
  lookalike client query pages page.html --verify --diff
  lookalike client load pages crawl.lkfp                    fingerprints of `lookalike fingerprint -o`
  lookalike client export pages > pages.jsonl
  lookalike client --url https://dedup.example:7280 --key-file key check pages page.html

A service that is too busy is asked again after the time that it names, for as long as --patience says.")]
pub(crate) struct Arguments {
    /// Where the service is
    #[arg(
        long,
        value_name = "URL",
        env = "LOOKALIKE_URL",
        default_value = "http://127.0.0.1:7280",
        global = true
    )]
    url: String,

    /// File that holds the key; else LOOKALIKE_KEY of the environment, if the service asks for one
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,

    /// Certificates in PEM that a https service is trusted by [default: those of the system]
    #[arg(long, value_name = "FILE", env = "LOOKALIKE_CA", global = true)]
    ca: Option<PathBuf>,

    /// How long a service that is too busy is asked again
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = crate::serve::seconds, global = true)]
    patience: std::time::Duration,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Were documents seen before? Verdicts alone
    Check(DocumentArguments),
    /// Verdicts with the neighbours
    Query(DocumentArguments),
    /// Keep documents, each in the place of any with its id
    Insert(DocumentArguments),
    /// The verdict and the insert of what is new, in one step
    CheckAndInsert(DocumentArguments),
    /// Which paragraphs were seen before, and the known share of each page
    Paragraphs(DocumentArguments),
    /// Delete documents by id
    Delete {
        /// Name of the collection
        collection: String,
        /// Ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Insert fingerprints from files, each under its id
    Load(codes::Arguments),
    /// Print all documents, a line of JSON each
    Export {
        /// Name of the collection
        collection: String,
    },
    /// Make a collection
    Create(CreateArguments),
    /// Show all collections, or one
    Show {
        /// Name of a collection
        collection: Option<String>,
    },
    /// Make one run of all documents, behind the scenes: the fastest checks, and the space of what is gone
    Compact {
        /// Name of the collection
        collection: String,
    },
    /// Make a snapshot in the directory of the service's --snapshots
    Snapshot {
        /// A new name: a-z, 0-9, - and _
        name: String,
    },
}

#[derive(clap::Args)]
struct DocumentArguments {
    /// Name of the collection
    collection: String,

    #[command(flatten)]
    input: InputArguments,

    /// Largest distance, at most the collection's
    #[arg(long, value_name = "BITS", help_heading = "Question")]
    radius: Option<u32>,

    /// Most neighbours, or documents of a paragraph, that are shown
    #[arg(long = "limit", value_name = "N", help_heading = "Question")]
    neighbours: Option<u32>,

    /// Compare with the text or signature of each neighbour, where they are kept
    #[arg(long, help_heading = "Question")]
    verify: bool,

    /// Show where the text of each neighbour differs
    #[arg(long, help_heading = "Question")]
    diff: bool,

    /// What check-and-insert inserts: new, not-exact or always
    #[arg(long, value_name = "WHAT", help_heading = "Question")]
    insert: Option<String>,

    /// How long what is inserted lives, unless the collection's time is meant
    #[arg(long, value_name = "SECONDS", help_heading = "Question")]
    ttl: Option<u64>,

    /// Documents in one request
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
}

#[derive(clap::Args)]
struct CreateArguments {
    /// Name of the collection
    collection: String,

    /// Largest distance of queries
    #[arg(long, value_name = "BITS")]
    radius: Option<u32>,

    /// How long documents live that have no time of their own [default: for ever]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,

    /// Whole text of the scheme [default: that of `lookalike fingerprint`]
    #[arg(long, value_name = "TEXT")]
    scheme: Option<String>,

    /// What is kept of documents beside fingerprints: texts, signatures, paragraphs
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    keep: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = Client::new(
        &arguments.url,
        arguments.key_file.as_deref(),
        arguments.ca.as_deref(),
        arguments.patience,
    )?;
    match &arguments.command {
        Command::Check(documents) => documents::send(&client, "check", documents),
        Command::Query(documents) => documents::send(&client, "query", documents),
        Command::Insert(documents) => documents::send(&client, "insert", documents),
        Command::CheckAndInsert(documents) => {
            documents::send(&client, "check-and-insert", documents)
        }
        Command::Paragraphs(documents) => documents::send(&client, "paragraphs", documents),
        Command::Delete { collection, ids } => delete(&client, collection, ids),
        Command::Load(arguments) => codes::load(&client, arguments),
        Command::Export { collection } => export(&client, collection),
        Command::Create(arguments) => create(&client, arguments),
        Command::Show { collection } => {
            let name = collection.as_ref();
            let below = name.map_or(String::new(), |name| format!("/{}", http::escaped(name)));
            print(&client.json("GET", &format!("/v1/collections{below}"), None)?)
        }
        Command::Compact { collection } => {
            print(&client.json("POST", &http::collection(collection, "/compact"), None)?)
        }
        Command::Snapshot { name } => {
            let body = json!({"name": name});
            print(&client.json("POST", "/v1/snapshots", Some(&body))?)
        }
    }
}

fn print(value: &Value) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{value}")?)
}

fn create(client: &Client, arguments: &CreateArguments) -> Result<(), Failure> {
    let kept = arguments.keep.iter();
    let keep: serde_json::Map<String, Value> =
        kept.map(|part| (part.clone(), Value::Bool(true))).collect();
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

fn delete(client: &Client, collection: &str, ids: &[String]) -> Result<(), Failure> {
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

fn export(client: &Client, collection: &str) -> Result<(), Failure> {
    let mut lines = client.stream(&http::collection(collection, "/export"))?;
    let (mut out, mut piece) = (std::io::stdout().lock(), vec![0; 1 << 16]);
    loop {
        let count = lines.read(&mut piece).map_err(|error| {
            Failure::Failed(format!(
                "the export broke off: {error}: what was printed is not all"
            ))
        })?;
        if count == 0 {
            return Ok(out.flush()?);
        }
        out.write_all(&piece[..count])?;
    }
}

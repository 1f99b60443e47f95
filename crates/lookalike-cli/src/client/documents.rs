//! Documents of any input, sent in batches, each answered by a line.

use std::io::{BufWriter, Write, stdout};

use lookalike_batch::{FieldTally, SkippedRows};
use lookalike_corpus::{Parser, TextState};
use serde_json::{Value, json};

use super::http::{ServiceClient, collection};
use crate::arguments::InputArguments;
use crate::failure::Failure;

/// Bytes of texts of a batch, unless one document has more.
const BYTES: usize = 2 << 20;

#[derive(clap::Args)]
pub(super) struct DocumentArguments {
    /// Name of the collection
    collection: String,

    #[command(flatten)]
    input: InputArguments,

    /// Largest distance, up to the radius of the collection
    #[arg(long, value_name = "BITS", help_heading = "Question")]
    radius: Option<u32>,

    /// Largest number of neighbours, or of documents of a paragraph, to show
    #[arg(long = "limit", value_name = "N", help_heading = "Question")]
    neighbours: Option<u32>,

    /// Compare with the text or signature of each neighbour, if the collection keeps them
    #[arg(long, help_heading = "Question")]
    verify: bool,

    /// Show the differences to the text of each neighbour
    #[arg(long, help_heading = "Question")]
    diff: bool,

    /// Documents that check-and-insert inserts: new, not-exact or always
    #[arg(long, value_name = "WHAT", help_heading = "Question")]
    insert: Option<String>,

    /// Lifetime of inserted documents [default: that of the collection]
    #[arg(long, value_name = "SECONDS", help_heading = "Question")]
    ttl: Option<u64>,

    /// Number of documents in one request
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
}

/// Documents of one request.
struct RequestBatch<'a> {
    client: &'a ServiceClient,
    path: String,
    most: usize,
    ids: Vec<String>,
    items: Vec<Value>,
    bytes: usize,
    out: BufWriter<std::io::StdoutLock<'static>>,
}

/// Sends all documents to an operation.
pub(super) fn send(
    client: &ServiceClient,
    operation: &str,
    arguments: &DocumentArguments,
) -> Result<(), Failure> {
    let options = arguments.input.options(None);
    let spool = tempfile::tempdir()?;
    let inputs = arguments
        .input
        .discover(&options, spool.path(), None, false)?;
    let mut parser = Parser::new(&inputs, &options);
    let question = question(arguments);
    let mut batch = RequestBatch {
        client,
        path: collection(&arguments.collection, &format!("/{operation}{question}")),
        most: arguments.batch as usize,
        ids: Vec::new(),
        items: Vec::new(),
        bytes: 0,
        out: BufWriter::new(stdout().lock()),
    };
    let keeps = matches!(operation, "insert" | "check-and-insert");
    let names = keeps || operation == "paragraphs";
    let losses = &arguments.input.losses;
    let (mut skipped, mut sent) = (SkippedRows::default(), 0_u64);
    let mut fields = FieldTally::default();
    inputs.skips.iter().for_each(|skip| skipped.add_part(skip));
    for chunk in inputs.chunks(&options) {
        let chunk = chunk.map_err(|error| Failure::Failed(error.to_string()))?;
        let mut done = Ok(());
        chunk.skips.iter().for_each(|skip| skipped.add_part(skip));
        parser.parse(&chunk, &mut |record| {
            if done.is_err() {
                return;
            }
            if let Ok(record) = &record {
                fields.count(record);
            }
            match record {
                Ok(record) if record.text_state == TextState::Present => {
                    let mut item = json!({"text": record.text});
                    if names {
                        item["id"] = json!(record.id);
                    }
                    if let Some(seconds) = arguments.ttl.filter(|_| keeps) {
                        item["ttl_seconds"] = seconds.into();
                    }
                    sent += 1;
                    done = batch.push(record.id.into_owned(), item, record.text.len());
                }
                Ok(record) if record.text_state == TextState::Missing => {
                    skipped.add("missing", format!("{}: no text", record.id));
                }
                Ok(record) => {
                    let first = format!("{}: longer than --max-document", record.id);
                    skipped.add("too-long", first);
                }
                Err(bad) => skipped.add_record(&inputs, &bad),
            }
        });
        done?;
        if losses.policy().is_strict() && skipped.has_losses() {
            break;
        }
    }
    batch.send()?;
    batch.out.flush()?;
    fields.check(&inputs, &options)?;
    let skipped = skipped.finish();
    losses.policy().check(&skipped, sent)?;
    losses.end(&skipped)
}

/// Options after the `?`; the service refuses what an operation does not have.
fn question(arguments: &DocumentArguments) -> String {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        pairs.extend(value.map(|value| format!("{name}={value}")));
    };
    let yes = |wanted: bool| wanted.then(|| "true".to_owned());
    add("radius", arguments.radius.map(|radius| radius.to_string()));
    add("limit", arguments.neighbours.map(|most| most.to_string()));
    add("verify", yes(arguments.verify));
    add("diff", yes(arguments.diff));
    add(
        "insert",
        arguments.insert.as_deref().map(super::http::escaped),
    );
    if pairs.is_empty() {
        return String::new();
    }
    format!("?{}", pairs.join("&"))
}

impl RequestBatch<'_> {
    fn push(&mut self, id: String, item: Value, bytes: usize) -> Result<(), Failure> {
        if self.items.len() == self.most || self.bytes + bytes > BYTES && !self.items.is_empty() {
            self.send()?;
        }
        self.ids.push(id);
        self.items.push(item);
        self.bytes += bytes;
        Ok(())
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.items.is_empty() {
            return Ok(());
        }
        let items = std::mem::take(&mut self.items);
        self.bytes = 0;
        let answers = self.client.json("POST", &self.path, Some(&items.into()))?;
        let answers = answers.as_array().cloned().unwrap_or_default();
        for (id, answer) in self.ids.drain(..).zip(answers) {
            let mut line = json!({"id": id});
            if let (Some(line), Value::Object(answer)) = (line.as_object_mut(), answer) {
                line.extend(answer);
            }
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }
}

//! Documents of any input, sent in batches, each answered by a line.

use std::io::{BufWriter, Write, stdout};

use lookalike_batch::{FieldTally, SkippedRows};
use lookalike_corpus::{Parser, TextState};
use serde_json::{Value, json};

use super::exported;
use super::http::{ServiceClient, collection};
use crate::arguments::InputArguments;
use crate::failure::Failure;

/// Bytes of texts of a batch, unless one document has more.
const BYTES: usize = 2 << 20;

/// Most neighbours of one answer.
const PAGE: usize = 100;

#[derive(clap::Args)]
pub(super) struct DocumentArguments {
    /// Name of the collection
    collection: String,

    #[command(flatten)]
    input: InputArguments,

    /// Largest distance, up to the radius of the collection
    #[arg(long, value_name = "BITS", help_heading = "Question")]
    radius: Option<u32>,

    /// Largest number of neighbours, or of documents of a paragraph, to show; `query` asks page by page for more than 100
    #[arg(long = "limit", value_name = "N", help_heading = "Question")]
    neighbours: Option<u32>,

    /// Compare with the text or signature of each neighbour [default: true if the collection keeps them]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Question"
    )]
    verify: Option<bool>,

    /// Show the differences to the text of each neighbour
    #[arg(long, help_heading = "Question")]
    diff: bool,

    /// Documents that check-and-insert inserts: new, not-same-fingerprint, not-exact (no equal text) or always
    #[arg(long, value_name = "WHAT", help_heading = "Question")]
    insert: Option<String>,

    /// Lifetime of inserted documents [default: that of the collection]; lines of an export keep their own
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
    /// Neighbours that are shown beyond those of the first page.
    neighbours: Option<usize>,
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
    // Equal texts are known by all that a reader sees.
    let mut parser = Parser::new(&inputs, &options).with_visible();
    let neighbours = arguments.neighbours.map(|most| most as usize);
    let neighbours = neighbours.filter(|&most| operation == "query" && most > PAGE);
    let question = question(arguments, neighbours.is_some());
    let mut batch = RequestBatch {
        client,
        path: collection(&arguments.collection, &format!("/{operation}{question}")),
        most: arguments.batch as usize,
        neighbours,
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
                    if record.visible.is_some() {
                        let hash = record.seen_hash().swap_bytes();
                        item["text_hash"] = format!("{hash:032x}").into();
                    }
                    if names {
                        item["id"] = json!(record.id);
                    }
                    let own = keeps.then(|| exported::beside_text(record.raw)).flatten();
                    if let Some(own) = own {
                        own.add_to(&mut item);
                    } else if let Some(seconds) = arguments.ttl.filter(|_| keeps) {
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
fn question(arguments: &DocumentArguments, has_pages: bool) -> String {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        pairs.extend(value.map(|value| format!("{name}={value}")));
    };
    let shown = arguments.neighbours.map(|most| most.to_string());
    let page = has_pages.then(|| PAGE.to_string());
    add("radius", arguments.radius.map(|radius| radius.to_string()));
    add("limit", page.or(shown));
    add("verify", arguments.verify.map(|wanted| wanted.to_string()));
    add("diff", arguments.diff.then(|| "true".to_owned()));
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
        let items = Value::from(items);
        let answers = self.client.json("POST", &self.path, Some(&items))?;
        let mut answers = answers.as_array().cloned().unwrap_or_default();
        if let Some(most) = self.neighbours {
            let items = items.as_array().into_iter().flatten();
            for (item, answer) in items.zip(&mut answers) {
                self.follow(item, answer, most)?;
            }
        }
        for (id, answer) in self.ids.drain(..).zip(answers) {
            let mut line = json!({"id": id});
            if let (Some(line), Value::Object(answer)) = (line.as_object_mut(), answer) {
                line.extend(answer);
            }
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    /// Adds the neighbours that follow the first page, up to so many.
    fn follow(&self, item: &Value, answer: &mut Value, most: usize) -> Result<(), Failure> {
        loop {
            let shown = answer["neighbours"].as_array().map_or(0, Vec::len);
            let Some(after) = answer["next"].as_str().filter(|_| shown < most) else {
                return Ok(());
            };
            // The last value of an option would not count: the first page's limit is replaced.
            let limit = PAGE.min(most - shown);
            let path = self.path.replace(
                &format!("limit={PAGE}"),
                &format!("limit={limit}&after={after}"),
            );
            let mut page = self.client.json("POST", &path, Some(item))?;
            let more = page["neighbours"].take();
            if let (Some(all), Value::Array(more)) = (answer["neighbours"].as_array_mut(), more) {
                all.extend(more);
            }
            answer["more"] = page["more"].take();
            if page["resemblance"].as_f64() > answer["resemblance"].as_f64() {
                answer["resemblance"] = page["resemblance"].take();
            }
            answer["next"] = page["next"].take();
            if answer["next"].is_null() {
                answer.as_object_mut().map(|answer| answer.remove("next"));
            }
        }
    }
}

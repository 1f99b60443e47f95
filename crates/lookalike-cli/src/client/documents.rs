//! Documents of any input, sent in batches and each answered by a line.

use std::fmt::Display;

use lookalike::scheme::{Boilerplate, BoilerplateScope, Extraction, FieldWeights};
use lookalike::{DocumentFields, Scheme};
use lookalike_batch::FieldTally;
use lookalike_batch::fingerprints::sketches::MinEqual;
use lookalike_corpus::{
    Category, Format, InputOptions, Parser, Record, Source, TextState, server_of,
};
use lookalike_server::MAX_METADATA_BYTES;
use lookalike_store::check_id;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::exported::{self, FieldsBesideText};
use super::http::{RequestError, ServiceClient, UrlOptions, collection};
use super::output::AnswerLines;
use super::record_sender::{RecordRequest, RecordSender};
use crate::arguments::{HtmlArguments, InputArguments, share};
use crate::console::{self, Console};
use crate::failure::Failure;

/// Maximum number of neighbours in one answer.
const PAGE: usize = 100;

/// Documents, and the size of the requests that send them.
#[derive(clap::Args)]
struct SentDocuments {
    /// Name of the collection
    collection: String,

    #[command(flatten)]
    input: InputArguments,

    /// Number of documents per request
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
}

#[derive(clap::Args)]
pub(super) struct CheckArguments {
    #[command(flatten)]
    documents: SentDocuments,

    /// Maximum distance of fingerprints, up to the radius of the collection
    #[arg(long, value_name = "BITS", help_heading = "Question")]
    radius: Option<u32>,

    #[command(flatten)]
    compared: ComparedArguments,
}

/// Which documents are compared.
#[derive(clap::Args)]
struct ComparedArguments {
    /// Documents to compare, by category: all, within (the same) or across (others) [default: that of the collection]
    #[arg(long, value_name = "PAIRS", help_heading = "Question")]
    pairs: Option<String>,

    /// Minimum length of the shorter text relative to the longer one, in bytes; 0 for none [default: that of the collection]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Question")]
    lengths: Option<f64>,

    /// Minimum number of super-shingles or minima in common, if the collection holds them [default: that of the collection]
    #[arg(long, value_name = "NUMBER", help_heading = "Question")]
    equal: Option<MinEqual>,
}

impl ComparedArguments {
    fn add_to(&self, options: UrlOptions) -> UrlOptions {
        options
            .with("pairs", self.pairs.as_ref())
            .with("lengths", self.lengths)
            .with("equal", self.equal)
    }
}

/// Which neighbours are searched and shown.
#[derive(clap::Args)]
struct NeighbourArguments {
    /// Maximum distance of fingerprints, up to the radius of the collection
    #[arg(long, value_name = "BITS", help_heading = "Question")]
    radius: Option<u32>,

    /// Maximum number of neighbours to show; `query` fetches more than 100 page by page [default: 10]
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

    /// Show the differences from the text of each neighbour
    #[arg(long, help_heading = "Question")]
    diff: bool,

    #[command(flatten)]
    compared: ComparedArguments,
}

#[derive(clap::Args)]
pub(super) struct QueryArguments {
    #[command(flatten)]
    documents: SentDocuments,

    #[command(flatten)]
    question: NeighbourArguments,
}

#[derive(clap::Args)]
pub(super) struct InsertArguments {
    #[command(flatten)]
    documents: SentDocuments,

    /// Lifetime of documents without `ttl_seconds` or `expires_ms` in their JSON records [default: that of the collection]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,
}

#[derive(clap::Args)]
pub(super) struct CheckAndInsertArguments {
    #[command(flatten)]
    documents: SentDocuments,

    #[command(flatten)]
    question: NeighbourArguments,

    /// Documents to insert: new, not-same-fingerprint, not-exact (no equal text) or always [default: new]
    #[arg(long, value_name = "WHAT")]
    insert: Option<String>,

    /// Lifetime of documents without `ttl_seconds` or `expires_ms` in their JSON records [default: that of the collection]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,
}

#[derive(clap::Args)]
pub(super) struct ParagraphArguments {
    #[command(flatten)]
    documents: SentDocuments,

    /// Maximum distance of similar paragraphs, up to the radius of the collection for fingerprints of 64 bits, otherwise up to 3
    #[arg(long, value_name = "BITS", help_heading = "Question")]
    radius: Option<u32>,

    /// Maximum number of documents to show for a paragraph [default: 10]
    #[arg(long, value_name = "N", help_heading = "Question")]
    limit: Option<u32>,
}

/// An operation on many documents.
#[derive(Default)]
struct DocumentOperation<'a> {
    name: &'a str,
    /// The service refuses options that the operation does not have.
    question: UrlOptions,
    /// Maximum number of neighbours to show, if more than the first page has.
    neighbours: Option<usize>,
    /// Lifetime of the documents, if they are stored.
    kept_for: Option<Option<u64>>,
}

/// Prints verdicts about documents.
pub(super) fn check(client: &ServiceClient, arguments: &CheckArguments) -> Result<(), Failure> {
    let radius = UrlOptions::default().with("radius", arguments.radius);
    let operation = DocumentOperation {
        question: arguments.compared.add_to(radius),
        ..DocumentOperation::named("check")
    };
    operation.send(client, &arguments.documents)
}

/// Prints neighbours of documents, page by page if there are more than fit one answer.
pub(super) fn query(client: &ServiceClient, arguments: &QueryArguments) -> Result<(), Failure> {
    let most = arguments.question.neighbours.map(|most| most as usize);
    let operation = DocumentOperation {
        question: arguments.question.options(Some(PAGE as u32)),
        neighbours: most.filter(|&most| most > PAGE),
        ..DocumentOperation::named("query")
    };
    operation.send(client, &arguments.documents)
}

/// Inserts documents.
pub(super) fn insert(client: &ServiceClient, arguments: &InsertArguments) -> Result<(), Failure> {
    let operation = DocumentOperation {
        kept_for: Some(arguments.ttl),
        ..DocumentOperation::named("insert")
    };
    operation.send(client, &arguments.documents)
}

/// Prints verdicts and neighbours, and inserts new documents.
pub(super) fn check_and_insert(
    client: &ServiceClient,
    arguments: &CheckAndInsertArguments,
) -> Result<(), Failure> {
    let question = arguments.question.options(None);
    let operation = DocumentOperation {
        question: question.with("insert", arguments.insert.as_ref()),
        kept_for: Some(arguments.ttl),
        ..DocumentOperation::named("check-and-insert")
    };
    operation.send(client, &arguments.documents)
}

/// Prints which paragraphs are known.
pub(super) fn paragraphs(
    client: &ServiceClient,
    arguments: &ParagraphArguments,
) -> Result<(), Failure> {
    let radius = UrlOptions::default().with("radius", arguments.radius);
    let operation = DocumentOperation {
        question: radius.with("limit", arguments.limit),
        ..DocumentOperation::named("paragraphs")
    };
    operation.send(client, &arguments.documents)
}

impl NeighbourArguments {
    /// Returns the options of a request that shows at most `page` neighbours.
    fn options(&self, page: Option<u32>) -> UrlOptions {
        let shown = match (self.neighbours, page) {
            (Some(most), Some(page)) => Some(most.min(page)),
            // Without pages, the service refuses what is beyond its own limit.
            (most, _) => most,
        };
        let options = UrlOptions::default()
            .with("radius", self.radius)
            .with("limit", shown)
            .with("verify", self.verify)
            .with("diff", self.diff.then_some(true));
        self.compared.add_to(options)
    }
}

/// A document to be sent.
struct SentDocument {
    id: String,
    /// Source and number of its record.
    place: String,
    item: SentItem,
}

/// An item of a request, with metadata unchanged from its record.
#[derive(Serialize)]
struct SentItem {
    #[serde(flatten)]
    item: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
}

/// A request that writes its answers.
struct DocumentRequest<'a> {
    client: &'a ServiceClient,
    path: String,
    /// Maximum number of neighbours to show, if more than the first page has.
    neighbours: Option<usize>,
    out: AnswerLines,
}

impl<'a> DocumentOperation<'a> {
    fn named(name: &'a str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Sends all documents.
    fn send(&self, client: &ServiceClient, arguments: &SentDocuments) -> Result<(), Failure> {
        // First, because the collection decides which fields of a record are read and how a page becomes a text.
        let asked = UsedFields::of(client, &arguments.collection)?;
        let options = arguments
            .input
            .options(None)
            .html(asked.extraction(&arguments.input.html)?)
            // Paragraphs are looked up in all documents, whatever their categories, and the service refuses unknown fields.
            .category(asked.category.filter(|_| self.name != "paragraphs"))
            .fields(asked.fields);
        let spool = tempfile::tempdir().map_err(|error| {
            Failure::Failed(format!(
                "{error}: name another directory for temporary files with TMPDIR"
            ))
        })?;
        let inputs =
            arguments
                .input
                .discover(&options, spool.path(), None, &Console::new(false))?;
        // Equality of texts is decided by the whole visible text.
        let mut parser = Parser::new(&inputs, &options).with_visible();
        let losses = &arguments.input.losses;
        let path = format!("/{}{}", self.name, self.question.0);
        let request = DocumentRequest {
            client,
            path: collection(&arguments.collection, &path),
            neighbours: self.neighbours,
            out: AnswerLines::new(self.kept_for.is_some()),
        };
        let strict = losses.policy().is_strict();
        let mut sender = RecordSender::new(request, arguments.batch, strict);
        let (mut fields, mut notes) = (FieldTally::default(), SendingNotes::default());
        let skips = inputs.skips.iter();
        skips.for_each(|skip| sender.skipped.add_part(skip));
        for chunk in inputs.chunks(&options) {
            let chunk = chunk.map_err(|error| Failure::Failed(error.to_string()))?;
            let mut done = Ok(());
            let skips = chunk.skips.iter();
            skips.for_each(|skip| sender.skipped.add_part(skip));
            parser.parse(&chunk, &mut |record| {
                // The parser cannot be stopped within a chunk, so skip what follows an error or the loss that ends the reading.
                if done.is_err() || sender.is_finished() {
                    return;
                }
                let record = match record {
                    Ok(record) => record,
                    Err(bad) => return sender.skipped.add_record(&inputs, &bad),
                };
                fields.count(&record);
                let source = &inputs.sources[record.source as usize];
                // Of the text alone: it makes up nearly all of a request, and escapes are covered by the margin of the limit.
                let bytes = record.text.len();
                match self.document(record, source, asked.wants_site, &mut notes) {
                    Ok(document) => done = sender.push(document, bytes),
                    Err(UnsentRecord::Skipped(kind, first)) => sender.skipped.add(kind, first),
                    Err(UnsentRecord::Refused(failure)) => done = Err(failure),
                }
            });
            done?;
            if sender.is_finished() {
                break;
            }
        }
        // Even after a loss that ends the reading, because the records before it were accepted.
        sender.send()?;
        // Before the checks below, any of which may end the command.
        sender.request.out.flush()?;
        let sent = sender.taken;
        let skipped = sender.finish()?;
        // The fields that the collection uses were not requested by the user here.
        let given = options
            .clone()
            .category(None)
            .fields(FieldWeights::default());
        fields.check(&inputs, &given)?;
        notes.warn(&options, sent);
        losses.policy().check(&skipped, sent)?;
        losses.end(&skipped)
    }

    /// Returns the document of a record.
    fn document(
        &self,
        record: Record<'_>,
        source: &Source,
        wants_site: bool,
        notes: &mut SendingNotes,
    ) -> Result<SentDocument, UnsentRecord> {
        match record.text_state {
            TextState::Present => {}
            TextState::Missing => {
                let reason = format!("{}: no text", record.id);
                return Err(UnsentRecord::Skipped("missing", reason));
            }
            _ => {
                let reason = format!("{}: longer than --max-document", record.id);
                return Err(UnsentRecord::Skipped("too-long", reason));
            }
        }
        let place = format!("{}, record {}", source.name(), record.number + 1);
        let skipped =
            |kind, error: &dyn Display| UnsentRecord::Skipped(kind, format!("{place}: {error}"));
        // An id that the service cannot accept would have the whole batch refused.
        if self.names_documents() {
            check_id(&record.id).map_err(|error| skipped("id", &error))?;
        }
        let mut item = item_of(&record, source.format, wants_site);
        notes.without_category += u64::from(record.category.is_none());
        notes.linked += u64::from(!record.fields.is_empty());
        if self.kept_for.is_some() {
            notes.without_id += u64::from(has_built_id(&record, source, &place)?);
        }
        if self.names_documents() {
            // Checks and queries store nothing, so ids would be sent only to be ignored.
            item["id"] = json!(record.id);
        }
        let own = self.fields_beside_text(&record, source.format);
        let own = own.map_err(|error| skipped("wrong-type", &error))?;
        // Metadata of other programs may be long, and the service would refuse the document for it.
        let metadata = own.add_to(&mut item, self.kept_for.flatten());
        let metadata = metadata.filter(|metadata| {
            let fits = metadata.get().len() <= MAX_METADATA_BYTES;
            notes.long_metadata += u64::from(!fits);
            fits
        });
        Ok(SentDocument {
            id: record.id.into_owned(),
            place,
            item: SentItem { item, metadata },
        })
    }

    /// Returns the fields of a JSON record that are stored beside its text. Searches store nothing, and would be refused with these fields.
    fn fields_beside_text(
        &self,
        record: &Record<'_>,
        format: Format,
    ) -> Result<FieldsBesideText, String> {
        match self.kept_for {
            Some(_) if matches!(format, Format::Jsonl | Format::Json) => {
                exported::fields_beside_text(record.raw)
            }
            _ => Ok(FieldsBesideText::default()),
        }
    }

    /// Returns true if the service needs the ids of the documents.
    fn names_documents(&self) -> bool {
        self.kept_for.is_some() || self.name == "paragraphs"
    }
}

/// Reason why a record is not sent.
enum UnsentRecord {
    /// It is left out: the kind of the loss, and a description.
    Skipped(&'static str, String),
    /// It ends the command.
    Refused(Failure),
}

/// Returns the item of a record, without its id.
fn item_of(record: &Record<'_>, format: Format, wants_site: bool) -> Value {
    let mut item = json!({"text": record.text});
    if record.visible.is_some() {
        // In the number, the first byte of the hash is lowest, but hexadecimal digits are written from the first byte on.
        let hash = record.seen_hash().swap_bytes();
        item["text_hash"] = format!("{hash:032x}").into();
    }
    if let Some(category) = &record.category {
        item["category"] = json!(category);
    }
    // The service takes the site from the URL of a document, but a record may tell it in another way, so a URL with the host alone is sent.
    let site = server_of(record, format);
    if let Some(host) = site.filter(|_| wants_site) {
        item["url"] = format!("http://{host}/").into();
    }
    add_fields(&record.fields, &mut item);
    item
}

/// Returns true if a record has no id but one made of the name of its source.
///
/// # Errors
/// Refuses such a record of standard input: every other one would get the same id.
fn has_built_id(record: &Record<'_>, source: &Source, place: &str) -> Result<bool, UnsentRecord> {
    let is_stdin = source.name() == "-";
    let is_built = record.id_generated || is_stdin && record.id == "-";
    match is_built && is_stdin {
        true => Err(UnsentRecord::Refused(Failure::Usage(format!(
            "{place}: has no id; from standard input, it would replace another record without an id: name the field of the ids with --id"
        )))),
        false => Ok(is_built),
    }
}

/// Counts of documents with something to tell when all are sent.
#[derive(Default)]
struct SendingNotes {
    without_category: u64,
    /// Documents with anchors or links.
    linked: u64,
    without_id: u64,
    long_metadata: u64,
}

impl SendingNotes {
    /// Prints warnings about the documents that were `sent`.
    fn warn(&self, options: &InputOptions, sent: u64) {
        let records = |number| console::counted(number, "record");
        if let (Some(category), 1..) = (&options.category, self.without_category) {
            console::warning(&format!(
                "{} without {category}: all such records form one category of their own",
                records(self.without_category)
            ));
        }
        if self.long_metadata > 0 {
            console::warning(&format!(
                "{} stored without metadata, which has more than {MAX_METADATA_BYTES} bytes",
                records(self.long_metadata)
            ));
        }
        if self.without_id > 0 {
            console::warning(&format!(
                "{} without an id: it is made of the name of the file and the number in it, so records of another file of that name \
                 will replace them; name the field of the ids with --id",
                records(self.without_id)
            ));
        }
        if !options.fields.is_none() && self.linked == 0 && sent > 0 {
            console::warning(&format!(
                "the collection uses {}, which no record has",
                options.fields
            ));
        }
    }
}

/// The fields of records that a collection uses.
struct UsedFields {
    category: Option<Category>,
    fields: FieldWeights,
    /// Extraction of the text of pages.
    html: Option<Extraction>,
    /// True if the collection leaves out lines that recur on the site of a document.
    wants_site: bool,
}

impl UsedFields {
    fn of(client: &ServiceClient, name: &str) -> Result<Self, Failure> {
        let shown = client.json("GET", &collection(name, ""), None)?;
        let named = shown["within"].as_str().or(shown["across"].as_str());
        let category = named.map(|name| name.parse::<Category>()).transpose();
        let category = category.map_err(|error| {
            Failure::Failed(format!(
                "the service names a category that cannot be read: {error}"
            ))
        })?;
        // If this program cannot parse the scheme, the service decides.
        let scheme = shown["scheme"].as_str().and_then(|text| text.parse().ok());
        let scheme: Option<Scheme> = scheme;
        let fields = scheme.map_or_else(FieldWeights::default, |scheme| scheme.fields);
        let wants_site = scheme.is_some_and(|scheme| {
            let scope = BoilerplateScope::Site;
            matches!(scheme.boilerplate, Boilerplate::Removed { scope: of, .. } if of == scope)
        });
        Ok(Self {
            category,
            fields,
            html: scheme.map(|scheme| scheme.html),
            wants_site,
        })
    }

    /// Returns the extraction of the collection, which options may repeat but not change.
    fn extraction(&self, given: &HtmlArguments) -> Result<Extraction, Failure> {
        let own = given.extraction();
        match self.html {
            Some(wanted) if !given.given().is_empty() && own != wanted => {
                Err(Failure::Usage(format!(
                    "the collection reads pages with html={wanted}: leave out --html and its like"
                )))
            }
            wanted => Ok(wanted.unwrap_or(own)),
        }
    }
}

/// Adds the fields that the collection uses to an item.
fn add_fields(fields: &DocumentFields, item: &mut Value) {
    let anchors = fields.anchors.iter();
    let anchors: Vec<Value> = anchors
        .map(|anchor| json!({"text": anchor.text, "before": anchor.before, "after": anchor.after}))
        .collect();
    let links = [
        ("in_links", &fields.in_links),
        ("out_links", &fields.out_links),
    ];
    if !anchors.is_empty() {
        item["anchors"] = anchors.into();
    }
    for (name, links) in links.into_iter().filter(|(_, links)| !links.is_empty()) {
        item[name] = json!(links);
    }
}

impl RecordRequest<SentDocument> for DocumentRequest<'_> {
    /// Sends documents and writes a line for each.
    fn send(&mut self, documents: &[SentDocument]) -> Result<(), RequestError> {
        let items: Vec<&SentItem> = documents.iter().map(|document| &document.item).collect();
        let mut answers = self.client.items(&self.path, &items)?;
        if let Some(most) = self.neighbours {
            for (item, answer) in items.into_iter().zip(&mut answers) {
                self.fetch_more_neighbours(&item.item, answer, most)?;
            }
        }
        for (document, answer) in documents.iter().zip(answers) {
            let mut line = json!({"id": document.id});
            if let (Some(line), Value::Object(answer)) = (line.as_object_mut(), answer) {
                line.extend(answer);
            }
            self.out.write(&line).map_err(Failure::from)?;
        }
        Ok(())
    }

    fn place(&self, document: &SentDocument) -> String {
        document.place.clone()
    }

    /// Adds the number of documents that are done.
    fn failed(&self, failure: Failure, _: &[SentDocument], taken: u64) -> Failure {
        match failure {
            Failure::Failed(what) if taken > 0 => {
                let done = console::counted(taken, "document");
                Failure::Failed(format!("{what}; done before: {done}"))
            }
            other => other,
        }
    }
}

impl DocumentRequest<'_> {
    /// Adds the neighbours after the first page, until `most` are shown.
    fn fetch_more_neighbours(
        &self,
        item: &Value,
        answer: &mut Value,
        most: usize,
    ) -> Result<(), Failure> {
        loop {
            let shown = answer["neighbours"].as_array().map_or(0, Vec::len);
            // Each page begins after the last neighbour of the previous one, so inserts in between neither repeat nor hide one.
            let Some(after) = answer["next"].as_str().filter(|_| shown < most) else {
                return Ok(());
            };
            // Appending another limit would have no effect, so replace that of the first page.
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
            // The maximum over all pages. `None` compares less than any number, as intended.
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

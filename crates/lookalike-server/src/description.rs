//! The OpenAPI description, generated from the operations and from the types that handlers read and write, and a page that uses it to send
//! requests. Both are the same for everybody and need no key.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::app_state::AppState;
use crate::config::ServiceLimits;
use crate::endpoint::{collection, document, load, overlap, page, snapshot, status};
use crate::operation::ApiOperation;
use crate::request::{
    ChangedCollection, CheckAndInsertOptions, ChunkedItem, ContentItem, CopiesOptions, DocumentId,
    ExpiringDocument, ExportedDocument, GetOptions, InsertOptions, NAME, NewCollection,
    NewDocument, NewSnapshot, PageItem, PageOptions, QueryOptions, RerankOptions,
    ResketchedCollection, ScopeOptions, packed::PACKED,
};
use crate::verdict::{QueryResponse, VerdictResponse};

/// Handles `GET /openapi.json`.
pub(crate) async fn json(State(app): State<Arc<AppState>>) -> Response {
    crate::response::json(StatusCode::OK, description(&app.limits).to_string())
}

/// Handles `GET /`: the page that sends requests from a browser.
pub(crate) async fn console() -> Response {
    let mut response = crate::response::typed(
        StatusCode::OK,
        "text/html; charset=utf-8",
        include_str!("console.html"),
    );
    // The page has its styles and scripts inline and talks to this service only: nothing that an answer contains may load or send more.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let fixed: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in fixed {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A body without fields.
#[derive(JsonSchema)]
#[schemars(rename = "EmptyObject", deny_unknown_fields)]
struct EmptyObject {}

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Documentation of an operation.
#[derive(Default)]
struct OperationDoc {
    summary: &'static str,
    /// The schema of the options itself, because each is described by itself.
    options: Option<SchemaOf>,
    /// Schema of the body, and an example.
    body: Option<(SchemaOf, Value)>,
    /// True if an array of bodies is a batch.
    is_batch: bool,
    /// Statuses with the answer.
    statuses: &'static [u16],
    /// Media type of the answer, and its schema.
    answer: Option<(&'static str, SchemaOf)>,
    packed: bool,
}

fn doc(summary: &'static str) -> OperationDoc {
    OperationDoc {
        summary,
        statuses: &[200],
        ..OperationDoc::default()
    }
}

impl OperationDoc {
    fn answers<T: JsonSchema>(mut self) -> Self {
        self.answer = Some(("application/json", SchemaGenerator::subschema_for::<T>));
        self
    }

    fn answers_text(mut self, kind: &'static str) -> Self {
        self.answer = Some((kind, |_| json_schema!({"type": "string"})));
        self
    }

    fn with_body<T: JsonSchema>(mut self, example: Value) -> Self {
        self.body = Some((SchemaGenerator::subschema_for::<T>, example));
        self
    }

    fn with_batch_body<T: JsonSchema>(mut self, example: Value) -> Self {
        self.is_batch = true;
        self.with_body::<T>(example)
    }

    fn with<T: JsonSchema>(mut self) -> Self {
        self.options = Some(T::json_schema);
        self
    }

    fn packed(mut self) -> Self {
        self.packed = true;
        self
    }

    fn statuses(mut self, statuses: &'static [u16]) -> Self {
        self.statuses = statuses;
        self
    }
}

/// All operations, with what they take and answer, and bodies that each takes.
fn described(operation: ApiOperation) -> Option<OperationDoc> {
    const STORY: &str = "The ferry left the harbour at nine with forty people on board.";
    let described = match operation {
        ApiOperation::Check => doc("Check whether contents were seen before: verdicts only.")
            .answers::<VerdictResponse>()
            .with_batch_body::<ContentItem>(json!({"text": STORY}))
            .with::<ScopeOptions>()
            .packed(),
        ApiOperation::Query => doc("Check whether contents were seen before, with their neighbours.")
            .answers::<QueryResponse>()
            .with_batch_body::<ContentItem>(json!({"text": STORY}))
            .with::<QueryOptions>(),
        ApiOperation::Insert => doc("Insert documents; each replaces any with its id.")
            .answers::<document::InsertResponse>()
            .with_batch_body::<NewDocument>(json!({"id": "http://a.example/1", "text": STORY}))
            .with::<InsertOptions>()
            .packed(),
        ApiOperation::CheckAndInsert => doc("Give the verdict and insert, in one step.")
            .answers::<document::CheckAndInsertResponse>()
            .with_batch_body::<NewDocument>(json!({"id": "http://a.example/2", "text": STORY}))
            .with::<CheckAndInsertOptions>()
            .packed(),
        ApiOperation::Delete => doc("Delete documents by id.")
            .answers::<document::DeleteResponse>()
            .with_batch_body::<DocumentId>(json!({"id": "http://a.example/1"}))
            .packed(),
        ApiOperation::Get => doc("Get documents by id; in a batch, null for missing ones.")
            .answers::<document::GetResponse>()
            .with_batch_body::<DocumentId>(json!({"id": "http://a.example/1"}))
            .with::<GetOptions>(),
        ApiOperation::Paragraphs => doc("Find the known paragraphs of a page, the same and similar ones, with their documents, and the known shares of the page.")
            .answers::<page::PageResponse>()
            .with_batch_body::<PageItem>(json!({"text": format!("First things first.\n\n{STORY}")}))
            .with::<PageOptions>(),
        ApiOperation::Rerank => doc("Order a list of documents by what is new in each.")
            .answers::<overlap::RankedResponse>()
            .with_batch_body::<ChunkedItem>(json!([{"id": "http://a.example/1"}, {"text": STORY}]))
            .with::<RerankOptions>(),
        ApiOperation::CopiesOf => doc("Find the documents that share chunks with a document, highest containment first: compares all texts that the collection keeps.")
            .answers::<overlap::CopiesResponse>()
            .with_body::<ChunkedItem>(json!({"text": STORY}))
            .with::<CopiesOptions>(),
        ApiOperation::Export => doc("Export all documents in full, as of one moment: one line of JSON each, as load takes them.")
            .answers_text("application/jsonl"),
        ApiOperation::Load => doc("Insert documents as an export has them, unchanged; each replaces any with its id.")
            .answers::<load::LoadResponse>()
            .with_batch_body::<ExportedDocument>(json!({"id": "http://a.example/3", "fingerprint": "725f3cfd073d502a", "expires_ms": null}))
            .with::<InsertOptions>(),
        ApiOperation::Expire => doc("Change the expiry of documents, by id.")
            .answers::<document::ExpireResponse>()
            .with_batch_body::<ExpiringDocument>(json!({"id": "http://a.example/1", "ttl_seconds": 86_400})),
        ApiOperation::ListCollections => doc("List all collections.")
            .answers::<Vec<collection::CollectionResponse>>(),
        ApiOperation::CreateCollection => doc("Create a collection; 200 if it exists with the same settings.")
            .answers::<collection::CollectionResponse>()
            .with_body::<NewCollection>(json!({"radius": 3, "keep": {"texts": true, "paragraphs": true}}))
            .statuses(&[201, 200]),
        ApiOperation::ShowCollection => doc("Show a collection and its settings.")
            .answers::<collection::CollectionResponse>(),
        ApiOperation::ChangeCollection => doc("Change the lifetime of documents that are inserted from now on.")
            .answers::<collection::CollectionResponse>()
            .with_body::<ChangedCollection>(json!({"ttl_seconds": 2_592_000})),
        ApiOperation::DropCollection => doc("Remove a collection and its documents.").statuses(&[204]),
        ApiOperation::Compact => doc("Merge all documents into one run in the background: speeds up checks and reclaims space.")
            .answers::<collection::CollectionResponse>()
            .with_body::<EmptyObject>(json!({}))
            .statuses(&[202]),
        ApiOperation::Resketch => doc("Sketch all documents anew under another scheme, table of terms, radius or number of equal places, in the background; 200 if the collection has these.")
            .answers::<collection::CollectionResponse>()
            .with_body::<ResketchedCollection>(json!({"radius": 6}))
            .statuses(&[202, 200]),
        ApiOperation::CancelResketch => doc("Cancel the job that sketches documents anew, or forget why it failed: the collection stays as it was.")
            .answers::<collection::CollectionResponse>()
            .statuses(&[202]),
        ApiOperation::Snapshot => doc("Make a snapshot of all collections, in the snapshot directory of the service.")
            .answers::<snapshot::SnapshotResponse>()
            .with_body::<NewSnapshot>(json!({"name": "monday"}))
            .statuses(&[201]),
        ApiOperation::Health => doc("The process answers.").answers::<status::HealthResponse>(),
        ApiOperation::Ready => doc("All collections are open and writable.")
            .answers::<status::ReadyResponse>()
            .statuses(&[200, 503]),
        ApiOperation::Metrics => doc("Counters for Prometheus.").answers_text("text/plain"),
        ApiOperation::Description => doc("This description.").answers::<AnyObject>(),
        ApiOperation::Console | ApiOperation::Other => return None,
    };
    Some(described)
}

/// Returns the description.
fn description(limits: &ServiceLimits) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        // Version 3.1 of OpenAPI implies this dialect, so no schema names it.
        settings.meta_schema = None;
        // `true` means the same, but not all readers understand it.
        let spelled_out = RecursiveTransform(|schema: &mut Schema| {
            if schema.as_bool() == Some(true) {
                *schema = Schema::from(Map::new());
            }
        });
        settings.transforms.push(Box::new(spelled_out));
    });
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in ApiOperation::all() {
        let Some(described) = described(operation) else {
            continue;
        };
        let (method, path) = operation.path();
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[method.to_lowercase()] = operation_value(operation, described, limits, &mut schemas);
    }
    // After all operations, because each adds the types that it uses.
    let mut definitions = schemas.take_definitions(true);
    definitions.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lookalike",
            "description": "Was this page seen before? Exact and near-duplicate verdicts on a durable collection.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation_value(
    operation: ApiOperation,
    described: OperationDoc,
    limits: &ServiceLimits,
    schemas: &mut SchemaGenerator,
) -> Value {
    let many = described.is_batch;
    let with_packed = |mut content: Value| {
        if described.packed {
            content[PACKED] = json!({"schema": {"type": "string", "format": "binary"}});
        }
        content
    };
    let answer = described.answer.map(|(kind, schema)| {
        with_packed(json!({kind: {"schema": one_or(schema(schemas), many)}}))
    });
    let body = described.body.map(|(schema, example)| {
        let mut asked = one_or(schema(schemas), many);
        if many {
            // The array is the second alternative of `one_or`.
            asked["oneOf"][1]["maxItems"] = limits.batch.into();
        }
        let json = json!({"schema": asked, "example": example});
        with_packed(json!({"application/json": json}))
    });
    let options = described.options.map(|options| options(schemas));
    let mut value = json!({
        "operationId": operation.name(),
        "summary": described.summary,
        "parameters": parameters(operation, options.as_ref()),
        "responses": responses(described.statuses, answer),
        // The empty alternative is for services without keys: whether keys are needed depends on the configuration.
        "security": operation.role().map_or(json!([]), |_| json!([{}, {"key": []}])),
    });
    if let Some(role) = operation.role() {
        value["x-role"] = role.to_string().into();
    }
    if let Some(content) = body {
        let most = limits.body_bytes;
        value["requestBody"] = json!({
            "description": format!("At most {most} bytes."), "required": true, "content": content,
        });
    }
    value
}

/// An item, or an array of them.
fn one_or(schema: Schema, many: bool) -> Value {
    if !many {
        return schema.into();
    }
    json!({"oneOf": [schema, {"type": "array", "items": schema}]})
}

fn responses(statuses: &[u16], content: Option<Value>) -> Value {
    let problem =
        json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let mut done = json!({"description": "Done."});
    if let Some(content) = content {
        done["content"] = content;
    }
    let mut responses =
        json!({"default": {"description": "Refused or failed.", "content": problem}});
    for status in statuses {
        responses[status.to_string()] = done.clone();
    }
    responses
}

/// Returns the options after the `?`, and the name in the path.
fn parameters(operation: ApiOperation, options: Option<&Schema>) -> Value {
    let mut all = Vec::new();
    if operation.path().1.contains("{name}") {
        all.push(json!({
            "name": "name", "in": "path", "required": true,
            "schema": {"type": "string", "pattern": NAME}, "example": "pages",
        }));
    }
    let properties = options.and_then(|options| options.get("properties")?.as_object());
    for (name, schema) in properties.into_iter().flatten() {
        all.push(json!({
            "name": name, "in": "query", "required": false,
            "description": schema.get("description"),
            "schema": given(schema),
        }));
    }
    all.into()
}

/// Removes `null` from the schema of an option: an option that is given cannot be `null`.
fn given(schema: &Value) -> Value {
    let mut given = schema.clone();
    if let Some(kinds) = given.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            given["type"] = kind.clone();
        }
    }
    // An optional reference is an alternative of the type and `null`.
    if let Some([kind, _null]) = given
        .get("anyOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        return kind.clone();
    }
    given
}

/// An arbitrary object.
#[derive(JsonSchema)]
struct AnyObject {}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "An error (RFC 9457).",
        "required": ["type", "title", "status", "code", "detail", "remedy"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string", "description": "One of few words, for programs."},
            "detail": {"type": "string"},
            "remedy": {"type": "string"},
            "item": {"type": "integer", "description": "Position in the batch, from 0."},
            "field": {"type": "string", "description": "Setting of a collection that is missing or wrong."},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_described_and_every_reference_leads_somewhere() {
        let all = description(&ServiceLimits::default());
        for operation in ApiOperation::all() {
            let (method, path) = operation.path();
            let entry = &all["paths"][path][method.to_lowercase()];
            let hidden = matches!(operation, ApiOperation::Console | ApiOperation::Other);
            assert_eq!(entry.is_null(), hidden, "{}", operation.name());
        }
        let text = all.to_string();
        let references = text.split("\"$ref\":\"#/components/schemas/").skip(1);
        for reference in references {
            let name = reference.split('"').next().expect("a name");
            assert!(all["components"]["schemas"][name].is_object(), "{name}");
        }
        let check = &all["paths"]["/v1/collections/{name}/check"]["post"];
        let batch = &check["requestBody"]["content"]["application/json"]["schema"]["oneOf"][1];
        assert_eq!(batch["maxItems"], ServiceLimits::default().batch);
        assert!(!text.contains(":true,\"title\"") && !text.contains("\"schema\":true"));
        let names: Vec<&str> = check["parameters"]
            .as_array()
            .expect("some")
            .iter()
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(
            names,
            ["name", "equal", "lengths", "pairs", "radius", "scheme"]
        );
    }
}

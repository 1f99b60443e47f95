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
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::app_state::AppState;
use crate::config::ServiceLimits;
use crate::endpoint::{collection, document, load, overlap, page, snapshot, status};
use crate::operation::ApiOperation;
use crate::request::{
    ChangedCollection, CheckAndInsertOptions, ChunkedItem, CopiesOptions, DocumentId,
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

/// The documentation of an operation.
struct OperationDoc {
    summary: &'static str,
    options: Option<Schema>,
    /// Schema of the body, and whether an array of such bodies is accepted as a batch.
    body: Option<(Schema, bool)>,
    /// Status and schema of the answer, which is JSON if there is a schema.
    answer: (u16, Option<Schema>),
    packed: bool,
}

impl OperationDoc {
    fn new(summary: &'static str, answer: Option<Schema>) -> Self {
        Self {
            summary,
            options: None,
            body: None,
            answer: (200, answer),
            packed: false,
        }
    }

    fn takes(self, body: Schema) -> Self {
        let body = Some((body, false));
        Self { body, ..self }
    }

    fn takes_many(self, body: Schema) -> Self {
        let body = Some((body, true));
        Self { body, ..self }
    }

    fn with(self, options: Schema) -> Self {
        let options = Some(options);
        Self { options, ..self }
    }

    fn packed(self) -> Self {
        Self {
            packed: true,
            ..self
        }
    }

    fn status(mut self, status: u16) -> Self {
        self.answer.0 = status;
        self
    }
}

/// Returns the documentation of an operation, with the schemas of its body and its answer.
fn described(operation: ApiOperation, schemas: &mut SchemaGenerator) -> Option<OperationDoc> {
    fn of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
        schemas.subschema_for::<T>()
    }
    let described = match operation {
        ApiOperation::Check => OperationDoc::new(
            "Check whether contents were seen before: verdicts only.",
            Some(of::<VerdictResponse>(schemas)),
        )
        .takes_many(of::<crate::request::ContentItem>(schemas))
        .with(of::<ScopeOptions>(schemas))
        .packed(),
        ApiOperation::Query => OperationDoc::new(
            "Check whether contents were seen before, with their neighbours.",
            Some(of::<QueryResponse>(schemas)),
        )
        .takes_many(of::<crate::request::ContentItem>(schemas))
        .with(of::<QueryOptions>(schemas)),
        ApiOperation::Insert => OperationDoc::new(
            "Insert documents; each replaces any with its id.",
            Some(of::<document::InsertResponse>(schemas)),
        )
        .takes_many(of::<NewDocument>(schemas))
        .with(of::<InsertOptions>(schemas))
        .packed(),
        ApiOperation::CheckAndInsert => OperationDoc::new(
            "Give the verdict and insert, in one step.",
            Some(of::<document::CheckAndInsertResponse>(schemas)),
        )
        .takes_many(of::<NewDocument>(schemas))
        .with(of::<CheckAndInsertOptions>(schemas))
        .packed(),
        ApiOperation::Delete => OperationDoc::new(
            "Delete documents by id.",
            Some(of::<document::DeleteResponse>(schemas)),
        )
        .takes_many(of::<DocumentId>(schemas))
        .packed(),
        ApiOperation::Get => OperationDoc::new(
            "Get documents by id; in a batch, null for missing ones.",
            Some(of::<document::GetResponse<'_>>(schemas)),
        )
        .takes_many(of::<DocumentId>(schemas))
        .with(of::<GetOptions>(schemas)),
        ApiOperation::Paragraphs => OperationDoc::new(
            "Find the known paragraphs of a page, the same and similar ones, with their documents, and the known shares of the page.",
            Some(of::<page::PageResponse>(schemas)),
        )
        .takes_many(of::<PageItem>(schemas))
        .with(of::<PageOptions>(schemas)),
        ApiOperation::Rerank => OperationDoc::new(
            "Order a list of documents by what is new in each.",
            Some(of::<overlap::RankedResponse>(schemas)),
        )
        .takes_many(of::<ChunkedItem>(schemas))
        .with(of::<RerankOptions>(schemas)),
        ApiOperation::CopiesOf => OperationDoc::new(
            "Find the documents that share chunks with a document, highest containment first: compares all texts that the collection keeps.",
            Some(of::<overlap::CopiesResponse>(schemas)),
        )
        .takes(of::<ChunkedItem>(schemas))
        .with(of::<CopiesOptions>(schemas)),
        ApiOperation::Export => OperationDoc::new(
            "Export all documents of one moment, whole: one line of JSON each, as load takes them.",
            None,
        ),
        ApiOperation::Load => OperationDoc::new(
            "Insert documents as an export has them, unchanged; each replaces any with its id.",
            Some(of::<load::LoadResponse>(schemas)),
        )
        .takes_many(of::<ExportedDocument>(schemas))
        .with(of::<InsertOptions>(schemas)),
        ApiOperation::Expire => OperationDoc::new(
            "Change the expiry of documents, by id.",
            Some(of::<document::ExpireResponse>(schemas)),
        )
        .takes_many(of::<ExpiringDocument>(schemas)),
        ApiOperation::ListCollections => OperationDoc::new(
            "List all collections.",
            Some(of::<Vec<collection::CollectionResponse>>(schemas)),
        ),
        ApiOperation::CreateCollection => OperationDoc::new(
            "Create a collection; 200 if it exists with the same settings.",
            Some(of::<collection::CollectionResponse>(schemas)),
        )
        .takes(of::<NewCollection>(schemas))
        .status(201),
        ApiOperation::ShowCollection => OperationDoc::new(
            "Show a collection and its settings.",
            Some(of::<collection::CollectionResponse>(schemas)),
        ),
        ApiOperation::ChangeCollection => OperationDoc::new(
            "Change the lifetime of documents that are inserted from now on.",
            Some(of::<collection::CollectionResponse>(schemas)),
        )
        .takes(of::<ChangedCollection>(schemas)),
        ApiOperation::DropCollection => {
            OperationDoc::new("Remove a collection and its documents.", None).status(204)
        }
        ApiOperation::Compact => OperationDoc::new(
            "Merge all documents into one run in the background: speeds up checks and reclaims space.",
            Some(of::<collection::CollectionResponse>(schemas)),
        )
        .takes(of::<EmptyObject>(schemas))
        .status(202),
        ApiOperation::Resketch => OperationDoc::new(
            "Sketch all documents anew under another scheme, table of terms, radius or number of equal places, in the background; 200 if the collection has these.",
            Some(of::<collection::CollectionResponse>(schemas)),
        )
        .takes(of::<ResketchedCollection>(schemas))
        .status(202),
        ApiOperation::CancelResketch => OperationDoc::new(
            "Cancel the job that sketches documents anew, or forget why it failed: the collection stays as it was.",
            Some(of::<collection::CollectionResponse>(schemas)),
        )
        .status(202),
        ApiOperation::Snapshot => OperationDoc::new(
            "Make a snapshot of all collections, in the snapshot directory of the service.",
            Some(of::<snapshot::SnapshotResponse>(schemas)),
        )
        .takes(of::<NewSnapshot>(schemas))
        .status(201),
        ApiOperation::Health => OperationDoc::new(
            "The process answers.",
            Some(of::<status::HealthResponse>(schemas)),
        ),
        ApiOperation::Ready => OperationDoc::new(
            "All collections are open and writable.",
            Some(of::<status::ReadyResponse>(schemas)),
        ),
        ApiOperation::Metrics => OperationDoc::new("Counters for Prometheus.", None),
        ApiOperation::Description => OperationDoc::new("This description.", Some(of::<AnyObject>(schemas))),
        ApiOperation::Console | ApiOperation::Other => return None,
    };
    Some(described)
}

/// Returns the description.
fn description(limits: &ServiceLimits) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
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
    for operation in ApiOperation::ALL {
        let Some(described) = described(operation, &mut schemas) else {
            continue;
        };
        let (method, path) = operation.path();
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[method.to_lowercase()] = operation_value(operation, described, limits, &mut schemas);
    }
    let mut definitions = schemas.take_definitions(true);
    definitions.insert("Problem".to_owned(), problem());
    // The schemas of options are inlined where they are used.
    definitions.retain(|name, _| !name.ends_with("Options"));
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
    let (status, answer) = described.answer;
    let many = described.body.as_ref().is_some_and(|(_, many)| *many);
    let mut value = json!({
        "operationId": operation.name(),
        "summary": described.summary,
        "parameters": parameters(operation, described.options, schemas),
        "responses": responses(operation, status, answer, many, described.packed),
        "security": operation.role().map_or(json!([]), |_| json!([{}, {"key": []}])),
    });
    if let Some(role) = operation.role() {
        value["x-role"] = role.to_string().into();
    }
    if let Some((schema, _)) = described.body {
        let mut asked = one_or(schema, many);
        if many {
            asked["oneOf"][1]["maxItems"] = limits.batch.into();
        }
        let example = example(operation);
        let mut content = json!({"application/json": {"schema": asked, "example": example}});
        if described.packed {
            content[PACKED] = json!({"schema": {"type": "string", "format": "binary"}});
        }
        let most = limits.body_bytes;
        value["requestBody"] = json!({
            "description": format!("At most {most} bytes."), "required": true, "content": content,
        });
    }
    value
}

/// Returns an example body for an operation.
fn example(operation: ApiOperation) -> Value {
    const STORY: &str = "The ferry left the harbour at nine with forty people on board.";
    match operation {
        ApiOperation::Check | ApiOperation::Query => json!({"text": STORY}),
        ApiOperation::Insert => json!({"id": "http://a.example/1", "text": STORY}),
        ApiOperation::CheckAndInsert => json!({"id": "http://a.example/2", "text": STORY}),
        ApiOperation::Delete | ApiOperation::Get => json!({"id": "http://a.example/1"}),
        ApiOperation::Expire => json!({"id": "http://a.example/1", "ttl_seconds": 86_400}),
        ApiOperation::Load => {
            json!({"id": "http://a.example/3", "fingerprint": "725f3cfd073d502a", "expires_ms": null})
        }
        ApiOperation::Paragraphs => json!({"text": format!("First things first.\n\n{STORY}")}),
        ApiOperation::Rerank => json!([{"id": "http://a.example/1"}, {"text": STORY}]),
        ApiOperation::CopiesOf => json!({"text": STORY}),
        ApiOperation::CreateCollection => {
            json!({"radius": 3, "keep": {"texts": true, "paragraphs": true}})
        }
        ApiOperation::ChangeCollection => json!({"ttl_seconds": 2_592_000}),
        ApiOperation::Resketch => json!({"radius": 6}),
        ApiOperation::Snapshot => json!({"name": "monday"}),
        _ => json!({}),
    }
}

/// Returns the schema of one item, or of an item or an array of items.
fn one_or(schema: Schema, many: bool) -> Value {
    if !many {
        return schema.into();
    }
    json!({"oneOf": [schema, {"type": "array", "items": schema}]})
}

fn responses(
    operation: ApiOperation,
    status: u16,
    answer: Option<Schema>,
    many: bool,
    packed: bool,
) -> Value {
    let content = match (answer, operation) {
        (Some(schema), _) => {
            let mut content = json!({"application/json": {"schema": one_or(schema, many)}});
            if packed {
                content[PACKED] = json!({"schema": {"type": "string", "format": "binary"}});
            }
            Some(content)
        }
        (None, ApiOperation::Metrics) => {
            Some(json!({"text/plain": {"schema": {"type": "string"}}}))
        }
        (None, ApiOperation::Export) => {
            Some(json!({"application/jsonl": {"schema": {"type": "string"}}}))
        }
        (None, _) => None,
    };
    let problem =
        json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let mut done = json!({"description": "Done."});
    if let Some(content) = content {
        done["content"] = content;
    }
    let mut responses = json!({status.to_string(): done});
    if operation == ApiOperation::CreateCollection {
        responses["200"] = responses["201"].clone();
    }
    if operation == ApiOperation::Resketch {
        responses["200"] = responses["202"].clone();
    }
    if operation == ApiOperation::Ready {
        responses["503"] = responses["200"].clone();
    }
    responses["default"] = json!({"description": "Refused or failed.", "content": problem});
    responses
}

/// Returns the options after the `?`, and the name in the path.
fn parameters(
    operation: ApiOperation,
    options: Option<Schema>,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mut all = Vec::new();
    if operation.path().1.contains("{name}") {
        all.push(json!({
            "name": "name", "in": "path", "required": true,
            "schema": {"type": "string", "pattern": NAME}, "example": "pages",
        }));
    }
    let options = options.map(|options| {
        let name = options
            .get("$ref")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        schemas
            .definitions()
            .get(&name)
            .cloned()
            .unwrap_or_default()
    });
    let properties = options
        .as_ref()
        .and_then(|options| options.get("properties")?.as_object());
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
        for operation in ApiOperation::ALL {
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

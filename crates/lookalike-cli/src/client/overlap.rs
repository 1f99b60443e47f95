//! Chunks shared by documents of a service: a list ordered by how much is new in each document, and copies of one document.

use std::path::PathBuf;

use lookalike::chunk::Chunking;
use serde_json::{Value, json};

use super::http::{ServiceClient, collection, escaped};
use super::output::print;
use crate::console;
use crate::failure::Failure;
use crate::overlap::result_list;

#[derive(clap::Args)]
pub(super) struct RerankArguments {
    /// Name of the collection
    collection: String,

    /// File with the ids of stored documents, best first, one per line
    #[arg(value_name = "LIST")]
    list: PathBuf,

    /// Kind of chunk: doc, sentences, paragraphs, lines:N, words:N, chars:N or fields:N
    #[arg(long, value_name = "CHUNKING", default_value = "lines:2")]
    chunk: Chunking,
}

#[derive(clap::Args)]
pub(super) struct CopiesArguments {
    /// Name of the collection
    collection: String,

    /// Id of a stored document
    id: String,

    /// Kind of chunk: doc, sentences, paragraphs, lines:N, words:N, chars:N or fields:N
    #[arg(long, value_name = "CHUNKING", default_value = "lines:2")]
    chunk: Chunking,

    /// Minimum number of shared chunks
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_shared: u32,

    /// Minimum share of one document's chunks that the other must hold
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = crate::arguments::share)]
    min_containment: f64,

    /// Maximum number of documents to show, up to 1000
    #[arg(long = "limit", value_name = "N", default_value_t = 1000)]
    copies: u32,
}

/// Prints a line for each document of the list.
pub(super) fn rerank(client: &ServiceClient, arguments: &RerankArguments) -> Result<(), Failure> {
    // In one request, because the order depends on the whole list.
    let ids = result_list(&arguments.list)?;
    let body: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    let chunk = escaped(&arguments.chunk.to_string());
    let path = collection(&arguments.collection, &format!("/rerank?chunk={chunk}"));
    let ranked = client.json("POST", &path, Some(&body.into()))?;
    ranked.as_array().into_iter().flatten().try_for_each(print)
}

/// Prints a line for each copy, and reports what was not compared.
pub(super) fn copies_of(
    client: &ServiceClient,
    arguments: &CopiesArguments,
) -> Result<(), Failure> {
    let CopiesArguments {
        chunk,
        min_shared,
        min_containment,
        copies,
        ..
    } = arguments;
    let chunk = escaped(&chunk.to_string());
    let options = format!(
        "/copies-of?chunk={chunk}&min_shared={min_shared}&min_containment={min_containment}&limit={copies}"
    );
    let path = collection(&arguments.collection, &options);
    // Every stored text is read, which takes as long as the collection is large.
    let client = client.without_answer_timeout();
    let answer = client.json("POST", &path, Some(&json!({"id": arguments.id})))?;
    let found = answer["copies"].as_array();
    // Results before warnings, so that a program that reads standard output from a pipe has received all of them.
    found.into_iter().flatten().try_for_each(print)?;
    let shown = found.map_or(0, Vec::len) as u64;
    for (count, what) in [
        (&answer["without_text"], "without a stored text"),
        (
            &answer["left_out"],
            "with a text that is too long for the service",
        ),
    ] {
        if let Some(count @ 1..) = count.as_u64() {
            let count = console::counted(count, "document");
            console::warning(&format!("not compared: {count} {what}"));
        }
    }
    let more = answer["found"]
        .as_u64()
        .unwrap_or_default()
        .saturating_sub(shown);
    if more > 0 {
        console::warning(&format!(
            "not shown: {} with as many shared chunks: raise --limit, --min-shared or --min-containment",
            console::counted(more, "document")
        ));
    }
    Ok(())
}

//! New sketches for the documents of a collection.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, ServiceClient};
use super::output::print;
use super::sketches::SketchSettings;
use super::terms;
use super::warn_of_paragraphs;
use crate::failure::Failure;

/// Interval at which `--wait` polls the job.
const POLL: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub(super) struct ResketchArguments {
    /// Name of the collection
    collection: String,

    /// Full text of the scheme [default: that of the collection]
    #[arg(long, value_name = "TEXT")]
    scheme: Option<String>,

    /// Table made by `lookalike terms` that the scheme uses; without --scheme, its features are used, weighted by idf
    #[arg(long, value_name = "FILE")]
    terms: Option<PathBuf>,

    /// Maximum distance of fingerprints in queries, in bits [default: that of the collection]
    #[arg(long, value_name = "BITS")]
    radius: Option<u32>,

    #[command(flatten)]
    sketches: SketchSettings,

    /// Wait for the end of the job; exit with status 1 if it fails
    #[arg(long)]
    wait: bool,

    /// Cancel the running job, or forget why the last one failed: the collection stays as it was
    #[arg(long, conflicts_with_all = ["scheme", "terms", "radius", "shingle", "sketch", "equal"])]
    cancel: bool,
}

pub(super) fn resketch(
    client: &ServiceClient,
    arguments: &ResketchArguments,
) -> Result<(), Failure> {
    let path = http::collection(&arguments.collection, "/resketch");
    if arguments.cancel {
        let shown = client.json("DELETE", &path, None)?;
        return finish(client, arguments, shown);
    }
    let (mut body, sketches) = (json!({}), &arguments.sketches);
    terms::add_scheme_and_table(
        arguments.terms.as_deref(),
        arguments.scheme.as_deref(),
        &mut body,
    )?;
    if let Some(radius) = arguments.radius {
        body["radius"] = radius.into();
    }
    // Features or a sketch without `--scheme` change the scheme of the collection, which has to be asked for.
    if sketches.change_scheme() {
        let shown = client.json("GET", &http::collection(&arguments.collection, ""), None)?;
        let scheme = shown["scheme"].as_str().unwrap_or_default();
        sketches.add(scheme, &mut body)?;
    } else {
        sketches.add("", &mut body)?;
    }
    if body == json!({}) {
        return Err(Failure::Usage(
            "nothing would change: give --scheme, --shingle, --sketch, --terms, --radius or --equal"
                .to_owned(),
        ));
    }
    let shown = client.json("POST", &path, Some(&body))?;
    let scheme = body["scheme"].as_str().and_then(|text| text.parse().ok());
    warn_of_paragraphs(scheme.as_ref(), &shown);
    finish(client, arguments, shown)
}

/// Prints the collection, after waiting for the end of its job if requested.
fn finish(
    client: &ServiceClient,
    arguments: &ResketchArguments,
    mut shown: Value,
) -> Result<(), Failure> {
    let job = shown["resketching"].clone();
    // Without a job, nothing changes, or the failure of an earlier one was cleared.
    if arguments.wait && job["state"] == "running" {
        shown = end_of_job(client, &arguments.collection, &job["job"])?;
        // A job that was cancelled elsewhere, or ended with the service, is not shown either.
        let differs = |field| !job[field].is_null() && job[field] != shown[field];
        let is_done = shown["resketched"] == job["job"]
            || !["scheme_id", "radius", "equal"].into_iter().any(differs);
        if !arguments.cancel && !is_done {
            return Err(Failure::Failed(format!(
                "{}: the collection does not have the new sketches: the job was cancelled, the service was restarted, or another job has \
                 replaced them",
                arguments.collection
            )));
        }
    }
    print(&shown)
}

/// Waits until the job with this number no longer runs for a collection. Fails if the job failed.
fn end_of_job(client: &ServiceClient, collection: &str, number: &Value) -> Result<Value, Failure> {
    loop {
        std::thread::sleep(POLL);
        let shown = client.json("GET", &http::collection(collection, ""), None)?;
        // A job that ended is no longer shown unless it failed; another one may be.
        let job = &shown["resketching"];
        if job["job"] != *number || job.is_null() {
            return Ok(shown);
        }
        if let Some(reason) = job["reason"].as_str() {
            return Err(Failure::Failed(format!(
                "{collection}: the sketches were not recomputed, and the collection is unchanged: {reason}"
            )));
        }
    }
}

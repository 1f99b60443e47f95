//! New sketches for the documents of a collection.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{self, ServiceClient};
use super::output::print;
use super::sketches::SketchSettings;
use super::terms;
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
    #[arg(long, conflicts_with_all = ["scheme", "terms", "radius", "sketch", "equal"])]
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
    let mut body = json!({});
    match (&arguments.terms, &arguments.scheme) {
        (Some(path), scheme) => terms::add(path, scheme.as_deref(), &mut body)?,
        (None, Some(scheme)) => body["scheme"] = scheme.as_str().into(),
        (None, None) if arguments.radius.is_none() && arguments.sketches.is_empty() => {
            return Err(Failure::Usage(
                "nothing would change: give --scheme, --sketch, --terms, --radius or --equal"
                    .to_owned(),
            ));
        }
        (None, None) => {}
    }
    if let Some(radius) = arguments.radius {
        body["radius"] = radius.into();
    }
    // A sketch without `--scheme` changes the scheme of the collection, which has to be asked for.
    if arguments.sketches.names_sketch() {
        let shown = client.json("GET", &http::collection(&arguments.collection, ""), None)?;
        let scheme = shown["scheme"].as_str().unwrap_or_default();
        arguments.sketches.add(scheme, &mut body)?;
    } else {
        arguments.sketches.add("", &mut body)?;
    }
    let shown = client.json("POST", &path, Some(&body))?;
    finish(client, arguments, shown)
}

/// Prints the collection, after waiting for the end of its job if requested.
fn finish(
    client: &ServiceClient,
    arguments: &ResketchArguments,
    mut shown: Value,
) -> Result<(), Failure> {
    if arguments.wait {
        let wanted = shown["resketching"].clone();
        shown = end_of_job(client, &arguments.collection, shown)?;
        // A job that was cancelled elsewhere, or ended with the service, is not shown either.
        let differs = |field| !wanted[field].is_null() && wanted[field] != shown[field];
        if !arguments.cancel && ["scheme_id", "radius", "equal"].into_iter().any(differs) {
            return Err(Failure::Failed(format!(
                "{}: the sketches were not recomputed: the job was cancelled, or the service was restarted",
                arguments.collection
            )));
        }
    }
    print(&shown)
}

/// Waits until no job runs for a collection. Fails if the job failed.
fn end_of_job(
    client: &ServiceClient,
    collection: &str,
    mut shown: Value,
) -> Result<Value, Failure> {
    // A job that ended well is no longer shown, so the loop ends as well if the collection has its new scheme.
    while shown["resketching"]["state"] == "running" {
        std::thread::sleep(POLL);
        shown = client.json("GET", &http::collection(collection, ""), None)?;
    }
    let job = &shown["resketching"];
    match job["reason"].as_str() {
        None => Ok(shown),
        Some(reason) => Err(Failure::Failed(format!(
            "{collection}: the sketches were not recomputed, and the collection is unchanged: {reason}"
        ))),
    }
}

//! A request to a collection, and the steps that all of them take: its options are read, then its body within limits; a worker does the
//! work; and the answer holds its memory until it is sent.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use lookalike_store::{
    Collection, CollectionSettings, SketchForm, StoreError, StoredScheme, WriteOp, WriteReceipt,
    WriteTime,
};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::app_state::AppState;
use crate::client::{KeyName, RequestSender};
use crate::connection_activity::ConnectionActivity;
use crate::problem::ProblemDetails;
use crate::request::{
    BodyFormat, EncodedBody, ReceivedBody, RequestItem, RequestItems, no_compact_form, parse_one,
    places_name, receive,
};
use crate::request_memory::WorkPermit;
use crate::response::with_permit;
use crate::scheme::default_scheme;
use crate::sketch_cache::{SketchCache, fields_per_byte, scratch_per_byte};
use crate::worker_pool::{WorkLimit, run_inline};

/// Number of requests waiting to be written at which more are refused.
const WAITING_WRITES: usize = 4096;

/// A request to a collection, of which everything but the body has been read.
pub(crate) struct CollectionRequest<O> {
    pub(crate) app: Arc<AppState>,
    /// Name in the path. It is only compared with names of existing collections, or checked by the store before one is created.
    pub(crate) name: String,
    pub(crate) options: O,
    /// Name of its key.
    pub(crate) by: Option<KeyName>,
    request: Request,
}

/// An empty set of options.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoOptions {}

impl<O: DeserializeOwned> FromRequest<Arc<AppState>> for CollectionRequest<O> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, ProblemDetails> {
        let (mut parts, body) = request.into_parts();
        let path = Path::<String>::from_request_parts(&mut parts, &()).await;
        let Path(name) = path.map_err(|refused| ProblemDetails::malformed(refused.body_text()))?;
        Ok(Self {
            app: Arc::clone(app),
            name,
            options: options_of(&parts.uri)?,
            by: parts.extensions.get().cloned(),
            request: Request::from_parts(parts, body),
        })
    }
}

impl FromRequestParts<Arc<AppState>> for NoOptions {
    type Rejection = ProblemDetails;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &Arc<AppState>,
    ) -> Result<Self, ProblemDetails> {
        options_of(&parts.uri)
    }
}

/// Reads the options of a request from its query string.
fn options_of<O: DeserializeOwned>(uri: &Uri) -> Result<O, ProblemDetails> {
    let options = Query::try_from_uri(uri).map_err(|refused| {
        // Use the source of the error: the text around it is that of the library.
        let reason = std::error::Error::source(&refused);
        let reason = reason.map_or_else(|| refused.body_text(), ToString::to_string);
        ProblemDetails::malformed(format!("invalid query string: {reason}"))
    })?;
    let Query(options) = options;
    Ok(options)
}

/// The context of the work on a request.
pub(crate) struct CollectionTask<'b> {
    pub(crate) app: &'b AppState,
    pub(crate) cache: &'b mut SketchCache,
    pub(crate) limit: &'b WorkLimit<'b>,
    pub(crate) collection: Arc<Collection>,
    pub(crate) settings: Arc<CollectionSettings>,
    pub(crate) time: WriteTime,
    body: ReceivedBody,
    /// The memory of the request.
    permit: WorkPermit,
}

impl CollectionTask<'_> {
    /// Takes the body and reads its items.
    pub(crate) fn items<T: RequestItem>(&mut self) -> Result<RequestItems<T>, ProblemDetails> {
        // The items own what they need, so the body is freed as soon as they are read.
        let bytes = std::mem::take(&mut self.body.bytes);
        RequestItems::read(&bytes, self.body.format, self.app.limits.batch)
    }

    /// Takes the body and reads contents. Their compact form has fingerprints of 64 bits, no category and no length.
    pub(crate) fn contents<T: RequestItem>(&mut self) -> Result<RequestItems<T>, ProblemDetails> {
        let is_packed = self.body.format == BodyFormat::Packed;
        let refused = |detail: String, remedy: &'static str| {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(ProblemDetails::new(status, "media-type", detail, remedy))
        };
        // Before the body is cut into items, because those of other widths have other lengths.
        let form = self.settings.sketch_form();
        if is_packed && form != SketchForm::Fingerprint {
            let held = places_name(form);
            let what = "the compact form has fingerprints of 64 bits";
            return refused(
                format!("the collection holds {held}, and {what}"),
                "send JSON",
            );
        }
        if is_packed && !self.settings.pairs.is_open() {
            return refused(
                "the collection compares categories or lengths of texts, which the compact form does not tell".to_owned(),
                "send JSON with `category` or `url`, and `length`",
            );
        }
        self.items()
    }

    /// Takes the body and reads it as a single object.
    pub(crate) fn object<T: DeserializeOwned>(&mut self) -> Result<T, ProblemDetails> {
        object(&std::mem::take(&mut self.body.bytes), self.body.format)
    }
}

/// Reads a body that is a single object.
pub(crate) fn object<T: DeserializeOwned>(
    body: &[u8],
    format: BodyFormat,
) -> Result<T, ProblemDetails> {
    match format {
        BodyFormat::Json => parse_one(body),
        BodyFormat::Packed => Err(no_compact_form()),
    }
}

/// Size in bytes up to which bodies of quick operations are processed on the thread that reads them.
const SMALL: usize = 512;
/// The same limit for bodies without texts: some hundred fingerprints, which take less than a millisecond.
const SMALL_PACKED: usize = 2048;

/// Number of hexadecimal digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 16;

/// The memory in bytes that a request needs beyond that of its body: a fixed part, a part for each item that the body may hold, and a part
/// for each byte of the body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestCost {
    pub(crate) fixed: usize,
    pub(crate) item: usize,
    pub(crate) byte: usize,
    /// True if a small body needs no disk read and no long computation.
    pub(crate) quick: bool,
    /// True if items with a text may still need a disk read.
    pub(crate) reads_texts: bool,
}

impl RequestCost {
    /// Cost of a quick operation that needs no memory and no disk.
    pub(crate) const QUICK: Self = Self {
        fixed: 0,
        item: 0,
        byte: 0,
        quick: true,
        reads_texts: false,
    };

    /// Returns the memory in bytes for the work on a body and for the answer.
    fn of(self, body: &ReceivedBody, batch: usize) -> usize {
        let length = body.bytes.len();
        // The smallest item, in the compact form, has eight bytes. Count the items that a body of this size may hold, not those that it
        // does hold: it is parsed later, after the permit was taken.
        let items = batch.min(length / 8).max(1);
        MIN_REQUEST_MEMORY + self.fixed + items * self.item + length * (BYTES_PER_BYTE + self.byte)
    }
}

/// Memory in bytes that any request takes.
const MIN_REQUEST_MEMORY: usize = 16 << 10;
/// Memory in bytes for each byte of a body, apart from sketches: for what is parsed and extracted from it.
const BYTES_PER_BYTE: usize = 4;

/// Returns the memory in bytes that a worker needs to sketch the texts of a body one by one.
fn sketch_bytes(app: &AppState, name: &str, body: &ReceivedBody) -> usize {
    // Nothing of a compact body is sketched, and the fixed part of the cost is enough for so short a text.
    if body.format == BodyFormat::Packed || body.bytes.len() <= SMALL {
        return 0;
    }
    let (per_byte, of_fields) = match app.store.try_collection(name) {
        Some(Ok(collection)) => {
            let scheme = &collection.settings().scheme;
            (scratch_per_byte(scheme), fields_per_byte(scheme))
        }
        // The request will be refused.
        Some(Err(_)) => (0, 0),
        // The request waits for a collection that is being created or removed.
        None => (scratch_per_byte(&StoredScheme::from(&default_scheme())), 0),
    };
    // Texts are sketched one after the other, so the longest determines the memory; fields are counted by the whole body.
    let of_text = longest_string(&body.bytes).saturating_mul(per_byte);
    of_text.saturating_add(body.bytes.len().saturating_mul(of_fields))
}

/// Returns an upper bound on the length in bytes of the longest string in a JSON text; 0 if it has none, so that nothing is sketched.
fn longest_string(json: &[u8]) -> usize {
    let (mut longest, mut begun) = (0, 0);
    for quote in memchr::memchr_iter(b'"', json) {
        let escapes = json[begun..quote].iter().rev();
        // An odd run of backslashes escapes the quote (RFC 8259 section 7). Text between strings counts as a string too, which is safe
        // because it only overestimates.
        if escapes.take_while(|byte| **byte == b'\\').count() % 2 == 1 {
            continue;
        }
        longest = longest.max(quote - begun);
        begun = quote + 1;
    }
    // What follows the last quote is no string, or the JSON is cut short and will be refused.
    longest
}

impl ReceivedBody {
    /// Tells whether no item has a text of more than a word: strings of fingerprints and names of fields are short.
    fn has_no_text(&self) -> bool {
        self.format == BodyFormat::Packed || longest_string(&self.bytes) <= FINGERPRINT_DIGITS
    }

    fn is_small(&self) -> bool {
        let most = match self.format {
            BodyFormat::Json => SMALL,
            BodyFormat::Packed => SMALL_PACKED,
        };
        self.bytes.len() <= most
    }
}

impl<O> CollectionRequest<O> {
    /// Returns what is known of the connection; `None` for a request without one.
    pub(crate) fn activity(&self) -> Option<Arc<ConnectionActivity>> {
        self.request.extensions().get().cloned()
    }

    /// Runs work on the collection once the body has arrived: on a worker, or on this thread if it is quick.
    pub(crate) async fn on_worker<T: Send + 'static>(
        self,
        cost: RequestCost,
        work: impl FnOnce(CollectionTask<'_>) -> Result<T, ProblemDetails> + Send + 'static,
    ) -> Result<(T, WorkPermit), ProblemDetails> {
        let Self {
            app, name, request, ..
        } = self;
        let client = RequestSender::of(&request);
        let body = receive(&app, request).await?;
        let bytes = cost.of(&body, app.limits.batch) + sketch_bytes(&app, &name, &body);
        // Take memory before a worker: a request waiting for memory on a worker would block those that hold the memory. From here on the
        // request never waits for memory again, so holders of permits always finish, and no cycle of waits can occur.
        let permit = app.memory.work(client, bytes).await?;
        let held = permit.clone();
        let task = move |app: &AppState,
                         (cache, limit): (&mut SketchCache, &WorkLimit<'_>),
                         collection: Arc<Collection>,
                         body| {
            cache.set_scheme_state(app.scheme_states.of(&collection)?);
            work(CollectionTask {
                cache,
                limit,
                settings: collection.settings(),
                collection,
                time: app.clock.write_time(),
                app,
                body,
                permit: held,
            })
        };
        // This thread serves other connections, so it must not read from disk or wait for a collection that is being created or removed.
        if cost.quick
            && body.is_small()
            && (!cost.reads_texts || body.has_no_text())
            && let Some(collection) = app.store.try_collection(&name)
            && collection
                .as_ref()
                // A collection that could not be opened is refused below, which takes no read.
                .map_or(true, |open| app.scheme_states.is_cached(open))
        {
            let collection = collection?;
            let done = run_inline(|cache, limit| task(&app, (cache, limit), collection, body))?;
            return Ok((done, permit));
        }
        let on_worker = Arc::clone(&app);
        let done = app.workers.run(move |cache, limit| {
            let collection = on_worker.collection(&name)?;
            task(&on_worker, (cache, limit), collection, body)
        });
        Ok((done.await?, permit))
    }

    /// Runs work like [`CollectionRequest::on_worker`], and responds with its result.
    pub(crate) async fn answer(
        self,
        cost: RequestCost,
        work: impl FnOnce(CollectionTask<'_>) -> Result<EncodedBody, ProblemDetails> + Send + 'static,
    ) -> Result<Response, ProblemDetails> {
        let (written, permit) = self.on_worker(cost, work).await?;
        Ok(with_permit(StatusCode::OK, written, permit))
    }

    /// Runs work like [`CollectionRequest::on_worker`], but work that needs no collection.
    pub(crate) async fn without_collection<T: Send + 'static>(
        self,
        work: impl FnOnce(&AppState, String, ReceivedBody) -> Result<T, ProblemDetails> + Send + 'static,
    ) -> Result<(T, WorkPermit), ProblemDetails> {
        let Self {
            app, name, request, ..
        } = self;
        let client = RequestSender::of(&request);
        let body = receive(&app, request).await?;
        // As in `on_worker`: memory first, then a worker.
        let permit = app.memory.work(client, body_bytes(&body)).await?;
        let done = app.on_worker(move |app| work(app, name, body));
        Ok((done.await?, permit))
    }
}

/// Returns the memory for the work on a body of which no text is sketched.
pub(crate) fn body_bytes(body: &ReceivedBody) -> usize {
    RequestCost::default().of(body, 1)
}

/// Writes that have been submitted to the store.
pub(crate) struct SubmittedWrites(oneshot::Receiver<lookalike_store::Result<WriteReceipt>>);

impl SubmittedWrites {
    /// Waits until they are durable.
    pub(crate) async fn wait(self) -> Result<WriteReceipt, ProblemDetails> {
        Ok(self.0.await.unwrap_or(Err(StoreError::Closed))?)
    }
}

impl CollectionTask<'_> {
    /// Submits writes to the store, to be done all or none.
    pub(crate) fn submit(&self, writes: Vec<WriteOp>) -> Result<SubmittedWrites, ProblemDetails> {
        // The queue of the store has no limit of its own. This is the last point at which a client can be refused; after it, the request
        // waits for the sync.
        if self.collection.queued() >= WAITING_WRITES {
            return Err(ProblemDetails::busy(
                "writes",
                "too many requests wait to be written",
            ));
        }
        let (done, submitted) = oneshot::channel();
        // Its documents wait in the queue even if the client leaves, so until then they count as memory of requests.
        let permit = self.permit.clone();
        self.collection.submit(writes, self.time, move |written| {
            // First, so that the caller finds all the memory that it may return.
            drop(permit);
            // The caller may be gone.
            let _ = done.send(written);
        });
        Ok(SubmittedWrites(submitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_string_is_found_whatever_is_escaped_in_it() {
        for (json, longest) in [
            ("", 0),
            ("{}", 0),
            (r#"{"a":"bcd"}"#, 3),
            (r#"["a\"b\\","c"]"#, 6),
            (r#"["\\\"","c"]"#, 4),
        ] {
            assert_eq!(longest_string(json.as_bytes()), longest, "{json}");
        }
    }
}

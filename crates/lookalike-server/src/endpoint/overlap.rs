//! Two uses of the chunks of single documents (Shivakumar and Garcia-Molina, section 4): ordering results by how much is new in each, and
//! finding the copies of one page. This is the same as `lookalike overlap --rerank` and `--copies-of`, for the texts that a collection
//! keeps.
//!
//! Copies are searched for in all texts, one after the other, on a separate thread. However long that takes, it holds up nobody else, and
//! it ends when the client disconnects.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use lookalike::chunk::{Chunker, Chunking, order_by_novelty};
use lookalike::resemblance::intersection_size;
use lookalike_corpus::spawn_detached;
use lookalike_store::{Collection, StoreError, UnixMillis};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

use super::collection_request::{CollectionRequest, CollectionTask, RequestCost};
use crate::operation::ApiOperation;
use crate::problem::ProblemDetails;
use crate::request::{
    ChunkedDocument, ChunkedItem, CopiesOptions, CopyScope, EncodedBody, ItemResponse,
    RerankOptions, packed,
};
use crate::response::with_permit;

/// Maximum number of chunks of all documents of a list together.
const MAX_CHUNKS: usize = 500_000;
/// Memory in bytes of a chunk in a list: in its set, and with its document in the order.
const BYTES_PER_CHUNK: usize = 32;
/// Maximum memory for the chunks of one stored text, in multiples of the largest body; longer texts are left out.
const TEXT_BODIES: usize = 4;
/// Size in bytes of texts above which the memory of their chunks is freed.
const MAX_RETAINED_BYTES: usize = 256 << 10;

/// A document of a list, with its new position.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RankedDocument")]
pub(crate) struct RankedResponse {
    /// New position, from 1.
    rank: usize,
    /// Id, if it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Position in the list that was sent, from 1.
    was: usize,
    /// Number of distinct chunks of its text.
    chunks: usize,
    /// Number of those chunks that no document before it has.
    new_chunks: usize,
    /// Share of new chunks, from 0 to 1; 0 for a text without chunks.
    new: f64,
}

impl ItemResponse for RankedResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.new_chunks > 0)
    }
}

/// The documents that share chunks with a given one, and what was compared.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Copies")]
pub(crate) struct CopiesResponse {
    /// Number of distinct chunks of the given text.
    chunks: usize,
    /// Number of texts that it was compared with: all of the collection as of one moment.
    compared: u64,
    /// Number of documents without a stored text, which were not compared.
    without_text: u64,
    /// Number of documents whose texts are too long to be compared within the limits of the service.
    left_out: u64,
    /// Number of documents that share enough chunks.
    found: u64,
    /// First of these documents, by containment in descending order and then by id.
    copies: Vec<CopyResponse>,
}

/// A document that shares chunks with the given one.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "Copy")]
struct CopyResponse {
    id: String,
    /// Number of chunks that both have.
    shared: usize,
    /// Number of distinct chunks of its text.
    chunks: usize,
    /// Share of the given document's chunks that this document has.
    containment: f64,
    /// Share of its chunks that the given document has.
    copy_containment: f64,
    /// Number of shared chunks divided by the number of all chunks of both.
    resemblance: f64,
}

impl CopyResponse {
    fn order(&self) -> (Reverse<usize>, &str) {
        // All copies are compared with the same document, so this is the order by containment, without rounding.
        (Reverse(self.shared), &self.id)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    // A text without chunks shares nothing: 0 instead of 0 / 0.
    part as f64 / whole.max(1) as f64
}

/// Handles `POST /v1/collections/NAME/rerank`.
pub(crate) async fn rerank(
    request: CollectionRequest<RerankOptions>,
) -> Result<Response, ProblemDetails> {
    let chunking = request.options.chunking()?;
    // Texts that are named by their ids are read one after the other.
    let stored_text = TEXT_BODIES * request.app.limits.body_bytes;
    let cost = RequestCost {
        fixed: MAX_CHUNKS * BYTES_PER_CHUNK + stored_text,
        item: size_of::<RankedResponse>() + 512,
        ..RequestCost::default()
    };
    let work = move |mut task: CollectionTask<'_>| {
        let mut chunker = task.cache.chunker(&task.settings.scheme, chunking)?;
        let (mut ids, mut sets, mut room) = (Vec::new(), Vec::new(), MAX_CHUNKS);
        let listed = task.items::<ChunkedItem>()?.try_map_placed(|item, place| {
            task.limit.check()?;
            let document = item.checked();
            let chunked = document.and_then(|document| {
                let set = task.chunks(&document, &mut chunker)?;
                // The limit is on the sum, because all sets are in memory at the same time.
                room = room.checked_sub(set.len()).ok_or_else(too_many)?;
                sets.push(set);
                ids.push(document.id);
                Ok(())
            });
            chunked.map_err(|problem| problem.at(place))
        });
        let (_, shape) = listed?.into_parts();
        let order = order_by_novelty(&sets).into_iter().enumerate();
        let ranked = order.map(|(place, document)| {
            let chunks = sets[document.number].len();
            RankedResponse {
                rank: place + 1,
                // Each document is in the order once, so its id can be moved.
                id: ids[document.number].take(),
                was: document.number + 1,
                chunks,
                new_chunks: document.new_chunks,
                new: share(document.new_chunks, chunks),
            }
        });
        let ranked: Vec<RankedResponse> = ranked.collect();
        let metrics = &task.app.metrics;
        metrics.documents(ApiOperation::Rerank, ranked.len());
        Ok(shape.write(&ranked))
    };
    request.answer(cost, work).await
}

fn too_many() -> ProblemDetails {
    ProblemDetails::invalid(
        format!("the documents up to this one have more than {MAX_CHUNKS} chunks"),
        "send a shorter list, or ask for longer chunks that do not overlap, such as chunk=words:20",
    )
}

/// A search that compares a document with all others of its collection.
struct CopySearch {
    collection: Arc<Collection>,
    now: UnixMillis,
    chunker: Chunker,
    /// Distinct chunks of the document, in ascending order.
    set: Vec<u64>,
    /// Its id, so that it is not reported as a copy of itself.
    id: Option<String>,
    scope: CopyScope,
    /// Maximum size in bytes of a text that is compared.
    longest: usize,
}

/// Handles `POST /v1/collections/NAME/copies-of`.
pub(crate) async fn copies_of(
    request: CollectionRequest<CopiesOptions>,
) -> Result<Response, ProblemDetails> {
    let (scope, app) = (request.options.scope()?, request.app.clone());
    let scratch = TEXT_BODIES * app.limits.body_bytes;
    let cost = RequestCost {
        fixed: scratch,
        ..RequestCost::default()
    };
    let work = move |mut task: CollectionTask<'_>| {
        let mut chunker = task.cache.chunker(&task.settings.scheme, scope.chunking)?;
        let document = task.object::<ChunkedItem>()?.checked()?;
        let set = task.chunks(&document, &mut chunker)?;
        Ok(CopySearch {
            collection: task.collection,
            now: task.time.now,
            chunker,
            set,
            id: document.id,
            scope,
            longest: scratch / scratch_per_byte(scope.chunking),
        })
    };
    // The permit stays with this handler. If the client disconnects, it is freed at once, and the thread ends at the next document.
    let (search, permit) = request.on_worker(cost, work).await?;
    // After the body has arrived, so that a slow sender does not occupy a slot.
    let running = app.begin_export()?;
    let (sender, receiver) = oneshot::channel();
    let searching = move || {
        // This handler, and the receiver with it, is dropped when its client disconnects.
        let found = search.run(&|| !sender.is_closed());
        drop(running);
        // The caller may be gone.
        let _ = sender.send(found);
    };
    let thread = std::thread::Builder::new().name("copies".to_owned());
    spawn_detached(thread, searching)
        .map_err(|error| ProblemDetails::busy("exports", format!("no thread for it: {error}")))?;
    let found = receiver.await.map_err(|_| ProblemDetails::panic())??;
    app.metrics.documents(ApiOperation::CopiesOf, 1);
    let found = EncodedBody::json(&found);
    Ok(with_permit(StatusCode::OK, found, permit))
}

/// Returns the memory in bytes that a byte of a text may take for its chunks: the text itself, and twice the hash of each word or
/// character.
fn scratch_per_byte(chunking: Chunking) -> usize {
    match chunking {
        Chunking::Characters(_) => 18,
        _ => 10,
    }
}

impl CopySearch {
    fn run(mut self, is_wanted: &dyn Fn() -> bool) -> Result<CopiesResponse, ProblemDetails> {
        let mut found = CopiesResponse {
            chunks: self.set.len(),
            ..CopiesResponse::default()
        };
        let (collection, now) = (Arc::clone(&self.collection), self.now);
        collection.for_each(now, &mut |document| {
            if !is_wanted() {
                // Any error ends the pass; nobody is left to see this one.
                return Err(StoreError::Closed);
            }
            if self.id.as_deref() == Some(&document.id) {
                return Ok(());
            }
            match &document.text {
                None => found.without_text += 1,
                Some(text) if text.len() > self.longest => found.left_out += 1,
                Some(text) => {
                    found.compared += 1;
                    if let Some(copy) = self.compare(&document.id, text) {
                        found.found += 1;
                        found.add(copy, self.scope.limit);
                    }
                }
            }
            Ok(())
        })?;
        found.cut(self.scope.limit);
        Ok(found)
    }

    /// Compares with a stored text, and returns its document if it shares enough chunks.
    fn compare(&mut self, id: &str, text: &str) -> Option<CopyResponse> {
        self.chunker.chunk(text);
        let theirs = self.chunker.set(0);
        let (ours, chunks) = (self.set.len(), theirs.len());
        // Counted exactly: sets of chunks are small, and no sketches of them are kept.
        let shared = intersection_size(&self.set, theirs);
        // Otherwise one long text among millions would determine the memory of the whole search.
        if text.len() > MAX_RETAINED_BYTES {
            self.chunker.shrink();
        }
        // Divided by the smaller set, this is the larger of the two containments.
        let enough = shared >= self.scope.min_shared
            && share(shared, ours.min(chunks)) >= self.scope.min_containment;
        enough.then(|| CopyResponse {
            id: id.to_owned(),
            shared,
            chunks,
            containment: share(shared, ours),
            copy_containment: share(shared, chunks),
            resemblance: share(shared, ours + chunks - shared),
        })
    }
}

impl CopiesResponse {
    /// Adds a copy, and drops the last ones once there are more than twice as many as are shown.
    fn add(&mut self, copy: CopyResponse, limit: usize) {
        self.copies.push(copy);
        // Truncate only now and then: amortised, each copy takes log(limit) comparisons, and memory stays within three times that of the
        // answer.
        if self.copies.len() > 2 * limit + 100 {
            self.cut(limit);
        }
    }

    fn cut(&mut self, limit: usize) {
        self.copies
            .sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        self.copies.truncate(limit);
    }
}

impl CollectionTask<'_> {
    /// Returns the distinct chunks of the content sent, or otherwise of the stored document with the id.
    fn chunks(
        &mut self,
        document: &ChunkedDocument,
        chunker: &mut Chunker,
    ) -> Result<Vec<u64>, ProblemDetails> {
        let scheme = &self.settings.scheme;
        if let Some(content) = &document.content {
            self.cache.chunk(scheme, chunker, content)?;
            return Ok(chunker.set(0).to_vec());
        }
        let id = document.id.as_deref().unwrap_or_default();
        let stored = self.collection.get(id, self.time.now)?.ok_or_else(|| {
            ProblemDetails::new(
                StatusCode::NOT_FOUND,
                "no-document",
                format!("the collection has no document with the id {id:?}"),
                "send its text, or leave it out",
            )
        })?;
        let text = stored.text.as_deref().ok_or_else(|| {
            ProblemDetails::conflict(
                "no-text",
                format!("the text of the document {id:?} is not kept"),
                "send its text, or use a collection with keep.texts",
            )
        })?;
        self.cache.chunk_text(scheme, chunker, text)?;
        Ok(chunker.set(0).to_vec())
    }
}

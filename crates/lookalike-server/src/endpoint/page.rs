//! Pages by paragraph: which paragraphs were seen before and where, and what share of the page is known (Yu, Hu and Zhang).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use axum::response::Response;
use lookalike_store::{ParagraphLookup, ParagraphMatches, StoredParagraph, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::collection_request::{CollectionRequest, CollectionTask, RequestCost};
use crate::operation::ApiOperation;
use crate::paragraph::{PageParagraph, has_words};
use crate::problem::ProblemDetails;
use crate::request::{HASHES, ItemResponse, PageItem, PageOptions, ParagraphQuery, packed};
use crate::rounding::rounded;
use crate::verdict::verdict_name;

/// Maximum size in bytes of the documents in an answer; paragraphs beyond it have a verdict, but no documents.
const DOCUMENTS: usize = 1 << 20;

/// The paragraphs of a page, and how many are known.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageParagraphs")]
pub(crate) struct PageResponse {
    /// Paragraphs, in the order of the page.
    paragraphs: Vec<ParagraphResponse>,
    /// Number of paragraphs that were seen before, identical or similar.
    known: usize,
    /// Number of paragraphs that were seen with the same words.
    exact: usize,
    #[serde(flatten)]
    words: Option<PageWords>,
}

/// Numbers of words, by what is known of their paragraphs; left out if hashes were sent.
#[derive(Serialize, JsonSchema)]
struct PageWords {
    /// Number of words in all paragraphs.
    words: usize,
    /// Number of words in paragraphs that were seen before, identical or similar.
    known_words: usize,
    /// Share of words in these paragraphs, from 0 to 1; 0 for a page without words.
    known_share: f64,
    /// Number of words in paragraphs that were seen with the same words.
    exact_words: usize,
    /// Share of words in these paragraphs, from 0 to 1.
    exact_share: f64,
}

/// A paragraph of a page, and what is known of it.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "KnownParagraph")]
struct ParagraphResponse {
    /// Hash of its words: 16 hexadecimal digits, with which it can be searched for again.
    hash: String,
    /// Fingerprint, 16 hexadecimal digits, by which similar paragraphs are found; left out if the paragraph is too short to have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Number of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<usize>,
    /// `exact`: a document has a paragraph with the same words. `same-fingerprint`: a document has a paragraph with the same fingerprint.
    /// `near`: a document has a paragraph within the radius. `new`: none of these.
    #[schemars(extend("enum" = ["new", "near", "same-fingerprint", "exact"]))]
    verdict: &'static str,
    /// Distance of the nearest paragraph.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// Documents with the same or a similar paragraph: the nearest first, then in order of insertion.
    documents: Vec<SimilarDocument>,
    /// True if there are more documents than are shown.
    more: bool,
}

/// A document, and its most similar paragraph.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "SimilarParagraph")]
struct SimilarDocument {
    id: String,
    /// Number of paragraphs before it.
    position: usize,
    #[schemars(extend("enum" = ["near", "same-fingerprint", "exact"]))]
    verdict: &'static str,
    distance: u32,
}

impl ItemResponse for PageResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.known > 0)
    }
}

fn no_paragraphs() -> ProblemDetails {
    ProblemDetails::conflict(
        "no-paragraphs",
        "the collection keeps no paragraphs",
        "use a collection with keep.paragraphs",
    )
}

/// Handles `POST /v1/collections/NAME/paragraphs`.
pub(crate) async fn paragraphs(
    request: CollectionRequest<PageOptions>,
) -> Result<Response, ProblemDetails> {
    let (limit, scope) = (request.options.limit()?, request.options.scope()?);
    let cost = RequestCost {
        fixed: 2 * DOCUMENTS + ParagraphLookup::MAX_BYTES,
        // The shortest paragraph has two bytes, including its line end.
        byte: size_of::<ParagraphResponse>() / 2 + 60,
        ..RequestCost::default()
    };
    let work = move |mut task: CollectionTask<'_>| {
        if !task.settings.keep.paragraphs {
            return Err(no_paragraphs());
        }
        let radius = scope.paragraph_radius_in(&task.collection)?;
        let collection = Arc::clone(&task.collection);
        let mut lookup = PageLookup {
            paragraphs: collection.paragraph_lookup(radius, task.time.now)?,
            limit,
            room: DOCUMENTS,
            hashes: HASHES,
        };
        let items = task.items::<PageItem>()?;
        let pages = items.try_map_placed(|page, place| {
            let found = lookup.page(&mut task, page);
            // Not placed: running out of time concerns the whole request, not the page at which it was noticed.
            found.map_err(|problem| task.limit.check().err().unwrap_or(problem.at(place)))
        });
        let (pages, shape) = pages?.into_parts();
        task.app
            .metrics
            .documents(ApiOperation::Paragraphs, pages.len());
        let paragraphs = pages.iter().flat_map(|page| &page.paragraphs);
        task.app
            .metrics
            .paragraphs(paragraphs.map(|paragraph| paragraph.verdict));
        Ok(shape.write(&pages))
    };
    request.answer(cost, work).await
}

/// The state of a request's lookups of pages.
struct PageLookup<'c> {
    paragraphs: ParagraphLookup<'c>,
    /// Maximum number of documents for each paragraph.
    limit: usize,
    /// Bytes left for documents in the answer.
    room: usize,
    /// Number of hashes that may still be looked up.
    hashes: usize,
}

impl PageLookup<'_> {
    /// Counts hashes against the limit: each is a lookup, whichever item contains it.
    fn take_hashes(&mut self, hashes: usize) -> Result<(), ProblemDetails> {
        let Some(left) = self.hashes.checked_sub(hashes) else {
            return Err(ProblemDetails::invalid(
                format!("the request has more than {HASHES} hashes"),
                "send them in several requests",
            ));
        };
        self.hashes = left;
        Ok(())
    }

    fn page(
        &mut self,
        task: &mut CollectionTask<'_>,
        mut page: PageItem,
    ) -> Result<PageResponse, ProblemDetails> {
        match page.paragraphs()? {
            ParagraphQuery::Of(content) => {
                let found = task.cache.paragraphs(&task.settings, &content)?;
                let keys: Vec<StoredParagraph> = found.iter().map(|found| found.key).collect();
                let mut page = PageResponse::of(self.all(task, &keys, page.id.as_deref())?);
                page.count_words(&found);
                Ok(page)
            }
            ParagraphQuery::Hashes(hashes) => {
                self.take_hashes(hashes.len())?;
                let keys: Vec<StoredParagraph> = hashes.into_iter().map(Into::into).collect();
                Ok(PageResponse::of(self.all(
                    task,
                    &keys,
                    page.id.as_deref(),
                )?))
            }
        }
    }

    /// Finds the documents that have the given paragraphs, leaving out the document `own`. Looks up each distinct paragraph once.
    fn all(
        &mut self,
        task: &CollectionTask<'_>,
        keys: &[StoredParagraph],
        own: Option<&str>,
    ) -> Result<Vec<ParagraphResponse>, ProblemDetails> {
        let mut known: HashMap<StoredParagraph, ParagraphResponse> = HashMap::new();
        let mut all = Vec::with_capacity(keys.len());
        for &key in keys {
            let known = match known.entry(key) {
                Entry::Occupied(place) => place.into_mut(),
                Entry::Vacant(place) => {
                    // A paragraph that many documents have takes long.
                    task.limit.check()?;
                    // One more for the document itself, and one to find out whether there are others. Not more than needed, because a
                    // document that is not remembered costs a read of its block.
                    let most = if self.room == 0 { 2 } else { self.limit + 2 };
                    let found = has_words(key).then(|| self.paragraphs.find(key, most));
                    place.insert(ParagraphResponse::of(
                        key,
                        found.transpose()?,
                        own,
                        self.limit,
                    ))
                }
            };
            // Counted for each occurrence in the page, because the answer repeats the documents there.
            self.make_room(known);
            all.push(known.clone());
        }
        Ok(all)
    }

    /// Takes space for the documents of a paragraph, or leaves them out.
    fn make_room(&mut self, known: &mut ParagraphResponse) {
        let documents = known.documents.iter();
        let bytes = documents.map(|document| document.id.len() + size_of::<SimilarDocument>());
        match self.room.checked_sub(bytes.sum()) {
            Some(room) => self.room = room,
            None => {
                // Verdict and distance stay; only the documents are left out, here and from now on.
                self.room = 0;
                known.documents = Vec::new();
                known.more = true;
            }
        }
    }
}

impl ParagraphResponse {
    /// Leaves out the page's own document, and applies the limit.
    fn of(
        key: StoredParagraph,
        found: Option<ParagraphMatches>,
        own: Option<&str>,
        limit: usize,
    ) -> Self {
        let found = found.map(|found| (found.documents, found.more));
        let (mut documents, more) = found.unwrap_or_default();
        documents.retain(|similar| Some(similar.id.as_str()) != own);
        let verdict = documents
            .first()
            .map_or(Verdict::New, |nearest| nearest.verdict);
        let more = more || documents.len() > limit;
        documents.truncate(limit);
        let shown = documents.into_iter().map(|similar| SimilarDocument {
            id: similar.id,
            position: similar.position,
            verdict: verdict_name(similar.verdict),
            // A document that is found is never `new`, so it has a distance.
            distance: similar.verdict.distance().unwrap_or_default(),
        });
        Self {
            hash: format!("{:016x}", key.hash),
            fingerprint: key.fingerprint.map(|code| code.to_string()),
            words: None,
            verdict: verdict_name(verdict),
            distance: verdict.distance(),
            documents: shown.collect(),
            more,
        }
    }

    fn is_known(&self) -> bool {
        self.distance.is_some()
    }

    fn is_exact(&self) -> bool {
        self.verdict == verdict_name(Verdict::Exact)
    }
}

impl PageResponse {
    fn of(paragraphs: Vec<ParagraphResponse>) -> Self {
        let count = |is: fn(&ParagraphResponse) -> bool| {
            paragraphs.iter().filter(|paragraph| is(paragraph)).count()
        };
        Self {
            known: count(ParagraphResponse::is_known),
            exact: count(ParagraphResponse::is_exact),
            paragraphs,
            words: None,
        }
    }

    /// Adds the numbers of words, and the shares that are known.
    fn count_words(&mut self, found: &[PageParagraph]) {
        // `all` made one response for each of these paragraphs, in the same order.
        for (response, paragraph) in self.paragraphs.iter_mut().zip(found) {
            response.words = Some(paragraph.words);
        }
        let count = |is: fn(&ParagraphResponse) -> bool| -> usize {
            let counted = self.paragraphs.iter().filter(|paragraph| is(paragraph));
            counted.filter_map(|paragraph| paragraph.words).sum()
        };
        let words = count(|_| true);
        let share = |part: usize| rounded(part as f64 / words.max(1) as f64);
        let known_words = count(ParagraphResponse::is_known);
        let exact_words = count(ParagraphResponse::is_exact);
        self.words = Some(PageWords {
            words,
            known_words,
            known_share: share(known_words),
            exact_words,
            exact_share: share(exact_words),
        });
    }
}

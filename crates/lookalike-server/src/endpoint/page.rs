//! Pages paragraph by paragraph: which were seen before, where, and what share of the page is known (Yu, Hu and Zhang).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::http::StatusCode;
use axum::response::Response;
use lookalike_store::{ParagraphMatches, StoredParagraph, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::collection_request::{CollectionRequest, CollectionTask, RequestCost};
use crate::operation::ApiOperation;
use crate::paragraph::PageParagraph;
use crate::problem::ProblemDetails;
use crate::request::{HASHES, ItemResponse, PageItem, PageOptions, ParagraphQuery, packed};
use crate::verdict::verdict_name;

/// Bytes of documents in an answer; paragraphs beyond them say how they are, but not where they were seen.
const DOCUMENTS: usize = 1 << 20;

/// Known paragraphs of a page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageParagraphs")]
pub(crate) struct PageResponse {
    /// In the order of the page.
    paragraphs: Vec<ParagraphResponse>,
    /// Number of paragraphs that were seen before, the same or similar.
    known: usize,
    /// Number of those that were seen with the same words.
    exact: usize,
    #[serde(flatten)]
    words: Option<PageWords>,
}

/// Words of a page, by what is known of their paragraphs; left out for hashes.
#[derive(Serialize, JsonSchema)]
struct PageWords {
    /// Words of all paragraphs.
    words: usize,
    /// Words of those that were seen before, the same or similar.
    known_words: usize,
    /// The share of words in these, from 0 to 1; of a page without words 0.
    known_share: f64,
    /// Words of those that were seen with the same words.
    exact_words: usize,
    /// The share of words in these.
    exact_share: f64,
}

/// A paragraph.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KnownParagraph")]
struct ParagraphResponse {
    /// 16 hexadecimal digits, by which it can be asked for again.
    hash: String,
    /// Its fingerprint, 16 hexadecimal digits, by which similar ones are found; left out for one that is too short to have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<usize>,
    /// `exact`: a document has a paragraph with the same words. `same-fingerprint`: one has a paragraph with the same fingerprint.
    /// `near`: one has a paragraph within the radius. `new`: none has.
    #[schemars(extend("enum" = ["new", "near", "same-fingerprint", "exact"]))]
    verdict: &'static str,
    /// Distance of the nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// Documents with the same paragraph, or a similar one: the nearest first, then from the one inserted first on.
    documents: Vec<SimilarDocument>,
    /// True if there are more documents than are shown.
    more: bool,
}

/// A document, and its paragraph that is most similar.
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

/// A paragraph, with its verdict and the documents that have it.
#[derive(Clone)]
struct KnownParagraph {
    verdict: Verdict,
    documents: Vec<SimilarDocument>,
    more: bool,
}

impl ItemResponse for PageResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.known > 0)
    }
}

fn no_paragraphs() -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::CONFLICT,
        "no-paragraphs",
        "the collection keeps no paragraphs",
        "use a collection with keep.paragraphs",
    )
}

/// `POST /v1/collections/NAME/paragraphs`.
pub(crate) async fn paragraphs(
    request: CollectionRequest<PageOptions>,
) -> Result<Response, ProblemDetails> {
    let (limit, scope) = (request.options.limit()?, request.options.scope()?);
    let cost = RequestCost {
        fixed: 2 * DOCUMENTS,
        // The shortest paragraph has two bytes, its line end included.
        byte: size_of::<ParagraphResponse>() / 2 + 60,
        ..RequestCost::default()
    };
    let work = move |mut task: CollectionTask<'_>| {
        if !task.settings.keep.paragraphs {
            return Err(no_paragraphs());
        }
        let radius = scope.paragraph_radius_in(&task.collection)?;
        let mut lookup = ParagraphLookup {
            radius,
            limit,
            room: DOCUMENTS,
            hashes: HASHES,
        };
        let items = task.items::<PageItem>()?;
        let pages = items.try_map(|page, place| {
            lookup
                .page(&mut task, page)
                .map_err(|problem| problem.at(place))
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

/// Paragraphs that a request asks for.
struct ParagraphLookup {
    radius: u32,
    /// Most documents of a paragraph.
    limit: usize,
    /// Bytes of documents that may follow.
    room: usize,
    /// Hashes that may follow.
    hashes: usize,
}

impl ParagraphLookup {
    /// Counts hashes: each is a look-up, whatever item it stands in.
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

    /// Finds the documents of paragraphs, without one document. Looks up each distinct paragraph once.
    fn all(
        &mut self,
        task: &CollectionTask<'_>,
        keys: &[StoredParagraph],
        own: Option<&str>,
    ) -> Result<Vec<ParagraphResponse>, ProblemDetails> {
        let mut known: HashMap<StoredParagraph, KnownParagraph> = HashMap::new();
        let mut all = Vec::with_capacity(keys.len());
        for &key in keys {
            let known = match known.entry(key) {
                Entry::Occupied(place) => place.into_mut(),
                Entry::Vacant(place) => {
                    // One more for the document itself, one to know of others.
                    // Asked for exactly, no more: every document of a paragraph costs a read of its block.
                    let most = self.limit + 2;
                    let found =
                        task.collection
                            .paragraphs(&[key], self.radius, task.time.now, most)?;
                    let found = found.into_iter().next();
                    place.insert(found.map_or_else(KnownParagraph::new, |found| {
                        KnownParagraph::of(found, own, self.limit)
                    }))
                }
            };
            // At each place that it has in the page: the answer repeats its documents there.
            self.make_room(known);
            all.push(ParagraphResponse::new(key, known));
        }
        Ok(all)
    }

    /// Takes room for the documents of a paragraph, or leaves them out.
    fn make_room(&mut self, known: &mut KnownParagraph) {
        let documents = known.documents.iter();
        let bytes = documents.map(|document| document.id.len() + size_of::<SimilarDocument>());
        match self.room.checked_sub(bytes.sum()) {
            Some(room) => self.room = room,
            None => {
                // Verdict and distance stay: only where it was seen is left out.
                known.documents = Vec::new();
                known.more = true;
            }
        }
    }
}

impl ParagraphResponse {
    fn new(key: StoredParagraph, known: &KnownParagraph) -> Self {
        Self {
            hash: format!("{:016x}", key.hash),
            fingerprint: key.fingerprint.map(|code| code.to_string()),
            words: None,
            verdict: verdict_name(known.verdict),
            distance: known.verdict.distance(),
            documents: known.documents.clone(),
            more: known.more,
        }
    }

    fn is_known(&self) -> bool {
        self.distance.is_some()
    }

    fn is_exact(&self) -> bool {
        self.verdict == verdict_name(Verdict::Exact)
    }
}

impl KnownParagraph {
    /// Of a paragraph that no document has.
    fn new() -> Self {
        Self {
            verdict: Verdict::New,
            documents: Vec::new(),
            more: false,
        }
    }

    /// Removes a page's own document from the documents of a paragraph, and applies the limit.
    fn of(found: ParagraphMatches, own: Option<&str>, limit: usize) -> Self {
        let mut documents = found.documents;
        documents.retain(|similar| Some(similar.id.as_str()) != own);
        let verdict = documents
            .first()
            .map_or(Verdict::New, |nearest| nearest.verdict);
        let more = found.more || documents.len() > limit;
        documents.truncate(limit);
        let shown = documents.into_iter().map(|similar| SimilarDocument {
            id: similar.id,
            position: similar.position,
            verdict: verdict_name(similar.verdict),
            distance: similar.verdict.distance().unwrap_or_default(),
        });
        Self {
            verdict,
            documents: shown.collect(),
            more,
        }
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

    /// Adds the words of the paragraphs, and the shares of them that are known.
    fn count_words(&mut self, found: &[PageParagraph]) {
        for (response, paragraph) in self.paragraphs.iter_mut().zip(found) {
            response.words = Some(paragraph.words);
        }
        let count = |is: fn(&ParagraphResponse) -> bool| -> usize {
            let counted = self.paragraphs.iter().filter(|paragraph| is(paragraph));
            counted.filter_map(|paragraph| paragraph.words).sum()
        };
        let words = count(|_| true);
        let share = |part: usize| {
            let share = part as f64 / words.max(1) as f64;
            (share * 1e6).round() / 1e6
        };
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

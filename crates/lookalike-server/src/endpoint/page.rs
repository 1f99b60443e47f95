//! Pages paragraph by paragraph: which were seen before, where, and what share of the page is known (Yu, Hu and Zhang).

use std::collections::HashMap;

use axum::response::Response;
use lookalike_store::ParagraphMatches;
use schemars::JsonSchema;
use serde::Serialize;

use super::collection_request::{CollectionRequest, CollectionTask, RequestCost};
use crate::operation::ApiOperation;
use crate::paragraph::HashedParagraph;
use crate::problem::ProblemDetails;
use crate::request::{HASHES, ItemResponse, PageItem, PageOptions, ParagraphQuery, packed};

/// Bytes of ids in an answer; paragraphs beyond them say how they are, but not where they were seen.
const IDS: usize = 1 << 20;

/// Known paragraphs of a page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PageParagraphs")]
pub(crate) struct PageResponse {
    /// In the order of the page.
    paragraphs: Vec<ParagraphResponse>,
    /// Number of paragraphs that were seen before.
    known: usize,
    /// Words of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<usize>,
    /// Words of those that were seen before.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_words: Option<usize>,
    /// The share of words that were seen before, from 0 to 1; of a page without words 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_share: Option<f64>,
}

/// A paragraph.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KnownParagraph")]
struct ParagraphResponse {
    /// 16 hexadecimal digits, by which it can be asked for again.
    hash: String,
    /// Its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<usize>,
    /// True if a document has it.
    known: bool,
    /// Documents that have it, from the one inserted first on.
    documents: Vec<String>,
    /// True if there are more documents than are shown.
    more: bool,
}

impl ItemResponse for PageResponse {
    fn packed(&self) -> u8 {
        packed::byte(None, self.known > 0)
    }
}

/// `POST /v1/collections/NAME/paragraphs`.
pub(crate) async fn paragraphs(
    request: CollectionRequest<PageOptions>,
) -> Result<Response, ProblemDetails> {
    let limit = request.options.limit()?;
    let cost = RequestCost {
        fixed: 2 * IDS,
        // The shortest paragraph has three bytes.
        byte: size_of::<ParagraphResponse>() / 3 + 40,
        ..RequestCost::default()
    };
    let work = move |mut task: CollectionTask<'_>| {
        let mut room = IDS;
        let items = task.items::<PageItem>()?;
        let pages = items.try_map(|page, place| {
            task.look_up(page, limit, &mut room)
                .map_err(|problem| problem.at(place))
        });
        let (pages, shape) = pages?.into_parts();
        task.app
            .metrics
            .documents(ApiOperation::Paragraphs, pages.len());
        Ok(shape.write(&pages))
    };
    request.answer(cost, work).await
}

impl CollectionTask<'_> {
    fn look_up(
        &mut self,
        mut page: PageItem,
        limit: usize,
        room: &mut usize,
    ) -> Result<PageResponse, ProblemDetails> {
        match page.paragraphs()? {
            ParagraphQuery::Of(content) => {
                let found = self.cache.paragraphs(&self.settings.scheme, &content)?;
                let hashes: Vec<u64> = found.iter().map(|paragraph| paragraph.hash).collect();
                let seen = self.seen(&hashes, page.id.as_deref(), limit, room)?;
                Ok(PageResponse::of(seen, &found))
            }
            ParagraphQuery::Hashes(hashes) if hashes.len() > HASHES => {
                Err(ProblemDetails::invalid(
                    format!("{} hashes are more than {HASHES}", hashes.len()),
                    "ask in parts",
                ))
            }
            ParagraphQuery::Hashes(hashes) => {
                let paragraphs = self.seen(&hashes, page.id.as_deref(), limit, room)?;
                Ok(PageResponse {
                    known: paragraphs.iter().filter(|seen| seen.known).count(),
                    paragraphs,
                    words: None,
                    known_words: None,
                    known_share: None,
                })
            }
        }
    }

    /// Finds the documents of paragraphs, without one document. Looks up each distinct paragraph once.
    fn seen(
        &self,
        hashes: &[u64],
        own: Option<&str>,
        limit: usize,
        room: &mut usize,
    ) -> Result<Vec<ParagraphResponse>, ProblemDetails> {
        let mut known: HashMap<u64, (bool, bool, Vec<String>)> = HashMap::new();
        let mut all = Vec::with_capacity(hashes.len());
        for &hash in hashes {
            if let std::collections::hash_map::Entry::Vacant(place) = known.entry(hash) {
                // One more for the document itself, one to know of others.
                let found = self.collection.paragraphs(&[hash], self.now, limit + 2)?;
                place.insert(
                    found
                        .into_iter()
                        .next()
                        .map_or_else(Default::default, |found| others(found, own, limit)),
                );
            }
            let (is_known, more, documents) = &known[&hash];
            let bytes: usize = documents.iter().map(String::len).sum();
            let fits = bytes <= *room;
            *room -= if fits { bytes } else { 0 };
            all.push(ParagraphResponse {
                hash: format!("{hash:016x}"),
                words: None,
                known: *is_known,
                documents: if fits { documents.clone() } else { Vec::new() },
                more: *more || !fits,
            });
        }
        Ok(all)
    }
}

/// Removes a page's own document from the documents of a paragraph, and applies the limit.
fn others(found: ParagraphMatches, own: Option<&str>, limit: usize) -> (bool, bool, Vec<String>) {
    let mut documents = found.documents;
    documents.retain(|id| Some(id.as_str()) != own);
    let known = !documents.is_empty();
    let more = found.more || documents.len() > limit;
    documents.truncate(limit);
    (known, more, documents)
}

impl PageResponse {
    fn of(mut paragraphs: Vec<ParagraphResponse>, found: &[HashedParagraph]) -> Self {
        for (seen, paragraph) in paragraphs.iter_mut().zip(found) {
            seen.words = Some(paragraph.words);
        }
        let words: usize = found.iter().map(|paragraph| paragraph.words).sum();
        let known = paragraphs.iter().filter(|seen| seen.known);
        let known_words: usize = known.clone().filter_map(|seen| seen.words).sum();
        let share = known_words as f64 / words.max(1) as f64;
        Self {
            known: known.count(),
            paragraphs,
            words: Some(words),
            known_words: Some(known_words),
            known_share: Some((share * 1e6).round() / 1e6),
        }
    }
}

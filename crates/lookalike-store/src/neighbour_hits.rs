//! Neighbours whose documents are not read yet, and the page of them that is shown.

use crate::document::ContentKey;
use crate::document_sketch::SketchForm;
use crate::error::{Result, StoreError};
use crate::found_document::{FoundCopy, SearchHit};
use crate::id_hash::IdHasher;
use crate::neighbour_cursor::NeighbourCursor;
use crate::operations::{Neighbour, NeighbourPage, QueryResult};
use crate::searches::{ContentSearch, HitRange};
use crate::verdict::Verdict;
use crate::view::{DocumentLocation, ViewPart, search};

/// Maximum number of documents before a cursor that may be gone while the cursor stays valid.
const WINDOW: usize = 64;

/// The neighbours of a content at one moment.
#[derive(Debug)]
pub(crate) struct NeighbourHits {
    content: ContentKey,
    form: SketchForm,
    page: NeighbourPage,
    hasher: IdHasher,
    /// Distance of the nearest neighbour.
    nearest: Option<u32>,
    /// Number of hits at the distance of the cursor that come before `hits`.
    skipped: usize,
    /// Hits from there on, up to one more than the page shows.
    hits: Vec<SearchHit>,
}

impl NeighbourHits {
    /// Searches the parts of a view, leaving out documents for which `skip` returns true.
    pub(crate) fn search(
        parts: &[ViewPart<'_>],
        wanted: &ContentSearch,
        page: NeighbourPage,
        hasher: &IdHasher,
        skip: &dyn Fn(DocumentLocation) -> bool,
    ) -> Self {
        let after = page.after.unwrap_or(NeighbourCursor::START);
        // Some hits before the last one of the previous page are found again.
        let skipped = after.passed.saturating_sub(WINDOW);
        let range = HitRange {
            distance: after.distance,
            skip: skipped,
            // One more than is shown: the answer tells whether there are more, and counting all of them could take long.
            most: page
                .limit
                .saturating_add(after.passed - skipped)
                .saturating_add(1),
        };
        let hits = search(parts, wanted, range, skip);
        // The verdict is about all neighbours, but these hits begin at the cursor.
        let first = HitRange {
            distance: 0,
            skip: 0,
            most: 1,
        };
        let distance = |hits: &[SearchHit]| hits.first().map(|hit| hit.distance);
        let nearest = match page.after {
            Some(_) => distance(&search(parts, wanted, first, skip)),
            None => distance(&hits),
        };
        Self {
            content: wanted.content.clone(),
            form: wanted.form,
            page,
            hasher: hasher.clone(),
            nearest,
            skipped,
            hits,
        }
    }

    /// Tells whether a document may have the same text; if not, no search for one is needed.
    pub(crate) fn may_be_copy(&self) -> bool {
        may_be_copy(&self.content, self.nearest)
    }

    /// Returns the verdict. `copy` is the oldest document with the same text.
    pub(crate) fn verdict(&self, copy: Option<&FoundCopy>) -> Verdict {
        verdict(self.nearest, copy.is_some())
    }

    /// Tells whether [`NeighbourHits::read`] shows any neighbour.
    pub(crate) fn shows_any(&self, copy: Option<&FoundCopy>) -> bool {
        let is_found = !self.hits.is_empty() || (self.content.sketch.is_none() && copy.is_some());
        self.page.limit > 0 && is_found
    }

    /// Makes [`NeighbourHits::read`] show no neighbour, and tell only whether there are any.
    pub(crate) fn hide(&mut self) {
        self.page.limit = 0;
    }

    /// Reads the small parts of the hits that are shown. `copy` is the oldest document with the same text.
    pub(crate) fn read(mut self, copy: Option<FoundCopy>) -> Result<QueryResult> {
        let verdict = self.verdict(copy.as_ref());
        let copy_of = copy.as_ref().map(|copy| copy.id.clone());
        // A text without a sketch has no neighbours, but a document with the same text is shown as one.
        if self.content.sketch.is_none() {
            self.hits.extend(copy.map(|copy| SearchHit {
                distance: 0,
                found: copy.found,
            }));
        }
        let passed = self.skip_shown()?;
        let limit = self.page.limit;
        let more = self.hits.len() > limit;
        self.hits.truncate(limit);
        let (content, form) = (self.content, self.form);
        let read = |hit: SearchHit| {
            let header = hit.found.header(form)?;
            Ok(Neighbour::new(hit, header, &content))
        };
        let neighbours: Vec<Neighbour> = self.hits.into_iter().map(read).collect::<Result<_>>()?;
        let end = neighbours.last().map(|last| {
            let same = |near: &&Neighbour| near.distance == last.distance;
            // `passed` counts documents at one distance, so it goes on from the previous page only if that ended at the same distance.
            let before = self
                .page
                .after
                .filter(|after| after.distance == last.distance);
            NeighbourCursor {
                distance: last.distance,
                passed: before.map_or(0, |_| passed) + neighbours.iter().filter(same).count(),
                last: self.hasher.hash(&last.id),
            }
        });
        // An empty page ends where it began.
        let end = end.or(self.page.after).unwrap_or(NeighbourCursor::START);
        Ok(QueryResult {
            verdict,
            copy_of,
            neighbours,
            more,
            next: more.then_some(end),
        })
    }

    /// Drops the hits that earlier pages have shown. Returns how many there are at the distance of the cursor.
    fn skip_shown(&mut self) -> Result<usize> {
        let Some(after) = self.page.after.filter(|after| after.passed > 0) else {
            return Ok(0);
        };
        let skipped = self.skipped;
        let of_distance = self
            .hits
            .iter()
            .take_while(|hit| hit.distance == after.distance);
        let most = of_distance.count().min(after.passed - skipped);
        // A deletion moves later hits forward, and nothing moves them back, because new documents come last. So search backwards: usually
        // nothing was deleted, and the first comparison succeeds. Each one reads a block of a run.
        for place in (0..most).rev() {
            let id = self.hits[place].found.header(self.form)?.id;
            if self.hasher.hash(&id) == after.last {
                self.hits.drain(..=place);
                return Ok(skipped + place + 1);
            }
        }
        Err(StoreError::StaleCursor)
    }
}

/// Tells, by the distance of the nearest neighbour, whether a document may have the same text.
pub(crate) fn may_be_copy(content: &ContentKey, nearest: Option<u32>) -> bool {
    content.text_hash.is_some() && (content.sketch.is_none() || nearest == Some(0))
}

/// Returns the verdict, given the distance of the nearest neighbour and whether a document has the same text.
pub(crate) fn verdict(nearest: Option<u32>, is_copy: bool) -> Verdict {
    if is_copy {
        Verdict::Exact
    } else {
        Verdict::of(nearest)
    }
}

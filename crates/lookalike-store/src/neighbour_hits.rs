//! Neighbours before their documents are read, and the page of them that is shown.

use crate::document::ContentKey;
use crate::document_sketch::SketchForm;
use crate::error::{Result, StoreError};
use crate::found_document::{FoundCopy, SearchHit};
use crate::id_hash::IdHasher;
use crate::neighbour_cursor::NeighbourCursor;
use crate::operations::{Neighbour, NeighbourPage, QueryResult};
use crate::searches::{ContentSearch, NeighbourSearch, SearchStart};
use crate::verdict::Verdict;
use crate::view::{DocumentLocation, ViewPart, search};

/// Documents before a cursor that may be gone before it no longer says where to go on.
const WINDOW: usize = 64;

/// Neighbours of a content at a moment.
pub(crate) struct NeighbourHits {
    content: ContentKey,
    form: SketchForm,
    page: NeighbourPage,
    /// Distance of the nearest.
    nearest: Option<u32>,
    /// Hits from [`NeighbourHits::start`] on, one more than the page.
    hits: Vec<SearchHit>,
}

/// The beginning of the hits that a page needs: the last of the page before, and some before that.
fn start(page: NeighbourPage) -> SearchStart {
    page.after
        .map_or_else(SearchStart::default, |after| SearchStart {
            distance: after.distance,
            skip: after.passed.saturating_sub(WINDOW),
        })
}

impl NeighbourHits {
    /// Searches the parts of a view, without those that `skip` hides.
    pub(crate) fn search(
        parts: &[ViewPart<'_>],
        wanted: &ContentSearch,
        page: NeighbourPage,
        skip: &dyn Fn(DocumentLocation) -> bool,
    ) -> Self {
        let mut found = Self {
            content: wanted.content.clone(),
            form: wanted.form,
            page,
            nearest: None,
            hits: Vec::new(),
        };
        let Some(sketch) = wanted.sketch() else {
            return found;
        };
        let start = start(page);
        // Hits that earlier pages have shown and the window finds again.
        let before = page.after.map_or(0, |after| after.passed - start.skip);
        let wanted = NeighbourSearch {
            sketch: &sketch,
            radius: wanted.radius,
            now: wanted.now,
            filter: wanted.filter,
            start,
            // One more than is shown: whether there are more is part of the answer, and counting all of them
            // could take long.
            most: page.limit.saturating_add(before).saturating_add(1),
        };
        found.hits = search(parts, wanted, skip);
        // The verdict is of all neighbours, and the hits begin at the cursor.
        found.nearest = if page.after.is_some() {
            let first = NeighbourSearch {
                start: SearchStart::default(),
                most: 1,
                ..wanted
            };
            search(parts, first, skip).first().map(|hit| hit.distance)
        } else {
            found.hits.first().map(|hit| hit.distance)
        };
        found
    }

    /// Tells whether a document may have the same text: only then it is looked for.
    pub(crate) fn may_be_copy(&self) -> bool {
        may_be_copy(&self.content, self.nearest)
    }

    /// Reads the small parts of the hits that are shown. `copy` is the oldest document of the same text.
    pub(crate) fn read(
        mut self,
        copy: Option<FoundCopy>,
        hasher: &IdHasher,
    ) -> Result<QueryResult> {
        let verdict = verdict(self.nearest, copy.is_some());
        let copy_of = copy.as_ref().map(|copy| copy.id.clone());
        // Nothing is near a text without a sketch, yet what it is a copy of is its neighbour.
        if self.content.sketch.is_none() {
            self.hits.extend(copy.map(|copy| SearchHit {
                distance: 0,
                found: copy.found,
            }));
        }
        let passed = self.pass_shown(hasher)?;
        let limit = self.page.limit;
        let more = self.hits.len() > limit;
        self.hits.truncate(limit);
        let (content, form) = (self.content, self.form);
        let read = |hit: SearchHit| Neighbour::read(hit, &content, form);
        let neighbours: Vec<Neighbour> = self.hits.into_iter().map(read).collect::<Result<_>>()?;
        let end = neighbours.last().map(|last| {
            let same = |near: &&Neighbour| near.distance == last.distance;
            let before = self
                .page
                .after
                .filter(|after| after.distance == last.distance);
            NeighbourCursor {
                distance: last.distance,
                passed: before.map_or(0, |_| passed) + neighbours.iter().filter(same).count(),
                last: hasher.hash(&last.id),
            }
        });
        // A page of none ends where it began.
        let end = end.or(self.page.after).unwrap_or(NeighbourCursor::START);
        Ok(QueryResult {
            verdict,
            copy_of,
            neighbours,
            more,
            next: more.then_some(end),
        })
    }

    /// Drops the hits that earlier pages have shown; how many there are of the cursor's distance.
    fn pass_shown(&mut self, hasher: &IdHasher) -> Result<usize> {
        let Some(after) = self.page.after.filter(|after| after.passed > 0) else {
            return Ok(0);
        };
        let skipped = start(self.page).skip;
        let of_distance = self
            .hits
            .iter()
            .take_while(|hit| hit.distance == after.distance);
        let most = of_distance.count().min(after.passed - skipped);
        // What is deleted moves those behind it forward, never back: new documents come last.
        // From the end: usually nothing was deleted meanwhile, and the first look hits. Each look reads a block
        // of a run.
        for place in (0..most).rev() {
            if hasher.hash(&self.hits[place].found.header(self.form)?.id) == after.last {
                self.hits.drain(..=place);
                return Ok(skipped + place + 1);
            }
        }
        Err(StoreError::StaleCursor)
    }
}

/// Tells whether a document may have the same text, by the distance of the nearest.
pub(crate) fn may_be_copy(content: &ContentKey, nearest: Option<u32>) -> bool {
    content.text_hash.is_some() && (content.sketch.is_none() || nearest == Some(0))
}

/// The verdict by the distance of the nearest, and whether a document has the same text.
pub(crate) fn verdict(nearest: Option<u32>, is_copy: bool) -> Verdict {
    if is_copy {
        Verdict::Exact
    } else {
        Verdict::of(nearest)
    }
}

//! Documents with a similar paragraph, before they are read.

use std::collections::{BTreeMap, HashSet};

use crate::error::Result;
use crate::searches::ParagraphSearch;
use crate::view::{ParagraphKey, ViewPart};

/// A document of a part that has a similar paragraph. Hits are ordered by rank, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ParagraphHit {
    /// Zero for the same words, otherwise the distance plus one.
    pub(crate) rank: u32,
    pub(crate) place: u32,
}

impl ParagraphSearch {
    /// Returns the first `most` live documents of a part that have a similar paragraph. Reads blocks of a run.
    pub(crate) fn hits(&self, part: ViewPart<'_>, most: usize) -> Result<Vec<ParagraphHit>> {
        let mut hits = Vec::new();
        let mut seen = HashSet::new();
        let mut add = |rank: u32, keys: &[ParagraphKey]| -> Result<bool> {
            let room = most - hits.len();
            let mut places: Vec<u32> = Vec::new();
            for &key in keys {
                // The first `room` documents of each key include the first `room` documents of all keys.
                let end = places.len().saturating_add(room);
                part.with_paragraph(key, &mut |place| {
                    if part.is_alive(place, self.now) && !seen.contains(&place) {
                        places.push(place);
                    }
                    places.len() < end
                })?;
            }
            places.sort_unstable();
            places.dedup();
            places.truncate(room);
            seen.extend(places.iter().copied());
            hits.extend(places.into_iter().map(|place| ParagraphHit { rank, place }));
            Ok(hits.len() < most)
        };
        if most == 0 || !add(0, &[ParagraphKey::Hash(self.paragraph.hash)])? {
            return Ok(hits);
        }
        let Some(code) = self.paragraph.fingerprint else {
            return Ok(hits);
        };
        let mut near: BTreeMap<u32, Vec<ParagraphKey>> = BTreeMap::new();
        // Collect the keys first and then read documents, the nearest keys first, so that those of distant paragraphs are not read once the
        // page is full.
        part.search_paragraphs(code.0, self.radius, &mut |key, distance| {
            near.entry(distance).or_default().push(key);
        });
        for (distance, keys) in near {
            if !add(1 + distance, &keys)? {
                break;
            }
        }
        Ok(hits)
    }
}

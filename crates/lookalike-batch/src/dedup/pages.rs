//! Facts about HTML pages besides the text that was chosen from them, and the test that separates pages with only
//! that text in common.
//!
//! An extractor may take a template that every page has for the main content. So two pages whose main texts resemble each
//! other are near-duplicates only if one of these conditions holds as well:
//!
//! - their visible texts reach the threshold (if headlines or titles show that they are about different things, and the
//!   main text is less than two thirds of the visible text, the visible text outside the main text must reach it too);
//! - they have the same headline, and almost nothing in common besides the main text: one article in the frames of two sites;
//! - they have the same headline, and one of them says almost nothing besides its main text that the other does not say as well: an article and its
//!   print version;
//! - they have the same headline, their titles begin alike, and their visible texts have a resemblance of at least a half;
//! - the main text is at least two thirds of the visible text of both, they have almost nothing else in common, and their visible texts
//!   have a resemblance of at least a half: an article to which each site gives its own headline.
//!
//! A page and a text that is not a page are near-duplicates if their visible texts have a resemblance of at least a half. All of this depends
//! only on the two documents.

use std::io;

use lookalike::resemblance::{
    intersection_at_least, intersection_size, resemblance_of, shared_needed,
};
use lookalike_corpus::{Fallback, PageIdentity, Record};
use serde::{Deserialize, Serialize};

use crate::dedup::class_id::{ClassId, put};
use crate::parallel::sorted;
use crate::spill::feature_sets::{SetPosition, SetStore};
use crate::spill::table_column::TableColumn;

/// Minimum resemblance of the visible texts of two pages with the same headline in the same kind of frame.
pub(crate) const MIN_VISIBLE_RESEMBLANCE: f64 = 0.5;

/// Maximum share of common features, among the visible ones outside the main text, of two pages in different frames.
pub(crate) const FRAMES_SHARE: f64 = 0.1;

tally! {
    /// Counts of pages of which a part was chosen.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub struct PageCounts {
        /// Number of HTML pages whose text a mode of extraction chose.
        pub pages: u64,
        /// Number of these with almost no main content: more of their text was compared.
        pub little_content: u64,
        /// Number of these whose main content is apart from their headline: more of their text was compared.
        pub apart_from_headline: u64,
        /// Number of these whose main content is lines that recur on many pages: their other visible text was compared.
        pub template: u64,
        /// Number of these with less than 100 bytes of visible text, but some, as if scripts drew the rest: equal ones are exact copies.
        pub nearly_empty: u64,
    }
}

/// Number of bytes below which a visible text is nearly empty.
const MIN_VISIBLE_BYTES: usize = 100;

impl PageCounts {
    /// Counts a record.
    pub(crate) fn count(&mut self, record: &Record<'_>) {
        let visible = record.visible.as_ref();
        if let Some(page) = visible.filter(|visible| visible.page.is_some()) {
            let shown = page.whole.trim().len();
            self.pages += 1;
            // An empty text is never a duplicate.
            self.nearly_empty += u64::from((1..MIN_VISIBLE_BYTES).contains(&shown));
        }
        match record.fallback {
            Fallback::None => {}
            Fallback::TooShort => self.little_content += 1,
            Fallback::FarFromHeadline => self.apart_from_headline += 1,
            Fallback::Template => self.template += 1,
        }
    }

    /// Returns the number of pages of which more than the main content was compared.
    #[must_use]
    pub fn fallbacks(&self) -> u64 {
        self.little_content + self.apart_from_headline + self.template
    }
}

/// Columns of pages, by class position or by rank. They are shorter than other columns if the last classes are not pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageColumns {
    /// Bits of [`PageIdentity`]; 0 if the class is not a page.
    identities: TableColumn<u64>,
    /// Place and size of the features of the visible text; size 0 if they are those of the text.
    places: TableColumn<SetPosition>,
    sizes: TableColumn<u32>,
}

impl PageColumns {
    pub(crate) fn set(
        &mut self,
        class: ClassId,
        identity: PageIdentity,
        set: Option<(SetPosition, u32)>,
    ) {
        put(&mut self.identities, class, identity.to_bits());
        let (place, size) = set.unwrap_or_default();
        put(&mut self.places, class, place);
        put(&mut self.sizes, class, size);
    }

    /// Returns the identity of a class that is a page, and the features of its visible text if they are not those of the text.
    pub(crate) fn of_class(
        &self,
        class: usize,
    ) -> Option<(PageIdentity, Option<(SetPosition, u32)>)> {
        let identity = PageIdentity::from_bits(self.identities.get(class).copied().unwrap_or(0))?;
        let set = (self.places[class], self.sizes[class]);
        Some((identity, (set.1 > 0).then_some(set)))
    }

    pub(crate) fn is_page(&self, class: usize) -> bool {
        self.identities
            .get(class)
            .is_some_and(|&identity| identity != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.identities.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        // Without unused capacity, as in `DocumentTable::bytes`.
        ((self.identities.len() + self.places.len()) * 8 + self.sizes.len() * 4) as u64
    }

    /// Returns the columns in the order of `classes`.
    pub(crate) fn sorted(&self, classes: &[u32], threads: usize) -> Self {
        Self {
            identities: sorted(&self.identities, classes, threads),
            places: sorted(&self.places, classes, threads),
            sizes: sorted(&self.sizes, classes, threads),
        }
    }

    pub(crate) fn identity(&self, rank: u32) -> Option<PageIdentity> {
        PageIdentity::from_bits(self.identities.get(rank as usize).copied().unwrap_or(0))
    }
}

/// Compares visible texts of pages.
#[derive(Clone, Copy)]
pub(crate) struct PageVerifier<'a> {
    /// Columns by rank.
    pub(crate) columns: &'a PageColumns,
    pub(crate) sets: &'a SetStore,
    /// Class of each rank.
    pub(crate) classes: &'a [u32],
    pub(crate) threshold: f64,
}

/// Buffers for the visible texts of two pages.
#[derive(Default)]
pub(crate) struct PageScratch {
    own: Vec<u64>,
    other: Vec<u64>,
}

/// One side of a comparison.
#[derive(Clone, Copy)]
pub(crate) struct ComparedPage<'s> {
    pub(crate) rank: u32,
    /// Features of the text that was compared.
    pub(crate) text: &'s [u64],
}

impl PageVerifier<'_> {
    /// Returns true if two texts that share `shared` features, enough to be near-duplicates, are near-duplicates as pages too.
    pub(crate) fn accepts(
        &self,
        a: ComparedPage<'_>,
        b: ComparedPage<'_>,
        shared: usize,
        scratch: &mut PageScratch,
    ) -> io::Result<bool> {
        let identities = [a.rank, b.rank].map(|rank| self.columns.identity(rank));
        // No part was chosen from either, so there is nothing else to compare.
        if identities == [None, None] {
            return Ok(true);
        }
        let PageScratch { own, other } = scratch;
        let (own, other) = (self.visible(a, own)?, self.visible(b, other)?);
        let pair = PagePair {
            identities,
            main: [a.text.len(), b.text.len()],
            visible: [own.len(), other.len()],
            shared_main: shared,
            threshold: self.threshold,
        };
        // Stops as soon as the minimum of all rules is out of reach.
        let shared_visible = intersection_at_least(own, other, pair.needed());
        Ok(shared_visible.is_some_and(|shared_visible| pair.accepts(shared_visible)))
    }

    /// Returns the resemblance of the visible texts of two ranks, or `None` if their visible texts were compared anyway.
    pub(crate) fn resemblance(
        &self,
        a: ComparedPage<'_>,
        b: ComparedPage<'_>,
        scratch: &mut PageScratch,
    ) -> io::Result<Option<f64>> {
        let is_page = |side: ComparedPage<'_>| self.columns.identity(side.rank).is_some();
        if !is_page(a) && !is_page(b) {
            return Ok(None);
        }
        let PageScratch { own, other } = scratch;
        let (own, other) = (self.visible(a, own)?, self.visible(b, other)?);
        let shared = intersection_size(own, other);
        Ok(Some(resemblance_of(shared, own.len(), other.len())))
    }

    /// Returns the features of the visible text.
    pub(crate) fn visible<'b>(
        &'b self,
        side: ComparedPage<'b>,
        buffer: &'b mut Vec<u64>,
    ) -> io::Result<&'b [u64]> {
        let rank = side.rank as usize;
        match self.columns.sizes.get(rank) {
            None | Some(0) => Ok(side.text),
            Some(&size) => self.sets.get(
                self.classes[rank],
                self.columns.places[rank],
                size as usize,
                buffer,
            ),
        }
    }
}

/// Two documents whose main texts resemble each other, with the sizes of their feature sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PagePair {
    /// `None` for a document that is not a page.
    pub(crate) identities: [Option<PageIdentity>; 2],
    pub(crate) main: [usize; 2],
    pub(crate) visible: [usize; 2],
    pub(crate) shared_main: usize,
    pub(crate) threshold: f64,
}

impl PagePair {
    fn has_one_headline(&self) -> bool {
        matches!(self.identities, [Some(a), Some(b)] if a.has_headline_of(b))
    }

    /// Returns for each page whether its main text is at least two thirds of its visible text.
    fn are_mostly_main(&self) -> [bool; 2] {
        [0, 1].map(|side| is_mostly_main(self.main[side], self.visible[side]))
    }

    /// Returns true if one of the pages is mostly main text, and almost all else that it shows, its headline and perhaps its author, is on the other too.
    fn has_print_version(&self, rests: [usize; 2], shared_rest: usize) -> bool {
        let are_mostly_main = self.are_mostly_main();
        [0, 1].into_iter().any(|side| {
            let own = rests[side].saturating_sub(shared_rest);
            are_mostly_main[side] && own as f64 <= FRAMES_SHARE * self.visible[side] as f64
        })
    }

    /// Returns the minimum number of features that the visible texts of a near-duplicate share.
    pub(crate) fn needed(&self) -> usize {
        let [a, b] = self.visible;
        if self.has_one_headline() {
            // Frames without common features are a reason to accept too: see `accepts`.
            return 0;
        }
        let is_page_and_text = self.identities.contains(&None);
        match is_page_and_text || self.are_mostly_main() == [true; 2] {
            // A threshold below the floor applies to visible texts too.
            true => shared_needed(a, b, MIN_VISIBLE_RESEMBLANCE.min(self.threshold)),
            false => shared_needed(a, b, self.threshold),
        }
    }

    /// Returns true if the pair is a near-duplicate when its visible texts share `shared_visible` features.
    pub(crate) fn accepts(&self, shared_visible: usize) -> bool {
        let [a, b] = self.visible;
        let reaches = |least: f64| shared_visible >= shared_needed(a, b, least);
        let floor = MIN_VISIBLE_RESEMBLANCE.min(self.threshold);
        let [Some(first), Some(second)] = self.identities else {
            return reaches(floor);
        };
        let mut rests = self.visible;
        // Saturating, because shingles across parts that were left out are features of the main text only.
        for (rest, main) in rests.iter_mut().zip(self.main) {
            *rest = rest.saturating_sub(main);
        }
        let [rest_a, rest_b] = rests;
        // The main text is a part of the visible text, so its shared features are counted there too.
        let shared_rest = shared_visible.saturating_sub(self.shared_main);
        let in_other_frames = shared_rest as f64 <= FRAMES_SHARE * rest_a.min(rest_b) as f64;
        if self.has_one_headline() {
            let in_one_frame = first.has_title_of(second) && reaches(floor);
            return reaches(self.threshold)
                || in_other_frames
                || in_one_frame
                || self.has_print_version(rests, shared_rest);
        }
        if self.are_mostly_main() == [true; 2] {
            return reaches(self.threshold) || in_other_frames && reaches(floor);
        }
        reaches(self.threshold)
            && (first.may_share_subject(second)
                || shared_rest >= shared_needed(rest_a, rest_b, self.threshold))
    }
}

/// Returns true if a main text of `main` features is at least two thirds of a page of `visible` features.
pub(crate) fn is_mostly_main(main: usize, visible: usize) -> bool {
    3 * main >= 2 * visible
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a page about `headline`, with a title that begins with `title`.
    fn identity(headline: u32, title: u32) -> PageIdentity {
        PageIdentity::from_bits(u64::from(headline) << 32 | u64::from(title)).unwrap()
    }

    fn pair(identities: [PageIdentity; 2], main: usize, visible: usize) -> PagePair {
        PagePair {
            identities: identities.map(Some),
            main: [main; 2],
            visible: [visible; 2],
            shared_main: main,
            threshold: 0.8,
        }
    }

    #[test]
    fn a_template_is_no_article() {
        let (hotel, dining) = (identity(1, 7), identity(2, 8));
        // The frame and the main text are shared, the rest is not.
        assert!(!pair([hotel, dining], 100, 300).accepts(220));
        assert!(!pair([hotel, dining], 200, 300).accepts(260));
        assert!(pair([hotel, dining], 200, 300).accepts(280));
        // Their own features are few, but they are all that the pages are about.
        assert!(!pair([hotel, dining], 100, 300).accepts(270));
        assert!(pair([hotel, dining], 100, 300).accepts(295));
        // Without a headline and with the same title, pages are not known to be about different things.
        let nameless = [identity(0, 7); 2];
        assert!(!pair(nameless, 100, 300).accepts(220));
        assert!(pair(nameless, 100, 300).accepts(270));
    }

    #[test]
    fn one_article_in_two_frames_is_found() {
        // The titles begin with the names of the sites, before the headline.
        let (here, there) = (identity(1, 7), identity(1, 8));
        assert!(pair([here, there], 100, 600).accepts(105));
        // With different headlines, the article must be most of the page.
        let (here, there) = (identity(1, 7), identity(2, 8));
        assert!(!pair([here, there], 100, 600).accepts(105));
        assert!(pair([here, there], 450, 600).accepts(455));
    }

    #[test]
    fn a_print_version_shared_its_whole_rest_with_the_article() {
        let print = |headlines: [u32; 2], rest: usize| PagePair {
            visible: [600, 100 + rest],
            ..pair(
                headlines.map(|headline| identity(headline, headline)),
                100,
                0,
            )
        };
        assert!(print([1, 1], 14).accepts(114));
        assert!(print([1, 1], 50).accepts(150));
        assert!(!print([1, 1], 51).accepts(151));
        assert!(!print([1, 2], 14).accepts(114));
        // A hotel, under the name and the notice of its casino: 15 or 16 features of 150 are its own.
        assert!(print([1, 1], 50).accepts(135));
        assert!(!print([1, 1], 50).accepts(134));
    }

    #[test]
    fn a_page_with_other_news_beside_its_article_is_found() {
        let page = identity(1, 7);
        assert!(pair([page, page], 100, 300).accepts(220));
        assert!(!pair([page, page], 100, 300).accepts(180));
        assert!(!pair([page, identity(1, 8)], 100, 300).accepts(220));
    }

    #[test]
    fn a_page_and_its_text_are_one() {
        let page_and_text = |visible: usize| PagePair {
            identities: [Some(identity(1, 7)), None],
            main: [100; 2],
            visible: [visible, 100],
            shared_main: 100,
            threshold: 0.8,
        };
        assert!(page_and_text(180).accepts(100));
        assert!(!page_and_text(300).accepts(100));
    }

    proptest::proptest! {
        /// No pair that shares less than `needed` is accepted, and none below the floor unless the headlines are equal.
        #[test]
        fn the_floor_holds(
            headlines in [0u32..3, 0u32..3],
            titles in [1u32..3, 1u32..3],
            main in 1usize..200,
            rest in [0usize..300, 0usize..300],
            shared in 0usize..500,
        ) {
            let pair = PagePair {
                identities: [0, 1].map(|i| Some(identity(headlines[i], titles[i]))),
                main: [main; 2],
                visible: rest.map(|rest| main + rest),
                shared_main: main,
                threshold: 0.8,
            };
            let most = pair.visible[0].min(pair.visible[1]);
            let shared = shared.min(most);
            if pair.accepts(shared) {
                let resemblance = resemblance_of(shared, pair.visible[0], pair.visible[1]);
                proptest::prop_assert!(shared >= pair.needed());
                proptest::prop_assert!(resemblance >= MIN_VISIBLE_RESEMBLANCE || pair.has_one_headline());
            }
        }
    }
}

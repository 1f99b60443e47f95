//! Candidates among pages with the same main text, by other properties that make them near-duplicates.
//!
//! Thousands of pages, for example error pages, may have the same main text and all be kept, since they differ elsewhere. Groups by
//! features of the main text propose every pair of them. So pages are made weak in large groups, that is, not candidates of each
//! other, and [`page_groups`] gives them keys by the rules of [`pages`](crate::dedup::pages). Two such pages are accepted only if
//!
//! - their visible texts are equal: a key for the text;
//! - or their visible texts reach the threshold: keys for a prefix of these;
//! - or they have the same headline and title, and their visible texts reach the floor: keys for a longer prefix;
//! - or they are in different frames, with the same headline or both mostly main text. Pages that have most of a core of features
//!   share too many with each other for that, so they are weak under the key of their headline, and the others are strong;
//! - or they have the same headline, and one of them is mostly main text that is not in a frame: it is strong under the key of its headline.
//!
//! Of two pages that reach a resemblance, the smaller one has a shorter prefix that must contain a shared feature, because a larger
//! share of its features must be common: it is weak under the rest of its prefix.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike::hash::avalanche;
use lookalike::resemblance::{intersection_size, prefix_len, shared_needed};
use lookalike_corpus::PageIdentity;

use crate::dedup::candidate_groups::{
    GroupResources, KeySink, KeyWriter, StoredGroups, split_virtual_ranks,
};
use crate::dedup::frequency::{FeatureFrequency, FrequencyLevels, RankedFeature};
use crate::dedup::pages::{
    ComparedPage, FRAMES_SHARE, MIN_VISIBLE_RESEMBLANCE, PageVerifier, is_mostly_main,
};
use crate::dedup::verify::Verifier;
use crate::parallel::{map_parallel_limited, run_on_threads};
use crate::parallel_sort::sort_unequal_by;
use crate::spill::table_column::TableColumn;

/// Number of members above which a group is large: its pages are compared only if other keys propose it.
pub(crate) const LARGE_GROUP: usize = 64;

/// Number of pages from which a core is learned.
const CORE_SAMPLE: usize = 256;

/// Number of pages that a thread takes at a time.
const STRIDE: usize = 32;

/// Maximum number of cores in memory, each of some thousand features of eight bytes.
const MAX_CORES: usize = 1 << 10;

/// Returns groups of the pages that are in groups by text with more than `bound` members, or `None` if there are no such pages. In `by_text` they
/// must not be weak yet. `keys` bytes of their keys stay in memory.
pub(crate) fn page_groups(
    verifier: &Verifier<'_>,
    by_text: &StoredGroups,
    bound: usize,
    keys: u64,
    resources: &GroupResources<'_>,
) -> io::Result<Option<StoredGroups>> {
    let ranks = verifier.sizes.len();
    let Some(pages) = verifier.pages else {
        return Ok(None);
    };
    if pages.threshold <= 0.0 {
        // Every candidate passes, including one that shares nothing and so has no key.
        return Ok(None);
    }
    let families = PageFamilies::new(verifier, by_text, bound)?;
    // Twice as many numbers as ranks are needed: one for strong members, one for weak ones.
    // Without groups of pages, large groups are compared pair by pair: slower, with the same result.
    if families.members.is_empty() || u32::try_from(2 * ranks).is_err() {
        return Ok(None);
    }
    let sink = KeySink::new(resources.folder, keys)?;
    let team = PageTeam {
        verifier,
        pages,
        families: &families,
        sink: &sink,
        threads: resources.threads,
    };
    team.push_prefixes()?;
    team.push_frames(bound)?;
    // The keys already have virtual ranks instead of classes, so the map from classes to ranks is the identity.
    let virtual_ranks: TableColumn<u32> = (0..2 * ranks as u32).collect();
    let groups = StoredGroups::new(&sink, &virtual_ranks, resources)?;
    let split = |members: &mut [u32]| split_virtual_ranks(members, ranks);
    Ok(Some(groups.changed(ranks, resources, split)?))
}

/// Pages in large groups, with their families: the sets of pages that large groups connect.
struct PageFamilies {
    /// Ranks of the pages, ascending.
    members: TableColumn<u32>,
    /// Smallest rank of the family, by rank.
    parents: TableColumn<u32>,
}

impl PageFamilies {
    fn new(verifier: &Verifier<'_>, by_text: &StoredGroups, bound: usize) -> io::Result<Self> {
        let ranks = verifier.sizes.len() as u32;
        let mut families = Self {
            members: TableColumn::new(),
            parents: (0..ranks).collect(),
        };
        let mut is_member = TableColumn::<bool>::zeroed(ranks as usize);
        by_text.for_each(|group| {
            if group.ranks.len() <= bound {
                return;
            }
            let mut first = None;
            for &rank in group.ranks.iter().filter(|&&rank| verifier.is_page(rank)) {
                is_member[rank as usize] = true;
                families.join(*first.get_or_insert(rank), rank);
            }
        })?;
        families.members = (0..ranks)
            .filter(|&rank| is_member[rank as usize])
            .collect();
        for &rank in &families.members {
            let family = families.parents[rank as usize];
            // Members ascend and parents are smaller, so the parent already points to its root and a single step is
            // enough.
            families.parents[rank as usize] = families.parents[family as usize];
        }
        Ok(families)
    }

    /// Joins two families; the smaller rank represents both. Unlike `Components`, in a column that leaves memory when it is short.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }

    fn root(&mut self, rank: u32) -> u32 {
        let mut at = rank;
        while self.parents[at as usize] != at {
            let parent = self.parents[at as usize];
            self.parents[at as usize] = self.parents[parent as usize];
            at = parent;
        }
        at
    }

    /// Returns the smallest rank of the family of a member.
    fn of(&self, rank: u32) -> u32 {
        self.parents[rank as usize]
    }
}

/// Kinds of keys, which are mixed into them so that keys of different kinds differ.
#[derive(Clone, Copy)]
enum PageKeyKind {
    SameText = 1,
    Threshold,
    Title,
    Headline,
    MostlyMain,
}

/// Returns the key of a value in a family.
fn key_of(kind: PageKeyKind, family: u32, what: u64) -> u64 {
    avalanche(what ^ avalanche(u64::from(family) << 8 | kind as u64))
}

/// Buffers for the sets of a page and its prefix.
#[derive(Default)]
struct PageBuffers {
    text: Vec<u64>,
    visible: Vec<u64>,
    prefix: Vec<u64>,
    common: Vec<RankedFeature>,
}

/// A page with its key for pairs in different frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyedPage {
    key: u64,
    rank: u32,
    /// True if it may be accepted in the frame of another page, too.
    is_strong: bool,
}

/// Threads that collect the keys of pages.
struct PageTeam<'a, 'v> {
    verifier: &'a Verifier<'v>,
    pages: PageVerifier<'v>,
    families: &'a PageFamilies,
    sink: &'a KeySink,
    threads: usize,
}

/// Collects the keys of one thread.
struct PageKeys<'a, 'v> {
    team: &'a PageTeam<'a, 'v>,
    writer: KeyWriter<'a>,
    buffers: PageBuffers,
}

/// The features of a page's visible text, with the size of its main text.
struct LoadedPage<'b> {
    main: usize,
    visible: &'b [u64],
}

impl LoadedPage<'_> {
    /// Returns the number of visible features outside the main text.
    fn rest(&self) -> usize {
        self.visible.len().saturating_sub(self.main)
    }

    /// Returns true only if no two pages for which it is true, with the same core, are in different frames.
    ///
    /// Two pages share all of the core except the features that one of them lacks. Half of that, less half of the main text, is more than
    /// [`FRAMES_SHARE`] of half of the rest on each side, so the sum over both sides is more too.
    fn is_in_frame_of(&self, core: &[u64]) -> bool {
        let missing = core.len() - intersection_size(self.visible, core);
        let sure = core.len().saturating_sub(2 * missing + self.main);
        // One feature more, for the rounding of the product.
        sure as f64 > FRAMES_SHARE * self.rest() as f64 + 1.0
    }
}

impl PageTeam<'_, '_> {
    /// Calls `work` with a few of the pages at a time, on all threads, and returns the results in any order.
    fn each<T: Sync, R: Send>(
        &self,
        pages: &[T],
        work: impl Fn(&mut PageKeys<'_, '_>, &[T]) -> io::Result<R> + Sync,
    ) -> io::Result<Vec<R>> {
        let next = AtomicUsize::new(0);
        let of_threads = run_on_threads(self.threads, || -> io::Result<Vec<R>> {
            let mut keys = PageKeys {
                team: self,
                writer: self.sink.writer(),
                buffers: PageBuffers::default(),
            };
            let mut all = Vec::new();
            // The number is all that threads share here; keys are combined under the locks of the sink.
            let stride = || {
                pages
                    .chunks(STRIDE)
                    .nth(next.fetch_add(1, Ordering::Relaxed))
            };
            while let Some(own) = stride() {
                all.push(work(&mut keys, own)?);
            }
            keys.writer.finish()?;
            Ok(all)
        })?;
        Ok(of_threads.into_iter().flatten().collect())
    }

    /// Loads the sets of a page and passes them to `visit`.
    fn with_page<T>(
        &self,
        rank: u32,
        buffers: &mut PageBuffers,
        visit: impl FnOnce(LoadedPage<'_>) -> T,
    ) -> io::Result<T> {
        let text = self.verifier.set(rank, &mut buffers.text)?;
        let page = ComparedPage { rank, text };
        let visible = self.pages.visible(page, &mut buffers.visible)?;
        let main = text.len();
        Ok(visit(LoadedPage { main, visible }))
    }

    /// Returns the identity of a page with a headline: one without does not have the headline of itself either.
    fn with_headline(&self, rank: u32) -> Option<PageIdentity> {
        let identity = self.pages.columns.identity(rank);
        identity.filter(|page| page.has_headline_of(*page))
    }

    /// Adds keys for pairs that reach the threshold or the floor, or have the same visible text.
    fn push_prefixes(&self) -> io::Result<()> {
        let members = &self.families.members;
        let frequency = FeatureFrequency::new();
        self.each(members, |keys, ranks| {
            let mut ranks = ranks.iter();
            ranks.try_for_each(|&rank| keys.with_page(rank, |page| frequency.add(page.visible)))
        })?;
        let levels = frequency.levels_by(self.threads);
        self.each(members, |keys, ranks| {
            ranks
                .iter()
                .try_for_each(|&rank| keys.push_prefixes(rank, &levels))
        })?;
        Ok(())
    }

    /// Adds keys for pairs in different frames.
    fn push_frames(&self, bound: usize) -> io::Result<()> {
        let keyed = self.each(&self.families.members, |keys, ranks| {
            let mut keyed = Vec::new();
            ranks
                .iter()
                .try_for_each(|&rank| keys.add_frames(rank, &mut keyed))?;
            Ok(keyed)
        })?;
        let mut keyed = keyed.concat();
        // By key, then by rank: the sample of a core depends on the order.
        sort_unequal_by(&mut keyed, self.threads, Ord::cmp);
        // Comparing few pages in pairs costs less than learning a core.
        let (mut large, mut end) = (Vec::new(), 0);
        for pages in keyed.chunk_by(|a, b| a.key == b.key) {
            let start = end;
            end += pages.len();
            if pages.len() > bound {
                large.push(start..end);
            }
        }
        let (mut large, mut start) = (&large[..], 0);
        while start < keyed.len() {
            let (own, later) = large.split_at(large.len().min(MAX_CORES));
            let end = later.first().map_or(keyed.len(), |next| next.start);
            self.push_frames_of(&keyed, start..end, own)?;
            (large, start) = (later, end);
        }
        Ok(())
    }

    /// Adds the keys of a range of pages, of which these groups are so large that they have a core.
    fn push_frames_of(
        &self,
        keyed: &[KeyedPage],
        range: Range<usize>,
        large: &[Range<usize>],
    ) -> io::Result<()> {
        let cores = map_parallel_limited(large.iter(), self.threads, |group| {
            let pages = &keyed[group.clone()];
            Ok((pages[0].key, self.core_features(pages)?))
        });
        let cores: Vec<(u64, Vec<u64>)> = cores.into_iter().collect::<io::Result<_>>()?;
        self.each(&keyed[range], |keys, pages| {
            for page in pages {
                let core = cores.binary_search_by_key(&page.key, |(key, _)| *key);
                let core = core.map_or(&[][..], |at| &cores[at].1);
                let is_weak = !page.is_strong
                    && !core.is_empty()
                    && keys.with_page(page.rank, |page| page.is_in_frame_of(core))?;
                keys.push(page.key, page.rank, is_weak)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the features that most of a sample of these pages have. Rarer features would be missing more often than they help.
    fn core_features(&self, pages: &[KeyedPage]) -> io::Result<Vec<u64>> {
        let sample = pages.len().min(CORE_SAMPLE);
        let mut counts: HashMap<u64, usize> = HashMap::new();
        let mut buffers = PageBuffers::default();
        for at in 0..sample {
            // Evenly spaced, so that the sample does not depend on the number of threads.
            let page = pages[at * pages.len() / sample];
            self.with_page(page.rank, &mut buffers, |page| {
                for &feature in page.visible {
                    *counts.entry(feature).or_default() += 1;
                }
            })?;
        }
        let most = counts.into_iter().filter(|&(_, count)| 2 * count > sample);
        let mut core: Vec<u64> = most.map(|(feature, _)| feature).collect();
        core.sort_unstable();
        Ok(core)
    }
}

impl PageKeys<'_, '_> {
    fn push(&mut self, key: u64, rank: u32, is_weak: bool) -> io::Result<()> {
        // The virtual rank of a weak membership; see `split_virtual_ranks`.
        let weak = u32::from(is_weak) * self.team.verifier.sizes.len() as u32;
        self.writer.push(key, rank + weak)
    }

    fn with_page<T>(
        &mut self,
        rank: u32,
        visit: impl FnOnce(LoadedPage<'_>) -> T,
    ) -> io::Result<T> {
        self.team.with_page(rank, &mut self.buffers, visit)
    }

    /// Adds the keys of a page for pairs that reach the threshold or the floor, or have the same visible text.
    fn push_prefixes(&mut self, rank: u32, levels: &FrequencyLevels) -> io::Result<()> {
        let team = self.team;
        let (family, threshold) = (team.families.of(rank), team.pages.threshold);
        if let Some(&text) = team.verifier.texts.get(rank as usize) {
            let key = key_of(PageKeyKind::SameText, family, text as u64);
            self.push(key, rank, false)?;
        }
        let salt = key_of(PageKeyKind::Threshold, family, 0);
        self.push_prefix(rank, levels, threshold, salt)?;
        // Below the threshold only pages with the same title and headline are accepted.
        let identity = team.with_headline(rank);
        if let Some(identity) = identity.filter(|_| threshold > MIN_VISIBLE_RESEMBLANCE) {
            let salt = key_of(PageKeyKind::Title, family, identity.to_bits());
            self.push_prefix(rank, levels, MIN_VISIBLE_RESEMBLANCE, salt)?;
        }
        Ok(())
    }

    /// Adds keys for pairs whose visible texts have a resemblance of at least `least`.
    fn push_prefix(
        &mut self,
        rank: u32,
        levels: &FrequencyLevels,
        least: f64,
        salt: u64,
    ) -> io::Result<()> {
        let (mut prefix, mut common) = (
            std::mem::take(&mut self.buffers.prefix),
            std::mem::take(&mut self.buffers.common),
        );
        let strong = self.with_page(rank, |page| {
            let size = page.visible.len();
            let long = prefix_len(size, least);
            levels.prefix(page.visible, long, &mut prefix, &mut common);
            // The prefix for a partner of the same size, which is the shortest one needed: a larger partner finds this page by it.
            // It has |A| - o + 1 features, where o is what two sets of this size must share.
            (size + 1).saturating_sub(shared_needed(size, size, least))
        })?;
        // The prefix begins with its rarest features, so the shorter prefix is its beginning.
        for (at, &feature) in prefix.iter().enumerate() {
            self.push(avalanche(feature ^ salt), rank, at >= strong)?;
        }
        (self.buffers.prefix, self.buffers.common) = (prefix, common);
        Ok(())
    }

    /// Adds a page to `keyed` with each of its keys for pairs in different frames.
    fn add_frames(&mut self, rank: u32, keyed: &mut Vec<KeyedPage>) -> io::Result<()> {
        let team = self.team;
        let family = team.families.of(rank);
        let is_mostly_main =
            self.with_page(rank, |page| is_mostly_main(page.main, page.visible.len()))?;
        let mut add = |kind, what, is_strong| {
            let key = key_of(kind, family, what);
            keyed.push(KeyedPage {
                key,
                rank,
                is_strong,
            });
        };
        if let Some(identity) = team.with_headline(rank) {
            add(
                PageKeyKind::Headline,
                identity.to_bits() >> 32,
                is_mostly_main,
            );
        }
        if is_mostly_main {
            add(PageKeyKind::MostlyMain, 0, false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;
    use crate::dedup::candidate_groups::CandidateGroups;
    use crate::dedup::class_id::ClassId;
    use crate::dedup::group_windows::ClassGroups;
    use crate::dedup::pages::{PageColumns, PagePair};
    use crate::dedup::pairs::EarlierMembers;
    use crate::dedup::survivors::{
        ClassDecisions, LowMemoryPlan, SettledRanks, settle, settle_low_memory,
    };
    use crate::dedup::testing::{TestCollection, in_memory, stored};
    use crate::dedup::verify::{CandidateMembers, VerifyScratch, VisitedGroup};
    use crate::spill::feature_sets::SetStore;

    /// A page, or a text if it has no identity.
    #[derive(Clone, Debug)]
    struct TestPage {
        identity: Option<PageIdentity>,
        main: Vec<u64>,
        visible: Vec<u64>,
    }

    impl TestPage {
        fn new(identity: Option<PageIdentity>, mut main: Vec<u64>, besides: &[u64]) -> Self {
            main.sort_unstable();
            let mut visible = main.clone();
            if identity.is_some() {
                visible.extend(besides);
            }
            visible.sort_unstable();
            visible.dedup();
            Self {
                identity,
                main,
                visible,
            }
        }
    }

    fn identity(headline: u32, title: u32) -> Option<PageIdentity> {
        PageIdentity::from_bits(u64::from(headline) << 32 | u64::from(title))
    }

    struct TestPages {
        pages: Vec<TestPage>,
        collection: TestCollection,
        columns: PageColumns,
        store: SetStore,
        classes: Vec<u32>,
        /// Numbers of visible texts; empty if it is unknown which ones are equal.
        texts: Vec<u128>,
        page_groups: Option<CandidateGroups>,
        threshold: f64,
    }

    impl TestPages {
        fn new(pages: Vec<TestPage>, threshold: f64, knows_texts: bool) -> Self {
            let sets = pages.iter().map(|page| page.main.clone()).collect();
            let collection = TestCollection::by_prefix(sets, threshold);
            let visible: Vec<Vec<u64>> = pages.iter().map(|page| page.visible.clone()).collect();
            let (store, places) = stored(&visible, collection.folder.path());
            let mut columns = PageColumns::default();
            for (class, page) in pages.iter().enumerate() {
                if let Some(identity) = page.identity {
                    let set = Some((places[class], page.visible.len() as u32));
                    columns.set(ClassId::new(class).unwrap(), identity, set);
                }
            }
            let first = |page: &TestPage| visible.iter().position(|other| *other == page.visible);
            let texts = match knows_texts {
                true => pages
                    .iter()
                    .map(|page| first(page).unwrap() as u128)
                    .collect(),
                false => Vec::new(),
            };
            Self {
                collection,
                columns,
                store,
                classes: (0..pages.len() as u32).collect(),
                texts,
                page_groups: None,
                threshold,
                pages,
            }
        }

        fn verifier(&self) -> Verifier<'_> {
            Verifier {
                pages: (!self.columns.is_empty()).then_some(PageVerifier {
                    columns: &self.columns,
                    sets: &self.store,
                    classes: &self.classes,
                    threshold: self.threshold,
                }),
                page_groups: self.page_groups.as_ref(),
                texts: &self.texts,
                ..self.collection.verifier()
            }
        }

        /// Groups pages as a job does.
        fn group_pages(&mut self, bound: usize, threads: usize) {
            let resources = GroupResources {
                folder: self.collection.folder.path(),
                threads,
                memory: u64::MAX,
                most_texts: None,
                across: None,
                advance: &|_| Ok(()),
            };
            let by_text = self.collection.groups_in_memory().by_text;
            let found =
                page_groups(&self.verifier(), &by_text, bound, 1 << 20, &resources).unwrap();
            if let Some(found) = found {
                let columns = &self.columns;
                let is_page = |rank| columns.identity(rank).is_some();
                self.collection.weaken(bound, is_page);
                self.page_groups = Some(in_memory(found));
            }
        }

        /// Settles with groups of texts, or of pages, that are on disk.
        fn settle_from_disk(
            &self,
            [by_text, by_page]: [bool; 2],
            fixed: usize,
            plan: LowMemoryPlan,
        ) -> ClassDecisions {
            let folder = self.collection.folder.path();
            let placed = |groups: StoredGroups, is_on_disk| match is_on_disk {
                true => groups.into_file(folder).unwrap(),
                false => groups,
            };
            let pages = self.page_groups.clone().map(StoredGroups::InMemory);
            let groups = ClassGroups {
                by_text: placed(self.collection.groups_in_memory().by_text, by_text),
                by_page: pages.map(|groups| placed(groups, by_page)),
            };
            let settled = SettledRanks::fixed(fixed, self.pages.len());
            settle_low_memory(&self.verifier(), &groups, &settled, fixed, plan)
        }

        /// Returns all pairs, and the number of candidates visited for them.
        fn matches(&self) -> (Vec<(u32, u32, u32)>, u64) {
            let verifier = self.verifier();
            let ranks = self.pages.len();
            let (mut found, visits) = (Vec::new(), Cell::new(0));
            let counted = |than| CountingMembers {
                members: EarlierMembers(than),
                visits: &visits,
            };
            let mut scratch = VerifyScratch::default();
            for rank in 0..ranks as u32 {
                let visit = |x, m: crate::dedup::verify::VerifiedMatch| {
                    found.push((x, m.rank, m.shared));
                };
                verifier
                    .matches(rank..rank + 1, &mut scratch, counted, visit)
                    .unwrap();
            }
            (found, visits.get())
        }

        /// The definition: all pairs whose main texts reach the threshold and that are accepted as pages.
        fn slow_matches(&self) -> Vec<(u32, u32, u32)> {
            let shared = |a: &[u64], b: &[u64]| a.iter().filter(|f| b.contains(f)).count();
            let mut found = Vec::new();
            for (x, a) in self.pages.iter().enumerate() {
                for (y, b) in self.pages[..x].iter().enumerate() {
                    if self.collection.similar(x as u32, y as u32).is_none() {
                        continue;
                    }
                    let pair = PagePair {
                        identities: [a.identity, b.identity],
                        main: [a.main.len(), b.main.len()],
                        visible: [a.visible.len(), b.visible.len()],
                        shared_main: shared(&a.main, &b.main),
                        threshold: self.threshold,
                    };
                    let are_texts = pair.identities == [None, None];
                    if are_texts || pair.accepts(shared(&a.visible, &b.visible)) {
                        found.push((x as u32, y as u32, pair.shared_main as u32));
                    }
                }
            }
            found
        }
    }

    /// Counts the members that are visited.
    struct CountingMembers<'c, M> {
        members: M,
        visits: &'c Cell<u64>,
    }

    impl<M: CandidateMembers> CandidateMembers for CountingMembers<'_, M> {
        fn for_each(
            &self,
            group: VisitedGroup<'_>,
            within: &Range<u32>,
            mut visit: impl FnMut(u32),
        ) {
            self.members.for_each(group, within, |rank| {
                self.visits.set(self.visits.get() + 1);
                visit(rank);
            });
        }

        fn excludes_weak(&self) -> bool {
            self.members.excludes_weak()
        }
    }

    /// Pages with few main texts in a few frames, most of which they contain, each with features of its own.
    fn families() -> impl Strategy<Value = Vec<TestPage>> {
        let sizes = (3..30_u64, 0..25_u64, 1..40_u64);
        sizes.prop_flat_map(|(main_size, frame_size, pool)| {
            let page = (
                (0..4_u64, 0..3_u64, prop::collection::vec(0..25_u64, 0..4)),
                prop::collection::btree_set(0..pool, 0..14),
                (0..3_u32, 1..3_u32, prop::bool::weighted(0.9)),
            );
            let page = page.prop_map(move |((variant, shift, missing), own, who)| {
                let (headline, title, is_page) = who;
                // Frames overlap by a third; main texts differ in at most a feature.
                let main = (0..main_size).map(|f| f + 100 * u64::from(f < variant / 2));
                let frame = (0..frame_size).filter(|f| !missing.contains(f));
                let frame = frame.map(|f| 1000 + f + frame_size * 2 / 3 * (shift / 2));
                let besides: Vec<u64> = frame.chain(own.iter().map(|f| 2000 + f)).collect();
                let identity = identity(headline, title).filter(|_| is_page);
                TestPage::new(identity, main.collect(), &besides)
            });
            prop::collection::vec(page, 0..60)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn page_groups_lose_no_pair_and_change_no_decision(
            pages in families(),
            threshold in prop::sample::select(vec![0.3, 0.5, 0.6, 0.8, 1.0]),
            bound in 2..12_usize,
            knows_texts in any::<bool>(),
            threads in 1..3_usize,
            fixed in 0..5_usize,
        ) {
            let fixed = fixed.min(pages.len());
            let mut collection = TestPages::new(pages, threshold, knows_texts);
            let (pairs, _) = collection.matches();
            if !knows_texts {
                prop_assert_eq!(&pairs, &collection.slow_matches());
            }
            let settled = |collection: &TestPages| {
                settle(&collection.verifier(), fixed, threads, |_| Ok(())).unwrap()
            };
            let before = settled(&collection);
            collection.group_pages(bound, threads);
            prop_assert_eq!(collection.matches().0, pairs);
            let after = settled(&collection);
            prop_assert!(after.decisions.documents().eq(before.decisions.documents()));
            prop_assert_eq!(after.kept_as_pages, before.kept_as_pages);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(80))]

        #[test]
        fn page_groups_on_disk_decide_and_count_as_those_in_memory(
            pages in families(),
            threshold in prop::sample::select(vec![0.3, 0.5, 0.8]),
            bound in 2..12_usize,
            knows_texts in any::<bool>(),
            threads in 1..3_usize,
            fixed in 0..5_usize,
            ranks in prop::sample::select(vec![1_usize, 3, 8, 100]),
            more in 0..3000_u64,
        ) {
            let fixed = fixed.min(pages.len());
            let mut collection = TestPages::new(pages, threshold, knows_texts);
            collection.group_pages(bound, threads);
            let plan = LowMemoryPlan { threads, ranks, more };
            let in_memory = collection.settle_from_disk([false, false], fixed, plan);
            for places in [[true, false], [false, true], [true, true]] {
                let found = collection.settle_from_disk(places, fixed, plan);
                prop_assert!(found.decisions.documents().eq(in_memory.decisions.documents()));
                prop_assert_eq!(found.comparisons, in_memory.comparisons);
                prop_assert_eq!(found.kept_as_pages, in_memory.kept_as_pages);
            }
        }
    }

    /// Sizes of the parts of a page in a family.
    #[derive(Clone, Copy)]
    struct FamilyShape {
        main: u64,
        frame: u64,
        own: u64,
        has_one_headline: bool,
    }

    /// Creates `count` pages with nearly the same main text in the same frame, all different enough to be kept; groups of five share a few more
    /// features.
    fn differing_pages(count: u64, shape: FamilyShape) -> Vec<TestPage> {
        let page = |number: u64| {
            let main = (0..shape.main).map(|f| f + 5000 * u64::from(f < number % 2));
            let frame = (0..shape.frame).map(|f| avalanche(10_000 + f));
            let own = (0..shape.own).map(|f| match f < 10 {
                true => avalanche(1_000_000 + number / 5 * 1000 + f),
                false => avalanche(1_000_000_000 + number * 1000 + f),
            });
            let besides: Vec<u64> = frame.chain(own).collect();
            let headline = if shape.has_one_headline {
                1
            } else {
                number as u32 + 1
            };
            let title = headline;
            TestPage::new(
                identity(headline, title),
                main.map(avalanche).collect(),
                &besides,
            )
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn a_family_of_pages_that_all_stay_was_compared_pair_by_pair() {
        let shape = |main, frame, own, has_one_headline| FamilyShape {
            main,
            frame,
            own,
            has_one_headline,
        };
        for shape in [
            // Error pages of a site.
            shape(40, 60, 80, true),
            shape(40, 60, 80, false),
            // Mostly main text.
            shape(400, 100, 100, false),
        ] {
            let visits = |count: u64| {
                let mut family = TestPages::new(differing_pages(count, shape), 0.8, false);
                family.group_pages(LARGE_GROUP, 2);
                let settled = settle(&family.verifier(), 0, 2, |_| Ok(())).unwrap();
                let ranks = 0..settled.decisions.len();
                assert!(
                    ranks
                        .into_iter()
                        .all(|rank| settled.decisions.is_kept(rank))
                );
                assert_eq!(settled.kept_as_pages, count - 1);
                let (pairs, visits) = family.matches();
                assert!(pairs.is_empty());
                visits
            };
            let (few, many) = (visits(500), visits(4000));
            // An order of features that separates well may leave no candidate at all.
            assert!(
                many <= 9 * few.max(4 * 500),
                "{few} of 500, {many} of 4,000"
            );
            assert!(many < 4000 * 100, "{many} of 4,000");
        }
    }
}

//! Candidates of a class, and the test that decides which of them are near-duplicates.
//!
//! Connects [`CandidateGroups`] with both results, [`survivors`](crate::dedup::survivors) and [`pairs`](crate::dedup::pairs): for a
//! class x and other members of its groups it counts the groups that they share, drops the members that this count or the
//! sizes rule out, and computes the exact resemblance of the rest. Reported similarities are always exact.

use std::io;
use std::ops::Range;

use lookalike::resemblance::{close_lengths, intersection_at_least, resemblance_of, shared_needed};

use crate::dedup::candidate_groups::{CandidateGroups, GroupMembership};
use crate::dedup::counts::ComparisonCounts;
use crate::dedup::group_windows::ClassWindow;
use crate::dedup::pages::{ComparedPage, PageScratch, PageVerifier};
use crate::dedup::pair_test::{LoadedTest, TestBuffers};
use crate::dedup::visit_counts::VisitCounts;
use crate::kernel::candidate_rule::CandidateRule;
use crate::settings::PairScope;
use crate::spill::feature_sets::{SetPosition, SetStore};

/// Data of the classes for verification, by rank.
pub(crate) struct Verifier<'a> {
    pub(crate) groups: &'a CandidateGroups,
    /// Groups by other properties that make two pages near-duplicates, for pages that are weak in `groups`.
    pub(crate) page_groups: Option<&'a CandidateGroups>,
    pub(crate) sets: &'a SetStore,
    /// Class of each rank.
    pub(crate) classes: &'a [u32],
    /// Place of the set of each rank.
    pub(crate) places: &'a [SetPosition],
    /// Number of features of each rank.
    pub(crate) sizes: &'a [u32],
    /// Fingerprints by rank, for [`CandidateRule::Distance`].
    pub(crate) fingerprints: &'a [u64],
    /// Upper halves of the fingerprints; empty for fingerprints of up to 64 bits.
    pub(crate) high_fingerprints: &'a [u64],
    /// Pairs that count.
    pub(crate) scope: PairScope,
    /// Category by rank; empty if all pairs count.
    pub(crate) categories: &'a [u64],
    /// Hash of the visible text by rank; empty if different classes always differ in it.
    pub(crate) texts: &'a [u128],
    /// Compares visible texts; `None` if there are no pages of which a part was chosen.
    pub(crate) pages: Option<PageVerifier<'a>>,
    /// Minimum length of the shorter text as a share of the longer one.
    pub(crate) length_share: Option<f64>,
    /// Bytes of each text by rank, for `length_share`.
    pub(crate) lengths: &'a [u64],
    /// Further tests, all of which a pair must pass.
    pub(crate) tests: Vec<LoadedTest<'a>>,
    pub(crate) threshold: f64,
    pub(crate) rule: CandidateRule,
}

/// A kind of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GroupKind {
    /// Those of [`Verifier::groups`].
    Text,
    /// Those of [`Verifier::page_groups`].
    Page,
}

impl GroupKind {
    /// Returns what belongs to this kind.
    pub(crate) fn of<T>(self, by_text: T, by_page: Option<T>) -> Option<T> {
        match self {
            Self::Text => Some(by_text),
            Self::Page => by_page,
        }
    }
}

/// A group that a rank is in.
#[derive(Clone, Copy)]
pub(crate) struct VisitedGroup<'g> {
    /// The groups of its kind.
    pub(crate) groups: &'g CandidateGroups,
    pub(crate) kind: GroupKind,
    pub(crate) membership: GroupMembership,
}

/// The members of groups that are candidates.
pub(crate) trait CandidateMembers {
    /// Visits the members of a group with ranks in a range.
    fn for_each(&self, group: VisitedGroup<'_>, within: &Range<u32>, visit: impl FnMut(u32));

    /// Returns true if weak members of groups are left out, so that a candidate may share more groups than were visited.
    fn excludes_weak(&self) -> bool {
        true
    }
}

/// Working memory of one thread: two sets, or four with further tests; 640 KiB for counts; and 12 bytes for each of up to [`PROPOSED`] candidates,
/// and of those that were counted together with the last ones: less than 2 MiB.
///
/// It takes the place of the memory for reading, which is free by then.
pub(crate) struct VerifyScratch {
    counts: VisitCounts,
    proposed: Vec<CandidatePair>,
    /// Number of candidates from which on no others are counted before these are verified.
    most_proposed: usize,
    own: Vec<u64>,
    other: Vec<u64>,
    pub(crate) buffers: VerifyBuffers,
    /// Counts of the comparisons in [`Verifier::best`].
    pub(crate) comparisons: ComparisonCounts,
}

/// Number of candidates of a stride from which on no others are counted before these are verified.
const PROPOSED: usize = 1 << 15;

impl Default for VerifyScratch {
    fn default() -> Self {
        Self {
            counts: VisitCounts::default(),
            proposed: Vec::new(),
            most_proposed: PROPOSED,
            own: Vec::new(),
            other: Vec::new(),
            buffers: VerifyBuffers::default(),
            comparisons: ComparisonCounts::default(),
        }
    }
}

impl VerifyScratch {
    /// Creates a scratch with a small table for counts that verifies `most_proposed` candidates at a time.
    #[cfg(test)]
    pub(crate) fn with_slots(slots: usize, most_proposed: usize) -> Self {
        Self {
            counts: VisitCounts::with_slots(2, slots),
            most_proposed,
            ..Self::default()
        }
    }
}

/// Buffers for a comparison, besides the sets of x and y.
#[derive(Default)]
pub(crate) struct VerifyBuffers {
    tests: TestBuffers,
    pages: PageScratch,
    /// Ranks whose main text resembles that of another, but which are not near-duplicates as pages.
    pub(crate) refused: Vec<u32>,
}

/// A candidate y of x, and the number of groups that they share.
#[derive(Clone, Copy)]
struct CandidatePair {
    x: u32,
    y: u32,
    shared_groups: u32,
}

/// A verified candidate: its rank and the number of features that it shares with x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VerifiedMatch {
    pub(crate) rank: u32,
    pub(crate) shared: u32,
}

/// The most similar candidate of x so far.
#[derive(Clone, Copy)]
struct BestSoFar {
    x: u32,
    found: VerifiedMatch,
}

/// Ranks whose candidates are still to be proposed, and the ranges in which the candidates of the first of them are not counted yet: the next range
/// is the last, and there are none before counting starts.
struct ProposalQueue {
    ranks: Range<u32>,
    ranges: Vec<Range<u32>>,
}

impl ProposalQueue {
    fn new(ranks: Range<u32>) -> Self {
        Self {
            ranks,
            ranges: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }
}

impl<'a> Verifier<'a> {
    /// Returns the verifier with the groups of a window.
    pub(crate) fn in_window<'w>(&self, window: &'w ClassWindow<'_>) -> Verifier<'w>
    where
        'a: 'w,
    {
        Verifier {
            groups: &window.by_text,
            page_groups: window.by_page.as_deref(),
            tests: self.tests.clone(),
            ..*self
        }
    }

    /// Returns the resemblance of two classes that share this many features.
    pub(crate) fn similarity(&self, x: u32, found: VerifiedMatch) -> f64 {
        let size = |rank: u32| self.sizes[rank as usize] as usize;
        if self.is_same_text(x, found.rank) {
            return 1.0;
        }
        resemblance_of(found.shared as usize, size(x), size(found.rank))
    }

    /// Returns the Hamming distance of two classes.
    pub(crate) fn distance(&self, x: u32, y: u32) -> u32 {
        let of = |half: &[u64]| (half[x as usize] ^ half[y as usize]).count_ones();
        match self.high_fingerprints.is_empty() {
            true => of(self.fingerprints),
            false => of(self.fingerprints) + of(self.high_fingerprints),
        }
    }

    /// Returns true if a rank is a page of which a part was chosen.
    pub(crate) fn is_page(&self, rank: u32) -> bool {
        let identity = |pages: PageVerifier<'_>| pages.columns.identity(rank);
        self.pages.and_then(identity).is_some()
    }

    /// Returns the category of a rank, which is its site if the distance depends on that, or `None` if it is unknown.
    fn site(&self, rank: u32) -> Option<u64> {
        let category = self.categories.get(rank as usize).copied();
        category.filter(|&category| category != 0)
    }

    /// Returns true if the visible texts of two classes are equal, so that only categories, main texts or titles distinguish them.
    #[inline]
    fn is_same_text(&self, x: u32, y: u32) -> bool {
        !self.texts.is_empty() && self.texts[x as usize] == self.texts[y as usize]
    }

    /// Returns true if the categories and lengths of a pair allow it to count. Equal texts count whatever the lengths of their main texts are.
    #[inline]
    fn may_match(&self, x: u32, y: u32) -> bool {
        let (x, y) = (x as usize, y as usize);
        if self.scope != PairScope::Everything
            && !self.scope.allows(self.categories[x] == self.categories[y])
        {
            return false;
        }
        self.length_share
            .is_none_or(|share| close_lengths(self.lengths[x], self.lengths[y], share))
            || self.is_same_text(x as u32, y as u32)
    }

    /// Returns y and the features that it shares with x, if they are at least `needed`.
    fn shared<'b>(
        &'b self,
        x: ComparedPage<'b>,
        y: u32,
        needed: usize,
        other: &'b mut Vec<u64>,
    ) -> io::Result<Option<(ComparedPage<'b>, VerifiedMatch)>> {
        let (y, shared) = if self.is_same_text(x.rank, y) {
            // The main texts of the two pages may differ; `similarity` returns 1 for them, whatever they share, and `passes` looks at neither.
            (ComparedPage { rank: y, ..x }, Some(x.text.len()))
        } else {
            let y = self.page(y, other)?;
            (y, intersection_at_least(x.text, y.text, needed))
        };
        let (rank, found) = (y.rank, shared.map(|shared| shared as u32));
        Ok(found.map(|shared| (y, VerifiedMatch { rank, shared })))
    }

    /// Returns the resemblance of the visible texts of two classes, or `None` if these were compared anyway.
    pub(crate) fn visible_similarity(
        &self,
        x: u32,
        y: u32,
        scratch: &mut VerifyScratch,
    ) -> io::Result<Option<f64>> {
        let Some(pages) = self.pages.filter(|_| !self.is_same_text(x, y)) else {
            return Ok(None);
        };
        let a = self.page(x, &mut scratch.own)?;
        let b = self.page(y, &mut scratch.other)?;
        pages.resemblance(a, b, &mut scratch.buffers.pages)
    }

    /// Returns true if two classes, which share these features, are near-duplicates as pages too and pass the further tests; equal texts always
    /// do.
    fn passes(
        &self,
        a: ComparedPage<'_>,
        b: ComparedPage<'_>,
        found: VerifiedMatch,
        buffers: &mut VerifyBuffers,
    ) -> io::Result<bool> {
        let (x, y, shared) = (a.rank, b.rank, found.shared as usize);
        if self.is_same_text(x, y) {
            return Ok(true);
        }
        if let Some(pages) = &self.pages
            && !pages.accepts(a, b, shared, &mut buffers.pages)?
        {
            // The search below the threshold also passes pairs whose main texts are not near-duplicates.
            let is_near = shared >= self.needed(x, y, self.threshold);
            // Candidates of x are consecutive, so this check records it only once.
            if is_near && buffers.refused.last() != Some(&x) {
                buffers.refused.push(x);
            }
            return Ok(false);
        }
        let [x, y] = [x, y].map(|rank| self.classes[rank as usize]);
        for test in &self.tests {
            if !test.passes(x, y, &mut buffers.tests)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns y if the number of features that it shares with x is in the range `wanted`, and the pair passes all tests.
    fn matched(
        &self,
        x: ComparedPage<'_>,
        y: u32,
        wanted: Range<usize>,
        other: &mut Vec<u64>,
        buffers: &mut VerifyBuffers,
    ) -> io::Result<Option<VerifiedMatch>> {
        let shared = self.shared(x, y, wanted.start, other)?;
        let Some((y, found)) = shared.filter(|(_, found)| (found.shared as usize) < wanted.end)
        else {
            return Ok(None);
        };
        let passes = self.passes(x, y, found, buffers)?;
        Ok(passes.then_some(found))
    }

    /// Verifies the given members of the groups of each x in `ranks`, and calls `visit` with the near-duplicates, in
    /// ascending order of x and of the rank found.
    pub(crate) fn matches<M: CandidateMembers>(
        &self,
        ranks: Range<u32>,
        scratch: &mut VerifyScratch,
        members: impl Fn(u32) -> M,
        mut visit: impl FnMut(u32, VerifiedMatch),
    ) -> io::Result<()> {
        let mut queue = ProposalQueue::new(ranks);
        while !queue.is_empty() {
            self.propose(&mut queue, scratch, &members);
            self.matches_of_proposed(scratch, &mut visit)?;
        }
        Ok(())
    }

    fn matches_of_proposed(
        &self,
        scratch: &mut VerifyScratch,
        visit: &mut impl FnMut(u32, VerifiedMatch),
    ) -> io::Result<()> {
        for candidates in scratch.proposed.chunk_by_mut(|a, b| a.x == b.x) {
            // Candidates are in the order of visits, but must be passed on in the order of ranks. Ranges already follow each other.
            candidates.sort_unstable_by_key(|candidate| candidate.y);
            let x = candidates[0].x;
            let own = self.page(x, &mut scratch.own)?;
            for &CandidatePair { y, .. } in &*candidates {
                let wanted = self.needed(x, y, self.threshold)..usize::MAX;
                let (other, buffers) = (&mut scratch.other, &mut scratch.buffers);
                if let Some(found) = self.matched(own, y, wanted, other, buffers)? {
                    visit(x, found);
                }
            }
        }
        Ok(())
    }

    /// Calls `visit` with the most similar of the given members of its groups, for each x in `ranks` that has one that reaches the threshold; of
    /// equally similar ones, with the smallest rank. The result is the best of [`Verifier::matches`], but most comparisons are cut short.
    pub(crate) fn best<M: CandidateMembers>(
        &self,
        ranks: Range<u32>,
        scratch: &mut VerifyScratch,
        members: impl Fn(u32) -> M,
        mut visit: impl FnMut(u32, VerifiedMatch),
    ) -> io::Result<()> {
        let mut queue = ProposalQueue::new(ranks);
        let mut best = None;
        while !queue.is_empty() {
            self.propose(&mut queue, scratch, &members);
            best = self.best_of_proposed(scratch, best, &mut visit)?;
        }
        if let Some(BestSoFar { x, found }) = best {
            visit(x, found);
        }
        Ok(())
    }

    /// Finds the best of the proposed candidates of each x. Returns that of the last x, of which more candidates may follow, and starts with `best`,
    /// which may be that of the first x from earlier candidates.
    fn best_of_proposed(
        &self,
        scratch: &mut VerifyScratch,
        mut best: Option<BestSoFar>,
        visit: &mut impl FnMut(u32, VerifiedMatch),
    ) -> io::Result<Option<BestSoFar>> {
        for candidates in scratch.proposed.chunk_by_mut(|a, b| a.x == b.x) {
            sort_by_likelihood(candidates);
            let x = candidates[0].x;
            // Only the next x shows that no more candidates of the last one follow.
            if let Some(of_last) = best.take_if(|best| best.x != x) {
                visit(of_last.x, of_last.found);
            }
            let own = self.page(x, &mut scratch.own)?;
            for &CandidatePair {
                y, shared_groups, ..
            } in &*candidates
            {
                let closest_yet = best.map(|best| best.found);
                // A candidate must be at least as similar as the best so far to be better.
                // Equal similarity must pass, because the smaller rank wins then.
                let bar = closest_yet.map_or(self.threshold, |found| self.similarity(x, found));
                let needed = self.needed(x, y, bar);
                // At the threshold itself, `is_promising` has already checked this.
                if best.is_some() && !self.can_share(x, y, shared_groups, needed) {
                    continue;
                }
                // Only from here on are sets read.
                scratch.comparisons.compared += 1;
                let shared = self.shared(own, y, needed, &mut scratch.other)?;
                let Some((other, found)) = shared else {
                    continue;
                };
                // Before the further tests, each of which costs a comparison: most candidates are not better.
                let is_closer = self.closer(x, closest_yet, Some(found)) == Some(found);
                if is_closer && self.passes(own, other, found, &mut scratch.buffers)? {
                    best = Some(BestSoFar { x, found });
                }
            }
        }
        Ok(best)
    }

    /// Visits each pair of an x in `ranks` and one of the given members that [`Verifier::best`] would compare.
    pub(crate) fn candidates<M: CandidateMembers>(
        &self,
        ranks: Range<u32>,
        scratch: &mut VerifyScratch,
        members: impl Fn(u32) -> M,
        mut visit: impl FnMut(u32, u32),
    ) {
        // The candidates are counted again when the component is settled, so they must not count here.
        let counted = scratch.comparisons;
        let mut queue = ProposalQueue::new(ranks);
        while !queue.is_empty() {
            self.propose(&mut queue, scratch, &members);
            let pairs = scratch.proposed.iter();
            pairs.for_each(|pair| visit(pair.x, pair.y));
        }
        scratch.comparisons = counted;
    }

    /// Returns y if the number of features that it shares with x, which has the features `set`, is in the range `wanted`, and the pair counts: by
    /// categories, lengths, pages and further tests.
    pub(crate) fn verified(
        &self,
        set: &[u64],
        pair: [u32; 2],
        wanted: Range<usize>,
        scratch: &mut VerifyScratch,
    ) -> io::Result<Option<VerifiedMatch>> {
        let [x, y] = pair;
        let buffers = &mut scratch.buffers;
        if !self.may_match(x, y) {
            return Ok(None);
        }
        let refused = buffers.refused.len();
        let own = ComparedPage { rank: x, text: set };
        let found = self.matched(own, y, wanted, &mut scratch.other, buffers);
        // Pages that are kept as different are counted elsewhere.
        buffers.refused.truncate(refused);
        found
    }

    /// Returns true if the main text of x resembles that of a given member of its groups, but they are not near-duplicates as pages; then x is added
    /// to the refused ones.
    pub(crate) fn is_refused<M: CandidateMembers>(
        &self,
        x: u32,
        scratch: &mut VerifyScratch,
        members: impl Fn(u32) -> M,
    ) -> io::Result<bool> {
        let mut queue = ProposalQueue::new(x..x + 1);
        while !queue.is_empty() {
            self.propose(&mut queue, scratch, &members);
            let own = self.page(x, &mut scratch.own)?;
            for &CandidatePair { y, .. } in &scratch.proposed {
                let wanted = self.needed(x, y, self.threshold)..usize::MAX;
                let (other, buffers) = (&mut scratch.other, &mut scratch.buffers);
                self.matched(own, y, wanted, other, buffers)?;
                // `matched` records a refusal of x behind all others.
                if scratch.buffers.refused.last() == Some(&x) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the one that is more similar to x; of equally similar ones, one with the text of x, otherwise that of the smaller rank.
    pub(crate) fn closer(
        &self,
        x: u32,
        first: Option<VerifiedMatch>,
        second: Option<VerifiedMatch>,
    ) -> Option<VerifiedMatch> {
        let order = |found: VerifiedMatch| {
            let is_same_text = self.is_same_text(x, found.rank);
            let rank = std::cmp::Reverse(found.rank);
            (self.similarity(x, found), is_same_text, rank)
        };
        match (first, second) {
            (None, one) | (one, None) => one,
            (Some(a), Some(b)) => match order(b) > order(a) {
                true => second,
                false => first,
            },
        }
    }

    /// Takes ranks from the front of the queue, or a range of candidates of one, and fills `scratch.proposed` with those of their given members
    /// that neither sizes nor the number of shared groups rule out. The ranks are a stride: few enough for their data to fit in the cache.
    fn propose<M: CandidateMembers>(
        &self,
        queue: &mut ProposalQueue,
        scratch: &mut VerifyScratch,
        members: &impl Fn(u32) -> M,
    ) {
        // First visits are counted, then sizes and counts rule out most pairs, and only then are sets read, which have been prefetched meanwhile.
        scratch.proposed.clear();
        // For the whole stride at once, so that cache misses overlap.
        self.groups.prefetch(queue.ranks.clone());
        while !queue.is_empty() {
            let x = queue.ranks.start;
            let members = members(x);
            // Only such a rank needs the groups of pages, and only its counts may be too low for the rule.
            let is_weak = members.excludes_weak() && self.groups.is_weak(x);
            let visitor = MemberVisitor {
                verifier: self,
                x,
                members,
                is_weak,
            };
            // All ranks are counted at once, unless the counts do not fit: then in halves, the first one first.
            if queue.ranges.is_empty() {
                queue.ranges.push(0..self.sizes.len() as u32);
            }
            while let Some(within) = queue.ranges.pop() {
                // If very many candidates are promising, they are verified in parts instead of being held at the same time.
                if scratch.proposed.len() >= scratch.most_proposed {
                    queue.ranges.push(within);
                    return;
                }
                if let Some(halves) = visitor.count(&within, &mut scratch.counts) {
                    queue.ranges.extend(halves);
                    continue;
                }
                self.propose_counted(x, is_weak, scratch);
            }
            queue.ranks.next();
        }
    }

    /// Adds the counted candidates of x to the proposed ones.
    fn propose_counted(&self, x: u32, is_weak: bool, scratch: &mut VerifyScratch) {
        scratch.counts.drain(|y, counted| {
            // Counted here, because a search whose table is full counts again from the start.
            scratch.comparisons.visits += u64::from(counted);
            scratch.comparisons.candidates += 1;
            let shared_groups = match is_weak {
                // Members of groups in which both x and they are weak were not visited, so the count is too low for the rule.
                true => self.groups.shared(x, y),
                false => counted,
            };
            // Groups of pages also propose pairs that share no key of the text: these are not candidates.
            if shared_groups > 0 && self.is_promising(x, y, shared_groups) {
                // Both sets are read when all candidates of the stride have been proposed.
                self.sets.prefetch(self.places[x as usize]);
                self.sets.prefetch(self.places[y as usize]);
                scratch.proposed.push(CandidatePair {
                    x,
                    y,
                    shared_groups,
                });
            }
        });
    }

    #[inline]
    fn is_promising(&self, x: u32, y: u32, shared_groups: u32) -> bool {
        if !self.may_match(x, y) {
            return false;
        }
        // Equal visible texts are a pair whatever the main texts share, so no size may rule them out.
        if self.is_same_text(x, y) {
            return true;
        }
        // Not `map`, which is a call from another codegen unit.
        let sizes = [
            self.sizes[x as usize] as usize,
            self.sizes[y as usize] as usize,
        ];
        if !self
            .rule
            .is_promising(sizes, u64::from(shared_groups), self.threshold)
        {
            return false;
        }
        match self.rule {
            CandidateRule::Prefix | CandidateRule::Shared(_) => true,
            CandidateRule::Distance(radius) => self.distance(x, y) <= radius,
            CandidateRule::SharedWithin(_, radius, counts_for) => {
                !counts_for.counts(self.site(x), self.site(y)) || self.distance(x, y) <= radius
            }
        }
    }

    /// Returns false if two classes that share this many groups cannot share `needed` features.
    fn can_share(&self, x: u32, y: u32, shared_groups: u32, needed: usize) -> bool {
        let sizes = [
            self.sizes[x as usize] as usize,
            self.sizes[y as usize] as usize,
        ];
        self.is_same_text(x, y)
            || self
                .rule
                .can_share(sizes, u64::from(shared_groups), needed, self.threshold)
    }

    /// Returns the number of features that x and y must share to have a resemblance of `threshold`.
    pub(crate) fn needed(&self, x: u32, y: u32, threshold: f64) -> usize {
        shared_needed(
            self.sizes[x as usize] as usize,
            self.sizes[y as usize] as usize,
            threshold,
        )
    }

    /// Returns the features of the text of a rank that is compared.
    pub(crate) fn set<'b>(&'b self, rank: u32, buffer: &'b mut Vec<u64>) -> io::Result<&'b [u64]> {
        let rank = rank as usize;
        self.sets.get(
            self.classes[rank],
            self.places[rank],
            self.sizes[rank] as usize,
            buffer,
        )
    }

    /// Returns a rank with the set of its class.
    fn page<'b>(&'b self, rank: u32, buffer: &'b mut Vec<u64>) -> io::Result<ComparedPage<'b>> {
        let text = self.set(rank, buffer)?;
        Ok(ComparedPage { rank, text })
    }
}

/// Visitor of the members of the groups of a rank.
struct MemberVisitor<'v, 'a, M> {
    verifier: &'v Verifier<'a>,
    x: u32,
    members: M,
    /// True if groups of pages count too.
    is_weak: bool,
}

impl<M: CandidateMembers> MemberVisitor<'_, '_, M> {
    /// Counts the visits of each member with a rank in a range. If `counts` has too little room, counts none and returns the halves
    /// of the range, the first one last.
    fn count(&self, within: &Range<u32>, counts: &mut VisitCounts) -> Option<[Range<u32>; 2]> {
        let by_page = self.verifier.page_groups.filter(|_| self.is_weak);
        for kind in [GroupKind::Text, GroupKind::Page] {
            let Some(groups) = kind.of(self.verifier.groups, by_page) else {
                continue;
            };
            for membership in groups.of(self.x) {
                let group = VisitedGroup {
                    groups,
                    kind,
                    membership,
                };
                self.members.for_each(group, within, |y| counts.add(y));
            }
        }
        if !counts.is_full {
            return None;
        }
        // Some visits were not counted, so all counts are invalid.
        counts.drain(|_, _| {});
        let middle = within.start + within.len() as u32 / 2;
        // Halves have fewer members each, and a range of few ranks always fits, so this ends.
        Some([middle..within.end, within.start..middle])
    }
}

/// Sorts candidates of one class, so that the bar rises at the first and the others fail early.
fn sort_by_likelihood(candidates: &mut [CandidatePair]) {
    candidates.sort_unstable_by_key(|pair| (u32::MAX - pair.shared_groups, pair.y));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::pairs::EarlierMembers;
    use crate::dedup::testing::{TestCollection, feature_sets, thresholds};

    /// Returns a family of `sets` sets that share nine of ten features, and a set that shares the same nine and is compared with all of them.
    fn family(sets: u64) -> Vec<Vec<u64>> {
        let with = |own: &[u64]| (0..9).chain(own.iter().copied()).collect();
        let members = (0..sets).map(|number| with(&[100 + number]));
        members.chain([with(&[10, 11])]).collect()
    }

    #[test]
    fn candidates_of_a_large_family_do_not_wait_side_by_side() {
        const FAMILY: u32 = 100_000;
        // Nine of twelve features are just not enough, or just enough.
        for (threshold, expected) in [(0.76, None), (0.75, Some(0))] {
            let collection = TestCollection::by_any_feature(family(FAMILY.into()), threshold);
            let verifier = collection.verifier();
            let mut scratch = VerifyScratch::default();
            let mut best = None;
            let visit = |_, found: VerifiedMatch| best = Some(found.rank);
            verifier
                .best(FAMILY..FAMILY + 1, &mut scratch, EarlierMembers, visit)
                .unwrap();
            assert_eq!(best, expected);
            assert_eq!(scratch.comparisons.candidates, u64::from(FAMILY));
            assert_eq!(scratch.comparisons.compared, u64::from(FAMILY));
            assert!(
                scratch.proposed.capacity() * size_of::<CandidatePair>() <= 2 << 20,
                "{} pairs",
                scratch.proposed.capacity()
            );
        }
    }

    #[test]
    fn pages_with_one_text_and_main_texts_of_other_lengths_were_no_copies() {
        let collection = TestCollection::by_any_feature(vec![vec![1, 2], vec![2, 3]], 1.0);
        let matches = |texts: &[u128; 2]| {
            let verifier = Verifier {
                texts,
                lengths: &[100, 10],
                length_share: Some(0.9),
                ..collection.verifier()
            };
            let mut found = Vec::new();
            let visit = |x, found_match: VerifiedMatch| found.push([x, found_match.rank]);
            verifier
                .matches(0..2, &mut VerifyScratch::default(), EarlierMembers, visit)
                .unwrap();
            found
        };
        assert_eq!(matches(&[7, 7]), [[1, 0]]);
        assert_eq!(matches(&[7, 8]), [[0_u32; 2]; 0]);
    }

    proptest! {
        #[test]
        fn room_for_few_counts_finds_what_room_for_all_finds(
            sets in feature_sets(60),
            threshold in thresholds(),
            slots in 1..4_u32,
            most_proposed in 1..6_usize,
        ) {
            let ranks = sets.len() as u32;
            let collection = TestCollection::by_any_feature(sets, threshold);
            let verifier = collection.verifier();
                        let found = |mut scratch: VerifyScratch| {
                let (mut matches, mut best, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
                verifier.matches(0..ranks, &mut scratch, EarlierMembers, |x, found| matches.push((x, found))).unwrap();
                verifier.best(0..ranks, &mut scratch, EarlierMembers, |x, found| best.push((x, found))).unwrap();
                verifier.candidates(0..ranks, &mut scratch, EarlierMembers, |x, y| candidates.push([x, y]));
                candidates.sort_unstable();
                (matches, best, candidates, scratch.comparisons)
            };
            let all = found(VerifyScratch::default());
            let mut few = found(VerifyScratch::with_slots(1 << slots, most_proposed));
            // Candidates are sorted by likelihood only among those held at the same time, which changes the number of comparisons.
            few.3.compared = all.3.compared;
            prop_assert_eq!(few, all.clone());
            for x in 0..ranks {
                let similar: Vec<u32> = (0..x).filter(|&y| collection.similar(x, y).is_some()).collect();
                let matches: Vec<u32> = all.0.iter().filter(|found| found.0 == x).map(|found| found.1.rank).collect();
                prop_assert_eq!(matches, similar);
            }
        }
    }
}

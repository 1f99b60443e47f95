//! Survivors of one component: the classes connected by work edges, processed in the order of their ranks like a whole collection.

use std::io;
use std::path::Path;
use std::sync::LazyLock;

use crate::dedup::candidate_groups::{AcrossCategories, CandidateGroups, KeyRecord, key_record};
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::frequency::{FeatureFrequency, FrequencyLevels};
use crate::dedup::page_groups::LARGE_GROUP;
use crate::dedup::pair_test::{LoadedTest, PairTest, TestSets};
use crate::dedup::pairs::EarlierMembers;
use crate::dedup::survivors::settle;
use crate::dedup::verify::{Verifier, VerifyScratch};
use crate::kernel::candidate_rule::CandidateRule;
use crate::kernel::class_keys::{KeySalt, PrefixFinder};
use crate::settings::{JobSettings, PairScope};
use crate::spill::feature_sets::{SetAppender, SetPosition, SetStore};

/// Number of members that are compared with earlier ones in one step.
const STRIDE: usize = 32;

/// Size above which a component orders features by their frequency in it. In smaller ones that would cost more than it saves.
const LARGE_COMPONENT: usize = 1 << 10;

/// Levels that treat all features as equally rare.
static NO_LEVELS: LazyLock<FrequencyLevels> = LazyLock::new(|| FeatureFrequency::new().levels());

/// Feature sets that are held in memory only. The store never reaches its budget, so it needs no folder.
type SetsInMemory = SetAppender<'static, SetStore>;

fn sets_in_memory() -> SetsInMemory {
    SetAppender::new(SetStore::new(u64::MAX), Path::new(""))
}

/// Properties of a member of a component other than its feature sets.
#[derive(Clone, Copy)]
pub(crate) struct MemberFacts {
    pub(crate) fingerprint: u128,
    pub(crate) category: u64,
    /// Hash of the text.
    pub(crate) text: u128,
    pub(crate) length: u64,
}

/// Collects the members of a component, in the order of their ranks.
pub(crate) struct ComponentBuilder<'a> {
    settings: &'a JobSettings,
    sets: SetsInMemory,
    tests: Vec<(SetsInMemory, TestSets)>,
    members: MemberColumns,
    keys: Vec<KeyRecord>,
}

/// Properties of all members, by number.
#[derive(Default)]
struct MemberColumns {
    places: Vec<SetPosition>,
    sizes: Vec<u32>,
    fingerprints: Vec<u64>,
    high_fingerprints: Vec<u64>,
    categories: Vec<u64>,
    texts: Vec<u128>,
    lengths: Vec<u64>,
}

impl<'a> ComponentBuilder<'a> {
    pub(crate) fn new(settings: &'a JobSettings) -> Self {
        let test = |_: &PairTest| (sets_in_memory(), TestSets::new(u64::MAX));
        Self {
            settings,
            sets: sets_in_memory(),
            tests: settings.tests.iter().map(test).collect(),
            members: MemberColumns::default(),
            keys: Vec::new(),
        }
    }

    /// Returns the number of the next member.
    pub(crate) fn next(&self) -> u32 {
        self.members.sizes.len() as u32
    }

    /// Adds the features of the next member.
    pub(crate) fn push_set(&mut self, set: &[u64]) -> io::Result<()> {
        let at = self.sets.push(self.next(), set)?;
        self.members.places.push(at);
        self.members.sizes.push(set.len() as u32);
        Ok(())
    }

    /// Adds the features for a further test of the member that was added last.
    pub(crate) fn push_test_set(&mut self, test: usize, set: &[u64]) -> io::Result<()> {
        let number = self.next() - 1;
        let (sets, columns) = &mut self.tests[test];
        let at = sets.push(number, set)?;
        columns.places.push(at);
        columns.sizes.push(set.len() as u32);
        Ok(())
    }

    /// Adds the other properties of the member that was added last.
    pub(crate) fn push_facts(&mut self, facts: MemberFacts) {
        let members = &mut self.members;
        members.fingerprints.push(facts.fingerprint as u64);
        if self.settings.fingerprint_bits() > 64 {
            let high = (facts.fingerprint >> 64) as u64;
            members.high_fingerprints.push(high);
        }
        if self.settings.by_category() {
            members.categories.push(facts.category);
            // Without categories a class is a text, so no two members have the same text.
            members.texts.push(facts.text);
        }
        members.lengths.push(facts.length);
    }

    /// Adds a key of a member.
    pub(crate) fn push_key(&mut self, key: u64, member: u32) {
        self.keys.push(key_record(key, member));
    }

    /// Adds the prefixes of all members' sets as keys. Call it after the last member.
    ///
    /// Features are ordered within this component only: the result does not depend on the order.
    pub(crate) fn push_prefixes(&mut self, finder: &mut PrefixFinder) -> io::Result<()> {
        // The store visits only segments that have ended.
        self.sets.end_segment()?;
        // With few members any prefix costs little; with many, a prefix that begins with common features would propose
        // nearly all pairs.
        let own = match self.members.sizes.len() > LARGE_COMPONENT {
            true => Some(self.frequency()?.levels()),
            false => None,
        };
        let levels = own.as_ref().unwrap_or(&NO_LEVELS);
        let Self {
            settings,
            sets,
            keys,
            members,
            ..
        } = self;
        sets.store().for_each(|member, set| {
            let category = members.categories.get(member as usize);
            let salt = KeySalt::new(settings.scope, category.copied().unwrap_or(0));
            let prefix = finder.prefix(set, settings.threshold, levels).iter();
            keys.extend(prefix.map(|&feature| key_record(salt.apply(feature), member)));
            Ok(())
        })
    }

    fn frequency(&self) -> io::Result<FeatureFrequency> {
        let frequency = FeatureFrequency::new();
        self.sets.store().for_each(|_, set| {
            frequency.add(set);
            Ok(())
        })?;
        Ok(frequency)
    }

    /// Completes the component. Its first `fixed` members survive whatever they resemble.
    pub(crate) fn finish(self, fixed: usize) -> io::Result<Component<'a>> {
        let ranks = self.members.sizes.len();
        let mut tests = Vec::with_capacity(self.tests.len());
        for (sets, mut columns) in self.tests {
            // Until now the columns had an empty store; the sets were in the appender.
            columns.sets = sets.finish()?;
            tests.push(columns);
        }
        let members = self.members;
        let across = AcrossCategories {
            of_rank: &|number| members.categories[number as usize],
            bound: LARGE_GROUP,
        };
        let is_across = self.settings.scope == PairScope::Across;
        let groups = CandidateGroups::of_keys(self.keys, ranks, is_across.then_some(across));
        Ok(Component {
            settings: self.settings,
            sets: self.sets.finish()?,
            tests,
            // Members are numbered by rank, so each is its own class.
            numbers: (0..ranks as u32).collect(),
            members,
            groups,
            fixed,
        })
    }
}

/// A complete component.
pub(crate) struct Component<'a> {
    settings: &'a JobSettings,
    sets: SetStore,
    tests: Vec<TestSets>,
    numbers: Vec<u32>,
    members: MemberColumns,
    groups: CandidateGroups,
    fixed: usize,
}

impl Component<'_> {
    fn verifier(&self) -> Verifier<'_> {
        let tests = self.settings.tests.iter().zip(&self.tests);
        Verifier {
            groups: &self.groups,
            page_groups: None,
            sets: &self.sets,
            classes: &self.numbers,
            places: &self.members.places,
            sizes: &self.members.sizes,
            fingerprints: &self.members.fingerprints,
            high_fingerprints: &self.members.high_fingerprints,
            scope: self.settings.scope,
            categories: &self.members.categories,
            texts: &self.members.texts,
            pages: None,
            length_share: self.settings.lengths,
            lengths: &self.members.lengths,
            tests: tests
                .map(|(&test, sets)| LoadedTest { test, sets })
                .collect(),
            threshold: self.settings.threshold,
            // Pairs below the threshold are not needed here.
            rule: CandidateRule::of(self.settings),
        }
    }

    /// Returns true if two members have equal texts, and so differ in their categories.
    pub(crate) fn is_same_text(&self, x: u32, y: u32) -> bool {
        let texts = &self.members.texts;
        !texts.is_empty() && texts[x as usize] == texts[y as usize]
    }

    /// Returns the decision on each member.
    pub(crate) fn settle(&self) -> io::Result<DecisionTable> {
        // One thread, because an engine runs many components at the same time.
        Ok(settle(&self.verifier(), self.fixed, 1, |_| Ok(()))?.decisions)
    }

    /// Calls `visit` with all pairs of members that resemble each other and their resemblance, in ascending order of the later one, which comes last.
    pub(crate) fn pairs(&self, mut visit: impl FnMut([u32; 2], f64)) -> io::Result<()> {
        let verifier = self.verifier();
        let ranks = self.members.sizes.len();
        let mut scratch = VerifyScratch::default();
        for start in (0..ranks).step_by(STRIDE) {
            // All members of a stride at once, so that lists of shared groups are read once for all of them.
            let stride = start as u32..ranks.min(start + STRIDE) as u32;
            verifier.matches(stride, &mut scratch, EarlierMembers, |y, found| {
                visit([found.rank, y], verifier.similarity(y, found));
            })?;
        }
        Ok(())
    }
}

//! Collections of feature sets for the unit tests of this crate, and slow definitions to compare with.

use std::path::Path;

use lookalike::resemblance::{prefix_len, resemblance_of, shared_needed};
use proptest::prelude::*;
use tempfile::TempDir;

use super::candidate_groups::{
    CandidateGroups, GroupResources, KeySink, StoredGroups, weaken_members,
};
use super::frequency::FeatureFrequency;
use super::group_file::GroupFile;
use super::group_windows::ClassGroups;
use super::verify::Verifier;
use crate::kernel::candidate_rule::CandidateRule;
use crate::settings::PairScope;
use crate::spill::feature_sets::{SetPosition, SetStore, header, place};

/// Feature sets by rank, stored and grouped as in a job.
pub(crate) struct TestCollection {
    pub(crate) sets: Vec<Vec<u64>>,
    store: SetStore,
    groups: CandidateGroups,
    classes: Vec<u32>,
    places: Vec<SetPosition>,
    sizes: Vec<u32>,
    fingerprints: Vec<u64>,
    rule: CandidateRule,
    pub(crate) threshold: f64,
    pub(crate) folder: TempDir,
}

impl TestCollection {
    /// Creates a collection whose sets are compared if their prefixes share a feature.
    pub(crate) fn by_prefix(sets: Vec<Vec<u64>>, threshold: f64) -> Self {
        let frequency = FeatureFrequency::new();
        sets.iter().for_each(|set| frequency.add(set));
        let levels = frequency.levels();
        let keys = |set: &[u64]| {
            let mut prefix = Vec::new();
            let length = prefix_len(set.len(), threshold);
            levels.prefix(set, length, &mut prefix, &mut Vec::new());
            prefix
        };
        Self::new(sets, threshold, CandidateRule::Prefix, keys)
    }

    /// Creates a collection whose sets are compared if they share any feature.
    pub(crate) fn by_any_feature(sets: Vec<Vec<u64>>, threshold: f64) -> Self {
        Self::new(sets, threshold, CandidateRule::Shared(1), <[u64]>::to_vec)
    }

    fn new(
        sets: Vec<Vec<u64>>,
        threshold: f64,
        rule: CandidateRule,
        keys: impl Fn(&[u64]) -> Vec<u64>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let classes: Vec<u32> = (0..sets.len() as u32).collect();
        let (store, places) = stored(&sets, folder.path());
        let sink = KeySink::new(folder.path(), 1 << 20).unwrap();
        let mut writer = sink.writer();
        for (class, set) in (0..).zip(&sets) {
            for key in keys(set) {
                writer.push(key, class).unwrap();
            }
        }
        writer.finish().unwrap();
        let resources = GroupResources {
            folder: folder.path(),
            threads: 1,
            memory: u64::MAX,
            most_texts: None,
            across: None,
            advance: &|_| Ok(()),
        };
        Self {
            groups: in_memory(StoredGroups::new(&sink, &classes, &resources).unwrap()),
            sizes: sets.iter().map(|set| set.len() as u32).collect(),
            fingerprints: vec![0; sets.len()],
            sets,
            store,
            classes,
            places,
            rule,
            threshold,
            folder,
        }
    }

    pub(crate) fn verifier(&self) -> Verifier<'_> {
        Verifier {
            groups: &self.groups,
            page_groups: None,
            sets: &self.store,
            classes: &self.classes,
            places: &self.places,
            sizes: &self.sizes,
            fingerprints: &self.fingerprints,
            high_fingerprints: &[],
            scope: PairScope::Everything,
            categories: &[],
            texts: &[],
            pages: None,
            length_share: None,
            lengths: &[],
            tests: Vec::new(),
            threshold: self.threshold,
            rule: self.rule,
        }
    }

    /// Returns the groups on disk.
    pub(crate) fn groups_on_disk(&self) -> ClassGroups {
        let file = GroupFile::new(self.folder.path()).unwrap();
        self.groups.write(&file).unwrap();
        ClassGroups {
            by_text: StoredGroups::OnDisk(file),
            by_page: None,
        }
    }

    /// Returns the groups in memory.
    pub(crate) fn groups_in_memory(&self) -> ClassGroups {
        ClassGroups {
            by_text: StoredGroups::InMemory(self.groups.clone()),
            by_page: None,
        }
    }

    /// Makes ranks weak in groups of more than `bound` members.
    pub(crate) fn weaken(&mut self, bound: usize, is_weak: impl Fn(u32) -> bool) {
        self.groups.change(self.sets.len(), 1, |members| {
            Some(weaken_members(members, bound, &is_weak))
        });
    }

    /// Returns the resemblance of two ranks if it reaches the threshold, from a comparison of both sets.
    pub(crate) fn similar(&self, a: u32, b: u32) -> Option<f64> {
        self.similar_from(a, b, self.threshold)
    }

    /// Returns the resemblance of two ranks that share a feature, if it is at least `least`.
    pub(crate) fn similar_from(&self, a: u32, b: u32, least: f64) -> Option<f64> {
        let (a, b) = (&self.sets[a as usize], &self.sets[b as usize]);
        let shared = a.iter().filter(|feature| b.contains(feature)).count();
        let is_similar = shared > 0 && shared >= shared_needed(a.len(), b.len(), least);
        is_similar.then(|| resemblance_of(shared, a.len(), b.len()))
    }
}

/// Returns groups that must be in memory.
pub(crate) fn in_memory(groups: StoredGroups) -> CandidateGroups {
    match groups {
        StoredGroups::InMemory(groups) => groups,
        StoredGroups::OnDisk(_) => panic!("there is memory for all"),
    }
}

/// Stores the sets in segments of five, of which the first are in memory and the rest in a file.
pub(crate) fn stored(sets: &[Vec<u64>], folder: &Path) -> (SetStore, Vec<SetPosition>) {
    const PER_SEGMENT: usize = 5;
    let mut store = SetStore::new(2000);
    let mut places = Vec::new();
    for (segment, sets) in sets.chunks(PER_SEGMENT).enumerate() {
        let mut words = Vec::new();
        for (at, set) in sets.iter().enumerate() {
            places.push(place(segment as u32, words.len() as u32));
            words.push(header((segment * PER_SEGMENT + at) as u32, set.len()));
            words.extend(set);
        }
        store.push(words, folder).unwrap();
    }
    (store, places)
}

/// Sets with few features from a small range, so that many resemble each other and many groups are large.
pub(crate) fn feature_sets(most: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    let set = |features| prop::collection::btree_set(0..features, 0..10);
    let sets =
        (4_u64..40).prop_flat_map(move |features| prop::collection::vec(set(features), 0..most));
    sets.prop_map(|sets| {
        sets.into_iter()
            .map(|set| set.into_iter().collect())
            .collect()
    })
}

/// Thresholds that small sets just reach, or just miss.
pub(crate) fn thresholds() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.2, 0.5, 2.0 / 3.0, 0.8, 1.0])
}

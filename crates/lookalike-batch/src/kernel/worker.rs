//! Steps of a distributed deduplication that read texts, with the tools of one thread.

use lookalike::{FeatureExtractor, Features};
use lookalike_corpus::OrderKey;

use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::frequency::FeatureFrequency;
use crate::kernel::class_keys::{ClassSketcher, KeySalt, PrefixFinder, text_key};
use crate::kernel::component::{Component, ComponentBuilder, MemberFacts};
use crate::kernel::dedup_kernel::{DedupKernel, KeyPlan};
use crate::kernel::error::KernelError;
use crate::kernel::placed_text::PlacedText;
use crate::kernel::survivor_order::{SurvivorPreference, append_order};
use crate::kernel::work_edges::{ClassKey, FingerprintKey};
use crate::settings::Method;

/// A document as the engine passes it in.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelDocument<'a> {
    /// The id, unique among the documents of the same side.
    pub id: &'a str,
    /// The text, if there is one.
    pub text: Option<&'a str>,
    /// The category, if the settings use one.
    pub category: Option<&'a str>,
    /// The value that orders survivors, if the settings use one.
    pub value: OrderKey<'a>,
    /// Position in the input, if [`DedupKernel::needs_position`].
    pub position: i64,
    /// True if the document is only compared with and never removed.
    pub is_against: bool,
}

impl<'a> KernelDocument<'a> {
    /// Creates a document with this text and nothing else.
    pub fn of_text(text: &'a str) -> Self {
        Self {
            id: "",
            text: Some(text),
            category: None,
            value: OrderKey::Missing,
            position: 0,
            is_against: false,
        }
    }
}

/// Properties of a document that are sent on instead of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedDocument {
    /// Class of the text: equal for equal texts, of the same category if the settings use categories. `None` for a document without a
    /// text, which equals no other and is kept.
    pub text_hash: Option<u128>,
    /// Place in the order of survivors: comparing these byte by byte puts the preferred document first. That document stands for
    /// its class.
    pub order: Vec<u8>,
}

/// A class, represented by its preferred document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelMember<'a> {
    /// Rank of the class in the whole collection: the position of its preferred document in the order of survivors.
    pub rank: i64,
    /// Its text.
    pub text: &'a str,
    /// Its category, if the settings use one.
    pub category: Option<&'a str>,
    /// True if its preferred document is only compared with and never removed.
    pub is_against: bool,
}

impl<'a> KernelMember<'a> {
    /// Creates a class with this text.
    pub fn of_text(text: &'a str) -> Self {
        Self {
            rank: 0,
            text,
            category: None,
            is_against: false,
        }
    }
}

/// A class that resembles a survivor and is removed for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JoinedClass {
    /// Rank of the class.
    pub rank: i64,
    /// Rank of the survivor.
    pub survivor: i64,
    /// Their resemblance.
    pub similarity: f64,
    /// True if their texts are equal and only their categories differ.
    pub is_same_text: bool,
}

/// Two classes that resemble each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarClasses {
    /// The smaller rank.
    pub x: i64,
    /// The larger rank.
    pub y: i64,
    /// Their resemblance.
    pub similarity: f64,
}

/// The tools of one thread: they are expensive to create, and grow with the longest text.
pub struct KernelWorker {
    pub(crate) kernel: DedupKernel,
    extractor: FeatureExtractor,
    sketcher: ClassSketcher,
    tests: Vec<FeatureExtractor>,
    finder: PrefixFinder,
    frequency: FeatureFrequency,
}

lookalike::opaque_debug! {
    [] KernelWorker [];
}

impl DedupKernel {
    /// Creates the tools of one thread.
    pub fn worker(&self) -> KernelWorker {
        let (plan, job) = (self.sketch_plan(), self.settings());
        let tests = job.tests.iter().map(|test| test.extractor(&job.scheme));
        KernelWorker {
            extractor: plan.extractor(),
            sketcher: ClassSketcher::new(plan),
            tests: tests.collect(),
            finder: PrefixFinder::default(),
            // Always as many counters, so that those of all machines can be added up.
            frequency: FeatureFrequency::new(),
            kernel: self.clone(),
        }
    }
}

impl KernelWorker {
    /// Computes the class of a document and its place in the order of survivors. If `count` is true and [`DedupKernel::needs_levels`], also
    /// counts its features; counting a sample of the documents is enough.
    pub fn scan(&mut self, document: &KernelDocument<'_>, count: bool) -> ScannedDocument {
        let placed = self.placed(document.text, document.category);
        let scanned = self.scanned(document, &placed);
        if count && scanned.text_hash.is_some() && self.kernel.needs_levels() {
            self.frequency.add(self.extractor.feature_set(placed.text));
        }
        scanned
    }

    /// Scans a document and computes its keys in one step. `number` maps the hash of a class to its number, or to `None` if its keys are not
    /// wanted.
    ///
    /// # Errors
    /// As [`KernelWorker::keys`].
    pub fn scan_keys(
        &mut self,
        document: &KernelDocument<'_>,
        plan: &KeyPlan,
        number: impl FnOnce(u128) -> Option<i64>,
        visit: impl FnMut(FingerprintKey),
    ) -> Result<ScannedDocument, KernelError> {
        let placed = self.placed(document.text, document.category);
        let scanned = self.scanned(document, &placed);
        if let Some(number) = scanned.text_hash.and_then(number) {
            self.placed_keys(plan, placed, number, visit)?;
        }
        Ok(scanned)
    }

    fn placed<'t>(&self, text: Option<&'t str>, category: Option<&str>) -> PlacedText<'t> {
        // The same limit on all machines: a text that is too long for one but not for another would become two
        // classes.
        let most_bytes = self.kernel.shared().most_bytes;
        PlacedText::plain(text.unwrap_or_default(), category, most_bytes)
    }

    fn scanned(&self, document: &KernelDocument<'_>, placed: &PlacedText<'_>) -> ScannedDocument {
        let job = self.kernel.settings();
        let mut order = Vec::with_capacity(24 + document.id.len());
        let wanted = SurvivorPreference {
            id: document.id,
            length: placed.text.len() as u64,
            position: document.position,
            value: &document.value,
            is_against: document.is_against,
        };
        append_order(&job.keep, wanted, &mut order);
        let has_text = !placed.is_empty();
        let salt = job.scope.class_salt(document.is_against);
        ScannedDocument {
            text_hash: has_text.then(|| placed.class_hash(job.by_category()) ^ salt),
            order,
        }
    }

    /// Returns the counts of the features of all documents that were scanned with `count`.
    pub fn frequency(&self) -> &FeatureFrequency {
        &self.frequency
    }

    /// Calls `visit` with the keys of a class, each once or more. Fingerprints are 0 if the method has none.
    ///
    /// # Errors
    /// [`KernelError::NoLevels`] if the plan was made by another kernel.
    pub fn keys(
        &mut self,
        plan: &KeyPlan,
        member: KernelMember<'_>,
        visit: impl FnMut(FingerprintKey),
    ) -> Result<(), KernelError> {
        let placed = self.placed(Some(member.text), member.category);
        self.placed_keys(plan, placed, member.rank, visit)
    }

    fn placed_keys(
        &mut self,
        plan: &KeyPlan,
        placed: PlacedText<'_>,
        number: i64,
        mut visit: impl FnMut(FingerprintKey),
    ) -> Result<(), KernelError> {
        // A clone of a reference, because the tools are borrowed for the rest of the step.
        let kernel = self.kernel.clone();
        let job = kernel.settings();
        let salt = KeySalt::new(job.scope, placed.category);
        let features = features(job.method, &self.sketcher, &mut self.extractor, placed);
        let size = features.set.len() as i32;
        let mut found = Vec::new();
        let blocks = plan.blocks.as_ref();
        let push = |key| found.push(key);
        let fingerprint = self.sketcher.sketch_with_blocks(&features, blocks, push)?;
        if kernel.needs_levels() {
            let levels = plan.levels.as_ref().ok_or(KernelError::NoLevels)?;
            found.extend_from_slice(self.finder.prefix(features.set, job.threshold, levels));
        }
        let mut show = |key: u64, size: i32| {
            let class = ClassKey {
                key: salt.apply(key),
                rank: number,
                size,
            };
            visit(FingerprintKey { class, fingerprint });
        };
        found.into_iter().for_each(|key| show(key, size));
        if kernel.has_text_keys() {
            // Negative, so that the group is chained whatever its sizes are: equal texts must be connected even if they have no
            // features.
            show(text_key(placed.visible_hash), -1 - size);
        }
        Ok(())
    }

    /// Decides on the classes of a complete component, which it sorts by rank. Returns those that join a survivor, in ascending order of rank; all
    /// others survive.
    ///
    /// Takes 8 bytes per feature, and O(features + verified candidates) time, as a job over these documents alone.
    ///
    /// # Errors
    /// [`KernelError`] if a rank repeats or the ranks contradict the order of survivors.
    pub fn settle(
        &mut self,
        members: &mut [KernelMember<'_>],
    ) -> Result<Vec<JoinedClass>, KernelError> {
        let kernel = self.kernel.clone();
        let component = self.load(&kernel, members)?;
        let decisions = component.settle()?;
        // `load` has sorted the members, so numbers in the component are their indices.
        let joined = (0..members.len() as u32).filter_map(|x| match decisions.get(x as usize) {
            DocumentDecision::Near {
                survivor,
                similarity,
                ..
            } => Some(JoinedClass {
                rank: members[x as usize].rank,
                survivor: members[survivor as usize].rank,
                similarity,
                is_same_text: component.is_same_text(x, survivor),
            }),
            _ => None,
        });
        Ok(joined.collect())
    }

    /// Calls `visit` with every pair of classes of a component that resemble each other, in ascending order of the larger rank, then the smaller one.
    ///
    /// # Errors
    /// As [`KernelWorker::settle`].
    pub fn verify(
        &mut self,
        members: &mut [KernelMember<'_>],
        mut visit: impl FnMut(SimilarClasses),
    ) -> Result<(), KernelError> {
        let kernel = self.kernel.clone();
        let component = self.load(&kernel, members)?;
        component.pairs(|pair, similarity| {
            let [x, y] = pair.map(|number| members[number as usize].rank);
            visit(SimilarClasses { x, y, similarity });
        })?;
        Ok(())
    }

    /// Sorts the members by rank, and computes their features and keys.
    fn load<'k>(
        &mut self,
        kernel: &'k DedupKernel,
        members: &mut [KernelMember<'_>],
    ) -> Result<Component<'k>, KernelError> {
        let job = kernel.settings();
        // Checked first, because ranks are used as positions from here on.
        let fixed = in_order(members)?;
        // Planned for the number of classes here: with any blocks, two fingerprints within the distance share a key.
        let blocks = kernel.block_keys(members.len() as u64);
        let mut builder = ComponentBuilder::new(job);
        for (number, &member) in (0..).zip(&*members) {
            let placed = self.placed(Some(member.text), member.category);
            let salt = KeySalt::new(job.scope, placed.category);
            let features = features(job.method, &self.sketcher, &mut self.extractor, placed);
            builder.push_set(features.set)?;
            let push = |key| builder.push_key(salt.apply(key), number);
            let fingerprint = self
                .sketcher
                .sketch_with_blocks(&features, blocks.as_ref(), push)?;
            if kernel.has_text_keys() {
                builder.push_key(salt.apply(text_key(placed.visible_hash)), number);
            }
            for (at, extractor) in self.tests.iter_mut().enumerate() {
                // A text that is too long has been left out, and has no features either.
                builder.push_test_set(at, extractor.feature_set(placed.text))?;
            }
            builder.push_facts(MemberFacts {
                fingerprint,
                category: placed.category,
                text: placed.visible_hash,
                length: placed.text.len() as u64,
            });
        }
        if kernel.needs_levels() {
            builder.push_prefixes(&mut self.finder)?;
        }
        Ok(builder.finish(fixed)?)
    }
}

/// Returns the features of a text that a method uses.
fn features<'e>(
    method: Method,
    sketcher: &ClassSketcher,
    extractor: &'e mut FeatureExtractor,
    placed: PlacedText<'_>,
) -> Features<'e> {
    match method {
        Method::Exact => Features::of_set(&[]),
        _ if placed.is_too_long => Features::of_set(&[]),
        _ => sketcher.features(extractor, placed.text),
    }
}

/// Sorts members by rank and returns the number of those that are only compared with, which come first.
fn in_order(members: &mut [KernelMember<'_>]) -> Result<usize, KernelError> {
    if members.len() >= u32::MAX as usize {
        return Err(KernelError::TooLarge {
            classes: members.len(),
        });
    }
    members.sort_unstable_by_key(|member| member.rank);
    if let Some(pair) = members.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        return Err(KernelError::RepeatedRank { rank: pair[0].rank });
    }
    let fixed = members
        .iter()
        .take_while(|member| member.is_against)
        .count();
    match members[fixed..].iter().find(|member| member.is_against) {
        Some(late) => Err(KernelError::AgainstAfterOthers { rank: late.rank }),
        None => Ok(fixed),
    }
}

//! Settings of a spread deduplication, and the steps that need nothing else.

use std::sync::Arc;

use lookalike::band::Banding;
use lookalike::scheme::FieldWeights;
use lookalike_corpus::{Category, InputOptions, OrderField};

use crate::dedup::frequency::FrequencyLevels;
use crate::kernel::candidate_rule::CandidateRule;
use crate::kernel::class_keys::{BlockKeys, SketchPlan};
use crate::kernel::error::KernelError;
use crate::kernel::work_edges::{ClassKey, EdgeRule, FingerprintKey, WorkEdge, fingerprint_edges};
use crate::settings::{JobSettings, KeepRule, Method, PairScope};

/// A deduplication that is spread over many machines: what all of them agree on. See the [module](super) for its steps.
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct DedupKernel(Arc<KernelSettings>);

#[derive(Debug)]
pub(crate) struct KernelSettings {
    pub(crate) job: JobSettings,
    pub(crate) banding: Option<Banding>,
    pub(crate) order: Option<OrderField>,
    pub(crate) category: Option<Category>,
    pub(crate) most_bytes: u64,
}

impl DedupKernel {
    /// Creates a kernel. Of the options it looks at the largest document, the category and the field that decides who survives.
    ///
    /// # Errors
    /// [`KernelError::Settings`] for settings that mean nothing, [`KernelError::WholeRecords`] for options that need more than texts.
    pub fn new(settings: JobSettings, options: &InputOptions) -> Result<Self, KernelError> {
        settings.check()?;
        if settings.stop_features.is_some() {
            return Err(KernelError::WholeRecords {
                what: "stop features, which are counted over all documents",
            });
        }
        if options.boilerplate.is_some() {
            return Err(KernelError::WholeRecords {
                what: "boilerplate",
            });
        }
        if options.fields != FieldWeights::default() || !settings.scheme.fields.is_none() {
            return Err(KernelError::WholeRecords {
                what: "features of other fields",
            });
        }
        Ok(Self(Arc::new(KernelSettings {
            banding: settings.banding()?,
            order: options.order_field.clone(),
            category: options.category.clone(),
            most_bytes: options.max_document_bytes,
            job: settings,
        })))
    }

    pub(crate) fn shared(&self) -> &KernelSettings {
        &self.0
    }

    /// The settings.
    pub fn settings(&self) -> &JobSettings {
        &self.0.job
    }

    /// The field of the value by which survivors are chosen, if one is read.
    pub fn order_field(&self) -> Option<&OrderField> {
        self.0.order.as_ref()
    }

    /// The source of the category of a document, where categories count.
    pub fn category(&self) -> Option<&Category> {
        self.0.category.as_ref()
    }

    /// True if [`KernelDocument::position`](super::KernelDocument::position) decides who survives.
    pub fn needs_position(&self) -> bool {
        self.0.job.keep.rules().contains(&KeepRule::First)
    }

    /// Least resemblance of near-duplicates.
    pub fn threshold(&self) -> f64 {
        self.0.job.threshold
    }

    /// True if [`DedupKernel::key_plan`] needs levels.
    pub fn needs_levels(&self) -> bool {
        self.0.job.method == Method::AllPairs
    }

    /// True if keys are [`FingerprintKey`]s, and their edges [`DedupKernel::fingerprint_edges`].
    pub fn needs_fingerprints(&self) -> bool {
        self.0.job.method == Method::Simhash
    }

    /// True unless classes have no keys: then copies are all there is to find.
    pub fn has_keys(&self) -> bool {
        self.0.job.method != Method::Copies || self.has_text_keys()
    }

    /// True if equal texts of different categories are classes that must meet.
    pub(crate) fn has_text_keys(&self) -> bool {
        self.0.job.by_category() && self.0.job.scope != PairScope::Within
    }

    /// True if documents of one class are copies of its most wanted one. Not where only pairs of different categories count: then all of them
    /// are kept where their class survives.
    pub fn copies_are_pairs(&self) -> bool {
        self.0.job.scope != PairScope::Across
    }

    pub(crate) fn sketch_plan(&self) -> SketchPlan<'_> {
        SketchPlan::new(&self.0.job, self.0.banding)
    }

    /// Plans the keys of a collection of so many classes: the same on all machines.
    ///
    /// # Errors
    /// [`KernelError::NoLevels`] where [`DedupKernel::needs_levels`] and there are none.
    pub fn key_plan(
        &self,
        classes: u64,
        levels: Option<FrequencyLevels>,
    ) -> Result<KeyPlan, KernelError> {
        if self.needs_levels() && levels.is_none() {
            return Err(KernelError::NoLevels);
        }
        Ok(KeyPlan {
            // Levels that are not needed must not reach keys: another machine might not have been given them.
            levels: levels.filter(|_| self.needs_levels()),
            blocks: self.block_keys(classes),
        })
    }

    pub(crate) fn block_keys(&self, classes: u64) -> Option<BlockKeys> {
        let job = &self.0.job;
        self.needs_fingerprints()
            .then(|| BlockKeys::new(job.fingerprint_bits(), job.distance, classes))
    }

    fn rule(&self) -> CandidateRule {
        CandidateRule::of(&self.0.job)
    }

    /// Shows the edges of whole groups of classes that share a key. The keys may come in any order, and more than once.
    ///
    /// Groups of more than `group_limit` members get a chain of neighbours instead of all pairs; without a limit none does. At most
    /// `group_limit` edges a key. O(keys log keys + edges).
    pub fn work_edges(
        &self,
        keys: Vec<ClassKey>,
        group_limit: Option<usize>,
        visit: impl FnMut(WorkEdge),
    ) {
        let rule = EdgeRule {
            rule: self.rule(),
            threshold: self.0.job.threshold,
            group_limit,
        };
        rule.edges(keys, visit);
    }

    /// The same of fingerprints: edges that connect those within the distance, fewer than keys.
    pub fn fingerprint_edges(&self, keys: Vec<FingerprintKey>, visit: impl FnMut(WorkEdge)) {
        fingerprint_edges(keys, self.0.job.distance, visit);
    }

    /// True unless sizes and the count of shared groups rule out that the classes of an edge resemble each other.
    ///
    /// Edges of the same classes from all groups must have been added up: their counts are a sum.
    pub fn is_promising(&self, edge: &WorkEdge) -> bool {
        edge.is_promising(self.rule(), self.0.job.threshold)
    }
}

/// Things that the keys of a collection depend on.
pub struct KeyPlan {
    pub(crate) levels: Option<FrequencyLevels>,
    pub(crate) blocks: Option<BlockKeys>,
}

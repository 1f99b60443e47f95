//! Settings of a distributed deduplication, and the steps that need nothing else.

use std::sync::Arc;

use lookalike::band::Banding;
use lookalike::scheme::FieldWeights;
use lookalike_corpus::{Category, InputOptions, OrderField};

use crate::dedup::frequency::FrequencyLevels;
use crate::error::BatchError;
use crate::kernel::candidate_rule::CandidateRule;
use crate::kernel::class_keys::{BlockKeys, SketchPlan};
use crate::kernel::error::KernelError;
use crate::kernel::work_edges::{ClassKey, EdgeRule, FingerprintKey, WorkEdge, fingerprint_edges};
use crate::settings::{JobSettings, KeepRule, Method, PairScope};
use crate::settings_error::{SettingConflict, SettingsError};

/// Settings that all machines of a distributed deduplication share. See the [module](super) for its steps.
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
    /// Creates a kernel. Of the options it uses the maximum document size and the category.
    ///
    /// # Errors
    /// [`KernelError::Settings`] for invalid settings, [`KernelError::WholeRecords`] for options that need more than texts.
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
        let order = settings.keep.order_field();
        let order = order.map_err(|_| SettingsError::from(SettingConflict::KeepFieldNotRead));
        Ok(Self(Arc::new(KernelSettings {
            banding: settings.banding()?,
            order: order.map_err(BatchError::from)?,
            category: options.category.clone(),
            most_bytes: options.max_document_bytes,
            job: settings,
        })))
    }

    pub(crate) fn shared(&self) -> &KernelSettings {
        &self.0
    }

    /// Returns the settings.
    pub fn settings(&self) -> &JobSettings {
        &self.0.job
    }

    /// Returns the field that orders survivors, if the settings use one.
    pub fn order_field(&self) -> Option<&OrderField> {
        self.0.order.as_ref()
    }

    /// Returns the source of the category of a document, if categories count.
    pub fn category(&self) -> Option<&Category> {
        self.0.category.as_ref()
    }

    /// Returns true if [`KernelDocument::position`](super::KernelDocument::position) affects the order of survivors.
    pub fn needs_position(&self) -> bool {
        self.0.job.keep.rules().contains(&KeepRule::First)
    }

    /// Returns the minimum resemblance of near-duplicates.
    pub fn threshold(&self) -> f64 {
        self.0.job.threshold
    }

    /// Returns true if [`DedupKernel::key_plan`] needs levels.
    pub fn needs_levels(&self) -> bool {
        self.0.job.method == Method::AllPairs
    }

    /// Returns true if keys are [`FingerprintKey`]s, whose edges are computed by [`DedupKernel::fingerprint_edges`].
    pub fn needs_fingerprints(&self) -> bool {
        self.0.job.method == Method::Simhash
    }

    /// Returns false if classes have no keys, so that only copies can be found.
    pub fn has_keys(&self) -> bool {
        self.0.job.method != Method::Exact || self.has_text_keys()
    }

    /// Returns true if equal texts of different categories are different classes that must be connected.
    pub(crate) fn has_text_keys(&self) -> bool {
        self.0.job.by_category() && self.0.job.scope != PairScope::Within
    }

    /// Returns true if documents of one class are copies of its preferred one. This is false if only pairs of different categories count:
    /// then all documents of a surviving class are kept.
    pub fn copies_are_pairs(&self) -> bool {
        self.0.job.scope != PairScope::Across
    }

    pub(crate) fn sketch_plan(&self) -> SketchPlan<'_> {
        SketchPlan::new(&self.0.job, self.0.banding)
    }

    /// Plans the keys of a collection of `classes` classes. All machines must use the same plan.
    ///
    /// # Errors
    /// [`KernelError::NoLevels`] if [`DedupKernel::needs_levels`] and `levels` is `None`.
    pub fn key_plan(
        &self,
        classes: u64,
        levels: Option<FrequencyLevels>,
    ) -> Result<KeyPlan, KernelError> {
        if self.needs_levels() && levels.is_none() {
            return Err(KernelError::NoLevels);
        }
        Ok(KeyPlan {
            // Drop levels that are not needed, because another machine might not have been given them.
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

    /// Calls `visit` with the edges of complete groups of classes that share a key. The keys may be in any order and may repeat.
    ///
    /// A group of more than `group_limit` members gets a chain of neighbours instead of all pairs; without a limit all groups get all pairs.
    /// There are at most `group_limit` edges per key. O(keys log keys + edges).
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

    /// Calls `visit` with edges that connect all classes of a group within the distance: fewer edges than keys.
    pub fn fingerprint_edges(&self, keys: Vec<FingerprintKey>, visit: impl FnMut(WorkEdge)) {
        fingerprint_edges(keys, self.0.job.distance, visit);
    }

    /// Returns false only if the sizes and the number of shared groups rule out that the classes of an edge resemble each other.
    ///
    /// The edge must be the sum over all groups, because `shared` is their total.
    pub fn is_promising(&self, edge: &WorkEdge) -> bool {
        edge.is_promising(self.rule(), self.0.job.threshold)
    }
}

/// Data that the keys of a collection depend on.
pub struct KeyPlan {
    pub(crate) levels: Option<FrequencyLevels>,
    pub(crate) blocks: Option<BlockKeys>,
}

lookalike::opaque_debug! {
    [] KeyPlan [];
}

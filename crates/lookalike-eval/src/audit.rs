//! An audit without labels: the recall of one method on the true pairs of a sample of documents.
//!
//! A random sample of documents is compared with *every* document of the collection, exactly and
//! by the method. So a sample sees the pairs it is part of, however rare pairs are; a sample on
//! both sides would hardly ever hold one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hashbrown::HashMap;
use lookalike::hash::xxh3_64;
use lookalike::resemblance::resemblance_of;
use lookalike::sketch::{SketchValue, Sketcher};
use lookalike::{Banding, FeatureExtractor, Simhash};
use serde::Serialize;
use thiserror::Error;

use crate::document_set::EvaluatedDocument;
use crate::interval::ShareEstimate;
use crate::sweep::close_lengths;

/// Memory that a feature of the sample takes: its place in a table that is half full, and the list of its documents.
const BYTES_PER_FEATURE: u64 = 112;
/// Memory that each document takes in such a list.
const BYTES_PER_POSTING: u64 = 8;

/// A sample that does not fit the memory that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the sample takes more than {most_bytes} bytes")]
pub struct SampleTooLarge {
    /// Bytes that it was given.
    pub most_bytes: u64,
}

/// Draws a sample of documents: those whose ids have the smallest hashes under a seed. The sample
/// does not depend on the order in which they come.
#[derive(Debug)]
pub struct DocumentSampler {
    size: usize,
    seed: u64,
    most_bytes: u64,
    bytes: u64,
    /// True if the sample had more than `most_bytes` at some time.
    is_too_large: bool,
    chosen: BinaryHeap<SampledDocument>,
}

/// A document of the sample so far, ordered by the hash of its id, then by id and text.
#[derive(Debug, PartialEq, Eq)]
struct SampledDocument {
    hash: u64,
    document: EvaluatedDocument,
}

impl SampledDocument {
    fn key(&self) -> (u64, &str, &str) {
        (self.hash, &self.document.id, &self.document.text)
    }
}

impl Ord for SampledDocument {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for SampledDocument {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl DocumentSampler {
    /// Creates a sampler of `size` documents, which may take `most_bytes` of memory.
    #[must_use]
    pub fn new(size: usize, seed: u64, most_bytes: u64) -> Self {
        Self {
            size,
            seed,
            most_bytes,
            bytes: 0,
            is_too_large: false,
            chosen: BinaryHeap::new(),
        }
    }

    /// Looks at one document.
    pub fn add(&mut self, document: &EvaluatedDocument) {
        let hash = xxh3_64(document.id.as_bytes(), self.seed);
        let key = (hash, &*document.id, &*document.text);
        let wanted = self.chosen.len() < self.size
            || self.chosen.peek().is_some_and(|last| key < last.key());
        if !wanted || self.size == 0 || self.is_too_large {
            return;
        }
        let document = document.clone();
        self.bytes += document.bytes();
        self.chosen.push(SampledDocument { hash, document });
        if self.chosen.len() > self.size {
            let dropped = self.chosen.pop();
            self.bytes -= dropped.map_or(0, |dropped| dropped.document.bytes());
        }
        if self.bytes > self.most_bytes {
            self.is_too_large = true;
            self.chosen = BinaryHeap::new();
        }
    }

    /// Returns the sample, by id.
    ///
    /// # Errors
    /// [`SampleTooLarge`] if it took more memory than it was given.
    pub fn finish(self) -> Result<Vec<EvaluatedDocument>, SampleTooLarge> {
        if self.is_too_large {
            let most_bytes = self.most_bytes;
            return Err(SampleTooLarge { most_bytes });
        }
        let chosen = self.chosen.into_iter();
        let mut sample: Vec<EvaluatedDocument> = chosen.map(|chosen| chosen.document).collect();
        sample.sort_unstable_by(|a, b| (&a.id, &a.text).cmp(&(&b.id, &b.text)));
        Ok(sample)
    }
}

/// Condition under which a method proposes a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProposalRule {
    /// The sketches share so many keys, those of the bands where there are some.
    Keys(u32, Option<Banding>),
    /// The fingerprints differ in at most so many bits.
    Distance(u32),
    /// Both: Henzinger's combination.
    KeysAndDistance(u32, u32),
    /// So many keys, and within the distance where they stand on one site or a site is not known.
    KeysAndDistanceOnSite(u32, u32),
}

/// One document as the audit sees it.
struct AuditedDocument {
    size: usize,
    bytes: usize,
    keys: Vec<u64>,
    fingerprint: Option<u128>,
    site: Option<String>,
}

/// Compares a sample with all documents, one document after another.
pub struct RecallAudit {
    extractor: FeatureExtractor,
    sketcher: Sketcher,
    rule: ProposalRule,
    threshold: f64,
    lengths: Option<f64>,
    ids: Vec<String>,
    sample: Vec<AuditedDocument>,
    by_feature: HashMap<u64, Vec<u32>>,
    by_key: HashMap<u64, Vec<u32>>,
    shared: Vec<u32>,
    common_keys: Vec<u32>,
    tallies: Vec<AuditTally>,
    documents: u64,
}

/// Counts for one document of the sample.
#[derive(Clone, Copy, Default)]
struct AuditTally {
    true_pairs: u64,
    found_true: u64,
    proposed: u64,
}

/// Report of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReport {
    /// Documents in the collection.
    pub documents: u64,
    /// Documents in the sample.
    pub sample: u64,
    /// True pairs that documents of the sample are part of.
    pub true_pairs: u64,
    /// Of these, pairs that the method proposes, and so finds.
    pub found: u64,
    /// Pairs that the method proposes.
    pub proposed: u64,
    /// Share of the true pairs that the method finds, with limits.
    pub recall: ShareEstimate,
    /// Share of the proposed pairs that are true: what unverified results would be worth.
    pub precision: ShareEstimate,
    /// True pairs in the whole collection, estimated, with limits.
    pub all_true_pairs: (f64, f64, f64),
}

impl RecallAudit {
    /// Creates an audit of a sample, whose ids are distinct. Pairs whose shorter text has less than the
    /// share `lengths` of the longer one's bytes are not proposed. The features of the sample may take `most_bytes` of memory.
    ///
    /// # Errors
    /// [`SampleTooLarge`] if they would take more.
    pub fn new(
        mut extractor: FeatureExtractor,
        sketcher: Sketcher,
        rule: ProposalRule,
        threshold: f64,
        lengths: Option<f64>,
        sample: &[EvaluatedDocument],
        most_bytes: u64,
    ) -> Result<Self, SampleTooLarge> {
        let (mut by_feature, mut by_key) = (HashMap::new(), HashMap::new());
        let (mut seen, mut postings) = (Vec::new(), 0);
        for (at, document) in sample.iter().enumerate() {
            let features = extractor.extract_with(&document.text, &document.fields);
            let document = AuditedDocument::new(document, &features, &sketcher, rule);
            for &feature in features.set {
                by_feature
                    .entry(feature)
                    .or_insert_with(Vec::new)
                    .push(at as u32);
            }
            for &key in &document.keys {
                by_key.entry(key).or_insert_with(Vec::new).push(at as u32);
            }
            postings += features.set.len() + document.keys.len();
            let keys = (by_feature.len() + by_key.len()) as u64;
            if keys * BYTES_PER_FEATURE + postings as u64 * BYTES_PER_POSTING > most_bytes {
                return Err(SampleTooLarge { most_bytes });
            }
            seen.push(document);
        }
        Ok(Self {
            extractor,
            sketcher,
            rule,
            threshold,
            lengths,
            ids: sample.iter().map(|document| document.id.clone()).collect(),
            shared: vec![0; seen.len()],
            common_keys: vec![0; seen.len()],
            tallies: vec![AuditTally::default(); seen.len()],
            sample: seen,
            by_feature,
            by_key,
            documents: 0,
        })
    }

    /// Compares one document of the collection with the sample. Time: its features, and the
    /// documents of the sample that share one, or all of them for fingerprints.
    pub fn add(&mut self, document: &EvaluatedDocument) {
        self.documents += 1;
        let features = self
            .extractor
            .extract_with(&document.text, &document.fields);
        let own = AuditedDocument::new(document, &features, &self.sketcher, self.rule);
        count(&self.by_feature, features.set, &mut self.shared);
        count(&self.by_key, &own.keys, &mut self.common_keys);
        let position = self
            .ids
            .binary_search_by(|other| other.cmp(&document.id))
            .ok();
        for at in (0..self.sample.len()).filter(|&at| Some(at) != position) {
            let other = &self.sample[at];
            let shared = std::mem::take(&mut self.shared[at]) as usize;
            let common = std::mem::take(&mut self.common_keys[at]);
            let is_true =
                shared > 0 && resemblance_of(shared, own.size, other.size) >= self.threshold;
            let is_proposed = self.rule.proposes(common, &own, other)
                && close_lengths(self.lengths, own.bytes, other.bytes);
            let tally = &mut self.tallies[at];
            tally.true_pairs += u64::from(is_true);
            tally.found_true += u64::from(is_true && is_proposed);
            tally.proposed += u64::from(is_proposed);
        }
        if let Some(at) = position {
            self.shared[at] = 0;
            self.common_keys[at] = 0;
        }
    }

    /// The report. Limits treat the pairs of one sampled document as one group.
    #[must_use]
    pub fn finish(&self) -> AuditReport {
        let groups = |pick: fn(&AuditTally) -> (u64, u64)| {
            self.tallies
                .iter()
                .map(pick)
                .filter(|group| group.1 > 0)
                .collect::<Vec<_>>()
        };
        let sum = |pick: fn(&AuditTally) -> u64| self.tallies.iter().map(pick).sum::<u64>();
        AuditReport {
            documents: self.documents,
            sample: self.sample.len() as u64,
            true_pairs: sum(|tally| tally.true_pairs),
            found: sum(|tally| tally.found_true),
            proposed: sum(|tally| tally.proposed),
            recall: ShareEstimate::clustered(&groups(|tally| (tally.found_true, tally.true_pairs))),
            precision: ShareEstimate::clustered(&groups(|tally| {
                (tally.found_true, tally.proposed)
            })),
            all_true_pairs: self.extrapolated(),
        }
    }

    /// Half the mean number of partners of a sampled document times the number of documents, with
    /// limits of two standard errors, corrected for the finite collection.
    fn extrapolated(&self) -> (f64, f64, f64) {
        let (n, all) = (self.tallies.len().max(1) as f64, self.documents as f64);
        let partners = || self.tallies.iter().map(|tally| tally.true_pairs as f64);
        let mean = partners().sum::<f64>() / n;
        let variance = partners().map(|p| (p - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let unseen = (1.0 - n / all.max(1.0)).max(0.0);
        let error = 2.0 * (variance / n * unseen).sqrt();
        let pairs = |partners: f64| (partners * all / 2.0).max(0.0);
        (pairs(mean), pairs(mean - error), pairs(mean + error))
    }
}

/// Adds one for each of the sample's documents that has a value.
fn count(index: &HashMap<u64, Vec<u32>>, values: &[u64], counts: &mut [u32]) {
    for value in values {
        for &at in index.get(value).map_or(&[][..], Vec::as_slice) {
            counts[at as usize] += 1;
        }
    }
}

impl AuditedDocument {
    fn new(
        document: &EvaluatedDocument,
        features: &lookalike::Features<'_>,
        sketcher: &Sketcher,
        rule: ProposalRule,
    ) -> Self {
        let (banding, bits) = match rule {
            ProposalRule::Keys(_, banding) => (banding, false),
            ProposalRule::Distance(_)
            | ProposalRule::KeysAndDistance(..)
            | ProposalRule::KeysAndDistanceOnSite(..) => (None, true),
        };
        let sketch = sketcher.sketch(features);
        // Henzinger's rule looks at a fingerprint beside its sketch.
        let fingerprint = match &sketch {
            Some(SketchValue::Bits(fingerprint, _)) => Some(fingerprint.0),
            _ => Simhash::of(features).map(|fingerprint| fingerprint.0.into()),
        };
        let mut keys = sketch.map_or_else(Vec::new, |sketch| sketch.keys(banding.as_ref()));
        keys.sort_unstable();
        keys.dedup();
        Self {
            size: features.set.len(),
            bytes: document.text.len(),
            keys,
            fingerprint: fingerprint.filter(|_| bits),
            site: document.site.clone(),
        }
    }
}

impl ProposalRule {
    fn proposes(self, common: u32, a: &AuditedDocument, b: &AuditedDocument) -> bool {
        let both = a.fingerprint.zip(b.fingerprint);
        let within = |most: u32| both.is_some_and(|(a, b)| (a ^ b).count_ones() <= most);
        let on_two_sites = || a.site.is_some() && b.site.is_some() && a.site != b.site;
        match self {
            Self::Keys(least, _) => common >= least,
            Self::Distance(most) => within(most),
            Self::KeysAndDistance(least, most) => common >= least && within(most),
            Self::KeysAndDistanceOnSite(least, most) => {
                common >= least && (on_two_sites() || within(most))
            }
        }
    }
}

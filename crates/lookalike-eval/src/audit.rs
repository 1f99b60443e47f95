//! An audit without labels: estimates the recall of one method from the true pairs of a sample of documents.
//!
//! A random sample of documents is compared with *every* document of the collection, exactly and by the method. The audit therefore sees all pairs of
//! the sampled documents, however rare pairs are. If both sides were sampled, hardly any pair would be left.
//!
//! Of documents with equal texts only the first is compared, since every method finds exact copies. The exact side is a prefix join with the sample's
//! feature sets. The method's side is a join of fingerprints whose queries are the sample, or a lookup in a table of keys.

mod bands;
mod proposals;
mod sampler;

use std::fmt;

use hashbrown::{HashMap, HashSet};
use lookalike::sketch::{SketchValue, Sketcher};
use lookalike::{FeatureExtractor, Features, Simhash, intersection_size};
use lookalike_hamming::threads::map_parallel;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::document_set::EvaluatedDocument;
use crate::interval::{CountEstimate, ShareEstimate};
use crate::score::IndexedSets;
use crate::score::prefix::RoughCounts;
use crate::sweep::may_match;
pub use bands::audit_bands;
use proposals::ProposalIndex;
pub use proposals::ProposalRule;
pub use sampler::DocumentSampler;

/// Bytes for each key of the sample: its slot in a half-full table and the list of its documents.
const BYTES_PER_KEY: u64 = 112;
/// Bytes for the hash of a text in a half-full table.
const BYTES_PER_TEXT: u64 = 36;

/// Error: a sample does not fit its memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the sample and the hashes of all texts take more than {most_bytes} bytes")]
pub struct SampleTooLarge {
    /// Memory limit in bytes.
    pub most_bytes: u64,
}

/// Method to audit, with the definition of a true pair.
#[derive(Debug)]
#[non_exhaustive]
pub struct AuditedMethod {
    /// Extractor of the features that are compared exactly.
    pub extractor: FeatureExtractor,
    /// Sketcher of the method.
    pub sketcher: Sketcher,
    /// Condition on which the method proposes a pair.
    pub rule: ProposalRule,
    /// Minimum resemblance of a true pair.
    pub threshold: f64,
    /// Minimum ratio of the shorter text's bytes to the longer text's; the method does not propose pairs below it.
    pub lengths: Option<f64>,
}

impl AuditedMethod {
    /// Creates a method that does not compare lengths.
    #[must_use]
    pub fn new(
        extractor: FeatureExtractor,
        sketcher: Sketcher,
        rule: ProposalRule,
        threshold: f64,
    ) -> Self {
        Self {
            extractor,
            sketcher,
            rule,
            threshold,
            lengths: None,
        }
    }

    /// Sets the minimum ratio of the shorter text's bytes to the longer text's in a proposed pair. `None` sets no minimum.
    #[must_use]
    pub fn lengths(mut self, lengths: impl Into<Option<f64>>) -> Self {
        self.lengths = lengths.into();
        self
    }
}

/// The data of one document that the audit keeps.
struct AuditedDocument {
    bytes: u64,
    keys: Vec<u64>,
    fingerprint: Option<u128>,
    site: Option<String>,
}

impl AuditedDocument {
    fn new(
        document: &EvaluatedDocument,
        features: &Features<'_>,
        sketcher: &Sketcher,
        rule: ProposalRule,
    ) -> (Self, u32) {
        let (banding, looks_at_bits) = match rule {
            ProposalRule::Keys(_, banding) => (banding, false),
            ProposalRule::Distance(_)
            | ProposalRule::KeysAndDistance(..)
            | ProposalRule::KeysAndDistanceOnSite(..) => (None, true),
        };
        let sketch = sketcher.sketch(features);
        // Henzinger's rule compares a fingerprint in addition to the sketch.
        let (fingerprint, bits) = match &sketch {
            Some(SketchValue::Bits(fingerprint, bits)) => (Some(fingerprint.0), *bits),
            _ if looks_at_bits => (Simhash::of(features).map(|code| code.0.into()), 64),
            _ => (None, 64),
        };
        // Sorted for `shared_keys`, and without repeats, because a shared key counts once.
        let mut keys = sketch.map_or_else(Vec::new, |sketch| sketch.keys(banding.as_ref()));
        keys.sort_unstable();
        keys.dedup();
        let own = Self {
            bytes: document.text.len() as u64,
            keys,
            // Left out for rules that do not compare it: it would only take memory in the sample.
            fingerprint: fingerprint.filter(|_| looks_at_bits),
            site: document.site.clone(),
        };
        (own, bits)
    }

    fn shared_keys(&self, other: &Self) -> u32 {
        intersection_size(&self.keys, &other.keys) as u32
    }
}

/// Counts for one document of the sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditTally {
    true_pairs: u64,
    found_true: u64,
    proposed: u64,
}

impl AuditTally {
    fn add(&mut self, other: Self) {
        self.true_pairs += other.true_pairs;
        self.found_true += other.found_true;
        self.proposed += other.proposed;
    }
}

/// Contribution of one document to the counts of a sampled one.
struct SampledTally {
    /// Position of the sampled document.
    at: u32,
    tally: AuditTally,
    /// True if the document is in the sample too.
    within: bool,
}

/// Counts of an unfinished audit, from which another audit resumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditProgress {
    /// Documents compared so far, copies included.
    pub documents: u64,
    /// Counts of each document of the sample.
    pub tallies: Vec<AuditTally>,
    /// Those of the counts that are of pairs with both documents in the sample, which are counted from both ends.
    pub within: AuditTally,
}

/// The sample with the indexes that documents are compared through.
struct AuditedSample {
    documents: Vec<AuditedDocument>,
    by_text: HashMap<u128, u32>,
    sets: IndexedSets,
    counts: RoughCounts,
    proposals: ProposalIndex,
}

/// Audit that compares a sample with all documents, batch by batch.
///
/// ```
/// use lookalike::{FeatureExtractor, Scheme, Sketch, Sketcher};
/// use lookalike_eval::{AuditedMethod, DocumentSampler, EvaluatedDocument, ProposalRule, RecallAudit};
///
/// // Pairs of texts that share all words but the last.
/// let words = |pair: u32| (0..40).map(|at| format!("w{pair}x{at} ")).collect::<String>();
/// let document = |at: u32| EvaluatedDocument::new(at.to_string(), words(at / 2) + &at.to_string());
/// let documents: Vec<_> = (0..200).map(document).collect();
///
/// let mut sampler = DocumentSampler::new(20, 0, u64::MAX);
/// documents.iter().for_each(|document| sampler.add(document));
/// let scheme = Scheme::default().sketch(Sketch::Simhash);
/// let (extractor, sketcher) = (FeatureExtractor::new(&scheme), Sketcher::new(&scheme, None)?);
/// let method = AuditedMethod::new(extractor, sketcher, ProposalRule::Distance(16), 0.8);
/// let mut audit = RecallAudit::new(method, &sampler.finish()?, u64::MAX)?;
/// audit.add(&documents)?;
/// let report = audit.finish();
/// // A pair of two sampled documents counts once.
/// assert_eq!((report.sample, report.found), (20, report.true_pairs));
/// assert!(report.recall.low > 0.8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecallAudit {
    method: AuditedMethod,
    sample: AuditedSample,
    /// Hashes of all texts seen so far.
    texts: HashSet<u128>,
    most_texts: u64,
    most_bytes: u64,
    progress: AuditProgress,
    threads: usize,
}

/// Report of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditReport {
    /// Number of different texts in the collection.
    pub documents: u64,
    /// Number of documents with the text of an earlier one. They are not compared.
    pub copies: u64,
    /// Number of documents in the sample.
    pub sample: u64,
    /// True pairs with at least one document in the sample.
    pub true_pairs: u64,
    /// Those of the true pairs that the method proposes.
    pub found: u64,
    /// Pairs that the method proposes, true or not.
    pub proposed: u64,
    /// Share of the true pairs that the method finds, with confidence limits. It is estimated by document, so a pair of two sampled documents counts
    /// for both.
    pub recall: ShareEstimate,
    /// Share of the proposed pairs that are true: the precision of the method without verification.
    pub precision: ShareEstimate,
    /// Estimated number of true pairs in the whole collection, with confidence limits. A large family that the sample misses may exceed them.
    pub all_true_pairs: CountEstimate,
}

impl fmt::Debug for RecallAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RecallAudit");
        shown
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl RecallAudit {
    /// Creates an audit of a sample of documents with different texts. The hashes of all texts count towards its `most_bytes` of memory.
    ///
    /// # Errors
    /// [`SampleTooLarge`] if the sample's features and keys do not fit `most_bytes`.
    pub fn new(
        method: AuditedMethod,
        sample: &[EvaluatedDocument],
        most_bytes: u64,
    ) -> Result<Self, SampleTooLarge> {
        let too_large = SampleTooLarge { most_bytes };
        let (mut extractor, mut bytes, mut elements) = (method.extractor.clone(), 0, 0);
        let (mut documents, mut sets, mut sketch_bits) = (Vec::new(), Vec::<Box<[u64]>>::new(), 64);
        for document in sample {
            let features = extractor.extract_with(&document.text, &document.fields);
            let (own, bits) =
                AuditedDocument::new(document, &features, &method.sketcher, method.rule);
            // A document without features does not tell the width.
            sketch_bits = if own.fingerprint.is_some() {
                bits
            } else {
                sketch_bits
            };
            bytes += IndexedSets::bytes(features.set.len(), method.threshold)
                + own.keys.len() as u64 * BYTES_PER_KEY;
            if bytes > most_bytes {
                return Err(too_large);
            }
            documents.push(own);
            elements += features.set.len() as u64;
            sets.push(Box::from(features.set));
        }
        // Only features of the sample are counted. Any other has count 0, which `RoughCounts::prefix` leaves out, as it is in none of these sets.
        let mut counts = RoughCounts::new(elements, most_bytes);
        let features = sets.iter().flat_map(|set| set.iter());
        features.for_each(|&feature| counts.add(feature));
        // Half of the remaining memory is for the proposal index, half for the hashes of the texts, whose number is not known yet.
        let left = most_bytes.saturating_sub(bytes + counts.bytes());
        let texts = sample.iter().map(EvaluatedDocument::text_hash).zip(0..);
        Ok(Self {
            progress: AuditProgress {
                documents: 0,
                tallies: vec![AuditTally::default(); documents.len()],
                within: AuditTally::default(),
            },
            sample: AuditedSample {
                by_text: texts.collect(),
                proposals: ProposalIndex::new(&documents, method.rule, sketch_bits, left / 2),
                sets: IndexedSets::new(sets, method.threshold, &counts, 0),
                counts,
                documents,
            },
            method,
            texts: HashSet::new(),
            most_texts: left / 2 / BYTES_PER_TEXT,
            most_bytes,
            threads: 1,
        })
    }

    /// Sets the number of threads that compare documents. The report does not depend on it.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self {
            threads: threads.max(1),
            ..self
        }
    }

    /// Resumes from the counts of an earlier audit. Pass the documents that they cover to [`Self::skip`]. Returns false if the counts belong to
    /// another sample.
    #[must_use]
    pub fn resume(&mut self, progress: AuditProgress) -> bool {
        // The caller keys checkpoints by sample and method; this only guards against an index out of range.
        let fits = progress.tallies.len() == self.sample.documents.len();
        if fits {
            self.progress = progress;
        }
        fits
    }

    /// Returns the counts so far, from which another audit of the same sample and documents can resume.
    #[must_use]
    pub fn progress(&self) -> &AuditProgress {
        &self.progress
    }

    /// Records the texts of documents that were compared before the audit was resumed.
    ///
    /// # Errors
    /// [`SampleTooLarge`] if the hashes of all texts do not fit.
    pub fn skip(&mut self, documents: &[EvaluatedDocument]) -> Result<(), SampleTooLarge> {
        self.texts
            .extend(documents.iter().map(EvaluatedDocument::text_hash));
        self.ensure_texts_fit()
    }

    fn ensure_texts_fit(&self) -> Result<(), SampleTooLarge> {
        match self.texts.len() as u64 <= self.most_texts {
            true => Ok(()),
            false => Err(SampleTooLarge {
                most_bytes: self.most_bytes,
            }),
        }
    }

    /// Compares documents of the collection with the sample. The time goes into extracting their features and into comparing them with the documents
    /// of the sample that share a rare feature.
    ///
    /// # Errors
    /// [`SampleTooLarge`] if the hashes of all texts do not fit.
    pub fn add(&mut self, documents: &[EvaluatedDocument]) -> Result<(), SampleTooLarge> {
        let hashed = documents
            .iter()
            .map(|document| (document.text_hash(), document));
        // Copies of a text would count its pairs again, so only the first document is compared.
        let new: Vec<(u128, &EvaluatedDocument)> = hashed
            .filter(|&(text, _)| self.texts.insert(text))
            .collect();
        self.ensure_texts_fit()?;
        // One part for each thread. Counts are sums, so the report does not depend on how documents are divided.
        let share = new.len().div_ceil(self.threads).max(1);
        let (sample, method) = (&self.sample, &self.method);
        let parts = map_parallel(new.chunks(share), |part| {
            let (extractor, sketcher) = (method.extractor.clone(), &method.sketcher);
            sample.tallies(part, extractor, sketcher, method.rule, method.lengths)
        });
        let progress = &mut self.progress;
        for SampledTally { at, tally, within } in parts.into_iter().flatten() {
            progress.tallies[at as usize].add(tally);
            if within {
                progress.within.add(tally);
            }
        }
        self.progress.documents += documents.len() as u64;
        Ok(())
    }

    /// Returns the report. The limits treat the pairs of one sampled document as one group. If the sample is the whole collection, the figures are
    /// exact.
    #[must_use]
    pub fn finish(&self) -> AuditReport {
        let tallies = &self.progress.tallies;
        let groups = |pick: fn(&AuditTally) -> (u64, u64)| {
            tallies
                .iter()
                .map(pick)
                // A document without pairs says nothing about the share.
                .filter(|group| group.1 > 0)
                .collect::<Vec<_>>()
        };
        let documents = self.texts.len() as u64;
        // The sample holds different texts of the collection, so equal numbers mean that nothing was left out.
        let is_all = tallies.len() as u64 == documents;
        // A pair within the sample is counted from both ends. The estimates below are of documents, so there it counts for each of its two.
        let twice = &self.progress.within;
        let sum =
            |pick: fn(&AuditTally) -> u64| tallies.iter().map(pick).sum::<u64>() - pick(twice) / 2;
        let share = |pick: fn(&AuditTally) -> (u64, u64)| match is_all {
            true => ShareEstimate::exact(
                tallies.iter().map(|tally| pick(tally).0).sum(),
                tallies.iter().map(|tally| pick(tally).1).sum(),
            ),
            false => ShareEstimate::clustered(&groups(pick)),
        };
        AuditReport {
            documents,
            copies: self.progress.documents - documents,
            sample: tallies.len() as u64,
            true_pairs: sum(|tally| tally.true_pairs),
            found: sum(|tally| tally.found_true),
            proposed: sum(|tally| tally.proposed),
            recall: share(|tally| (tally.found_true, tally.true_pairs)),
            precision: share(|tally| (tally.found_true, tally.proposed)),
            all_true_pairs: self.extrapolated(documents as f64, sum(|tally| tally.true_pairs)),
        }
    }

    /// Estimates the number of true pairs: half the mean number of partners of a sampled document, times the number of documents. The limits are two
    /// standard errors, corrected for the finite collection, and no closer than those of the share of documents with partners: without any in the
    /// sample, or with equally many of each, nothing varies. No figure is below the number of `known` pairs.
    fn extrapolated(&self, all: f64, known: u64) -> CountEstimate {
        let tallies = &self.progress.tallies;
        let n = tallies.len().max(1) as f64;
        let partners = || tallies.iter().map(|tally| tally.true_pairs as f64);
        let sum = partners().sum::<f64>();
        if n >= all {
            // The sample is everything, so the number is exact. The sum of nothing is a negative zero.
            return CountEstimate::exact(sum / 2.0 + 0.0);
        }
        let mean = sum / n;
        // Of the sample, hence n - 1. The variance of the mean is this divided by n.
        let variance = partners().map(|p| (p - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        // The closer the sample is to the whole collection, the smaller is its error.
        let unseen = 1.0 - n / all;
        let error = 2.0 * (variance / n * unseen).sqrt();
        // The `+ 0.0` is needed because `max` of two zeros may return the negative one.
        let pairs = |partners: f64| (partners * all / 2.0).max(0.0) + 0.0;
        let with = partners().filter(|&partners| partners > 0.0).count();
        let share = ShareEstimate::of(with as u64, tallies.len() as u64);
        // Each document with partners, in the sample or estimated of the rest, has as many as those of the sample have on average.
        let of_share = |share: f64| {
            let documents = with as f64 + (all - n) * share;
            documents * (sum / with.max(1) as f64).max(1.0) / 2.0
        };
        let known = known as f64;
        CountEstimate {
            value: pairs(mean).max(known),
            low: pairs(mean - error).min(of_share(share.low)).max(known),
            high: pairs(mean + error).max(of_share(share.high)).max(known),
        }
    }
}

impl AuditedSample {
    /// Returns the counts that these documents add.
    fn tallies(
        &self,
        documents: &[(u128, &EvaluatedDocument)],
        mut extractor: FeatureExtractor,
        sketcher: &Sketcher,
        rule: ProposalRule,
        lengths: Option<f64>,
    ) -> Vec<SampledTally> {
        let mut tallies = Vec::new();
        let mut seen = Vec::with_capacity(documents.len());
        for (text, document) in documents {
            let features = extractor.extract_with(&document.text, &document.fields);
            let (mut own, _) = AuditedDocument::new(document, &features, sketcher, rule);
            // The sampled documents are in the collection too. By text and not by id, because ids may repeat.
            let itself = self.by_text.get(text);
            // Copies may be on several sites. A pair within the sample must be the same from both ends.
            if let Some(&at) = itself {
                own.site.clone_from(&self.documents[at as usize].site);
            }
            // True pairs are found independently of the method, because its recall is what is measured.
            self.sets.similar(features.set, &self.counts, 0, |at, _| {
                let other = &self.documents[at as usize];
                if itself == Some(&at) {
                    return;
                }
                // Decided for this pair alone; what the index proposes is counted separately, below.
                let is_found = rule.proposes(own.shared_keys(other), &own, other)
                    && may_match(lengths, own.bytes, other.bytes);
                let tally = AuditTally {
                    true_pairs: 1,
                    found_true: u64::from(is_found),
                    proposed: 0,
                };
                let within = itself.is_some();
                tallies.push(SampledTally { at, tally, within });
            });
            seen.push(own);
        }
        self.proposals.candidates(&seen, |candidate| {
            let (own, at) = (&seen[candidate.document], candidate.sampled);
            let other = &self.documents[at as usize];
            let itself = self.by_text.get(&documents[candidate.document].0);
            let is_proposed = itself != Some(&at)
                && rule.proposes(candidate.common, own, other)
                && may_match(lengths, own.bytes, other.bytes);
            if is_proposed {
                let tally = AuditTally {
                    proposed: 1,
                    ..AuditTally::default()
                };
                let within = itself.is_some();
                tallies.push(SampledTally { at, tally, within });
            }
        });
        tallies
    }
}

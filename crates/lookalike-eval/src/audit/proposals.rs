//! Finds the documents of a sample that a method proposes as partners of another document.

use hashbrown::HashMap;
use lookalike::Banding;
use lookalike_hamming::{BatchJoin, BatchLimits, JoinScratch, Word};

use super::AuditedDocument;

/// Condition under which a method proposes a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ProposalRule {
    /// The sketches share at least this many keys: the keys of these bands, or the sketch's own keys without bands.
    Keys(u32, Option<Banding>),
    /// The fingerprints differ in at most this many bits.
    Distance(u32),
    /// At least this many shared keys and at most this distance: Henzinger's combination.
    KeysAndDistance(u32, u32),
    /// At least this many shared keys. If both documents are on one site, or the site of one is unknown, also at most this distance.
    KeysAndDistanceOnSite(u32, u32),
}

impl ProposalRule {
    /// Tells whether the rule proposes a pair that shares `common` keys.
    pub(super) fn proposes(self, common: u32, a: &AuditedDocument, b: &AuditedDocument) -> bool {
        // A document without features has no fingerprint and is near nothing.
        let both = a.fingerprint.zip(b.fingerprint);
        let within = |most: u32| both.is_some_and(|(a, b)| (a ^ b).count_ones() <= most);
        // Shared keys are precise for pages of two sites, and weak within a site, where pages share a template (Henzinger, SIGIR 2006).
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

/// Number of documents that a join is prepared for. More may come. Larger filters would gain little, because extracting features costs more than any
/// search.
const EXPECTED_DOCUMENTS: u64 = 1 << 14;

/// A document, by its position in a batch, and a sampled one that share `common` keys.
pub(super) struct ProposedCandidate {
    pub(super) document: usize,
    pub(super) sampled: u32,
    pub(super) common: u32,
}

/// Index of the sample by keys or by fingerprints, whichever its method compares.
pub(super) enum ProposalIndex {
    Keys(HashMap<u64, Vec<u32>>),
    Distance(Box<dyn FingerprintSearch>),
}

impl ProposalIndex {
    pub(super) fn new(
        sample: &[AuditedDocument],
        rule: ProposalRule,
        bits: u32,
        bytes: u64,
    ) -> Self {
        // All other rules need at least one shared key, so a table of keys finds every pair that they may propose.
        let ProposalRule::Distance(radius) = rule else {
            let mut by_key: HashMap<u64, Vec<u32>> = HashMap::new();
            for (at, document) in sample.iter().enumerate() {
                for &key in &document.keys {
                    // Keys of a document are distinct, so a document is in the list of a key once.
                    by_key.entry(key).or_default().push(at as u32);
                }
            }
            return Self::Keys(by_key);
        };
        let limits = BatchLimits::default()
            .memory_bytes(bytes)
            .stream_codes(EXPECTED_DOCUMENTS);
        Self::Distance(match bits {
            32 => Box::new(SampledCodes::<u32>::new(sample, radius, limits)),
            64 => Box::new(SampledCodes::<u64>::new(sample, radius, limits)),
            _ => Box::new(SampledCodes::<u128>::new(sample, radius, limits)),
        })
    }

    /// Passes the candidates of a batch of documents to `visit`, each pair once.
    pub(super) fn candidates(
        &self,
        documents: &[AuditedDocument],
        mut visit: impl FnMut(ProposedCandidate),
    ) {
        let by_key = match self {
            Self::Keys(by_key) => by_key,
            Self::Distance(search) => {
                return search.near(documents, &mut |document, sampled| {
                    visit(ProposedCandidate {
                        document,
                        sampled,
                        // The rule looks at the distance alone.
                        common: 0,
                    });
                });
            }
        };
        let mut found = Vec::new();
        for (at, document) in documents.iter().enumerate() {
            found.clear();
            let lists = document.keys.iter().filter_map(|key| by_key.get(key));
            found.extend(lists.flatten().copied());
            // A sampled document occurs once for each key that it shares, so the length of a run of equal numbers is its count.
            found.sort_unstable();
            for equal in found.chunk_by(|a: &u32, b| a == b) {
                visit(ProposedCandidate {
                    document: at,
                    sampled: equal[0],
                    common: equal.len() as u32,
                });
            }
        }
    }
}

/// Search for the sampled documents that are near others.
pub(super) trait FingerprintSearch: Send + Sync {
    /// Calls `visit` with the position of a document and of each sampled document within the distance.
    fn near(&self, documents: &[AuditedDocument], visit: &mut dyn FnMut(usize, u32));
}

/// Fingerprints of the sample as the queries of a join.
struct SampledCodes<C: Word> {
    join: BatchJoin<C>,
    by_code: HashMap<C, Vec<u32>>,
}

impl<C: Word> SampledCodes<C> {
    fn new(sample: &[AuditedDocument], radius: u32, limits: BatchLimits) -> Self {
        // Equal fingerprints are one query of the join.
        let mut by_code: HashMap<C, Vec<u32>> = HashMap::new();
        for (document, at) in sample.iter().zip(0..) {
            if let Some(code) = document.fingerprint {
                by_code.entry(C::from_u128(code)).or_default().push(at);
            }
        }
        let codes: Vec<C> = by_code.keys().copied().collect();
        Self {
            join: BatchJoin::new(&codes, radius, limits)
                .expect("a sample has less than 2^32 documents"),
            by_code,
        }
    }
}

impl<C: Word> FingerprintSearch for SampledCodes<C> {
    fn near(&self, documents: &[AuditedDocument], visit: &mut dyn FnMut(usize, u32)) {
        let (mut places, mut codes) = (Vec::new(), Vec::new());
        for (at, document) in documents.iter().enumerate() {
            if let Some(code) = document.fingerprint {
                places.push(at);
                codes.push(C::from_u128(code));
            }
        }
        self.join
            .join(&codes, &mut JoinScratch::default(), &mut |at, code, _| {
                // The join reports the queries that it was created with, so the code is in the table.
                for &sampled in &self.by_code[&code] {
                    visit(places[at], sampled);
                }
            });
    }
}

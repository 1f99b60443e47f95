//! Extracts the features of all documents under several schemes in one reading, on several threads.

use std::sync::Arc;

use lookalike::{FeatureExtractor, Features, Scheme, Shingle, Terms};
use lookalike_hamming::threads::map_parallel;

use super::SweepError;
use super::documents::{SweptDocument, SweptDocuments};

/// Scheme of features to extract, with the table of terms that it needs.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct FeatureScheme {
    pub(super) scheme: Scheme,
    pub(super) terms: Option<Arc<Terms>>,
}

impl From<Scheme> for FeatureScheme {
    fn from(scheme: Scheme) -> Self {
        let terms = None;
        Self { scheme, terms }
    }
}

/// Words of a text as hashes, computed once for all features that can be derived from them.
#[derive(Clone)]
struct SharedWords {
    scheme: Scheme,
    extractor: FeatureExtractor,
}

#[derive(Clone)]
struct SchemeExtractor {
    extractor: FeatureExtractor,
    /// Position of its words. `None` if its features cannot be derived from words alone.
    words: Option<usize>,
}

/// The extractors of one thread.
#[derive(Clone)]
struct FeatureWorker {
    words: Vec<SharedWords>,
    extractors: Vec<SchemeExtractor>,
}

impl FeatureWorker {
    fn new(schemes: &[FeatureScheme]) -> Self {
        let mut words: Vec<SharedWords> = Vec::new();
        let mut words_of = |scheme: &Scheme| {
            let own = scheme.features_only();
            // Settings that split texts alike differ only in their shingles; without these, equal schemes mean equal words.
            let own = own.shingle(Shingle::words(1).unwrap_or_default());
            let known = words.iter().position(|words| words.scheme == own);
            known.unwrap_or_else(|| {
                let extractor = FeatureExtractor::new(&own);
                words.push(SharedWords {
                    scheme: own,
                    extractor,
                });
                words.len() - 1
            })
        };
        let extractors = schemes.iter().map(|FeatureScheme { scheme, terms }| {
            let named = scheme.terms(terms.as_ref().map(|terms| terms.id()));
            let mut extractor = FeatureExtractor::with_terms(&named, terms.as_ref())
                .expect("the table was made for the scheme");
            // A trial on no words tells whether the shingles need more than the hashes of words, such as their letters.
            let by_words = scheme.fields.is_none() && extractor.extract_tokens(&[]).is_some();
            SchemeExtractor {
                extractor,
                words: by_words.then(|| words_of(scheme)),
            }
        });
        let extractors = extractors.collect();
        Self { words, extractors }
    }

    /// Calls `visit` with the features of these documents, scheme by scheme, so that a table of terms stays in the cache.
    fn for_each(
        &mut self,
        part: &[&SweptDocument<'_>],
        mut visit: impl FnMut(usize, &SweptDocument<'_>, &Features<'_>),
    ) {
        let Self { words, extractors } = self;
        let words: Vec<Vec<Vec<u64>>> = words
            .iter_mut()
            .map(|words| {
                let texts = part.iter().map(|swept| &swept.document.text);
                let hashes = texts.map(|text| words.extractor.features(text).to_vec());
                hashes.collect()
            })
            .collect();
        for (at, own) in extractors.iter_mut().enumerate() {
            for (number, swept) in part.iter().enumerate() {
                let document = &*swept.document;
                let by_words = own
                    .words
                    .and_then(|at| own.extractor.extract_tokens(&words[at][number]));
                match by_words {
                    Some(features) => visit(at, swept, &features),
                    None => {
                        let fields = &document.fields;
                        let features = own.extractor.extract_with(&document.text, fields);
                        visit(at, swept, &features);
                    }
                }
            }
        }
    }
}

/// Reader that extracts the features of documents under several schemes.
pub(super) struct FeatureReader {
    workers: Vec<FeatureWorker>,
}

impl FeatureReader {
    pub(super) fn new(schemes: &[FeatureScheme], threads: usize) -> Self {
        Self {
            workers: vec![FeatureWorker::new(schemes); threads.max(1)],
        }
    }

    /// Reads all documents once, applies `make` to their features on all threads, and calls `show` with each result, in the order of the reading.
    /// Documents without a position are left out unless `counted` is true.
    pub(super) fn read<D: SweptDocuments, T: Send>(
        &mut self,
        documents: &D,
        counted: bool,
        make: &(impl Fn(usize, &Features<'_>) -> T + Sync),
        mut show: impl FnMut(usize, Option<u32>, T),
    ) -> Result<(), SweepError<D::Error>> {
        let workers = &mut self.workers;
        let read = documents.read(&mut |batch| {
            let share = batch.len().div_ceil(workers.len()).max(1);
            let made = |worker: &mut FeatureWorker, part: &[SweptDocument<'_>]| {
                let mut made = Vec::new();
                let wanted = part.iter();
                let wanted = wanted.filter(|swept| counted || swept.position.is_some());
                worker.for_each(&wanted.collect::<Vec<_>>(), |at, swept, features| {
                    made.push((at, swept.position, make(at, features)));
                });
                made
            };
            // Each thread takes one run of the batch, so the results of the parts follow one another in the order of the reading.
            let parts = workers.iter_mut().zip(batch.chunks(share));
            let parts = map_parallel(parts, |(worker, part)| made(worker, part));
            for (at, position, one) in parts.into_iter().flatten() {
                show(at, position, one);
            }
        });
        read.map_err(SweepError::Documents)
    }
}

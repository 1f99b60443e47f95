//! Audits against counting everything.

use lookalike::{FeatureExtractor, Scheme, Sketch, Sketcher};
use lookalike_eval::audit::ProposalRule;
use lookalike_eval::{
    AuditReport, DocumentSampler, EvaluatedDocument, GroundTruth, RecallAudit, SampleTooLarge,
    scored_pairs, sweep::sketches_of,
};

use crate::families;

fn scheme() -> Scheme {
    Scheme::default()
        .shingle("words:2".parse().unwrap())
        .sketch(Sketch::Simhash)
}

fn audit(size: usize, seed: u64, distance: u32) -> AuditReport {
    let collection = families(30, 4);
    let documents = || collection.documents().iter();
    let mut sampler = DocumentSampler::new(size, seed, u64::MAX);
    documents().for_each(|document| sampler.add(document));
    let sample = sampler.finish().unwrap();
    let mut backwards = DocumentSampler::new(size, seed, u64::MAX);
    documents()
        .rev()
        .for_each(|document| backwards.add(document));
    assert_eq!(
        sample,
        backwards.finish().unwrap(),
        "a sample does not depend on the order"
    );
    let sketcher = Sketcher::new(&scheme(), None).unwrap();
    let extractor = FeatureExtractor::new(&scheme());
    let mut audit = RecallAudit::new(
        extractor,
        sketcher,
        ProposalRule::Distance(distance),
        0.5,
        None,
        &sample,
        u64::MAX,
    )
    .unwrap();
    documents().for_each(|document| audit.add(document));
    audit.finish()
}

#[test]
fn a_sample_that_does_not_fit_is_refused_while_it_is_drawn() {
    let collection = families(30, 4);
    let documents = || collection.documents().iter();
    let all: u64 = documents().map(EvaluatedDocument::bytes).sum();
    let drawn = |size, most_bytes| {
        let mut sampler = DocumentSampler::new(size, 1, most_bytes);
        documents().for_each(|document| sampler.add(document));
        sampler.finish()
    };
    assert_eq!(drawn(1000, all).unwrap().len(), 120);
    let most_bytes = all - 1;
    assert_eq!(drawn(1000, most_bytes), Err(SampleTooLarge { most_bytes }));
    // What is dropped for others is not counted.
    assert_eq!(drawn(10, all / 4).unwrap().len(), 10);
    let audit = |most_bytes| {
        let sketcher = Sketcher::new(&scheme(), None).unwrap();
        let extractor = FeatureExtractor::new(&scheme());
        let rule = ProposalRule::Distance(3);
        let sample = drawn(10, all).unwrap();
        RecallAudit::new(extractor, sketcher, rule, 0.5, None, &sample, most_bytes).map(|_| ())
    };
    assert_eq!(audit(1 << 20), Ok(()));
    let most_bytes = 1 << 10;
    assert_eq!(audit(most_bytes), Err(SampleTooLarge { most_bytes }));
}

#[test]
fn a_sample_of_everything_counts_everything_twice() {
    let collection = families(30, 4);
    let truth = GroundTruth::exact(&collection, &scheme(), 0.5).true_pairs();
    let found = scored_pairs(&sketches_of(&collection, &scheme()), 64.0 - 14.0);
    let report = audit(1000, 0, 14);
    assert_eq!(report.sample, 120);
    assert_eq!(report.true_pairs, 2 * truth);
    assert_eq!(report.proposed, 2 * found.len() as u64);
    let (all, low, high) = report.all_true_pairs;
    assert_eq!((all, low, high), (truth as f64, truth as f64, truth as f64));
}

/// 95 % limits hold in at least 85 of 100 samples: below that the chance is under one in 10,000.
#[test]
fn limits_of_samples_hold_the_truth() {
    let whole = audit(1000, 0, 14);
    let holds = |seed: &u64| {
        let report = audit(30, *seed, 14);
        report.recall.low <= whole.recall.value && whole.recall.value <= report.recall.high
    };
    let held = (1..=100).filter(holds).count();
    assert!(held >= 85, "{held} of 100");
}

//! Audits against counting everything.

use lookalike::{FeatureExtractor, Scheme, Sketch, Sketcher};
use lookalike_eval::audit::ProposalRule;
use lookalike_eval::{
    AuditReport, DocumentSampler, GroundTruth, RecallAudit, scored_pairs, sweep::sketches_of,
};

use crate::families;

fn scheme() -> Scheme {
    Scheme {
        shingle: "words:2".parse().unwrap(),
        sketch: Sketch::Simhash,
        ..Scheme::default()
    }
}

fn audit(size: usize, seed: u64, distance: u32) -> AuditReport {
    let collection = families(30, 4);
    let documents = || collection.documents().iter();
    let mut sampler = DocumentSampler::new(size, seed);
    documents().for_each(|document| sampler.add(document));
    let sample = sampler.finish();
    let mut backwards = DocumentSampler::new(size, seed);
    documents()
        .rev()
        .for_each(|document| backwards.add(document));
    assert_eq!(
        sample,
        backwards.finish(),
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
    );
    documents().for_each(|document| audit.add(document));
    audit.finish()
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

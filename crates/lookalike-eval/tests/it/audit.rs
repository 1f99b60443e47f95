//! Audits, compared with counting all pairs.

use std::collections::BTreeMap;

use lookalike::resemblance::resemblance;
use lookalike::{Banding, FeatureExtractor, Scheme, Sketch, SketchValue, Sketcher};
use lookalike_eval::{
    AuditReport, AuditedMethod, CountEstimate, DocumentSampler, EvaluatedDocument, GroundTruth,
    ProposalRule, RecallAudit, SampleTooLarge, scored_pairs, sketches_of,
};

use proptest::prelude::*;

use crate::families;

fn scheme() -> Scheme {
    Scheme::default()
        .shingle("words:2".parse().unwrap())
        .sketch(Sketch::Simhash)
}

fn method(scheme: &Scheme, rule: ProposalRule, threshold: f64) -> AuditedMethod {
    let sketcher = Sketcher::new(scheme, None).unwrap();
    AuditedMethod::new(FeatureExtractor::new(scheme), sketcher, rule, threshold)
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
    let rule = ProposalRule::Distance(distance);
    let mut audit = RecallAudit::new(method(&scheme(), rule, 0.5), &sample, u64::MAX).unwrap();
    audit.add(collection.documents()).unwrap();
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
    // Documents that the sample dropped do not count towards its memory.
    assert_eq!(drawn(10, all / 4).unwrap().len(), 10);
    let audit = |most_bytes| {
        let rule = ProposalRule::Distance(3);
        let sample = drawn(10, all).unwrap();
        let mut audit = RecallAudit::new(method(&scheme(), rule, 0.5), &sample, most_bytes)?;
        audit.add(collection.documents())
    };
    assert_eq!(audit(1 << 20), Ok(()));
    let most_bytes = 1 << 10;
    assert_eq!(audit(most_bytes), Err(SampleTooLarge { most_bytes }));
}

#[test]
fn a_sample_of_everything_counted_each_pair_from_both_ends() {
    let collection = families(30, 4);
    let truth = GroundTruth::exact(&collection, &scheme(), 0.5).true_pairs();
    let found = scored_pairs(&sketches_of(&collection, &scheme()), 64.0 - 14.0);
    let report = audit(1000, 0, 14);
    assert_eq!(report.sample, 120);
    assert_eq!(report.true_pairs, truth);
    assert_eq!(report.proposed, found.len() as u64);
    assert_eq!(report.recall.low, report.recall.high, "exact");
    let CountEstimate {
        value: all,
        low,
        high,
    } = report.all_true_pairs;
    assert_eq!((all, low, high), (truth as f64, truth as f64, truth as f64));
}

#[test]
fn a_sample_of_nearly_everything_had_more_pairs_than_the_collection() {
    let [all, nearly] = [120, 110].map(|size| audit(size, 0, 14));
    assert_eq!((all.sample, nearly.sample), (120, 110));
    for (of_all, of_sample) in [
        (all.true_pairs, nearly.true_pairs),
        (all.found, nearly.found),
        (all.proposed, nearly.proposed),
    ] {
        assert!(of_sample <= of_all, "{of_sample} of {of_all}");
    }
}

#[test]
fn the_limits_of_all_pairs_were_below_the_number_that_was_found() {
    for seed in 0..5 {
        let (known, all) = audited_pairs(100, 100, 98, seed);
        assert!(known >= 49 && all.low >= known as f64, "{known} {all:?}");
        assert!(
            all.value >= known as f64 && all.high >= all.value,
            "{all:?}"
        );
    }
}

/// 95 % limits must hold in at least 85 of 100 samples; fewer have a probability below 1 in 10,000.
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

/// Audits a sample of `count` documents, of which the first `paired` have one partner each. Returns the number of true pairs that the sample has, and
/// the estimate.
fn audited_pairs(count: u32, paired: u32, sample: usize, seed: u64) -> (u64, CountEstimate) {
    let words = |text: u32| {
        (0..20)
            .map(|at| format!("w{text}x{at} "))
            .collect::<String>()
    };
    let documents: Vec<_> = (0..count)
        .map(|at| {
            let text = if at < paired { at / 2 } else { at };
            EvaluatedDocument::new(format!("d{at}"), format!("{}{at}", words(text)))
        })
        .collect();
    let mut sampler = DocumentSampler::new(sample, seed, u64::MAX);
    documents.iter().for_each(|document| sampler.add(document));
    let rule = ProposalRule::Distance(3);
    let sample = sampler.finish().unwrap();
    let mut audit = RecallAudit::new(method(&scheme(), rule, 0.8), &sample, u64::MAX).unwrap();
    audit.add(&documents).unwrap();
    let report = audit.finish();
    (report.true_pairs, report.all_true_pairs)
}

#[test]
fn limits_of_a_sample_of_everything_differed_in_the_last_bit() {
    // 1 / 49 times 49 is not 1 for a processor.
    let (found, CountEstimate { value, low, high }) = audited_pairs(49, 2, 49, 0);
    assert_eq!((found, value, low, high), (1, 1.0, 1.0, 1.0));
}

#[test]
fn a_sample_without_pairs_proved_that_there_are_none() {
    // 320 documents of 400 have no partner, the others one each.
    let estimate = |seed| audited_pairs(400, 80, 12, seed);
    let estimates: Vec<_> = (0..40).map(estimate).collect();
    let (_, none) = estimates.iter().find(|estimate| estimate.0 == 0).unwrap();
    // Wilson's upper limit of 0 in 12 is z² / (12 + z²) = 0.2425, here of the 388 other documents, two for each pair.
    assert_eq!((none.value, none.low), (0.0, 0.0));
    assert!((none.high - 0.2425 * 388.0 / 2.0).abs() < 0.1, "{none:?}");
    // 95 % limits; fewer than 34 of 40 have a probability below 1 in 100.
    let held = |(_, all): &&(u64, CountEstimate)| all.low <= 40.0 && 40.0 <= all.high;
    let held = estimates.iter().filter(held).count();
    assert!(held >= 34, "{held} of 40");
}

/// Generates texts of a few words from a small vocabulary, so that many are equal or nearly equal.
fn texts() -> impl Strategy<Value = Vec<EvaluatedDocument>> {
    let text = prop::collection::vec(0..12_u8, 0..9);
    prop::collection::vec(text, 2..30).prop_map(|texts| {
        let documents = texts.into_iter().enumerate();
        let document = |(at, words): (usize, Vec<u8>)| {
            let text: String = words.iter().map(|word| format!("w{word} ")).collect();
            EvaluatedDocument::new(format!("d{:02}", (at * 7) % 31), text)
        };
        documents.map(document).collect()
    })
}

/// Returns the true, found and proposed pairs of the sample, by comparing all pairs. A pair within the sample counts once.
fn by_hand(
    documents: &[EvaluatedDocument],
    sample: &[EvaluatedDocument],
    scheme: &Scheme,
    rule: ProposalRule,
    threshold: f64,
) -> [u64; 3] {
    let mut extractor = FeatureExtractor::new(scheme);
    let sketcher = Sketcher::new(scheme, None).unwrap();
    let mut seen = |text: &str| {
        let features = extractor.extract(text);
        (features.set.to_vec(), sketcher.sketch(&features))
    };
    let mut different: BTreeMap<&str, _> = BTreeMap::new();
    for document in documents {
        different.insert(&document.text, seen(&document.text));
    }
    let proposes = |a: &SketchValue, b: &SketchValue| match rule {
        ProposalRule::Distance(most) => 64.0 - a.score(b) <= f64::from(most),
        ProposalRule::Keys(least, banding) => {
            let (a, b) = (a.keys(banding.as_ref()), b.keys(banding.as_ref()));
            a.iter().filter(|key| b.contains(key)).count() >= least as usize
        }
        _ => unreachable!("not tried here"),
    };
    let mut counts = [0; 3];
    for document in sample {
        let (own, own_sketch) = seen(&document.text);
        let is_other = |text: &str| match sample.iter().any(|sampled| sampled.text == text) {
            true => text > &*document.text,
            false => true,
        };
        for (_, (other, sketch)) in different.iter().filter(|other| is_other(other.0)) {
            let is_true = resemblance(&own, other) >= threshold && !own.is_empty();
            let both = own_sketch.as_ref().zip(sketch.as_ref());
            let is_proposed = both.is_some_and(|(a, b)| proposes(a, b));
            counts[0] += u64::from(is_true);
            counts[1] += u64::from(is_true && is_proposed);
            counts[2] += u64::from(is_proposed);
        }
    }
    counts
}

proptest! {
    #[test]
    fn an_audit_counts_what_comparing_each_with_each_counts(
        documents in texts(),
        size in 1..20_usize,
        threshold in prop_oneof![Just(0.07_f64), Just(0.3), Just(0.5), Just(0.8), Just(1.0)],
        which in 0..4_usize,
        threads in 1..4_usize,
        batch in 1..10_usize,
        stops in 0..30_usize,
    ) {
        let banding = Banding::for_threshold(64, threshold.max(0.3), 0.9).unwrap();
        let (sketch, rule) = [
            ("simhash:64", ProposalRule::Distance(9)),
            ("super-shingle:6x2", ProposalRule::Keys(1, None)),
            ("super-shingle:6x2", ProposalRule::Keys(2, None)),
            ("minhash:64", ProposalRule::Keys(1, Some(banding))),
        ][which];
        let words: lookalike::Shingle = "words:1".parse().unwrap();
        let scheme = Scheme::default().shingle(words).sketch(sketch.parse().unwrap());
        let mut sampler = DocumentSampler::new(size, 3, u64::MAX);
        documents.iter().for_each(|document| sampler.add(document));
        let sample = sampler.finish().unwrap();
        let of = || RecallAudit::new(method(&scheme, rule, threshold), &sample, u64::MAX).unwrap().threads(threads);
        let mut audit = of();
        for part in documents.chunks(batch) {
            audit.add(part).unwrap();
        }
        let report = audit.finish();
        // Documents without a text are no copies of each other.
        let own_id = |document: &EvaluatedDocument| document.text.is_empty().then(|| document.id.clone());
        let mut texts: Vec<_> = documents.iter().map(|document| (&*document.text, own_id(document))).collect();
        texts.sort_unstable();
        texts.dedup();
        let expected = by_hand(&documents, &sample, &scheme, rule, threshold);
        prop_assert_eq!([report.true_pairs, report.found, report.proposed], expected);
        prop_assert_eq!(report.documents as usize, texts.len());
        prop_assert_eq!((report.documents + report.copies) as usize, documents.len());
        prop_assert_eq!(report.sample as usize, texts.len().min(size));

        // A second audit resumes where the first stopped.
        let (before, after) = documents.split_at(stops.min(documents.len()));
        let mut first = of();
        first.add(before).unwrap();
        let mut second = of();
        prop_assert!(second.resume(first.progress().clone()));
        second.skip(before).unwrap();
        second.add(after).unwrap();
        prop_assert_eq!(second.finish(), report);
    }
}

/// A text with a thousand copies is drawn as rarely as any other, by its smallest id.
#[test]
fn copies_make_a_text_no_more_likely() {
    let drawn = (0..300).filter(|&seed| {
        let mut sampler = DocumentSampler::new(1, seed, u64::MAX);
        (0..20).for_each(|at| sampler.add(&EvaluatedDocument::new(format!("x{at:02}"), "copy")));
        (0..9).for_each(|at| {
            sampler.add(&EvaluatedDocument::new(
                format!("y{at}"),
                format!("other {at}"),
            ))
        });
        let sample = sampler.finish().unwrap();
        assert!(sample[0].text != "copy" || sample[0].id == "x00");
        sample[0].text == "copy"
    });
    // The expected share is one in ten; by documents it would be two in three. The bounds are five standard deviations of 5.2.
    let drawn = drawn.count();
    assert!((4..=56).contains(&drawn), "{drawn} of 300");
}

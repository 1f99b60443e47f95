//! The Unicode version is part of the meaning of a scheme, so no dependency may change it unnoticed.

use lookalike::scheme::UNICODE_MAJOR;

#[test]
fn all_tables_are_of_the_version_that_schemes_name() {
    let help = "a new version moves fingerprints: raise all of them together, publish new vectors";
    assert_eq!(UNICODE_MAJOR, 17, "{help}");
    assert_eq!(char::UNICODE_VERSION.0, 17, "{help}");
    assert_eq!(unicode_segmentation::UNICODE_VERSION.0, 17, "{help}");
    assert_eq!(unicode_normalization::UNICODE_VERSION.0, 17, "{help}");
    assert_eq!(unicode_properties::UNICODE_VERSION.0, 17, "{help}");
}

#[test]
fn extractors_and_sketches_can_be_shared_among_threads() {
    fn check<T: Send + Sync + std::panic::UnwindSafe>() {}
    check::<lookalike::Scheme>();
    check::<lookalike::Segmenter>();
    check::<lookalike::FeatureExtractor>();
    check::<lookalike::MinHash>();
    check::<lookalike::Signature>();
    check::<lookalike::SuperShingles>();
    check::<lookalike::Fingerprint>();
    check::<lookalike::Banding>();
}

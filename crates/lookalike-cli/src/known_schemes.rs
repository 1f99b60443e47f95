//! Features of a scheme that a file names only by its id.

use lookalike::scheme::{Case, HtmlMode, Scheme, SchemeId, Shingle, Sketch, Weight};

/// Maximum length of shingles with which a scheme is recognized.
const MAX_SHINGLE: u8 = 10;

/// Returns the shingle of a scheme that differs from that of `lookalike fingerprint` only in the shingle, the sketch, and at most one other option.
pub(crate) fn shingle_of(id: SchemeId, sketch: Sketch) -> Option<Shingle> {
    let runs =
        (1..=MAX_SHINGLE).flat_map(|width| ["words", "chars"].map(|of| format!("{of}:{width}")));
    let mut shingles = runs.filter_map(|text| text.parse::<Shingle>().ok());
    // An id is a hash, so it can only be compared with those of likely schemes.
    shingles.find(|&shingle| {
        let base = Scheme::default().shingle(shingle).sketch(sketch);
        common_variants(base).any(|scheme| scheme.id() == id)
    })
}

/// Returns a scheme, and its variants with one more option that is often used.
fn common_variants(base: Scheme) -> impl Iterator<Item = Scheme> {
    let weights = [Weight::Set, Weight::Tf, Weight::LogTf].map(|weight| base.weight(weight));
    // The mode is part of every scheme, whether or not a document is HTML.
    let modes = HtmlMode::ALL.map(|mode| {
        let mut html = base.html;
        html.mode = mode;
        base.html(html)
    });
    let cases = [base.case(Case::Keep)];
    weights.into_iter().chain(modes).chain(cases)
}

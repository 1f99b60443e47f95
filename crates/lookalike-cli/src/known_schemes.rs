//! Features of a scheme that a file names by its id.

use lookalike::scheme::{Case, HtmlMode, Scheme, SchemeId, Shingle, Sketch, Weight};

/// Longest runs by which a scheme is known.
const LONGEST: u8 = 10;

/// The features of a scheme that differs from the one of `lookalike fingerprint` in these, the sketch, and one other option at most.
pub(crate) fn shingle_of(id: SchemeId, sketch: Sketch) -> Option<Shingle> {
    let runs = (1..=LONGEST).flat_map(|width| ["words", "chars"].map(|of| format!("{of}:{width}")));
    let mut shingles = runs.filter_map(|text| text.parse::<Shingle>().ok());
    // An id is a hash: it can only be compared with those of schemes that are likely.
    shingles.find(|&shingle| {
        let base = Scheme::default().shingle(shingle).sketch(sketch);
        likely(base).any(|scheme| scheme.id() == id)
    })
}

/// A scheme, and those with one more option that is often given.
fn likely(base: Scheme) -> impl Iterator<Item = Scheme> {
    let weights = [Weight::Set, Weight::Tf, Weight::LogTf].map(|weight| base.weight(weight));
    let modes = HtmlMode::ALL.map(|mode| {
        let mut html = base.html;
        html.mode = mode;
        base.html(html)
    });
    let cases = [base.case(Case::Keep)];
    weights.into_iter().chain(modes).chain(cases)
}

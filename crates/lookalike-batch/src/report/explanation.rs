//! Renders the page of `explain`. Style, formatter and policy are the report's; there is no script.

use minijinja::{Value, context};

use super::cluster::ExampleView;
use super::data::ReportExample;
use super::page::{STYLE, environment};
use super::{ReportError, serialized, statement};
use crate::explain::{Explanation, FeatureListing, FingerprintComparison};

const TEMPLATE: &str = concat!(include_str!("head.html"), include_str!("explanation.html"));
/// Styles added to those of the report. [`POLICY`] contains its hash.
pub(super) const OWN_STYLE: &str = include_str!("explanation.css");
/// Content security policy: allows the styles, and no script.
pub(super) const POLICY: &str = concat!(
    "default-src 'none'; ",
    "style-src ",
    style_hash!(),
    " 'sha256-Fztds3CHZvBRiyAIMwahitLpHHYkNtLd611XAH8p6i4='; ",
    "img-src data:; base-uri 'none'; form-action 'none'",
);

/// Renders the page of an explanation and of the two texts that it explains.
///
/// # Errors
/// [`ReportError::Template`] if the built-in template fails, which no data should cause.
pub fn render_explanation(
    explanation: &Explanation,
    texts: [&str; 2],
    command: &str,
) -> Result<String, ReportError> {
    let environment = environment("explanation.html", TEMPLATE)?;
    let example = ReportExample {
        a_id: explanation.a.clone(),
        b_id: explanation.b.clone(),
        a_text: texts[0].to_owned(),
        b_text: texts[1].to_owned(),
        similarity: explanation.resemblance,
        cut: false,
        whole_pages: explanation.equal_main_text,
    };
    let kind = |name: &str, all: &FeatureListing| {
        context! { name => name, all => serialized(all), listed => all.listed.len() }
    };
    let kinds = [
        kind("In both", &explanation.shared_features),
        kind("In the first only", &explanation.only_a),
        kind("In the second only", &explanation.only_b),
    ];
    let page = environment.get_template("explanation.html")?;
    Ok(page.render(context! {
        policy => Value::from_safe_string(POLICY.to_owned()),
        style => Value::from_safe_string(STYLE.to_owned()),
        own_style => Value::from_safe_string(OWN_STYLE.to_owned()),
        version => env!("CARGO_PKG_VERSION"),
        title => "Two documents explained - lookalike",
        command => command,
        e => serialized(explanation),
        verdict => explanation.verdict(),
        found => explanation.found_sentence(),
        chance => explanation.found.chance.map(|chance| format!("{chance:.6}")),
        agreeing_bands => explanation.minhash.as_ref().map(|both| both.agreeing_bands.len()),
        groups => explanation.super_shingles.as_ref().map(|both| both.groups.len()),
        bits => explanation.simhash.as_ref().map(bit_rows),
        kinds => kinds,
        units => statement::units(&explanation.scheme),
        // As in a diff from the first to the second text: neither is kept or removed here.
        diff => serialized(ExampleView::new(&example, ["del", "ins"])),
    })?)
}

/// Returns both fingerprints as groups of eight bits, with the differing bits marked.
fn bit_rows(both: &FingerprintComparison) -> Vec<Value> {
    let row = |name, digits: &str| {
        let bits = digits.chars().flat_map(|digit| {
            let value = digit.to_digit(16).unwrap_or_default();
            (0..4).rev().map(move |bit| value >> bit & 1)
        });
        let bits: Vec<u32> = bits.collect();
        let group = |(number, group): (usize, &[u32])| {
            let mut html = String::new();
            for (at, bit) in group.iter().enumerate() {
                // Digits and `differing` both begin at the most significant bit.
                let place = (8 * number + at) as u32;
                match both.differing.binary_search(&place) {
                    Ok(_) => html.push_str(&format!("<mark>{bit}</mark>")),
                    Err(_) => html.push_str(&bit.to_string()),
                }
            }
            Value::from_safe_string(html)
        };
        let groups: Vec<Value> = bits.chunks(8).enumerate().map(group).collect();
        context! { name => name, groups => groups }
    };
    vec![row("first", &both.a), row("second", &both.b)]
}

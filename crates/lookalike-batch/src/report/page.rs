//! Fills the template of the page. All values pass one formatter.

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, Output, State, Value, context, escape_formatter};

use super::cluster::{below_threshold_view, cluster_view};
use super::data::{InputRow, ReportData};
use super::{ReportError, chart, figure, results, serialized, statement, visible};
use crate::dedup::summary::DedupSummary;
use crate::skipped::SkippedRow;

const TEMPLATE: &str = concat!(include_str!("head.html"), include_str!("template.html"));
/// Style of the page. [`POLICY`] contains its hash.
pub(super) const STYLE: &str = include_str!("page.css");
/// Script of the page. [`POLICY`] contains its hash.
pub(super) const SCRIPT: &str = include_str!("page.js");
/// Content security policy: allows nothing but the style and the script above.
pub(super) const POLICY: &str = concat!(
    "default-src 'none'; ",
    "style-src ",
    style_hash!(),
    "; ",
    "script-src 'sha256-i/nFGSPOO2PsaB5Tvu3uUr+qCmOxjp4qh2o3sr3VPts='; ",
    "img-src data:; base-uri 'none'; form-action 'none'",
);

/// Renders the report page of a job whose results have these names.
///
/// The page depends on the arguments alone. At most [`ReportData::MAX_INPUTS`] inputs and [`ReportData::MAX_CLUSTERS`] of the largest clusters are listed; it states
/// how many are left out. The time is linear in the number of inputs, plus one bounded alignment for each cluster
/// ([`side_by_side`](super::diff::side_by_side)).
///
/// # Errors
/// [`ReportError::Template`] if the built-in template fails, which no data should cause.
pub(crate) fn render(
    summary: &DedupSummary,
    data: &ReportData,
    names: &[String],
) -> Result<String, ReportError> {
    let environment = environment("report.html", TEMPLATE)?;
    let page = environment.get_template("report.html")?;
    let (counts, sample) = (&summary.counts, &summary.below_threshold);
    Ok(page.render(context! {
        policy => Value::from_safe_string(POLICY.to_owned()),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        version => summary.version,
        title => format!("{} - lookalike report", data.title),
        s => serialized(summary),
        d => serialized(data),
        records => counts.records(),
        input_bytes => counts.input_bytes - counts.against_bytes,
        text_bytes => counts.text_bytes - counts.against_text_bytes,
        threads => summary.limits.workers(),
        results => serialized(results::results(names)),
        skips => skips(summary),
        says => sentences(summary),
        plots => plots(summary, data),
        inputs => inputs(&data.inputs),
        clusters => clusters(data),
        closest => data.closest.iter().map(below_threshold_view).collect::<Vec<_>>(),
        kept_below => data.below.iter().sum::<u64>(),
        sampled_below => sample.sampled < sample.texts,
        shown => data.largest.len().min(ReportData::MAX_CLUSTERS),
        least_similar => data.least_similar.len(),
    })?)
}

/// Writes a value: text with markup escaped and hidden characters made visible, safe strings unchanged.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        // Safe strings are markup of this program: styles, scripts, drawings, and rows whose texts were escaped when they were made.
        Some(text) if value.kind() == ValueKind::String && !value.is_safe() => {
            let mut html = String::with_capacity(text.len());
            visible::push_value(&mut html, text);
            Ok(out.write_str(&html)?)
        }
        _ => escape_formatter(out, state, value),
    }
}

/// Returns an environment with the filters of all pages and a template.
pub(super) fn environment(
    name: &'static str,
    template: &'static str,
) -> Result<Environment<'static>, Error> {
    // Without the built-in filters: a template can use only those below, and none that would mark a text as safe.
    let mut environment = Environment::empty();
    environment.set_formatter(format);
    environment.add_filter("count", figure::count);
    environment.add_filter("bytes", figure::bytes);
    environment.add_filter("seconds", figure::seconds);
    environment.add_filter("share", figure::share);
    environment.add_filter("similarity", figure::similarity);
    environment.add_filter("threshold", figure::threshold);
    environment.add_filter("length", |list: Value| list.len().unwrap_or(0) as u64);
    environment.add_filter("plain", |text: &str| visible::plain(text));
    environment.add_filter("bar", |part: f64, whole: f64| {
        // All parts may be zero, such as stages too short to be measured.
        let share = if whole > 0.0 { part / whole } else { 0.0 };
        Value::from_safe_string(chart::bar(share.clamp(0.0, 1.0)))
    });
    environment.add_template(name, template)?;
    Ok(environment)
}

fn sentences(summary: &DedupSummary) -> Value {
    context! {
        headline => statement::headline(summary),
        advice => statement::advice(summary),
        definition => statement::definition(summary),
        method => statement::method(summary),
        verification => statement::verification(summary),
        recall => statement::recall(summary),
        caveats => statement::caveats(summary),
    }
}

/// Lists the skipped parts, first those that lost documents.
fn skips(summary: &DedupSummary) -> Vec<Value> {
    let (lost, others): (Vec<_>, Vec<_>) = summary.skipped.iter().partition(|row| row.is_loss());
    let view = |row: &SkippedRow| {
        context! {
            reason => results::reason(&row.kind),
            row => serialized(row),
            lost => row.is_loss(),
        }
    };
    lost.into_iter().chain(others).map(view).collect()
}

/// Returns the drawings; those that are SVG are safe strings.
fn plots(summary: &DedupSummary, data: &ReportData) -> Value {
    let (decisions, stages) = (&summary.decisions, &summary.measured.stages);
    let part = |value| figure::ratio(value, summary.counts.records());
    let stacked = chart::stacked(&[
        ("kept", part(decisions.kept)),
        ("exact", part(decisions.removed_exact)),
        ("near", part(decisions.removed_near)),
    ]);
    let (bins, from) = match data.below.is_empty() {
        true => (data.similarities.clone(), data.similarity_from),
        false => (
            // Both have bins of one width and meet at the threshold, so they make one histogram.
            [&data.below[..], &data.similarities].concat(),
            summary.below_threshold.from,
        ),
    };
    context! {
        stacked => Value::from_safe_string(stacked),
        histogram => serialized(chart::histogram(&bins, from, data.below.len())),
        most_clusters => data.cluster_sizes.iter().map(|bucket| bucket.1).max().unwrap_or(0),
        wall => stages.iter().map(|stage| stage.1).sum::<f64>(),
        cpu => stages.iter().map(|stage| stage.2).sum::<f64>(),
        longest => stages.iter().map(|stage| stage.1).fold(0.0, f64::max),
    }
}

/// Returns the inputs that are listed, and the totals of the others.
fn inputs(inputs: &[InputRow]) -> Value {
    let (listed, rest) = inputs.split_at(inputs.len().min(ReportData::MAX_INPUTS));
    let mut rest_sum = InputRow::default();
    for input in rest {
        rest_sum.records = rest_sum.records.saturating_add(input.records);
        rest_sum.bytes = rest_sum.bytes.saturating_add(input.bytes);
        rest_sum.removed = rest_sum.removed.saturating_add(input.removed);
    }
    context! { listed => serialized(listed), rest => rest.len(), rest_sum => serialized(rest_sum) }
}

fn clusters(data: &ReportData) -> Vec<Value> {
    let shown = data.largest.iter().take(ReportData::MAX_CLUSTERS);
    let shown = shown.chain(&data.least_similar);
    shown.map(cluster_view).collect()
}

//! The page of `lookalike index info --page`: plots of the distribution of a collection, in one self-contained file.

use std::fmt::Write;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};

use super::findings::{Distribution, IndexInfo, SketchIndexInfo, shortened};
use crate::console::{bytes_each, counted, counted_sketches, grouped, sanitized};
use crate::failure::Failure;
use crate::size::show;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// Explanation of the columns of tables and bands.
const CANDIDATES: &str = "Candidates are the entries that a search compares; beside them stands what they would be if entries were spread evenly. \
    The nearer the two, the faster are searches.";

/// Renders the page. Without a distribution, it has no plots.
pub(super) fn render(info: &IndexInfo) -> Result<String, Failure> {
    let summary = format!(
        "{} of {} bits, {} distinct. {} ({}, {}) for distances up to {}; {}{}. Scheme {}.",
        counted(info.documents, "fingerprint"),
        info.bits,
        grouped(info.fingerprints),
        counted(info.tables as u64, "table"),
        info.design,
        info.layout,
        info.distance,
        show(info.bytes),
        bytes_each(info.bytes_per_fingerprint, info.fingerprints),
        info.scheme_id.as_deref().unwrap_or("unknown"),
    );
    let plot = |draw: fn(&Distribution) -> String| {
        let drawn = info.distribution.as_ref().map(draw);
        drawn.map(Value::from_safe_string)
    };
    filled(context! {
        file => info.file.as_str(),
        distribution => Value::from(Serde(&info.distribution)),
        summary => summary,
        kind => "fingerprint",
        last_bit => info.distribution.as_ref().map(last_bit),
        gaps => plot(gaps),
        ranges => plot(ranges),
    })
}

/// Renders the page for an index of sketches.
pub(super) fn render_sketches(info: &SketchIndexInfo) -> Result<String, Failure> {
    let summary = format!(
        "{} of {}, {} distinct. {} for at least {} equal; {}, {:.2} bytes a sketch. Scheme {}.",
        counted_sketches(info.documents),
        info.equal.of,
        grouped(info.sketches),
        counted(info.bands as u64, "band"),
        info.equal.least,
        show(info.bytes),
        info.bytes_per_sketch,
        info.scheme_id.as_deref().unwrap_or("unknown"),
    );
    filled(context! {
        file => info.file.as_str(),
        distribution => Value::from(Serde(&info.distribution)),
        summary => summary,
        kind => "sketch",
    })
}

/// Fills the template.
fn filled(values: Value) -> Result<String, Failure> {
    let mut environment = Environment::empty();
    // The name of the file and the ids come from outside; only the style and the plots, which are made here, are inserted as they are.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("count", grouped);
    environment.add_filter("short", shortened);
    environment.add_filter("mean", |value: f64| format!("{value:.2}"));
    // Escapes of HTML do not stop a character that reverses the text around it.
    environment.add_filter("plain", |text: &str| sanitized(text).into_owned());
    let page = environment.template_from_named_str("page", TEMPLATE);
    let page = page.and_then(|page| {
        page.render(context! {
            style => Value::from_safe_string(STYLE.to_owned()),
            candidates => CANDIDATES,
            ..values
        })
    });
    page.map_err(|error| Failure::Failed(error.to_string()))
}

fn last_bit(distribution: &Distribution) -> usize {
    distribution.leading_gaps.len().saturating_sub(1)
}

/// Draws the numbers of neighbours by the highest bit in which they differ.
fn gaps(distribution: &Distribution) -> String {
    // The chart counts from the left, bits from the right.
    let last = last_bit(distribution);
    // The highest bit first, as numbers are written.
    let seen = distribution.leading_gaps.iter().rev();
    let even: Vec<f64> = distribution.expected_gaps.iter().rev().copied().collect();
    chart(
        ["fingerprints", "highest bit in which neighbours differ"],
        &seen.map(|&count| count as f64).collect::<Vec<_>>(),
        &even,
        &|at| (last - at).to_string(),
    )
}

/// Draws the numbers of fingerprints in each range of values.
fn ranges(distribution: &Distribution) -> String {
    let ranges = distribution.ranges.iter();
    let ranges: Vec<f64> = ranges.map(|&count| count as f64).collect();
    let share = ranges.iter().sum::<f64>() / ranges.len().max(1) as f64;
    let even = vec![share; ranges.len()];
    let names = ["fingerprints", "range of the space, from the lowest"];
    chart(names, &ranges, &even, &|at| at.to_string())
}

/// Returns a chart of bars with a line over them, and two axes with names and numbers. It scrolls if the screen is too narrow.
fn chart(
    [y_name, x_name]: [&str; 2],
    bars: &[f64],
    line: &[f64],
    label: &dyn Fn(usize) -> String,
) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 220.0;
    /// Space for the numbers next to and below the bars.
    const LEFT: f64 = 84.0;
    const BELOW: f64 = 40.0;
    const ABOVE: f64 = 38.0;
    // At least 1: the scale divides by it, and an empty index has only zeros.
    let most = round_up(bars.iter().chain(line).copied().fold(1.0, f64::max));
    let step = (WIDTH - LEFT - 12.0) / bars.len().max(1) as f64;
    let x = |at: usize| LEFT + at as f64 * step;
    let y = |value: f64| HEIGHT * (1.0 - value / most);
    let mut svg = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Plot: {y_name} by {x_name}\"><svg viewBox=\"0 -{ABOVE} {WIDTH} {}\" role=\"img\" aria-label=\"Bars: {y_name} by {x_name}\"><text x=\"8\" y=\"-20\">{y_name}</text><text x=\"{LEFT}\" y=\"{}\">{x_name}</text>",
        HEIGHT + ABOVE + BELOW,
        HEIGHT + 34.0,
    );
    for part in [0.0, 0.5, 1.0] {
        let (at, count) = (y(most * part), most * part);
        // Half of a maximum of 1 is not a number of fingerprints.
        if count.fract() == 0.0 {
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                at + 4.0,
                grouped(count as u64)
            );
        }
    }
    for (at, &value) in bars.iter().enumerate() {
        // More than twice the expected number; with few fingerprints, that is chance.
        let class = if value > 2.0 * line[at] && value > 16.0 {
            "spike"
        } else {
            "seen"
        };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}: {}</title></rect>",
            x(at) + 0.5,
            y(value),
            (step - 1.0).max(0.5),
            HEIGHT - y(value),
            label(at),
            grouped(value as u64)
        );
        // Every eighth label, and the last.
        if at % (bars.len() / 8).max(1) == 0 || at + 1 == bars.len() {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                x(at) + step / 2.0,
                HEIGHT + 16.0,
                label(at)
            );
        }
    }
    let points = line
        .iter()
        .enumerate()
        .map(|(at, &value)| format!("{:.1},{:.1}", x(at) + step / 2.0, y(value)));
    let points: Vec<String> = points.collect();
    let _ = write!(
        svg,
        "<polyline class=\"even\" points=\"{}\"/></svg></div>",
        points.join(" "),
    );
    svg
}

/// Rounds up to a number of at most two digits whose half is easy to read.
fn round_up(value: f64) -> f64 {
    let mut power = 1.0;
    // The power of ten from which one of the steps below reaches the value.
    while value > power * 10.0 {
        power *= 10.0;
    }
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

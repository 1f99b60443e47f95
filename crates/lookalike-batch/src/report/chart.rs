//! Draws the plots as SVG with widths in percent, so that they fit a phone without scaling their text.
//!
//! Every plot is accompanied by its numbers as text or a table, so the drawing is hidden from screen readers.

use std::fmt::Write;

use minijinja::Value;
use serde::Serialize;

use super::figure;

/// Height of the histogram's plot area in CSS pixels.
const PLOT_HEIGHT: f64 = 160.0;
/// Minimum width or height of a bar that is not empty, in its unit.
const MIN_BAR_LENGTH: f64 = 0.4;

/// Draws a bar of adjacent segments, each given by its class and its share of the width.
pub(super) fn stacked(segments: &[(&str, f64)]) -> String {
    let mut svg = String::from("<svg class=\"stack\" aria-hidden=\"true\">");
    let mut x = 0.0;
    for (class, part) in segments.iter().filter(|segment| segment.1 > 0.0) {
        let width = (part * 100.0).max(MIN_BAR_LENGTH);
        // Writing to a string never fails.
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.3}%\" width=\"{width:.3}%\" height=\"100%\"/>"
        );
        x += width;
    }
    svg.push_str("</svg>");
    svg
}

/// Draws a bar that fills a share of the width.
pub(super) fn bar(part: f64) -> String {
    let width = if part > 0.0 {
        (part * 100.0).max(MIN_BAR_LENGTH)
    } else {
        0.0
    };
    format!(
        "<svg class=\"bar\" aria-hidden=\"true\"><rect width=\"{width:.3}%\" height=\"100%\"/></svg>"
    )
}

/// A histogram: the drawing, the labels of its axes, and its numbers.
#[derive(Debug, Serialize)]
pub(super) struct Histogram {
    /// Inline SVG, a safe string.
    pub(super) svg: Value,
    /// Labels of the count axis, top to bottom.
    pub(super) y_labels: Vec<String>,
    /// Labels of the value axis, left to right, evenly spaced.
    pub(super) x_labels: Vec<String>,
    /// The bins that are not empty.
    pub(super) rows: Vec<HistogramRow>,
}

/// One bin of a histogram.
#[derive(Debug, Serialize)]
pub(super) struct HistogramRow {
    pub(super) range: String,
    pub(super) count: u64,
    /// True if it is below the threshold.
    pub(super) is_below: bool,
}

/// Draws bins of equal width from `from` to 1, the first `below` of which lie below the threshold. Returns `None` if all bins are empty.
pub(super) fn histogram(bins: &[u64], from: f64, below: usize) -> Option<Histogram> {
    let top = round_up(*bins.iter().max()?);
    if top == 0 {
        return None;
    }
    let edge = |bin: usize| from + (1.0 - from) * bin as f64 / bins.len() as f64;
    let range = |bin: usize| {
        format!(
            "{} to {}",
            figure::bin_end(edge(bin)),
            figure::bin_end(edge(bin + 1))
        )
    };
    let filled = bins.iter().enumerate().filter(|bin| *bin.1 > 0);
    let row = |(bin, &count): (usize, &u64)| HistogramRow {
        range: range(bin),
        count,
        is_below: bin < below,
    };
    // Ten bins below the threshold and twenty above put it at a third of the width.
    let steps = if bins.len().is_multiple_of(3) { 3 } else { 4 };
    let label = |step: usize| figure::bin_end(from + (1.0 - from) * step as f64 / steps as f64);
    Some(Histogram {
        svg: Value::from_safe_string(columns(bins, below, top, range)),
        y_labels: y_labels(top),
        x_labels: (0..=steps).map(label).collect(),
        rows: filled.map(row).collect(),
    })
}

/// Returns labels for the top, the middle and the bottom. The middle stays empty if it is not a whole number.
fn y_labels(top: u64) -> Vec<String> {
    let middle = if top.is_multiple_of(2) {
        figure::count(top / 2)
    } else {
        String::new()
    };
    vec![figure::count(top), middle, "0".to_owned()]
}

/// Draws the columns of a histogram over three horizontal lines, with a vertical line at the threshold.
fn columns(bins: &[u64], below: usize, top: u64, range: impl Fn(usize) -> String) -> String {
    let mut svg = format!("<svg class=\"hist\" height=\"{PLOT_HEIGHT}\" aria-hidden=\"true\">");
    // Half a pixel inside, so that lines at the edges are not cut in half.
    for y in [0.5, PLOT_HEIGHT / 2.0, PLOT_HEIGHT - 0.5] {
        let _ = write!(svg, "<line x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    let step = 100.0 / bins.len() as f64;
    for (bin, &count) in bins.iter().enumerate().filter(|bin| *bin.1 > 0) {
        // A minimum height keeps one pair visible next to thousands.
        let height = (PLOT_HEIGHT * figure::ratio(count, top)).max(1.5);
        let class = if bin < below { " class=\"below\"" } else { "" };
        let _ = write!(
            svg,
            "<rect{class} x=\"{:.3}%\" y=\"{:.2}\" width=\"{:.3}%\" height=\"{height:.2}\"><title>{}: {}</title></rect>",
            // Bars take 84 percent of a step, so 8 percent are free on either side.
            (bin as f64 + 0.08) * step,
            PLOT_HEIGHT - height,
            0.84 * step,
            range(bin),
            figure::count(count),
        );
    }
    if below > 0 {
        let x = below as f64 * step;
        let _ = write!(
            svg,
            "<line class=\"threshold\" x1=\"{x:.3}%\" x2=\"{x:.3}%\" y1=\"0\" y2=\"100%\"/>"
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Rounds up to 1, 2, 4, 5, 6, 8 or 10 times a power of ten.
fn round_up(value: u64) -> u64 {
    let mut power: u64 = 1;
    while value > power.saturating_mul(10) {
        power = power.saturating_mul(10);
    }
    let steps = [1, 2, 4, 5, 6, 8, 10].map(|step| power.saturating_mul(step));
    if value == 0 {
        0
    } else {
        steps
            .into_iter()
            .find(|step| *step >= value)
            // Only near the largest number, where the steps saturate.
            .unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_axis_holds_its_largest_value_and_at_most_twice_that(value in prop_oneof![0..1000_u64, any::<u64>()]) {
            let top = round_up(value);
            prop_assert!(top >= value);
            prop_assert!(top / 2 <= value);
        }

        #[test]
        fn a_histogram_counts_what_it_is_given(
            bins in prop::collection::vec(0..5_u64, 1..31),
            below in 0..31_usize,
        ) {
            let below = below.min(bins.len());
            let Some(histogram) = histogram(&bins, 0.5, below) else {
                prop_assert!(bins.iter().all(|&count| count == 0));
                return Ok(());
            };
            let filled: Vec<(bool, u64)> = (0..).zip(&bins).filter(|bin| *bin.1 > 0).map(|(bin, &count)| (bin < below, count)).collect();
            let rows: Vec<(bool, u64)> = histogram.rows.iter().map(|row| (row.is_below, row.count)).collect();
            prop_assert_eq!(histogram.svg.to_string().matches("<rect").count(), filled.len());
            prop_assert_eq!(rows, filled);
        }
    }
}

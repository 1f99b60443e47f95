//! Line plots of precision and recall over cuts, as inline SVG.

use std::fmt::Write;

use crate::curve::ScoreCurve;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 40.0;
/// Room for half of the last label of the axis.
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
/// Maximum number of labels on the axis of the cuts.
const LABELS: usize = 13;

/// Draws precision and recall over the points of a curve, with their confidence limits as bands. The axis of the cuts has the name `x_name` and the
/// labels `x_labels`.
pub(crate) fn precision_and_recall(
    curve: &ScoreCurve,
    x_name: &str,
    x_labels: &[String],
) -> String {
    let count = curve.points.len();
    // A single point is drawn at the left end; without the maximum this would divide by 0.
    let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / (count.max(2) - 1) as f64;
    let y = |share: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share);
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"precision and recall over cuts\"><text x=\"4\" y=\"14\">share</text><text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{x_name}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (at, right) = (y(share), WIDTH - RIGHT);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{share}</text>",
            LEFT - 5.0,
            at + 3.5
        );
    }
    let every = count.div_ceil(LABELS).max(1);
    for (number, at) in (0..x_labels.len()).step_by(every).enumerate() {
        // On narrow screens letters are larger, so every second label is hidden.
        let class = if number % 2 == 1 {
            " class=\"roomy\""
        } else {
            ""
        };
        let _ = write!(
            svg,
            "<text{class} x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(at),
            HEIGHT - BOTTOM + 15.0,
            x_labels[at]
        );
    }
    // If no pair is found, precision is undefined and not drawn.
    let found = || {
        curve
            .points
            .iter()
            .enumerate()
            .filter(|entry| entry.1.found > 0)
    };
    let precision: Vec<_> = found().map(|(at, p)| (x(at), p.precision)).collect();
    let recall: Vec<_> = curve
        .points
        .iter()
        .enumerate()
        .map(|(at, p)| (x(at), p.recall))
        .collect();
    // Precision last, so that its line is on top.
    for (class, points) in [("recall", recall), ("precision", precision)] {
        // The band is one polygon: along the upper limits, and back along the lower ones.
        let upper = points.iter().map(|(x, e)| (*x, y(e.high)));
        let lower = points.iter().rev().map(|(x, e)| (*x, y(e.low)));
        let _ = write!(
            svg,
            "<polygon class=\"{class}\" points=\"{}\"/>",
            path(upper.chain(lower))
        );
        let line = path(points.iter().map(|(x, e)| (*x, y(e.value))));
        let _ = write!(svg, "<polyline class=\"{class}\" points=\"{line}\"/>");
    }
    svg.push_str("</svg>");
    svg
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    points
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect::<Vec<_>>()
        .join(" ")
}

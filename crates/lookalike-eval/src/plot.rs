//! Line plots as inline SVG: precision and recall over cuts.

use std::fmt::Write;

use crate::curve::Curve;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 40.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 28.0;

/// Precision and recall over the points of a curve, with their limits of confidence as bands.
pub(crate) fn precision_and_recall(curve: &Curve, x_labels: &[String]) -> String {
    let count = curve.points.len();
    let x = |at: usize| LEFT + (WIDTH - LEFT - 10.0) * at as f64 / (count.max(2) - 1) as f64;
    let y = |share: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share);
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"precision and recall over cuts\">"
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (at, right) = (y(share), WIDTH - 10.0);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{share}</text>",
            LEFT - 5.0,
            at + 3.5
        );
    }
    let every = count.div_ceil(13).max(1);
    for (at, label) in x_labels.iter().enumerate().step_by(every) {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            x(at),
            HEIGHT - 10.0
        );
    }
    // Where nothing is found there is no precision to draw.
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
    for (class, points) in [("recall", recall), ("precision", precision)] {
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

//! The page of `lookalike index info --html`: the distribution of a collection (M9) as plots, in one file that loads
//! nothing.

use std::fmt::Write;

use super::info::{Distribution, Info};
use crate::console::grouped;
use crate::size::show;

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin-top:2rem}.wide{overflow-x:auto}\
svg{width:100%;min-width:36rem;height:auto;background:#f7f7f9}\
line{stroke:#ddd}.seen{fill:#3566a8}.even{fill:none;stroke:#d1662b;stroke-width:2}.spike{fill:#b3261e}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
td,th{padding:.2rem .6rem;text-align:right;vertical-align:top;border-bottom:1px solid #ddd}td.t,th.t{text-align:left}\
td.ids{min-width:14rem;overflow-wrap:anywhere}code,td.label{white-space:nowrap}\
text{font:13px system-ui,sans-serif;fill:#555}.key{color:#555}\
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}svg{background:#1f2228}td,th{border-color:#333}\
line{stroke:#333}text{fill:#aaa}.key{color:#aaa}.seen{fill:#7aa7e0}.spike{fill:#ff7a6b}}";

/// The page; an info without distribution has no plots.
pub(super) fn render(info: &Info) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{file}</title><style>{STYLE}</style>\n<h1>{file}</h1>\n<p>{} fingerprints of {} bits, {} of them \
         different. {} tables ({}, {}) answer distances up to {}; {}, {:.2} bytes a fingerprint. Scheme {}.</p>\n",
        grouped(info.documents),
        info.bits,
        grouped(info.fingerprints),
        info.tables,
        escaped(&info.design),
        info.layout,
        info.distance,
        show(info.bytes),
        info.bytes_per_fingerprint,
        info.scheme_id.as_deref().unwrap_or("unknown"),
        file = escaped(&info.file),
    );
    if let Some(distribution) = &info.distribution {
        plots(&mut page, distribution);
    }
    page.push_str("</html>\n");
    page
}

fn plots(page: &mut String, distribution: &Distribution) {
    page.push_str("<h2>Where neighbours first differ</h2>\n<p class=\"key\">Fingerprints in sorted order: how many differ from the \
        one before first in this bit (63 is the highest). The line is what evenly spread fingerprints would show; more \
        at low bits means clusters.</p>\n");
    let top_first = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let seen: Vec<f64> = distribution
        .leading_gaps
        .iter()
        .map(|&count| count as f64)
        .collect();
    let last = seen.len().saturating_sub(1);
    page.push_str(&chart(
        ["fingerprints", "highest bit in which neighbours differ"],
        &top_first(&seen),
        &top_first(&distribution.expected_gaps),
        &|at| (last - at).to_string(),
    ));
    page.push_str("<h2>128 equal ranges</h2>\n<p class=\"key\">How many fingerprints lie in each part of the space; the line is an \
        even share. Spikes are often empty pages, error pages and templates.</p>\n");
    let ranges: Vec<f64> = distribution
        .ranges
        .iter()
        .map(|&count| count as f64)
        .collect();
    let share = ranges.iter().sum::<f64>() / ranges.len().max(1) as f64;
    let even = vec![share; ranges.len()];
    let names = ["fingerprints", "range of the space, from the lowest"];
    page.push_str(&chart(names, &ranges, &even, &|at| at.to_string()));
    let spikes = distribution.spikes.iter().map(|spike| {
        let range = format!("{}: {}", spike.range, grouped(spike.count));
        (Some(range), &spike.commonest)
    });
    rows(page, "Spikes and their commonest fingerprints", spikes);
    let repeated = distribution
        .repeated
        .iter()
        .map(|repeated| (None, repeated));
    rows(page, "Most repeated", repeated);
    page.push_str("<h2>Tables</h2>\n<div class=\"wide\"><table><tr><th>table<th>key bits<th>errors forgiven<th>address bits<th>candidates a probe\
        <th>if even<th>fullest bucket</tr>\n");
    for (at, table) in (1..).zip(&distribution.tables) {
        let _ = writeln!(
            page,
            "<tr><td>{at}<td>{}<td>{}<td>{}<td>{:.2}<td>{:.2}<td>{}</tr>",
            table.key_bits,
            table.budget,
            table.address_bits,
            table.observed_candidates,
            table.expected_candidates,
            grouped(table.fullest_bucket as u64)
        );
    }
    page.push_str("</table></div>\n");
}

/// A table of fingerprints, with the range of each where they have one; nothing when there are none.
fn rows<'a>(
    page: &mut String,
    title: &str,
    all: impl Iterator<Item = (Option<String>, &'a super::info::Repeated)>,
) {
    let mut all = all.peekable();
    let Some((label, _)) = all.peek() else {
        return;
    };
    let head = label.as_ref().map_or("", |_| "<th class=\"t\">range");
    let _ = writeln!(
        page,
        "<h2>{title}</h2>\n<div class=\"wide\"><table><tr>{head}<th class=\"t\">fingerprint<th>copies<th class=\"t\">such as</tr>"
    );
    for (label, repeated) in all {
        let label = label.map(|label| format!("<td class=\"t label\">{label}"));
        let ids: Vec<String> = repeated.ids.iter().map(|id| escaped(id)).collect();
        let _ = writeln!(
            page,
            "<tr>{}<td class=\"t\"><code>{}</code><td>{}<td class=\"t ids\">{}</tr>",
            label.unwrap_or_default(),
            repeated.fingerprint,
            grouped(repeated.copies),
            ids.join("<br>")
        );
    }
    page.push_str("</table></div>\n");
}

/// Bars with a line over them, and two axes with names and numbers; scrolled where the screen is too narrow to read them.
fn chart(
    [y_name, x_name]: [&str; 2],
    bars: &[f64],
    line: &[f64],
    label: &dyn Fn(usize) -> String,
) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 220.0;
    /// Room for the numbers beside and below the bars.
    const LEFT: f64 = 84.0;
    const BELOW: f64 = 40.0;
    const ABOVE: f64 = 38.0;
    let most = round_up(bars.iter().chain(line).copied().fold(1.0, f64::max));
    let step = (WIDTH - LEFT - 12.0) / bars.len().max(1) as f64;
    let x = |at: usize| LEFT + at as f64 * step;
    let y = |value: f64| HEIGHT * (1.0 - value / most);
    let mut svg = format!(
        "<div class=\"wide\"><svg viewBox=\"0 -{ABOVE} {WIDTH} {}\" role=\"img\" aria-label=\"Bars: {y_name} by {x_name}\"><text x=\"8\" y=\"-20\">{y_name}</text><text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{x_name}</text>",
        HEIGHT + ABOVE + BELOW,
        (LEFT + WIDTH) / 2.0,
        HEIGHT + 34.0,
    );
    for part in [0.0, 0.5, 1.0] {
        let (at, count) = (y(most * part), most * part);
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
        // Every eighth, and the last.
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
    let _ = writeln!(
        svg,
        "<polyline class=\"even\" points=\"{}\"/></svg></div>",
        points.join(" "),
    );
    svg
}

/// The next number of two digits at most whose half is easy to read.
fn round_up(value: f64) -> f64 {
    let mut power = 1.0;
    while value > power * 10.0 {
        power *= 10.0;
    }
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

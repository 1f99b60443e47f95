//! The page of `lookalike index info --html`: plots of the distribution of a collection, in one self-contained file.

use std::fmt::Write;

use super::findings::{
    Distribution, IndexInfo, RepeatedFingerprints, SketchDistribution, SketchIndexInfo,
};
use crate::console::{bytes_each, counted, counted_sketches, grouped, sanitized};
use crate::size::show;

const STYLE: &str = include_str!("page.css");

/// Renders the page. Without a distribution, it has no plots.
pub(super) fn render(info: &IndexInfo) -> String {
    let mut body = String::new();
    if let Some(distribution) = &info.distribution {
        plots(&mut body, distribution);
    }
    framed(&info.file, &summary(info), &body)
}

/// Renders the page for an index of sketches.
pub(super) fn render_sketches(info: &SketchIndexInfo) -> String {
    let summary = format!(
        "{} of {}, {} distinct. {} for at least {} equal; {}, {:.2} bytes a sketch. Scheme {}.",
        counted_sketches(info.documents),
        info.equal.of,
        grouped(info.sketches),
        counted(info.bands as u64, "band"),
        info.equal.least,
        show(info.bytes),
        info.bytes_per_sketch,
        escaped(info.scheme_id.as_deref().unwrap_or("unknown")),
    );
    let mut body = String::new();
    if let Some(distribution) = &info.distribution {
        bands(&mut body, distribution);
        let repeated = distribution.repeated.iter().map(|repeated| RepeatedRow {
            range: None,
            digits: repeated.shortened(),
            copies: repeated.copies,
            ids: &repeated.ids,
        });
        rows(&mut body, "Most repeated", "sketch", repeated);
    }
    framed(&info.file, &summary, &body)
}

fn framed(file: &str, summary: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{file} - lookalike index</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1 dir=\"auto\">{file}</h1>\n<p>{summary}</p>\n{body}</main>\n</body>\n</html>\n",
        file = escaped(file),
    )
}

/// Writes the candidates of each band.
fn bands(page: &mut String, distribution: &SketchDistribution) {
    page.push_str("<h2>Bands</h2>\n");
    page.push_str(CANDIDATES);
    let heads = [
        "band",
        "places",
        "candidates per query",
        "if evenly spread",
        "fullest bucket",
    ];
    open_table(page, "Bands", &heads.map(|head| (head, "")));
    for (at, band) in (1..).zip(&distribution.bands) {
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{at}</th><td>{}</td><td>{:.2}</td><td>{:.2}</td><td>{}</td></tr>",
            band.places,
            band.observed_candidates,
            band.expected_candidates,
            grouped(band.fullest_bucket as u64)
        );
    }
    page.push_str(CLOSE_TABLE);
}

fn summary(info: &IndexInfo) -> String {
    format!(
        "{} of {} bits, {} distinct. {} ({}, {}) for distances up to {}; {}{}. \
         Scheme {}.",
        counted(info.documents, "fingerprint"),
        info.bits,
        grouped(info.fingerprints),
        counted(info.tables as u64, "table"),
        escaped(&info.design),
        info.layout,
        info.distance,
        show(info.bytes),
        bytes_each(info.bytes_per_fingerprint, info.fingerprints),
        escaped(info.scheme_id.as_deref().unwrap_or("unknown")),
    )
}

fn plots(page: &mut String, distribution: &Distribution) {
    // The chart counts from the left, bits from the right.
    let last = distribution.leading_gaps.len().saturating_sub(1);
    let _ = writeln!(
        page,
        "<h2>Where neighbours first differ</h2>\n<p class=\"key\">Sorted fingerprints by the highest bit in which each \
         differs from the one before it ({last} is the highest). The line shows evenly spread fingerprints; more at low bits \
         means clusters.</p>"
    );
    // The highest bit first, as numbers are written.
    let top_first = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let seen: Vec<f64> = distribution
        .leading_gaps
        .iter()
        .map(|&count| count as f64)
        .collect();
    page.push_str(&chart(
        ["fingerprints", "highest bit in which neighbours differ"],
        &top_first(&seen),
        &top_first(&distribution.expected_gaps),
        &|at| (last - at).to_string(),
    ));
    page.push_str("<h2>How evenly fingerprints are spread</h2>\n<p class=\"key\">Fingerprints in each of 128 equal ranges of all \
        values; the line is an even share. Bars of more than twice that are red: such spikes are often empty pages, error pages and \
        templates, and slow searches down.</p>\n");
    let ranges: Vec<f64> = distribution
        .ranges
        .iter()
        .map(|&count| count as f64)
        .collect();
    let share = ranges.iter().sum::<f64>() / ranges.len().max(1) as f64;
    let even = vec![share; ranges.len()];
    let names = ["fingerprints", "range of the space, from the lowest"];
    page.push_str(&chart(names, &ranges, &even, &|at| at.to_string()));
    let spikes = distribution.spikes.iter().map(|spike| RepeatedRow {
        range: Some((spike.range, spike.count)),
        ..RepeatedRow::of(&spike.commonest)
    });
    let title = "Spikes and their commonest fingerprints";
    rows(page, title, "fingerprint", spikes);
    let repeated = distribution.repeated.iter().map(RepeatedRow::of);
    rows(page, "Most repeated", "fingerprint", repeated);
    tables(page, distribution);
}

fn tables(page: &mut String, distribution: &Distribution) {
    page.push_str("<h2>Tables</h2>\n");
    page.push_str(CANDIDATES);
    let heads = [
        "table",
        "key bits",
        "errors tolerated",
        "address bits",
        "candidates per probe",
        "if evenly spread",
        "fullest bucket",
    ];
    open_table(page, "Tables", &heads.map(|head| (head, "")));
    for (at, table) in (1..).zip(&distribution.tables) {
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\">{at}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{:.2}</td><td>{}</td></tr>",
            table.key_bits,
            table.budget,
            table.address_bits,
            table.observed_candidates,
            table.expected_candidates,
            grouped(table.fullest_bucket as u64)
        );
    }
    page.push_str(CLOSE_TABLE);
}

/// Explanation of the columns of tables and bands.
const CANDIDATES: &str = "<p class=\"key\">Candidates are the entries that a search compares; beside them stands what they would be if \
    entries were spread evenly. The nearer the two, the faster are searches.</p>\n";
const CLOSE_TABLE: &str = "</tbody></table></div>\n";

/// Opens a table in a block that scrolls if the screen is too narrow. Each column has a heading and a class.
fn open_table(page: &mut String, name: &str, heads: &[(&str, &str)]) {
    let _ = write!(
        page,
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\"><table><thead><tr>"
    );
    for (head, class) in heads {
        let _ = write!(page, "<th scope=\"col\" class=\"{class}\">{head}</th>");
    }
    page.push_str("</tr></thead><tbody>\n");
}

/// A repeated fingerprint or sketch.
struct RepeatedRow<'a> {
    /// Its range, and the number of fingerprints in that range.
    range: Option<(usize, u64)>,
    digits: String,
    copies: u64,
    ids: &'a [String],
}

impl<'a> RepeatedRow<'a> {
    fn of(repeated: &'a RepeatedFingerprints) -> Self {
        Self {
            range: None,
            digits: repeated.fingerprint.clone(),
            copies: repeated.copies,
            ids: &repeated.ids,
        }
    }
}

/// Writes a table of repeated entries, with their ranges if known; nothing if there are none.
fn rows<'a>(
    page: &mut String,
    title: &str,
    name: &str,
    all: impl Iterator<Item = RepeatedRow<'a>>,
) {
    // The first row tells whether there is a column of ranges, and whether there is a table at all.
    let mut all = all.peekable();
    let Some(first) = all.peek() else {
        return;
    };
    let mut heads = vec![("range", ""), ("fingerprints", "")];
    if first.range.is_none() {
        heads.clear();
    }
    heads.extend([(name, "t"), ("copies", ""), ("such as", "t")]);
    let _ = writeln!(page, "<h2>{title}</h2>");
    open_table(page, title, &heads);
    for repeated in all {
        page.push_str("<tr>");
        if let Some((range, count)) = repeated.range {
            let _ = write!(page, "<td>{range}</td><td>{}</td>", grouped(count));
        }
        let ids = repeated
            .ids
            .iter()
            // Ids may be in any script; isolation prevents a right-to-left id from reordering its neighbours.
            .map(|id| format!("<bdi>{}</bdi>", escaped(id)));
        let _ = writeln!(
            page,
            "<th scope=\"row\" class=\"t\"><code>{}</code></th><td>{}</td><td class=\"t ids\">{}</td></tr>",
            repeated.digits,
            grouped(repeated.copies),
            ids.collect::<Vec<_>>().join("<br>")
        );
    }
    page.push_str(CLOSE_TABLE);
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
    let _ = writeln!(
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

/// Escapes a text for HTML. Characters that are invisible or reverse the direction of text become `\u{...}`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Sanitized first: escapes of HTML do not stop a character that reverses the text around it.
    for c in sanitized(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

//! Renders the page of the replication atlas. Style, formatter and policy are the report's; the tables are its own.

use std::collections::BTreeMap;
use std::fmt::Write;

use minijinja::{Value, context};
use serde::Serialize;

use super::page::{STYLE, environment};
use super::{ReportError, figure, serialized, visible};
use crate::overlap::AtlasSummary;

const TEMPLATE: &str = concat!(include_str!("head.html"), include_str!("atlas.html"));
/// Styles added to those of the report. [`POLICY`] contains its hash.
pub(super) const ATLAS_STYLE: &str = include_str!("atlas.css");
/// Script for sorting and search. [`POLICY`] contains its hash.
pub(super) const ATLAS_SCRIPT: &str = include_str!("atlas.js");
/// Content security policy: allows nothing but the styles and the script of the page.
pub(super) const POLICY: &str = concat!(
    "default-src 'none'; ",
    "style-src ",
    style_hash!(),
    " 'sha256-I4l3T5zXVPHeW+oYE/kV7GIf4gFl66baGRj9Pq3BBdA='; ",
    "script-src 'sha256-fvS49ahZRKF4ym0hdM96Zan5B0AcScrpjsMudBkU0CY='; ",
    "img-src data:; base-uri 'none'; form-action 'none'",
);

/// Everything that the page shows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AtlasPage<'a> {
    #[serde(skip)]
    pub(crate) summary: &'a AtlasSummary,
    /// Names of the servers on the map, and their numbers of documents.
    pub(crate) map_servers: Vec<&'a str>,
    pub(crate) map_documents: Vec<u64>,
    pub(crate) map: Vec<MapCell>,
    pub(crate) map_chunking: &'a str,
    /// Pairs of servers that share chunks, and the number of all.
    pub(crate) server_rows: Vec<Value>,
    pub(crate) all_server_rows: u64,
    /// Page sets that several servers hold.
    pub(crate) mirrors: Vec<Value>,
    /// Names of the same things.
    pub(crate) aliases: Vec<Value>,
    /// Names and values of the settings.
    pub(crate) settings: Vec<(String, String)>,
}

/// Cell of the map: the share of the chunks of the row's server that the column's server has.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct MapCell {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) share: f64,
}

/// Renders the page from `data` alone.
pub(crate) fn render(data: &AtlasPage<'_>) -> Result<String, ReportError> {
    let mut environment = environment("atlas.html", TEMPLATE)?;
    environment.add_filter("percent", |share: f64| {
        // Round down, so that 100.0% means all.
        format!("{:.1}%", (share * 1000.0).floor() / 10.0)
    });
    let page = environment.get_template("atlas.html")?;
    let summary = data.summary;
    let stages = &summary.measured.stages;
    let chunkings = summary.overlap.chunkings.iter();
    // Minimum number of shared chunks of each level; equal texts have none.
    let leasts: BTreeMap<_, _> = chunkings
        .map(|chunking| (&chunking.chunking, chunking.min_shared))
        .collect();
    Ok(page.render(context! {
        policy => Value::from_safe_string(POLICY.to_owned()),
        style => Value::from_safe_string(STYLE.to_owned()),
        own_style => Value::from_safe_string(ATLAS_STYLE.to_owned()),
        script => Value::from_safe_string(ATLAS_SCRIPT.to_owned()),
        version => summary.version,
        title => "Replication atlas - lookalike",
        s => serialized(summary),
        d => serialized(data),
        leasts => serialized(leasts),
        headline => headline(summary),
        ending => ending(data),
        map => Value::from_safe_string(map(data)),
        wall => stages.iter().map(|stage| stage.1).sum::<f64>(),
        cpu => stages.iter().map(|stage| stage.2).sum::<f64>(),
    })?)
}

/// Returns the file name extension of the result tables.
fn ending<'a>(data: &'a AtlasPage<'_>) -> &'a str {
    let format = data.settings.iter().find(|setting| setting.0 == "output");
    format.map_or("jsonl", |setting| &setting.1)
}

/// Uses the strictest count, because sharing some chunks, as the tables below count, does not make a copy.
fn headline(summary: &AtlasSummary) -> String {
    let pages = figure::count(summary.pages);
    match summary.skip {
        _ if summary.overlap.counts.documents == 0 => "No document was read.".to_owned(),
        0 => format!("None of {pages} pages is in another, or nearly so."),
        skip => format!(
            "Of {pages} pages {} ({}) need not be visited again: others have nearly all that is in them.",
            figure::count(skip),
            figure::share(skip, summary.pages),
        ),
    }
}

/// Spacing of the numbers on the axes.
const NUMBERED: usize = 5;

/// Draws the map of servers as a square of cells. A cell is darker the more of the row server's chunks the column server has. Both axes are numbered;
/// the list next to the map has the names.
fn map(data: &AtlasPage<'_>) -> String {
    let count = data.map_servers.len();
    if count < 2 {
        return String::new();
    }
    // Text is sized relative to the width, so that it looks the same for any number of servers.
    let unit = count as f64 / 100.0;
    let (middle, margin, rest) = (count as f64 / 2.0, 11.0 * unit, 2.0 * unit);
    let mut svg = format!(
        "<svg class=\"map\" viewBox=\"-{margin:.3} -{margin:.3} {whole:.3} {whole:.3}\" font-size=\"{size:.3}\" role=\"img\" aria-label=\"Map of servers: what share of the chunks of the server of the row the server of the column has\"><rect class=\"ground\" width=\"{count}\" height=\"{count}\"/><text x=\"{middle}\" y=\"-{far:.3}\" text-anchor=\"middle\">are on server no.</text><text transform=\"translate(-{far:.3} {middle}) rotate(-90)\" text-anchor=\"middle\">chunks of server no.</text>",
        whole = count as f64 + margin + rest,
        size = 3.4 * unit,
        far = 7.0 * unit,
    );
    for i in 0..count {
        // Writing to a string never fails.
        let _ = write!(
            svg,
            "<rect class=\"own\" x=\"{i}\" y=\"{i}\" width=\"1\" height=\"1\"/>"
        );
        let number = i + 1;
        // On a small map there is room for every number.
        if count <= 12 || i == 0 || number % NUMBERED == 0 {
            let middle = i as f64 + 0.5;
            let _ = write!(
                svg,
                "<text x=\"{middle:.3}\" y=\"-{gap:.3}\" text-anchor=\"middle\">{number}</text><text x=\"-{gap:.3}\" y=\"{middle:.3}\" text-anchor=\"end\" dominant-baseline=\"central\">{number}</text>",
                gap = 1.2 * unit,
            );
        }
    }
    for cell in &data.map {
        // Only pointer users see the title; the tables have the same data.
        let title = format!(
            "{:.1}% of {} is in {}",
            cell.share * 100.0,
            data.map_servers[cell.row],
            data.map_servers[cell.column]
        );
        let _ = write!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"1\" height=\"1\" fill-opacity=\"{:.3}\"><title>",
            cell.column,
            cell.row,
            // Keep small shares distinguishable from none.
            cell.share.max(0.04),
        );
        visible::push_html(&mut svg, &visible::plain(&title));
        svg.push_str("</title></rect>");
    }
    svg.push_str("</svg>");
    svg
}

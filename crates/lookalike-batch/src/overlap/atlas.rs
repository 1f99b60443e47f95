//! Collects the contents of `atlas.html` from the results.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use serde::Serialize;

use super::SharedCount;
use super::aliases::{AddressEvidence, ServerAlias, UrlAlias};
use super::atlas_summary::AtlasSummary;
use super::collection::OverlapDocuments;
use super::mirrors::{MirrorFinder, MirroredSet};
use crate::report::atlas::{AtlasPage, MapCell, render};
use crate::report::{ReportError, serialized};

/// Number of servers on the map: those with the most documents.
const MAPPED: usize = 40;
/// Maximum number of rows of each table on the page.
const LISTED: usize = 500;
/// Maximum number of servers or URLs that the page names for a page set or class of aliases.
const MAX_NAMED: usize = 8;

/// Rows of servers that the page shows.
pub(crate) struct ServerMap {
    documents: Vec<u64>,
    /// Place of each server on the map, by server number.
    places: BTreeMap<u32, usize>,
    cells: Vec<MapCell>,
    /// Rows of the last chunking: shared chunks and both containments.
    rows: Vec<(SharedCount, f64, f64)>,
    chunking: usize,
}

impl ServerMap {
    pub(crate) fn new(collection: &OverlapDocuments) -> Self {
        let servers = &collection.servers;
        let mut documents = vec![0; servers.names.len()];
        servers
            .of
            .iter()
            .flatten()
            .for_each(|&server| documents[server as usize] += 1);
        let mut largest: Vec<u32> = (0..documents.len() as u32).collect();
        largest.sort_by_key(|&server| (std::cmp::Reverse(documents[server as usize]), server));
        // In the order of names again, which is that of server numbers, so that rows and columns of the map are alphabetical.
        largest.truncate(MAPPED);
        largest.sort_unstable();
        let places = largest
            .into_iter()
            .enumerate()
            .map(|(place, server)| (server, place))
            .collect();
        Self {
            documents,
            places,
            cells: Vec::new(),
            rows: Vec::new(),
            chunking: 0,
        }
    }

    /// Takes a row of a chunking. Only rows of the last chunking are kept.
    pub(crate) fn row(&mut self, chunking: usize, row: SharedCount, sizes: &[u32]) {
        if chunking != self.chunking {
            self.chunking = chunking;
            self.cells.clear();
            self.rows.clear();
        }
        // A server in a row has at least one chunk, so this never divides by 0.
        let share = |server: u32| f64::from(row.shared) / f64::from(sizes[server as usize]);
        let (in_a, in_b) = (share(row.a), share(row.b));
        if let (Some(&a), Some(&b)) = (self.places.get(&row.a), self.places.get(&row.b)) {
            let cell = |row, column, share| MapCell { row, column, share };
            self.cells.extend([cell(a, b, in_a), cell(b, a, in_b)]);
        }
        self.rows.push((row, in_a, in_b));
        // Shorten only when 2,000 rows have gathered, so that each row costs only its share of a sort.
        if self.rows.len() >= 4 * LISTED {
            self.shorten();
        }
    }

    /// Keeps the most significant rows.
    fn shorten(&mut self) {
        let weight = |(row, a, b): &(SharedCount, f64, f64)| f64::from(row.shared) * a.max(*b);
        // Ties go to the earlier units, so that every run lists the same rows.
        self.rows.sort_by(|x, y| {
            weight(y)
                .total_cmp(&weight(x))
                .then((x.0.a, x.0.b).cmp(&(y.0.a, y.0.b)))
        });
        self.rows.truncate(LISTED);
    }
}

/// Number of all aliases, and those that the page shows: servers first, then URLs, as in the file of aliases.
pub(crate) struct ListedAliases {
    pub(crate) all: u64,
    rows: Vec<Value>,
}

impl ListedAliases {
    pub(crate) fn new(servers: &[ServerAlias]) -> Self {
        Self {
            all: servers.len() as u64,
            rows: servers.iter().take(LISTED).map(server_alias_row).collect(),
        }
    }

    pub(crate) fn add(&mut self, alias: &UrlAlias<'_>) {
        self.all += 1;
        if self.rows.len() < LISTED {
            let urls = &alias.urls;
            self.rows.push(alias_row("URL", urls, 1, urls.len() as u64));
        }
    }
}

/// Renders the page.
pub(crate) fn page(
    summary: &AtlasSummary,
    mirrors: &MirrorFinder,
    aliases: ListedAliases,
    mut map: ServerMap,
    collection: &OverlapDocuments,
) -> Result<String, ReportError> {
    // Rows that came after the last shortening are not sorted yet.
    map.shorten();
    let name = |server: u32| collection.servers.names[server as usize].as_str();
    let server_row = |(row, in_a, in_b): &(SharedCount, f64, f64)| {
        context! {
            a => name(row.a),
            b => name(row.b),
            shared => row.shared,
            containment_a => *in_a,
            containment_b => *in_b,
        }
    };
    let mapped = || map.places.keys().copied();
    let chunking = summary.overlap.chunkings.get(map.chunking);
    render(&AtlasPage {
        summary,
        map_servers: mapped().map(name).collect(),
        map_documents: mapped()
            .map(|server| map.documents[server as usize])
            .collect(),
        map_chunking: chunking.map_or("", |chunking| &chunking.chunking),
        server_rows: map.rows.iter().map(server_row).collect(),
        all_server_rows: summary.server_rows.get(map.chunking).copied().unwrap_or(0),
        map: map.cells.clone(),
        mirrors: mirrors.sets.iter().take(LISTED).map(mirror_row).collect(),
        aliases: aliases.rows,
        settings: settings(&summary.settings),
    })
}

/// Parses the names and values of a line of settings.
fn settings(line: &str) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for word in line.split(' ') {
        match (word.split_once('='), settings.last_mut()) {
            (Some((name, value)), _) => settings.push((name.to_owned(), value.to_owned())),
            // A word without `=` continues a value that contains spaces. Words before the first name are the command.
            (None, Some(last)) => last.1 = format!("{} {word}", last.1),
            (None, None) => {}
        }
    }
    settings
}

fn mirror_row(set: &MirroredSet) -> Value {
    let approximate = set.approximate.iter().map(|server| &server.server);
    let servers = set.core.iter().chain(approximate).take(MAX_NAMED);
    let named: Vec<&str> = servers.map(String::as_str).collect();
    context! {
        set => serialized(set),
        // Mean share of the pages that a server holds. A set has at least one page and two servers.
        held => set.held as f64 / (set.pages * set.servers) as f64,
        unnamed => set.servers - named.len() as u64,
        named => named.join(", "),
    }
}

fn server_alias_row(alias: &ServerAlias) -> Value {
    let kind = match alias.address {
        AddressEvidence::Same => "server, same address",
        AddressEvidence::Unknown => "server",
    };
    let shared = alias.shared.iter().copied().min().unwrap_or_default();
    // The first server has the most pages, and the others were compared with it.
    alias_row(kind, &alias.servers, shared, alias.pages[0])
}

/// Returns a row of names of the same thing: all have `shared` of the `of` pages of the first.
fn alias_row(kind: &str, names: &[impl Serialize], shared: u64, of: u64) -> Value {
    let (named, unnamed) = names.split_at(names.len().min(MAX_NAMED));
    context! {
        kind => kind,
        names => serialized(named),
        unnamed => unnamed.len(),
        shared => shared,
        of => of,
    }
}

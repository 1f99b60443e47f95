//! Places of documents: their paths on servers, by which pages and aliases are distinguished.

use lookalike_corpus::host;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::OverlapDocuments;
use super::server_name::ServerName;
use crate::spill::table_column::TableColumn;

/// A document's server and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerPath {
    pub(super) server: u32,
    /// Hash of the path. `None` if the document has no path.
    pub(super) path: Option<u64>,
}

/// Places of the documents of every set of equal texts.
///
/// Memory: 40 bytes for each document with a server.
pub(crate) struct DocumentPlaces {
    starts: TableColumn<u32>,
    /// Servers and paths of each set, ascending.
    paths: TableColumn<ServerPath>,
    /// Hashes of the last two components of the paths of each set, ascending.
    ends: TableColumn<u64>,
}

impl DocumentPlaces {
    pub(crate) fn new(collection: &OverlapDocuments, name: &ServerName) -> Self {
        let mut places = Self {
            starts: TableColumn::with_capacity(collection.exact.len() + 1),
            paths: TableColumn::new(),
            ends: TableColumn::new(),
        };
        places.starts.push(0);
        for set in 0..collection.exact.len() as u32 {
            let start = places.paths.len();
            for &document in collection.exact.members(set) {
                let Some(server) = collection.servers.of[document as usize] else {
                    continue;
                };
                let path = path_of(collection, document, name);
                places.paths.push(ServerPath {
                    server,
                    path: path.map(|path| xxh3_64(path.as_bytes())),
                });
                places
                    .ends
                    .push(path.map_or(0, |path| xxh3_64(last_parts(path).as_bytes())));
            }
            places.paths[start..].sort_unstable();
            // Sort ends separately from paths: they are looked up independently, each by binary search.
            places.ends[start..].sort_unstable();
            places.starts.push(places.paths.len() as u32);
        }
        places
    }

    /// Returns the servers and paths of a set, ascending.
    pub(super) fn of(&self, set: u32) -> &[ServerPath] {
        &self.paths[self.range(set)]
    }

    fn range(&self, set: u32) -> std::ops::Range<usize> {
        self.starts[set as usize] as usize..self.starts[set as usize + 1] as usize
    }

    /// Returns hashes of the last directory and the name of each path of a set, ascending; 0 for no path.
    pub(super) fn ends(&self, set: u32) -> &[u64] {
        &self.ends[self.range(set)]
    }

    /// Tells whether any paths of two sets end alike, in the last directory and the name.
    pub(super) fn end_in_same_path(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.ends(a), self.ends(b));
        let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
        few.iter()
            // Zero means no path, and matches nothing.
            .any(|end| *end != 0 && many.binary_search(end).is_ok())
    }

    /// Tells whether a server has both sets at different paths, so that they are two of its pages.
    pub(super) fn share_a_server(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.of(a), self.of(b));
        let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
        few.chunk_by(|x, y| x.server == y.server).any(|here| {
            let server = here[0].server;
            let from = many.partition_point(|other| other.server < server);
            let end = from + many[from..].partition_point(|other| other.server == server);
            let there = &many[from..end];
            // A common path is one page that changed, and without a path two documents may be the same page; only different paths prove two pages.
            let apart = |place: &ServerPath| place.path.is_some() && !here.contains(place);
            !there.is_empty()
                && here.iter().all(|place| place.path.is_some())
                && there.iter().all(apart)
        })
    }
}

/// Returns the path of a document on its server: that of its URL or, if the first components of ids name servers, the rest of its id.
fn path_of<'a>(
    collection: &'a OverlapDocuments,
    document: u32,
    name: &ServerName,
) -> Option<&'a str> {
    if let ServerName::Path(depth) = name {
        return Some(below(collection.documents.given_id(document), *depth));
    }
    collection.url(document).and_then(path_of_url)
}

/// Returns the path and query of a URL.
fn path_of_url(url: &str) -> Option<&str> {
    host(url)?;
    let (_, rest) = url.split_once("://")?;
    let start = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A fragment names a part of a page, not another page.
    let path = rest[start..].split('#').next().unwrap_or_default();
    // The root may be written without its slash, before a query too.
    Some(match path {
        "" => "/",
        _ if path.starts_with("/?") => &path[1..],
        _ => path,
    })
}

/// Returns a path without its first `depth` components.
fn below(path: &str, depth: usize) -> &str {
    let mut rest = path;
    for _ in 0..depth {
        while let Some(shorter) = rest.strip_prefix('/').or_else(|| rest.strip_prefix("./")) {
            rest = shorter;
        }
        rest = rest.find('/').map_or("", |slash| &rest[slash + 1..]);
    }
    rest
}

/// Returns the last directory of a path and the name in it.
fn last_parts(path: &str) -> &str {
    let path = path.trim_start_matches('/');
    match path.rmatch_indices('/').nth(1) {
        Some((slash, _)) => &path[slash + 1..],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_without_its_slash_before_a_query_was_another_path() {
        for path in ["", "?x", "?x=/y"] {
            let [with, without] =
                ["/", ""].map(|slash| format!("http://a.example{slash}{path}#top"));
            assert_eq!(path_of_url(&with), path_of_url(&without), "{path}");
        }
    }

    #[test]
    fn paths_of_urls_and_ids() {
        for (url, path) in [
            (
                "http://a.example/manual/1.html?x=2#top",
                Some("/manual/1.html?x=2"),
            ),
            ("http://a.example", Some("/")),
            ("no url", None),
        ] {
            assert_eq!(path_of_url(url), path, "{url}");
        }
        assert_eq!(below("/srv/./docs/a/b.html", 2), "a/b.html");
        assert_eq!(below("docs", 2), "");
        assert_eq!(last_parts("/mirror/manual/1.html"), "manual/1.html");
        assert_eq!(last_parts("/1.html"), "1.html");
        assert_eq!(last_parts("/"), "");
    }
}

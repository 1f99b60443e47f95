//! Finds names of the same thing (Shivakumar and Garcia-Molina 1998, section 3): servers with the same pages at the same paths, and URLs of one
//! server with equal texts.
//!
//! A mirror has the pages of another server too. It differs from an alias in its paths, and in its addresses where these are known: an alias has an
//! address in common with the other server.

use std::cmp::Reverse;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::OverlapDocuments;
use super::places::DocumentPlaces;
use super::similar_lists::{FittingList, SimilarLists};
use crate::spill::table_column::TableColumn;

/// Minimum share of the larger server's pages that two servers must have in common to be aliases.
const ALIAS: f64 = 0.9;

/// Servers with the same pages at the same paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename = "server")]
pub(crate) struct ServerAlias {
    /// Names of the servers: first the one with the most pages, which the others were compared with, then the others in order.
    pub(crate) servers: Vec<String>,
    /// Number of pages of each server, by path; near-copies at the same path count once.
    pub(crate) pages: Vec<u64>,
    /// Number of these pages that the first server has at the same path.
    pub(crate) shared: Vec<u64>,
    /// Evidence from their addresses.
    pub(crate) address: AddressEvidence,
}

/// URLs of one server with equal texts.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "url")]
pub(crate) struct UrlAlias<'a> {
    /// Name of the server.
    server: &'a str,
    /// The URLs, in order.
    pub(crate) urls: TableColumn<&'a str>,
}

/// Evidence from addresses that servers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AddressEvidence {
    /// All have an address in common with the first server.
    Same,
    /// The address of the first server, or of another one, is unknown.
    Unknown,
}

/// Aliases, and the number of servers that were excluded by their addresses.
#[derive(Default)]
pub(super) struct AliasClasses {
    pub(super) aliases: Vec<ServerAlias>,
    /// Number of servers that would be aliases by pages and paths but are mirrors by their addresses.
    pub(super) apart_by_address: u64,
}

/// A growing class: members with their number of pages and of pages in common with the first member.
struct AliasClass {
    members: Vec<(u32, u64, u64)>,
    evidence: AddressEvidence,
}

/// Returns classes of servers with at least `least` common pages, ordered by the name of the first member. `leaders` gives the page of each set of
/// equal texts.
pub(super) fn server_aliases(
    collection: &OverlapDocuments,
    places: &DocumentPlaces,
    leaders: &[u32],
    least: u32,
) -> AliasClasses {
    let held = pages_of_servers(places, leaders);
    let mut servers: Vec<&[(u32, u32)]> = held
        .chunk_by(|a, b| a.0 == b.0)
        // A server with fewer pages cannot share enough.
        .filter(|pages| pages.len() >= least as usize)
        .collect();
    // Sort the largest first: a server is then only compared with servers of at least as many pages, so the share is of the larger one.
    servers.sort_by_key(|held| (Reverse(held.len()), held[0].0));
    // Holds the first server of each class only: others are compared with that one, so classes do not drift.
    let mut firsts = SimilarLists::new(ALIAS);
    let mut classes: Vec<AliasClass> = Vec::new();
    let mut apart_by_address = 0;
    let mut pages = Vec::new();
    for held in servers {
        let server = held[0].0;
        pages.clear();
        pages.extend(held.iter().map(|&(_, page)| page));
        let evidence = |fit: &FittingList| {
            let first = classes[fit.number as usize].members[0].0;
            evidence(&collection.servers.addresses, first, server)
        };
        let mut fitting = firsts.fitting_lists(&pages);
        fitting.retain(|fit| fit.shared >= least as usize);
        let by_pages = !fitting.is_empty();
        // If all addresses are known and none is common, the server is not an alias: a mirror has the same pages too.
        let possible = fitting
            .into_iter()
            .filter_map(|fit| Some((evidence(&fit)?, fit)));
        // Of equally good classes the first one wins, which does not depend on threads.
        let best = possible.reduce(|x, y| if y.1.is_better(&x.1) { y } else { x });
        let all = pages.len() as u64;
        match best {
            Some((evidence, fit)) => {
                let class = &mut classes[fit.number as usize];
                class.members.push((server, all, fit.shared as u64));
                // One unknown address makes the whole class less certain.
                if evidence == AddressEvidence::Unknown {
                    class.evidence = evidence;
                }
            }
            None => {
                // Its pages fitted a class, so only the addresses kept it apart.
                apart_by_address += u64::from(by_pages);
                firsts.push(&pages);
                classes.push(AliasClass {
                    members: vec![(server, all, all)],
                    evidence: AddressEvidence::Same,
                });
            }
        }
    }
    classes.retain(|class| class.members.len() > 1);
    // Servers are numbered by name, so this is the order of names.
    classes.sort_by_key(|class| class.members[0].0);
    AliasClasses {
        aliases: classes
            .into_iter()
            .map(|class| class.describe(collection))
            .collect(),
        apart_by_address,
    }
}

/// Returns the evidence that two servers are the same, or `None` if all their addresses differ.
fn evidence(addresses: &[Vec<String>], a: u32, b: u32) -> Option<AddressEvidence> {
    let (a, b) = (&addresses[a as usize], &addresses[b as usize]);
    match () {
        () if a.is_empty() || b.is_empty() => Some(AddressEvidence::Unknown),
        // The addresses of a server ascend, since they come from an ordered set.
        () if a.iter().any(|address| b.binary_search(address).is_ok()) => {
            Some(AddressEvidence::Same)
        }
        () => None,
    }
}

/// Returns the pages of each server, by path, as ranks. Pages on few servers have the lowest ranks.
fn pages_of_servers(places: &DocumentPlaces, leaders: &[u32]) -> TableColumn<(u32, u32)> {
    let mut held: TableColumn<(u64, u32)> = TableColumn::new();
    for (set, &leader) in leaders.iter().enumerate() {
        held.extend(places.of(set as u32).iter().map(|place| {
            // Pages without a path count as the same page if their texts are equal.
            let path = place.path.unwrap_or_default();
            let page = xxh3_64(bytemuck::bytes_of(&[u64::from(leader), path]));
            (page, place.server)
        }));
    }
    held.sort_unstable();
    // Near-copies at the same path are one page.
    held.dedup();
    // For each page, the number of its servers and where they start.
    let mut pages: TableColumn<(u32, u32)> = TableColumn::new();
    let mut start = 0;
    for page in held.chunk_by(|a, b| a.0 == b.0) {
        pages.push((page.len() as u32, start));
        start += page.len() as u32;
    }
    // `SimilarLists` looks up the first items of a list, and rare pages lead to few servers.
    pages.sort_unstable();
    let mut of_servers: TableColumn<(u32, u32)> = TableColumn::with_capacity(held.len());
    for (rank, &(servers, start)) in (0..).zip(pages.iter()) {
        let servers = &held[start as usize..][..servers as usize];
        of_servers.extend(servers.iter().map(|&(_, server)| (server, rank)));
    }
    of_servers.sort_unstable();
    of_servers
}

impl AliasClass {
    fn describe(mut self, collection: &OverlapDocuments) -> ServerAlias {
        // The first member stays first, since the others were compared with it.
        self.members[1..].sort_unstable();
        let members = self.members.iter();
        ServerAlias {
            servers: members
                .clone()
                .map(|member| collection.servers.names[member.0 as usize].clone())
                .collect(),
            pages: members.clone().map(|member| member.1).collect(),
            shared: members.map(|member| member.2).collect(),
            address: self.evidence,
        }
    }
}

/// Returns the URLs of one server with equal texts, in the order of the sets and servers. They are found while they are read, because all of them
/// may be as many as the documents.
pub(super) fn url_aliases(collection: &OverlapDocuments) -> impl Iterator<Item = UrlAlias<'_>> {
    let sets = collection.exact.repeated();
    sets.flat_map(|set| url_aliases_of(collection, set))
}

/// Returns the URLs of one server among the documents of a set, in the order of the servers.
fn url_aliases_of(collection: &OverlapDocuments, set: u32) -> Vec<UrlAlias<'_>> {
    let members = collection.exact.members(set).iter();
    let mut urls: TableColumn<(u32, &str)> = members
        .filter_map(|&document| {
            Some((
                collection.servers.of[document as usize]?,
                collection.page(document),
            ))
        })
        .collect();
    urls.sort_unstable();
    // Documents with the same URL are one page.
    urls.dedup();
    let of_servers = urls.chunk_by(|a, b| a.0 == b.0);
    let same_server = of_servers.filter(|same| same.len() > 1);
    same_server
        .map(|same| UrlAlias {
            server: &collection.servers.names[same[0].0 as usize],
            urls: same.iter().map(|&(_, url)| url).collect(),
        })
        .collect()
}

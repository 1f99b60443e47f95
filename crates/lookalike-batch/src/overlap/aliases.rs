//! Finds names of the same thing (Shivakumar and Garcia-Molina 1998, section 3): servers with the same pages at the same paths, and URLs of one
//! server with equal texts.
//!
//! A mirror has the pages of another server too. It differs from an alias in its paths, and in its addresses where these are known: an alias has an
//! address in common with the other server.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::OverlapDocuments;
use super::places::DocumentPlaces;
use super::similar_lists::{FittingList, SimilarLists, VisitedLists};
use crate::parallel::map_parallel_limited;
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

/// First servers of classes, with a search for the class of a server. Others are compared with the first only, so classes do not drift.
struct FirstServers<'a> {
    /// Addresses of all servers.
    addresses: &'a [Vec<String>],
    /// Minimum number of common pages.
    least: usize,
    /// Different lists of pages of first servers.
    lists: SimilarLists,
    /// Numbers of these lists by hash.
    by_hash: HashMap<u64, u32>,
    /// Classes whose first server has each list.
    classes: Vec<ClassesOfList<'a>>,
    /// Addresses of all first servers, and `None` if those of any are unknown.
    known: HashSet<Option<&'a str>>,
}

/// Classes whose first servers have the same pages.
struct ClassesOfList<'a> {
    /// The first of these classes.
    first: u32,
    /// The first of them for each address, and for unknown addresses.
    by_address: HashMap<Option<&'a str>, u32>,
}

/// Best class for a server.
#[derive(Clone, Copy, Default)]
struct FoundClass {
    /// The class, as the number of the fitting list, and what addresses say.
    best: Option<(FittingList, AddressEvidence)>,
    /// True if the pages fit any class, whatever the addresses.
    fits_by_pages: bool,
}

impl FoundClass {
    fn add(&mut self, fit: FittingList, evidence: AddressEvidence) {
        // Of equally good classes the first one wins, which does not depend on threads.
        if self.best.is_none_or(|(best, _)| fit.is_better(&best)) {
            self.best = Some((fit, evidence));
        }
    }

    /// Returns the better of both.
    fn or(mut self, other: Self) -> Self {
        self.fits_by_pages |= other.fits_by_pages;
        if let Some((fit, evidence)) = other.best {
            self.add(fit, evidence);
        }
        self
    }
}

impl<'a> FirstServers<'a> {
    fn new(addresses: &'a [Vec<String>], least: usize) -> Self {
        Self {
            addresses,
            least,
            lists: SimilarLists::new(ALIAS),
            by_hash: HashMap::new(),
            classes: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// Returns the addresses of a server; `None` stands for unknown ones.
    fn addresses_of(&self, server: u32) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
        let addresses = &self.addresses[server as usize];
        let unknown = addresses.is_empty().then_some(None);
        addresses
            .iter()
            .map(|address| Some(&**address))
            .chain(unknown)
    }

    /// Adds the first server of a class.
    fn push(&mut self, class: u32, server: u32, pages: &[u32]) {
        let hash = xxh3_64(bytemuck::cast_slice(pages));
        let known = self.by_hash.get(&hash).copied();
        // Mirrors often have the same pages. Their list is compared only once.
        let list = known.filter(|&list| self.lists.list(list) == pages);
        let list = list.unwrap_or_else(|| {
            self.classes.push(ClassesOfList {
                first: class,
                by_address: HashMap::new(),
            });
            self.lists.push(pages);
            self.classes.len() as u32 - 1
        });
        self.by_hash.insert(hash, list);
        for address in self.addresses_of(server) {
            self.known.insert(address);
            let by_address = &mut self.classes[list as usize].by_address;
            by_address.entry(address).or_insert(class);
        }
    }

    /// Returns the first class with this list of pages that the addresses of a server allow, and the evidence.
    fn allowed(&self, list: u32, server: u32) -> Option<(u32, AddressEvidence)> {
        let classes = &self.classes[list as usize];
        if self.addresses[server as usize].is_empty() {
            return Some((classes.first, AddressEvidence::Unknown));
        }
        let of = |address, evidence| Some((*classes.by_address.get(&address)?, evidence));
        let same = self
            .addresses_of(server)
            .filter_map(|address| of(address, AddressEvidence::Same));
        let all = same.chain(of(None, AddressEvidence::Unknown));
        all.min_by_key(|(class, _)| *class)
    }

    /// Searches for the class of a server.
    fn find(&self, server: u32, pages: &[u32], visited: &mut VisitedLists) -> FoundClass {
        let mut found = FoundClass::default();
        // Mirrors with addresses of their own are in no class: it is enough that one fits.
        let is_open = self.known.contains(&None)
            || self
                .addresses_of(server)
                .any(|address| address.is_none() || self.known.contains(&address));
        self.lists.visit_candidates(pages, visited, |list| {
            let allowed = if is_open {
                self.allowed(list, server)
            } else {
                None
            };
            // If all addresses are known and none is common, the server is not an alias: a mirror has the same pages too.
            if allowed.is_none() && found.fits_by_pages {
                return is_open;
            }
            let fit = self
                .lists
                .fit(list, pages)
                .filter(|fit| fit.shared >= self.least);
            found.fits_by_pages |= fit.is_some();
            if let (Some(fit), Some((number, evidence))) = (fit, allowed) {
                found.add(FittingList { number, ..fit }, evidence);
            }
            true
        });
        found
    }
}

/// Returns classes of servers with at least `least` common pages, ordered by the name of the first member. `leaders` gives the page of each set of
/// equal texts.
pub(super) fn server_aliases(
    collection: &OverlapDocuments,
    places: &DocumentPlaces,
    leaders: &[u32],
    least: u32,
    threads: usize,
) -> AliasClasses {
    let held = pages_of_servers(places, leaders);
    let mut servers: Vec<&[(u32, u32)]> = held
        .chunk_by(|a, b| a.0 == b.0)
        // A server with fewer pages cannot share enough.
        .filter(|pages| pages.len() >= least as usize)
        .collect();
    // Sort the largest first: a server is then only compared with servers of at least as many pages, so the share is of the larger one.
    servers.sort_by_key(|held| (Reverse(held.len()), held[0].0));
    let firsts = FirstServers::new(&collection.servers.addresses, least as usize);
    let (mut classes, apart_by_address) = classes_of(&servers, firsts, BLOCK, threads);
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

/// Number of servers that are compared with all earlier classes at the same time, and then with each other's on one thread.
const BLOCK: usize = 1024;

/// Divides servers, each given by its pages, into classes. Returns also the number of servers that only addresses kept apart. `firsts` is empty.
fn classes_of(
    servers: &[&[(u32, u32)]],
    mut firsts: FirstServers<'_>,
    block: usize,
    threads: usize,
) -> (Vec<AliasClass>, u64) {
    let pages_of = |held: &[(u32, u32)]| -> Vec<u32> { held.iter().map(|held| held.1).collect() };
    let mut classes: Vec<AliasClass> = Vec::new();
    let mut apart_by_address = 0;
    for block in servers.chunks(block) {
        let parts = block.chunks(block.len().div_ceil(threads));
        let found = map_parallel_limited(parts, threads, |part| -> Vec<FoundClass> {
            let mut visited = VisitedLists::default();
            let find = |held: &&[(u32, u32)]| firsts.find(held[0].0, &pages_of(held), &mut visited);
            part.iter().map(find).collect()
        });
        let mut of_block = FirstServers::new(firsts.addresses, firsts.least);
        let mut visited = VisitedLists::default();
        let mut new = Vec::new();
        for (held, earlier) in block.iter().zip(found.into_iter().flatten()) {
            let (server, pages) = (held[0].0, pages_of(held));
            let found = earlier.or(of_block.find(server, &pages, &mut visited));
            let all = pages.len() as u64;
            match found.best {
                Some((fit, evidence)) => {
                    let class = &mut classes[fit.number as usize];
                    class.members.push((server, all, fit.shared as u64));
                    // One unknown address makes the whole class less certain.
                    if evidence == AddressEvidence::Unknown {
                        class.evidence = evidence;
                    }
                }
                None => {
                    // If its pages fit a class, only the addresses keep it apart.
                    apart_by_address += u64::from(found.fits_by_pages);
                    of_block.push(classes.len() as u32, server, &pages);
                    new.push((classes.len() as u32, server, pages));
                    classes.push(AliasClass {
                        members: vec![(server, all, all)],
                        evidence: AddressEvidence::Same,
                    });
                }
            }
        }
        for (class, server, pages) in new {
            firsts.push(class, server, &pages);
        }
    }
    (classes, apart_by_address)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::similar_lists::is_share;
    use super::*;

    /// Members and evidence of each class, and the number of servers that only addresses kept apart.
    type Divided = (Vec<(Vec<(u32, u64, u64)>, AddressEvidence)>, u64);

    /// Compares each server with the first one of every earlier class.
    fn slowly(servers: &[&[(u32, u32)]], addresses: &[Vec<String>], least: usize) -> Divided {
        let mut firsts: Vec<(u32, BTreeSet<u32>)> = Vec::new();
        let (mut classes, mut apart): Divided = (Vec::new(), 0);
        for held in servers {
            let (server, all) = (held[0].0, held.len() as u64);
            let pages: BTreeSet<u32> = held.iter().map(|&(_, page)| page).collect();
            let mut fits = false;
            let mut best: Option<(f64, usize, AddressEvidence)> = None;
            for (class, (first, of_first)) in firsts.iter().enumerate() {
                let shared = pages.intersection(of_first).count();
                let longer = pages.len().max(of_first.len());
                if shared < least || !is_share(shared, longer, ALIAS) {
                    continue;
                }
                fits = true;
                let [own, other] = [server, *first].map(|server| &addresses[server as usize]);
                let evidence = match () {
                    () if own.is_empty() || other.is_empty() => AddressEvidence::Unknown,
                    () if own.iter().any(|address| other.contains(address)) => {
                        AddressEvidence::Same
                    }
                    () => continue,
                };
                let nearness = shared as f64 / pages.union(of_first).count() as f64;
                if best.is_none_or(|(most, ..)| nearness > most) {
                    best = Some((nearness, class, evidence));
                }
            }
            match best {
                Some((_, class, evidence)) => {
                    let shared = pages.intersection(&firsts[class].1).count() as u64;
                    classes[class].0.push((server, all, shared));
                    if evidence == AddressEvidence::Unknown {
                        classes[class].1 = evidence;
                    }
                }
                None => {
                    apart += u64::from(fits);
                    firsts.push((server, pages));
                    classes.push((vec![(server, all, all)], AddressEvidence::Same));
                }
            }
        }
        (classes, apart)
    }

    proptest! {
        #[test]
        fn classes_are_those_of_comparing_each_server_with_all_earlier_ones(
            servers in prop::collection::vec(
                (prop::collection::btree_set(0..22_u32, 0..4), prop::collection::btree_set("[a-d]", 0..3)),
                1..40,
            ),
            block in 1..50_usize,
            threads in 1..4_usize,
        ) {
            let pages = |(server, (missing, _)): (u32, &(BTreeSet<u32>, BTreeSet<String>))| -> Vec<(u32, u32)> {
                let pages = (0..22).filter(|page| !missing.contains(page));
                pages.map(|page| (server, page)).collect()
            };
            let lists: Vec<Vec<(u32, u32)>> = (0..).zip(&servers).map(pages).collect();
            let addresses: Vec<Vec<String>> = servers.iter().map(|(_, own)| own.iter().cloned().collect()).collect();
            let mut lists: Vec<&[(u32, u32)]> = lists.iter().map(Vec::as_slice).collect();
            lists.sort_by_key(|held| (Reverse(held.len()), held[0].0));
            let (classes, apart) = classes_of(&lists, FirstServers::new(&addresses, 5), block, threads);
            let classes = classes.into_iter().map(|class| (class.members, class.evidence)).collect();
            prop_assert_eq!((classes, apart), slowly(&lists, &addresses, 5));
        }
    }
}

//! Finds mirrors: page sets that nearly the same servers hold, and names of the same thing (Shivakumar and Garcia-Molina 1998, section 3).
//!
//! A *page* here is a family of near-copies, whatever their URLs ([`super::families`]). Its servers are those of all its documents.

use serde::Serialize;

use super::aliases::{ServerAlias, server_aliases};
use super::collection::OverlapDocuments;
use super::page_sets::{PageHoldings, PageSet, SetShares, page_sets};
use super::places::DocumentPlaces;
use crate::settings_error::{BoundedSetting, SettingsError};
use crate::spill::table_column::TableColumn;

/// Number of example pages listed for a mirrored set.
const EXAMPLES: usize = 3;

/// Settings of the search for mirrors and aliases.
#[derive(Clone, Copy, Debug)]
pub struct MirrorSettings {
    /// Minimum share of a set's servers that hold each of its pages, from 0.5 to 1.
    pub page_share: f64,
    /// Minimum share of a set's pages that each of its servers holds, from 0.5 to 1.
    pub server_share: f64,
    /// Minimum number of pages that servers must have at the same paths to be aliases.
    pub alias_pages: u32,
}

impl Default for MirrorSettings {
    fn default() -> Self {
        Self {
            page_share: 0.8,
            server_share: 0.8,
            alias_pages: 5,
        }
    }
}

impl MirrorSettings {
    /// Returns the settings as one line.
    pub(crate) fn canonical(&self) -> String {
        format!(
            "set-page-share={} set-server-share={} alias-pages={}",
            self.page_share, self.server_share, self.alias_pages
        )
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let shares = [
            (BoundedSetting::PageShare, self.page_share),
            (BoundedSetting::ServerShare, self.server_share),
        ];
        match shares
            .iter()
            .find(|(_, share)| !(0.5..=1.0).contains(share))
        {
            Some((setting, share)) => Err(setting.error(*share)),
            None => Ok(()),
        }
    }
}

/// A set of pages that nearly the same servers hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MirroredSet {
    /// Number of the set, from 1.
    pub set: u64,
    /// Number of pages; near-copies count once.
    pub pages: u64,
    /// Bytes of the texts of these pages.
    pub bytes: u64,
    /// Number of servers.
    pub servers: u64,
    /// Number of pages held, counted on every server.
    pub held: u64,
    /// Servers that hold all pages, in the order of their names.
    pub core: Vec<String>,
    /// Servers that lack some pages, in the order of their names.
    pub approximate: Vec<ApproximateServer>,
    /// URLs of the first pages of the set, each that of the document that represents its page.
    pub examples: Vec<String>,
}

/// A server that holds nearly all pages of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ApproximateServer {
    /// Its name.
    pub server: String,
    /// Share of the pages that it holds.
    pub share: f64,
}

/// A page of a set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct MirroredPage<'a> {
    set: u64,
    url: &'a str,
    servers: u32,
    share: f64,
}

/// Contents that servers have in common.
#[derive(Default)]
pub(crate) struct MirrorFinder {
    pub(crate) sets: Vec<MirroredSet>,
    pub(crate) server_aliases: Vec<ServerAlias>,
    /// Number of servers that are not aliases because their addresses differ.
    pub(crate) apart_by_address: u64,
    /// Pages of each set, with the number of its servers that hold each page.
    pages: Vec<Vec<(u32, u32)>>,
}

/// Finds mirrored sets, those that save most first, and aliases of servers. `leaders` gives the page of each set of equal texts.
pub(crate) fn mirrors(
    collection: &OverlapDocuments,
    places: &DocumentPlaces,
    leaders: &[u32],
    settings: MirrorSettings,
    threads: usize,
) -> MirrorFinder {
    let classes = server_aliases(collection, places, leaders, settings.alias_pages, threads);
    let shares = SetShares {
        page: settings.page_share,
        server: settings.server_share,
    };
    // Sorted already, those that save most first, so numbers of sets follow their order.
    let found = page_sets(holdings(places, leaders), shares);
    let describe = |(number, set): (u64, &PageSet)| describe(number, set, collection);
    MirrorFinder {
        sets: (1..).zip(&found).map(describe).collect(),
        server_aliases: classes.aliases,
        apart_by_address: classes.apart_by_address,
        pages: found.into_iter().map(|set| set.pages).collect(),
    }
}

/// Collects the servers of each page.
fn holdings(places: &DocumentPlaces, leaders: &[u32]) -> PageHoldings {
    let mut held: TableColumn<(u32, u32)> = TableColumn::new();
    for (set, &leader) in leaders.iter().enumerate() {
        held.extend(
            places
                .of(set as u32)
                .iter()
                .map(|place| (leader, place.server)),
        );
    }
    held.sort_unstable();
    // A server with several near-copies of a page holds it once.
    held.dedup();
    PageHoldings::new(&held)
}

fn describe(number: u64, set: &PageSet, collection: &OverlapDocuments) -> MirroredSet {
    let pages = set.pages.len() as u32;
    let name = |server: u32| collection.servers.names[server as usize].clone();
    let (core, others): (Vec<_>, Vec<_>) =
        set.servers.iter().partition(|&&(_, held)| held == pages);
    let approximate = others.into_iter().map(|(server, held)| ApproximateServer {
        server: name(server),
        share: f64::from(held) / f64::from(pages),
    });
    let lengths = set
        .pages
        .iter()
        .map(|&(page, _)| collection.length_of_set(page));
    let examples = set.pages.iter().take(EXAMPLES);
    MirroredSet {
        set: number,
        pages: pages.into(),
        bytes: lengths.sum(),
        servers: set.servers.len() as u64,
        held: set.servers.iter().map(|&(_, held)| u64::from(held)).sum(),
        core: core.into_iter().map(|(server, _)| name(server)).collect(),
        approximate: approximate.collect(),
        examples: examples
            .map(|&(page, _)| url(page, collection).to_owned())
            .collect(),
    }
}

/// Returns the URL of a page, which is that of the document that represents it.
fn url(page: u32, collection: &OverlapDocuments) -> &str {
    collection.page(collection.exact.members(page)[0])
}

impl MirrorFinder {
    /// Returns the pages of all sets, set by set.
    pub(crate) fn pages<'a>(
        &'a self,
        collection: &'a OverlapDocuments,
    ) -> impl Iterator<Item = MirroredPage<'a>> {
        self.sets
            .iter()
            .zip(&self.pages)
            .flat_map(move |(set, pages)| {
                pages.iter().map(move |&(page, servers)| MirroredPage {
                    set: set.set,
                    url: url(page, collection),
                    servers,
                    share: f64::from(servers) / set.servers as f64,
                })
            })
    }
}

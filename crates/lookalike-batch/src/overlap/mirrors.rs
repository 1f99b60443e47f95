//! Page sets that are held by the same servers, and servers and URLs that are names of the same thing (Shivakumar and Garcia-Molina 1998, section 3).
//!
//! Pages that overlap with one kept page are one *page* here, whatever their URLs: a family. The servers of a family are
//! those of all its documents. Families with the same list of servers are a mirrored set, as the manuals of table 2 of
//! the source, whose pages are found together on fifty or a hundred servers.

use std::collections::BTreeMap;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::OverlapDocuments;

/// Example pages that a mirrored set names.
const EXAMPLES: usize = 3;
/// Mirrored sets of more servers tell nothing of pairs of servers: their pairs are too many.
const MOST_SERVERS: usize = 300;
/// Least share of the pages of the larger of two servers, for which they may be one under two names.
const ALIAS: f64 = 0.9;

/// A set of pages that the same servers hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MirroredSet {
    /// Pages, near copies counted once.
    pub pages: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// The servers that hold them, in the order of their names.
    pub servers: Vec<String>,
    /// Some of the pages, by their smallest URLs.
    pub examples: Vec<String>,
}

/// Two names that seem to be names of the same thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NameAlias {
    /// Two servers with the same pages.
    Server {
        /// The smaller name.
        a: String,
        /// The larger name.
        b: String,
        /// Pages of `a`, near copies counted once.
        pages_a: u64,
        /// Pages of `b`.
        pages_b: u64,
        /// Pages that both have.
        shared: u64,
    },
    /// URLs of one server with equal text.
    Url {
        /// The server.
        server: String,
        /// The URLs, in order.
        urls: Vec<String>,
    },
}

/// Content that servers hold in common.
#[derive(Default)]
pub(crate) struct MirrorFinder {
    pub(crate) sets: Vec<MirroredSet>,
    pub(crate) aliases: Vec<NameAlias>,
}

/// Families with the servers that hold them.
struct MirrorFamilies {
    /// Family and server, each pair once, in order.
    held: Vec<(u32, u32)>,
}

impl MirrorFamilies {
    fn new(collection: &OverlapDocuments, leaders: &[u32]) -> Self {
        let mut held = Vec::new();
        for set in 0..leaders.len() as u32 {
            let servers = collection.exact.members(set).iter();
            let servers = servers.filter_map(|&document| collection.servers.of[document as usize]);
            held.extend(servers.map(|server| (leaders[set as usize], server)));
        }
        held.sort_unstable();
        held.dedup();
        Self { held }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &[(u32, u32)])> {
        self.held
            .chunk_by(|a, b| a.0 == b.0)
            .map(|list| (list[0].0, list))
    }
}

/// Mirrored sets, most saving first, and aliases.
pub(crate) fn mirrors(collection: &OverlapDocuments, leaders: &[u32]) -> MirrorFinder {
    let families = MirrorFamilies::new(collection, leaders);
    let groups = group(&families);
    let mut aliases = server_aliases(collection, &families, &groups);
    aliases.extend(url_aliases(collection));
    let mut sets: Vec<MirroredSet> = groups
        .into_values()
        .flatten()
        .filter(|group| group.servers.len() > 1)
        .map(|group| group.describe(collection))
        .collect();
    let saved = |set: &MirroredSet| set.pages * (set.servers.len() as u64 - 1);
    sets.sort_by(|x, y| {
        saved(y)
            .cmp(&saved(x))
            .then_with(|| (&x.servers, &x.examples).cmp(&(&y.servers, &y.examples)))
    });
    MirrorFinder { sets, aliases }
}

/// Families of one list of servers.
struct MirrorGroup {
    servers: Vec<u32>,
    families: Vec<u32>,
}

impl MirrorGroup {
    fn describe(&self, collection: &OverlapDocuments) -> MirroredSet {
        let name = |&server: &u32| collection.servers.names[server as usize].clone();
        let url = |&family: &u32| {
            collection
                .page(collection.exact.members(family)[0])
                .to_owned()
        };
        MirroredSet {
            pages: self.families.len() as u64,
            bytes: self
                .families
                .iter()
                .map(|&family| collection.length_of_set(family))
                .sum(),
            servers: self.servers.iter().map(name).collect(),
            examples: self.families.iter().take(EXAMPLES).map(url).collect(),
        }
    }
}

/// Families by the hash of their lists of servers; lists that share a hash stay apart.
fn group(families: &MirrorFamilies) -> BTreeMap<u64, Vec<MirrorGroup>> {
    let mut groups: BTreeMap<u64, Vec<MirrorGroup>> = BTreeMap::new();
    for (family, held) in families.iter() {
        let servers: Vec<u32> = held.iter().map(|&(_, server)| server).collect();
        let groups = groups
            .entry(xxh3_64(bytemuck::cast_slice(&servers)))
            .or_default();
        match groups.iter_mut().find(|group| group.servers == servers) {
            Some(group) => group.families.push(family),
            None => groups.push(MirrorGroup {
                servers,
                families: vec![family],
            }),
        }
    }
    groups
}

/// Pairs of servers that share nearly all pages of the larger one.
fn server_aliases(
    collection: &OverlapDocuments,
    families: &MirrorFamilies,
    groups: &BTreeMap<u64, Vec<MirrorGroup>>,
) -> Vec<NameAlias> {
    let mut pages = vec![0_u64; collection.servers.names.len()];
    families
        .held
        .iter()
        .for_each(|&(_, server)| pages[server as usize] += 1);
    let mut shared: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for group in groups
        .values()
        .flatten()
        .filter(|group| group.servers.len() <= MOST_SERVERS)
    {
        for (i, &a) in group.servers.iter().enumerate() {
            for &b in &group.servers[i + 1..] {
                *shared.entry((a, b)).or_default() += group.families.len() as u64;
            }
        }
    }
    let name = |server: u32| collection.servers.names[server as usize].clone();
    let alias = |((a, b), shared): ((u32, u32), u64)| {
        let (pages_a, pages_b) = (pages[a as usize], pages[b as usize]);
        let same = shared as f64 >= ALIAS * pages_a.max(pages_b) as f64;
        same.then(|| NameAlias::Server {
            a: name(a),
            b: name(b),
            pages_a,
            pages_b,
            shared,
        })
    };
    shared.into_iter().filter_map(alias).collect()
}

/// URLs of one server with equal text, in the order of the sets and servers.
fn url_aliases(collection: &OverlapDocuments) -> Vec<NameAlias> {
    let mut aliases = Vec::new();
    for set in 0..collection.exact.len() as u32 {
        let members = collection.exact.members(set).iter();
        let mut urls: Vec<(u32, &str)> = members
            .filter_map(|&document| {
                Some((
                    collection.servers.of[document as usize]?,
                    collection.page(document),
                ))
            })
            .collect();
        urls.sort_unstable();
        // Documents of one URL are one page.
        urls.dedup();
        for same in urls
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|same| same.len() > 1)
        {
            aliases.push(NameAlias::Url {
                server: collection.servers.names[same[0].0 as usize].clone(),
                urls: same.iter().map(|(_, url)| (*url).to_owned()).collect(),
            });
        }
    }
    aliases
}

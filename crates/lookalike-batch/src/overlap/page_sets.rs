//! Finds sets of pages that nearly the same servers hold: the mirrored collections in table 2 of Shivakumar and Garcia-Molina 1998, where mirrors
//! lack some pages.
//!
//! ```text
//! lists     pages with equal lists of servers are one group
//! stars     a group joins the heaviest group before it whose list differs by little: a quarter of what may be missing
//! growth    stars, largest first, join the set whose servers fit theirs best, if that blurs neither of the two
//! homes     groups that fit another set better, now that sets have grown, move there, unless it would be of newcomers for the most part
//! shares    servers that hold too few pages of a set leave it, then pages that too few of its servers hold, and so on
//! ```
//!
//! Joining *blurs* if a server that holds its share of the pages of one of the two would no longer hold its share of both together: they are then two
//! collections on similar servers. A few pages, or nearly equal servers, blur nothing. The result depends on no input order; pages are numbered by
//! their ids.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::similar_lists::{FittingList, SimilarLists, common_items, is_share};
use crate::parallel::inverse;
use crate::spill::table_column::TableColumn;

/// Pages that two or more servers hold, with these servers.
#[derive(Default)]
pub(super) struct PageHoldings {
    /// The pages, ascending.
    pages: TableColumn<u32>,
    /// End of each page's servers.
    ends: TableColumn<usize>,
    /// Servers of all pages, ascending for each page.
    servers: TableColumn<u32>,
}

/// Shares that decide which pages and servers a set has.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetShares {
    /// Minimum share of a set's servers that hold each of its pages.
    pub(super) page: f64,
    /// Minimum share of a set's pages that each of its servers holds.
    pub(super) server: f64,
}

/// A set of pages and the servers that hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageSet {
    /// Each page with the number of the set's servers that hold it, ordered by page.
    pub(super) pages: Vec<(u32, u32)>,
    /// Each server with the number of the set's pages that it holds, ordered by server.
    pub(super) servers: Vec<(u32, u32)>,
}

impl PageSet {
    /// Returns the number of redundant copies: pages held on all servers, minus one copy of each.
    pub(super) fn redundant_copies(&self) -> u64 {
        let held: u64 = self.servers.iter().map(|&(_, held)| u64::from(held)).sum();
        held - self.pages.len() as u64
    }
}

impl PageHoldings {
    /// Creates holdings from pairs of a page and a server that holds it, ascending and without duplicates.
    pub(super) fn new(held: &[(u32, u32)]) -> Self {
        let mut holdings = Self::default();
        for page in held
            .chunk_by(|a, b| a.0 == b.0)
            // A page on a single server mirrors nothing.
            .filter(|page| page.len() > 1)
        {
            holdings.pages.push(page[0].0);
            holdings
                .servers
                .extend(page.iter().map(|&(_, server)| server));
            holdings.ends.push(holdings.servers.len());
        }
        holdings
    }

    /// Returns the servers of the page at a position.
    fn servers(&self, position: u32) -> &[u32] {
        let position = position as usize;
        let start = position
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.servers[start..self.ends[position]]
    }
}

/// Returns the sets, those with the most redundant copies first.
pub(super) fn page_sets(mut holdings: PageHoldings, shares: SetShares) -> Vec<PageSet> {
    let names = rename_by_rarity(&mut holdings);
    let growth = SetGrowth::new(&holdings, shares);
    let mut sets = growth.sets();
    for set in &mut sets {
        set.servers
            .iter_mut()
            .for_each(|(server, _)| *server = names[*server as usize]);
        set.servers.sort_unstable();
    }
    // A page is in one set only, so the first page makes the order total.
    sets.sort_by_key(|set| (Reverse(set.redundant_copies()), set.pages[0].0));
    sets
}

/// Renumbers servers so that those with the fewest pages come first. Returns the old number of each.
fn rename_by_rarity(holdings: &mut PageHoldings) -> Vec<u32> {
    let all = holdings
        .servers
        .iter()
        .max()
        .map_or(0, |&last| last as usize + 1);
    let mut pages = vec![0_u32; all];
    holdings
        .servers
        .iter()
        .for_each(|&server| pages[server as usize] += 1);
    let mut names: Vec<u32> = (0..all as u32).collect();
    // `SimilarLists` looks up the first items of a list, and rare servers lead to few lists.
    names.sort_by_key(|&server| (pages[server as usize], server));
    let ranks = inverse(&names, 1);
    let mut start = 0;
    for &end in holdings.ends.iter() {
        let list = &mut holdings.servers[start..end];
        list.iter_mut()
            .for_each(|server| *server = ranks[*server as usize]);
        // Servers have other numbers now, so their order in the list is another one.
        list.sort_unstable();
        start = end;
    }
    names
}

/// Pages with the same list of servers.
struct ListGroup {
    /// Range of these pages in [`SetGrowth::order`].
    start: usize,
    end: usize,
}

/// A set while it grows.
struct GrowingSet {
    groups: Vec<u32>,
    profile: StarProfile,
}

/// Servers and pages of a star, or of a growing set.
struct StarProfile {
    /// Servers that hold at least half of its pages, ascending; of a growing set, those of its first star.
    servers: Vec<u32>,
    /// Number of its pages on each server, ascending by server.
    held: Vec<(u32, u32)>,
    pages: u32,
}

struct SetGrowth<'a> {
    holdings: &'a PageHoldings,
    shares: SetShares,
    /// Positions of pages; those with equal lists are adjacent.
    order: TableColumn<u32>,
    /// Groups, the heaviest first.
    groups: TableColumn<ListGroup>,
}

impl<'a> SetGrowth<'a> {
    fn new(holdings: &'a PageHoldings, shares: SetShares) -> Self {
        let mut order: TableColumn<u32> = (0..holdings.pages.len() as u32).collect();
        let list = |position: u32| holdings.servers(position);
        order.sort_unstable_by(|&a, &b| list(a).cmp(list(b)).then(a.cmp(&b)));
        let mut start = 0;
        let mut groups: TableColumn<ListGroup> = order
            .chunk_by(|&a, &b| list(a) == list(b))
            .map(|group| {
                let group = ListGroup {
                    start,
                    end: start + group.len(),
                };
                start = group.end;
                group
            })
            .collect();
        // The first page makes the order total, so that sets do not depend on the sort.
        groups.sort_unstable_by_key(|group| {
            let first = order[group.start];
            (
                Reverse(group.end - group.start),
                Reverse(list(first).len()),
                first,
            )
        });
        Self {
            holdings,
            shares,
            order,
            groups,
        }
    }

    fn sets(&self) -> Vec<PageSet> {
        let mut stars = self.form_stars();
        // Sort the largest first, so that a set starts with what later stars can hardly change.
        stars.sort_by_cached_key(|star| {
            let pages = star
                .iter()
                .map(|&group| self.pages(group).len())
                .sum::<usize>();
            (Reverse(pages), star[0])
        });
        let mut rest = Vec::new();
        let grown = self.reassign_groups(self.grow(stars, &mut rest));
        let mut sets: Vec<PageSet> = grown
            .into_iter()
            .filter_map(|set| self.reduce_to_shares(set, &mut rest))
            .collect();
        sets.extend(rest.into_iter().map(|group| self.of_group(group)));
        sets
    }

    fn pages(&self, group: u32) -> &[u32] {
        let group = &self.groups[group as usize];
        &self.order[group.start..group.end]
    }

    fn list(&self, group: u32) -> &[u32] {
        self.holdings.servers(self.pages(group)[0])
    }

    /// Returns the minimum share of the longer list that two lists must have in common to differ only a little.
    fn min_common_share(&self) -> f64 {
        1.0 - (1.0 - self.shares.page) / 4.0
    }

    /// Joins groups into stars: the lists of a star differ only a little from that of its first group.
    fn form_stars(&self) -> Vec<Vec<u32>> {
        let mut centres = SimilarLists::new(self.min_common_share());
        let mut stars: Vec<Vec<u32>> = Vec::new();
        // The heaviest come first, so a centre has at least as many pages as any group that joins it.
        for group in 0..self.groups.len() as u32 {
            let list = self.list(group);
            match best_of(centres.fitting_lists(list)) {
                Some(best) => stars[best.number as usize].push(group),
                None => {
                    centres.push(list);
                    stars.push(vec![group]);
                }
            }
        }
        stars
    }

    /// Joins stars into sets. Stars of a single group that no list can fit go to `rest`.
    fn grow(&self, stars: Vec<Vec<u32>>, rest: &mut Vec<u32>) -> Vec<GrowingSet> {
        let mut index = SimilarLists::new(self.shares.page);
        let mut sets: Vec<GrowingSet> = Vec::new();
        for star in stars {
            let profile = self.profile(&star);
            // It can neither join a set nor be joined, so comparing it with others is in vain.
            if star.len() == 1 && self.fits_no_other(profile.servers.len()) {
                rest.extend(star);
                continue;
            }
            let mut fitting = index.fitting_lists(&profile.servers);
            fitting.retain(|fit| self.may_join(&profile, &sets[fit.number as usize].profile, fit));
            match best_of(fitting) {
                Some(best) => sets[best.number as usize].join(star, &profile),
                None => {
                    index.push(&profile.servers);
                    let groups = star;
                    sets.push(GrowingSet { groups, profile });
                }
            }
        }
        sets
    }

    /// Moves each group to the set that it fits best. While a set grows, its first star stands for it and may lack servers that the set has in the
    /// end.
    ///
    /// A set takes no newcomers if they would be most of its pages. Such a set is what a larger one left over: pages that too many of its servers
    /// lack. On seven servers these are the pages that two servers lack; without this rule, those that one server lacks would follow them.
    fn reassign_groups(&self, sets: Vec<GrowingSet>) -> Vec<GrowingSet> {
        let mut index = SimilarLists::new(self.shares.page);
        sets.iter()
            .for_each(|set| index.push(&majority_servers(&set.profile.held, set.profile.pages)));
        let mut best = Vec::new();
        let (mut staying, mut coming) = (vec![0; sets.len()], vec![0; sets.len()]);
        for (own, set) in sets.iter().enumerate() {
            for &group in &set.groups {
                let home = self.best_set(group, own, &mut index);
                let pages = if home == own {
                    &mut staying
                } else {
                    &mut coming
                };
                pages[home] += self.pages(group).len();
                best.push((group, own, home));
            }
        }
        let mut homes: Vec<Vec<u32>> = vec![Vec::new(); sets.len()];
        for (group, own, home) in best {
            // Count before anything moves: whether a set takes newcomers must not depend on their order.
            let draws = coming[home] <= staying[home];
            homes[if draws { home } else { own }].push(group);
        }
        let rebuilt = sets.into_iter().zip(homes).map(|(set, groups)| {
            // Most sets keep their groups, and their profile with them.
            if set.groups == groups {
                return set;
            }
            let profile = self.profile(&groups);
            GrowingSet { groups, profile }
        });
        rebuilt.filter(|set| !set.groups.is_empty()).collect()
    }

    /// Returns the set that a group fits best: its own set, unless another fits better.
    fn best_set(&self, group: u32, own: usize, index: &mut SimilarLists) -> usize {
        let fitting = index.fitting_lists(self.list(group));
        let of_own = fitting.iter().find(|fit| fit.number as usize == own);
        let of_own = of_own.copied();
        let better = best_of(fitting).filter(|best| of_own.is_none_or(|own| best.is_nearer(&own)));
        better.map_or(own, |better| better.number as usize)
    }

    /// Tells whether no other list can fit a list of `servers` servers, because a single server more or less is too much.
    fn fits_no_other(&self, servers: usize) -> bool {
        let share = self.shares.page;
        !is_share(servers - 1, servers, share) && !is_share(servers, servers + 1, share)
    }

    fn profile(&self, star: &[u32]) -> StarProfile {
        let mut pages = 0;
        let mut held = HashMap::new();
        for &group in star {
            let weight = self.pages(group).len() as u32;
            pages += weight;
            for &server in self.list(group) {
                *held.entry(server).or_insert(0) += weight;
            }
        }
        let mut held: Vec<(u32, u32)> = held.into_iter().collect();
        // The map has no order; sorted lists can be merged, and give the same sets in every run.
        held.sort_unstable();
        StarProfile {
            servers: majority_servers(&held, pages),
            held,
            pages,
        }
    }

    /// Tells whether a star may join a set that it fits.
    fn may_join(&self, star: &StarProfile, set: &StarProfile, fit: &FittingList) -> bool {
        let differing = fit.either - fit.shared;
        is_share(fit.shared, fit.longer, self.min_common_share())
            // On average this adds at most one missing copy for each server.
            || star.pages as usize * differing <= star.servers.len()
            || !self.would_dilute(star, set)
    }

    /// Tells whether joining blurs: a server that holds its share of one of the two would not hold it of both.
    fn would_dilute(&self, star: &StarProfile, set: &StarProfile) -> bool {
        let pages = star.pages + set.pages;
        let enough = |held: u32, of: u32| is_share(held as usize, of as usize, self.shares.server);
        merged(&star.held, &set.held).any(|(_, in_star, in_set)| {
            (enough(in_star, star.pages) || enough(in_set, set.pages))
                && !enough(in_star + in_set, pages)
        })
    }

    /// Reduces a set to the servers and pages that have their shares. Removed groups go to `rest`.
    fn reduce_to_shares(&self, set: GrowingSet, rest: &mut Vec<u32>) -> Option<PageSet> {
        let (mut groups, profile) = (set.groups, set.profile);
        let (mut held, mut pages) = (profile.held, profile.pages);
        loop {
            // Every round except the last removes a group or a server, so the loop ends.
            let before = (groups.len(), held.len());
            held.retain(|&(_, held)| is_share(held as usize, pages as usize, self.shares.server));
            let servers: Vec<u32> = held.iter().map(|&(server, _)| server).collect();
            if servers.len() < 2 {
                // One server is no mirror, so the groups become sets of their own lists again.
                rest.append(&mut groups);
                return None;
            }
            groups.retain(|&group| {
                let shared = common_items(self.list(group), &servers);
                let stays = is_share(shared, servers.len(), self.shares.page);
                if !stays {
                    rest.push(group);
                    pages -= self.pages(group).len() as u32;
                }
                stays
            });
            if groups.is_empty() {
                return None;
            }
            if before == (groups.len(), held.len()) {
                break;
            }
            // Recount, since there are fewer pages now. Removed servers stay out.
            held = self.profile(&groups).held;
            held.retain(|(server, _)| servers.binary_search(server).is_ok());
        }
        let servers: Vec<u32> = held.iter().map(|&(server, _)| server).collect();
        let of_group = |&group: &u32| {
            let shared = common_items(self.list(group), &servers) as u32;
            self.pages(group)
                .iter()
                .map(move |&page| (self.holdings.pages[page as usize], shared))
        };
        let mut pages: Vec<(u32, u32)> = groups.iter().flat_map(of_group).collect();
        pages.sort_unstable();
        Some(PageSet {
            pages,
            servers: held,
        })
    }

    /// Returns the pages of one list as a set of their own.
    fn of_group(&self, group: u32) -> PageSet {
        let (pages, servers) = (self.pages(group), self.list(group));
        PageSet {
            pages: pages
                .iter()
                .map(|&page| (self.holdings.pages[page as usize], servers.len() as u32))
                .collect(),
            servers: servers
                .iter()
                .map(|&server| (server, pages.len() as u32))
                .collect(),
        }
    }
}

impl GrowingSet {
    fn join(&mut self, star: Vec<u32>, profile: &StarProfile) {
        self.groups.extend(star);
        self.profile.pages += profile.pages;
        self.profile.held = merged(&profile.held, &self.profile.held)
            .map(|(server, in_star, in_set)| (server, in_star + in_set))
            .collect();
    }
}

fn best_of(fitting: Vec<FittingList>) -> Option<FittingList> {
    let fitting = fitting.into_iter();
    fitting.reduce(|x, y| if y.is_better(&x) { y } else { x })
}

/// Returns the servers that hold at least half of `pages` pages.
fn majority_servers(held: &[(u32, u32)], pages: u32) -> Vec<u32> {
    let most = held.iter().filter(|&&(_, held)| 2 * held >= pages);
    most.map(|&(server, _)| server).collect()
}

/// Merges two ascending lists of servers, with the pages that each server holds of both.
fn merged<'a>(a: &'a [(u32, u32)], b: &'a [(u32, u32)]) -> impl Iterator<Item = (u32, u32, u32)> {
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    std::iter::from_fn(move || {
        let server = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => x.0.min(y.0),
            (Some(x), None) => x.0,
            (None, Some(y)) => y.0,
            (None, None) => return None,
        };
        let held = |found: Option<(u32, u32)>| found.map_or(0, |(_, held)| held);
        let in_a = held(a.next_if(|x| x.0 == server));
        let in_b = held(b.next_if(|y| y.0 == server));
        Some((server, in_a, in_b))
    })
}

#[cfg(test)]
mod tests;

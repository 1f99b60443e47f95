//! Sets of pages that nearly the same servers hold: the mirrored collections of table 2 of Shivakumar and Garcia-Molina 1998, of
//! which mirrors lack some pages.
//!
//! ```text
//! lists     pages with equal lists of servers are one group
//! stars     a group joins the heaviest group before it whose list differs by little: a quarter of what may be missing
//! growth    stars, largest first, join the set whose servers fit theirs best, if that blurs neither of the two
//! homes     groups that fit another set better, now that sets have grown, move there, unless it would be of newcomers for the most part
//! shares    servers that hold too few pages of a set leave it, then pages that too few of its servers hold, and so on
//! ```
//!
//! Joining *blurs* when a server that holds its share of the pages of one of the two would no longer hold it of both
//! together: then two collections stand on similar servers. A few pages, and nearly equal servers, blur nothing.
//! Nothing depends on an order of the input but that of pages, which are numbered by their ids.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::similar_lists::{SimilarLists, is_share};
use crate::spill::table_column::TableColumn;

/// Pages of which each is held by two or more servers.
#[derive(Default)]
pub(super) struct PageHoldings {
    /// The pages, ascending.
    pages: TableColumn<u32>,
    /// End of each page's servers.
    ends: TableColumn<usize>,
    /// Servers of all pages, ascending in each.
    servers: TableColumn<u32>,
}

/// Shares that decide what is in a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetShares {
    /// Least share of the servers of a set that hold a page of it.
    pub(super) page: f64,
    /// Least share of the pages of a set that a server of it holds.
    pub(super) server: f64,
}

/// A set of pages on a set of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageSet {
    /// Each page, and how many of the servers of the set hold it; in the order of pages.
    pub(super) pages: Vec<(u32, u32)>,
    /// Each server, and how many of the pages of the set it holds; in the order of servers.
    pub(super) servers: Vec<(u32, u32)>,
}

impl PageSet {
    /// Copies that would do without: what the servers hold of the set, without one copy of each page.
    pub(super) fn spare_copies(&self) -> u64 {
        let held: u64 = self.servers.iter().map(|&(_, held)| u64::from(held)).sum();
        held - self.pages.len() as u64
    }
}

impl PageHoldings {
    /// From pairs of a page and a server that holds it, ascending, each once.
    pub(super) fn new(held: &[(u32, u32)]) -> Self {
        let mut holdings = Self::default();
        for page in held
            .chunk_by(|a, b| a.0 == b.0)
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

    /// Servers of the page at a position.
    fn servers(&self, position: u32) -> &[u32] {
        let position = position as usize;
        let start = position
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        &self.servers[start..self.ends[position]]
    }
}

/// The sets, those with the most copies to spare first.
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
    sets.sort_by_key(|set| (Reverse(set.spare_copies()), set.pages[0].0));
    sets
}

/// Numbers servers anew, those with the fewest pages first; the old numbers.
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
    // `SimilarLists` looks behind the first items of a list, and few lists stand behind rare ones.
    names.sort_by_key(|&server| (pages[server as usize], server));
    let mut ranks = vec![0; all];
    names
        .iter()
        .enumerate()
        .for_each(|(rank, &server)| ranks[server as usize] = rank as u32);
    let mut start = 0;
    for &end in holdings.ends.iter() {
        let list = &mut holdings.servers[start..end];
        list.iter_mut()
            .for_each(|server| *server = ranks[*server as usize]);
        list.sort_unstable();
        start = end;
    }
    names
}

/// Pages with one list of servers.
struct ListGroup {
    /// Their first place in [`SetGrowth::order`].
    start: usize,
    end: usize,
}

/// A set while it grows.
struct GrowingSet {
    groups: Vec<u32>,
    /// The servers by which others are compared with it: those of the star that it began as.
    servers: Vec<u32>,
    /// Pages of the set that each server holds, ascending.
    held: Vec<(u32, u32)>,
    pages: u32,
}

/// A star, or a set as far as it has grown.
struct StarProfile {
    /// Servers that hold half of its pages or more, ascending.
    servers: Vec<u32>,
    /// Pages that each server holds, ascending.
    held: Vec<(u32, u32)>,
    pages: u32,
}

struct SetGrowth<'a> {
    holdings: &'a PageHoldings,
    shares: SetShares,
    /// Positions of pages, those with equal lists beside one another.
    order: TableColumn<u32>,
    /// Heaviest first.
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
        let mut stars = self.stars();
        // Largest first: a set begins with what later stars can hardly change.
        stars.sort_by_cached_key(|star| {
            let pages = star
                .iter()
                .map(|&group| self.pages(group).len())
                .sum::<usize>();
            (Reverse(pages), star[0])
        });
        let mut rest = Vec::new();
        let grown = self.bring_home(self.grow(stars, &mut rest));
        let mut sets: Vec<PageSet> = grown
            .into_iter()
            .filter_map(|set| self.by_shares(set, &mut rest))
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

    /// Least share of the longer of two lists that both hold, for which they differ by little.
    fn nearly_all(&self) -> f64 {
        1.0 - (1.0 - self.shares.page) / 4.0
    }

    /// Groups whose lists differ by little from that of the first of them.
    fn stars(&self) -> Vec<Vec<u32>> {
        let mut centres = SimilarLists::new(self.nearly_all());
        let mut stars: Vec<Vec<u32>> = Vec::new();
        // Heaviest first: a centre stands for more pages than any group that joins it.
        for group in 0..self.groups.len() as u32 {
            let list = self.list(group);
            let fitting = centres.fitting(list);
            match fitting
                .into_iter()
                .reduce(|x, y| if y.is_better(&x) { y } else { x })
            {
                Some(best) => stars[best.number as usize].push(group),
                None => {
                    centres.push(list);
                    stars.push(vec![group]);
                }
            }
        }
        stars
    }

    /// Sets of stars. Stars of a single group that no list can fit are left to `rest`.
    fn grow(&self, stars: Vec<Vec<u32>>, rest: &mut Vec<u32>) -> Vec<GrowingSet> {
        let mut index = SimilarLists::new(self.shares.page);
        let mut sets: Vec<GrowingSet> = Vec::new();
        for star in stars {
            let profile = self.profile(&star);
            if star.len() == 1 && self.fits_none(profile.servers.len()) {
                rest.extend(star);
                continue;
            }
            let fitting = index.fitting(&profile.servers).into_iter();
            let best = fitting
                .filter(|fit| {
                    self.may_join(&profile, &sets[fit.number as usize], fit.shared, fit.longer)
                })
                .reduce(|x, y| if y.is_better(&x) { y } else { x });
            match best {
                Some(best) => sets[best.number as usize].join(star, &profile),
                None => {
                    index.push(&profile.servers);
                    let StarProfile {
                        servers,
                        held,
                        pages,
                    } = profile;
                    sets.push(GrowingSet {
                        groups: star,
                        servers,
                        held,
                        pages,
                    });
                }
            }
        }
        sets
    }

    /// Moves each group to the set that it fits best. The first star of a set stands for it while it grows, and may lack servers that the
    /// set turns out to have.
    ///
    /// A set of which most pages would be newcomers draws none: it is what a larger one left over, pages that more of its servers lack
    /// than may. On seven servers these are the pages that two of them lack, and those that one lacks would follow them.
    fn bring_home(&self, sets: Vec<GrowingSet>) -> Vec<GrowingSet> {
        let mut index = SimilarLists::new(self.shares.page);
        sets.iter()
            .for_each(|set| index.push(&most_servers(&set.held, set.pages)));
        let mut best = Vec::new();
        let (mut staying, mut coming) = (vec![0; sets.len()], vec![0; sets.len()]);
        for (own, set) in sets.iter().enumerate() {
            for &group in &set.groups {
                let home = self.best_home(group, own, &mut index);
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
            // Counted before anything moves: whether a set draws newcomers must not depend on the order in
            // which they ask.
            let draws = coming[home] <= staying[home];
            homes[if draws { home } else { own }].push(group);
        }
        let rebuilt = sets.into_iter().zip(homes).map(|(set, groups)| {
            if set.groups == groups {
                return set;
            }
            let StarProfile { held, pages, .. } = self.profile(&groups);
            GrowingSet {
                groups,
                held,
                pages,
                ..set
            }
        });
        rebuilt.filter(|set| !set.groups.is_empty()).collect()
    }

    /// The set that a group of the set `own` fits best: this one, unless another fits better.
    fn best_home(&self, group: u32, own: usize, index: &mut SimilarLists) -> usize {
        let fitting = index.fitting(self.list(group));
        let of_own = fitting.iter().find(|fit| fit.number as usize == own);
        let of_own = of_own.copied();
        let best = fitting
            .into_iter()
            .reduce(|x, y| if y.is_better(&x) { y } else { x });
        let better = best.filter(|best| of_own.is_none_or(|own| best.is_nearer(&own)));
        better.map_or(own, |better| better.number as usize)
    }

    /// Returns true if no other list can fit one of so many servers: a single server more or less is too much.
    fn fits_none(&self, servers: usize) -> bool {
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
        held.sort_unstable();
        StarProfile {
            servers: most_servers(&held, pages),
            held,
            pages,
        }
    }

    /// Decides whether a star joins a set that it fits, of whose servers and its own the longer list has `longer`.
    fn may_join(&self, star: &StarProfile, set: &GrowingSet, shared: usize, longer: usize) -> bool {
        let differing = star.servers.len() + set.servers.len() - 2 * shared;
        is_share(shared, longer, self.nearly_all())
            // The copies that may be missing then are one a server at most, in the mean.
            || star.pages as usize * differing <= star.servers.len()
            || !self.blurs(star, set)
    }

    /// Returns true if a server that holds its share of one of the two does not hold it of both.
    fn blurs(&self, star: &StarProfile, set: &GrowingSet) -> bool {
        let pages = star.pages + set.pages;
        let enough = |held: u32, of: u32| is_share(held as usize, of as usize, self.shares.server);
        merged(&star.held, &set.held).any(|(_, in_star, in_set)| {
            (enough(in_star, star.pages) || enough(in_set, set.pages))
                && !enough(in_star + in_set, pages)
        })
    }

    /// Keeps of a set the servers and pages that have their shares. Groups that are not go to `rest`.
    fn by_shares(&self, set: GrowingSet, rest: &mut Vec<u32>) -> Option<PageSet> {
        let GrowingSet {
            mut groups,
            mut held,
            mut pages,
            ..
        } = set;
        loop {
            // Every round but the last removes a group or a server, so this ends.
            let before = (groups.len(), held.len());
            held.retain(|&(_, held)| is_share(held as usize, pages as usize, self.shares.server));
            let servers: Vec<u32> = held.iter().map(|&(server, _)| server).collect();
            if servers.len() < 2 {
                rest.append(&mut groups);
                return None;
            }
            groups.retain(|&group| {
                let shared = common(self.list(group), &servers);
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
            // Fewer pages now: count anew. Servers that have left stay out.
            held = self.profile(&groups).held;
            held.retain(|(server, _)| servers.binary_search(server).is_ok());
        }
        let servers: Vec<u32> = held.iter().map(|&(server, _)| server).collect();
        let of_group = |&group: &u32| {
            let shared = common(self.list(group), &servers) as u32;
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

    /// The pages of one list.
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
        self.pages += profile.pages;
        self.held = merged(&profile.held, &self.held)
            .map(|(server, in_star, in_set)| (server, in_star + in_set))
            .collect();
    }
}

/// Servers that hold half of so many pages or more.
fn most_servers(held: &[(u32, u32)], pages: u32) -> Vec<u32> {
    let most = held.iter().filter(|&&(_, held)| 2 * held >= pages);
    most.map(|&(server, _)| server).collect()
}

/// Servers of two ascending lists, with the pages that each holds of one and of the other.
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

/// Number of servers in both of two ascending lists.
fn common(a: &[u32], b: &[u32]) -> usize {
    let (mut at_a, mut at_b, mut common) = (0, 0, 0);
    while at_a < a.len() && at_b < b.len() {
        // Sums in place of branches: which of two servers is less is as good as random.
        let (x, y) = (a[at_a], b[at_b]);
        common += usize::from(x == y);
        at_a += usize::from(x <= y);
        at_b += usize::from(y <= x);
    }
    common
}

#[cfg(test)]
mod tests;

//! Page sets, compared with a slow version of themselves.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

type Servers = BTreeSet<u32>;

/// Pages and their servers, evaluated directly by the definition.
struct Definition<'a> {
    of: &'a [Servers],
    shares: SetShares,
}

/// Returns the number of servers in both lists, and in either.
fn fit(a: &Servers, b: &Servers) -> (usize, usize) {
    (a.intersection(b).count(), a.union(b).count())
}

fn fits(a: &Servers, b: &Servers, share: f64) -> bool {
    let shared = a.intersection(b).count();
    shared > 0 && shared as f64 >= share * a.len().max(b.len()) as f64
}

/// Returns the place of the best fit among lists; the first of ties.
fn best<'a>(list: &Servers, among: impl Iterator<Item = (usize, &'a Servers)>) -> Option<usize> {
    let mut found: Option<(usize, (usize, usize))> = None;
    for (place, other) in among {
        let this = fit(list, other);
        if found.is_none_or(|(_, that)| this.0 * that.1 > that.0 * this.1) {
            found = Some((place, this));
        }
    }
    found.map(|(place, _)| place)
}

impl Definition<'_> {
    fn common_chunk_counts(&self, pages: &[u32], server: u32) -> usize {
        pages
            .iter()
            .filter(|&&page| self.of[page as usize].contains(&server))
            .count()
    }

    fn servers(&self, pages: &[u32], share: f64) -> Servers {
        let all: Servers = pages
            .iter()
            .flat_map(|&page| &self.of[page as usize])
            .copied()
            .collect();
        let enough = |&server: &u32| {
            self.common_chunk_counts(pages, server) as f64 >= share * pages.len() as f64
        };
        all.into_iter().filter(enough).collect()
    }

    fn may_join(&self, star: &[u32], of_star: &Servers, set: &[u32], of_set: &Servers) -> bool {
        let nearly = 1.0 - (1.0 - self.shares.page) / 4.0;
        let differing = of_star.symmetric_difference(of_set).count();
        let both = [star, set].concat();
        let together = self.servers(&both, self.shares.server);
        let stays = |pages: &[u32]| self.servers(pages, self.shares.server).is_subset(&together);
        fits(of_star, of_set, nearly)
            || star.len() * differing <= of_star.len()
            || stays(star) && stays(set)
    }

    fn reduce_to_shares(&self, pages: &[u32]) -> (Vec<u32>, Servers) {
        let mut pages = pages.to_vec();
        let mut servers = self.servers(&pages, 0.0);
        loop {
            let enough = |&server: &u32| {
                self.common_chunk_counts(&pages, server) as f64
                    >= self.shares.server * pages.len() as f64
            };
            let left: Servers = servers.iter().copied().filter(enough).collect();
            let on = |page: u32| self.of[page as usize].intersection(&left).count() as f64;
            let stay: Vec<u32> = pages
                .iter()
                .copied()
                .filter(|&page| on(page) >= self.shares.page * left.len() as f64)
                .collect();
            if left.len() < 2 || stay.is_empty() {
                return (Vec::new(), Servers::new());
            }
            if left == servers && stay == pages {
                return (pages, servers);
            }
            (pages, servers) = (stay, left);
        }
    }

    fn set(&self, pages: &[u32], servers: &Servers) -> PageSet {
        let mut pages = pages.to_vec();
        pages.sort_unstable();
        let on = |&page: &u32| {
            (
                page,
                self.of[page as usize].intersection(servers).count() as u32,
            )
        };
        let held = |&server: &u32| (server, self.common_chunk_counts(&pages, server) as u32);
        PageSet {
            servers: servers.iter().map(held).collect(),
            pages: pages.iter().map(on).collect(),
        }
    }

    /// Computes the sets by comparing every list with every other.
    fn sets(&self) -> Vec<PageSet> {
        let mut equal: BTreeMap<&Servers, Vec<u32>> = BTreeMap::new();
        for (page, servers) in self
            .of
            .iter()
            .enumerate()
            .filter(|(_, servers)| servers.len() > 1)
        {
            equal.entry(servers).or_default().push(page as u32);
        }
        let mut groups: Vec<(&Servers, Vec<u32>)> = equal.into_iter().collect();
        groups.sort_by_key(|(servers, pages)| {
            (Reverse(pages.len()), Reverse(servers.len()), pages[0])
        });
        let nearly = 1.0 - (1.0 - self.shares.page) / 4.0;
        let mut stars: Vec<(&Servers, Vec<u32>, usize)> = Vec::new();
        for (place, (servers, pages)) in groups.iter().enumerate() {
            let near = stars.iter().map(|star| star.0).enumerate();
            match best(
                servers,
                near.filter(|(_, centre)| fits(servers, centre, nearly)),
            ) {
                Some(star) => stars[star].1.extend(pages),
                None => stars.push((servers, pages.clone(), place)),
            }
        }
        stars.sort_by_key(|(_, pages, first)| (Reverse(pages.len()), *first));
        let mut sets: Vec<(Servers, Vec<u32>)> = Vec::new();
        for (_, star, _) in &stars {
            let servers = self.servers(star, 0.5);
            let may = |set: &(Servers, Vec<u32>)| {
                fits(&servers, &set.0, self.shares.page)
                    && self.may_join(star, &servers, &set.1, &set.0)
            };
            let near = sets
                .iter()
                .enumerate()
                .filter(|(_, set)| may(set))
                .map(|(place, set)| (place, &set.0));
            match best(&servers, near) {
                Some(set) => sets[set].1.extend(star),
                None => sets.push((servers, star.clone())),
            }
        }
        let profiles: Vec<Servers> = sets
            .iter()
            .map(|(_, pages)| self.servers(pages, 0.5))
            .collect();
        let mut best_homes = Vec::new();
        for (list, pages) in &groups {
            let mut own = sets.iter();
            let own = own.position(|(_, held)| held.contains(&pages[0])).unwrap();
            let fitting = profiles
                .iter()
                .enumerate()
                .filter(|(_, servers)| fits(list, servers, self.shares.page));
            let stays = |best: &usize| {
                let (this, that) = (fit(list, &profiles[*best]), fit(list, &profiles[own]));
                fits(list, &profiles[own], self.shares.page) && this.0 * that.1 <= that.0 * this.1
            };
            let home = best(list, fitting).filter(|best| !stays(best));
            best_homes.push((own, home.unwrap_or(own), pages));
        }
        let pages_of = |wanted: &dyn Fn(usize, usize) -> bool| {
            let homes = best_homes.iter();
            let of = homes.filter(|(own, home, _)| wanted(*own, *home));
            of.map(|(_, _, pages)| pages.len()).sum::<usize>()
        };
        let mut homes = vec![Vec::new(); sets.len()];
        for &(own, best, pages) in &best_homes {
            let stay = pages_of(&|own, home| own == home && home == best);
            let come = pages_of(&|own, home| own != home && home == best);
            homes[if come > stay { own } else { best }].extend(pages);
        }
        let mut found = Vec::new();
        for pages in &homes {
            let (stay, servers) = self.reduce_to_shares(pages);
            for (list, group) in &groups {
                let left: Vec<u32> = group
                    .iter()
                    .copied()
                    .filter(|page| pages.contains(page) && !stay.contains(page))
                    .collect();
                if !left.is_empty() {
                    found.push(self.set(&left, list));
                }
            }
            if !stay.is_empty() {
                found.push(self.set(&stay, &servers));
            }
        }
        let spare = |set: &PageSet| {
            set.servers
                .iter()
                .map(|&(_, held)| u64::from(held))
                .sum::<u64>()
                - set.pages.len() as u64
        };
        found.sort_by_key(|set| (Reverse(spare(set)), set.pages[0].0));
        found
    }
}

fn found(of: &[Servers], shares: SetShares) -> Vec<PageSet> {
    let pages = of.iter().enumerate();
    let held: Vec<(u32, u32)> = pages
        .flat_map(|(page, servers)| servers.iter().map(move |&server| (page as u32, server)))
        .collect();
    page_sets(PageHoldings::new(&held), shares)
}

/// Generates collections of pages on servers, some of which lack pages, and pages on arbitrary servers.
fn incidences() -> impl Strategy<Value = Vec<Servers>> {
    let page = (
        0_u32..4,
        prop::collection::btree_set(0_u32..26, 0..5),
        prop::collection::btree_set(0_u32..30, 0..2),
        0_u32..8,
    );
    prop::collection::vec(page, 0..60).prop_map(|pages| {
        let servers = |(kind, missing, more, alone): (u32, Servers, Servers, u32)| {
            let base: Servers = match kind {
                0 => (0..24).collect(),
                1 => (2..24).collect(),
                2 => (10..16).collect(),
                _ => (alone..alone + 3).collect(),
            };
            &(&base - &missing) | &more
        };
        pages.into_iter().map(servers).collect()
    })
}

proptest! {
    #[test]
    fn sets_are_those_of_the_definition(
        of in incidences(),
        page in prop_oneof![Just(0.8), Just(1.0), Just(0.5), 0.5_f64..1.0],
        server in prop_oneof![Just(0.8), Just(1.0), Just(0.5), 0.5_f64..1.0],
    ) {
        let shares = SetShares { page, server };
        prop_assert_eq!(found(&of, shares), Definition { of: &of, shares }.sets());
    }

    /// Every page on two or more servers is in one set, and all pages and servers of a set have their shares.
    #[test]
    fn pages_and_servers_of_a_set_have_their_shares(of in incidences()) {
        let sets = found(&of, SetShares { page: 0.8, server: 0.8 });
        let mut pages: Vec<u32> = sets.iter().flat_map(|set| &set.pages).map(|page| page.0).collect();
        pages.sort_unstable();
        let held = |&page: &u32| of[page as usize].len() > 1;
        let expected: Vec<u32> = (0..of.len() as u32).filter(held).collect();
        prop_assert_eq!(pages, expected);
        for set in &sets {
            prop_assert!(set.servers.len() > 1);
            let all = set.servers.len() as f64;
            prop_assert!(set.pages.iter().all(|&(_, on)| f64::from(on) >= 0.8 * all));
            let all = set.pages.len() as f64;
            prop_assert!(set.servers.iter().all(|&(_, held)| f64::from(held) >= 0.8 * all));
        }
    }
}

/// Makes planted collections: each on the given servers, of which every one lacks a share of the pages.
fn planted(servers: [Vec<u32>; 4], missing: f64) -> Vec<Servers> {
    let mut state = 7_u64;
    let mut of = Vec::new();
    for (manual, servers) in servers.iter().enumerate() {
        for _ in 0..[120, 90, 300, 160][manual] {
            let mut draw = || {
                state = state.wrapping_add(1);
                lookalike::hash::avalanche(state) as f64 / u64::MAX as f64
            };
            of.push(
                servers
                    .iter()
                    .copied()
                    .filter(|_| draw() >= missing)
                    .collect(),
            );
        }
    }
    of
}

#[test]
fn four_manuals_are_four_sets_with_pages_missing_anywhere() {
    let sizes = [100_u32, 75, 55, 50];
    let apart =
        |manual: u32| (1000 * manual..1000 * manual + sizes[manual as usize]).collect::<Vec<u32>>();
    // Every server of a smaller collection also has all larger ones.
    let nested = |manual: u32| (0..sizes[manual as usize]).collect::<Vec<u32>>();
    let scattered = |manual: u32| {
        let mut servers: Vec<u32> = (0..200).collect();
        servers.sort_by_key(|&server| lookalike::hash::avalanche(u64::from(server * 8 + manual)));
        servers.truncate(sizes[manual as usize] as usize);
        servers
    };
    for place in [&apart as &dyn Fn(u32) -> Vec<u32>, &nested, &scattered] {
        for missing in [0.0, 0.005, 0.02, 0.05] {
            let of = planted([0, 1, 2, 3].map(place), missing);
            let mut sizes = set_sizes(&of, 0.8);
            sizes.sort_unstable();
            assert_eq!(
                sizes,
                [(50, 160), (55, 300), (75, 90), (100, 120)],
                "{missing} missing"
            );
        }
    }
}

/// Returns the numbers of servers and pages of each set whose pages are on at least 0.8 of the servers.
fn set_sizes(of: &[Servers], server: f64) -> Vec<(usize, usize)> {
    let sets = found(of, SetShares { page: 0.8, server });
    let sizes = sets.iter();
    sizes
        .map(|set| (set.servers.len(), set.pages.len()))
        .collect()
}

/// Five servers without a small manual hold 300 of 360 pages, more than their share; its pages are on 50 of 55 servers.
#[test]
fn a_small_manual_joins_a_large_one_if_all_shares_are_kept() {
    let of: Vec<Servers> = (0..360)
        .map(|page| (0..if page < 300 { 55 } else { 50 }).collect())
        .collect();
    assert_eq!(set_sizes(&of, 0.8), [(55, 360)]);
    assert_eq!(set_sizes(&of, 0.9), [(55, 300), (50, 60)]);
}

/// On seven servers, pages that two servers lack are on too few for the set. They leave it alone, without those that one of the two lacks.
#[test]
fn pages_that_too_few_servers_hold_take_no_others_along() {
    let lacking = |page: u32| match page {
        0..280 => vec![],
        280..292 => vec![6],
        292 | 293 => vec![5, 6],
        294 | 295 => vec![4, 6],
        _ => vec![3, 6],
    };
    let servers = |page| {
        (0..7)
            .filter(|server| !lacking(page).contains(server))
            .collect()
    };
    let of: Vec<Servers> = (0..298).map(servers).collect();
    assert_eq!(set_sizes(&of, 0.8)[0], (7, 292));
}

/// A server that fetched half of a manual does not split it in two.
#[test]
fn a_partial_mirror_leaves_the_set_whole() {
    let of: Vec<Servers> = (0..200).map(|page| (0..50 + page % 2).collect()).collect();
    assert_eq!(set_sizes(&of, 0.8), [(50, 200)]);
}

/// The page of an empty server is on all servers and belongs to no collection.
#[test]
fn a_page_of_all_servers_is_no_page_of_a_set() {
    let of: Vec<Servers> = (0..40)
        .map(|page| {
            if page == 7 {
                (0..1000).collect()
            } else {
                (100..120).collect()
            }
        })
        .collect();
    assert_eq!(set_sizes(&of, 0.8), [(1000, 1), (20, 39)]);
}

//! Who survives: the star clustering that promise 4 rests on, streaming.
//!
//! Documents are taken from the most to the least wanted. One that is similar to an earlier survivor is removed and
//! joins the most similar one (the more wanted one of equals); any other survives. So every removed document has a
//! verified similarity to a document that is kept, however long the chains of small changes are (marin#6854 is the
//! story of a tool that followed them), and a family of n documents costs n comparisons with its survivor instead of
//! the n^2 of all pairs. The slow definition is [`lookalike::cluster::survivors`]; tests compare the two.
//!
//! Work goes in blocks of ranks: first all threads compare the block with the survivors of earlier blocks, then one
//! thread settles the block itself in order. The result is that of the plain sequence.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::groups::Groups;
use crate::spool::lock;
use crate::verify::{Match, Scratch, Verifier};

/// What became of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It is kept.
    Survives,
    /// It is similar to a survivor.
    Joins {
        /// Rank of the survivor.
        survivor: u32,
        /// Their resemblance.
        similarity: f64,
    },
}

/// Survivors of each group so far: the members that survive, moved to the front of a copy of the group.
struct SurvivorLists<'g> {
    groups: &'g Groups,
    members: Vec<u32>,
    lengths: Vec<u32>,
}

impl<'g> SurvivorLists<'g> {
    fn new(groups: &'g Groups) -> Self {
        Self { groups, members: vec![0; groups.members.len()], lengths: vec![0; groups.len()] }
    }

    fn of(&self, group: u32) -> &[u32] {
        let start = self.groups.starts[group as usize] as usize;
        &self.members[start..start + self.lengths[group as usize] as usize]
    }

    fn add(&mut self, rank: u32) {
        for &group in self.groups.of(rank) {
            let length = &mut self.lengths[group as usize];
            self.members[(self.groups.starts[group as usize] + u64::from(*length)) as usize] = rank;
            *length += 1;
        }
    }
}

/// Settles every rank. The first `fixed` ranks survive whatever they resemble. `advance` hears of each block.
pub(crate) fn settle(
    verifier: &Verifier<'_>,
    fixed: usize,
    threads: usize,
    mut advance: impl FnMut(usize),
) -> io::Result<Vec<Fate>> {
    const BLOCK: usize = 1024;
    let ranks = verifier.sizes.len();
    let mut fates = vec![Fate::Survives; ranks];
    let mut lists = SurvivorLists::new(verifier.groups);
    let mut scratches: Vec<Scratch> = (0..threads).map(|_| Scratch::new(ranks)).collect();
    (0..fixed as u32).for_each(|rank| lists.add(rank));
    for start in (fixed..ranks).step_by(BLOCK) {
        let block = start as u32..ranks.min(start + BLOCK) as u32;
        let earlier = against_earlier(verifier, &lists, block.clone(), &mut scratches)?;
        for (rank, earlier) in block.clone().zip(earlier) {
            let fresh = |group: u32| {
                let survivors = lists.of(group);
                let old = survivors.iter().rev().take_while(|&&s| s >= block.start).count();
                &survivors[survivors.len() - old..]
            };
            let within = verifier.best(rank, &mut scratches[0], fresh)?;
            match better(verifier, rank, earlier, within) {
                Some(found) => {
                    let similarity = verifier.similarity(rank, found);
                    fates[rank as usize] = Fate::Joins { survivor: found.rank, similarity };
                }
                None => lists.add(rank),
            }
        }
        advance(block.end as usize);
    }
    Ok(fates)
}

/// The more similar match; the first of equals, whose rank is smaller.
fn better(verifier: &Verifier<'_>, x: u32, first: Option<Match>, second: Option<Match>) -> Option<Match> {
    match (first, second) {
        (Some(a), Some(b)) if verifier.similarity(x, b) > verifier.similarity(x, a) => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Best survivors of earlier blocks for each rank of a block, found by all threads.
fn against_earlier(
    verifier: &Verifier<'_>,
    lists: &SurvivorLists<'_>,
    block: std::ops::Range<u32>,
    scratches: &mut [Scratch],
) -> io::Result<Vec<Option<Match>>> {
    const STRIDE: usize = 32;
    let size = block.len();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; size]);
    let work = |scratch: &mut Scratch| -> io::Result<()> {
        loop {
            let from = next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= size {
                return Ok(());
            }
            for offset in from..size.min(from + STRIDE) {
                let best = verifier.best(block.start + offset as u32, scratch, |group| lists.of(group))?;
                if best.is_some() {
                    lock(&found)[offset] = best;
                }
            }
        }
    };
    let (own, others) = scratches.split_first_mut().expect("a job has at least one thread");
    std::thread::scope(|scope| -> io::Result<()> {
        let workers: Vec<_> = others.iter_mut().map(|scratch| scope.spawn(|| work(scratch))).collect();
        work(own)?;
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    Ok(found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

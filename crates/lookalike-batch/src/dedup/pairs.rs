//! All verified pairs, sorted: the join behind `lookalike pairs`.
//!
//! Works on classes: every class is compared with the earlier members of its groups. A verified pair of classes
//! stands for all pairs of their documents, and the documents of one class are pairs with similarity 1. Pairs are
//! scattered by the first document's place in the order of ids, so that they come out sorted in bounded memory.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dedup::candidate_groups::Groups;
use crate::dedup::documents::{Documents, Ranking};
use crate::dedup::verify::{Members, Scratch, Verifier};
use crate::settings::Scope;
use crate::spill::partitions::{PARTS, Spool, SpoolWriter, lock};

/// Two documents by their place in the order of ids, their similarity as the two halves of its bits, and so that of what a
/// reader sees, or NaN.
type PairRecord = [u32; 6];

/// A verified pair of documents: numbers in the document table, the smaller id first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DocumentPair {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) similarity: f64,
    /// That of all that a reader sees, where that is not what was compared.
    pub(crate) visible: Option<f64>,
}

/// Documents of each class, by rank, in the order of ids.
pub(crate) struct Copies {
    starts: Vec<u32>,
    /// Places in the order of ids.
    places: Vec<u32>,
}

impl Copies {
    pub(crate) fn new(documents: &Documents, ranking: &Ranking, rank_of: &[u32]) -> Self {
        let rank = |document: u32| {
            documents.classes[document as usize].map(|class| rank_of[class.position()] as usize)
        };
        let mut ends = vec![0_u32; rank_of.len() + 1];
        for rank in ranking.by_id.iter().filter_map(|&document| rank(document)) {
            ends[rank + 1] += 1;
        }
        for rank in 0..rank_of.len() {
            ends[rank + 1] += ends[rank];
        }
        let starts = ends.clone();
        let mut places = vec![0; *starts.last().expect("one more than ranks") as usize];
        for (place, &document) in ranking.by_id.iter().enumerate() {
            if let Some(rank) = rank(document) {
                places[ends[rank] as usize] = place as u32;
                ends[rank] += 1;
            }
        }
        Self { starts, places }
    }

    pub(crate) fn of(&self, rank: u32) -> &[u32] {
        &self.places[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}

/// Verified pairs on their way to the output.
pub(crate) struct PairSpool {
    spool: Spool<PairRecord>,
    per_part: usize,
}

impl PairSpool {
    pub(crate) fn new(folder: &Path, budget: u64, documents: usize) -> io::Result<Self> {
        Ok(Self {
            spool: Spool::new(folder, budget)?,
            per_part: documents.div_ceil(PARTS).max(1),
        })
    }

    fn push(
        &self,
        writer: &mut SpoolWriter<'_, PairRecord>,
        x: u32,
        y: u32,
        (similarity, visible): (f64, Option<f64>),
    ) -> io::Result<()> {
        let (a, b) = (x.min(y), x.max(y));
        let [high, low] = halves(similarity);
        let [visible_high, visible_low] = halves(visible.unwrap_or(f64::NAN));
        writer.push(
            a as usize / self.per_part,
            [a, b, high, low, visible_high, visible_low],
        )
    }

    /// Hands out all pairs, sorted by both ids.
    pub(crate) fn drain(
        &self,
        by_id: &[u32],
        mut visit: impl FnMut(DocumentPair) -> io::Result<()>,
    ) -> io::Result<()> {
        for part in 0..PARTS {
            let mut records = self.spool.take(part)?;
            records.sort_unstable();
            for [a, b, high, low, visible_high, visible_low] in records {
                let visible = whole(visible_high, visible_low);
                visit(DocumentPair {
                    a: by_id[a as usize],
                    b: by_id[b as usize],
                    similarity: whole(high, low),
                    visible: (!visible.is_nan()).then_some(visible),
                })?;
            }
        }
        Ok(())
    }
}

fn halves(value: f64) -> [u32; 2] {
    let bits = value.to_bits();
    [(bits >> 32) as u32, bits as u32]
}

fn whole(high: u32, low: u32) -> f64 {
    f64::from_bits(u64::from(high) << 32 | u64::from(low))
}

/// Finds every pair and puts it into `spool`. Pairs of two documents before place `against` are left out: those were
/// given with `--against`. `advance` hears how many classes are done.
pub(crate) fn join(
    verifier: &Verifier<'_>,
    copies: &Copies,
    against: u32,
    scope: Scope,
    threads: usize,
    spool: &PairSpool,
    advance: &(dyn Fn(usize) + Sync),
) -> io::Result<()> {
    const STRIDE: usize = 32;
    let ranks = verifier.sizes.len();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(0);
    let work = || -> io::Result<()> {
        let mut scratch = Scratch::new(ranks);
        let mut whole_pages = Scratch::new(0);
        let mut writer = SpoolWriter::new(&spool.spool);
        loop {
            let from = next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= ranks {
                return writer.finish();
            }
            let to = ranks.min(from + STRIDE);
            let ranks = from as u32..to as u32;
            if scope.allows(true) {
                copies_of_one_text(copies, against, ranks.clone(), |a, b, s| {
                    spool.push(&mut writer, a, b, (s, None))
                })?;
            }
            let mut outcome = Ok(());
            let earlier = |than| Earlier {
                groups: verifier.groups,
                than,
            };
            verifier.matches(ranks, &mut scratch, earlier, |x, found| {
                if outcome.is_err() {
                    return;
                }
                let similarity = verifier.similarity(x, found);
                let visible = match verifier.visible_similarity(x, found.rank, &mut whole_pages) {
                    Ok(visible) => visible,
                    Err(error) => {
                        outcome = Err(error);
                        return;
                    }
                };
                let all = product(copies.of(x), copies.of(found.rank));
                let mut all = all.filter(|&(a, b)| a >= against || b >= against);
                outcome =
                    all.try_for_each(|(a, b)| spool.push(&mut writer, a, b, (similarity, visible)));
            })?;
            outcome?;
            let mut done = lock(&done);
            *done += to - from;
            advance(*done);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        work()?;
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("workers do not panic"))
    })
}

/// The documents of each class are pairs of similarity 1.
fn copies_of_one_text(
    copies: &Copies,
    against: u32,
    ranks: Range<u32>,
    mut push: impl FnMut(u32, u32, f64) -> io::Result<()>,
) -> io::Result<()> {
    for own in ranks.map(|x| copies.of(x)) {
        for (i, &a) in own.iter().enumerate() {
            let mut others = own[i + 1..]
                .iter()
                .filter(|&&b| a >= against || b >= against);
            others.try_for_each(|&b| push(a, b, 1.0))?;
        }
    }
    Ok(())
}

/// All pairs of an element of each.
fn product<'s>(a: &'s [u32], b: &'s [u32]) -> impl Iterator<Item = (u32, u32)> + 's {
    a.iter().flat_map(move |&a| b.iter().map(move |&b| (a, b)))
}

/// Members of smaller rank: each pair is met once.
struct Earlier<'g> {
    groups: &'g Groups,
    than: u32,
}

impl Members for Earlier<'_> {
    fn each(&self, group: u32, visit: impl FnMut(u32)) {
        self.groups
            .members(group)
            .iter()
            .copied()
            .take_while(|&y| y < self.than)
            .for_each(visit);
    }
}

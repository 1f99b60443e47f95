//! What a collection consists of at a moment, and how it is searched.

use std::collections::BTreeMap;
use std::sync::Arc;

use lookalike_hamming::HammingIndex;

use crate::document::Document;
use crate::error::Result;
use crate::memory::Memory;
use crate::run::Run;
use crate::time::Time;

/// Where a document is: number of the part and place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    /// Number of the log or run.
    pub(crate) part: u64,
    pub(crate) place: u32,
}

/// Documents in memory whose log is complete.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) log: u64,
    /// Number of the first frame after that log.
    pub(crate) next: u64,
    pub(crate) memory: Arc<Memory>,
}

/// All parts, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) runs: Vec<Arc<Run>>,
    pub(crate) frozen: Vec<Frozen>,
    pub(crate) active: Memory,
    /// Number of the log of `active`.
    pub(crate) log: u64,
    /// Counts changes of documents, not of where they are.
    pub(crate) changes: u64,
}

/// One part of a view.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    Run(&'a Arc<Run>),
    Memory(u64, &'a Memory),
}

/// A document that was found, before it is read.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) distance: u32,
    pub(crate) found: Found,
}

/// A document, or where to read it.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Document(Arc<Document>),
    Stored(Arc<Run>, u32),
}

impl Found {
    /// The document.
    pub(crate) fn read(self) -> Result<Arc<Document>> {
        match self {
            Self::Document(document) => Ok(document),
            Self::Stored(run, place) => run.document(place).map(Arc::new),
        }
    }

    /// Its id and metadata; of a text no more is held than the block that it lies in.
    pub(crate) fn brief(&self) -> Result<(String, Vec<u8>)> {
        match self {
            Self::Document(document) => Ok((document.id.clone(), document.metadata.clone())),
            Self::Stored(run, place) => run.brief(*place),
        }
    }
}

impl<'a> Part<'a> {
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Run(run) => run.number(),
            Self::Memory(log, _) => log,
        }
    }

    /// Visits name and distance of every fingerprint within the radius.
    fn search(self, code: u64, radius: u32, visit: &mut dyn FnMut(u64, u32)) {
        match self {
            // The radius was checked against that of the collection, which all tables were made for.
            Self::Run(run) => {
                let found = run.index().search(code, radius, visit);
                debug_assert!(found.is_ok());
            }
            Self::Memory(_, memory) => {
                memory.search(code, radius, &mut |group, distance| {
                    visit(group.into(), distance)
                });
            }
        }
    }

    /// The live documents of a fingerprint, ascending.
    fn places(self, name: u64, now: Time) -> Box<dyn Iterator<Item = u32> + 'a> {
        match self {
            Self::Run(run) => Box::new(
                run.with_code(name)
                    .filter(move |&place| run.is_alive(place, now)),
            ),
            Self::Memory(_, memory) => {
                let slots = memory.slots(name as u32);
                Box::new(slots.filter(move |&slot| memory.is_alive(slot, now)))
            }
        }
    }

    fn found(self, place: u32) -> Found {
        match self {
            Self::Run(run) => Found::Stored(Arc::clone(run), place),
            Self::Memory(_, memory) => Found::Document(Arc::clone(memory.document(place))),
        }
    }
}

/// Documents within the radius, at most `most`, by distance and then age. `skip` hides some.
pub(crate) fn search<'a>(
    parts: &[Part<'a>],
    code: u64,
    radius: u32,
    now: Time,
    most: usize,
    skip: &dyn Fn(Location) -> bool,
) -> Vec<Hit> {
    // By distance and part: names of fingerprints.
    let mut groups: BTreeMap<(u32, usize), Vec<u64>> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        part.search(code, radius, &mut |name, distance| {
            groups.entry((distance, at)).or_default().push(name);
        });
    }
    let mut hits = Vec::new();
    for ((distance, at), names) in groups {
        let (part, room) = (parts[at], most - hits.len());
        let number = part.number();
        let mut places: Vec<u32> = Vec::new();
        for &name in &names {
            let live = part.places(name, now);
            let shown = live.filter(|&place| {
                !skip(Location {
                    part: number,
                    place,
                })
            });
            places.extend(shown.take(room));
        }
        places.sort_unstable();
        let shown = places.into_iter().take(room);
        hits.extend(shown.map(|place| Hit {
            distance,
            found: part.found(place),
        }));
        if hits.len() == most {
            break;
        }
    }
    hits
}

impl View {
    /// The parts, from the oldest to the newest.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let frozen = self.frozen.iter();
        let memories = frozen.map(|frozen| Part::Memory(frozen.log, &frozen.memory));
        let active = Part::Memory(self.log, &self.active);
        self.runs
            .iter()
            .map(Part::Run)
            .chain(memories)
            .chain([active])
    }

    /// The nearest live document of each code within the radius: only its distance.
    pub(crate) fn nearest(&self, codes: &[u64], radius: u32, now: Time) -> Vec<Option<u32>> {
        let mut nearest: Vec<Option<u32>> = vec![None; codes.len()];
        let better = |best: Option<u32>, distance| best.is_none_or(|best| distance < best);
        for part in self.parts() {
            match part {
                Part::Run(run) => {
                    let found =
                        run.index()
                            .search_group(codes, radius, &mut |at, code, distance| {
                                if better(nearest[at], distance) && run.has_live(code, now) {
                                    nearest[at] = Some(distance);
                                }
                            });
                    debug_assert!(found.is_ok());
                }
                Part::Memory(..) => {
                    for (best, code) in nearest.iter_mut().zip(codes) {
                        part.search(*code, radius, &mut |name, distance| {
                            if better(*best, distance) && part.places(name, now).next().is_some() {
                                *best = Some(distance);
                            }
                        });
                    }
                }
            }
        }
        nearest
    }

    /// The document of an id in memory that is not dead.
    pub(crate) fn find_in_memory(&self, id: &str, hash: u64) -> Option<(Location, &Arc<Document>)> {
        let memories = self
            .frozen
            .iter()
            .map(|frozen| (frozen.log, &*frozen.memory));
        let mut all = memories.chain([(self.log, &self.active)]);
        all.find_map(|(part, memory)| {
            let place = memory.find(id, hash)?;
            Some((Location { part, place }, memory.document(place)))
        })
    }

    /// Marks a document as deleted or replaced.
    pub(crate) fn kill(&mut self, location: Location) {
        let Location { part, place } = location;
        if part == self.log {
            return self.active.remove(place);
        }
        if let Some(frozen) = self.frozen.iter().find(|frozen| frozen.log == part) {
            return frozen.memory.kill(place);
        }
        if let Some(run) = self.runs.iter().find(|run| run.number() == part) {
            run.dead().set(place as usize);
        }
    }
}

/// The document of an id in some runs that is not dead.
pub(crate) fn find_in_runs(
    runs: &[Arc<Run>],
    id: &str,
    hash: u64,
) -> Result<Option<(Location, Arc<Run>)>> {
    for run in runs.iter().rev() {
        if let Some(place) = run.find(id, hash)? {
            let part = run.number();
            return Ok(Some((Location { part, place }, Arc::clone(run))));
        }
    }
    Ok(None)
}

//! Reading: what is near, what has an id, where paragraphs were seen.

use std::sync::Arc;

use lookalike::Fingerprint;

use super::Engine;
use super::commit::answer;
use super::view::{Found, Part, View, find_in_runs, search};
use crate::answer::{Answer, ParagraphSeen, Verdict};
use crate::document::Document;
use crate::error::{Result, StoreError};
use crate::run::Run;
use crate::time::Time;

/// A search beyond the radius of the collection would miss documents.
pub(super) fn check_radius(asked: u32, most: u32) -> Result<()> {
    if asked > most {
        return Err(StoreError::Invalid(format!(
            "radius {asked} is larger than the {most} that the collection was made for"
        )));
    }
    Ok(())
}

/// Runs with their dead documents, and the live documents in memory.
type Moment = (Vec<(Arc<Run>, Vec<u64>)>, Vec<Arc<Document>>);

/// Tries without the lock before a read keeps it.
const TRIES: u32 = 8;

impl Engine {
    /// What is near a fingerprint.
    pub(crate) fn query(
        &self,
        code: Fingerprint,
        radius: u32,
        now: Time,
        limit: usize,
    ) -> Result<Answer> {
        check_radius(radius, self.radius)?;
        let now = self.now(now);
        let hits = {
            let view = self.view();
            let parts: Vec<Part<'_>> = view.parts().collect();
            search(
                &parts,
                code.0,
                radius,
                now,
                limit.saturating_add(1).max(1),
                &|_| false,
            )
        };
        answer(hits, limit)
    }

    /// Verdicts alone, all of one moment.
    pub(crate) fn check_many(
        &self,
        codes: &[Fingerprint],
        radius: u32,
        now: Time,
    ) -> Result<Vec<Verdict>> {
        check_radius(radius, self.radius)?;
        let now = self.now(now);
        let codes: Vec<u64> = codes.iter().map(|code| code.0).collect();
        let nearest = self.view().nearest(&codes, radius, now);
        Ok(nearest.into_iter().map(Verdict::of).collect())
    }

    /// The document of an id.
    pub(crate) fn get(&self, id: &str, now: Time) -> Result<Option<Arc<Document>>> {
        let (now, hash) = (self.now(now), self.hasher.hash(id));
        for tried in 0.. {
            let view = self.view();
            if let Some((_, document)) = view.find_in_memory(id, hash) {
                return Ok(document.is_alive(now).then(|| Arc::clone(document)));
            }
            let (runs, changes) = (view.runs.clone(), view.changes);
            let held = (tried == TRIES).then_some(view);
            let found = find_in_runs(&runs, id, hash)?;
            // A document that was replaced meanwhile is elsewhere now.
            if held.is_some() || found.is_some() || self.view().changes == changes {
                let live = found.filter(|(location, run)| run.expires(location.place) > now.0);
                return live
                    .map(|(location, run)| run.document(location.place).map(Arc::new))
                    .transpose();
            }
        }
        Ok(None)
    }

    /// In which documents paragraphs were seen.
    pub(crate) fn paragraphs(
        &self,
        paragraphs: &[u64],
        now: Time,
        limit: usize,
    ) -> Result<Vec<ParagraphSeen>> {
        if !self.keep.paragraphs {
            let what = "this collection keeps no paragraphs: make one that does";
            return Err(StoreError::Invalid(what.to_owned()));
        }
        let now = self.now(now);
        paragraphs
            .iter()
            .map(|&paragraph| self.paragraph(paragraph, now, limit))
            .collect()
    }

    fn paragraph(&self, paragraph: u64, now: Time, limit: usize) -> Result<ParagraphSeen> {
        let most = limit.saturating_add(1);
        let mut slack = most;
        loop {
            // Candidates are read without the lock, then judged under it, at one moment.
            let runs = self.view().runs.clone();
            let (mut candidates, mut cut) = (Vec::new(), false);
            for run in &runs {
                let mut left = slack;
                run.with_paragraph(paragraph, &mut |place| {
                    if run.is_alive(place, now) {
                        cut |= left == 0;
                        candidates.extend((left > 0).then(|| (Arc::clone(run), place)));
                        left = left.saturating_sub(1);
                    }
                    !cut
                })?;
            }
            let Some(found) = self.judge(&runs, candidates, paragraph, now, most) else {
                continue;
            };
            if cut && found.len() < most {
                slack *= 4;
                continue;
            }
            let more = found.len() > limit;
            let documents = found
                .into_iter()
                .take(limit)
                .map(|found| Ok(found.brief()?.0));
            let documents = documents.collect::<Result<_>>()?;
            return Ok(ParagraphSeen {
                paragraph,
                documents,
                more,
            });
        }
    }

    /// The candidates that live, and the documents in memory; `None` when the runs are others by now.
    fn judge(
        &self,
        runs: &[Arc<Run>],
        candidates: Vec<(Arc<Run>, u32)>,
        paragraph: u64,
        now: Time,
        most: usize,
    ) -> Option<Vec<Found>> {
        let view = self.view();
        let same = runs.len() == view.runs.len()
            && runs.iter().zip(&view.runs).all(|(a, b)| Arc::ptr_eq(a, b));
        if !same {
            return None;
        }
        let stored = candidates
            .into_iter()
            .filter(|(run, place)| run.is_alive(*place, now));
        let stored = stored.map(|(run, place)| Found::Stored(run, place));
        let memories = view.parts().filter_map(|part| match part {
            Part::Memory(_, memory) => Some(memory),
            Part::Run(_) => None,
        });
        let held = memories.flat_map(|memory| {
            let slots = memory.with_paragraph(paragraph).iter();
            let live = slots.filter(|&&slot| memory.is_alive(slot, now));
            live.map(|&slot| Found::Document(Arc::clone(memory.document(slot))))
        });
        Some(stored.chain(held).take(most).collect())
    }

    /// Visits all documents of one moment, from the one inserted first to the one inserted last.
    pub(crate) fn for_each(
        &self,
        now: Time,
        each: &mut dyn FnMut(Document) -> Result<()>,
    ) -> Result<()> {
        let now = self.now(now);
        let (runs, documents) = self.moment(now);
        for (run, dead) in runs {
            run.for_each(&mut |place, bytes| {
                let gone = dead[place as usize / 64] >> (place % 64) & 1 == 1;
                if gone || run.expires(place) <= now.0 {
                    return Ok(());
                }
                let document = Document::decode(&mut crate::codec::Decoder::new(bytes));
                each(document.ok_or_else(|| {
                    StoreError::damaged(run.path(), 0, "a document cannot be read")
                })?)
            })?;
        }
        documents
            .into_iter()
            .try_for_each(|document| each(Document::clone(&document)))
    }

    fn moment(&self, now: Time) -> Moment {
        let view = self.view();
        let runs = view
            .runs
            .iter()
            .map(|run| (Arc::clone(run), run.dead().words()));
        let memories = view.parts().filter_map(|part| match part {
            Part::Memory(_, memory) => Some(memory),
            Part::Run(_) => None,
        });
        let documents = memories.flat_map(|memory| {
            let live = (0..memory.len() as u32).filter(move |&slot| memory.is_alive(slot, now));
            live.map(|slot| Arc::clone(memory.document(slot)))
        });
        (runs.collect(), documents.collect())
    }

    /// What the collection takes.
    pub(crate) fn stats(&self) -> Stats {
        let writer = self.writer();
        let logs = (writer.manifest.logs.len(), writer.log.bytes());
        drop(writer);
        Stats::of(&self.view(), logs, self.now(Time(0)))
    }
}

/// What a collection takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Documents that are neither deleted nor replaced; expired ones count until they are dropped.
    pub documents: u64,
    /// Of these in memory.
    pub in_memory: u64,
    /// Documents of runs that are deleted or replaced and still take space.
    pub dead: u64,
    /// Documents of each run, from the oldest to the newest.
    pub runs: Vec<u64>,
    /// Bytes of tables and lists of runs in memory.
    pub run_bytes: u64,
    /// Bytes of the documents in memory, roughly.
    pub memory_bytes: u64,
    /// Logs, the one that is written included.
    pub logs: usize,
    /// Bytes in the one that is written.
    pub log_bytes: u64,
    /// The server's time.
    pub time: Time,
}

impl Stats {
    fn of(view: &View, (logs, log_bytes): (usize, u64), time: Time) -> Self {
        let dead: usize = view.runs.iter().map(|run| run.dead().count()).sum();
        let stored: usize = view.runs.iter().map(|run| run.len()).sum();
        let (mut in_memory, mut memory_bytes) = (0, 0);
        for part in view.parts() {
            if let Part::Memory(_, memory) = part {
                in_memory += memory.len() - memory.dead().count();
                memory_bytes += memory.bytes();
            }
        }
        Self {
            documents: (stored - dead + in_memory) as u64,
            in_memory: in_memory as u64,
            dead: dead as u64,
            runs: view.runs.iter().map(|run| run.len() as u64).collect(),
            run_bytes: view.runs.iter().map(|run| run.resident() as u64).sum(),
            memory_bytes: memory_bytes as u64,
            logs,
            log_bytes,
            time,
        }
    }
}

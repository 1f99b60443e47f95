//! A group of requests: evaluated one after the other, made durable by one write and one sync, then shown to readers.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::payload::{self, Change};
use super::query::check_radius;
use super::stage::{STAGE, Stage, Staged};
use super::view::{Hit, Location, Part, find_in_runs, search};
use super::{Engine, Writer};
use crate::answer::{Answer, Neighbour, Outcome, Verdict, Write};
use crate::document::{Document, check_id};
use crate::error::{Result, StoreError};
use crate::log::{Appended, FRAME_HEADER, LARGEST_PAYLOAD, LogHeader, LogWriter};
use crate::marker::Marker;
use crate::memory::Memory;
use crate::time::Time;

/// Bytes of a log, at most, for each byte of the memory that goes with it.
const LOG_PER_MEMORY: u64 = 4;

/// Some writes that are done together or not at all.
pub(crate) struct Request {
    pub(crate) writes: Vec<Write>,
    /// When it was asked.
    pub(crate) now: Time,
    /// Neighbours in an answer.
    pub(crate) limit: usize,
    /// Who hears of it.
    pub(crate) done: Box<dyn FnOnce(Result<Vec<Outcome>>) + Send>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

impl Request {
    /// Bytes that it holds, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let size = |write: &Write| match write {
            Write::Insert(document) | Write::CheckAndInsert { document, .. } => document.size(),
            Write::Delete(id) | Write::Expire { id, .. } => id.len(),
        };
        self.writes.iter().map(|write| 32 + size(write)).sum()
    }

    /// Whether it takes no room for long.
    fn frees(&self) -> bool {
        self.writes
            .iter()
            .all(|write| matches!(write, Write::Delete(_)))
    }
}

/// Where a document with an id is, and the document when it is in memory.
type Known = (Location, Option<Arc<Document>>);

impl Engine {
    /// Carries out a group of requests; each hears what became of it once it is durable.
    pub(crate) fn commit(&self, group: Vec<Request>) {
        let mut writer = self.writer();
        let ready = self
            .ensure_settled(&mut writer)
            .and_then(|()| self.make_room(&mut writer));
        if let Err(error) = self.note_full(ready) {
            group
                .into_iter()
                .for_each(|request| (request.done)(Err(error.clone())));
            return;
        }
        let refused = self.commit_group(&mut writer, group, false);
        // The disk is full: what frees space uses the room that was kept for it.
        if !refused.is_empty() {
            self.commit_group(&mut writer, refused, true);
        }
    }

    /// One frame; the requests that found no room though they free some.
    fn commit_group(&self, writer: &mut Writer, group: Vec<Request>, frees: bool) -> Vec<Request> {
        let mut stage = Stage::new(self.radius);
        let mut results = Vec::with_capacity(group.len());
        let mut now = Time(0);
        for request in &group {
            now = self.now(request.now);
            let before = stage.changes.len();
            let result = self.stage_request(&mut stage, request, now);
            if result.is_err() {
                stage.truncate(before, &self.hasher);
            }
            results.push(result);
        }
        match self.append(writer, &stage, now, frees) {
            Appended::Durable => {
                if !stage.changes.is_empty() {
                    writer.noted = now;
                }
                self.apply(stage);
                for (request, result) in group.into_iter().zip(results) {
                    (request.done)(result);
                }
                Vec::new()
            }
            Appended::Full(error) => {
                self.disk_full.fetch_or(error.is_disk_full(), Relaxed);
                let (kept, refused): (Vec<_>, Vec<_>) = group
                    .into_iter()
                    .partition(|request| request.frees() && !frees);
                refused
                    .into_iter()
                    .for_each(|request| (request.done)(Err(error.clone())));
                kept
            }
            Appended::Failed(error) => {
                let stopped = self.stop(&error);
                group
                    .into_iter()
                    .for_each(|request| (request.done)(Err(stopped.clone())));
                Vec::new()
            }
        }
    }

    fn append(&self, writer: &mut Writer, stage: &Stage, now: Time, frees: bool) -> Appended {
        if stage.changes.is_empty() {
            return Appended::Durable;
        }
        let mut frame = vec![0; FRAME_HEADER];
        payload::begin(&mut frame, now, stage.changes.len());
        stage
            .changes
            .iter()
            .for_each(|staged| payload::put(&mut frame, &staged.change));
        writer.log.append(&mut frame, frees)
    }

    /// Shows durable changes to readers.
    fn apply(&self, stage: Stage) {
        if stage.changes.is_empty() {
            return;
        }
        let mut view = self.view_mut();
        view.changes += 1;
        let first = view.active.len() as u32;
        let log = view.log;
        for staged in stage.changes {
            match staged.old {
                // The inserts of the stage take the next places of the memory, in order.
                Some(Location { part: STAGE, place }) => view.kill(Location {
                    part: log,
                    place: first + place,
                }),
                Some(location) => view.kill(location),
                None => {}
            }
            if let Change::Insert(document) = staged.change {
                view.active.push(document, &self.hasher);
            }
        }
    }

    fn stage_request(
        &self,
        stage: &mut Stage,
        request: &Request,
        now: Time,
    ) -> Result<Vec<Outcome>> {
        let writes = request.writes.iter();
        writes
            .map(|write| self.stage_write(stage, write, now, request.limit))
            .collect()
    }

    fn stage_write(
        &self,
        stage: &mut Stage,
        write: &Write,
        now: Time,
        limit: usize,
    ) -> Result<Outcome> {
        match write {
            Write::Insert(document) => {
                document.check()?;
                let known = self.known(stage, &document.id)?;
                let replaced = self.is_alive(stage, known.as_ref(), now);
                self.stage_insert(stage, document, known, now);
                Ok(Outcome::Inserted { replaced })
            }
            Write::CheckAndInsert {
                document,
                radius,
                insert,
            } => {
                document.check()?;
                check_radius(*radius, self.radius)?;
                let known = self.known(stage, &document.id)?;
                let old = known.as_ref().map(|known| known.0);
                let answer = self.check(stage, document, *radius, now, limit, old)?;
                let alive = self.is_alive(stage, known.as_ref(), now);
                let inserted = insert.allows(answer.verdict);
                if inserted {
                    self.stage_insert(stage, document, known, now);
                }
                Ok(Outcome::Checked {
                    answer,
                    inserted,
                    known: alive,
                })
            }
            Write::Delete(id) => {
                check_id(id)?;
                let known = self.known(stage, id)?;
                let existed = self.is_alive(stage, known.as_ref(), now);
                if let Some((old, _)) = known {
                    let change = Change::Delete(id.clone());
                    stage.push(
                        Staged {
                            change,
                            old: Some(old),
                        },
                        &self.hasher,
                    );
                }
                Ok(Outcome::Deleted { existed })
            }
            Write::Expire { id, expires } => {
                check_id(id)?;
                let known = self.known(stage, id)?;
                let existed = self.is_alive(stage, known.as_ref(), now);
                if let Some((old, document)) = known.filter(|_| existed) {
                    let mut document = self.read(old, document)?;
                    document.expires = *expires;
                    let change = Change::Insert(Arc::new(document));
                    stage.push(
                        Staged {
                            change,
                            old: Some(old),
                        },
                        &self.hasher,
                    );
                }
                Ok(Outcome::Expiring { existed })
            }
        }
    }

    fn stage_insert(
        &self,
        stage: &mut Stage,
        document: &Document,
        known: Option<Known>,
        now: Time,
    ) {
        let mut document = document.clone();
        let settings = self.settings();
        settings.reduce(&mut document);
        if document.expires.is_none() {
            document.expires = settings.time_to_live.map(|length| now.after(length));
        }
        let change = Change::Insert(Arc::new(document));
        let old = known.map(|known| known.0);
        stage.push(Staged { change, old }, &self.hasher);
    }

    /// The document of an id, as the group sees it.
    fn known(&self, stage: &Stage, id: &str) -> Result<Option<Known>> {
        let hash = self.hasher.hash(id);
        if let Some(place) = stage.memory.find(id, hash) {
            let document = Arc::clone(stage.memory.document(place));
            return Ok(Some((Location { part: STAGE, place }, Some(document))));
        }
        let (found, runs) = {
            let view = self.view();
            let found = view.find_in_memory(id, hash);
            let found = found.map(|(location, document)| (location, Some(Arc::clone(document))));
            let runs = if found.is_none() {
                view.runs.clone()
            } else {
                Vec::new()
            };
            (found, runs)
        };
        // Only the writer changes documents, and it is we: what is found stays there.
        let found = match found {
            Some(found) => Some(found),
            None => find_in_runs(&runs, id, hash)?.map(|(location, _)| (location, None)),
        };
        Ok(found.filter(|(location, _)| !stage.is_gone(*location)))
    }

    fn is_alive(&self, _stage: &Stage, known: Option<&Known>, now: Time) -> bool {
        match known {
            None => false,
            Some((_, Some(document))) => document.is_alive(now),
            Some((location, None)) => {
                let view = self.view();
                let run = view.runs.iter().find(|run| run.number() == location.part);
                run.is_some_and(|run| run.expires(location.place) > now.0)
            }
        }
    }

    fn read(&self, location: Location, document: Option<Arc<Document>>) -> Result<Document> {
        if let Some(document) = document {
            return Ok(Document::clone(&document));
        }
        let view = self.view();
        let run = view
            .runs
            .iter()
            .find(|run| run.number() == location.part)
            .cloned();
        drop(view);
        let gone = || StoreError::Invalid("a run vanished while it was written".to_owned());
        run.ok_or_else(gone)?.document(location.place)
    }

    /// What is near a document, as the group sees it.
    fn check(
        &self,
        stage: &Stage,
        document: &Document,
        radius: u32,
        now: Time,
        limit: usize,
        own: Option<Location>,
    ) -> Result<Answer> {
        let mut hits = Vec::new();
        if let Some(code) = document.fingerprint {
            let view = self.view();
            let parts: Vec<Part<'_>> = view
                .parts()
                .chain([Part::Memory(STAGE, &stage.memory)])
                .collect();
            let skip = |location| stage.is_gone(location) || Some(location) == own;
            hits = search(
                &parts,
                code.0,
                radius,
                now,
                limit.saturating_add(1).max(1),
                &skip,
            );
        }
        answer(hits, limit)
    }

    /// A new log when the memory is full.
    fn make_room(&self, writer: &mut Writer) -> Result<()> {
        if self.marked.load(Relaxed) {
            Marker::remove(&*self.fs, &self.folder)?;
            self.marked.store(false, Relaxed);
        }
        let full = {
            let active = &self.view().active;
            active.bytes() >= self.tuning.memory_bytes
                || active.len() >= self.tuning.memory_documents
        };
        // Deletes take no memory, and small groups more room in the log.
        let full = full || writer.log.bytes() >= LOG_PER_MEMORY * self.tuning.memory_bytes as u64;
        if !full {
            return Ok(());
        }
        match self.note_full(self.rotate(writer)) {
            // The log that is there may have room yet; deletes have in any case.
            Err(StoreError::DiskFull { .. }) if !writer.unsettled => Ok(()),
            rotated => rotated,
        }
    }

    /// Ends the log and the memory that goes with it, and begins new ones.
    fn rotate(&self, writer: &mut Writer) -> Result<()> {
        writer.log.tidy()?;
        let mut manifest = writer.manifest.clone();
        let number = manifest.next_file;
        let header = LogHeader {
            collection: manifest.collection,
            file: number,
            first: writer.log.next(),
            before: (writer.log.file(), writer.log.end()),
            recovered: 0,
        };
        let path = self.path(number, "log");
        let log = LogWriter::create(&*self.fs, &path, header, self.tuning.log_step)?;
        manifest.next_file += 1;
        manifest.logs.push(number);
        self.replace_manifest(writer, manifest)?;
        writer.log = log;
        let mut view = self.view_mut();
        let memory = std::mem::replace(&mut view.active, Memory::new(self.radius));
        let log = std::mem::replace(&mut view.log, number);
        let next = header.first;
        view.frozen.push(super::view::Frozen {
            log,
            next,
            memory: Arc::new(memory),
        });
        Ok(())
    }

    /// Ends the log even if it is not full, so that all documents so far can go to runs.
    pub(crate) fn seal_log(&self) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_settled(&mut writer)?;
        if self.view().active.len() == 0 {
            return Ok(());
        }
        if self.marked.load(Relaxed) {
            Marker::remove(&*self.fs, &self.folder)?;
            self.marked.store(false, Relaxed);
        }
        self.rotate(&mut writer)
    }

    /// Marks an orderly end; nothing may be written after it.
    pub(crate) fn close(&self) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_settled(&mut writer)?;
        if !self.marked.load(Relaxed) {
            writer.log.tidy()?;
            self.mark(&mut writer)?;
        } else if self.now(Time(0)) > writer.noted {
            // What stands is as good, but for its time.
            let _ = self.mark(&mut writer);
        }
        let _ = self.stopped.set("the collection is closed".to_owned());
        Ok(())
    }
}

/// How much time may pass unnoted, in milliseconds: after a crash the clock is compared with what was noted last.
const NOTE_EVERY: u64 = 600_000;

impl Engine {
    /// What is due while nobody writes: a closing frame after the last group, and the time.
    pub(crate) fn idle(&self) {
        let mut writer = self.writer();
        if self.ensure_settled(&mut writer).is_err() {
            return;
        }
        let now = self.now(Time(0));
        let late = now.0 >= writer.noted.0.saturating_add(NOTE_EVERY);
        if self.marked.load(Relaxed) {
            if late {
                // The mark that stands is as good, but for its time.
                let _ = self.mark(&mut writer);
            }
        } else if late || !writer.log.is_closed() {
            self.close_frames(&mut writer, now);
        }
    }

    /// Whether [`Engine::idle`] has something to do soon.
    pub(crate) fn is_restless(&self) -> bool {
        !self.writer().log.is_closed()
    }

    /// Appends a closing frame.
    fn close_frames(&self, writer: &mut Writer, now: Time) {
        let mut frame = vec![0; FRAME_HEADER];
        payload::begin(&mut frame, now, 0);
        match writer.log.close(&mut frame) {
            Appended::Durable => writer.noted = now,
            // The group before is durable all the same.
            Appended::Full(error) => drop(self.note_full::<()>(Err(error))),
            Appended::Failed(error) => drop(self.stop(&error)),
        }
    }

    /// Writes the mark of an orderly end.
    fn mark(&self, writer: &mut Writer) -> Result<()> {
        let time = self.now(Time(0));
        let marker = Marker {
            collection: writer.manifest.collection,
            log: writer.log.file(),
            end: writer.log.end(),
            next: writer.log.next(),
            time: time.0,
        };
        marker.write(&*self.fs, &self.folder)?;
        writer.noted = time;
        Ok(())
    }
}

/// Reads what was found; one more than is shown tells that there are more.
pub(super) fn answer(mut hits: Vec<Hit>, limit: usize) -> Result<Answer> {
    let verdict = Verdict::of(hits.first().map(|hit| hit.distance));
    let more = hits.len() > limit;
    hits.truncate(limit);
    let read = |hit: Hit| Neighbour::read(hit.distance, hit.found);
    let neighbours = hits.into_iter().map(read).collect::<Result<_>>()?;
    Ok(Answer {
        verdict,
        neighbours,
        more,
    })
}

const _: () = assert!(LARGEST_PAYLOAD < u32::MAX as usize);

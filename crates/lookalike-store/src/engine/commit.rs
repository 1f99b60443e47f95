//! Committing a group of requests: they are evaluated in order, made durable by one write and one sync, and then shown to readers.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::payload::{self, LogChange};
use super::stage::{STAGE, WriteStage};
use super::{CollectionEngine, WriterState};
use crate::clean_shutdown::CleanShutdown;
use crate::document::{StoredDocument, check_id};
use crate::error::{Result, StoreError};
use crate::found_document::{FoundCopy, FoundDocument};
use crate::log::{AppendResult, FRAME_HEADER, LogEnd, LogHeader, LogWriter, MAX_PAYLOAD_BYTES};
use crate::neighbour_hits::NeighbourHits;
use crate::operations::{WriteOp, WriteOutcome};
use crate::searches::ContentSearch;
use crate::time::{UnixMillis, WriteTime};
use crate::view::{
    DocumentLocation, ViewPart, find_in_runs, find_text_in_memory, find_text_in_runs,
};
use crate::write_receipt::{UnreadOutcome, WriteReceipt};

/// Maximum size of a log in bytes, for each byte of memory of its memtable.
const LOG_PER_MEMORY: u64 = 4;
/// Maximum size of a batch in bytes.
pub const MAX_BATCH_BYTES: usize = MAX_PAYLOAD_BYTES / 4;

/// A batch of writes that succeed or fail together.
pub(crate) struct WriteRequest {
    pub(crate) writes: Vec<WriteOp>,
    /// Time of the request.
    pub(crate) time: WriteTime,
    /// Called with the result.
    pub(crate) done: Box<dyn FnOnce(Result<WriteReceipt>) + Send>,
}

impl std::fmt::Debug for WriteRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteRequest")
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

impl WriteRequest {
    /// Returns the approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.iter().map(WriteOp::size).sum()
    }

    /// Returns true if the request only frees space.
    fn frees_space(&self) -> bool {
        self.writes
            .iter()
            .all(|write| matches!(write, WriteOp::Delete(_)))
    }
}

/// The result of a request, and the callback that receives it.
struct WriteReply {
    result: Result<WriteReceipt>,
    done: Box<dyn FnOnce(Result<WriteReceipt>) + Send>,
}

impl WriteReply {
    fn new(request: WriteRequest, result: Result<WriteReceipt>) -> Self {
        let done = request.done;
        Self { result, done }
    }

    /// Calls the callback. If it panics, nothing else is affected: what it reports has already happened.
    fn release(self) {
        let Self { result, done } = self;
        // The panic hook of the process has already reported the panic.
        let _ = catch_unwind(AssertUnwindSafe(|| done(result)));
    }
}

/// Returns the answers to requests that fail with the same error.
fn refused(
    requests: impl IntoIterator<Item = WriteRequest>,
    error: &StoreError,
) -> Vec<WriteReply> {
    let requests = requests.into_iter();
    requests
        .map(|request| WriteReply::new(request, Err(error.clone())))
        .collect()
}

/// The document with an id, and its location.
#[derive(Clone, Debug)]
struct KnownDocument {
    location: DocumentLocation,
    found: FoundDocument,
}

impl CollectionEngine {
    /// Performs a group of requests, and calls the callback of each once its result is durable.
    pub(crate) fn commit(&self, group: Vec<WriteRequest>) {
        let mut waiting = VecDeque::from(group);
        while !waiting.is_empty() {
            // Call the callbacks without the writer lock, so that they may use the collection.
            let answers = self.commit_some(&mut waiting);
            answers.into_iter().for_each(WriteReply::release);
        }
    }

    /// Performs the requests of a group that only free space, and refuses the others.
    pub(crate) fn commit_freeing(&self, group: Vec<WriteRequest>, error: &StoreError) {
        let (freeing, others): (Vec<_>, Vec<_>) =
            group.into_iter().partition(WriteRequest::frees_space);
        refused(others, error)
            .into_iter()
            .for_each(WriteReply::release);
        self.commit(freeing);
    }

    /// Performs the first requests, as many as fit in a frame. Returns their answers, in order.
    fn commit_some(&self, waiting: &mut VecDeque<WriteRequest>) -> Vec<WriteReply> {
        // The writer lock is held during evaluation, sync and publication, so that no other writer, flush or merge can install anything in
        // between: a change applies to exactly the state in which its request was evaluated.
        let mut writer = self.writer();
        let ready = self
            .ensure_manifest_certain(&mut writer)
            // Rotate before the frame is appended, never after: once a frame is durable, nothing may fail any more.
            .and_then(|()| self.make_room(&mut writer));
        if let Err(error) = self.record_disk_full(ready) {
            return refused(waiting.drain(..), &error);
        }
        let mut answers = Vec::new();
        let freeing = self.commit_frame(&mut writer, waiting, false, &mut answers);
        // The disk is full: requests that free space may use the reserve.
        if !freeing.is_empty() {
            self.commit_frame(&mut writer, &mut freeing.into(), true, &mut answers);
        }
        answers
    }

    /// Writes the first requests as one frame, as many as fit. Returns requests that did not fit on the disk but would free space.
    fn commit_frame(
        &self,
        writer: &mut WriterState,
        waiting: &mut VecDeque<WriteRequest>,
        frees_space: bool,
        answers: &mut Vec<WriteReply>,
    ) -> Vec<WriteRequest> {
        let mut stage = WriteStage::new(self.shape, self.hasher.clone());
        let mut group = Vec::with_capacity(waiting.len());
        let mut results = Vec::with_capacity(waiting.len());
        let mut now = UnixMillis(0);
        while let Some(request) = waiting.pop_front() {
            now = self.now(request.time.now);
            let before = stage.changes.len();
            // Requests are evaluated in order, each on top of the previous ones, as if they had come one by one: a group is serial and only
            // shares a sync.
            let result = self.stage_request(&mut stage, &request, now);
            // A request succeeds or fails as a whole: later requests must not see a part of it.
            if result.is_err() {
                stage.truncate(before);
            }
            // The size of changes of expiry is only known now. A single request never exceeds the limit here, so it will fit in the next
            // frame.
            if stage.bytes > MAX_BATCH_BYTES && !group.is_empty() {
                stage.truncate(before);
                waiting.push_front(request);
                break;
            }
            // A failed request stays in the group, so that answers come in the order of requests. Its answer waits for the sync, which
            // costs nothing.
            results.push(result);
            group.push(request);
        }
        match self.append(writer, &stage, now, frees_space) {
            AppendResult::Durable => {
                if !stage.changes.is_empty() {
                    writer.recorded_time = now;
                }
                // Publish changes before acknowledging them, so that a caller that gets an answer can read its writes.
                self.apply(stage);
                let told = group.into_iter().zip(results);
                answers.extend(told.map(|(request, result)| WriteReply::new(request, result)));
                Vec::new()
            }
            AppendResult::Full(error) => {
                self.disk_full.fetch_or(error.is_disk_full(), Relaxed);
                let (kept, others): (Vec<_>, Vec<_>) = group
                    .into_iter()
                    .partition(|request| request.frees_space() && !frees_space);
                answers.extend(refused(others, &error));
                kept
            }
            AppendResult::Failed(error) => {
                // The frame may or may not be on the medium. Frames after it could be acknowledged behind a gap, so writes stop until the
                // store is reopened.
                let stopped = self.stop(&error);
                answers.extend(refused(group, &stopped));
                Vec::new()
            }
        }
    }

    fn append(
        &self,
        writer: &mut WriterState,
        stage: &WriteStage,
        now: UnixMillis,
        frees_space: bool,
    ) -> AppendResult {
        // Deletes of missing documents and checks that insert nothing need no sync.
        if stage.changes.is_empty() {
            return AppendResult::Durable;
        }
        let mut frame = vec![0; FRAME_HEADER];
        payload::begin(&mut frame, now, stage.changes.len());
        stage
            .changes
            .iter()
            .for_each(|staged| payload::put(&mut frame, &staged.change));
        writer.log.append(&mut frame, frees_space)
    }

    /// Shows durable changes to readers.
    fn apply(&self, stage: WriteStage) {
        if stage.changes.is_empty() {
            return;
        }
        // A single lock for the whole group, so that readers see either all of it or nothing.
        let mut view = self.view_mut();
        view.changes += 1;
        // The writer lock has been held since the stage was filled, so the log has not been rotated. Places in the stage count from zero;
        // in the memtable they continue from here.
        let first = view.active.len() as u32;
        let log = view.log;
        // While the view is locked, so that whoever takes an id from the journal reads the document after this change.
        self.record_in_journal(&stage.changes);
        for staged in stage.changes {
            match staged.old {
                // Inserts of the stage get the next places of the memtable, in order.
                Some(DocumentLocation { part: STAGE, place }) => {
                    view.add_tombstone(DocumentLocation {
                        part: log,
                        place: first + place,
                    })
                }
                Some(location) => view.add_tombstone(location),
                None => {}
            }
            if let LogChange::Insert(document) = staged.change {
                view.active.push(document, &self.hasher);
            }
        }
    }

    fn stage_request(
        &self,
        stage: &mut WriteStage,
        request: &WriteRequest,
        now: UnixMillis,
    ) -> Result<WriteReceipt> {
        let before = stage.bytes;
        let time = WriteTime {
            now,
            lives_from: request.time.lives_from.max(now),
        };
        let writes = request.writes.iter();
        let outcomes = writes.map(|write| {
            let outcome = self.stage_write(stage, write, time)?;
            // A change of expiry is small, but stages its whole document: a thousand of them may take gigabytes.
            let bytes = stage.bytes - before;
            if bytes > MAX_BATCH_BYTES {
                let limit = MAX_BATCH_BYTES;
                return Err(StoreError::BatchTooLarge { bytes, limit });
            }
            Ok(outcome)
        });
        outcomes.collect::<Result<_>>().map(WriteReceipt)
    }

    fn stage_write(
        &self,
        stage: &mut WriteStage,
        write: &WriteOp,
        time: WriteTime,
    ) -> Result<UnreadOutcome> {
        let now = time.now;
        let is_alive = |known: &Option<KnownDocument>| {
            known
                .as_ref()
                .is_some_and(|known| known.found.is_alive(now))
        };
        let outcome = match write {
            WriteOp::Insert(document) => {
                document.check()?;
                document.ensure_form(self.shape.form)?;
                let known = self.known(stage, &document.id)?;
                let replaced = is_alive(&known);
                self.stage_insert(stage, document, known, time.lives_from);
                WriteOutcome::Inserted { replaced }
            }
            WriteOp::CheckAndInsert {
                document,
                scope,
                insert,
                limit,
            } => {
                document.check()?;
                document.ensure_form(self.shape.form)?;
                let wanted =
                    self.content_search(&document.content(self.shape.form), *scope, now)?;
                let known = self.known(stage, &document.id)?;
                let old = known.as_ref().map(|known| known.location);
                // Evaluated under the writer lock, so if two equal documents arrive at once, exactly one is new.
                let (found, copy) = self.check(stage, &wanted, *limit, old)?;
                let alive = is_alive(&known);
                let inserted = insert.allows(found.verdict(copy.as_ref()));
                if inserted {
                    self.stage_insert(stage, document, known, time.lives_from);
                }
                return Ok(UnreadOutcome::Checked {
                    found,
                    copy,
                    inserted,
                    known: alive,
                });
            }
            WriteOp::Delete(id) => {
                check_id(id)?;
                let known = self.known(stage, id)?;
                let existed = is_alive(&known);
                // Expired documents are deleted too: they are stored until a merge, and a later change of expiry must not find them.
                if let Some(known) = known {
                    stage.push(LogChange::Delete(id.clone()), Some(known.location));
                }
                WriteOutcome::Deleted { existed }
            }
            WriteOp::Expire { id, expires } => {
                check_id(id)?;
                let known = self.known(stage, id)?;
                let existed = is_alive(&known);
                let expires = expires.unwrap_or(UnixMillis::NEVER);
                let changes = |known: &KnownDocument| existed && known.found.expires() != expires;
                if let Some(known) = known.filter(changes) {
                    // Runs never change, so the document is inserted again with the new expiry, which makes it the newest.
                    let mut document = Arc::unwrap_or_clone(known.found.read()?);
                    document.expires = Some(expires).filter(|end| *end != UnixMillis::NEVER);
                    let change = LogChange::Insert(Arc::new(document));
                    stage.push(change, Some(known.location));
                }
                WriteOutcome::Expiring { existed }
            }
        };
        Ok(UnreadOutcome::Known(outcome))
    }

    fn stage_insert(
        &self,
        stage: &mut WriteStage,
        document: &StoredDocument,
        known: Option<KnownDocument>,
        lives_from: UnixMillis,
    ) {
        let mut document = document.clone();
        let settings = self.settings();
        settings.reduce(&mut document);
        document.expires = match document.expires {
            None => settings.time_to_live.map(|length| lives_from.after(length)),
            Some(UnixMillis::NEVER) => None,
            // An expiry given in the request is kept.
            own => own,
        };
        let change = LogChange::Insert(Arc::new(document));
        let old = known.map(|known| known.location);
        stage.push(change, old);
    }

    /// Finds the document with an id, as the group sees it.
    fn known(&self, stage: &WriteStage, id: &str) -> Result<Option<KnownDocument>> {
        let hash = self.hasher.hash(id);
        // Search from the newest to the oldest: the group, the memtables, the runs. An id is in at most one of them, because every insert
        // marks its predecessor.
        if let Some(place) = stage.memtable.find(id, hash) {
            let document = Arc::clone(stage.memtable.document(place));
            return Ok(Some(KnownDocument {
                location: DocumentLocation { part: STAGE, place },
                found: FoundDocument::InMemory(document),
            }));
        }
        let (found, runs) = {
            let view = self.view();
            let found = view.find_in_memtables(id, hash);
            let found = found.map(|(location, document)| KnownDocument {
                location,
                found: FoundDocument::InMemory(Arc::clone(document)),
            });
            let runs = if found.is_none() {
                view.runs.clone()
            } else {
                Vec::new()
            };
            (found, runs)
        };
        // The writer lock is held, so no document can move between this lookup and the commit.
        let found = match found {
            Some(found) => Some(found),
            None => find_in_runs(&runs, id, hash)?.map(|(location, run)| KnownDocument {
                location,
                found: FoundDocument::InRun(run, location.place),
            }),
        };
        Ok(found.filter(|known| !stage.is_removed(known.location)))
    }

    /// Finds the neighbours of a document, and the oldest document with the same text, as the group sees them. The neighbours are read later,
    /// without the writer lock: their blocks hold whole texts.
    fn check(
        &self,
        stage: &WriteStage,
        wanted: &ContentSearch,
        limit: usize,
        own: Option<DocumentLocation>,
    ) -> Result<(NeighbourHits, Option<FoundCopy>)> {
        let skip = |location| stage.is_removed(location) || Some(location) == own;
        let (found, in_memory, runs) = {
            let view = self.view();
            // The stage is one more part, and the newest, so the same search finds neighbours among the writes of the group.
            let staged = ViewPart::MemTable(STAGE, &stage.memtable);
            let parts: Vec<ViewPart<'_>> = view.parts().chain([staged]).collect();
            let page = limit.into();
            let found = NeighbourHits::search(&parts, wanted, page, &self.hasher, &skip);
            if !found.may_be_copy() {
                return Ok((found, None));
            }
            let in_memory = find_text_in_memory(&parts, wanted, &skip);
            (found, in_memory.map(FoundCopy::from), view.runs.clone())
        };
        // Documents change only under the writer lock, which is held, so none moves between these lookups.
        let in_runs = find_text_in_runs(&runs, wanted, &skip)?;
        Ok((found, in_runs.or(in_memory)))
    }

    /// Rotates the log if the memtable or the log is full.
    fn make_room(&self, writer: &mut WriterState) -> Result<()> {
        self.remove_shutdown_mark()?;
        let full = {
            let active = &self.view().active;
            active.bytes() >= self.tuning.memory_bytes
                || active.len() >= self.tuning.memory_documents
        };
        // Deletes take no memory, and small groups take more space in the log than in memory. Without this condition, a collection that is
        // only deleted from would have a log, and thus a replay at the next start, of unbounded size.
        let full = full || writer.log.bytes() >= LOG_PER_MEMORY * self.tuning.memory_bytes as u64;
        if !full {
            return Ok(());
        }
        match self.record_disk_full(self.rotate(writer)) {
            // The current log may still have space; for deletes it always has.
            Err(StoreError::DiskFull { .. }) if !writer.manifest_uncertain => Ok(()),
            rotated => rotated,
        }
    }

    /// Closes the log and its memtable, and starts new ones.
    fn rotate(&self, writer: &mut WriterState) -> Result<()> {
        // The header of the next log will say that this one ends here, and readers take anything after that end for damage.
        writer.log.clear_tail()?;
        let mut manifest = writer.manifest.clone();
        let number = manifest.next_file;
        let header = LogHeader {
            collection: manifest.collection,
            file: number,
            first: writer.log.next(),
            before: LogEnd {
                log: writer.log.file(),
                offset: writer.log.end(),
            },
            recovered: 0,
        };
        let path = self.path(number, "log");
        let log = LogWriter::create(&*self.fs, &path, header, self.tuning.log_step)?;
        manifest.next_file += 1;
        manifest.logs.push(number);
        // If this fails, writes continue in the old log, and the new one is an orphan.
        self.replace_manifest(writer, manifest)?;
        // From here on nothing can fail. The view is changed under the writer lock, so a frame cannot go to the new log while its documents
        // go to the old memtable.
        writer.log = log;
        self.view_mut().freeze(number, header.first);
        Ok(())
    }

    /// Rotates the log even if it is not full, so that all present documents can be flushed.
    pub(crate) fn rotate_log(&self) -> Result<()> {
        let mut writer = self.writer();
        self.ensure_manifest_certain(&mut writer)?;
        if self.view().active.len() == 0 {
            return Ok(());
        }
        self.remove_shutdown_mark()?;
        self.rotate(&mut writer)
    }

    /// Removes the mark of a clean shutdown, if there is one. It records where the log ends, so this comes before anything that changes
    /// that, and is durable.
    fn remove_shutdown_mark(&self) -> Result<()> {
        if self.shutdown_recorded.load(Relaxed) {
            CleanShutdown::remove(&*self.fs, &self.folder)?;
            self.shutdown_recorded.store(false, Relaxed);
        }
        Ok(())
    }

    /// Records a clean shutdown. Nothing is written afterwards, even if it fails, because the store is unlocked next.
    pub(crate) fn close(&self) -> Result<()> {
        let mut writer = self.writer();
        let recorded = self.record_end(&mut writer);
        // A frame after the mark would contradict it.
        self.stopped
            .get_or_init(|| "the collection is closed".to_owned());
        recorded
    }

    /// Refuses all writes from now on, even by those that still hold the collection.
    pub(crate) fn end_writes(&self, reason: &str) {
        // Take the writer lock, so that a change in progress is finished on return.
        let _writer = self.writer();
        self.stopped.get_or_init(|| reason.to_owned());
    }

    fn record_end(&self, writer: &mut WriterState) -> Result<()> {
        self.ensure_manifest_certain(writer)?;
        if !self.shutdown_recorded.load(Relaxed) {
            // The mark says that nothing follows the last frame. If remains of a failed write did, the next start would refuse the log as
            // damaged.
            writer.log.clear_tail()?;
            self.record_shutdown(writer)?;
        } else if self.now(UnixMillis(0)) > writer.recorded_time {
            // If this fails, the mark on disk is still valid, with an older time.
            let _ = self.record_shutdown(writer);
        }
        Ok(())
    }
}

/// Interval in milliseconds at which the time is recorded. After a crash, the clock is compared with the last record.
const TIME_RECORD_INTERVAL: u64 = 600_000;

impl CollectionEngine {
    /// Does what is due without writes: appends a closing frame after the last group, or records the time.
    pub(crate) fn idle(&self) {
        let mut writer = self.writer();
        if self.ensure_manifest_certain(&mut writer).is_err() {
            return;
        }
        let now = self.now(UnixMillis(0));
        let late = now.0 >= writer.recorded_time.0.saturating_add(TIME_RECORD_INTERVAL);
        if self.shutdown_recorded.load(Relaxed) {
            if late {
                // If this fails, the mark on disk is still valid, with an older time.
                let _ = self.record_shutdown(&mut writer);
            }
        } else if late || !writer.log.is_closed() {
            self.close_frames(&mut writer, now);
        }
    }

    /// Returns true if [`CollectionEngine::idle`] should append a closing frame.
    pub(crate) fn needs_closing_frame(&self) -> bool {
        !self.writer().log.is_closed()
    }

    /// Appends a closing frame.
    fn close_frames(&self, writer: &mut WriterState, now: UnixMillis) {
        let mut frame = vec![0; FRAME_HEADER];
        payload::begin(&mut frame, now, 0);
        match writer.log.close(&mut frame) {
            AppendResult::Durable => writer.recorded_time = now,
            // The previous group is durable all the same.
            AppendResult::Full(error) => drop(self.record_disk_full::<()>(Err(error))),
            AppendResult::Failed(error) => drop(self.stop(&error)),
        }
    }

    /// Writes the mark of a clean shutdown.
    fn record_shutdown(&self, writer: &mut WriterState) -> Result<()> {
        let time = self.now(UnixMillis(0));
        let clean_shutdown = writer.clean_shutdown(time);
        clean_shutdown.write(&*self.fs, &self.folder)?;
        writer.recorded_time = time;
        Ok(())
    }
}

// The header of a frame has four bytes for the length of its payload.
const _: () = assert!(MAX_PAYLOAD_BYTES < u32::MAX as usize);

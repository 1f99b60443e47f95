//! Feature sets of all classes, in memory while they fit and in a file otherwise. If the job keeps a log of what it reads, that contains all
//! sets and serves as the file, so that nothing is written twice.
//!
//! A set is stored once per class (all documents with equal text). Each set is preceded by a header word, `class << 32 | length`, by which a segment
//! can be read in the order it was written, and a read at the wrong place is detected. The file has the layout of memory: little-endian words, which
//! only the machine that wrote them reads.

use std::borrow::BorrowMut;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::spill::prefetch::prefetch;
use crate::spill::temporary_file;

/// Start of a set: the segment in the upper 32 bits, the word within the segment in the lower 32 bits.
pub(crate) type SetPosition = u64;

/// Feature sets of classes, by [`SetPosition`].
///
/// Memory: 8 bytes per feature and 8 per class, up to the budget; beyond it everything is in the file, and a reader
/// needs one buffer.
#[derive(Default)]
pub(crate) struct SetStore {
    segments: Vec<SetSegment>,
    /// File for segments that are neither in memory nor in the log.
    file: Option<File>,
    log: Option<Arc<File>>,
    budget: u64,
    pub(crate) resident: u64,
    /// True once all new segments are stored in files only.
    is_on_disk: bool,
    /// Bytes of segments that are only in a file. Field `end` counts those in `file`.
    on_disk: u64,
    end: u64,
}

struct SetSegment {
    /// Empty once the segment is only in a file.
    words: Vec<u64>,
    length: usize,
    is_logged: bool,
    /// Position in the log, or in `file` once it is written there.
    offset: u64,
}

/// Adds sets to a store, a segment at a time.
pub(crate) struct SetAppender<'f, S> {
    store: S,
    words: Vec<u64>,
    folder: &'f Path,
}

impl<'f, S: BorrowMut<SetStore>> SetAppender<'f, S> {
    /// Number of words in a segment, unless a single set has more.
    // One MiB, which is written to the file, and read back in order, with one call.
    const SEGMENT: usize = 1 << 17;

    pub(crate) fn new(store: S, folder: &'f Path) -> Self {
        Self {
            store,
            words: Vec::new(),
            folder,
        }
    }

    /// Returns the store, with the sets of all segments that have ended.
    pub(crate) fn store(&self) -> &SetStore {
        self.store.borrow()
    }

    pub(crate) fn push(&mut self, class: u32, set: &[u64]) -> io::Result<SetPosition> {
        if self.words.len() + set.len() >= Self::SEGMENT {
            self.end_segment()?;
        }
        // A new segment begins above if the set does not fit, so the word is less than `SEGMENT` even before a longer set.
        let segment = self.store().segments() as u32;
        let place = place(segment, self.words.len() as u32);
        self.words.push(header(class, set.len()));
        self.words.extend_from_slice(set);
        Ok(place)
    }

    pub(crate) fn end_segment(&mut self) -> io::Result<()> {
        if self.words.is_empty() {
            return Ok(());
        }
        let words = std::mem::take(&mut self.words);
        let store = self.store.borrow_mut();
        store.push(words, self.folder).map(drop)
    }

    pub(crate) fn finish(mut self) -> io::Result<S> {
        self.end_segment()?;
        Ok(self.store)
    }
}

/// Returns the header of a set.
pub(crate) fn header(class: u32, length: usize) -> u64 {
    u64::from(class) << 32 | length as u64
}

/// Returns the place of a set that begins at this word of a segment.
pub(crate) fn place(segment: u32, word: u32) -> SetPosition {
    u64::from(segment) << 32 | u64::from(word)
}

pub(crate) fn split(header: u64) -> (u32, usize) {
    ((header >> 32) as u32, (header & 0xffff_ffff) as usize)
}

impl SetStore {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Adds a segment of sets with their headers, and returns its number.
    pub(crate) fn push(&mut self, words: Vec<u64>, folder: &Path) -> io::Result<u32> {
        self.push_logged(words, None, folder)
    }

    /// Adds a segment whose words are at this position of the log, or will be before they are read; `None` if there is no log.
    pub(crate) fn push_logged(
        &mut self,
        words: Vec<u64>,
        logged: Option<u64>,
        folder: &Path,
    ) -> io::Result<u32> {
        let number = self.segments.len() as u32;
        let length = words.len();
        // Capacity, not length: that is the memory that the process holds.
        self.resident += words.capacity() as u64 * 8;
        self.segments.push(SetSegment {
            words,
            length,
            // After `stop_logging` a replayed offset is worthless, and the words go to `file` like others.
            is_logged: logged.is_some() && self.log.is_some(),
            offset: logged.unwrap_or(0),
        });
        if self.is_on_disk || self.resident > self.budget {
            self.spill(folder)?;
        }
        Ok(number)
    }

    /// Sets the log that contains segments.
    pub(crate) fn use_log(&mut self, log: Arc<File>) {
        self.log = Some(log);
    }

    /// Stops using the log, which could not be completed. Returns false if some sets are only there.
    pub(crate) fn stop_logging(&mut self) -> bool {
        self.log = None;
        let mut is_whole = true;
        // Segments still in memory survive without the log: a later spill writes them to `file`.
        for segment in self.segments.iter_mut().filter(|segment| segment.is_logged) {
            segment.is_logged = false;
            is_whole &= segment.words.len() == segment.length;
        }
        is_whole
    }

    /// Lowers the budget and writes segments to the file if they exceed it.
    pub(crate) fn shrink(&mut self, budget: u64, folder: &Path) -> io::Result<()> {
        // Only lower: sets that have left memory do not come back.
        self.budget = self.budget.min(budget);
        match self.resident > self.budget {
            true => self.spill(folder),
            false => Ok(()),
        }
    }

    fn spill(&mut self, folder: &Path) -> io::Result<()> {
        // All at once: from here on no new segment stays in memory.
        self.is_on_disk = true;
        // Segments leave memory in order, so only those after the last one that left are examined.
        let is_gone = |segment: &SetSegment| segment.words.len() < segment.length;
        let kept = self
            .segments
            .iter()
            .rposition(is_gone)
            .map_or(0, |at| at + 1);
        for segment in self.segments[kept..]
            .iter_mut()
            .filter(|s| !s.words.is_empty())
        {
            let bytes: &[u8] = bytemuck::cast_slice(&segment.words);
            if !segment.is_logged {
                let file = temporary_file(&mut self.file, folder)?;
                file.write_all_at(bytes, self.end)?;
                segment.offset = self.end;
                self.end += bytes.len() as u64;
            }
            self.on_disk += bytes.len() as u64;
            segment.words = Vec::new();
        }
        // Segments are all gone from memory now, and later ones leave it as soon as they are added.
        self.resident = 0;
        Ok(())
    }

    /// Returns the number of segments.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Returns the number of bytes of sets that are only in files.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.on_disk
    }

    /// Returns the words of a segment, as they were pushed.
    pub(crate) fn segment<'a>(
        &'a self,
        segment: usize,
        buffer: &'a mut Vec<u64>,
    ) -> io::Result<&'a [u64]> {
        self.words(segment, 0, self.segments[segment].length, buffer)
    }

    /// Calls `visit` with the class and the features of every set of a segment, in the order of writing.
    pub(crate) fn walk(
        &self,
        segment: usize,
        buffer: &mut Vec<u64>,
        mut visit: impl FnMut(u32, &[u64]) -> io::Result<()>,
    ) -> io::Result<()> {
        let words = self.segment(segment, buffer)?;
        let mut at = 0;
        while at < words.len() {
            let (class, length) = split(words[at]);
            visit(class, &words[at + 1..at + 1 + length])?;
            at += 1 + length;
        }
        Ok(())
    }

    /// Visits every set, in the order of writing.
    pub(crate) fn for_each(
        &self,
        mut visit: impl FnMut(u32, &[u64]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        (0..self.segments()).try_for_each(|segment| self.walk(segment, &mut buffer, &mut visit))
    }

    /// Returns the set of `class` at `place`, which has `length` features. Reads it into `buffer` if it is on disk.
    pub(crate) fn get<'a>(
        &'a self,
        class: u32,
        place: SetPosition,
        length: usize,
        buffer: &'a mut Vec<u64>,
    ) -> io::Result<&'a [u64]> {
        let words = self.words(
            (place >> 32) as usize,
            (place & 0xffff_ffff) as usize,
            length + 1,
            buffer,
        )?;
        // A wrong set would give a wrong similarity, which nothing could detect later.
        if words[0] != header(class, length) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the temporary file of feature sets was changed",
            ));
        }
        Ok(&words[1..])
    }

    /// Prefetches the beginning of a set that is in memory.
    pub(crate) fn prefetch(&self, place: SetPosition) {
        const LINE: usize = 8;
        let words = &self.segments[(place >> 32) as usize].words;
        let from = (place & 0xffff_ffff) as usize;
        // Four lines: after that the processor prefetches a sequential read by itself.
        (0..4).for_each(|line| prefetch(words, from + line * LINE));
    }

    // A segment has its words either in memory or in exactly one file; `segment.words` is empty only in the second case.
    fn words<'a>(
        &'a self,
        segment: usize,
        from: usize,
        count: usize,
        buffer: &'a mut Vec<u64>,
    ) -> io::Result<&'a [u64]> {
        let segment = &self.segments[segment];
        let file = match segment.is_logged {
            true => self.log.as_deref(),
            false => self.file.as_ref(),
        };
        match file {
            Some(file) if segment.words.is_empty() => {
                buffer.resize(count, 0);
                file.read_exact_at(
                    bytemuck::cast_slice_mut(buffer.as_mut_slice()),
                    segment.offset + from as u64 * 8,
                )?;
                Ok(buffer)
            }
            _ => Ok(&segment.words[from..from + count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(budget: u64, folder: &Path) -> (SetStore, Vec<(u32, SetPosition, Vec<u64>)>) {
        let mut store = SetStore::new(budget);
        let mut places = Vec::new();
        for segment in 0..20_u32 {
            let mut words = Vec::new();
            for i in 0..segment {
                let set: Vec<u64> = (0..u64::from(i * 3))
                    .map(|x| x * x + u64::from(segment))
                    .collect();
                let class = segment * 100 + i;
                places.push((
                    class,
                    u64::from(segment) << 32 | words.len() as u64,
                    set.clone(),
                ));
                words.push(header(class, set.len()));
                words.extend(set);
            }
            assert_eq!(store.push(words, folder).unwrap(), segment);
        }
        (store, places)
    }

    #[test]
    fn sets_come_back_from_memory_and_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        for budget in [0, 1000, 1 << 20] {
            let (store, places) = filled(budget, folder.path());
            let mut buffer = Vec::new();
            for (class, place, set) in &places {
                assert_eq!(
                    store.get(*class, *place, set.len(), &mut buffer).unwrap(),
                    set
                );
            }
            let mut walked = Vec::new();
            for segment in 0..store.segments() {
                store
                    .walk(segment, &mut buffer, |class, set| {
                        walked.push((class, set.to_vec()));
                        Ok(())
                    })
                    .unwrap();
            }
            let expected: Vec<_> = places
                .into_iter()
                .map(|(class, _, set)| (class, set))
                .collect();
            assert_eq!(walked, expected);
        }
    }

    #[test]
    fn sets_in_a_log_come_from_there_and_are_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let log = tempfile::tempfile_in(folder.path()).unwrap();
        let segment = |class: u32| vec![header(class, 2), u64::from(class), 7];
        let mut store = SetStore::new(0);
        store.use_log(Arc::new(log.try_clone().unwrap()));
        for class in 0..3 {
            // After other data, as in a log.
            let at = 5 + u64::from(class) * 100;
            store
                .push_logged(segment(class), Some(at), folder.path())
                .unwrap();
            log.write_all_at(bytemuck::cast_slice(&segment(class)), at)
                .unwrap();
        }
        // A segment that is not in the log goes to a separate file.
        store.push(segment(3), folder.path()).unwrap();
        assert_eq!((store.bytes_on_disk(), store.end), (4 * 24, 24));
        let mut buffer = Vec::new();
        for class in 0..4_u32 {
            let set = store.get(class, place(class, 0), 2, &mut buffer).unwrap();
            assert_eq!(set, [u64::from(class), 7]);
        }
        assert!(!store.stop_logging(), "three segments were in the log only");
    }

    #[test]
    fn sets_in_memory_outlive_a_log_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(tempfile::tempfile_in(folder.path()).unwrap());
        let mut store = SetStore::new(1 << 20);
        store.use_log(log);
        store
            .push_logged(vec![header(0, 1), 9], Some(40), folder.path())
            .unwrap();
        assert!(store.stop_logging());
        store.shrink(0, folder.path()).unwrap();
        let mut buffer = Vec::new();
        assert_eq!(store.get(0, 0, 1, &mut buffer).unwrap(), [9]);
    }

    #[test]
    fn a_read_in_the_wrong_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (store, places) = filled(0, folder.path());
        let (class, place, set) = &places[5];
        assert!(
            store
                .get(*class, *place, set.len() + 1, &mut Vec::new())
                .is_err()
        );
    }
}

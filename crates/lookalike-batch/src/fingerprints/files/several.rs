//! Reads several collections one after another as if they were one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lookalike::scheme::SchemeId;
use lookalike_hamming::Word;

use super::{
    CodeFile, CodesError, CodesSummary, CommonFact, FingerprintFile, FingerprintIds,
    FingerprintSource, ensure_equal_schemes, ensure_equal_widths,
};
use crate::error::BatchError;
use crate::observer::{JobObserver, check_cancelled};

/// Collections with the same width and scheme. Only one regular file is open at a time.
pub struct CodeFiles {
    /// Collections that have not been started. Those that cannot be opened again are already open.
    waiting: VecDeque<(FingerprintSource, Option<CodeFile>)>,
    current: Option<CodeFile>,
    done: Vec<CodesSummary>,
    strict: bool,
    bits: CommonFact<u32>,
    scheme: CommonFact<SchemeId>,
    bytes: Option<u64>,
    expected: Option<u64>,
    read: Arc<AtomicU64>,
}

lookalike::opaque_debug! {
    [] CodeFiles [];
}

impl CodeFiles {
    /// Reads the headers of all collections. If `strict` is true, the first line that cannot be read is an error.
    ///
    /// # Errors
    /// [`CodesError`] if a file is missing, damaged or of another version, or if widths or schemes differ.
    pub fn open(sources: &[FingerprintSource], strict: bool) -> Result<Self, CodesError> {
        let mut files = Self {
            waiting: VecDeque::new(),
            current: None,
            done: Vec::new(),
            strict,
            bits: CommonFact::default(),
            scheme: CommonFact::default(),
            bytes: Some(0),
            expected: Some(0),
            read: Arc::default(),
        };
        for source in sources {
            // A pipe cannot be opened again after it is closed.
            let is_regular = !source.is_standard_input()
                && source.path().metadata().is_ok_and(|meta| meta.is_file());
            let counter = match is_regular {
                // A regular file is opened again later, and its header must not count twice.
                true => Arc::default(),
                false => Arc::clone(&files.read),
            };
            let file = CodeFile::open_counted(source, strict, counter)?;
            let name = file.name();
            (files.bits).agree(name, file.bits(), ensure_equal_widths)?;
            (files.scheme).agree(name, file.scheme(), ensure_equal_schemes)?;
            // One unknown size makes the sum unknown.
            let add = |sum: Option<u64>, more: Option<u64>| Some(sum? + more?);
            files.expected = add(files.expected, file.expected());
            files.bytes = add(files.bytes, file.total_bytes());
            // Close regular files again: there may be more than can be open at once.
            let kept = (!is_regular).then_some(file);
            files.waiting.push_back((source.clone(), kept));
        }
        Ok(files)
    }

    /// Returns the width of the fingerprints and a file that states it. `None` if no file does.
    pub fn bits(&self) -> Option<(&str, u32)> {
        self.bits.named()
    }

    /// Returns the width of the words that hold the fingerprints.
    pub(crate) fn word_bits(&self) -> u32 {
        self.bits.get().unwrap_or(64)
    }

    /// Returns the scheme and a file that names it. `None` if no file does.
    pub fn scheme(&self) -> Option<(&str, SchemeId)> {
        self.scheme.named()
    }

    /// Returns the stored bytes of all files. `None` if standard input is among them.
    pub fn total_bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Estimates the number of fingerprints from the sizes of the files.
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Returns a counter of the stored bytes read so far, which may be read while the files are in use.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// Returns the names of all files, for an error about them together.
    pub fn names(&self) -> String {
        let done = self.done.iter().map(|summary| summary.name.as_str());
        let current = self.current.iter().map(CodeFile::name);
        let waiting = self.waiting.iter().map(|(source, _)| source.name());
        let names: Vec<&str> = done.chain(current).chain(waiting).collect();
        names.join(", ")
    }

    /// Returns the name of the file that the latest chunk came from.
    pub(crate) fn name(&self) -> &str {
        let done = || self.done.last().map_or("", |summary| summary.name.as_str());
        self.current.as_ref().map_or_else(done, CodeFile::name)
    }

    /// Replaces `out` with the next fingerprints of one file, until they and their ids take `bytes` bytes. Returns false if nothing is left.
    ///
    /// # Errors
    /// [`CodesError`], as for [`CodeFile::fill`].
    pub fn read_chunk<W: Word>(
        &mut self,
        out: &mut FingerprintFile<W>,
        bytes: u64,
    ) -> Result<bool, CodesError> {
        out.clear();
        loop {
            if self.current.is_none() {
                // Another file may have ids of another kind.
                out.ids = FingerprintIds::None;
                self.current = self.next()?;
            }
            let Some(file) = &mut self.current else {
                return Ok(false);
            };
            if !file.fill(out, bytes)? {
                // Close each file at its end, before the next one is opened.
                self.done.extend(self.current.take().map(CodeFile::summary));
            }
            // A chunk never spans two files, so `name` and the kind of ids apply to all of it.
            if !out.codes.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Passes all fingerprints to `visit` in chunks, as [`CodeFiles::read_chunk`] reads them, and reports progress.
    pub(crate) fn for_each_chunk<W: Word>(
        &mut self,
        bytes: u64,
        observer: &dyn JobObserver,
        mut visit: impl FnMut(&Self, &mut FingerprintFile<W>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        let mut chunk = FingerprintFile::default();
        while self.read_chunk(&mut chunk, bytes)? {
            check_cancelled(observer).map_err(|_| BatchError::Cancelled)?;
            visit(self, &mut chunk)?;
            observer.progress(self.read.load(Ordering::Relaxed));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<CodeFile>, CodesError> {
        let Some((source, open)) = self.waiting.pop_front() else {
            return Ok(None);
        };
        let file = match open {
            Some(file) => file,
            None => {
                let counter = Arc::clone(&self.read);
                let file = CodeFile::open_counted(&source, self.strict, counter)?;
                let named = file.scheme().map(|scheme| (file.name(), scheme));
                // The file may have been replaced in the meantime.
                ensure_equal_schemes(self.scheme(), named)?;
                file
            }
        };
        Ok(Some(file))
    }

    /// Returns counts of what was read from each collection. Call it after the end.
    pub fn summaries(self) -> Vec<CodesSummary> {
        self.done
    }
}

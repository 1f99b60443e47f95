//! Several collections, read one after another as one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lookalike::scheme::SchemeId;
use lookalike_hamming::Word;

use super::{
    CodeFile, CodesError, CodesSummary, FingerprintFile, FingerprintIds, FingerprintSource,
    ensure_equal_schemes, ensure_equal_widths,
};

/// Collections whose widths and schemes agree. Only one regular file is open at a time, however many there are.
pub struct CodeFiles {
    /// Those that were not begun, open already where they cannot be opened again.
    waiting: VecDeque<(FingerprintSource, Option<CodeFile>)>,
    current: Option<CodeFile>,
    done: Vec<CodesSummary>,
    strict: bool,
    bits: Option<(String, u32)>,
    scheme: Option<(String, SchemeId)>,
    bytes: Option<u64>,
    expected: Option<u64>,
    read: Arc<AtomicU64>,
}

impl CodeFiles {
    /// Looks at the headers of all collections. With `strict`, the first line that cannot be read is an error.
    ///
    /// # Errors
    /// [`CodesError`]: a file is missing, damaged or of another version, or widths or schemes differ.
    pub fn open(sources: &[FingerprintSource], strict: bool) -> Result<Self, CodesError> {
        let mut files = Self {
            waiting: VecDeque::new(),
            current: None,
            done: Vec::new(),
            strict,
            bits: None,
            scheme: None,
            bytes: Some(0),
            expected: Some(0),
            read: Arc::default(),
        };
        for source in sources {
            // A pipe that was closed could not be opened again.
            let is_regular = !source.is_standard_input()
                && source.path().metadata().is_ok_and(|meta| meta.is_file());
            let counter = match is_regular {
                true => Arc::default(),
                false => Arc::clone(&files.read),
            };
            let file = CodeFile::open_counted(source, strict, counter)?;
            let width = file.bits().map(|bits| (file.name(), bits));
            ensure_equal_widths(files.bits(), width)?;
            if files.bits.is_none() {
                files.bits = width.map(|(name, bits)| (name.to_owned(), bits));
            }
            let named = file.scheme().map(|scheme| (file.name(), scheme));
            ensure_equal_schemes(files.scheme(), named)?;
            if files.scheme.is_none() {
                files.scheme = named.map(|(name, scheme)| (name.to_owned(), scheme));
            }
            let add = |sum: Option<u64>, more: Option<u64>| Some(sum? + more?);
            files.expected = add(files.expected, file.expected());
            files.bytes = add(files.bytes, file.total_bytes());
            // Regular files are closed again: there may be more of them than may be open at once.
            let kept = (!is_regular).then_some(file);
            files.waiting.push_back((source.clone(), kept));
        }
        Ok(files)
    }

    /// Width of the fingerprints, and a file that tells it, where one does.
    pub fn bits(&self) -> Option<(&str, u32)> {
        let (name, bits) = self.bits.as_ref()?;
        Some((name, *bits))
    }

    /// The scheme, and a file that names it, where one does.
    pub fn scheme(&self) -> Option<(&str, SchemeId)> {
        let (name, scheme) = self.scheme.as_ref()?;
        Some((name, *scheme))
    }

    /// Bytes of all files as stored; none with standard input among them.
    pub fn total_bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// About how many fingerprints there are, as far as the sizes of the files tell.
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Counts the bytes read so far, as stored; may be read while the files are in use.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// Names of all files, for an error about them together.
    pub fn names(&self) -> String {
        let done = self.done.iter().map(|summary| summary.name.as_str());
        let current = self.current.iter().map(CodeFile::name);
        let waiting = self.waiting.iter().map(|(source, _)| source.name());
        let names: Vec<&str> = done.chain(current).chain(waiting).collect();
        names.join(", ")
    }

    /// Name of the file of the latest chunk.
    pub(crate) fn name(&self) -> &str {
        let done = || self.done.last().map_or("", |summary| summary.name.as_str());
        self.current.as_ref().map_or_else(done, CodeFile::name)
    }

    /// Puts the next fingerprints of one file into `out`, until they and their ids take `bytes`; false when nothing is left.
    ///
    /// # Errors
    /// [`CodesError`], as of [`CodeFile::fill`].
    pub fn read_chunk<W: Word>(
        &mut self,
        out: &mut FingerprintFile<W>,
        bytes: u64,
    ) -> Result<bool, CodesError> {
        out.clear();
        while self.current.is_some() || !self.waiting.is_empty() {
            if self.current.is_none() {
                // Ids of another file may be of another kind.
                out.ids = FingerprintIds::None;
                self.current = self.next()?;
            }
            let Some(file) = &mut self.current else {
                break;
            };
            if !file.fill(out, bytes)? {
                // Closed as soon as it ends, before the next one is opened.
                self.done.extend(self.current.take().map(CodeFile::summary));
            }
            if !out.codes.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
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
                // It may have been replaced meanwhile.
                ensure_equal_schemes(self.scheme(), named)?;
                file
            }
        };
        Ok(Some(file))
    }

    /// Counts of what was read of each; to be asked after the end.
    pub fn summaries(self) -> Vec<CodesSummary> {
        self.done
    }
}

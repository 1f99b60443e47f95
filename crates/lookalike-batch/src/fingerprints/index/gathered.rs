//! The fingerprints and ids of all inputs in plain files beside the index in the making, to be read again and again.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use lookalike::scheme::SchemeId;
use lookalike_hamming::{CodeSource, FileError, IdTexts, IndexFile};

use super::{is_index, open};
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFile, CodesSummary, FingerprintFile, FingerprintName, FingerprintSource, check_losses,
    ensure_equal_schemes,
};
use crate::losses::LossPolicy;

const CODES: &str = "codes.u64";
const TEXTS: &str = "ids.txt";
const ENDS: &str = "ids.ends";
/// Names of all files.
pub(super) const FILES: [&str; 3] = [CODES, TEXTS, ENDS];
/// An index is built of fewer fingerprints than 32 bits can number.
const MOST_DOCUMENTS: u64 = u32::MAX as u64 - 1;
/// Memory of what is read at once.
const CHUNK_BYTES: u64 = 4 << 20;

/// Fingerprints in a file of raw numbers, which a build reads several times.
pub(super) struct GatheredFile {
    folder: PathBuf,
}

/// The ids of all fingerprints, in memory.
pub(super) struct LoadedIds {
    texts: String,
    ends: Vec<u64>,
}

impl LoadedIds {
    pub(super) fn texts(&self) -> IdTexts<'_> {
        IdTexts {
            texts: &self.texts,
            ends: &self.ends,
        }
    }
}

/// Things that were gathered.
pub(super) struct GatheredInput {
    pub(super) count: u64,
    pub(super) scheme: Option<SchemeId>,
    pub(super) id_bytes: Option<u64>,
    pub(super) summaries: Vec<CodesSummary>,
}

/// Writes while inputs are read.
struct GatherWriters {
    codes: BufWriter<File>,
    texts: BufWriter<File>,
    ends: BufWriter<File>,
    end: u64,
    count: u64,
}

impl GatherWriters {
    fn create(folder: &Path) -> io::Result<Self> {
        let create = |name| {
            Ok::<_, io::Error>(BufWriter::with_capacity(
                1 << 20,
                File::create(folder.join(name))?,
            ))
        };
        Ok(Self {
            codes: create(CODES)?,
            texts: create(TEXTS)?,
            ends: create(ENDS)?,
            end: 0,
            count: 0,
        })
    }

    fn add(&mut self, codes: &FingerprintFile, with_ids: bool) -> io::Result<()> {
        for (at, &code) in codes.codes.iter().enumerate() {
            self.codes.write_all(&code.to_le_bytes())?;
            if with_ids {
                let name = codes.ids.name(at, code);
                let written = match name {
                    FingerprintName::Text(text) => text.to_owned(),
                    FingerprintName::Number(number) => number.to_string(),
                    FingerprintName::Fingerprint(code) => code.to_string(),
                };
                self.texts.write_all(written.as_bytes())?;
                self.end += written.len() as u64;
                self.ends.write_all(&self.end.to_le_bytes())?;
            }
        }
        self.count += codes.codes.len() as u64;
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        for file in [self.codes, self.texts, self.ends] {
            // Durable before `job.json` says that they are whole.
            file.into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .sync_all()?;
        }
        Ok(())
    }
}

impl GatheredFile {
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Reads all inputs; `advance` hears of the bytes read.
    pub(super) fn gather(
        &self,
        inputs: &[FingerprintSource],
        with_ids: bool,
        losses: LossPolicy,
        advance: &dyn Fn(u64),
    ) -> Result<GatheredInput, BatchError> {
        let failed = BatchError::result(&self.folder);
        let mut out = GatherWriters::create(&self.folder).map_err(&failed)?;
        let mut gathering = GatheredInput {
            count: 0,
            scheme: None,
            id_bytes: None,
            summaries: Vec::new(),
        };
        let mut ids_of: Option<(String, bool)> = None;
        let mut scheme_of: Option<(String, SchemeId)> = None;
        let (mut codes, mut before) = (FingerprintFile::default(), 0);
        for source in inputs {
            if is_index(source.path()) {
                let index = open(source.path(), false)?;
                let name = source.name();
                same_scheme(name, index.scheme().map(SchemeId), &mut scheme_of)?;
                if with_ids && index.documents() > 0 {
                    same_ids(name, index.has_ids(), &mut ids_of)?;
                }
                let kept = with_ids && index.has_ids();
                each_stored(name, &index, kept, &mut |codes| {
                    out.add(codes, kept).map_err(&failed)
                })?;
                before += index.bytes();
                advance(before);
                gathering.summaries.push(CodesSummary {
                    name: name.to_owned(),
                    fingerprints: index.documents(),
                    without_features: 0,
                    scheme_id: index.scheme().map(|id| SchemeId(id).to_string()),
                    skipped: Vec::new(),
                });
                continue;
            }
            let mut file = CodeFile::open(source, losses.is_strict())?;
            let counter = file.bytes_read();
            same_scheme(file.name(), file.scheme(), &mut scheme_of)?;
            let mut more = true;
            while more {
                codes.clear();
                more = file.fill(&mut codes, CHUNK_BYTES)?;
                if !codes.codes.is_empty() && with_ids {
                    same_ids(file.name(), !codes.ids.is_none(), &mut ids_of)?;
                }
                let kept = with_ids && ids_of.as_ref().is_some_and(|(_, has)| *has);
                out.add(&codes, kept).map_err(&failed)?;
                advance(before + counter.load(std::sync::atomic::Ordering::Relaxed));
            }
            // Ids of the next file may be of another kind.
            codes = FingerprintFile::default();
            before += counter.load(std::sync::atomic::Ordering::Relaxed);
            gathering.summaries.push(file.summary());
        }
        check_losses(losses, &gathering.summaries)?;
        gathering.count = out.count;
        gathering.scheme = scheme_of.map(|(_, scheme)| scheme);
        gathering.id_bytes = ids_of.filter(|(_, has)| *has).map(|_| out.end);
        out.finish().map_err(&failed)?;
        Ok(gathering)
    }

    pub(super) fn load_ids(&self) -> io::Result<LoadedIds> {
        let ends = fs::read(self.folder.join(ENDS))?;
        let ends = ends
            .as_chunks::<8>()
            .0
            .iter()
            .map(|&end| u64::from_le_bytes(end));
        Ok(LoadedIds {
            texts: fs::read_to_string(self.folder.join(TEXTS))?,
            ends: ends.collect(),
        })
    }
}

/// Shows the fingerprints that an index holds, some at a time, each as often as it was stored, and with its ids if these are wanted.
fn each_stored(
    name: &str,
    index: &IndexFile<u64>,
    with_ids: bool,
    visit: &mut dyn FnMut(&FingerprintFile) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let wrong = |source| BatchError::IndexFile {
        path: name.to_owned(),
        source,
    };
    let (mut codes, mut ids) = (FingerprintFile::default(), Vec::new());
    let mut done = Ok(());
    let walked = index.copies(&mut |code, copies| {
        // A walk cannot be stopped: after an error the rest is passed over.
        if done.is_err() {
            return;
        }
        if with_ids {
            ids.clear();
            done = index.ids(code, &mut ids).map_err(wrong);
            for id in &ids {
                codes.ids.push_text(id, &codes.codes);
                codes.codes.push(code);
            }
        } else {
            codes.codes.extend((0..copies).map(|_| code));
        }
        if codes.bytes() >= CHUNK_BYTES && done.is_ok() {
            done = visit(&codes);
            codes.clear();
        }
    });
    walked.map_err(wrong)?;
    done?;
    visit(&codes)?;
    // Without ids an index tells how many fingerprints it was built from, and not which of them repeated: the last stands for all of
    // those, so that the number is kept. A repeat adds nothing else to an index.
    let mut repeats = match index.has_ids() {
        true => 0,
        false => index.documents().saturating_sub(index.index().len() as u64),
    };
    // Nothing in a file but this number tells of them: a wrong one would be written until the disk is full.
    if index.documents() > MOST_DOCUMENTS {
        return Err(wrong(FileError::Damaged {
            offset: 0,
            what: "more fingerprints than any index is built of",
        }));
    }
    let mut last = 0;
    index.index().for_each(&mut |code| last = code);
    while repeats > 0 {
        let some = repeats.min(CHUNK_BYTES / 8);
        codes.clear();
        codes.codes.resize(some as usize, last);
        visit(&codes)?;
        repeats -= some;
    }
    Ok(())
}

/// Refuses inputs of different schemes, where they name theirs.
fn same_scheme(
    name: &str,
    scheme: Option<SchemeId>,
    first: &mut Option<(String, SchemeId)>,
) -> Result<(), BatchError> {
    let before = first
        .as_ref()
        .map(|(name, scheme)| (name.as_str(), *scheme));
    let named = scheme.map(|scheme| (name, scheme));
    ensure_equal_schemes(before, named)?;
    if first.is_none() {
        *first = named.map(|(name, scheme)| (name.to_owned(), scheme));
    }
    Ok(())
}

/// Refuses inputs with ids beside inputs without.
fn same_ids(file: &str, has: bool, first: &mut Option<(String, bool)>) -> Result<(), BatchError> {
    match first {
        Some((name, before)) if *before != has => {
            let (with, without) = if has {
                (file, name.as_str())
            } else {
                (name.as_str(), file)
            };
            Err(BatchError::Settings(format!(
                "{with} has ids and {without} has none: index them apart, or leave ids out with --no-ids"
            )))
        }
        Some(_) => Ok(()),
        None => {
            *first = Some((file.to_owned(), has));
            Ok(())
        }
    }
}

impl CodeSource<u64> for GatheredFile {
    fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        let mut file = File::open(self.folder.join(CODES))?;
        let mut bytes = vec![0; 1 << 20];
        let mut codes = Vec::with_capacity(1 << 17);
        loop {
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read(&mut bytes[filled..])? {
                    0 => break,
                    count => filled += count,
                }
            }
            codes.clear();
            let numbers = bytes[..filled].as_chunks::<8>().0;
            codes.extend(numbers.iter().map(|&number| u64::from_le_bytes(number)));
            if codes.is_empty() {
                return Ok(());
            }
            sink(&codes);
        }
    }
}

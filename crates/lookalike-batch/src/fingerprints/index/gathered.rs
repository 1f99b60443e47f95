//! Copies the fingerprints and ids of all inputs to plain files next to the unfinished index, where they can be read repeatedly.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use lookalike::scheme::SchemeId;
use lookalike_hamming::{CodeSource, IdTexts, IndexFile, Word};
use serde::{Deserialize, Serialize};

use super::build_folder::{CODES, ENDS, TEXTS, create, finish};
use super::{IndexBuild, codes_summary, is_index, open, stated_width, width};
use crate::error::BatchError;
use crate::fingerprints::files::{
    CodeFile, CodesSummary, CommonFact, FingerprintFile, FingerprintName, FingerprintSource,
    RawReader, check_losses, ensure_equal_schemes, ensure_equal_widths, system_error,
};
use crate::fingerprints::settings_error::FingerprintSettingsError;
use crate::fingerprints::with_word::with_word;
use crate::observer::check_cancelled;

/// Bytes in memory for one chunk.
const CHUNK_BYTES: u64 = 4 << 20;

/// Fingerprints in a file of raw numbers, which a build reads several times.
pub(super) struct GatheredFile<'a>(pub(super) &'a Path);

/// Ids of all fingerprints, loaded into memory.
pub(super) struct LoadedIds {
    texts: String,
    ends: Vec<u64>,
}

/// Facts about the gathered inputs.
#[derive(Serialize, Deserialize)]
pub(super) struct GatheredInput {
    /// Width of the fingerprints in bits.
    pub(super) bits: u32,
    pub(super) count: u64,
    pub(super) scheme: Option<u64>,
    pub(super) id_bytes: Option<u64>,
    pub(super) summaries: Vec<CodesSummary>,
}

/// Writers of the plain files.
struct GatherWriters {
    codes: BufWriter<File>,
    texts: BufWriter<File>,
    ends: BufWriter<File>,
    end: u64,
    count: u64,
}

impl GatherWriters {
    fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            codes: create(folder, CODES)?,
            texts: create(folder, TEXTS)?,
            ends: create(folder, ENDS)?,
            end: 0,
            count: 0,
        })
    }

    fn add<W: Word>(&mut self, codes: &FingerprintFile<W>, with_ids: bool) -> io::Result<()> {
        for (at, &code) in codes.codes.iter().enumerate() {
            let bytes = code.to_u128().to_le_bytes();
            self.codes.write_all(&bytes[..W::BITS as usize / 8])?;
            if with_ids {
                self.add_id(codes.ids.name(at, code))?;
            }
        }
        self.count += codes.codes.len() as u64;
        Ok(())
    }

    fn add_id(&mut self, name: FingerprintName<'_>) -> io::Result<()> {
        // As texts, whatever they were: an index stores no other ids.
        let written = name.text();
        self.texts.write_all(written.as_bytes())?;
        self.end += written.len() as u64;
        self.ends.write_all(&self.end.to_le_bytes())
    }

    /// Adds the ids of the fingerprints from position `first` on, which were added without: they stand for themselves.
    fn add_ids_from<W: Word>(&mut self, folder: &Path, first: u64) -> io::Result<()> {
        self.codes.flush()?;
        for_each_code::<W>(folder, first, &mut |codes| {
            let mut names = codes.iter().copied().map(FingerprintName::from_code);
            names.try_for_each(|name| self.add_id(name))
        })
    }
}

/// Visits the gathered fingerprints from position `first` on.
fn for_each_code<W: Word>(
    folder: &Path,
    first: u64,
    visit: &mut dyn FnMut(&[W]) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = File::open(folder.join(CODES))?;
    file.seek(SeekFrom::Start(first * u64::from(W::BITS / 8)))?;
    let mut reader = RawReader::new(Box::new(file));
    let (mut codes, mut more) = (Vec::new(), true);
    while more {
        codes.clear();
        more = reader.read::<W>(&mut codes).map_err(system_error)?;
        visit(&codes)?;
    }
    Ok(())
}

/// Reads all inputs and writes the plain files.
pub(super) fn gather(build: &IndexBuild<'_>, folder: &Path) -> Result<GatheredInput, BatchError> {
    let failed = BatchError::result(folder);
    let mut reading = GatherState {
        out: GatherWriters::create(folder).map_err(&failed)?,
        folder,
        build,
        bits: CommonFact::default(),
        empty_bits: None,
        scheme: CommonFact::default(),
        ids: CommonFact::default(),
        before: 0,
        summaries: Vec::new(),
    };
    for source in build.inputs {
        if is_index(source.path()) {
            let stated = stated_width(source.path())?;
            (reading.bits).agree(source.name(), stated, ensure_equal_widths)?;
            let bits = width(source.path())?;
            if stated.is_none() {
                reading.empty_bits.get_or_insert(bits);
            }
            with_word!(bits, W => reading.index::<W>(source)?);
            continue;
        }
        let file = CodeFile::open(source, build.losses.is_strict())?;
        (reading.bits).agree(file.name(), file.bits(), ensure_equal_widths)?;
        with_word!(reading.bits(), W => reading.file::<W>(file)?);
    }
    check_losses(build.losses, &reading.summaries)?;
    let gathering = GatheredInput {
        bits: reading.bits(),
        count: reading.out.count,
        scheme: reading.scheme.get().map(|scheme| scheme.0),
        id_bytes: (reading.ids.get() == Some(true)).then_some(reading.out.end),
        summaries: reading.summaries,
    };
    let GatherWriters {
        codes, texts, ends, ..
    } = reading.out;
    finish([codes, texts, ends]).map_err(&failed)?;
    Ok(gathering)
}

impl LoadedIds {
    pub(super) fn load(folder: &Path) -> io::Result<Self> {
        let ends = fs::read(folder.join(ENDS))?;
        let ends = ends
            .as_chunks::<8>()
            .0
            .iter()
            .map(|&end| u64::from_le_bytes(end));
        Ok(Self {
            texts: fs::read_to_string(folder.join(TEXTS))?,
            ends: ends.collect(),
        })
    }

    pub(super) fn texts(&self) -> IdTexts<'_> {
        IdTexts {
            texts: &self.texts,
            ends: &self.ends,
        }
    }
}

/// State of gathering the inputs.
struct GatherState<'a> {
    out: GatherWriters,
    folder: &'a Path,
    build: &'a IndexBuild<'a>,
    /// Width, scheme and presence of ids, each with the first input that determines it.
    bits: CommonFact<u32>,
    /// Width of the first empty index.
    empty_bits: Option<u32>,
    scheme: CommonFact<SchemeId>,
    ids: CommonFact<bool>,
    /// Bytes of the inputs that are finished.
    before: u64,
    summaries: Vec<CodesSummary>,
}

impl GatherState<'_> {
    fn bits(&self) -> u32 {
        // Only inputs without fingerprints have no width, and for those any will do.
        self.bits.get().or(self.empty_bits).unwrap_or(64)
    }

    /// Adds the contents of another index.
    fn index<W: Word>(&mut self, source: &FingerprintSource) -> Result<(), BatchError> {
        let index = open::<W>(source.path(), false)?;
        let name = source.name();
        let scheme = index.scheme().map(SchemeId);
        self.scheme.agree(name, scheme, ensure_equal_schemes)?;
        if self.build.with_ids && index.documents() > 0 {
            (self.ids).agree(name, Some(index.has_ids()), ensure_same_ids)?;
        }
        // Ids that are not stored in the end are not even copied, so repeated fingerprints need no lookup of theirs.
        let kept = self.build.with_ids && index.has_ids();
        let failed = BatchError::result(self.folder);
        for_each_stored(name, &index, kept, &mut |codes| {
            check_cancelled(self.build.observer).map_err(|_| BatchError::Cancelled)?;
            self.out.add(codes, kept).map_err(&failed)
        })?;
        self.before += index.bytes();
        self.build.observer.progress(self.before);
        self.summaries.push(codes_summary(name, &index));
        Ok(())
    }

    /// Adds the contents of a file.
    fn file<W: Word>(&mut self, mut file: CodeFile) -> Result<(), BatchError> {
        let failed = BatchError::result(self.folder);
        (self.scheme).agree(file.name(), file.scheme(), ensure_equal_schemes)?;
        let (mut codes, mut more) = (FingerprintFile::<W>::default(), true);
        let (first, mut has_ids) = (self.out.count, false);
        while more {
            check_cancelled(self.build.observer).map_err(|_| BatchError::Cancelled)?;
            codes.clear();
            more = file.fill(&mut codes, CHUNK_BYTES)?;
            if self.build.with_ids && !has_ids && !codes.codes.is_empty() {
                has_ids = !codes.ids.is_none();
                // The first id may come later, and then those before it stand for themselves.
                if has_ids || !file.may_have_later_ids() {
                    (self.ids).agree(file.name(), Some(has_ids), ensure_same_ids)?;
                }
                if has_ids {
                    let added = self.out.add_ids_from::<W>(self.folder, first);
                    added.map_err(&failed)?;
                }
            }
            self.out.add(&codes, has_ids).map_err(&failed)?;
            self.build
                .observer
                .progress(self.before + file.bytes_read());
        }
        if self.build.with_ids && !has_ids && self.out.count > first {
            (self.ids).agree(file.name(), Some(false), ensure_same_ids)?;
        }
        self.before += file.bytes_read();
        self.summaries.push(file.summary());
        Ok(())
    }
}

/// Visits the fingerprints of an index, chunk by chunk, each as often as it was stored, and with its ids if `with_ids` is true.
fn for_each_stored<W: Word>(
    name: &str,
    index: &IndexFile<W>,
    with_ids: bool,
    visit: &mut dyn FnMut(&FingerprintFile<W>) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let wrong = |cause| BatchError::IndexFile {
        path: name.to_owned(),
        cause,
    };
    let (mut codes, mut ids) = (FingerprintFile::<W>::default(), Vec::new());
    let mut done = Ok(());
    let walked = index.copies(&mut |code, copies| {
        // A walk cannot be stopped, so the rest is ignored after an error.
        if done.is_err() {
            return;
        }
        done = match with_ids {
            true => {
                ids.clear();
                index.ids(code, &mut ids).map_err(wrong).and_then(|()| {
                    // One fingerprint for each id, so that the number of documents stays that of the index.
                    let named = ids.iter().copied().map(Some);
                    push_copies(&mut codes, code, named, visit)
                })
            }
            false => push_copies(&mut codes, code, (0..copies).map(|_| None), visit),
        };
    });
    walked.map_err(wrong)?;
    done?;
    visit(&codes)?;
    // An index without ids stores how many fingerprints it was built from but not which of them repeated. To keep that number, repeat the last
    // fingerprint. Repeats add nothing else to an index.
    let mut repeats = match index.has_ids() {
        true => 0,
        false => index.documents().saturating_sub(index.index().len() as u64),
    };
    let mut last = W::ZERO;
    index.index().for_each(&mut |code| last = code);
    while repeats > 0 {
        // The widest fingerprint has 16 bytes.
        let some = repeats.min(CHUNK_BYTES / 16);
        codes.clear();
        codes.codes.resize(some as usize, last);
        visit(&codes)?;
        repeats -= some;
    }
    Ok(())
}

/// Appends copies of a fingerprint, each with its id. Whenever enough have gathered, passes them on, because one fingerprint may have millions of
/// copies.
fn push_copies<'i, W: Word>(
    codes: &mut FingerprintFile<W>,
    code: W,
    ids: impl Iterator<Item = Option<&'i str>>,
    visit: &mut dyn FnMut(&FingerprintFile<W>) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    for id in ids {
        if let Some(id) = id {
            codes.ids.push_text(id, &codes.codes);
        }
        codes.codes.push(code);
        if codes.bytes() >= CHUNK_BYTES {
            visit(codes)?;
            codes.clear();
        }
    }
    Ok(())
}

/// Refuses inputs of which only some have ids. Each is given by name and whether it has ids.
fn ensure_same_ids(
    a: Option<(&str, bool)>,
    b: Option<(&str, bool)>,
) -> Result<(), FingerprintSettingsError> {
    match (a, b) {
        (Some((with, true)), Some((without, false)))
        | (Some((without, false)), Some((with, true))) => {
            let (with, without) = (with.to_owned(), without.to_owned());
            Err(FingerprintSettingsError::IdsOfSome { with, without })
        }
        _ => Ok(()),
    }
}

impl<W: Word> CodeSource<W> for GatheredFile<'_> {
    fn replay(&self, sink: &mut dyn FnMut(&[W])) -> io::Result<()> {
        for_each_code(self.0, 0, &mut |codes| {
            sink(codes);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use lookalike_hamming::{BuildLimits, Design, Family, IndexFileWriter, Layout, share};

    use super::*;

    #[test]
    fn all_ids_of_one_fingerprint_were_gathered_at_once() {
        const IDS: usize = 1200;
        let long = "x".repeat(CHUNK_BYTES as usize / IDS * 3);
        let (mut texts, mut ends) = (String::new(), Vec::new());
        for number in 0..IDS {
            texts += &format!("{number:04}{long}");
            ends.push(texts.len() as u64);
        }
        let ids = IdTexts {
            texts: &texts,
            ends: &ends,
        };
        let design = Design::new(Family::budgets(&[1, 1]), 64, 3).unwrap();
        let mut writer = IndexFileWriter::new(Vec::new(), None, &design, Layout::Packed).unwrap();
        let codes = [7_u64; IDS];
        while writer
            .next_table(&codes[..], Some(ids), BuildLimits::default())
            .unwrap()
        {}
        let index = IndexFile::<u64>::open(share(writer.finish().unwrap())).unwrap();
        let (mut most, mut all) = (0, Vec::<usize>::new());
        for_each_stored("index", &index, true, &mut |codes| {
            most = most.max(codes.bytes());
            for (at, &code) in codes.codes.iter().enumerate() {
                let FingerprintName::Text(id) = codes.ids.name(at, code) else {
                    panic!("ids are texts");
                };
                all.push(id[..4].parse().unwrap());
            }
            Ok(())
        })
        .unwrap();
        assert!(most < CHUNK_BYTES * 5 / 4, "{most} bytes at once");
        assert!((0..IDS).eq(all));
    }
}

//! Writing a run from one source of documents or several.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use lookalike_hamming::{
    BuildError, BuildLimits, CodeSource, Design, IndexFileWriter, Layout, TableIndex,
};

use super::design::{Sample, large_design};
use super::filter::Filter;
use super::footer::{Footer, header};
use super::groups::Groups;
use super::merge::{Source, merged};
use super::pages::{BlockReader, BlockWriter, Section, SectionWriter, ensure_wanted};
use super::read::load_tables;
use super::sorted;
use crate::codec::{fixed, put_bytes};
use crate::error::{Result, StoreError};
use crate::fs::Fs;
use crate::seal::Seal;

/// Bytes of documents that are put into one block.
const BLOCK: usize = 4096;

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) collection: u64,
    /// Number of the file.
    pub(crate) number: u64,
    pub(crate) radius: u32,
    /// Tables of no more fingerprints than this are made when a run is opened.
    pub(crate) small: usize,
    /// Memory for sorting.
    pub(crate) scratch: usize,
}

/// Writes the live documents of some sources, one after the other; the file is durable, but for its name.
///
/// # Errors
/// Those of the medium, damage found in the sources, and [`StoreError::Closed`] once it is `cancelled`.
pub(crate) fn write_run(
    fs: &dyn Fs,
    path: &Path,
    options: &RunOptions,
    sources: &[&dyn Source],
    cancelled: &AtomicBool,
) -> Result<()> {
    let seal = Seal::new(options.collection, options.number);
    let mut out = BlockWriter::create(fs, path, seal, cancelled)?;
    out.raw(&header(options.collection, options.number))?;
    let mut footer = Footer::default();
    write_documents(&mut out, &mut footer, sources)?;
    write_codes(&mut out, &mut footer, sources)?;
    write_tables(&mut out, &mut footer, options)?;
    write_expiry(&mut out, &mut footer, sources)?;
    write_ids(&mut out, &mut footer, sources)?;
    let (paragraphs, firsts) =
        sorted::write(&mut out, merged(sources, &|source| source.paragraphs())?)?;
    footer.paragraphs = (paragraphs.offset, paragraphs.count, firsts);
    footer.write(out)
}

fn write_documents(
    out: &mut BlockWriter<'_>,
    footer: &mut Footer,
    sources: &[&dyn Source],
) -> Result<()> {
    let (mut block, mut in_block, mut count) = (Vec::with_capacity(2 * BLOCK), 0_u32, 0_u32);
    let (mut firsts, mut offsets) = (Vec::new(), Vec::new());
    for source in sources {
        source.documents(&mut |bytes| {
            if in_block > 0 && block.len() + bytes.len() > BLOCK {
                firsts.extend_from_slice(&(count - in_block).to_le_bytes());
                offsets.extend_from_slice(&out.block(&block)?.to_le_bytes());
                block.clear();
                in_block = 0;
            }
            put_bytes(&mut block, bytes);
            in_block += 1;
            count += 1;
            Ok(())
        })?;
    }
    if in_block > 0 {
        firsts.extend_from_slice(&(count - in_block).to_le_bytes());
        offsets.extend_from_slice(&out.block(&block)?.to_le_bytes());
    }
    offsets.extend_from_slice(&out.offset().to_le_bytes());
    footer.documents = count.into();
    footer.firsts = out.section(&firsts)?;
    footer.offsets = out.section(&offsets)?;
    Ok(())
}

fn write_codes(
    out: &mut BlockWriter<'_>,
    footer: &mut Footer,
    sources: &[&dyn Source],
) -> Result<()> {
    let (mut absent, mut document) = (Vec::new(), 0_u32);
    let mut section = SectionWriter::new(out);
    for source in sources {
        source.codes(&mut |code| {
            match code {
                Some(code) => {
                    section.put(&code.to_le_bytes())?;
                    footer.coded += 1;
                }
                None => absent.extend_from_slice(&document.to_le_bytes()),
            }
            document += 1;
            Ok(())
        })?;
    }
    footer.codes = section.finish()?;
    footer.absent = out.section(&absent)?;
    Ok(())
}

/// The codes of a run, from its file.
struct StoredCodes<'a> {
    reader: BlockReader<'a>,
    section: Section,
    cancelled: &'a AtomicBool,
}

impl CodeSource<u64> for StoredCodes<'_> {
    fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> std::io::Result<()> {
        let mut codes = Vec::new();
        let read = self.reader.pages(self.section, &mut |page| {
            ensure_wanted(self.cancelled)?;
            codes.clear();
            codes.extend(page.chunks_exact(8).map(fixed));
            sink(&codes);
            Ok(())
        });
        read.map_err(std::io::Error::other)
    }
}

/// Tables and the documents of each fingerprint; nothing where few are.
fn write_tables(
    out: &mut BlockWriter<'_>,
    footer: &mut Footer,
    options: &RunOptions,
) -> Result<()> {
    let coded = footer.coded as usize;
    if coded <= options.small {
        return Ok(());
    }
    // The codes are read back from the file that is being written.
    out.flush()?;
    let design = sampled_design(out, footer.codes, options.radius, coded)?;
    let limits = BuildLimits {
        scratch_bytes: options.scratch,
        threads: 1,
    };
    let path = out.path().to_owned();
    footer.tables = write_index(out, &path, footer.codes, &design, limits)?;
    out.flush()?;
    let file = out.file();
    let reader = BlockReader {
        file: &*file,
        path: &path,
        seal: out.seal(),
    };
    let tables = load_tables(&reader, footer.tables)?;
    let absent = reader.section(footer.absent)?;
    let groups = group(&reader, footer, &absent, tables.index(), out.cancelled())?;
    drop(tables);
    for (section, words) in [&mut footer.starts, &mut footer.order]
        .into_iter()
        .zip(groups.words())
    {
        let mut writer = SectionWriter::new(out);
        for word in words {
            writer.put(&word.to_le_bytes())?;
        }
        *section = writer.finish()?;
    }
    Ok(())
}

/// The design for the codes that are written.
fn sampled_design(
    out: &BlockWriter<'_>,
    codes: Section,
    radius: u32,
    coded: usize,
) -> Result<Design> {
    let (file, path) = (out.file(), out.path());
    let reader = BlockReader {
        file: &*file,
        path,
        seal: out.seal(),
    };
    let mut sample = Sample::of(coded);
    reader.pages(codes, &mut |page| {
        page.chunks_exact(8)
            .for_each(|code| sample.see(fixed(code)));
        Ok(())
    })?;
    Ok(large_design(radius, coded, &sample))
}

fn write_index(
    out: &mut BlockWriter<'_>,
    path: &Path,
    codes: Section,
    design: &Design,
    limits: BuildLimits,
) -> Result<Section> {
    let (seal, cancelled) = (out.seal(), out.cancelled());
    let failed = |error: BuildError| match error {
        BuildError::Write(source) | BuildError::Read(source) => {
            StoreError::io(path, "building the tables of a run")(source)
        }
        other => StoreError::Invalid(format!("building the tables of a run: {other}")),
    };
    let file = out.file();
    let source = StoredCodes {
        reader: BlockReader {
            file: &*file,
            path,
            seal,
        },
        section: codes,
        cancelled,
    };
    let mut section = SectionWriter::new(out);
    let built = (|| {
        let mut writer = IndexFileWriter::new(&mut section, None, design, Layout::Packed)
            .map_err(BuildError::Write)?;
        while writer.next_table::<u64>(&source, None, limits)? {}
        writer.finish().map(drop)
    })();
    if let Some(error) = section.take_failure() {
        return Err(error);
    }
    // What is given up fails as a read does.
    ensure_wanted(cancelled)?;
    built.map_err(failed)?;
    section.finish()
}

/// Lists the documents of each code.
pub(super) fn group(
    reader: &BlockReader<'_>,
    footer: &Footer,
    absent: &[u8],
    index: &TableIndex<u64>,
    cancelled: &AtomicBool,
) -> Result<Groups> {
    let (coded, documents) = (footer.coded as usize, footer.documents as usize);
    let ranks = lookalike_hamming::HammingIndex::len(index);
    let mut failed = None;
    let groups = Groups::build(ranks, coded, documents, &mut |each| {
        let mut absent = absent
            .chunks_exact(4)
            .map(|bytes| fixed(bytes) as u32)
            .peekable();
        let mut document = 0;
        let read = reader.pages(footer.codes, &mut |page| {
            ensure_wanted(cancelled)?;
            for code in page.chunks_exact(8).map(fixed) {
                while absent.next_if_eq(&document).is_some() {
                    document += 1;
                }
                let rank = index.rank(code).ok_or_else(|| {
                    let what = "a fingerprint is not in the tables";
                    StoreError::damaged(reader.path, footer.codes.offset, what)
                })?;
                each(document, rank);
                document += 1;
            }
            Ok(())
        });
        failed = failed.take().or(read.err());
    });
    failed.map_or(Ok(groups), Err)
}

fn write_expiry(
    out: &mut BlockWriter<'_>,
    footer: &mut Footer,
    sources: &[&dyn Source],
) -> Result<()> {
    if !sources.iter().any(|source| source.any_expires()) {
        return Ok(());
    }
    let mut section = SectionWriter::new(out);
    for source in sources {
        source.expiry(&mut |end| section.put(&end.to_le_bytes()))?;
    }
    footer.expires = section.finish()?;
    Ok(())
}

fn write_ids(
    out: &mut BlockWriter<'_>,
    footer: &mut Footer,
    sources: &[&dyn Source],
) -> Result<()> {
    let mut filter = Filter::new(footer.documents as usize);
    let entries = merged(sources, &|source| source.ids())?;
    let noted = entries.inspect(|entry| {
        if let Ok((hash, _)) = entry {
            filter.insert(*hash);
        }
    });
    let (ids, firsts) = sorted::write(out, noted)?;
    footer.ids = (ids.offset, ids.count, firsts);
    let mut section = SectionWriter::new(out);
    for word in filter.words() {
        section.put(&word.to_le_bytes())?;
    }
    footer.filter = section.finish()?;
    Ok(())
}

//! Writing a run from one or more sources of documents.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use lookalike_hamming::{BuildError, BuildLimits, CodeSource, IndexFileWriter, Layout};

use super::footer::{NEVER, RunFooter, header};
use super::id_filter::IdFilter;
use super::pages::{BlockReader, BlockWriter, RunSection, SectionWriter, check_cancelled};
use super::sorted::{self, IndexKey, SortedIndex};
use super::sources::{DocumentSource, merged};
use super::table_design::{CodeSample, large_design};
use super::tables::{group_by_code, load_tables};
use crate::checksum::FileIdentity;
use crate::codec::{fixed, put_bytes};
use crate::document_sketch::SketchForm;
use crate::error::{Result, StoreError};
use crate::fs::FileSystem;
use crate::settings::IndexShape;

/// Size in bytes up to which documents share a block.
const BLOCK: usize = 4096;

/// Parameters of a new run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOptions {
    pub(crate) identity: FileIdentity,
    pub(crate) shape: IndexShape,
    /// Maximum number of fingerprints whose tables are not stored, but built when the run is opened.
    pub(crate) small: usize,
    /// Memory in bytes for sorting.
    pub(crate) scratch: usize,
}

/// Writes the live documents of several sources, one source after the other, and syncs the file, but not the folder that names it.
///
/// # Errors
/// Failures of the medium, damage found in the sources, and [`StoreError::Closed`] once it is `cancelled`.
pub(crate) fn write_run(
    fs: &dyn FileSystem,
    path: &Path,
    options: &RunOptions,
    sources: &[DocumentSource<'_>],
    cancelled: &AtomicBool,
) -> Result<()> {
    let mut writer = RunFileWriter {
        out: BlockWriter::create(fs, path, options.identity, cancelled)?,
        footer: RunFooter::default(),
        options,
        sources,
    };
    writer.out.raw(&header(options.identity))?;
    // Sketches and the index of paragraph fingerprints come before their tables, which are built from what is in the file.
    writer.write_documents()?;
    writer.write_sketches()?;
    writer.write_tables()?;
    writer.write_expiry()?;
    writer.write_indexes()?;
    writer.write_paragraph_tables()?;
    writer.write_traits()?;
    writer.footer.write(writer.out)
}

/// Fingerprints that have been written to the file of a run.
enum CodeList {
    /// Those of the documents, in the order of documents.
    Documents(RunSection),
    /// The distinct ones of the paragraphs.
    Paragraphs(SortedIndex),
}

/// Reads the codes of a run back from its file.
struct StoredCodes<'a> {
    reader: BlockReader,
    list: &'a CodeList,
    cancelled: &'a AtomicBool,
}

impl StoredCodes<'_> {
    fn visit(&self, sink: &mut dyn FnMut(&[u64])) -> Result<()> {
        let mut codes = Vec::new();
        match self.list {
            CodeList::Documents(section) => self.reader.pages(*section, &mut |page| {
                check_cancelled(self.cancelled)?;
                codes.clear();
                codes.extend(page.chunks_exact(8).map(fixed));
                sink(&codes);
                Ok(())
            }),
            CodeList::Paragraphs(index) => index.keys(&self.reader, &mut |keys| {
                check_cancelled(self.cancelled)?;
                sink(keys);
                Ok(())
            }),
        }
    }
}

impl CodeSource<u64> for StoredCodes<'_> {
    fn replay(&self, sink: &mut dyn FnMut(&[u64])) -> std::io::Result<()> {
        self.visit(sink).map_err(std::io::Error::other)
    }
}

/// Writes the parts of a run and locates them in its footer.
struct RunFileWriter<'a> {
    out: BlockWriter<'a>,
    footer: RunFooter,
    options: &'a RunOptions,
    sources: &'a [DocumentSource<'a>],
}

impl RunFileWriter<'_> {
    fn write_documents(&mut self) -> Result<()> {
        let out = &mut self.out;
        // Blocks are about the size of a system page, so that reading a document reads one or two pages, and its checksum covers no more.
        let (mut block, mut in_block, mut count) = (Vec::with_capacity(2 * BLOCK), 0_u32, 0_u32);
        let (mut firsts, mut offsets) = (Vec::new(), Vec::new());
        for source in self.sources {
            source.documents(&mut |bytes| {
                // Documents are not divided: a long one gets a block of its own.
                if in_block > 0 && block.len() + bytes.len() > BLOCK {
                    // The first document of the block that ends here.
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
        self.footer.documents = count.into();
        self.footer.firsts = out.section(&firsts)?;
        self.footer.offsets = out.section(&offsets)?;
        Ok(())
    }

    fn write_sketches(&mut self) -> Result<()> {
        let (mut absent, mut document) = (Vec::new(), 0_u32);
        let mut section = SectionWriter::new(&mut self.out);
        for source in self.sources {
            source.sketches(&mut |sketch| {
                match sketch {
                    Some(sketch) => {
                        section.put(sketch)?;
                        self.footer.coded += 1;
                    }
                    None => absent.extend_from_slice(&document.to_le_bytes()),
                }
                document += 1;
                Ok(())
            })?;
        }
        self.footer.codes = section.finish()?;
        self.footer.absent = self.out.section(&absent)?;
        Ok(())
    }

    /// Writes the tables and the lists of the documents of each fingerprint. Writes nothing if there are few fingerprints, or for other
    /// sketches, whose index is built when the run is opened.
    fn write_tables(&mut self) -> Result<()> {
        let (coded, shape) = (self.footer.coded as usize, self.options.shape);
        if coded <= self.options.small || shape.form != SketchForm::Fingerprint {
            return Ok(());
        }
        let list = CodeList::Documents(self.footer.codes);
        self.footer.tables = self.write_index(&list, coded, shape.radius)?;
        let reader = self.out.flushed()?;
        // Read the tables back instead of keeping them: their writer streams them, and reading verifies what was written.
        let tables = load_tables(&reader, self.footer.tables)?;
        let absent = reader.section(self.footer.absent)?;
        let cancelled = self.out.cancelled;
        let groups = group_by_code(&reader, &self.footer, &absent, tables.index(), cancelled)?;
        // The lists of documents are written next; keeping the tables as well would double the memory of a merge.
        drop(tables);
        let [starts, order] = groups.words();
        self.footer.starts = write_words(&mut self.out, starts.iter().copied())?;
        self.footer.order = write_words(&mut self.out, order.iter().copied())?;
        Ok(())
    }

    /// Writes the tables of paragraph fingerprints. Writes nothing if there are few.
    fn write_paragraph_tables(&mut self) -> Result<()> {
        let codes = self.footer.indexes[IndexKey::ParagraphCode as usize];
        let listed = codes.count as usize;
        if listed <= self.options.small {
            return Ok(());
        }
        let index = SortedIndex::open(&self.out.flushed()?, codes)?;
        let (list, radius) = (
            CodeList::Paragraphs(index),
            self.options.shape.paragraph_radius,
        );
        self.footer.paragraph_tables = self.write_index(&list, listed, radius)?;
        Ok(())
    }

    /// Writes a fingerprint index of at most `count` codes that are in the file being written.
    fn write_index(&mut self, list: &CodeList, count: usize, radius: u32) -> Result<RunSection> {
        let cancelled = self.out.cancelled;
        let source = StoredCodes {
            reader: self.out.flushed()?,
            list,
            cancelled,
        };
        let limits = BuildLimits::default()
            .scratch_bytes(self.options.scratch)
            .threads(1);
        let path = source.reader.path();
        let failed = |error: BuildError| match error {
            // Codes are read and tables written through `StoredCodes` and `SectionWriter`, whose errors are those of the store.
            BuildError::Write(error) | BuildError::Read(error) => error
                .downcast()
                .unwrap_or_else(StoreError::io(path, "building the tables of a run")),
            other => StoreError::run_build(path, other),
        };
        // For paragraphs, `count` includes repeats, which only makes the sample smaller.
        let mut sample = CodeSample::of(count);
        source.visit(&mut |codes| codes.iter().for_each(|&code| sample.sample(code)))?;
        let design = large_design(radius, count, &sample);
        let mut section = SectionWriter::new(&mut self.out);
        let built = (|| {
            // Without scheme and ids: the manifest has the scheme, and `CodeGroups` the documents of each fingerprint.
            let mut writer = IndexFileWriter::new(&mut section, None, &design, Layout::Packed)
                .map_err(BuildError::Write)?;
            while writer.next_table::<u64>(&source, None, limits)? {}
            writer.finish().map(drop)
        })();
        built.map_err(failed)?;
        section.finish()
    }

    fn write_expiry(&mut self) -> Result<()> {
        let expires = || self.sources.iter().flat_map(DocumentSource::expires);
        if expires().any(|end| end != NEVER) {
            self.footer.expires = write_words(&mut self.out, expires())?;
        }
        Ok(())
    }

    /// Writes categories and lengths, each only if any document has one.
    fn write_traits(&mut self) -> Result<()> {
        let traits = || self.sources.iter().flat_map(DocumentSource::traits);
        if traits().any(|traits| traits.category != 0) {
            let categories = traits().map(|traits| traits.category);
            self.footer.categories = write_words(&mut self.out, categories)?;
        }
        if traits().any(|traits| traits.length != 0) {
            let mut section = SectionWriter::new(&mut self.out);
            traits().try_for_each(|traits| section.put(&traits.length.to_le_bytes()))?;
            self.footer.lengths = section.finish()?;
        }
        Ok(())
    }

    /// Writes the indexes, and the filter of ids after that of ids.
    fn write_indexes(&mut self) -> Result<()> {
        // Filled while the entries are written, in the order of their hashes.
        let mut filter = IdFilter::new(self.footer.documents as usize);
        let entries = merged(self.sources, IndexKey::Id).inspect(|entry| {
            if let Ok((hash, _)) = entry {
                filter.insert(*hash);
            }
        });
        let [ids, others @ ..] = &mut self.footer.indexes;
        *ids = sorted::write(&mut self.out, entries)?;
        self.footer.filter = write_words(&mut self.out, filter.words.iter().copied())?;
        for (index, key) in others.iter_mut().zip(&IndexKey::ALL[1..]) {
            *index = sorted::write(&mut self.out, merged(self.sources, *key))?;
        }
        Ok(())
    }
}

/// Writes a section of 8-byte words.
fn write_words(
    out: &mut BlockWriter<'_>,
    words: impl IntoIterator<Item = u64>,
) -> Result<RunSection> {
    let mut section = SectionWriter::new(out);
    let mut words = words.into_iter();
    words.try_for_each(|word| section.put(&word.to_le_bytes()))?;
    section.finish()
}

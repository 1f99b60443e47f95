//! Detection of lines that recur on many pages: the pass before the first one of a job with `--boilerplate`.
//!
//! Every line of every page becomes a key; keys are partitioned on disk, grouped, and those that occur on enough different pages of their site are
//! learned. Pages with equal text count once, so that copies of a page do not make its lines boilerplate. The result does not depend on any order.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::scheme::BoilerplateScope;
use lookalike_corpus::{
    BoilerplateLines, InputOptions, Inputs, Parser, Record, RecordChunk, RemovedBoilerplate,
    line_keys, site_key, text_hash,
};
use serde::{Deserialize, Serialize};

use crate::dedup::candidate_groups::{KeySink, KeyWriter};
use crate::dedup::class_id::ClassId;
use crate::dedup::seen_texts::SeenTexts;
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::BatchError;
use crate::observer::{JobObserver, JobStage, NoProgress, check_cancelled};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::settings_error::{BoundedSetting, SettingsError};
use crate::spill::partitions::PARTS;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::{self, TableShare, TableShareSizes};

/// Minimum number of pages with a line: fewer are no evidence of a template.
const MIN_PAGES: u64 = 5;

// Relative, because the error of the product grows with it.
/// Tolerance for shares such as 0.07 that are slightly too large as binary fractions.
const ROUNDING: f64 = 1e-12;

/// Job that learns the boilerplate lines of its input.
#[derive(Debug)]
pub struct BoilerplateLearner<'a> {
    inputs: &'a Inputs,
    options: InputOptions,
    scope: BoilerplateScope,
    share: f64,
    limits: JobLimits,
    folder: &'a Path,
    observer: &'a dyn JobObserver,
}

lookalike::setters! {
    BoilerplateLearner<'a> {
        /// Sets how sources are read: the options that [`Inputs::discover`] was given. Their `boilerplate` is ignored.
        options: InputOptions,
        /// Sets the pages among which a line must recur: by default those of a site.
        scope: BoilerplateScope,
        /// Sets the share of these pages on which a line must occur, in (0, 1]: by default 0.1. It must always occur on at least five.
        share: f64,
        /// Sets the resources that the job may use. The result does not depend on them.
        limits: JobLimits,
        /// Sets the observer of the progress.
        observer: &'a dyn JobObserver,
    }
}

/// Counts of the lines that were learned and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoilerplateCounts {
    /// The pages among which the lines recur, and the id of the set of lines, as in the scheme.
    pub lines_of: String,
    /// Number of lines learned.
    pub learned: u64,
    /// Number of documents from which lines were removed.
    pub documents: u64,
    /// Number of lines removed.
    pub lines: u64,
    /// Number of bytes of these lines.
    pub bytes: u64,
    /// Number of documents that kept all lines because almost nothing else would have been left.
    pub kept_whole: u64,
    /// Number of documents without a site, which kept all lines.
    pub without_site: u64,
}

/// The counts of [`BoilerplateCounts`] that change during the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemovedTally {
    documents: u64,
    lines: u64,
    bytes: u64,
    kept_whole: u64,
    without_site: u64,
}

impl RemovedTally {
    /// Counts a document.
    pub(crate) fn count(&mut self, removed: &RemovedBoilerplate) {
        self.documents += u64::from(removed.lines > 0);
        self.lines += removed.lines;
        self.bytes += removed.bytes;
        self.kept_whole += u64::from(removed.kept_whole);
        self.without_site += u64::from(removed.without_site);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.lines += other.lines;
        self.bytes += other.bytes;
        self.kept_whole += other.kept_whole;
        self.without_site += other.without_site;
    }

    /// Returns the counts for a summary, or `None` if nothing was to be removed.
    pub(crate) fn counts(&self, options: &InputOptions) -> Option<BoilerplateCounts> {
        let lines = options.boilerplate.as_ref()?;
        Some(BoilerplateCounts {
            lines_of: lines.scheme().to_string(),
            learned: lines.len() as u64,
            documents: self.documents,
            lines: self.lines,
            bytes: self.bytes,
            kept_whole: self.kept_whole,
            without_site: self.without_site,
        })
    }
}

/// A text that is new on its site.
struct SitePage {
    class: ClassId,
    site: u64,
}

struct LineReader<'a> {
    learning: &'a BoilerplateLearner<'a>,
    parser: Parser<'a>,
    seen: &'a SeenTexts,
    too_many: &'a AtomicBool,
    lines: KeyWriter<'a>,
    keys: Vec<u64>,
}

#[derive(Default)]
struct PageBatch {
    new: Vec<SitePage>,
    disk_bytes: u64,
}

impl ChunkWorker<RecordChunk> for LineReader<'_> {
    type Output = PageBatch;

    fn run(&mut self, chunk: &RecordChunk) -> Result<PageBatch, BatchError> {
        let mut pages = PageBatch {
            disk_bytes: chunk.disk_bytes,
            ..PageBatch::default()
        };
        let mut failed = Ok(());
        let Self {
            learning,
            parser,
            seen,
            too_many,
            lines,
            keys,
        } = self;
        parser.parse(chunk, &mut |record| {
            // Records that cannot be read are counted by the next pass.
            let Ok(record) = record else { return };
            let Some((site, hash)) = learning.page(&record) else {
                return;
            };
            match seen.class(hash) {
                // Read when all workers have ended.
                None => too_many.store(true, Ordering::Relaxed),
                Some((_, false)) => {}
                Some((class, true)) => {
                    line_keys(site, learned_from(&record), keys);
                    let number = class.position() as u32;
                    let pushed = keys.iter().try_for_each(|&key| lines.push(key, number));
                    // Keep only the first error: the parser cannot be stopped.
                    if failed.is_ok() {
                        failed = pushed;
                    }
                    pages.new.push(SitePage { class, site });
                }
            }
        });
        failed.map_err(BatchError::temporary(learning.folder))?;
        Ok(pages)
    }

    fn shrink(&mut self) {
        self.parser.shrink();
        self.keys = Vec::new();
    }
}

/// The site of each page, and the number of pages of each site.
#[derive(Default)]
struct SiteTable {
    of: TableColumn<u64>,
    pages: HashMap<u64, u64>,
}

impl SiteTable {
    fn add(&mut self, page: &SitePage) {
        let position = page.class.position();
        if self.of.len() <= position {
            self.of.resize(position + 1, 0);
        }
        self.of[position] = page.site;
        *self.pages.entry(page.site).or_default() += 1;
    }
}

/// Returns the text whose lines are counted: all visible text, because boilerplate that is main content on one page may be outside
/// of it on another.
fn learned_from<'r>(record: &'r Record<'_>) -> &'r str {
    match &record.visible {
        Some(visible) => &visible.whole,
        None => &record.text,
    }
}

impl<'a> BoilerplateLearner<'a> {
    /// Creates a job with default options and limits that writes its temporary files to `folder`.
    pub fn new(inputs: &'a Inputs, folder: &'a Path) -> Self {
        Self {
            inputs,
            options: InputOptions::default(),
            scope: BoilerplateScope::Site,
            share: 0.1,
            limits: JobLimits::default(),
            folder,
            observer: &NoProgress,
        }
    }

    /// Returns the site and the text hash of a page, or `None` if it has no text or no site.
    fn page(&self, record: &Record<'_>) -> Option<(u64, u128)> {
        if learned_from(record).trim().is_empty() {
            return None;
        }
        let format = self.inputs.sources[record.source as usize].format;
        let site = site_key(self.scope, record, format)?;
        // Equal texts on two sites are two pages.
        let spread = u128::from(site) << 64 | u128::from(site);
        Some((site, text_hash(learned_from(record)) ^ spread))
    }

    /// Reads the whole input and learns the lines.
    ///
    /// # Errors
    /// [`BatchError`]: the share is out of range, no page has a site, the input cannot be read, or the lines take
    /// more than a quarter of the memory.
    pub fn learn(&self) -> Result<BoilerplateLines, BatchError> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(BoundedSetting::BoilerplateShare.error(self.share).into());
        }
        ensure_documents_fit(&self.limits, DocumentUse::Text, self.inputs, &self.options)?;
        self.observer
            .stage(JobStage::Learn, self.inputs.total_bytes());
        let temporary = BatchError::temporary(self.folder);
        let _tables = TableShare::open(self.table_share(), self.folder);
        let sink = KeySink::new(self.folder, self.key_bytes()).map_err(&temporary)?;
        let sites = self.read(&sink)?;
        if sites.pages.is_empty() && self.scope == BoilerplateScope::Site {
            return Err(SettingsError::NoSite.into());
        }
        let keys = self.recurring(&sink, &sites)?;
        Ok(BoilerplateLines::new(self.scope, keys))
    }

    /// Returns the options of reading. Lines are learned from the original pages, not from what an earlier set of lines left of them.
    fn reading_options(&self) -> InputOptions {
        self.options.clone().boilerplate(None)
    }

    /// Returns the bytes of keys that stay in memory.
    fn key_bytes(&self) -> u64 {
        self.limits.memory / 6
    }

    /// Returns the bytes that tables may take.
    fn table_share(&self) -> TableShareSizes {
        let fixed = fixed_bytes(&self.limits, DocumentUse::Text, &self.reading_options());
        let others = fixed + self.key_bytes();
        TableShareSizes::of(self.limits.memory.saturating_sub(others))
    }

    fn read(&self, sink: &KeySink) -> Result<SiteTable, BatchError> {
        let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
        let options = self.reading_options();
        let reader = || LineReader {
            learning: self,
            parser: Parser::new(self.inputs, &options).with_visible(),
            seen: &seen,
            too_many: &too_many,
            lines: sink.writer(),
            keys: Vec::new(),
        };
        let (mut sites, mut read) = (SiteTable::default(), 0);
        let readers = (0..self.limits.workers()).map(|_| reader()).collect();
        let memory = DocumentMemory::new(&self.limits, DocumentUse::Text, self.inputs, &options);
        let readers = run_in_order(
            self.inputs.chunks(&options),
            memory,
            self.observer,
            readers,
            |pages: PageBatch| {
                pages.new.iter().for_each(|page| sites.add(page));
                read += pages.disk_bytes;
                self.observer.progress(read);
                // Arrays for which a file had no room are in memory beyond the limit, so the job must not continue.
                table_memory::check(self.folder).map_err(BatchError::temporary(self.folder))
            },
        )?;
        if too_many.load(Ordering::Relaxed) {
            return Err(BatchError::TooMany);
        }
        // Each reader still holds keys that do not fill a batch.
        for reader in readers {
            let finished: io::Result<()> = reader.lines.finish();
            finished.map_err(BatchError::temporary(self.folder))?;
        }
        Ok(sites)
    }

    /// Returns the minimum number of pages on which a line must occur, for a site of `pages` pages.
    fn min_pages(&self, pages: u64) -> u64 {
        MIN_PAGES.max((self.share * pages as f64 * (1.0 - ROUNDING)).ceil() as u64)
    }

    fn recurring(&self, sink: &KeySink, sites: &SiteTable) -> Result<Vec<u64>, BatchError> {
        let mut learned = Vec::new();
        for part in 0..PARTS {
            check_cancelled(self.observer).map_err(|_| BatchError::Cancelled)?;
            let mut records = sink
                .take(part)
                .map_err(BatchError::temporary(self.folder))?;
            // The key is the first part of a record, so the pages with a line become adjacent.
            records.sort_unstable();
            for lines in records.chunk_by(|a, b| a[..2] == b[..2]) {
                // The key depends on the site, so any page with the key has that site.
                let [high, low, class] = lines[0];
                let pages = sites.pages[&sites.of[class as usize]];
                // A page writes a key once, however often it has the line, so the records are pages.
                if lines.len() as u64 >= self.min_pages(pages) {
                    learned.push(u64::from(high) << 32 | u64::from(low));
                }
            }
            // 8 bytes for the key in this list, and about 18 in the hash table that is built from it.
            let needed = 26 * learned.len() as u64;
            if needed > self.limits.memory / 4 {
                return Err(BatchError::Memory {
                    what: "the lines that recur",
                    needed,
                    left: self.limits.memory / 4,
                    // Four times would be enough now, but the other partitions may add more lines.
                    least: 5 * needed,
                });
            }
        }
        Ok(learned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_a_whole_number_of_pages_was_rounded_to_the_next() {
        let inputs = Inputs {
            sources: Vec::new(),
            skips: Vec::new(),
        };
        let min_pages = |share, pages| {
            let learner = BoilerplateLearner::new(&inputs, Path::new("")).share(share);
            learner.min_pages(pages)
        };
        // Computed as 7.000000000000001.
        assert_eq!(min_pages(0.07, 100), 7);
        assert_eq!(min_pages(0.07, 101), 8);
        assert_eq!(min_pages(0.07, 10), MIN_PAGES);
    }
}

//! Search for lines that recur on many pages: the pass before the first one of a job with `--boilerplate`.
//!
//! Every line of every page becomes a key; keys are scattered to disk, grouped, and those that stand
//! on enough different pages of their site are learned. Pages of equal text count once, so that
//! copies of a page do not make a template of it. The result is a set: it depends on no order.

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
use crate::document_memory::{DocumentMemory, DocumentUse, ensure_documents_fit};
use crate::error::BatchError;
use crate::observer::{JobObserver, JobStage, NoProgress};
use crate::pipeline::{ChunkWorker, run_in_order};
use crate::settings::JobLimits;
use crate::settings_error::{BoundedSetting, SettingsError};
use crate::spill::partitions::PARTS;

/// Fewer pages than this are no evidence of a template.
const FEWEST_PAGES: u64 = 5;

/// Pages to learn from.
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
        /// Sets how sources are read: the options that [`Inputs::discover`] was given. Their own `boilerplate` is not applied.
        options: InputOptions,
        /// Sets among which pages a line must recur: those of a site, if nothing is said.
        scope: BoilerplateScope,
        /// Sets on which share of these, in (0, 1], but never on fewer than five: 0.1, if nothing is said.
        share: f64,
        /// Sets how much of the machine the job may use. The result does not depend on it.
        limits: JobLimits,
        /// Sets who hears of progress.
        observer: &'a dyn JobObserver,
    }
}

/// Counts of the lines that were learned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoilerplateCounts {
    /// Among which pages they recur, and their id, as in the scheme.
    pub lines_of: String,
    /// Lines that were learned.
    pub learned: u64,
    /// Documents from which lines were taken.
    pub documents: u64,
    /// Lines that were taken.
    pub lines: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Documents that kept all lines because next to nothing would have been left.
    pub kept_whole: u64,
    /// Documents of no site, which kept all lines.
    pub without_site: u64,
}

/// The same while it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemovedTally {
    documents: u64,
    lines: u64,
    bytes: u64,
    kept_whole: u64,
    without_site: u64,
}

impl RemovedTally {
    /// One document more.
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

    /// The counts for a summary; none where nothing was to be taken out.
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

/// A text of a site that was not seen before.
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
            // What cannot be read is counted by the pass that follows.
            let Ok(record) = record else { return };
            let Some((site, hash)) = learning.page(&record) else {
                return;
            };
            match seen.class(hash) {
                None => too_many.store(true, Ordering::Relaxed),
                Some((_, false)) => {}
                Some((class, true)) => {
                    line_keys(site, learned_from(&record), keys);
                    let number = class.position() as u32;
                    let pushed = keys.iter().try_for_each(|&key| lines.push(key, number));
                    // The first error counts: the parser cannot be stopped.
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

/// Sites of the pages, and how many pages each has.
#[derive(Default)]
struct SiteTable {
    of: Vec<u64>,
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

/// The text whose lines are counted: all that a reader sees, for a page whose main content is a template shows what is its own
/// elsewhere.
fn learned_from<'r>(record: &'r Record<'_>) -> &'r str {
    match &record.visible {
        Some(visible) => &visible.whole,
        None => &record.text,
    }
}

impl<'a> BoilerplateLearner<'a> {
    /// Creates a job with default options and limits. Its temporary files go to `folder`.
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

    /// Site and identity of a page; none if it has no text or no site.
    fn page(&self, record: &Record<'_>) -> Option<(u64, u128)> {
        if learned_from(record).trim().is_empty() {
            return None;
        }
        let format = self.inputs.sources[record.source as usize].format;
        let site = site_key(self.scope, record, format)?;
        // One text on two sites is a page of each.
        let spread = u128::from(site) << 64 | u128::from(site);
        Some((site, text_hash(learned_from(record)) ^ spread))
    }

    /// Reads everything and learns the lines.
    ///
    /// # Errors
    /// [`BatchError`]: the share means nothing, no page has a site, input that cannot be read, or more
    /// lines than a quarter of the memory holds.
    pub fn learn(&self) -> Result<BoilerplateLines, BatchError> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(BoundedSetting::BoilerplateShare.error(self.share).into());
        }
        ensure_documents_fit(&self.limits, DocumentUse::Text, self.inputs, &self.options)?;
        self.observer
            .stage(JobStage::Learn, self.inputs.total_bytes());
        let temporary = BatchError::temporary(self.folder);
        let sink = KeySink::new(self.folder, self.limits.memory / 6).map_err(&temporary)?;
        let sites = self.read(&sink)?;
        if sites.pages.is_empty() && self.scope == BoilerplateScope::Site {
            return Err(SettingsError::NoSite.into());
        }
        let keys = self.recurring(&sink, &sites)?;
        Ok(BoilerplateLines::new(self.scope, keys))
    }

    fn read(&self, sink: &KeySink) -> Result<SiteTable, BatchError> {
        let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
        // Lines are learned from pages as they are, not from what an earlier set left of them.
        let options = self.options.clone().boilerplate(None);
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
                Ok(())
            },
        )?;
        if too_many.load(Ordering::Relaxed) {
            return Err(BatchError::TooMany);
        }
        for reader in readers {
            let finished: io::Result<()> = reader.lines.finish();
            finished.map_err(BatchError::temporary(self.folder))?;
        }
        Ok(sites)
    }

    /// On how many pages of a site a line must stand.
    fn least(&self, pages: u64) -> u64 {
        FEWEST_PAGES.max((self.share * pages as f64).ceil() as u64)
    }

    fn recurring(&self, sink: &KeySink, sites: &SiteTable) -> Result<Vec<u64>, BatchError> {
        let mut learned = Vec::new();
        for part in 0..PARTS {
            let mut records = sink
                .take(part)
                .map_err(BatchError::temporary(self.folder))?;
            records.sort_unstable();
            for lines in records.chunk_by(|a, b| a[..2] == b[..2]) {
                // A key has the site in it, so any page with it tells the site.
                let [high, low, class] = lines[0];
                let pages = sites.pages[&sites.of[class as usize]];
                // A page pushes a key once, however often it has the line: records are pages.
                if lines.len() as u64 >= self.least(pages) {
                    learned.push(u64::from(high) << 32 | u64::from(low));
                }
            }
            // 8 bytes of a key in this list, and about 18 in the hash table that is made of it.
            let needed = 26 * learned.len() as u64;
            if needed > self.limits.memory / 4 {
                return Err(BatchError::Memory {
                    what: "the lines that recur",
                    needed,
                    left: self.limits.memory / 4,
                    // Four times would do now, but the lines of other partitions may follow.
                    least: 5 * needed,
                });
            }
        }
        Ok(learned)
    }
}

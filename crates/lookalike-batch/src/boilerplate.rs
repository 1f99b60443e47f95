//! Detection of lines that recur on many pages: the pass before the first one of a job with `--boilerplate`.
//!
//! Every line of every page becomes a key; keys are partitioned on disk, grouped, and those that occur on enough different pages of their site are
//! learned. Pages with equal text count once, so that copies of a page do not make its lines boilerplate. The result does not depend on any order.

mod removed;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lookalike::scheme::BoilerplateScope;
use lookalike_corpus::{BoilerplateLines, Record, line_keys, site_key, text_hash};

use crate::dedup::candidate_groups::{KeyRecord, KeySink, KeyWriter, key_of};
use crate::dedup::seen_texts::SeenTexts;
use crate::document_memory::{DocumentUse, ensure_documents_fit, fixed_bytes};
use crate::error::BatchError;
use crate::losses::LossPolicy;
use crate::observer::{JobStage, check_cancelled};
use crate::parallel::in_order;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::settings_error::{BoundedSetting, SettingsError};
use crate::skipped::SkippedRows;
use crate::spill::partitions::PARTS;
use crate::spill::table_column::TableColumn;
use crate::spill::table_memory::{self, TableShare, TableShareSizes};

pub use removed::BoilerplateCounts;
pub(crate) use removed::RemovedTally;

/// Minimum number of pages with a line: fewer are no evidence of a template.
const MIN_PAGES: u64 = 5;

// Relative, because the error of the product grows with it.
/// Tolerance for shares such as 0.07 that are slightly too large as binary fractions.
const ROUNDING: f64 = 1e-12;

/// Job that learns the boilerplate lines of its input.
#[derive(Debug)]
pub struct BoilerplateLearner<'a> {
    scan: RecordScan<'a>,
    scope: BoilerplateScope,
    share: f64,
    folder: &'a Path,
}

lookalike::setters! {
    BoilerplateLearner<'a> {
        /// Sets the pages among which a line must recur: by default those of a site.
        scope: BoilerplateScope,
        /// Sets the share of these pages on which a line must occur, in (0, 1]: by default 0.1. It must always occur on at least five.
        share: f64,
    }
}

struct LineReader<'a> {
    learning: &'a BoilerplateLearner<'a>,
    seen: &'a SeenTexts,
    too_many: &'a AtomicBool,
    lines: KeyWriter<'a>,
    sites: KeyWriter<'a>,
    keys: Vec<u64>,
}

#[derive(Default)]
struct PageBatch {
    /// Number of texts that are new on their sites.
    new: u64,
    failed: Option<io::Error>,
}

impl RecordWorker for LineReader<'_> {
    const VISIBLE: bool = true;

    type Product = PageBatch;

    fn add(&mut self, record: &Record<'_>, pages: &mut PageBatch) {
        let Some((site, hash)) = self.learning.page(record) else {
            return;
        };
        match self.seen.class(hash) {
            // Read when all workers have ended.
            None => self.too_many.store(true, Ordering::Relaxed),
            Some((_, false)) => {}
            Some((class, true)) => {
                line_keys(site, learned_from(record), &mut self.keys);
                let number = class.position() as u32;
                let mut keys = self.keys.iter();
                let pushed = keys.try_for_each(|&key| self.lines.push(key, number));
                // All pages of a collection are one site, whose pages are counted.
                let pushed = match self.learning.scope {
                    BoilerplateScope::Site => pushed.and_then(|()| self.sites.push(site, number)),
                    BoilerplateScope::Collection => pushed,
                };
                // Keep only the first error: the parser cannot be stopped.
                pages.failed = pages.failed.take().or(pushed.err());
                pages.new += 1;
            }
        }
    }

    fn shrink(&mut self) {
        self.keys = Vec::new();
    }

    /// Writes the keys that do not fill a batch.
    fn finish(self) -> Result<(), BatchError> {
        let finished = self.lines.finish().and_then(|()| self.sites.finish());
        finished.map_err(BatchError::temporary(self.learning.folder))
    }
}

/// The sizes of sites.
struct SiteSizes {
    /// Number of pages of all sites.
    all: u64,
    /// Number of pages of the site of each page; empty if all pages are one site.
    of_pages: TableColumn<u32>,
}

impl SiteSizes {
    /// Returns the number of pages of a page's site.
    fn of(&self, page: u32) -> u64 {
        let size = self.of_pages.get(page as usize);
        size.map_or(self.all, |&pages| pages.into())
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
    /// Creates a job that learns from the pages of `scan` and writes its temporary files to `folder`. The result does not depend on the limits of the
    /// scan. The boilerplate of its options and its policy for losses are ignored.
    pub fn new(scan: RecordScan<'a>, folder: &'a Path) -> Self {
        Self {
            // Lines are learned from the original pages, not from what an earlier set of lines left of them. The next pass counts losses.
            scan: RecordScan {
                options: scan.options.boilerplate(None),
                losses: LossPolicy::default(),
                ..scan
            },
            scope: BoilerplateScope::Site,
            share: 0.1,
            folder,
        }
    }

    /// Returns the site and the text hash of a page, or `None` if it has no text or no site.
    fn page(&self, record: &Record<'_>) -> Option<(u64, u128)> {
        if learned_from(record).trim().is_empty() {
            return None;
        }
        let format = self.scan.inputs.sources[record.source as usize].format;
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
        let scan = &self.scan;
        let (inputs, options) = (scan.inputs, &scan.options);
        ensure_documents_fit(&scan.limits, DocumentUse::Text, inputs, options)?;
        scan.observer.stage(JobStage::Learn, inputs.total_bytes());
        let temporary = BatchError::temporary(self.folder);
        let _tables = TableShare::open(self.table_share(), self.folder);
        // A page has many lines and one site.
        let of_sites = self.key_bytes() / 8;
        let lines = KeySink::new(self.folder, self.key_bytes() - of_sites).map_err(&temporary)?;
        let sites = KeySink::new(self.folder, of_sites).map_err(&temporary)?;
        let pages = self.read(&lines, &sites)?;
        if pages == 0 && self.scope == BoilerplateScope::Site {
            return Err(SettingsError::NoSite.into());
        }
        let sizes = self.site_sizes(&sites, pages)?;
        let keys = self.recurring(&lines, &sizes)?;
        Ok(BoilerplateLines::new(self.scope, keys))
    }

    /// Returns the bytes of keys that stay in memory.
    fn key_bytes(&self) -> u64 {
        self.scan.limits.memory / 6
    }

    /// Returns the bytes that tables may take.
    fn table_share(&self) -> TableShareSizes {
        let scan = &self.scan;
        let fixed = fixed_bytes(&scan.limits, DocumentUse::Text, scan.inputs, &scan.options);
        let others = fixed + self.key_bytes();
        TableShareSizes::of(scan.limits.memory.saturating_sub(others))
    }

    /// Reads all pages and collects the keys of their lines and sites. Returns the number of pages.
    fn read(&self, lines: &KeySink, sites: &KeySink) -> Result<u64, BatchError> {
        let (seen, too_many) = (SeenTexts::new(), AtomicBool::new(false));
        let reader = || LineReader {
            learning: self,
            seen: &seen,
            too_many: &too_many,
            lines: lines.writer(),
            sites: sites.writer(),
            keys: Vec::new(),
        };
        let mut all = 0;
        let rows = &mut SkippedRows::default();
        let temporary = BatchError::temporary(self.folder);
        (self.scan).read(DocumentUse::Text, rows, reader, |pages: PageBatch, _| {
            if let Some(failed) = pages.failed {
                return Err(temporary(failed));
            }
            all += pages.new;
            // Arrays for which a file had no room are in memory beyond the limit, so the job must not continue.
            table_memory::check(self.folder).map_err(&temporary)
        })?;
        match too_many.load(Ordering::Relaxed) {
            true => Err(BatchError::TooMany),
            false => Ok(all),
        }
    }

    /// Counts the pages of each site.
    fn site_sizes(&self, sites: &KeySink, all: u64) -> Result<SiteSizes, BatchError> {
        if self.scope == BoilerplateScope::Collection {
            let of_pages = TableColumn::new();
            return Ok(SiteSizes { all, of_pages });
        }
        let temporary = BatchError::temporary(self.folder);
        let mut of_pages = TableColumn::zeroed(all as usize);
        for part in 0..PARTS {
            let mut pages = sites.take(part).map_err(&temporary)?;
            pages.sort_unstable();
            for site in pages.chunk_by(|a, b| a[..2] == b[..2]) {
                for &[.., page] in site {
                    of_pages[page as usize] = site.len() as u32;
                }
            }
        }
        table_memory::check(self.folder).map_err(&temporary)?;
        Ok(SiteSizes { all, of_pages })
    }

    /// Returns the minimum number of pages on which a line must occur, for a site of `pages` pages.
    fn min_pages(&self, pages: u64) -> u64 {
        MIN_PAGES.max((self.share * pages as f64 * (1.0 - ROUNDING)).ceil() as u64)
    }

    fn recurring(&self, sink: &KeySink, sites: &SiteSizes) -> Result<Vec<u64>, BatchError> {
        let memory = self.scan.limits.memory;
        let mut learned = Vec::new();
        let threads = self.threads_for_keys(sink.largest());
        let parts = (0..PARTS).collect();
        let learn = |part| -> Result<Vec<u64>, BatchError> {
            check_cancelled(self.scan.observer).map_err(|_| BatchError::Cancelled)?;
            let records = sink.take(part);
            let records = records.map_err(BatchError::temporary(self.folder))?;
            Ok(self.recurring_of(records, sites))
        };
        in_order(parts, threads, learn, |of_part| {
            learned.extend(of_part);
            // 8 bytes for the key in this list, and about 18 in the hash table that is built from it.
            let needed = 26 * learned.len() as u64;
            let most = memory / 4;
            match needed > most {
                false => Ok(()),
                true => Err(BatchError::Memory {
                    what: "the lines that recur",
                    needed,
                    left: most,
                    // Four times would be enough now, but the other partitions may add more lines.
                    least: 5 * needed,
                }),
            }
        })?;
        Ok(learned)
    }

    /// Returns the number of threads that may each have a partition of up to `records` keys in memory.
    fn threads_for_keys(&self, records: u64) -> usize {
        /// Part of the memory for the partitions of all threads.
        const SHARE: u64 = 16;
        // While a partition is put together, its parts exist besides.
        let bytes = 2 * records * size_of::<KeyRecord>() as u64;
        let fitting = self.scan.limits.memory / SHARE / bytes.max(1);
        let workers = self.scan.limits.workers();
        usize::try_from(fitting).map_or(workers, |fitting| fitting.clamp(1, workers))
    }

    /// Returns the keys among these records that recur.
    fn recurring_of(&self, mut records: Vec<KeyRecord>, sites: &SiteSizes) -> Vec<u64> {
        // The key is the first part of a record, so the pages with a line become adjacent.
        records.sort_unstable();
        let lines = records.chunk_by(|a, b| a[..2] == b[..2]);
        let recurring = lines.filter(|lines| {
            // The key depends on the site, so any page with the key has that site.
            let [.., page] = lines[0];
            let pages = sites.of(page);
            // A page writes a key once, however often it has the line, so the records are pages.
            lines.len() as u64 >= self.min_pages(pages)
        });
        recurring.map(|lines| key_of(&lines[0])).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use lookalike::hash::xxh3_64;
    use lookalike_corpus::{InputOptions, Inputs};
    use proptest::prelude::*;

    use super::*;

    /// Returns what a slow learner learns from pages, given as site and lines.
    fn learned_slowly(scope: BoilerplateScope, pages: &[(u8, Vec<u8>)]) -> BoilerplateLines {
        let mut sites: BTreeMap<Option<u8>, BTreeSet<&[u8]>> = BTreeMap::new();
        for (site, lines) in pages.iter().filter(|(_, lines)| !lines.is_empty()) {
            let site = (scope == BoilerplateScope::Site).then_some(*site);
            sites.entry(site).or_default().insert(lines);
        }
        let mut learned = Vec::new();
        for (site, pages) in sites {
            let key = site.map_or(0, |site| xxh3_64(format!("s{site}.example").as_bytes(), 0));
            for line in 0..6 {
                let with_line = pages.iter().filter(|lines| lines.contains(&line)).count();
                // At least five pages, and a quarter of all.
                if with_line >= 5 && 4 * with_line >= pages.len() {
                    let mut keys = Vec::new();
                    line_keys(key, &format!("line {line}"), &mut keys);
                    learned.extend(keys);
                }
            }
        }
        BoilerplateLines::new(scope, learned)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_line_is_learned_where_it_recurs_on_enough_pages_of_its_site(
            pages in prop::collection::vec((0..4_u8, prop::collection::vec(0..6_u8, 0..5)), 1..120),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("in.jsonl");
            let line = |(page, (site, lines)): (usize, &(u8, Vec<u8>))| {
                let lines: String = lines.iter().map(|line| format!("line {line}\\n")).collect();
                format!("{{\"id\":\"{page}\",\"url\":\"http://s{site}.example/\",\"text\":\"{lines}\"}}\n")
            };
            std::fs::write(&file, pages.iter().enumerate().map(line).collect::<String>()).unwrap();
            let inputs =
                Inputs::discover(&[file.into()], &InputOptions::default(), folder.path()).unwrap();
            for scope in [BoilerplateScope::Site, BoilerplateScope::Collection] {
                let learner = BoilerplateLearner::new(RecordScan::new(&inputs), folder.path());
                let learner = learner.scope(scope).share(0.25);
                let expected = learned_slowly(scope, &pages);
                match learner.learn() {
                    Ok(learned) => prop_assert_eq!(learned.to_bytes(), expected.to_bytes()),
                    // No page has a text, so none has a site.
                    Err(_) => prop_assert!(pages.iter().all(|(_, lines)| lines.is_empty())),
                }
            }
        }
    }

    #[test]
    fn a_share_that_is_a_whole_number_of_pages_was_rounded_to_the_next() {
        let inputs = Inputs {
            sources: Vec::new(),
            skips: Vec::new(),
        };
        let min_pages = |share, pages| {
            let scan = RecordScan::new(&inputs);
            let learner = BoilerplateLearner::new(scan, Path::new("")).share(share);
            learner.min_pages(pages)
        };
        // Computed as 7.000000000000001.
        assert_eq!(min_pages(0.07, 100), 7);
        assert_eq!(min_pages(0.07, 101), 8);
        assert_eq!(min_pages(0.07, 10), MIN_PAGES);
    }
}

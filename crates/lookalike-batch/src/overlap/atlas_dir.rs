//! Writes the atlas into a folder. Each file appears under its name only when it is complete, `run.json` last.
//!
//! ```text
//! pairs.jsonl      the rows of all chunkings, one chunking after another
//! copies.jsonl     sets of documents of equal text
//! servers.jsonl    the rows of servers
//! mirrors.jsonl    page sets that nearly the same servers hold
//! mirror_pages.jsonl  the pages of these
//! aliases.jsonl    names of the same server, URLs of the same page
//! skip.jsonl       pages that a crawler need not visit, and which kept page has their content
//! skipped.jsonl    what could not be read
//! atlas.html       for people
//! run.json         settings, counts, cost
//! ```
//!
//! With [`OutputFormat::Parquet`] the lines become tables: `pairs.parquet` and so on.

use std::io::{self, Write};
use std::path::Path;

use lookalike_corpus::{
    AtomicFile, OutputFormat, PROGRAM, STATE_FOLDER as STATE, SUMMARY_FILE as LAST,
};
use serde::Serialize;

use super::aliases::url_aliases;
use super::atlas::{self, ListedAliases};
use super::atlas_summary::AtlasSummary;
use super::checkpoint::OverlapCheckpoint;
use super::families::PageFamilies;
use super::job::{ChunkingCount, OverlapJob, PreparedOverlap};
use super::mirrors::{MirrorFinder, MirrorSettings, mirrors};
use super::places::DocumentPlaces;
use super::replicas::{ReplicaCounter, ReplicaLevel};
use super::row_log::RowLog;
use super::settings::OverlapUnit;
use super::skip::{NearCopies, SkipCounts, SkipList, write_copies};
use crate::contents::CONTENTS;
use crate::dedup::result_lines::{write_line, write_long_line};
use crate::error::BatchError;
use crate::observer::{JobStage, check_cancelled};
use crate::output_dir::{IfExists, JobIdentity, OutputDir};
use crate::skipped::SKIPPED;
use crate::spill::table_column::TableColumn;
use crate::unfinished::save;

/// Names of all results in the folder of an atlas, in both formats.
pub const ATLAS_RESULTS: [&str; 19] = [
    "pairs.parquet",
    "copies.parquet",
    "servers.parquet",
    "mirrors.parquet",
    "mirror_pages.parquet",
    "aliases.parquet",
    "skip.parquet",
    "skipped.parquet",
    "pairs.jsonl",
    "copies.jsonl",
    "servers.jsonl",
    "mirrors.jsonl",
    "mirror_pages.jsonl",
    "aliases.jsonl",
    "skip.jsonl",
    "skipped.jsonl",
    "atlas.html",
    LAST,
    STATE,
];

/// Sample lines: tables have their fields even if no line does.
const ROW: &str = r#"{"a":"","b":"","chunking":"","shared":1,"chunks_a":1,"chunks_b":1,"containment_a":0.5,"containment_b":0.5,"resemblance":0.5}"#;
const COPIES: &str = r#"{"id":"","copies":[""],"urls":[""],"bytes":1}"#;
const MIRROR: &str = r#"{"set":1,"pages":1,"bytes":1,"servers":1,"held":1,"core":[""],"approximate":[{"server":"","share":0.5}],"examples":[""]}"#;
const MIRROR_PAGE: &str = r#"{"set":1,"url":"","servers":1,"share":0.5}"#;
const ALIAS: &str =
    r#"{"kind":"","servers":[""],"pages":[1],"shared":[1],"address":"","server":"","urls":[""]}"#;
const SKIP: &str = r#"{"url":"","copy_of":"","why":"","chunking":"","shared":1,"containment":0.5}"#;

/// Options for writing an atlas.
#[derive(Clone, Debug)]
pub struct AtlasOptions {
    /// Format of the results.
    pub format: OutputFormat,
    /// Treatment of results that already exist.
    pub folder: IfExists,
    /// The command line, shown on the page.
    pub command: String,
    /// Minimum share of a page's chunks in a kept page for the page to be listed in `skip.jsonl`; above 0 and at most 1.
    pub copy_containment: f64,
    /// Settings of the search for mirrors and aliases.
    pub mirrors: MirrorSettings,
}

/// Data of one chunking that the skip list and the page sets need. It is the chunking by which most near-copies can be skipped; among several such,
/// the one that saves most visits.
struct BestChunking {
    near: NearCopies,
    /// For each set of equal texts, the set that stands for its page.
    pages: TableColumn<u32>,
    saved: (u64, u64),
}

impl OverlapJob<'_> {
    /// Writes the atlas into `folder`.
    ///
    /// # Errors
    /// [`BatchError`]. In any case no file under its final name is incomplete, and `run.json` exists only if everything does.
    pub fn atlas(&self, folder: &Path, options: &AtlasOptions) -> Result<AtlasSummary, BatchError> {
        self.settings.check()?;
        options.mirrors.check()?;
        let place = OutputDir {
            folder,
            results: &ATLAS_RESULTS,
        };
        let identity = JobIdentity {
            settings: format!(
                "version={} {} output={} copy-containment={} {} {}",
                env!("CARGO_PKG_VERSION"),
                self.settings.canonical(),
                options.format,
                options.copy_containment,
                options.mirrors.canonical(),
                self.options.canonical()
            ),
            input: self.inputs.fingerprint(),
        };
        let settings = identity.settings.clone();
        // Names, sizes and times may be the same although the contents changed; what an earlier attempt kept is then useless.
        let _lock = place.enter_with_inputs(options.folder, &identity, self.inputs)?;
        let read = place.state("read.bin");
        let kept = OverlapCheckpoint {
            path: &read,
            contents: &place.state(CONTENTS),
            identity: &identity,
        };
        let mut prepared = self
            .prepare(true, Some(kept))
            // Without a complete reading there is nothing to resume from, so the folder is left as it was.
            .inspect_err(|_| place.discard_undecided())?;
        let resumed = prepared.resumed;
        let places = DocumentPlaces::new(&prepared.collection, &self.settings.server);
        let (levels, best) = self.pairs(&mut prepared, &places, &place, options)?;
        let (server_rows, map) = self.servers(&prepared, &place, options.format)?;
        self.observer.stage(JobStage::Write, 0);
        // Without near-copies each set of equal texts is a page of its own.
        let leaders: TableColumn<u32> = match &best {
            Some(best) => best.pages.clone(),
            None => (0..prepared.collection.exact.len() as u32).collect(),
        };
        let threads = self.limits.workers();
        let mirrors = mirrors(
            &prepared.collection,
            &places,
            &leaders,
            options.mirrors,
            threads,
        );
        let (aliases, skip) =
            self.tables(&prepared, &place, options.format, &mirrors, best.as_ref())?;
        let mut summary = AtlasSummary {
            program: PROGRAM,
            version: env!("CARGO_PKG_VERSION"),
            command: options.command.clone(),
            results: Vec::new(),
            settings,
            overlap: self.finished(prepared.summary),
            levels,
            server_rows,
            mirrored_sets: mirrors.sets.len() as u64,
            mirrored_pages: mirrors.sets.iter().map(|set| set.pages).sum(),
            aliases: aliases.all,
            apart_by_address: mirrors.apart_by_address,
            pages: skip.pages,
            skip: skip.skipped,
            skip_chunking: best.map(|best| best.near.chunking),
            limits: self.limits.clone(),
            resumed,
            measured: self.observer.measured(),
        };
        let page = atlas::page(&summary, &mirrors, aliases, map, &prepared.collection)?;
        save(&place.path("atlas.html"), page.as_bytes())?;
        // After all other results, since it lists them.
        summary.results = place.written()?;
        place.write_summary(&summary)?;
        place.publish()?;
        Ok(summary)
    }

    /// Writes `pairs.jsonl`. Returns the levels of replication and the chunking that saves most.
    fn pairs(
        &self,
        prepared: &mut PreparedOverlap,
        places: &DocumentPlaces,
        place: &OutputDir<'_>,
        options: &AtlasOptions,
    ) -> Result<(Vec<ReplicaLevel>, Option<BestChunking>), BatchError> {
        let path = place.path(format!("pairs{}", options.format.suffix()));
        let failed = BatchError::result(&path);
        let mut out = AtomicFile::lines(&path, options.format, ROW).map_err(&failed)?;
        let mut levels = vec![ReplicaLevel::exact(&prepared.collection)];
        let mut best: Option<BestChunking> = None;
        for number in 0..self.settings.chunkings.len() {
            let collection = &prepared.collection;
            let mut replicas =
                ReplicaCounter::new(collection.exact.len(), options.copy_containment);
            let mut families =
                PageFamilies::new(collection.exact.len(), places, options.copy_containment);
            // Rows of servers say nothing about single pages.
            let by_document = self.settings.by == OverlapUnit::Document;
            let log = place.state(&format!("rows-{number}.bin"));
            let count = ChunkingCount {
                number,
                by: self.settings.by,
                path: &path,
                log: Some(&log),
            };
            let (summary, sizes) =
                self.chunking(prepared, &count, &mut out, &mut |row, sizes| {
                    if by_document {
                        replicas.row(row, collection, sizes);
                        families.row(row, sizes);
                    }
                })?;
            if by_document {
                self.find_later_copies(&log, &mut replicas, &sizes)?;
                let level = replicas.level(&summary.chunking, &prepared.collection);
                // A later chunking must save more to replace an earlier one, so every run chooses the first of equal ones.
                let saved = (replicas.near_copies(), level.visits_saved);
                levels.push(level);
                // A chunking without near-copies is never chosen, since (0, 0) is not above itself.
                if saved > best.as_ref().map_or((0, 0), |best| best.saved) {
                    let near = NearCopies {
                        replicas,
                        sizes,
                        chunking: summary.chunking.clone(),
                    };
                    let pages = families.leaders();
                    best = Some(BestChunking { near, pages, saved });
                }
            }
            prepared.summary.chunkings.push(summary);
        }
        out.commit().map_err(&failed)?;
        Ok((levels, best))
    }

    /// Reads the logged rows again, for pages whose contents are in later ones.
    fn find_later_copies(
        &self,
        log: &Path,
        replicas: &mut ReplicaCounter,
        sizes: &[u32],
    ) -> Result<(), BatchError> {
        let mut later = replicas.later_copies();
        let read = RowLog::open(log, sizes.len() as u32, true, |row| {
            check_cancelled(self.observer)?;
            if self.settings.is_contained_enough(row, sizes) {
                later.row(row, sizes);
            }
            Ok(())
        });
        read.map_err(BatchError::temporary(log))?;
        Ok(())
    }

    /// Writes `servers.jsonl`, which is empty without servers. Returns its number of rows by chunking, and the rows for the page.
    fn servers(
        &self,
        prepared: &PreparedOverlap,
        place: &OutputDir<'_>,
        format: OutputFormat,
    ) -> Result<(Vec<u64>, atlas::ServerMap), BatchError> {
        let mut map = atlas::ServerMap::new(&prepared.collection);
        let path = place.path(format!("servers{}", format.suffix()));
        let failed = BatchError::result(&path);
        let mut out = AtomicFile::lines(&path, format, ROW).map_err(&failed)?;
        let mut rows = Vec::new();
        // Without servers there is nothing to count, but readers expect every table.
        let chunkings = match prepared.collection.servers.names.is_empty() {
            true => 0,
            false => self.settings.chunkings.len(),
        };
        for number in 0..chunkings {
            let log = place.state(&format!("server-rows-{number}.bin"));
            let count = ChunkingCount {
                number,
                by: OverlapUnit::Server,
                path: &path,
                log: Some(&log),
            };
            let hear = &mut |row, sizes: &[u32]| map.row(number, row, sizes);
            let (summary, _) = self.chunking(prepared, &count, &mut out, hear)?;
            rows.push(summary.rows);
        }
        out.commit().map_err(&failed)?;
        Ok((rows, map))
    }

    /// Writes the smaller files. Returns the aliases for the page and the counts of `skip.jsonl`.
    fn tables(
        &self,
        prepared: &PreparedOverlap,
        place: &OutputDir<'_>,
        format: OutputFormat,
        mirrors: &MirrorFinder,
        best: Option<&BestChunking>,
    ) -> Result<(ListedAliases, SkipCounts), BatchError> {
        let collection = &prepared.collection;
        place.write_lines("copies", format, COPIES, &mut |out| {
            write_copies(out, collection)
        })?;
        place.write_lines("mirrors", format, MIRROR, &mut |out| {
            lines(out, &mirrors.sets)
        })?;
        place.write_lines("mirror_pages", format, MIRROR_PAGE, &mut |out| {
            let mut pages = mirrors.pages(collection);
            pages.try_for_each(|page| write_line(out, &page))
        })?;
        let mut aliases = ListedAliases::new(&mirrors.server_aliases);
        place.write_lines("aliases", format, ALIAS, &mut |out| {
            lines(out, &mirrors.server_aliases)?;
            url_aliases(collection).try_for_each(|alias| {
                aliases.add(&alias);
                write_long_line(out, &alias)
            })
        })?;
        place.write_lines("skipped", format, SKIPPED, &mut |out| {
            lines(out, &prepared.skipped)
        })?;
        let list = SkipList {
            collection,
            near: best.map(|best| &best.near),
        };
        let mut skip = SkipCounts::default();
        place.write_lines("skip", format, SKIP, &mut |out| {
            skip = list.write(out)?;
            Ok(())
        })?;
        Ok((aliases, skip))
    }
}

fn lines(out: &mut dyn Write, values: &[impl Serialize]) -> io::Result<()> {
    values.iter().try_for_each(|value| write_line(out, value))
}

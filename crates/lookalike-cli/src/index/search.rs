//! `lookalike index search`: all stored fingerprints within a distance of each query.

use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use lookalike::SchemeId;
use lookalike_batch::fingerprints::files::{
    CodeFile, CodesSummary, FingerprintFile, FingerprintName, FingerprintSource, SizedFingerprint,
    ensure_equal_schemes,
};
use lookalike_batch::fingerprints::index::{open, open_unchecked, width};
use lookalike_batch::{BatchError, LARGEST_DISTANCE, LossPolicy};
use lookalike_hamming::{IndexFile, Word};
use serde::Serialize;

use crate::arguments::{LossArguments, fingerprint_sources};
use crate::failure::Failure;
use crate::spool::Spool;
use crate::{bus_error, console};

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object per line for each stored document found,
{\"query\":..,\"fingerprint\":..,\"id\":..,\"distance\":..}: queries in the order given; for each,
by distance, fingerprint and id. Queries are named by their ids if their file has ids, else
by their hex digits (16 for a fingerprint of 64 bits).

Examples:
  lookalike index search crawl.lkix 5f3a9c0012d4e877
  lookalike fingerprint new.jsonl | lookalike index search crawl.lkix - --distance 2")]
pub(crate) struct IndexSearchArguments {
    /// An index made by `lookalike index build`
    index: PathBuf,

    /// Fingerprints as hex digits (16 for an index of 64 bits), files of fingerprints, or - for standard input
    #[arg(required = true, value_name = "QUERY")]
    queries: Vec<String>,

    /// Maximum Hamming distance in bits [default: the distance the index was built for]
    #[arg(long, value_name = "BITS")]
    distance: Option<u32>,

    /// Read the index into memory first, instead of mapping it
    #[arg(long)]
    in_memory: bool,

    /// Start at once, without checking every byte of the index: a damaged one may give wrong answers
    #[arg(long)]
    skip_check: bool,

    #[command(flatten)]
    losses: LossArguments,

    /// Do not list queries that could not be read
    #[arg(long, short)]
    quiet: bool,

    /// Print a summary as one JSON object on standard error
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FoundLine<'a> {
    query: &'a str,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    distance: u32,
}

/// Counts of queries and matches.
#[derive(Default, Serialize)]
struct SearchSummary {
    queries: u64,
    queries_with_matches: u64,
    matches: u64,
    probes: u64,
    candidates: u64,
    inputs: Vec<CodesSummary>,
}

struct SearchRun<'a, C: Word, W> {
    path: &'a Path,
    index: IndexFile<C>,
    distance: u32,
    losses: LossPolicy,
    out: W,
    summary: SearchSummary,
}

/// Queries that are searched together.
const GROUP: usize = 64;
/// Memory of the queries that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

pub(crate) fn run(arguments: &IndexSearchArguments) -> Result<(), Failure> {
    // Before it is opened: a page may be missing as soon as the first byte is looked at.
    if !arguments.in_memory {
        bus_error::name_file(&arguments.index);
    }
    match width(&arguments.index)? {
        32 => search::<u32>(arguments),
        128 => search::<u128>(arguments),
        _ => search::<u64>(arguments),
    }
}

fn search<C: Word>(arguments: &IndexSearchArguments) -> Result<(), Failure> {
    let open = if arguments.skip_check {
        open_unchecked::<C>
    } else {
        open::<C>
    };
    let index = open(&arguments.index, arguments.in_memory)?;
    let built = index.index().radius();
    let distance = arguments.distance.unwrap_or(built);
    if distance > built {
        let remedy = match distance {
            ..=LARGEST_DISTANCE => format!("rebuild it with --distance {distance}"),
            _ => format!("the largest distance for an index is {LARGEST_DISTANCE}"),
        };
        return Err(Failure::Usage(format!(
            "{}: built for distances up to {built}, not {distance}: {remedy}",
            arguments.index.display()
        )));
    }
    let mut search = SearchRun {
        path: &arguments.index,
        index,
        distance,
        losses: arguments.losses.policy(),
        out: BufWriter::with_capacity(1 << 18, stdout().lock()),
        summary: SearchSummary::default(),
    };
    let spool = Spool::new(&std::env::temp_dir())?;
    for query in &arguments.queries {
        let digits = query.parse::<SizedFingerprint>().ok();
        match digits.and_then(SizedFingerprint::code) {
            // As many hexadecimal digits are a fingerprint even if a file has that name; `./` before it means
            // the file.
            Some(code) => search.group(&[code], &|_| query.clone())?,
            None => {
                refuse_width(query, digits, C::BITS)?;
                for source in fingerprint_sources(&[query], spool.path())? {
                    search.file(&source)?;
                }
            }
        }
    }
    search.out.flush()?;
    let SearchSummary {
        inputs, queries, ..
    } = &search.summary;
    let rows = inputs.iter().flat_map(|input| &input.skipped);
    search.losses.check(rows, *queries)?;
    if arguments.json {
        console::json_beside(&search.summary);
    } else if !arguments.quiet {
        for input in &search.summary.inputs {
            console::skipped(&input.skipped);
        }
    }
    let rows = search.summary.inputs.iter();
    arguments.losses.end(rows.flat_map(|input| &input.skipped))
}

/// Refuses digits of a fingerprint of another width, where no file has that name.
fn refuse_width(query: &str, digits: Option<SizedFingerprint>, bits: u32) -> Result<(), Failure> {
    match digits.filter(|_| !Path::new(query).exists()) {
        Some(other) => Err(Failure::Usage(format!(
            "{query} has the digits of a {}-bit fingerprint, and the index holds {bits}-bit ones: give {} digits",
            other.bits(),
            bits / 4
        ))),
        None => Ok(()),
    }
}

impl<C: Word, W: Write> SearchRun<'_, C, W> {
    /// All queries of a file.
    fn file(&mut self, source: &FingerprintSource) -> Result<(), Failure> {
        let strict = self.losses.is_strict();
        let mut file = CodeFile::open(source, strict).map_err(BatchError::from)?;
        let path = self.path.display().to_string();
        let own = self.index.scheme().map(|id| (path.as_str(), SchemeId(id)));
        let other = file.scheme().map(|id| (file.name(), id));
        ensure_equal_schemes(own, other).map_err(BatchError::from)?;
        let (mut codes, mut more) = (FingerprintFile::<C>::default(), true);
        while more {
            codes.clear();
            more = file
                .fill(&mut codes, CHUNK_BYTES)
                .map_err(BatchError::from)?;
            // Queries of a group wait for memory together: each probe misses the cache, and the misses of 64
            // queries overlap.
            for start in (0..codes.codes.len()).step_by(GROUP) {
                let group = &codes.codes[start..(start + GROUP).min(codes.codes.len())];
                let name = |at: usize| match codes.ids.name(start + at, group[at]) {
                    FingerprintName::Text(text) => text.to_owned(),
                    FingerprintName::Number(number) => number.to_string(),
                    FingerprintName::Fingerprint(code) => code.to_string(),
                };
                self.group(group, &name)?;
            }
        }
        self.summary.inputs.push(file.summary());
        Ok(())
    }

    fn group(&mut self, queries: &[C], name: &dyn Fn(usize) -> String) -> Result<(), Failure> {
        let mut found = Vec::new();
        let visit = &mut |query, code, distance| found.push((query, distance, code));
        let effort = self
            .index
            .index()
            .search_group(queries, self.distance, visit);
        let effort = effort.map_err(|error| Failure::Usage(error.to_string()))?;
        // By query, distance and fingerprint: several tables find the same entry in any order.
        found.sort_unstable();
        let summary = &mut self.summary;
        summary.queries += queries.len() as u64;
        summary.probes += effort.probes;
        summary.candidates += effort.candidates;
        for of_query in found.chunk_by(|a: &(usize, u32, C), b| a.0 == b.0) {
            self.summary.queries_with_matches += 1;
            self.print(&name(of_query[0].0), of_query)?;
        }
        Ok(())
    }

    fn print(&mut self, query: &str, found: &[(usize, u32, C)]) -> Result<(), Failure> {
        let mut ids = Vec::new();
        for &(_, distance, code) in found {
            ids.clear();
            self.index.ids(code, &mut ids).map_err(|source| {
                let path = self.path.display().to_string();
                BatchError::IndexFile { path, source }
            })?;
            let fingerprint = SizedFingerprint::new(code).to_string();
            let named = ids.iter().map(|&id| Some(id));
            // An index without ids still gives a line for each fingerprint.
            let bare = ids.is_empty().then_some(None);
            for id in named.chain(bare) {
                let fingerprint = fingerprint.clone();
                let line = FoundLine {
                    query,
                    fingerprint,
                    id,
                    distance,
                };
                serde_json::to_writer(&mut self.out, &line).map_err(std::io::Error::from)?;
                self.out.write_all(b"\n")?;
                self.summary.matches += 1;
            }
        }
        Ok(())
    }
}

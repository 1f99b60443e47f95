//! `lookalike index search`: finds all stored fingerprints within a distance of each query, or sketches with enough in common.

use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use lookalike::SchemeId;
use lookalike_batch::fingerprints::files::{
    CodeFile, CodesSummary, FingerprintFile, FingerprintSource, SizedFingerprint,
    ensure_equal_schemes,
};
use lookalike_batch::fingerprints::index::{is_index, open, open_unchecked, stated_width, width};
use lookalike_batch::fingerprints::sketches::{MinEqual, is_sketch_index};
use lookalike_batch::{BatchError, LossPolicy, MAX_DISTANCE};
use lookalike_hamming::{IndexFile, Word};
use serde::Serialize;

use super::findings::damaged;
use crate::arguments::{KnownFingerprints, LossArguments, fingerprint_sources};
use crate::failure::Failure;
use crate::spool::Spool;
use crate::{bus_error, console};

#[derive(clap::Args)]
#[command(after_help = "\
Prints one JSON object per line for each stored document found,
{\"query\":..,\"fingerprint\":..,\"id\":..,\"distance\":..}: queries in the order given; for each,
by distance, fingerprint and id. Queries are named by their ids if their file has ids, else
by their hex digits (16 for a fingerprint of 64 bits).

An index of super-shingles or min-hash values is searched by files of the same sketches or
by their digits, and prints {\"query\":..,\"id\":..,\"distance\":..}, by distance and id: the
pairs of `lookalike join --equal`. The distance is the number that differ.

Several indexes are searched as one: name the others between INDEX and the queries.

Examples:
  lookalike index search crawl.lkix 5f3a9c0012d4e877
  lookalike index search january.lkix february.lkix new.fp.jsonl
  lookalike fingerprint new.jsonl | lookalike index search crawl.lkix - --distance 2")]
pub(crate) struct IndexSearchArguments {
    /// An index made by `lookalike index build`; further ones may follow
    index: PathBuf,

    /// Fingerprints or sketches as hex digits (16 for an index of 64 bits), files of them, or - for standard input
    #[arg(required = true, value_name = "QUERY")]
    queries: Vec<String>,

    /// Maximum Hamming distance in bits [default: the distance the index was built for]
    #[arg(long, value_name = "BITS", conflicts_with = "equal")]
    pub(super) distance: Option<u32>,

    /// Minimum number of super-shingles or min-hash values in common [default: the number the index was built for]
    #[arg(long, value_name = "NUMBER")]
    pub(super) equal: Option<MinEqual>,

    /// Read the index into memory first, instead of mapping it
    #[arg(long)]
    pub(super) in_memory: bool,

    /// Start at once, without checking every byte of the index: a damaged one may give wrong answers
    #[arg(long)]
    pub(super) skip_check: bool,

    #[command(flatten)]
    pub(super) losses: LossArguments,

    /// Do not list queries that could not be read
    #[arg(long, short)]
    quiet: bool,

    /// Print a summary as one JSON object on standard error
    #[arg(long)]
    json: bool,
}

/// A document that was found.
#[derive(Serialize)]
pub(super) struct FoundLine<'a> {
    pub(super) query: &'a str,
    /// Left out for other sketches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) distance: u32,
}

impl FoundLine<'_> {
    pub(super) fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        serde_json::to_writer(&mut *out, self).map_err(std::io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    }
}

/// Counts of queries and matches.
#[derive(Default, Serialize)]
pub(super) struct SearchSummary {
    pub(super) queries: u64,
    pub(super) queries_with_matches: u64,
    pub(super) matches: u64,
    pub(super) probes: u64,
    pub(super) candidates: u64,
    pub(super) inputs: Vec<CodesSummary>,
}

/// The indexes to search, and the queries.
pub(super) struct SearchPlan<'a> {
    pub(super) indexes: Vec<&'a Path>,
    pub(super) queries: Vec<&'a str>,
    pub(super) arguments: &'a IndexSearchArguments,
}

/// An index that is searched.
pub(super) struct SearchedIndex<'a, F> {
    pub(super) path: &'a Path,
    pub(super) file: F,
}

struct SearchRun<'a, C: Word, W> {
    indexes: Vec<SearchedIndex<'a, IndexFile<C>>>,
    distance: u32,
    losses: LossPolicy,
    out: W,
    summary: SearchSummary,
}

/// Number of queries that are searched together.
const GROUP: usize = 64;
/// Memory for the queries that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// Separates indexes from queries.
pub(super) fn plan(arguments: &IndexSearchArguments) -> Result<SearchPlan<'_>, Failure> {
    let is_any = |path: &Path| is_index(path) || is_sketch_index(path);
    // By content, not by name: a file of queries may have any name.
    let (further, queries): (Vec<&str>, Vec<&str>) = arguments
        .queries
        .iter()
        .map(String::as_str)
        .partition(|query| is_any(query.as_ref()));
    let further = further.into_iter().map(Path::new);
    let plan = SearchPlan {
        indexes: std::iter::once(arguments.index.as_path())
            .chain(further)
            .collect(),
        queries,
        arguments,
    };
    if plan.queries.is_empty() {
        return Err(Failure::Usage(
            "every argument is an index, and none a query: name fingerprints or files of them behind the indexes".to_owned(),
        ));
    }
    // Set before the index is opened: a page may be missing as soon as the first byte is read.
    if let ([only], false) = (plan.indexes.as_slice(), arguments.in_memory) {
        bus_error::name_file(only);
    }
    Ok(plan)
}

/// Searches indexes of fingerprints.
pub(super) fn run(plan: &SearchPlan<'_>) -> Result<(), Failure> {
    let arguments = plan.arguments;
    if arguments.equal.is_some() {
        return Err(Failure::Usage(format!(
            "{}: an index of fingerprints, which have no equal places: use --distance instead of --equal",
            arguments.index.display()
        )));
    }
    match plan.width()? {
        32 => search::<u32>(plan),
        128 => search::<u128>(plan),
        _ => search::<u64>(plan),
    }
}

impl SearchPlan<'_> {
    /// Returns the width of the indexes' fingerprints, in bits. If all are empty, it is that of the first query.
    fn width(&self) -> Result<u32, Failure> {
        for path in &self.indexes {
            if let Some(bits) = stated_width(path)? {
                return Ok(bits);
            }
        }
        let query = self.queries[0];
        let digits = query.parse::<SizedFingerprint>().ok();
        let known = match digits.filter(|_| !Path::new(query).exists()) {
            Some(digits) => Some(digits.bits()),
            None => KnownFingerprints::of(&Path::new(query).into())?.bits,
        };
        known.map_or_else(|| Ok(width(self.indexes[0])?), Ok)
    }

    /// Ends a search: prints the counts, and fails if more rows were lost than allowed.
    pub(super) fn end(&self, summary: &SearchSummary) -> Result<(), Failure> {
        let arguments = self.arguments;
        let rows = summary.inputs.iter().flat_map(|input| &input.skipped);
        let losses = arguments.losses.policy();
        losses.check(rows.clone(), summary.queries)?;
        if arguments.json {
            console::json_to_stderr(summary);
        } else if !arguments.quiet {
            for input in &summary.inputs {
                console::skipped(&input.skipped);
            }
        }
        arguments.losses.end(rows)
    }
}

impl<F> SearchedIndex<'_, F> {
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }
}

impl<'a, C: Word> SearchedIndex<'a, IndexFile<C>> {
    /// Opens all; the largest distance that each of them answers.
    fn open_all(plan: &SearchPlan<'a>) -> Result<(Vec<Self>, u32), Failure> {
        let open = match plan.arguments.skip_check {
            true => open_unchecked::<C>,
            false => open::<C>,
        };
        let mut indexes: Vec<Self> = Vec::with_capacity(plan.indexes.len());
        let mut built = MAX_DISTANCE;
        for &path in &plan.indexes {
            // It has nothing to find, whatever the width.
            if width(path)? != C::BITS && stated_width(path)?.is_none() {
                continue;
            }
            let file = open(path, plan.arguments.in_memory)?;
            let index = Self { path, file };
            if let Some(first) = indexes.first() {
                index.ensure_same_scheme(&first.name(), first.scheme())?;
            }
            let radius = index.file.index().radius();
            let distance = plan.arguments.distance.unwrap_or(radius);
            if distance > radius {
                let remedy = match distance {
                    ..=MAX_DISTANCE => format!("rebuild it with --distance {distance}"),
                    _ => format!("the largest distance for an index is {MAX_DISTANCE}"),
                };
                return Err(Failure::Usage(format!(
                    "{}: built for distances up to {radius}, not {distance}: {remedy}",
                    path.display()
                )));
            }
            // Every index must answer, so the one with the smallest distance limits all.
            built = built.min(distance);
            indexes.push(index);
        }
        Ok((indexes, built))
    }

    fn scheme(&self) -> Option<SchemeId> {
        self.file.scheme().map(SchemeId)
    }

    /// Refuses fingerprints with another scheme.
    fn ensure_same_scheme(&self, other: &str, scheme: Option<SchemeId>) -> Result<(), Failure> {
        let name = self.name();
        let own = self.scheme().map(|id| (name.as_str(), id));
        let other = scheme.map(|id| (other, id));
        Ok(ensure_equal_schemes(own, other).map_err(BatchError::from)?)
    }

    /// Appends the ids of a fingerprint. Returns false if it is stored without ids.
    fn ids<'i>(&'i self, code: C, ids: &mut Vec<&'i str>) -> Result<bool, Failure> {
        self.file.ids(code, ids).map_err(damaged(self.path))?;
        // An index that does not hold the fingerprint does not lack its ids.
        Ok(self.file.has_ids() || !self.file.index().contains(code))
    }
}

fn search<C: Word>(plan: &SearchPlan<'_>) -> Result<(), Failure> {
    let (indexes, distance) = SearchedIndex::<IndexFile<C>>::open_all(plan)?;
    let mut search = SearchRun {
        indexes,
        distance,
        losses: plan.arguments.losses.policy(),
        out: BufWriter::with_capacity(1 << 18, stdout().lock()),
        summary: SearchSummary::default(),
    };
    // Queries from standard input or from an object store are copied there.
    let spool = Spool::new(&std::env::temp_dir())?;
    for &query in &plan.queries {
        let digits = query.parse::<SizedFingerprint>().ok();
        match digits.and_then(SizedFingerprint::code) {
            // The right number of hexadecimal digits is a fingerprint even if a file has that name; `./` before it means the file.
            Some(code) => search.group(&[code], &|_| query.to_owned())?,
            None => {
                refuse_width(query, digits, C::BITS)?;
                for source in fingerprint_sources(&[query], spool.path())? {
                    search.file(&source)?;
                }
            }
        }
    }
    search.out.flush()?;
    plan.end(&search.summary)
}

/// Refuses digits of a fingerprint with another width, if no file has that name.
fn refuse_width(query: &str, digits: Option<SizedFingerprint>, bits: u32) -> Result<(), Failure> {
    let is_other = digits.is_some() || query.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_other && !Path::new(query).exists() {
        true => Err(Failure::Usage(format!(
            "{query}: no file has this name, and a fingerprint of the index has {} hexadecimal digits",
            bits / 4
        ))),
        false => Ok(()),
    }
}

impl<C: Word, W: Write> SearchRun<'_, C, W> {
    /// Searches all queries of a file.
    fn file(&mut self, source: &FingerprintSource) -> Result<(), Failure> {
        let strict = self.losses.is_strict();
        let mut file = CodeFile::open(source, strict).map_err(BatchError::from)?;
        for index in &self.indexes {
            index.ensure_same_scheme(file.name(), file.scheme())?;
        }
        let (mut codes, mut more) = (FingerprintFile::<C>::default(), true);
        while more {
            codes.clear();
            more = file
                .fill(&mut codes, CHUNK_BYTES)
                .map_err(BatchError::from)?;
            // Queries of a group wait for memory together: each probe misses the cache, and the misses of 64 queries overlap.
            for start in (0..codes.codes.len()).step_by(GROUP) {
                let group = &codes.codes[start..(start + GROUP).min(codes.codes.len())];
                let name = |at: usize| codes.ids.name(start + at, group[at]).text().into_owned();
                self.group(group, &name)?;
            }
        }
        self.summary.inputs.push(file.summary());
        Ok(())
    }

    fn group(&mut self, queries: &[C], name: &dyn Fn(usize) -> String) -> Result<(), Failure> {
        let mut found = Vec::new();
        let summary = &mut self.summary;
        for index in &self.indexes {
            let visit = &mut |query, code, distance| found.push((query, distance, code));
            let effort = index
                .file
                .index()
                .search_group(queries, self.distance, visit);
            let effort = effort.map_err(|error| Failure::Usage(error.to_string()))?;
            summary.probes += effort.probes;
            summary.candidates += effort.candidates;
        }
        // Sorted by query, distance and fingerprint: several tables find the same entry in any order, and several indexes the same fingerprint.
        found.sort_unstable();
        found.dedup();
        summary.queries += queries.len() as u64;
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
            let mut is_bare = false;
            for index in &self.indexes {
                is_bare |= !index.ids(code, &mut ids)?;
            }
            // The ids of one index are in order; those of several only after sorting.
            if self.indexes.len() > 1 {
                ids.sort_unstable();
            }
            let fingerprint = SizedFingerprint::new(code).to_string();
            let named = ids.iter().map(|&id| Some(id));
            // An index without ids still gives a line for each fingerprint.
            let bare = is_bare.then_some(None);
            for id in named.chain(bare) {
                let line = FoundLine {
                    query,
                    fingerprint: Some(&fingerprint),
                    id,
                    distance,
                };
                line.write(&mut self.out)?;
                self.summary.matches += 1;
            }
        }
        Ok(())
    }
}

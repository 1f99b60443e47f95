//! `lookalike explain A B`: shows why two documents match or do not.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use lookalike::DocumentFields;
use lookalike_batch::explain::{
    self, ContentRank, Explanation, FeatureListing, FingerprintComparison, LISTED, explain,
};
use lookalike_batch::report::{diff, render_explanation};
use lookalike_batch::{BatchError, JobObserver, JobSettings, Method, SkippedRow, SkippedRows};
use lookalike_corpus::{
    InMemoryDocument, InputOptions, Inputs, Parser, Record, TextState, VisibleText,
};

use crate::arguments::{
    ConvertArguments, FileArguments, HtmlArguments, MethodArguments, RecordArguments, RunArguments,
    SchemeArguments, ScopeArguments, TestArguments, command_line,
};
use crate::collection::refuse_collections;
use crate::console::{self, ColorOption, Console};
use crate::failure::Failure;
use crate::kept_documents::kept_documents;
use crate::output_file::{check_output, files_of, write_bytes};
use crate::size;

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("records_of").args(["inputs", "inputs_from"]).multiple(true))]
#[command(after_help = "\
Shows how similar two documents are, whether the method finds the pair and with what
probability, which features, bits, bands and super-shingles agree, and where the texts
differ.

--json prints one object; --quiet leaves out the differences.

Examples:
  lookalike explain a.html b.html --method simhash --distance 6
  lookalike explain r230 r240 --in news.jsonl --page why.html
  lookalike explain r230 r230 --against old.jsonl --in new.jsonl    an earlier document")]
pub(crate) struct ExplainArguments {
    /// A file, or with --in the id of a record
    a: OsString,

    /// The other file or id
    b: OsString,

    /// Take the two records with these ids from this input; may be repeated
    #[arg(long = "in", value_name = "INPUT")]
    inputs: Vec<OsString>,

    /// Take A from this input of earlier documents, and only B from --in; may be repeated
    ///
    /// As with `dedup --against`, an earlier document may have the id of another.
    #[arg(long, value_name = "PATH", requires = "records_of")]
    against: Vec<OsString>,

    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    /// Number of features of each kind to list
    #[arg(long, value_name = "N", default_value_t = LISTED)]
    list: usize,

    /// Coloured output: auto, always or never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Running"
    )]
    color: ColorOption,

    #[command(flatten)]
    records: RecordArguments,

    #[command(flatten)]
    convert: ConvertArguments,

    #[command(flatten)]
    files: FileArguments,

    #[command(flatten)]
    html: HtmlArguments,

    #[command(flatten)]
    method: MethodArguments,

    #[command(flatten)]
    tests: TestArguments,

    #[command(flatten)]
    scope: ScopeArguments,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) struct ExplainedRecord {
    name: String,
    text: String,
    visible: Option<VisibleText<'static>>,
    fields: DocumentFields,
    category: Option<String>,
}

impl ExplainedRecord {
    fn of_text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            visible: None,
            fields: DocumentFields::default(),
            category: None,
        }
    }

    /// Converts a record that was read with these options, under this name.
    ///
    /// # Errors
    /// Fails if the record has neither a text nor fields that produce features, because there would be nothing to explain.
    fn new(name: &str, record: &Record<'_>, options: &InputOptions) -> Result<Self, Failure> {
        let lack = match record.text_state {
            TextState::Missing if record.fields.is_empty() => {
                "it has no text: name the field of the text with --text".to_owned()
            }
            TextState::TooLong => format!(
                "it is longer than {}, and was not read: explain a part of it",
                size::show(options.max_document_bytes)
            ),
            // Copied, because the chunk that the record borrows from is dropped after the visit.
            TextState::Present | TextState::Missing => {
                return Ok(Self {
                    name: name.to_owned(),
                    text: record.text.clone().into_owned(),
                    visible: record.visible.as_ref().map(VisibleText::to_static),
                    fields: record.fields.clone(),
                    category: record.category.as_deref().map(str::to_owned),
                });
            }
        };
        Err(Failure::Failed(format!("{name}: {lack}")))
    }

    /// Converts two documents that a program passes, under these names.
    pub(crate) fn of_given(
        names: [&str; 2],
        documents: [InMemoryDocument<'_>; 2],
        options: &InputOptions,
    ) -> Result<[Self; 2], Failure> {
        let inputs = Inputs::given(&["documents"]);
        let mut parser = Parser::new(&inputs, options).with_visible();
        let mut found = Vec::new();
        parser.parse_given(&Vec::from(documents), 0, 0, &mut |record| {
            let name = names[found.len()];
            // Documents passed in memory are never bad records.
            found.extend(record.map(|record| Self::new(name, &record, options)));
        });
        let found: Vec<_> = found.into_iter().collect::<Result<_, _>>()?;
        found
            .try_into()
            .map_err(|_| Failure::Failed("two documents are needed".to_owned()))
    }

    /// Finds the two documents with these numbers, counted from 0 over all readable records.
    ///
    /// # Errors
    /// [`Failure::Failed`] if the inputs have changed since the documents were numbered.
    pub(crate) fn of_numbers(
        documents: [&NumberedDocument; 2],
        inputs: &Inputs,
        options: &InputOptions,
        observer: &dyn JobObserver,
    ) -> Result<[Self; 2], Failure> {
        let (mut next, mut found) = (0, [None, None]);
        visit(inputs, options, observer, |record| {
            for (document, found) in documents.iter().zip(&mut found) {
                // Number and id must agree: the number alone would find another document in an input that has changed.
                if document.number == next && document.has_id(&record.id) {
                    *found = Some(Self::new(&document.id, record, options));
                }
            }
            next += 1;
        })?;
        let [a, b] = found;
        let changed = |document: &NumberedDocument| {
            Failure::Failed(format!(
                "{}: the inputs have changed since the job: run it again",
                document.id
            ))
        };
        Ok([
            a.ok_or_else(|| changed(documents[0]))??,
            b.ok_or_else(|| changed(documents[1]))??,
        ])
    }

    /// Returns the visible text.
    fn seen(&self) -> &str {
        self.visible
            .as_ref()
            .map_or(&self.text, |visible| &visible.whole)
    }

    fn view(&self) -> explain::ExplainedDocument<'_> {
        explain::ExplainedDocument {
            name: &self.name,
            text: &self.text,
            visible: self.visible.as_ref(),
            fields: &self.fields,
            category: self.category.as_deref(),
        }
    }
}

impl ExplainArguments {
    fn documents(
        &self,
        settings: &JobSettings,
        console: &Console<'_>,
    ) -> Result<[ExplainedRecord; 2], Failure> {
        let spool = self.run.spool(std::env::temp_dir())?;
        let mut options = self
            .records
            .options()
            .html(self.html.extraction())
            .fields(self.scheme.fields)
            .category(self.scope.category(&self.method));
        self.convert.apply(&mut options);
        self.files.apply(&mut options);
        let names = self.files.names(&self.inputs)?;
        if names.is_empty() {
            let read = [&self.a, &self.b].map(Path::new).into_iter();
            check_output(self.page.as_deref(), read.chain(self.scheme.files()))?;
            // Each with its own inputs, so that a folder or an archive in place of a file is reported by its name.
            let file = |path| file(path, &options, spool.path(), console);
            let ((a, a_is_html), (b, b_is_html)) = (file(&self.a)?, file(&self.b)?);
            self.html.warn_of_unused(a_is_html || b_is_html, console);
            return Ok([a, b]);
        }
        let [a, b] = [&self.a, &self.b].map(|id| id.to_string_lossy());
        let discover = |paths: &[OsString]| {
            let inputs = Inputs::discover(paths, &options, spool.path())
                .map_err(|error| self.files.with_place(error))?;
            let read = files_of(&inputs).chain(self.scheme.files());
            check_output(self.page.as_deref(), read)?;
            Ok::<_, Failure>(inputs)
        };
        let find = |option, inputs: &Inputs, ids: &[&str]| {
            self.records_of(option, inputs, &options, settings, ids, console)
        };
        // Both before any is read, which may take long.
        let inputs = discover(&names)?;
        let (found, has_html) = match self.against.is_empty() {
            true => find("--in", &inputs, &[&*a, &*b])?,
            false => {
                refuse_collections(&self.against)?;
                let paths = self.against.iter().map(kept_documents);
                let against = discover(&paths.collect::<Result<Vec<_>, _>>()?.concat())?;
                let (mut found, has_html) = find("--against", &against, &[&*a])?;
                let (others, have_html) = find("--in", &inputs, &[&*b])?;
                found.extend(others);
                (found, has_html || have_html)
            }
        };
        self.html.warn_of_unused(has_html, console);
        let pair = <[ExplainedRecord; 2]>::try_from(found);
        Ok(pair.unwrap_or_else(|_| unreachable!("one record was found for each id")))
    }

    /// Finds the records with these ids in the inputs of an option. Also returns true if one of the inputs is HTML.
    fn records_of(
        &self,
        option: &str,
        inputs: &Inputs,
        options: &InputOptions,
        settings: &JobSettings,
        ids: &[&str],
        console: &Console<'_>,
    ) -> Result<(Vec<ExplainedRecord>, bool), Failure> {
        let mut targets: Vec<_> = ids.iter().map(|id| TargetRecord::new(id)).collect();
        let visited = visit(inputs, options, console, |record| {
            for target in &mut targets {
                target.examine(record, settings, options);
            }
        })?;
        let mut found = Vec::new();
        for (target, id) in targets.into_iter().zip(ids) {
            let count = target.namesakes[0].count;
            if count > 1 {
                let remedy = match self.against.is_empty() {
                    true => "; give the inputs of `dedup --against` with --against",
                    false => "",
                };
                console.warn(&format!(
                    "{} records of {option} have the id {id:?}: the first in the order of jobs is explained, the next is {id}#2{remedy}",
                    console::grouped(count)
                ));
            }
            let unread = visited.lost.as_ref().map_or(String::new(), |first| {
                format!("; some records could not be read, for example {first}")
            });
            let missing = format!("no record of {option} has the id {id:?}: check the id{unread}");
            found.push(target.found().ok_or(Failure::Failed(missing))??);
        }
        Ok((found, visited.has_html))
    }
}

/// A record to find by the id that jobs give it: its own, or one with the numbers that jobs append to repeated ids.
struct TargetRecord<'a> {
    /// Records with the wanted id, then with that id without its last number, and so on. Jobs rename the record with its number among those of an
    /// entry to the id of the entry before it.
    namesakes: Vec<RepeatedRecord<'a>>,
}

impl<'a> TargetRecord<'a> {
    fn new(wanted: &'a str) -> Self {
        let mut namesakes = vec![RepeatedRecord::new(wanted, 1)];
        let mut id = wanted;
        while let Some((shorter, number)) = without_number(id) {
            namesakes.push(RepeatedRecord::new(shorter, number));
            id = shorter;
        }
        Self { namesakes }
    }

    fn examine(&mut self, record: &Record<'_>, settings: &JobSettings, options: &InputOptions) {
        let name = self.namesakes[0].id;
        for records in &mut self.namesakes {
            let rank = || ContentRank::new(record, settings);
            records.examine(record, rank, || ExplainedRecord::new(name, record, options));
        }
    }

    /// Renames repeated ids as jobs do, round by round, and returns the record that then has the wanted id.
    fn found(self) -> Option<Result<ExplainedRecord, Failure>> {
        let namesakes = self.namesakes.into_iter();
        let (numbers, mut groups): (Vec<_>, Vec<_>) = namesakes
            .map(|records| (records.number, records.first))
            .unzip();
        while groups.iter().any(|group| group.len() > 1) {
            let mut renamed = Vec::new();
            for (at, group) in groups.iter_mut().enumerate() {
                group.sort_by_key(|(rank, _)| *rank);
                let mut others = group.drain(1.min(group.len())..);
                // The wanted id has no number to get. Records with other numbers get ids that lead away from it.
                let next = numbers[at]
                    .checked_sub(2)
                    .and_then(|place| others.nth(place));
                renamed.extend(next.map(|record| (at - 1, record)));
            }
            // Only after all groups: jobs find the repeats of a round before they rename any of them.
            for (at, record) in renamed {
                groups[at].push(record);
            }
        }
        groups.swap_remove(0).pop().map(|(_, record)| record)
    }
}

/// Splits an id into the part before its number and that number, if it has one as jobs append it: from 2, without leading zeros.
fn without_number(id: &str) -> Option<(&str, usize)> {
    let (shorter, digits) = id.rsplit_once('#')?;
    let number: usize = digits.parse().ok()?;
    (number > 1 && number.to_string() == digits).then_some((shorter, number))
}

/// The first records with an id, in the order in which jobs number them.
struct RepeatedRecord<'a> {
    id: &'a str,
    number: usize,
    /// Number of records with the id.
    count: u64,
    /// The first records in that order, at most `number` of them.
    first: Vec<(ContentRank, Result<ExplainedRecord, Failure>)>,
}

impl<'a> RepeatedRecord<'a> {
    fn new(id: &'a str, number: usize) -> Self {
        Self {
            id,
            number,
            count: 0,
            first: Vec::new(),
        }
    }

    fn examine(
        &mut self,
        record: &Record<'_>,
        rank: impl FnOnce() -> ContentRank,
        explained: impl FnOnce() -> Result<ExplainedRecord, Failure>,
    ) {
        if record.id != self.id {
            return;
        }
        self.count += 1;
        let rank = rank();
        let place = self.first.partition_point(|(other, _)| *other <= rank);
        // Only the first `number` in the order of jobs can be the one, so no more are held.
        if place < self.number {
            self.first.insert(place, (rank, explained()));
            self.first.truncate(self.number);
        }
    }
}

/// Returns the only document in a file, and whether it is HTML.
fn file(
    path: &OsString,
    options: &InputOptions,
    spool: &Path,
    observer: &dyn JobObserver,
) -> Result<(ExplainedRecord, bool), Failure> {
    // The others are counted, not held: the file may be larger than the memory.
    let (mut first, mut count) = (None, 0_u64);
    let inputs = Inputs::discover(std::slice::from_ref(path), options, spool)
        .map_err(Failure::of_named_file)?;
    let VisitSummary { lost, has_html } = visit(&inputs, options, observer, |record| {
        first.get_or_insert_with(|| ExplainedRecord::new(&record.id, record, options));
        count += 1;
    })?;
    // The reason why there is no document says more than its absence.
    if let (0, Some(lost)) = (count, lost) {
        return Err(Failure::Failed(lost));
    }
    match first {
        Some(document) if count == 1 => Ok((document?, has_html)),
        _ => Err(Failure::Usage(format!(
            "{}: holds {count} documents: name two of them by id, as in `lookalike explain ID ID --in FILE`",
            path.to_string_lossy()
        ))),
    }
}

fn check_cancelled(observer: &dyn JobObserver) -> Result<(), Failure> {
    match observer.is_cancelled() {
        true => Err(BatchError::Cancelled.into()),
        false => Ok(()),
    }
}

/// The findings of a reading other than its records.
struct VisitSummary {
    /// A record that cannot be read, with the reason.
    lost: Option<String>,
    has_html: bool,
}

/// Calls `visit` with every readable record.
fn visit(
    inputs: &Inputs,
    options: &InputOptions,
    observer: &dyn JobObserver,
    mut visit: impl FnMut(&Record<'_>),
) -> Result<VisitSummary, Failure> {
    // With the visible text, for pages that have the same main content but differ elsewhere.
    let mut parser = Parser::new(inputs, options).with_visible();
    let mut skipped = SkippedRows::default();
    inputs.skips.iter().for_each(|skip| skipped.add_part(skip));
    for chunk in inputs.chunks(options) {
        check_cancelled(observer)?;
        let chunk = chunk.map_err(|error| Failure::Failed(error.to_string()))?;
        chunk.skips.iter().for_each(|skip| skipped.add_part(skip));
        parser.parse(&chunk, &mut |record| match record {
            Ok(record) => visit(&record),
            Err(bad) => skipped.add_record(inputs, &bad),
        });
    }
    // Deliberately skipped rows, such as files of other formats in a folder, explain nothing.
    let mut lost = skipped.finish().into_iter().filter(SkippedRow::is_loss);
    Ok(VisitSummary {
        lost: lost.next().map(|row| row.first),
        has_html: inputs.have_html(),
    })
}

/// ECMA-48 codes before and after marked bits.
const MARK: [&str; 2] = ["\x1b[7m", "\x1b[27m"];

fn describe(e: &Explanation, color: bool) -> String {
    let mut text = format!("{}\n{}\n", e.verdict(), e.found_sentence());
    let chance = match e.found.chance {
        Some(chance) => format!("{chance:.6}, {}", e.found.chance_of),
        None => e.found.chance_of.clone(),
    };
    let visible = diff::visible;
    let features = |count: usize| console::counted(count as u64, "feature");
    // An exact method has no chance, and without a rest of the page nothing more is visible.
    let chance = (e.method != Method::AllPairs.to_string()).then_some(chance);
    let visible_resemblance = e.visible_resemblance.map(|visible| format!("{visible:.6}"));
    let rows = [
        ("chance over all seeds", chance),
        ("", Some(String::new())),
        (
            "a",
            Some(format!("{}  ({})", visible(&e.a), features(e.features_a))),
        ),
        (
            "b",
            Some(format!("{}  ({})", visible(&e.b), features(e.features_b))),
        ),
        ("shared features", Some(e.shared.to_string())),
        ("resemblance", Some(format!("{:.6}", e.resemblance))),
        ("of all that is visible", visible_resemblance),
        (
            "containment of a in b",
            Some(format!("{:.6}", e.containment_of_a)),
        ),
        (
            "containment of b in a",
            Some(format!("{:.6}", e.containment_of_b)),
        ),
    ];
    for (name, value) in rows {
        let Some(value) = value else { continue };
        // The empty pair in the rows above makes an empty line, which must not be 26 spaces.
        let line = format!("  {name:24} {value}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(both) = &e.simhash {
        describe_bits(&mut text, both, color);
    }
    if let Some(places) = &e.minhash {
        let _ = write!(
            text,
            "  min-hash                 {} of {} places agree",
            places.agreeing, places.places
        );
        let _ = match (places.bands, places.rows) {
            (Some(bands), Some(rows)) => writeln!(
                text,
                ", {} of {bands} bands of {rows}{}",
                places.agreeing_bands.len(),
                first_of(&places.agreeing_bands, e.shared_features.listed.len())
            ),
            _ => writeln!(text),
        };
    }
    if let Some(shingles) = &e.super_shingles {
        let _ = writeln!(
            text,
            "  super-shingles           {} of {} agree",
            shingles.agreeing,
            shingles.groups.len()
        );
        for (number, (a, b, agree)) in shingles.groups.iter().enumerate() {
            let relation = if *agree { "=" } else { "|" };
            let _ = writeln!(text, "    {:<22} {a} {relation} {b}", number + 1);
        }
    }
    let _ = writeln!(text, "  scheme                   {}", e.scheme);
    for (name, listing) in [
        ("features of both", &e.shared_features),
        ("features of a alone", &e.only_a),
        ("features of b alone", &e.only_b),
    ] {
        describe_listing(&mut text, name, listing);
    }
    text.push('\n');
    text
}

/// Lists the first of the bands that agree, counted from 1.
fn first_of(bands: &[usize], most: usize) -> String {
    // `--list 0` refers to features; a line of bands is short in any case.
    let most = most.max(LISTED);
    let shown: Vec<String> = bands
        .iter()
        .take(most)
        .map(|band| (band + 1).to_string())
        .collect();
    match (shown.is_empty(), bands.len() > most) {
        (true, _) => String::new(),
        (false, false) => format!(": {}", shown.join(" ")),
        (false, true) => format!(": {} ...", shown.join(" ")),
    }
}

fn describe_bits(text: &mut String, both: &FingerprintComparison, color: bool) {
    let _ = writeln!(
        text,
        "  simhash                  {} of {} bits differ",
        both.distance, both.bits
    );
    // Positions count from the left, as digits are written, and are in order.
    let is_marked = |place: u32| both.differing.binary_search(&place).is_ok();
    for (name, digits) in [("a", &both.a), ("b", &both.b)] {
        let _ = write!(text, "    {name}  {digits}  ");
        for (at, digit) in digits.chars().enumerate() {
            let value = digit.to_digit(16).unwrap_or_default();
            for bit in 0..4 {
                let one = value >> (3 - bit) & 1;
                let _ = match color && is_marked(4 * at as u32 + bit) {
                    true => write!(text, "{}{one}{}", MARK[0], MARK[1]),
                    false => write!(text, "{one}"),
                };
            }
        }
        text.push('\n');
    }
    // Without colour, the marks are on the line below: terminal codes would be in the way in a file or a pipe.
    if !color && both.distance > 0 {
        // Four spaces, the name, two spaces, the digits, two spaces: the column of the first bit.
        let indent = " ".repeat(both.a.len() + 9);
        let marks: String = (0..both.bits)
            .map(|place| if is_marked(place) { '^' } else { ' ' })
            .collect();
        let _ = writeln!(text, "{indent}{}", marks.trim_end());
    }
}

fn describe_listing(text: &mut String, name: &str, listing: &FeatureListing) {
    let more = listing.count - listing.listed.len();
    let _ = match (listing.listed.is_empty(), more) {
        (true, _) | (_, 0) => writeln!(text, "  {name:24} {}", listing.count),
        _ => writeln!(
            text,
            "  {name:24} {}, the first {}",
            listing.count,
            listing.listed.len()
        ),
    };
    for feature in &listing.listed {
        let times = match (feature.times_a, feature.times_b) {
            (0 | 1, 0 | 1) => String::new(),
            (a, b) => format!("  ({a} times in a, {b} in b)"),
        };
        let _ = writeln!(text, "    {}{times}", diff::visible(&feature.text));
    }
}

impl ExplainArguments {
    fn settings(&self) -> Result<JobSettings, Failure> {
        let method = &self.method;
        method.check()?;
        // Only the options that are part of the scheme: reading options that do not change a text do not apply to a pair.
        let read = InputOptions::default().html(self.html.extraction());
        let (scheme, terms) = self.scheme.scheme(method.weight, method.sketch(), &read)?;
        let settings = method
            .settings(scheme, terms, &self.tests)
            .scope(self.scope.scope())
            .lengths(self.scope.lengths);
        settings.check()?;
        Ok(settings)
    }

    /// Explains two texts, or else the documents that the arguments name, to another program.
    pub(crate) fn explain_for_program(
        &self,
        texts: Option<[&str; 2]>,
        console: &Console<'_>,
    ) -> Result<PairExplanation, Failure> {
        let settings = self.settings()?;
        let pair = match texts {
            Some([a, b]) => [
                ExplainedRecord::of_text(&self.a.to_string_lossy(), a),
                ExplainedRecord::of_text(&self.b.to_string_lossy(), b),
            ],
            None => self.documents(&settings, console)?,
        };
        PairExplanation::of(&pair, &settings, self.list, console)
    }
}

/// A document of a job over files, for an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedDocument {
    /// Its id, with the number that repeated ids get.
    pub id: String,
    /// Its number among all documents of the job; those of `--against` come first.
    pub number: u64,
}

impl NumberedDocument {
    /// Returns true if a record with this id may be the document.
    fn has_id(&self, id: &str) -> bool {
        let numbered = self.id.strip_prefix(id);
        numbered.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    }
}

/// Explanation of a pair of documents for another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairExplanation {
    /// The text that the command prints, without colours.
    pub text: String,
    /// The JSON that the command prints with `--json`.
    pub json: String,
    /// The page of `--output`.
    pub page: String,
}

impl PairExplanation {
    /// Explains two documents under these settings, with up to `list` features of each kind.
    pub(crate) fn of(
        pair: &[ExplainedRecord; 2],
        settings: &JobSettings,
        listed: usize,
        observer: &dyn JobObserver,
    ) -> Result<Self, Failure> {
        let explanation = explain([pair[0].view(), pair[1].view()], settings, listed)?;
        check_cancelled(observer)?;
        let texts = shown_texts(&explanation, pair);
        let mut text = describe(&explanation, false);
        if !explanation.equal_text {
            text += &diff::unified_terminal(texts[0], texts[1], false);
        }
        check_cancelled(observer)?;
        Ok(Self {
            text,
            json: serde_json::to_string(&explanation).map_err(std::io::Error::from)?,
            page: render_page(&explanation, texts)?,
        })
    }
}

/// Returns the texts whose differences are shown: if the main contents are equal, the visible texts.
fn shown_texts<'p>(explanation: &Explanation, pair: &'p [ExplainedRecord; 2]) -> [&'p str; 2] {
    let [a, b] = pair;
    match explanation.equal_main_text {
        true => [a.seen(), b.seen()],
        false => [&*a.text, &*b.text],
    }
}

fn render_page(explanation: &Explanation, texts: [&str; 2]) -> Result<String, Failure> {
    render_explanation(explanation, texts, &command_line())
        .map_err(|error| Failure::Failed(error.to_string()))
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    let settings = arguments.settings()?;
    let pair = arguments.documents(&settings, &arguments.run.console())?;
    let explanation = explain([pair[0].view(), pair[1].view()], &settings, arguments.list)?;
    let texts = shown_texts(&explanation, &pair);
    if let Some(path) = &arguments.page {
        write_bytes(path, render_page(&explanation, texts)?.as_bytes())?;
    }
    let color = arguments.color.wanted(stdout().is_terminal());
    let mut text = if arguments.run.json {
        serde_json::to_string(&explanation).map_err(std::io::Error::from)? + "\n"
    } else {
        describe(&explanation, color)
    };
    // The page contains the differences.
    let wants_diff = !arguments.run.json && !arguments.run.quiet && arguments.page.is_none();
    if wants_diff && !explanation.equal_text {
        text += &diff::unified_terminal(texts[0], texts[1], color);
    }
    Ok(stdout().lock().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use lookalike_batch::NoProgress;
    use serde_json::Value;

    use super::*;

    fn explained(flags: &[&str]) -> Value {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pages/en");
        let pages = ["harbour-clock", "harbour-clock-revised"]
            .map(|name| pages.join(name).with_extension("html").into_os_string());
        let words = std::iter::once("explain".into()).chain(pages);
        let words: Vec<OsString> = words.chain(flags.iter().map(OsString::from)).collect();
        let told = crate::program::explain(&words, None, &NoProgress)
            .done
            .unwrap();
        serde_json::from_str(&told.json).unwrap()
    }

    /// Compares the stated chance with the share of hash seeds for which the pair is found.
    #[test]
    fn the_chance_is_how_often_seeds_find_the_pair() {
        for flags in [
            "--method minhash --functions 12 --recall 0.5",
            "--method super-shingle --equal 3",
            "--method simhash --distance 5",
            "--method mod-p --size 200",
        ] {
            let flags: Vec<&str> = flags.split(' ').collect();
            let seeds = 60;
            let (mut found, mut chance) = (0.0, 0.0);
            for seed in 0..seeds {
                let seed = seed.to_string();
                let more = ["--threshold", "0.6", "--seed", &seed];
                let told = explained(&[&flags[..], &more].concat());
                found += f64::from(u8::from(told["found"]["proposed"] == true));
                chance += told["found"]["chance"].as_f64().unwrap();
            }
            let (found, chance) = (found / f64::from(seeds), chance / f64::from(seeds));
            // The tolerance is three standard deviations of 60 trials, and some room for bits that are not independent.
            let room = 3.0 * (chance * (1.0 - chance) / f64::from(seeds)).sqrt() + 0.06;
            assert!(
                (found - chance).abs() < room,
                "{flags:?}: {found} for {chance}"
            );
        }
    }
}

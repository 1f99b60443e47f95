//! Arguments for input: sources, their fields, converters, HTML, and recurring lines.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use lookalike::scheme::{BoilerplateScope, Extraction, HtmlMode, SchemeId};
use lookalike_batch::fingerprints::files::{CodeFile, FingerprintSource};
use lookalike_batch::fingerprints::index::{is_index, open_unchecked, width};
use lookalike_batch::{
    BatchError, BoilerplateLearner, JobLimits, JobObserver, LossLimit, LossPolicy, RecordScan,
    RepeatedIds, SkippedRow,
};
use lookalike_corpus::{
    Converter, ExcludePattern, FieldPath, Format, InputError, InputOptions, Inputs, OptionError,
    OrderField, OutputFolder, SkipKind, SkippedPart, Source, StoreSettings, TextFields,
};

use super::input_lists::InputLists;
use super::values::share;
use crate::console::Console;
use crate::failure::Failure;
use crate::option_style::OptionStyle;
use crate::output_file::{check_output, files_of, write_bytes};
use crate::{caller, console, size};

/// Sources to read.
#[derive(Args)]
pub(crate) struct InputArguments {
    /// Files, directories or globs to read, or - for standard input
    ///
    /// Formats: JSONL, other JSON objects (in an array or one after another), text, source code, HTML, PDF, WARC, WET, WAT (with --format wat), ARC, CSV and TSV, plain
    /// or compressed (.gz, .zst, .bz2, .xz); Parquet and Arrow. Builds with the feature cloud also read s3://BUCKET/PATH, gs://, az:// and
    /// https://.
    #[arg(required_unless_present = "inputs_from", value_name = "INPUT")]
    pub(crate) inputs: Vec<OsString>,

    #[command(flatten)]
    records: RecordArguments,

    #[command(flatten)]
    pub(crate) convert: ConvertArguments,

    #[command(flatten)]
    pub(crate) files: FileArguments,

    #[command(flatten)]
    pub(crate) html: HtmlArguments,

    #[command(flatten)]
    pub(crate) losses: LossArguments,
}

/// Policy for ids that several records have.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct RepeatedIdArguments {
    /// Handling of repeated ids: number (ID#2, ID#3, ...) or refuse
    #[arg(long, value_name = "WHAT", default_value = "number")]
    pub(crate) repeated_ids: RepeatedIds,
}

/// Format of sources, and the fields of their records.
#[derive(Args)]
pub(crate) struct RecordArguments {
    /// Format of all inputs [default: by name and content]
    ///
    /// One of jsonl (or ndjson), json (an array of objects), text, html, pdf, warc, wat (metadata as documents), arc, csv, tsv, parquet and arrow.
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    format: Option<Format>,

    /// Separator of CSV and TSV: a character, or tab [default: tab for TSV; else , ; | or tab, guessed from the first rows]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = "Input")]
    delimiter: Option<u8>,

    /// CSV and TSV files have no header row; columns are numbered from 1
    #[arg(long, requires = "text", help_heading = "Input")]
    no_header: bool,

    /// Treat quotes in CSV and TSV files as ordinary characters, so that each line is a row
    #[arg(long, help_heading = "Input")]
    no_quotes: bool,

    /// Field or column that holds the id [default: id, else url, else file and number of the record]
    ///
    /// Nested fields are written a.b. A dot that belongs to a name is written \. (with a backslash). Columns of CSV and TSV can also be given by number.
    #[arg(long, value_name = "FIELD", help_heading = "Input")]
    id: Option<FieldPath>,

    /// Field or column that holds the text, or several, joined by line breaks [default: text, else html, see --html]
    ///
    /// Several are separated by commas (question,answer); those that a record lacks are left out. A comma that belongs to a name is written \, (with
    /// a backslash). A field called html holds a page if it is the only one.
    #[arg(long, value_name = "FIELD,...", help_heading = "Input")]
    text: Option<TextFields>,

    /// Size limit of a document; longer ones are counted, and dedup and pairs compare only their bytes for equality
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse_positive, help_heading = "Input")]
    max_document: u64,
}

impl RecordArguments {
    /// Returns options for reading records in this way.
    pub(crate) fn options(&self) -> InputOptions {
        InputOptions::default()
            .format(self.format)
            .delimiter(self.delimiter)
            .no_header(self.no_header)
            .no_quotes(self.no_quotes)
            .id_field(self.id.clone())
            .text_field(self.text.clone())
            .max_document_bytes(self.max_document)
    }
}

/// Policy for records and files that cannot be read.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct LossArguments {
    /// Stop at the first record or file that cannot be read, instead of counting and listing it
    #[arg(long)]
    strict: bool,

    /// Fail if more than N records and files, or more than P% of the records, are unreadable
    ///
    /// Up to the limit, the exit status is 0. Beyond it, the command fails and writes no files of results; what it printed or sent
    /// before stays. By default, any number is tolerated and listed, and exit status 3 reports it.
    #[arg(long, value_name = "N|P%", conflicts_with = "strict")]
    max_skipped: Option<LossLimit>,
}

impl LossArguments {
    pub(crate) fn policy(&self) -> LossPolicy {
        match (self.strict, self.max_skipped) {
            (true, _) => LossPolicy::Stop,
            (_, Some(limit)) => LossPolicy::Limit(limit),
            _ => LossPolicy::Tolerate,
        }
    }

    /// Ends a command that left out `rows`. Returns a failure if some of them are losses and `--max-skipped` was not given.
    pub(crate) fn end<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r SkippedRow>,
    ) -> Result<(), Failure> {
        let mut lost = rows.into_iter().filter(|row| row.is_loss());
        match (self.max_skipped, lost.next()) {
            // With `--max-skipped` the user has set a limit, and the job has already failed if there were more.
            (None, Some(row)) => Err(Failure::Losses {
                count: row.count + lost.map(|row| row.count).sum::<u64>(),
                first: row.first.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Works like `end`, for a command that has an answer: another program gets it in any case, and a warning of what was left out.
    pub(crate) fn end_answered<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r SkippedRow>,
    ) -> Result<(), Failure> {
        match self.end(rows) {
            // A failure would take the place of the answer, which a program gets as the return value.
            Err(losses @ Failure::Losses { .. }) if caller::is_program() => {
                console::warning(&losses.text_in(OptionStyle::Keyword));
                Ok(())
            }
            ended => ended,
        }
    }
}

impl InputArguments {
    /// Returns options for reading sources, with the field by which survivors are chosen.
    pub(crate) fn options(&self, order_field: Option<OrderField>) -> InputOptions {
        let mut options = self
            .records
            .options()
            .order_field(order_field)
            .html(self.html.extraction());
        self.convert.apply(&mut options);
        self.files.apply(&mut options);
        options
    }

    /// Warns of options that had no effect, once everything was read.
    pub(crate) fn warn_of_unused(&self, inputs: &Inputs, console: &Console) {
        self.html.warn_of_unused(inputs.have_html(), console);
    }

    /// Returns a scan of all records of inputs that were discovered.
    pub(crate) fn scan<'a>(
        &self,
        inputs: &'a Inputs,
        options: &InputOptions,
        limits: &JobLimits,
        observer: &'a dyn JobObserver,
    ) -> RecordScan<'a> {
        RecordScan::new(inputs)
            .options(options.clone())
            .limits(limits.clone())
            .losses(self.losses.policy())
            .observer(observer)
    }

    /// Returns the names of the inputs: those on the command line, then those of lists.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, Failure> {
        self.files.names(&self.inputs)
    }

    /// Discovers the inputs that the arguments name. Results of earlier jobs are skipped and reported.
    pub(crate) fn discover(
        &self,
        options: &InputOptions,
        spool: &Path,
        output: Option<OutputFolder<'_>>,
        console: &Console,
    ) -> Result<Inputs, Failure> {
        self.discover_paths(&self.names()?, options, spool, output, console)
    }

    /// Works like `discover`, for other paths.
    pub(crate) fn discover_paths(
        &self,
        paths: &[OsString],
        options: &InputOptions,
        spool: &Path,
        output: Option<OutputFolder<'_>>,
        console: &Console,
    ) -> Result<Inputs, Failure> {
        let inputs = match output {
            Some(output) => Inputs::discover_for_output(paths, options, spool, output),
            None => Inputs::discover(paths, options, spool),
        };
        let inputs = inputs.map_err(|error| self.files.with_place(error))?;
        let is_table = |source: &Source| matches!(source.format, Format::Csv | Format::Tsv);
        let records = &self.records;
        let speaks_of_tables =
            records.delimiter.is_some() || records.no_header || records.no_quotes;
        // An option without effect is a user error, and this is the first moment at which it is known.
        if speaks_of_tables && !inputs.sources.iter().any(is_table) {
            return Err(Failure::Usage(
                "--delimiter, --no-header and --no-quotes apply to CSV and TSV, and no input is such a table: give --format csv if one is"
                    .to_owned(),
            ));
        }
        let is_results = |skip: &&SkippedPart| skip.kind == SkipKind::ResultsFolder;
        // Skips of other kinds are counted with the losses; results of an earlier job are no loss, but the user may have meant them as input.
        for skip in inputs.skips.iter().filter(is_results) {
            console.warn(&format!("{} is left out: it {}", skip.name, skip.reason));
        }
        warn_of_json_texts(&inputs, options, console);
        Ok(inputs)
    }
}

/// Warns that JSON is compared with its braces and names, because it has no known text field.
fn warn_of_json_texts(inputs: &Inputs, options: &InputOptions, console: &Console) {
    let mut texts = inputs
        .sources
        .iter()
        .filter(|source| source.is_json_read_as_text());
    let Some(first) = texts.next() else {
        return;
    };
    let field = match &options.text_field {
        Some(field) => format!("field {field}"),
        None => "field text or html".to_owned(),
    };
    let first = first.name();
    let (files, each) = match texts.count() {
        0 => (format!("{first} is JSON"), "it"),
        1 => (format!("{first} and another file are JSON"), "each"),
        more => (format!("{first} and {more} other files are JSON"), "each"),
    };
    console.warn(&format!(
        "{files} without a {field} in the first 8 KiB: {each} is compared as one text, braces and names included. If there are records, name the field of their text: --text FIELD"
    ));
}

/// Parses a delimiter of one character.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if InputOptions::is_delimiter(*byte) => Ok(*byte),
        _ => Err(format!(
            "{text:?} cannot separate values: use one character such as ';' or '|', or tab"
        )),
    }
}

/// Commands that convert other formats to text.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ConvertArguments {
    /// Convert files with this ending by running a command: '.ps=ps2ascii'
    ///
    /// The command reads the file from standard input, or from the path that replaces {}, and writes its text to standard output.
    /// It runs without a shell, unless it names one: ".doc=sh -c '...'". May be repeated.
    #[arg(
        long = "convert",
        value_name = "ENDING=COMMAND",
        value_parser = converter
    )]
    pub(crate) converters: Vec<Converter>,

    /// Seconds that a --convert command may take per file; then it is killed, and the file counts as not converted
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub(crate) convert_limit: u64,

    /// Seconds that extracting the text of a PDF may take; then the file counts as not converted [default: 5, plus 5 for each MiB,
    /// at most 60]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub(crate) pdf_limit: Option<u64>,
}

impl ConvertArguments {
    pub(crate) fn apply(&self, options: &mut InputOptions) {
        options.converters.clone_from(&self.converters);
        options.convert_limit = Duration::from_secs(self.convert_limit);
        options.pdf_limit = self.pdf_limit.map(Duration::from_secs);
    }
}

/// Arguments that choose files among the inputs.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct FileArguments {
    /// Read more names of inputs from this file, or - for standard input: one a line, or NUL after each; may be repeated
    ///
    /// Names of files, directories and globs, in any number, as INPUT; relative ones are relative to the current directory. A list that contains a
    /// NUL is one of `find -print0` or `git ls-files -z`, whose names may contain line breaks.
    #[arg(long, value_name = "FILE")]
    inputs_from: Vec<OsString>,

    /// The lists, once they were read: standard input can be read only once.
    #[arg(skip)]
    lists: OnceLock<InputLists>,

    /// Leave out files and folders with this name ('*.json', tmp) or, with a /, this path ('crawl/**/old-*'); may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<ExcludePattern>,

    /// Follow symbolic links in a folder, even out of the folder
    #[arg(long)]
    follow_links: bool,

    /// Skip files that are named as inputs but cannot be read, instead of ending with an error
    ///
    /// For lists of files that other programs make: images, archives, files without permission and files that no longer exist
    /// are counted and listed. The exit status is the same as for a folder that holds such files.
    #[arg(long)]
    skip_unreadable: bool,
}

impl FileArguments {
    /// Returns these names of inputs, and then those of the lists.
    pub(crate) fn names(&self, given: &[OsString]) -> Result<Vec<OsString>, Failure> {
        if self.lists.get().is_none() {
            // A second thread would find standard input empty, but arguments belong to one.
            let _ = self.lists.set(InputLists::read(&self.inputs_from)?);
        }
        let listed = self.lists.get().into_iter().flat_map(InputLists::names);
        Ok(given.iter().chain(listed).cloned().collect())
    }

    /// Returns the paths of the lists.
    pub(crate) fn lists(&self) -> &[OsString] {
        &self.inputs_from
    }

    /// Adds to an error about an input the place in the list that names it.
    pub(crate) fn with_place(&self, error: InputError) -> InputError {
        let lists = self.lists.get();
        match lists.and_then(|lists| lists.place(error.name()?)) {
            Some(place) => InputError::Listed {
                place,
                error: Box::new(error),
            },
            None => error,
        }
    }

    pub(crate) fn apply(&self, options: &mut InputOptions) {
        options.exclude.clone_from(&self.exclude);
        options.follow_links = self.follow_links;
        options.skip_unreadable = self.skip_unreadable;
        options.store = store_settings();
    }
}

/// Returns the settings of object stores from the environment.
pub(crate) fn store_settings() -> StoreSettings {
    let known = |name: &str| {
        ["AWS_", "AZURE_", "GOOGLE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    // `vars` panics at the first variable that is not UTF-8, even if it is unrelated.
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        // `object_store` names its settings in lower case.
        known(&name).then(|| (name.to_lowercase(), value))
    });
    StoreSettings(variables.collect())
}

/// Returns the collections of fingerprints, or lists of pairs of them, that arguments name: paths, globs, objects of stores, - for standard input,
/// and u64: before the name of a file of raw numbers.
pub(crate) fn fingerprint_sources<S: AsRef<OsStr>>(
    arguments: &[S],
    spool: &Path,
) -> Result<Vec<FingerprintSource>, Failure> {
    Ok(FingerprintSource::find(
        arguments,
        &store_settings(),
        spool,
    )?)
}

/// Width and scheme of the fingerprints of a file or an index, as far as they are known before it is read.
#[derive(Default)]
pub(crate) struct KnownFingerprints {
    pub(crate) bits: Option<u32>,
    pub(crate) scheme: Option<SchemeId>,
}

impl KnownFingerprints {
    pub(crate) fn of(source: &FingerprintSource) -> Result<Self, Failure> {
        // Opening a pipe would read from it.
        if source.is_standard_input() || !source.path().is_file() {
            return Ok(Self::default());
        }
        if !is_index(source.path()) {
            let file = CodeFile::open(source, false).map_err(BatchError::from)?;
            let (bits, scheme) = (file.bits(), file.scheme());
            return Ok(Self { bits, scheme });
        }
        // The header of an index tells both, so nothing is checked here: a search checks the index when it opens it.
        let bits = width(source.path())?;
        let scheme = match bits {
            32 => open_unchecked::<u32>(source.path(), false)?.scheme(),
            128 => open_unchecked::<u128>(source.path(), false)?.scheme(),
            _ => open_unchecked::<u64>(source.path(), false)?.scheme(),
        };
        Ok(Self {
            bits: Some(bits),
            scheme: scheme.map(SchemeId),
        })
    }
}

/// Parses a converter and checks that its program exists.
fn converter(text: &str) -> Result<Converter, String> {
    let converter: Converter = text
        .parse()
        .map_err(|error: OptionError| error.to_string())?;
    // A parsed converter has at least one word.
    let program = &converter.words()[0];
    let is_there = match program.contains('/') {
        // Whether the program may be executed is checked when it is started; this detects a misspelt name before hours of work.
        true => Path::new(program).is_file(),
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
        }
    };
    match is_there {
        true => Ok(converter),
        false => Err(format!(
            "there is no program `{program}`: install it, or give its path"
        )),
    }
}

/// Lines that recur on many pages.
#[derive(Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct BoilerplateArguments {
    /// Ignore lines that recur on many pages of a site or of the whole collection
    ///
    /// The lines are removed before documents are compared; results keep them. A page's site is the host of its URL.
    #[arg(long, value_name = "WHERE", default_value = "off")]
    boilerplate: BoilerplateScopeOption,

    /// A line is boilerplate if it is on at least this share of the pages, and on at least five
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.1",
        value_parser = share
    )]
    boilerplate_share: f64,

    /// Write the learned lines to FILE, for `client create --boilerplate-lines`
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    boilerplate_lines: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BoilerplateScopeOption {
    Site,
    Collection,
    Off,
}

impl BoilerplateArguments {
    /// Returns true if texts stay unchanged.
    pub(crate) fn is_off(&self) -> bool {
        self.boilerplate == BoilerplateScopeOption::Off
    }

    /// Learns the lines from all inputs, and adds them to the options.
    pub(crate) fn learn(
        &self,
        inputs: &Inputs,
        options: &mut InputOptions,
        limits: &JobLimits,
        folder: &Path,
        console: &Console,
    ) -> Result<(), Failure> {
        let scope = match self.boilerplate {
            BoilerplateScopeOption::Off => return Ok(()),
            BoilerplateScopeOption::Site => BoilerplateScope::Site,
            BoilerplateScopeOption::Collection => BoilerplateScope::Collection,
        };
        // Before the inputs are read to learn from them: a file of lines must not replace one of them.
        check_output(self.boilerplate_lines.as_deref(), files_of(inputs))?;
        let pages = RecordScan::new(inputs)
            .options(options.clone())
            .limits(limits.clone())
            .observer(console);
        let learning = BoilerplateLearner::new(pages, folder)
            .scope(scope)
            .share(self.boilerplate_share);
        let learned = learning.learn().inspect_err(|_| console.clear())?;
        // Not an error: a collection without templates is as good with the option as without.
        if learned.is_empty() {
            let pages = match scope {
                BoilerplateScope::Site => "the pages of a site",
                BoilerplateScope::Collection => "all pages",
            };
            console.warn(&format!(
                "--boilerplate {scope} has no effect: no line is on {} of {pages} and on at least five",
                self.boilerplate_share
            ));
        }
        if let Some(path) = &self.boilerplate_lines {
            write_bytes(path, &learned.to_bytes())?;
        }
        // From here on, readers remove the lines, and the scheme names them.
        options.boilerplate = Some(Arc::new(learned));
        Ok(())
    }
}

/// Which text of HTML counts.
#[derive(Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct HtmlArguments {
    /// Text of HTML: visible, fast, main or quality [default: main]
    ///
    /// visible is all text; fast leaves menus out; main is the main content (reference pages are read as with fast). quality is
    /// better but much slower, and only in builds with `--features full,quality`.
    #[arg(long, value_name = "MODE")]
    html: Option<HtmlMode>,

    /// Count the title of a page as text
    #[arg(long)]
    html_title: bool,

    /// Count the alternative texts of images as text
    #[arg(long)]
    html_alt: bool,

    /// Count the targets of links as text
    #[arg(long)]
    html_links: bool,
}

impl HtmlArguments {
    /// Returns the names of those of these options that are given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let options = [
            (self.html.is_some(), "--html"),
            (self.html_title, "--html-title"),
            (self.html_alt, "--html-alt"),
            (self.html_links, "--html-links"),
        ];
        let given = options.into_iter().filter(|&(is_given, _)| is_given);
        given.map(|(_, name)| name).collect()
    }

    /// Warns of those of these options that had no HTML to act on, once everything was read.
    pub(crate) fn warn_of_unused(&self, has_html: bool, console: &Console) {
        let names = self.given().join(", ");
        if !names.is_empty() && !has_html {
            console.warn(&format!(
                "{names} had no effect: none of the documents read is HTML"
            ));
        }
    }

    pub(crate) fn extraction(&self) -> Extraction {
        Extraction {
            mode: self.html.unwrap_or_default(),
            title: self.html_title,
            alt: self.html_alt,
            links: self.html_links,
        }
    }
}

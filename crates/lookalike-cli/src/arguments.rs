//! Arguments that several subcommands share: what to read, how texts become features, what to use of the machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use lookalike::Terms;
use lookalike::hash::siphash::SipKey;
use lookalike::scheme::{
    Boilerplate, BoilerplateScope, Case, Extraction, FieldWeights, Folding, HtmlMode, Mask,
    Normalization, Nouns, Scheme, Segmentation, Shingle, Sketch, Stemming, StopWords, TokenHash,
    Weight,
};
use lookalike_batch::fingerprints::files::FingerprintSource;
use lookalike_batch::{
    BoilerplateLearner, DistanceFor, JobLimits, JobSettings, KeepRules, LossLimit, LossPolicy,
    Method, PairScope, PairTest, SkippedRow,
};
use lookalike_corpus::{
    Category, Converter, FieldPath, Format, InputOptions, Inputs, OptionError, OrderField,
    OutputFolder, OutputFormat, SkipKind, SkippedPart, Source, StoreSettings,
};

use crate::console::Console;
use crate::failure::Failure;
use crate::spool::Spool;
use crate::{caller, console, machine, size};

/// Sources to read.
#[derive(Args)]
pub(crate) struct InputArguments {
    /// Files, directories or globs to read, or - for standard input
    ///
    /// Formats: JSONL, a JSON array of objects, text, source code, HTML, PDF, WARC, WET, ARC, CSV, TSV, Parquet and Arrow; plain or
    /// compressed (.gz, .zst, .bz2, .xz). Builds with the feature cloud also read s3://BUCKET/PATH, gs://, az:// and https://.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<OsString>,

    /// Format of all inputs [default: by name and content]
    ///
    /// One of jsonl, json (an array of objects), text, html, pdf, warc, wat (metadata as documents), arc, csv, tsv, parquet and arrow.
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    format: Option<Format>,

    /// Separator of the values of CSV and TSV: a character, or tab [default: a tab for TSV, else what the first rows
    /// suggest of , ; | and tab]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = "Input")]
    delimiter: Option<u8>,

    /// CSV and TSV have no line of names: columns are called by their numbers, from 1
    #[arg(long, requires = "text", help_heading = "Input")]
    no_header: bool,

    /// Field or column that holds the id [default: id, else url, else made from file and line]
    ///
    /// Nested fields are a.b. Columns also go by their numbers.
    #[arg(long, value_name = "FIELD", help_heading = "Input")]
    id: Option<FieldPath>,

    /// Field or column that holds the text [default: text, else html, see --html]
    #[arg(long, value_name = "FIELD", help_heading = "Input")]
    text: Option<FieldPath>,

    /// Longer documents are counted, and compared for equal bytes only
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse, help_heading = "Input")]
    max_document: u64,

    #[command(flatten)]
    pub(crate) convert: ConvertArguments,

    #[command(flatten)]
    pub(crate) html: HtmlArguments,

    #[command(flatten)]
    pub(crate) losses: LossArguments,
}

/// Policy for records and files that cannot be read.
#[derive(Args)]
pub(crate) struct LossArguments {
    /// Stop at the first record or file that cannot be read, instead of counting and listing it
    #[arg(long, help_heading = "Input")]
    strict: bool,

    /// Fail if more records and files than this, or more than P% of the records, are unreadable
    ///
    /// Up to that many, the exit status is 0. With more, the command fails and writes no results. By default any number is
    /// tolerated, listed, and told by exit status 3.
    #[arg(
        long,
        value_name = "N|P%",
        conflicts_with = "strict",
        help_heading = "Input"
    )]
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

    /// The end of a command that left `rows` out: a failure if that is more than nothing, and nobody said that it is bearable.
    pub(crate) fn end<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r SkippedRow>,
    ) -> Result<(), Failure> {
        let mut lost = rows.into_iter().filter(|row| row.is_loss());
        match (self.max_skipped, lost.next()) {
            (None, Some(row)) => Err(Failure::Losses {
                count: row.count + lost.map(|row| row.count).sum::<u64>(),
                first: row.first.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// The field that a survivor rule reads.
pub(crate) fn order_field(keep: &KeepRules) -> Result<Option<OrderField>, Failure> {
    let rule = keep.field_rule().map(|rule| rule.to_string().parse());
    Ok(rule.transpose()?)
}

impl InputArguments {
    /// Options for reading sources, with the field that ranks survivors.
    pub(crate) fn options(&self, order_field: Option<OrderField>) -> InputOptions {
        let mut options = InputOptions {
            format: self.format,
            delimiter: self.delimiter,
            no_header: self.no_header,
            id_field: self.id.clone(),
            text_field: self.text.clone(),
            order_field,
            html: self.html.extraction(),
            max_document_bytes: self.max_document,
            ..InputOptions::default()
        };
        self.convert.apply(&mut options);
        options
    }

    /// Says which options had nothing to act on, once everything was read.
    pub(crate) fn warn_of_unused(&self, inputs: &Inputs, quiet: bool) {
        self.html.warn_of_unused(inputs.have_html(), quiet);
    }

    /// Finds what the arguments name. Results of earlier jobs that are met are left out, and told of unless `quiet`.
    pub(crate) fn discover(
        &self,
        options: &InputOptions,
        spool: &Path,
        output: Option<OutputFolder<'_>>,
        quiet: bool,
    ) -> Result<Inputs, Failure> {
        self.discover_paths(&self.inputs, options, spool, output, quiet)
    }

    /// The same of other paths.
    pub(crate) fn discover_paths(
        &self,
        paths: &[OsString],
        options: &InputOptions,
        spool: &Path,
        output: Option<OutputFolder<'_>>,
        quiet: bool,
    ) -> Result<Inputs, Failure> {
        let inputs = match output {
            Some(output) => Inputs::discover_beside(paths, options, spool, output)?,
            None => Inputs::discover(paths, options, spool)?,
        };
        let is_table = |source: &Source| matches!(source.format, Format::Csv | Format::Tsv);
        let speaks_of_tables = self.delimiter.is_some() || self.no_header;
        if speaks_of_tables && !inputs.sources.iter().any(is_table) {
            return Err(Failure::Usage(
                "--delimiter and --no-header are for CSV and TSV, and nothing that is read is such a table: say --format csv \
                 if it is one"
                    .to_owned(),
            ));
        }
        let is_results = |skip: &&SkippedPart| skip.kind == SkipKind::ResultsFolder;
        for skip in inputs
            .skips
            .iter()
            .filter(|skip| is_results(skip) && !quiet)
        {
            console::warning(&format!("{} is left out: it {}", skip.name, skip.reason));
        }
        Ok(inputs)
    }
}

/// One character that may separate values.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err(format!(
            "{text:?} cannot separate values: write one character such as ';' or '|', or tab"
        )),
    }
}

/// Commands that turn other formats into text.
#[derive(Args)]
pub(crate) struct ConvertArguments {
    /// Convert files whose names end so with a command: '.ps=ps2ascii'
    ///
    /// The command gets the file on standard input, or as a path in place of {}; what it writes is the text. It runs without a
    /// shell, unless it is one: ".doc=sh -c '...'". May be repeated.
    #[arg(
        long = "convert",
        value_name = "ENDING=COMMAND",
        value_parser = converter,
        help_heading = "Input"
    )]
    pub(crate) converters: Vec<Converter>,

    /// Seconds that such a command may take for a file; then it is ended, and the file counted as not converted
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Input"
    )]
    pub(crate) convert_limit: u64,

    /// Seconds that the text of a PDF may take; then it is counted as not converted
    /// [default: 5, and 5 more for each MiB, at most 60]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Input"
    )]
    pub(crate) pdf_limit: Option<u64>,

    /// Read what symbolic links in a folder lead to, even out of the folder
    #[arg(long, help_heading = "Input")]
    pub(crate) follow_links: bool,
}

impl ConvertArguments {
    pub(crate) fn apply(&self, options: &mut InputOptions) {
        options.converters.clone_from(&self.converters);
        options.convert_limit = Duration::from_secs(self.convert_limit);
        options.pdf_limit = self.pdf_limit.map(Duration::from_secs);
        options.follow_links = self.follow_links;
        options.store = store_settings();
    }
}

/// Settings of object stores from the environment.
fn store_settings() -> StoreSettings {
    let known = |name: &str| {
        ["AWS_", "AZURE_", "GOOGLE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        known(&name).then(|| (name.to_lowercase(), value))
    });
    StoreSettings(variables.collect())
}

/// The collections of fingerprints, or lists of pairs of them, that arguments name: paths, globs, objects of stores, - for
/// standard input, and u64: before the name of raw numbers.
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

/// A converter whose program is there.
fn converter(text: &str) -> Result<Converter, String> {
    let converter: Converter = text
        .parse()
        .map_err(|error: OptionError| error.to_string())?;
    let program = &converter.words()[0];
    let is_there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
        }
    };
    match is_there || cfg!(not(unix)) {
        true => Ok(converter),
        false => Err(format!(
            "there is no program `{program}`: install it, or name it with its path"
        )),
    }
}

/// Lines that recur on many pages.
#[derive(Args)]
pub(crate) struct BoilerplateArguments {
    /// Ignore lines that recur on many pages of a site or of the collection, or none (off)
    ///
    /// The lines are taken out before documents are compared; results keep them. A page's site is the host of its URL.
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "off",
        help_heading = "Features"
    )]
    boilerplate: BoilerplateScopeOption,

    /// A line is boilerplate on this share of the pages or more, and on five at least
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.1",
        value_parser = share,
        help_heading = "Features"
    )]
    boilerplate_share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BoilerplateScopeOption {
    Site,
    Collection,
    Off,
}

impl BoilerplateArguments {
    /// True if texts stay as they are.
    pub(crate) fn is_off(&self) -> bool {
        self.boilerplate == BoilerplateScopeOption::Off
    }

    /// Learns the lines from everything that is to be read, and puts them into the options.
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
        let learning = BoilerplateLearner {
            inputs,
            options,
            scope,
            share: self.boilerplate_share,
            limits,
            folder,
            observer: console,
        };
        let learned = learning.learn().inspect_err(|_| console.clear())?;
        if learned.is_empty() {
            let pages = match scope {
                BoilerplateScope::Site => "the pages of a site",
                BoilerplateScope::Collection => "all pages",
            };
            console.warn(&format!(
                "--boilerplate {scope} does nothing: no line stands on {} of {pages}, and on five at least",
                self.boilerplate_share
            ));
        }
        options.boilerplate = Some(Arc::new(learned));
        Ok(())
    }
}

/// Text of HTML that counts.
#[derive(Args)]
pub(crate) struct HtmlArguments {
    /// Text of HTML: visible, fast, main or quality [default: main]
    ///
    /// visible is all text, fast leaves menus out, main is the main content (reference pages are read as with fast). quality is better
    /// and much slower, and only in builds with `--features quality`.
    #[arg(long, value_name = "MODE", help_heading = "Features")]
    html: Option<HtmlMode>,

    /// The title of a page counts as text
    #[arg(long, help_heading = "Features")]
    html_title: bool,

    /// The alternative texts of images count as text
    #[arg(long, help_heading = "Features")]
    html_alt: bool,

    /// The targets of links count as text
    #[arg(long, help_heading = "Features")]
    html_links: bool,
}

impl HtmlArguments {
    /// Says which of these options had no HTML to act on, once everything was read.
    pub(crate) fn warn_of_unused(&self, has_html: bool, quiet: bool) {
        let given = [
            (self.html.is_some(), "--html"),
            (self.html_title, "--html-title"),
            (self.html_alt, "--html-alt"),
            (self.html_links, "--html-links"),
        ];
        let given = given.into_iter().filter(|&(is_given, _)| is_given);
        let names: Vec<&str> = given.map(|(_, name)| name).collect();
        if !names.is_empty() && !has_html && !quiet {
            console::warning(&format!(
                "{} did nothing: none of the documents that were read is HTML",
                names.join(", ")
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

/// Definition of words and characters.
#[derive(Args)]
pub(crate) struct WordArguments {
    /// Definition of a word: unicode (by the rules of Unicode), word-chars (runs of letters, digits and _, as \w+), or
    /// languages (as unicode, but Chinese, Japanese, Thai, Lao, Khmer and Burmese by dictionaries)
    #[arg(
        long,
        value_name = "RULE",
        default_value = "unicode",
        help_heading = "Features"
    )]
    segment: Segmentation,

    /// Unicode normalisation: nfc or nfkc, both without invisible characters (soft hyphens, zero-width spaces, ...), or
    /// none: the text as it is
    #[arg(
        long,
        value_name = "FORM",
        default_value = "nfc",
        help_heading = "Features"
    )]
    normalize: Normalization,

    /// lower or keep
    #[arg(
        long,
        value_name = "CASE",
        default_value = "lower",
        help_heading = "Features"
    )]
    case: Case,

    /// Make alike before comparing: numbers, dates, numbers,dates, or none
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "none",
        help_heading = "Features"
    )]
    mask: Mask,

    /// Count variants of a character as one: accents (cafe and café), punctuation (quotation marks and dashes), arabic
    /// (with and without tatweel and vowel signs), width (full and half width), with commas between them, or none
    #[arg(
        long = "fold",
        value_name = "LIST",
        default_value = "none",
        help_heading = "Features"
    )]
    folding: Folding,
}

impl WordArguments {
    /// A scheme with these words and characters, and defaults for everything else.
    pub(crate) fn scheme(&self) -> Scheme {
        Scheme {
            normalization: self.normalize,
            case: self.case,
            segmentation: self.segment,
            mask: self.mask,
            folding: self.folding,
            ..Scheme::default()
        }
    }
}

/// Steps from texts to features.
#[derive(Args)]
pub(crate) struct SchemeArguments {
    /// Features to compare: words:N, chars:N, stops:N or phrases:N
    ///
    /// Runs of N words (words:5), of several sizes together (words:3+5), of characters (chars:9), of English function words alone
    /// (stops:4), or words and phrases that are in at least N documents (phrases:5, needs --terms).
    #[arg(
        long,
        value_name = "KIND:N",
        default_value = "words:5",
        help_heading = "Features"
    )]
    shingle: Shingle,

    #[command(flatten)]
    words: WordArguments,

    /// Leave stop words out: of languages (en or de,en), of the one each text is in (auto), or none
    #[arg(
        long,
        value_name = "LANGUAGES",
        default_value = "none",
        help_heading = "Features"
    )]
    stop: StopWords,

    /// Reduce words to their stems: of a language (en), of the one each text is in (auto), or none
    #[arg(
        long,
        value_name = "LANGUAGE",
        default_value = "none",
        help_heading = "Features"
    )]
    stem: Stemming,

    /// Weight tf-length-noun: nouns weigh more, by English tags of words in Latin letters and Chinese tags of Han (tagged),
    /// or not (none)
    #[arg(
        long,
        value_name = "HOW",
        default_value = "none",
        help_heading = "Features"
    )]
    nouns: Nouns,

    /// Seed of all hashes: sketches of different seeds cannot be compared
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        help_heading = "Features"
    )]
    seed: u64,

    /// Hash of words: xxh3, lookup3 (Jenkins), or siphash under a secret key, for texts that somebody crafts
    #[arg(
        long,
        value_name = "HASH",
        default_value = "xxh3",
        help_heading = "Features"
    )]
    hash: HashName,

    /// siphash: file that holds the key, 32 hexadecimal digits; sketches of different keys cannot be compared
    #[arg(long, value_name = "FILE", help_heading = "Features")]
    hash_key: Option<PathBuf>,

    /// Additional sources of features, with their weights relative to a word of the text: anchors:3~5 (texts of links to
    /// the document, 5 words around them fading), in-links:1, out-links:1, with commas between them. Read from the fields
    /// anchors, in_links and out_links
    #[arg(
        long,
        value_name = "LIST",
        default_value = "none",
        help_heading = "Features"
    )]
    pub(crate) fields: FieldWeights,

    /// Table that `lookalike terms` made of the collection, for the weights by rarity and for i-match
    #[arg(long, value_name = "FILE", help_heading = "Features")]
    terms: Option<PathBuf>,
}

/// The token hashes by name; what follows from the key comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HashName {
    Xxh3,
    Lookup3,
    Siphash,
}

impl SchemeArguments {
    /// The scheme with a sketch for texts that are read so, and the table of terms that it names, if it needs one.
    pub(crate) fn scheme(
        &self,
        weight: Weight,
        sketch: Sketch,
        read: &InputOptions,
    ) -> Result<(Scheme, Option<Arc<Terms>>), Failure> {
        let key = self.key()?;
        let scheme = self.without_table(weight, sketch, read, key)?;
        if !scheme.needs_terms() {
            self.refuse_terms("a table of terms is for weights by rarity, phrases and i-match")?;
            return Ok((scheme, None));
        }
        let terms = Arc::new(self.table(&scheme, key)?);
        let scheme = Scheme {
            terms: Some(terms.id()),
            ..scheme
        };
        Ok((scheme, Some(terms)))
    }

    /// The scheme without the table of terms that it may need.
    fn without_table(
        &self,
        weight: Weight,
        sketch: Sketch,
        read: &InputOptions,
        key: Option<SipKey>,
    ) -> Result<Scheme, Failure> {
        let hash = match (self.hash, key) {
            (HashName::Xxh3 | HashName::Lookup3, Some(_)) => {
                return Err(Failure::Usage(
                    "--hash-key would do nothing here: it is the key of --hash siphash".to_owned(),
                ));
            }
            (HashName::Xxh3, _) => TokenHash::Xxh3,
            (HashName::Lookup3, _) => TokenHash::Lookup3,
            (HashName::Siphash, Some(key)) => TokenHash::SipHash(key),
            (HashName::Siphash, None) => {
                return Err(Failure::Usage(
                    "--hash siphash needs a secret key: `openssl rand -hex 16 > FILE`, then --hash-key FILE"
                        .to_owned(),
                ));
            }
        };
        let by_length_and_noun = matches!(weight, Weight::TfLengthNoun(_));
        if by_length_and_noun && self.shingle != Shingle::words(1).unwrap_or_default() {
            return Err(Failure::Usage(format!(
                "the weight tf-length-noun is one of single words, not of {}: add --shingle words:1",
                self.shingle
            )));
        }
        self.check_words(weight)?;
        Ok(Scheme {
            shingle: self.shingle,
            weight,
            hash,
            seed: self.seed,
            sketch,
            html: read.html,
            fields: self.fields,
            stop: self.stop,
            stem: self.stem,
            nouns: self.nouns,
            boilerplate: read
                .boilerplate
                .as_ref()
                .map_or(Boilerplate::Kept, |lines| lines.scheme()),
            terms: None,
            ..self.words.scheme()
        })
    }

    /// The scheme of an evaluation, which makes the table of terms that it needs from its own
    /// documents.
    pub(crate) fn measured(
        &self,
        weight: Weight,
        sketch: Sketch,
        read: &InputOptions,
    ) -> Result<Scheme, Failure> {
        self.refuse_terms("an evaluation makes the table that it needs of its own documents")?;
        self.without_table(weight, sketch, read, self.key()?)
    }

    /// Refuses a table of terms where none is looked at.
    fn refuse_terms(&self, why: &str) -> Result<(), Failure> {
        match self.terms {
            Some(_) => Err(Failure::Usage(format!(
                "--terms would do nothing here: {why}; leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// The scheme whose features a table of terms counts.
    pub(crate) fn counted(&self, read: &InputOptions) -> Result<Scheme, Failure> {
        self.refuse_terms("one is made")?;
        let scheme = self.without_table(Weight::Set, Sketch::None, read, self.key()?)?;
        Ok(scheme.counted())
    }

    /// Refuses choices about words that would have no effect.
    fn check_words(&self, weight: Weight) -> Result<(), Failure> {
        let filtered = (self.stop, self.stem) != (StopWords::NONE, Stemming::NONE);
        if filtered && matches!(self.shingle, Shingle::Chars(_)) {
            return Err(Failure::Usage(format!(
                "stop words and stems are those of words, and {} is made of characters: leave --stop and --stem out, or \
                 use --shingle words:N",
                self.shingle
            )));
        }
        if self.nouns != Nouns::NONE && !matches!(weight, Weight::TfLengthNoun(_)) {
            return Err(Failure::Usage(
                "--nouns belongs to --weight tf-length-noun: other weights know no nouns"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn key(&self) -> Result<Option<SipKey>, Failure> {
        let Some(path) = &self.hash_key else {
            return Ok(None);
        };
        let shown = path.display();
        let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("{shown}: {error}"));
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        text.trim()
            .parse()
            .map(Some)
            .map_err(|error| failed(&error))
    }

    /// The table of terms, which must count the features of the scheme.
    fn table(&self, scheme: &Scheme, key: Option<SipKey>) -> Result<Terms, Failure> {
        let needs = if scheme.shingle.needs_terms() {
            format!("--shingle {}", scheme.shingle)
        } else if scheme.weight.needs_terms() {
            format!("--weight {}", scheme.weight)
        } else {
            format!("the sketch {}", scheme.sketch)
        };
        let path = self.terms.as_ref().ok_or_else(|| {
            Failure::Usage(format!(
                "{needs} needs a table of terms: make one with `lookalike terms INPUT -o FILE`, then --terms FILE"
            ))
        })?;
        let failed = |error: String| Failure::Failed(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let terms = Terms::from_bytes(&bytes, key).map_err(|error| failed(error.to_string()))?;
        let named = Scheme {
            terms: Some(terms.id()),
            ..*scheme
        };
        terms
            .ensure_fits(&named)
            .map_err(|error| failed(error.to_string()))?;
        Ok(terms)
    }
}

/// Method of finding candidates, and bounds of what counts as near.
#[derive(Args)]
pub(crate) struct MethodArguments {
    /// Method that finds candidates: allpairs, minhash, simhash, copies, ...
    ///
    /// allpairs finds every pair. copies finds exact copies only. oph, b-bit, minhash, supershingle, simhash, henzinger, mod-p, winnow,
    /// i-match and buckets may miss pairs; whatever they propose is verified.
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "allpairs",
        help_heading = "Method"
    )]
    pub(crate) method: Method,

    /// Least resemblance of near-duplicates, above 0 and at most 1
    ///
    /// With the methods of --distance and --agree it may be 0: then every candidate counts, whatever its resemblance.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.8",
        value_parser = share,
        help_heading = "Method"
    )]
    pub(crate) threshold: f64,

    /// simhash, henzinger: most bits in which fingerprints of candidates differ
    ///
    /// From 0 to a quarter of the bits of a fingerprint.
    #[arg(
        long,
        value_name = "BITS",
        default_value_t = 3,
        help_heading = "Method"
    )]
    pub(crate) distance: u32,

    /// henzinger: for which candidates --distance counts: all, or pairs of one site, the host of the URL, where pages share
    /// a template (site); super-shingles alone then decide about pairs of two sites
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "all",
        help_heading = "Method"
    )]
    pub(crate) distance_for: DistanceFor,

    /// simhash: bits of a fingerprint, 32, 64 or 128
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = ["32", "64", "128"], help_heading = "Method")]
    bits: String,

    /// supershingle, henzinger, buckets, mod-p, winnow, i-match: how many hashes candidates share [default: 2 of the
    /// first three, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255), help_heading = "Method")]
    pub(crate) agree: Option<u32>,

    /// mod-p: keep one shingle in so many; winnow: shingles in a window; i-match: lexicons; buckets: buckets
    /// [default: 16, 16, 6, 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..), help_heading = "Method")]
    pub(crate) size: Option<u8>,

    /// simhash: how features count: set (once), tf, log-tf, idf, tf-idf, log-tf-idf, tf-length-noun, or
    /// tf-length-noun:N, with λ = N in the place of one by the length of the text
    #[arg(
        long,
        value_name = "WEIGHT",
        default_value = "set",
        help_heading = "Method"
    )]
    pub(crate) weight: Weight,

    /// minhash, b-bit: number of hash functions; oph: number of bins
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Method")]
    pub(crate) functions: u16,

    /// minhash, b-bit, oph: share of the pairs at the threshold that must be found
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.999",
        value_parser = share,
        help_heading = "Method"
    )]
    pub(crate) recall: f64,
}

/// Tests that a pair must pass beside the least resemblance.
#[derive(Args)]
pub(crate) struct TestArguments {
    /// A further test that a pair must pass, on features of its own: resemblance, containment (shared features over the
    /// smaller set) or coverage (over the larger), of which features, and how much at least; such as
    /// coverage:stops:5:0.4. May be given several times
    #[arg(
        long = "and",
        value_name = "MEASURE:FEATURES:LEAST",
        help_heading = "Method"
    )]
    pub(crate) tests: Vec<PairTest>,
}

impl MethodArguments {
    /// The sketch that the method needs.
    pub(crate) fn sketch(&self) -> Sketch {
        let functions = self.functions;
        match (self.method.default_sketch(), self.size) {
            (Sketch::Simhash, _) => match &*self.bits {
                "32" => Sketch::Simhash32,
                "128" => Sketch::Simhash128,
                _ => Sketch::Simhash,
            },
            (Sketch::MinHash { .. }, _) => Sketch::MinHash { functions },
            (Sketch::OnePermutation { .. }, _) => Sketch::OnePermutation { bins: functions },
            (Sketch::BBit { bits, .. }, _) => Sketch::BBit { functions, bits },
            (Sketch::ModP { .. }, Some(size)) => Sketch::ModP {
                modulus: size.into(),
            },
            (Sketch::Winnowing { .. }, Some(size)) => Sketch::Winnowing {
                window: size.into(),
            },
            (Sketch::IMatch { .. }, Some(lexicons)) => Sketch::IMatch { lexicons },
            (Sketch::Buckets { .. }, Some(buckets)) => Sketch::Buckets { buckets },
            (sketch, _) => sketch,
        }
    }

    /// The settings of a job with this method, everything else at its default.
    pub(crate) fn settings(
        &self,
        scheme: Scheme,
        terms: Option<Arc<Terms>>,
        tests: &TestArguments,
    ) -> JobSettings {
        JobSettings {
            scheme,
            terms,
            agree: self.agree,
            method: self.method,
            threshold: self.threshold,
            distance: self.distance,
            distance_for: self.distance_for,
            recall: self.recall,
            tests: tests.tests.clone(),
            ..JobSettings::default()
        }
    }

    /// Field that the method needs of each record besides its text.
    pub(crate) fn category(&self) -> Option<Category> {
        (self.distance_for == DistanceFor::Site).then_some(Category::Site)
    }

    /// Refuses numbers that mean nothing.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.recall > 0.0 && self.recall < 1.0 {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "recall {} is not between 0 and 1: use --method allpairs to find every pair",
            self.recall
        )))
    }
}

/// Pairs that count.
#[derive(Args)]
pub(crate) struct ScopeArguments {
    /// Compare only documents with the same value in a field, or of the same site
    ///
    /// The site is the host of the URL. Equal texts of two categories are no pair. Records without a value form a category of their own.
    #[arg(
        long,
        value_name = "FIELD|site",
        help_heading = "Method",
        conflicts_with = "across"
    )]
    within: Option<Category>,

    /// Compare only documents with different values in a field, or of different sites
    ///
    /// Documents of one category are never compared with each other, even if they are equal.
    #[arg(long, value_name = "FIELD|site", help_heading = "Method")]
    across: Option<Category>,

    /// Second test: least share of the longer text's bytes that the shorter one has, above 0 and at most 1
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Method")]
    pub(crate) lengths: Option<f64>,
}

impl ScopeArguments {
    pub(crate) fn scope(&self) -> PairScope {
        match (&self.within, &self.across) {
            (Some(_), _) => PairScope::Within,
            (_, Some(_)) => PairScope::Across,
            _ => PairScope::Everything,
        }
    }

    /// The category that is read of each record: of the scope, or what a method wants to know.
    pub(crate) fn category(&self, method: &MethodArguments) -> Option<Category> {
        let scope = self.within.as_ref().or(self.across.as_ref()).cloned();
        scope.or(method.category())
    }

    /// Says how many records have no category.
    pub(crate) fn warn(&self, without: u64, method: &MethodArguments) {
        let meaning = match self.scope() {
            PairScope::Everything => "the distance counts for all their pairs",
            _ => "they form a category of their own",
        };
        if let (Some(category), 1..) = (self.category(method), without) {
            console::warning(&format!(
                "{} records have no {category}: {meaning}",
                console::grouped(without)
            ));
        }
    }
}

/// A share as `0.8` or `80%`; what it may be is checked where its meaning is known.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    share.map_err(|_| format!("{text:?} is not a share: write for example 0.8 or 80%"))
}

/// Limits on the use of the machine, and what to print.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// Worker threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Running")]
    threads: Option<usize>,

    /// Memory of the whole job [default: half of the machine's]
    ///
    /// The resident size of the process stays within it; what does not fit goes into temporary files.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Running")]
    memory: Option<u64>,

    /// Directory for temporary files [default: the output directory, else the system's]
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub(crate) tmp: Option<PathBuf>,

    /// Print the summary as JSON
    ///
    /// One object, on standard output, or on standard error where standard output has the results.
    #[arg(long, help_heading = "Running")]
    pub(crate) json: bool,

    /// Print no progress and no summary
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,
}

impl RunArguments {
    /// A folder for temporary files in `--tmp`, else in `default`; it vanishes with the job, interrupted or not. Those of
    /// jobs that were killed are removed.
    pub(crate) fn spool(&self, default: PathBuf) -> Result<Spool, Failure> {
        let parent = self.tmp.clone().unwrap_or(default);
        Spool::new(&parent).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at path").next().unwrap_or_default();
            Failure::Failed(format!(
                "{}: {reason}: temporary files go there; name another directory with --tmp",
                parent.display()
            ))
        })
    }

    pub(crate) fn limits(&self) -> JobLimits {
        JobLimits {
            threads: self.threads.unwrap_or_else(machine::default_threads),
            memory: self.memory.unwrap_or_else(machine::default_memory),
        }
    }
}

/// 1 to 1024 threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| format!("{text:?} is not a number of threads from 1 to 1024"))
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: OsString) -> String {
    let text = word.to_string_lossy().into_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The command line as it was given, quoted where a shell would need it.
pub(crate) fn command_line() -> String {
    let words = caller::words().into_iter().map(quoted);
    std::iter::once("lookalike".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The format of results.
pub(crate) fn output_format(text: &str) -> Result<OutputFormat, String> {
    match text {
        "jsonl" => Ok(OutputFormat::JsonLines),
        "parquet" if cfg!(feature = "parquet") => Ok(OutputFormat::Parquet),
        "parquet" => {
            Err("this build has no Parquet: build it with the feature `parquet`".to_owned())
        }
        _ => Err(format!("unknown format {text:?}: use jsonl or parquet")),
    }
}

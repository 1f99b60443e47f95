//! `lookalike evaluate label`: a person labels pairs in the terminal.
//!
//! Every label is a line of the file, synced to disk before the next pair is shown, so that the person can stop at any point and continue later. Pairs
//! and questions go to standard error, the summary to standard output.

mod label_file;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};

use ::console::{Key, Term};
use lookalike_batch::DocumentUse;
use lookalike_batch::report::diff;
use lookalike_eval::SampledPair;
use serde::Serialize;

use super::labels::read_labels;
use super::{EvaluationInput, print};
use crate::arguments::{InputArguments, RunArguments, output_path};
use crate::console::{self, ColorOption};
use crate::failure::Failure;
use crate::output_file::check_output;
use label_file::{LabelCounts, LabelFile};

#[derive(clap::Args)]
#[command(after_help = "\
Keys: t true (near-duplicates), f false, u unknown (nobody could tell), b back to the
previous pair, d full difference, q quit. Each label is on disk before the next pair is
shown; the same command continues where you stopped. Without a terminal the answers are read
from standard input, one per line.

Pairs come in random order and without their scores, so that the method does not bias you.

Example:
  lookalike evaluate sample news.jsonl -o pairs.jsonl
  lookalike evaluate label news.jsonl --pairs pairs.jsonl -o labels.jsonl
  lookalike evaluate labels news.jsonl --labels labels.jsonl --sketch simhash:64")]
pub(crate) struct LabelArguments {
    #[command(flatten)]
    input: InputArguments,

    /// Pairs drawn by `evaluate sample`
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,

    /// File of labels; created, or continued if it exists
    #[arg(long, short, value_name = "FILE", value_parser = output_path())]
    output: PathBuf,

    /// Number of lines of a difference to show; d shows the rest
    #[arg(long, value_name = "N", default_value_t = 40)]
    lines: usize,

    /// Coloured output: auto, always or never
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Running"
    )]
    color: ColorOption,

    #[command(flatten)]
    run: RunArguments,
}

/// A person's answer to a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelCommand {
    Label(Option<bool>),
    Back,
    Whole,
    Quit,
    Nothing,
}

impl LabelCommand {
    fn of_key(key: &Key) -> Self {
        match key {
            Key::Char(c) => Self::of_char(c.to_ascii_lowercase()),
            Key::Backspace | Key::ArrowLeft => Self::Back,
            Key::Escape | Key::CtrlC => Self::Quit,
            _ => Self::Nothing,
        }
    }

    fn of_char(c: char) -> Self {
        match c {
            't' => Self::Label(Some(true)),
            'f' => Self::Label(Some(false)),
            'u' => Self::Label(None),
            'b' => Self::Back,
            'd' => Self::Whole,
            'q' => Self::Quit,
            _ => Self::Nothing,
        }
    }

    fn of_line(line: &str) -> Self {
        let word = line.trim().to_lowercase();
        let words = ["true", "false", "unknown", "back", "diff", "quit"];
        match word.chars().next() {
            // Only a letter or the whole word: a slip must not become a label.
            Some(c) if word.len() == 1 || words.contains(&&*word) => Self::of_char(c),
            _ => Self::Nothing,
        }
    }
}

/// Source of answers: keys on a terminal, or lines of standard input.
enum LabelPrompt {
    Keys(Term),
    Lines,
}

impl LabelPrompt {
    fn new() -> Self {
        // Keys are read from the one, and questions are shown on the other.
        match stdin().is_terminal() && stderr().is_terminal() {
            true => Self::Keys(Term::stderr()),
            false => Self::Lines,
        }
    }

    /// Returns the next answer. The end of the input means to stop.
    fn next(&self) -> Result<LabelCommand, Failure> {
        match self {
            Self::Keys(term) => match term.read_key() {
                Ok(key) => Ok(LabelCommand::of_key(&key)),
                // Ctrl-C while a key is read: all labels so far are on disk.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    Ok(LabelCommand::Quit)
                }
                Err(error) => Err(error.into()),
            },
            Self::Lines => {
                let mut line = String::new();
                match stdin().lock().read_line(&mut line)? {
                    0 => Ok(LabelCommand::Quit),
                    _ => Ok(LabelCommand::of_line(&line)),
                }
            }
        }
    }
}

/// Reads the pairs of a sample, in order.
fn read_pairs(path: &Path, run: &RunArguments) -> Result<Vec<SampledPair>, Failure> {
    let failed = |reason: String| Failure::Failed(format!("{}: {reason}", path.display()));
    let text = read_labels(path, run)?;
    let pair = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            failed(format!(
                "line {}: {error}: give a file written by `lookalike evaluate sample`",
                at + 1
            ))
        })
    };
    let pairs: Vec<SampledPair> = text
        .lines()
        .enumerate()
        .map(pair)
        .collect::<Result<_, _>>()?;
    match pairs.is_empty() {
        true => Err(failed(
            "holds no pairs: draw some with `evaluate sample`".to_owned(),
        )),
        false => Ok(pairs),
    }
}

/// Returns the texts of the documents that pairs name.
fn texts(
    arguments: &LabelArguments,
    pairs: &[SampledPair],
) -> Result<HashMap<String, String>, Failure> {
    let wanted: HashSet<&str> = pairs.iter().flat_map(|pair| [&*pair.a, &*pair.b]).collect();
    let mut texts = HashMap::new();
    let options = arguments.input.options(None);
    let console = arguments.run.console();
    let reading = EvaluationInput::new(&arguments.input, &arguments.run, options, &console)?;
    reading.ensure_documents_fit(DocumentUse::Text)?;
    reading.visit(|record| {
        if wanted.contains(&*record.id) {
            texts
                .entry(record.id.clone().into_owned())
                .or_insert_with(|| record.text.clone().into_owned());
        }
    })?;
    let missing: Vec<&SampledPair> = pairs
        .iter()
        .filter(|pair| [&pair.a, &pair.b].iter().any(|id| !texts.contains_key(*id)))
        .collect();
    match missing.first() {
        None => Ok(texts),
        Some(first) => {
            let id = match texts.contains_key(&first.a) {
                true => &first.b,
                false => &first.a,
            };
            Err(Failure::Failed(format!(
                "{}: no document has the id {id:?} ({} of {} pairs name unknown ids): give the documents that the pairs were drawn \
                 from, or name the id field with --id",
                arguments.pairs.display(),
                missing.len(),
                pairs.len()
            )))
        }
    }
}

/// The summary that is printed at the end.
#[derive(Serialize)]
struct LabelResult {
    pairs: u64,
    #[serde(flatten)]
    counts: LabelCounts,
    left: u64,
}

pub(crate) fn run(arguments: &LabelArguments) -> Result<(), Failure> {
    let names = arguments.input.names()?;
    let read = names.iter().map(Path::new);
    check_output(
        Some(&arguments.output),
        read.chain([arguments.pairs.as_path()]),
    )?;
    let pairs = read_pairs(&arguments.pairs, &arguments.run)?;
    let texts = texts(arguments, &pairs)?;
    // Opened after everything that may fail, because it creates the file.
    let mut labels = LabelFile::open(&arguments.output, &pairs)?;
    label_pairs(arguments, &pairs, &texts, &mut labels)?;
    let counts = labels.counts();
    let answer = LabelResult {
        pairs: pairs.len() as u64,
        left: pairs.len() as u64 - counts.all(),
        counts,
    };
    match (arguments.run.json, arguments.run.quiet) {
        (true, _) => Ok(console::json(&answer)?),
        (_, true) => Ok(()),
        _ => print(&describe(&answer, &arguments.output)),
    }
}

fn describe(answer: &LabelResult, path: &Path) -> String {
    let LabelCounts {
        trues,
        falses,
        unknown,
    } = answer.counts;
    let mut text = format!(
        "{} of {} pairs labelled: {trues} true, {falses} false, {unknown} unknown; in {}\n",
        answer.counts.all(),
        answer.pairs,
        path.display()
    );
    if answer.left > 0 {
        let _ = writeln!(
            text,
            "{} left: run the same command to continue",
            answer.left
        );
    }
    text
}

/// Asks about every pair without a label, until there is none or the person stops.
fn label_pairs(
    arguments: &LabelArguments,
    pairs: &[SampledPair],
    texts: &HashMap<String, String>,
    labels: &mut LabelFile,
) -> Result<(), Failure> {
    let answers = LabelPrompt::new();
    let color = arguments.color.wanted(stderr().is_terminal());
    // Searched from the start each time: after `back`, the first pair without a label is the one that was taken back.
    while let Some(at) = pairs.iter().position(|pair| !labels.has(pair)) {
        let pair = &pairs[at];
        let difference = diff::unified_terminal(&texts[&pair.a], &texts[&pair.b], color);
        show(&heading(pair, at, pairs.len(), labels.counts()))?;
        show(&first_lines(&difference, arguments.lines))?;
        loop {
            show(QUESTION)?;
            let said = answers.next()?;
            match said {
                LabelCommand::Label(label) => {
                    labels.append(pair, label)?;
                    show(&format!("{}\n", name_of(label)))?;
                    break;
                }
                LabelCommand::Back => match labels.undo_last()? {
                    true => {
                        show("back\n")?;
                        break;
                    }
                    false => show("there is no label to take back\n")?,
                },
                LabelCommand::Whole => show(&format!("\n{difference}"))?,
                LabelCommand::Quit => return show("\n"),
                LabelCommand::Nothing => show("\npress t, f, u, b, d or q\n")?,
            }
        }
    }
    Ok(())
}

const QUESTION: &str =
    "near-duplicates? [t]rue [f]alse [u]nknown [b]ack [d]ifference in full [q]uit > ";

fn name_of(label: Option<bool>) -> &'static str {
    match label {
        Some(true) => "true",
        Some(false) => "false",
        None => "unknown",
    }
}

fn show(text: &str) -> Result<(), Failure> {
    Ok(stderr().lock().write_all(text.as_bytes())?)
}

fn heading(pair: &SampledPair, at: usize, of: usize, counts: LabelCounts) -> String {
    let visible = diff::visible;
    format!(
        "\n--- pair {} of {of}, {} labelled\n- {}\n+ {}\n\n",
        at + 1,
        counts.all(),
        visible(&pair.a),
        visible(&pair.b)
    )
}

/// Returns the first lines of a difference, with a note on what is left out.
fn first_lines(difference: &str, most: usize) -> String {
    if difference.is_empty() {
        return "  (the texts are equal, white space aside)\n".to_owned();
    }
    let all = difference.lines().count();
    if all <= most {
        return difference.to_owned();
    }
    let mut text: String = difference.split_inclusive('\n').take(most).collect();
    let _ = writeln!(text, "  ... {} more lines, d shows them ...", all - most);
    text
}

//! `lookalike evaluate sweep`: many settings at once, curves and advice.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use lookalike::Scheme;
use lookalike::scheme::{Shingle, Sketch, Weight};
use lookalike_corpus::{AtomicFile, Compression};
use lookalike_eval::label::{Labels, judged};
use lookalike_eval::page::{self, PageHead};
use lookalike_eval::sweep::Sensitivity;
use lookalike_eval::{
    Advice, Collection, Measure, Setting, Sweep, Truth, TwoTests, Wish, sweep, two_tests,
};
use serde::Serialize;

use super::labels::read_labels;
use super::{Reading, print, shown};
use crate::arguments::{
    BoilerplateArguments, InputArguments, RunArguments, SchemeArguments, command_line,
};
use crate::console;
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Without --labels the truth is the exact resemblance of the features that --shingle and the other Features options
name, at --threshold. Every combination of --shingles, --weights and --sketches is measured; weights only matter
to simhash. Tables of terms are made of the input itself.

Examples:
  lookalike evaluate sweep news.jsonl --threshold 0.8 --page sweep.html
  lookalike evaluate sweep docs.jsonl --labels pairs.jsonl --precision 0.9 --recall 0.9")]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: InputArguments,

    /// File of labelled pairs, as for `evaluate labels`
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,

    /// Grades from here on are near-duplicates
    #[arg(long, value_name = "GRADE", default_value_t = 1.0)]
    positive: f64,

    /// Without labels: least resemblance of near-duplicates
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    threshold: f64,

    /// Features to try, with commas between them
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "words:1,words:2,words:3,words:5,words:3+5,chars:9"
    )]
    shingles: Vec<Shingle>,

    /// Weights to try in simhash, with commas between them
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "set,tf,log-tf,idf"
    )]
    weights: Vec<Weight>,

    /// Sketches to try, with commas between them; none is the exact resemblance of the features
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "simhash:64,super-shingle:6x14,minhash:128,none"
    )]
    sketches: Vec<Sketch>,

    /// With --labels: measures of the features themselves, with commas between them: resemblance, containment (shared
    /// features over the smaller set) and coverage (over the larger)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "resemblance"
    )]
    measures: Vec<Measure>,

    /// With --labels: also find the two settings that agree best with the labels when both must pass
    #[arg(long, requires = "labels")]
    two_tests: bool,

    /// Second test for every setting: least share of the longer text's bytes that the shorter one has, above 0 and at
    /// most 1
    #[arg(long, value_name = "SHARE", value_parser = super::share)]
    lengths: Option<f64>,

    /// Precision that you want at least
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    precision: f64,

    /// Recall that you want at least
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    recall: f64,

    /// Write one self-contained page with plots
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    run: RunArguments,
}

impl Arguments {
    /// All settings: every weight for simhash, the set for the other sketches.
    fn settings(&self, base: &Scheme) -> Vec<Setting> {
        let weights = |sketch: Sketch| match sketch.fingerprint_bits() {
            0 => &[Weight::Set][..],
            _ => &self.weights,
        };
        let fits = |shingle: Shingle, weight: Weight| {
            weight != Weight::Yu || Some(shingle) == Shingle::words(1)
        };
        let mut all = Vec::new();
        for &sketch in &self.sketches {
            for &shingle in &self.shingles {
                let wanted = weights(sketch)
                    .iter()
                    .filter(|&&weight| fits(shingle, weight));
                let schemes = wanted.map(|&weight| Scheme {
                    shingle,
                    weight,
                    sketch,
                    ..*base
                });
                let measures = match sketch {
                    Sketch::None => &self.measures[..],
                    _ => &[Measure::Resemblance],
                };
                for scheme in schemes {
                    all.extend(measures.iter().map(|&measure| Setting {
                        scheme,
                        measure,
                        lengths: self.lengths,
                    }));
                }
            }
        }
        all
    }

    fn truth(&self, collection: &Collection, base: &Scheme) -> Result<(Truth, String), Failure> {
        let Some(path) = &self.labels else {
            let truth = Truth::exact(collection, base, self.threshold);
            let words = format!(
                "True are the {} pairs whose resemblance over {} is {} or more.",
                truth.true_pairs(),
                base.shingle,
                self.threshold
            );
            return Ok((truth, words));
        };
        let Labels::Pairs(pairs) = read_labels(path, collection)? else {
            return Err(Failure::Usage(format!(
                "{}: a sweep needs labelled pairs: use `evaluate labels` for clusters",
                path.display()
            )));
        };
        let (known, unknown) = judged(&pairs, self.positive)
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
        let trues = known.iter().filter(|pair| pair.2).count();
        let words = format!(
            "True are {trues} of {} labelled pairs, those of grade {} or more; {unknown} are unknown and not counted.",
            known.len(),
            self.positive
        );
        Ok((Truth::Judged(known), words))
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Answer<'a> {
    truth: &'a str,
    wish: Wish,
    advice: Vec<Advice>,
    sensitivity: Vec<Sensitivity>,
    #[serde(skip_serializing_if = "<[TwoTests]>::is_empty")]
    two_tests: &'a [TwoTests],
    #[serde(flatten)]
    sweep: &'a Sweep,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let limits = arguments.run.limits();
    if !(arguments.threshold > 0.0 && arguments.threshold <= 1.0) {
        return Err(Failure::Usage(format!(
            "threshold {} is not above 0 and at most 1",
            arguments.threshold
        )));
    }
    if arguments.labels.is_none() && arguments.measures != [Measure::Resemblance] {
        return Err(Failure::Usage(
            "--measures are held against labelled pairs: give --labels".to_owned(),
        ));
    }
    let reading = Reading::of_scheme(
        &arguments.input,
        &arguments.run,
        &arguments.scheme,
        &arguments.boilerplate,
    )?;
    let base = arguments
        .scheme
        .measured(Weight::Set, Sketch::None, &reading.options)?;
    let collection = reading.collection()?;
    let (truth, words) = arguments.truth(&collection, &base)?;
    if truth.true_pairs() == 0 {
        return Err(Failure::Failed(format!(
            "no two documents resemble each other by {}: lower --threshold, or give labels",
            arguments.threshold
        )));
    }
    let settings = arguments.settings(&base);
    let swept = sweep(&collection, &settings, &truth, limits.threads, |_| ());
    let together = match (&truth, arguments.two_tests) {
        (Truth::Judged(judged), true) => two_tests(&collection, &settings, judged, MOST_TOGETHER),
        _ => Vec::new(),
    };
    let wish = Wish {
        precision: arguments.precision,
        recall: arguments.recall,
    };
    if let Some(path) = &arguments.page {
        let head = PageHead {
            command: command_line(),
            truth: words.clone(),
            wish,
        };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Failed(format!(
                "{}: {error}: choose another file with --page",
                path.display()
            ))
        };
        let html = page::render(&swept, &head).map_err(|error| failed(&error))?;
        let mut file =
            AtomicFile::create(path, Compression::None).map_err(|error| failed(&error))?;
        file.write_all(html.as_bytes())
            .map_err(|error| failed(&error))?;
        file.commit().map_err(|error| failed(&error))?;
    }
    if arguments.run.json {
        return Ok(console::json(&Answer {
            truth: &words,
            wish,
            advice: swept.advice(wish),
            sensitivity: swept.sensitivity(),
            two_tests: &together,
            sweep: &swept,
        })?);
    }
    print(&(describe(&swept, &words, wish) + &describe_together(&together)))
}

/// Combinations of two tests that are told.
const MOST_TOGETHER: usize = 10;

fn describe_together(together: &[TwoTests]) -> String {
    let mut text = String::new();
    if !together.is_empty() {
        text.push_str("\nTwo tests, both of which must pass; the best:\n");
    }
    for two in together {
        let _ = writeln!(
            text,
            "  {} and {}: precision {}, recall {}, F1 {:.4} ({:.4} on labels that had no say in the cuts)",
            two.first,
            two.second,
            shown(&two.precision),
            shown(&two.recall),
            two.f1,
            two.held_out_f1
        );
    }
    text
}

fn describe(swept: &Sweep, words: &str, wish: Wish) -> String {
    let mut text = format!(
        "{} settings over {} documents. {words}\n\n",
        swept.rows.len(),
        swept.documents
    );
    let _ = writeln!(
        text,
        "{:18} {:12} {:11} {:>6}  {:>7} {:>6}  best cut",
        "sketch", "features", "weight", "bytes", "best F1", "AP"
    );
    for row in &swept.rows {
        let (f1, cut) = row
            .curve
            .best
            .as_ref()
            .map_or((0.0, "nothing found"), |best| (best.f1, &*best.parameter));
        let _ = writeln!(
            text,
            "{:18} {:12} {:11} {:>6.0}  {f1:>7.4} {:>6.3}  {cut}",
            row.sketch, row.features, row.weight, row.bytes, row.curve.average_precision
        );
    }
    let advice = swept.advice(wish);
    let _ = writeln!(
        text,
        "\nWanted: precision {} and recall {}. The cheapest that reach it:",
        wish.precision, wish.recall
    );
    if advice.is_empty() {
        text.push_str("none does: lower the wish, or try more settings\n");
    }
    for advice in advice.iter().take(5) {
        let _ = writeln!(
            text,
            "  {} at {}: precision {}, recall {}, {:.0} bytes a document{}",
            advice.setting,
            advice.point.parameter,
            shown(&advice.point.precision),
            shown(&advice.point.recall),
            advice.bytes,
            if advice.is_sure {
                ""
            } else {
                "; not sure, the limits reach below"
            }
        );
    }
    text
}

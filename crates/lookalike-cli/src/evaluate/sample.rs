//! `lookalike evaluate sample`: draws pairs for a person to judge, by bands.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lookalike::scheme::{Sketch, Weight};
use lookalike_batch::{JobObserver as _, JobStage};
use lookalike_eval::stratified_sample::{
    self as sampling, SampledBand, ScoreBand, StratifiedSample,
};
use lookalike_eval::{StratifiedSampler, for_each_scored_pair};
use serde::Serialize;

use super::held_documents::join_limits;
use super::{EvaluationInput, SketchedInput, copies_note, print};
use crate::arguments::{
    BoilerplateArguments, InputArguments, RunArguments, SchemeArguments, output_path,
};
use crate::console::{self, Console, grouped};
use crate::failure::Failure;
use crate::output_file::{check_output, files_of, write_bytes};

#[derive(clap::Args)]
#[command(after_help = "\
Most pairs in a collection have nothing in common, so a plain sample would contain no
near-duplicates. This sample has equally many pairs from each band, and stores with each
pair how many pairs the collection has in that band. Label the pairs with
`lookalike evaluate label`; `lookalike evaluate labels` then weights the bands accordingly.
Documents with the same text as another are set aside. Memory holds only ids and sketches.

A band with fewer pairs than --each contributes all of them, with a warning. The sample
depends only on the documents and --sample-seed, not on the order of the input.

Examples:
  lookalike evaluate sample news.jsonl --each 30 -o pairs.jsonl
  lookalike evaluate sample news.jsonl --sketch none --bands 0.3,0.5,0.7,0.9 -o pairs.jsonl
  lookalike evaluate sample news.lkfp --fingerprints -o pairs.jsonl")]
pub(crate) struct SampleArguments {
    #[command(flatten)]
    input: InputArguments,

    /// File for the pairs
    #[arg(long, short, value_name = "FILE", value_parser = output_path())]
    output: PathBuf,

    /// INPUT holds sketches of any kind, written by `fingerprint -o` or `index build`
    #[arg(long)]
    fingerprints: bool,

    /// Number of pairs from each band
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    each: u32,

    /// Bands to draw from: the maximum distance, minimum similarity or minimum number of equal hashes of each
    ///
    /// Distances for simhash [default: 0 to 10], similarities for sketches that estimate them [default: 0.3 to 0.9 in tenths],
    /// numbers of equal hashes for all others [default: 1 to their number].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    bands: Vec<f64>,

    /// Seed of the sample: another number draws another sample
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    sample_seed: u64,

    /// Sketch that measures the distance: simhash:64, none (the exact resemblance), minhash:128, super-shingle:6x14, ...
    #[arg(long, value_name = "SKETCH", default_value = "simhash:64")]
    sketch: Sketch,

    /// Weights of features in a simhash
    #[arg(long, value_name = "WEIGHT", default_value = "set")]
    weight: Weight,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    run: RunArguments,
}

/// Output of the command.
#[derive(Serialize)]
struct SampleResult {
    /// Number of documents from which pairs were drawn.
    documents: u64,
    /// Number of documents that were set aside because another one has the same text.
    copies: u64,
    scheme: String,
    pairs: u64,
    bands: Vec<BandRow>,
}

#[derive(Serialize)]
struct BandRow {
    band: String,
    pairs: u64,
    drawn: u64,
}

pub(crate) fn run(arguments: &SampleArguments) -> Result<(), Failure> {
    let console = arguments.run.console();
    let (sketched, bands) = arguments.sketches(&console)?;
    // The bands begin with the most similar pairs, so the last one determines the threshold of the join.
    let least = bands.last().map_or(1.0, |band| band.low);
    let each = arguments.each as usize;
    let mut sampler =
        StratifiedSampler::new(sketched.set.ids(), &bands, each, arguments.sample_seed);
    console.stage(JobStage::Compare, 0);
    let limits = join_limits(&arguments.run.limits(), sketched.set.bytes());
    let sketches = sketched.set.sketches();
    // All pairs of all bands are counted, not only those drawn: the numbers weight the labels.
    for_each_scored_pair(sketches, least, limits, |pair| sampler.add(pair));
    console.clear();
    let drawn = sampler.finish();
    // Before the file is written, so that an earlier sample is not replaced by none.
    if drawn.pairs.is_empty() {
        return Err(Failure::Failed(format!(
            "no two of the {} documents are similar enough for the bands: give wider ones with --bands",
            grouped(sketched.set.ids().len() as u64)
        )));
    }
    write_pairs(&drawn, &arguments.output)?;
    if !arguments.run.quiet {
        warn_of_small_bands(&drawn, arguments.each);
    }
    let row = |SampledBand { band, pairs, drawn }: &SampledBand| BandRow {
        band: band.name.clone(),
        pairs: *pairs,
        drawn: *drawn,
    };
    let answer = SampleResult {
        documents: sketched.set.ids().len() as u64,
        copies: sketched.set.copies(),
        scheme: sketched.name.clone(),
        pairs: drawn.pairs.len() as u64,
        bands: drawn.bands.iter().map(row).collect(),
    };
    match (arguments.run.json, arguments.run.quiet) {
        (true, _) => console::json(&answer)?,
        (_, true) => {}
        _ => print(&describe(&answer, arguments))?,
    }
    sketched.end(&arguments.input.losses)
}

impl SampleArguments {
    /// Returns the sketches, and the bands for them.
    fn sketches<'a>(
        &'a self,
        console: &'a Console<'a>,
    ) -> Result<(SketchedInput<'a>, Vec<ScoreBand>), Failure> {
        if self.fingerprints {
            check_output(Some(&self.output), self.input.inputs.iter().map(Path::new))?;
            let given = SketchedInput::given(&self.input, &self.run, 0, console)?;
            let bands = self.bands(given.scheme.sketch)?;
            return Ok((given, bands));
        }
        // Checked before anything is read, because the list may be invalid.
        let bands = self.bands(self.sketch)?;
        let reading = EvaluationInput::of_scheme(
            &self.input,
            &self.run,
            &self.scheme,
            &self.boilerplate,
            console,
        )?;
        let read = files_of(&reading.inputs).chain(self.scheme.files());
        check_output(Some(&self.output), read)?;
        let scheme = self
            .scheme
            .measured(self.weight, self.sketch, &reading.options)?;
        Ok((SketchedInput::made(reading, scheme, true, 0)?, bands))
    }

    /// Returns the bands for a sketch.
    fn bands(&self, sketch: Sketch) -> Result<Vec<ScoreBand>, Failure> {
        let numbers = match self.bands.is_empty() {
            true => sampling::default_bands(sketch),
            false => self.bands.clone(),
        };
        sampling::bands(sketch, &numbers).map_err(|error| Failure::Usage(error.to_string()))
    }
}

fn warn_of_small_bands(drawn: &StratifiedSample, each: u32) {
    let small = drawn
        .bands
        .iter()
        .filter(|band| band.pairs < u64::from(each));
    let small: Vec<String> = small
        .map(|band| format!("{} ({})", band.band.name, band.pairs))
        .collect();
    if !small.is_empty() {
        console::warning(&format!(
            "bands with fewer than {each} pairs, all of which were taken: {}",
            small.join(", ")
        ));
    }
}

fn write_pairs(drawn: &StratifiedSample, path: &Path) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for pair in &drawn.pairs {
        serde_json::to_writer(&mut lines, pair).map_err(std::io::Error::from)?;
        lines.push(b'\n');
    }
    write_bytes(path, &lines)
}

fn describe(answer: &SampleResult, arguments: &SampleArguments) -> String {
    let mut text = format!("{:18} {:>16} {:>8}\n", "band", "pairs in it", "drawn");
    for row in &answer.bands {
        let _ = writeln!(
            text,
            "{:18} {:>16} {:>8}",
            row.band,
            grouped(row.pairs),
            row.drawn
        );
    }
    let _ = writeln!(
        text,
        "\n{} pairs of {} documents in {}",
        grouped(answer.pairs),
        grouped(answer.documents),
        arguments.output.display(),
    );
    text.push_str(&copies_note(answer.copies));
    let _ = writeln!(text, "scheme      {}", answer.scheme);
    text
}

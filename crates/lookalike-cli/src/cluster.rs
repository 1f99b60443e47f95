//! `lookalike cluster`: decides from fingerprints, or pairs of them, which documents are kept and which removed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lookalike::Preset;
use lookalike::scheme::{Sketch, Weight};
use lookalike_batch::fingerprints::cluster::{
    CLUSTER_RESULTS, ClusterSummary, FingerprintClustering, FingerprintKeep, FingerprintRule,
    TextVerification,
};
use lookalike_batch::fingerprints::sketches::MinEqual;
use lookalike_batch::{DocumentUse, JobLimits, ensure_documents_fit};
use lookalike_corpus::{InputOptions, Inputs, OutputFolder};

use crate::arguments::{
    InputArguments, RunArguments, SchemeArguments, command_line, ensure_preset_fits,
    ensure_resemblance, fingerprint_sources, output_path, preset_distance, preset_name, share,
};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::output_file::{ResultFolder, if_exists};
use crate::radius_warning;

#[derive(clap::Args)]
#[command(
    mut_arg("inputs", |inputs| inputs
        .required(false)
        .required_unless_present("pairs")
        .help("Files of fingerprints to join with themselves")
        .long_help(None)),
    mut_arg("distance", preset_distance),
    after_help = "\
Writes to DIR: kept.jsonl and removed.jsonl (a line {\"id\":..} for each document with a
fingerprint), clusters.jsonl (which document was removed for which, and why) and, last,
run.json.

INPUT are files of fingerprints in any format of `lookalike fingerprint`; they are joined
with themselves. With --pairs the pairs come from `lookalike join` instead, and INPUT lists
the documents; without INPUT, the documents are the ids in the pairs. Fingerprints without
ids are their own ids, and equal ones are one document.

With --equal, INPUT are files of `lookalike fingerprint --sketch super-shingle:GxR` or
minhash:N. A pair shares at least that many super-shingles or min-hash values; its distance
is the number of those that differ. With --pairs too, the pairs are those of
`lookalike join --equal` with the same number, or of its shards.

A removed document is within the distance of its survivor; with --components it may be any
number of small changes away. Fingerprints decide and no text is read, so nothing is
verified unless --verify names the texts. Then a document is removed only if it resembles
its survivor by --threshold or more; the options for input and features say how texts are
read and compared.

Example:
  lookalike fingerprint crawl.jsonl -o crawl.lkfp
  lookalike cluster crawl.lkfp -o out
  lookalike join crawl.lkfp -o pairs.jsonl
  lookalike cluster crawl.lkfp --pairs pairs.jsonl -o out        the same from pairs
  lookalike pairs crawl.jsonl -o near.jsonl
  lookalike cluster --pairs near.jsonl --components -o out       components over resemblance
  lookalike cluster crawl.lkfp --verify crawl.jsonl -o out       verified against texts"
)]
pub(crate) struct ClusterArguments {
    #[command(flatten)]
    input: InputArguments,

    /// Pairs printed by `lookalike join` (also .gz and .zst), or - for standard input; may be repeated
    ///
    /// With --components, and without INPUT, also pairs of documents printed by `lookalike pairs`.
    #[arg(long, value_name = "FILE")]
    pairs: Vec<OsString>,

    /// Directory for the results; created if missing
    #[arg(long, short, value_name = "DIR", value_parser = output_path())]
    output: PathBuf,

    /// Maximum Hamming distance of a pair, 0 to 16 bits [default: 3; with --pairs, any]
    #[arg(long, value_name = "BITS")]
    distance: Option<u32>,

    /// Distance of `lookalike fingerprint --preset NAME`: one-topic (12 of 128 bits)
    #[arg(long, value_name = "NAME", value_parser = preset_name(), conflicts_with_all = ["distance", "equal"])]
    preset: Option<Preset>,

    /// Minimum number of super-shingles or min-hash values that a pair must share: a number, or a share such as 0.8
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with = "distance",
        requires = "inputs"
    )]
    equal: Option<MinEqual>,

    /// Rule for the survivor of a cluster: first or last in INPUT, or id, the smallest [default: first; without INPUT, id]
    #[arg(long, value_name = "RULE")]
    keep: Option<FingerprintKeep>,

    /// Keep one document per connected component, whatever its distance to the others; --pairs may be those of `lookalike pairs`
    #[arg(long)]
    components: bool,

    /// Replace existing results
    #[arg(long)]
    overwrite: bool,

    /// Documents that the fingerprints were made from: remove only those that resemble their survivor; may be repeated
    #[arg(long, value_name = "PATH")]
    verify: Vec<OsString>,

    /// Minimum resemblance of a removed document to its survivor, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = share)]
    threshold: f64,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    run: RunArguments,
}

pub(crate) fn run(arguments: &ClusterArguments) -> Result<(), Failure> {
    let console = arguments.run.console();
    let summary = console.ended(arguments.cluster(&console))?;
    console.summarise(&summary, Some(&arguments.output), |summary, _| {
        console::cluster_summary(summary, &arguments.output);
    })?;
    if let (true, Some(distance)) = (arguments.run.warns(), summary.distance) {
        let inputs = summary.inputs.iter();
        let schemes = inputs.filter_map(|input| input.scheme_id.as_deref());
        radius_warning::warn_of_schemes(schemes, distance);
    }
    // Losses of both readings count: a text that could not be read left its document unverified.
    let of_texts = summary.verification.iter().flat_map(|texts| &texts.skipped);
    let of_files = summary.inputs.iter().flat_map(|input| &input.skipped);
    arguments.input.losses.end(of_files.chain(of_texts))
}

/// Texts to verify with.
struct VerifiedTexts {
    inputs: Inputs,
    options: InputOptions,
}

impl ClusterArguments {
    fn cluster(&self, console: &Console<'_>) -> Result<ClusterSummary, Failure> {
        ensure_resemblance(self.threshold)?;
        let limits = match self.verify.is_empty() {
            true => self.run.limits(),
            false => self.run.document_limits(),
        };
        let folder = ResultFolder::create(&self.output)?;
        // In the output directory by default, because temporary files are about as large as the results.
        let spool = self.run.spool(self.output.clone())?;
        // After the spool, so that an interruption removes the spool first and then finds the folder empty.
        folder.remove_on_interrupt(false);
        // Discovered before the join, so that a wrong path is not noticed only after hours.
        let texts = (!self.verify.is_empty()).then(|| self.texts(spool.path(), console));
        let texts = texts.transpose()?;
        let verification = texts
            .as_ref()
            .map(|texts| self.verification(texts, &limits));
        let verification = verification.transpose()?;
        let inputs = fingerprint_sources(&self.input.inputs, spool.path())?;
        if let Some(preset) = self.preset {
            ensure_preset_fits(preset, &inputs, console)?;
        }
        let pairs = fingerprint_sources(&self.pairs, spool.path())?;
        let rule = match self.components {
            true => FingerprintRule::Components,
            false => FingerprintRule::Stars,
        };
        let job = FingerprintClustering::new(&inputs, spool.path())
            .pairs(&pairs)
            .distance(self.distance)
            .equal(self.equal)
            .keep(self.keep)
            .rule(rule)
            .verify(verification.as_ref())
            .losses(self.input.losses.policy())
            .limits(limits)
            .observer(console);
        let if_exists = if_exists(false, self.overwrite);
        let summary = job.cluster(&self.output, if_exists, &command_line())?;
        if let Some(texts) = &texts {
            self.input.warn_of_unused(&texts.inputs, console);
        }
        Ok(summary)
    }

    fn texts(&self, spool: &Path, console: &Console) -> Result<VerifiedTexts, Failure> {
        let options = self.input.options(None).fields(self.scheme.fields);
        let output = OutputFolder {
            path: &self.output,
            results: &CLUSTER_RESULTS,
        };
        let inputs =
            self.input
                .discover_paths(&self.verify, &options, spool, Some(output), console)?;
        Ok(VerifiedTexts { inputs, options })
    }

    fn verification<'t>(
        &self,
        texts: &'t VerifiedTexts,
        limits: &JobLimits,
    ) -> Result<TextVerification<'t>, Failure> {
        let VerifiedTexts { inputs, options } = texts;
        // Verification computes exact resemblances of sets, so the sketch and the weight of the fingerprints do not matter.
        let (scheme, terms) = self.scheme.scheme(Weight::Set, Sketch::None, options)?;
        // Refused now, because the texts are only read after the join.
        ensure_documents_fit(limits, DocumentUse::Features(&scheme), inputs, options)?;
        Ok(TextVerification::new(inputs)
            .options(options.clone())
            .scheme(scheme)
            .terms(terms)
            .threshold(self.threshold))
    }
}

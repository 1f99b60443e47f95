//! `lookalike evaluate audit`: estimates what a method would miss on the user's own data.

mod given_audit;

use std::fmt::Write;

use lookalike::hash::xxh3_64;
use lookalike::{Banding, FeatureExtractor, Scheme, Sketch, Sketcher};
use lookalike_batch::{DistanceFor, DocumentUse, Method};
use lookalike_eval::{
    AuditProgress, AuditReport, AuditedMethod, CountEstimate, DocumentSampler, DocumentSetError,
    EvaluatedDocument, ProposalRule, RecallAudit, SampleTooLarge, ShareEstimate,
};

use super::checkpoint::{Checkpoint, CheckpointArguments};
use super::{AnswerOutput, EvaluationInput, copies_note, document, shown, unusable_documents};
use crate::arguments::{
    BoilerplateArguments, InputArguments, MethodArguments, RunArguments, SchemeArguments,
    ensure_resemblance,
};
use crate::console::{self, Console, grouped};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
No labels are needed: the exact resemblance of each sampled document to every document of
the input is the truth. Documents with the same text as another are set aside first. The
input is read twice; memory holds the sample and a hash of each text.

With --fingerprints INPUT holds signatures of `fingerprint --sketch minhash:N`, and all of
them are compared: the truth is what the exact join finds at --threshold, the share of equal
minima, and the bands of --method minhash are compared with it.

Examples:
  lookalike evaluate audit crawl/ --method simhash --distance 3 --sample 2000
  lookalike evaluate audit crawl.lkfp --fingerprints --method minhash --recall 0.95")]
pub(crate) struct AuditArguments {
    #[command(flatten)]
    input: InputArguments,

    /// INPUT holds signatures, written by `fingerprint -o` or `index build`
    #[arg(long)]
    fingerprints: bool,

    /// Number of documents in the sample
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    sample: u64,

    #[command(flatten)]
    method: MethodArguments,

    /// Second test: minimum length of the shorter text relative to the longer one, in bytes, above 0 and at most 1
    #[arg(long, value_name = "SHARE", value_parser = crate::arguments::positive_share, help_heading = "Method")]
    lengths: Option<f64>,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    boilerplate: BoilerplateArguments,

    #[command(flatten)]
    checkpoint: CheckpointArguments,

    #[command(flatten)]
    pub(super) run: RunArguments,
}

/// Number of documents that are compared at a time, and of bytes of their texts.
const BATCH: (usize, usize) = (1 << 12, 4 << 20);
/// Number of documents between two checkpoints: about a second of work.
const CHECKPOINT_DOCUMENTS: u64 = 1 << 14;

/// Distance of the limits of recall above which a note advises a larger sample.
const WIDE_LIMITS: f64 = 0.2;

/// Returns the bands that find the share of pairs that the method requires, with `places` places that agree with probability `agreement`.
fn banding(method: &MethodArguments, places: usize, agreement: f64) -> Result<Banding, Failure> {
    // The bands of a job with these options: the audit measures what the user would run.
    Banding::for_threshold(places, agreement, method.recall).ok_or_else(|| {
        Failure::Usage(format!(
            "{places} functions cannot find {} of the pairs at threshold {}: raise --functions",
            method.recall, method.threshold
        ))
    })
}

/// Returns the condition under which the method proposes a pair, as in jobs.
fn rule(method: &MethodArguments, sketch: Sketch) -> Result<ProposalRule, Failure> {
    let equal = method.equal.unwrap_or(method.method.default_equal());
    let bands = |places: usize, agreement: f64| {
        banding(method, places, agreement).map(|banding| ProposalRule::Keys(1, Some(banding)))
    };
    match (method.method, sketch) {
        (Method::AllPairs | Method::Exact, _) => {
            let why = match method.method {
                Method::Exact => "finds only equal texts, which an audit sets aside",
                _ => "is exact and misses nothing",
            };
            Err(Failure::Usage(format!(
                "{} {why}: name the approximate method to audit, such as --method simhash or --method minhash",
                method.method
            )))
        }
        (Method::Henzinger, _) => Ok(match method.distance_for {
            DistanceFor::All => ProposalRule::KeysAndDistance(equal, method.distance()),
            DistanceFor::Site => ProposalRule::KeysAndDistanceOnSite(equal, method.distance()),
        }),
        _ if method.distance_for == DistanceFor::Site => Err(Failure::Usage(
            "--distance-for site applies only to --method henzinger: leave it out".to_owned(),
        )),
        (Method::Simhash, _) => Ok(ProposalRule::Distance(method.distance())),
        (_, Sketch::BBit { functions, bits }) => {
            // Equal minima agree in all bits, others by chance with probability 1 / 2^bits.
            let chance = 0.5_f64.powi(bits.into());
            let agreement = method.threshold + (1.0 - method.threshold) * chance;
            bands(functions.into(), agreement)
        }
        (_, Sketch::MinHash { functions: places } | Sketch::OnePermutation { bins: places }) => {
            bands(places.into(), method.threshold)
        }
        _ => Ok(ProposalRule::Keys(equal, None)),
    }
}

/// The bands of given signatures.
#[derive(serde::Serialize)]
struct AuditedBands {
    number: usize,
    minima: usize,
}

/// Output as JSON.
#[derive(serde::Serialize)]
struct AuditResult {
    method: String,
    scheme: String,
    threshold: f64,
    /// For given signatures, the bands; the truth is then the share of equal minima.
    #[serde(skip_serializing_if = "Option::is_none")]
    bands: Option<AuditedBands>,
    #[serde(flatten)]
    report: AuditReport,
}

impl AuditArguments {
    /// Runs the audit.
    pub(super) fn evaluate(&self, console: &Console, output: AnswerOutput) -> Result<(), Failure> {
        self.method.check()?;
        let method = &self.method;
        ensure_resemblance(method.threshold)?;
        if self.fingerprints {
            return self.evaluate_sketches(console, output);
        }
        let sketch = method.sketch();
        let rule = rule(method, sketch)?;
        let options = self
            .input
            .options(None)
            .fields(self.scheme.fields)
            .category(method.category());
        let mut reading = EvaluationInput::new(&self.input, &self.run, options, console)?;
        reading.learn(&self.boilerplate)?;
        let (scheme, terms) = self
            .scheme
            .scheme(method.weight, sketch, &reading.options)?;
        reading.ensure_documents_fit(DocumentUse::Features(&scheme))?;
        let refused = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let sketcher = Sketcher::new(&scheme, terms.as_ref()).map_err(|error| refused(&error))?;
        let extractor = FeatureExtractor::with_terms(&scheme, terms.as_ref())
            .map_err(|error| refused(&error))?;
        let too_large = |_: SampleTooLarge| self.too_large();
        let (sample, digest) = self.draw(&reading, scheme.seed)?;
        // A checkpoint holds counts for each sampled document: with any other input or option they would be of other documents.
        let of = self.dependencies(&scheme, rule, digest);
        let audited =
            AuditedMethod::new(extractor, sketcher, rule, method.threshold).lengths(self.lengths);
        // The sample and the audit's own data are in memory at the same time, until the drop below.
        let held: u64 = sample.iter().map(EvaluatedDocument::bytes).sum();
        let left = self.run.limits().memory.saturating_sub(held);
        let mut audit = RecallAudit::new(audited, &sample, left).map_err(too_large)?;
        audit = audit.threads(self.run.limits().threads);
        drop(sample);
        let opened = self
            .checkpoint
            .open::<AuditProgress>("audit", &of, self.run.quiet)?;
        let (checkpoint, done) = opened.unzip();
        let done = done.and_then(|mut done: Vec<AuditProgress>| done.pop());
        let before = done.map_or(0, |done| {
            let documents = done.documents;
            if audit.resume(done) { documents } else { 0 }
        });
        compare(&reading, &mut audit, before, checkpoint.as_ref())?.map_err(too_large)?;
        let answer = AuditResult {
            method: method.method.to_string(),
            scheme: scheme.to_string(),
            threshold: method.threshold,
            bands: None,
            report: audit.finish(),
        };
        output.write(&answer, || describe(&answer))?;
        // Only after the answer was printed: until then it can be computed again from the checkpoint.
        checkpoint.map_or(Ok(()), Checkpoint::remove)?;
        reading.end()
    }

    /// Draws the sample. Also returns a digest of all documents.
    fn draw(
        &self,
        reading: &EvaluationInput<'_>,
        seed: u64,
    ) -> Result<(Vec<EvaluatedDocument>, u64), Failure> {
        // The seed of the scheme also draws the sample, so one option repeats a whole audit.
        let limit = self.run.limits().memory;
        let mut sampler = DocumentSampler::new(self.sample as usize, seed, limit);
        let (mut documents, mut digest) = (0_u64, 0_u64);
        reading.visit(|record| {
            let document = document(record);
            documents += 1;
            sampler.add(&document);
            // Chained, because a resumed audit skips the first documents, so their order matters.
            digest = xxh3_64(&document.text_hash().to_le_bytes(), digest);
            digest = xxh3_64(document.site.unwrap_or_default().as_bytes(), digest);
        })?;
        if documents < 2 {
            let found = documents as usize;
            // Report records that could not be read, which may be the reason.
            reading.end()?;
            return Err(unusable_documents(&DocumentSetError::TooFew { found }));
        }
        let sample = sampler.finish().map_err(|_| self.too_large())?;
        if (sample.len() as u64) < self.sample && !self.run.quiet {
            let whole = sample.len() as u64;
            let of_texts = match documents == whole {
                true => "",
                false => " of different texts",
            };
            console::warning(&format!(
                "the input has {}{of_texts}: all of them are the sample",
                console::counted(whole, "document")
            ));
        }
        Ok((sample, digest))
    }

    fn too_large(&self) -> Failure {
        Failure::Failed(format!(
            "a sample of {} documents, and the hashes of all texts, need more than the {} that --memory allows: lower --sample, or \
             raise --memory",
            grouped(self.sample),
            crate::size::show(self.run.limits().memory)
        ))
    }

    /// Returns a text with everything on which the counts depend.
    fn dependencies(&self, scheme: &Scheme, rule: ProposalRule, digest: u64) -> String {
        let (threshold, lengths, sample) = (self.method.threshold, self.lengths, self.sample);
        format!("{scheme} {rule:?} {threshold} {lengths:?} {sample} {digest:016x}")
    }
}

/// Compares all documents with the sample, except for the first `before`, which were compared earlier.
fn compare(
    reading: &EvaluationInput<'_>,
    audit: &mut RecallAudit,
    before: u64,
    checkpoint: Option<&Checkpoint<AuditProgress>>,
) -> Result<Result<(), SampleTooLarge>, Failure> {
    let (mut batch, mut bytes, mut seen) = (Vec::new(), 0, 0);
    // A visit cannot be stopped, so skip the rest after an error.
    let (mut fits, mut written) = (Ok(()), Ok(()));
    let mut saved = before;
    let mut flush = |batch: &mut Vec<EvaluatedDocument>, seen: u64| {
        // Documents before the checkpoint are only remembered as texts, so that later copies of them are recognised.
        fits = match (fits, seen <= before) {
            (Ok(()), true) => audit.skip(batch),
            (Ok(()), false) => audit.add(batch),
            (error, _) => error,
        };
        batch.clear();
        let Some(checkpoint) = checkpoint.filter(|_| fits.is_ok() && written.is_ok()) else {
            return;
        };
        let done = audit.progress().documents;
        // One line that is replaced, because the counts of all sampled documents change with every batch.
        if done >= saved + CHECKPOINT_DOCUMENTS {
            saved = done;
            written = checkpoint.replace(std::slice::from_ref(audit.progress()));
        }
    };
    reading.visit(|record| {
        let own = document(record);
        (bytes, seen) = (bytes + own.text.len(), seen + 1);
        batch.push(own);
        // The documents compared earlier end a batch, so that no batch contains both kinds.
        if batch.len() >= BATCH.0 || bytes >= BATCH.1 || seen == before {
            flush(&mut batch, seen);
            bytes = 0;
        }
    })?;
    flush(&mut batch, seen);
    written?;
    Ok(fits)
}

fn describe(answer: &AuditResult) -> String {
    let report = &answer.report;
    let mut text = String::new();
    let CountEstimate {
        value: all,
        low,
        high,
    } = report.all_true_pairs;
    let _ = writeln!(
        text,
        "sample      {} of {} documents, each compared with all",
        grouped(report.sample),
        grouped(report.documents)
    );
    let _ = match &answer.bands {
        None => {
            text.push_str(&copies_note(report.copies));
            writeln!(
                text,
                "truth       {} pairs of resemblance {} or more; about {all:.0} in the whole input [{low:.0}, {high:.0}]",
                grouped(report.true_pairs),
                answer.threshold
            )
        }
        Some(bands) => writeln!(
            text,
            "copies      {} with the same signature as another, set aside\n\
             truth       {} pairs with a share of {} or more of equal minima\n\
             bands       {} of {} minima",
            console::counted(report.copies, "document"),
            grouped(report.true_pairs),
            answer.threshold,
            bands.number,
            bands.minima
        ),
    };
    let _ = writeln!(
        text,
        "recall      {}  {} finds {} of them",
        shown(&report.recall),
        answer.method,
        grouped(report.found)
    );
    let _ = writeln!(
        text,
        "precision   {}  of the {} pairs it proposes, before they are verified",
        match report.proposed {
            0 => "-".to_owned(),
            _ => shown(&report.precision),
        },
        grouped(report.proposed)
    );
    let _ = writeln!(text, "scheme      {}", answer.scheme);
    let differs = |share: &ShareEstimate, of: u64| {
        of > 0 && (share.value - report.found as f64 / of as f64).abs() > 1e-9
    };
    if differs(&report.recall, report.true_pairs) || differs(&report.precision, report.proposed) {
        text.push_str(
            "note        recall and precision count a pair of two sampled documents for both, the numbers of pairs count it once\n",
        );
    }
    // By the limits and not by the number of pairs, which may all be of one document.
    if report.recall.high - report.recall.low > WIDE_LIMITS && report.sample < report.documents {
        let _ = writeln!(
            text,
            "note        few documents with true pairs: raise --sample for narrower limits"
        );
    }
    text
}

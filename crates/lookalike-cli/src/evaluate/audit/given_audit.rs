//! Audit of given signatures: compares bands with the join.

use lookalike_batch::fingerprints::files::{PlaceKind, SketchKind, SketchShape};
use lookalike_batch::{JobObserver as _, JobStage, Method};
use lookalike_eval::audit::audit_bands;

use super::{AuditArguments, AuditResult, AuditedBands, banding, describe};
use crate::console::Console;
use crate::evaluate::AnswerOutput;
use crate::evaluate::given::GivenSketches;
use crate::evaluate::held_documents::join_limits;
use crate::failure::Failure;

impl AuditArguments {
    /// Audits the bands of `--method minhash`.
    pub(super) fn evaluate_sketches(
        &self,
        console: &Console,
        output: AnswerOutput,
    ) -> Result<(), Failure> {
        let method = &self.method;
        if method.method != Method::MinHash {
            return Err(Failure::Usage(format!(
                "--fingerprints compares the bands of --method minhash with the exact join of signatures. A join of other sketches finds \
                 every pair within its limit, and what --method {} misses shows only in texts: give the documents without \
                 --fingerprints, and the options that their sketches were made with",
                method.method
            )));
        }
        let given = GivenSketches::read(&self.input.inputs, &self.input, &self.run, 0, console)?;
        let SketchKind::Places(SketchShape {
            kind: PlaceKind::Minima,
            places,
        }) = given.kind
        else {
            return Err(Failure::Failed(format!(
                "{}: {} have no bands: give signatures, made by `lookalike fingerprint --sketch minhash:{}`",
                self.input.inputs[0].display(),
                given.kind,
                method.functions
            )));
        };
        // The number of places is that of the file, whatever `--functions` says.
        let banding = banding(method, places, method.threshold)?;
        console.stage(JobStage::Compare, 0);
        let join = join_limits(&self.run.limits(), given.bytes);
        let report = audit_bands(given.set.sketches(), &banding, method.threshold, join);
        console.clear();
        let answer = AuditResult {
            method: method.method.to_string(),
            scheme: given.scheme(),
            threshold: method.threshold,
            bands: Some(AuditedBands {
                number: banding.bands,
                minima: banding.rows,
            }),
            report,
        };
        output.write(&answer, || describe(&answer))?;
        self.input.losses.end_answered(&given.skipped)
    }
}

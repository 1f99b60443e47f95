//! Sketches from files and indexes for an evaluation: ids and sketches, without texts.

use std::ffi::OsString;

use lookalike::{Scheme, SchemeId, Sketch, SketchValue};
use lookalike_batch::fingerprints::files::{FingerprintSource, SketchKind};
use lookalike_batch::fingerprints::index::is_index;
use lookalike_batch::fingerprints::sketches::is_sketch_index;
use lookalike_batch::fingerprints::{FingerprintSettingsError, SketchValues};
use lookalike_batch::{BatchError, SkippedRow};
use lookalike_eval::sweep::{self, GroundTruth};
use lookalike_eval::{SketchedDocument, SketchedSet, SweepRow, SweepSetting};

use super::held_documents::HeldDocuments;
use super::unusable_documents;
use crate::arguments::{InputArguments, RunArguments, fingerprint_sources};
use crate::bus_error;
use crate::console::Console;
use crate::failure::Failure;

/// The contents of files of sketches, and of indexes of them.
pub(super) struct GivenSketches {
    pub(super) set: SketchedSet,
    pub(super) kind: SketchKind,
    /// A sketch of this kind.
    pub(super) sketch: Sketch,
    /// True if some of them come from an index.
    pub(super) has_index: bool,
    /// Id of their scheme, if a file stores it.
    scheme: Option<SchemeId>,
    /// Memory that they take, in bytes.
    pub(super) bytes: u64,
    pub(super) skipped: Vec<SkippedRow>,
}

impl GivenSketches {
    /// Reads everything that the arguments name, within the memory limit minus the `taken` bytes and those of the command itself. A sketch without an id gets its digits as id, and
    /// equal ones count once.
    pub(super) fn read(
        arguments: &[OsString],
        input: &InputArguments,
        run: &RunArguments,
        taken: u64,
        console: &Console<'_>,
    ) -> Result<Self, Failure> {
        let spool = run.spool(std::env::temp_dir())?;
        let sources = fingerprint_sources(arguments, spool.path())?;
        let is_standard_input = |source: &&FingerprintSource| source.is_standard_input();
        if sources.iter().filter(is_standard_input).count() > 1 {
            return Err(BatchError::from(FingerprintSettingsError::StandardInputAgain).into());
        }
        // Standard input and pipes are copied to files, because the kind of a source is found out by looking into it before it is read.
        let copies = (0..).zip(sources);
        let sources = copies
            .map(|(at, source): (u32, _)| source.copy_pipe_to(spool.path().join(at.to_string())))
            .collect::<std::io::Result<Vec<_>>>()?;
        // An index may be memory-mapped.
        if let [one] = sources.as_slice() {
            bus_error::name_file(one.path());
        }
        let is_any_index =
            |source: &FingerprintSource| is_index(source.path()) || is_sketch_index(source.path());
        let has_index = sources.iter().any(is_any_index);
        let mut documents = HeldDocuments::new(run.limits().memory, taken);
        let values = SketchValues {
            sources: &sources,
            losses: input.losses.policy(),
            observer: console,
        };
        let read = values.for_each(&mut |name, sketch| {
            documents.push(SketchedDocument {
                id: name.text().into_owned(),
                // Unknown, so equal texts cannot be set aside: `SketchedSet::of` keeps all documents.
                text: None,
                sketch: Some(sketch),
            });
        })?;
        console.clear();
        let mut documents = documents.finish("sketches")?;
        // Empty files tell no kind; `SketchedSet::of` refuses them below for their number.
        let kind = read.kind.unwrap_or(SketchKind::Fingerprints(64));
        let sketch = kind.sketch().ok_or_else(|| {
            Failure::Failed(format!(
                "sketches of {kind} cannot be measured: make them of fewer, such as `lookalike fingerprint --sketch super-shingle:6x14`"
            ))
        })?;
        documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        // Any other repeated id stays, and `SketchedSet::of` refuses it.
        documents.dedup_by(|b, a| a == b && is_named_by_its_sketch(a));
        let files = read.files.into_iter();
        let set = SketchedSet::of(documents).map_err(|error| unusable_documents(&error))?;
        Ok(Self {
            bytes: set.bytes(),
            set,
            kind,
            sketch,
            has_index,
            scheme: read.scheme,
            skipped: files.flat_map(|file| file.skipped).collect(),
        })
    }

    /// Describes their scheme.
    pub(super) fn scheme(&self) -> String {
        match self.scheme {
            Some(id) => format!("with the id {id}"),
            None => "that of the sketches".to_owned(),
        }
    }

    /// Returns a setting that compares sketches of this kind.
    pub(super) fn setting(&self) -> SweepSetting {
        SweepSetting::from(Scheme::default().sketch(self.sketch))
    }

    /// Returns the figures of sketches of this kind, in the order of the documents with a known truth.
    pub(super) fn row(
        &self,
        sketches: &[Option<SketchValue>],
        truth: &GroundTruth,
        features: &str,
    ) -> SweepRow {
        SweepRow {
            features: features.to_owned(),
            weight: "as given".to_owned(),
            sketch: self.kind.to_string(),
            scheme: self.scheme(),
            ..sweep::measure(&self.setting(), sketches, truth)
        }
    }
}

/// Returns true if the id of a document is the digits of its sketch.
fn is_named_by_its_sketch(document: &SketchedDocument) -> bool {
    let digits = match &document.sketch {
        Some(SketchValue::Bits(code, bits)) => {
            format!("{:0width$x}", code.0, width = *bits as usize / 4)
        }
        Some(SketchValue::Signature(minima)) => {
            minima.iter().map(|one| format!("{one:08x}")).collect()
        }
        Some(SketchValue::Hashes(hashes)) => hashes
            .iter()
            .map(|one| format!("{:016x}", one.unwrap_or(0)))
            .collect(),
        Some(SketchValue::Set(_)) | None => return false,
    };
    document.id == digits
}

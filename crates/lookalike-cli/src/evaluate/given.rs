//! Fingerprints of files and indexes as an evaluation sees them: ids and sketches, no texts.

use std::sync::atomic::Ordering;

use lookalike::sketch::WideFingerprint;
use lookalike::{SchemeId, SketchValue};
use lookalike_batch::fingerprints::files::{
    CodeFiles, FingerprintFile, FingerprintName, check_losses, ensure_equal_schemes,
};
use lookalike_batch::fingerprints::index;
use lookalike_batch::{BatchError, JobObserver as _, JobStage, SkippedRow};
use lookalike_eval::{SketchedDocument, SketchedSet};

use super::unusable_documents;
use crate::arguments::{InputArguments, RunArguments, fingerprint_sources};
use crate::console::Console;
use crate::failure::Failure;

/// Bytes of a file that are read at once.
const CHUNK: u64 = 4 << 20;

/// Content of files of fingerprints, and of indexes of them.
pub(super) struct GivenFingerprints {
    pub(super) set: SketchedSet,
    /// Id of their scheme, where a file tells it.
    pub(super) scheme: String,
    pub(super) skipped: Vec<SkippedRow>,
}

/// The documents so far.
struct Gathered {
    documents: Vec<SketchedDocument>,
    bytes: u64,
    most_bytes: u64,
}

impl Gathered {
    fn add(&mut self, name: FingerprintName<'_>, code: u64) -> Result<(), Failure> {
        let id = match name {
            FingerprintName::Fingerprint(code) => code.to_string(),
            FingerprintName::Number(number) => number.to_string(),
            FingerprintName::Text(text) => text.to_owned(),
        };
        let document = SketchedDocument {
            id,
            text: None,
            sketch: Some(SketchValue::Bits(WideFingerprint(code.into()), 64)),
        };
        self.bytes += document.bytes();
        self.documents.push(document);
        match self.bytes <= self.most_bytes {
            true => Ok(()),
            false => Err(super::too_large(
                "fingerprints",
                self.bytes,
                self.most_bytes,
            )),
        }
    }
}

impl GivenFingerprints {
    /// Reads everything that the arguments name. A fingerprint without an id is called by itself, and counts once.
    pub(super) fn read(
        input: &InputArguments,
        run: &RunArguments,
        console: &Console<'_>,
    ) -> Result<Self, Failure> {
        let (losses, most_bytes) = (input.losses.policy(), run.limits().memory);
        let spool = run.spool(std::env::temp_dir())?;
        let sources = fingerprint_sources(&input.inputs, spool.path())?;
        let (indexes, files): (Vec<_>, Vec<_>) = sources
            .into_iter()
            .partition(|source| index::is_index(source.path()));
        let mut gathered = Gathered {
            documents: Vec::new(),
            bytes: 0,
            most_bytes,
        };
        let mut codes = CodeFiles::open(&files, losses.is_strict()).map_err(BatchError::from)?;
        console.stage(JobStage::Queries, codes.total_bytes().unwrap_or(0));
        let (counter, mut chunk) = (codes.bytes_read(), FingerprintFile::<u64>::default());
        while codes
            .read_chunk(&mut chunk, CHUNK)
            .map_err(BatchError::from)?
        {
            for (at, &code) in chunk.codes.iter().enumerate() {
                gathered.add(chunk.ids.name(at, code), code)?;
            }
            console.advance(counter.load(Ordering::Relaxed));
        }
        let mut scheme = codes.scheme().map(|(name, id)| (name.to_owned(), id));
        for source in &indexes {
            let file = index::open::<u64>(source.path(), false)?;
            let own = file.scheme().map(|id| (source.name(), SchemeId(id)));
            let first = scheme.as_ref().map(|(name, id)| (name.as_str(), *id));
            ensure_equal_schemes(first, own).map_err(BatchError::from)?;
            scheme = scheme.or(own.map(|(name, id)| (name.to_owned(), id)));
            let (mut ids, mut done) = (Vec::new(), Ok(()));
            file.index().for_each_ascending(&mut |code| {
                // An index cannot be stopped on the way: after an error the rest is passed over.
                if done.is_err() {
                    return;
                }
                ids.clear();
                let failed = |error| Failure::Failed(format!("{}: {error}", source.name()));
                done = file.ids(code, &mut ids).map_err(failed);
                if ids.is_empty() && done.is_ok() {
                    done = gathered.add(FingerprintName::itself(code), code);
                }
                for id in &ids {
                    if done.is_ok() {
                        done = gathered.add(FingerprintName::Text(id), code);
                    }
                }
            });
            done?;
        }
        console.clear();
        let summaries = codes.summaries();
        check_losses(losses, summaries.iter())?;
        let mut documents = gathered.documents;
        // Fingerprints that are called by themselves, and stand in several places.
        let itself = |document: &SketchedDocument| match &document.sketch {
            Some(SketchValue::Bits(code, _)) => format!("{:016x}", code.0) == document.id,
            _ => false,
        };
        documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        // Any other id that repeats stays, and `SketchedSet::of` refuses it.
        documents.dedup_by(|b, a| a == b && itself(a));
        Ok(Self {
            set: SketchedSet::of(documents).map_err(|error| unusable_documents(&error))?,
            scheme: scheme.map_or_else(
                || "that of the fingerprints".to_owned(),
                |(_, id)| format!("with the id {id}"),
            ),
            skipped: summaries
                .into_iter()
                .flat_map(|summary| summary.skipped)
                .collect(),
        })
    }
}

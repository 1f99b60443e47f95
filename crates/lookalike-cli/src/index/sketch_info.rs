//! `lookalike index info` for an index of sketches.

use std::cmp::Reverse;
use std::path::Path;

use lookalike_batch::fingerprints::sketches::{
    EqualPlaces, SketchIndexFile, open_sketches_unchecked,
};
use lookalike_hamming::FileError;

use super::findings::{RepeatedSketch, SketchDistribution, SketchIndexInfo, damaged, shortened};
use super::info::{IndexInfoArguments, LISTED, SHOWN, counted_repeats};
use super::page;
use crate::console::{counted, counted_sketches, grouped};
use crate::failure::Failure;
use crate::size::show;

pub(super) fn print_info(arguments: &IndexInfoArguments) -> Result<(), Failure> {
    let path = &arguments.index;
    let index = open_sketches_unchecked(path, false)?;
    if arguments.verify {
        index.verify().map_err(damaged(path))?;
    }
    let mut info = SketchIndexInfo::new(path, &index, arguments.verify);
    if arguments.needs_analysis() {
        info.distribution = Some(SketchDistribution::of(&index).map_err(damaged(path))?);
    }
    arguments.write(&info, || info.text(), || page::render_sketches(&info))
}

impl SketchIndexInfo {
    fn new(path: &Path, index: &SketchIndexFile, verified: bool) -> Self {
        Self {
            file: path.display().to_string(),
            bytes: index.bytes(),
            documents: index.documents(),
            sketches: index.len() as u64,
            equal: EqualPlaces::new(index.shape(), index.min_equal()),
            bands: index.bands(),
            bytes_per_sketch: index.bytes() as f64 / index.len().max(1) as f64,
            ids: index.has_ids(),
            scheme_id: index.scheme().map(|id| id.to_string()),
            verified,
            distribution: None,
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}: {}, {:.2} bytes a sketch{}\n{} of {}, {} of them different, {} another\n\
             at least {} equal: {}{}\nscheme {}\n",
            self.file,
            show(self.bytes),
            self.bytes_per_sketch,
            if self.verified {
                ", every byte checked"
            } else {
                ""
            },
            counted_sketches(self.documents),
            self.equal.of,
            grouped(self.sketches),
            counted_repeats(self.documents.saturating_sub(self.sketches)),
            self.equal.least,
            counted(self.bands as u64, "band"),
            if self.ids {
                ", with ids"
            } else {
                ", without ids"
            },
            self.scheme_id.as_deref().unwrap_or("unknown"),
        );
        if let Some(distribution) = &self.distribution {
            text += &distribution.text();
        }
        text
    }
}

impl SketchDistribution {
    fn of(index: &SketchIndexFile) -> Result<Self, FileError> {
        let mut most_repeated: Vec<(u64, usize)> = Vec::new();
        for at in 0..index.len() {
            let copies = index.copies(at);
            if copies > 1 {
                most_repeated.push((copies, at));
            }
            // Truncated now and then, so that memory stays small and sorting is rare.
            if most_repeated.len() > 2 * LISTED {
                keep_most_shared(&mut most_repeated);
            }
        }
        keep_most_shared(&mut most_repeated);
        // Ids and digits are read only for the few that are shown.
        let repeated = most_repeated.into_iter().map(|(copies, at)| {
            let mut ids = Vec::new();
            index.ids(at, &mut ids)?;
            Ok::<_, FileError>(RepeatedSketch {
                sketch: index.shape().digits(&index.sketch(at)),
                copies,
                ids: ids.into_iter().take(SHOWN).map(str::to_owned).collect(),
            })
        });
        Ok(Self {
            bands: index.loads(),
            repeated: repeated.collect::<Result<_, FileError>>()?,
        })
    }

    fn text(&self) -> String {
        let mut text =
            String::from("\nband  places  candidates a query  if even  fullest bucket\n");
        for (at, band) in (1..).zip(&self.bands) {
            text += &format!(
                "{at:4} {:7} {:19.2} {:8.2} {:15}\n",
                band.places,
                band.observed_candidates,
                band.expected_candidates,
                grouped(band.fullest_bucket as u64)
            );
        }
        if !self.repeated.is_empty() {
            text += "\nmost repeated\n";
            for repeated in &self.repeated {
                let RepeatedSketch {
                    sketch,
                    copies,
                    ids,
                } = repeated;
                let (times, ids) = (counted(*copies, "time"), ids.join(", "));
                text += &format!("  {} ({times}): {ids}\n", shortened(sketch));
            }
        }
        text
    }
}

/// Keeps the sketches shared by most documents; ties are broken by position.
fn keep_most_shared(repeated: &mut Vec<(u64, usize)>) {
    repeated.sort_unstable_by_key(|&(copies, at)| (Reverse(copies), at));
    repeated.truncate(LISTED);
}

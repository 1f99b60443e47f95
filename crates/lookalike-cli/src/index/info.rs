//! `lookalike index info`: describes an index (Manku et al. 2007, section 4.2) as text, JSON or a page, and can check every byte.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use lookalike::SchemeId;
use lookalike_batch::fingerprints::files::SizedFingerprint;
use lookalike_batch::fingerprints::index::{open_unchecked, width};
use lookalike_hamming::{Analysis, Analyzer, BucketLoads, IndexFile, Word};
use serde::Serialize;

use super::findings::{
    Distribution, IndexInfo, RepeatedFingerprints, SpikeRow, TableInfo, damaged,
};
use super::page;
use crate::console::{bytes_each, counted, grouped};
use crate::failure::Failure;
use crate::output_file::{check_output, write_bytes};
use crate::size::show;

#[derive(clap::Args)]
#[command(after_help = "\
Shows sizes and design at once. With --analyse, --json or --page it reads every fingerprint
and also shows: the bit in which neighbours in sorted order first differ, the count in each
of 128 equal ranges, spikes with their most common fingerprint and its ids, and how many
candidates a probe meets, beside the number for evenly spread fingerprints. For an index of
sketches, it shows the candidates in each band, and the most frequent sketches.

Example:
  lookalike index info crawl.lkix --verify --page crawl.html")]
pub(crate) struct IndexInfoArguments {
    /// An index made by `lookalike index build`
    pub(super) index: PathBuf,

    /// Check every byte against its checksum
    #[arg(long)]
    pub(super) verify: bool,

    /// Analyse all fingerprints
    #[arg(long)]
    pub(super) analyse: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,

    /// Write an HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,
}

/// Number of ids that are shown for a fingerprint, and of fingerprints in a list.
pub(super) const SHOWN: usize = 5;
pub(super) const LISTED: usize = 20;
/// Number of bytes of fingerprints that are sorted at once.
const SLICE_BYTES: usize = 512 << 20;

/// Describes an index of fingerprints.
pub(super) fn run(arguments: &IndexInfoArguments) -> Result<(), Failure> {
    match width(&arguments.index)? {
        32 => print_info::<u32>(arguments),
        128 => print_info::<u128>(arguments),
        _ => print_info::<u64>(arguments),
    }
}

fn print_info<C: Word>(arguments: &IndexInfoArguments) -> Result<(), Failure> {
    let path = &arguments.index;
    // Only heads and lengths are checked, because info on a large file must not read all of it.
    let index = open_unchecked::<C>(path, false)?;
    if arguments.verify {
        index.verify().map_err(damaged(path))?;
    }
    let mut info = IndexInfo::new(path, &index, arguments.verify);
    if arguments.needs_analysis() {
        info.distribution = Some(distribution(&index, SLICE_BYTES).map_err(damaged(path))?);
    }
    arguments.write(&info, || info.text(), || page::render(&info))
}

impl IndexInfoArguments {
    /// Returns true if all fingerprints are to be analysed.
    pub(super) fn needs_analysis(&self) -> bool {
        self.analyse || self.json || self.page.is_some()
    }

    /// Writes the page if requested, and prints the rest.
    pub(super) fn write(
        &self,
        info: &impl Serialize,
        text: impl FnOnce() -> String,
        page: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.page {
            // The index itself must not be replaced by its page.
            check_output(Some(path), [self.index.as_path()])?;
            write_bytes(path, page()?.as_bytes())?;
        }
        let text = if self.json {
            let json = serde_json::to_string(info);
            json.map_err(|error| Failure::Failed(error.to_string()))? + "\n"
        } else {
            text()
        };
        Ok(stdout().lock().write_all(text.as_bytes())?)
    }
}

impl IndexInfo {
    fn new<C: Word>(path: &Path, index: &IndexFile<C>, verified: bool) -> Self {
        let tables = index.index();
        Self {
            file: path.display().to_string(),
            bytes: index.bytes(),
            documents: index.documents(),
            fingerprints: tables.len() as u64,
            bits: tables.design().bits(),
            distance: tables.radius(),
            // The word that `--design` takes.
            design: tables.design().family().name(),
            layout: tables.layout().name(),
            tables: tables.design().tables().len(),
            // Per distinct fingerprint, as in `design`.
            bytes_per_fingerprint: index.bytes() as f64 / tables.len().max(1) as f64,
            ids: index.has_ids(),
            scheme_id: index.scheme().map(|id| SchemeId(id).to_string()),
            verified,
            distribution: None,
        }
    }

    fn text(&self) -> String {
        let repeated = self.documents - self.fingerprints;
        let mut text = format!(
            "{}: {}{}{}\n{} of {} bits, {} of them different, {} another\n\
             distance up to {}: {} ({}), {}{}\nscheme {}\n",
            self.file,
            show(self.bytes),
            bytes_each(self.bytes_per_fingerprint, self.fingerprints),
            if self.verified {
                ", every byte checked"
            } else {
                ""
            },
            counted(self.documents, "fingerprint"),
            self.bits,
            grouped(self.fingerprints),
            counted_repeats(repeated),
            self.distance,
            counted(self.tables as u64, "table"),
            self.design,
            self.layout,
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

/// Formats the number of fingerprints or sketches that repeat another.
pub(super) fn counted_repeats(repeated: u64) -> String {
    match repeated {
        1 => "1 repeats".to_owned(),
        repeated => format!("{} repeat", grouped(repeated)),
    }
}

impl Distribution {
    fn text(&self) -> String {
        let mut text = String::from(
            "\ntable  key bits  errors  address  candidates a probe  if even  fullest bucket\n",
        );
        for (at, table) in (1..).zip(&self.tables) {
            text += &format!(
                "{at:5} {:9} {:7} {:8} {:19.2} {:8.2} {:15}\n",
                table.key_bits,
                table.budget,
                table.address_bits,
                table.observed_candidates,
                table.expected_candidates,
                grouped(table.fullest_bucket as u64)
            );
        }
        text += "\nbit where neighbours first differ   observed     if even\n";
        for (bit, (&seen, &even)) in self
            .leading_gaps
            .iter()
            .zip(&self.expected_gaps)
            .enumerate()
            .rev()
        {
            // Low bits, at which evenly distributed fingerprints never differ first, would give dozens of empty lines.
            if seen > 0 || even >= 0.5 {
                text += &format!(
                    "{bit:33} {:>10} {:>11}\n",
                    grouped(seen),
                    grouped(even.round() as u64)
                );
            }
        }
        text += &format!(
            "\n{} of 128 ranges hold far more than their share\n",
            self.spikes.len()
        );
        for spike in self.spikes.iter().take(LISTED) {
            let named = spike.commonest.text();
            text += &format!(
                "  range {:3}: {}; commonest {named}\n",
                spike.range,
                grouped(spike.count)
            );
        }
        if !self.repeated.is_empty() {
            text += "\nmost repeated\n";
            for repeated in &self.repeated {
                text += &format!("  {}\n", repeated.text());
            }
        }
        text
    }
}

impl RepeatedFingerprints {
    fn text(&self) -> String {
        let ids = match self.ids.as_slice() {
            [] => String::new(),
            ids => format!(": {}", ids.join(", ")),
        };
        format!(
            "{} ({}){ids}",
            self.fingerprint,
            counted(self.copies, "time")
        )
    }
}

/// Computes figures about the fingerprints of an index, holding about `memory` bytes of them at once if they are evenly distributed.
fn distribution<C: Word>(
    index: &IndexFile<C>,
    memory: usize,
) -> Result<Distribution, lookalike_hamming::FileError> {
    let bytes = index.index().len() * size_of::<(C, u64)>();
    // A power of two, because a slice is the fingerprints with the same highest bits: slices in order are all fingerprints in order.
    let slices = bytes.div_ceil(memory).max(1).next_power_of_two();
    let mut slice = Vec::with_capacity(index.index().len() / slices);
    let mut most_repeated = Vec::new();
    let mut analyzer = Analyzer::default();
    for number in 0..slices as u64 {
        slice.clear();
        // An index returns its fingerprints in the order of a table, which permutes the bits, but gaps are between sorted neighbours. All of them at
        // once may exceed the memory.
        index.copies(&mut |code, copies| {
            // With a single slice, no bit is above the shift, and every fingerprint is in slice 0.
            if code.above(C::BITS - slices.ilog2()) == number {
                slice.push((code, copies));
            }
        })?;
        slice.sort_unstable();
        for &(code, copies) in &slice {
            // Once for each copy, because ranges and spikes count documents.
            (0..copies).for_each(|_| analyzer.push(code));
        }
        most_repeated.extend(slice.iter().copied().filter(|&(_, copies)| copies > 1));
        // Ties are broken by the fingerprint, so that the page of an index is always the same.
        most_repeated.sort_unstable_by_key(|&(code, copies)| (std::cmp::Reverse(copies), code));
        most_repeated.truncate(LISTED);
    }
    let analysis: Analysis<C> = analyzer.finish();
    let repeated = most_repeated
        .iter()
        .map(|&(code, copies)| repeated_of(index, code, copies));
    let spikes = analysis.spikes.iter().map(|spike| {
        let commonest = repeated_of(index, spike.code, spike.copies)?;
        Ok::<_, lookalike_hamming::FileError>(SpikeRow {
            range: spike.range,
            count: spike.count,
            commonest,
        })
    });
    let keys = index.index().design().tables();
    let loads = index.index().loads();
    let tables = keys
        .iter()
        .zip(loads)
        .map(|(key, loads): (_, BucketLoads)| TableInfo {
            key_bits: key.prefix_bits(),
            budget: key.budget,
            address_bits: loads.address_bits,
            observed_candidates: loads.observed,
            expected_candidates: loads.expected,
            fullest_bucket: loads.largest,
        });
    Ok(Distribution {
        expected_gaps: analysis.expected_gaps(),
        spikes: spikes.collect::<Result<_, _>>()?,
        repeated: repeated.collect::<Result<_, _>>()?,
        tables: tables.collect(),
        leading_gaps: analysis.leading_gaps,
        ranges: analysis.ranges,
    })
}

/// Returns a fingerprint with the first of its ids.
fn repeated_of<C: Word>(
    index: &IndexFile<C>,
    code: C,
    copies: u64,
) -> Result<RepeatedFingerprints, lookalike_hamming::FileError> {
    let mut ids = Vec::new();
    index.ids(code, &mut ids)?;
    Ok(RepeatedFingerprints {
        fingerprint: SizedFingerprint::new(code).to_string(),
        copies,
        ids: ids.into_iter().take(SHOWN).map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use lookalike_batch::fingerprints::index::cheapest_design;
    use lookalike_hamming::{BuildLimits, IndexFileWriter, Layout, share};

    use super::*;

    #[test]
    fn all_fingerprints_of_an_index_were_in_memory_at_once() {
        let mixed = |at: u128| at.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let codes: Vec<u128> = (0..5_000).map(|at| mixed(at % 4_900) >> (at % 3)).collect();
        let cheapest = cheapest_design(5_000, 128, 3, None, Layout::Packed).unwrap();
        let design = cheapest.design;
        let mut writer = IndexFileWriter::new(Vec::new(), None, &design, Layout::Packed).unwrap();
        while writer
            .next_table::<u128>(codes.as_slice(), None, BuildLimits::default())
            .unwrap()
        {}
        let index = IndexFile::<u128>::open(share(writer.finish().unwrap())).unwrap();
        let told =
            |memory: usize| serde_json::to_string(&distribution(&index, memory).unwrap()).unwrap();
        let at_once = told(usize::MAX);
        for memory in [1 << 16, 1 << 14, 1000] {
            assert_eq!(told(memory), at_once);
        }
    }
}

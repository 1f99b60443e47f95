//! `lookalike design`: compares the layouts of a Hamming index and their costs.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use lookalike_hamming::{
    CostConstants, CostedDesign, Design, Family, FamilyKind, PlanGoal, PlanLimits, calibrate,
    fewest_tables, longest_prefix, plan, plan_of,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::console::grouped;
use crate::failure::Failure;
use crate::machine;
use crate::output_file::write_bytes;
use crate::size::{self, show};

#[derive(clap::Args)]
#[command(after_help = "\
Lists the designs for this many fingerprints: those of Manku, Jain and Das Sarma (2007,
section 3; kind blocks), tables probed at neighbouring keys (budgets), and covering designs
(cover). * marks the best design within the limits, - designs beyond them. Pass the name of
a design to --design, here or in `lookalike index build`.

  key       bits of a table's key, the p of the paper
  a probe   fingerprints that match a whole key, at most (2^(log2 N - p))
  compared  entries that a query is compared with
  query     expected time of a query on one core

Examples:
  lookalike design --fingerprints 17179869184 --distance 3     the paper's own example
  lookalike design --fingerprints 1e9 --memory 12G
  lookalike design --fingerprints 1e9 --kind blocks --min-prefix 28 --prefer tables
  lookalike design --fingerprints 1e9 --design 4-of-7x1
  lookalike design --fingerprints 2^27 --calibrate --constants here.json")]
pub(crate) struct DesignArguments {
    /// Number of distinct fingerprints: 1000000, 8e9 or 2^34
    #[arg(long, value_name = "N", value_parser = size::parse_count)]
    fingerprints: u64,

    /// Maximum Hamming distance between a query and a match, 0 to 16 bits
    #[arg(long, value_name = "BITS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=16))]
    distance: u32,

    /// Width of a fingerprint: 32, 64 or 128 bits
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = width)]
    bits: u32,

    /// Show only this design: 3-of-6x1, 2-of-3x2 (two groups of bits), nested-4-4, biplane, affine, projective or scan
    #[arg(long, value_name = "NAME")]
    design: Option<String>,

    /// Criterion for the best design: query time, number of tables, or memory
    #[arg(long, value_name = "time|tables|memory", default_value = "time", value_parser = goal)]
    prefer: PlanGoal,

    /// Maximum memory of the tables [default: that of this machine, or of its container]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Limits")]
    memory: Option<u64>,

    /// Maximum number of tables
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Limits")]
    tables: Option<u32>,

    /// Minimum number of bits in every key
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(0..=128), help_heading = "Limits")]
    min_prefix: Option<u32>,

    /// Show only designs of this kind: blocks, budgets, cover or scan
    #[arg(long, value_name = "KIND", help_heading = "Limits")]
    kind: Option<FamilyKind>,

    /// Measure the constants of this machine first (takes some seconds); by default, those of a 2.5 GHz Xeon are used
    #[arg(long, help_heading = "Times")]
    calibrate: bool,

    /// File of constants: written with --calibrate, otherwise read
    #[arg(long, value_name = "FILE", help_heading = "Times")]
    constants: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, help_heading = "Running")]
    json: bool,
}

fn width(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        "128" => Ok(128),
        _ => Err(format!(
            "{text:?} is not a fingerprint width: use 32, 64 or 128"
        )),
    }
}

fn goal(text: &str) -> Result<PlanGoal, String> {
    match text {
        "time" => Ok(PlanGoal::Time),
        "tables" => Ok(PlanGoal::Tables),
        "memory" => Ok(PlanGoal::Memory),
        _ => Err(format!(
            "unknown criterion {text:?}: use time, tables or memory"
        )),
    }
}

/// Returns the design with this name.
///
/// # Errors
/// Returns [`Failure::Usage`] with the valid names.
pub(crate) fn design_of_name(name: &str, bits: u32, radius: u32) -> Result<Design, Failure> {
    let family = Family::named(name, radius).map_err(|error| Failure::Usage(error.to_string()))?;
    Design::new(family, bits, radius).map_err(|_| {
        Failure::Usage(format!(
            "there is no design {name} for {bits} bits and distance {radius}: its keys would miss pairs, or its blocks do not fit the \
             bits; `lookalike design` lists those available"
        ))
    })
}

/// [`CostConstants`] as stored in a file, in nanoseconds on one core.
#[derive(Serialize, Deserialize)]
// `CostConstants` has no serde of its own, because its crate depends on almost nothing; a remote definition keeps names and order here.
#[serde(transparent)]
struct ConstantsFile(#[serde(with = "ConstantFields")] CostConstants);

#[derive(Serialize, Deserialize)]
#[serde(remote = "CostConstants", deny_unknown_fields)]
struct ConstantFields {
    query_ns: f64,
    table_ns: f64,
    bucket_table_ns: f64,
    dense_table_ns: f64,
    single_probe_ns: f64,
    bucket_single_probe_ns: f64,
    probe_ns: f64,
    bucket_probe_ns: f64,
    select_ns: f64,
    overflow_ns: f64,
    entry_ns: f64,
    scanned_code_ns: f64,
    build_entry_ns: f64,
    /// Sizes of a working set in bytes, with the cost of accessing a random cache line in it.
    line_ns: Vec<(f64, f64)>,
}

pub(crate) fn run(arguments: &DesignArguments) -> Result<(), Failure> {
    let (bits, radius) = (arguments.bits, arguments.distance);
    let named = arguments.design.as_deref();
    let named = named
        .map(|name| design_of_name(name, bits, radius))
        .transpose()?;
    let (constants, origin) = constants(arguments)?;
    // A memory limit in any case: without one, the fastest design is always the one with the most tables.
    let limits = PlanLimits::default()
        .tables(arguments.tables)
        .memory_bytes(arguments.memory.unwrap_or_else(machine::memory))
        .min_prefix_bits(arguments.min_prefix)
        .kind(arguments.kind)
        .goal(arguments.prefer);
    let count = arguments.fingerprints;
    // No shift by the width of a count or more: so many bits have more fingerprints than it can name.
    if count
        .saturating_sub(1)
        .checked_shr(bits)
        .is_some_and(|above| above > 0)
    {
        return Err(Failure::Usage(format!(
            "--fingerprints {count}: there are only 2^{bits} distinct fingerprints of {bits} bits: name fewer, or raise --bits"
        )));
    }
    let mut designs = match named {
        // A single design in each of its layouts.
        Some(design) => plan_of(count, vec![design], &limits, &constants),
        None => plan(count, bits, radius, &limits, &constants),
    };
    let kind = |costed: &CostedDesign| costed.design.family().kind();
    designs.retain(|costed| arguments.kind.is_none_or(|shown| kind(costed) == shown));
    let text = if arguments.json {
        let designs: Vec<_> = designs
            .iter()
            .map(|costed| object(costed, arguments.fingerprints))
            .collect();
        let all = json!({
            "fingerprints": arguments.fingerprints,
            "bits": bits,
            "distance": radius,
            "memory": limits.memory_bytes,
            "nested_blocks": nested_blocks(arguments).map(|found| json!({
                "tables": found.tables,
                "prefix_bits": found.prefix_bits,
                "levels": found.levels,
            })),
            // Included in the answer, so that it can be repeated on another machine.
            "constants": ConstantsFile(constants.clone()),
            "constants_from": origin,
            "designs": designs,
        });
        format!("{all}\n")
    } else {
        table(&designs, arguments, &constants, &origin)
    };
    Ok(stdout().lock().write_all(text.as_bytes())?)
}

/// Returns the requested constants, and their origin.
fn constants(arguments: &DesignArguments) -> Result<(CostConstants, String), Failure> {
    match (&arguments.constants, arguments.calibrate) {
        // With both options the file is written; with `--constants` alone it is read.
        (file, true) => {
            let measured = measured();
            if let Some(path) = file {
                save(path, &measured)?;
            }
            Ok((measured, "measured on this machine".to_owned()))
        }
        (Some(path), false) => Ok((load(path)?, path.display().to_string())),
        (None, false) => {
            let origin = "a 2.5 GHz Xeon; --calibrate measures this machine";
            Ok((CostConstants::default(), origin.to_owned()))
        }
    }
}

fn measured() -> CostConstants {
    let started = Instant::now();
    // From the nearest cache to a gibibyte, where every probe misses.
    let working_sets: Vec<u64> = (20..=30).step_by(2).map(|log| 1 << log).collect();
    calibrate(&mut || started.elapsed().as_secs_f64(), &working_sets)
}

fn save(path: &Path, constants: &CostConstants) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&ConstantsFile(constants.clone()));
    let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
    write_bytes(path, (text + "\n").as_bytes())
}

fn load(path: &Path) -> Result<CostConstants, Failure> {
    let text = std::fs::read(path).map_err(|error| wrong(path, &error))?;
    // serde would take the values of an array for the constants, in order.
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(wrong(path, &"the constants are an array, not an object"));
    }
    // Unknown fields are refused: the numbers in a file of another version belong to other models.
    let file: ConstantsFile = serde_json::from_slice(&text).map_err(|error| wrong(path, &error))?;
    Ok(file.0)
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!(
        "{}: {error}: create the file with --calibrate --constants FILE",
        path.display()
    ))
}

fn object(costed: &CostedDesign, fingerprints: u64) -> serde_json::Value {
    let (design, costs) = (&costed.design, &costed.costs);
    let (shortest, longest) = design.prefix_range();
    json!({
        "design": design.family().to_string(),
        "name": design.family().name(),
        "kind": design.family().kind().name(),
        "layout": costed.layout.name(),
        "tables": design.tables().len(),
        "prefix_bits": [shortest, longest],
        "budget": design.budget(),
        "probes": costs.probes,
        "matches_per_probe": costs.matches_per_probe,
        "candidates_per_query": costs.candidates_per_query,
        "bytes_per_fingerprint": costs.bytes_per_fingerprint,
        "bytes": (costs.bytes_per_fingerprint * fingerprints as f64).round() as u64,
        "query_ns": costs.query_ns,
        "build_ns_per_fingerprint": costs.build_ns_per_fingerprint,
        "fits": costed.fits,
        "cheapest": costed.cheapest,
    })
}

fn table(
    designs: &[CostedDesign],
    arguments: &DesignArguments,
    constants: &CostConstants,
    origin: &str,
) -> String {
    let mut text = format!(
        "{} fingerprints of {} bits, distance {}; times: {origin}\n\n  tables  {:26} {:7} layout  key      probes    a probe   compared  bytes/fp      memory      query\n",
        grouped(arguments.fingerprints),
        arguments.bits,
        arguments.distance,
        "design",
        "kind"
    );
    for costed in designs {
        text += &row(costed, arguments.fingerprints);
    }
    if !designs.iter().any(|costed| costed.cheapest) {
        text += &no_design_remedy(designs, arguments);
    }
    if let Some(found) = nested_blocks(arguments) {
        text += &format!(
            "\nNested blocks (X of the paper, before blocks are rounded to whole bits): {} tables of {:.1} bits, levels {:?}\n",
            grouped(found.tables),
            found.prefix_bits,
            found.levels
        );
    }
    if arguments.calibrate && arguments.constants.is_none() {
        let file = serde_json::to_string(&ConstantsFile(constants.clone())).unwrap_or_default();
        text += &format!("\nMeasured constants, for --constants FILE:\n{file}\n");
    }
    text
}

/// Returns the minimum number of tables with the requested keys, or the longest keys with the requested number of tables, by the formula of the
/// paper; `None` if such keys need more tables than that.
fn nested_blocks(arguments: &DesignArguments) -> Option<lookalike_hamming::Nesting> {
    let (bits, radius) = (arguments.bits, arguments.distance);
    match (arguments.min_prefix, arguments.tables) {
        (Some(prefix), most) => fewest_tables(bits, radius, prefix)
            .filter(|found| most.is_none_or(|most| found.tables <= u64::from(most))),
        (None, Some(tables)) => Some(longest_prefix(bits, radius, tables.into())),
        (None, None) => None,
    }
}

/// Returns the remedy if no design is within the limits.
fn no_design_remedy(designs: &[CostedDesign], arguments: &DesignArguments) -> String {
    // The same limits except that of memory, to find the least memory that would suffice.
    let other_limits = PlanLimits::default()
        .tables(arguments.tables)
        .min_prefix_bits(arguments.min_prefix)
        .kind(arguments.kind)
        // Only by the fewest bytes, whatever the user prefers: it is the memory that is missing.
        .goal(PlanGoal::Memory)
        .memory_bytes(None);
    let all = designs.iter().map(|costed| costed.design.clone());
    let mut all: Vec<Design> = all.collect();
    // Each design occurs once for each of its layouts, consecutively; `plan_of` adds the layouts again.
    all.dedup();
    let of_any_size = plan_of(
        arguments.fingerprints,
        all,
        &other_limits,
        // Memory does not depend on the cost constants.
        &CostConstants::default(),
    );
    let Some(least) = of_any_size.iter().find(|costed| costed.cheapest) else {
        return "\nNo design is within the limits: allow more --tables, a lower --min-prefix or another --kind.\n".to_owned();
    };
    let bytes = least.costs.bytes_per_fingerprint * arguments.fingerprints as f64;
    // The remedy names the limit that was in force, given or not.
    let place = match arguments.memory {
        Some(memory) => format!("--memory {}", show(memory)),
        None => format!("the {} of this machine", show(machine::memory())),
    };
    format!(
        "\nNo design is within the limits: the smallest needs {} ({}, {}), more than {place}; raise --memory, or use several machines.\n",
        show(bytes as u64),
        least.design.family().name(),
        least.layout
    )
}

fn row(costed: &CostedDesign, fingerprints: u64) -> String {
    let (design, costs) = (&costed.design, &costed.costs);
    let mark = match (costed.cheapest, costed.fits) {
        (true, _) => '*',
        (false, true) => ' ',
        (false, false) => '-',
    };
    let key = match design.prefix_range() {
        (shortest, longest) if shortest == longest => shortest.to_string(),
        (shortest, longest) => format!("{shortest}-{longest}"),
    };
    // A scan has no tables, so it has no layout.
    let scan = design.family().kind() == FamilyKind::Scan;
    format!(
        "{mark} {:6}  {:26} {:7} {:6}  {key:6} {:>8} {:>10} {:>10}  {:8.1} {:>11} {:>10}\n",
        design.tables().len(),
        design.family().name(),
        design.family().kind().name(),
        if scan { "" } else { costed.layout.name() },
        number(costs.probes),
        number(costs.matches_per_probe),
        number(costs.candidates_per_query),
        costs.bytes_per_fingerprint,
        show((costs.bytes_per_fingerprint * fingerprints as f64) as u64),
        time(costs.query_ns),
    )
}

/// Formats a count with three digits, or with all of them: `0.25`, `262,144`.
fn number(value: f64) -> String {
    // Counts of probes are whole numbers; matches per probe may be a millionth.
    if value >= 10.0 || value.fract() == 0.0 {
        grouped(value.round() as u64)
    } else if value >= 0.01 {
        format!("{value:.2}")
    } else {
        format!("{value:.0e}")
    }
}

fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_short() {
        let shown = [0.000_031, 0.25, 8.0, 262_144.0].map(number);
        assert_eq!(shown, ["3e-5", "0.25", "8", "262,144"]);
        let shown = [450.0, 2_340.0, 7.5e6, 3.2e9].map(time);
        assert_eq!(shown, ["450.00 ns", "2.34 us", "7.50 ms", "3.20 s"]);
    }

    #[test]
    fn constants_read_back() {
        let constants = CostConstants::default();
        let text = serde_json::to_string(&ConstantsFile(constants.clone())).unwrap_or_default();
        let back = serde_json::from_str::<ConstantsFile>(&text).map(|file| file.0);
        assert_eq!(back.ok(), Some(constants));
    }
}

//! `--preset`: its effect on the defaults of other options, and the check that files fit it.

use std::fmt::Display;

use clap::Arg;
use clap::builder::{OsStr, PossibleValue, PossibleValuesParser, TypedValueParser};
use lookalike::{Preset, Scheme};
use lookalike_batch::fingerprints::files::FingerprintSource;

use super::input::KnownFingerprints;
use crate::console::Console;
use crate::failure::Failure;
use crate::known_schemes::shingle_of;

/// Creates the parser for the name of a preset.
pub(crate) fn preset_name() -> impl TypedValueParser<Value = Preset> {
    let help = |preset| match preset {
        Preset::OneTopic => "Pages of one topic, which share words and templates",
        _ => "",
    };
    let names = Preset::ALL.map(|preset| PossibleValue::new(preset.name()).help(help(preset)));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Preset>())
}

/// Makes an option default to the value of the preset.
fn preset_value(argument: Arg, value: fn(Preset) -> &'static str) -> Arg {
    let values = Preset::ALL.map(|preset| {
        let is_named = OsStr::from(preset.name());
        ("preset", is_named, Some(value(preset)))
    });
    // A default and not a value: an option that the user gives wins, and its origin stays visible to `option_uses`.
    argument.default_value_ifs(values)
}

/// Makes `--shingle` default to that of `--preset`. For `mut_arg`.
pub(crate) fn preset_shingle(argument: Arg) -> Arg {
    preset_value(argument, Preset::shingle_text)
}

/// Makes `--sketch` default to that of `--preset`. For `mut_arg`.
pub(crate) fn preset_sketch(argument: Arg) -> Arg {
    preset_value(argument, Preset::sketch_text)
}

/// Makes `--distance` or `--radius` default to that of `--preset`. For `mut_arg`.
pub(crate) fn preset_distance(argument: Arg) -> Arg {
    preset_value(argument, Preset::distance_text)
}

/// Refuses files and indexes of fingerprints with another width or other features, as far as these are known before reading. Warns of a scheme that
/// is not known by its id.
pub(crate) fn ensure_preset_fits<'s>(
    preset: Preset,
    sources: impl IntoIterator<Item = &'s FingerprintSource>,
    console: &Console,
) -> Result<(), Failure> {
    let own = preset.scheme(Scheme::default());
    for source in sources {
        let known = KnownFingerprints::of(source)?;
        if let Some(bits) = known.bits.filter(|&bits| bits != preset.bits()) {
            let found = format!("of {bits} bits");
            return Err(preset_mismatch(preset, source, &found, &preset.bits()));
        }
        match known.scheme.map(|id| shingle_of(id, own.sketch)) {
            Some(Some(shingle)) if shingle != own.shingle => {
                let found = format!("over {shingle}");
                return Err(preset_mismatch(preset, source, &found, &own.shingle));
            }
            // An id is a hash, so a scheme that is not in the list of known ones cannot be told from its id.
            Some(None) => console.warn(&format!(
                "{}: the id of its scheme is none of those that are known: if its features are not {}, make it with `lookalike fingerprint \
                 --preset {preset}`",
                source.name(),
                own.shingle
            )),
            _ => {}
        }
    }
    Ok(())
}

fn preset_mismatch(
    preset: Preset,
    source: &FingerprintSource,
    found: &str,
    wanted: &dyn Display,
) -> Failure {
    Failure::Failed(format!(
        "{}: fingerprints {found}, and --preset {preset} is for {wanted}: make them with `lookalike fingerprint --preset {preset}`, or name a \
         --distance instead",
        source.name()
    ))
}

//! Arguments shared by several subcommands: inputs, features of texts, similarity, and use of the machine.

mod input;
mod input_lists;
mod preset;
mod run;
mod scheme;
mod similarity;
mod values;

pub(crate) use input::{
    BoilerplateArguments, ConvertArguments, FileArguments, HtmlArguments, InputArguments,
    KnownFingerprints, LossArguments, RecordArguments, RepeatedIdArguments, fingerprint_sources,
    store_settings,
};
pub(crate) use preset::{
    ensure_preset_fits, preset_distance, preset_name, preset_shingle, preset_sketch,
};
pub(crate) use run::RunArguments;
pub(crate) use scheme::{SchemeArguments, WordArguments, hash_key};
pub(crate) use similarity::{MethodArguments, ScopeArguments, SimilarityArguments, TestArguments};
pub(crate) use values::{
    command_line, ensure_resemblance, is_standard_output, output_format, output_path,
    positive_share, quoted, refuse_standard_streams, share, threads,
};

//! Remedies in terms of the command line: the libraries report causes, but do not know options.

use lookalike::terms::TermsFileError;
use lookalike_batch::fingerprints::FingerprintSettingsError;
use lookalike_batch::fingerprints::cluster::ClusterError;
use lookalike_batch::fingerprints::files::CodesError;
use lookalike_batch::overlap::{OverlapSettingsError, ServerName};
use lookalike_batch::{
    BatchError, BoundedSetting, CollectionArchiveError, CollectionError, FieldSetting,
    FolderRefusal, MissingField, SettingConflict, SettingsError,
};
use lookalike_corpus::{InputError, TableRowError};

use crate::option_style::OptionStyle;

/// Formats an error followed by its remedy, if there is one, for users of the command line.
pub(crate) fn with_remedy(error: &BatchError) -> String {
    with_remedy_in(error, OptionStyle::Command)
}

/// Works like [`with_remedy`], for readers who write options in this style.
pub(crate) fn with_remedy_in(error: &BatchError, style: OptionStyle) -> String {
    with(error, of_job(error, style))
}

/// Works like [`with_remedy`], for errors of a file of fingerprints.
#[cfg(feature = "service")]
pub(crate) fn codes_error_with_remedy(error: &CodesError) -> String {
    with(error, of_codes(error, OptionStyle::Command))
}

/// Works like [`with_remedy`], for errors of a table of terms.
pub(crate) fn terms_error_with_remedy(error: &TermsFileError) -> String {
    with(error, of_terms(error))
}

/// Returns the option of `lookalike client` that sets a field of a collection.
#[cfg(feature = "service")]
pub(crate) fn of_service_field(field: &str) -> Option<&'static str> {
    Some(match field {
        "terms" => "--terms FILE, made by `lookalike terms INPUT -o FILE`",
        "boilerplate" => {
            "--boilerplate FILE, made by `lookalike fingerprint INPUT --boilerplate site --boilerplate-lines FILE -o OUT`"
        }
        "equal" => "--equal NUMBER",
        "scheme" => "--scheme TEXT",
        _ => return None,
    })
}

/// Returns the remedy for skipped parts, by the name of their kind and the first of them.
pub(crate) fn of_skipped(kind: &str, first: &str) -> Option<&'static str> {
    match kind {
        "outside" => Some("--follow-links reads them"),
        "conversion" if first.contains("the PDF takes longer than") => {
            Some("--pdf-limit SECONDS lets a PDF take longer")
        }
        _ => None,
    }
}

pub(crate) fn with(error: &dyn std::error::Error, remedy: Option<String>) -> String {
    match remedy {
        Some(remedy) => format!("{error}: {remedy}"),
        None => error.to_string(),
    }
}

/// Formats a size as options accept it, rounded up.
fn mebibytes(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

fn split(style: OptionStyle) -> String {
    let against = style.name("against");
    format!("split the input (`dedup` with {against} compares a part with earlier ones)")
}

fn of_job(error: &BatchError, style: OptionStyle) -> Option<String> {
    let name = |option: &str| style.name(option);
    let memory = name("memory");
    Some(match error {
        BatchError::Input(error @ InputError::Unsupported { .. }) => {
            let skip = format!("{} skips such files", style.flag("skip-unreadable"));
            match of_named_file(error, style) {
                Some(remedy) => format!("{remedy}; {skip}"),
                None => skip,
            }
        }
        BatchError::Input(InputError::Copy { .. }) => other_temporary_folder(style),
        BatchError::Codes(error) => return of_codes(error, style),
        BatchError::Cluster(error) => return of_clusters(error, style),
        BatchError::Archive(error) => return of_archive(error, style),
        BatchError::Settings(error) => return of_settings(error, style),
        BatchError::Folder { reason, .. } => return of_folder(reason, style),
        BatchError::Collection(CollectionError::OtherBuild { reason, .. })
        | BatchError::OtherUnfinished { reason, .. } => {
            let anew = format!("run without {} to start again", name("resume"));
            match reason {
                FolderRefusal::OtherSettings { .. } => {
                    format!("repeat it with the same ones, or {anew}")
                }
                _ => anew,
            }
        }
        BatchError::NoField { setting, field, .. } => of_field(*setting, field, style),
        BatchError::Temporary { .. } => other_temporary_folder(style),
        BatchError::Result { cause, .. } if TableRowError::is_cause_of(cause) => {
            format!("use {}", style.with("output-format", "jsonl"))
        }
        BatchError::Result { .. } => format!(
            "check its permissions and the free space, then repeat the command with {}, which keeps what was finished, if anything was",
            style.flag("resume")
        ),
        BatchError::RepeatedId { .. } => format!(
            "give the records different ids, name another field with {}, or number them with {}",
            name("id"),
            style.with("repeated-ids", "number")
        ),
        BatchError::Strict(_) => format!(
            "repair the record, or run without {} to skip and count such records",
            name("strict")
        ),
        // A larger share of the records cannot help if nobody knows how many are missing.
        BatchError::Losses {
            is_uncounted: true, ..
        } => format!(
            "repair the input, or allow a number of records and files with {}",
            style.with("max-skipped", "N")
        ),
        BatchError::Losses { .. } => {
            format!(
                "repair the input, or allow more with {}",
                name("max-skipped")
            )
        }
        BatchError::NoText { .. } => {
            format!(
                "name the one that holds the text with {}",
                style.with("text", "FIELD")
            )
        }
        BatchError::TooMany => split(style),
        BatchError::ResumedInput { .. } => again(style),
        BatchError::Memory { least, .. } => {
            let least = mebibytes(*least);
            // The same for all commands, because not all of them can compare the parts afterwards.
            let threads = name("threads");
            format!(
                "raise {memory} to at least {least}, lower {threads} (each takes some MiB, and more memory lets in more of them), or split the input"
            )
        }
        BatchError::LongDocuments { least, fitting, .. } => {
            // One is rounded up and the other down, so that a user who follows the remedy succeeds.
            let (least, fitting) = (mebibytes(*least), fitting >> 20);
            format!(
                "raise {memory} to at least {least}, or lower {} to {fitting}M (longer documents are counted, and only their bytes \
                 are compared for equality)",
                name("max-document")
            )
        }
        // In this error and the next three, `least` is in MiB; above it is in bytes.
        BatchError::JoinMemory { least, .. } => format!(
            "raise {memory} to about {least}M (each of {} takes some MiB of it), swap F and Q if F is the smaller one, split Q and merge the lists of its parts \
             with `lookalike merge`, or use more shards for a self-join",
            name("threads")
        ),
        BatchError::SelfJoinMemory { least, .. } => format!(
            "raise {memory} to about {least}M (each of {} takes some MiB of it), or join it in shards ({}), each of which keeps only its share, and merge \
             their lists with `lookalike merge`",
            name("threads"),
            name("shard")
        ),
        BatchError::SketchMemory { least, .. } => {
            format!(
                "raise {memory} to at least {least}M (each of {} takes some MiB of it)",
                name("threads")
            )
        }
        BatchError::IndexMemory { least, .. } => {
            format!("raise {memory} to at least {least}M, or split the input")
        }
        _ => return None,
    })
}

/// Returns the remedy for the one file that a command is about: it cannot be skipped, but a command may convert it.
pub(crate) fn of_named_file(error: &InputError, style: OptionStyle) -> Option<String> {
    let InputError::Unsupported {
        is_convertible: true,
        ..
    } = error
    else {
        return None;
    };
    Some(format!(
        "{} names a command that converts such files to text",
        style.name("convert")
    ))
}

fn other_temporary_folder(style: OptionStyle) -> String {
    let tmp = style.name("tmp");
    format!("free some space, or name another directory with {tmp}")
}

fn again(style: OptionStyle) -> String {
    format!("start again with {}", style.flag("overwrite"))
}

fn of_field(setting: FieldSetting, field: &MissingField, style: OptionStyle) -> String {
    let option = style.name(match setting {
        FieldSetting::Id => "id",
        FieldSetting::Text => "text",
        FieldSetting::Fields => "fields",
        FieldSetting::Within => "within",
        FieldSetting::Across => "across",
        FieldSetting::DistanceFor => "distance-for",
        FieldSetting::Address => "address",
        // Not the name of a field: `--keep` lists rules, some of which name one.
        FieldSetting::Keep => return "name one that records have, or another rule".to_owned(),
    });
    match field {
        MissingField::Url => format!(
            "records need URLs in the field url, or as ids; without them, leave {option} out, or write '\\site' if a field has that name"
        ),
        MissingField::Named(_) | MissingField::Filled(_) => {
            format!("name one that records have with {option}, or leave it out")
        }
    }
}

fn of_folder(reason: &FolderRefusal, style: OptionStyle) -> Option<String> {
    let overwrite = style.flag("overwrite");
    Some(match reason {
        FolderRefusal::HoldsResults {
            is_resumable: true, ..
        } => format!(
            "choose another directory, finish that job with {}, or replace its results with {overwrite}",
            style.flag("resume")
        ),
        FolderRefusal::HoldsResults { .. } => {
            format!("choose another directory, or replace them with {overwrite}")
        }
        FolderRefusal::Finished => format!("replace its results with {overwrite}"),
        FolderRefusal::OtherInput | FolderRefusal::ChangedInput { .. } => again(style),
        FolderRefusal::OtherSettings { .. } => {
            format!("repeat it with the same ones, or {}", again(style))
        }
        // The messages of these say what to do. Listed here and below instead of `_`, so that a new variant is not forgotten.
        FolderRefusal::InUse
        | FolderRefusal::NoResults(_)
        | FolderRefusal::OtherCommand(_)
        | FolderRefusal::OutputInUse { .. }
        | FolderRefusal::OtherFile { .. } => return None,
    })
}

fn of_settings(error: &SettingsError, style: OptionStyle) -> Option<String> {
    Some(match error {
        SettingsError::OutOfRange { setting, value } => of_range(*setting, *value, style),
        SettingsError::Conflict(conflict) => of_conflict(*conflict, style),
        SettingsError::TooFewFunctions { .. } => format!(
            "raise {}, or use {}, which finds all",
            style.name("functions"),
            style.with("method", "allpairs")
        ),
        SettingsError::NoSite => format!(
            "use {} for pages of one site without URLs",
            style.with("boilerplate", "collection")
        ),
        SettingsError::NotParquet { .. } => {
            format!("use {}", style.with("output-format", "jsonl"))
        }
        SettingsError::NoTerms { .. } => format!(
            "make one with `lookalike terms`, and name it with {}",
            style.with("terms", "FILE")
        ),
        SettingsError::Overlap(error) => return of_overlap(error, style),
        SettingsError::Fingerprints(error) => return of_fingerprints(error, style),
        SettingsError::DistanceTooLarge { .. }
        | SettingsError::MoreThanAll { .. }
        | SettingsError::OtherSketch { .. }
        | SettingsError::TestNeedsTerms { .. }
        | SettingsError::Sketcher(_)
        | SettingsError::Terms(_) => return None,
    })
}

fn of_range(setting: BoundedSetting, value: f64, style: OptionStyle) -> String {
    let (reason, example) = match setting {
        BoundedSetting::Threshold => {
            let zero = match value == 0.0 {
                true => format!(
                    "; 0, which accepts every candidate, is for the methods with {} or {}",
                    style.name("distance"),
                    style.name("equal")
                ),
                false => String::new(),
            };
            let example = style.with("threshold", 0.8);
            return format!("resemblance is a share, such as {example}{zero}");
        }
        BoundedSetting::Lengths => (
            "it is the minimum length of the shorter text relative to the longer one",
            style.with("lengths", 0.5),
        ),
        BoundedSetting::Recall => (
            "it is the share of the pairs at the threshold that are found",
            style.with("recall", 0.999),
        ),
        BoundedSetting::Equal => ("candidates share something", style.with("equal", 2)),
        BoundedSetting::StopFeatures => ("a pair is two texts", style.with("stop-features", 1000)),
        BoundedSetting::BoilerplateShare => (
            "it is the least share of the pages of a site on which a line recurs",
            style.with("boilerplate-share", 0.1),
        ),
        BoundedSetting::MinShared => (
            "with less, every pair of documents would be listed; use 1 or more",
            style.with("min-shared", 2),
        ),
        BoundedSetting::MinContainment => (
            "it is the share of the chunks of a document that the other one has",
            style.with("min-containment", 0.5),
        ),
        BoundedSetting::PageShare => (
            "it is the share of the servers of a set that hold each of its pages",
            style.with("set-page-share", 0.8),
        ),
        BoundedSetting::ServerShare => (
            "it is the share of the pages of a set that each of its servers holds",
            style.with("set-server-share", 0.8),
        ),
    };
    format!("{reason}, such as {example}")
}

fn of_conflict(conflict: SettingConflict, style: OptionStyle) -> String {
    let name = |option: &str| style.name(option);
    match conflict {
        SettingConflict::TestsOfCopies => {
            format!("leave {} out, or name another method", name("and"))
        }
        SettingConflict::ScopeWithoutCategory => {
            format!("name one with {} or {}", name("within"), name("across"))
        }
        SettingConflict::SiteWithoutHenzinger => format!(
            "leave {} out, or use {}",
            name("distance-for"),
            style.with("method", "henzinger")
        ),
        SettingConflict::SiteBesideScope => format!(
            "leave {} out, or {} and {}: within a site, {} applies to all pairs; across sites, {} is the same rule",
            name("distance-for"),
            name("within"),
            name("across"),
            name("distance"),
            style.with("method", "supershingle")
        ),
        SettingConflict::StopFeaturesBesideScope => format!(
            "leave {} out, or {} and {}",
            name("stop-features"),
            name("within"),
            name("across")
        ),
        SettingConflict::StopFeaturesOfOtherMethods
        | SettingConflict::StopFeaturesBesideCollection => {
            format!("leave {} out", name("stop-features"))
        }
    }
}

fn of_overlap(error: &OverlapSettingsError, style: OptionStyle) -> Option<String> {
    let chunk = style.name("chunk");
    Some(match error {
        OverlapSettingsError::NoChunking => {
            format!("name one, such as {}", style.with("chunk", "lines:2"))
        }
        OverlapSettingsError::RepeatedChunking(_) => format!("name it once in {chunk}"),
        OverlapSettingsError::StrayChunking(_) => format!(
            "name it in {chunk}, too, or leave it out of {}",
            style.name("min-shared")
        ),
        OverlapSettingsError::ChunkingsOfDocuments => format!(
            "name one with {chunk}, and leave out {}",
            style.with("by", "server")
        ),
        OverlapSettingsError::ChunkingsOfRows => {
            format!(
                "name one with {chunk}, or a directory with {}",
                style.name("output")
            )
        }
        OverlapSettingsError::NoServer(ServerName::Path(depth)) => format!(
            "ids need more than {depth} component{}, separated by /: name fewer with {}",
            if *depth == 1 { "" } else { "s" },
            style.name("server")
        ),
        OverlapSettingsError::NoServer(ServerName::Field(_)) => format!(
            "name a field that records have with {}",
            style.with("server", "field:NAME")
        ),
        OverlapSettingsError::NoServer(_) => format!(
            "give records a field `url` or URLs as ids, or name what holds the server with {} or {}",
            style.with("server", "field:NAME"),
            style.with("server", "path:N")
        ),
        OverlapSettingsError::ServersOfTexts | OverlapSettingsError::UnknownDocument(_) => {
            return None;
        }
    })
}

fn of_fingerprints(error: &FingerprintSettingsError, style: OptionStyle) -> Option<String> {
    use FingerprintSettingsError as Error;
    let name = |option: &str| style.name(option);
    Some(match error {
        Error::IdsOfSome { .. } => format!(
            "index them separately, or leave out the ids with {}",
            style.flag("no-ids")
        ),
        Error::DesignOfOtherWidth { .. } => format!("leave {} out", name("design")),
        Error::NothingToCluster => format!(
            "name files of fingerprints, or pairs of `lookalike join` with {}",
            name("pairs")
        ),
        Error::NoOrder => format!(
            "name the files of fingerprints too, or use {}",
            style.with("keep", "id")
        ),
        Error::EqualOfFiles => format!(
            "with {}, name the files, and leave {} out",
            name("equal"),
            name("distance")
        ),
        Error::IndexOfFingerprints(_) => {
            format!("join files of sketches, or leave {} out", name("equal"))
        }
        Error::BeyondIndex { distance, .. } => {
            format!("build one with {}", style.with("distance", distance))
        }
        Error::FewerPlacesThanIndex { least, .. } => {
            format!("build one with {}", style.with("equal", least))
        }
        Error::OtherJob { .. } | Error::ChangedInputs => {
            format!("run without {} to start again", name("resume"))
        }
        Error::DistanceTooLarge { .. }
        | Error::Equal(_)
        | Error::Unstorable(_)
        | Error::NoFormat { .. }
        | Error::MixedIds(_)
        | Error::NoTables
        | Error::NoSketch
        | Error::StandardInputOnce
        | Error::StandardInputAgain
        | Error::SomeIndexes
        | Error::IndexAlone(_) => return None,
    })
}

fn of_codes(error: &CodesError, style: OptionStyle) -> Option<String> {
    let name = |option: &str| style.name(option);
    let (equal, sketch) = (name("equal"), name("sketch"));
    Some(match error {
        CodesError::OtherKind { .. } => format!("make both with the same {sketch}"),
        CodesError::Width { wanted, .. } => format!(
            "make them with {}",
            style.with("sketch", format_args!("simhash:{wanted}"))
        ),
        CodesError::Places { .. } => format!(
            "`lookalike join`, `cluster` and `index build` read them with {equal}, the number that must agree; everything else needs \
             fingerprints, made by `lookalike fingerprint` without {sketch}"
        ),
        CodesError::NoPlaces { .. } => format!(
            "use {} instead of {equal}, or make sketches with `lookalike fingerprint` and {}",
            name("distance"),
            style.with("sketch", "super-shingle:6x14")
        ),
        CodesError::Index { .. } => format!(
            "one of fingerprints takes the place of files of fingerprints in `index build`, and of F in `join`; one of sketches does so \
             with {equal}"
        ),
        CodesError::UnknownSketch { .. } => format!(
            "{equal} reads files of `lookalike fingerprint` with {sketch}, and raw little-endian numbers in files named .u64xN or \
             .u32xN"
        ),
        CodesError::Strict(_) => format!(
            "repair the line, or run without {} to skip and count such lines",
            name("strict")
        ),
        _ => return None,
    })
}

fn of_terms(error: &TermsFileError) -> Option<String> {
    let remedy = match error {
        TermsFileError::Magic => "make one with `lookalike terms INPUT -o FILE`",
        TermsFileError::Version { .. } => "make it again, or use the build that made it",
        _ => return None,
    };
    Some(remedy.to_owned())
}

fn of_clusters(error: &ClusterError, style: OptionStyle) -> Option<String> {
    Some(match error {
        ClusterError::Beyond { most, .. } => format!(
            "allow that many with {}, or join again with {}",
            style.name("distance"),
            style.with("distance", most)
        ),
        ClusterError::NoTexts { .. } => format!(
            "name the files that the fingerprints were made from, with the same {}",
            style.name("id")
        ),
        ClusterError::Memory { least, .. } => {
            let [memory, threads] = ["memory", "threads"].map(|option| style.name(option));
            format!("raise {memory} to about {least}M (each of {threads} takes some MiB of it)")
        }
        _ => return None,
    })
}

fn of_archive(error: &CollectionArchiveError, style: OptionStyle) -> Option<String> {
    let memory = style.name("memory");
    Some(match error {
        CollectionArchiveError::BuildMemory { least, .. } => format!(
            "raise {memory} to at least {}, or choose a smaller {}",
            mebibytes(*least),
            style.name("block")
        ),
        CollectionArchiveError::ReadMemory { needed, .. } => {
            format!("raise {memory} to {}", mebibytes(*needed))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use lookalike_batch::{JobSettings, Method, PairScope};

    use super::*;

    fn both(error: impl Into<BatchError>) -> [String; 2] {
        let error = error.into();
        [OptionStyle::Command, OptionStyle::Keyword].map(|style| with_remedy_in(&error, style))
    }

    #[test]
    fn a_field_named_site_had_to_be_guessed() {
        let told = of_field(
            FieldSetting::Within,
            &MissingField::Url,
            OptionStyle::Command,
        );
        assert!(told.contains("write '\\site' if"), "{told}");
    }

    #[test]
    fn a_remedy_names_an_option_as_its_reader_writes_it() {
        let [command, call] = both(OverlapSettingsError::NoServer(ServerName::Url));
        assert!(command.contains("--server field:NAME"), "{command}");
        assert!(call.contains("server=\"field:NAME\""), "{call}");
        let [command, call] = both(SettingsError::NoSite);
        assert!(
            command.ends_with("use --boilerplate collection for pages of one site without URLs"),
            "{command}"
        );
        assert!(call.contains("boilerplate=\"collection\""), "{call}");
        assert!(
            ![&call, &both(BatchError::TooMany)[1]]
                .iter()
                .any(|said| said.contains("--"))
        );
    }

    #[test]
    fn settings_that_contradict_each_other_are_told_with_the_option_to_leave_out() {
        let henzinger = JobSettings::of_method(Method::Henzinger);
        let site = henzinger.distance_for(lookalike_batch::DistanceFor::Site);
        for (settings, words) in [
            (
                JobSettings::of_method(Method::ModP).stop_features(Some(1)),
                ["stop_features 1 is not at least 2", "--stop-features"],
            ),
            (
                site.clone().scope(PairScope::Within),
                ["distance_for site distinguishes", "--across"],
            ),
            (
                site.method(Method::SuperShingle),
                ["only to the method henzinger", "--method henzinger"],
            ),
            (
                JobSettings::default().threshold(0.0),
                [
                    "threshold 0 is not above 0",
                    "for the methods with --distance or --equal",
                ],
            ),
        ] {
            let said = with_remedy(&settings.check().expect_err("contradictions"));
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
    }
}

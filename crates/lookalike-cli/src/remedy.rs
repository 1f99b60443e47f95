//! Remedies in terms of the command line: the libraries report causes, but do not know options.
//!
//! Options are written as [`OptionStyle::write`] reads them: `--name`, or `--name=VALUE`.

use std::io::{self, ErrorKind};

use lookalike::terms::TermsFileError;
use lookalike_batch::fingerprints::FingerprintSettingsError;
use lookalike_batch::fingerprints::cluster::ClusterError;
use lookalike_batch::fingerprints::files::CodesError;
use lookalike_batch::overlap::{OverlapSettingsError, ServerName};
use lookalike_batch::{
    BatchError, BoundedSetting, CollectionArchiveError, CollectionError, FieldSetting,
    FolderRefusal, MissingField, SettingConflict, SettingsError,
};
use lookalike_corpus::{InputError, ReadError, TableRowError};
use rustix::io::Errno;

use crate::option_style::OptionStyle;

/// Formats an error followed by its remedy, if there is one, for users of the command line.
pub(crate) fn with_remedy(error: &BatchError) -> String {
    with_remedy_in(error, OptionStyle::Command)
}

/// Works like [`with_remedy`], for readers who write options in this style.
pub(crate) fn with_remedy_in(error: &BatchError, style: OptionStyle) -> String {
    with(error, of_job(error), style)
}

/// Works like [`with_remedy`], for errors of a file of fingerprints.
#[cfg(feature = "service")]
pub(crate) fn codes_error_with_remedy(error: &CodesError) -> String {
    with(error, of_codes(error), OptionStyle::Command)
}

/// Works like [`with_remedy`], for errors of a table of terms.
pub(crate) fn terms_error_with_remedy(error: &TermsFileError) -> String {
    let remedy = match error {
        TermsFileError::Magic => "make one with `lookalike terms INPUT -o FILE`",
        TermsFileError::Version { .. } => "make it again, or use the build that made it",
        _ => return error.to_string(),
    };
    format!("{error}: {remedy}")
}

/// Works like [`with_remedy`], for the one file that a command is about: it cannot be skipped, but a command may convert it.
pub(crate) fn file_error_with_remedy(error: &InputError) -> String {
    with(error, of_convertible(error), OptionStyle::Command)
}

/// Returns the option of `lookalike client` that sets a field of a collection.
#[cfg(feature = "service")]
pub(crate) fn of_service_field(field: &str) -> Option<&'static str> {
    Some(match field {
        "terms" => "--terms FILE, made by `lookalike terms INPUT -o FILE`",
        "boilerplate" => {
            "--boilerplate-lines FILE, made by `lookalike fingerprint INPUT --boilerplate site --boilerplate-lines FILE -o OUT`"
        }
        "equal" => "--equal NUMBER",
        "scheme" => "--scheme TEXT",
        _ => return None,
    })
}

/// Returns what a user of `lookalike client` can do about a refusal with this code, where the service speaks of requests.
#[cfg(feature = "service")]
pub(crate) fn of_service_code(code: &str) -> Option<&'static str> {
    Some(match code {
        "key" => "name the file of a key that the service knows with --key-file",
        "no-collection" => {
            "`lookalike client show` lists the collections, and `lookalike client create` makes one"
        }
        "no-document" => "it was never inserted, was deleted, or has expired",
        "no-paragraphs" => "use a collection made with --keep paragraphs",
        "no-text" => "use a collection made with --keep texts",
        "no-snapshots" => "start the service with --snapshots DIR",
        "other-scheme" => {
            "make the sketches with the scheme that `lookalike client show` prints for the collection; texts of an export can be inserted: `lookalike client insert`"
        }
        _ => return None,
    })
}

/// Words of the message that a text is a list, in which no field can be named.
const TEXT_LIST: &str = "the text field holds an array";

/// Words of the message that a PDF takes more time than its size allows.
const SLOW_PDF: &str = "the PDF takes longer than";

/// Returns the remedy for skipped parts, by the name of their kind and the first of them.
pub(crate) fn of_skipped(kind: &str, first: &str) -> Option<&'static str> {
    match kind {
        "outside" => Some("--follow-links reads them"),
        "broken" if first.contains("a quote that begins a field") => {
            Some("--no-quotes reads each line as a row")
        }
        "swallowed-rows" => Some("rows may be missing: --no-quotes reads each line as a row"),
        "wrong-type" if first.contains(TEXT_LIST) => {
            Some("join the list to one string, or name another field with --text")
        }
        "wrong-type" if first.contains(" field holds ") => {
            Some("--id and --text can name a field within it, as in --id id.name")
        }
        "conversion" if first.contains(SLOW_PDF) => {
            Some("--pdf-limit SECONDS lets a PDF take longer")
        }
        _ => None,
    }
}

fn with(error: &dyn std::error::Error, remedy: Option<String>, style: OptionStyle) -> String {
    match remedy {
        Some(remedy) => format!("{error}: {}", style.write(&remedy)),
        None => error.to_string(),
    }
}

/// Formats a size as options accept it, rounded up.
fn mebibytes(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

/// The remedy for a temporary directory that cannot hold more.
const OTHER_TEMPORARY_FOLDER: &str = "free some space, or name another directory with --tmp";
/// The remedy for a job that is not the one to resume.
const AGAIN: &str = "start again in another directory, or with --overwrite";

/// The remedy for a thread that the system refuses.
pub(crate) const MORE_THREADS: &str = "raise the limit on threads (ulimit -u, TasksMax= of systemd, the number of processes of a container), or lower --threads";
/// The remedy for too many open files.
const MORE_FILES: &str = "raise the limit on open files (ulimit -n), or lower --threads";

/// Returns true if the process or the system has too many open files.
fn is_too_many_files(error: &BatchError) -> bool {
    let cause = match error {
        BatchError::Temporary { cause, .. }
        | BatchError::Result { cause, .. }
        | BatchError::Read(ReadError::Io { cause, .. }) => cause,
        BatchError::Input(error) => match error.without_place() {
            InputError::Io { cause, .. } => cause,
            _ => return false,
        },
        _ => return false,
    };
    let code = cause.raw_os_error().map(Errno::from_raw_os_error);
    code.is_some_and(|code| [Errno::MFILE, Errno::NFILE].contains(&code))
}

fn of_job(error: &BatchError) -> Option<String> {
    if is_too_many_files(error) {
        return Some(MORE_FILES.to_owned());
    }
    let remedy = match error {
        BatchError::Thread(_) => MORE_THREADS,
        BatchError::Input(error) => return of_input(error),
        BatchError::Codes(error) => return of_codes(error),
        BatchError::Cluster(error) => return of_clusters(error),
        BatchError::Archive(error) => return of_archive(error),
        BatchError::Settings(error) => return of_settings(error),
        BatchError::Folder { reason, .. } => of_folder(reason)?,
        BatchError::Collection(CollectionError::OtherBuild { reason, .. })
        | BatchError::OtherUnfinished { reason, .. } => match reason {
            FolderRefusal::OtherSettings { .. } => {
                "repeat it with the same ones, or run without --resume to start again"
            }
            _ => "run without --resume to start again",
        },
        BatchError::NoField { setting, field, .. } => return Some(of_field(*setting, field)),
        BatchError::Temporary { .. } => OTHER_TEMPORARY_FOLDER,
        BatchError::Result { cause, .. } => of_result(cause),
        BatchError::RepeatedId { .. } => {
            "give the records different ids, name another field with --id, or number them with --repeated-ids=number"
        }
        BatchError::Strict(first) if first.contains(SLOW_PDF) => {
            "allow a PDF more time with --pdf-limit=SECONDS, or run without --strict to skip and count such records"
        }
        BatchError::Strict(_) => {
            "repair the record, or run without --strict to skip and count such records"
        }
        // A larger share of the records cannot help if nobody knows how many are missing.
        BatchError::Losses {
            is_uncounted: true, ..
        } => "repair the input, or allow a number of records and files with --max-skipped=N",
        BatchError::Losses { .. } => "repair the input, or allow more with --max-skipped",
        BatchError::WrongTypes { first, .. } if first.contains(TEXT_LIST) => {
            "name another field with --text, or join the list, such as that of messages, to one string first"
        }
        BatchError::WrongTypes { .. } => {
            "name another field with --id or --text, or one within it, as in --id=id.name"
        }
        BatchError::NoText { .. } => "name the one that holds the text with --text=FIELD",
        BatchError::TooMany => {
            "split the input (`dedup` with --against compares a part with earlier ones)"
        }
        BatchError::ResumedInput { .. } => AGAIN,
        _ => return of_memory(error),
    };
    Some(remedy.to_owned())
}

fn of_input(error: &InputError) -> Option<String> {
    let remedy = match error.without_place() {
        InputError::Unsupported { .. } => {
            let skip = "skip such files with --skip-unreadable";
            return Some(match of_convertible(error) {
                Some(remedy) => format!("{remedy}; {skip}"),
                None => skip.to_owned(),
            });
        }
        InputError::Empty {
            first: Some(first), ..
        } if first.contains("which is not followed") => "--follow-links reads them",
        InputError::Io { cause, .. } if cause.kind() == ErrorKind::PermissionDenied => {
            "check its permissions, or skip such files with --skip-unreadable"
        }
        InputError::Copy { .. } => OTHER_TEMPORARY_FOLDER,
        _ => return None,
    };
    Some(remedy.to_owned())
}

/// Returns the remedy for results that cannot be written.
fn of_result(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if TableRowError::is_cause_of(cause) => "use --output-format=jsonl",
        ErrorKind::PermissionDenied => {
            "check its permissions, or choose another place with --output"
        }
        _ => {
            "check its permissions and the free space, then repeat the command with --resume, which keeps what was finished, if anything was"
        }
    }
}

/// Returns the remedy for a job that needs more memory than its limit allows.
fn of_memory(error: &BatchError) -> Option<String> {
    Some(match error {
        BatchError::Memory { least, .. } => {
            let least = mebibytes(*least);
            // The same for all commands, because not all of them can compare the parts afterwards.
            format!(
                "raise --memory to at least {least}, lower --threads (each takes some MiB, and more memory lets in more of them), or split the input"
            )
        }
        BatchError::LongDocuments { least, fitting, .. } => {
            // One is rounded up and the other down, so that a user who follows the remedy succeeds.
            let (least, fitting) = (mebibytes(*least), fitting >> 20);
            format!(
                "raise --memory to at least {least}, lower --threads (each takes some MiB), or lower --max-document to {fitting}M (longer \
                 documents are counted, and only their bytes are compared for equality)"
            )
        }
        // In this error and the next three, `least` is in MiB; above it is in bytes.
        BatchError::JoinMemory { least, .. } => format!(
            "raise --memory to about {least}M (each of --threads takes some MiB of it), swap F and Q if F is the smaller one, split Q and merge the lists of its parts \
             with `lookalike merge`, or use more shards for a self-join"
        ),
        BatchError::SelfJoinMemory { least, .. } => format!(
            "raise --memory to about {least}M (each of --threads takes some MiB of it), or join it in shards (--shard), each of which keeps only its share, and merge \
             their lists with `lookalike merge`"
        ),
        BatchError::SketchMemory { least, .. } => {
            format!("raise --memory to at least {least}M (each of --threads takes some MiB of it)")
        }
        BatchError::IndexMemory { least, .. } => {
            format!("raise --memory to at least {least}M, or split the input")
        }
        _ => return None,
    })
}

fn of_convertible(error: &InputError) -> Option<String> {
    let InputError::Unsupported {
        is_convertible: true,
        ..
    } = error.without_place()
    else {
        return None;
    };
    Some("--convert names a command that converts such files to text".to_owned())
}

fn of_field(setting: FieldSetting, field: &MissingField) -> String {
    let option = match setting {
        FieldSetting::Id => "--id",
        FieldSetting::Text => "--text",
        FieldSetting::Fields => "--fields",
        FieldSetting::Within => "--within",
        FieldSetting::Across => "--across",
        FieldSetting::DistanceFor => "--distance-for",
        FieldSetting::Address => "--address",
        // Not the name of a field: `--keep` lists rules, some of which name one.
        FieldSetting::Keep => return "name one that records have, or another rule".to_owned(),
    };
    match field {
        MissingField::Url => format!(
            "records need URLs in the field url, or as ids; without them, leave {option} out, or write '\\site' if a field has that name"
        ),
        MissingField::Named(_) | MissingField::Filled(_) => {
            format!("name one that records have with {option}, or leave it out")
        }
    }
}

fn of_folder(reason: &FolderRefusal) -> Option<&'static str> {
    Some(match reason {
        FolderRefusal::HoldsResults {
            is_resumable: true, ..
        } => {
            "choose another directory, finish that job with --resume, or replace its results with --overwrite"
        }
        FolderRefusal::HoldsResults { .. } => {
            "choose another directory, or replace them with --overwrite"
        }
        FolderRefusal::UnlistedAddition => {
            "repeat the command of that job, with its version, options and inputs, and --resume; if that is not possible, choose another directory"
        }
        FolderRefusal::Finished => "replace its results with --overwrite",
        FolderRefusal::OtherInput | FolderRefusal::ChangedInput { .. } => AGAIN,
        FolderRefusal::OtherSettings { .. } => {
            "repeat it with the same ones, or start again in another directory or with --overwrite"
        }
        // The messages of these say what to do. Listed here and below instead of `_`, so that a new variant is not forgotten.
        FolderRefusal::InUse
        | FolderRefusal::NoResults(_)
        | FolderRefusal::OtherCommand(_)
        | FolderRefusal::OutputInUse { .. }
        | FolderRefusal::OtherFile { .. } => return None,
    })
}

fn of_settings(error: &SettingsError) -> Option<String> {
    let remedy = match error {
        SettingsError::OutOfRange { setting, value } => return Some(of_range(*setting, *value)),
        SettingsError::Conflict(conflict) => of_conflict(*conflict),
        SettingsError::TooFewFunctions { .. } => {
            "raise --functions, or use --method=allpairs, which finds all"
        }
        SettingsError::NoSite => "use --boilerplate=collection for pages of one site without URLs",
        SettingsError::NotParquet { .. } => "use --output-format=jsonl",
        SettingsError::NoTerms { .. } => {
            "make one with `lookalike terms`, and name it with --terms=FILE"
        }
        SettingsError::Overlap(error) => return of_overlap(error),
        SettingsError::Fingerprints(error) => return of_fingerprints(error),
        SettingsError::DistanceTooLarge { .. }
        | SettingsError::MoreThanAll { .. }
        | SettingsError::OtherSketch { .. }
        | SettingsError::TestNeedsTerms { .. }
        | SettingsError::Sketcher(_)
        | SettingsError::Terms(_) => return None,
    };
    Some(remedy.to_owned())
}

fn of_range(setting: BoundedSetting, value: f64) -> String {
    let remedy = match setting {
        BoundedSetting::Threshold if value == 0.0 => {
            "resemblance is a share, such as --threshold=0.8; 0, which accepts every candidate, is for the methods with --distance or --equal, \
             and for a further test (--and)"
        }
        BoundedSetting::Threshold => "resemblance is a share, such as --threshold=0.8",
        BoundedSetting::Lengths => {
            "it is the minimum length of the shorter text relative to the longer one, such as --lengths=0.5"
        }
        BoundedSetting::Recall => {
            "it is the share of the pairs at the threshold that are found, such as --recall=0.999"
        }
        BoundedSetting::Equal => "candidates share something, such as --equal=2",
        BoundedSetting::StopFeatures => "a pair is two texts, such as --stop-features=1000",
        BoundedSetting::BoilerplateShare => {
            "it is the least share of the pages of a site on which a line recurs, such as --boilerplate-share=0.1"
        }
        BoundedSetting::MinShared => {
            "with less, every pair of documents would be listed; use 1 or more, such as --min-shared=2"
        }
        BoundedSetting::MinContainment => {
            "it is the share of the chunks of a document that the other one has, such as --min-containment=0.5"
        }
        BoundedSetting::PageShare => {
            "it is the share of the servers of a set that hold each of its pages, such as --set-page-share=0.8"
        }
        BoundedSetting::ServerShare => {
            "it is the share of the pages of a set that each of its servers holds, such as --set-server-share=0.8"
        }
    };
    remedy.to_owned()
}

fn of_conflict(conflict: SettingConflict) -> &'static str {
    match conflict {
        SettingConflict::TestsOfCopies => "leave --and out, or name another method",
        SettingConflict::ScopeWithoutCategory => "name one with --within or --across",
        SettingConflict::SiteWithoutHenzinger => {
            "leave --distance-for out, or use --method=henzinger"
        }
        SettingConflict::SiteBesideScope => {
            "leave --distance-for out, or --within and --across: within a site, --distance applies to all pairs; across sites, \
             --method=super-shingle is the same rule"
        }
        SettingConflict::StopFeaturesBesideScope => {
            "leave --stop-features out, or --within and --across"
        }
        SettingConflict::StopFeaturesOfOtherMethods
        | SettingConflict::StopFeaturesBesideCollection => "leave --stop-features out",
        // Each option of the command sets both.
        SettingConflict::KeepFieldNotRead
        | SettingConflict::OtherHtml
        | SettingConflict::OtherFields => "please report this as a bug",
    }
}

fn of_overlap(error: &OverlapSettingsError) -> Option<String> {
    let remedy = match error {
        OverlapSettingsError::NoChunking => "name one, such as --chunk=lines:2",
        OverlapSettingsError::RepeatedChunking(_) => "name it once in --chunk",
        OverlapSettingsError::StrayChunking(_) => {
            "name it in --chunk, too, or leave it out of --min-shared"
        }
        OverlapSettingsError::ChunkingsOfDocuments => {
            "name one with --chunk, and leave out --by=server"
        }
        OverlapSettingsError::ChunkingsOfRows => {
            "name one with --chunk, or a directory with --output"
        }
        OverlapSettingsError::NoServer(ServerName::Path(depth)) => {
            let ending = if *depth == 1 { "" } else { "s" };
            return Some(format!(
                "ids need more than {depth} component{ending}, separated by /: name fewer with --server"
            ));
        }
        OverlapSettingsError::NoServer(ServerName::Field(_)) => {
            "name a field that records have with --server=field:NAME"
        }
        OverlapSettingsError::NoServer(_) => {
            "give records a field `url` or URLs as ids, or name what holds the server with --server=field:NAME or --server=path:N"
        }
        OverlapSettingsError::ServersOfTexts | OverlapSettingsError::UnknownDocument(_) => {
            return None;
        }
    };
    Some(remedy.to_owned())
}

fn of_fingerprints(error: &FingerprintSettingsError) -> Option<String> {
    use FingerprintSettingsError as Error;
    let remedy = match error {
        Error::IdsOfSome { .. } => "index them separately, or leave out the ids with --no-ids",
        Error::DesignOfOtherWidth { .. } => "leave --design out",
        Error::NothingToCluster => {
            "name files of fingerprints, or pairs of `lookalike join` with --pairs"
        }
        Error::NoOrder => "name the files of fingerprints too, or use --keep=id",
        Error::EqualOfFiles => "with --equal, name the files, and leave --distance out",
        Error::IndexOfFingerprints(_) => "join files of sketches, or leave --equal out",
        Error::BeyondIndex { distance, .. } => {
            return Some(format!("build one with --distance={distance}"));
        }
        Error::FewerPlacesThanIndex { least, .. } => {
            return Some(format!("build one with --equal={least}"));
        }
        Error::OtherJob { .. } | Error::ChangedInputs => "run without --resume to start again",
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
    };
    Some(remedy.to_owned())
}

fn of_codes(error: &CodesError) -> Option<String> {
    let remedy = match error {
        CodesError::OtherKind { .. } => "make both with the same --sketch",
        CodesError::Width { wanted, .. } => {
            return Some(format!("make them with --sketch=simhash:{wanted}"));
        }
        CodesError::Places { .. } => {
            "`lookalike join`, `cluster` and `index build` read them with --equal, the number that must agree; everything else needs \
             fingerprints, made by `lookalike fingerprint` without --sketch"
        }
        CodesError::NoPlaces { .. } => {
            "use --distance instead of --equal, or make sketches with `lookalike fingerprint` and --sketch=super-shingle:6x14"
        }
        CodesError::Index { .. } => {
            "one of fingerprints takes the place of files of fingerprints in `index build`, and of F, not of Q, in `join` (--queries names \
             Q); one of sketches does so with --equal"
        }
        CodesError::UnknownSketch { .. } => {
            "--equal reads files of `lookalike fingerprint` with --sketch, and raw little-endian numbers in files named .u64xN or \
             .u32xN"
        }
        CodesError::Strict(_) => {
            "repair the line, or run without --strict to skip and count such lines"
        }
        _ => return None,
    };
    Some(remedy.to_owned())
}

fn of_clusters(error: &ClusterError) -> Option<String> {
    Some(match error {
        ClusterError::Beyond { most, .. } => {
            format!("allow that many with --distance, or join again with --distance={most}")
        }
        ClusterError::OfTexts { .. } => {
            "name the pairs alone and add --components; `lookalike dedup` decides by similarity, from the documents".to_owned()
        }
        ClusterError::NoTexts { .. } => {
            "name the files that the fingerprints were made from, with the same --id".to_owned()
        }
        ClusterError::Memory { least, .. } => {
            format!("raise --memory to about {least}M (each of --threads takes some MiB of it)")
        }
        _ => return None,
    })
}

fn of_archive(error: &CollectionArchiveError) -> Option<String> {
    Some(match error {
        CollectionArchiveError::BuildMemory { least, .. } => format!(
            "raise --memory to at least {}, or choose a smaller --block",
            mebibytes(*least)
        ),
        CollectionArchiveError::Inexact { .. } => {
            "--exclude=GLOB leaves out files of a folder".to_owned()
        }
        CollectionArchiveError::ReadMemory { needed, .. } => {
            format!("raise --memory to {}", mebibytes(*needed))
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
        let told = of_field(FieldSetting::Within, &MissingField::Url);
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
    fn a_strict_job_did_not_say_how_to_allow_a_slow_pdf_more_time() {
        let slow = "a.pdf: the PDF takes longer than 5 s for its 9 bytes".to_owned();
        let [command, call] = both(BatchError::Strict(slow));
        assert!(
            command.contains("with --pdf-limit SECONDS, or"),
            "{command}"
        );
        assert!(call.contains("with pdf_limit=SECONDS, or"), "{call}");
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
                    "for the methods with --distance or --equal, and for a further test",
                ],
            ),
        ] {
            let said = with_remedy(&settings.check().expect_err("contradictions"));
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
    }
}

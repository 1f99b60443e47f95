//! Errors for settings of fingerprint jobs that are invalid, and for files that do not go together.

use std::path::PathBuf;

use lookalike::scheme::Sketch;

use super::files::SketchKind;
use super::sketches::min_equal::MinEqualError;

/// Reason why fingerprints cannot be written, indexed, joined or clustered under the settings.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintSettingsError {
    /// The distance is larger than joins support.
    #[error("distance {distance} is too large: fingerprints are compared up to {most} bits")]
    DistanceTooLarge {
        /// The requested distance.
        distance: u32,
        /// The largest supported distance.
        most: u32,
    },
    /// The number of equal places does not suit the sketches.
    #[error(transparent)]
    Equal(#[from] MinEqualError),
    /// The sketch cannot be stored in files.
    #[error(
        "{0} cannot be stored in files: use simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N"
    )]
    Unstorable(Sketch),
    /// The file name implies no format that holds such sketches.
    #[error(
        "{path}: a file of this name cannot hold {kind}: name the file .jsonl, .lkfp (a fingerprint file) or .{ending} (raw numbers), \
         each also with .gz or .zst; or {others}",
        path = path.display(),
        others = if ending == "u64" { ".parquet or .lkar (an archive)" } else { ".parquet" }
    )]
    NoFormat {
        /// Path of the file.
        path: PathBuf,
        /// Kind of the sketches.
        kind: SketchKind,
        /// Ending of the name of a file with these sketches as raw numbers.
        ending: String,
    },
    /// Fingerprints with and without ids would go to one file.
    #[error(
        "{path}: some fingerprints have ids and others have none: write them to different files",
        path = .0.display()
    )]
    MixedIds(PathBuf),
    /// Files with and without ids are given for one index.
    #[error("{with} has ids and {without} has none")]
    IdsOfSome {
        /// Name of a file with ids.
        with: String,
        /// Name of a file without ids.
        without: String,
    },
    /// The design is for fingerprints of another width.
    #[error("the design {design} is for {bits} bits, and the fingerprints have {found}")]
    DesignOfOtherWidth {
        /// Name of the design.
        design: String,
        /// Bits that the design is for.
        bits: u32,
        /// Bits of the fingerprints.
        found: u32,
    },
    /// An index without tables is requested.
    #[error("an index has at least one table, and the largest number of tables is 0")]
    NoTables,
    /// The inputs have no sketch, so the number of places is unknown.
    #[error(
        "the inputs hold no sketch, and no header says how many places one has: give a fingerprint file (.lkfp), whose header does"
    )]
    NoSketch,
    /// There are neither fingerprints nor pairs.
    #[error("nothing to cluster: neither fingerprints nor pairs are given")]
    NothingToCluster,
    /// Standard input is given although fingerprints are read more than once.
    #[error(
        "fingerprints are read more than once, and standard input can be read only once: save them to a file"
    )]
    StandardInputOnce,
    /// Standard input is given for two inputs.
    #[error(
        "standard input is named more than once, and can be read only once: put the others into files"
    )]
    StandardInputAgain,
    /// The first or the last document should survive, but pairs have no order.
    #[error("the rule for survivors needs an order of documents, and pairs have none")]
    NoOrder,
    /// A number of equal places is given without files of sketches, or together with a distance.
    #[error("equal places need files of sketches and cannot be combined with a distance")]
    EqualOfFiles,
    /// Indexes and files of fingerprints are mixed.
    #[error(
        "some of F are indexes and others are not: join them in two runs, and merge the lists with `lookalike merge`"
    )]
    SomeIndexes,
    /// An index is given without queries.
    #[error(
        "{0}: an index cannot be joined with itself: name the fingerprints that it was built from"
    )]
    IndexAlone(String),
    /// An index of fingerprints is given although places must be equal.
    #[error("{0}: an index of fingerprints cannot be joined by equal places")]
    IndexOfFingerprints(String),
    /// The distance is larger than the index supports.
    #[error("{index}: the index was built for distances up to {built}, not {distance}")]
    BeyondIndex {
        /// Name of the index.
        index: String,
        /// Largest distance that it supports.
        built: u32,
        /// The requested distance.
        distance: u32,
    },
    /// Fewer equal places are requested than the index supports.
    #[error("{index}: the index was built for at least {built} equal places, not {least}")]
    FewerPlacesThanIndex {
        /// Name of the index.
        index: String,
        /// Minimum number of equal places that it supports.
        built: usize,
        /// The requested number.
        least: usize,
    },
    /// The folder has an interrupted job with other inputs or settings, or of another version.
    #[error("{folder}: an interrupted {job} with other inputs or settings, or of another version", folder = folder.display())]
    OtherJob {
        /// Path of the folder.
        folder: PathBuf,
        /// Kind of job, such as `build`.
        job: &'static str,
    },
    /// The inputs have changed since the join was interrupted.
    #[error("the inputs have changed since the join was interrupted")]
    ChangedInputs,
}

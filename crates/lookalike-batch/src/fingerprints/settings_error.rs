//! Settings of jobs over fingerprints that mean nothing, and files that do not go together.

use std::path::PathBuf;

use lookalike::scheme::Sketch;

use super::sketches::least_equal::LeastEqualError;

/// Settings under which fingerprints cannot be written, indexed, joined or clustered.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintSettingsError {
    /// A distance that no join takes.
    #[error(
        "distance {distance} is more than the {most} bits up to which fingerprints are compared"
    )]
    DistanceTooLarge {
        /// The distance.
        distance: u32,
        /// The largest.
        most: u32,
    },
    /// A number of equal places that the sketches do not have.
    #[error(transparent)]
    Equal(#[from] LeastEqualError),
    /// A sketch that no file holds.
    #[error(
        "{0} cannot be stored in files: use simhash:64 (or 32 or 128), super-shingle:GxR or minhash:N"
    )]
    Unstorable(Sketch),
    /// A file name that matches no format.
    #[error(
        "{path}: the name matches no format: name the file .jsonl, .lkfp (a fingerprint file) or .u64 (raw numbers), \
         each also with .gz or .zst, .parquet, or .lkar (an archive); of 32 or 128 bits, .u32 or .u128",
        path = .0.display()
    )]
    UnknownFormat(PathBuf),
    /// A file name that stands for fingerprints of another width.
    #[error(
        "{path}: a file of this name holds fingerprints of {holds} bits, and these have {bits}: name the file .lkfp, .jsonl, \
         .parquet or .u{bits}",
        path = path.display()
    )]
    FormatOfOtherWidth {
        /// The file.
        path: PathBuf,
        /// Bits of what it holds.
        holds: u32,
        /// Bits of the fingerprints.
        bits: u32,
    },
    /// A file name that stands for no such sketches.
    #[error(
        "{path}: a file of this name cannot hold {shape}: name the file .jsonl, .lkfp (a fingerprint file) or .{ending} (raw numbers), \
         each also with .gz or .zst, or .parquet",
        path = path.display()
    )]
    FormatOfOtherShape {
        /// The file.
        path: PathBuf,
        /// The sketches in words.
        shape: String,
        /// Ending of a file of their raw numbers.
        ending: String,
    },
    /// Fingerprints with ids and without for one file.
    #[error(
        "{path}: some fingerprints have ids and others have none: write them to different files",
        path = .0.display()
    )]
    MixedIds(PathBuf),
    /// Files with ids and without for one index.
    #[error("{with} has ids and {without} has none")]
    IdsOfSome {
        /// A file with ids.
        with: String,
        /// A file without.
        without: String,
    },
    /// A design for fingerprints of another width.
    #[error("the design {design} is for {bits} bits, and the fingerprints have {found}")]
    DesignOfOtherWidth {
        /// Name of the design.
        design: String,
        /// Bits that it is for.
        bits: u32,
        /// Bits of the fingerprints.
        found: u32,
    },
    /// Nothing from which the places of a sketch are known.
    #[error(
        "the inputs hold no sketch, and none tells how many places one has: give a fingerprint file (.lkfp), whose header does"
    )]
    NoSketch,
    /// Neither fingerprints nor pairs.
    #[error("nothing to cluster: neither fingerprints nor pairs are given")]
    NothingToCluster,
    /// Standard input, where fingerprints are read more than once.
    #[error(
        "fingerprints are read more than once, which standard input cannot be: save them to a file"
    )]
    StandardInputOnce,
    /// Standard input for two inputs.
    #[error(
        "standard input is named more than once, and can be read only once: put the others into files"
    )]
    StandardInputAgain,
    /// The first or the last to be kept, of pairs only.
    #[error("pairs have no order, which the rule for survivors looks at")]
    NoOrder,
    /// A number of equal places without files of sketches, or beside a distance.
    #[error("equal places are those of sketches in files, and take the place of a distance")]
    EqualOfFiles,
    /// Indexes among files of fingerprints.
    #[error(
        "some of F are indexes and others are not: join them in two runs, and merge the lists with `lookalike merge`"
    )]
    SomeIndexes,
    /// An index alone.
    #[error(
        "{0}: an index cannot be joined with itself: name the fingerprints that it was built from"
    )]
    IndexAlone(String),
    /// An index of fingerprints, where places must be equal.
    #[error("{0}: an index holds fingerprints, which have no equal places")]
    IndexOfFingerprints(String),
    /// A distance beyond that of an index.
    #[error("{index}: the index was built for distances up to {built}, not {distance}")]
    BeyondIndex {
        /// The index.
        index: String,
        /// Largest distance that it finds.
        built: u32,
        /// The distance that is asked for.
        distance: u32,
    },
    /// Fewer equal places than an index finds.
    #[error("{index}: the index was built for at least {built} equal places, not {least}")]
    FewerPlacesThanIndex {
        /// The index.
        index: String,
        /// Least number that it finds.
        built: usize,
        /// The number that is asked for.
        least: usize,
    },
    /// Remains of an interrupted job that is not this one.
    #[error("{folder}: an interrupted {job} with other inputs or settings", folder = folder.display())]
    OtherJob {
        /// The folder.
        folder: PathBuf,
        /// Kind of job, such as `build`.
        job: &'static str,
    },
    /// Inputs with other fingerprints than an interrupted join read.
    #[error("the inputs have changed since the join was interrupted")]
    ChangedInputs,
}

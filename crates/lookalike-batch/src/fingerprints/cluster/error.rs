//! Errors of a decision by fingerprints, each with the place where it occurred.

/// Reason why pairs and fingerprint files do not give a decision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A line of a list of pairs is not a pair.
    #[error(
        "{name}, line {line}: {reason}: pairs are lines as `lookalike join` writes them, \
         {{\"a\":..,\"b\":..,\"distance\":..}} or {{\"f\":..,\"q\":..,\"distance\":..}}; repair the line, or join again"
    )]
    Line {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
        /// Description of the error.
        reason: String,
    },
    /// A pair has a similarity of texts instead of a distance, and more is asked than connected components.
    #[error(
        "{name}, line {line}: a pair of documents with a similarity, as `lookalike pairs` writes it: only connected components can \
         be decided from such pairs, and only without files of fingerprints"
    )]
    OfTexts {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
    },
    /// The distance of a pair is larger than allowed: in bits, or in places of sketches.
    #[error("{name}, line {line}: {a} and {b} have the distance {found}, more than {most}")]
    Beyond {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
        /// One document, as JSON.
        a: String,
        /// The other document, as JSON.
        b: String,
        /// Their distance.
        found: u8,
        /// The largest allowed distance.
        most: u32,
    },
    /// A document is paired with itself.
    #[error(
        "{name}, line {line}: {id} is paired with itself at distance {distance}: the two collections that were joined use one id for \
         different documents; give them different ids and join again"
    )]
    OneId {
        /// Name of the list.
        name: String,
        /// Number of the line.
        line: u64,
        /// The id, as JSON.
        id: String,
        /// The distance.
        distance: u8,
    },
    /// An id of the pairs is not in any file.
    #[error(
        "{id} is in the pairs but in none of the files ({count} such ids): name every file that was joined, or none, to decide only \
         about the ids in the pairs"
    )]
    UnknownId {
        /// The id, as JSON.
        id: String,
        /// Number of such ids.
        count: u64,
    },
    /// Two documents have the same id.
    #[error(
        "the id {id} occurs more than once, so a line with it would be ambiguous: give each document its own id"
    )]
    RepeatedId {
        /// The id, as JSON.
        id: String,
    },
    /// The fingerprints of a pair have another distance than the pair states.
    #[error(
        "{a} and {b} have the distance {listed} in the pairs and {found} in the files: the pairs were not made of these \
         files; join them again"
    )]
    OtherDistance {
        /// One document, as JSON.
        a: String,
        /// The other document, as JSON.
        b: String,
        /// Distance in the pairs.
        listed: u32,
        /// Distance in the files.
        found: u32,
    },
    /// Some fingerprints have ids and others do not.
    #[error(
        "{name}: some fingerprints have ids and others, here or in an earlier file, have none: give all of them ids, or cluster them \
         separately"
    )]
    MixedIds {
        /// Name of the file.
        name: String,
    },
    /// The fingerprints have no ids, so their texts cannot be found.
    #[error(
        "the fingerprints have no ids, so their texts cannot be found: make them again in a format that keeps ids"
    )]
    NoIds,
    /// None of the documents' texts was found.
    #[error(
        "none of the {records} records read has the id of a document that would be removed, such as {id}"
    )]
    NoTexts {
        /// Number of records read.
        records: u64,
        /// The id of one such document, as JSON.
        id: String,
    },
    /// The memory limit is too small.
    #[error("{what} do not fit in {mib} MiB", mib = limit >> 20)]
    Memory {
        /// Name of the data that needs the memory.
        what: &'static str,
        /// The limit, in bytes.
        limit: u64,
        /// The smallest limit that is enough, in MiB.
        least: u64,
    },
}

//! Settings of an overlap that mean nothing, or contradict each other.

use lookalike::chunk::Chunking;

/// Settings under which no overlap can be found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OverlapSettingsError {
    /// No chunking.
    #[error("no chunking is given")]
    NoChunking,
    /// A chunking more than once.
    #[error("chunking {0} is given twice")]
    RepeatedChunking(Chunking),
    /// A least number of shared chunks for a chunking that is not there.
    #[error("min_shared names {0}, which is not among the chunkings")]
    StrayChunking(Chunking),
    /// Servers, where a program hands over texts.
    #[error("servers are compared by jobs over whole collections: compare documents here")]
    ServersOfTexts,
    /// Several chunkings, or servers, for single documents.
    #[error("single documents are compared with one chunking, and by document")]
    ChunkingsOfDocuments,
    /// Several chunkings, and one stream for the rows.
    #[error("one output takes the rows of one chunking")]
    ChunkingsOfRows,
    /// A document that is not there.
    #[error("no document has the id or URL {0:?}: it must be in the input to be compared")]
    UnknownDocument(String),
    /// Servers to compare, and no document with one.
    #[error("no document has a server by the rule `{0}`")]
    NoServer(String),
}

//! Errors for overlap settings that are invalid or contradict each other.

use lookalike::chunk::Chunking;

use super::server_name::ServerName;

/// Reason why the settings of an overlap job are refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OverlapSettingsError {
    /// There is no chunking.
    #[error("no chunking is given")]
    NoChunking,
    /// A chunking is given more than once.
    #[error("chunking {0} is given twice")]
    RepeatedChunking(Chunking),
    /// A minimum number of shared chunks is given for a chunking that is not used.
    #[error("a minimum of shared chunks is given for {0}, which is not among the chunkings")]
    StrayChunking(Chunking),
    /// Servers are compared, although a program passes single texts.
    #[error("servers are compared by jobs over whole collections: compare documents here")]
    ServersOfTexts,
    /// Several chunkings, or servers, are requested for single documents.
    #[error("single documents are compared with one chunking, and by document")]
    ChunkingsOfDocuments,
    /// Several chunkings are requested for one stream of rows.
    #[error("one output takes the rows of one chunking")]
    ChunkingsOfRows,
    /// No document has the id or URL.
    #[error("no document has the id or URL {0:?}: it must be in the input to be compared")]
    UnknownDocument(String),
    /// Servers are compared, or named by a rule, but no document has one.
    #[error("no document has a server by the rule `{0}`")]
    NoServer(ServerName),
}

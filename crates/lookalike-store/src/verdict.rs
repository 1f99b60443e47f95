//! Verdicts: whether a document or paragraph was seen before, and how similar the nearest is.

/// The verdict on a document or paragraph: new, or similar to one that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing is within the radius.
    New,
    /// A document has the same text, or a paragraph the same words.
    Exact,
    /// Something has the same fingerprint or longer sketch, but nothing is known to have the same text.
    SameFingerprint,
    /// Something is within the radius.
    Near {
        /// Distance of the nearest, at least 1.
        distance: u32,
    },
}

impl Verdict {
    /// Returns the verdict by the distance of the nearest, if no text is equal.
    pub(crate) fn of(nearest: Option<u32>) -> Self {
        match nearest {
            None => Self::New,
            Some(0) => Self::SameFingerprint,
            Some(distance) => Self::Near { distance },
        }
    }

    /// Returns the distance of the nearest, or `None` for [`Verdict::New`].
    pub fn distance(self) -> Option<u32> {
        match self {
            Self::New => None,
            Self::Exact | Self::SameFingerprint => Some(0),
            Self::Near { distance } => Some(distance),
        }
    }
}

/// The paragraph of a document that is most similar to the one searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimilarParagraph {
    /// Id of the document.
    pub id: String,
    /// Number of paragraphs before it in the document.
    pub position: usize,
    /// [`Verdict::Exact`] if it has the same words; never [`Verdict::New`].
    pub verdict: Verdict,
}

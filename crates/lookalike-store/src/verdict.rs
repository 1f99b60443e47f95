//! Verdicts: whether a document or a paragraph was seen before, and how similar it is.

/// Verdict on a document: seen before, or new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing is within the radius.
    New,
    /// Something has the same text.
    Exact,
    /// Something has the same fingerprint or longer sketch, but no known text is equal.
    SameFingerprint,
    /// Something is within the radius.
    Near {
        /// Distance of the nearest, at least 1.
        distance: u32,
    },
}

impl Verdict {
    /// Of the distance of the nearest, where no text is equal.
    pub(crate) fn of(nearest: Option<u32>) -> Self {
        match nearest {
            None => Self::New,
            Some(0) => Self::SameFingerprint,
            Some(distance) => Self::Near { distance },
        }
    }

    /// Distance of the nearest; none if it is new.
    pub fn distance(self) -> Option<u32> {
        match self {
            Self::New => None,
            Self::Exact | Self::SameFingerprint => Some(0),
            Self::Near { distance } => Some(distance),
        }
    }
}

/// The paragraph of a document that is most similar to one that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimilarParagraph {
    /// Id of the document.
    pub id: String,
    /// Number of paragraphs of the document before it.
    pub position: usize,
    /// [`Verdict::Exact`] if it has the same words; never [`Verdict::New`].
    pub verdict: Verdict,
}

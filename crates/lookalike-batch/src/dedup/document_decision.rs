//! Decision on one document.

/// Decision on a document. Survivors are told by their numbers; see [`DedupDecisions`](crate::DedupDecisions).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DocumentDecision {
    /// It is kept, or only compared with.
    Kept,
    /// A reader sees the same text as of a kept document.
    Exact {
        /// The kept document.
        survivor: u32,
    },
    /// It resembles a kept document.
    Near {
        /// The kept document.
        survivor: u32,
        /// Their resemblance.
        similarity: f64,
        /// That of all that a reader sees, where that is not what was compared.
        visible: Option<f64>,
    },
}

impl DocumentDecision {
    /// The kept document that a removed one is like.
    pub fn survivor(self) -> Option<u32> {
        match self {
            Self::Kept => None,
            Self::Exact { survivor } | Self::Near { survivor, .. } => Some(survivor),
        }
    }

    /// The resemblance to the survivor; 1 for exact copies and kept documents.
    pub fn similarity(self) -> f64 {
        if let Self::Near { similarity, .. } = self {
            similarity
        } else {
            1.0
        }
    }

    /// The resemblance of all that a reader sees, where that is not what was compared.
    pub fn visible_similarity(self) -> Option<f64> {
        match self {
            Self::Near { visible, .. } => visible,
            Self::Kept | Self::Exact { .. } => None,
        }
    }

    /// True if its main text has all the features of that of the kept document and no others, while a reader sees something
    /// else.
    pub fn is_same_main_text(self) -> bool {
        self.visible_similarity().is_some() && self.similarity() >= 1.0
    }

    /// The reason of the removal in a word, as in `clusters.jsonl`: `exact`, `near` or `same-main-text`.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Kept => None,
            Self::Near { .. } if self.is_same_main_text() => Some("same-main-text"),
            Self::Near { .. } => Some("near"),
            Self::Exact { .. } => Some("exact"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_text_that_is_equal_on_another_page_has_a_reason_of_its_own() {
        let near = |similarity, visible| DocumentDecision::Near {
            survivor: 0,
            similarity,
            visible,
        };
        assert_eq!(near(1.0, Some(0.9)).reason(), Some("same-main-text"));
        assert_eq!(near(0.9, Some(0.9)).reason(), Some("near"));
        assert_eq!(near(1.0, None).reason(), Some("near"));
        assert_eq!(
            DocumentDecision::Exact { survivor: 0 }.reason(),
            Some("exact")
        );
    }
}

//! Decision on one document.

/// Decision on a document. Survivors are given by their numbers; see [`DedupDecisions`](crate::DedupDecisions).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DocumentDecision {
    /// It is kept, or it is only compared with.
    Kept,
    /// Its visible text equals that of a kept document.
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
        /// The resemblance of their visible texts, if another text was compared.
        visible: Option<f64>,
    },
}

impl DocumentDecision {
    /// Returns the document that is kept for a removed one.
    pub fn survivor(self) -> Option<u32> {
        match self {
            Self::Kept => None,
            Self::Exact { survivor } | Self::Near { survivor, .. } => Some(survivor),
        }
    }

    /// Returns the resemblance to the survivor; 1 for exact copies and kept documents.
    pub fn similarity(self) -> f64 {
        if let Self::Near { similarity, .. } = self {
            similarity
        } else {
            1.0
        }
    }

    /// Returns the resemblance of the visible texts, if another text was compared.
    pub fn visible_similarity(self) -> Option<f64> {
        match self {
            Self::Near { visible, .. } => visible,
            Self::Kept | Self::Exact { .. } => None,
        }
    }

    /// Returns true if its main text has the same features as that of the kept document, but their visible texts
    /// differ.
    pub fn is_same_main_text(self) -> bool {
        self.visible_similarity().is_some() && self.similarity() >= 1.0
    }

    /// Returns the reason of the removal in one word, as in `clusters.jsonl`: `exact`, `near` or `same-main-text`.
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

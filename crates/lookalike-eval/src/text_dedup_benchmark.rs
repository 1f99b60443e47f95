//! Counts exactly as text-dedup's benchmark on the CORE papers does, so that anyone with the files gets the figures that it prints.
//!
//! Each document has a set of labelled duplicates and a set of predicted ones. If nothing is predicted, it is a TN if nothing is labelled, else an
//! FN. If something is predicted, it is a TP if something is labelled and all of it is predicted, else an FP. The benchmark's "Macro F1" is the mean
//! of the precisions of both classes; the mean of their F1 is given here as well.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::interval::f1;

/// The figures of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TextDedupFigures {
    /// Documents with labelled duplicates, all of which were predicted.
    pub true_positives: u64,
    /// All other documents with predictions.
    pub false_positives: u64,
    /// Documents with neither labels nor predictions.
    pub true_negatives: u64,
    /// Documents with labels but without predictions.
    pub false_negatives: u64,
    /// TP / (TP + FP).
    pub precision_duplicates: f64,
    /// TP / (TP + FN).
    pub recall_duplicates: f64,
    /// TN / (TN + FN).
    pub precision_non_duplicates: f64,
    /// TN / (TN + FP).
    pub recall_non_duplicates: f64,
    /// The "Macro F1" that the benchmark prints: the mean of the two precisions.
    pub printed_macro_f1: f64,
    /// Mean F1 of the two classes.
    pub macro_f1: f64,
    /// Share of the documents whose predicted set equals the labelled set.
    pub accuracy: f64,
}

/// Computes the figures from the labelled and the predicted duplicates of each document.
#[must_use]
pub fn text_dedup_figures(documents: &[(BTreeSet<u32>, BTreeSet<u32>)]) -> TextDedupFigures {
    let (mut tp, mut fp, mut tn, mut fn_, mut exact) = (0, 0, 0, 0, 0);
    for (labelled, predicted) in documents {
        exact += u64::from(labelled == predicted);
        *match (labelled.is_empty(), predicted.is_empty()) {
            (true, true) => &mut tn,
            (false, true) => &mut fn_,
            // All labels predicted is enough: predictions beyond the labels do not count against a document, but labels that are missed do.
            (false, false) if labelled.is_subset(predicted) => &mut tp,
            _ => &mut fp,
        } += 1;
    }
    let share = |part: u64, rest: u64| part as f64 / (part + rest).max(1) as f64;
    let (precision, recall) = (share(tp, fp), share(tp, fn_));
    let (other_precision, other_recall) = (share(tn, fn_), share(tn, fp));
    TextDedupFigures {
        true_positives: tp,
        false_positives: fp,
        true_negatives: tn,
        false_negatives: fn_,
        precision_duplicates: precision,
        recall_duplicates: recall,
        precision_non_duplicates: other_precision,
        recall_non_duplicates: other_recall,
        printed_macro_f1: f64::midpoint(precision, other_precision),
        macro_f1: f64::midpoint(f1(precision, recall), f1(other_precision, other_recall)),
        accuracy: share(exact, documents.len() as u64 - exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_by_hand() {
        let set = |items: &[u32]| items.iter().copied().collect::<BTreeSet<u32>>();
        let documents = [
            (set(&[1]), set(&[1])),    // TP, exact
            (set(&[1]), set(&[1, 2])), // TP
            (set(&[1, 2]), set(&[1])), // FP: one of two is missing
            (set(&[]), set(&[3])),     // FP
            (set(&[]), set(&[])),      // TN, exact
            (set(&[4]), set(&[])),     // FN
        ];
        let found = text_dedup_figures(&documents);
        assert_eq!((found.true_positives, found.false_positives), (2, 2));
        assert_eq!((found.true_negatives, found.false_negatives), (1, 1));
        assert_eq!(found.printed_macro_f1, 0.5); // (2/4 + 1/2) / 2
        let (duplicates, others) = (4.0 / 7.0, 0.4); // 2PR/(P+R) of 1/2, 2/3 and of 1/2, 1/3
        assert!((found.macro_f1 - (duplicates + others) / 2.0).abs() < 1e-12);
        assert!((found.accuracy - 2.0 / 6.0).abs() < 1e-12);
    }
}

//! Estimates, without labels, the accuracy of a choice on documents that had no part in it.
//!
//! Settings and cuts are chosen on the pairs of one half of the documents and tested on those of the other, both ways, and the counts are added. A
//! pair with a document in each half counts in neither. The half of a document depends only on its id, so it does not change when documents are
//! added.

use serde::Serialize;

use crate::document_halves::DocumentHalves;
use crate::interval::{ShareEstimate, f1};
use crate::sweep::{
    AccuracyTarget, GroundTruth, Recommendation, SettingTally, SweepResult, SweepSetting,
};

/// Returns the number of true pairs in each half.
fn true_pairs(halves: &DocumentHalves, truth: &GroundTruth) -> [u64; 2] {
    // Judged pairs are not split by documents: `nested` splits them by families.
    let GroundTruth::Complete { pairs, .. } = truth else {
        return [0; 2];
    };
    let mut counts = [0; 2];
    for half in pairs.iter().filter_map(|&(a, b)| halves.of_pair(a, b)) {
        counts[half] += 1;
    }
    counts
}

/// Expected accuracy, on other documents, of a choice among settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HalvedAccuracy {
    /// Description of the settings that were chosen among.
    pub choice: String,
    /// Number of settings.
    pub settings: usize,
    /// Setting and cut that each half chose. `None` if no setting reached the target.
    pub chosen: [Option<String>; 2],
    /// Pairs that the choice of each half finds in the other half, both halves together.
    pub found: u64,
    /// Those of the found pairs that are true.
    pub correct: u64,
    /// True pairs in both halves together.
    pub true_pairs: u64,
    /// Share of the found pairs that are true.
    pub precision: ShareEstimate,
    /// Share of the true pairs that are found.
    pub recall: ShareEstimate,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

/// Text for a half that chose nothing.
pub const NOTHING_CHOSEN: &str = "nothing that reaches the target";

/// A group of settings, by position, among which a half chooses.
struct HalvedChoice {
    name: String,
    members: Vec<usize>,
    choose: fn(&SweepResult, AccuracyTarget) -> Option<Recommendation>,
}

/// Returns the expected accuracy of the best setting of each sketch by F1, of the best of all settings, and of the cheapest that reaches the target.
/// Costs are bytes for each document of the whole collection. Returns nothing if one of the halves has no true pair.
#[must_use]
pub fn expected_accuracy_of_halves(
    settings: &[SweepSetting],
    tallies: &[SettingTally],
    truth: &GroundTruth,
    halves: &DocumentHalves,
    target: AccuracyTarget,
) -> Vec<HalvedAccuracy> {
    let trues = true_pairs(halves, truth);
    // Without a true pair, recall in that half is undefined, and no choice on it would mean anything.
    if trues.contains(&0) {
        return Vec::new();
    }
    let expected = |choice: &HalvedChoice| {
        let (mut found, mut correct) = (0, 0);
        let chosen = [0, 1].map(|half| {
            let own = choice.members.iter();
            let rows = own.map(|&at| tallies[at].row_of_half(half, &settings[at], truth, trues));
            let swept = SweepResult {
                rows: rows.collect(),
                ..SweepResult::default()
            };
            let advice = (choice.choose)(&swept, target)?;
            let tally = &tallies[choice.members[advice.row]];
            // Tested on the other half, which had no part in the choice.
            let counts = tally.counts_of_half(1 - half, advice.point.cut);
            (found, correct) = (found + counts.found, correct + counts.correct);
            Some(format!("{} at {}", advice.setting, advice.point.parameter))
        });
        // A half that chose nothing finds nothing, but its true pairs still count.
        let true_pairs = trues[0] + trues[1];
        let (precision, recall) = (
            ShareEstimate::of(correct, found),
            ShareEstimate::of(correct, true_pairs),
        );
        HalvedAccuracy {
            choice: choice.name.clone(),
            settings: choice.members.len(),
            chosen,
            found,
            correct,
            true_pairs,
            f1: f1(precision.value, recall.value),
            precision,
            recall,
        }
    };
    choices(settings).iter().map(expected).collect()
}

fn choices(settings: &[SweepSetting]) -> Vec<HalvedChoice> {
    let mut all: Vec<HalvedChoice> = Vec::new();
    for (at, setting) in settings.iter().enumerate() {
        let name = setting.sketch_name();
        match all.iter_mut().find(|choice| choice.name == name) {
            Some(choice) => choice.members.push(at),
            None => all.push(HalvedChoice {
                name,
                members: vec![at],
                choose: SweepResult::best,
            }),
        }
    }
    let among_all = |name: &str, choose| HalvedChoice {
        name: name.to_owned(),
        members: (0..settings.len()).collect(),
        choose,
    };
    // With one sketch only, the choice among all is the choice among its settings.
    if all.len() > 1 {
        all.push(among_all("any", SweepResult::best));
    }
    all.push(among_all("cheapest", |swept, target| {
        swept.recommendations(target).into_iter().next()
    }));
    all
}

//! Counts of each setting, including those of an interrupted sweep.

use std::collections::HashMap;
use std::ops::ControlFlow;

use lookalike::Scheme;
use lookalike_batch::{JobObserver, JobStage};
use lookalike_eval::{
    GroundTruth, SettingTally, SweepLimits, SweepRow, SweepSetting, for_each_tally,
};
use serde::{Deserialize, Serialize};

use super::arguments::SweepArguments;
use crate::console::Console;
use crate::evaluate::checkpoint::Checkpoint;
use crate::evaluate::swept_input::SweptInput;
use crate::failure::Failure;

/// Counts of one setting, as stored in a checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct MeasuredSetting {
    setting: String,
    tally: SettingTally,
}

/// The checkpoint of the sweep, if one is requested.
pub(super) type SweepCheckpoint = Option<Checkpoint<MeasuredSetting>>;

/// Returns the name of a setting in a checkpoint, which distinguishes it from all others.
fn setting_name(setting: &SweepSetting) -> String {
    // The option refuses 0, so it can stand for no test.
    let lengths = setting.lengths.unwrap_or(0.0);
    format!("{} {} lengths={lengths}", setting.scheme, setting.measure)
}

/// Measures settings, using the counts of an earlier sweep.
pub(super) struct SettingMeasurer<'a> {
    arguments: &'a SweepArguments,
    pub(super) console: &'a Console<'a>,
    pub(super) truth: &'a GroundTruth,
    limits: SweepLimits,
    pub(super) checkpoint: SweepCheckpoint,
    known: HashMap<String, SettingTally>,
}

impl<'a> SettingMeasurer<'a> {
    /// Takes over the counts of an earlier sweep of the same documents, identified by their hash.
    pub(super) fn new(
        arguments: &'a SweepArguments,
        console: &'a Console<'a>,
        base: &Scheme,
        truth: &'a GroundTruth,
        limits: SweepLimits,
        digest: u64,
    ) -> Result<Self, Failure> {
        let judged = match truth {
            GroundTruth::Judged(pairs) => format!("{pairs:?}"),
            GroundTruth::Complete { .. } => format!("{base} {}", arguments.threshold),
        };
        let of = format!("{judged} {digest:016x}");
        let opened = arguments
            .checkpoint
            .open("sweep", &of, arguments.run.quiet)?;
        let (checkpoint, done) = opened.unzip();
        let known = done.unwrap_or_default().into_iter();
        Ok(Self {
            known: known
                .map(|done: MeasuredSetting| (done.setting, done.tally))
                .collect(),
            arguments,
            console,
            truth,
            limits,
            checkpoint,
        })
    }

    /// Returns the counts of these settings.
    pub(super) fn tallies(
        &self,
        documents: &SweptInput<'_>,
        settings: &[SweepSetting],
    ) -> Result<Vec<SettingTally>, Failure> {
        let names: Vec<String> = settings.iter().map(setting_name).collect();
        let mut tallies: Vec<Option<SettingTally>> = names
            .iter()
            .map(|name| self.known.get(name).cloned())
            .collect();
        // `for_each_tally` numbers the settings that it gets; `missing` turns these numbers into those of all settings.
        let missing: Vec<usize> = (0..settings.len())
            .filter(|&at| tallies[at].is_none())
            .collect();
        let wanted: Vec<SweepSetting> = missing.iter().map(|&at| settings[at]).collect();
        let mut done = (settings.len() - missing.len()) as u64;
        let mut written = Ok(());
        let mut add = |at: usize, tally: SettingTally| {
            let at = missing[at];
            // Restart the stage each time: reading texts again in between had its own stage.
            self.console.stage(JobStage::Measure, settings.len() as u64);
            done += 1;
            self.console.progress(done);
            // Appended, so that an interruption loses the settings at work only.
            if let Some(checkpoint) = &self.checkpoint {
                written = checkpoint.push(&MeasuredSetting {
                    setting: names[at].clone(),
                    tally: tally.clone(),
                });
            }
            tallies[at] = Some(tally);
            match self.console.is_cancelled() || written.is_err() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let swept = for_each_tally(documents, &wanted, self.truth, self.limits, &mut add);
        // Before the sweep's own error, which is only that its visitor ended it.
        written?;
        swept.map_err(|error| self.arguments.too_large(error))?;
        Ok(tallies.into_iter().flatten().collect())
    }

    /// Returns the rows of these settings.
    pub(super) fn rows(
        &self,
        settings: &[SweepSetting],
        tallies: &[SettingTally],
    ) -> Vec<SweepRow> {
        let counted = settings.iter().zip(tallies);
        counted
            .map(|(setting, tally)| tally.row_of(setting, self.truth))
            .collect()
    }
}

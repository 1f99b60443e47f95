//! Sweep over given sketches: one setting for each input.

use std::path::Path;

use lookalike_batch::{JobObserver as _, JobStage};
use lookalike_eval::{GroundTruth, JudgedPair, JudgedScores, SweepResult};

use super::advised_job::SketchJoin;
use super::arguments::SweepArguments;
use super::measurement::SweepMeasurement;
use crate::console::{self, Console};
use crate::evaluate::AnswerOutput;
use crate::evaluate::given::GivenSketches;
use crate::evaluate::labels::{labels_bytes, read_labels};
use crate::failure::Failure;
use crate::output_file::check_output;

impl SweepArguments {
    /// Sweeps over the files and indexes of each input.
    pub(super) fn evaluate_sketches(
        &self,
        console: &Console,
        output: AnswerOutput,
    ) -> Result<(), Failure> {
        let Some(labels) = &self.labels else {
            return Err(Failure::Usage(
                "--fingerprints gives no texts, whose resemblance would tell the true pairs: give --labels, or the documents instead"
                    .to_owned(),
            ));
        };
        let inputs = &self.input.inputs;
        if inputs.iter().filter(|input| *input == "-").count() > 1 {
            return Err(Failure::Usage(
                "standard input is read once, as one setting: give the sketches of the others in files".to_owned(),
            ));
        }
        let read = inputs.iter().map(Path::new).chain([labels.as_path()]);
        check_output(self.page.as_deref(), read)?;
        let text = read_labels(labels, &self.run)?;
        let (mut all, mut taken, mut ids) = (Vec::new(), labels_bytes(&text), Vec::<String>::new());
        for input in inputs {
            let one = std::slice::from_ref(input);
            let given = GivenSketches::read(one, &self.input, &self.run, taken, console)?;
            // A copy of each id stays, with its allocation.
            let copies = given.set.ids().iter().map(|id| 64 + id.len() as u64);
            taken += given.bytes + copies.sum::<u64>();
            // All ids of all inputs: a document that one input lacks has no sketch there, and none of its pairs is found.
            ids.extend_from_slice(given.set.ids());
            ids.sort_unstable();
            ids.dedup();
            all.push(given);
        }
        let (truth, words) = self.labelled(labels, &text, &ids)?;
        let judged: &[JudgedPair] = match &truth {
            GroundTruth::Judged(judged) => judged,
            GroundTruth::Complete { .. } => &[],
        };
        let mut scores = JudgedScores::new(&ids, judged);
        let mut measured = SweepMeasurement {
            swept: SweepResult {
                documents: ids.len() as u64,
                true_pairs: truth.true_pairs(),
                rows: Vec::new(),
            },
            ..SweepMeasurement::default()
        };
        console.stage(JobStage::Measure, inputs.len() as u64);
        for (done, (input, given)) in (1..).zip(inputs.iter().zip(&mut all)) {
            // Moved, so that the memory is counted once.
            let set = std::mem::take(&mut given.set);
            let sketches = set.into_sketches_of(ids.iter().map(String::as_str));
            // The name is shown in the terminal and on the page.
            let name = console::sanitized(&input.to_string_lossy()).into_owned();
            let row = given.row(&sketches, &truth, &name);
            scores.add_sketches(given.setting(), row.sketch.clone(), &sketches);
            measured.swept.rows.push(row);
            measured.settings.push(given.setting());
            measured.joins.push(SketchJoin::new(input, given));
            console.progress(done);
        }
        // Without two tests: sketches of two files have no features that one job could compare.
        measured.expected = scores.expectations(false);
        measured.write(self, &words, console, output)?;
        let skipped = all.iter().flat_map(|given| &given.skipped);
        self.input.losses.end_answered(skipped)
    }
}

//! All printed output: progress on a terminal, warnings, summaries. Only this module prints.
//!
//! If standard error is closed, messages are dropped without an error.

mod document_summaries;
mod fingerprint_summaries;
mod lines;
mod overlap_summaries;

use std::borrow::Cow;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use console::Term;
use cpu_time::ProcessTime;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lookalike_batch::{JobObserver, JobStage, MeasuredCost};
use lookalike_hamming::threads::ensure_startable;

use crate::{caller, machine};

pub(crate) use document_summaries::{
    added, archive_summary, collection_summary, dedup_summary, extraction_summary, links_summary,
    pairs_summary, terms_summary,
};
pub(crate) use fingerprint_summaries::{
    cluster_summary, counted_sketches, fingerprint_summary, import_summary, index_summary,
    join_summary, merge_summary,
};
pub(crate) use lines::{bytes_each, counted, grouped, skipped};
pub(crate) use overlap_summaries::{atlas_summary, overlap_summary};

/// Condition on which output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorOption {
    /// On a terminal, unless the environment variable NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorOption {
    /// Decides whether to colour output, which goes to a terminal or elsewhere.
    pub(crate) fn wanted(self, is_terminal: bool) -> bool {
        match self {
            // According to no-color.org, an empty value counts as unset.
            Self::Auto => {
                let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                is_terminal && !forbidden
            }
            Self::Always => true,
            Self::Never => false,
        }
    }
}

pub(crate) fn print_line(line: &str) {
    print_coloured(&sanitized(line));
}

/// Prints a line that contains this program's colours; all other text in it has been sanitized.
fn print_coloured(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Removes characters that act on a terminal or reverse the direction of text, which file names may contain.
pub(crate) fn sanitized(line: &str) -> Cow<'_, str> {
    let acts = |c: char| {
        // Marks of the Unicode bidirectional algorithm (UAX #9): they can make `gpj.exe` read as `exe.jpg`.
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
        turns || (c.is_control() && c != '\n' && c != '\t')
    };
    if !line.contains(acts) {
        return line.into();
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        match acts(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// Returns true if lines about failures are coloured.
fn is_coloured() -> bool {
    ColorOption::Auto.wanted(stderr().is_terminal())
}

/// Formats the line about a failure, whose first word, or all of it, is highlighted on a terminal. The text is sanitized before colours are added.
fn failure_line(
    word: &str,
    text: &str,
    color: &str,
    is_coloured: bool,
    stands_out: bool,
) -> String {
    let marked = |part: &str, is_marked: bool| match is_marked {
        true => format!("\x1b[1;{color}m{part}\x1b[0m"),
        false => part.to_owned(),
    };
    let text = marked(&sanitized(text), is_coloured && stands_out);
    format!("lookalike: {} {text}", marked(word, is_coloured))
}

const RED: &str = "31";
const YELLOW: &str = "33";

/// Prints an error on one line.
pub(crate) fn error(reason: &str) {
    print_coloured(&failure_line("error:", reason, RED, is_coloured(), false));
}

/// Prints a warning on one line.
pub(crate) fn warning(text: &str) {
    warn_of(text, false);
}

fn warn_of(text: &str, stands_out: bool) {
    if !caller::keep_warning(text) {
        print_coloured(&failure_line(
            "warning:",
            text,
            YELLOW,
            is_coloured(),
            stands_out,
        ));
    }
}

/// Prints a warning about something missing in the results, highlighted as a whole.
pub(crate) fn losses(text: &str) {
    warn_of(text, true);
}

/// Shows progress on a terminal, and measures each stage.
pub(crate) struct Console<'o> {
    bar: ProgressBar,
    /// Another program that receives the progress instead.
    program: Option<&'o dyn JobObserver>,
    quiet: bool,
    /// Summaries are JSON.
    json: bool,
    /// Width of the terminal.
    columns: u16,
    state: Mutex<ConsoleState>,
}

#[derive(Default)]
struct ConsoleState {
    stages: Vec<(&'static str, f64, f64)>,
    /// Index in `stages` of the first entry that belongs to the running stage; others follow for the activities within it.
    first: usize,
    /// The running stage, its current activity, and the times at which that started.
    running: Option<(JobStage, JobStage, Instant, ProcessTime)>,
}

impl<'o> Console<'o> {
    /// Creates a console for another program, which receives the progress.
    pub(crate) fn for_program(observer: &'o dyn JobObserver) -> Self {
        Self {
            program: Some(observer),
            quiet: false,
            ..Self::new(true)
        }
    }

    pub(crate) fn new(quiet: bool) -> Self {
        let visible = !quiet && stderr().is_terminal();
        let bar = if visible {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        Self {
            bar,
            program: None,
            quiet,
            json: false,
            columns: Term::stderr().size().1,
            state: Mutex::default(),
        }
    }

    /// Prints summaries as JSON, or in lines.
    pub(crate) fn json(mut self, json: bool) -> Self {
        self.json = json;
        self
    }

    /// Prints the summary of a job, unless quiet in lines. JSON goes to standard output, unless the results are there because no
    /// `output` was named.
    pub(crate) fn summarise<S: serde::Serialize>(
        &self,
        summary: &S,
        output: Option<&Path>,
        lines: impl FnOnce(&S, &MeasuredCost),
    ) -> std::io::Result<()> {
        if self.json {
            return json_summary(summary, output);
        }
        if !self.quiet {
            lines(summary, &self.measured());
        }
        Ok(())
    }

    /// Says what to know while a job is at work, unless nothing is to be said.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| warning(text));
        }
    }

    /// Removes the progress bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Removes the progress bar after a job, and returns the job's result.
    pub(crate) fn ended<T>(&self, done: T) -> T {
        self.clear();
        done
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ConsoleState> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ConsoleState {
    /// Returns the stages, including the running one up to now.
    fn stages(&self) -> Vec<(&'static str, f64, f64)> {
        let mut stages = self.stages.clone();
        let Some((_, what, wall, cpu)) = &self.running else {
            return stages;
        };
        let wall = wall.elapsed().as_secs_f64();
        let cpu = cpu.try_elapsed().map_or(0.0, |cpu| cpu.as_secs_f64());
        // Only entries of the running stage: a later stage with the same name is listed separately.
        let mut own = stages[self.first..].iter_mut();
        match own.find(|entry| entry.0 == what.name()) {
            Some(entry) => *entry = (entry.0, entry.1 + wall, entry.2 + cpu),
            None => stages.push((what.name(), wall, cpu)),
        }
        stages
    }
}

impl JobObserver for Console<'_> {
    fn stage(&self, stage: JobStage, total: u64) {
        if let Some(program) = self.program {
            program.stage(stage, total);
        }
        let mut state = self.state();
        // The previous stage ends at the moment at which the next begins, so that the times add up to the whole.
        state.stages = state.stages();
        state.first = state.stages.len();
        state.running = Some((stage, stage, Instant::now(), ProcessTime::now()));
        let template = template(stage, total, self.columns);
        // Set the style first, because the calls below draw.
        self.bar.set_style(
            ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .with_key("rate", rate),
        );
        self.bar.set_length(total);
        self.bar.reset();
        // Redraw regularly, so that a stage that does not advance for a while still shows activity. Only if somebody sees it, and with a check, because
        // the bar panics without its thread.
        if !self.bar.is_hidden() && ensure_startable(1).is_ok() {
            self.bar.enable_steady_tick(TICK);
        }
    }

    fn progress(&self, done: u64) {
        if let Some(program) = self.program {
            program.progress(done);
        }
        self.bar.set_position(done);
    }

    fn is_cancelled(&self) -> bool {
        self.program.is_some_and(JobObserver::is_cancelled)
    }

    fn writing(&self, is_writing: bool) {
        let mut state = self.state();
        let Some((stage, ..)) = state.running else {
            return;
        };
        let what = if is_writing { JobStage::Write } else { stage };
        state.stages = state.stages();
        state.running = Some((stage, what, Instant::now(), ProcessTime::now()));
    }

    fn measured(&self) -> MeasuredCost {
        MeasuredCost {
            stages: self.state().stages(),
            peak_memory: machine::peak_memory(),
        }
    }
}

/// Interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(200);
/// Number of columns that fit all information on a stage next to a bar of ten.
const WIDE: u16 = 80;
/// Number of columns that fit a bar and counts without a rate.
const NARROW: u16 = 54;

/// Returns the template of a stage's line, which is never wider than the terminal, because a wrapped line cannot be redrawn.
fn template(stage: JobStage, total: u64, columns: u16) -> String {
    let name = stage.name();
    // The library may use the last column, at which some terminals wrap.
    let bar = |rest: u16| columns.saturating_sub(rest).clamp(4, 40);
    match (total, stage.counts_bytes()) {
        // Without a total, a bar cannot show a share.
        (0, _) => format!("{name:8} {{spinner}} {{elapsed}}"),
        (_, true) if columns >= WIDE => format!(
            "{name:8} [{{bar:{}}}] {{binary_bytes}} of {{binary_total_bytes}}, {{binary_bytes_per_sec}}, {{eta}} left",
            bar(70)
        ),
        (_, false) if columns >= WIDE => format!(
            "{name:8} [{{bar:{}}}] {{human_pos}} of {{human_len}}, {{rate}}, {{eta}} left",
            bar(70)
        ),
        (_, is_bytes) if columns >= NARROW => {
            let counts = match is_bytes {
                true => "{binary_bytes} of {binary_total_bytes}",
                false => "{human_pos} of {human_len}",
            };
            format!("{name:8} [{{bar:{}}}] {counts}", bar(44))
        }
        _ => format!("{name:8} {{percent}}%"),
    }
}

/// Formats a rate in whole units per second.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let _ = write!(out, "{}/s", grouped(state.per_sec() as u64));
}

/// Prints a JSON object as one line on standard error, next to results on standard output or as a line of a log.
pub(crate) fn json_to_stderr(object: &impl serde::Serialize) {
    match serde_json::to_string(object) {
        // JSON escapes control characters itself, and every character counts.
        Ok(text) => {
            let _ = writeln!(stderr(), "{text}");
        }
        Err(reason) => error(&reason.to_string()),
    }
}

/// Prints a JSON object as one line on standard output.
pub(crate) fn json(object: &impl serde::Serialize) -> std::io::Result<()> {
    // In a single write, so that a reader of lines never sees half of one.
    let mut line = serde_json::to_vec(object)?;
    line.push(b'\n');
    std::io::stdout().lock().write_all(&line)
}

/// Prints a summary as JSON: on standard output, or on standard error if the results go to standard output because there is no `output`.
pub(crate) fn json_summary(
    summary: &impl serde::Serialize,
    output: Option<&Path>,
) -> std::io::Result<()> {
    match output {
        Some(_) => json(summary),
        None => {
            json_to_stderr(summary);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the longest text that the library prints for each part of a line.
    #[test]
    fn no_line_of_progress_is_wider_than_the_terminal() {
        let parts = [
            ("{spinner}", 1),
            ("{elapsed}", 8),
            ("{binary_bytes}", 12),
            ("{binary_total_bytes}", 12),
            ("{binary_bytes_per_sec}", 14),
            ("{human_pos}", 13),
            ("{human_len}", 13),
            ("{rate}", 14),
            ("{eta}", 4),
            ("{percent}", 3),
        ];
        for columns in [20, 40, 53, 54, 60, 79, 80, 81, 100, 200] {
            for (stage, total) in [
                (JobStage::Scan, 9),
                (JobStage::Compare, 9),
                (JobStage::Truth, 0),
            ] {
                let mut line = template(stage, total, columns);
                for (part, width) in parts {
                    line = line.replace(part, &"x".repeat(width));
                }
                if let Some((before, rest)) = line.split_once("{bar:") {
                    let (width, rest) = rest.split_once('}').unwrap();
                    line = format!("{before}{}{rest}", "#".repeat(width.parse().unwrap()));
                }
                assert!(!line.contains('{'), "{line}");
                assert!(line.len() < usize::from(columns), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn names_cannot_act_on_the_terminal() {
        assert_eq!(
            sanitized("a\u{1b}[2Jb\u{9b}\u{202e}c\r.txt\n"),
            "a\\u{1b}[2Jb\\u{9b}\\u{202e}c\\u{d}.txt\n"
        );
        assert!(matches!(sanitized("gr\u{fc}n\t1"), Cow::Borrowed(_)));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        let counted = |number| counted(number, "table");
        assert_eq!(
            [0, 1, 2, 1000].map(counted),
            ["0 tables", "1 table", "2 tables", "1,000 tables"]
        );
    }

    #[test]
    fn colours_of_failures_were_shown_as_letters() {
        let line = failure_line("error:", "a\x1b[2Jb", RED, true, false);
        assert_eq!(line, "lookalike: \x1b[1;31merror:\x1b[0m a\\u{1b}[2Jb");
        let line = failure_line("warning:", "a\x1bb", YELLOW, true, true);
        assert_eq!(
            line,
            "lookalike: \x1b[1;33mwarning:\x1b[0m \x1b[1;33ma\\u{1b}b\x1b[0m"
        );
        assert_eq!(
            failure_line("error:", "a", RED, false, true),
            "lookalike: error: a"
        );
    }
}

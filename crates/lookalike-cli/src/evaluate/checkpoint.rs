//! The progress of a measurement, stored in a file for `--resume`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use lookalike::hash::xxh3_64;
use lookalike_corpus::{AtomicFile, Compression, remove_leftovers_of};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::{self, TemporaryPath};

#[derive(clap::Args)]
#[command(next_help_heading = "Running")]
pub(super) struct CheckpointArguments {
    /// Save measurements in FILE until the command is done, so that --resume can continue after an interruption
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    checkpoint: Option<PathBuf>,

    /// Resume an interrupted measurement: what is in its --checkpoint is not measured again
    #[arg(long, requires = "checkpoint", hide_short_help = true)]
    resume: bool,
}

/// First line of a checkpoint.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct CheckpointHeader {
    checkpoint: String,
    lookalike: String,
    /// Hash of everything on which the measurement depends.
    of: String,
}

/// A file with one line that identifies the measurement, and one for each finished part. An incomplete line is ignored.
pub(super) struct Checkpoint<T> {
    path: PathBuf,
    head: CheckpointHeader,
    measured: PhantomData<T>,
}

/// A checkpoint and its contents.
type OpenedCheckpoint<T> = (Checkpoint<T>, Vec<T>);

impl CheckpointArguments {
    /// Opens the checkpoint, if one is requested, and returns it with its contents. `of` is everything on which the measurement depends.
    pub(super) fn open<T: Serialize + DeserializeOwned>(
        &self,
        command: &str,
        of: &str,
        quiet: bool,
    ) -> Result<Option<OpenedCheckpoint<T>>, Failure> {
        let Some(path) = &self.checkpoint else {
            return Ok(None);
        };
        let checkpoint = Checkpoint {
            path: path.clone(),
            head: CheckpointHeader {
                checkpoint: command.to_owned(),
                // Another version may measure otherwise, and its counts must not be mixed with these.
                lookalike: env!("CARGO_PKG_VERSION").to_owned(),
                // A hash, because the text may hold all judged pairs.
                of: format!("{:016x}", xxh3_64(of.as_bytes(), 0)),
            },
            measured: PhantomData,
        };
        let measured = match (path.exists(), self.resume) {
            (true, true) => checkpoint.read()?,
            (true, false) => {
                return Err(Failure::Usage(format!(
                    "{}: already exists: continue from it with --resume, or choose another file",
                    path.display()
                )));
            }
            (false, is_resumed) => {
                if is_resumed {
                    interrupt::warn_about_resume(true, false, &Console::new(quiet));
                }
                Vec::new()
            }
        };
        // Remove the leftovers of a command that was killed while it replaced its checkpoint. Ignore errors: a directory that cannot be listed may
        // still be writable.
        let _ = remove_leftovers_of(path);
        interrupt::watch(TemporaryPath::Checkpoint(path.clone()));
        // Rewritten, to drop an incomplete line.
        checkpoint.replace(&measured)?;
        Ok(Some((checkpoint, measured)))
    }
}

impl<T: Serialize + DeserializeOwned> Checkpoint<T> {
    fn read(&self) -> Result<Vec<T>, Failure> {
        let text = std::fs::read(&self.path).map_err(unusable(&self.path))?;
        // A torn line may end within a character.
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.split_inclusive('\n');
        let head = lines.next().unwrap_or_default();
        let head: CheckpointHeader = serde_json::from_str(head).map_err(|_| {
            Failure::Failed(format!(
                "{}: not a checkpoint of lookalike: choose another file with --checkpoint",
                self.path.display()
            ))
        })?;
        if head != self.head {
            return Err(Failure::Failed(format!(
                "{}: the checkpoint of another measurement, with other documents, options or another version: run the command that made \
                 it, or choose another --checkpoint",
                self.path.display()
            )));
        }
        let whole = lines.filter(|line| line.ends_with('\n'));
        Ok(whole
            // What follows a damaged line is measured again: it may be damaged as well.
            .map_while(|line| serde_json::from_str(line).ok())
            .collect())
    }

    /// Adds a measurement, which is on disk when this returns.
    pub(super) fn push(&self, measured: &T) -> Result<(), Failure> {
        let failed = unusable(&self.path);
        let mut line = serde_json::to_vec(measured).map_err(std::io::Error::from)?;
        line.push(b'\n');
        let mut file = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .map_err(&failed)?;
        // In one write with its line end, so that a line without one is known to be torn.
        file.write_all(&line)
            .and_then(|()| file.sync_data())
            .map_err(&failed)
    }

    /// Replaces all measurements.
    pub(super) fn replace(&self, measured: &[T]) -> Result<(), Failure> {
        let failed = unusable(&self.path);
        let mut file = AtomicFile::create(&self.path, Compression::None).map_err(&failed)?;
        let mut lines = serde_json::to_vec(&self.head).map_err(std::io::Error::from)?;
        for one in measured {
            lines.push(b'\n');
            serde_json::to_writer(&mut lines, one).map_err(std::io::Error::from)?;
        }
        lines.push(b'\n');
        file.write_all(&lines).map_err(&failed)?;
        file.commit().map_err(&failed)?;
        Ok(())
    }

    /// Removes the checkpoint of a finished measurement.
    pub(super) fn remove(self) -> Result<(), Failure> {
        std::fs::remove_file(&self.path).map_err(unusable(&self.path))
    }
}

/// Creates the failure for a checkpoint that cannot be used, for `map_err`.
fn unusable(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| {
        let shown = path.display();
        Failure::Failed(format!(
            "{shown}: {error}: choose another file with --checkpoint"
        ))
    }
}

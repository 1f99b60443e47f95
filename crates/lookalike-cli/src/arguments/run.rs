//! Arguments for the use of the machine, and for output.

use std::path::PathBuf;

use clap::Args;
use lookalike_batch::JobLimits;
use lookalike_corpus::without_temporary_path;

use super::values::threads;
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::spool::Spool;
use crate::{machine, size};

/// Limits on the use of the machine, and what to print.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// Worker threads [default: all processors; fewer if --memory is small]
    ///
    /// Jobs that read documents also use fewer than given, and say so, if --memory has no room for them: each takes some MiB.
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Running")]
    threads: Option<usize>,

    /// Memory limit of the whole job [default: half of the memory of the machine, or of its container]
    ///
    /// The resident size of the process stays within it; data that does not fit goes to temporary files. A command that must
    /// hold more in memory is refused, and the error says how much is enough. Commands without a table to hold are never refused:
    /// they take up to 50 MiB even if the limit is lower. Sizes are powers of 1,024 in all options: 1G, 1GB and 1GiB are the same.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Running")]
    memory: Option<u64>,

    /// Directory for temporary files [default: the output directory, else the system's]
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub(crate) tmp: Option<PathBuf>,

    /// Print the summary as JSON
    ///
    /// One object on standard output, or on standard error if the results go to standard output.
    #[arg(long, help_heading = "Running")]
    pub(crate) json: bool,

    /// Print no progress and no summary
    #[arg(long, short, help_heading = "Running")]
    pub(crate) quiet: bool,
}

impl RunArguments {
    pub(crate) fn console(&self) -> Console<'static> {
        Console::new(self.quiet).json(self.json)
    }

    /// True if advice may be given: not where a program reads what is said.
    pub(crate) fn warns(&self) -> bool {
        !self.quiet && !self.json
    }

    /// Creates a folder for temporary files in `--tmp`, or else in `default`. It is removed with the job, interrupted or not. Folders of killed jobs
    /// are removed, too.
    pub(crate) fn spool(&self, default: PathBuf) -> Result<Spool, Failure> {
        let parent = self.tmp.clone().unwrap_or(default);
        Spool::new(&parent).map_err(|error| {
            Failure::Failed(format!(
                "{}: {}: temporary files are stored there; name another directory with --tmp",
                parent.display(),
                without_temporary_path(error)
            ))
        })
    }

    pub(crate) fn limits(&self) -> JobLimits {
        machine::limits(self.threads, self.memory)
    }

    /// Returns the limits of a job that reads documents. It has fewer threads than requested if the memory is too small for them,
    /// and then says so.
    pub(crate) fn document_limits(&self) -> JobLimits {
        let limits = self.limits();
        let (wanted, fitting) = (limits.threads, limits.fitting_threads());
        if fitting < wanted && self.threads.is_some() && !self.quiet {
            let memory = size::show(limits.memory);
            console::warning(&format!(
                "a memory limit of {memory} has room for {fitting} threads, not for {wanted}: {fitting} are used"
            ));
        }
        limits.threads(fitting)
    }
}

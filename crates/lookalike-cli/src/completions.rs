//! `lookalike completions` and `lookalike man`, generated from the definition of the command line.

use std::io;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to complete for
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArguments {
    /// Directory for the pages; created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "lookalike",
        &mut script,
    );
    // Generated into memory first, because the generator panics if it cannot write, for example to a closed pipe.
    Ok(io::Write::write_all(&mut io::stdout().lock(), &script)?)
}

pub(crate) fn manual(arguments: &ManArguments) -> Result<(), Failure> {
    let shown = arguments.directory.display();
    std::fs::create_dir_all(&arguments.directory)
        .and_then(|()| {
            clap_mangen::generate_to(Cli::command().name("lookalike"), &arguments.directory)
        })
        .map_err(|error| Failure::Failed(format!("{shown}: {error}: name a writable directory")))
}

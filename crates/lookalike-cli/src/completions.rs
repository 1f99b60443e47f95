//! `lookalike completions` and `lookalike man`, generated from the definition of the command line.

use std::io;
use std::path::PathBuf;

use clap::{Command, CommandFactory};
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

/// Gives the subcommands the version, which their pages show; the option for it is that of the whole command.
fn with_version(command: Command) -> Command {
    let command = command.mut_subcommands(with_version);
    match command.get_version() {
        Some(_) => command,
        None => command
            .version(env!("CARGO_PKG_VERSION"))
            .disable_version_flag(true),
    }
}

pub(crate) fn manual(arguments: &ManArguments) -> Result<(), Failure> {
    let shown = arguments.directory.display();
    let command = with_version(Cli::command().name("lookalike"));
    std::fs::create_dir_all(&arguments.directory)
        .and_then(|()| clap_mangen::generate_to(command, &arguments.directory))
        .map_err(|error| Failure::Failed(format!("{shown}: {error}: name a writable directory")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_subcommands_lacked_the_version() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_owned();
        manual(&ManArguments { directory }).unwrap();
        for page in std::fs::read_dir(folder.path()).unwrap() {
            let page = page.unwrap();
            let text = std::fs::read_to_string(page.path()).unwrap();
            let name = page.file_name().into_string().unwrap();
            assert!(text.contains(env!("CARGO_PKG_VERSION")), "{name}");
            let has_option = text.contains("\\-\\-version");
            assert_eq!(has_option, name == "lookalike.1", "{name}");
        }
    }
}

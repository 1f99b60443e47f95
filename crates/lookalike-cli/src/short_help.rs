//! Short help that fits a screen: for a command with many options, `-h` shows those that most jobs need, and `--help` shows all.

use clap::{Arg, Command};

/// Maximum number of options that `-h` shows without hiding some.
const MAX_SHORT_OPTIONS: usize = 25;

/// Headings of the options that many commands share.
const SHARED_HEADINGS: [&str; 5] = ["Input", "Features", "Method", "Output", "Running"];

/// The shared options that `-h` shows.
const COMMON: [&str; 24] = [
    "format",
    "id",
    "text",
    "max_skipped",
    "against",
    "into",
    "html",
    "shingle",
    "boilerplate",
    "method",
    "threshold",
    "distance",
    "within",
    "across",
    "keep",
    "pairs",
    "output",
    "output_format",
    "resume",
    "overwrite",
    "threads",
    "memory",
    "json",
    "quiet",
];

/// Hides the less common options of all subcommands from `-h`.
pub(crate) fn shorten(command: Command) -> Command {
    // The help option counts too; clap adds it later.
    shorten_with(command, 1)
}

/// Works like `shorten`, for a command that inherits this many options.
fn shorten_with(command: Command, inherited: usize) -> Command {
    // Global options appear in the help of every subcommand below.
    let globals = command.get_arguments().filter(|arg| arg.is_global_set());
    let inherited_below = inherited + globals.count();
    let command = command.mut_subcommands(|below| shorten_with(below, inherited_below));
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    match options.count() + inherited > MAX_SHORT_OPTIONS {
        true => command.mut_args(hide_uncommon),
        false => command,
    }
}

fn hide_uncommon(argument: Arg) -> Arg {
    let heading = argument.get_help_heading();
    let is_shared = heading.is_some_and(|heading| SHARED_HEADINGS.contains(&heading));
    match is_shared && !COMMON.contains(&argument.get_id().as_str()) {
        true => argument.hide_short_help(true),
        false => argument,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    /// Returns all commands as `-h` shows them.
    fn shortened() -> Vec<(String, Command)> {
        let mut command = shorten(Cli::command());
        command.build();
        commands(&command, "lookalike")
    }

    /// Returns the commands without subcommands, each with its full name.
    fn commands(command: &Command, name: &str) -> Vec<(String, Command)> {
        let below = command.get_subcommands();
        let mut found: Vec<(String, Command)> = below
            .flat_map(|below| commands(below, &format!("{name} {}", below.get_name())))
            .collect();
        if found.is_empty() {
            found.push((name.to_owned(), command.clone()));
        }
        found
    }

    #[test]
    fn short_help_shows_25_options_at_most_and_long_help_all() {
        for (name, command) in shortened() {
            let options = |is_shown: fn(&Arg) -> bool| {
                let options = command.get_arguments().filter(|arg| !arg.is_positional());
                options.filter(|arg| is_shown(arg)).count()
            };
            let short = options(|arg| !arg.is_hide_short_help_set());
            assert!(short <= MAX_SHORT_OPTIONS, "{name}: {short}");
            assert_eq!(options(|arg| arg.is_hide_long_help_set()), 0, "{name}");
        }
    }

    #[test]
    fn every_common_option_is_one_of_some_command() {
        let all = commands(&Cli::command(), "lookalike");
        for id in COMMON {
            let mut options = all.iter().flat_map(|(_, command)| command.get_arguments());
            assert!(options.any(|arg| arg.get_id() == id), "{id}");
        }
    }

    #[test]
    fn short_help_takes_a_line_or_two_for_an_option() {
        let mut long = BTreeSet::new();
        for (name, command) in shortened() {
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                if !arg.is_hide_short_help_set() && help.chars().count() > 140 {
                    long.insert(format!("{name} {}: {help}", arg.get_id()));
                }
            }
        }
        assert!(long.is_empty(), "{long:#?}");
    }

    /// clap breaks wider lines anywhere.
    #[test]
    fn texts_below_the_options_fit_the_width_of_help() {
        for (name, command) in shortened() {
            for text in [command.get_after_help(), command.get_after_long_help()] {
                let text = text.map(ToString::to_string).unwrap_or_default();
                let wide = text.lines().find(|line| line.chars().count() > 92);
                assert_eq!(wide, None, "{name}");
            }
        }
    }
}

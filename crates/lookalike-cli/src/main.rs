//! The `lookalike` program: all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    lookalike_cli::run(std::env::args_os()).into()
}

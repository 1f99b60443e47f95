//! The `lookalike` program: all of it is in the library.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::give_back_large_blocks();
    lookalike_cli::run(std::env::args_os()).into()
}

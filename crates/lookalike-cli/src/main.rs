//! The `lookalike` program. All its code except the allocator is in the library.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::release_large_blocks();
    lookalike_cli::run(std::env::args_os()).into()
}

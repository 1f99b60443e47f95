//! Commands that this build lacks: each reports how to get it.

use crate::failure::Failure;

/// Accepts any arguments, which are ignored.
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    about = "(not in this build: needs the Cargo feature `full`)"
)]
pub(crate) struct MissingArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<std::ffi::OsString>,
}

fn refuse(command: &str) -> Result<(), Failure> {
    Err(Failure::Failed(format!(
        "`lookalike {command}` is not in this build: install it with `cargo install --path crates/lookalike-cli --features full`"
    )))
}

macro_rules! missing {
    ($($command:ident: $arguments:ident),*) => {
        $(pub(crate) mod $command {
            pub(crate) use super::MissingArguments as $arguments;

            pub(crate) fn run(_: &$arguments) -> Result<(), crate::failure::Failure> {
                super::refuse(stringify!($command))
            }
        })*
    };
}

#[cfg(not(feature = "evaluation"))]
missing!(evaluate: EvaluateArguments);
#[cfg(not(feature = "service"))]
missing!(client: ClientArguments, serve: ServeArguments, store: StoreArguments);

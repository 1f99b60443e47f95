//! Options as their readers write them: on a command line, or as arguments of a call.

use std::fmt::Display;

/// The way in which a reader writes options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionStyle {
    /// Words of a command line, such as `--max-document 20M`.
    Command,
    /// Keyword arguments of a call, such as `max_document="20M"`.
    Keyword,
}

impl OptionStyle {
    /// Returns the name of an option.
    pub(crate) fn name(self, option: &str) -> String {
        match self {
            Self::Command => format!("--{option}"),
            // These are keywords of Python.
            Self::Keyword if matches!(option, "and" | "in") => format!("{option}_"),
            Self::Keyword => option.replace('-', "_"),
        }
    }

    /// Formats an option with its value: a number, a text, or a placeholder in capitals.
    pub(crate) fn with(self, option: &str, value: impl Display) -> String {
        let (name, value) = (self.name(option), value.to_string());
        // Numbers and placeholders such as FIELD are written without quotes.
        let is_bare = value.parse::<f64>().is_ok() || value.bytes().all(|b| b.is_ascii_uppercase());
        match self {
            Self::Command => format!("{name} {value}"),
            Self::Keyword if is_bare => format!("{name}={value}"),
            Self::Keyword => format!("{name}={value:?}"),
        }
    }

    /// Formats a boolean option that is turned on.
    pub(crate) fn flag(self, option: &str) -> String {
        match self {
            Self::Command => self.name(option),
            Self::Keyword => format!("{}=True", self.name(option)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_their_readers_write_them() {
        let (command, call) = (OptionStyle::Command, OptionStyle::Keyword);
        assert_eq!(command.name("stop-features"), "--stop-features");
        assert_eq!(call.name("stop-features"), "stop_features");
        assert_eq!(call.name("and"), "and_");
        assert_eq!(command.with("server", "path:N"), "--server path:N");
        assert_eq!(call.with("server", "path:N"), "server=\"path:N\"");
        assert_eq!(call.with("threshold", 0.8), "threshold=0.8");
        assert_eq!(call.with("max-skipped", "N"), "max_skipped=N");
        assert_eq!(command.flag("overwrite"), "--overwrite");
        assert_eq!(call.flag("overwrite"), "overwrite=True");
    }
}

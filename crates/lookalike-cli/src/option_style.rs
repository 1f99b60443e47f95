//! Options as their readers write them: on a command line, or as arguments of a call.

/// The way in which a reader writes options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionStyle {
    /// Words of a command line, such as `--max-document 20M`.
    Command,
    /// Keyword arguments of a call, such as `max_document="20M"`.
    Keyword,
}

/// The options without a value.
const FLAGS: [&str; 5] = ["no-ids", "overwrite", "resume", "skip-unreadable", "strict"];

impl OptionStyle {
    /// Writes the options in a text in this style. In the text they are `--name`, or `--name=VALUE` with a number, a word, or a placeholder in
    /// capitals; a value ends before a space, a comma, a semicolon or a bracket.
    pub(crate) fn write(self, text: &str) -> String {
        let mut parts = text.split("--");
        let mut written = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            let (value, rest) = match rest.strip_prefix('=') {
                Some(rest) => {
                    let end = rest.find([' ', ',', ';', ')']).unwrap_or(rest.len());
                    (Some(&rest[..end]), &rest[end..])
                }
                None => (None, rest),
            };
            written += &self.option(name, value);
            written += rest;
        }
        written
    }

    fn option(self, name: &str, value: Option<&str>) -> String {
        if self == Self::Command {
            let value = value.map(|value| format!(" {value}"));
            return format!("--{name}{}", value.unwrap_or_default());
        }
        let keyword = match name {
            // These are keywords of Python.
            "and" | "in" => format!("{name}_"),
            _ => name.replace('-', "_"),
        };
        match value {
            // Numbers and placeholders such as FIELD are written without quotes.
            Some(value)
                if value.parse::<f64>().is_ok()
                    || value.bytes().all(|b| b.is_ascii_uppercase()) =>
            {
                format!("{keyword}={value}")
            }
            Some(value) => format!("{keyword}={value:?}"),
            None if FLAGS.contains(&name) => format!("{keyword}=True"),
            None => keyword,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_their_readers_write_them() {
        for (text, command, call) in [
            (
                "raise --stop-features",
                "raise --stop-features",
                "raise stop_features",
            ),
            ("(--and)", "(--and)", "(and_)"),
            (
                "--server=path:N, or",
                "--server path:N, or",
                "server=\"path:N\", or",
            ),
            (
                "--threshold=0.8; 0",
                "--threshold 0.8; 0",
                "threshold=0.8; 0",
            ),
            ("--max-skipped=N", "--max-skipped N", "max_skipped=N"),
            ("--overwrite", "--overwrite", "overwrite=True"),
        ] {
            assert_eq!(OptionStyle::Command.write(text), command);
            assert_eq!(OptionStyle::Keyword.write(text), call);
        }
    }
}

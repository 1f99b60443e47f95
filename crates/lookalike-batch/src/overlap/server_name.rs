//! The rule by which documents get the name of a server.

use std::fmt;
use std::str::FromStr;

use lookalike_corpus::FieldPath;

use crate::setting_words::ParseSettingError;

/// Source of the name of a document's server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerName {
    /// The host of the URL, taken from the field `url` or else from the id.
    #[default]
    Url,
    /// A field of the record.
    Field(FieldPath),
    /// The given number of leading components of the id, which is a path.
    Path(usize),
}

impl FromStr for ServerName {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Self, ParseSettingError> {
        match text.split_once(':') {
            None if text == "url" => Ok(Self::Url),
            Some(("path", depth)) => {
                let depth = depth.parse().ok().filter(|depth| *depth > 0);
                let fault = "needs a number of at least 1, such as path:2";
                depth
                    .map(Self::Path)
                    .ok_or_else(|| ParseSettingError::malformed(text, fault))
            }
            Some(("field", name)) => name
                .parse()
                .map(Self::Field)
                .map_err(ParseSettingError::part),
            _ => {
                let words = ["url", "field:NAME", "path:N"];
                Err(ParseSettingError::unknown("server name", text, &words, ""))
            }
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("url"),
            Self::Field(field) => write!(f, "field:{field}"),
            Self::Path(depth) => write!(f, "path:{depth}"),
        }
    }
}

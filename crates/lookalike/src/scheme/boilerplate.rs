//! Option that removes lines that recur on many pages, before anything else is done to a text.

use std::fmt;

use super::parse_error::option_from_str;

crate::words! {
    /// Pages among which a line must recur.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum BoilerplateScope {
        /// The pages of its site.
        Site = "site",
        /// All pages of the collection.
        Collection = "collection",
    }
}

/// Treatment of lines that recur on many pages (Manku et al. 2007, section 6); kept by default.
///
/// In a scheme: `boilerplate=site/1:0123456789abcdef`, with the version of the rules and the id of the lines. The lines were learned from one
/// collection, so texts without other lines are not comparable.
///
/// ```
/// use lookalike::Boilerplate;
/// use lookalike::scheme::BoilerplateScope;
///
/// let removed = Boilerplate::Removed { scope: BoilerplateScope::Site, id: 0x0123_4567_89ab_cdef };
/// assert_eq!(removed.to_string(), "site/1:0123456789abcdef");
/// assert_eq!("site/1:0123456789abcdef".parse(), Ok(removed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Boilerplate {
    /// The lines are kept.
    #[default]
    Kept,
    /// The lines were removed.
    Removed {
        /// Pages among which the lines recur.
        scope: BoilerplateScope,
        /// The id of the lines.
        id: u64,
    },
}

impl fmt::Display for Boilerplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("kept"),
            Self::Removed { scope, id } => write!(f, "{scope}/1:{id:016x}"),
        }
    }
}

option_from_str!(
    Boilerplate,
    "boilerplate of this build",
    "kept, or site/1: or collection/1: and 16 hexadecimal digits",
    parse_boilerplate
);

fn parse_boilerplate(text: &str) -> Option<Boilerplate> {
    let parsed = match text.split_once("/1:") {
        None => Boilerplate::Kept,
        Some((scope, id)) => {
            let mut scopes = BoilerplateScope::ALL.into_iter();
            let scope = scopes.find(|known| known.name() == scope)?;
            let id = u64::from_str_radix(id, 16).ok()?;
            Boilerplate::Removed { scope, id }
        }
    };
    // One text for each value: upper-case digits or a sign would give the same scheme another id.
    (parsed.to_string() == text).then_some(parsed)
}

//! Options, which stand after the `?` and count for all items of a request.

use lookalike::SchemeId;
use lookalike_store::{Collection, InsertWhen, LARGEST_RADIUS};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::HEX;
use crate::problem::Problem;

/// Neighbours that are shown, unless another number is asked for.
const NEIGHBOURS: usize = 10;
/// Most neighbours of an item.
const MOST_NEIGHBOURS: usize = 100;

/// Which fingerprints an operation takes, and how far it looks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeOptions {
    /// Largest distance, at most that of the collection, which is the default.
    #[schemars(range(max = LARGEST_RADIUS))]
    radius: Option<u32>,
    /// Id of a scheme: refuses unless the collection has this one.
    #[schemars(extend("pattern" = HEX))]
    scheme: Option<String>,
}

/// Of operations that show neighbours.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryOptions {
    /// Largest distance, at most that of the collection, which is the default.
    #[schemars(range(max = LARGEST_RADIUS))]
    radius: Option<u32>,
    /// Id of a scheme: refuses unless the collection has this one.
    #[schemars(extend("pattern" = HEX))]
    scheme: Option<String>,
    /// Most neighbours of an item: 10 unless told otherwise, at most 100.
    #[schemars(range(max = MOST_NEIGHBOURS))]
    limit: Option<usize>,
    /// Compare with the text or signature of each neighbour, where these are kept.
    #[serde(default)]
    verify: bool,
    /// Show where the text of each neighbour differs, where texts are kept; verifies, too.
    #[serde(default)]
    diff: bool,
}

/// Of check-and-insert.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InsertOptions {
    /// Largest distance, at most that of the collection, which is the default.
    #[schemars(range(max = LARGEST_RADIUS))]
    radius: Option<u32>,
    /// Id of a scheme: refuses unless the collection has this one.
    #[schemars(extend("pattern" = HEX))]
    scheme: Option<String>,
    /// Most neighbours of an item: 10 unless told otherwise, at most 100.
    #[schemars(range(max = MOST_NEIGHBOURS))]
    limit: Option<usize>,
    /// Compare with the text or signature of each neighbour, where these are kept.
    #[serde(default)]
    verify: bool,
    /// Show where the text of each neighbour differs, where texts are kept; verifies, too.
    #[serde(default)]
    diff: bool,
    /// What is inserted: what is new (the default), what is not exact, or always.
    insert: Option<When>,
}

/// Of operations on paragraphs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageOptions {
    /// Most documents of a paragraph: 10 unless told otherwise, at most 100.
    #[schemars(range(max = MOST_NEIGHBOURS))]
    limit: Option<usize>,
}

/// Of get.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetOptions {
    /// Show the text, too, where texts are kept; for one document at a time.
    #[serde(default)]
    pub(crate) text: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "InsertWhen")]
enum When {
    New,
    NotExact,
    Always,
}

/// Where an operation looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    radius: Option<u32>,
    scheme: Option<SchemeId>,
}

/// What an operation shows of neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    /// Most neighbours of an item.
    pub(crate) limit: usize,
    pub(crate) verify: bool,
    pub(crate) diff: bool,
}

impl Scope {
    fn new(radius: Option<u32>, scheme: Option<&str>) -> Result<Self, Problem> {
        let scheme = scheme.map(|digits| {
            let value = u64::from_str_radix(digits, 16).ok();
            value
                .filter(|_| digits.len() == 16)
                .map(SchemeId)
                .ok_or_else(|| {
                    Problem::malformed("scheme is no id of a scheme: 16 hexadecimal digits")
                })
        });
        Ok(Self {
            radius,
            scheme: scheme.transpose()?,
        })
    }

    /// The radius in a collection, which must have the scheme that is named, if one is.
    pub(crate) fn radius_in(&self, collection: &Collection) -> Result<u32, Problem> {
        if let Some(scheme) = self.scheme {
            collection.ensure_scheme_id(scheme)?;
        }
        let most = collection.settings().radius;
        match self.radius {
            Some(radius) if radius > most => Err(Problem::invalid(
                format!(
                    "radius {radius} is larger than the {most} that the collection was made for"
                ),
                "ask for a smaller radius, or make a collection with a larger one",
            )),
            radius => Ok(radius.unwrap_or(most)),
        }
    }
}

fn checked_limit(limit: Option<usize>) -> Result<usize, Problem> {
    match limit {
        Some(limit) if limit > MOST_NEIGHBOURS => Err(Problem::invalid(
            format!("limit {limit} is larger than {MOST_NEIGHBOURS}"),
            "ask for fewer; `more` says when there are others",
        )),
        limit => Ok(limit.unwrap_or(NEIGHBOURS)),
    }
}

impl ScopeOptions {
    pub(crate) fn scope(&self) -> Result<Scope, Problem> {
        Scope::new(self.radius, self.scheme.as_deref())
    }
}

impl QueryOptions {
    pub(crate) fn scope(&self) -> Result<Scope, Problem> {
        Scope::new(self.radius, self.scheme.as_deref())
    }

    pub(crate) fn looks(&self) -> Result<Looks, Problem> {
        Ok(Looks {
            limit: checked_limit(self.limit)?,
            verify: self.verify || self.diff,
            diff: self.diff,
        })
    }
}

impl InsertOptions {
    pub(crate) fn scope(&self) -> Result<Scope, Problem> {
        Scope::new(self.radius, self.scheme.as_deref())
    }

    pub(crate) fn looks(&self) -> Result<Looks, Problem> {
        Ok(Looks {
            limit: checked_limit(self.limit)?,
            verify: self.verify || self.diff,
            diff: self.diff,
        })
    }

    pub(crate) fn insert(&self) -> InsertWhen {
        match self.insert.unwrap_or(When::New) {
            When::New => InsertWhen::New,
            When::NotExact => InsertWhen::NotExact,
            When::Always => InsertWhen::Always,
        }
    }
}

impl PageOptions {
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        checked_limit(self.limit)
    }
}

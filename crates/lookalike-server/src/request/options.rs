//! Options, which stand after the `?` and count for all items of a request.

use lookalike::SchemeId;
use lookalike_store::{Collection, InsertWhen};
use serde::Deserialize;

use crate::problem::Problem;

/// Neighbours that are shown, unless another number is asked for.
const NEIGHBOURS: usize = 10;
/// Most neighbours of an item.
const MOST_NEIGHBOURS: usize = 100;

/// Which fingerprints an operation takes, and how far it looks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeOptions {
    radius: Option<u32>,
    scheme: Option<String>,
}

/// Of operations that show neighbours.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryOptions {
    radius: Option<u32>,
    scheme: Option<String>,
    limit: Option<usize>,
}

/// Of check-and-insert.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InsertOptions {
    radius: Option<u32>,
    scheme: Option<String>,
    limit: Option<usize>,
    insert: Option<When>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
            "ask for fewer neighbours; `more` says when there are others",
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

    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        checked_limit(self.limit)
    }
}

impl InsertOptions {
    pub(crate) fn scope(&self) -> Result<Scope, Problem> {
        Scope::new(self.radius, self.scheme.as_deref())
    }

    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        checked_limit(self.limit)
    }

    pub(crate) fn insert(&self) -> InsertWhen {
        match self.insert.unwrap_or(When::New) {
            When::New => InsertWhen::New,
            When::NotExact => InsertWhen::NotExact,
            When::Always => InsertWhen::Always,
        }
    }
}

//! Options, which come after the `?` and apply to all items of a request.

use std::time::Duration;

use lookalike::SchemeId;
use lookalike::chunk::Chunking;
use lookalike::scheme::ParseOptionError;
use lookalike_store::{
    CategoryScope, Collection, CollectionSettings, InsertWhen, MAX_RADIUS, NeighbourCursor,
    NeighbourPage, NeighbourScope,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::{DOCUMENT_TTL_REMEDY, HEX, MAX_TTL_SECONDS, life};
use super::min_equal::{MinEqualOption, requested_distance};
use crate::problem::ProblemDetails;

/// Default number of neighbours that are shown.
const NEIGHBOURS: usize = 10;
/// Maximum number of copies of a document.
const MAX_COPIES: usize = 1000;
/// Maximum number of neighbours of an item.
const MAX_NEIGHBOURS: usize = 100;

/// Defines options, the first of which say which documents are near and are compared. serde's `flatten` would accept unknown fields.
macro_rules! scope_options {
    ($(#[$about:meta])* $name:ident { $($(#[$told:meta])* $own:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Largest distance in bits of fingerprints; at most the radius of the collection, which is the default.
            #[schemars(range(max = MAX_RADIUS))]
            radius: Option<u32>,
            /// Minimum number of super-shingles or minima in common, if the collection holds these; at least the collection's own number,
            /// which is the default.
            equal: Option<MinEqualOption>,
            /// Id of a scheme: the request is refused unless the collection has this scheme.
            #[schemars(extend("pattern" = HEX))]
            scheme: Option<String>,
            /// Restriction of comparisons by category, if the collection keeps categories; the default is the collection's.
            #[schemars(with = "Option<String>", extend("enum" = ["all", "within", "across"]))]
            pairs: Option<CategoryScope>,
            /// Minimum length of the shorter text as a share of the longer one, in bytes, if the collection compares lengths; 0 for any.
            /// The default is the collection's.
            #[schemars(range(min = 0, max = 1))]
            lengths: Option<f64>,
            $($(#[$told])* $own: $type,)*
        }

        impl $name {
            pub(crate) fn scope(&self) -> Result<SearchScope, ProblemDetails> {
                let scope = SearchScope::new(self.radius, self.scheme.as_deref())?;
                scope.comparing(self.equal, self.pairs, self.lengths)
            }
        }
    };
}

scope_options! {
    /// Options of operations that only take sketches and a scope.
    ScopeOptions {}
}

scope_options! {
    /// Options of operations that show neighbours.
    QueryOptions {
        /// Maximum number of neighbours per item; default 10, at most 100.
        #[schemars(range(max = MAX_NEIGHBOURS))]
        limit: Option<usize>,
        /// Cursor `next` of an earlier answer: shows the neighbours that follow.
        after: Option<String>,
        /// True to compare with the text or signature of each neighbour; the default if the collection keeps these.
        verify: Option<bool>,
        /// True to show where the text of each neighbour differs, if texts are kept; implies `verify`.
        #[serde(default)]
        diff: bool,
    }
}

/// Options of operations that store documents.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InsertOptions {
    /// Largest distance; at most the radius of the collection, which is the default.
    #[schemars(range(max = MAX_RADIUS))]
    radius: Option<u32>,
    /// Id of a scheme: the request is refused unless the collection has this scheme.
    #[schemars(extend("pattern" = HEX))]
    scheme: Option<String>,
    /// Lifetime of documents without one of their own, from 1 second to a hundred years; the default is the collection's.
    #[schemars(range(min = 1, max = MAX_TTL_SECONDS))]
    ttl_seconds: Option<u64>,
}

/// The checked options of an insert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InsertScope {
    pub(crate) scope: SearchScope,
    /// Lifetime of documents without one of their own; `None` for the collection's.
    pub(crate) time_to_live: Option<Duration>,
}

impl InsertOptions {
    pub(crate) fn checked(&self) -> Result<InsertScope, ProblemDetails> {
        let time_to_live = self
            .ttl_seconds
            .map(|seconds| life(seconds, DOCUMENT_TTL_REMEDY));
        Ok(InsertScope {
            scope: SearchScope::new(self.radius, self.scheme.as_deref())?,
            time_to_live: time_to_live.transpose()?,
        })
    }
}

scope_options! {
    /// Options of check-and-insert.
    CheckAndInsertOptions {
        /// Maximum number of neighbours per item; default 10, at most 100.
        #[schemars(range(max = MAX_NEIGHBOURS))]
        limit: Option<usize>,
        /// True to compare with the text or signature of each neighbour; the default if the collection keeps these.
        verify: Option<bool>,
        /// True to show where the text of each neighbour differs, if texts are kept; implies `verify`.
        #[serde(default)]
        diff: bool,
        /// Condition of the insert: `new` (the default; nothing is within the radius), `not-same-fingerprint`, `not-exact` (nothing has
        /// the same text) or `always`.
        #[schemars(with = "Option<String>", extend("enum" = ["new", "not-same-fingerprint", "not-exact", "always"]))]
        insert: Option<InsertWhen>,
    }
}

/// Options of operations on paragraphs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageOptions {
    /// Largest distance of similar paragraphs; at most the radius of paragraphs in the collection, which is the default.
    #[schemars(range(max = MAX_RADIUS))]
    radius: Option<u32>,
    /// Maximum number of documents per paragraph; default 10, at most 100.
    #[schemars(range(max = MAX_NEIGHBOURS))]
    limit: Option<usize>,
}

/// Default unit of a chunk.
const CHUNKING: &str = "lines:2";

/// Options of rerank.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RerankOptions {
    /// Unit of a chunk: doc, sentences, paragraphs, lines:N, words:N, chars:N or fields:N; append `:sliding` to N for overlapping chunks;
    /// default lines:2. Words and characters are those of the collection's scheme.
    chunk: Option<String>,
}

/// Options of copies-of.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopiesOptions {
    /// Unit of a chunk: doc, sentences, paragraphs, lines:N, words:N, chars:N or fields:N; append `:sliding` to N for overlapping chunks;
    /// default lines:2. Words and characters are those of the collection's scheme.
    chunk: Option<String>,
    /// Minimum number of shared chunks; default 1.
    #[schemars(range(min = 1))]
    min_shared: Option<usize>,
    /// Minimum share of the chunks of one of the two documents that the other has, from 0 (the default) to 1.
    #[schemars(range(min = 0, max = 1))]
    min_containment: Option<f64>,
    /// Maximum number of documents that are shown; default 10, at most 1000.
    #[schemars(range(max = MAX_COPIES))]
    limit: Option<usize>,
}

/// The checked options of copies-of: which copies to find, and how many to show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyScope {
    pub(crate) chunking: Chunking,
    pub(crate) min_shared: usize,
    pub(crate) min_containment: f64,
    pub(crate) limit: usize,
}

/// Options of get.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetOptions {
    /// True to show the text too, if texts are kept; for one document at a time.
    #[serde(default)]
    pub(crate) text: bool,
}

/// The checked scope of a search: radius, scheme, and which pairs are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchScope {
    radius: Option<u32>,
    equal: Option<MinEqualOption>,
    scheme: Option<SchemeId>,
    categories: Option<CategoryScope>,
    length_share: Option<f64>,
}

/// The neighbours to show, and whether to verify them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighbourOptions {
    /// Page of neighbours that is shown for an item.
    pub(crate) page: NeighbourPage,
    verify: Option<bool>,
    pub(crate) diff: bool,
}

impl NeighbourOptions {
    /// Tells whether neighbours in a collection are compared with the content sent.
    pub(crate) fn verifies(&self, settings: &CollectionSettings) -> bool {
        let is_possible = settings.keep.texts || settings.keep.signatures;
        self.diff || self.verify.unwrap_or(is_possible)
    }

    /// Returns the same neighbours, but not verified.
    pub(crate) fn unverified(self) -> Self {
        Self {
            verify: Some(false),
            diff: false,
            ..self
        }
    }
}

impl SearchScope {
    fn new(radius: Option<u32>, scheme: Option<&str>) -> Result<Self, ProblemDetails> {
        let scheme = scheme.map(|digits| {
            // `from_str_radix` also accepts fewer digits and a sign.
            let is_plain = digits.len() == 16 && digits.bytes().all(|at| at.is_ascii_hexdigit());
            let value = u64::from_str_radix(digits, 16).ok();
            value.filter(|_| is_plain).map(SchemeId).ok_or_else(|| {
                ProblemDetails::malformed("the id of a scheme is 16 hexadecimal digits")
            })
        });
        Ok(Self {
            radius,
            equal: None,
            scheme: scheme.transpose()?,
            categories: None,
            length_share: None,
        })
    }

    fn comparing(
        mut self,
        equal: Option<MinEqualOption>,
        categories: Option<CategoryScope>,
        length_share: Option<f64>,
    ) -> Result<Self, ProblemDetails> {
        // This form also refuses `NaN`, which a number after the `?` may be.
        if let Some(share) = length_share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(ProblemDetails::invalid(
                format!("lengths is {share}, not from 0 to 1"),
                "change it, or leave it out",
            ));
        }
        self.equal = equal;
        self.categories = categories;
        self.length_share = length_share;
        Ok(self)
    }

    /// Returns the scope of a search in a collection, or an error if the request names another scheme than the collection has.
    pub(crate) fn of(&self, collection: &Collection) -> Result<NeighbourScope, ProblemDetails> {
        let radius = self.radius_in(collection)?;
        let rule = &collection.settings().pairs;
        // An export of the collection does not have them either, so it would be refused by one that keeps them.
        let asks = |what: &str, how: &str| {
            ProblemDetails::invalid(
                format!("the collection keeps no {what}"),
                format!(
                    "leave the option out, or create a collection with {how} and insert the texts there"
                ),
            )
        };
        let wants_categories = self
            .categories
            .is_some_and(|scope| scope != CategoryScope::All);
        if wants_categories && rule.category.is_none() {
            return Err(asks("categories", "`within` or `across`"));
        }
        if self.length_share.is_some_and(|share| share > 0.0) && rule.length_share.is_none() {
            return Err(asks("lengths of texts", "`lengths`"));
        }
        Ok(NeighbourScope::from(radius)
            .categories(self.categories)
            .length_share(self.length_share))
    }

    /// Returns the radius in a collection, or an error if the request names another scheme than the collection has.
    pub(crate) fn radius_in(&self, collection: &Collection) -> Result<u32, ProblemDetails> {
        if let Some(scheme) = self.scheme {
            collection.ensure_scheme_id(scheme)?;
        }
        let settings = collection.settings();
        let (form, most) = (settings.sketch_form(), settings.radius);
        let told = requested_distance(form, self.radius, self.equal)?;
        match (told.filter(|&radius| radius > most), form.places()) {
            (Some(radius), None) => Err(ProblemDetails::invalid(
                format!("radius {radius} is larger than {most}, the radius of the collection"),
                "use a smaller radius, or create a collection with a larger one",
            )),
            (Some(radius), Some(places)) => {
                // Distances are kept as numbers of places that differ, but clients name the number that are equal.
                let [told, least] = [radius, most].map(|apart| places - apart as usize);
                Err(ProblemDetails::invalid(
                    format!("equal {told} is less than {least}, which the collection demands"),
                    "use a larger number, or create a collection with a smaller one",
                ))
            }
            (None, _) => Ok(told.unwrap_or(most)),
        }
    }

    /// Returns the radius of similar paragraphs in a collection.
    pub(crate) fn paragraph_radius_in(
        &self,
        collection: &Collection,
    ) -> Result<u32, ProblemDetails> {
        let most = collection.settings().paragraph_radius();
        match self.radius {
            Some(radius) if radius > most => Err(ProblemDetails::invalid(
                format!(
                    "radius {radius} is larger than {most}, the radius of paragraphs in the collection"
                ),
                "use a smaller radius",
            )),
            radius => Ok(radius.unwrap_or(most)),
        }
    }
}

fn checked_limit(limit: Option<usize>, remedy: &'static str) -> Result<usize, ProblemDetails> {
    match limit {
        Some(limit) if limit > MAX_NEIGHBOURS => Err(ProblemDetails::invalid(
            format!("limit {limit} is larger than {MAX_NEIGHBOURS}"),
            remedy,
        )),
        limit => Ok(limit.unwrap_or(NEIGHBOURS)),
    }
}

impl QueryOptions {
    pub(crate) fn neighbours(&self) -> Result<NeighbourOptions, ProblemDetails> {
        let after = self.after.as_deref().map(str::parse::<NeighbourCursor>);
        let after = after.transpose().map_err(|error| {
            ProblemDetails::invalid(
                error.to_string(),
                "send the value of `next`, or leave it out",
            )
        })?;
        Ok(NeighbourOptions {
            page: NeighbourPage {
                limit: checked_limit(
                    self.limit,
                    "ask for fewer, and for others with the cursor `next` of the answer as `after`",
                )?,
                after,
            },
            verify: self.verify,
            diff: self.diff,
        })
    }
}

impl CheckAndInsertOptions {
    pub(crate) fn neighbours(&self) -> Result<NeighbourOptions, ProblemDetails> {
        Ok(NeighbourOptions {
            page: checked_limit(
                self.limit,
                "ask for fewer; query gives the others, page by page",
            )?
            .into(),
            verify: self.verify,
            diff: self.diff,
        })
    }

    pub(crate) fn insert(&self) -> InsertWhen {
        self.insert.unwrap_or(InsertWhen::New)
    }
}

fn chunking(named: Option<&str>) -> Result<Chunking, ProblemDetails> {
    let chunking = named.unwrap_or(CHUNKING).parse();
    chunking.map_err(|error: ParseOptionError| {
        ProblemDetails::invalid(error.to_string(), "name one of these, or leave it out")
    })
}

impl RerankOptions {
    pub(crate) fn chunking(&self) -> Result<Chunking, ProblemDetails> {
        chunking(self.chunk.as_deref())
    }
}

impl CopiesOptions {
    pub(crate) fn scope(&self) -> Result<CopyScope, ProblemDetails> {
        let min_containment = self.min_containment.unwrap_or(0.0);
        let limit = self.limit.unwrap_or(NEIGHBOURS);
        let scope = CopyScope {
            chunking: chunking(self.chunk.as_deref())?,
            min_shared: self.min_shared.unwrap_or(1),
            min_containment,
            limit,
        };
        let wrong = if scope.min_shared == 0 {
            "min_shared is 0, not 1 or more".to_owned()
        } else if limit > MAX_COPIES {
            format!("limit {limit} is larger than {MAX_COPIES}")
        } else if !(0.0..=1.0).contains(&min_containment) {
            format!("min_containment {min_containment} is not from 0 to 1")
        } else {
            return Ok(scope);
        };
        Err(ProblemDetails::invalid(wrong, "change it, or leave it out"))
    }
}

impl PageOptions {
    pub(crate) fn scope(&self) -> Result<SearchScope, ProblemDetails> {
        SearchScope::new(self.radius, None)
    }

    pub(crate) fn limit(&self) -> Result<usize, ProblemDetails> {
        checked_limit(self.limit, "ask for fewer")
    }
}

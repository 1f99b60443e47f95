//! Conditions under which two documents are compared at all: their categories and the lengths of their texts.

use std::fmt;

use lookalike::resemblance::close_lengths;
use serde::{Deserialize, Serialize};

use crate::codec::{ByteDecoder, put_number};
use crate::error::{Result, StoreError};

/// Traits of a document that decide, beside its content, with which others it is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PairTraits {
    /// Hash of its category, such as that of `lookalike_corpus::category_hash`; 0 where it has none.
    pub category: u64,
    /// Bytes of its text; [`u32::MAX`] of longer ones.
    pub length: u32,
}

impl PairTraits {
    /// Appends a category (8) and a length, a short number.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.category.to_le_bytes());
        put_number(out, self.length.into());
    }

    pub(crate) fn decode(from: &mut ByteDecoder<'_>) -> Option<Self> {
        Some(Self {
            category: from.fixed64()?,
            length: u32::try_from(from.number()?).ok()?,
        })
    }
}

/// Documents that are compared, by their categories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CategoryScope {
    /// All, whatever their categories.
    #[default]
    All,
    /// Those of one category. Documents without one form a category of their own.
    Within,
    /// Those of different categories.
    Across,
}

impl CategoryScope {
    /// The name, as requests have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Within => "within",
            Self::Across => "across",
        }
    }
}

/// The pairs of documents that count in a collection. By default all do.
///
/// ```
/// # use lookalike::{Fingerprint, Scheme};
/// use lookalike_store::{CollectionSettings, PairRule, PairTraits, SketchForm, StoredDocument, Verdict};
/// # use lookalike_store::{Store, StoreOptions, UnixMillis, WriteOp};
///
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::open(&folder, StoreOptions::default().create(true))?;
/// # let now = UnixMillis(1_700_000_000_000);
/// // Pages of one site, of which the shorter has half the length of the longer.
/// let rule = PairRule::default().within("site").length_share(0.5);
/// let pages = store.create_collection("pages", &CollectionSettings::new(&Scheme::default()).pairs(rule))?;
/// let page = |category, length| StoredDocument {
///     traits: PairTraits { category, length },
///     ..StoredDocument::new("a", Fingerprint(0b1011))
/// };
/// pages.write(vec![WriteOp::Insert(page(1, 1000))], now)?;
/// let verdict = |category, length| pages.check(page(category, length).content(SketchForm::Fingerprint), 3, now);
/// assert_eq!(verdict(1, 600)?, Verdict::SameFingerprint);
/// assert_eq!((verdict(2, 600)?, verdict(1, 400)?), (Verdict::New, Verdict::New));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PairRule {
    /// Name of the category, which those who insert read: the store keeps its hash. `None`: no categories are kept.
    pub category: Option<String>,
    /// Documents that are compared, unless a search says otherwise.
    pub scope: CategoryScope,
    /// Least share of the longer text's bytes that the shorter one has, above 0 and at most 1, unless a search says otherwise.
    /// `None`: no lengths are kept.
    pub length_share: Option<f64>,
}

impl fmt::Display for PairRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.category {
            Some(category) => write!(f, "{} {category}", self.scope.name())?,
            None => f.write_str(self.scope.name())?,
        }
        match self.length_share {
            Some(share) => write!(f, ", lengths {share}"),
            None => Ok(()),
        }
    }
}

impl PairRule {
    /// Compares documents of one category.
    #[must_use]
    pub fn within(self, category: impl Into<String>) -> Self {
        self.by_category(category, CategoryScope::Within)
    }

    /// Compares documents of different categories.
    #[must_use]
    pub fn across(self, category: impl Into<String>) -> Self {
        self.by_category(category, CategoryScope::Across)
    }

    fn by_category(mut self, category: impl Into<String>, scope: CategoryScope) -> Self {
        self.category = Some(category.into());
        self.scope = scope;
        self
    }

    /// Compares documents only if the shorter text has this share of the longer one's bytes.
    #[must_use]
    pub fn length_share(mut self, share: impl Into<Option<f64>>) -> Self {
        self.length_share = share.into();
        self
    }

    /// True if all pairs count: nothing of a document is kept for the rule.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refused = |what: String| Err(StoreError::Invalid(what));
        if self.scope != CategoryScope::All && self.category.is_none() {
            return refused("a collection that compares categories has to name one".to_owned());
        }
        match self.length_share {
            Some(share) if !(share > 0.0 && share <= 1.0) => refused(format!(
                "the share of lengths is {share}, not above 0 and at most 1"
            )),
            _ => Ok(()),
        }
    }

    /// The traits that are kept of a document.
    pub(crate) fn kept(&self, traits: PairTraits) -> PairTraits {
        PairTraits {
            category: self.category.as_ref().map_or(0, |_| traits.category),
            length: self.length_share.map_or(0, |_| traits.length),
        }
    }

    /// The filter of a search for the neighbours of a document.
    pub(crate) fn filter(&self, search: NeighbourScope, traits: PairTraits) -> Result<PairFilter> {
        let refused = |what: &str| Err(StoreError::Invalid(what.to_owned()));
        let scope = search.categories.unwrap_or(self.scope);
        if scope != CategoryScope::All && self.category.is_none() {
            return refused("the collection keeps no categories");
        }
        let share = search.length_share.or(self.length_share).unwrap_or(0.0);
        if !(0.0..=1.0).contains(&share) {
            return refused("the share of lengths is not from 0 to 1");
        }
        if share > 0.0 && self.length_share.is_none() {
            return refused("the collection keeps no lengths of texts");
        }
        Ok(PairFilter {
            scope,
            share,
            traits,
        })
    }
}

/// The documents that a search finds: within a radius, and of them those that are compared.
///
/// ```
/// use lookalike_store::{CategoryScope, NeighbourScope};
///
/// let scope = NeighbourScope::from(3).categories(CategoryScope::All);
/// assert_eq!((scope.radius, scope.length_share), (3, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct NeighbourScope {
    /// Largest distance; at most that of the collection.
    pub radius: u32,
    /// Categories that are compared; `None` for those of the collection.
    pub categories: Option<CategoryScope>,
    /// Least share of the longer text's bytes that the shorter one has, 0 for none; `None` for that of the collection.
    pub length_share: Option<f64>,
}

impl From<u32> for NeighbourScope {
    fn from(radius: u32) -> Self {
        Self {
            radius,
            categories: None,
            length_share: None,
        }
    }
}

impl NeighbourScope {
    /// Sets the categories that are compared; `None` for those of the collection.
    #[must_use]
    pub fn categories(mut self, scope: impl Into<Option<CategoryScope>>) -> Self {
        self.categories = scope.into();
        self
    }

    /// Sets the least share of lengths, 0 for none; `None` for that of the collection.
    #[must_use]
    pub fn length_share(mut self, share: impl Into<Option<f64>>) -> Self {
        self.length_share = share.into();
        self
    }
}

/// Tells which documents are compared with one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairFilter {
    scope: CategoryScope,
    /// 0 for any lengths.
    share: f64,
    traits: PairTraits,
}

impl PairFilter {
    /// True if all are: traits need not be looked at.
    pub(crate) fn is_open(&self) -> bool {
        self.scope == CategoryScope::All && self.share == 0.0
    }

    /// Tells whether a document of these traits is compared.
    pub(crate) fn admits(&self, other: PairTraits) -> bool {
        let same = self.traits.category == other.category;
        let by_category = match self.scope {
            CategoryScope::All => true,
            CategoryScope::Within => same,
            CategoryScope::Across => !same,
        };
        // Documents of unknown length count as empty and resemble in length only each other.
        by_category && close_lengths(self.traits.length.into(), other.length.into(), self.share)
    }
}

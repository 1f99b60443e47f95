//! Rules that tell which documents are compared at all: by category and by the lengths of their texts.

use std::fmt;
use std::ops::RangeInclusive;

use lookalike::resemblance::close_lengths;
use serde::{Deserialize, Serialize};

use crate::codec::{ByteDecoder, put_number};
use crate::error::{Result, StoreError};

/// Traits of a document that decide, besides its content, with which others it is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PairTraits {
    /// Hash of its category, such as that of `lookalike_corpus::category_hash`; 0 if it has none.
    pub category: u64,
    /// Size of its text in bytes; [`u32::MAX`] for longer texts.
    pub length: u32,
}

impl PairTraits {
    /// Appends the category in 8 bytes, and the length in variable length.
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

lookalike::words! {
    /// Restriction of comparisons by category.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CategoryScope {
        /// Compare all documents, whatever their categories.
        #[default]
        All = "all",
        /// Compare documents of the same category. Those without one form a category of their own.
        Within = "within",
        /// Compare documents of different categories.
        Across = "across",
    }
}

/// The pairs of documents that a collection compares; all by default.
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
    /// Name of the category. Callers read its value from documents; the store keeps only hashes of values. `None` if no categories are
    /// kept.
    pub category: Option<String>,
    /// Restriction by category, unless a search sets its own.
    pub scope: CategoryScope,
    /// Minimum length of the shorter text as a share of the longer one, in bytes, above 0 and at most 1, unless a search sets its own.
    /// `None` if no lengths are kept.
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
    /// Compares only documents of the same category.
    #[must_use]
    pub fn within(self, category: impl Into<String>) -> Self {
        self.by_category(category, CategoryScope::Within)
    }

    /// Compares only documents of different categories.
    #[must_use]
    pub fn across(self, category: impl Into<String>) -> Self {
        self.by_category(category, CategoryScope::Across)
    }

    fn by_category(mut self, category: impl Into<String>, scope: CategoryScope) -> Self {
        self.category = Some(category.into());
        self.scope = scope;
        self
    }

    /// Compares documents only if the shorter text has at least this share of the longer one's bytes.
    #[must_use]
    pub fn length_share(mut self, share: impl Into<Option<f64>>) -> Self {
        self.length_share = share.into();
        self
    }

    /// Returns true if all pairs are compared: the rule then needs nothing of a document.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refused = |what: String| Err(StoreError::Invalid(what));
        if self.scope != CategoryScope::All && self.category.is_none() {
            return refused("a collection that compares categories has to name one".to_owned());
        }
        match self.length_share {
            // The negation also refuses NaN.
            Some(share) if !(share > 0.0 && share <= 1.0) => refused(format!(
                "the share of lengths is {share}, not above 0 and at most 1"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the traits of a document that the rule needs; the others are 0.
    pub(crate) fn relevant_traits(&self, traits: PairTraits) -> PairTraits {
        PairTraits {
            // A run whose documents all have 0 does not store the trait (`write_traits`).
            category: self.category.as_ref().map_or(0, |_| traits.category),
            length: self.length_share.map_or(0, |_| traits.length),
        }
    }

    /// Returns the filter of a search for the neighbours of a document with these traits.
    pub(crate) fn filter(&self, search: NeighbourScope, traits: PairTraits) -> Result<PairFilter> {
        let refused = |what: &str| Err(StoreError::Invalid(what.to_owned()));
        let scope = search.categories.unwrap_or(self.scope);
        if scope != CategoryScope::All && self.category.is_none() {
            return refused("the collection keeps no categories");
        }
        let share = search.length_share.or(self.length_share).unwrap_or(0.0);
        // This also refuses NaN.
        if !(0.0..=1.0).contains(&share) {
            return refused("the share of lengths is not from 0 to 1");
        }
        if share > 0.0 && self.length_share.is_none() {
            return refused("the collection keeps no lengths of texts");
        }
        // Without categories all documents are of one, in which they are found by their lengths.
        let is_one = self.category.is_none() && share > 0.0;
        Ok(PairFilter {
            scope: if is_one { CategoryScope::Within } else { scope },
            share,
            traits: self.relevant_traits(traits),
        })
    }
}

/// The scope of a search: a radius, and restrictions by category and length.
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
    /// Largest distance; at most the radius of the collection.
    pub radius: u32,
    /// Restriction by category; `None` for the collection's.
    pub categories: Option<CategoryScope>,
    /// Minimum length of the shorter text as a share of the longer one, 0 for any; `None` for the collection's.
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
    /// Sets the restriction by category; `None` for the collection's.
    #[must_use]
    pub fn categories(mut self, scope: impl Into<Option<CategoryScope>>) -> Self {
        self.categories = scope.into();
        self
    }

    /// Sets the minimum share of lengths, 0 for any; `None` for the collection's.
    #[must_use]
    pub fn length_share(mut self, share: impl Into<Option<f64>>) -> Self {
        self.length_share = share.into();
        self
    }
}

#[cfg(test)]
thread_local! {
    /// Number of documents that filters of this thread were asked about.
    pub(crate) static ADMITTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Filter of the documents that are compared with a given one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairFilter {
    scope: CategoryScope,
    /// Minimum share of lengths; 0 for any lengths.
    share: f64,
    traits: PairTraits,
}

impl PairFilter {
    /// Returns true if it admits all documents, so that their traits need not be read.
    pub(crate) fn is_open(&self) -> bool {
        self.scope == CategoryScope::All && self.share == 0.0
    }

    /// Tells whether a document with these traits is compared.
    pub(crate) fn admits(&self, other: PairTraits) -> bool {
        #[cfg(test)]
        ADMITTED.set(ADMITTED.get() + 1);
        // A document of unknown length counts as empty, so it is close in length only to others of that kind.
        self.admits_category(other.category)
            && close_lengths(self.traits.length.into(), other.length.into(), self.share)
    }

    /// Tells whether documents of a category are compared, if their lengths are close.
    pub(crate) fn admits_category(&self, category: u64) -> bool {
        let same = self.traits.category == category;
        match self.scope {
            CategoryScope::All => true,
            CategoryScope::Within => same,
            CategoryScope::Across => !same,
        }
    }

    /// Returns the only category whose documents are compared, if there is only one.
    pub(crate) fn only_category(&self) -> Option<u64> {
        (self.scope == CategoryScope::Within).then_some(self.traits.category)
    }

    /// Returns lengths outside which no document is compared.
    pub(crate) fn lengths(&self) -> RangeInclusive<u32> {
        if self.share == 0.0 {
            return 0..=u32::MAX;
        }
        let length = f64::from(self.traits.length);
        // One more to either side, because these are rounded. A cast stays within the bounds of the type.
        (length * self.share - 1.0) as u32..=(length / self.share + 1.0) as u32
    }
}

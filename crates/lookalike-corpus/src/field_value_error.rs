//! Fields of a record that hold another kind of value than they must.

/// A field that holds another kind of value than it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldValueError {
    /// The id is neither a text nor a number, but what the word says.
    #[error("the id field holds {0}, not a string or number")]
    Id(&'static str),
    /// The text is none, but what the word says.
    #[error("the text field holds {0}, not a string")]
    Text(&'static str),
    /// The anchors are no anchors.
    #[error("the field anchors must hold texts, or objects with text, before and after")]
    Anchors,
    /// The links in the field of this name are no addresses.
    #[error("the field {0} must hold addresses")]
    Links(&'static str),
}

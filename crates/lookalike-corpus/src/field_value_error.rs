//! Errors for fields of a record whose value has the wrong type.

/// A field whose value has the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldValueError {
    /// The id is neither a string nor a number, but a value of the named type.
    #[error("the id field holds {0}, not a string or number")]
    Id(&'static str),
    /// The text is not a string, but a value of the named type.
    #[error("the text field holds {0}, not a string")]
    Text(&'static str),
    /// The anchors are invalid.
    #[error("the field anchors must hold texts, or objects with text, before and after")]
    Anchors,
    /// The links in the named field are invalid.
    #[error("the field {0} must hold addresses")]
    Links(&'static str),
}

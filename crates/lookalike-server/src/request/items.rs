//! One item, or a batch of them as a JSON array. The answer has the same shape.

use std::fmt;
use std::marker::PhantomData;

use axum::http::StatusCode;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::error::Category;

use super::body::BodyFormat;
use super::fields_by_name::FieldsByName;
use super::packed::{PACKED, PackedReader, unpack};
use crate::problem::ProblemDetails;

/// The items of a body.
#[derive(Debug, PartialEq)]
pub(crate) enum RequestItems<T> {
    /// An object.
    One(T),
    /// An array.
    Batch(Vec<T>),
    /// A batch in the compact form.
    Packed(Vec<T>),
}

/// An item of a body.
pub(crate) trait RequestItem: DeserializeOwned {
    /// Reads one item in the compact form, if there is one.
    const UNPACK: Option<fn(&mut PackedReader<'_>) -> Option<Self>> = None;
}

/// The answer to an item.
pub(crate) trait ItemResponse: Serialize {
    /// Returns the answer in the compact form.
    fn packed(&self) -> u8;
}

impl<T: RequestItem> RequestItems<T> {
    /// Reads a body of at most `most` items, and stops at the first item beyond.
    pub(crate) fn read(
        body: &[u8],
        format: BodyFormat,
        most: usize,
    ) -> Result<Self, ProblemDetails> {
        match (format, T::UNPACK) {
            (BodyFormat::Json, _) => Self::parse(body, most),
            (BodyFormat::Packed, Some(item)) => unpack(body, most, item).map(Self::Packed),
            (BodyFormat::Packed, None) => Err(no_compact_form()),
        }
    }
}

impl<T: DeserializeOwned> RequestItems<T> {
    fn parse(body: &[u8], most: usize) -> Result<Self, ProblemDetails> {
        if !is_array(body) {
            return parse_one(body).map(Self::One);
        }
        // The limit applies while parsing: a body of eight MiB could contain millions of small items.
        let mut read = 0;
        let mut reader = serde_json::Deserializer::from_slice(body);
        let batch = BatchVisitor {
            most,
            read: &mut read,
            kind: PhantomData,
        };
        let items = batch
            .deserialize(&mut reader)
            .and_then(|items| reader.end().map(|()| items));
        match items {
            Ok(items) => Ok(Self::Batch(items)),
            Err(_) if read > most => Err(ProblemDetails::too_large(format!(
                "the batch has more than {most} items"
            ))),
            // The line and column would refer to a body that the client library assembled, so name the item.
            // `read` counts complete items, so it is the position of the one that failed.
            Err(error) if error.is_data() => Err(problem(&error).at(Some(read))),
            Err(error) => Err(problem(&error)),
        }
    }
}

/// Tells whether a body, if it is JSON, is an array.
fn is_array(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

/// Returns the error for a compact body to an operation that has no compact form.
pub(crate) fn no_compact_form() -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type",
        "this operation has no compact form",
        "send JSON",
    )
}

/// Reads a body that is a single object.
pub(crate) fn parse_one<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProblemDetails> {
    // Otherwise serde would take the values of an array for the fields of the object, in order.
    if is_array(body) {
        return Err(ProblemDetails::invalid(
            "the body is an array, and this operation takes one object",
            "send the object alone, without brackets around it",
        ));
    }
    serde_json::from_slice(body).map_err(|error| problem(&error))
}

fn problem(error: &serde_json::Error) -> ProblemDetails {
    match error.classify() {
        Category::Data => ProblemDetails::invalid(
            format!("the body is JSON, but not what this operation takes: {error}"),
            "see / or /openapi.json of the service for the fields of each operation",
        ),
        _ => ProblemDetails::malformed(format!("the body is not JSON: {error}")),
    }
}

impl<T> RequestItems<T> {
    /// Does something with each item; a problem is that of its place in a batch.
    pub(crate) fn try_map<U>(
        self,
        mut each: impl FnMut(T) -> Result<U, ProblemDetails>,
    ) -> Result<RequestItems<U>, ProblemDetails> {
        self.try_map_placed(|item, place| each(item).map_err(|problem| problem.at(place)))
    }

    /// The same, where some problems are those of the whole request.
    pub(crate) fn try_map_placed<U>(
        self,
        mut each: impl FnMut(T, Option<usize>) -> Result<U, ProblemDetails>,
    ) -> Result<RequestItems<U>, ProblemDetails> {
        let (items, shape) = match self {
            Self::One(item) => return each(item, None).map(RequestItems::One),
            Self::Batch(items) => (items, RequestItems::Batch as fn(_) -> _),
            Self::Packed(items) => (items, RequestItems::Packed as fn(_) -> _),
        };
        let places = items.into_iter().enumerate();
        places
            .map(|(place, item)| each(item, Some(place)))
            .collect::<Result<_, _>>()
            .map(shape)
    }

    /// Returns all items, and the shape for their answers.
    pub(crate) fn into_parts(self) -> (Vec<T>, ItemsShape) {
        match self {
            Self::One(item) => (vec![item], ItemsShape::One),
            Self::Batch(items) => (items, ItemsShape::Batch),
            Self::Packed(items) => (items, ItemsShape::Packed),
        }
    }
}

/// The shape of a request: one item or a batch, and its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemsShape {
    One,
    Batch,
    Packed,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct EncodedBody {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl EncodedBody {
    pub(crate) fn json(answer: &impl Serialize) -> Self {
        Self {
            kind: "application/json",
            bytes: serde_json::to_vec(answer).expect("answers have keys that are strings"),
        }
    }
}

impl ItemsShape {
    /// Encodes answers in the shape of the request.
    pub(crate) fn write<T: ItemResponse>(self, answers: &[T]) -> EncodedBody {
        match (self, answers) {
            (Self::Packed, answers) => EncodedBody {
                kind: PACKED,
                bytes: answers.iter().map(T::packed).collect(),
            },
            (Self::One, [answer]) => EncodedBody::json(answer),
            (_, answers) => EncodedBody::json(&answers),
        }
    }
}

struct BatchVisitor<'a, T> {
    most: usize,
    /// Number of items read so far.
    read: &'a mut usize,
    kind: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for BatchVisitor<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for BatchVisitor<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(FieldsByName(item)) = sequence.next_element()? {
            *self.read += 1;
            if *self.read > self.most {
                // Errors of serde are only texts; the number of items tells this one from the others.
                return Err(A::Error::custom("too many items"));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn an_array_was_taken_for_the_fields_of_an_item() {
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(expecting = "an object")]
        struct Link {
            from: u32,
            to: Option<String>,
        }
        let parse = |body: &str| RequestItems::<Link>::parse(body.as_bytes(), 2);
        let to = Some("a".to_owned());
        assert_eq!(
            parse(r#"[{"to":"a","from":7}]"#).expect("an object"),
            RequestItems::Batch(vec![Link { from: 7, to }])
        );
        for body in [r#"[[7,"a"]]"#, r#"[{"from":7},[7,"a"]]"#, r#"[7,"a"]"#] {
            assert_eq!(parse(body).expect_err("an array").status.as_u16(), 422);
        }
    }

    impl ItemResponse for u8 {
        fn packed(&self) -> u8 {
            *self
        }
    }

    #[test]
    fn an_object_is_one_and_an_array_a_batch() {
        let parse = |body: &str| RequestItems::<u32>::parse(body.as_bytes(), 2);
        assert_eq!(parse(" 7").expect("one"), RequestItems::One(7));
        assert_eq!(
            parse(" [7, 8] ").expect("a batch"),
            RequestItems::Batch(vec![7, 8])
        );
        assert_eq!(parse("[]").expect("a batch"), RequestItems::Batch(vec![]));
        for (body, status) in [
            ("[1,2,3]", 413),
            ("[1,", 400),
            ("", 400),
            ("[1] 2", 400),
            ("[\"a\"]", 422),
        ] {
            assert_eq!(
                parse(body).expect_err("wrong").status.as_u16(),
                status,
                "{body}"
            );
        }
        for (shape, answers, wanted) in [
            (ItemsShape::One, &[1][..], &b"1"[..]),
            (ItemsShape::Batch, &[1, 2], b"[1,2]"),
            (ItemsShape::Batch, &[], b"[]"),
            (ItemsShape::Packed, &[1, 2], &[1, 2]),
        ] {
            assert_eq!(shape.write(answers).bytes, wanted);
        }
    }
}

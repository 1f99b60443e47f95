//! One item, or a batch of them as a JSON array; the answer has the same shape.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::error::Category;

use super::body::Form;
use super::packed::{PACKED, Unpacker, unpack};
use crate::problem::Problem;

/// What a body holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Items<T> {
    /// An object.
    One(T),
    /// An array.
    Batch(Vec<T>),
    /// A batch in the compact form.
    Packed(Vec<T>),
}

/// What bodies have one or many of.
pub(crate) trait Item: DeserializeOwned {
    /// Reads one in the compact form.
    fn unpack(from: &mut Unpacker<'_>) -> Option<Self>;
}

/// What is said of an item.
pub(crate) trait Answered: Serialize {
    /// The same in the compact form.
    fn packed(&self) -> u8;
}

impl<T: Item> Items<T> {
    /// Reads a body of at most `most` items; beyond them it stops to read.
    pub(crate) fn read(body: &[u8], form: Form, most: usize) -> Result<Self, Problem> {
        match form {
            Form::Json => Self::parse(body, most),
            Form::Packed => unpack(body, most, T::unpack).map(Self::Packed),
        }
    }
}

impl<T: DeserializeOwned> Items<T> {
    fn parse(body: &[u8], most: usize) -> Result<Self, Problem> {
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if first != Some(&b'[') {
            return parse_one(body).map(Self::One);
        }
        let mut excess = false;
        let mut reader = serde_json::Deserializer::from_slice(body);
        let batch = Batch {
            most,
            excess: &mut excess,
            kind: PhantomData,
        };
        let items = batch
            .deserialize(&mut reader)
            .and_then(|items| reader.end().map(|()| items));
        match items {
            Ok(items) => Ok(Self::Batch(items)),
            Err(_) if excess => Err(Problem::too_large(format!(
                "the batch has more than {most} items"
            ))),
            Err(error) => Err(problem(&error)),
        }
    }
}

/// Reads a body that is one object.
pub(crate) fn parse_one<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| problem(&error))
}

fn problem(error: &serde_json::Error) -> Problem {
    match error.classify() {
        Category::Data => Problem::invalid(
            format!("the body is JSON, but not what this operation takes: {error}"),
            "see / or /openapi.json of the service for the fields of each operation",
        ),
        _ => Problem::malformed(format!("the body is not JSON: {error}")),
    }
}

impl<T> Items<T> {
    /// Does something with each item, which is told its place in a batch.
    pub(crate) fn try_map<U>(
        self,
        mut each: impl FnMut(T, Option<usize>) -> Result<U, Problem>,
    ) -> Result<Items<U>, Problem> {
        let (items, shape) = match self {
            Self::One(item) => return each(item, None).map(Items::One),
            Self::Batch(items) => (items, Items::Batch as fn(_) -> _),
            Self::Packed(items) => (items, Items::Packed as fn(_) -> _),
        };
        let places = items.into_iter().enumerate();
        places
            .map(|(place, item)| each(item, Some(place)))
            .collect::<Result<_, _>>()
            .map(shape)
    }

    /// All items, and the shape that what comes of them takes.
    pub(crate) fn into_parts(self) -> (Vec<T>, Shape) {
        match self {
            Self::One(item) => (vec![item], Shape::One),
            Self::Batch(items) => (items, Shape::Batch),
            Self::Packed(items) => (items, Shape::Packed),
        }
    }
}

/// Whether one or a batch was asked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    Batch,
    Packed,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl Written {
    pub(crate) fn json(answer: &impl Serialize) -> Self {
        Self {
            kind: "application/json",
            bytes: serde_json::to_vec(answer).expect("answers have keys that are strings"),
        }
    }
}

impl Shape {
    /// The answer in the shape of what was asked.
    pub(crate) fn write<T: Answered>(self, answers: &[T]) -> Written {
        match (self, answers) {
            (Self::Packed, answers) => Written {
                kind: PACKED,
                bytes: answers.iter().map(T::packed).collect(),
            },
            (Self::One, [answer]) => Written::json(answer),
            (_, answers) => Written::json(&answers),
        }
    }
}

struct Batch<'a, T> {
    most: usize,
    excess: &'a mut bool,
    kind: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Batch<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Batch<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            if items.len() == self.most {
                *self.excess = true;
                return Err(A::Error::custom("too many items"));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Answered for u8 {
        fn packed(&self) -> u8 {
            *self
        }
    }

    #[test]
    fn an_object_is_one_and_an_array_a_batch() {
        let parse = |body: &str| Items::<u32>::parse(body.as_bytes(), 2);
        assert_eq!(parse(" 7").expect("one"), Items::One(7));
        assert_eq!(
            parse(" [7, 8] ").expect("a batch"),
            Items::Batch(vec![7, 8])
        );
        assert_eq!(parse("[]").expect("a batch"), Items::Batch(vec![]));
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
            (Shape::One, &[1][..], &b"1"[..]),
            (Shape::Batch, &[1, 2], b"[1,2]"),
            (Shape::Batch, &[], b"[]"),
            (Shape::Packed, &[1, 2], &[1, 2]),
        ] {
            assert_eq!(shape.write(answers).bytes, wanted);
        }
    }
}

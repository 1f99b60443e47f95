//! One item, or a batch of them as a JSON array; the answer has the same shape.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::error::Category;

use crate::problem::Problem;

/// What a body holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Items<T> {
    /// An object.
    One(T),
    /// An array.
    Batch(Vec<T>),
}

impl<T: DeserializeOwned> Items<T> {
    /// Reads a body of at most `most` items; beyond them it stops to read.
    pub(crate) fn parse(body: &[u8], most: usize) -> Result<Self, Problem> {
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
            "docs/operations.md has the fields of each operation",
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
        match self {
            Self::One(item) => each(item, None).map(Items::One),
            Self::Batch(items) => items
                .into_iter()
                .enumerate()
                .map(|(place, item)| each(item, Some(place)))
                .collect::<Result<_, _>>()
                .map(Items::Batch),
        }
    }

    /// All items, and the shape that what comes of them takes.
    pub(crate) fn into_parts(self) -> (Vec<T>, Shape) {
        match self {
            Self::One(item) => (vec![item], Shape::One),
            Self::Batch(items) => (items, Shape::Batch),
        }
    }
}

/// Whether one or a batch was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    Batch,
}

impl Shape {
    /// The answer as JSON.
    pub(crate) fn json<T: Serialize>(self, mut answers: Vec<T>) -> Vec<u8> {
        let written = match (self, answers.pop()) {
            (Self::One, Some(answer)) => serde_json::to_vec(&answer),
            (_, last) => {
                answers.extend(last);
                serde_json::to_vec(&answers)
            }
        };
        written.expect("answers have keys that are strings")
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
        assert_eq!(Shape::One.json(vec![1]), b"1");
        assert_eq!(Shape::Batch.json(vec![1, 2]), b"[1,2]");
        assert_eq!(Shape::Batch.json(Vec::<u8>::new()), b"[]");
    }
}

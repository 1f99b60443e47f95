//! Inference of column types from JSON lines: the first of the two readings that convert them to a table.
//!
//! ```text
//! true          Bool      1, -2        Int, UInt       0.5        Float      "x"    Text
//! [1, 2]        List      {"a": 1}     Struct          null       no opinion
//! anything else that meets: Json, the values as they stand in the line
//! ```
//!
//! Fractions are 64-bit floats. Whole numbers are never rounded: if a column has fractions as well as whole numbers beyond 2^53, or whole numbers
//! beyond 64 bits, it becomes a column of JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum nesting of types; values nested deeper become JSON text.
const MAX_DEPTH: usize = 24;

/// Maximum number of names in an object that becomes a struct. An object with more is a map, and becomes JSON text; a table with more columns is
/// refused.
pub(super) const MAX_FIELDS: usize = 1_000;

/// Limit up to which integers are exact as floats.
const EXACT: u64 = 1 << 53;

/// The inferred columns of records.
#[derive(Debug, Default)]
pub(crate) struct InferredColumns {
    pub(super) fields: InferredFields,
    /// True if some object has a name twice; the last value counts then.
    pub(super) repeats: bool,
}

impl InferredColumns {
    /// Updates the types with a record.
    ///
    /// # Errors
    /// Fails if the line is not a JSON object, or there are now more than [`MAX_FIELDS`] columns.
    pub(crate) fn learn(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(line);
        json.deserialize_map(LearnRecord(self))?;
        json.end()
    }

    /// Replaces types that cannot be written: structs without a field become JSON text, and columns without values become text.
    pub(crate) fn settle(&mut self) {
        // Many readers refuse a table without columns.
        if self.fields.0.is_empty() {
            self.fields.0.push(("id".to_owned(), InferredType::Text));
        }
        self.fields.0.iter_mut().for_each(|field| field.1.settle());
    }
}

struct LearnRecord<'a>(&'a mut InferredColumns);

impl<'de> Visitor<'de> for LearnRecord<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let InferredColumns { fields, repeats } = self.0;
        let mut seen = Vec::new();
        let mut expected = 0;
        while let Some(name) = entries.next_key::<Cow<'de, str>>()? {
            let at = fields.find_or_add(&name, expected, &mut seen, repeats);
            if at == MAX_FIELDS {
                return Err(A::Error::custom(format!(
                    "there are now more than {MAX_FIELDS} columns"
                )));
            }
            expected = at + 1;
            // Find the end of the value first: a value that cannot be learned must not end the reading of the line.
            let value: &'de RawValue = entries.next_value()?;
            let kind = &mut fields.0[at].1;
            let mut json = serde_json::Deserializer::from_str(value.get());
            let learn = TypeLearner {
                kind: &mut *kind,
                repeats: &mut *repeats,
                depth: 1,
            };
            // For instance a number that no type can hold.
            if learn.deserialize(&mut json).is_err() {
                *kind = InferredType::Json;
            }
        }
        Ok(())
    }
}

/// The inferred type of a column; see the module documentation. Fields are in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum InferredType {
    /// Only null occurred.
    #[default]
    Null,
    Bool,
    /// Fits a signed 64-bit integer. With `wide`, some value is not exact as a float.
    Int {
        wide: bool,
        negative: bool,
    },
    /// Some value is beyond the signed range, and none is negative.
    UInt,
    Float,
    Text,
    List(Box<InferredType>),
    Struct(InferredFields),
    Json,
}

/// Fields with their types, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InferredFields(pub(super) Vec<(String, InferredType)>);

impl InferredFields {
    /// Finds a field. Checks `expected` first, because records mostly have the same fields in the same order.
    pub(super) fn find(&self, name: &str, expected: usize) -> Option<usize> {
        let here = self.0.get(expected).filter(|field| field.0 == name);
        here.map(|_| expected)
            .or_else(|| self.0.iter().position(|field| field.0 == name))
    }

    /// Works like [`InferredFields::find`], but adds a new field, and sets `repeats` if the name was `seen` before in this object.
    fn find_or_add(
        &mut self,
        name: &str,
        expected: usize,
        seen: &mut Vec<usize>,
        repeats: &mut bool,
    ) -> usize {
        let at = self.find(name, expected).unwrap_or_else(|| {
            self.0.push((name.to_owned(), InferredType::Null));
            self.0.len() - 1
        });
        // Fields mostly come in order. As long as the indices rise, none is repeated: `seen` is searched only if the order differs.
        let in_order = seen.last().is_none_or(|&last| last < at);
        *repeats |= !in_order && seen.contains(&at);
        seen.push(at);
        at
    }
}

impl InferredType {
    fn widen(&mut self, other: InferredType) {
        *self = match (std::mem::take(self), other) {
            (InferredType::Null, other) => other,
            (
                InferredType::Int { wide, negative },
                InferredType::Int {
                    wide: w,
                    negative: n,
                },
            ) => InferredType::Int {
                wide: wide || w,
                negative: negative || n,
            },
            (
                InferredType::Int {
                    negative: false, ..
                },
                InferredType::UInt,
            )
            | (
                InferredType::UInt,
                InferredType::Int {
                    negative: false, ..
                },
            ) => InferredType::UInt,
            (InferredType::Int { wide: false, .. }, InferredType::Float)
            | (InferredType::Float, InferredType::Int { wide: false, .. }) => InferredType::Float,
            // Bool, Text and Float match themselves here; lists and structs are updated in place and never occur as `other`.
            (mine, other) if mine == other => mine,
            // Among others, negative numbers beside numbers beyond 2^63, which no integer of 64 bits holds both.
            _ => InferredType::Json,
        };
    }
}

/// Updates a type with one value; `depth` is the number of enclosing brackets.
struct TypeLearner<'a> {
    kind: &'a mut InferredType,
    repeats: &'a mut bool,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for TypeLearner<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if *self.kind == InferredType::Json {
            return IgnoredAny::deserialize(deserializer).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TypeLearner<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.kind.widen(InferredType::Bool);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.kind.widen(InferredType::Int {
            wide: value.unsigned_abs() > EXACT,
            negative: value < 0,
        });
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.kind.widen(match i64::try_from(value) {
            Ok(_) => InferredType::Int {
                wide: value > EXACT,
                negative: false,
            },
            Err(_) => InferredType::UInt,
        });
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        // It may have been an integer with more digits than a float can hold.
        let is_safe = value.abs() <= EXACT as f64;
        self.kind.widen(if is_safe {
            InferredType::Float
        } else {
            InferredType::Json
        });
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.kind.widen(InferredType::Text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        // Types nest in Parquet's schema and in the library's recursion, so deeper values are stored as JSON text.
        if matches!(self.kind, InferredType::Null) && self.depth < MAX_DEPTH {
            *self.kind = InferredType::List(Box::default());
        }
        let InferredType::List(item) = self.kind else {
            *self.kind = InferredType::Json;
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let (repeats, depth) = (self.repeats, self.depth + 1);
        while items
            .next_element_seed(TypeLearner {
                kind: &mut *item,
                repeats: &mut *repeats,
                depth,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        if matches!(self.kind, InferredType::Null) && self.depth < MAX_DEPTH {
            *self.kind = InferredType::Struct(InferredFields::default());
        }
        let mut seen = Vec::new();
        let mut expected = 0;
        while let Some(name) = entries.next_key::<Cow<'de, str>>()? {
            // The type has changed, so read the rest only to find its end.
            let InferredType::Struct(fields) = &mut *self.kind else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let at = fields.find_or_add(&name, expected, &mut seen, self.repeats);
            if at == MAX_FIELDS {
                *self.kind = InferredType::Json;
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            expected = at + 1;
            entries.next_value_seed(TypeLearner {
                kind: &mut fields.0[at].1,
                repeats: &mut *self.repeats,
                depth: self.depth + 1,
            })?;
        }
        if !matches!(self.kind, InferredType::Struct(_)) {
            *self.kind = InferredType::Json;
        }
        Ok(())
    }
}

impl InferredType {
    /// Works like [`InferredColumns::settle`]: Parquet has no groups without fields.
    fn settle(&mut self) {
        match self {
            InferredType::Null => *self = InferredType::Text,
            InferredType::List(item) => item.settle(),
            // Only `{}` occurred.
            InferredType::Struct(fields) if fields.0.is_empty() => *self = InferredType::Json,
            InferredType::Struct(fields) => fields.0.iter_mut().for_each(|field| field.1.settle()),
            _ => {}
        }
    }
}

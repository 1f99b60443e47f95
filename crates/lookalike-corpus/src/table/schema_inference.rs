//! Types of columns, learned from JSON lines: the first of the two readings that make a table of them.
//!
//! ```text
//! true          Bool      1, -2        Int, UInt       0.5        Float      "x"    Text
//! [1, 2]        List      {"a": 1}     Struct          null       no opinion
//! anything else that meets: Json, the values as they stand in the line
//! ```
//!
//! Fractions are 64-bit floats; whole numbers are never rounded: those beyond 2^53 that meet fractions, and those beyond
//! 64 bits, make a column of JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Values nested deeper are JSON text.
const MAX_DEPTH: usize = 24;

/// An object with more names is a map rather than a struct, and JSON text; a table with more columns is refused.
pub(super) const MAX_FIELDS: usize = 1_000;

/// Integers up to here are exact as a float.
const EXACT: u64 = 1 << 53;

/// The columns of records.
#[derive(Debug, Default)]
pub(crate) struct InferredColumns {
    pub(super) fields: InferredFields,
    /// True if some object has a name twice; the last value counts then.
    pub(super) repeats: bool,
}

impl InferredColumns {
    /// Takes a record into account.
    ///
    /// # Errors
    /// When the line is no JSON object, or there are more than [`MAX_FIELDS`] columns by now.
    pub(crate) fn learn(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(line);
        json.deserialize_map(LearnRecord(self))?;
        json.end()
    }

    /// The kinds that can be written: structs without a field are JSON text, and what was never seen is text.
    pub(crate) fn settle(&mut self) {
        // Many readers refuse a table without any column.
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
            let at = fields.meet(&name, expected, &mut seen, repeats);
            if at == MAX_FIELDS {
                return Err(A::Error::custom(format!(
                    "there are now more than {MAX_FIELDS} columns"
                )));
            }
            expected = at + 1;
            // Its end is found first: a value that cannot be learned must not end the reading of the line.
            let value: &'de RawValue = entries.next_value()?;
            let kind = &mut fields.0[at].1;
            let mut json = serde_json::Deserializer::from_str(value.get());
            let learn = TypeLearner {
                kind: &mut *kind,
                repeats: &mut *repeats,
                depth: 1,
            };
            // A number that nothing can hold, say.
            if learn.deserialize(&mut json).is_err() {
                *kind = InferredType::Json;
            }
        }
        Ok(())
    }
}

/// See the module's header. The order of fields is that of first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum InferredType {
    /// Nothing but null was seen.
    #[default]
    Null,
    Bool,
    /// Fits 64 bits with a sign; `wide`: some value is not exact as a float.
    Int {
        wide: bool,
        negative: bool,
    },
    /// Some value is beyond the signed range, none is negative.
    UInt,
    Float,
    Text,
    List(Box<InferredType>),
    Struct(InferredFields),
    Json,
}

/// Named kinds, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InferredFields(pub(super) Vec<(String, InferredType)>);

impl InferredFields {
    /// Finds a field; `expected` is looked at first, for records mostly have the same fields in the same order.
    pub(super) fn find(&self, name: &str, expected: usize) -> Option<usize> {
        let here = self.0.get(expected).filter(|field| field.0 == name);
        here.map(|_| expected)
            .or_else(|| self.0.iter().position(|field| field.0 == name))
    }

    /// As [`InferredFields::find`], adding a field that is new, and noting when it was `seen` in this object before.
    fn meet(
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
        // Fields mostly come in their order.
        // As long as places rise none can be repeated: the search through `seen` is for lines in another order.
        let in_order = seen.last().is_none_or(|&last| last < at);
        *repeats |= !in_order && seen.contains(&at);
        seen.push(at);
        at
    }
}

impl InferredType {
    fn meet(&mut self, other: InferredType) {
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
            // Bool, Text and Float meet themselves here; lists and structs are learned in place and never come
            // along as `other`.
            (mine, other) if mine == other => mine,
            _ => InferredType::Json,
        };
    }
}

/// Takes one value into account; `depth` counts the brackets around it.
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
        self.kind.meet(InferredType::Bool);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.kind.meet(InferredType::Int {
            wide: value.unsigned_abs() > EXACT,
            negative: value < 0,
        });
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.kind.meet(match i64::try_from(value) {
            Ok(_) => InferredType::Int {
                wide: value > EXACT,
                negative: false,
            },
            Err(_) => InferredType::UInt,
        });
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        // May have been an integer of more digits than a float has.
        let is_safe = value.abs() <= EXACT as f64;
        self.kind.meet(if is_safe {
            InferredType::Float
        } else {
            InferredType::Json
        });
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.kind.meet(InferredType::Text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        // Types nest in Parquet's schema and in the library's recursion; deeper values stay readable as JSON
        // text.
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
            // Another kind by now: the rest is read for its end only.
            let InferredType::Struct(fields) = &mut *self.kind else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let at = fields.meet(&name, expected, &mut seen, self.repeats);
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
    /// See [`InferredColumns::settle`]; an object without any field is no group of Parquet's.
    fn settle(&mut self) {
        match self {
            InferredType::Null => *self = InferredType::Text,
            InferredType::List(item) => item.settle(),
            // Nothing but `{}` was seen.
            InferredType::Struct(fields) if fields.0.is_empty() => *self = InferredType::Json,
            InferredType::Struct(fields) => fields.0.iter_mut().for_each(|field| field.1.settle()),
            _ => {}
        }
    }
}

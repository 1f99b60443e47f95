//! Inference of column types from JSON lines: the first of the two readings that convert them to a table.
//!
//! ```text
//! true          Bool      1, -2        Int, UInt       0.5        Float      "x"    Text
//! [1, 2]        List      {"a": 1}     Struct          null       no opinion
//! texts and numbers: Text; anything else that meets: Json, the values as they stand in the line
//! ```
//!
//! Fractions are 64-bit floats. Whole numbers are never rounded: if a column has fractions as well as whole numbers beyond 2^53, or whole numbers
//! beyond 64 bits, it becomes a column of numbers as text.

use serde::de::Error;
use serde_json::Number;

use crate::json::{for_each_item, for_each_member};

/// Maximum nesting of types; values nested deeper become JSON text.
const MAX_DEPTH: usize = 24;

/// Maximum number of names in an object that becomes a struct. An object with more is a map, and becomes JSON text; a table with more columns is
/// refused.
pub(super) const MAX_FIELDS: usize = 1_000;

/// Limit up to which integers are exact as floats.
const EXACT: u64 = 1 << 53;

/// The inferred type of a column; see the module documentation. Fields are in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum InferredType {
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
    /// Numbers that no type above can hold together, as they stand in the line.
    NumberText,
    /// Texts, and numbers as they stand in the line.
    Text,
    List(Box<InferredType>),
    Struct(InferredFields),
    Json,
}

/// The columns of records, or the fields of a struct, with their types, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InferredFields(pub(super) Vec<(String, InferredType)>);

impl InferredFields {
    /// Updates the types with a record.
    ///
    /// # Errors
    /// Fails if the line is not a JSON object, or there are now more than [`MAX_FIELDS`] columns.
    pub(crate) fn learn(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let mut next = 0;
        for_each_member(line, |name, value| {
            let at = self.find_or_add(name, &mut next);
            if at == MAX_FIELDS {
                let reason = format!("there are now more than {MAX_FIELDS} columns");
                return Err(serde_json::Error::custom(reason));
            }
            let kind = &mut self.0[at].1;
            if kind.learn(value, 1).is_err() {
                *kind = InferredType::Json;
            }
            Ok(())
        })
    }

    /// Replaces types that cannot be written: structs without a field become JSON text, and columns without values become text.
    pub(crate) fn settle(&mut self) {
        // Many readers refuse a table without columns.
        if self.0.is_empty() {
            self.0.push(("id".to_owned(), InferredType::Text));
        }
        self.0.iter_mut().for_each(|field| field.1.settle());
    }

    /// Finds a field. Checks the one at `next` first, because records mostly have the same fields in the same order, and sets `next` to the one after.
    pub(super) fn find(&self, name: &str, next: &mut usize) -> Option<usize> {
        let here = self.0.get(*next).filter(|field| field.0 == name);
        let at = match here {
            Some(_) => *next,
            None => self.0.iter().position(|field| field.0 == name)?,
        };
        *next = at + 1;
        Some(at)
    }

    /// Works like [`InferredFields::find`], but adds a new field.
    fn find_or_add(&mut self, name: &str, next: &mut usize) -> usize {
        self.find(name, next).unwrap_or_else(|| {
            self.0.push((name.to_owned(), InferredType::Null));
            *next = self.0.len();
            *next - 1
        })
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
            (InferredType::Int { negative, .. }, InferredType::UInt)
            | (InferredType::UInt, InferredType::Int { negative, .. })
                if !negative =>
            {
                InferredType::UInt
            }
            (InferredType::Int { wide: false, .. }, InferredType::Float)
            | (InferredType::Float, InferredType::Int { wide: false, .. }) => InferredType::Float,
            (mine, other) if mine.is_number() && other.is_number() && mine != other => {
                InferredType::NumberText
            }
            (InferredType::Text, other) | (other, InferredType::Text) if other.is_number() => {
                InferredType::Text
            }
            // Bool, Text and Float match themselves here; lists and structs are updated in place and never occur as `other`.
            (mine, other) if mine == other => mine,
            _ => InferredType::Json,
        };
    }

    fn is_number(&self) -> bool {
        matches!(
            self,
            InferredType::Int { .. }
                | InferredType::UInt
                | InferredType::Float
                | InferredType::NumberText
        )
    }

    /// Updates the type with a value, given as JSON. `depth` is the number of enclosing brackets.
    ///
    /// # Errors
    /// Fails if the value cannot be split into its parts.
    fn learn(&mut self, json: &str, depth: usize) -> serde_json::Result<()> {
        if *self == InferredType::Json {
            return Ok(());
        }
        match json.as_bytes().first() {
            Some(b'n') => {}
            Some(b't' | b'f') => self.widen(InferredType::Bool),
            Some(b'"') => self.widen(InferredType::Text),
            Some(b'[') => return self.learn_list(json, depth),
            Some(b'{') => return self.learn_object(json, depth),
            // A number that is too large for the parser fits no type either.
            _ => self.widen(match serde_json::from_str(json) {
                Ok(number) => InferredType::of_number(&number),
                Err(_) => InferredType::NumberText,
            }),
        }
        Ok(())
    }

    fn of_number(number: &Number) -> InferredType {
        if let Some(value) = number.as_i64() {
            return InferredType::Int {
                wide: value.unsigned_abs() > EXACT,
                negative: value < 0,
            };
        }
        match number.as_f64() {
            _ if number.is_u64() => InferredType::UInt,
            Some(value) if value.abs() <= EXACT as f64 => InferredType::Float,
            // It may have been an integer with more digits than a float can hold.
            _ => InferredType::NumberText,
        }
    }

    fn learn_list(&mut self, json: &str, depth: usize) -> serde_json::Result<()> {
        // Types nest in Parquet's schema and in the library's recursion, so deeper values are stored as JSON text.
        if *self == InferredType::Null && depth < MAX_DEPTH {
            *self = InferredType::List(Box::default());
        }
        let InferredType::List(items) = self else {
            *self = InferredType::Json;
            return Ok(());
        };
        for_each_item(json, |item| items.learn(item, depth + 1))
    }

    fn learn_object(&mut self, json: &str, depth: usize) -> serde_json::Result<()> {
        if *self == InferredType::Null && depth < MAX_DEPTH {
            *self = InferredType::Struct(InferredFields::default());
        }
        let InferredType::Struct(fields) = self else {
            *self = InferredType::Json;
            return Ok(());
        };
        let (mut next, mut is_map) = (0, false);
        for_each_member(json, |name, value| {
            let field = (!is_map).then(|| fields.find_or_add(name, &mut next));
            is_map |= field == Some(MAX_FIELDS);
            match field.filter(|_| !is_map) {
                Some(at) => fields.0[at].1.learn(value, depth + 1),
                None => Ok(()),
            }
        })?;
        if is_map {
            *self = InferredType::Json;
        }
        Ok(())
    }

    /// Works like [`InferredFields::settle`]: Parquet has no groups without fields.
    fn settle(&mut self) {
        match self {
            InferredType::Null => *self = InferredType::Text,
            InferredType::List(item) => item.settle(),
            // Only `{}` occurred.
            InferredType::Struct(fields) if fields.0.is_empty() => *self = InferredType::Json,
            InferredType::Struct(fields) => fields.settle(),
            _ => {}
        }
    }
}

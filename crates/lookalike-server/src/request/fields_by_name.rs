//! A wrapper with which a struct is read from an object only, not from an array of its values. Items of batches and fields of requests
//! are; a body that is one struct is checked before it is parsed.

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// A value whose fields are given by name. A derived `Deserialize` alone also takes the values of an array for the fields, in order.
pub(super) struct FieldsByName<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FieldsByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(ObjectDeserializer(deserializer)).map(Self)
    }
}

/// Deserializes an optional struct by the names of its fields.
pub(super) fn optional<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let read = Option::<FieldsByName<T>>::deserialize(deserializer)?;
    Ok(read.map(|FieldsByName(value)| value))
}

/// A deserializer that accepts only an object for a struct.
struct ObjectDeserializer<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectDeserializer<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

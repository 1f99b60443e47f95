//! Order of survivors as bytes: comparing them byte by byte gives the order of the rules, the preferred document first.
//!
//! The first byte says whether a document is only compared with; a key for each rule follows, and the id is last. No key is a prefix of
//! another key of its rule, so a later key never decides before an earlier one.

use lookalike_corpus::{OrderKey, OrderNumber};

use crate::settings::{KeepRule, KeepRules};

/// Properties of a document that determine its place in the order of survivors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SurvivorPreference<'a> {
    pub(crate) id: &'a str,
    /// Bytes of its text.
    pub(crate) length: u64,
    /// Place in the input.
    pub(crate) position: i64,
    /// The value of the field that a rule reads, if one does.
    pub(crate) value: &'a OrderKey<'a>,
    /// True if it is only compared with and never removed.
    pub(crate) is_against: bool,
}

/// Appends the place of a document in the order of survivors.
pub(crate) fn append_order(keep: &KeepRules, document: SurvivorPreference<'_>, out: &mut Vec<u8>) {
    // Zero for documents that are only compared with: they come first and are never removed.
    out.push(u8::from(!document.is_against));
    for rule in keep.rules() {
        match rule {
            KeepRule::Longest => out.extend((u64::MAX - document.length).to_be_bytes()),
            KeepRule::Shortest => out.extend(document.length.to_be_bytes()),
            KeepRule::First => out.extend(ascending(document.position).to_be_bytes()),
            KeepRule::Min(_) => append_value(document.value, 0, out),
            KeepRule::Max(_) | KeepRule::Newest(_) | KeepRule::Latest(_) => {
                append_value(document.value, u8::MAX, out);
            }
        }
    }
    out.extend(document.id.as_bytes());
}

/// Maps signed integers to unsigned ones, keeping their order.
fn ascending(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

/// Appends a value, with its bits flipped where `flip` has ones. Documents without a usable value come last.
fn append_value(value: &OrderKey<'_>, flip: u8, out: &mut Vec<u8>) {
    let mut append = |bytes: &[u8]| out.extend(bytes.iter().map(|byte| byte ^ flip));
    match value {
        // The first byte is 255 for a missing value and 0 for any other, in both directions.
        OrderKey::Missing | OrderKey::Unusable(_) => append(&[u8::MAX ^ flip]),
        OrderKey::Number(OrderNumber { nearest, rest }) => {
            append(&[flip]);
            append(&ordered_bits(*nearest).to_be_bytes());
            append(&ascending(*rest).to_be_bytes());
        }
        OrderKey::Text(text) => {
            append(&[flip]);
            // Two zeros end the text, so a zero within it is followed by another byte than zero.
            for &byte in text.as_bytes() {
                append(&[byte]);
                if byte == 0 {
                    append(&[u8::MAX]);
                }
            }
            append(&[0, 0]);
        }
    }
}

/// Maps numbers to integers, keeping their order.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    // Minus zero equals zero.
    let value = if value == 0.0 { 0.0 } else { value };
    let bits = value.to_bits();
    if bits >> 63 == 0 {
        // IEEE 754 numbers ascend with their bits if positive and descend if negative: flip the sign bit of the former, and all
        // bits of the latter.
        bits | 1 << 63
    } else {
        !bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dedup::class_id::ClassId;
    use crate::dedup::documents::{DocumentTable, TextClasses};
    use crate::dedup::ranking::DocumentRanking;
    use crate::settings::RepeatedIds;

    /// A document of its own class, as in the job over files.
    #[derive(Clone, Debug)]
    struct Row {
        id: String,
        length: u64,
        value: OrderKey<'static>,
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let number = prop_oneof![Just(f64::MIN), Just(-0.5), Just(0.0), Just(-0.0), Just(9.0)];
        let number = (number, -1..2_i64).prop_map(|(nearest, rest)| OrderNumber { nearest, rest });
        let numbers = prop_oneof![
            3 => number.prop_map(OrderKey::Number),
            1 => Just(OrderKey::Missing)
        ];
        let text = "[a\\x00\\x01\u{7f}]{0,3}".prop_map(|text| OrderKey::Text(text.into()));
        let texts = prop_oneof![3 => text, 1 => Just(OrderKey::Missing)];
        let rows_of = |value: BoxedStrategy<OrderKey<'static>>| {
            let row = ("[ab\\x00]{1,3}", 0..3_u64, value);
            let row = row.prop_map(|(id, length, value)| Row { id, length, value });
            prop::collection::vec(row, 1..20)
        };
        prop_oneof![rows_of(numbers.boxed()), rows_of(texts.boxed())]
    }

    /// Returns the positions of the rows in the order of the job over files.
    fn of_job(rows: &[Row], against: usize, keep: &KeepRules) -> Vec<usize> {
        let (mut documents, mut classes) = (DocumentTable::default(), TextClasses::default());
        for (at, row) in rows.iter().enumerate() {
            documents.push_id(&row.id);
            documents.classes.push(ClassId::new(at));
            documents.lengths.push(row.length);
            documents.record_hashes.push(at as u64);
            classes.set(ClassId::new(at).unwrap(), at as u128, 0, 1);
            let none = OrderNumber {
                nearest: f64::NAN,
                rest: 0,
            };
            let value = match &row.value {
                OrderKey::Number(number) => *number,
                OrderKey::Text(text) => {
                    documents.value_texts.push(text);
                    OrderNumber::default()
                }
                _ => none,
            };
            documents.push_value(value);
        }
        documents.against = against;
        let (ranking, _) =
            DocumentRanking::new(&mut documents, &classes, keep, RepeatedIds::Refuse, 1).unwrap();
        ranking
            .classes
            .iter()
            .map(|&class| class as usize)
            .collect()
    }

    proptest! {
        #[test]
        fn bytes_have_the_order_of_the_job_over_files(
            mut rows in rows(),
            against in 0..5_usize,
            keep in prop::sample::select(vec![
                "longest", "shortest", "first", "max:f", "min:f,longest", "newest:f", "latest:f,shortest", "shortest,latest:f,first",
            ]),
        ) {
            let mut seen = std::collections::BTreeSet::new();
            rows.retain(|row| seen.insert(row.id.clone()));
            let (keep, against): (KeepRules, _) = (keep.parse().unwrap(), against.min(rows.len()));
            let mut keyed: Vec<(Vec<u8>, usize)> = rows.iter().enumerate().map(|(at, row)| {
                let mut order = Vec::new();
                append_order(&keep, SurvivorPreference {
                    id: &row.id,
                    length: row.length,
                    position: at as i64 - 7,
                    value: &row.value,
                    is_against: at < against,
                }, &mut order);
                (order, at)
            }).collect();
            keyed.sort();
            let found: Vec<usize> = keyed.into_iter().map(|(_, at)| at).collect();
            prop_assert_eq!(found, of_job(&rows, against, &keep));
        }
    }

    #[test]
    fn numbers_keep_their_order_as_bits() {
        let values = [f64::NEG_INFINITY, -2.5, -0.0, 1e-300, 3.0, f64::INFINITY];
        assert!(values.map(ordered_bits).is_sorted());
        assert_eq!(ordered_bits(0.0), ordered_bits(-0.0));
    }
}

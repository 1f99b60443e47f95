//! The number by which survivors are chosen, out of one JSON value.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::options::RankField;

/// Reads a raw JSON value as the rank asks; none when it is neither number nor, for `newest`, a
/// date. Always finite.
pub(crate) fn parse(field: &RankField, json: &str) -> Option<f64> {
    let value = match json.as_bytes().first()? {
        b'"' => {
            let text: String = serde_json::from_str(json).ok()?;
            let text = text.trim();
            match field {
                RankField::Newest(_) => time(text).or_else(|| number(text)),
                RankField::Max(_) | RankField::Min(_) => number(text),
            }
        }
        _ => number(json),
    };
    value.filter(|value| value.is_finite())
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Seconds since 1970 of a date with or without time and offset; without one it is UTC.
fn time(text: &str) -> Option<f64> {
    let stamp = match text.parse::<Timestamp>() {
        Ok(stamp) => stamp,
        Err(_) => {
            let local: DateTime = text.parse().ok()?;
            TimeZone::UTC.to_timestamp(local).ok()?
        }
    };
    Some(stamp.as_duration().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates() {
        let max: RankField = "max:n".parse().unwrap();
        let newest: RankField = "newest:n".parse().unwrap();
        let cases = [
            (&max, "3", Some(3.0)),
            (&max, "-1.5e2", Some(-150.0)),
            (&max, "\"7\"", Some(7.0)),
            (&max, "1e999", None),
            (&max, "\"NaN\"", None),
            (&max, "null", None),
            (&max, "{}", None),
            (&max, "\"1970-01-02\"", None),
            (&newest, "86400", Some(86400.0)),
            (&newest, "\"1970-01-02\"", Some(86400.0)),
            (&newest, "\"1970-01-02T00:00:01\"", Some(86401.0)),
            (&newest, "\"1970-01-02T01:00:00+01:00\"", Some(86400.0)),
            (&newest, "\"1970-01-02T00:00:00.5Z\"", Some(86400.5)),
            (&newest, "\"1969-12-31T23:59:59Z\"", Some(-1.0)),
            (&newest, "\"yesterday\"", None),
        ];
        for (field, json, expected) in cases {
            assert_eq!(parse(field, json), expected, "{field} of {json}");
        }
    }
}

//! The value by which survivors are chosen, parsed from one JSON value.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::rfc2822;
use jiff::fmt::temporal::Pieces;

use crate::error::OptionError;
use crate::field_path::FieldPath;

/// The field by which survivors are chosen: `max:FIELD`, `min:FIELD`, `newest:FIELD` or `latest:FIELD`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderField {
    /// The largest number wins.
    Max(FieldPath),
    /// The smallest number wins.
    Min(FieldPath),
    /// The latest time wins: seconds, milliseconds, ... since 1970, a date that begins with its year, or a date in the format of RFC 2822. Times
    /// without an offset are UTC.
    Newest(FieldPath),
    /// The text that is last in byte order wins.
    Latest(FieldPath),
}

impl OrderField {
    /// Returns the field to read.
    pub fn path(&self) -> &FieldPath {
        match self {
            OrderField::Max(path)
            | OrderField::Min(path)
            | OrderField::Newest(path)
            | OrderField::Latest(path) => path,
        }
    }
}

impl FromStr for OrderField {
    type Err = OptionError;

    fn from_str(s: &str) -> Result<Self, OptionError> {
        let wrong = || {
            OptionError(format!(
                "`{s}` is not max:FIELD, min:FIELD, newest:FIELD or latest:FIELD"
            ))
        };
        let (kind, path) = s.split_once(':').ok_or_else(wrong)?;
        let path = path.parse()?;
        match kind {
            "max" => Ok(OrderField::Max(path)),
            "min" => Ok(OrderField::Min(path)),
            "newest" => Ok(OrderField::Newest(path)),
            "latest" => Ok(OrderField::Latest(path)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for OrderField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderField::Max(path) => write!(f, "max:{path}"),
            OrderField::Min(path) => write!(f, "min:{path}"),
            OrderField::Newest(path) => write!(f, "newest:{path}"),
            OrderField::Latest(path) => write!(f, "latest:{path}"),
        }
    }
}

/// The key by which survivors are chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum OrderKey<'a> {
    /// No order is requested, or the field is absent, null or empty.
    #[default]
    Missing,
    /// The field holds a value that the order cannot use.
    Unusable(UnusableOrderKey<'a>),
    /// A number, or a time in seconds since 1970.
    Number(OrderNumber),
    /// A text, for [`OrderField::Latest`].
    Text(Cow<'a, str>),
}

impl<'a> OrderKey<'a> {
    /// Parses a JSON value as the order requires.
    ///
    /// ```
    /// use lookalike_corpus::OrderKey;
    ///
    /// let newest = "newest:date".parse()?;
    /// assert_eq!(OrderKey::parse(&newest, "\"1970-01-02\"").number(), Some(86_400.0));
    /// # Ok::<(), lookalike_corpus::OptionError>(())
    /// ```
    pub fn parse(field: &OrderField, json: &'a str) -> OrderKey<'a> {
        let unusable = |reason| {
            OrderKey::Unusable(UnusableOrderKey {
                json: Cow::Borrowed(json),
                reason,
            })
        };
        let text = match json.as_bytes().first() {
            // The line is valid JSON: a value that begins with `n` is null.
            None | Some(b'n') => return OrderKey::Missing,
            Some(b'"') => match serde_json::from_str::<String>(json) {
                Ok(text) => Cow::Owned(text.trim().to_owned()),
                Err(_) => return unusable("no text"),
            },
            Some(b'{') => return unusable("an object"),
            Some(b'[') => return unusable("a list"),
            Some(_) => Cow::Borrowed(json),
        };
        if text.is_empty() {
            return OrderKey::Missing;
        }
        match field {
            OrderField::Latest(_) => OrderKey::Text(text),
            OrderField::Max(_) | OrderField::Min(_) => match OrderNumber::parse(&text) {
                Some(number) => OrderKey::Number(number),
                // Distinguished for the sake of the message: the remedy is `newest:` instead of `max:`.
                None if time(&text).is_some() => unusable("a date, not a number"),
                None if is_infinite(&text) => unusable("too large a number"),
                None => unusable("not a number"),
            },
            OrderField::Newest(_) => match time(&text) {
                Some(time) => OrderKey::Number(time),
                None if has_year_last(&text) => unusable(
                    "a date whose day and month cannot be told apart: the year has to stand first",
                ),
                None => unusable("not a date"),
            },
        }
    }

    /// Returns the number, or the nearest double, if the key is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number.nearest),
            _ => None,
        }
    }
}

/// A finite number, without loss of digits of integers or nanoseconds of times: the nearest double, and the remaining difference. Comparing both, in
/// this order, gives the order of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OrderNumber {
    /// The nearest double; for a time, in seconds.
    pub nearest: f64,
    /// The remainder: for an integer the difference to `nearest`, for a time the nanoseconds beyond its nearest microsecond.
    pub rest: i64,
}

impl OrderNumber {
    fn parse(text: &str) -> Option<OrderNumber> {
        let nearest = number(text)?;
        // Beyond 2^53 doubles skip integers, but message ids used as order keys may differ only in the last digits. `nearest` was rounded from the
        // same text, so the difference is at most half a step.
        let rest = integer(text).map_or(0, |integer| integer - nearest as i128);
        Some(OrderNumber {
            nearest,
            rest: i64::try_from(rest).unwrap_or(0),
        })
    }

    /// Creates a time from nanoseconds since 1970. Times of whole microseconds have no remainder until the year 2255.
    fn of_nanos(nanos: i128) -> OrderNumber {
        let nearest = nanos as f64 / 1e9;
        // A double of seconds since 1970 currently has steps of 0.24 µs: it represents microseconds, but not nanoseconds.
        let rest = nanos - (nearest * 1e6).round() as i128 * 1000;
        OrderNumber {
            nearest,
            rest: i64::try_from(rest).unwrap_or(0),
        }
    }
}

/// A value that cannot be an order key.
#[derive(Debug, Clone, PartialEq)]
pub struct UnusableOrderKey<'a> {
    /// The value, as JSON.
    pub json: Cow<'a, str>,
    /// The reason.
    pub reason: &'static str,
}

fn number(text: &str) -> Option<f64> {
    // Rust parses `inf` and `nan`, which must not outrank all numbers.
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Returns true if a text is a number beyond those of doubles.
fn is_infinite(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.parse().is_ok_and(f64::is_infinite)
}

/// Maximum number of digits for which the difference to the nearest double fits an `i64`.
const MAX_DIGITS: usize = 34;

/// Returns the value of an integer, if the text is one: `12`, `-12` or `12.0`.
fn integer(text: &str) -> Option<i128> {
    let text = match text.split_once('.') {
        Some((whole, zeros)) => zeros.bytes().all(|byte| byte == b'0').then_some(whole)?,
        None => text,
    };
    let digits = text.trim_start_matches(['+', '-']);
    match digits.len() <= MAX_DIGITS {
        true => text.parse().ok(),
        false => None,
    }
}

/// Parses a date or time. Without an offset it is UTC, without a day the first of the month, without a month the first of the year.
fn time(text: &str) -> Option<OrderNumber> {
    // Before numbers: `2024.03` is a month here, not a number of seconds.
    if let Some(time) = iso(text) {
        return Some(time);
    }
    if let Some(number) = number(text) {
        return numeric_time(text, number);
    }
    let stamp = rfc2822::DateTimeParser::new().parse_timestamp(text);
    stamp.ok().map(since_1970)
}

fn since_1970(stamp: Timestamp) -> OrderNumber {
    OrderNumber::of_nanos(stamp.as_nanosecond())
}

/// Converts a time in UTC, up to the end of the year 9999, which is often used for "no end": a `Timestamp` ends a day earlier.
fn civil(time: DateTime) -> OrderNumber {
    OrderNumber::of_nanos(since_epoch(time))
}

fn since_epoch(time: DateTime) -> i128 {
    let epoch = Date::constant(1970, 1, 1).at(0, 0, 0, 0);
    time.duration_since(epoch).as_nanos()
}

/// Parses a number: four digits are a year, eight a date; all others count from 1970, in the unit that their size suggests.
fn numeric_time(text: &str, number: f64) -> Option<OrderNumber> {
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && matches!(text.len(), 4 | 8) {
        let (year, rest) = text.split_at(4);
        // A year alone leaves nothing to split.
        let (month, day) = rest.split_at_checked(2).unwrap_or(("01", "01"));
        let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
        // As seconds, eight digits that are no date, such as 19991399, would be a time in 1970, and preferred to no date at all.
        return Some(civil(date.ok()?.to_datetime(jiff::civil::Time::midnight())));
    }
    // This is the year 5138 in seconds, or 1973 in milliseconds.
    let digits = match number.abs() {
        size if size < 1e11 => 9,
        size if size < 1e14 => 6,
        size if size < 1e17 => 3,
        _ => 0,
    };
    let nearest = OrderNumber {
        nearest: number / 10_f64.powi(9 - digits as i32),
        rest: 0,
    };
    Some(scaled(text, digits).map_or(nearest, OrderNumber::of_nanos))
}

/// Returns the integer part of a decimal number multiplied by 10^`digits`. Returns `None` if it has an exponent or too many digits.
fn scaled(text: &str, digits: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.get(..digits).unwrap_or(fraction);
    if whole.len() + digits > MAX_DIGITS {
        return None;
    }
    // Moves the decimal point in the text, rather than multiplying doubles, so that no nanosecond is lost.
    // Zeros fill the fraction up to `digits`.
    format!("{whole}{fraction:0<digits$}").parse().ok()
}

/// Parses a date that begins with its year: `2024-3`, `2024/03/01`, `2024.03.01 10:30`, and all formats of RFC 3339 and ISO 8601.
fn iso(text: &str) -> Option<OrderNumber> {
    let year = text.get(..4)?;
    let separator = *text.as_bytes().get(4)?;
    if !year.bytes().all(|byte| byte.is_ascii_digit()) || !b"-/.".contains(&separator) {
        return text.parse::<Timestamp>().ok().map(since_1970);
    }
    let separator = char::from(separator);
    // Byte 4 is ASCII, so 5 is a char boundary. jiff requires two digits each, but people write one.
    let (month, rest) = leading_digits(&text[5..])?;
    let (day, rest) = match rest.strip_prefix(separator) {
        Some(rest) => leading_digits(rest)?,
        None => (1, rest),
    };
    let date = Date::new(year.parse().ok()?, month, day).ok()?;
    let rest = rest.trim_start_matches([' ', 'T', 't']);
    if rest.is_empty() {
        return Some(civil(date.to_datetime(jiff::civil::Time::midnight())));
    }
    let rest = match rest.strip_suffix("UTC").or(rest.strip_suffix("GMT")) {
        // jiff parses `Z`, but not the names of the zone. Logs and databases may write a blank before an offset.
        Some(time) => format!("{}Z", time.trim_end()),
        None => rest.replacen(" +", "+", 1).replacen(" -", "-", 1),
    };
    let text = format!("{date}T{rest}");
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Some(since_1970(stamp));
    }
    let pieces = Pieces::parse(&text).ok()?;
    let time = pieces.date().to_datetime(pieces.time()?);
    let offset = pieces.to_numeric_offset().map_or(0, |it| it.seconds());
    let nanos = since_epoch(time) - i128::from(offset) * 1_000_000_000;
    Some(OrderNumber::of_nanos(nanos))
}

/// Parses one or two leading digits. Returns their value and the rest.
fn leading_digits(text: &str) -> Option<(i8, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        1 | 2 => Some((text[..digits].parse().ok()?, &text[digits..])),
        _ => None,
    }
}

/// Returns true if the text looks like `01/02/2024`.
fn has_year_last(text: &str) -> bool {
    let date = text.split([' ', 'T', ',']).next().unwrap_or_default();
    let parts: Vec<&str> = date.split(['/', '.', '-']).collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts[0].len() <= 2 && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(field: &str, json: &str) -> Option<f64> {
        OrderKey::parse(&field.parse().unwrap(), json).number()
    }

    fn reason(field: &str, json: &str) -> &'static str {
        match OrderKey::parse(&field.parse().unwrap(), json) {
            OrderKey::Unusable(unusable) => unusable.reason,
            OrderKey::Missing => "missing",
            _ => "usable",
        }
    }

    #[test]
    fn numbers_and_dates() {
        let cases = [
            ("max:n", "3", Some(3.0)),
            ("max:n", "-1.5e2", Some(-150.0)),
            ("max:n", "\"7\"", Some(7.0)),
            ("max:n", "1e999", None),
            ("max:n", "\"NaN\"", None),
            ("max:n", "null", None),
            ("max:n", "{}", None),
            ("max:n", "\"1970-01-02\"", None),
            ("newest:n", "86400", Some(86400.0)),
            ("newest:n", "\"1970-01-02\"", Some(86400.0)),
            ("newest:n", "\"1970-01-02T00:00:01\"", Some(86401.0)),
            ("newest:n", "\"1970-01-02T01:00:00+01:00\"", Some(86400.0)),
            ("newest:n", "\"1970-01-02T00:00:00.5Z\"", Some(86400.5)),
            ("newest:n", "\"1969-12-31T23:59:59Z\"", Some(-1.0)),
            ("newest:n", "\"9999-12-31\"", Some(253_402_214_400.0)),
            ("newest:n", "99991231", Some(253_402_214_400.0)),
            (
                "newest:n",
                "\"9999-12-31T23:59:59Z\"",
                Some(253_402_300_799.0),
            ),
            ("newest:n", "\"yesterday\"", None),
        ];
        for (field, json, expected) in cases {
            assert_eq!(value(field, json), expected, "{field} of {json}");
        }
    }

    #[test]
    fn one_day_in_many_spellings() {
        let first = value("newest:n", "\"2024-03-01\"");
        for same in [
            "\"2024-03\"",
            "\"2024-3\"",
            "\"2024/03\"",
            "\"2024.3\"",
            "\"2024/03/01\"",
            "\"2024/3/1\"",
            "\"2024.03.01\"",
            "\" 2024-03-01 00:00 \"",
            "\"2024-03-01 00:00:00 UTC\"",
            "\"2024/03/01T02:00:00+02:00\"",
            "\"2024-03-01 02:00:00 +0200\"",
            "\"Fri, 1 Mar 2024 02:00:00 +0200\"",
            "\"Fri, 01 Mar 2024 00:00:00 GMT\"",
            "20240301",
            "\"20240301\"",
            "1709251200",
            "1709251200000",
            "1709251200000000",
        ] {
            assert_eq!(value("newest:n", same), first, "{same}");
        }
        assert_eq!(
            value("newest:n", "2024"),
            value("newest:n", "\"2024-01-01\"")
        );
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for ambiguous in [
            "\"01/02/2024\"",
            "\"1.2.2024\"",
            "\"31-12-2024 10:00\"",
            "\"01/02/24\"",
        ] {
            let said = reason("newest:n", ambiguous);
            assert!(said.contains("day and month"), "{ambiguous}: {said}");
        }
        assert_eq!(reason("newest:n", "\"2024-13\""), "not a date");
        assert_eq!(reason("newest:n", "\"2024-02-30\""), "not a date");
        assert_eq!(reason("newest:n", "\"20241301\""), "not a date");
        assert_eq!(reason("newest:n", "20240230"), "not a date");
        assert_eq!(reason("newest:n", "true"), "not a date");
        assert_eq!(reason("max:n", "\"2024-02-01\""), "a date, not a number");
        assert_eq!(reason("max:n", "[1]"), "a list");
        for missing in ["null", "\"\"", "\"  \""] {
            assert_eq!(reason("max:n", missing), "missing");
        }
        let text = OrderKey::parse(&"latest:n".parse().unwrap(), "\"v 2\"");
        assert_eq!(text, OrderKey::Text("v 2".into()));
    }

    #[test]
    fn times_of_one_second_lost_their_nanoseconds() {
        let key = |json: &str| match OrderKey::parse(&"newest:n".parse().unwrap(), json) {
            OrderKey::Number(number) => (number.nearest, number.rest),
            _ => panic!("{json} is a time"),
        };
        let spellings = |fraction: u32| {
            [
                format!("\"2024-03-01T00:00:00.{fraction:09}Z\""),
                format!("\"2024-03-01 00:00:00.{fraction:09}\""),
                format!("1709251200.{fraction:09}"),
                format!(
                    "1709251200{:03}.{:06}",
                    fraction / 1_000_000,
                    fraction % 1_000_000
                ),
                format!("1709251200{fraction:09}"),
            ]
        };
        let mut before = None;
        for fraction in [
            0,
            1,
            2,
            119,
            120,
            121,
            500,
            501,
            123_456_788,
            123_456_789,
            999_999_999,
        ] {
            let [first, others @ ..] = spellings(fraction).map(|json| key(&json));
            assert!(
                others.iter().all(|other| *other == first),
                "{fraction}: {others:?}"
            );
            assert!(before < Some(first), "{fraction}");
            before = Some(first);
        }
        // Without a remainder, most collections need no second column.
        assert_eq!(key("\"2024-03-01T00:00:00.123457Z\"").1, 0);
        assert_eq!(key("-1.5"), (-1.5, 0));
        assert!(key("-1.000000002") < key("-1.000000001"));
    }

    #[test]
    fn integers_beyond_2_to_the_53rd_keep_their_digits() {
        let parts = |json: &str| match OrderKey::parse(&"max:n".parse().unwrap(), json) {
            OrderKey::Number(number) => (number.nearest, number.rest),
            _ => panic!("{json} is a number"),
        };
        let border = 9_007_199_254_740_992.0;
        assert_eq!(parts("9007199254740991"), (border - 1.0, 0));
        for odd in [
            "9007199254740993",
            "\"9007199254740993\"",
            "9007199254740993.00",
        ] {
            assert_eq!(parts(odd), (border, 1), "{odd}");
        }
        assert_eq!(parts("-9007199254740993"), (-border, -1));
        assert_eq!(parts("1e16"), (1e16, 0));
        assert_eq!(parts("9007199254740993.5"), (9_007_199_254_740_994.0, 0));
        assert_eq!(parts(&format!("1{}", "0".repeat(300))), (1e300, 0));
    }

    proptest! {
        #[test]
        fn integers_are_in_their_order(a in any::<i128>(), b in any::<i128>(), near in -3_i128..=3, digits in 1_u32..=34) {
            let bound = 10_i128.pow(digits);
            let key = |number: i128| match OrderKey::parse(&"max:n".parse().unwrap(), &number.to_string()) {
                OrderKey::Number(number) => (number.nearest, number.rest),
                _ => panic!("{number} is a number"),
            };
            let a = a % bound;
            for b in [b % bound, (a + near).clamp(1 - bound, bound - 1)] {
                prop_assert_eq!(key(a).partial_cmp(&key(b)), Some(a.cmp(&b)), "{} and {}", a, b);
            }
        }

        #[test]
        fn times_are_in_their_order(second in -10_000_000_000_i64..10_000_000_000, a in 0_i32..1_000_000_000, near in -300_i32..=300) {
            let b = (a + near).clamp(0, 999_999_999);
            let key = |nanosecond: i32| {
                let stamp = Timestamp::new(second, nanosecond).unwrap();
                match OrderKey::parse(&"newest:n".parse().unwrap(), &format!("\"{stamp}\"")) {
                    OrderKey::Number(number) => (number.nearest, number.rest),
                    _ => panic!("{stamp} is a time"),
                }
            };
            prop_assert_eq!(key(a).partial_cmp(&key(b)), Some(a.cmp(&b)));
        }

        #[test]
        fn later_days_have_larger_values(
            a in (1900_i16..2100, 1_i8..=12, 1_i8..=28),
            b in (1900_i16..2100, 1_i8..=12, 1_i8..=28),
            separators in prop::sample::select(vec!["--", "//", "..", "-/", "/.", ".-"]),
        ) {
            let written = |(year, month, day): (i16, i8, i8), at: usize| {
                let separator = &separators[at..=at];
                format!("\"{year}{separator}{month}{separator}{day}\"")
            };
            let [first, second] = [written(a, 0), written(b, 1)].map(|text| value("newest:n", &text).unwrap());
            prop_assert_eq!(first.total_cmp(&second), a.cmp(&b));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,30}") {
            let json = serde_json::to_string(&text).unwrap();
            for field in ["newest:n", "max:n", "latest:n"] {
                OrderKey::parse(&field.parse().unwrap(), &json);
            }
        }
    }
}

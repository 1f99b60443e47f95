//! Sizes in bytes in a human-readable form.

/// Parses `4096`, `512K`, `64M`, `1.5GiB`: powers of 1024, with or without `B` or `iB`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: use a value such as 512M or 4G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    // `M`, `MB` and `MiB` are the same.
    let power = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(wrong()),
    };
    // A double represents every size up to 2^53 bytes exactly; beyond that, single bytes do not matter.
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let bytes = number * 1024_f64.powi(power);
    // `inf` and `NaN` parse as numbers.
    if number.is_finite() && (0.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// Parses a size as [`parse`] does, and refuses one below a byte.
pub(crate) fn parse_positive(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err(format!(
            "{text:?} is not a size of at least one byte: use a value such as 16M"
        )),
        bytes => Ok(bytes),
    }
}

/// Parses a count: `1000000`, `8e9`, `2^34`, up to 2^63.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    const MAX_COUNT: f64 = (1_u64 << 63) as f64;
    let wrong = || format!("{text:?} is not a count: use a value such as 1000000, 8e9 or 2^34");
    // Parsed as an integer first, so that counts beyond 2^53 keep every digit.
    if let Ok(count) = text.parse() {
        return if count <= MAX_COUNT as u64 {
            Ok(count)
        } else {
            Err(wrong())
        };
    }
    let value = match text.split_once('^') {
        Some((base, power)) => {
            let base: f64 = base.parse().map_err(|_| wrong())?;
            base.powi(power.parse().map_err(|_| wrong())?)
        }
        None => text.parse().map_err(|_| wrong())?,
    };
    if (0.0..=MAX_COUNT).contains(&value) && value.fract() == 0.0 {
        Ok(value as u64)
    } else {
        Err(wrong())
    }
}

/// Formats a size with three digits: `1.24 GiB`.
pub(crate) fn show(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        // 1000, not 1024, because only three digits are shown, and 1,010 KiB would have four.
        if value < 1000.0 || unit == "TiB" {
            let decimals = if unit == "B" || value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("512K", 524_288),
            ("64M", 1 << 26),
            ("1.5GiB", 3 << 29),
            ("2gb", 2 << 30),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "12 parsecs", "-1", "1e99T", "nan"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_read() {
        let cases = [
            ("0", 0),
            ("17179869184", 1 << 34),
            ("8e9", 8_000_000_000),
            ("2^34", 1 << 34),
        ];
        for (text, count) in cases {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
        for text in [
            "",
            "-1",
            "1.5",
            "2^70",
            "x^2",
            "2^x",
            "inf",
            "18446744073709551615",
        ] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written() {
        assert_eq!(
            (show(17), show(1 << 20), show(3 << 29)),
            ("17 B".into(), "1.00 MiB".into(), "1.50 GiB".into())
        );
    }
}

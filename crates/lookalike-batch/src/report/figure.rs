//! Formats numbers for people. Similarities and probabilities are truncated, not rounded: 0.7999 never becomes 0.80.

/// Formats a count: `12345` as `12,345`.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats bytes with three digits and a binary unit: `1.25 GiB`.
pub(super) fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    // Larger values would round to four digits.
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let places = if scaled < 9.995 {
        2
    } else {
        usize::from(scaled < 99.95)
    };
    format!("{scaled:.places$} {}", UNITS[unit])
}

/// Formats seconds with as many digits as matter: `40 ms`, `12.3 s`, `5 min 02 s`, `3 h 07 min`.
pub(super) fn seconds(value: f64) -> String {
    let whole = value.round() as u64;
    match value {
        v if !v.is_finite() || v < 0.0 => "unknown".to_owned(),
        // With two decimals, many short stages would show as 0.
        v if v < 0.0995 => format!("{:.0} ms", v * 1e3),
        v if v < 9.995 => format!("{v:.2} s"),
        v if v < 99.95 => format!("{v:.1} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats a part of a whole in percent: `18.7%`, or `<0.1%` for tiny parts.
pub(super) fn share(part: u64, whole: u64) -> String {
    let percent = 100.0 * ratio(part, whole);
    match percent {
        p if p > 0.0 && p < 0.1 => "<0.1%".to_owned(),
        // Rounding must not turn nearly all into all.
        p if p > 99.9 && part < whole => ">99.9%".to_owned(),
        p => format!("{p:.1}%"),
    }
}

/// Returns a part of a whole in `[0, 1]`; 0 if the whole is 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (part as f64 / whole as f64).min(1.0)
    }
}

/// Formats a similarity with three decimals: `0.874`.
pub(super) fn similarity(value: f64) -> String {
    // Cut, not rounded: a similarity just below the threshold must not look equal to it.
    format!("{:.3}", cut(value, 3))
}

/// Formats a threshold with two or more decimals, as needed: `0.80`, `0.925`, `0.000000001`.
pub(super) fn threshold(value: f64) -> String {
    // Fewer digits than a float has, since the lower end of a margin is computed.
    decimals(value, 12)
}

/// Formats an end of a bin with two to four decimals, as needed.
pub(super) fn bin_end(value: f64) -> String {
    decimals(value, 4)
}

fn decimals(value: f64, most: usize) -> String {
    let mut text = format!("{value:.most$}");
    while text.ends_with('0') && text.len() > "0.00".len() {
        text.pop();
    }
    text
}

/// Formats a probability in percent with at most two decimals: `99.95%`.
pub(super) fn probability(value: f64) -> String {
    // Cut, so that a probability below 1 never shows as 100%.
    let text = format!("{:.2}", cut(value * 100.0, 2));
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Truncates after `places` decimals, allowing for the error of binary fractions.
fn cut(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale + 1e-6).floor() / scale
}

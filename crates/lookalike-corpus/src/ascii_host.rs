//! Hosts in ASCII, as browsers send them, so that all spellings of a host are one.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of a host that is not ASCII, in bytes: its encoding takes quadratic time. Names of hosts have at most 253 characters.
const MAX_HOST_BYTES: usize = 1024;

/// Returns a host in ASCII (WHATWG URL, host parsing), or `None` if it is no host. One in ASCII stays as it is.
///
/// Percent-escapes are decoded, letters are mapped to lower case and compatible forms to one (UTS #46, whose table differs from this in rare
/// characters), and labels that are not ASCII are encoded (RFC 3492).
pub(crate) fn ascii_host(host: &str) -> Option<Cow<'_, str>> {
    if host.is_ascii() && !host.contains('%') {
        return Some(Cow::Borrowed(host));
    }
    let host = percent_encoding::percent_decode_str(host)
        .decode_utf8()
        .ok()?;
    if host.len() > MAX_HOST_BYTES {
        return None;
    }
    let mapped: String = host.nfkc().filter(|&letter| !is_ignored(letter)).collect();
    let mapped: String = mapped.to_lowercase().nfkc().collect();
    let mut ascii = String::new();
    for label in mapped.split(['.', '\u{3002}']) {
        match label.is_ascii() {
            true => ascii.push_str(label),
            false => encode(label, &mut ascii)?,
        }
        ascii.push('.');
    }
    ascii.pop();
    Some(Cow::Owned(ascii))
}

/// Returns true for characters that are never seen: soft hyphens, marks of the byte order and of word breaks, and selectors of variants.
fn is_ignored(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}'
    )
}

/// Appends a label in Punycode (RFC 3492, section 6.3), with its prefix. Returns `None` on overflow.
fn encode(label: &str, out: &mut String) -> Option<()> {
    let codes = || label.chars().map(u32::from);
    out.push_str("xn--");
    let before = out.len();
    out.extend(label.chars().filter(char::is_ascii));
    let basic = (out.len() - before) as u32;
    if basic > 0 {
        out.push('-');
    }
    let (mut least, mut delta, mut bias, mut done) = (0x80, 0_u32, 72, basic);
    while let Some(next) = codes().filter(|&code| code >= least).min() {
        delta = delta.checked_add((next - least).checked_mul(done + 1)?)?;
        least = next;
        for code in codes() {
            if code < least {
                delta = delta.checked_add(1)?;
            } else if code == least {
                push_number(delta, bias, out);
                bias = adapted(delta, done + 1, done == basic);
                (delta, done) = (0, done + 1);
            }
        }
        (delta, least) = (delta + 1, least + 1);
    }
    Some(())
}

/// Appends a number in digits of variable weight.
fn push_number(mut number: u32, bias: u32, out: &mut String) {
    // Digits are letters first (RFC 3492, section 5).
    let mut digit = |value: u32| {
        out.push(char::from(
            b"abcdefghijklmnopqrstuvwxyz0123456789"[value as usize],
        ))
    };
    for position in (36_u32..).step_by(36) {
        let threshold = position.saturating_sub(bias).clamp(1, 26);
        if number < threshold {
            break;
        }
        digit(threshold + (number - threshold) % (36 - threshold));
        number = (number - threshold) / (36 - threshold);
    }
    digit(number);
}

/// Returns the bias for the next number (RFC 3492, section 6.1).
fn adapted(delta: u32, points: u32, is_first: bool) -> u32 {
    let mut delta = delta / if is_first { 700 } else { 2 };
    delta += delta / points;
    let mut bias = 0;
    while delta > 455 {
        delta /= 35;
        bias += 36;
    }
    bias + 36 * delta / (delta + 38)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_host() {
        for (host, expected) in [
            ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
            ("m%C3%BCnchen.example", "xn--mnchen-3ya.example"),
            ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"),
            ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
            ("ｅｘａ\u{ad}ｍｐｌｅ.com", "example.com"),
            ("straße.example", "xn--strae-oqa.example"),
        ] {
            assert_eq!(ascii_host(host).as_deref(), Some(expected), "{host}");
        }
        assert_eq!(ascii_host("%FF"), None);
        assert_eq!(ascii_host(&"ü".repeat(600)), None);
    }

    proptest! {
        #[test]
        fn hosts_are_those_of_the_idna_crate(host in "[a-cA-Cäöüßéñçøа-яА-Яα-ωㄱ-ㄹ가-깋ぁ-んァ-ン一-丠.-]{1,20}") {
            // Labels that a resolver would refuse are not looked at.
            if let Ok(expected) = idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::URL)
                && !host.is_ascii()
            {
                prop_assert_eq!(ascii_host(&host).unwrap(), expected);
            }
        }
    }
}

//! Detection of words that mix look-alike letters of Latin, Greek and Cyrillic, such as `pаypal` with a Cyrillic `а`: readers see no difference, but
//! every comparison does. They are reported, never changed.

/// Minimum number of letters; shorter words mix scripts legitimately: `kΩ`, `μm`, `ΔT`.
const MIN_LETTERS: u32 = 3;

/// Returns true if a word of three letters or more has letters of two of the three scripts, and all its letters of one of them look like letters of
/// another. O(length); texts without Greek and Cyrillic cost a single scan of their bytes.
pub(crate) fn has_homoglyphs(text: &str) -> bool {
    let Some(first) = first_candidate(text.as_bytes()) else {
        return false;
    };
    // The word may begin before its first Greek or Cyrillic letter.
    let start = text[..first]
        // The byte found is a lead byte of UTF-8, so `first` is a char boundary; walking back over one word finds the break before it.
        .rfind(|c: char| !c.is_alphabetic())
        .unwrap_or(0);
    let mut word = WordScripts::default();
    for c in text[start..].chars() {
        if c.is_alphabetic() {
            word.add(c);
        } else if std::mem::take(&mut word).is_mixed() {
            return true;
        }
    }
    word.is_mixed()
}

/// Finds the first byte of a Greek or Cyrillic character: U+0340 to U+04FF.
fn first_candidate(text: &[u8]) -> Option<usize> {
    const STEP: usize = 64;
    // Lead bytes of two-byte sequences. 0xCD also begins some combining marks, which only cost a closer look.
    let begins = |byte: &u8| (0xcd..=0xd3).contains(byte);
    // Without an early exit, a block is a single vector comparison.
    let has_one = |block: &[u8]| block.iter().fold(false, |any, byte| any | begins(byte));
    let block = text.chunks(STEP).position(has_one)?;
    let at = text[block * STEP..].iter().position(begins)?;
    Some(block * STEP + at)
}

/// Numbers of letters of a word in Latin, Greek and Cyrillic, and of the look-alikes among them.
#[derive(Default)]
struct WordScripts {
    letters: u32,
    of_script: [u32; 3],
    alike: [u32; 3],
}

impl WordScripts {
    fn add(&mut self, c: char) {
        self.letters += 1;
        if let Some((script, is_alike)) = letter(c) {
            self.of_script[script] += 1;
            self.alike[script] += u32::from(is_alike);
        }
    }

    fn is_mixed(&self) -> bool {
        let scripts = self.of_script.iter().filter(|count| **count > 0).count();
        let all_alike = |(&all, &alike): (&u32, &u32)| all > 0 && all == alike;
        self.letters >= MIN_LETTERS
            // Every letter of one script must have a look-alike: `Ωmega` mixes scripts too, but its first letter cannot be mistaken for a Latin one.
            && scripts > 1
            && self.of_script.iter().zip(&self.alike).any(all_alike)
    }
}

/// Greek letters that look like Latin ones, except those at the end of gene names (`TNFα`, `IFNγ`).
const GREEK_ALIKE: &str = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι";
const CYRILLIC_ALIKE: &str = "АВЕКМНОРСТХУІЈЅаеорсхуіјѕ";
const LATIN_ALIKE: &str = "ABCEHIJKMNOPSTXYZaceijopsvxy";

/// Returns the script of a letter (Latin, Greek or Cyrillic), and whether it looks like a letter of one of the others.
fn letter(c: char) -> Option<(usize, bool)> {
    match c {
        'A'..='Z' | 'a'..='z' => Some((0, LATIN_ALIKE.contains(c))),
        // Accented Latin letters have no Greek or Cyrillic look-alikes.
        '\u{c0}'..='\u{24f}' => Some((0, false)),
        '\u{370}'..='\u{3ff}' => Some((1, GREEK_ALIKE.contains(c))),
        '\u{400}'..='\u{52f}' => Some((2, CYRILLIC_ALIKE.contains(c))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_inside_words_are_told() {
        for text in [
            "p\u{430}ypal",
            "so much text before the word g\u{43e}\u{43e}gle, and behind it some more text",
            "\u{41c}o\u{441}\u{43a}\u{432}\u{430}",
            "micr\u{3bf}soft",
            &format!("{}vi\u{441}tory", "plain words ".repeat(20)),
        ] {
            assert!(has_homoglyphs(text), "{text}");
        }
    }

    #[test]
    fn words_of_one_script_and_names_are_not() {
        for text in [
            "",
            "paypal",
            "na\u{ef}ve caf\u{e9}",
            "\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430} and London",
            "k\u{3a9} \u{3bc}m \u{394}T",
            "TNF\u{3b1} IFN\u{3b3} NF\u{3ba}B \u{3b2}-carotene",
            "T\u{6064} \u{65e5}\u{672c}",
            "\u{434}\u{43b}\u{44f}DNS",
        ] {
            assert!(!has_homoglyphs(text), "{text}");
        }
    }
}

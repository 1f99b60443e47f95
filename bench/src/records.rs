//! Records, words and shingles.

use std::borrow::Cow;

use serde::Deserialize;

/// The only field of a record that the race needs.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Returns at most `limit` lines of a file, with their terminators.
pub fn lines(bytes: &[u8], limit: usize) -> Vec<&[u8]> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(limit)
        .collect()
}

/// Returns the text of a JSON record.
///
/// # Errors
///
/// If the line is not a JSON object with a text.
pub fn text(line: &[u8]) -> Result<Cow<'_, str>, serde_json::Error> {
    serde_json::from_slice::<Record<'_>>(line).map(|record| record.text)
}

/// Maps each byte to its lower-cased letter, digit or `_`, and any other byte to a space.
static LOWER: [u8; 256] = lower_table();

const fn lower_table() -> [u8; 256] {
    let mut table = [b' '; 256];
    let mut byte = 0u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

/// The lower-cased words of a text joined by one space, and the start and end of each.
///
/// The buffers are reused from text to text.
#[derive(Default)]
pub struct Words {
    joined: String,
    places: Vec<(usize, usize)>,
}

impl Words {
    /// Reads another text.
    pub fn read(&mut self, text: &str) {
        self.places.clear();
        if text.is_ascii() {
            self.split_ascii(text.as_bytes());
        } else {
            self.split(&text.to_lowercase());
        }
    }

    fn split(&mut self, lower: &str) {
        self.joined.clear();
        let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        for word in words.filter(|word| !word.is_empty()) {
            let start = self.joined.len();
            self.joined.push_str(word);
            self.places.push((start, self.joined.len()));
            self.joined.push(' ');
        }
    }

    /// Reads an ASCII text a byte at a time with a table. Most texts are ASCII, and this must not slow down the peers.
    fn split_ascii(&mut self, text: &[u8]) {
        let mut joined = std::mem::take(&mut self.joined).into_bytes();
        joined.resize(text.len() + 1, b' ');
        let (mut start, mut end) = (0, 0);
        for &byte in text.iter().chain(b" ") {
            let lower = LOWER[usize::from(byte)];
            if lower != b' ' {
                joined[end] = lower;
                end += 1;
            } else if end > start {
                self.places.push((start, end));
                joined[end] = b' ';
                end += 1;
                start = end;
            }
        }
        joined.truncate(end);
        self.joined = String::from_utf8(joined).expect("lower-cased ASCII");
    }

    /// Returns the shingles of `width` words in the order of the text, with repetitions.
    pub fn shingles(&self, width: usize) -> impl Iterator<Item = &str> {
        let width = width.min(self.places.len()).max(1);
        let windows = self.places.windows(width);
        windows.map(move |window| &self.joined[window[0].0..window[width - 1].1])
    }
}

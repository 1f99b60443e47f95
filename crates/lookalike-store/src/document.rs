//! Documents, and their encoding.

use std::fmt;
use std::str::FromStr;

use lookalike::Fingerprint;
use lookalike::hash::parse_hex;
use lookalike::sketch::WideFingerprint;

use crate::codec::{ByteDecoder, fixed, put_bytes, put_number};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::error::{Result, StoreError};
use crate::pair_rule::PairTraits;
use crate::time::UnixMillis;

/// Longest id in bytes.
pub const MAX_ID_BYTES: usize = 2048;
/// Largest document in bytes, all parts together.
pub const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// A collision-resistant hash of a text. Documents with equal hashes count as having equal texts, so all hashes of a collection must come
/// from the same function: here the first 128 bits of BLAKE3.
///
/// ```
/// use lookalike_store::TextHash;
///
/// let hash: TextHash = "af1349b9f5f9a1a6a0404dea36dcc949".parse()?;
/// assert_eq!(hash.to_string(), "af1349b9f5f9a1a6a0404dea36dcc949");
/// // The same from a number, as `lookalike_corpus::text_hash` returns it.
/// assert_eq!(hash, TextHash::from(0x49c9_dc36_ea4d_40a0_a6a1_f9f5_b949_13af));
/// # Ok::<(), lookalike_store::ParseTextHashError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextHash(pub(crate) [u8; 16]);

impl From<[u8; 16]> for TextHash {
    /// Returns the hash with these bytes, in this order.
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<u128> for TextHash {
    /// Returns the hash whose first byte is the lowest byte of the number.
    fn from(number: u128) -> Self {
        Self(number.to_le_bytes())
    }
}

impl From<TextHash> for u128 {
    fn from(hash: TextHash) -> Self {
        Self::from_le_bytes(hash.0)
    }
}

/// Error for a text that is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a text is 32 hexadecimal digits")]
pub struct ParseTextHashError;

impl TextHash {
    /// Returns 64 bits of the hash as its key in an index: any of its bits are uniformly distributed.
    pub(crate) fn key(self) -> u64 {
        fixed(&self.0[..8])
    }
}

impl fmt::Display for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TextHash {
    type Err = ParseTextHashError;

    fn from_str(digits: &str) -> Result<Self, ParseTextHashError> {
        let hash = parse_hex(digits, 32).ok_or(ParseTextHashError)?;
        // The digits are the bytes in order, as `Display` writes them: big-endian, unlike in the conversion from `u128`.
        Ok(Self(hash.to_be_bytes()))
    }
}

/// A paragraph of a document or of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredParagraph {
    /// Hash of its words. Paragraphs with equal hashes count as equal.
    pub hash: u64,
    /// Fingerprint by which similar paragraphs are found; `None` if the paragraph is too short to have a useful one.
    pub fingerprint: Option<Fingerprint>,
}

impl From<u64> for StoredParagraph {
    fn from(hash: u64) -> Self {
        Self {
            hash,
            fingerprint: None,
        }
    }
}

/// A document of a collection.
///
/// ```
/// use lookalike::Fingerprint;
/// use lookalike_store::{StoredDocument, TextHash, UnixMillis};
///
/// let page = StoredDocument {
///     text_hash: Some(TextHash::from(0x1234_u128)),
///     expires: Some(UnixMillis(1_700_000_000_000)),
///     metadata: b"fetched by crawler 3".to_vec(),
///     ..StoredDocument::new("http://a.example/", Fingerprint(0b1011))
/// };
/// assert!(!page.is_alive(UnixMillis(1_700_000_000_001)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredDocument {
    /// Id chosen by the caller: 1 to [`MAX_ID_BYTES`] bytes.
    pub id: String,
    /// Fingerprint by which collections of 64-bit fingerprints find the document; `None` for a text without features, which resembles
    /// nothing.
    pub fingerprint: Option<Fingerprint>,
    /// Fingerprint by which collections of 32- or 128-bit fingerprints find the document.
    pub wide_fingerprint: Option<WideFingerprint>,
    /// Time of expiry; `None` means never for a document that was read from a collection. An insert with `None` gets an expiry from the
    /// collection's time to live; one with [`UnixMillis::NEVER`] does not.
    pub expires: Option<UnixMillis>,
    /// Hash of its text; `None` if only the fingerprint is known.
    pub text_hash: Option<TextHash>,
    /// Values of a min-hash signature, by which collections of minima find the document.
    pub signature: Option<Vec<u32>>,
    /// Super-shingles, by which collections of super-shingles find the document.
    pub super_shingles: Option<Vec<u64>>,
    /// Its paragraphs, in order.
    pub paragraphs: Vec<StoredParagraph>,
    /// Small data of the caller, opaque to the store.
    pub metadata: Vec<u8>,
    /// Its text.
    pub text: Option<String>,
    /// Category and length, which decide with which other documents it is compared.
    pub traits: PairTraits,
}

/// Returns the form of a fingerprint whose width is not recorded: the wanted form if the fingerprint fits in it, otherwise 128 bits.
fn bits_form(code: WideFingerprint, wanted: SketchForm) -> SketchForm {
    match wanted {
        SketchForm::Bits(32) if code.0 <= u32::MAX.into() => wanted,
        _ => SketchForm::Bits(128),
    }
}

// Flags of the optional parts of an encoded document. They are part of the formats of logs and runs.
const FINGERPRINT: u16 = 1;
const EXPIRES: u16 = 2;
const SIGNATURE: u16 = 4;
const SUPER_SHINGLES: u16 = 8;
const PARAGRAPHS: u16 = 16;
const METADATA: u16 = 32;
const TEXT: u16 = 64;
const TEXT_HASH: u16 = 128;
const WIDE_FINGERPRINT: u16 = 256;

/// The small parts of a document, which answers show of each neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentHeader {
    pub(crate) id: String,
    pub(crate) content: ContentKey,
    pub(crate) metadata: Vec<u8>,
}

/// Sketch and hash of a content, by which documents are found, and the traits that decide with which documents it is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentKey {
    /// Sketch of the collection's form; `None` for a text without features.
    pub sketch: Option<DocumentSketch>,
    /// Hash of the text; `None` if it is unknown.
    pub text_hash: Option<TextHash>,
    /// Category and length, which decide with which documents it is compared.
    pub traits: PairTraits,
}

impl From<DocumentSketch> for ContentKey {
    fn from(sketch: DocumentSketch) -> Self {
        Self {
            sketch: Some(sketch),
            ..Self::default()
        }
    }
}

impl From<Fingerprint> for ContentKey {
    fn from(fingerprint: Fingerprint) -> Self {
        DocumentSketch::from(fingerprint).into()
    }
}

impl ContentKey {
    /// Tells whether two contents are known to have equal texts.
    pub(crate) fn is_same_text(&self, other: &Self) -> bool {
        // Equal texts have equal sketches, and `may_be_copy` expects copies only at distance zero.
        self.text_hash.is_some() && self.text_hash == other.text_hash && self.sketch == other.sketch
    }
}

impl DocumentHeader {
    pub(crate) fn of(document: &StoredDocument, form: SketchForm) -> Self {
        Self {
            id: document.id.clone(),
            content: document.content(form),
            metadata: document.metadata.clone(),
        }
    }
}

/// The parts of an encoded document that searches look at, decoded; the rest as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentOutline<'a> {
    pub(crate) id: &'a str,
    fingerprint: Option<Fingerprint>,
    wide_fingerprint: Option<WideFingerprint>,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) text_hash: Option<TextHash>,
    pub(crate) traits: PairTraits,
    rest: ByteDecoder<'a>,
    flags: u16,
}

impl StoredDocument {
    /// Creates a document with an id and a fingerprint and nothing else.
    pub fn new(id: impl Into<String>, fingerprint: Fingerprint) -> Self {
        Self {
            id: id.into(),
            fingerprint: Some(fingerprint),
            ..Self::default()
        }
    }

    /// Creates a document without an id that has only the parts of `content`.
    #[must_use]
    pub fn of_content(content: ContentKey) -> Self {
        let mut document = Self {
            text_hash: content.text_hash,
            traits: content.traits,
            ..Self::default()
        };
        match content.sketch {
            Some(DocumentSketch::Fingerprint(code)) => document.fingerprint = Some(code),
            Some(DocumentSketch::Bits(code, _)) => document.wide_fingerprint = Some(code),
            Some(DocumentSketch::SuperShingles(values)) => document.super_shingles = Some(values),
            Some(DocumentSketch::Minima(values)) => document.signature = Some(values),
            None => {}
        }
        document
    }

    /// Returns true if the document has not expired at the time `now`.
    pub fn is_alive(&self, now: UnixMillis) -> bool {
        self.expires.is_none_or(|end| end > now)
    }

    /// Returns the sketch of a form, by which a collection of such sketches finds the document; `None` if it has none of this form.
    pub fn sketch(&self, form: SketchForm) -> Option<DocumentSketch> {
        let sketch = match form {
            SketchForm::Fingerprint => self.fingerprint.map(DocumentSketch::Fingerprint),
            SketchForm::Bits(bits) => {
                let code = self.wide_fingerprint;
                code.map(|code| DocumentSketch::low_bits(code, bits))
            }
            SketchForm::SuperShingles(_) => {
                let values = self.super_shingles.clone();
                values.map(DocumentSketch::SuperShingles)
            }
            SketchForm::Minima(_) => self.signature.clone().map(DocumentSketch::Minima),
        };
        // The number of values belongs to the form: a signature of another length is no sketch of this collection.
        sketch.filter(|sketch| sketch.form() == form)
    }

    /// Returns an error if the document has sketches, but none of the form wanted. A document without any sketch resembles nothing and is
    /// found by its id and text.
    pub(crate) fn ensure_form(&self, wanted: SketchForm) -> Result<()> {
        let forms = [
            self.fingerprint.map(|_| SketchForm::Fingerprint),
            self.wide_fingerprint.map(|code| bits_form(code, wanted)),
            self.super_shingles
                .as_ref()
                .map(|values| SketchForm::SuperShingles(values.len())),
            self.signature
                .as_ref()
                .map(|values| SketchForm::Minima(values.len())),
        ];
        let found = forms.iter().flatten().next();
        match found {
            Some(&found) if !forms.contains(&Some(wanted)) => Err(StoreError::OtherForm {
                document: Some(self.id.clone()),
                wanted,
                found,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the key by which a collection of sketches of a form finds the document.
    pub fn content(&self, form: SketchForm) -> ContentKey {
        ContentKey {
            sketch: self.sketch(form),
            text_hash: self.text_hash,
            traits: self.traits,
        }
    }

    /// Returns the approximate size of all parts in bytes.
    pub(crate) fn size(&self) -> usize {
        let signature = self.signature.as_ref().map_or(0, |values| values.len() * 4);
        let super_shingles = self
            .super_shingles
            .as_ref()
            .map_or(0, |values| values.len() * 8);
        // Sixteen bytes for each paragraph, whether it has a fingerprint or not: an upper bound that is cheap to compute. Lengths and flags
        // are not counted: the limits of batches and frames are far enough apart to leave room for them.
        let numbers = signature + super_shingles + self.paragraphs.len() * 16;
        let text = self.text.as_ref().map_or(0, String::len);
        let hash = self.text_hash.map_or(0, |hash| hash.0.len());
        self.id.len() + hash + numbers + self.metadata.len() + text
    }

    /// Returns an error if the document cannot be stored.
    pub(crate) fn check(&self) -> Result<()> {
        check_id(&self.id)?;
        let bytes = self.size();
        if bytes > MAX_DOCUMENT_BYTES {
            return Err(StoreError::DocumentTooLarge {
                id: self.id.clone(),
                bytes,
                limit: MAX_DOCUMENT_BYTES,
            });
        }
        Ok(())
    }

    /// Appends the encoded document: id, flags, then the parts that the flags name. Traits, if any, come first, marked by an empty id,
    /// which no document has.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if self.traits != PairTraits::default() {
            put_bytes(out, &[]);
            self.traits.encode(out);
        }
        put_bytes(out, self.id.as_bytes());
        let flag = |there: bool, flag: u16| if there { flag } else { 0 };
        let flags = flag(self.fingerprint.is_some(), FINGERPRINT)
            | flag(self.expires.is_some(), EXPIRES)
            | flag(self.signature.is_some(), SIGNATURE)
            | flag(self.super_shingles.is_some(), SUPER_SHINGLES)
            | flag(!self.paragraphs.is_empty(), PARAGRAPHS)
            | flag(!self.metadata.is_empty(), METADATA)
            | flag(self.text.is_some(), TEXT)
            | flag(self.text_hash.is_some(), TEXT_HASH)
            | flag(self.wide_fingerprint.is_some(), WIDE_FINGERPRINT);
        put_number(out, flags.into());
        // The parts that searches look at come first, so that a `DocumentOutline` need not read further.
        if let Some(Fingerprint(code)) = self.fingerprint {
            out.extend_from_slice(&code.to_le_bytes());
        }
        if let Some(WideFingerprint(code)) = self.wide_fingerprint {
            out.extend_from_slice(&code.to_le_bytes());
        }
        if let Some(UnixMillis(millis)) = self.expires {
            put_number(out, millis);
        }
        if let Some(TextHash(hash)) = self.text_hash {
            out.extend_from_slice(&hash);
        }
        if !self.paragraphs.is_empty() {
            // Before the longer values, so that searches for paragraphs read no further.
            encode_paragraphs(&self.paragraphs, out);
        }
        if let Some(values) = &self.signature {
            put_number(out, values.len() as u64);
            out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        if let Some(values) = &self.super_shingles {
            put_number(out, values.len() as u64);
            out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        }
        if !self.metadata.is_empty() {
            put_bytes(out, &self.metadata);
        }
        if let Some(text) = &self.text {
            put_bytes(out, text.as_bytes());
        }
    }

    /// Decodes one document. Returns `None` if the bytes are not a valid encoding.
    pub(crate) fn decode(decoder: &mut ByteDecoder<'_>) -> Option<Self> {
        // Decode the outline first: searches and reads of whole documents thus validate the beginning with the same code, and cannot
        // disagree on where the rest begins.
        let outline = DocumentOutline::read(*decoder)?;
        let (document, end) = outline.document()?;
        *decoder = end;
        Some(document)
    }
}

/// Appends the number of paragraphs, their hashes, a bit for each that tells whether it has a fingerprint, and the fingerprints.
fn encode_paragraphs(paragraphs: &[StoredParagraph], out: &mut Vec<u8>) {
    put_number(out, paragraphs.len() as u64);
    out.extend(paragraphs.iter().flat_map(|part| part.hash.to_le_bytes()));
    out.extend(paragraphs.chunks(8).map(|eight| {
        let bits = eight.iter().enumerate();
        bits.fold(0, |byte, (at, part)| {
            byte | u8::from(part.fingerprint.is_some()) << at
        })
    }));
    let codes = paragraphs.iter().filter_map(|part| part.fingerprint);
    out.extend(codes.flat_map(|code| code.0.to_le_bytes()));
}

/// The encoded paragraphs of a document.
#[derive(Clone, Copy, Debug, Default)]
struct ParagraphBytes<'a> {
    hashes: &'a [u8],
    bits: &'a [u8],
    codes: &'a [u8],
}

impl<'a> ParagraphBytes<'a> {
    fn read(from: &mut ByteDecoder<'a>) -> Option<Self> {
        // Every paragraph takes at least eight bytes, and `count` checks that so many bytes are left, so the products below cannot
        // overflow.
        let count = from.count(8)?;
        let hashes = from.take(count * 8)?;
        let bits = from.take(count.div_ceil(8))?;
        // Bits after the last paragraph are ignored; the encoder leaves them zero.
        let coded = (0..count).filter(|at| bits[at / 8] >> (at % 8) & 1 == 1);
        let codes = from.take(coded.count() * 8)?;
        Some(Self {
            hashes,
            bits,
            codes,
        })
    }

    fn iter(self) -> impl Iterator<Item = StoredParagraph> + 'a {
        let mut codes = self.codes.chunks_exact(8).map(fixed);
        let hashes = self.hashes.chunks_exact(8).map(fixed).enumerate();
        hashes.map(move |(at, hash)| {
            let is_coded = self.bits[at / 8] >> (at % 8) & 1 == 1;
            let code = if is_coded { codes.next() } else { None };
            StoredParagraph {
                hash,
                fingerprint: code.map(Fingerprint),
            }
        })
    }
}

/// The encoded values of a document between its paragraphs and its metadata.
struct ValueBytes<'a> {
    signature: Option<&'a [u8]>,
    super_shingles: Option<&'a [u8]>,
    rest: ByteDecoder<'a>,
}

/// Decodes an array of numbers of `BYTES` bytes each.
fn numbers<const BYTES: usize, T>(bytes: &[u8], number: impl Fn([u8; BYTES]) -> T) -> Vec<T> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|&word| number(word)).collect()
}

/// Returns an error for an id that cannot be stored.
///
/// # Errors
/// [`StoreError::Invalid`] if the id is empty or longer than [`MAX_ID_BYTES`].
pub fn check_id(id: &str) -> Result<()> {
    let wrong = match id.len() {
        0 => "the id is empty".to_owned(),
        1..=MAX_ID_BYTES => return Ok(()),
        bytes => format!("the id has {bytes} bytes"),
    };
    Err(StoreError::Invalid(format!(
        "{wrong}: ids have 1 to {MAX_ID_BYTES} bytes"
    )))
}

/// Decodes a part of a document, if it has that part.
fn if_set<T>(is_set: bool, decode: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
    match is_set {
        true => decode().map(Some),
        false => Some(None),
    }
}

impl<'a> DocumentOutline<'a> {
    /// Decodes the beginning of a document.
    pub(crate) fn read(mut decoder: ByteDecoder<'a>) -> Option<Self> {
        let mut traits = PairTraits::default();
        let mut id = decoder.bytes()?;
        // An empty id announces traits: see `encode`.
        if id.is_empty() {
            traits = PairTraits::decode(&mut decoder)?;
            id = decoder.bytes()?;
        }
        let id = std::str::from_utf8(id).ok()?;
        let flags = u16::try_from(decoder.number()?).ok()?;
        let has = |flag: u16| flags & flag != 0;
        let fingerprint = if_set(has(FINGERPRINT), || decoder.fixed64().map(Fingerprint))?;
        let wide_fingerprint = if_set(has(WIDE_FINGERPRINT), || {
            let code = decoder.array().map(u128::from_le_bytes);
            code.map(WideFingerprint)
        })?;
        let expires = if_set(has(EXPIRES), || decoder.number().map(UnixMillis))?;
        let text_hash = if_set(has(TEXT_HASH), || decoder.array().map(TextHash))?;
        Some(Self {
            id,
            fingerprint,
            wide_fingerprint,
            expires,
            text_hash,
            traits,
            rest: decoder,
            flags,
        })
    }

    /// Returns the key by which the document is found.
    pub(crate) fn content(&self, form: SketchForm) -> Option<ContentKey> {
        Some(ContentKey {
            sketch: self.sketch(form)?,
            text_hash: self.text_hash,
            traits: self.traits,
        })
    }

    /// Returns the sketch of a form, if the document has one. The outer `Option` is `None` if the bytes are not a valid encoding.
    pub(crate) fn sketch(&self, form: SketchForm) -> Option<Option<DocumentSketch>> {
        let sketch = match form {
            SketchForm::Fingerprint => self.fingerprint.map(DocumentSketch::Fingerprint),
            SketchForm::Bits(bits) => {
                let code = self.wide_fingerprint;
                code.map(|code| DocumentSketch::low_bits(code, bits))
            }
            SketchForm::SuperShingles(_) => {
                let values = self.values()?.super_shingles;
                values
                    .map(|bytes| DocumentSketch::SuperShingles(numbers(bytes, u64::from_le_bytes)))
            }
            SketchForm::Minima(_) => {
                let values = self.values()?.signature;
                values.map(|bytes| DocumentSketch::Minima(numbers(bytes, u32::from_le_bytes)))
            }
        };
        Some(sketch.filter(|sketch| sketch.form() == form))
    }

    /// Decodes the paragraphs.
    pub(crate) fn paragraphs(&self) -> Option<impl Iterator<Item = StoredParagraph> + 'a> {
        self.after_paragraphs()
            .map(|(paragraphs, _)| paragraphs.iter())
    }

    /// Returns the encoded paragraphs, and the bytes after them.
    fn after_paragraphs(&self) -> Option<(ParagraphBytes<'a>, ByteDecoder<'a>)> {
        let mut rest = self.rest;
        let mut paragraphs = ParagraphBytes::default();
        if self.flags & PARAGRAPHS != 0 {
            paragraphs = ParagraphBytes::read(&mut rest)?;
        }
        Some((paragraphs, rest))
    }

    /// Returns the encoded values after the paragraphs.
    fn values(&self) -> Option<ValueBytes<'a>> {
        let (_, mut rest) = self.after_paragraphs()?;
        let mut bytes = |flag: u16, size: usize| {
            if_set(self.flags & flag != 0, || {
                let count = rest.count(size)?;
                rest.take(count * size)
            })
        };
        Some(ValueBytes {
            signature: bytes(SIGNATURE, 4)?,
            super_shingles: bytes(SUPER_SHINGLES, 8)?,
            rest,
        })
    }

    /// Returns the metadata.
    pub(crate) fn metadata(&self) -> Option<&'a [u8]> {
        // Values are skipped without decoding: a neighbour is shown with its metadata, and a signature of several kilobytes may come before
        // it.
        let mut rest = self.values()?.rest;
        if self.flags & METADATA == 0 {
            return Some(&[]);
        }
        rest.bytes()
    }

    /// Decodes the whole document, and returns the bytes after it.
    fn document(&self) -> Option<(StoredDocument, ByteDecoder<'a>)> {
        let (paragraphs, _) = self.after_paragraphs()?;
        let ValueBytes {
            signature,
            super_shingles,
            mut rest,
        } = self.values()?;
        let mut document = StoredDocument {
            id: self.id.to_owned(),
            fingerprint: self.fingerprint,
            wide_fingerprint: self.wide_fingerprint,
            expires: self.expires,
            text_hash: self.text_hash,
            paragraphs: paragraphs.iter().collect(),
            signature: signature.map(|bytes| numbers(bytes, u32::from_le_bytes)),
            super_shingles: super_shingles.map(|bytes| numbers(bytes, u64::from_le_bytes)),
            traits: self.traits,
            ..StoredDocument::default()
        };
        if self.flags & METADATA != 0 {
            document.metadata = rest.bytes()?.to_vec();
        }
        if self.flags & TEXT != 0 {
            let text = std::str::from_utf8(rest.bytes()?).ok()?;
            document.text = Some(text.to_owned());
        }
        Some((document, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_document_without_traits_has_the_bytes_that_it_always_had() {
        let mut document = StoredDocument::new("ab", Fingerprint(0x0102_0304_0506_0708));
        let plain = [2, b'a', b'b', 1, 8, 7, 6, 5, 4, 3, 2, 1];
        let encoded = |document: &StoredDocument| {
            let mut bytes = Vec::new();
            document.encode(&mut bytes);
            bytes
        };
        assert_eq!(encoded(&document), plain);
        document.traits = PairTraits {
            category: 7,
            length: 300,
        };
        // An empty id, the category, and 300 as a number of seven bits a byte.
        let traits = [0, 7, 0, 0, 0, 0, 0, 0, 0, 0xac, 0x02];
        assert_eq!(encoded(&document), [&traits[..], &plain].concat());
    }

    proptest! {
        #[test]
        fn a_document_is_read_as_it_was_written(
            id in ".{1,20}", code: Option<u64>, wide: Option<u128>, expires: Option<u64>, hash: Option<[u8; 16]>, signature: Option<Vec<u32>>,
            super_shingles: Option<Vec<u64>>, paragraphs: Vec<(u64, Option<u64>)>, metadata: Vec<u8>, text: Option<String>, category: u64, length: u32,
        ) {
            let paragraphs = paragraphs.into_iter().map(|(hash, code)| StoredParagraph {
                hash,
                fingerprint: code.map(Fingerprint),
            });
            let document = StoredDocument {
                id,
                paragraphs: paragraphs.collect(),
                fingerprint: code.map(Fingerprint),
                wide_fingerprint: wide.map(WideFingerprint),
                expires: expires.map(UnixMillis),
                text_hash: hash.map(TextHash),
                signature, super_shingles, metadata, text,
                traits: PairTraits { category, length },
            };
            let mut bytes = Vec::new();
            document.encode(&mut bytes);
            bytes.push(7);
            let mut decoder = ByteDecoder::new(&bytes);
            let outline = DocumentOutline::read(decoder).expect("whole");
            prop_assert!(outline.paragraphs().expect("whole").eq(document.paragraphs.iter().copied()));
            prop_assert_eq!(outline.metadata(), Some(document.metadata.as_slice()));
            for form in [
                SketchForm::Fingerprint,
                SketchForm::Bits(128),
                SketchForm::SuperShingles(document.super_shingles.as_ref().map_or(1, Vec::len)),
                SketchForm::Minima(document.signature.as_ref().map_or(1, Vec::len)),
                SketchForm::Minima(300),
            ] {
                prop_assert_eq!(outline.content(form), Some(document.content(form)));
            }
            prop_assert_eq!(StoredDocument::decode(&mut decoder), Some(document));
            prop_assert_eq!(decoder.rest(), [7]);
        }

        #[test]
        fn the_hash_of_a_text_is_read_as_it_is_shown(hash: [u8; 16], other in "[0-9a-f+-]{0,33}") {
            let hash = TextHash(hash);
            prop_assert_eq!(hash.to_string().parse(), Ok(hash));
            let digits = other.len() == 32 && !other.contains(['+', '-']);
            prop_assert_eq!(other.parse::<TextHash>().is_ok(), digits);
        }
    }
}

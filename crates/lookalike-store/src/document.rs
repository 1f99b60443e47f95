//! Documents, and their encoding.

use lookalike::Fingerprint;

use crate::codec::{ByteDecoder, put_bytes, put_number};
use crate::error::{Result, StoreError};
use crate::time::UnixMillis;

/// Longest id in bytes.
pub const LONGEST_ID: usize = 4096;
/// Largest document in bytes, all parts together.
pub const LARGEST_DOCUMENT: usize = 32 << 20;

/// A document of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredDocument {
    /// The user's own id: 1 to 4096 bytes.
    pub id: String,
    /// Fingerprint; `None` for a text without features, which resembles nothing.
    pub fingerprint: Option<Fingerprint>,
    /// Time of expiry. Inserts without one take the collection's time to live; without that either, the document never expires.
    pub expires: Option<UnixMillis>,
    /// Values of a min-hash signature.
    pub signature: Option<Vec<u32>>,
    /// Super-shingles.
    pub super_shingles: Option<Vec<u64>>,
    /// Hashes of its paragraphs, in order.
    pub paragraphs: Vec<u64>,
    /// Small data of the user, opaque to the store.
    pub metadata: Vec<u8>,
    /// Its text.
    pub text: Option<String>,
}

const FINGERPRINT: u8 = 1;
const EXPIRES: u8 = 2;
const SIGNATURE: u8 = 4;
const SUPER_SHINGLES: u8 = 8;
const PARAGRAPHS: u8 = 16;
const METADATA: u8 = 32;
const TEXT: u8 = 64;

/// Id and metadata of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentHeader {
    pub(crate) id: String,
    pub(crate) metadata: Vec<u8>,
}

impl DocumentHeader {
    pub(crate) fn of(document: &StoredDocument) -> Self {
        Self {
            id: document.id.clone(),
            metadata: document.metadata.clone(),
        }
    }
}

/// The parts of a stored document that the store looks at, in its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentOutline<'a> {
    pub(crate) id: &'a str,
    pub(crate) fingerprint: Option<u64>,
    pub(crate) expires: Option<UnixMillis>,
    rest: ByteDecoder<'a>,
    flags: u8,
}

impl StoredDocument {
    /// A document with a fingerprint and nothing else.
    pub fn new(id: impl Into<String>, fingerprint: Fingerprint) -> Self {
        Self {
            id: id.into(),
            fingerprint: Some(fingerprint),
            ..Self::default()
        }
    }

    /// True if the document has not expired at a time.
    pub fn is_alive(&self, now: UnixMillis) -> bool {
        self.expires.is_none_or(|end| end > now)
    }

    /// Bytes of all its parts.
    pub(crate) fn size(&self) -> usize {
        let signature = self.signature.as_ref().map_or(0, |values| values.len() * 4);
        let super_shingles = self
            .super_shingles
            .as_ref()
            .map_or(0, |values| values.len() * 8);
        let numbers = signature + super_shingles + self.paragraphs.len() * 8;
        let text = self.text.as_ref().map_or(0, String::len);
        self.id.len() + numbers + self.metadata.len() + text
    }

    /// Refuses what cannot be stored.
    pub(crate) fn check(&self) -> Result<()> {
        check_id(&self.id)?;
        let bytes = self.size();
        if bytes > LARGEST_DOCUMENT {
            let (id, most) = (&self.id, LARGEST_DOCUMENT);
            return Err(StoreError::Invalid(format!(
                "document {id:?} has {bytes} bytes, more than the limit of {most}"
            )));
        }
        Ok(())
    }

    /// Appends the bytes of the document: id, flags, then the parts that the flags name.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.id.as_bytes());
        let flag = |there: bool, flag: u8| if there { flag } else { 0 };
        out.push(
            flag(self.fingerprint.is_some(), FINGERPRINT)
                | flag(self.expires.is_some(), EXPIRES)
                | flag(self.signature.is_some(), SIGNATURE)
                | flag(self.super_shingles.is_some(), SUPER_SHINGLES)
                | flag(!self.paragraphs.is_empty(), PARAGRAPHS)
                | flag(!self.metadata.is_empty(), METADATA)
                | flag(self.text.is_some(), TEXT),
        );
        if let Some(Fingerprint(code)) = self.fingerprint {
            out.extend_from_slice(&code.to_le_bytes());
        }
        if let Some(UnixMillis(millis)) = self.expires {
            put_number(out, millis);
        }
        if !self.paragraphs.is_empty() {
            put_number(out, self.paragraphs.len() as u64);
            out.extend(self.paragraphs.iter().flat_map(|hash| hash.to_le_bytes()));
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

    /// Reads the bytes of one document; `None` when they are not those of one.
    pub(crate) fn decode(decoder: &mut ByteDecoder<'_>) -> Option<Self> {
        let outline = DocumentOutline::read(*decoder)?;
        let (document, end) = outline.document()?;
        *decoder = end;
        Some(document)
    }
}

/// Refuses ids that cannot be stored.
pub(crate) fn check_id(id: &str) -> Result<()> {
    if id.is_empty() || id.len() > LONGEST_ID {
        let bytes = id.len();
        return Err(StoreError::Invalid(format!(
            "an id of {bytes} bytes is not allowed: ids have 1 to {LONGEST_ID} bytes"
        )));
    }
    Ok(())
}

impl<'a> DocumentOutline<'a> {
    /// Reads the beginning of a document.
    pub(crate) fn read(mut decoder: ByteDecoder<'a>) -> Option<Self> {
        let id = std::str::from_utf8(decoder.bytes()?).ok()?;
        let flags = decoder.byte()?;
        let mut fingerprint = None;
        if flags & FINGERPRINT != 0 {
            fingerprint = Some(decoder.fixed64()?);
        }
        let mut expires = None;
        if flags & EXPIRES != 0 {
            expires = Some(UnixMillis(decoder.number()?));
        }
        Some(Self {
            id,
            fingerprint,
            expires,
            rest: decoder,
            flags,
        })
    }

    /// The hashes of the paragraphs.
    pub(crate) fn paragraphs(&self) -> Option<impl Iterator<Item = u64> + 'a> {
        let mut rest = self.rest;
        let mut bytes: &[u8] = &[];
        if self.flags & PARAGRAPHS != 0 {
            let count = rest.count(8)?;
            bytes = rest.take(count * 8)?;
        }
        Some(bytes.chunks_exact(8).map(crate::codec::fixed))
    }

    /// The metadata.
    pub(crate) fn metadata(&self) -> Option<&'a [u8]> {
        let mut rest = self.rest;
        for (flag, size) in [(PARAGRAPHS, 8), (SIGNATURE, 4), (SUPER_SHINGLES, 8)] {
            if self.flags & flag != 0 {
                let count = rest.count(size)?;
                rest.take(count * size)?;
            }
        }
        if self.flags & METADATA == 0 {
            return Some(&[]);
        }
        rest.bytes()
    }

    /// The whole document, and what follows it.
    fn document(&self) -> Option<(StoredDocument, ByteDecoder<'a>)> {
        let mut document = StoredDocument {
            id: self.id.to_owned(),
            fingerprint: self.fingerprint.map(Fingerprint),
            expires: self.expires,
            paragraphs: self.paragraphs()?.collect(),
            ..StoredDocument::default()
        };
        let mut rest = self.rest;
        if self.flags & PARAGRAPHS != 0 {
            rest.count(8)?;
            rest.take(document.paragraphs.len() * 8)?;
        }
        if self.flags & SIGNATURE != 0 {
            let count = rest.count(4)?;
            let values = (0..count).map(|_| rest.fixed32());
            document.signature = Some(values.collect::<Option<_>>()?);
        }
        if self.flags & SUPER_SHINGLES != 0 {
            let count = rest.count(8)?;
            let values = (0..count).map(|_| rest.fixed64());
            document.super_shingles = Some(values.collect::<Option<_>>()?);
        }
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

    proptest! {
        #[test]
        fn a_document_is_read_as_it_was_written(
            id in ".{1,20}", code: Option<u64>, expires: Option<u64>, signature: Option<Vec<u32>>,
            super_shingles: Option<Vec<u64>>, paragraphs: Vec<u64>, metadata: Vec<u8>, text: Option<String>,
        ) {
            let document = StoredDocument {
                id,
                fingerprint: code.map(Fingerprint),
                expires: expires.map(UnixMillis),
                signature, super_shingles, paragraphs, metadata, text,
            };
            let mut bytes = Vec::new();
            document.encode(&mut bytes);
            bytes.push(7);
            let mut decoder = ByteDecoder::new(&bytes);
            let outline = DocumentOutline::read(decoder).expect("whole");
            prop_assert!(outline.paragraphs().expect("whole").eq(document.paragraphs.iter().copied()));
            prop_assert_eq!(StoredDocument::decode(&mut decoder), Some(document));
            prop_assert_eq!(decoder.rest(), [7]);
        }
    }
}

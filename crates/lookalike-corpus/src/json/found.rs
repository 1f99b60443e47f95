//! The fields that were found in one object.

use super::selection::{FieldSlot, RAW_SLOTS, TEXT_SLOTS};
use super::unescape::UnescapeBuffer;

/// The value of a text field, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TextCapture<'de> {
    #[default]
    Absent,
    Null,
    /// A slice of the line; the text has no escapes.
    Borrowed(&'de str),
    /// A slice of the line with valid escapes, up to and including the closing quote; see [`FoundFields::settle`].
    Escaped(&'de str),
    /// The text had escapes, and is now in the buffer of its slot.
    Buffered,
    /// Another value, of this type.
    WrongType(&'static str),
}

/// The fields of one object.
#[derive(Debug)]
pub(crate) struct FoundFields<'de, 'b> {
    pub(super) raw: [Option<&'de str>; RAW_SLOTS],
    pub(super) text: [TextCapture<'de>; TEXT_SLOTS],
    pub(super) buffers: &'b mut TextBuffers,
}

/// Buffers for unescaped strings, one for each text slot.
#[derive(Debug, Default)]
pub(crate) struct TextBuffers(pub(super) [UnescapeBuffer; TEXT_SLOTS]);

impl<'de, 'b> FoundFields<'de, 'b> {
    pub(super) fn new(buffers: &'b mut TextBuffers) -> FoundFields<'de, 'b> {
        FoundFields {
            raw: [None; RAW_SLOTS],
            text: [TextCapture::Absent; TEXT_SLOTS],
            buffers,
        }
    }

    /// Returns the JSON text of a value, or `None` if it is absent.
    pub(crate) fn raw(&self, slot: FieldSlot) -> Option<&'de str> {
        self.raw[slot as usize]
    }

    pub(crate) fn text(&self, slot: FieldSlot) -> TextCapture<'de> {
        self.text[slot as usize - RAW_SLOTS]
    }

    /// Returns true if a text is absent; it is there if it is null.
    pub(crate) fn is_absent(&self, slot: FieldSlot) -> bool {
        matches!(self.text(slot), TextCapture::Absent)
    }

    /// Returns true if a text is absent or null.
    pub(crate) fn is_missing(&self, slot: FieldSlot) -> bool {
        matches!(self.text(slot), TextCapture::Absent | TextCapture::Null)
    }

    /// Returns the content of a slot whose capture is `Buffered`.
    pub(crate) fn buffered(&self, slot: FieldSlot) -> &str {
        self.buffers.0[slot as usize - RAW_SLOTS].text()
    }

    /// Unescapes the text of a slot if that was deferred.
    pub(crate) fn settle(&mut self, slot: FieldSlot) {
        if let TextCapture::Escaped(text) = self.text(slot) {
            let at = slot as usize - RAW_SLOTS;
            let end = self.buffers.0[at].unescape(text.as_bytes(), 0);
            debug_assert_eq!(end, Some(text.len() - 1));
            self.text[at] = TextCapture::Buffered;
        }
    }

    /// Clears earlier values of the same name, because the last one counts.
    pub(super) fn clear(&mut self, slots: u16) {
        self.set_raw(slots, None);
        self.set_text(slots, TextCapture::Absent);
    }

    pub(super) fn set_raw(&mut self, slots: u16, value: Option<&'de str>) {
        for (i, raw) in self.raw.iter_mut().enumerate() {
            // Several slots may use the same path, such as an id that is also the order key.
            if slots >> i & 1 == 1 {
                *raw = value;
            }
        }
    }

    pub(super) fn set_text(&mut self, slots: u16, value: TextCapture<'de>) {
        for (i, text) in self.text.iter_mut().enumerate() {
            if slots >> (RAW_SLOTS + i) & 1 == 1 {
                *text = value;
            }
        }
    }

    pub(super) fn set_buffer(&mut self, slots: u16, value: &str) {
        for (i, buffer) in self.buffers.0.iter_mut().enumerate() {
            if slots >> (RAW_SLOTS + i) & 1 == 1 {
                buffer.set(value);
                self.text[i] = TextCapture::Buffered;
            }
        }
    }
}

//! The fields that were found in one object.

use super::selection::{RAW_SLOTS, Slot, TEXT_SLOTS};
use super::unescape::Buffer;

/// The value of a text field, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Capture<'de> {
    #[default]
    Absent,
    Null,
    /// Without escapes, in the line itself.
    Borrowed(&'de str),
    /// With good escapes, in the line, up to and with the closing quote; see [`Found::settle`].
    Escaped(&'de str),
    /// Had escapes, and is now in the buffer of its slot.
    Buffered,
    /// Something else, of this type.
    Wrong(&'static str),
}

/// The fields of one object.
#[derive(Debug)]
pub(crate) struct Found<'de, 'b> {
    pub(super) raw: [Option<&'de str>; RAW_SLOTS],
    pub(super) text: [Capture<'de>; TEXT_SLOTS],
    pub(super) buffers: &'b mut Buffers,
}

/// Room for unescaped strings, one for each text slot.
#[derive(Debug, Default)]
pub(crate) struct Buffers(pub(super) [Buffer; TEXT_SLOTS]);

impl<'de, 'b> Found<'de, 'b> {
    pub(super) fn new(buffers: &'b mut Buffers) -> Found<'de, 'b> {
        Found {
            raw: [None; RAW_SLOTS],
            text: [Capture::Absent; TEXT_SLOTS],
            buffers,
        }
    }

    /// The JSON text of a value; none if absent.
    pub(crate) fn raw(&self, slot: Slot) -> Option<&'de str> {
        self.raw[slot as usize]
    }

    pub(crate) fn text(&self, slot: Slot) -> Capture<'de> {
        self.text[slot as usize - RAW_SLOTS]
    }

    /// Returns true if a text is absent or null.
    pub(crate) fn is_missing(&self, slot: Slot) -> bool {
        matches!(self.text(slot), Capture::Absent | Capture::Null)
    }

    /// The content of a slot whose capture is `Buffered`.
    pub(crate) fn buffered(&self, slot: Slot) -> &str {
        self.buffers.0[slot as usize - RAW_SLOTS].text()
    }

    /// Unescapes the text of a slot if that was put off.
    pub(crate) fn settle(&mut self, slot: Slot) {
        if let Capture::Escaped(text) = self.text(slot) {
            let at = slot as usize - RAW_SLOTS;
            let end = self.buffers.0[at].unescape(text.as_bytes(), 0);
            debug_assert_eq!(end, Some(text.len() - 1));
            self.text[at] = Capture::Buffered;
        }
    }

    /// Forgets an earlier value of the same name: the last one wins.
    pub(super) fn clear(&mut self, slots: u16) {
        for (i, raw) in self.raw.iter_mut().enumerate() {
            if slots >> i & 1 == 1 {
                *raw = None;
            }
        }
        self.set_text(slots, Capture::Absent);
    }

    pub(super) fn set_raw(&mut self, slots: u16, value: &'de str) {
        for (i, raw) in self.raw.iter_mut().enumerate() {
            if slots >> i & 1 == 1 {
                *raw = Some(value);
            }
        }
    }

    pub(super) fn set_text(&mut self, slots: u16, value: Capture<'de>) {
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
                self.text[i] = Capture::Buffered;
            }
        }
    }
}

//! Splits single texts into chunks, for engines that collect equal chunks from many machines and count them there.

use lookalike::chunk::Chunker;
use lookalike_corpus::InputOptions;

use super::settings::{OverlapSettings, OverlapUnit};
use crate::error::BatchError;
use crate::kernel::placed_text::PlacedText;
use crate::overlap::settings_error::OverlapSettingsError;

/// Splitter of texts into chunks, as in an overlap job. Each thread needs its own.
pub struct TextChunks {
    settings: OverlapSettings,
    most_bytes: u64,
    chunker: Chunker,
}

lookalike::opaque_debug! {
    [] TextChunks [];
}

impl TextChunks {
    /// Creates a splitter. Of the options it only uses the maximum document size.
    ///
    /// # Errors
    /// [`BatchError::Settings`] for invalid settings, and for settings that compare servers.
    pub fn new(settings: OverlapSettings, options: &InputOptions) -> Result<Self, BatchError> {
        settings.check()?;
        if settings.by == OverlapUnit::Server {
            return Err(OverlapSettingsError::ServersOfTexts.into());
        }
        Ok(Self {
            chunker: Chunker::new(&settings.chunkings, settings.bits, &settings.scheme),
            most_bytes: options.max_document_bytes,
            settings,
        })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &OverlapSettings {
        &self.settings
    }

    /// Splits a text and returns its hash. Returns `None` for a text that is empty or too long.
    pub fn chunk(&mut self, text: &str) -> Option<u128> {
        let placed = PlacedText::plain(text, None, self.most_bytes);
        if placed.is_empty() || placed.is_too_long {
            return None;
        }
        self.chunker.chunk(text);
        Some(placed.hash)
    }

    /// Returns the distinct chunks of the last text under the chunking at position `chunking`, ascending.
    pub fn set(&self, chunking: usize) -> &[u64] {
        self.chunker.set(chunking)
    }
}

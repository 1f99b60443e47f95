//! Chunks of single texts, for engines that bring equal chunks of many machines together and count there.

use lookalike::chunk::Chunker;
use lookalike_corpus::InputOptions;

use super::settings::{OverlapSettings, OverlapUnit};
use crate::error::BatchError;
use crate::kernel::placed_text::PlacedText;
use crate::overlap::settings_error::OverlapSettingsError;

/// Cuts texts into chunks as an overlap job does: the tool of one thread.
pub struct TextChunks {
    settings: OverlapSettings,
    most_bytes: u64,
    chunker: Chunker,
}

impl TextChunks {
    /// Creates the tool. Of the options it looks at the largest document.
    ///
    /// # Errors
    /// [`BatchError::Settings`] for settings that mean nothing, or that compare servers.
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

    /// The settings.
    pub fn settings(&self) -> &OverlapSettings {
        &self.settings
    }

    /// Cuts a text and returns its hash; none for a text that is empty or too long.
    pub fn chunk(&mut self, text: &str) -> Option<u128> {
        let placed = PlacedText::plain(text, None, self.most_bytes);
        if placed.is_empty() || placed.is_too_long {
            return None;
        }
        self.chunker.chunk(text);
        Some(placed.hash)
    }

    /// Distinct chunks of the text that was cut last, under chunking number `chunking`, ascending.
    pub fn set(&self, chunking: usize) -> &[u64] {
        self.chunker.set(chunking)
    }
}

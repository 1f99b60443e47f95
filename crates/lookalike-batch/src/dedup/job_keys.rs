//! Keys that need the whole collection: prefixes, blocks of fingerprints, and visible texts that are also those of pages.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dedup::candidate_groups::KeySink;
use crate::dedup::frequency::FrequencyLevels;
use crate::dedup::job::DedupJob;
use crate::dedup::scan::ScannedCollection;
use crate::kernel::class_keys::{BlockKeys, KeySalt, PrefixFinder, text_key};
use crate::observer::{JobStage, SharedProgress};
use crate::parallel::{in_ranges, run_on_threads};
use crate::settings::{Method, PairScope};

impl DedupJob<'_> {
    /// Adds the keys that need the whole collection: prefixes, and blocks of fingerprints.
    pub(crate) fn push_keys(
        &self,
        scanned: &ScannedCollection,
        levels: &FrequencyLevels,
        sink: &KeySink,
    ) -> io::Result<()> {
        // Keys that a collection stores must not depend on the number of documents.
        let is_kept = self.collection.is_some() || self.addition.is_some();
        match self.settings.method {
            Method::AllPairs => self.push_prefixes(scanned, levels, sink),
            Method::Simhash => self.push_blocks(scanned, is_kept, sink),
            _ => Ok(()),
        }
    }

    /// Adds keys of the visible text to classes that have none and share theirs with a page, because they are exact copies of it.
    pub(crate) fn push_text_keys(
        &self,
        scanned: &ScannedCollection,
        sink: &KeySink,
    ) -> io::Result<()> {
        let classes = &scanned.classes;
        let shown = classes.page_texts(classes.len());
        let mut writer = sink.writer();
        for class in classes.beside_pages(&shown, classes.len()) {
            let salt = salt(scanned, self.settings.scope, class as u32);
            let key = text_key(classes.visible_text(class));
            writer.push(salt.apply(key), class as u32)?;
        }
        writer.finish()
    }

    fn push_prefixes(
        &self,
        scanned: &ScannedCollection,
        levels: &FrequencyLevels,
        sink: &KeySink,
    ) -> io::Result<()> {
        // By segments of the store, so that sets on disk are read in the order in which they were written.
        let segments = scanned.sets.segments();
        self.observer.stage(JobStage::Keys, segments as u64);
        let (next, done) = (AtomicUsize::new(0), SharedProgress::default());
        let work = || -> io::Result<()> {
            let mut writer = sink.writer();
            let (mut buffer, mut finder) = (Vec::new(), PrefixFinder::default());
            loop {
                // The segment's number is all that threads share here; keys are combined under the locks of the sink.
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= segments {
                    return writer.finish();
                }
                scanned.sets.walk(segment, &mut buffer, |class, set| {
                    let salt = salt(scanned, self.settings.scope, class);
                    let mut prefix = finder.prefix(set, self.settings.threshold, levels).iter();
                    prefix.try_for_each(|&feature| writer.push(salt.apply(feature), class))
                })?;
                done.add(1, |done| self.advance(done))?;
            }
        };
        run_on_threads(self.limits.workers(), work).map(drop)
    }

    /// Adds the keys of fingerprints. If `for_any_number`, the keys do not depend on the number of classes.
    fn push_blocks(
        &self,
        scanned: &ScannedCollection,
        for_any_number: bool,
        sink: &KeySink,
    ) -> io::Result<()> {
        let (classes, settings) = (&scanned.classes, &self.settings);
        // Keys of two blocks can distinguish any number of fingerprints.
        let classes_told = match for_any_number {
            true => u64::MAX,
            false => classes.len() as u64,
        };
        let bits = settings.fingerprint_bits();
        let blocks = BlockKeys::new(bits, settings.distance, classes_told);
        let pushed = in_ranges(classes.len(), self.limits.workers(), |range| {
            let mut writer = sink.writer();
            // Skip texts without features, whose fingerprint 0 would be near those with few bits set.
            for class in range.filter(|&class| classes.sizes[class] > 0) {
                let salt = salt(scanned, settings.scope, class as u32);
                for key in blocks.of(classes.fingerprint(class)) {
                    writer.push(salt.apply(key), class as u32)?;
                }
            }
            writer.finish()
        });
        pushed.into_iter().collect()
    }
}

/// Returns the salt for the keys of a class.
fn salt(scanned: &ScannedCollection, scope: PairScope, class: u32) -> KeySalt {
    let category = scanned.classes.categories.get(class as usize);
    KeySalt::new(scope, category.copied().unwrap_or(0))
}

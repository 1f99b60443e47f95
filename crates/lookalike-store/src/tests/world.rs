//! Random settings, documents and writes: few ids and few, close fingerprints, so that everything meets everything.

use std::time::Duration;

use lookalike::{Fingerprint, Scheme};

use super::dice::Dice;
use crate::answer::{InsertWhen, Write};
use crate::document::Document;
use crate::engine::Tuning;
use crate::settings::{CollectionSettings, Keep};
use crate::time::Time;

/// What a test draws from.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) settings: CollectionSettings,
    pub(crate) now: Time,
    ids: u64,
    centres: u64,
}

impl World {
    pub(crate) fn new(seed: u64, ids: u64) -> Self {
        let mut dice = Dice::new(seed);
        let scheme = Scheme::default();
        let settings = CollectionSettings {
            radius: [3, 3, 3, 0, 1, 2, 4, 7][dice.below(8) as usize],
            time_to_live: dice
                .one_in(3)
                .then(|| Duration::from_millis(1 + dice.below(5000))),
            keep: Keep {
                signatures: dice.one_in(2),
                paragraphs: dice.one_in(2),
                texts: dice.one_in(2),
            },
            ..CollectionSettings::new(&scheme)
        };
        let centres = 1 + ids / (1 + dice.below(8));
        Self {
            dice,
            settings,
            now: Time(1000),
            ids,
            centres,
        }
    }

    /// Small numbers, so that little work goes through all machinery.
    pub(crate) fn tuning(&mut self) -> Tuning {
        Tuning {
            memory_bytes: 1 << 20,
            memory_documents: [4, 20, 100][self.dice.below(3) as usize],
            log_step: [256, 1024, 4096][self.dice.below(3) as usize],
            fan_out: 2 + self.dice.below(3) as usize,
            // Tables in files take long to plan.
            small_run: [0, 30, 60, 60, 200, 1000, 1000, 1000][self.dice.below(8) as usize],
            scratch_bytes: 1 << 16,
        }
    }

    pub(crate) fn pass_time(&mut self) {
        // Sometimes the clock goes back.
        let told = self.now.0 + self.dice.below(40);
        self.now = Time(told.saturating_sub(if self.dice.one_in(10) { 100 } else { 0 }));
    }

    pub(crate) fn id(&mut self) -> String {
        format!("http://{:x}.example/", self.dice.below(self.ids))
    }

    pub(crate) fn code(&mut self) -> u64 {
        let centre = self.dice.below(self.centres);
        let mut code = Dice::new(centre.wrapping_mul(77)).roll();
        for _ in 0..self.dice.below(u64::from(self.settings.radius) + 2) {
            code ^= 1 << self.dice.below(64);
        }
        code
    }

    pub(crate) fn paragraph(&mut self) -> u64 {
        let below = self.dice.below(2 * self.ids) + 1;
        self.dice.below(below)
    }

    pub(crate) fn document(&mut self) -> Document {
        let (id, code) = (self.id(), self.code());
        let mut document = Document {
            fingerprint: (!self.dice.one_in(12)).then_some(Fingerprint(code)),
            ..Document::new(id, Fingerprint(code))
        };
        if self.dice.one_in(4) {
            document.expires = Some(Time(self.now.0 + self.dice.below(800)));
        }
        if self.dice.one_in(3) {
            document.metadata = self.dice.roll().to_le_bytes().to_vec();
        }
        if self.dice.one_in(3) {
            document.paragraphs = (0..self.dice.below(6)).map(|_| self.paragraph()).collect();
            document.signature = Some(vec![self.dice.roll() as u32; 3]);
            let length = self.dice.below(if self.dice.clone().one_in(10) {
                9000
            } else {
                40
            });
            document.text = Some("t".repeat(length as usize));
        }
        document
    }

    pub(crate) fn write(&mut self) -> Write {
        match self.dice.below(10) {
            0..=3 => Write::Insert(self.document()),
            4..=6 => Write::CheckAndInsert {
                radius: self.dice.below(u64::from(self.settings.radius) + 1) as u32,
                insert: [InsertWhen::New, InsertWhen::NotExact, InsertWhen::Always]
                    [self.dice.below(3) as usize],
                document: self.document(),
            },
            7..=8 => Write::Delete(self.id()),
            _ => Write::Expire {
                id: self.id(),
                expires: (!self.dice.one_in(3)).then(|| Time(self.now.0 + self.dice.below(400))),
            },
        }
    }

    pub(crate) fn batch(&mut self) -> Vec<Write> {
        let count = if self.dice.one_in(4) {
            1 + self.dice.below(6)
        } else {
            1
        };
        (0..count).map(|_| self.write()).collect()
    }
}

//! Many documents with one sketch or text, of which categories or lengths leave out most.

use lookalike::Fingerprint;

use super::model_runs::{commit, create, live, open, share};
use super::random_writes::RandomWrites;
use crate::document::{ContentKey, StoredDocument, TextHash};
use crate::engine::CollectionEngine;
use crate::fs::SimulatedFs;
use crate::operations::{InsertWhen, WriteOp};
use crate::pair_rule::{ADMITTED, PairRule, PairTraits};
use crate::settings::StoreTuning;
use crate::time::UnixMillis;

const NOW: UnixMillis = UnixMillis(1000);

#[test]
fn searches_among_equal_pages_answer_as_the_model() {
    for seed in 0..40 {
        live(RandomWrites::of_equal_pages(seed), share(600));
    }
}

/// A load of pages, the page of each number.
struct EqualPages {
    rule: PairRule,
    page: fn(u64) -> PairTraits,
    has_sketch: bool,
}

impl EqualPages {
    fn document(&self, number: u64) -> StoredDocument {
        let content = ContentKey {
            sketch: self.has_sketch.then(|| Fingerprint(7).into()),
            text_hash: Some(TextHash([1; 16])),
            traits: (self.page)(number),
        };
        StoredDocument {
            id: number.to_string(),
            ..StoredDocument::of_content(content)
        }
    }

    fn engine(&self) -> CollectionEngine {
        let fs = SimulatedFs::new();
        let mut random_writes = RandomWrites::new(0, 1);
        random_writes.settings.pairs = self.rule.clone();
        random_writes.settings.time_to_live = None;
        random_writes.settings.keep.text_hashes = true;
        let tuning = StoreTuning::default().log_step(4096);
        create(&fs, &random_writes, &tuning).expect("a collection");
        open(&fs, tuning).expect("it opens")
    }

    /// Inserts pages one after the other, and checks them again in the run that they become. Returns the number of documents that the
    /// searches looked at.
    fn looks(&self, count: u64) -> u64 {
        let engine = self.engine();
        let before = ADMITTED.get();
        for first in (0..count).step_by(100) {
            let check = |number| WriteOp::CheckAndInsert {
                document: self.document(number),
                scope: 0.into(),
                insert: InsertWhen::Always,
                limit: 1,
            };
            let writes = (first..first + 100).map(check).collect();
            for result in commit(&engine, vec![writes], NOW) {
                result.expect("a write");
            }
        }
        engine.rotate_log().expect("a rotation");
        while engine.flush().expect("a flush") {}
        assert_eq!(engine.stats().in_memory, 0);
        for number in 0..count {
            let content = self
                .document(number)
                .content(engine.settings().sketch_form());
            engine
                .check_many(&[content], 0.into(), NOW)
                .expect("a check");
        }
        ADMITTED.get() - before
    }
}

/// Each check looked at all pages with the same fingerprint, so that a load of n pages took n²/2 looks.
#[test]
fn loads_of_equal_pages_took_quadratic_time() {
    let rule = PairRule::default;
    let loads = [
        // A page that many sites have.
        (
            rule().within("site"),
            (|number| page(number, 0)) as fn(u64) -> PairTraits,
        ),
        (rule().within("site").length_share(0.8), |number| {
            page(number, 100)
        }),
        // A site of equal pages, and few pages elsewhere.
        (rule().across("site"), |number| {
            page(u64::from(number % 100 == 99), 0)
        }),
        (rule().across("site"), |_| page(0, 0)),
        // Pages of two lengths, few of which have another.
        (rule().length_share(0.8), |number| {
            page(
                0,
                [100, 10_000, 1000][if number % 100 == 99 {
                    2
                } else {
                    number as usize % 2
                }],
            )
        }),
    ];
    for (rule, page) in loads {
        for has_sketch in [true, false] {
            let load = EqualPages {
                rule: rule.clone(),
                page,
                has_sketch,
            };
            let [few, many] = [1000, 4000].map(|count| load.looks(count));
            assert!(many < 5 * few, "{}, {has_sketch}: {few}, {many}", load.rule);
        }
    }
}

fn page(category: u64, length: u32) -> PairTraits {
    PairTraits { category, length }
}

//! Random settings, documents and writes, with few ids and few, close sketches, so that they often interact.

use std::time::Duration;

use lookalike::sketch::WideFingerprint;
use lookalike::{Fingerprint, Scheme, Sketch};

use super::rng::TestRng;
use crate::document::{ContentKey, StoredDocument, StoredParagraph, TextHash};
use crate::document_sketch::{DocumentSketch, SketchForm};
use crate::operations::{InsertWhen, WriteOp};
use crate::pair_rule::{CategoryScope, NeighbourScope, PairRule, PairTraits};
use crate::scheme_part::SchemePart;
use crate::settings::StoreTuning;
use crate::settings::{CollectionSettings, RetainedParts};
use crate::time::UnixMillis;

const SCOPES: [CategoryScope; 3] = [
    CategoryScope::All,
    CategoryScope::Within,
    CategoryScope::Across,
];

/// Returns a random rule; in half of the collections all pairs are compared.
fn random_rule(rng: &mut TestRng) -> PairRule {
    let mut rule = PairRule::default();
    if rng.one_in(3) {
        rule.category = Some("site".to_owned());
        rule.scope = SCOPES[rng.below(3) as usize];
    }
    if rng.one_in(3) {
        rule.length_share = Some((1 + rng.below(10)) as f64 / 10.0);
    }
    rule
}

/// Returns a scheme; half of the collections hold other sketches than 64-bit fingerprints.
fn scheme(seed: u64) -> Scheme {
    let sketch = match seed % 8 {
        2 => Sketch::SuperShingle { groups: 6, rows: 1 },
        3 => Sketch::MinHash { functions: 7 },
        6 => Sketch::Simhash128,
        7 => Sketch::Simhash32,
        _ => Sketch::Simhash,
    };
    Scheme::default().sketch(sketch)
}

/// A generator of random settings, documents and writes.
#[derive(Clone, Debug)]
pub(crate) struct RandomWrites {
    pub(crate) rng: TestRng,
    pub(crate) settings: CollectionSettings,
    pub(crate) now: UnixMillis,
    pub(crate) seed: u64,
    pub(crate) parts: Vec<SchemePart>,
    ids: u64,
    centres: u64,
}

impl RandomWrites {
    pub(crate) fn new(seed: u64, ids: u64) -> Self {
        let mut rng = TestRng::new(seed);
        let scheme = scheme(seed);
        let most = SketchForm::from(scheme.sketch).largest_radius();
        let settings = CollectionSettings {
            radius: [3, 3, 3, 0, 1, 2, 4, 7][rng.below(8) as usize].min(most),
            time_to_live: rng
                .one_in(3)
                .then(|| Duration::from_millis(1 + rng.below(5000))),
            keep: RetainedParts {
                text_hashes: !rng.one_in(3),
                signatures: rng.one_in(2),
                paragraphs: rng.one_in(2),
                texts: rng.one_in(2),
            },
            pairs: random_rule(&mut rng),
            ..CollectionSettings::new(&scheme)
        };
        let centres = 1 + ids / (1 + rng.below(8));
        Self {
            rng,
            settings,
            parts: vec![SchemePart::new("terms", seed.to_le_bytes().to_vec())],
            now: UnixMillis(1000),
            seed,
            ids,
            centres,
        }
    }

    /// Creates a generator of documents that mostly share a sketch, for a collection that compares by category, length or both.
    pub(crate) fn of_equal_pages(seed: u64) -> Self {
        let mut random_writes = Self::new(seed, 60);
        random_writes.centres = 1;
        let pairs = &mut random_writes.settings.pairs;
        if pairs.category.is_none() {
            pairs.length_share.get_or_insert(0.6);
        }
        random_writes
    }

    /// Returns tuning with small numbers, so that little work exercises all code.
    pub(crate) fn tuning(&mut self) -> StoreTuning {
        StoreTuning {
            memory_bytes: 1 << 20,
            memory_documents: [4, 20, 100][self.rng.below(3) as usize],
            log_step: [256, 1024, 4096][self.rng.below(3) as usize],
            fan_out: 2 + self.rng.below(3) as usize,
            // Planning stored tables takes long.
            small_run: [0, 30, 60, 60, 200, 1000, 1000, 1000][self.rng.below(8) as usize],
            scratch_bytes: 1 << 16,
        }
    }

    pub(crate) fn pass_time(&mut self) {
        // Sometimes the clock goes back.
        let told = self.now.0 + self.rng.below(40);
        self.now = UnixMillis(told.saturating_sub(if self.rng.one_in(10) { 100 } else { 0 }));
    }

    pub(crate) fn id(&mut self) -> String {
        format!("http://{:x}.example/", self.rng.below(self.ids))
    }

    pub(crate) fn code(&mut self) -> u64 {
        let centre = self.rng.below(self.centres);
        let mut code = TestRng::new(centre.wrapping_mul(77)).next_u64();
        for _ in 0..self.rng.below(u64::from(self.settings.radius) + 2) {
            code ^= 1 << self.rng.below(64);
        }
        code
    }

    /// Returns the sketch for a code: the code itself, or its bits dealt out to the places.
    pub(crate) fn sketch(&self, code: u64) -> DocumentSketch {
        let places = |places: usize| (0..places).map(move |at| code >> (at * 9) & 0x1ff);
        match self.settings.sketch_form() {
            SketchForm::Fingerprint => Fingerprint(code).into(),
            SketchForm::Bits(bits) => {
                let code = u128::from(code.rotate_left(9)) << 32 | u128::from(code as u32);
                DocumentSketch::Bits(WideFingerprint(code & u128::MAX >> (128 - bits)), bits)
            }
            SketchForm::SuperShingles(count) => {
                DocumentSketch::SuperShingles(places(count).collect())
            }
            SketchForm::Minima(count) => {
                DocumentSketch::Minima(places(count).map(|place| place as u32).collect())
            }
        }
    }

    /// Returns a content with the sketch for a code, or without a sketch. Some texts have equal sketches, and some unequal texts have equal
    /// hashes.
    pub(crate) fn content(&mut self, code: u64) -> ContentKey {
        let has_sketch = !self.rng.one_in(12);
        let text = if has_sketch { code % 1000 } else { 3 } + self.rng.below(2);
        let hash = TextHash(u128::from(text).to_le_bytes());
        ContentKey {
            sketch: has_sketch.then(|| self.sketch(code)),
            text_hash: (!self.rng.one_in(4)).then_some(hash),
            traits: self.traits(),
        }
    }

    fn traits(&mut self) -> PairTraits {
        PairTraits {
            category: self.rng.below(3),
            length: self.rng.below(4) as u32 * 10,
        }
    }

    /// Returns a search within a radius, usually with the collection's own restrictions, otherwise with others that it supports.
    pub(crate) fn scope(&mut self) -> NeighbourScope {
        let radius = self.rng.below(u64::from(self.settings.radius) + 1) as u32;
        let mut scope = NeighbourScope::from(radius);
        let rule = &self.settings.pairs;
        if rule.category.is_some() && self.rng.one_in(3) {
            scope.categories = Some(SCOPES[self.rng.below(3) as usize]);
        }
        if rule.length_share.is_some() && self.rng.one_in(3) {
            scope.length_share = Some(self.rng.below(11) as f64 / 10.0);
        }
        scope
    }

    pub(crate) fn paragraph(&mut self) -> StoredParagraph {
        let below = self.rng.below(2 * self.ids) + 1;
        StoredParagraph {
            hash: self.rng.below(below),
            fingerprint: (!self.rng.one_in(4)).then(|| Fingerprint(self.code())),
        }
    }

    pub(crate) fn document(&mut self) -> StoredDocument {
        let (id, code) = (self.id(), self.code());
        let content = self.content(code);
        let mut document = StoredDocument {
            id,
            ..StoredDocument::of_content(content)
        };
        if self.rng.one_in(4) {
            let end = UnixMillis(self.now.0 + self.rng.below(800));
            document.expires = Some(if self.rng.one_in(5) {
                UnixMillis::NEVER
            } else {
                end
            });
        }
        if self.rng.one_in(3) {
            document.metadata = self.rng.next_u64().to_le_bytes().to_vec();
        }
        if self.rng.one_in(3) {
            document.paragraphs = (0..self.rng.below(6)).map(|_| self.paragraph()).collect();
            let other = vec![self.rng.next_u64() as u32; 3];
            // Only besides the sketch by which the document is found: without that one, it would be refused.
            if document.sketch(self.settings.sketch_form()).is_some() {
                document.signature.get_or_insert(other);
            }
            let length = self.rng.below(if self.rng.clone().one_in(10) {
                9000
            } else {
                40
            });
            document.text = Some("t".repeat(length as usize));
        }
        document
    }

    pub(crate) fn write(&mut self) -> WriteOp {
        match self.rng.below(10) {
            0..=3 => WriteOp::Insert(self.document()),
            4..=6 => WriteOp::CheckAndInsert {
                scope: self.scope(),
                insert: [
                    InsertWhen::New,
                    InsertWhen::NotSameFingerprint,
                    InsertWhen::NotExact,
                    InsertWhen::Always,
                ][self.rng.below(4) as usize],
                limit: self.rng.clone().below(4) as usize,
                document: self.document(),
            },
            7..=8 => WriteOp::Delete(self.id()),
            _ => WriteOp::Expire {
                id: self.id(),
                expires: (!self.rng.one_in(3))
                    .then(|| UnixMillis(self.now.0 + self.rng.below(400))),
            },
        }
    }

    pub(crate) fn batch(&mut self) -> Vec<WriteOp> {
        let count = if self.rng.one_in(4) {
            1 + self.rng.below(6)
        } else {
            1
        };
        (0..count).map(|_| self.write()).collect()
    }
}

//! A job from inputs to decisions: scan, rank, group, compare.
//!
//! [`Job::decide`] chooses survivors for `dedup`; [`Job::write_pairs`] lists all verified pairs for `pairs`. Both go
//! through [`Job::prepare`], and neither depends on threads or memory in what it finds.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike::hash::avalanche;
use lookalike::resemblance::prefix_len;
use lookalike_corpus::{InputOptions, Inputs};

use crate::documents::Ranking;
use crate::error::BatchError;
use crate::groups::{Groups, KeySink};
use crate::memory::Budget;
use crate::observer::{Observer, Stage};
use crate::outcome::{Outcome, outcomes};
use crate::pairs::{Copies, PairSpool, join};
use crate::scan::{ScanPlan, Scanned, salted, scan};
use crate::sets::Place;
use crate::settings::{Keep, Limits, Method, Scope, Settings};
use crate::survivors::settle;
use crate::verify::{Rule, Verifier};

/// A job: what to read, what to look for, what to use.
pub struct Job<'a> {
    /// What decides the result.
    pub settings: &'a Settings,
    /// What does not.
    pub limits: &'a Limits,
    /// All sources, those given with `--against` first.
    pub inputs: &'a Inputs,
    /// How sources are read.
    pub options: &'a InputOptions,
    /// Number of sources given with `--against`.
    pub against_sources: usize,
    /// Where temporary files go.
    pub folder: &'a Path,
    /// Who hears of progress.
    pub observer: &'a dyn Observer,
}

/// Everything known before the first comparison.
pub(crate) struct Prepared {
    pub(crate) scanned: Scanned,
    pub(crate) ranking: Ranking,
    /// Rank of each class.
    pub(crate) rank_of: Vec<u32>,
    pub(crate) repeated_ids: u64,
    groups: Groups,
    by_rank: Columns,
}

/// Columns of the class table in the order of ranks.
struct Columns {
    places: Vec<Place>,
    sizes: Vec<u32>,
    fingerprints: Vec<u64>,
    high_fingerprints: Vec<u64>,
    categories: Vec<u64>,
    texts: Vec<u128>,
    /// Bytes of the texts, where they are looked at.
    lengths: Vec<u64>,
}

/// What a job decided about every document.
pub(crate) struct Decided {
    pub(crate) scanned: Scanned,
    pub(crate) ranking: Ranking,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) repeated_ids: u64,
    /// All pairs, when the settings ask for them.
    pub(crate) pairs: Option<PairSpool>,
    /// Fingerprints of documents by class, when the method made them.
    pub(crate) fingerprints: bool,
}

/// The first names of an object, as many as a message can hold.
fn some_names(object: &serde_json::Map<String, serde_json::Value>) -> String {
    const MOST: usize = 20;
    let names: Vec<&str> = object.keys().take(MOST).map(String::as_str).collect();
    match object.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{} and {more} more", names.join(", ")),
        _ => names.join(", "),
    }
}

impl Job<'_> {
    /// Reads everything and groups candidates.
    fn prepare(&self) -> Result<Prepared, BatchError> {
        self.settings.check()?;
        let temporary = BatchError::temporary(self.folder);
        let mut budget = Budget::new(self.limits, &self.settings.scheme, self.options);
        let sink = KeySink::new(self.folder, budget.keys()).map_err(&temporary)?;
        let plan = ScanPlan {
            inputs: self.inputs,
            options: self.options,
            scheme: &self.settings.scheme,
            method: self.settings.method,
            banding: self.settings.banding()?,
            terms: self
                .settings
                .terms
                .as_ref()
                .filter(|_| self.settings.scheme.terms.is_some()),
            against_sources: self.against_sources,
            scope: self.settings.scope,
            by_category: self.settings.by_category(),
            wants_values: matches!(
                self.settings.keep,
                Keep::Max(_) | Keep::Min(_) | Keep::Newest(_)
            ),
            strict: self.settings.strict,
            threads: self.limits.threads,
            sets_budget: budget.sets(),
            folder: self.folder,
        };
        self.observer.stage(Stage::Scan, self.inputs.total_bytes());
        let mut scanned = scan(&plan, &sink, self.observer)?;
        self.refuse_no_text(&scanned)?;
        self.observer.stage(Stage::Rank, 0);
        let keep = &self.settings.keep;
        let (ranking, repeated_ids) = Ranking::new(
            &mut scanned.documents,
            &scanned.classes,
            keep,
            self.settings.repeated_ids,
        )?;
        let mut rank_of = vec![0; scanned.classes.len()];
        for (rank, &class) in ranking.classes.iter().enumerate() {
            rank_of[class as usize] = rank as u32;
        }
        budget.tables(&scanned)?;
        self.push_keys(&scanned, &sink).map_err(&temporary)?;
        self.observer.stage(Stage::Group, 0);
        let groups = Groups::new(&sink, &rank_of, self.limits.threads).map_err(&temporary)?;
        budget.groups(&groups)?;
        let by_rank = Columns::new(&scanned, &ranking, self.settings.lengths.is_some());
        Ok(Prepared {
            scanned,
            ranking,
            rank_of,
            repeated_ids,
            groups,
            by_rank,
        })
    }

    /// Refuses input in which nothing has a text: the field is misnamed.
    fn refuse_no_text(&self, scanned: &Scanned) -> Result<(), BatchError> {
        let records = scanned.documents.len() as u64;
        if records == 0 || scanned.tally.missing < records {
            return Ok(());
        }
        let mut fields = String::from("unknown");
        let first = &mut |record: lookalike_corpus::RawRecord<'_>| -> Result<(), BatchError> {
            let object: Option<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_slice(record.bytes).ok();
            match object {
                Some(object) => {
                    fields = some_names(&object);
                    Err(BatchError::Settings(String::new()))
                }
                None => Ok(()),
            }
        };
        // The visitor stops at the first record that is an object; only the names it left behind matter.
        let _ = lookalike_corpus::raw_records(self.inputs, self.options, first);
        Err(BatchError::NoText { records, fields })
    }

    /// Collects the keys that need the whole collection: prefixes, and blocks of fingerprints.
    fn push_keys(&self, scanned: &Scanned, sink: &KeySink) -> io::Result<()> {
        match self.settings.method {
            Method::AllPairs => self.push_prefixes(scanned, sink),
            Method::Simhash => push_blocks(scanned, self.settings, sink),
            _ => Ok(()),
        }
    }

    /// What keeps the keys of a class apart from those of other categories.
    fn salt(&self, scanned: &Scanned, class: u32) -> u64 {
        match self.settings.scope {
            Scope::Within => scanned.classes.categories[class as usize],
            Scope::Everything | Scope::Across => 0,
        }
    }

    fn push_prefixes(&self, scanned: &Scanned, sink: &KeySink) -> io::Result<()> {
        let segments = scanned.sets.segments();
        self.observer.stage(Stage::Keys, segments as u64);
        let levels = scanned.frequency.levels();
        let next = AtomicUsize::new(0);
        let work = || -> io::Result<()> {
            let mut writer = sink.writer();
            let (mut buffer, mut prefix, mut common) = (Vec::new(), Vec::new(), Vec::new());
            loop {
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= segments {
                    return writer.finish();
                }
                scanned.sets.walk(segment, &mut buffer, |class, set| {
                    levels.prefix(
                        set,
                        prefix_len(set.len(), self.settings.threshold),
                        &mut prefix,
                        &mut common,
                    );
                    prefix.iter().try_for_each(|&feature| {
                        writer.push(salted(feature, self.salt(scanned, class)), class)
                    })
                })?;
                self.observer.advance(segment as u64 + 1);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..self.limits.threads)
                .map(|_| scope.spawn(work))
                .collect();
            work()?;
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("workers do not panic"))
        })
    }

    /// Chooses survivors.
    pub(crate) fn decide(&self) -> Result<Decided, BatchError> {
        let prepared = self.prepare()?;
        let temporary = BatchError::temporary(self.folder);
        self.observer
            .stage(Stage::Compare, prepared.rank_of.len() as u64);
        let verifier = self.verifier(&prepared);
        let fixed = prepared.ranking.fixed;
        let advance = |done: usize| self.observer.advance(done as u64);
        let fates = settle(&verifier, fixed, self.limits.threads, advance).map_err(&temporary)?;
        let pairs = match self.settings.pairs {
            crate::settings::PairList::All => Some(self.join(&prepared).map_err(&temporary)?),
            crate::settings::PairList::Deciding => None,
        };
        let Prepared {
            scanned,
            ranking,
            rank_of,
            repeated_ids,
            ..
        } = prepared;
        let outcomes = outcomes(
            &scanned.documents,
            &scanned.classes,
            &ranking,
            &rank_of,
            &fates,
            self.settings.scope,
        );
        let fingerprints = self.settings.method.has_fingerprints();
        Ok(Decided {
            scanned,
            ranking,
            outcomes,
            repeated_ids,
            pairs,
            fingerprints,
        })
    }

    /// All pairs, spooled.
    fn join(&self, prepared: &Prepared) -> io::Result<PairSpool> {
        let documents = &prepared.scanned.documents;
        let spool = PairSpool::new(
            self.folder,
            Budget::new(self.limits, &self.settings.scheme, self.options).keys(),
            documents.len(),
        )?;
        let copies = Copies::new(documents, &prepared.ranking, &prepared.rank_of);
        let advance = |done: usize| self.observer.advance(done as u64);
        let against = documents.against as u32;
        join(
            &self.verifier(prepared),
            &copies,
            against,
            self.settings.scope,
            self.limits.threads,
            &spool,
            &advance,
        )?;
        Ok(spool)
    }

    fn verifier<'p>(&self, prepared: &'p Prepared) -> Verifier<'p> {
        Verifier {
            groups: &prepared.groups,
            sets: &prepared.scanned.sets,
            classes: &prepared.ranking.classes,
            places: &prepared.by_rank.places,
            sizes: &prepared.by_rank.sizes,
            fingerprints: &prepared.by_rank.fingerprints,
            high_fingerprints: &prepared.by_rank.high_fingerprints,
            scope: self.settings.scope,
            categories: &prepared.by_rank.categories,
            texts: &prepared.by_rank.texts,
            length_share: self.settings.lengths,
            lengths: &prepared.by_rank.lengths,
            threshold: self.settings.threshold,
            rule: match self.settings.method {
                Method::AllPairs | Method::Copies => Rule::Prefix,
                Method::Simhash => Rule::Distance(self.settings.distance),
                Method::Henzinger => Rule::SharedWithin(
                    self.settings.agree(),
                    self.settings.distance,
                    self.settings.distance_for,
                ),
                Method::MinHash | Method::Oph | Method::BBit => Rule::Shared(1),
                Method::SuperShingle
                | Method::ModP
                | Method::Winnow
                | Method::IMatch
                | Method::Buckets => Rule::Shared(self.settings.agree()),
            },
        }
    }

    /// Writes every verified pair, sorted by both ids, one JSON object a line.
    ///
    /// # Errors
    /// [`BatchError`]; one of kind [`io::ErrorKind::BrokenPipe`] inside [`BatchError::File`] when the reader is gone.
    pub fn write_pairs(&self, out: &mut dyn Write) -> Result<PairsSummary, BatchError> {
        let prepared = self.prepare()?;
        self.observer
            .stage(Stage::Compare, prepared.rank_of.len() as u64);
        let spool = self
            .join(&prepared)
            .map_err(BatchError::temporary(self.folder))?;
        self.observer.stage(Stage::Write, 0);
        let scanned = &prepared.scanned;
        let fingerprints = self
            .settings
            .method
            .has_fingerprints()
            .then_some(&scanned.classes);
        let mut pairs = 0;
        let written = spool.drain(&prepared.ranking.by_id, |pair| {
            pairs += 1;
            crate::lines::write_pair(out, &scanned.documents, fingerprints, pair)
        });
        written
            .and_then(|()| out.flush())
            .map_err(BatchError::result(Path::new("standard output")))?;
        let counts = crate::summary::Counts::of_scan(
            scanned,
            self.inputs,
            self.options,
            prepared.repeated_ids,
        );
        let skipped = crate::summary::skipped(self.inputs, scanned);
        Ok(PairsSummary {
            pairs,
            counts,
            skipped,
        })
    }
}

/// What `pairs` tells when it is done.
#[derive(Debug, serde::Serialize)]
pub struct PairsSummary {
    /// Pairs written.
    pub pairs: u64,
    /// What was read.
    #[serde(flatten)]
    pub counts: crate::summary::Counts,
    /// What was not read, by reason.
    pub skipped: Vec<crate::summary::SkippedRow>,
}

impl Columns {
    fn new(scanned: &Scanned, ranking: &Ranking, wants_lengths: bool) -> Self {
        let classes = &scanned.classes;
        let order = || ranking.classes.iter().map(|&class| class as usize);
        Self {
            places: order().map(|class| classes.places[class]).collect(),
            sizes: order().map(|class| classes.sizes[class]).collect(),
            fingerprints: sorted(&classes.fingerprints, &ranking.classes),
            high_fingerprints: sorted(&classes.high_fingerprints, &ranking.classes),
            categories: sorted(&classes.categories, &ranking.classes),
            texts: sorted(&classes.texts, &ranking.classes),
            lengths: match wants_lengths {
                true => order()
                    .map(|class| scanned.documents.lengths[ranking.best[class] as usize])
                    .collect(),
                false => Vec::new(),
            },
        }
    }
}

/// A column of classes in the order of ranks; an empty one stays empty.
fn sorted<T: Copy>(column: &[T], classes: &[u32]) -> Vec<T> {
    if column.is_empty() {
        return Vec::new();
    }
    classes
        .iter()
        .map(|&class| column[class as usize])
        .collect()
}

/// Keys for fingerprints within `distance`: cut into `distance + 2` blocks (or one less for small collections), any two
/// fingerprints agree on all but `distance` of them (M3).
fn push_blocks(scanned: &Scanned, settings: &Settings, sink: &KeySink) -> io::Result<()> {
    let classes = &scanned.classes;
    let (bits, distance) = (settings.fingerprint_bits(), settings.distance);
    // One block each is enough while its bits tell most fingerprints apart; else two blocks, in more combinations.
    let enough = classes.len() as f64 <= 8.0 * f64::from(bits / (distance + 1)).exp2();
    let masks = if enough {
        block_masks(bits, distance + 1, 1)
    } else {
        block_masks(bits, distance + 2, 2)
    };
    let mut writer = sink.writer();
    for class in (0..classes.len()).filter(|&class| classes.sizes[class] > 0) {
        let low = classes.fingerprints[class];
        let high = classes.high_fingerprints.get(class).copied().unwrap_or(0);
        let salt = match settings.scope {
            Scope::Within => classes.categories[class],
            Scope::Everything | Scope::Across => 0,
        };
        for (number, &mask) in masks.iter().enumerate() {
            let number = avalanche(number as u64 + 1);
            let mut key = avalanche((low & mask as u64) ^ number);
            if bits > 64 {
                key = avalanche((high & (mask >> 64) as u64) ^ key);
            }
            writer.push(salted(key, salt), class as u32)?;
        }
    }
    writer.finish()
}

/// Masks of all choices of `chosen` (1 or 2) among `blocks` blocks of so many bits.
fn block_masks(bits: u32, blocks: u32, chosen: usize) -> Vec<u128> {
    let edge = |block: u32| block * bits / blocks;
    let block =
        |number: u32| (edge(number)..edge(number + 1)).fold(0_u128, |mask, bit| mask | 1 << bit);
    let single: Vec<u128> = (0..blocks).map(block).collect();
    if chosen == 1 {
        return single;
    }
    let others = |i: usize| {
        single[i + 1..]
            .iter()
            .map(move |b| (i, *b))
            .collect::<Vec<_>>()
    };
    (0..single.len())
        .flat_map(others)
        .map(|(i, b)| single[i] | b)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn close_fingerprints_share_a_block(
            a in any::<u128>(),
            bits in prop::sample::select(vec![32_u32, 64, 128]),
            flips in prop::collection::vec(0..128_u32, 0..=32),
        ) {
            let width = |value: u128| value & (u128::MAX >> (128 - bits));
            let flips = &flips[..flips.len().min(bits as usize / 4)];
            let b = flips.iter().fold(a, |b, bit| b ^ 1 << bit);
            let (a, b) = (width(a), width(b));
            let distance = (a ^ b).count_ones();
            for masks in [block_masks(bits, distance + 1, 1), block_masks(bits, distance + 2, 2)] {
                prop_assert!(masks.iter().any(|mask| a & mask == b & mask));
                prop_assert!(masks.iter().all(|mask| *mask > 0 && width(*mask) == *mask));
            }
        }
    }

    #[test]
    fn the_paper_s_table_counts() {
        assert_eq!(block_masks(64, 4, 1).len(), 4);
        assert_eq!(block_masks(64, 5, 2).len(), 10);
        assert!(
            block_masks(64, 4, 1)
                .iter()
                .all(|mask| mask.count_ones() == 16)
        );
    }
}

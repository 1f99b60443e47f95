//! Documents divided into paragraphs, each of which is a record, so that a job compares paragraphs of different documents (Yu, Hu and
//! Zhang: similarity on full text and paragraphs).
//!
//! The id of such a record consists of the document's id, a hash of its text, which distinguishes documents with the same id, and the position
//! of the paragraph. Its order is that of documents and positions, so pairs are written in that order.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use lookalike::ParagraphRule;
use lookalike_corpus::{Category, FieldPath, Format, InputOptions, Record, TextState, text_hash};
use serde::Serialize;

use crate::document_memory::DocumentUse;
use crate::error::BatchError;
use crate::record_scan::{RecordScan, RecordWorker};
use crate::settings::RepeatedIds;
use crate::skipped::SkippedRow;

/// Separator between the parts of an id. An id of a document may contain it too, because the last two parts do not.
// It is below all printable characters, so that "a" and its paragraphs come before "ab".
const ID_SEPARATOR: char = '\u{1}';

lookalike::job! {
    /// The job of dividing documents: its input and its rule.
    ///
    /// Memory: about 150 bytes for each document, and its id.
    #[derive(Debug)]
    pub struct ParagraphSplit<'a> {
        /// Creates a job that divides the texts of all records into paragraphs.
        new(scan: RecordScan<'a>);
        /// Sets the rule for the end of a paragraph.
        rule: ParagraphRule,
        /// Sets the rule for different texts with the same id: by default they are numbered.
        repeated_ids: RepeatedIds,
    }
}

/// Counts of the documents that were divided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ParagraphCounts {
    /// Number of documents with a text.
    pub documents: u64,
    /// Number of records whose text is absent.
    pub missing: u64,
    /// Number of records longer than the limit.
    pub too_long: u64,
    /// Number of paragraphs compared; one that a document repeats counts once.
    pub paragraphs: u64,
    /// Number of records with the id and text of another, which count once.
    pub repeated_records: u64,
    /// Parts that were not read, by kind.
    pub skipped: Vec<SkippedRow>,
}

/// A file with paragraphs as records, and the names of their documents.
#[derive(Debug)]
#[non_exhaustive]
pub struct ParagraphRecords {
    /// The path of the file.
    pub path: PathBuf,
    /// Counts of the input.
    pub counts: ParagraphCounts,
    /// Description of the inputs and the division, by which a resumed job recognises them.
    pub(crate) origin: String,
    /// Number of bytes of the longest record.
    longest: u64,
    names: DocumentNames,
}

/// New names of documents whose id other documents have too.
#[derive(Debug, Default)]
pub(crate) struct DocumentNames(BTreeMap<String, String>);

/// A document and the position of one of its paragraphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParagraphPlace<'a> {
    pub(crate) document: &'a str,
    pub(crate) position: u64,
}

#[derive(Serialize)]
struct ParagraphLine<'a> {
    id: &'a str,
    document: &'a str,
    text: &'a str,
}

/// The divided documents of a chunk.
#[derive(Default)]
struct SplitChunk {
    /// Id and hash of each document, with the number of its paragraphs and the end of their lines.
    documents: Vec<SplitDocument>,
    lines: Vec<u8>,
    /// Number of bytes of the longest line.
    longest: u64,
}

struct SplitDocument {
    id: String,
    hash: u128,
    paragraphs: u64,
    end: usize,
}

struct ParagraphSplitter {
    rule: ParagraphRule,
}

impl RecordWorker for ParagraphSplitter {
    type Product = SplitChunk;

    fn add(&mut self, record: &Record<'_>, split: &mut SplitChunk) {
        if record.text_state == TextState::Present {
            split.add(&record.id, &record.text, self.rule);
        }
    }
}

impl SplitChunk {
    fn add(&mut self, id: &str, text: &str, rule: ParagraphRule) {
        let hash = text_hash(text);
        let document = document_key(id, hash);
        let mut seen = HashSet::new();
        let mut paragraphs = 0;
        // Positions count repeated paragraphs too, because they are those in the document.
        for (position, paragraph) in rule.split(text).enumerate() {
            let paragraph = paragraph.trim();
            if !seen.insert(paragraph) {
                continue;
            }
            let line = ParagraphLine {
                // Zeros before the position make the order of the text that of the numbers.
                id: &format!("{document}{ID_SEPARATOR}{position:08}"),
                document: &document,
                text: paragraph,
            };
            let start = self.lines.len();
            serde_json::to_writer(&mut self.lines, &line).expect("strings are JSON");
            self.lines.push(b'\n');
            self.longest = self.longest.max((self.lines.len() - start) as u64);
            paragraphs += 1;
        }
        self.documents.push(SplitDocument {
            id: id.to_owned(),
            hash,
            paragraphs,
            end: self.lines.len(),
        });
    }
}

fn document_key(id: &str, hash: u128) -> String {
    format!("{id}{ID_SEPARATOR}{hash:032x}")
}

impl<'a> ParagraphSplit<'a> {
    /// Describes the inputs and the division.
    fn origin(&self) -> String {
        let RecordScan {
            inputs, options, ..
        } = &self.scan;
        format!(
            "{} {} paragraphs={:?}",
            inputs.fingerprint(),
            options.canonical(),
            self.rule
        )
    }

    /// Writes the paragraphs of all documents to a new file.
    ///
    /// # Errors
    /// [`BatchError`]: the input cannot be read, or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<ParagraphRecords, BatchError> {
        let failed = BatchError::temporary(path);
        let file = File::create(path).map_err(&failed)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut counts = ParagraphCounts::default();
        let mut hashes: BTreeMap<String, Vec<u128>> = BTreeMap::new();
        // Besides `hashes`, because very many documents may have one id.
        let mut known: HashSet<u128> = HashSet::new();
        let mut longest = 0;
        let read = self.scan.run(
            DocumentUse::Text,
            || ParagraphSplitter { rule: self.rule },
            |split: SplitChunk, _| {
                let mut start = 0;
                for document in split.documents {
                    let lines = &split.lines[start..document.end];
                    start = document.end;
                    counts.documents += 1;
                    // Chunks arrive in input order, so the first of repeated records is the one that counts.
                    if !known.insert(text_hash(&document_key(&document.id, document.hash))) {
                        counts.repeated_records += 1;
                        continue;
                    }
                    // Nearly all ids have one text, and an empty vector would grow to four at once.
                    let of_id = hashes.entry(document.id);
                    of_id
                        .or_insert_with(|| Vec::with_capacity(1))
                        .push(document.hash);
                    counts.paragraphs += document.paragraphs;
                    out.write_all(lines).map_err(&failed)?;
                }
                longest = longest.max(split.longest);
                Ok(())
            },
        )?;
        out.flush().map_err(&failed)?;
        (counts.missing, counts.too_long) = (read.missing, read.too_long);
        counts.skipped = read.skipped;
        Ok(ParagraphRecords {
            path: path.to_owned(),
            counts,
            origin: self.origin(),
            longest,
            names: DocumentNames::of(hashes, self.repeated_ids)?,
        })
    }
}

impl ParagraphRecords {
    /// Returns the options for reading the records; paragraphs of one document have one category.
    pub fn options(&self) -> InputOptions {
        InputOptions::default()
            .format(Some(Format::Jsonl))
            .category(Some(Category::Field(FieldPath::name("document"))))
            // The usual limit must not exclude what was read under the limit of the job.
            .max_document_bytes(self.longest)
    }

    pub(crate) fn names(&self) -> &DocumentNames {
        &self.names
    }
}

impl DocumentNames {
    /// Renames documents with the same id, in the order of the hashes of their texts.
    fn of(
        mut hashes: BTreeMap<String, Vec<u128>>,
        repeated: RepeatedIds,
    ) -> Result<Self, BatchError> {
        // Collected first, because new names are added to `hashes`.
        let shared: Vec<(String, Vec<u128>)> = hashes
            .iter()
            .filter(|(_, all)| all.len() > 1)
            .map(|(id, all)| (id.clone(), all.clone()))
            .collect();
        if let (RepeatedIds::Refuse, Some((id, _))) = (repeated, shared.first()) {
            return Err(BatchError::RepeatedId {
                id: id.clone(),
                count: shared.iter().map(|(_, all)| all.len() - 1).sum(),
            });
        }
        let mut names = BTreeMap::new();
        for (id, mut own) in shared {
            // The numbers depend on the texts, not on the order of the input.
            own.sort_unstable();
            let mut number = 1;
            for hash in own.into_iter().skip(1) {
                let name = loop {
                    number += 1;
                    let name = format!("{id}#{number}");
                    // Another document may already have this id.
                    if !hashes.contains_key(&name) {
                        break name;
                    }
                };
                names.insert(document_key(&id, hash), name.clone());
                hashes.insert(name, vec![hash]);
            }
        }
        Ok(Self(names))
    }

    /// Returns the document and position of a record.
    pub(crate) fn place<'a>(&'a self, id: &'a str) -> io::Result<ParagraphPlace<'a>> {
        let place = || {
            // From the end, because the id of the document may contain the separator.
            let (key, position) = id.rsplit_once(ID_SEPARATOR)?;
            let (document, _) = key.rsplit_once(ID_SEPARATOR)?;
            let document = self.0.get(key).map_or(document, String::as_str);
            let position = position.parse().ok()?;
            Some(ParagraphPlace { document, position })
        };
        let foreign = || io::Error::other(format!("{id:?} is not the id of a paragraph"));
        place().ok_or_else(foreign)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lookalike::{FeatureExtractor, resemblance};
    use lookalike_corpus::Inputs;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::DedupJob;
    use crate::losses::LossPolicy;
    use crate::settings::{JobSettings, PairScope};

    /// Returns the pairs of paragraphs of some documents, as the job writes them.
    fn pairs(
        documents: &[(String, String)],
        repeated_ids: RepeatedIds,
    ) -> Result<String, BatchError> {
        let folder = tempfile::tempdir().expect("a folder");
        let lines = documents.iter().map(|(id, text)| {
            let line = serde_json::json!({"id": id, "text": text});
            format!("{line}\n")
        });
        let file = folder.path().join("docs.jsonl");
        std::fs::write(&file, lines.collect::<String>()).expect("a file");
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[file.into()], &options, folder.path())?;
        let scan = RecordScan::new(&inputs).losses(LossPolicy::Stop);
        let split = ParagraphSplit::new(scan).repeated_ids(repeated_ids);
        let records = split.write(&folder.path().join("paragraphs.jsonl"))?;
        let options = records.options();
        let inputs = Inputs::discover(&[records.path.clone().into()], &options, folder.path())?;
        let settings = JobSettings {
            scope: PairScope::Across,
            threshold: 0.5,
            scheme: scheme(),
            ..JobSettings::default()
        };
        let mut out = Vec::new();
        let job = DedupJob::new(&inputs, folder.path())
            .settings(settings)
            .options(options);
        job.paragraphs(&records).write_pairs(&mut out)?;
        Ok(String::from_utf8(out).expect("JSON"))
    }

    fn scheme() -> lookalike::Scheme {
        lookalike::Scheme::default().shingle("words:1".parse().expect("a shingle"))
    }

    /// Returns all pairs of paragraphs of different documents that resemble each other.
    fn slow(documents: &[(String, String)]) -> BTreeSet<String> {
        let mut all: Vec<(&str, usize, Vec<u64>, &str)> = Vec::new();
        let mut extractor = FeatureExtractor::new(&scheme());
        for (id, text) in documents {
            for (position, part) in ParagraphRule::Auto.split(text).enumerate() {
                let part = part.trim();
                let repeats = all
                    .iter()
                    .any(|(other, .., known)| other == id && *known == part);
                if !repeats {
                    all.push((id, position, extractor.feature_set(part).to_vec(), part));
                }
            }
        }
        all.sort_unstable();
        let mut pairs = BTreeSet::new();
        for (at, (a, i, first, text)) in all.iter().enumerate() {
            for (b, j, second, other) in &all[at + 1..] {
                let similarity = if text == other {
                    1.0
                } else {
                    resemblance(first, second)
                };
                if a != b && similarity >= 0.5 {
                    pairs.insert(format!("{a} {i} {b} {j} {similarity}"));
                }
            }
        }
        pairs
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn pairs_of_paragraphs_are_those_of_all_against_all(
            texts in prop::collection::vec("([abc]( [abcd]){0,4}\n{1,2}){0,4}", 1..8),
        ) {
            let documents = texts.into_iter().enumerate().map(|(at, text)| (format!("d{at}"), text));
            let documents: Vec<(String, String)> = documents.collect();
            let lines = pairs(&documents, RepeatedIds::Number).expect("pairs");
            let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            let shown = |pair: &Value| {
                let text = |name: &str| pair[name].as_str().expect("an id").to_owned();
                format!("{} {} {} {} {}", text("a"), pair["a_position"], text("b"), pair["b_position"], pair["similarity"].as_f64().expect("a number"))
            };
            let all: BTreeSet<String> = found.iter().map(shown).collect();
            prop_assert_eq!(all.len(), found.len());
            prop_assert_eq!(all, slow(&documents));
            let order = |pair: &Value| (pair["a"].to_string(), pair["a_position"].as_u64(), pair["b"].to_string(), pair["b_position"].as_u64());
            prop_assert!(found.is_sorted_by_key(order));
        }
    }

    #[test]
    fn documents_of_one_id_are_told_apart_or_refused() {
        let record = |id: &str, text: &str| (id.to_owned(), text.to_owned());
        let documents = [
            record("x", "one two three"),
            record("x", "one two three\none two four"),
            record("x#2", "one two three"),
            record("x", "one two three"),
        ];
        let lines = pairs(&documents, RepeatedIds::Number).expect("pairs");
        let mut other = documents.to_vec();
        other.reverse();
        assert_eq!(pairs(&other, RepeatedIds::Number).expect("pairs"), lines);
        let names: BTreeSet<String> = lines
            .lines()
            .flat_map(|line| {
                let pair: Value = serde_json::from_str(line).expect("JSON");
                ["a", "b"].map(|name| pair[name].to_string())
            })
            .collect();
        assert_eq!(Vec::from_iter(names), ["\"x\"", "\"x#2\"", "\"x#3\""]);
        let refused = pairs(&documents, RepeatedIds::Refuse).expect_err("one id");
        assert!(
            refused.to_string().contains("repeat the id of another: 1"),
            "{refused}"
        );
    }
}

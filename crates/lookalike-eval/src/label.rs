//! Labels: people's judgements of pairs, or known clusters.
//!
//! A file holds JSON lines of one of three kinds: `{"a":..,"b":..,"label":..}` with a number, true, false, or null for unknown;
//! `{"id":..,"cluster":..}`; or the CORE benchmark's `{"id" or "core_id":..,"labelled_duplicates":[..]}`.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::document_set::DocumentIds;
use crate::stratified_labels::{MixedStrata, StratifiedLabels};
use crate::stratified_sample::PairStratum;

/// Label of a pair of positions, a < b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairLabel {
    /// The smaller position.
    pub a: u32,
    /// The larger position.
    pub b: u32,
    /// The grade. `None` if the label is unknown.
    pub grade: Option<f64>,
}

/// The labels of a document set.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelSet {
    /// Graded pairs, by position. All other pairs are unlabelled and do not count.
    Pairs(Vec<PairLabel>),
    /// Cluster of each document. A document without a label is alone in its cluster.
    Clusters(Vec<u32>),
    /// Labelled duplicates of each document that has a line.
    Duplicates(BTreeMap<u32, BTreeSet<u32>>),
}

/// Reason why labels cannot be used. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LabelError {
    /// A line is not a label.
    #[error(
        "labels, line {line}: {reason}: write {{\"a\":..,\"b\":..,\"label\":..}} or {{\"id\":..,\"cluster\":..}}"
    )]
    Line {
        /// Number of the line.
        line: usize,
        /// Description of the error.
        reason: String,
    },
    /// An id that no document has.
    #[error(
        "labels, line {line}: no document has the id {id:?} (labels with unknown ids: {count})"
    )]
    UnknownId {
        /// The first line with an unknown id.
        line: usize,
        /// That id.
        id: String,
        /// Number of unknown ids.
        count: usize,
    },
    /// Two lines contradict each other.
    #[error("labels, lines {first} and {second} contradict each other: {what}; keep one of them")]
    Contradiction {
        /// The earlier line.
        first: usize,
        /// The later line.
        second: usize,
        /// Description of the contradiction.
        what: String,
    },
    /// No label is known.
    #[error("no label is known, but precision and recall need true and false pairs")]
    NoneKnown,
    /// All known labels are of one class, but precision and recall need both.
    #[error("all labels ({count}) are {class}, but precision and recall need true and false pairs")]
    OneClass {
        /// Number of known labels.
        count: usize,
        /// Their class: true or false.
        class: &'static str,
    },
    /// The labels are of more than one sample.
    #[error(transparent)]
    Mixed(#[from] MixedStrata),
    /// The labels name clusters although labels of pairs are needed.
    #[error("the labels name clusters, not pairs")]
    NotPairs,
    /// There are no labels.
    #[error("there are no labels")]
    Empty,
}

impl LabelError {
    fn line(line: usize, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Line { line, reason }
    }
}

/// Text of an id: a string as it is, a number with its digits as written.
struct LabelledId(String);

impl<'de> Deserialize<'de> for LabelledId {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let written = Box::<RawValue>::deserialize(json)?;
        match written.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(written.get())
                .map(Self)
                .map_err(D::Error::custom),
            // As written, because a parsed number would lose digits of large ids and the difference between 1 and 1.0.
            Some(b'-' | b'0'..=b'9') => Ok(Self(written.get().to_owned())),
            _ => Err(D::Error::custom("an id is neither a string nor a number")),
        }
    }
}

/// A label line of any kind.
#[derive(Deserialize)]
struct LabelLine {
    a: Option<LabelledId>,
    b: Option<LabelledId>,
    id: Option<LabelledId>,
    core_id: Option<LabelledId>,
    cluster: Option<LabelledId>,
    labelled_duplicates: Option<Vec<LabelledId>>,
    #[serde(default, deserialize_with = "given")]
    label: Option<Value>,
    stratum: Option<Value>,
}

/// Deserializes a field that is present, so that `null` differs from a missing field.
fn given<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

impl LabelLine {
    fn read(line: &str) -> Result<Self, String> {
        // serde would accept an array as the fields in their order.
        if !line.trim_start().starts_with('{') {
            return Err("not a JSON object".to_owned());
        }
        serde_json::from_str(line).map_err(|error| {
            let text = error.to_string();
            // serde counts lines within this one line, which would contradict the number in the message.
            text.split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
    }

    /// Returns the grade, which is `None` if it is unknown. Returns `None` if the line has no label, or one that is no grade.
    fn grade(&self) -> Option<Option<f64>> {
        match self.label.as_ref()? {
            Value::Number(number) => Some(number.as_f64()),
            Value::Bool(is_true) => Some(Some(f64::from(u8::from(*is_true)))),
            Value::Null => Some(None),
            Value::String(word) if word == "unknown" => Some(None),
            _ => None,
        }
    }
}

/// A line of labels with its number, from 1.
type NumberedLine = Result<(usize, LabelLine), LabelError>;

/// Reader that looks up the ids of label lines and collects unknown ones.
struct LabelReader<'a> {
    documents: &'a dyn DocumentIds,
    unknown: Option<(usize, String)>,
    unknown_count: usize,
}

impl<'a> LabelReader<'a> {
    fn new(documents: &'a dyn DocumentIds) -> Self {
        Self {
            documents,
            unknown: None,
            unknown_count: 0,
        }
    }

    fn position(
        &mut self,
        line: usize,
        id: Option<&LabelledId>,
    ) -> Result<Option<u32>, LabelError> {
        let LabelledId(id) = id.ok_or_else(|| LabelError::line(line, "an id is missing"))?;
        let position = self.documents.position(id);
        if position.is_none() {
            // Collected instead of refused at once: the number tells labels of another collection from a single typing error.
            self.unknown_count += 1;
            self.unknown.get_or_insert_with(|| (line, id.clone()));
        }
        Ok(position)
    }

    fn finish(self) -> Result<(), LabelError> {
        match self.unknown {
            Some((line, id)) => Err(LabelError::UnknownId {
                line,
                id,
                count: self.unknown_count,
            }),
            None => Ok(()),
        }
    }
}

impl LabelSet {
    /// Reads the labels of a collection. [`GroundTruth::of_labels`](crate::GroundTruth::of_labels) derives the truth from them.
    ///
    /// ```
    /// use lookalike_eval::{DocumentSet, LabelSet};
    ///
    /// let documents = DocumentSet::new([("a", "x"), ("b", "y"), ("c", "z")])?;
    /// let lines = r#"{"id":"a","cluster":"one"}
    ///                {"id":"c","cluster":"one"}"#;
    /// assert_eq!(LabelSet::parse(lines, &documents)?, LabelSet::Clusters(vec![0, 1, 0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LabelError`], which names the line.
    pub fn parse(text: &str, documents: &dyn DocumentIds) -> Result<Self, LabelError> {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        // Read one after another: all of them would take several times the memory of the text.
        let mut lines = lines.map(|(number, line)| {
            let read = LabelLine::read(line);
            Ok((
                number,
                read.map_err(|reason| LabelError::line(number, reason))?,
            ))
        });
        let first = lines.next().ok_or(LabelError::Empty)??;
        // The first line decides what kind of labels these are; a line of another kind is then an error of its own.
        let (is_pair, is_list) = (first.1.a.is_some(), first.1.labelled_duplicates.is_some());
        let lines = std::iter::once(Ok(first)).chain(lines);
        match (is_pair, is_list) {
            (true, _) => pairs(lines, documents),
            (false, true) => duplicates(lines, documents),
            (false, false) => clusters(lines, documents),
        }
    }
}

/// Label of a pair that was drawn from a stratum.
struct StratumLabel {
    line: usize,
    stratum: PairStratum,
    grade: Option<f64>,
}

impl StratifiedLabels {
    /// Reads labels of pairs that were drawn by [`crate::stratified_sample`]. Grades of `positive` and above are true. Returns `None` if no line
    /// names a band.
    ///
    /// ```
    /// use lookalike_eval::StratifiedLabels;
    ///
    /// // One pair of each band, which stands for all pairs in it.
    /// let label = |number, label, pairs| format!(
    ///     r#"{{"a":"a","b":"b{number}","label":{label},"stratum":{{"number":{number},"of":2,"name":"k = {number}","pairs":{pairs},"drawn":1}}}}"#
    /// );
    /// let lines = [label(1, true, 300), label(2, false, 100)].join("\n");
    /// let labels = StratifiedLabels::parse(&lines, 1.0)?.expect("lines with bands");
    /// let curve = labels.curve();
    /// assert_eq!((curve[0].precision.value, curve[1].precision.value), (1.0, 0.75));
    /// # Ok::<(), lookalike_eval::LabelError>(())
    /// ```
    ///
    /// # Errors
    /// [`LabelError`] if only some lines name a band, if a pair has two grades, or if bands are of two samples.
    pub fn parse(text: &str, positive: f64) -> Result<Option<Self>, LabelError> {
        let mut labels: BTreeMap<[String; 2], StratumLabel> = BTreeMap::new();
        let mut without = None;
        for (at, text) in text.lines().enumerate() {
            let Ok(read) = LabelLine::read(text) else {
                continue;
            };
            let line = at + 1;
            let grade = read.grade().flatten();
            let stratum = read.stratum.map(PairStratum::deserialize);
            let (Some(Ok(stratum)), Some(LabelledId(a)), Some(LabelledId(b))) =
                (stratum, read.a, read.b)
            else {
                // Refused below only if other lines have a stratum: a file without any is simply not one of a stratified sample.
                without.get_or_insert(line);
                continue;
            };
            let label = StratumLabel {
                line,
                stratum,
                grade,
            };
            // Pairs are unordered.
            let pair = if a <= b { [a, b] } else { [b, a] };
            if let Some(before) = labels.insert(pair, label) {
                reject_conflicting_grade(before.line, before.grade, line, grade)?;
            }
        }
        match without {
            _ if labels.is_empty() => Ok(None),
            Some(line) => Err(LabelError::line(line, "no stratum, unlike other lines")),
            None => {
                let labels = labels.values().map(|label| {
                    let is_true = label.grade.map(|grade| grade >= positive);
                    (&label.stratum, is_true)
                });
                Ok(Some(StratifiedLabels::new(labels)?))
            }
        }
    }
}

fn pairs(
    lines: impl Iterator<Item = NumberedLine>,
    documents: &dyn DocumentIds,
) -> Result<LabelSet, LabelError> {
    let mut reader = LabelReader::new(documents);
    let mut grades: BTreeMap<(u32, u32), (usize, Option<f64>)> = BTreeMap::new();
    for line in lines {
        let (line, labelled) = line?;
        let grade = labelled.grade().ok_or_else(|| {
            LabelError::line(line, "the label is not a number, true, false or null")
        })?;
        let a = reader.position(line, labelled.a.as_ref())?;
        let b = reader.position(line, labelled.b.as_ref())?;
        // Skipped only for now: `finish` refuses all labels if any id is unknown.
        let Some((a, b)) = a.zip(b) else { continue };
        if a == b {
            return Err(LabelError::line(line, "a document is paired with itself"));
        }
        let before = grades.insert((a.min(b), a.max(b)), (line, grade));
        if let Some((first, other)) = before {
            reject_conflicting_grade(first, other, line, grade)?;
        }
    }
    reader.finish()?;
    let label = |((a, b), (_, grade))| PairLabel { a, b, grade };
    Ok(LabelSet::Pairs(grades.into_iter().map(label).collect()))
}

/// Returns an error if an earlier line gives the pair another grade.
fn reject_conflicting_grade(
    first: usize,
    before: Option<f64>,
    second: usize,
    grade: Option<f64>,
) -> Result<(), LabelError> {
    if before == grade {
        return Ok(());
    }
    let show = |grade: Option<f64>| grade.map_or("unknown".to_owned(), |grade| grade.to_string());
    let what = format!(
        "the pair has the labels {} and {}",
        show(before),
        show(grade)
    );
    Err(LabelError::Contradiction {
        first,
        second,
        what,
    })
}

fn clusters(
    lines: impl Iterator<Item = NumberedLine>,
    documents: &dyn DocumentIds,
) -> Result<LabelSet, LabelError> {
    let mut reader = LabelReader::new(documents);
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut named: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    for line in lines {
        let (line, labelled) = line?;
        let LabelledId(name) = labelled.cluster.as_ref().ok_or_else(|| {
            LabelError::line(line, "neither a pair nor a document with a cluster")
        })?;
        let Some(position) = reader.position(line, labelled.id.as_ref())? else {
            continue;
        };
        let before = named.insert(position, (line, name.clone()));
        if let Some((first, other)) = before.filter(|before| before.1 != *name) {
            return Err(LabelError::Contradiction {
                first,
                second: line,
                what: format!("the document is in the clusters {other:?} and {name:?}"),
            });
        }
    }
    reader.finish()?;
    // Each document without a label is a cluster of its own.
    let mut clusters: Vec<u32> = (0..documents.len() as u32).collect();
    for (position, (_, name)) in named {
        // Positions ascend, so a cluster has the number of its first document, which no document alone in its cluster shares.
        clusters[position as usize] = *names.entry(name).or_insert(position);
    }
    Ok(LabelSet::Clusters(clusters))
}

fn duplicates(
    lines: impl Iterator<Item = NumberedLine>,
    documents: &dyn DocumentIds,
) -> Result<LabelSet, LabelError> {
    let mut reader = LabelReader::new(documents);
    let mut all: BTreeMap<u32, (usize, BTreeSet<u32>)> = BTreeMap::new();
    for line in lines {
        let (line, labelled) = line?;
        let own = labelled.id.as_ref().or(labelled.core_id.as_ref());
        let own = reader.position(line, own)?;
        let listed = labelled.labelled_duplicates.as_ref();
        let listed =
            listed.ok_or_else(|| LabelError::line(line, "labelled_duplicates is not a list"))?;
        let mut others = BTreeSet::new();
        for id in listed {
            others.extend(reader.position(line, Some(id))?);
        }
        let Some(own) = own else { continue };
        let (first, before) = all.entry(own).or_insert_with(|| (line, others.clone()));
        if *before != others {
            return Err(LabelError::Contradiction {
                first: *first,
                second: line,
                what: "the document has two lists of duplicates".to_owned(),
            });
        }
    }
    reader.finish()?;
    let lists = all.into_iter().map(|(own, (_, others))| (own, others));
    Ok(LabelSet::Duplicates(lists.collect()))
}

/// A labelled pair of positions, a < b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedPair {
    /// The smaller position.
    pub a: u32,
    /// The larger position.
    pub b: u32,
    /// True if they are near-duplicates.
    pub is_true: bool,
    /// True if the texts are known to be equal and not empty: every method finds the pair, whatever the sketches. [`for_each_tally`](crate::for_each_tally) finds
    /// out by itself.
    pub has_equal_texts: bool,
}

/// Returns the labelled pairs as true or false, and the number of unknown ones. Grades of `positive` and above are true. No texts are compared.
///
/// # Errors
/// [`LabelError::NoneKnown`] if no label is known, [`LabelError::OneClass`] if all known ones are true, or all false.
pub fn judged(labels: &[PairLabel], positive: f64) -> Result<(Vec<JudgedPair>, u64), LabelError> {
    let known: Vec<_> = labels
        .iter()
        .filter_map(|label| {
            let is_true = label.grade? >= positive;
            Some(JudgedPair {
                a: label.a,
                b: label.b,
                is_true,
                has_equal_texts: false,
            })
        })
        .collect();
    let count = known.len();
    if count == 0 {
        return Err(LabelError::NoneKnown);
    }
    let trues = known.iter().filter(|pair| pair.is_true).count();
    // With true labels only, every cut has a precision of 1; with false ones only, recall is undefined.
    if trues == 0 || trues == count {
        let class = if trues == 0 { "false" } else { "true" };
        return Err(LabelError::OneClass { count, class });
    }
    Ok((known, (labels.len() - count) as u64))
}

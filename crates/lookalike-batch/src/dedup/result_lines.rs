//! The lines of the result files: one JSON object each.

use std::io::{self, Write};
use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::documents::{DocumentTable, TextClasses};
use crate::dedup::pairs::DocumentPair;
use crate::dedup::paragraphs::{DocumentNames, ParagraphPlace};
use crate::parallel::in_order;

#[derive(Serialize)]
struct PairLine<'a> {
    a: &'a str,
    /// Number of paragraphs in the document before this one, if paragraphs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    a_position: Option<u64>,
    b: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    b_position: Option<u64>,
    similarity: f64,
    /// Resemblance of the visible texts, if another text was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    visible_similarity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    /// The document that is only compared with: a new document may have the same id.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'static str>,
}

/// Writes a pair, the smaller id first. The distance is written if `classes` has fingerprints; `names` has the names of documents
/// if paragraphs are compared.
pub(crate) fn write_pair(
    out: &mut dyn Write,
    documents: &DocumentTable,
    classes: Option<&TextClasses>,
    names: Option<&DocumentNames>,
    pair: DocumentPair,
) -> io::Result<()> {
    let id = |document: u32| documents.id(document as usize);
    // Documents of `--against` have the first places, so the smaller place need not have the smaller id.
    let (first, second) = if id(pair.a) <= id(pair.b) {
        (pair.a, pair.b)
    } else {
        (pair.b, pair.a)
    };
    let distance = classes.and_then(|classes| distance(documents, classes, first, second));
    let place = |document: u32| match names {
        Some(names) => {
            let ParagraphPlace { document, position } = names.place(id(document))?;
            Ok::<_, io::Error>((document, Some(position)))
        }
        None => Ok((id(document), None)),
    };
    let ((a, a_position), (b, b_position)) = (place(first)?, place(second)?);
    let line = PairLine {
        a,
        a_position,
        b,
        b_position,
        similarity: pair.similarity,
        visible_similarity: pair.visible,
        distance,
        // Two documents that are only compared with are no pair.
        against: match [first, second].map(|document| documents.is_against(document)) {
            [true, _] => Some("a"),
            [_, true] => Some("b"),
            _ => None,
        },
    };
    write_line(out, &line)
}

fn distance(documents: &DocumentTable, classes: &TextClasses, a: u32, b: u32) -> Option<u32> {
    let class = |document: u32| {
        let class = documents.classes[document as usize]?.position();
        // A class without features has no fingerprint.
        (classes.sizes[class] > 0).then_some(class)
    };
    Some(classes.distance(class(a)?, class(b)?))
}

#[derive(Serialize)]
struct ClusterLine<'a> {
    cluster: u64,
    survivor: &'a str,
    /// True if the survivor is only compared with: a new document may have the same id.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<bool>,
    members: MemberLines<'a>,
}

/// The members of a cluster, each made while it is written, because a cluster may have millions of them.
struct MemberLines<'a> {
    documents: &'a DocumentTable,
    members: &'a [u32],
    outcomes: &'a DecisionTable,
}

impl Serialize for MemberLines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.members.iter().map(|&document| {
            let outcome = self.outcomes.get(document as usize);
            MemberLine {
                id: self.documents.id(document as usize),
                similarity: outcome.similarity(),
                visible_similarity: outcome.visible_similarity(),
                reason: outcome.reason(),
            }
        }))
    }
}

#[derive(Serialize)]
struct MemberLine<'a> {
    id: &'a str,
    similarity: f64,
    /// Resemblance of the visible texts, if another text was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    visible_similarity: Option<f64>,
    reason: Option<&'static str>,
}

/// Writes a cluster, piece by piece: its survivor and the documents removed for it.
pub(crate) fn write_cluster(
    out: &mut dyn Write,
    documents: &DocumentTable,
    number: u64,
    survivor: u32,
    members: &[u32],
    outcomes: &DecisionTable,
) -> io::Result<()> {
    write_long_line(
        out,
        &ClusterLine {
            cluster: number,
            survivor: documents.id(survivor as usize),
            against: documents.is_against(survivor).then_some(true),
            members: MemberLines {
                documents,
                members,
                outcomes,
            },
        },
    )
}

/// The decision on a document, under the names that the Python package uses. Every line has every field, as rows of a table do.
#[derive(Serialize)]
struct AnnotationLine<'a> {
    id: &'a str,
    cluster_id: Option<u64>,
    cluster_size: u64,
    survivor_id: &'a str,
    similarity: Option<f64>,
    reason: Option<&'static str>,
    // Names in other libraries.
    representative_id: &'a str,
    is_duplicate: bool,
}

/// Writes the decision on a document, which may be in a cluster, given with its number and the number of its documents.
pub(crate) fn write_annotation(
    out: &mut dyn Write,
    documents: &DocumentTable,
    document: usize,
    outcome: DocumentDecision,
    cluster: Option<(u64, u64)>,
) -> io::Result<()> {
    let survivor = outcome.survivor();
    let survivor_id = documents.id(survivor.map_or(document, |survivor| survivor as usize));
    let line = AnnotationLine {
        id: documents.id(document),
        cluster_id: cluster.map(|(number, _)| number),
        cluster_size: cluster.map_or(1, |(_, size)| size),
        survivor_id,
        similarity: survivor.map(|_| outcome.similarity()),
        reason: outcome.reason(),
        representative_id: survivor_id,
        is_duplicate: survivor.is_some(),
    };
    write_line(out, &line)
}

/// Weight from which on a piece gets no more items: large enough that passing a piece on costs little, but small enough that all threads get some.
const PIECE: usize = 1 << 11;

/// Consecutive items whose lines are written together.
struct WrittenPiece {
    items: Range<usize>,
    /// False if the lines are too long to be held in memory.
    is_held: bool,
}

/// Divides items into pieces by their weights.
fn pieces(count: usize, weight: impl Fn(usize) -> usize) -> Vec<WrittenPiece> {
    let (mut pieces, mut start, mut held) = (Vec::new(), 0, 0);
    for end in 1..=count {
        held += weight(end - 1);
        if held >= PIECE || end == count {
            pieces.push(WrittenPiece {
                items: start..end,
                is_held: held <= 2 * PIECE,
            });
            (start, held) = (end, 0);
        }
    }
    pieces
}

/// Writes `count` items; `threads` threads format their lines. `weight` returns the number of parts of an item, such as the members of a cluster.
/// Items with very many parts are formatted when it is their turn, without being held in memory.
pub(crate) fn write_in_pieces(
    out: &mut dyn Write,
    count: usize,
    threads: usize,
    weight: impl Fn(usize) -> usize,
    write: impl Fn(&mut dyn Write, usize) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let lines = |mut piece: WrittenPiece| {
        let mut lines = Vec::new();
        if piece.is_held {
            let mut items = piece.items.clone();
            items.try_for_each(|at| write(&mut lines, at))?;
            piece.items = 0..0;
        }
        Ok((lines, piece.items))
    };
    let mut hand_on = |(lines, mut unwritten): (Vec<u8>, Range<usize>)| {
        out.write_all(&lines)?;
        unwritten.try_for_each(|at| write(out, at))
    };
    in_order(pieces(count, weight), threads, lines, &mut hand_on)
}

/// Writes a value as one line of JSON, with a single call.
pub(crate) fn write_line(out: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    out.write_all(&bytes)
}

/// Writes a value as one line of JSON without holding all of it in memory. `out` should be buffered.
pub(crate) fn write_long_line(out: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn documents(ids: &[&str]) -> DocumentTable {
        let mut documents = DocumentTable::default();
        ids.iter().for_each(|id| documents.push_id(id));
        documents
    }

    /// Returns the value of the only line, which ends with the only line feed.
    fn value_of(line: &[u8]) -> Value {
        assert_eq!(
            line.iter().position(|&byte| byte == b'\n'),
            Some(line.len() - 1)
        );
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn a_pair_has_the_smaller_id_first_and_no_field_without_a_value() {
        let documents = documents(&["b\n\"<", "a"]);
        let pair = |a, b, visible| DocumentPair {
            a,
            b,
            similarity: 0.875,
            visible,
        };
        for (a, b) in [(0, 1), (1, 0)] {
            let mut line = Vec::new();
            write_pair(&mut line, &documents, None, None, pair(a, b, None)).unwrap();
            assert_eq!(
                value_of(&line),
                json!({"a": "a", "b": "b\n\"<", "similarity": 0.875})
            );
        }
        let mut line = Vec::new();
        write_pair(&mut line, &documents, None, None, pair(0, 1, Some(0.5))).unwrap();
        assert_eq!(value_of(&line)["visible_similarity"], 0.5);
    }

    #[test]
    fn lines_are_written_in_their_order_up_to_the_first_error() {
        let write = |out: &mut dyn Write, at: usize| match at {
            6_000 => Err(io::ErrorKind::StorageFull.into()),
            _ => writeln!(out, "{at}"),
        };
        let expected: String = (0..5_000).map(|at| format!("{at}\n")).collect();
        for threads in [1, 3] {
            let mut lines = Vec::new();
            write_in_pieces(&mut lines, 5_000, threads, |_| 1, write).unwrap();
            assert!(lines == expected.as_bytes());
            let error = write_in_pieces(&mut lines, 9_000, threads, |_| 1, write).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    /// Writer that counts bytes and remembers the longest that it got at once.
    #[derive(Default)]
    struct LongestWrite {
        all: usize,
        longest: usize,
    }

    impl Write for LongestWrite {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.all += bytes.len();
            self.longest = self.longest.max(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_line_of_a_cluster_with_very_many_members_was_held_in_memory() {
        const MEMBERS: u32 = 20_000;
        let mut documents = DocumentTable::default();
        (0..=MEMBERS).for_each(|number| documents.push_id(&format!("document {number}")));
        let copies = (0..MEMBERS).map(|_| DocumentDecision::Exact { survivor: 0 });
        let outcomes = [DocumentDecision::Kept].into_iter().chain(copies).collect();
        let members: Vec<u32> = (1..=MEMBERS).collect();
        for threads in [1, 2] {
            let mut out = LongestWrite::default();
            let write = |out: &mut dyn Write, number: usize| {
                let members = &members[..[1, members.len(), 2][number]];
                write_cluster(out, &documents, 1, 0, members, &outcomes)
            };
            let weight = |number| [1, members.len(), 2][number];
            write_in_pieces(&mut out, 3, threads, weight, write).unwrap();
            assert!(out.all > 1_000_000, "{} bytes", out.all);
            assert!(out.longest < 1_000, "{} bytes at once", out.longest);
        }
    }

    #[test]
    fn a_cluster_names_each_member_with_its_reason() {
        let documents = documents(&["kept", "copy", "near"]);
        let outcomes = [
            DocumentDecision::Kept,
            DocumentDecision::Exact { survivor: 0 },
            DocumentDecision::Near {
                survivor: 0,
                similarity: 0.9,
                visible: Some(0.7),
            },
        ];
        let mut line = Vec::new();
        write_cluster(
            &mut line,
            &documents,
            7,
            0,
            &[1, 2],
            &outcomes.into_iter().collect(),
        )
        .unwrap();
        let expected = json!({
            "cluster": 7,
            "survivor": "kept",
            "members": [
                {"id": "copy", "similarity": 1.0, "reason": "exact"},
                {"id": "near", "similarity": 0.9, "visible_similarity": 0.7, "reason": "near"},
            ],
        });
        assert_eq!(value_of(&line), expected);
    }
}

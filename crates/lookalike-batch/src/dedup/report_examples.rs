//! Contents of the report besides the counts of a job: sizes of clusters, similarities, and the largest and the least similar clusters with
//! an example each, whose texts are collected while the records are written.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use lookalike_corpus::{Format, InputOptions, Inputs, Parser, Record, Source, TextState};

use crate::dedup::checkpoint::DecisionCheckpoint;
use crate::dedup::counts::WrittenBytes;
use crate::dedup::decision::ClusterTable;
use crate::dedup::decision_table::DecisionTable;
use crate::dedup::document_decision::DocumentDecision;
use crate::dedup::job::DedupJob;
use crate::dedup::just_below::{BINS, ClosePair};
use crate::error::BatchError;
use crate::report::{BelowThresholdRow, ClusterRow, InputRow, ReportData, ReportExample};

/// Number of the largest clusters that the report shows with an example.
const LARGEST: usize = 30;
/// Number of the other clusters that it shows, those with the least similar members.
const LEAST_SIMILAR: usize = 10;
/// Number of bytes at which texts are truncated in the report.
const TEXT_BYTES: usize = 20_000;
/// Maximum number of bytes of a record that the report shows.
// For 40 clusters and 10 pairs, 100 records are held at most: 25 MiB.
pub(crate) const RECORD_BYTES: usize = 256 << 10;

/// A document for the report: its record, once it has been met.
enum ReportDocument {
    Pending,
    Line(Vec<u8>),
    File(Source),
}

/// Cluster with its least similar member.
type ShownCluster = (usize, u32);

/// Clusters, the pairs just below the threshold, and the documents of both that the report shows.
pub(crate) struct ReportExamples {
    largest: Vec<ShownCluster>,
    least_similar: Vec<ShownCluster>,
    below: Vec<ClosePair>,
    wanted: BTreeMap<u32, ReportDocument>,
}

impl ReportExamples {
    /// Chooses the largest clusters and, of the others, those with the least similar members, both with that member; and the pairs just
    /// below the threshold.
    pub(crate) fn choose(checkpoint: &DecisionCheckpoint, clusters: &ClusterTable) -> Self {
        let (mut largest, mut least_similar) = (BTreeSet::new(), BTreeSet::new());
        for (cluster, (_, members)) in clusters.iter().enumerate() {
            // Similarities are not negative, so their bits have the same order.
            let similarity = |&member: &u32| {
                let outcome = checkpoint.outcomes.get(member as usize);
                outcome.similarity().to_bits()
            };
            // Members are in the order of ids, so the first of ties does not depend on the order of the input.
            let least = members.iter().map(|member| (similarity(member), *member));
            let least = least.min_by_key(|&(similarity, _)| similarity);
            let (lowest, member) = least.expect("a cluster has members");
            // Nor do ties of clusters. There may be millions, of which only a few are held.
            largest.insert((Reverse(members.len()), lowest, cluster, member));
            if largest.len() <= LARGEST {
                continue;
            }
            // Exact copies need no look.
            let last = largest.pop_last();
            let last = last.filter(|&(_, lowest, ..)| f64::from_bits(lowest) < 1.0);
            least_similar
                .extend(last.map(|(_, lowest, cluster, member)| (lowest, cluster, member)));
            if least_similar.len() > LEAST_SIMILAR {
                least_similar.pop_last();
            }
        }
        let largest = largest.into_iter();
        let least_similar = least_similar.into_iter();
        let examples = Self {
            largest: largest
                .map(|(_, _, cluster, member)| (cluster, member))
                .collect(),
            least_similar: least_similar
                .map(|(_, cluster, member)| (cluster, member))
                .collect(),
            below: checkpoint.head.just_below.closest.clone(),
            wanted: BTreeMap::new(),
        };
        examples.with_documents(clusters)
    }

    fn with_documents(mut self, clusters: &ClusterTable) -> Self {
        let pairs = self.below.iter().map(|pair| [pair.a, pair.b]);
        let shown = self.largest.iter().chain(&self.least_similar);
        let shown = shown.map(|&(cluster, member)| [clusters.get(cluster).0, member]);
        let documents = pairs.chain(shown).flatten();
        self.wanted = documents
            .map(|document| (document, ReportDocument::Pending))
            .collect();
        self
    }

    /// Returns true if a document is needed for the report.
    pub(crate) fn needs_document(&self, document: u32) -> bool {
        self.wanted.contains_key(&document)
    }

    /// Returns the documents needed for the report, ascending.
    pub(crate) fn needed_documents(&self) -> Vec<u32> {
        self.wanted.keys().copied().collect()
    }

    /// Keeps a record if the report needs it.
    pub(crate) fn collect_line(&mut self, document: u32, bytes: &[u8]) {
        // A longer record stays pending, and the report names its document without a text.
        if let Some(met) = self.wanted.get_mut(&document)
            && bytes.len() <= RECORD_BYTES
        {
            *met = ReportDocument::Line(bytes.to_vec());
        }
    }

    /// Keeps a file if the report needs it.
    pub(crate) fn collect_file(&mut self, document: u32, source: &Source) {
        if let Some(met) = self.wanted.get_mut(&document)
            && source.bytes <= RECORD_BYTES as u64
        {
            *met = ReportDocument::File(source.clone());
        }
    }

    /// Returns the contents of the report besides the summary of the job.
    pub(crate) fn report(
        self,
        job: &DedupJob<'_>,
        checkpoint: &DecisionCheckpoint,
        clusters: &ClusterTable,
        written: WrittenBytes,
        folder: &Path,
    ) -> Result<ReportData, BatchError> {
        // Copies, because `texts` consumes the documents.
        let shown = [self.largest.clone(), self.least_similar.clone()];
        let below = self.below.clone();
        let texts = self.texts(&job.options, folder)?;
        // Bins are divided by 1 - from, which must not be zero.
        let from = job.settings.threshold.min(0.999);
        let [largest, least_similar] = shown.map(|shown| {
            let shown = shown.into_iter();
            shown
                .map(|(cluster, member)| row(checkpoint, clusters, cluster, member, &texts))
                .collect()
        });
        let inputs = inputs(job, checkpoint);
        Ok(ReportData {
            title: title(&inputs),
            inputs,
            written,
            cluster_sizes: sizes(clusters),
            similarities: similarities(&checkpoint.outcomes, from),
            similarity_from: from,
            below: checkpoint.head.just_below.estimated(),
            closest: below
                .iter()
                .map(|pair| closest(checkpoint, pair, &texts))
                .collect(),
            largest,
            least_similar,
        })
    }

    /// Extracts the texts of the documents met as the job did. Lines are written to a separate file, so that the same
    /// reader and parser process them.
    fn texts(
        self,
        options: &InputOptions,
        folder: &Path,
    ) -> Result<BTreeMap<u32, DocumentTexts>, BatchError> {
        let failed = BatchError::result(folder);
        let mut texts = BTreeMap::new();
        std::fs::create_dir_all(folder).map_err(&failed)?;
        let lines = folder.join("lines.jsonl");
        let mut file = File::create(&lines).map_err(&failed)?;
        let mut documents = Vec::new();
        for (document, met) in self.wanted {
            match met {
                ReportDocument::Pending => {}
                ReportDocument::Line(bytes) => {
                    file.write_all(&bytes)
                        .and_then(|()| file.write_all(b"\n"))
                        .map_err(&failed)?;
                    documents.push(document);
                }
                ReportDocument::File(source) => {
                    let found = extract(
                        &Inputs {
                            sources: vec![source],
                            skips: Vec::new(),
                        },
                        options,
                    );
                    texts.extend(found.into_iter().flatten().map(|text| (document, text)));
                }
            }
        }
        if !documents.is_empty() {
            // The lines of archives and tables are JSON too.
            let options = options.clone().format(Some(Format::Jsonl));
            let inputs = Inputs::discover(&[lines.into_os_string()], &options, folder)?;
            // There is one result for each line, in order, including unreadable ones.
            let found = documents.into_iter().zip(extract(&inputs, &options));
            texts.extend(found.filter_map(|(document, text)| Some((document, text?))));
        }
        Ok(texts)
    }
}

/// The texts of a document.
struct DocumentTexts {
    compared: String,
    /// Visible text, if it differs from the text that was compared.
    visible: Option<String>,
}

impl DocumentTexts {
    fn of(record: Record<'_>) -> Option<Self> {
        (record.text_state == TextState::Present).then(|| Self {
            compared: record.text.into_owned(),
            visible: record.visible.map(|visible| visible.whole.into_owned()),
        })
    }

    /// Returns the text that was compared, or, if `whole`, the visible text.
    fn shown(&self, whole: bool) -> &str {
        let visible = self.visible.as_deref().filter(|_| whole);
        visible.unwrap_or(&self.compared)
    }
}

/// Returns the texts of all records that have one. Stops at an error, because the report does not need all texts.
fn extract(inputs: &Inputs, options: &InputOptions) -> Vec<Option<DocumentTexts>> {
    let mut parser = Parser::new(inputs, options).with_visible();
    let mut texts = Vec::new();
    for chunk in inputs.chunks(options).map_while(Result::ok) {
        parser.parse(&chunk, &mut |record| {
            texts.push(record.ok().and_then(DocumentTexts::of));
        });
    }
    texts
}

/// Truncates a text to the limit, and returns whether it was longer.
fn cut(text: &str) -> (String, bool) {
    let end = text.floor_char_boundary(TEXT_BYTES.min(text.len()));
    (text[..end].to_owned(), end < text.len())
}

/// Returns two documents side by side, or `None` if one of the texts is missing.
fn example(
    checkpoint: &DecisionCheckpoint,
    [a, b]: [u32; 2],
    similarity: f64,
    texts: &BTreeMap<u32, DocumentTexts>,
) -> Option<ReportExample> {
    let id = |document: u32| checkpoint.documents.id(document as usize).to_owned();
    // `b` is the removed document, if one is removed.
    let whole = checkpoint.outcomes.get(b as usize).is_same_main_text();
    let shown = |document: u32| Some(cut(texts.get(&document)?.shown(whole)));
    let ((a_text, a_cut), (b_text, b_cut)) = (shown(a)?, shown(b)?);
    Some(ReportExample {
        a_id: id(a),
        b_id: id(b),
        similarity,
        a_text,
        b_text,
        cut: a_cut || b_cut,
        whole_pages: whole,
    })
}

/// Returns a pair just below the threshold, with the preferred document first.
fn closest(
    checkpoint: &DecisionCheckpoint,
    pair: &ClosePair,
    texts: &BTreeMap<u32, DocumentTexts>,
) -> BelowThresholdRow {
    let id = |document: u32| checkpoint.documents.id(document as usize).to_owned();
    BelowThresholdRow {
        a_id: id(pair.b),
        b_id: id(pair.a),
        similarity: pair.similarity(),
        example: example(checkpoint, [pair.b, pair.a], pair.similarity(), texts),
    }
}

fn row(
    checkpoint: &DecisionCheckpoint,
    clusters: &ClusterTable,
    cluster: usize,
    member: u32,
    texts: &BTreeMap<u32, DocumentTexts>,
) -> ClusterRow {
    let documents = &checkpoint.documents;
    let id = |document: u32| documents.id(document as usize).to_owned();
    let (survivor, members) = clusters.get(cluster);
    let outcome = |&member: &u32| checkpoint.outcomes.get(member as usize);
    let similarity = outcome(&member).similarity();
    let example = example(checkpoint, [survivor, member], similarity, texts);
    ClusterRow {
        survivor: id(survivor),
        members: members.len() as u64 + 1,
        exact: members
            .iter()
            .filter(|m| matches!(outcome(m), DocumentDecision::Exact { .. }))
            .count() as u64,
        lowest_similarity: similarity,
        bytes_saved: members
            .iter()
            .map(|&m| documents.lengths.get(m as usize))
            .sum(),
        sample_ids: members.iter().take(20).map(|&m| id(m)).collect(),
        example,
    }
}

/// Returns the inputs with their records and removals, as many as the report lists.
fn inputs(job: &DedupJob<'_>, checkpoint: &DecisionCheckpoint) -> Vec<InputRow> {
    let of_sources = job.inputs.sources.iter().zip(checkpoint.source_documents());
    let row = |((source, documents), &records): ((&Source, Range<u32>), &u64)| InputRow {
        name: source.name().into_owned(),
        format: source.format.to_string(),
        records,
        bytes: source.bytes,
        removed: documents
            .filter(|&document| !checkpoint.outcomes.is_kept(document as usize))
            .count() as u64,
    };
    let rows = of_sources.zip(&checkpoint.records).map(row);
    rows.skip(job.against_sources).collect()
}

/// Counts clusters by size, including survivors: 2, 3, 4-5, 6-9, and so on by doubling.
fn sizes(clusters: &ClusterTable) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for (_, members) in clusters.iter() {
        // The survivor is not among the members: 1, 2, 3 to 4, 5 to 8 members, and so on, are the logarithm rounded up.
        let bucket = members.len().ilog2() as usize + usize::from(!members.len().is_power_of_two());
        if counts.len() <= bucket {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1;
    }
    let name = |bucket: usize| match bucket {
        0 => "2".to_owned(),
        1 => "3".to_owned(),
        _ => format!("{}-{}", (1_u64 << (bucket - 1)) + 2, (1_u64 << bucket) + 1),
    };
    counts
        .into_iter()
        .enumerate()
        .map(|(bucket, count)| (name(bucket), count))
        .collect()
}

/// Counts near-duplicates by similarity, in bins from the threshold to 1.
fn similarities(outcomes: &DecisionTable, from: f64) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for outcome in outcomes.documents() {
        if let DocumentDecision::Near { similarity, .. } = outcome {
            let bin = ((similarity - from) / (1.0 - from) * BINS as f64) as usize;
            // A similarity of 1 would be after the last bin.
            bins[bin.min(BINS - 1)] += 1;
        }
    }
    bins
}

/// Returns a name for the data: that of the input, or of the folder that contains several.
fn title(inputs: &[InputRow]) -> String {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (first, rest) = match inputs {
        [] => return "No input".to_owned(),
        [one] => return last(&one.name),
        [first, rest @ ..] => (&*first.name, rest),
    };
    // Climb from the first input until the folder contains all others.
    let mut folder = first;
    while let Some((above, _)) = folder.rsplit_once('/') {
        folder = above;
        let within = |input: &InputRow| {
            let below = input.name.strip_prefix(folder);
            below.is_some_and(|below| below.starts_with('/'))
        };
        if !last(folder).is_empty() && rest.iter().all(within) {
            return format!("{}: {} inputs", last(folder), inputs.len());
        }
    }
    format!("{} and {} more", last(first), rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "\u{4e2d}".repeat(10_000);
        let (short, was_cut) = cut(&text);
        assert!(was_cut && short.len() <= TEXT_BYTES && text.starts_with(&short));
        assert_eq!(cut("short"), ("short".to_owned(), false));
    }

    #[test]
    fn the_heading_names_the_data() {
        let input = |name: &&str| InputRow {
            name: (*name).to_owned(),
            ..InputRow::default()
        };
        let named = |names: &[&str]| title(&names.iter().map(input).collect::<Vec<_>>());
        assert_eq!(named(&["/data/news.jsonl.gz"]), "news.jsonl.gz");
        assert_eq!(
            named(&["a/pages/ar/x.html", "a/pages/de/y.html"]),
            "pages: 2 inputs"
        );
        assert_eq!(
            named(&["pages/x.html", "pages2/y.html"]),
            "x.html and 1 more"
        );
        assert_eq!(named(&["/a/x.html", "/b/y.html"]), "x.html and 1 more");
        assert_eq!(named(&[]), "No input");
    }

    #[test]
    fn similarities_fall_into_their_bins() {
        let near = |similarity| DocumentDecision::Near {
            survivor: 9,
            similarity,
            visible: None,
        };
        let bins = similarities(
            &[
                near(0.8),
                near(0.999),
                near(1.0),
                DocumentDecision::Exact { survivor: 9 },
            ]
            .into_iter()
            .collect(),
            0.8,
        );
        assert_eq!((bins[0], bins[19], bins.iter().sum::<u64>()), (1, 2, 3));
    }
}

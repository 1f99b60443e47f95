//! Summaries of jobs over documents.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use lookalike_batch::{
    AddedDocuments, ArchiveSummary, CollectionSummary, DedupSummary, ExtractionSummary,
    InputCounts, MeasuredCost, PairsSummary, ParagraphCounts, TermsSummary, WrittenBytes,
};

use lookalike_batch::report::diff;

use crate::size::show;

use super::lines::{
    HOMOGLYPHS, MOJIBAKE, NO_TEXT, REPLACED, boilerplate, cost, counted, grouped, input, line,
    notes, on_disk, print_notable_counts, share, skipped, texts,
};

/// Prints the documents of `--against`, which are counted with the rest while they are read.
fn against(counts: &InputCounts, note: &str) {
    if counts.against > 0 {
        line!(
            "against",
            "{}, {} as stored{note}",
            counted(counts.against, "record"),
            show(counts.against_bytes)
        );
    }
    if let Some(used) = counts.collection {
        line!(
            "against",
            "{} in a collection, {} of them examined{note}",
            counted(used.documents, "document"),
            grouped(used.looked_at)
        );
    }
}

/// Prints the summary of `dedup`.
pub(crate) fn dedup_summary(summary: &DedupSummary, folder: &Path) {
    let (counts, decisions) = (&summary.counts, &summary.decisions);
    // Documents of `--against` are counted with the rest while they are read.
    let records = counts.documents - counts.against;
    let removed = decisions.removed_exact + decisions.removed_near;
    input(records, "record", counts.input_bytes - counts.against_bytes);
    against(counts, ": never removed");
    texts(counts, None);
    line!(
        "exact",
        "{} removed, each with the text of a kept one",
        grouped(decisions.removed_exact)
    );
    let near = grouped(decisions.removed_near);
    match summary.verified {
        true if summary.threshold == 0.0 => {
            line!("near", "{near} removed, each verified by the further tests")
        }
        true => line!(
            "near",
            "{near} removed, each verified at {} or more",
            summary.threshold
        ),
        false => line!(
            "near",
            "{near} removed by the method's own rule, not verified"
        ),
    }
    if decisions.removed_same_main_text > 0 {
        line!(
            "",
            "{} of these have the main text of a kept page, but other visible text",
            grouped(decisions.removed_same_main_text)
        );
    }
    line!(
        "removed",
        "{} in {}",
        grouped(removed),
        counted(decisions.clusters, "cluster")
    );
    line!(
        "kept",
        "{} ({})",
        grouped(decisions.kept),
        share(decisions.kept, records)
    );
    let text_bytes = counts.text_bytes - counts.against_text_bytes;
    line!(
        "saved",
        "{} of {} of text ({})",
        show(decisions.removed_text_bytes),
        show(text_bytes),
        share(decisions.removed_text_bytes, text_bytes)
    );
    if let Some(largest) = decisions.dominant_cluster() {
        line!(
            "alert",
            "{} of {} removed records are in one cluster, that of {}: check it before you trust the rest",
            grouped(largest.removed),
            grouped(removed),
            diff::visible(&largest.survivor)
        );
    }
    if decisions.kept_as_pages > 0 {
        line!(
            "note",
            "{} pages whose main text resembles that of a kept one: kept, because the rest differs",
            grouped(decisions.kept_as_pages)
        );
    }
    print_notable_counts(counts);
    skipped(&summary.skipped);
    skipped_files(&summary.written, folder);
    cost(&summary.measured);
    on_disk(counts.tables_on_disk);
    line!("results", "{} (open report.html)", folder.display());
}

/// Prints what was added to a collection.
pub(crate) fn added(added: &AddedDocuments, folder: &Path) {
    line!(
        "added",
        "{} to {}, which now has {}",
        counted(added.added, "document"),
        folder.display(),
        grouped(added.documents)
    );
}

/// Prints the summary of `collection build` and `add`.
pub(crate) fn collection_summary(
    summary: &CollectionSummary,
    folder: &Path,
    measured: &MeasuredCost,
) {
    let counts = &summary.counts;
    input(counts.documents, "record", counts.input_bytes);
    texts(counts, None);
    print_notable_counts(counts);
    skipped(&summary.skipped);
    cost(measured);
    on_disk(counts.tables_on_disk);
    added(&summary.added, folder);
}

/// Prints the summary of `archive build`.
pub(crate) fn archive_summary(summary: &ArchiveSummary, file: &Path, measured: &MeasuredCost) {
    let (counts, archive) = (&summary.counts, &summary.archive);
    input(counts.documents, "record", counts.input_bytes);
    texts(counts, None);
    print_notable_counts(counts);
    skipped(&summary.skipped);
    line!(
        "copies",
        "{} stored next to another document",
        grouped(archive.copies)
    );
    if let Some(first) = &summary.first_renamed {
        line!(
            "renamed",
            "{} because another has the same path in the archive; the first: {} is {}",
            counted(summary.renamed, "file"),
            first.source,
            first.path
        );
    }
    cost(measured);
    on_disk(counts.tables_on_disk);
    line!(
        "archive",
        "{}, {} of {}: {:.2} to 1",
        file.display(),
        show(archive.archive_bytes),
        show(archive.source_bytes),
        archive.ratio
    );
}

/// Prints the summary of `pairs`.
///
/// `divided` counts the documents whose paragraphs were compared.
pub(crate) fn pairs_summary(
    summary: &PairsSummary,
    divided: Option<&ParagraphCounts>,
    measured: &MeasuredCost,
) {
    let counts = &summary.counts;
    let records = counts.documents - counts.against;
    let bytes = show(counts.input_bytes - counts.against_bytes);
    let input = match divided {
        Some(divided) => format!(
            "{} in {}, {bytes}",
            counted(divided.paragraphs, "paragraph"),
            counted(divided.documents, "document")
        ),
        None => format!("{}, {bytes}", counted(records, "record")),
    };
    line!("input", "{input}");
    against(counts, "");
    line!("pairs", "{}", grouped(summary.pairs));
    print_notable_counts(&summary.counts);
    if let Some(divided) = divided {
        notes([
            (divided.missing, "records without a text: left out"),
            (
                divided.too_long,
                "records longer than --max-document: left out",
            ),
            (
                divided.repeated_records,
                "records with the id and text of another: left out",
            ),
        ]);
    }
    skipped(divided.map_or(&summary.skipped, |divided| &divided.skipped));
    cost(measured);
    on_disk(summary.counts.tables_on_disk);
}

/// Prints the summary of `extract`.
pub(crate) fn extraction_summary(summary: &ExtractionSummary, measured: &MeasuredCost) {
    line!(
        "input",
        "{}, {} ({} as records)",
        counted(summary.documents, "record"),
        show(summary.input_bytes),
        show(summary.record_bytes)
    );
    line!("text", "{}", show(summary.text_bytes));
    frequent("charsets", &summary.charsets, 8);
    notes([
        (summary.missing_text, NO_TEXT),
        (summary.too_long, "longer than --max-document: left out"),
        (
            summary.charset_wrong,
            "in another character set than declared: read in the actual one",
        ),
        (summary.characters_replaced, REPLACED),
        (summary.mojibake, MOJIBAKE),
        (summary.homoglyphs, HOMOGLYPHS),
    ]);
    frequent("languages", &summary.languages, 12);
    boilerplate(summary.boilerplate.as_ref());
    skipped(&summary.skipped);
    // The rate counts bytes of records: by their size on disk, compressed files would look slow.
    let wall: f64 = measured.stages.iter().map(|stage| stage.1).sum();
    if wall > 0.0 {
        let rate = summary.record_bytes as f64 / 1e6 / wall;
        let decimals = if rate < 10.0 { 3 } else { 0 };
        line!("rate", "{rate:.decimals$} MB/s of records");
    }
    cost(measured);
}

/// Prints the `most` names with the highest counts.
fn frequent<K: Display>(line: &str, counts: &BTreeMap<K, u64>, most: usize) {
    let mut counts: Vec<_> = counts.iter().collect();
    // A stable sort of a map ordered by name, so equal counts stay in that order.
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let counts = counts.iter().take(most);
    let shown: Vec<String> = counts
        .map(|(name, count)| format!("{} {name}", grouped(**count)))
        .collect();
    if !shown.is_empty() {
        line!(line, "{}", shown.join(", "));
    }
}

/// Prints the summary of `links`.
pub(crate) fn links_summary(summary: &lookalike_batch::LinksSummary, measured: &MeasuredCost) {
    line!("input", "{}", counted(summary.pages, "record"));
    let to_pages = grouped(summary.links_to_pages);
    line!(
        "links",
        "{}, {to_pages} of them to a record",
        grouped(summary.links)
    );
    line!(
        "fields",
        "{}, {}, {}; links to {}",
        counted(summary.anchors, "anchor"),
        counted(summary.in_links, "in-link"),
        counted(summary.out_links, "out-link"),
        counted(summary.linked_pages, "page")
    );
    notes([
        (
            summary.without_address,
            "with neither a URL nor a path: no links",
        ),
        (summary.too_long, "longer than --max-document: left out"),
        (summary.characters_replaced, REPLACED),
        (summary.cut, "entries of the fields beyond --most: left out"),
    ]);
    skipped(&summary.skipped);
    cost(measured);
    on_disk(summary.tables_on_disk);
}

/// Prints the summary of `terms`.
pub(crate) fn terms_summary(summary: &TermsSummary, measured: &MeasuredCost) {
    let added = |read| format!(", {} of them new", grouped(read));
    let added = summary.read.map(added).unwrap_or_default();
    let records = counted(summary.documents, "record");
    line!("input", "{records}{added}");
    let is_kept = summary.drift.is_some_and(|drift| !drift.renewed);
    let counted_in = match is_kept {
        true => "in the table that is kept",
        false => "in two records or more",
    };
    line!("terms", "{} {counted_in}", grouped(summary.terms));
    if summary.bytes_on_disk > 0 {
        line!("sorted", "{} on disk", show(summary.bytes_on_disk));
    }
    notes([
        (summary.missing_text, NO_TEXT),
        (
            summary.too_long,
            "longer than --max-document: counted as records without features",
        ),
    ]);
    boilerplate(summary.boilerplate.as_ref());
    skipped(&summary.skipped);
    if let Some(drift) = &summary.drift {
        let done = match drift.renewed {
            true => "replaced; fingerprints made with the old weights must be made again",
            false => "kept, and with them the scheme",
        };
        // Without counts there are no weights to compare, and no bits by which they could be off.
        let compared = match summary.documents == 0 && !drift.renewed {
            true => "not compared, because no counts are left".to_owned(),
            false => format!(
                "off by {:.2} of 64 bits, tolerance {}",
                drift.bits, drift.tolerance
            ),
        };
        line!("weights", "{compared}: {done}");
    }
    line!("table", "{}", summary.id);
    line!("scheme", "{}", summary.scheme);
    cost(measured);
}

/// Prints the location of copies of unread files.
fn skipped_files(written: &WrittenBytes, folder: &Path) {
    if written.skipped_files == 0 {
        return;
    }
    line!(
        "",
        "{} ({}) that could not be read at all: in {}",
        counted(written.skipped_files, "file"),
        show(written.skipped),
        folder.join("skipped").display()
    );
}

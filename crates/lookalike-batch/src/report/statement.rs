//! Writes the sentences of the report: the result, its reliability and its limits.

use super::figure::{count, probability, threshold};
use crate::dedup::counts::{DecisionCounts, LargestCluster};
use crate::dedup::pages::PageCounts;
use crate::dedup::summary::DedupSummary;
use crate::settings::PairScope;

/// Returns the result in one sentence.
pub(super) fn headline(summary: &DedupSummary) -> String {
    let decisions = &summary.decisions;
    match (summary.counts.records(), decisions.removed()) {
        (0, _) => "No record was read.".to_owned(),
        (1, 0) => "The one record was kept.".to_owned(),
        (records, 0) => {
            format!(
                "None of {} records is a copy; all are kept.",
                count(records)
            )
        }
        (records, removed) => format!(
            "{} of {} records {} removed: {}. {} kept.",
            count(removed),
            count(records),
            if removed == 1 { "is" } else { "are" },
            kinds_of_copies(decisions),
            counted(decisions.kept, "is", "are"),
        ),
    }
}

/// Describes the removed copies, such as `29 exact copies and 104 near copies`.
fn kinds_of_copies(decisions: &DecisionCounts) -> String {
    let kinds = [
        (decisions.removed_exact, "exact"),
        (decisions.removed_near, "near"),
    ];
    let some = kinds
        .iter()
        .filter(|kind| kind.0 > 0)
        .map(|(number, kind)| counted(*number, &format!("{kind} copy"), &format!("{kind} copies")));
    some.collect::<Vec<_>>().join(" and ")
}

/// Defines a copy, for those who read the word for the first time.
pub(super) fn definition(summary: &DedupSummary) -> String {
    let exact = "An exact copy has the text of a kept record.";
    if summary.method == "exact" {
        return exact.to_owned();
    }
    let units = units(&summary.scheme);
    // A threshold of 0 means that further tests decide, or the method by a rule of its own.
    if summary.threshold == 0.0 && summary.verified {
        return format!(
            "{exact} A near copy has some {units} in common with one, and together they pass {}.",
            summary.and.join(", ")
        );
    }
    if summary.threshold == 0.0 {
        return format!("{exact} A near copy is one by the rule of the method.");
    }
    let passes = match summary.and.is_empty() {
        true => String::new(),
        false => format!(", and passes {} with it", summary.and.join(" and ")),
    };
    format!(
        "{exact} A near copy has a resemblance of at least {}, the threshold, to one{passes}. Resemblance: of all different {units} in the \
         two texts, the share that is in both.",
        threshold(summary.threshold)
    )
}

/// Names the parts of a text that are compared, such as `runs of 5 words`.
pub(super) fn units(scheme: &str) -> String {
    // A summary has the scheme as a text.
    let mut parts = scheme.split(' ');
    let shingle = parts.find_map(|part| part.strip_prefix("shingle="));
    match shingle.and_then(|shingle| shingle.split_once(':')) {
        Some(("words", "1")) => "words".to_owned(),
        Some(("words", length)) => format!("runs of {length} words"),
        Some(("chars", length)) => format!("runs of {length} characters"),
        _ => "features".to_owned(),
    }
}

/// Returns advice on the next step.
pub(super) fn advice(summary: &DedupSummary) -> &'static str {
    match summary.decisions.removed() {
        0 if summary.threshold == 0.0 => {
            "If copies should have been found, ask why two of them are not near-duplicates."
        }
        0 => {
            "If copies should have been found, look at the pairs just below the threshold, and lower it."
        }
        _ if summary.threshold == 0.0 => {
            "Before you go on, compare some removed records with the ones kept for them, below."
        }
        _ => {
            "Before you go on, compare some removed records with the ones kept for them, below, those of the lowest similarity first. Are there \
             records among them that you want? Raise the threshold. Are there copies among the pairs just below it? Lower it."
        }
    }
}

/// Describes the search for near copies.
pub(super) fn method(summary: &DedupSummary) -> String {
    let mut least = format!("{} or more", threshold(summary.threshold));
    if !summary.and.is_empty() {
        least += &format!(" that also pass {}", summary.and.join(" and "));
    }
    let found = match summary.method.as_str() {
        "allpairs" if summary.threshold == 0.0 => format!(
            "All pairs of records that have some {} in common were tested exactly, without sketches.",
            units(&summary.scheme)
        ),
        "allpairs" => format!(
            "All pairs of records with a resemblance of {least} were searched for exactly, without sketches."
        ),
        "minhash" => format!(
            "MinHash signatures in bands proposed pairs; those with a resemblance of {least} count as near copies."
        ),
        "super-shingle" => format!(
            "Records that share super-shingles were proposed; those with a resemblance of {least} count as near copies."
        ),
        "simhash" => format!(
            "Records whose simhash fingerprints differ in at most {} bits were proposed; those with a resemblance of {least} count as near copies.",
            summary.distance.unwrap_or_default()
        ),
        "exact" => "Only exact copies were looked for.".to_owned(),
        other => format!(
            "Records whose {other} sketches agree were proposed; those with a resemblance of {least} count as near copies."
        ),
    };
    found + &limits(summary)
}

/// Describes the pairs that do not count, whatever their resemblance is.
fn limits(summary: &DedupSummary) -> String {
    let category = summary.category.as_deref().unwrap_or_default();
    let mut limits = match summary.scope {
        PairScope::Everything => String::new(),
        PairScope::Within => format!(" Only records with the same {category} were compared."),
        PairScope::Across => format!(" Only records that differ in {category} were compared."),
    };
    if let Some(least) = summary.lengths {
        limits += &format!(
            " Different texts count only if the shorter one has at least {} of the length of the other.",
            probability(least)
        );
    }
    limits
}

/// States whether the similarities are exact or estimated.
pub(super) fn verification(summary: &DedupSummary) -> &'static str {
    match (summary.method.as_str(), summary.verified) {
        ("exact", _) => "Exact copies have equal texts, as a reader sees them.",
        (_, true) if summary.threshold == 0.0 => {
            "Verified: every near copy passes the further tests with a kept record, by exact comparison."
        }
        (_, true) => {
            "Verified: for every near copy the true resemblance to a kept record was computed and is at or above the threshold."
        }
        (_, false) if summary.threshold == 0.0 => {
            "Not verified: the method's own rule decided. True resemblances were computed and are reported, but removed records may not \
             be copies."
        }
        (_, false) => {
            "Not verified: similarities are estimates, and some removed records may not be copies."
        }
    }
}

/// States the share of the pairs that the candidate search finds. `None` for exact copies only.
pub(super) fn recall(summary: &DedupSummary) -> Option<String> {
    match (summary.method.as_str(), summary.recall) {
        ("exact", _) => None,
        (_, Some(recall)) if recall >= 1.0 => {
            let limited = match limits(summary).is_empty() && summary.and.is_empty() {
                true => "",
                false => " that meets these conditions",
            };
            Some(format!(
                "Complete: no pair at or above the threshold{limited} is missed."
            ))
        }
        (method, Some(recall)) => Some(format!(
            "A pair exactly at the threshold is found with a probability of {}{}, a more similar one with a higher one.",
            probability(recall),
            match method {
                "oph" => " if the texts have many features",
                _ => "",
            }
        )),
        (_, None) => {
            Some("The share of similar pairs that this method misses is not stated.".to_owned())
        }
    }
}

/// Returns caveats, each as a sentence.
pub(super) fn caveats(summary: &DedupSummary) -> Vec<String> {
    let counts = &summary.counts;
    let mut caveats = vec![
        "Similarity compares words, not meaning: a paraphrase or a translation is not a copy, and a template filled with other facts \
         may be one.".to_owned(),
    ];
    // Records without a text field are among the notes.
    let empty = counts.empty - counts.missing_text;
    if empty > 0 {
        caveats.push(format!(
            "{} without any text: kept, never a duplicate.",
            counted(empty, "record is", "records are")
        ));
    }
    if counts.too_long > 0 {
        caveats.push(format!(
            "{} longer than the limit for one document: compared for equal bytes only, never called near copies.",
            counted(counts.too_long, "record is", "records are")
        ));
    }
    let notes = counts.field_notes().into_iter();
    caveats.extend(notes.map(|note| note + "."));
    if counts.without_features > 0 {
        caveats.push(format!(
            "{} without words to compare: compared for exact equality only, never called near copies.",
            counted(counts.without_features, "text is", "texts are")
        ));
    }
    if counts.homoglyphs > 0 {
        caveats.push(format!(
            "{} words that mix look-alike letters of Latin, Greek and Cyrillic: compared as they are, so what they were copied from may not be found.",
            counted(counts.homoglyphs, "record has", "records have")
        ));
    }
    if let Some(taken) = counts.boilerplate.as_ref().filter(|taken| taken.lines > 0) {
        caveats.push(format!(
            "Lines that recur on many pages do not count as text: {} removed from {} before anything was compared, and the texts below do \
             not show them.",
            counted(taken.lines, "was", "were"),
            counted(taken.documents, "record", "records")
        ));
    }
    caveats.extend(of_pages(summary));
    caveats.extend(of_skips(summary));
    let skipped_files = summary.written.skipped_files;
    if skipped_files > 0 {
        caveats.push(format!(
            "{} in skipped/, neither kept nor removed.",
            counted(
                skipped_files,
                "file that could not be read at all is",
                "files that could not be read at all are"
            )
        ));
    }
    caveats
}

/// Returns notes on skipped input: what is missing, and what was read all the same.
fn of_skips(summary: &DedupSummary) -> impl Iterator<Item = String> {
    let sum = |lost| -> u64 {
        let rows = summary.skipped.iter().filter(|row| row.is_loss() == lost);
        rows.map(|row| row.count).sum()
    };
    let (lost, passed) = (sum(true), sum(false));
    let one = "record or file could not be read, or not to its end: it is";
    let many = "records or files could not be read, or not to their end: they are";
    let lost = (lost > 0).then(|| {
        let parts = counted(lost, one, many);
        format!("{parts} listed below, and documents may be missing.")
    });
    let one = "part of the input was passed over, or read in spite of a fault: it is";
    let many = "parts of the input were passed over, or read in spite of a fault: they are";
    let passed = (passed > 0).then(|| format!("{} listed below.", counted(passed, one, many)));
    lost.into_iter().chain(passed)
}

/// Returns notes on main texts.
fn of_pages(summary: &DedupSummary) -> Vec<String> {
    let decisions = &summary.decisions;
    let mut caveats = Vec::new();
    if let Some(LargestCluster { survivor, removed }) = decisions.dominant_cluster() {
        caveats.push(format!(
            "{} of {} removed records are in one cluster, that of {survivor}: this happens when one text was copied very often, and when a \
             template is taken for the text. Compare some of them before you trust the rest.",
            count(*removed),
            count(decisions.removed())
        ));
    }
    if let Some(html) = summary.counts.html.filter(|html| html.pages > 0) {
        caveats.push(main_content(html));
        if html.nearly_empty > 0 {
            caveats.push(format!(
                "{} less than 100 bytes of text, as if scripts drew the rest: equal ones are exact copies, whatever their titles.",
                counted(html.nearly_empty, "page has", "pages have")
            ));
        }
    }
    if decisions.removed_same_main_text > 0 {
        caveats.push(format!(
            "{} the main text of the kept page, but other visible text around it.",
            counted(
                decisions.removed_same_main_text,
                "near copy has",
                "near copies have"
            )
        ));
    }
    if decisions.kept_as_pages > 0 {
        caveats.push(format!(
            "{} a main text that resembles that of a kept page, but other text around it: kept.",
            counted(decisions.kept_as_pages, "page has", "pages have")
        ));
    }
    caveats
}

fn main_content(html: PageCounts) -> String {
    let compared = format!(
        "Of {} HTML pages the main content was compared, and the rest of the visible text only where the main content is similar",
        count(html.pages)
    );
    match html.fallbacks() {
        0 => format!("{compared}."),
        fallen_back => format!(
            "{compared}; {} of them had almost none, or it was not what the page is about, so more of their text was compared.",
            count(fallen_back)
        ),
    }
}

/// Formats a count with the words behind it: `1 record has`, `2 records have`.
fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", count(number)),
    }
}

//! Summaries of jobs over shared chunks.

use std::path::Path;

use lookalike_batch::MeasuredCost;

use lookalike_batch::overlap::{AtlasSummary, ChunkingSummary, CoarseFigures, OverlapSummary};

use crate::size::show;

use super::lines::{
    cost, counted, grouped, input, line, notes, on_disk, print_notable_counts_with, share, skipped,
    texts,
};

/// Prints the summary of `overlap`.
pub(crate) fn overlap_summary(summary: &OverlapSummary, measured: &MeasuredCost) {
    let counts = &summary.counts;
    input(counts.documents, "document", counts.input_bytes);
    texts(counts, Some(summary.shared_texts));
    notes([
        (
            summary.pages_again,
            "of these have the URL or id of another: the same page, read again",
        ),
        (
            summary.same_page,
            "that overlap have the same URL or id: not copies, not listed",
        ),
    ]);
    if summary.servers > 0 {
        let without = match summary.without_server {
            0 => String::new(),
            1 => "; 1 document has none".to_owned(),
            without => format!("; {} documents have none", grouped(without)),
        };
        line!("servers", "{}{without}", grouped(summary.servers));
    }
    summary.chunkings.iter().for_each(chunking_summary);
    print_notable_counts_with(
        counts,
        "with an empty text: they share nothing",
        "longer than --max-document: without chunks",
    );
    skipped(&summary.skipped);
    cost(measured);
    on_disk(counts.tables_on_disk);
}

/// Prints the summary of `overlap -o`.
pub(crate) fn atlas_summary(summary: &AtlasSummary, folder: &Path) {
    let counts = &summary.overlap.counts;
    for level in &summary.levels {
        line!(
            &level.level,
            "{} of {} saved ({}), {} of {} of text",
            grouped(level.visits_saved),
            counted(counts.documents, "document"),
            share(level.visits_saved, counts.documents),
            show(level.bytes_saved),
            show(counts.text_bytes)
        );
    }
    line!(
        "skip",
        "{} of {} pages need no visit (documents with one URL are one page)",
        grouped(summary.skip),
        grouped(summary.pages)
    );
    overlap_summary(&summary.overlap, &summary.measured);
    if summary.overlap.shared_texts > 0 {
        let sets = counted(summary.overlap.shared_texts, "set");
        line!("copies", "{sets} of equal text, in copies.jsonl");
    }
    line!(
        "mirrors",
        "{} of {} on several servers, {}{}",
        counted(summary.mirrored_sets, "page set"),
        counted(summary.mirrored_pages, "page"),
        match summary.aliases {
            1 => "1 alias".to_owned(),
            aliases => format!("{} aliases", grouped(aliases)),
        },
        match summary.apart_by_address {
            0 => String::new(),
            1 => "; 1 server is not one, by its address".to_owned(),
            apart => format!("; {} servers are not, by their addresses", grouped(apart)),
        }
    );
    line!("results", "{} (open atlas.html)", folder.display());
}

fn chunking_summary(chunking: &ChunkingSummary) {
    line!(&chunking.chunking, "{}", counted(chunking.rows, "row"));
    line!(
        "",
        "{}, {} of them shared; engine {} ({})",
        counted(chunking.distinct_chunks, "chunk"),
        grouped(chunking.shared_chunks),
        chunking.engine,
        chunking.why
    );
    if let Some(coarse) = &chunking.coarse {
        coarse_figures(coarse, chunking.passes);
    }
    if chunking.common_chunks > 0 {
        line!(
            "",
            "{} in more than {} units each, deferred and counted exactly afterwards",
            counted(chunking.common_chunks, "chunk"),
            grouped(u64::from(chunking.common_above))
        );
    }
    // Less would be shown as 0.000.
    if chunking.expected_collisions >= 1e-3 {
        line!(
            "",
            "{:.3} pairs of different chunks are expected to share a fingerprint",
            chunking.expected_collisions
        );
    }
}

/// Prints the findings of the pilot of coarse counting, and the effect of its choice.
fn coarse_figures(coarse: &CoarseFigures, passes: u64) {
    line!(
        "",
        "pilot: {} and {}; expected of all: {}, of which {} may share enough chunks",
        counted(coarse.pilot_units, "unit"),
        counted(coarse.pilot_pairs, "pair"),
        counted(coarse.expected_pairs, "pair"),
        grouped(coarse.expected_enough)
    );
    let counters = match coarse.hashes {
        0 => "no coarse counters: they would not pay off".to_owned(),
        hashes => format!(
            "{} of each pair in {} of counters",
            match hashes {
                // `counted` only adds an `s`.
                1 => "1 hash".to_owned(),
                hashes => format!("{hashes} hashes"),
            },
            show(coarse.counters)
        ),
    };
    line!(
        "",
        "{counters}; {} counted exactly ({} expected) in {}{}",
        counted(coarse.candidates, "candidate"),
        grouped(coarse.expected_candidates),
        match passes {
            1 => "1 pass".to_owned(),
            passes => format!("{} passes", grouped(passes)),
        },
        match coarse.halved {
            0 => String::new(),
            halved => format!("; {} did not fit", counted(halved, "range")),
        }
    );
}

//! Words for the files beside the report, and for what was skipped.

/// Describes results that a reader may look for, the most important first.
pub(super) fn results(names: &[String]) -> Vec<(String, &'static str)> {
    // Folders contain unchanged files; all other results have an ending.
    let stems = [
        ("kept", "the kept records: use these from now on"),
        ("kept/", "the kept files: use these from now on"),
        ("removed", "the removed records, in case you want one back"),
        ("removed/", "the removed files, in case you want one back"),
        (
            "clusters",
            "for each kept record the ids of those removed for it, and why",
        ),
        ("pairs", "pairs of copies, with the similarity of each"),
        (
            "annotations",
            "the decision on each record, in the order of the input",
        ),
        (
            "skipped",
            "each thing that was not read, or only in part, and why",
        ),
        ("skipped/", "copies of the files of which nothing was read"),
        ("run", "the numbers of this report and more, for programs"),
    ];
    let mut rows = Vec::new();
    for (stem, what) in stems {
        for name in names {
            let name = match name.contains('.') {
                true => name.clone(),
                false => format!("{name}/"),
            };
            if name.split('.').next() == Some(stem) {
                rows.push((name, what));
            }
        }
    }
    rows
}

/// Describes a kind of skipped parts for a reader; `kind` itself is a word for programs.
pub(super) fn reason(kind: &str) -> String {
    let reason = match kind {
        "unsupported" => "file in an unsupported format",
        "binary" => "file that is not text",
        "duplicate" => "file that was named twice, read once",
        "loop" => "link to a folder above it",
        "not-a-file" => "pipe, socket or device",
        "hidden" => "hidden file or folder",
        "excluded" => "file or folder that was to be left out",
        "bookkeeping" => "file or folder that Spark, Hive or Delta Lake keeps about a table",
        "outside" => "link out of the folder",
        "unreadable" => "file that could not be opened or read",
        "damaged" => "compressed data that ends early or is corrupt: read up to that point",
        "warcinfo" => "description of a web archive",
        "request" => "request in a web archive, not a page",
        "metadata" => "metadata in a web archive, not a page",
        "revisit" => "page of a web archive that has not changed since it was last stored",
        "other-record" => "record of a web archive that is not a page",
        "http-status" => "redirect or error of a web server, not a page",
        "not-text" => "image, script or other content that is not text",
        "raw-body" => "page that is not encoded as its header says: read as it is",
        "cut-body" => "page that is truncated: read up to that point",
        "shared-member" => "several records compressed as one: all were read",
        "swallowed-rows" => "quoted value whose lines look like rows: read as one row",
        "repeated-column" => "column with the name of an earlier one: read under another name",
        "results-folder" => "folder with results of a job",
        "output-folder" => "the folder of these results",
        "invalid-json" => "line that is not JSON",
        "not-an-object" => "line of JSON that is not an object",
        "wrong-type" => "id or text of another type than expected",
        "bomb" => "file that decompresses to an implausible size",
        "broken" => "record that ends early, or has a wrong length",
        "conversion" => "file that could not be turned into text",
        "fields" => "row with more or fewer fields than there are columns",
        other => return other.replace('-', " "),
    };
    reason.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_tells_what_each_result_is_and_the_kept_records_come_first() {
        let names = [
            "clusters.jsonl",
            "kept",
            "kept.jsonl.gz",
            "other",
            "removed.jsonl.gz",
            "run.json",
        ];
        let rows = results(&names.map(str::to_owned));
        let shown: Vec<&str> = rows.iter().map(|row| &*row.0).collect();
        assert_eq!(
            shown,
            [
                "kept.jsonl.gz",
                "kept/",
                "removed.jsonl.gz",
                "clusters.jsonl",
                "run.json"
            ]
        );
        assert!(rows[0].1.contains("records") && rows[1].1.contains("files"));
    }

    #[test]
    fn every_reason_for_skipping_is_told_in_words_of_its_own() {
        for kind in ["raw-body", "http-status", "broken", "fields"] {
            assert_ne!(reason(kind), kind.replace('-', " "));
        }
        assert_eq!(reason("brand-new"), "brand new");
    }
}

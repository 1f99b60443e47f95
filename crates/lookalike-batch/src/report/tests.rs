//! The page: its contents, and its protection against hostile data.

use sha2::{Digest, Sha256};

use super::*;
use crate::dedup::counts::{DecisionCounts, InputCounts, LargestCluster, WrittenBytes};
use crate::dedup::pages::PageCounts;
use crate::dedup::summary::{BelowThreshold, DedupSummary};
use crate::observer::MeasuredCost;
use crate::overlap::AtlasSummary;
use crate::settings::PairScope;
use crate::skipped::{LossExtent, SkippedRow};

const OLD: &str = "The lamp stands at the window.\nIts light was seen by all who came late.\n\nNobody knew who lit it.";
const NEW: &str = "The lamp stands at the window.\nIts light was seen by few who came late.\n\nNobody knew who lit it.\nIt burns yet.";

fn cluster(survivor: &str, a_text: &str, b_text: &str) -> ClusterRow {
    let example = ReportExample {
        a_id: survivor.to_owned(),
        b_id: "copy".to_owned(),
        similarity: 0.87,
        a_text: a_text.to_owned(),
        b_text: b_text.to_owned(),
        cut: false,
        whole_pages: false,
    };
    ClusterRow {
        survivor: survivor.to_owned(),
        members: 3,
        exact: 1,
        lowest_similarity: 0.87,
        bytes_saved: 2048,
        sample_ids: vec!["copy".to_owned(), "twin".to_owned()],
        example: Some(example),
    }
}

/// The contents of a page.
struct TestReport {
    summary: DedupSummary,
    data: ReportData,
    names: Vec<String>,
}

fn report() -> TestReport {
    let summary = DedupSummary {
        command: "lookalike dedup lamps -o out".to_owned(),
        method: "minhash".to_owned(),
        threshold: 0.8,
        scheme: "lookalike/1 shingle=words:5".to_owned(),
        scheme_id: "0123456789abcdef".to_owned(),
        version: "0.1.0",
        verified: true,
        recall: Some(0.9995),
        counts: InputCounts {
            documents: 12_345,
            empty: 2,
            keep_missing: 3,
            without_features: 1,
            input_bytes: 5 << 20,
            text_bytes: 8 << 20,
            ..InputCounts::default()
        },
        decisions: DecisionCounts {
            kept: 10_035,
            removed_exact: 1_900,
            removed_near: 410,
            clusters: 900,
            removed_text_bytes: 1 << 20,
            ..DecisionCounts::default()
        },
        measured: MeasuredCost {
            stages: vec![("read", 1.5, 2.5), ("verify", 0.5, 0.9)],
            peak_memory: 64 << 20,
        },
        skipped: vec![skipped("invalid-json", 3, LossExtent::Unknown)],
        written: WrittenBytes {
            kept: 7 << 20,
            removed: 2 << 20,
            ..WrittenBytes::default()
        },
        below_threshold: BelowThreshold {
            from: 0.8,
            ..BelowThreshold::default()
        },
        ..DedupSummary::default()
    };
    let data = ReportData {
        title: "Lamps".to_owned(),
        inputs: vec![InputRow {
            name: "lamps.jsonl".to_owned(),
            format: "jsonl".to_owned(),
            records: 12_345,
            bytes: 5 << 20,
            removed: 2_310,
        }],
        cluster_sizes: vec![("2".to_owned(), 700), ("3-4".to_owned(), 200)],
        similarities: vec![10, 0, 0, 400],
        similarity_from: 0.8,
        largest: vec![cluster("first", OLD, NEW)],
        ..ReportData::default()
    };
    TestReport {
        summary,
        data,
        names: vec!["kept.jsonl".to_owned()],
    }
}

fn skipped(kind: &str, count: u64, loss: LossExtent) -> SkippedRow {
    SkippedRow {
        kind: kind.to_owned(),
        count,
        loss,
        first: "lamps.jsonl line 7".to_owned(),
    }
}

impl TestReport {
    fn page(&self) -> String {
        render(&self.summary, &self.data, &self.names).expect("the template fits the data")
    }
}

/// Returns the page after a change.
fn page(change: impl FnOnce(&mut TestReport)) -> String {
    let mut report = report();
    change(&mut report);
    report.page()
}

/// Returns the part of the page between two marks.
fn between<'p>(page: &'p str, open: &str, close: &str) -> &'p str {
    let start = page.find(open).expect("opening mark") + open.len();
    &page[start..start + page[start..].find(close).expect("closing mark")]
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |chunk: &[u8]| -> String {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        let digit = |place: usize| match place <= chunk.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]),
            false => '=',
        };
        (0..4).map(digit).collect()
    };
    bytes.chunks(3).map(digits).collect()
}

#[test]
fn policy_allows_the_style_and_the_script_of_the_page_only() {
    let page = page(|_| ());
    let policy = between(
        &page,
        "http-equiv=\"Content-Security-Policy\" content=\"",
        "\"",
    );
    for (open, close, directive) in [
        ("<style>", "</style>", "style-src"),
        ("<script>", "</script>", "script-src"),
    ] {
        let hash = base64(&Sha256::digest(between(&page, open, close)));
        assert!(
            policy.contains(&format!("{directive} 'sha256-{hash}';")),
            "{directive} wants sha256-{hash}"
        );
    }
    assert!(policy.starts_with("default-src 'none';"));
    assert!(
        !page.contains("style=\"") && !page.contains(" onclick"),
        "the policy forbids inline attributes"
    );
}

#[test]
fn page_says_the_result_in_one_sentence() {
    let page = page(|_| ());
    let headline = between(&page, "<p class=\"headline\">", "</p>");
    assert_eq!(
        headline,
        "2,310 of 12,345 records are removed: 1,900 exact copies and 410 near copies. 10,035 are kept."
    );
}

#[test]
fn page_loads_nothing() {
    let page = page(|_| ());
    for word in [
        "http://", "https://", "src=\"", "url(", "@import", "<iframe", "<object",
    ] {
        assert!(!page.contains(word), "{word} in the page");
    }
}

#[test]
fn page_states_verification_recall_and_what_was_not_compared() {
    let shown = page(|_| ());
    for words in [
        "Verified:",
        "99.95%",
        "2 records are without any text: kept, never a duplicate",
        "3 records without a value for the survivor rule",
        "1 text is without words",
        "3 records or files could not be read",
        "Resemblance: of all different runs of 5 words in the two texts, the share that is in both.",
    ] {
        assert!(shown.contains(words), "{words} missing");
    }
    let unverified = page(|report| {
        report.summary.verified = false;
        report.summary.recall = None;
    });
    assert!(unverified.contains("Not verified:") && unverified.contains("is not stated"));
    assert!(!unverified.contains("Verified:"));
    let complete = page(|report| {
        report.summary.method = "allpairs".to_owned();
        report.summary.recall = Some(1.0);
    });
    assert!(complete.contains("no pair at or above the threshold is missed"));
}

#[test]
fn page_claimed_completeness_without_the_limits_of_the_job() {
    let limited = page(|report| {
        let summary = &mut report.summary;
        (summary.method, summary.recall) = ("allpairs".to_owned(), Some(1.0));
        (summary.scope, summary.category) = (PairScope::Within, Some("lang".to_owned()));
        (summary.lengths, summary.threshold) = (Some(0.99), 1e-9);
        summary.and = vec!["containment:words:8:0.5".to_owned()];
    });
    for words in [
        "at least 0.000000001, the threshold, to one, and passes containment:words:8:0.5 with it.",
        "a resemblance of 0.000000001 or more that also pass containment:words:8:0.5 were searched",
        "Only records with the same lang were compared.",
        "the shorter one has at least 99% of the length of the other",
        "no pair at or above the threshold that meets these conditions is missed",
    ] {
        assert!(limited.contains(words), "{words} missing");
    }
    let hashed = page(|report| report.summary.method = "oph".to_owned());
    assert!(hashed.contains("99.95% if the texts have many features"));
    let distance = page(|report| {
        report.summary.method = "simhash".to_owned();
        report.summary.distance = Some(7);
    });
    assert!(distance.contains("differ in at most 7 bits"));
}

#[test]
fn the_survivor_is_not_among_the_removed_members() {
    let two = page(|_| ());
    assert!(!two.contains("more</li>"), "two samples, two removed");
    let more = page(|report| report.data.largest[0].members = 25);
    assert!(more.contains("and 22 more</li>"));
}

#[test]
fn what_is_just_below_the_threshold_is_drawn_and_shown() {
    let row = |example| BelowThresholdRow {
        a_id: "wanted".to_owned(),
        b_id: "nearly".to_owned(),
        similarity: 0.799_9,
        example,
    };
    let below = page(|report| {
        report.summary.below_threshold.from = 0.7;
        report.data.below = vec![0, 0, 0, 0, 0, 0, 0, 0, 3, 40];
        report.data.similarities = vec![0; 20];
        report.data.closest = vec![row(cluster("wanted", OLD, NEW).example); 10];
    });
    let words = [
        "43 kept records have a similarity between 0.70 and 0.80",
        "The 10 most similar pairs:",
        ">nearly<",
        "0.799",
        "class=\"threshold\"",
        "0.79 to 0.80",
    ];
    for words in words {
        assert!(below.contains(words), "{words} missing");
    }
    assert!(!below.contains("sample"));
    let sampled = page(|report| {
        let sample = &mut report.summary.below_threshold;
        (sample.from, sample.sampled, sample.texts) = (0.7, 4096, 70_000);
        report.data.below = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1750];
        report.data.similarities = vec![0; 20];
        report.data.closest = vec![row(None)];
    });
    let words = [
        "estimated from a sample of 4,096.",
        "By a sample of 4,096 of the 70,000 different kept texts, about 1,750 kept records have",
        "The most similar pair of the sample:",
    ];
    for words in words {
        assert!(sampled.contains(words), "{words} missing");
    }
    let none = page(|_| ());
    assert!(!none.contains("Just below") && !none.contains("class=\"threshold\""));
}

#[test]
fn hostile_strings_are_harmless_wherever_they_stand() {
    let hostile = "<script>alert(1)</script>\"'>&\u{202e}evil\0\0\u{1b}[2J{{ d }}";
    let page = page(|report| {
        let TestReport {
            summary,
            data,
            names,
        } = report;
        let (input, skip) = (&mut data.inputs[0], &mut summary.skipped[0]);
        let fields = [
            &mut data.title,
            &mut summary.command,
            &mut summary.method,
            &mut summary.scheme,
            &mut summary.scheme_id,
            &mut input.name,
            &mut input.format,
            &mut names[0],
            &mut skip.kind,
            &mut skip.first,
            &mut data.cluster_sizes[0].0,
        ];
        fields.into_iter().for_each(|field| field.push_str(hostile));
        data.largest = vec![cluster(hostile, hostile, &format!("{hostile} {OLD}"))];
        data.largest[0].sample_ids = vec![hostile.to_owned()];
    });
    assert_eq!(page.matches("<script").count(), 1, "only our own script");
    assert!(!page.contains(['\0', '\u{1b}', '\u{202e}']));
    assert!(page.contains(
        "<span class=\"hid\">U+202E</span>evil<span class=\"hid\">U+0000 \u{d7}2</span>"
    ));
    assert!(page.contains("{{ d }}"), "data is not template text");
    let title = between(&page, "<title>", "</title>");
    assert!(title.contains("[U+202E]evil[U+0000 \u{d7}2]") && !title.contains('<'));
}

#[test]
fn long_lists_are_cut_and_the_rest_is_counted() {
    let input = |n: usize| InputRow {
        name: format!("file-{n}"),
        records: 2,
        ..InputRow::default()
    };
    let page = page(|report| {
        report.data.inputs = (0..1007).map(input).collect();
        let largest = (0..40).map(|n| cluster(&format!("survivor-{n}"), OLD, NEW));
        report.data.largest = largest.collect();
    });
    assert!(page.contains(">file-999<") && !page.contains("file-1000"));
    assert!(page.contains(">7 more<") && page.contains("<td class=\"num\">14</td>"));
    assert!(page.contains(">survivor-29<") && !page.contains("survivor-30"));
    assert!(page.contains("The 30 largest of 900 clusters"));
}

#[test]
fn empty_job_makes_a_page() {
    let page = render(&DedupSummary::default(), &ReportData::default(), &[]).unwrap();
    for words in [
        "No record was read.",
        "Nothing was skipped.",
        "No input was read.",
    ] {
        assert!(page.contains(words), "{words} missing");
    }
    assert!(!page.contains("NaN"));
    // The page must not claim anything about copies if nothing was compared.
    assert!(!page.contains("Verified") && !page.contains("Complete"));
}

#[test]
fn example_shows_changed_words_of_both_sides() {
    let page = page(|_| ());
    assert!(page.contains("by <ins>all</ins> who") && page.contains("by <del>few</del> who"));
    assert!(page.contains("<del>It burns yet.</del>"));
}

/// Readers take the colour and sign of removed text as removal, so kept text must never have them.
#[test]
fn a_kept_text_is_never_marked_as_removed() {
    let row = BelowThresholdRow {
        a_id: "wanted".to_owned(),
        b_id: "nearly".to_owned(),
        similarity: 0.79,
        example: cluster("wanted", OLD, NEW).example,
    };
    let page = page(|report| {
        report.summary.below_threshold.from = 0.7;
        report.data.below = vec![1];
        report.data.closest = vec![row];
        report.data.largest.clear();
    });
    assert!(page.contains("by <ins>all</ins> who") && page.contains("by <ins>few</ins> who"));
    assert!(!page.contains("<del>") && !page.contains("hit del"));
}

#[test]
fn one_of_a_kind_is_told_in_the_singular() {
    let counts = |removed_exact, removed_near| DecisionCounts {
        kept: 1,
        removed_exact,
        removed_near,
        clusters: 1,
        removed_same_main_text: 1,
        kept_as_pages: 1,
        ..DecisionCounts::default()
    };
    let one = page(|report| {
        report.summary.counts.documents = 2;
        report.summary.decisions = counts(0, 1);
    });
    assert!(one.contains("1 of 2 records is removed: 1 near copy. 1 is kept."));
    let one = page(|report| report.summary.decisions = counts(1, 0));
    for said in [
        "1 near copy has the main text",
        "1 page has a main text",
        "The only cluster",
        "1 cluster. ",
        "1 exact copy is not drawn",
    ] {
        assert!(one.contains(said), "{said}");
    }
}

/// A body in an unusual encoding was read all the same.
#[test]
fn what_was_read_with_a_fault_is_not_told_as_missing() {
    let page =
        page(|report| report.summary.skipped = vec![skipped("raw-body", 87, LossExtent::None)]);
    assert!(page.contains("87 parts of the input were passed over, or read in spite of a fault"));
    assert!(!page.contains("could not be read") && page.contains("<td>no</td>"));
}

#[test]
fn empty_sizes_of_clusters_are_left_out() {
    let page = page(|report| {
        report.data.cluster_sizes = vec![("2".to_owned(), 0), ("258-513".to_owned(), 1)];
    });
    assert!(page.contains(">258-513<") && !page.contains("<th scope=\"row\" class=\"num\">2</th>"));
}

#[test]
fn example_of_equal_texts_says_so() {
    let equal = page(|report| report.data.largest = vec![cluster("x", OLD, OLD)]);
    assert!(equal.contains("The two texts are equal."));
    let wrapped = OLD.replace(' ', "\n");
    let spaces = page(|report| report.data.largest = vec![cluster("x", OLD, &wrapped)]);
    assert!(!spaces.contains("<ins>") && !spaces.contains("<del>"));
}

#[test]
fn figures_are_cut_not_rounded() {
    use super::figure::*;
    assert_eq!(similarity(0.799_96), "0.799");
    assert_eq!(similarity(0.8), "0.800");
    assert_eq!(probability(0.999_99), "99.99%");
    assert_eq!(probability(1.0), "100%");
    assert_eq!(threshold(0.8), "0.80");
    assert_eq!(threshold(0.925), "0.925");
    assert_eq!(
        (threshold(1e-9), bin_end(0.05 + 1e-9)),
        ("0.000000001".to_owned(), "0.05".to_owned())
    );
    assert_eq!(count(1_234_567), "1,234,567");
    assert_eq!(bytes(1023), "1023 B");
    assert_eq!(bytes(1536), "1.50 KiB");
    assert_eq!(bytes(u64::MAX), "16.0 EiB");
    assert_eq!(share(1, 1_000_000), "<0.1%");
    assert_eq!(share(999_999, 1_000_000), ">99.9%");
    assert_eq!(seconds(302.0), "5 min 02 s");
}

fn empty_atlas(summary: &AtlasSummary) -> super::atlas::AtlasPage<'_> {
    super::atlas::AtlasPage {
        summary,
        map_servers: Vec::new(),
        map_documents: Vec::new(),
        map: Vec::new(),
        map_chunking: "",
        server_rows: Vec::new(),
        all_server_rows: 0,
        mirrors: Vec::new(),
        aliases: Vec::new(),
        settings: Vec::new(),
    }
}

#[test]
fn the_policy_of_the_atlas_allows_its_own_styles_and_script_only() {
    let summary = AtlasSummary::default();
    let page = super::atlas::render(&empty_atlas(&summary)).expect("the template fits the data");
    let policy = between(
        &page,
        "http-equiv=\"Content-Security-Policy\" content=\"",
        "\"",
    );
    for content in [
        super::page::STYLE,
        super::atlas::ATLAS_STYLE,
        super::atlas::ATLAS_SCRIPT,
    ] {
        let hash = base64(&Sha256::digest(content));
        assert!(
            policy.contains(&format!("'sha256-{hash}'")),
            "sha256-{hash} is wanted"
        );
        assert!(page.contains(content));
    }
    assert!(policy.starts_with("default-src 'none';"));
    assert!(!page.contains("style=\"") && !page.contains(" onclick"));
}

#[test]
fn hostile_names_do_not_act_on_the_atlas() {
    let mut summary = AtlasSummary::default();
    (summary.overlap.counts.documents, summary.overlap.servers) = (1, 1);
    let mut data = empty_atlas(&summary);
    let name = "<script>alert(1)</script>\u{202e}\"";
    data.server_rows.push(minijinja::context! {
        a => name,
        b => name,
        shared => 1,
        containment_a => 1.0,
        containment_b => 0.5,
    });
    let page = super::atlas::render(&data).expect("the template fits the data");
    assert!(!page.contains("<script>alert") && !page.contains('\u{202e}'));
    assert!(page.contains("50.0%"));
}

#[test]
fn the_page_of_an_explanation_allows_its_styles_and_no_script() {
    use super::explanation::{OWN_STYLE, POLICY};
    let settings = crate::JobSettings::default();
    let texts = [
        "one two three four five six seven",
        "one two three four five six eight",
    ];
    let fields = lookalike::DocumentFields::default();
    let document = |name, text| crate::explain::ExplainedDocument {
        name,
        text,
        visible: None,
        fields: &fields,
        category: None,
    };
    let both = [document("a", texts[0]), document("b", texts[1])];
    let told = crate::explain::explain(both, &settings, 5).unwrap();
    let page = super::render_explanation(&told, texts, "lookalike explain a b").unwrap();
    for style in [super::page::STYLE, OWN_STYLE] {
        let hash = base64(&Sha256::digest(style));
        assert!(
            POLICY.contains(&format!("'sha256-{hash}'")),
            "sha256-{hash} is wanted"
        );
        assert!(page.contains(style));
    }
    assert!(POLICY.starts_with("default-src 'none';") && !POLICY.contains("script-src"));
    assert!(!page.contains("style=\"") && !page.contains("<script"));
    assert!(page.contains("In both <small>2</small>"));
}

#[test]
fn page_warns_of_a_cluster_that_holds_most_removals() {
    let alert = "are in one cluster, that of";
    assert!(!page(|_| ()).contains(alert));
    let page = page(|report| {
        let decisions = &mut report.summary.decisions;
        decisions.largest_cluster = Some(LargestCluster {
            survivor: "first".to_owned(),
            removed: 2_000,
        });
        (decisions.removed_same_main_text, decisions.kept_as_pages) = (17, 5);
        report.summary.counts.html = Some(PageCounts {
            pages: 12_000,
            little_content: 31,
            nearly_empty: 7,
            ..PageCounts::default()
        });
    });
    for said in [
        "2,000 of 2,310 removed records are in one cluster, that of first",
        "31 of them had almost none",
        "7 pages have less than 100 bytes of text",
        "17 near copies have the main text of the kept page",
        "5 pages have a main text that resembles that of a kept page",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

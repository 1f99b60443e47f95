//! The job, compared with a slow version of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;

use lookalike_corpus::{InputOptions, Inputs, ReadError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::job::{LinkInversion, LinksSummary};
use crate::error::BatchError;
use crate::observer::{JobObserver, JobStage};
use crate::record_scan::RecordScan;
use crate::settings::JobLimits;

/// A page by its number with its links: number and text, with a word before and after.
type LinkingPage = (usize, Vec<(usize, String)>);

fn url(page: usize) -> String {
    format!("http://h{}.example/{page}", page % 3)
}

fn html(links: &[(usize, String)]) -> String {
    let link = |(page, text): &(usize, String)| {
        format!("<p>see <a href='{}#x'>{text}</a> now and then", url(*page))
    };
    links.iter().map(link).collect()
}

fn invert(pages: &[LinkingPage], limits: &JobLimits, most: usize) -> (Vec<Value>, LinksSummary) {
    let folder = tempfile::tempdir().unwrap();
    let lines = pages.iter().enumerate().map(|(id, (page, links))| {
        json!({"id": id, "url": url(*page), "html": html(links), "in_links": 7}).to_string() + "\n"
    });
    let file = folder.path().join("in.jsonl");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let options = InputOptions::default().chunk_bytes(300);
    let inputs = Inputs::discover(&[OsString::from(&file)], &options, folder.path()).unwrap();
    let pages = RecordScan::new(&inputs)
        .options(options)
        .limits(limits.clone());
    let job = LinkInversion::new(pages, folder.path())
        .window(1)
        .most(most);
    let mut out = Vec::new();
    let summary = job.write(&mut out).unwrap();
    let lines = std::str::from_utf8(&out).unwrap().lines();
    (
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        summary,
    )
}

/// Computes the fields of every page by looking at all links for each.
fn slowly(pages: &[LinkingPage]) -> Vec<[Value; 3]> {
    let fields = |own: usize| {
        let mut into: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut from = BTreeSet::new();
        for (page, links) in pages {
            for (target, text) in links.iter().filter(|link| link.0 != *page) {
                if *target == own {
                    into.entry(url(*page)).or_default().insert(text.clone());
                }
                if *page == own {
                    from.insert(url(*target));
                }
            }
        }
        let anchor = |text: &String| json!({"text": text, "before": "see", "after": "now"});
        // Texts of one page are ordered by length first, because the encoded length precedes the text.
        let texts = |texts: &BTreeSet<String>| {
            let mut texts: Vec<String> = texts.iter().cloned().collect();
            texts.sort_by_key(|text| (text.len(), text.clone()));
            texts
        };
        let anchors: Vec<Value> = into
            .values()
            .flat_map(texts)
            .map(|text| anchor(&text))
            .collect();
        let sources: Vec<&String> = into.keys().collect();
        [json!(anchors), json!(sources), json!(from)]
    };
    pages.iter().map(|(page, _)| fields(*page)).collect()
}

fn pages() -> impl Strategy<Value = Vec<LinkingPage>> {
    let links = prop::collection::vec((0..12_usize, "[a-c]{1,3}"), 0..6);
    prop::collection::vec((0..9_usize, links), 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_page_gets_what_all_pages_say_of_it(pages in pages(), threads in 1..4_usize) {
        let limits = JobLimits { threads, ..JobLimits::default() };
        let (lines, summary) = invert(&pages, &limits, 1000);
        let expected = slowly(&pages);
        prop_assert_eq!(lines.len(), pages.len());
        for (id, (line, [anchors, in_links, out_links])) in lines.iter().zip(expected).enumerate() {
            prop_assert_eq!(&line["id"], &json!(id));
            prop_assert_eq!(&line["html"], &json!(html(&pages[id].1)));
            prop_assert_eq!(&line["anchors"], &anchors);
            prop_assert_eq!(&line["in_links"], &in_links);
            prop_assert_eq!(&line["out_links"], &out_links);
        }
        prop_assert_eq!(summary.cut, 0);
    }

    #[test]
    fn a_page_keeps_the_same_few_links_for_any_order(pages in pages(), seed in any::<u64>()) {
        let limits = JobLimits::default();
        let mut other: Vec<(usize, LinkingPage)> = pages.iter().cloned().enumerate().collect();
        other.sort_by_key(|(at, _)| (*at as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let order: Vec<usize> = other.iter().map(|(at, _)| *at).collect();
        let other: Vec<LinkingPage> = other.into_iter().map(|(_, page)| page).collect();
        let (a, summary) = invert(&pages, &limits, 2);
        let (b, _) = invert(&other, &limits, 2);
        for (place, at) in order.into_iter().enumerate() {
            for field in ["anchors", "in_links", "out_links"] {
                prop_assert_eq!(&a[at][field], &b[place][field]);
            }
            prop_assert!(a[at]["in_links"].as_array().unwrap().len() <= 2);
        }
        let expected = slowly(&pages);
        let all: usize = expected.iter().map(|fields| fields[1].as_array().unwrap().len()).sum();
        prop_assert!(summary.in_links as usize == all || summary.cut > 0);
    }
}

#[test]
fn links_that_exceed_the_memory_are_sorted_on_disk() {
    let links = |page: usize| {
        let link = |at: usize| ((page * 7 + at * 13) % 600, format!("to {at} of {page}"));
        (0..60).map(link).collect()
    };
    let pages: Vec<LinkingPage> = (0..600).map(|page| (page, links(page))).collect();
    let roomy = JobLimits::default();
    let tight = JobLimits {
        memory: 30 << 20,
        ..roomy
    };
    let (a, one) = invert(&pages, &roomy, 1000);
    let (b, other) = invert(&pages, &tight, 1000);
    assert_eq!(one.temporary_bytes, 0);
    assert!(other.temporary_bytes > 1 << 20, "{other:?}");
    assert!(a == b);
}

#[test]
fn many_records_of_one_address_multiplied_their_links() {
    // Each record of the home page has its own links, so all 400 × 20 links used to be repeated for each of the 400 records.
    let links = |record: usize| (0..20).map(move |at| (1 + record * 20 + at, "to".to_owned()));
    let home = (0..400).map(|record| (0, links(record).collect()));
    let back = (1, vec![(0, "home".to_owned())]);
    let pages: Vec<LinkingPage> = home.chain([back]).collect();
    let limits = JobLimits {
        memory: 30 << 20,
        ..JobLimits::default()
    };
    let (lines, summary) = invert(&pages, &limits, 100);
    assert!(summary.temporary_bytes < 4 << 20, "{summary:?}");
    for line in &lines[..400] {
        assert_eq!(line["in_links"], json!([url(1)]));
        assert_eq!(line["anchors"][0]["text"], json!("home"));
        assert_eq!(line["out_links"], lines[0]["out_links"]);
        assert_eq!(line["out_links"].as_array().unwrap().len(), 100);
    }
    assert_eq!(summary.cut, 400 * (8000 - 100));
}

#[test]
fn anchors_beyond_the_most_were_left_out_uncounted() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (0, (*text).to_owned())).collect();
    let pages: Vec<LinkingPage> = vec![
        (0, Vec::new()),
        (1, texts(&["a", "b", "c"])),
        (2, texts(&["d"])),
        (3, texts(&["e"])),
    ];
    let (lines, summary) = invert(&pages, &JobLimits::default(), 3);
    assert_eq!(lines[0]["anchors"].as_array().unwrap().len(), 3);
    assert_eq!(lines[0]["in_links"].as_array().unwrap().len(), 3);
    assert_eq!(summary.cut, 2);
}

/// Observer that rewrites the file of a job before it is read for a stage, keeping its length and time.
struct PagesChanged {
    file: PathBuf,
    at: JobStage,
}

impl JobObserver for PagesChanged {
    fn stage(&self, stage: JobStage, _: u64) {
        if stage == self.at {
            let time = fs::metadata(&self.file).unwrap().modified().unwrap();
            let lines = fs::read_to_string(&self.file).unwrap();
            fs::write(&self.file, lines.replace("/1", "/2")).unwrap();
            let file = File::options().write(true).open(&self.file).unwrap();
            file.set_modified(time).unwrap();
        }
    }
}

#[test]
fn a_source_that_changed_between_two_readings_gave_links_to_other_pages() {
    for at in [JobStage::Links, JobStage::Linked] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("in.jsonl");
        let line = |page: usize| json!({"url": url(page), "html": html(&[(1, "a".into())])});
        fs::write(&file, format!("{}\n{}\n", line(0), line(1))).unwrap();
        let options = InputOptions::default();
        let inputs = Inputs::discover(&[OsString::from(&file)], &options, folder.path()).unwrap();
        let change = PagesChanged { file, at };
        let pages = RecordScan::new(&inputs).observer(&change);
        let job = LinkInversion::new(pages, folder.path()).window(1);
        let refused = job.write(&mut Vec::new()).unwrap_err();
        assert!(
            matches!(&refused, BatchError::Read(ReadError::Changed { name }) if name.ends_with("in.jsonl")),
            "{refused}"
        );
    }
}

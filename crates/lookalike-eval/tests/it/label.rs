//! Files of labels: how they are read, and the messages for files that are refused.

use lookalike_eval::label::{LabelError, LabelSet, judged};
use lookalike_eval::stratified_labels::StratifiedLabels;
use lookalike_eval::{DocumentSet, DocumentSetError, GroundTruth, JudgedPair};

fn collection() -> DocumentSet {
    let documents = ["a", "b", "c", "7"].map(|id| (id.to_owned(), format!("text of {id}")));
    DocumentSet::new(documents.to_vec()).unwrap()
}

fn refused(text: &str) -> String {
    LabelSet::parse(text, &collection())
        .unwrap_err()
        .to_string()
}

#[test]
fn pairs_in_any_spelling() {
    let text = "{\"a\":\"b\",\"b\":\"a\",\"label\":2}\n\n{\"a\":\"a\",\"b\":7,\"label\":false}\n\
                {\"a\":\"b\",\"b\":\"c\",\"label\":null}\n{\"a\":\"a\",\"b\":\"b\",\"label\":2}\n";
    let LabelSet::Pairs(pairs) = LabelSet::parse(text, &collection()).unwrap() else {
        panic!("these are pairs");
    };
    // Positions follow the ids, so "7" is first.
    let found: Vec<_> = pairs.iter().map(|p| (p.a, p.b, p.grade)).collect();
    assert_eq!(found, [(0, 1, Some(0.0)), (1, 2, Some(2.0)), (2, 3, None)]);
    let (known, unknown) = judged(&pairs, 1.0).unwrap();
    let judgement = |a, b, is_true| JudgedPair {
        a,
        b,
        is_true,
        has_equal_texts: false,
    };
    let expected = vec![judgement(0, 1, false), judgement(1, 2, true)];
    assert_eq!((&known, unknown), (&expected, 1));
    let truth = GroundTruth::of_labels(text, &collection(), 1.0).unwrap();
    assert!(matches!(truth, GroundTruth::Judged(pairs) if pairs == expected));
    let one_class = judged(&pairs[1..], 1.0).unwrap_err();
    assert_eq!(
        one_class,
        LabelError::OneClass {
            count: 1,
            class: "true"
        }
    );
    assert!(one_class.to_string().contains("true and false pairs"));
}

#[test]
fn unknown_labels_were_said_to_be_false() {
    let text = "{\"a\":\"a\",\"b\":\"b\",\"label\":null}\n";
    let refused = GroundTruth::of_labels(text, &collection(), 1.0);
    assert_eq!(refused.unwrap_err(), LabelError::NoneKnown);
}

#[test]
fn clusters_and_lists_of_duplicates() {
    let text = "{\"id\":\"a\",\"cluster\":1}\n{\"id\":\"c\",\"cluster\":1}\n{\"id\":\"b\",\"cluster\":\"x\"}\n";
    let clusters = LabelSet::parse(text, &collection()).unwrap();
    assert_eq!(clusters, LabelSet::Clusters(vec![0, 1, 2, 1]));
    let refused = GroundTruth::of_labels(text, &collection(), 1.0);
    assert_eq!(refused.unwrap_err(), LabelError::NotPairs);
    let text = "{\"core_id\":\"a\",\"labelled_duplicates\":[\"b\",\"c\"]}\n";
    let LabelSet::Duplicates(all) = LabelSet::parse(text, &collection()).unwrap() else {
        panic!("these are lists");
    };
    assert_eq!(all[&1].iter().copied().collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_second_list_of_duplicates_replaced_the_first() {
    let line = |id: &str, others: &str| {
        format!("{{\"core_id\":\"{id}\",\"labelled_duplicates\":[{others}]}}\n")
    };
    let (both, one) = (line("a", "\"b\",\"c\""), line("a", "\"b\""));
    let said = refused(&(both.clone() + &line("b", "") + &one));
    assert!(
        said.contains("lines 1 and 3 contradict each other: the document has two lists"),
        "{said}"
    );
    let repeated = both.clone() + &line("a", "\"c\",\"b\"");
    assert_eq!(
        LabelSet::parse(&repeated, &collection()),
        LabelSet::parse(&both, &collection())
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let unknown =
        refused("{\"a\":\"a\",\"b\":\"b\",\"label\":1}\n{\"a\":\"a\",\"b\":\"zz\",\"label\":1}\n");
    assert!(
        unknown.contains("line 2") && unknown.contains("\"zz\""),
        "{unknown}"
    );
    let contradiction =
        refused("{\"a\":\"a\",\"b\":\"b\",\"label\":1}\n{\"a\":\"b\",\"b\":\"a\",\"label\":0}\n");
    assert!(
        contradiction.contains("lines 1 and 2 contradict"),
        "{contradiction}"
    );
    let twice = refused("{\"id\":\"a\",\"cluster\":1}\n{\"id\":\"a\",\"cluster\":2}\n");
    assert!(twice.contains("clusters \"1\" and \"2\""), "{twice}");
    assert!(refused("nonsense\n").contains("line 1: not a JSON object"));
    assert!(refused("{\"a\":\"a\",\"b\":\"b\"}\n").contains("the label is not"));
    assert!(refused("{\"a\":\"a\",\"b\":\"a\",\"label\":1}\n").contains("with itself"));
    assert!(refused("\n").contains("there are no labels"));
    let repeated = vec![
        ("x".to_owned(), String::new()),
        ("x".to_owned(), String::new()),
    ];
    let repeated = DocumentSet::new(repeated).unwrap_err();
    assert!(matches!(repeated, DocumentSetError::RepeatedId { .. }));
    assert!(matches!(
        DocumentSet::of(Vec::new()),
        Err(DocumentSetError::TooFew { found: 0 })
    ));
}

#[test]
fn a_pair_given_both_ways_counted_twice_and_two_judgements_of_it_went_unseen() {
    let line = |a: &str, b: &str, label: &str| {
        format!(
            "{{\"a\":\"{a}\",\"b\":\"{b}\",\"label\":{label},\
             \"stratum\":{{\"number\":1,\"of\":1,\"name\":\"k = 3\",\"pairs\":9,\"drawn\":2}}}}\n"
        )
    };
    let agreed = line("x", "y", "1") + &line("y", "x", "true") + &line("x", "z", "0");
    let labels = StratifiedLabels::parse(&agreed, 1.0).unwrap().unwrap();
    let counts: Vec<_> = labels
        .bands()
        .iter()
        .map(|band| [band.trues, band.falses])
        .collect();
    assert_eq!(counts, [[1, 1]]);
    let contradiction = line("x", "z", "0") + &line("x", "y", "true") + &line("y", "x", "false");
    let refused = StratifiedLabels::parse(&contradiction, 1.0)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("lines 2 and 3 contradict each other: the pair has the labels 1 and 0"),
        "{refused}"
    );
}

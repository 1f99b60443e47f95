//! Tests of the evaluation against simple implementations and known answers. Each file states what it checks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit;
mod conjunctive_rule;
mod halves;
mod label;
mod s3;
mod score;
mod stratified_sample;
mod sweep;

use lookalike_eval::DocumentSet;

/// Makes documents in families: each has its family's words and some of its own.
fn families(count: usize, members: usize) -> DocumentSet {
    let mut documents = Vec::new();
    for family in 0..count {
        for member in 0..members {
            let text: String = (0..60)
                .map(|word| match word % 20 == member {
                    true => format!("own{family}x{member}x{word} "),
                    false => format!("w{family}x{word} "),
                })
                .collect();
            documents.push((format!("f{family:02}m{member}"), text));
        }
    }
    DocumentSet::new(documents).unwrap()
}

//! What a crawler need not visit, and sets of equal texts, as lines.

use std::io::{self, Write};

use serde::Serialize;

use super::collection::Collection;
use super::replicas::Replicas;
use crate::lines::write_line;

#[derive(Serialize)]
struct CopiesLine<'a> {
    id: &'a str,
    copies: Vec<&'a str>,
    bytes: u64,
}

/// Writes each set of two and more documents of equal text: the smallest id, the others, the bytes of the text.
pub(crate) fn write_copies(out: &mut dyn Write, collection: &Collection) -> io::Result<()> {
    for set in 0..collection.exact.len() as u32 {
        let (first, others) = collection
            .exact
            .members(set)
            .split_first()
            .expect("sets are not empty");
        if !others.is_empty() {
            let id = |document: &u32| collection.documents.id(*document as usize);
            let line = CopiesLine {
                id: id(first),
                copies: others.iter().map(id).collect(),
                bytes: collection.length_of_set(set),
            };
            write_line(out, &line)?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct SkipLine<'a> {
    url: &'a str,
    copy_of: &'a str,
    why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    containment: Option<f64>,
}

/// The skip list: in the order of ids, every document whose content a kept one has.
pub(crate) struct SkipList<'a> {
    pub(crate) collection: &'a Collection,
    /// Near copies by one chunking: who is skipped, the chunks of each set, the chunking's name.
    pub(crate) near: Option<(&'a Replicas, &'a [u32], &'a str)>,
}

impl SkipList<'_> {
    /// Writes the list; the number of lines.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<u64> {
        let mut lines = 0;
        for &document in &self.collection.by_id {
            if let Some(line) = self.line(document) {
                write_line(out, &line)?;
                lines += 1;
            }
        }
        Ok(lines)
    }

    fn line(&self, document: u32) -> Option<SkipLine<'_>> {
        let collection = self.collection;
        let class = collection.documents.classes[document as usize]?;
        let set = collection.exact.of_class[class.position()];
        let url = collection.url_of(document);
        let first = |set: u32| collection.exact.members(set)[0];
        let near = self.near.and_then(|(replicas, sizes, chunking)| {
            Some((replicas.skipped(set, sizes)?, chunking))
        });
        if let Some((skipped, chunking)) = near {
            return Some(SkipLine {
                url,
                copy_of: collection.url_of(first(skipped.kept)),
                why: "near",
                chunking: Some(chunking),
                shared: Some(skipped.shared),
                containment: Some(skipped.containment),
            });
        }
        (first(set) != document).then(|| SkipLine {
            url,
            copy_of: collection.url_of(first(set)),
            why: "exact",
            chunking: None,
            shared: None,
            containment: None,
        })
    }
}

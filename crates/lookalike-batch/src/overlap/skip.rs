//! Pages that a crawler need not visit, and sets of equal texts, as lines.

use std::io::{self, Write};

use serde::Serialize;

use super::collection::OverlapDocuments;
use super::replicas::ReplicaCounter;
use crate::dedup::result_lines::write_line;

#[derive(Serialize)]
struct CopiesLine<'a> {
    id: &'a str,
    copies: Vec<&'a str>,
    urls: Vec<&'a str>,
    bytes: u64,
}

/// Writes each set of two and more documents of equal text: the smallest id, the others, their URLs, each once, and the
/// bytes of the text.
pub(crate) fn write_copies(out: &mut dyn Write, collection: &OverlapDocuments) -> io::Result<()> {
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
                urls: urls(collection, set),
                bytes: collection.length_of_set(set),
            };
            write_line(out, &line)?;
        }
    }
    Ok(())
}

/// The URLs of the documents of a set, each once, in order.
fn urls(collection: &OverlapDocuments, set: u32) -> Vec<&str> {
    let members = collection.exact.members(set).iter();
    let mut urls: Vec<&str> = members
        .filter_map(|&document| collection.url(document))
        .collect();
    urls.sort_unstable();
    urls.dedup();
    urls
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

/// Counts of the skip list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SkipCounts {
    /// Pages: documents of one URL are one page.
    pub(crate) pages: u64,
    /// Pages that are listed.
    pub(crate) skipped: u64,
}

/// The skip list: in the order of ids, every page all of whose documents have their content in a kept one.
pub(crate) struct SkipList<'a> {
    pub(crate) collection: &'a OverlapDocuments,
    /// Near copies by one chunking: who is skipped, the chunks of each set, the chunking's name.
    pub(crate) near: Option<(&'a ReplicaCounter, &'a [u32], &'a str)>,
}

impl SkipList<'_> {
    /// Writes the list.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<SkipCounts> {
        let (listed, pages) = self.listed();
        for &document in &listed {
            if let Some(line) = self.line(document) {
                write_line(out, &line)?;
            }
        }
        Ok(SkipCounts {
            pages,
            skipped: listed.len() as u64,
        })
    }

    /// The first document of each page that is listed, in the order of ids; and the number of pages.
    ///
    /// A page that was fetched twice with different texts must be visited for the one that no other page has. So the
    /// page of a kept document is never listed, and no page is a copy of itself.
    fn listed(&self) -> (Vec<u32>, u64) {
        let collection = self.collection;
        let mut by_page = collection.by_id.clone();
        // A stable sort of ids in order: the first document of a page is that of the smallest id.
        by_page.sort_by_key(|&document| collection.page(document));
        let (mut listed, mut pages) = (Vec::new(), 0);
        for page in by_page.chunk_by(|&a, &b| collection.page(a) == collection.page(b)) {
            pages += 1;
            // A page that was read twice may have had two contents: all of them have to be elsewhere.
            if page.iter().all(|&document| self.line(document).is_some()) {
                listed.push(page[0]);
            }
        }
        listed.sort_unstable_by_key(|&document| collection.id_ranks[document as usize]);
        (listed, pages)
    }

    /// Document for which another is skipped, if its content is in a kept one.
    fn line(&self, document: u32) -> Option<SkipLine<'_>> {
        let collection = self.collection;
        let class = collection.documents.classes[document as usize]?;
        let set = collection.exact.of_class[class.position()];
        let url = collection.page(document);
        let first = |set: u32| collection.exact.members(set)[0];
        let near = self.near.and_then(|(replicas, sizes, chunking)| {
            Some((replicas.skipped(set, sizes)?, chunking))
        });
        // Before equal texts: of a set that is skipped the first document is skipped too, and no crawler should
        // be sent there.
        if let Some((skipped, chunking)) = near {
            return Some(SkipLine {
                url,
                copy_of: collection.page(first(skipped.kept)),
                why: "near",
                chunking: Some(chunking),
                shared: Some(skipped.shared),
                containment: Some(skipped.containment),
            });
        }
        (first(set) != document).then(|| SkipLine {
            url,
            copy_of: collection.page(first(set)),
            why: "exact",
            chunking: None,
            shared: None,
            containment: None,
        })
    }
}

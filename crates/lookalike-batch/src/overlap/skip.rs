//! Pages that a crawler need not visit, and sets of equal texts, as lines.

use std::io::{self, Write};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::OverlapDocuments;
use super::replicas::{ReplicaCounter, SkippablePage};
use crate::dedup::result_lines::write_line;
use crate::parallel_sort::KeyedNumber;
use crate::spill::table_column::TableColumn;
use crate::spill::texts_in_order::texts_in_order;

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
    let id = |document: &u32| collection.documents.id(*document as usize);
    for set in collection.exact.repeated() {
        let members = collection.exact.members(set);
        let line = CopiesLine {
            id: id(&members[0]),
            copies: members[1..].iter().map(id).collect(),
            urls: urls(collection, set),
            bytes: collection.length_of_set(set),
        };
        write_line(out, &line)?;
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

/// The document for which a page is skipped.
struct KeptCopy {
    document: u32,
    /// None where the texts are equal.
    near: Option<SkippablePage>,
}

impl SkipList<'_> {
    /// Writes the list.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<SkipCounts> {
        let (listed, pages) = self.listed();
        let copies = || {
            let copies = listed.iter().map(|&document| self.kept_copy(document));
            copies.map(|copy| copy.expect("a page that is listed has a copy"))
        };
        let kept: TableColumn<u32> = copies().map(|copy| copy.document).collect();
        let mut skipped = listed.iter().zip(copies());
        let page = |document| self.collection.page(document as u32).as_bytes();
        texts_in_order(&kept, page, |copy_of| {
            let (&document, copy) = skipped.next().expect("one for each");
            let near = copy.near.as_ref();
            let line = SkipLine {
                url: self.collection.page(document),
                copy_of: str::from_utf8(copy_of).expect("names are stored from strings"),
                why: if near.is_some() { "near" } else { "exact" },
                chunking: near.and(self.near).map(|(.., chunking)| chunking),
                shared: near.map(|near| near.shared),
                containment: near.map(|near| near.containment),
            };
            write_line(out, &line)
        })?;
        Ok(SkipCounts {
            pages,
            skipped: listed.len() as u64,
        })
    }

    /// The first document of each page that is listed, in the order of ids; and the number of pages.
    ///
    /// A page that was fetched twice with different texts must be visited for the one that no other page has. So the
    /// page of a kept document is never listed, and no page is a copy of itself.
    fn listed(&self) -> (TableColumn<u32>, u64) {
        let collection = self.collection;
        let page = |document: &u32| collection.page(*document);
        // All that is asked of a document alone is asked here, in the order in which they lie; names are compared where hashes are equal.
        let hashed = |document| {
            let hash = xxh3_64(page(&document).as_bytes());
            let is_kept = u64::from(self.kept_copy(document).is_none());
            KeyedNumber::new(hash << 1 | is_kept, document)
        };
        let mut by_hash: TableColumn<_> =
            (0..collection.documents.len() as u32).map(hashed).collect();
        by_hash.sort_unstable_by_key(|hashed| (hashed.key(), hashed.number));
        let (mut listed, mut pages) = (TableColumn::new(), 0);
        let mut same_hash = Vec::new();
        for alike in by_hash.chunk_by(|a, b| a.key() >> 1 == b.key() >> 1) {
            same_hash.clear();
            same_hash.extend(alike.iter().map(|hashed| (hashed.number, hashed.key() & 1)));
            if same_hash.len() > 1 {
                same_hash.sort_by_key(|(document, _)| (page(document), *document));
            }
            for same in same_hash.chunk_by(|(a, _), (b, _)| page(a) == page(b)) {
                pages += 1;
                // A page that was read twice may have had two contents: all of them have to be elsewhere.
                if same.iter().all(|&(_, is_kept)| is_kept == 0) {
                    listed.push(same[0].0);
                }
            }
        }
        listed.sort_unstable();
        (listed, pages)
    }

    /// The document for which another is skipped, if its content is in a kept one.
    fn kept_copy(&self, document: u32) -> Option<KeptCopy> {
        let collection = self.collection;
        let class = collection.documents.classes[document as usize]?;
        let set = collection.exact.of_class[class.position()];
        let first = |set: u32| collection.exact.members(set)[0];
        let near = self.near;
        let near = near.and_then(|(replicas, sizes, _)| replicas.skipped(set, sizes));
        // Before equal texts: of a set that is skipped the first document is skipped too, and no crawler should
        // be sent there.
        let kept = near.as_ref().map_or(set, |near| near.kept);
        let kept = first(kept);
        (kept != document).then_some(KeptCopy {
            document: kept,
            near,
        })
    }
}

//! Writes pages that a crawler need not visit, and sets of equal texts, as lines.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::collection::OverlapDocuments;
use super::replicas::{ReplicaCounter, SkippablePage};
use crate::dedup::result_lines::{write_line, write_long_line};
use crate::parallel_sort::KeyedNumber;
use crate::spill::table_column::TableColumn;
use crate::spill::texts_in_order::texts_in_order;

#[derive(Serialize)]
struct CopiesLine<'a> {
    id: &'a str,
    copies: DocumentIds<'a>,
    urls: TableColumn<&'a str>,
    bytes: u64,
}

/// Ids of some documents, each looked up while it is written.
struct DocumentIds<'a> {
    collection: &'a OverlapDocuments,
    documents: &'a [u32],
}

impl Serialize for DocumentIds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = |&document: &u32| self.collection.documents.id(document as usize);
        serializer.collect_seq(self.documents.iter().map(id))
    }
}

/// Writes each set of two or more documents with equal texts: the smallest id, the other ids, the distinct URLs, and the bytes of the text.
pub(crate) fn write_copies(out: &mut dyn Write, collection: &OverlapDocuments) -> io::Result<()> {
    for set in collection.exact.repeated() {
        let members = collection.exact.members(set);
        let line = CopiesLine {
            id: collection.documents.id(members[0] as usize),
            copies: DocumentIds {
                collection,
                documents: &members[1..],
            },
            urls: urls(collection, set),
            bytes: collection.length_of_set(set),
        };
        write_long_line(out, &line)?;
    }
    Ok(())
}

/// Returns the distinct URLs of the documents of a set, in order.
fn urls(collection: &OverlapDocuments, set: u32) -> TableColumn<&str> {
    let members = collection.exact.members(set).iter();
    let mut urls: TableColumn<&str> = members
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
    /// Number of pages; documents with the same URL are one page.
    pub(crate) pages: u64,
    /// Number of pages listed.
    pub(crate) skipped: u64,
}

/// The near-copies by one chunking.
pub(crate) struct NearCopies {
    /// The skipped sets of equal texts.
    pub(crate) replicas: ReplicaCounter,
    /// Number of chunks of each set.
    pub(crate) sizes: TableColumn<u32>,
    /// Name of the chunking.
    pub(crate) chunking: String,
}

/// The skip list: every page for which each document has its contents in a kept document of another page, in the order of ids.
pub(crate) struct SkipList<'a> {
    pub(crate) collection: &'a OverlapDocuments,
    pub(crate) near: Option<&'a NearCopies>,
}

/// The document that another is skipped for.
struct KeptCopy {
    document: u32,
    /// `None` if the texts are equal.
    near: Option<SkippablePage>,
}

impl SkipList<'_> {
    /// Writes the list.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<SkipCounts> {
        // Texts are looked up by `texts_in_order` below, because kept documents are anywhere in a table that may be on disk.
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
                chunking: near.and(self.near).map(|near| &*near.chunking),
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

    /// Returns the first document of each listed page, in the order of ids, and the number of pages.
    ///
    /// A page that was fetched twice with different texts must be visited for a text that no other page has. So the page of a kept document is never
    /// listed, and no page is a copy of itself.
    fn listed(&self) -> (TableColumn<u32>, u64) {
        let collection = self.collection;
        let page = |document: &u32| collection.page(*document);
        // Everything that depends on one document alone is looked up here, in storage order. Names are only compared if their hashes are equal.
        let hashed = |document| {
            let hash = xxh3_64(page(&document).as_bytes());
            let is_kept = u64::from(self.kept_copy(document).is_none());
            // The flag takes the place of one bit of the hash, so that a document needs no second column.
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
                // A page that was read twice may have had two contents, and all of them must be elsewhere.
                if same.iter().all(|&(_, is_kept)| is_kept == 0) {
                    listed.push(same[0].0);
                }
            }
        }
        listed.sort_unstable();
        (listed, pages)
    }

    /// Returns the document that another is skipped for, or `None` if its contents are in no other kept document.
    fn kept_copy(&self, document: u32) -> Option<KeptCopy> {
        let collection = self.collection;
        let set = collection.set_of(document)?;
        let near = self.near;
        let near = near.and_then(|near| near.replicas.skipped(set, &near.sizes));
        // Check this before equal texts: the first document of a skipped set is skipped too, so no crawler should be sent there.
        let kept = near.as_ref().map_or(set, |near| near.kept);
        let kept = collection.exact.members(kept)[0];
        (kept != document).then_some(KeptCopy {
            document: kept,
            near,
        })
    }
}

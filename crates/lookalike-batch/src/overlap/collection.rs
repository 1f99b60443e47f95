//! Facts about the documents after all are read: ids, sets of equal texts, servers.
//!
//! From here on documents are numbered by the order of their ids, and their tables are stored in that order. Results are in that order too, so tables
//! on disk are read sequentially.

use lookalike_corpus::host;

use super::read::{DocumentSites, OverlapInput};
use super::settings::OverlapUnit;
use super::units::{ExactSets, ServerTable, UnitPlacement};
use crate::dedup::documents::DocumentTable;
use crate::dedup::id_order::IdOrder;
use crate::error::BatchError;
use crate::settings::RepeatedIds;
use crate::spill::table_column::TableColumn;

/// The documents in the order of their ids.
pub(crate) struct OverlapDocuments {
    pub(crate) documents: DocumentTable,
    pub(crate) exact: ExactSets,
    pub(crate) sites: DocumentSites,
    pub(crate) servers: ServerTable,
    pub(crate) repeated_ids: u64,
}

/// View of the documents as units of one kind.
#[derive(Clone, Copy)]
pub(crate) struct UnitView<'a> {
    pub(crate) collection: &'a OverlapDocuments,
    pub(crate) by: OverlapUnit,
}

impl UnitView<'_> {
    /// Returns the units of each class.
    pub(crate) fn placement(&self) -> UnitPlacement {
        let collection = self.collection;
        match self.by {
            OverlapUnit::Document => UnitPlacement::Sets(collection.exact.of_class.clone()),
            OverlapUnit::Server => collection
                .servers
                .placement(&collection.documents, collection.exact.of_class.len()),
        }
    }

    pub(crate) fn units(&self) -> usize {
        match self.by {
            OverlapUnit::Document => self.collection.exact.len(),
            OverlapUnit::Server => self.collection.servers.names.len(),
        }
    }

    /// Returns the name of a unit: the smallest id of its set, or the server's name.
    pub(crate) fn name(&self, unit: u32) -> &str {
        let collection = self.collection;
        match self.by {
            OverlapUnit::Document => collection
                .documents
                .id(collection.exact.members(unit)[0] as usize),
            OverlapUnit::Server => &collection.servers.names[unit as usize],
        }
    }

    /// Tells whether any unit has several documents of equal text.
    pub(crate) fn has_copies(&self) -> bool {
        self.by == OverlapUnit::Document && !self.collection.exact.all_single()
    }
}

impl OverlapDocuments {
    /// Puts what was read in the order of ids, on `threads` threads.
    pub(crate) fn new(
        read: &mut OverlapInput,
        repeated: RepeatedIds,
        threads: usize,
    ) -> Result<Self, BatchError> {
        let mut documents = std::mem::take(&mut read.documents);
        let classes = std::mem::take(&mut read.classes);
        let order = IdOrder::new(&mut documents, &classes, repeated, threads)?;
        let documents = documents.in_order(&order.by_id);
        let mut sites = std::mem::take(&mut read.sites);
        sites.reorder(&order.by_id);
        let servers = ServerTable::new(&mut sites);
        Ok(Self {
            exact: ExactSets::new(&documents.classes, classes.len()),
            documents,
            sites,
            servers,
            repeated_ids: order.renamed,
        })
    }

    /// Returns the bytes of all tables, including the engines' columns of 12 bytes a unit and the places of documents on servers.
    pub(crate) fn bytes(&self) -> u64 {
        // The places are counted before they are made, because the remaining memory is divided by this result.
        let places = 40 * self.servers.of.len() as u64;
        self.documents.bytes() + self.sites.bytes() + 32 * self.documents.len() as u64 + places
    }

    /// Returns the page of a document: its URL, which several documents of an archive may share, or else its original id.
    pub(crate) fn page(&self, document: u32) -> &str {
        // As in `url`: nobody can visit a page under a number that was appended here.
        self.url(document)
            .unwrap_or_else(|| self.documents.given_id(document))
    }

    /// Returns the URL of a document: the value of its URL field, or else its original id if that is a URL.
    pub(crate) fn url(&self, document: u32) -> Option<&str> {
        let of_field = self.sites.url(document as usize);
        // The id as it was read: a number that was appended because it repeats is no part of the URL.
        let given = || Some(self.documents.given_id(document)).filter(|id| host(id).is_some());
        of_field.or_else(given)
    }

    /// Returns the URL of a document if it differs from its id.
    pub(crate) fn other_url(&self, document: u32) -> Option<&str> {
        let id = self.documents.id(document as usize);
        self.url(document).filter(|url| *url != id)
    }

    /// Returns the length of a set's text in bytes.
    pub(crate) fn length_of_set(&self, set: u32) -> u64 {
        let first = self.exact.members(set)[0];
        self.documents.lengths.get(first as usize)
    }

    /// Returns the number of documents with the same text and URL as another.
    pub(crate) fn repeated_pages(&self) -> u64 {
        let mut again = 0;
        for set in self.exact.repeated() {
            let members = self.exact.members(set);
            let mut pages: TableColumn<&str> = members
                .iter()
                .map(|&document| self.page(document))
                .collect();
            pages.sort_unstable();
            pages.dedup();
            again += members.len() - pages.len();
        }
        again as u64
    }

    /// Returns the set of equal texts that a document is in, or `None` if it has no text.
    pub(crate) fn set_of(&self, document: u32) -> Option<u32> {
        let class = self.documents.classes[document as usize]?;
        Some(self.exact.of_class[class.position()])
    }
}

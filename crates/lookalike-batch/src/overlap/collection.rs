//! Facts about the documents once all are read and ordered: ids, sets of equal texts, servers.

use lookalike_corpus::host;

use super::read::{DocumentSites, ReadOut};
use super::settings::OverlapUnit;
use super::units::{ExactSets, ServerTable, UnitPlacement};
use crate::dedup::documents::DocumentTable;
use crate::dedup::ranking::DocumentRanking;
use crate::error::BatchError;
use crate::settings::{KeepRule, RepeatedIds};
use crate::spill::table_column::TableColumn;

/// The documents; see the module's header.
pub(crate) struct OverlapDocuments {
    pub(crate) documents: DocumentTable,
    pub(crate) by_id: TableColumn<u32>,
    pub(crate) id_ranks: TableColumn<u32>,
    pub(crate) exact: ExactSets,
    pub(crate) sites: DocumentSites,
    pub(crate) servers: ServerTable,
    pub(crate) repeated_ids: u64,
}

/// The documents as units of one kind.
#[derive(Clone, Copy)]
pub(crate) struct UnitView<'a> {
    pub(crate) collection: &'a OverlapDocuments,
    pub(crate) by: OverlapUnit,
}

impl UnitView<'_> {
    /// Positions of the units of classes.
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

    /// Name of a unit: the smallest id of a set, or the server's.
    pub(crate) fn name(&self, unit: u32) -> &str {
        let collection = self.collection;
        match self.by {
            OverlapUnit::Document => collection
                .documents
                .id(collection.exact.members(unit)[0] as usize),
            OverlapUnit::Server => &collection.servers.names[unit as usize],
        }
    }

    /// True if there are documents of equal text that stand apart.
    pub(crate) fn has_copies(&self) -> bool {
        self.by == OverlapUnit::Document && !self.collection.exact.all_single()
    }
}

impl OverlapDocuments {
    /// Orders what was read, on so many threads.
    pub(crate) fn new(
        read: &mut ReadOut,
        repeated: RepeatedIds,
        threads: usize,
    ) -> Result<Self, BatchError> {
        let mut documents = std::mem::take(&mut read.documents);
        let classes = std::mem::take(&mut read.classes);
        let (ranking, repeated_ids) = DocumentRanking::new(
            &mut documents,
            &classes,
            &KeepRule::First.into(),
            repeated,
            threads,
        )?;
        let exact = ExactSets::new(&documents, &classes, &ranking);
        let mut sites = std::mem::take(&mut read.sites);
        let servers = ServerTable::new(&mut sites);
        let (by_id, id_ranks) = (ranking.by_id, ranking.id_ranks);
        Ok(Self {
            documents,
            by_id,
            id_ranks,
            exact,
            sites,
            servers,
            repeated_ids,
        })
    }

    /// Bytes of all tables, engines' columns of 12 bytes a unit included, and the places of documents on servers.
    pub(crate) fn bytes(&self) -> u64 {
        // Counted before they are made: what is left is shared out by this.
        let places = 40 * self.servers.of.len() as u64;
        self.documents.bytes() + self.sites.bytes() + 40 * self.documents.len() as u64 + places
    }

    /// The page that a document is a copy of: its URL, which several documents of an archive may share; else its id.
    pub(crate) fn page(&self, document: u32) -> &str {
        self.url(document)
            .unwrap_or_else(|| self.documents.id(document as usize))
    }

    /// URL of a document: of its field, else its id as it was given when that is a URL.
    pub(crate) fn url(&self, document: u32) -> Option<&str> {
        let of_field = self.sites.url(document as usize);
        let given = || Some(self.documents.given_id(document)).filter(|id| host(id).is_some());
        of_field.or_else(given)
    }

    /// URL of a document where it is not its id.
    pub(crate) fn other_url(&self, document: u32) -> Option<&str> {
        let id = self.documents.id(document as usize);
        self.url(document).filter(|url| *url != id)
    }

    /// Bytes of the text of a set.
    pub(crate) fn length_of_set(&self, set: u32) -> u64 {
        let first = self.exact.members(set)[0];
        self.documents.lengths.get(first as usize)
    }

    /// Documents of the same text and URL as another.
    pub(crate) fn pages_again(&self) -> u64 {
        let mut again = 0;
        for set in 0..self.exact.len() as u32 {
            let members = self.exact.members(set);
            let mut pages: Vec<&str> = members
                .iter()
                .map(|&document| self.page(document))
                .collect();
            pages.sort_unstable();
            pages.dedup();
            again += members.len() - pages.len();
        }
        again as u64
    }

    /// Ranks of the documents of a set in the order of ids.
    pub(crate) fn ranks_of_set(&self, set: u32) -> impl Iterator<Item = u32> {
        self.exact
            .members(set)
            .iter()
            .map(|&document| self.id_ranks[document as usize])
    }

    /// Id and set of the document at a rank, which has a text.
    pub(crate) fn document_at(&self, rank: u32) -> (&str, u32) {
        let document = self.by_id[rank as usize] as usize;
        let class = self.documents.classes[document].expect("documents in rows have a text");
        (
            self.documents.id(document),
            self.exact.of_class[class.position()],
        )
    }
}

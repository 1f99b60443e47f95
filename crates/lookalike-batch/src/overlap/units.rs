//! Units to compare: sets of equal texts, or servers.
//!
//! Units are numbered by name, so that everything computed later is in the order of the result.

use std::num::NonZeroU32;

use super::read::DocumentSites;
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::DocumentTable;
use crate::parallel::inverse;
use crate::spill::list_table::ListTable;
use crate::spill::table_column::TableColumn;

/// Sets of documents with equal texts. The document with the smallest id represents its set (Shivakumar and Garcia-Molina 1998, section 2).
///
/// Memory: 8 bytes for each document and for each class.
pub(crate) struct ExactSets {
    /// Documents of each set, by id.
    members: ListTable<u32>,
    /// Set of each class.
    pub(crate) of_class: TableColumn<u32>,
}

impl ExactSets {
    /// Creates the sets in the order of their smallest ids. `classes` has the class of each document, in the order of ids; there are `count` classes.
    pub(crate) fn new(classes: &[Option<ClassId>], count: usize) -> Self {
        // Sets have smaller numbers, since there are fewer than `u32::MAX` documents.
        let mut of_class: TableColumn<u32> = (0..count).map(|_| u32::MAX).collect();
        let mut sets = 0;
        // The first document of a class has the smallest id, so sets are numbered by name.
        for class in classes.iter().flatten().map(|class| class.position()) {
            if of_class[class] == u32::MAX {
                of_class[class] = sets;
                sets += 1;
            }
        }
        let members = ListTable::new(sets as usize, || {
            let set = |class: &Option<ClassId>| Some(of_class[(*class)?.position()] as usize);
            let documents = (0..).zip(classes);
            documents.filter_map(move |(document, class)| Some((set(class)?, document)))
        });
        Self { members, of_class }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns the documents of a set, in the order of ids.
    pub(crate) fn members(&self, set: u32) -> &[u32] {
        self.members.of(set)
    }

    /// Returns the sets with two or more documents.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = u32> {
        (0..self.len() as u32).filter(|&set| self.members(set).len() > 1)
    }

    /// Tells whether no two documents have equal texts.
    pub(crate) fn all_single(&self) -> bool {
        self.repeated().next().is_none()
    }
}

/// The units that each class belongs to.
pub(crate) enum UnitPlacement {
    /// One unit each: the set of equal texts.
    Sets(TableColumn<u32>),
    /// The servers that hold it.
    Servers(ListTable<u32>),
}

impl UnitPlacement {
    pub(crate) fn of(&self, class: u32) -> &[u32] {
        match self {
            Self::Sets(sets) => std::slice::from_ref(&sets[class as usize]),
            Self::Servers(servers) => servers.of(class),
        }
    }
}

/// Servers in the order of their names.
#[derive(Default)]
pub(crate) struct ServerTable {
    pub(crate) names: Vec<String>,
    /// Server of each document.
    pub(crate) of: TableColumn<Option<u32>>,
    /// Known addresses of each server, ascending.
    pub(crate) addresses: Vec<Vec<String>>,
}

impl ServerTable {
    pub(crate) fn new(sites: &mut DocumentSites) -> Self {
        let mut order: Vec<u32> = (0..sites.names.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| sites.names[a as usize].cmp(&sites.names[b as usize]));
        let ranks = inverse(&order, 1);
        let rank =
            |number: &Option<NonZeroU32>| number.map(|number| ranks[number.get() as usize - 1]);
        let of = sites.servers.iter().map(rank).collect();
        // Replaced by `of`, so its memory is freed.
        sites.servers = TableColumn::new();
        // Moved, not copied, since the sites are not asked for names again.
        let names = order
            .iter()
            .map(|&number| std::mem::take(&mut sites.names[number as usize]))
            .collect();
        let mut addresses = vec![Vec::new(); order.len()];
        for (number, address) in std::mem::take(&mut sites.addresses) {
            addresses[ranks[number.get() as usize - 1] as usize].push(address);
        }
        Self {
            names,
            of,
            addresses,
        }
    }

    /// Returns the servers that hold each class.
    pub(crate) fn placement(&self, documents: &DocumentTable, classes: usize) -> UnitPlacement {
        let held = documents.classes.iter().zip(&self.of);
        let mut held: TableColumn<(u32, u32)> = held
            .filter_map(|(class, server)| Some(((*class)?.position() as u32, (*server)?)))
            .collect();
        held.sort_unstable();
        // A server with a text at several places holds it once.
        held.dedup();
        UnitPlacement::Servers(ListTable::new(classes, || {
            held.iter().map(|&(class, server)| (class as usize, server))
        }))
    }
}

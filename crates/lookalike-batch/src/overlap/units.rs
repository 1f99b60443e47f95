//! Units to compare: sets of equal texts, or servers.
//!
//! Units are numbered by name, so that everything computed later is in the order of the result.

use std::num::NonZeroU32;

use super::read::DocumentSites;
use crate::dedup::class_id::ClassId;
use crate::dedup::documents::DocumentTable;
use crate::spill::table_column::TableColumn;

/// Sets of documents with equal texts. The document with the smallest id represents its set (Shivakumar and Garcia-Molina 1998, section 2).
///
/// Memory: 8 bytes for each document and for each class.
pub(crate) struct ExactSets {
    /// Documents of all sets, set by set, each in the order of ids.
    members: TableColumn<u32>,
    /// Start of each set in `members`, and the end of the last.
    starts: TableColumn<u32>,
    /// Set of each class.
    pub(crate) of_class: TableColumn<u32>,
}

impl ExactSets {
    /// Creates the sets in the order of their smallest ids. `classes` has the class of each document, in the order of ids; there are `count` classes.
    pub(crate) fn new(classes: &[Option<ClassId>], count: usize) -> Self {
        let mut of_class: TableColumn<u32> = (0..count).map(|_| u32::MAX).collect();
        let mut starts = TableColumn::new();
        starts.push(0);
        // The first document of a class has the smallest id, so sets are numbered by name.
        for class in classes.iter().flatten().map(|class| class.position()) {
            if of_class[class] == u32::MAX {
                of_class[class] = starts.len() as u32 - 1;
                starts.push(0_u32);
            }
            // Holds the size of each set until all are known.
            starts[of_class[class] as usize + 1] += 1;
        }
        let mut end = 0;
        for start in &mut starts[..] {
            end += *start;
            *start = end;
        }
        let mut ends = starts.clone();
        let mut members = TableColumn::zeroed(end as usize);
        for (document, class) in (0..).zip(classes) {
            if let Some(class) = class {
                let end = &mut ends[of_class[class.position()] as usize];
                members[*end as usize] = document;
                *end += 1;
            }
        }
        Self {
            members,
            starts,
            of_class,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the documents of a set, in the order of ids.
    pub(crate) fn members(&self, set: u32) -> &[u32] {
        &self.members[self.starts[set as usize] as usize..self.starts[set as usize + 1] as usize]
    }

    /// Returns the sets with two or more documents.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = u32> {
        let sizes = self.starts.windows(2).map(|set| set[1] - set[0]);
        (0..)
            .zip(sizes)
            .filter(|(_, size)| *size > 1)
            .map(|(set, _)| set)
    }

    /// Tells whether no two documents have equal texts.
    pub(crate) fn all_single(&self) -> bool {
        self.members.len() == self.len()
    }
}

/// The units that each class belongs to.
pub(crate) enum UnitPlacement {
    /// One unit each: the set of equal texts.
    Sets(TableColumn<u32>),
    /// The servers that hold it: the start of each class's list, and all lists.
    Servers(TableColumn<u32>, TableColumn<u32>),
}

impl UnitPlacement {
    pub(crate) fn of(&self, class: u32) -> &[u32] {
        let class = class as usize;
        match self {
            Self::Sets(sets) => std::slice::from_ref(&sets[class]),
            Self::Servers(starts, servers) => {
                &servers[starts[class] as usize..starts[class + 1] as usize]
            }
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
        let mut order: Vec<usize> = (0..sites.names.len()).collect();
        order.sort_unstable_by(|&a, &b| sites.names[a].cmp(&sites.names[b]));
        let mut ranks = vec![0; order.len()];
        for (rank, &number) in order.iter().enumerate() {
            ranks[number] = rank as u32;
        }
        let rank =
            |number: &Option<NonZeroU32>| number.map(|number| ranks[number.get() as usize - 1]);
        let of = sites.servers.iter().map(rank).collect();
        sites.servers = TableColumn::new();
        let names = order
            .iter()
            .map(|&number| std::mem::take(&mut sites.names[number]))
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
        let mut starts = TableColumn::<u32>::zeroed(classes + 1);
        held.iter()
            .for_each(|&(class, _)| starts[class as usize + 1] += 1);
        for class in 0..classes {
            starts[class + 1] += starts[class];
        }
        UnitPlacement::Servers(starts, held.into_iter().map(|(_, server)| server).collect())
    }
}

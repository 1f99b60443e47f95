//! Data that machines of a distributed deduplication exchange, and the work of each machine on complete buckets.
//!
//! ```text
//! pack       documents: their classes, ids and keys, each for the bucket that it belongs to       DocumentPacker
//! group      whole buckets of these: edges, and counts                                            DedupKernel::group
//! promising  whole buckets of edges: those that sizes and counts do not rule out                  DedupKernel::promising
//! connect    edges: the component of each node                                                    connected_nodes
//! members    whole buckets of classes and of components: who is worked on together                DedupKernel::members
//! ```

use hashbrown::HashSet;
use lookalike::cluster::Components;
use lookalike::hash::avalanche;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::kernel::dedup_kernel::{DedupKernel, KeyPlan};
use crate::kernel::error::KernelError;
use crate::kernel::packed_rows::{
    ClassRow, MIN_KEY_ROW_BYTES, NodeComponent, PackedBuckets, append_component, append_edge,
    append_id, append_key, for_each_edge, for_each_id, for_each_key, for_each_node_component,
    node_of, place_of_edge, place_of_node,
};
use crate::kernel::work_edges::{RepeatedKeyFilter, WorkEdge};
use crate::kernel::worker::{KernelDocument, KernelWorker};

/// Packed rows of each kind for one bucket. Some kinds may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedDocuments {
    /// Number of the bucket.
    pub bucket: u32,
    /// Documents as members of their classes.
    pub classes: Vec<u8>,
    /// Hashes of ids.
    pub ids: Vec<u8>,
    /// Keys of classes.
    pub keys: Vec<u8>,
}

/// Packs the documents of one task for the machines that need them.
pub struct DocumentPacker {
    worker: KernelWorker,
    plan: KeyPlan,
    buckets: u32,
    classes: PackedBuckets,
    ids: PackedBuckets,
    keys: PackedBuckets,
    /// Classes whose keys have been packed.
    seen: HashSet<u128>,
}

lookalike::opaque_debug! {
    [] DocumentPacker [];
}

impl DocumentPacker {
    /// Creates a packer for `buckets` buckets. All tasks must use the same plan and the same number of buckets.
    pub fn new(kernel: &DedupKernel, plan: KeyPlan, buckets: u32) -> Self {
        Self {
            worker: kernel.worker(),
            plan,
            buckets,
            classes: PackedBuckets::new(buckets),
            ids: PackedBuckets::new(buckets),
            keys: PackedBuckets::new(buckets),
            seen: HashSet::new(),
        }
    }

    /// Adds a document.
    ///
    /// # Errors
    /// [`KernelError::NoLevels`] if the plan was made by another kernel.
    pub fn add(&mut self, document: &KernelDocument<'_>) -> Result<(), KernelError> {
        // An id may occur once on each side; the seed separates the sides.
        let id = xxh3_128_with_seed(document.id.as_bytes(), u64::from(document.is_against));
        self.ids.push((id >> 64) as u64, |rows| append_id(id, rows));
        let Self {
            worker,
            plan,
            keys,
            seen,
            ..
        } = self;
        let with_fingerprint = worker.kernel.needs_fingerprints();
        let scanned = worker.scan_keys(
            document,
            plan,
            // Once per class and task; repetitions by other tasks are dropped when keys are grouped.
            |hash| seen.insert(hash).then(|| node_of(hash)),
            |key| {
                // Keys may be the smallest features of sets, with similar leading bits. Without hashing, a few
                // buckets would get all of them.
                let place = avalanche(key.class.key);
                keys.push(place, |rows| append_key(&key, with_fingerprint, rows));
            },
        )?;
        // A document without a text is kept in any case, so only its id is sent.
        if let Some(hash) = scanned.text_hash {
            let row = ClassRow {
                hash,
                order: &scanned.order,
                id: document.id,
            };
            let place = place_of_node(node_of(hash));
            self.classes.push(place, |rows| row.append_to(rows));
        }
        Ok(())
    }

    /// Returns the number of packed bytes that have not been taken.
    pub fn pending_bytes(&self) -> usize {
        self.classes.bytes + self.ids.bytes + self.keys.bytes
    }

    /// Takes the packed rows.
    pub fn take(&mut self) -> Vec<PackedDocuments> {
        let rows = (0..self.buckets).map(|bucket| PackedDocuments {
            bucket,
            classes: self.classes.take(bucket as usize),
            ids: self.ids.take(bucket as usize),
            keys: self.keys.take(bucket as usize),
        });
        rows.filter(|row| !(row.classes.is_empty() && row.ids.is_empty() && row.keys.is_empty()))
            .collect()
    }
}

/// Edges and counts of complete buckets of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupedDocuments {
    /// Number of ids.
    pub documents: u64,
    /// Number of ids that occur more than once on one side.
    pub repeated: u64,
    /// Number of classes.
    pub texts: u64,
    /// Number of edges, after adding up those found here.
    pub edge_count: u64,
    /// Packed edges with the number of their bucket.
    pub edges: Vec<(u32, Vec<u8>)>,
}

/// A class, or some of its copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMembers<'a> {
    /// The component of the class, or `None` if no edge leads to it.
    pub component: Option<i64>,
    /// Place of the preferred document in the order of survivors.
    pub order: &'a [u8],
    /// Id of that document.
    pub id: &'a str,
    /// True if that document is only compared with and never removed.
    pub is_against: bool,
    /// Ids of other documents of the class; empty in the row of the class itself.
    pub copies: Vec<&'a str>,
    /// True if these documents are only compared with and never removed.
    pub copies_are_against: bool,
}

/// Maximum number of copies in a row of [`ClassMembers`]: with ids of 100 bytes, 10,000 such rows, an engine's usual batch, have less than the
/// 2 GiB that a column of 32-bit offsets holds.
const COPIES_OF_A_ROW: usize = 1_000;

impl DedupKernel {
    /// Groups the packed rows of some buckets, from all machines. Each part has the number of its bucket, and its classes, ids
    /// and keys.
    ///
    /// # Errors
    /// [`KernelError::CutOff`] for truncated rows.
    pub fn group<'a>(
        &self,
        parts: impl IntoIterator<Item = (u32, [&'a [u8]; 3])>,
        buckets: u32,
        group_limit: Option<usize>,
    ) -> Result<GroupedDocuments, KernelError> {
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_by_key(|&(bucket, _)| bucket);
        let mut grouped = GroupedDocuments::default();
        let mut found = Vec::new();
        // Bucket by bucket: equal rows are in the same bucket, and the tables of one bucket fit into the processor's cache.
        for parts in parts.chunk_by(|a, b| a.0 == b.0) {
            let of_kind = |kind: usize| parts.iter().map(move |(_, rows)| rows[kind]);
            grouped.texts += texts_of(of_kind(0))?;
            let (documents, repeated) = ids_of(of_kind(1))?;
            grouped.documents += documents;
            grouped.repeated += repeated;
            self.edges_of(of_kind(2), group_limit, |edge| found.push(edge))?;
        }
        // From here on, edges of keys that were grouped together are a single row.
        add_up(&mut found);
        let mut edges = PackedBuckets::new(buckets);
        for edge in &found {
            edges.push(place_of_edge(edge), |rows| append_edge(edge, rows));
        }
        grouped.edge_count = found.len() as u64;
        grouped.edges = edges.into_rows();
        Ok(grouped)
    }

    /// Calls `visit` with the edges of all keys of a bucket.
    fn edges_of<'a>(
        &self,
        parts: impl Iterator<Item = &'a [u8]> + Clone,
        group_limit: Option<usize>,
        visit: impl FnMut(WorkEdge),
    ) -> Result<(), KernelError> {
        if self.needs_fingerprints() {
            let mut keys = Vec::new();
            for part in parts {
                for_each_key(part, true, |key| keys.push(key))?;
            }
            self.fingerprint_edges(keys, visit);
            return Ok(());
        }
        // Read the rows twice: most keys occur only once, and those are never stored.
        let bytes: usize = parts.clone().map(<[u8]>::len).sum();
        // No row is shorter, so there are at most this many keys.
        let mut filter = RepeatedKeyFilter::new(bytes / MIN_KEY_ROW_BYTES);
        for part in parts.clone() {
            for_each_key(part, false, |key| filter.add(key.class.key))?;
        }
        let mut keys = Vec::new();
        for part in parts {
            for_each_key(part, false, |key| {
                if filter.may_repeat(key.class.key) {
                    keys.push(key.class);
                }
            })?;
        }
        self.work_edges(keys, group_limit, visit);
        Ok(())
    }

    /// Adds up the edges of some buckets, from all machines, and calls `visit` with those that sizes and counts do not rule out.
    ///
    /// # Errors
    /// As [`DedupKernel::group`].
    pub fn promising<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a [u8]>,
        mut visit: impl FnMut(WorkEdge),
    ) -> Result<(), KernelError> {
        let mut edges = Vec::new();
        for part in parts {
            for_each_edge(part, |edge| edges.push(edge))?;
        }
        // Two classes may share keys of several buckets.
        add_up(&mut edges);
        for edge in edges.into_iter().filter(|edge| self.is_promising(edge)) {
            visit(edge);
        }
        Ok(())
    }

    /// Calls `visit` with the classes of some buckets that are in a component or have copies, and with these copies. The rows must be
    /// complete: all documents of the classes, and the components of all nodes.
    ///
    /// # Errors
    /// As [`DedupKernel::group`].
    pub fn members<'a>(
        &self,
        classes: impl IntoIterator<Item = &'a [u8]>,
        components: impl IntoIterator<Item = &'a [u8]>,
        mut visit: impl FnMut(ClassMembers<'a>),
    ) -> Result<(), KernelError> {
        let mut rows = Vec::new();
        for part in classes {
            ClassRow::for_each(part, |row| rows.push(row))?;
        }
        let mut nodes = hashbrown::HashMap::new();
        for part in components {
            for_each_node_component(part, |row| {
                nodes.insert(row.node, row.component);
            })?;
        }
        // Rows arrive from many machines in any order. The order of survivors, which ends with the id, is total.
        rows.sort_unstable_by(|a, b| (a.hash, a.order).cmp(&(b.hash, b.order)));
        for class in rows.chunk_by(|a, b| a.hash == b.hash) {
            let component = nodes.get(&node_of(class[0].hash)).copied();
            if component.is_some() || class.len() > 1 {
                show_class(class, component, &mut visit);
            }
        }
        Ok(())
    }
}

/// Returns the number of different texts among the classes of a bucket.
fn texts_of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Result<u64, KernelError> {
    let mut hashes = Vec::new();
    for part in parts {
        ClassRow::for_each(part, |row| hashes.push(row.hash))?;
    }
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes.len() as u64)
}

/// Returns the number of ids in a bucket, and the number of those that occur more than once.
fn ids_of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Result<(u64, u64), KernelError> {
    let mut ids = Vec::new();
    for part in parts {
        for_each_id(part, |id| ids.push(id))?;
    }
    ids.sort_unstable();
    let again = ids.chunk_by(|a, b| a == b).filter(|ids| ids.len() > 1);
    Ok((ids.len() as u64, again.count() as u64))
}

/// Sorts edges and merges those between the same classes of the same sizes, adding up their counts.
fn add_up(edges: &mut Vec<WorkEdge>) {
    // Counts come last in the order of edges, so edges of the same classes are adjacent.
    edges.sort_unstable();
    // `dedup_by` passes the later item first.
    edges.dedup_by(|edge, first| {
        let nodes = |edge: &WorkEdge| (edge.x, edge.y, edge.size_x, edge.size_y);
        let is_same = nodes(edge) == nodes(first);
        if is_same {
            first.shared = first.shared.saturating_add(edge.shared);
        }
        is_same
    });
}

/// Returns true if this place in the order of survivors is that of a document that is only compared with.
fn is_against(order: &[u8]) -> bool {
    order.first() == Some(&0)
}

fn show_class<'a>(
    class: &[ClassRow<'a>],
    component: Option<i64>,
    visit: &mut impl FnMut(ClassMembers<'a>),
) {
    let best = class[0];
    let whole = ClassMembers {
        component,
        order: best.order,
        id: best.id,
        is_against: is_against(best.order),
        copies: Vec::new(),
        copies_are_against: false,
    };
    // Documents that are only compared with come first in the order.
    let copies = class[1..].chunk_by(|a, b| is_against(a.order) == is_against(b.order));
    for side in copies {
        for part in side.chunks(COPIES_OF_A_ROW) {
            visit(ClassMembers {
                copies: part.iter().map(|row| row.id).collect(),
                copies_are_against: is_against(part[0].order),
                ..whole.clone()
            });
        }
    }
    visit(whole);
}

/// Packs components for the buckets of their nodes.
pub fn packed_components(
    rows: impl IntoIterator<Item = NodeComponent>,
    buckets: u32,
) -> Vec<(u32, Vec<u8>)> {
    let mut packed = PackedBuckets::new(buckets);
    for row in rows {
        packed.push(place_of_node(row.node), |rows| append_component(row, rows));
    }
    packed.into_rows()
}

/// Returns the component of each node of the edges: the smallest node connected with it. O(e log n), with 24 bytes per edge.
///
/// # Errors
/// [`KernelError::TooLarge`] if there are more nodes than one machine can number.
pub fn connected_nodes(edges: &[[i64; 2]]) -> Result<Vec<NodeComponent>, KernelError> {
    let mut nodes: Vec<i64> = edges.iter().flatten().copied().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let too_large = |_| KernelError::TooLarge {
        classes: nodes.len(),
    };
    let count = u32::try_from(nodes.len()).map_err(too_large)?;
    // A binary search, because a map would take more memory than the nodes themselves.
    let number = |node: i64| nodes.partition_point(|&other| other < node) as u32;
    let mut trees = Components::new(count);
    for &[x, y] in edges {
        trees.join(number(x), number(y));
    }
    let component = |at: u32| NodeComponent {
        node: nodes[at as usize],
        // Numbers ascend as nodes do, so the first number of a tree is that of its smallest node.
        component: nodes[trees.first(at) as usize],
    };
    Ok((0..count).map(component).collect())
}

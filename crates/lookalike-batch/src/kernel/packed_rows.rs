//! Rows that are sent between machines as bytes: the rows of a bucket are concatenated, so that an engine moves a few long values.
//!
//! All numbers are little-endian; small ones are LEB128, signed small ones zigzag:
//!
//! ```text
//! class      hash u128 | length of the order u32 | length of the id u32 | order, which ends with the id
//! id         hash u128
//! key        low 48 bits of the key | node | size [| fingerprint u128]
//! edge       x node | y node | size of x | size of y | shared, 0 for a chain
//! component  node i64 | component i64
//! node       high 48 bits, the only ones that are not 0
//! ```
//!
//! The low bits of a key are sufficient: two keys that agree in them make an unrelated pair a candidate, which is verified like any other. Among
//! 10^11 keys, one in 2,000 collides with another.

use crate::dedup::number_column::{put_varint, split_varint, unzigzag, zigzag};
use crate::kernel::error::KernelError;
use crate::kernel::work_edges::{CHAIN, ClassKey, FingerprintKey, WorkEdge};

/// Number of bytes of a packed key.
const KEY_BYTES: usize = 6;

/// Number of bytes of a packed node.
const NODE_BYTES: usize = 6;

/// Number of bytes of the shortest row of a key.
pub(crate) const MIN_KEY_ROW_BYTES: usize = KEY_BYTES + NODE_BYTES + 1;

/// Appends a signed number; those near 0 take one byte.
fn append_size(value: i32, out: &mut Vec<u8>) {
    put_varint(out, zigzag(i64::from(value) as u64));
}

/// Packed rows of each bucket.
#[derive(Debug)]
pub(crate) struct PackedBuckets {
    rows: Vec<Vec<u8>>,
    /// Bytes that have not been taken.
    pub(crate) bytes: usize,
}

impl PackedBuckets {
    pub(crate) fn new(buckets: u32) -> Self {
        Self {
            rows: vec![Vec::new(); buckets as usize],
            bytes: 0,
        }
    }

    /// Lets `append` add a row to the bucket of a value, whose bits must be nearly random.
    pub(crate) fn push(&mut self, value: u64, append: impl FnOnce(&mut Vec<u8>)) {
        // By the high bits of a product, to which all bits contribute (Lemire 2019); a remainder would cost a division per row.
        let at = (u128::from(value) * self.rows.len() as u128) >> 64;
        let rows = &mut self.rows[at as usize];
        let before = rows.len();
        append(rows);
        self.bytes += rows.len() - before;
    }

    /// Takes the rows of a bucket.
    pub(crate) fn take(&mut self, bucket: usize) -> Vec<u8> {
        let rows = std::mem::take(&mut self.rows[bucket]);
        self.bytes -= rows.len();
        rows
    }

    /// Returns the buckets that have rows.
    pub(crate) fn into_rows(self) -> Vec<(u32, Vec<u8>)> {
        (0..)
            .zip(self.rows)
            .filter(|(_, rows)| !rows.is_empty())
            .collect()
    }
}

/// Returns the number of a node: some bits of the hash of a class, which stand for it in edges before it has a rank.
///
/// Classes with the same number are one node. Then more classes are processed together, but no decision changes. Among a billion, this happens to one
/// in 300,000.
pub(crate) fn node_of(hash: u128) -> i64 {
    hash as i64 & (-1 << (64 - 8 * NODE_BYTES))
}

fn append_node(node: i64, out: &mut Vec<u8>) {
    // The first bytes are the low ones, which are 0.
    out.extend_from_slice(&node.to_le_bytes()[8 - NODE_BYTES..]);
}

/// Returns a value that distributes nodes among buckets.
pub(crate) fn place_of_node(node: i64) -> u64 {
    node as u64
}

/// Returns a value that distributes edges among buckets.
pub(crate) fn place_of_edge(edge: &WorkEdge) -> u64 {
    // Rotated, so that bits that both nodes have in common do not cancel out.
    lookalike::hash::avalanche((edge.x as u64).rotate_left(32) ^ edge.y as u64)
}

/// Reads values from packed rows.
struct RowReader<'a> {
    rest: &'a [u8],
    rows: &'static str,
}

impl<'a> RowReader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], KernelError> {
        let cut_off = KernelError::CutOff { rows: self.rows };
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(cut_off)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn small(&mut self) -> Result<u64, KernelError> {
        let cut_off = KernelError::CutOff { rows: self.rows };
        let (value, rest) = split_varint(self.rest).ok_or(cut_off)?;
        self.rest = rest;
        Ok(value)
    }

    fn size(&mut self) -> Result<i32, KernelError> {
        Ok(unzigzag(self.small()?) as i32)
    }

    fn node(&mut self) -> Result<i64, KernelError> {
        let mut node = [0; 8];
        node[8 - NODE_BYTES..].copy_from_slice(self.bytes(NODE_BYTES)?);
        Ok(i64::from_le_bytes(node))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], KernelError> {
        let bytes = self.bytes(N)?;
        Ok(bytes.try_into().expect("as long as asked for"))
    }
}

/// Calls `visit` with each row of packed bytes.
fn for_each<'a, T>(
    rows: &'static str,
    bytes: &'a [u8],
    read: impl Fn(&mut RowReader<'a>) -> Result<T, KernelError>,
    mut visit: impl FnMut(T),
) -> Result<(), KernelError> {
    let mut reader = RowReader { rest: bytes, rows };
    while !reader.rest.is_empty() {
        visit(read(&mut reader)?);
    }
    Ok(())
}

/// A document as a member of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassRow<'a> {
    pub(crate) hash: u128,
    /// Place in the order of survivors.
    pub(crate) order: &'a [u8],
    pub(crate) id: &'a str,
}

impl<'a> ClassRow<'a> {
    pub(crate) fn append_to(self, out: &mut Vec<u8>) {
        out.extend(self.hash.to_le_bytes());
        out.extend((self.order.len() as u32).to_le_bytes());
        out.extend((self.id.len() as u32).to_le_bytes());
        out.extend(self.order);
    }

    pub(crate) fn for_each(bytes: &'a [u8], visit: impl FnMut(Self)) -> Result<(), KernelError> {
        let rows = "classes";
        let read = |reader: &mut RowReader<'a>| {
            let hash = u128::from_le_bytes(reader.array()?);
            let length = u32::from_le_bytes(reader.array()?) as usize;
            let of_id = u32::from_le_bytes(reader.array()?) as usize;
            let order = reader.bytes(length)?;
            let id = length.checked_sub(of_id).and_then(|at| order.get(at..));
            let id = id.and_then(|id| std::str::from_utf8(id).ok());
            let id = id.ok_or(KernelError::CutOff { rows })?;
            Ok(Self { hash, order, id })
        };
        for_each(rows, bytes, read, visit)
    }
}

pub(crate) fn append_id(hash: u128, out: &mut Vec<u8>) {
    out.extend(hash.to_le_bytes());
}

pub(crate) fn for_each_id(bytes: &[u8], visit: impl FnMut(u128)) -> Result<(), KernelError> {
    let read = |reader: &mut RowReader<'_>| Ok(u128::from_le_bytes(reader.array()?));
    for_each("ids", bytes, read, visit)
}

pub(crate) fn append_key(key: &FingerprintKey, with_fingerprint: bool, out: &mut Vec<u8>) {
    let mut row = [0; KEY_BYTES + NODE_BYTES];
    row[..KEY_BYTES].copy_from_slice(&key.class.key.to_le_bytes()[..KEY_BYTES]);
    row[KEY_BYTES..].copy_from_slice(&key.class.rank.to_le_bytes()[8 - NODE_BYTES..]);
    out.extend_from_slice(&row);
    append_size(key.class.size, out);
    if with_fingerprint {
        out.extend_from_slice(&key.fingerprint.to_le_bytes());
    }
}

pub(crate) fn for_each_key(
    bytes: &[u8],
    with_fingerprint: bool,
    visit: impl FnMut(FingerprintKey),
) -> Result<(), KernelError> {
    let read = |reader: &mut RowReader<'_>| {
        let mut key = [0; 8];
        key[..KEY_BYTES].copy_from_slice(reader.bytes(KEY_BYTES)?);
        let class = ClassKey {
            key: u64::from_le_bytes(key),
            rank: reader.node()?,
            size: reader.size()?,
        };
        let fingerprint = match with_fingerprint {
            true => u128::from_le_bytes(reader.array()?),
            false => 0,
        };
        Ok(FingerprintKey { class, fingerprint })
    };
    for_each("keys", bytes, read, visit)
}

pub(crate) fn append_edge(edge: &WorkEdge, out: &mut Vec<u8>) {
    append_node(edge.x, out);
    append_node(edge.y, out);
    append_size(edge.size_x, out);
    append_size(edge.size_y, out);
    let is_chain = edge.shared >= CHAIN;
    // A chain is the most frequent kind of edge in large groups, and 2^32 would take five bytes. Counted edges are never
    // zero.
    put_varint(out, if is_chain { 0 } else { edge.shared as u64 });
}

pub(crate) fn for_each_edge(bytes: &[u8], visit: impl FnMut(WorkEdge)) -> Result<(), KernelError> {
    let read = |reader: &mut RowReader<'_>| {
        Ok(WorkEdge {
            x: reader.node()?,
            y: reader.node()?,
            size_x: reader.size()?,
            size_y: reader.size()?,
            shared: match reader.small()? {
                0 => CHAIN,
                shared => shared as i64,
            },
        })
    };
    for_each("edges", bytes, read, visit)
}

/// A node of a graph and its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeComponent {
    /// The node.
    pub node: i64,
    /// The smallest node that it is connected with.
    pub component: i64,
}

pub(crate) fn append_component(row: NodeComponent, out: &mut Vec<u8>) {
    out.extend(row.node.to_le_bytes());
    out.extend(row.component.to_le_bytes());
}

pub(crate) fn for_each_node_component(
    bytes: &[u8],
    visit: impl FnMut(NodeComponent),
) -> Result<(), KernelError> {
    let read = |reader: &mut RowReader<'_>| {
        Ok(NodeComponent {
            node: i64::from_le_bytes(reader.array()?),
            component: i64::from_le_bytes(reader.array()?),
        })
    };
    for_each("components", bytes, read, visit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads truncated rows.
    type ReadTruncated = fn(&[u8]) -> Result<(), KernelError>;

    proptest! {
        #[test]
        fn rows_come_back_as_they_went_in_and_rows_that_are_cut_are_refused(
            hash in any::<u128>(),
            rules in prop::collection::vec(any::<u8>(), 0..9),
            id in "[a-zé]{0,6}",
            numbers in any::<(u64, i64, i64, i32, i32, u128)>(),
            shared in 1..=CHAIN,
        ) {
            let (key, x, y, size_x, size_y, fingerprint) = numbers;
            let key = key & ((1 << 48) - 1);
            let (x, y) = (node_of(x as u128), node_of(y as u128));
            let order = [&rules[..], id.as_bytes()].concat();
            let class = ClassRow { hash, order: &order, id: &id };
            let of_class = FingerprintKey { class: ClassKey { key, rank: x, size: size_x }, fingerprint };
            let edge = WorkEdge { x, y, size_x, size_y, shared };
            let component = NodeComponent { node: x, component: y };
            let mut packed: [Vec<u8>; 4] = Default::default();
            for _ in 0..2 {
                class.append_to(&mut packed[0]);
                append_key(&of_class, true, &mut packed[1]);
                append_edge(&edge, &mut packed[2]);
                append_component(component, &mut packed[3]);
            }
            let mut classes = Vec::new();
            ClassRow::for_each(&packed[0], |row| classes.push(row)).unwrap();
            prop_assert_eq!(classes, [class, class]);
            let mut keys = Vec::new();
            for_each_key(&packed[1], true, |row| keys.push(row)).unwrap();
            prop_assert_eq!(keys, [of_class, of_class]);
            let mut edges = Vec::new();
            for_each_edge(&packed[2], |row| edges.push(row)).unwrap();
            prop_assert_eq!(edges, [edge, edge]);
            let mut components = Vec::new();
            for_each_node_component(&packed[3], |row| components.push(row)).unwrap();
            prop_assert_eq!(components, [component, component]);

            let reads: [ReadTruncated; 4] = [
                |cut| ClassRow::for_each(cut, |_| ()),
                |cut| for_each_key(cut, true, |_| ()),
                |cut| for_each_edge(cut, |_| ()),
                |cut| for_each_node_component(cut, |_| ()),
            ];
            for (rows, read) in packed.iter().zip(reads) {
                for length in (1..rows.len()).filter(|length| *length != rows.len() / 2) {
                    prop_assert!(read(&rows[..length]).is_err(), "{} bytes", length);
                }
            }
        }
    }
}

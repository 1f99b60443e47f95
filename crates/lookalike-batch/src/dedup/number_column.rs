//! Columns of document and class numbers in files. They can hold numbers of any size, although tables in memory are limited to 2^32.
//!
//! A number is written as its difference from the one that the reader expects, so that most take one byte. A column consists of blocks of up to
//! [`BLOCK`] numbers: the length in bytes (u64), and the differences as varints (7 bits per byte, lowest first) in zigzag (0, -1, 1, -2, ...).
//!
//! Resemblances follow the column of their numbers, 8 bytes each.

use std::io::{self, Read, Write};

use crate::dedup::decision_table::NumberedSimilarity;
use crate::dedup::hashing_stream::{HashingStream, damaged};
use crate::parallel::in_order;
use crate::spill::table_column::TableColumn;

/// Number of numbers in each block except the last.
const BLOCK: usize = 1 << 16;

/// The number that is most frequent at a position of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpectedNumber {
    /// The previous number plus one; 0 at the start.
    Next,
    /// The position itself.
    Position,
}

/// The next position in a column.
struct ColumnPosition {
    expected: ExpectedNumber,
    position: u64,
    next: u64,
}

impl ColumnPosition {
    fn first(expected: ExpectedNumber) -> Self {
        Self {
            expected,
            position: 0,
            next: 0,
        }
    }

    fn expected(&self) -> u64 {
        match self.expected {
            ExpectedNumber::Next => self.next,
            ExpectedNumber::Position => self.position,
        }
    }

    fn pass(&mut self, number: u64) {
        self.position += 1;
        self.next = number.wrapping_add(1);
    }
}

/// Appends a number, 7 bits per byte, lowest first.
pub(crate) fn put_varint(bytes: &mut impl Extend<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.extend([number as u8 | 0x80]);
        number >>= 7;
    }
    bytes.extend([number as u8]);
}

/// Splits the bytes into their first number and the rest. Returns `None` if they do not start with one.
pub(crate) fn split_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut rest) = (0, bytes);
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, others) = rest.split_first()?;
        rest = others;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((number, rest));
        }
    }
    // Ten bytes hold 64 bits, so a longer number is damaged.
    None
}

/// Maps differences near 0, of either sign, to small numbers: 0, -1, 1, -2 and so on become 0, 1, 2, 3.
pub(crate) fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

/// Returns the difference that [`zigzag`] maps to a number.
pub(crate) fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

/// Writes a column.
pub(crate) fn write_numbers(
    out: &mut impl Write,
    numbers: impl Iterator<Item = u64>,
    expected: ExpectedNumber,
) -> io::Result<()> {
    let mut place = ColumnPosition::first(expected);
    let mut numbers = numbers.peekable();
    let mut block = Vec::new();
    while numbers.peek().is_some() {
        block.clear();
        put_block(&mut block, &mut place, numbers.by_ref().take(BLOCK));
        write_block(out, &block)?;
    }
    Ok(())
}

/// Writes a column as [`write_numbers`] does; `threads` threads encode its blocks.
pub(crate) fn write_column(
    out: &mut impl Write,
    numbers: &[u32],
    expected: ExpectedNumber,
    threads: usize,
) -> io::Result<()> {
    let starts = (0..numbers.len()).step_by(BLOCK).collect();
    let block_from = |start: usize| -> io::Result<Vec<u8>> {
        // The state that all earlier numbers leave depends only on the last one, so blocks can be encoded in any order.
        let mut place = ColumnPosition {
            expected,
            position: start as u64,
            next: start
                .checked_sub(1)
                .map_or(0, |last| u64::from(numbers[last]) + 1),
        };
        let numbers = &numbers[start..numbers.len().min(start + BLOCK)];
        let mut block = Vec::with_capacity(2 * numbers.len());
        put_block(
            &mut block,
            &mut place,
            numbers.iter().copied().map(u64::from),
        );
        Ok(block)
    };
    in_order(starts, threads, block_from, |block| {
        write_block(out, &block)
    })
}

/// Appends numbers, each as its difference from the expected one.
fn put_block(block: &mut Vec<u8>, place: &mut ColumnPosition, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        // Wrapping, so that each pair of numbers has a difference in 64 bits.
        put_varint(block, zigzag(number.wrapping_sub(place.expected())));
        place.pass(number);
    }
}

fn write_block(out: &mut impl Write, block: &[u8]) -> io::Result<()> {
    out.write_all(&(block.len() as u64).to_le_bytes())?;
    out.write_all(block)
}

/// Reads a column of `count` numbers. Returns an error if `T` cannot hold one of them.
pub(crate) fn read_numbers<T: TryFrom<u64>>(
    file: &mut HashingStream<impl Read>,
    count: u64,
    expected: ExpectedNumber,
) -> io::Result<TableColumn<T>> {
    let mut place = ColumnPosition::first(expected);
    // Nothing is reserved: each number takes at least a byte, so a wrong count ends with the file.
    let mut numbers = TableColumn::new();
    while place.position < count {
        let length = file.word()?;
        let block = file.column::<u8>(length)?;
        let mut rest = &block[..];
        let of_block = (count - place.position).min(BLOCK as u64);
        for _ in 0..of_block {
            let (difference, others) = split_varint(rest).ok_or_else(damaged)?;
            rest = others;
            let number = place.expected().wrapping_add(unzigzag(difference));
            place.pass(number);
            numbers.push(T::try_from(number).map_err(|_| damaged())?);
        }
        if !rest.is_empty() {
            return Err(damaged());
        }
    }
    Ok(numbers)
}

/// Writes resemblances with their numbers, which must be ascending.
pub(crate) fn write_similarities(
    out: &mut impl Write,
    similarities: &[NumberedSimilarity],
) -> io::Result<()> {
    let numbers = similarities.iter().map(|near| near.number() as u64);
    write_numbers(out, numbers, ExpectedNumber::Next)?;
    // In blocks, so that the whole column is not in memory twice.
    for block in similarities.chunks(BLOCK) {
        let bits: Vec<u64> = block
            .iter()
            .map(|near| near.similarity().to_bits())
            .collect();
        out.write_all(bytemuck::cast_slice(&bits))?;
    }
    Ok(())
}

/// Reads `count` resemblances.
pub(crate) fn read_similarities(
    file: &mut HashingStream<impl Read>,
    count: u64,
) -> io::Result<TableColumn<NumberedSimilarity>> {
    let numbers: TableColumn<u32> = read_numbers(file, count, ExpectedNumber::Next)?;
    let mut similarities = TableColumn::with_capacity(numbers.len());
    for block in numbers.chunks(BLOCK) {
        let bits = file.column::<u64>(block.len() as u64)?;
        let near = block.iter().zip(bits);
        similarities.extend(
            near.map(|(&number, bits)| NumberedSimilarity::new(number, f64::from_bits(bits))),
        );
    }
    Ok(similarities)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(numbers: &[u64], expected: ExpectedNumber) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_numbers(&mut bytes, numbers.iter().copied(), expected).unwrap();
        bytes
    }

    fn read<T: TryFrom<u64>>(
        bytes: &[u8],
        count: usize,
        expected: ExpectedNumber,
    ) -> io::Result<TableColumn<T>> {
        read_numbers(&mut HashingStream::new(bytes), count as u64, expected)
    }

    fn expectations() -> impl Strategy<Value = ExpectedNumber> {
        prop_oneof![Just(ExpectedNumber::Next), Just(ExpectedNumber::Position)]
    }

    proptest! {
        #[test]
        fn numbers_of_any_size_come_back(
            numbers in prop::collection::vec(prop_oneof![0..300_u64, (1_u64 << 32) - 2..(1_u64 << 32) + 2, any::<u64>()], 0..60),
            expected in expectations(),
        ) {
            let bytes = written(&numbers, expected);
            prop_assert_eq!(read::<u64>(&bytes, numbers.len(), expected).unwrap(), numbers.clone());
            let narrow: Result<Vec<u32>, _> = numbers.iter().map(|&number| u32::try_from(number)).collect();
            prop_assert_eq!(read::<u32>(&bytes, numbers.len(), expected).ok().map(|read| read.to_vec()), narrow.ok());
        }

        #[test]
        fn other_bytes_are_refused_or_give_as_many_numbers(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            count in 0..6_usize,
            expected in expectations(),
        ) {
            let framed = [&(bytes.len() as u64).to_le_bytes(), &bytes[..]].concat();
            if let Ok(numbers) = read::<u64>(&framed, count, expected) {
                prop_assert_eq!(numbers.len(), count);
            }
        }
    }

    #[test]
    fn six_billion_documents_have_numbers_in_files() {
        // Survivors of the last of six billion documents: each is kept itself, except two that are removed for the first.
        let first = 6_000_000_000_u64;
        let numbers = [first, first + 1, first + 2, first, first, first + 5];
        for expected in [ExpectedNumber::Next, ExpectedNumber::Position] {
            let bytes = written(&numbers, expected);
            assert_eq!(read::<u64>(&bytes, 6, expected).unwrap(), numbers);
            assert!(read::<u32>(&bytes, 6, expected).is_err());
        }
    }

    #[test]
    fn what_is_expected_takes_a_byte_and_blocks_follow_each_other() {
        let count = 2 * BLOCK + 3;
        let numbers: Vec<u64> = (0..count as u64).collect();
        let narrow: Vec<u32> = (0..count as u32).collect();
        for expected in [ExpectedNumber::Next, ExpectedNumber::Position] {
            let bytes = written(&numbers, expected);
            assert_eq!(bytes.len(), count + 3 * 8);
            for threads in [1, 3] {
                let mut column = Vec::new();
                write_column(&mut column, &narrow, expected, threads).unwrap();
                assert!(column == bytes);
            }
            assert_eq!(read::<u64>(&bytes, count, expected).unwrap(), numbers);
            // One too few and one too many.
            assert!(read::<u64>(&bytes, count - 1, expected).is_err());
            assert!(read::<u64>(&bytes, count + 1, expected).is_err());
        }
    }
}

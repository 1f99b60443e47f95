//! Pairs of fingerprints within a distance.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{UInt32Array, UInt64Array};
use lookalike_hamming::{
    BatchJoin, BatchLimits, JoinScratch, SelfJoinLimits, Word, self_join_until,
};
use pyo3::prelude::*;

use crate::array::ArrowTable;
use crate::codes::{CodeColumn, FingerprintColumn};
use crate::error::CallError;
use crate::preset::{NamedPreset, search_distance};
use crate::room::{collected, ensure_room};
use crate::whole::WholeNumber;
use crate::work::{Cancellation, for_all, locked, run};

/// Finds all pairs of a row of `a` and a row of `b`, or of two rows of `a`, whose fingerprints differ in at most `distance` bits: a table of `a` and
/// `b` (uint64, rows from 0; without `b=` the smaller row first) and `distance` (uint32, bits), in the order of rows.
///
/// The result is exact: no pair is missing (section 3 of Manku, Jain, Das Sarma, WWW 2007). `a` and `b` are columns of uint64, or of the
/// hexadecimal digits of 64 or 128 bits, as `simhash` and the command make them: Arrow data, NumPy arrays, or iterables of `int` or `str` and None.
/// Nulls are in no pair. `distance` is from 0 to 16, by default 3. A `preset` sets it for fingerprints of `simhash(texts, preset=preset)`.
///
/// Raises `TypeError` for values that are not fingerprints; `ValueError` for other distances, widths that differ, a distance together with a
/// preset, and fingerprints that the preset is not for; `MemoryLimit` if the pairs exceed the memory: n equal fingerprints have n (n - 1) / 2
/// pairs, and n in `a` equal to m in `b` have n m.
///
/// >>> join([0b1111, 0b1110, 0b0000], distance=1).to_pylist()
/// [{'a': 0, 'b': 1, 'distance': 1}]
#[pyfunction]
#[pyo3(signature = (a, b=None, distance=None, *, preset=None, threads=None))]
pub(crate) fn join(
    a: &Bound<'_, PyAny>,
    b: Option<&Bound<'_, PyAny>>,
    distance: Option<WholeNumber>,
    preset: Option<NamedPreset>,
    threads: Option<WholeNumber>,
) -> PyResult<ArrowTable> {
    let distance = search_distance(distance, preset)?;
    let threads = crate::work::threads(threads)?;
    let py = a.py();
    let mut a = FingerprintColumn::of(a)?;
    let mut b = b.map(FingerprintColumn::of).transpose()?;
    if let Some(b) = &mut b {
        FingerprintColumn::ensure_equal_widths(&mut a, b)?;
    }
    if let Some(preset) = preset {
        preset.ensure_fits(&mut a)?;
        b.as_mut().map_or(Ok(()), |b| preset.ensure_fits(b))?;
    }
    let pairs = run(py, |cancellation| match (&a, &b) {
        (FingerprintColumn::Narrow(a), Some(FingerprintColumn::Narrow(b))) => {
            joined(a, b, distance, threads, cancellation)
        }
        (FingerprintColumn::Wide(a), Some(FingerprintColumn::Wide(b))) => {
            joined(a, b, distance, threads, cancellation)
        }
        (FingerprintColumn::Narrow(a), _) => self_joined(a, distance, threads, cancellation),
        (FingerprintColumn::Wide(a), _) => self_joined(a, distance, threads, cancellation),
    })?;
    let rows = |of: fn(&RowPair) -> u64| -> Result<UInt64Array, CallError> {
        Ok(collected(pairs.iter().map(of), || too_many(pairs.len()))?.into())
    };
    let (a, b) = (rows(|pair| pair.a)?, rows(|pair| pair.b)?);
    let distances = pairs.iter().map(|pair| pair.distance);
    let distances: UInt32Array = collected(distances, || too_many(pairs.len()))?.into();
    Ok(ArrowTable::of(vec![
        ("a", Arc::new(a)),
        ("b", Arc::new(b)),
        ("distance", Arc::new(distances)),
    ])?)
}

/// Two rows whose fingerprints are close.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowPair {
    a: u64,
    b: u64,
    distance: u32,
}

/// Returns what is wrong with so many pairs, and the remedy.
fn too_many(pairs: usize) -> String {
    format!(
        "{pairs} pairs or more exceed the memory: leave repeats out, lower the distance, or join parts of the fingerprints"
    )
}

/// Returns what is wrong with so many pairs of equal fingerprints, and the remedy.
fn too_many_equal(pairs: usize) -> String {
    format!(
        "{pairs} pairs of equal fingerprints exceed the memory: leave repeats out, and join different ones"
    )
}

/// Adds pairs, unless the system refuses the memory for them.
fn extend(
    pairs: &mut Vec<RowPair>,
    more: impl ExactSizeIterator<Item = RowPair>,
) -> Result<(), CallError> {
    let count = pairs.len().saturating_add(more.len());
    pairs
        .try_reserve(more.len())
        .map_err(|_| CallError::MemoryLimit {
            message: too_many(count),
            needed: Some((count as u64).saturating_mul(size_of::<RowPair>() as u64)),
        })?;
    pairs.extend(more);
    Ok(())
}

/// Rows sorted by their codes.
struct RowsByCode<W>(Vec<(W, u64)>);

impl<W: Word> RowsByCode<W> {
    fn of(column: &CodeColumn<W>, cancellation: &Cancellation) -> Result<Self, CallError> {
        let numbered = column.codes.iter().enumerate();
        let mut rows: Vec<_> = numbered.map(|(at, &code)| (code, column.row(at))).collect();
        // By code, for the binary search in `rows`, and then by row, so that equal codes have their rows in ascending order.
        sort(&mut rows, cancellation)?;
        Ok(Self(rows))
    }

    fn rows(&self, code: W) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
        // The engine sorts and drops repeated codes itself, so it reports codes instead of rows. A search for each pair found is cheap
        // compared with the join.
        let first = self.0.partition_point(|&(other, _)| other < code);
        let rest = &self.0[first..];
        let count = rest.partition_point(|&(other, _)| other == code);
        rest[..count].iter().map(|&(_, row)| row)
    }

    fn equal_codes(&self) -> impl Iterator<Item = &[(W, u64)]> {
        self.0.chunk_by(|a, b| a.0 == b.0)
    }

    /// Returns an error if the pairs of equal codes with other rows exceed the memory.
    fn ensure_room_with(&self, others: &[W]) -> Result<(), CallError> {
        // Twice, because the pairs of chunks are copied into one list.
        let bytes = |pairs: usize| (pairs as u64).saturating_mul(2 * size_of::<RowPair>() as u64);
        let most_equal = self.equal_codes().map(<[_]>::len).max().unwrap_or(0);
        let bound = others.len().saturating_mul(most_equal);
        // Counting takes a search for each row, which is left out if the memory is enough in any case.
        ensure_room(bytes(bound), String::new).or_else(|_| {
            let counts = others.iter().map(|&code| self.rows(code).len());
            let pairs = counts.fold(0, usize::saturating_add);
            ensure_room(bytes(pairs), || too_many_equal(pairs))
        })
    }
}

/// Number of items that are sorted between checks for cancellation.
const SORTED: usize = 1 << 18;

fn cancelled() -> CallError {
    CallError::Failed("the join was cancelled".to_owned())
}

/// Sorts items, unless cancelled.
fn sort<T: Ord>(items: &mut [T], cancellation: &Cancellation) -> Result<(), CallError> {
    let is_cancelled = || cancellation.is_cancelled();
    let mut parts = vec![items];
    while let Some(part) = parts.pop() {
        if is_cancelled() {
            return Err(cancelled());
        }
        if part.len() <= SORTED {
            part.sort_unstable();
            continue;
        }
        let middle = part.len() / 2;
        part.select_nth_unstable(middle);
        let (first, second) = part.split_at_mut(middle);
        parts.extend([second, first]);
    }
    Ok(())
}

/// The bits in which some codes differ. A design expects bits to be evenly distributed, and a table whose key contains none of the
/// differing bits would be a single long list. So these bits are spread over all positions, of 32 or 64 bits if that is enough.
struct VaryingBits<W> {
    bits: W,
    /// Values of the bits in which the codes do not differ.
    common: W,
    /// Positions to which the bits move, in their order.
    places: W,
    /// Number of positions: 32, 64 or 128.
    width: u32,
}

impl<W: Word> VaryingBits<W> {
    fn of(codes: &[W]) -> Self {
        let first = codes.first().copied().unwrap_or(W::ZERO);
        let bits = codes.iter();
        let bits = bits.fold(W::ZERO, |bits, &code| bits | (code ^ first));
        let count = bits.ones();
        let width = count.next_power_of_two().max(u32::BITS);
        let places = (0..count).fold(0, |places, at| places | 1 << (at * width / count));
        Self {
            bits,
            common: first & !bits,
            places: W::from_u128(places),
            width,
        }
    }

    fn spread<C: Word>(&self, code: W) -> C {
        let spread = code.extract(self.bits).deposit(self.places);
        C::from_u128(spread.to_u128())
    }

    /// Reverses [`VaryingBits::spread`].
    fn gathered<C: Word>(&self, spread: C) -> W {
        // This has the width of the positions, which fits in a code.
        let spread = W::from_u128(spread.to_u128());
        spread.extract(self.places).deposit(self.bits) | self.common
    }

    /// Returns the distance of any code to each of the codes in the other bits.
    fn distance_outside(&self, code: W) -> u32 {
        (code & !self.bits ^ self.common).ones()
    }
}

/// Number of codes that a thread takes at a time.
const CHUNK: usize = 1 << 16;

/// Finds all pairs of a row of `a` and a row of `b`.
fn joined<W: Word>(
    a: &CodeColumn<W>,
    b: &CodeColumn<W>,
    distance: u32,
    threads: usize,
    cancellation: &Cancellation,
) -> Result<Vec<RowPair>, CallError> {
    let bits = VaryingBits::of(&b.codes);
    let join = match bits.width {
        u32::BITS => joined_in::<W, u32>,
        u64::BITS => joined_in::<W, u64>,
        _ => joined_in::<W, u128>,
    };
    join(a, b, &bits, distance, threads, cancellation)
}

/// Finds all pairs of a row of `a` and a row of `b`, given the bits in which their codes vary.
fn joined_in<W: Word, C: Word>(
    a: &CodeColumn<W>,
    b: &CodeColumn<W>,
    bits: &VaryingBits<W>,
    distance: u32,
    threads: usize,
    cancellation: &Cancellation,
) -> Result<Vec<RowPair>, CallError> {
    let limits = BatchLimits::default()
        .stream_codes(a.codes.len() as u64)
        .threads(threads);
    let spread: Vec<C> = b.codes.iter().map(|&code| bits.spread(code)).collect();
    let is_cancelled = || cancellation.is_cancelled();
    let queries = BatchJoin::new_until(&spread, distance, limits, &is_cancelled);
    let queries = queries.map_err(CallError::value)?;
    drop(spread);
    let rows = RowsByCode::of(b, cancellation)?;
    rows.ensure_room_with(&a.codes)?;
    // Nulls have no code, so positions in `codes` are not rows of the column: `CodeColumn::row` converts each.
    let starts: Vec<usize> = (0..a.codes.len()).step_by(CHUNK).collect();
    let found = for_all(
        threads,
        starts,
        cancellation,
        JoinScratch::default,
        |scratch, start| {
            let near = |&at: &usize| bits.distance_outside(a.codes[at]) <= distance;
            let end = (start + CHUNK).min(a.codes.len());
            let chunk: Vec<usize> = (start..end).filter(near).collect();
            let codes: Vec<C> = chunk.iter().map(|&at| bits.spread(a.codes[at])).collect();
            let (mut pairs, mut added) = (Vec::new(), Ok(()));
            queries.join(&codes, scratch, &mut |at, code, spread_distance| {
                let beside = bits.distance_outside(a.codes[chunk[at]]);
                if spread_distance + beside > distance || added.is_err() {
                    return;
                }
                let a = a.row(chunk[at]);
                let rows = rows.rows(bits.gathered(code));
                let near = rows.map(|b| RowPair {
                    a,
                    b,
                    distance: spread_distance + beside,
                });
                added = extend(&mut pairs, near);
            });
            added?;
            // Chunks cover ascending rows of `a`, so when each is sorted, their concatenation is sorted too.
            pairs.sort_unstable();
            Ok(pairs)
        },
    )?;
    let mut pairs = Vec::new();
    for of_chunk in found {
        extend(&mut pairs, of_chunk.into_iter())?;
    }
    Ok(pairs)
}

/// Finds all pairs `a < b` of rows.
fn self_joined<W: Word>(
    column: &CodeColumn<W>,
    distance: u32,
    threads: usize,
    cancellation: &Cancellation,
) -> Result<Vec<RowPair>, CallError> {
    let rows = RowsByCode::of(column, cancellation)?;
    // The join only reports pairs of different codes; pairs of equal ones are created here.
    let pairs = Mutex::new(equal_pairs(&rows, cancellation)?);
    let limits = SelfJoinLimits::default().threads(threads);
    let is_full = AtomicBool::new(false);
    let is_ended = || cancellation.is_cancelled() || is_full.load(Ordering::Relaxed);
    let ended = self_join_until(&column.codes, distance, limits, &is_ended, || {
        |first, second, distance| {
            let (rows, others) = (rows.rows(first), rows.rows(second));
            for a in rows {
                // The order of codes is not that of rows, so which row is `a` is decided for each pair.
                let of_row = others.clone().map(|b| RowPair {
                    a: a.min(b),
                    b: a.max(b),
                    distance,
                });
                if is_ended() || extend(&mut locked(&pairs), of_row).is_err() {
                    // The join ends at its next check.
                    is_full.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    });
    let mut pairs = pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
    if cancellation.is_cancelled() {
        return Err(cancelled());
    }
    if ended.is_break() || is_full.into_inner() {
        let message = too_many(pairs.len());
        return Err(CallError::MemoryLimit {
            message,
            needed: None,
        });
    }
    sort(&mut pairs, cancellation)?;
    Ok(pairs)
}

fn equal_pairs<W: Word>(
    rows: &RowsByCode<W>,
    cancellation: &Cancellation,
) -> Result<Vec<RowPair>, CallError> {
    let count: usize = rows
        .equal_codes()
        .map(|equal| equal.len() * (equal.len() - 1) / 2)
        .fold(0, usize::saturating_add);
    let mut pairs = Vec::new();
    // Reserved at once, so that the system refuses more memory than the machine has. Growing step by step, the process would be killed.
    pairs
        .try_reserve_exact(count)
        .map_err(|_| CallError::MemoryLimit {
            message: too_many_equal(count),
            needed: Some((count as u64).saturating_mul(size_of::<RowPair>() as u64)),
        })?;
    for equal in rows.equal_codes() {
        for (at, &(_, a)) in equal.iter().enumerate() {
            if cancellation.is_cancelled() {
                return Err(cancelled());
            }
            let later = equal[at + 1..].iter();
            pairs.extend(later.map(|&(_, b)| RowPair { a, b, distance: 0 }));
        }
    }
    Ok(pairs)
}

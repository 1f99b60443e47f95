//! Minima of hash values under random permutations, as the Python library datasketch computes them, to the last bit.
//!
//! NumPy's arithmetic is part of the definition: products of unsigned numbers wrap around.

use std::iter::zip;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyList};
use sha1::{Digest as _, Sha1};

use crate::error::CallError;
use crate::whole::WholeNumber;
use crate::work::{for_all, run};

/// The prime of the scheme `legacy`.
const MERSENNE: u64 = (1 << 61) - 1;
/// Sets that a thread takes at a time.
const BLOCK: usize = 64;

/// Random permutations of hash values, of one of the schemes of datasketch.
#[pyclass(frozen, name = "Permutations", module = "lookalike")]
pub(crate) struct MinwisePermutations(PermutationScheme);

enum PermutationScheme {
    /// `affine32`.
    Narrow { a: Vec<u32>, b: Vec<u32> },
    /// `affine64`.
    Wide { a: Vec<u64>, b: Vec<u64> },
    /// `legacy`.
    Mersenne { a: Vec<u64>, b: Vec<u64> },
}

/// The least value of each permutation so far.
enum Minima {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

fn narrow(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn wide(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The finalizer of MurmurHash3 for 32 bits.
fn mixed_32(mut hash: u32) -> u32 {
    // A bijection: different hashes stay different. `a·x + b` modulo a power of two mixes upwards only (bit i
    // of it depends on bits 0 to i of x); this mixes downwards as well.
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The finalizer of MurmurHash3 for 64 bits.
fn mixed_64(mut hash: u64) -> u64 {
    // The same for 64 bits, by Appleby's fmix64.
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// `x` modulo the prime, cut to 32 bits.
fn folded(x: u64) -> u64 {
    // At most 7 above the prime.
    // 2^61 is 1 modulo the prime: the three highest bits count as they are. No division, which would cost more
    // than all else in the loop.
    let sum = (x & MERSENNE) + (x >> 61);
    let rest = if sum >= MERSENNE { sum - MERSENNE } else { sum };
    rest & 0xffff_ffff
}

impl PermutationScheme {
    fn minima(&self, bytes: &[u8]) -> Minima {
        match self {
            Self::Narrow { .. } => Minima::Narrow(narrow(bytes)),
            Self::Wide { .. } | Self::Mersenne { .. } => Minima::Wide(wide(bytes)),
        }
    }

    /// The start of a SHA-1 of this item, as wide as the scheme wants it.
    fn hash(&self, item: &[u8]) -> u64 {
        let digest = Sha1::digest(item);
        let (words, _) = digest.as_chunks::<4>();
        let low = u32::from_le_bytes(words[0]);
        match self {
            // The first eight bytes as one little-endian number, of two halves.
            Self::Wide { .. } => u64::from(u32::from_le_bytes(words[1])) << 32 | u64::from(low),
            Self::Narrow { .. } | Self::Mersenne { .. } => low.into(),
        }
    }

    fn lower(&self, minima: &mut Minima, hash: u64) {
        match (self, minima) {
            (Self::Narrow { a, b }, Minima::Narrow(minima)) => {
                // The caller has seen to it that nothing is cut off.
                let hash = mixed_32(hash as u32);
                for (least, (a, b)) in zip(minima, zip(a, b)) {
                    *least = (*least).min(a.wrapping_mul(hash).wrapping_add(*b));
                }
            }
            (Self::Wide { a, b }, Minima::Wide(minima)) => {
                let hash = mixed_64(hash);
                for (least, (a, b)) in zip(minima, zip(a, b)) {
                    *least = (*least).min(a.wrapping_mul(hash).wrapping_add(*b));
                }
            }
            (Self::Mersenne { a, b }, Minima::Wide(minima)) => {
                for (least, (a, b)) in zip(minima, zip(a, b)) {
                    // The product is cut to 64 bits before it is reduced: no permutation in the strict sense,
                    // but what NumPy computes, and signatures must match those that are stored.
                    *least = (*least).min(folded(a.wrapping_mul(hash).wrapping_add(*b)));
                }
            }
            // `minima` makes those of the scheme.
            _ => {}
        }
    }

    fn of_set<'a>(&self, start: &[u8], items: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut minima = self.minima(start);
        items.for_each(|item| self.lower(&mut minima, self.hash(item)));
        minima.bytes()
    }
}

impl Minima {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Narrow(minima) => minima
                .iter()
                .flat_map(|least| least.to_le_bytes())
                .collect(),
            Self::Wide(minima) => minima
                .iter()
                .flat_map(|least| least.to_le_bytes())
                .collect(),
        }
    }
}

/// The items of a set, if all are `bytes`.
fn byte_strings(items: &Bound<'_, PyList>) -> Option<Vec<PyBackedBytes>> {
    // One item of another type sends the whole set back: Python then hashes all of it by the function that the
    // caller gave, so that a set is never half of each.
    let items = items.iter();
    items
        .map(|item| Some(PyBackedBytes::from(item.cast_into_exact::<PyBytes>().ok()?)))
        .collect()
}

#[pymethods]
impl MinwisePermutations {
    /// The permutations with these factors and summands, little-endian numbers as wide as hash values of the scheme.
    #[new]
    fn new(scheme: &str, a: &[u8], b: &[u8]) -> PyResult<Self> {
        let permutations = match scheme {
            "affine32" => PermutationScheme::Narrow {
                a: narrow(a),
                b: narrow(b),
            },
            "affine64" => PermutationScheme::Wide {
                a: wide(a),
                b: wide(b),
            },
            "legacy" => PermutationScheme::Mersenne {
                a: wide(a),
                b: wide(b),
            },
            other => {
                return Err(
                    CallError::Value(format!("there is no permutation scheme {other:?}")).into(),
                );
            }
        };
        Ok(Self(permutations))
    }

    /// Hash values after these items, hashed by SHA-1. None if one of them is not `bytes`.
    fn update<'py>(
        &self,
        hashvalues: &[u8],
        items: &Bound<'py, PyList>,
    ) -> Option<Bound<'py, PyByteArray>> {
        let items_bytes = byte_strings(items)?;
        let minima = self
            .0
            .of_set(hashvalues, items_bytes.iter().map(|item| &**item));
        Some(PyByteArray::new(items.py(), &minima))
    }

    /// Hash values after these hashes: little-endian numbers, as wide as the hash values.
    fn update_hashed<'py>(
        &self,
        py: Python<'py>,
        hashvalues: &[u8],
        hashes: &[u8],
    ) -> Bound<'py, PyByteArray> {
        let mut minima = self.0.minima(hashvalues);
        match &self.0 {
            PermutationScheme::Narrow { .. } => {
                let hashes = narrow(hashes).into_iter();
                hashes.for_each(|hash| self.0.lower(&mut minima, hash.into()));
            }
            PermutationScheme::Wide { .. } | PermutationScheme::Mersenne { .. } => {
                let hashes = wide(hashes).into_iter();
                hashes.for_each(|hash| self.0.lower(&mut minima, hash));
            }
        }
        PyByteArray::new(py, &minima.bytes())
    }

    /// Hash values of many sets one after another, on all threads, each from these. None if an item is not `bytes`.
    fn bulk<'py>(
        &self,
        py: Python<'py>,
        hashvalues: &[u8],
        sets: Vec<Bound<'py, PyList>>,
        threads: Option<WholeNumber>,
    ) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        // `PyBackedBytes` keeps the objects alive and can be read without the interpreter: threads see the
        // bytes in place, nothing is copied.
        let sets: Option<Vec<_>> = sets.iter().map(byte_strings).collect();
        let Some(sets) = sets else {
            return Ok(None);
        };
        let threads = crate::work::threads(threads)?;
        let done = run(py, |cancellation| {
            let blocks: Vec<_> = sets.chunks(BLOCK).collect();
            let work = |_: &mut (), block: &[Vec<PyBackedBytes>]| {
                let of_sets = block
                    .iter()
                    .flat_map(|items| self.0.of_set(hashvalues, items.iter().map(|item| &**item)));
                Ok(of_sets.collect::<Vec<u8>>())
            };
            for_all(threads, blocks, cancellation, || (), work)
        })?;
        // A bytearray, for NumPy makes an array over it that can be written to.
        Ok(Some(PyByteArray::new(py, &done.concat())))
    }
}

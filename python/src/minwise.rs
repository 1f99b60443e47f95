//! Minima of hash values under random permutations, exactly as the Python library datasketch computes them.
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

/// Prime of the scheme `legacy`.
const MERSENNE: u64 = (1 << 61) - 1;
/// Number of sets that a thread takes at a time.
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

/// Least value of each permutation so far.
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

/// Computes the finalizer of MurmurHash3 for 32 bits.
fn mixed_32(mut hash: u32) -> u32 {
    // A bijection, so different hashes stay different. `a·x + b` modulo a power of two only mixes upwards (bit i of the result depends on
    // bits 0 to i of x); this also mixes downwards.
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// Computes the finalizer of MurmurHash3 for 64 bits.
fn mixed_64(mut hash: u64) -> u64 {
    // The 64-bit counterpart, Appleby's fmix64.
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Returns `x` modulo the prime, truncated to 32 bits.
fn folded(x: u64) -> u64 {
    // 2^61 is 1 modulo the prime, so the three highest bits are added as they are. The sum is at most 7 above the prime. This avoids a
    // division, which would cost more than the rest of the loop.
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

    /// Returns the beginning of an item's SHA-1 hash, as wide as the scheme needs.
    fn hash(&self, item: &[u8]) -> u64 {
        let digest = Sha1::digest(item);
        let (words, _) = digest.as_chunks::<4>();
        let low = u32::from_le_bytes(words[0]);
        match self {
            // The first eight bytes as one little-endian number, from two halves.
            Self::Wide { .. } => u64::from(u32::from_le_bytes(words[1])) << 32 | u64::from(low),
            Self::Narrow { .. } | Self::Mersenne { .. } => low.into(),
        }
    }

    fn lower(&self, minima: &mut Minima, hash: u64) {
        match (self, minima) {
            (Self::Narrow { a, b }, Minima::Narrow(minima)) => {
                // The caller has made sure that nothing is truncated.
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
                    // The product is truncated to 64 bits before it is reduced. This is not a permutation in the strict sense, but it is
                    // what NumPy computes, and signatures must match stored ones.
                    *least = (*least).min(folded(a.wrapping_mul(hash).wrapping_add(*b)));
                }
            }
            // `minima` always has the variant of the scheme.
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

/// Returns the items of a set, if all are `bytes`.
fn byte_strings(items: &Bound<'_, PyList>) -> Option<Vec<PyBackedBytes>> {
    // If one item has another type, the whole set is returned to Python, which hashes all of it with the caller's function, so that no set
    // is hashed by two functions.
    let items = items.iter();
    items
        .map(|item| Some(PyBackedBytes::from(item.cast_into_exact::<PyBytes>().ok()?)))
        .collect()
}

#[pymethods]
impl MinwisePermutations {
    /// Creates permutations with these factors and summands: little-endian numbers as wide as the scheme's hash values.
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

    /// Returns the hash values after adding these items, hashed by SHA-1. None if one of them is not `bytes`.
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

    /// Returns the hash values after adding these hashes: little-endian numbers as wide as the hash values.
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

    /// Returns the hash values of many sets, computed on all threads, each starting from these. None if an item is not `bytes`.
    fn bulk<'py>(
        &self,
        py: Python<'py>,
        hashvalues: &[u8],
        sets: Vec<Bound<'py, PyList>>,
        threads: Option<WholeNumber>,
    ) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        // `PyBackedBytes` keeps the objects alive and can be read without the interpreter, so threads read the bytes in place without a
        // copy.
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
        // A bytearray, so that NumPy can make a writable array over it.
        Ok(Some(PyByteArray::new(py, &done.concat())))
    }
}

//! Sketches of many texts at once, and the exact resemblance of pairs.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, LargeListBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float64Array, LargeStringArray, UInt64Array,
};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use lookalike::{
    FeatureExtractor, MinHash, Scheme, Simhash, Sketch, resemblance as resemblance_of_sets,
};
use lookalike_batch::fingerprints::files::SizedFingerprint;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::array::ArrowArray;
use crate::error::CallError;
use crate::preset::NamedPreset;
use crate::room::ensure_room;
use crate::scheme::{PyScheme, given, with_preset};
use crate::texts::{TextColumn, TextSource, for_each_chunk};
use crate::whole::WholeNumber;
use crate::work::{catch_panic, for_all, run};

/// Number of texts that a thread takes at a time.
const BLOCK: usize = 256;

/// Returns the number of bytes of a sketch: for lists of various lengths at least so many.
fn row_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(item, items) => row_bytes(item.data_type()) * *items as u64,
        other => other.primitive_width().unwrap_or(1) as u64,
    }
}

/// Makes an array for every chunk of texts, block by block on all threads, and concatenates them.
fn sketched<'py>(
    texts: &Bound<'py, PyAny>,
    scheme: &Scheme,
    threads: usize,
    empty: &DataType,
    sketch: impl Fn(&mut FeatureExtractor, &TextColumn, Range<usize>) -> ArrayRef + Sync,
) -> PyResult<ArrowArray> {
    let (mut parts, mut rows) = (Vec::<ArrayRef>::new(), 0);
    let known = texts.cast::<PyList>().map_or(0, |texts| texts.len());
    for_each_chunk(texts, |chunk| {
        // Before the work, room for the sketches that are to come, and for all in one array.
        rows += chunk.len();
        let all = rows.max(known);
        let bytes = row_bytes(empty).saturating_mul((2 * all + chunk.len() - rows) as u64);
        ensure_room(bytes, || {
            format!(
                "{all} sketches exceed the memory: sketch parts of the texts, or make smaller sketches"
            )
        })?;
        let blocks = (0..chunk.len()).step_by(BLOCK);
        let blocks = blocks.map(|start| start..(start + BLOCK).min(chunk.len()));
        let blocks: Vec<_> = blocks.collect();
        // One chunk at a time: the texts of an iterator are dropped before the next ones are read, so memory only holds a chunk and the
        // sketches, whatever the number of texts.
        parts.extend(run(texts.py(), |cancellation| {
            // One extractor for each thread, not for each text: its buffers and normalization tables are filled by the first texts.
            let extractor = || FeatureExtractor::new(scheme);
            for_all(
                threads,
                blocks,
                cancellation,
                extractor,
                |extractor, block| Ok(sketch(extractor, &chunk, block)),
            )
        })?);
        Ok(())
    })?;
    if parts.is_empty() {
        return Ok(ArrowArray(arrow_array::new_empty_array(empty)));
    }
    let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
    catch_panic(|| Ok(ArrowArray(concat(&parts).map_err(CallError::value)?)))
}

/// Makes the simhash fingerprint of each text: a column of uint64, as long as `texts`; null for texts that are missing or have no features.
///
/// Texts whose resemblance is high have fingerprints that differ in few bits (Charikar, STOC 2002; section 2 of Manku, Jain, Das Sarma,
/// WWW 2007): `join` and `Index` find these. `texts` is a column of strings with Arrow data of any kind, or an iterable of `str` and None;
/// a fingerprint depends only on its text and on `scheme`. `threads` is by default the number of processors.
///
/// `preset="one-topic"` is for pages of a focused crawl, which share words and templates: `shingle="words:3", sketch="simhash:128"`. Together
/// with a scheme that has others, it raises `ValueError`. Fingerprints of the sketch `simhash:128` are strings of 32 hexadecimal digits, as the
/// command writes them.
///
/// Raises `TypeError` if a text is not a string, `BadInput` with its `row` if it is not valid Unicode, `ValueError` for a scheme that needs
/// a table of terms, or has a sketch other than `none`, `simhash:64` and `simhash:128`.
///
/// >>> simhash(["a rose is a rose", None]).to_pylist()
/// [14352741646873829633, None]
/// >>> simhash(["a rose is a rose"], preset="one-topic").type
/// 'large_string'
#[pyfunction]
#[pyo3(signature = (texts, *, scheme=None, preset=None, threads=None))]
pub(crate) fn simhash(
    texts: &Bound<'_, PyAny>,
    scheme: Option<PyScheme>,
    preset: Option<NamedPreset>,
    threads: Option<WholeNumber>,
) -> PyResult<ArrowArray> {
    let (scheme, threads) = (
        with_preset(given(scheme)?, preset)?,
        crate::work::threads(threads)?,
    );
    match scheme.sketch {
        Sketch::None | Sketch::Simhash | Sketch::Simhash128 => {}
        Sketch::Simhash32 => {
            return Err(CallError::Value(
                "fingerprints of 32 bits are made by the command and the service only: use sketch=\"simhash:64\" or \"simhash:128\""
                    .to_owned(),
            )
            .into());
        }
        other => return Err(other_sketch(other, "simhash makes fingerprints").into()),
    }
    if scheme.sketch.fingerprint_bits() == u128::BITS {
        let wide = |extractor: &mut FeatureExtractor, text: &str| {
            let found = Simhash::wide(&extractor.extract(text), u128::BITS);
            found.map(|wide| SizedFingerprint::new(wide.0).to_string())
        };
        return sketched(
            texts,
            &scheme,
            threads,
            &DataType::LargeUtf8,
            |extractor, texts, block| {
                let digits = block.map(|at| wide(extractor, texts.get(at)?));
                Arc::new(digits.collect::<LargeStringArray>())
            },
        );
    }
    sketched(
        texts,
        &scheme,
        threads,
        &DataType::UInt64,
        |extractor, texts, block| {
            let fingerprints = block.map(|at| {
                let features = extractor.extract(texts.get(at)?);
                Simhash::of(&features).map(|fingerprint| fingerprint.0)
            });
            Arc::new(fingerprints.collect::<UInt64Array>())
        },
    )
}

/// Makes the min-hash signature of each text: a column of `functions` uint32 each (a fixed-size list; for NumPy of the shape (texts, functions)),
/// as long as `texts`; null for texts that are missing or have no features.
///
/// The share of equal values at the same places estimates the resemblance r of two texts, with a standard error of
/// sqrt(r (1 - r) / functions) (Broder, SEQUENCES 1997). The functions are the engine's own, seeded by the scheme's `seed`; those of datasketch
/// are in `lookalike.compat.datasketch`. `texts`, `scheme`, `threads` and errors are as in `simhash`; `functions` is from 1 to 65,535, by default
/// the number in the scheme's sketch, else 128. Raises `ValueError` if the scheme has another number or another kind of sketch, `MemoryLimit`
/// if the signatures exceed the memory.
///
/// >>> signatures = minhash(["a rose is a rose", "A rose is a rose!"], 16)
/// >>> signatures.type, signatures[0] == signatures[1]
/// ('list of uint32', True)
#[pyfunction]
#[pyo3(signature = (texts, functions=None, *, scheme=None, threads=None))]
pub(crate) fn minhash(
    texts: &Bound<'_, PyAny>,
    functions: Option<WholeNumber>,
    scheme: Option<PyScheme>,
    threads: Option<WholeNumber>,
) -> PyResult<ArrowArray> {
    let (scheme, threads) = (given(scheme)?, crate::work::threads(threads)?);
    let functions = function_count(functions, scheme.sketch)?;
    let hash = MinHash::new(functions, scheme.seed);
    let item = Arc::new(Field::new_list_field(DataType::UInt32, true));
    // At most 65,535, as checked above.
    let width = functions as i32;
    let empty = DataType::FixedSizeList(item, width);
    sketched(
        texts,
        &scheme,
        threads,
        &empty,
        |extractor, texts, block| {
            let mut signatures = FixedSizeListBuilder::new(
                UInt32Builder::with_capacity(block.len() * functions),
                width,
            );
            let mut minima = vec![0; functions];
            for at in block {
                let set = texts.get(at).map(|text| extractor.feature_set(text));
                let is_there = set.is_some_and(|set| hash.signature_into(set, &mut minima));
                match is_there {
                    // A fixed-size list has values even for nulls, because positions are found by multiplication.
                    true => signatures.values().append_slice(&minima),
                    false => signatures.values().append_nulls(functions),
                }
                signatures.append(is_there);
            }
            let signatures: FixedSizeListArray = signatures.finish();
            Arc::new(signatures)
        },
    )
}

/// Returns the number of functions of signatures: the one asked for, that of the scheme, or the default.
fn function_count(asked: Option<WholeNumber>, sketch: Sketch) -> Result<usize, CallError> {
    let of_scheme = match sketch {
        Sketch::None => None,
        Sketch::MinHash { functions } => Some(i64::from(functions)),
        other => return Err(other_sketch(other, "minhash makes signatures")),
    };
    match (asked.map(|WholeNumber(asked)| asked), of_scheme) {
        (Some(asked), Some(own)) if asked != own => Err(CallError::Value(format!(
            "functions={asked}, and the scheme has sketch=\"minhash:{own}\": leave one of the two out"
        ))),
        (asked, own) => match asked.or(own).unwrap_or(128) {
            functions @ 1..=65_535 => Ok(functions as usize),
            other => Err(CallError::Value(format!(
                "functions={other} is not from 1 to 65535"
            ))),
        },
    }
}

/// Creates the error for a scheme with a sketch of another kind.
fn other_sketch(sketch: Sketch, what: &str) -> CallError {
    CallError::Value(format!(
        "{what}, and the scheme has sketch=\"{sketch}\": leave the sketch out of the scheme"
    ))
}

/// Makes the feature set of each text: a column of lists of distinct uint64, ascending, as long as `texts`; null for missing texts, empty for those
/// without features.
///
/// Features are XXH3-64 hashes of runs of words, by default of five: shingles (Broder, SEQUENCES 1997). They are defined in
/// `docs/explanation/algorithms.md` and the same on every machine. `texts`, `scheme`, `threads` and errors are as in `simhash`.
///
/// >>> [len(each) for each in features(["a rose is a rose is a rose", "too short", ""]).to_pylist()]
/// [3, 1, 0]
#[pyfunction]
#[pyo3(signature = (texts, *, scheme=None, threads=None))]
pub(crate) fn features(
    texts: &Bound<'_, PyAny>,
    scheme: Option<PyScheme>,
    threads: Option<WholeNumber>,
) -> PyResult<ArrowArray> {
    let (scheme, threads) = (given(scheme)?, crate::work::threads(threads)?);
    let item = Arc::new(Field::new_list_field(DataType::UInt64, true));
    sketched(
        texts,
        &scheme,
        threads,
        &DataType::LargeList(item),
        |extractor, texts, block| {
            let mut sets = LargeListBuilder::new(UInt64Builder::new());
            for at in block {
                let text = texts.get(at);
                if let Some(text) = text {
                    sets.values().append_slice(extractor.feature_set(text));
                }
                sets.append(text.is_some());
            }
            Arc::new(sets.finish())
        },
    )
}

/// Computes the exact resemblance of two texts, or of the texts in two columns row by row: shared features divided by all features of both,
/// in [0, 1] (Broder, SEQUENCES 1997).
///
/// For two `str` it is a float; for columns, as in `simhash`, a column of double, null if one of the texts is missing. Texts without
/// features resemble nothing: 0. Raises `ValueError` if the columns differ in length; other errors are as in `simhash`.
///
/// >>> resemblance("a rose is a rose is a rose", "a rose is a rose is red")
/// 0.5
/// >>> resemblance(["a b c"], ["a b c"]).to_pylist()
/// [1.0]
#[pyfunction]
#[pyo3(signature = (a, b, *, scheme=None, threads=None))]
pub(crate) fn resemblance<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    scheme: Option<PyScheme>,
    threads: Option<WholeNumber>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    let (scheme, threads) = (given(scheme)?, crate::work::threads(threads)?);
    if let (Ok(a), Ok(b)) = (a.cast::<PyString>(), b.cast::<PyString>()) {
        // Borrowed from Python strings, which are immutable and held by the caller, so other threads of the interpreter may run meanwhile.
        let (a, b) = (a.to_str()?, b.to_str()?);
        let similarity = run(py, |_| {
            // Two extractors, because a feature set borrows its extractor.
            let (mut own, mut other) = (
                FeatureExtractor::new(&scheme),
                FeatureExtractor::new(&scheme),
            );
            Ok(resemblance_of_sets(
                own.feature_set(a),
                other.feature_set(b),
            ))
        })?;
        return Ok(similarity.into_pyobject(py)?.into_any());
    }
    // Both as a whole: their chunks may have different lengths, and the length of an iterator is not known in advance.
    let (a, b) = (all(a)?, all(b)?);
    let (rows_a, rows_b) = (rows(&a), rows(&b));
    if rows_a.len() != rows_b.len() {
        return Err(CallError::Value(format!(
            "texts are compared row by row, and there are {} and {} of them",
            rows_a.len(),
            rows_b.len()
        ))
        .into());
    }
    let pairs: Vec<_> = rows_a.into_iter().zip(rows_b).collect();
    let similarities = run(py, |cancellation| {
        let blocks: Vec<_> = pairs.chunks(BLOCK).collect();
        let extractors = || {
            (
                FeatureExtractor::new(&scheme),
                FeatureExtractor::new(&scheme),
            )
        };
        for_all(
            threads,
            blocks,
            cancellation,
            extractors,
            |(own, other), block| {
                let of_pair =
                    |&((chunk_a, at_a), (chunk_b, at_b)): &((usize, usize), (usize, usize))| {
                        let (text_a, text_b) = (a[chunk_a].get(at_a)?, b[chunk_b].get(at_b)?);
                        Some(resemblance_of_sets(
                            own.feature_set(text_a),
                            other.feature_set(text_b),
                        ))
                    };
                Ok(block.iter().map(of_pair).collect::<Vec<_>>())
            },
        )
    })?;
    let similarities: Float64Array = similarities.into_iter().flatten().collect();
    Ok(ArrowArray(Arc::new(similarities))
        .into_pyobject(py)?
        .into_any())
}

fn all<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Vec<TextColumn>> {
    let mut source = TextSource::of(texts)?;
    let mut chunks = Vec::new();
    while let Some(chunk) = source.next(texts.py())? {
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// Returns the chunk of every row, and its position there.
fn rows(chunks: &[TextColumn]) -> Vec<(usize, usize)> {
    let numbered = chunks.iter().enumerate();
    numbered
        .flat_map(|(chunk, texts)| (0..texts.len()).map(move |at| (chunk, at)))
        .collect()
}

//! Holds the sketches of all documents under several schemes in memory.

use std::sync::Arc;

use lookalike::sketch::{SketchValue, Sketcher};
use lookalike::{Features, Scheme, Sketch, TermCounts, Terms};

use super::documents::SweptDocuments;
use super::features::{FeatureReader, FeatureScheme};
use super::{SweepError, SweepLimits};

/// The sketches of one scheme, by position of the document.
pub(super) type SketchColumn = Vec<Option<SketchValue>>;

/// Returns the heap memory of a sketch, in bytes.
fn heap_bytes(sketch: Option<&SketchValue>) -> u64 {
    match sketch.map_or(0, SketchValue::heap_bytes) {
        0 => 0,
        // Plus the allocator's overhead.
        own => own as u64 + 16,
    }
}

/// Returns the memory of a column, in bytes.
pub(super) fn bytes(column: &SketchColumn) -> u64 {
    let heap = column.iter().map(|sketch| heap_bytes(sketch.as_ref()));
    heap.sum::<u64>() + size_of_val(&**column) as u64
}

/// Estimates the bytes of the features of a text, assuming words of five letters, or single characters.
fn expected_set_bytes(scheme: &Scheme, text_bytes: u64) -> u64 {
    match scheme.shingle {
        lookalike::Shingle::Chars(_) => 8 * text_bytes,
        lookalike::Shingle::WordSizes(widths) => 2 * widths.iter().count() as u64 * text_bytes,
        _ => 2 * text_bytes,
    }
}

/// Estimates the memory of a column. One reading makes as many columns as fit by this estimate.
pub(super) fn expected_bytes(scheme: &Scheme, documents: u64, text_bytes: u64) -> u64 {
    let heap = match scheme.sketch {
        Sketch::MinHash { functions: places }
        | Sketch::OnePermutation { bins: places }
        | Sketch::BBit {
            functions: places, ..
        } => 4 * u64::from(places) * documents,
        Sketch::SuperShingle { groups: hashes, .. }
        | Sketch::Buckets { buckets: hashes }
        // A hash may be missing, so each is an `Option<u64>` of 16 bytes.
        | Sketch::IMatch { lexicons: hashes } => 16 * u64::from(hashes) * documents,
        // Sets have no size of their own: it depends on the texts.
        Sketch::None => expected_set_bytes(scheme, text_bytes),
        // They keep a part of the set that depends on their parameters; half is a cautious guess, since what they take is also counted while it is
        // made.
        Sketch::ModP { .. } | Sketch::Winnowing { .. } => {
            expected_set_bytes(scheme, text_bytes) / 2
        }
        Sketch::Simhash32 | Sketch::Simhash | Sketch::Simhash128 => 0,
    };
    // Counts of terms, and the copy that a merge makes.
    let terms = match scheme.needs_terms() {
        true => 4 * expected_set_bytes(scheme, text_bytes),
        false => 0,
    };
    heap + terms + (size_of::<Option<SketchValue>>() as u64 + 16) * documents
}

/// A scheme, and its table of the number of documents with each feature.
type CountedTerms = (Scheme, Arc<Terms>);

/// Makes the tables of terms for all schemes that need one; schemes with the same features share a table. Copies count too, as in `lookalike terms`.
fn tables_of_terms<D: SweptDocuments>(
    documents: &D,
    schemes: &[Scheme],
    limits: SweepLimits,
) -> Result<Vec<CountedTerms>, SweepError<D::Error>> {
    let mut counted: Vec<Scheme> = Vec::new();
    for scheme in schemes.iter().filter(|scheme| scheme.needs_terms()) {
        if !counted.contains(&scheme.counted()) {
            counted.push(scheme.counted());
        }
    }
    if counted.is_empty() {
        return Ok(Vec::new());
    }
    let features: Vec<FeatureScheme> = counted.iter().copied().map(Into::into).collect();
    let mut counts: Vec<TermCounts> = counted.iter().map(TermCounts::new).collect();
    let mut needed = 0;
    FeatureReader::new(&features, limits.threads).read(
        documents,
        true,
        &|_, features: &Features<'_>| features.set.to_vec(),
        |at, _, set| {
            if needed <= limits.memory {
                counts[at].add(&set);
                // A merge of a batch holds two copies of the counts.
                needed = 2 * counts.iter().map(TermCounts::memory).sum::<u64>();
            }
        },
    )?;
    limits.ensure(needed, || "the counts of terms".to_owned())?;
    let tables = counted.into_iter().zip(counts);
    Ok(tables
        .map(|(scheme, mut counts)| (scheme, Arc::new(counts.terms())))
        .collect())
}

/// Makes the sketches of all documents under these schemes in one reading, or in two if a table of terms is needed.
///
/// # Errors
/// [`SweepError::TooLarge`] if they do not fit in memory.
pub(super) fn columns<D: SweptDocuments>(
    documents: &D,
    schemes: &[Scheme],
    limits: SweepLimits,
) -> Result<Vec<SketchColumn>, SweepError<D::Error>> {
    let tables = tables_of_terms(documents, schemes, limits)?;
    let terms_of = |scheme: &Scheme| {
        let own = scheme.needs_terms().then(|| scheme.counted());
        let found = tables.iter().find(|table| Some(table.0) == own);
        found.map(|table| Arc::clone(&table.1))
    };
    let mut features: Vec<FeatureScheme> = Vec::new();
    // Sketchers for each kind of features, with the columns that they fill.
    let mut sketchers: Vec<Vec<(usize, Sketcher)>> = Vec::new();
    for (column, scheme) in schemes.iter().enumerate() {
        let terms = terms_of(scheme);
        // The scheme of a setting names no table, because the table is only made here, of this collection.
        let own = scheme.terms(terms.as_ref().map(|terms| terms.id()));
        let sketcher =
            Sketcher::new(&own, terms.as_ref()).expect("the table was made for the scheme");
        let own = FeatureScheme {
            // Without the sketch, so that settings that differ only in it share one extraction of features.
            scheme: scheme.sketch(Sketch::None),
            terms,
        };
        match features.iter().position(|features| *features == own) {
            Some(at) => sketchers[at].push((column, sketcher)),
            None => {
                features.push(own);
                sketchers.push(vec![(column, sketcher)]);
            }
        }
    }
    let tables: u64 = tables.iter().map(|table| 16 * table.1.len() as u64).sum();
    let place = size_of::<Option<SketchValue>>() * documents.len() * schemes.len();
    let mut needed = tables + place as u64;
    limits.ensure(needed, || sketch_name(schemes))?;
    let mut columns: Vec<SketchColumn> = vec![vec![None; documents.len()]; schemes.len()];
    let sketch = |at: usize, features: &Features<'_>| -> Vec<Option<SketchValue>> {
        let own = sketchers[at].iter();
        own.map(|(_, sketcher)| sketcher.sketch(features)).collect()
    };
    FeatureReader::new(&features, limits.threads).read(
        documents,
        false,
        &sketch,
        |at, position, made| {
            // Copies are read for tables of terms only.
            let Some(position) = position else { return };
            for ((column, _), sketch) in sketchers[at].iter().zip(made) {
                // Keep counting after the limit is exceeded, because the error states the memory needed.
                needed += heap_bytes(sketch.as_ref());
                if needed <= limits.memory {
                    columns[*column][position as usize] = sketch;
                }
            }
        },
    )?;
    limits.ensure(needed, || sketch_name(schemes))?;
    Ok(columns)
}

fn sketch_name(schemes: &[Scheme]) -> String {
    match schemes.first() {
        Some(scheme) => format!("the sketches {} of {}", scheme.sketch, scheme.shingle),
        None => String::new(),
    }
}

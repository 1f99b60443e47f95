//! Text extraction from HTML pages.

use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use lookalike::Extraction;
use lookalike_corpus::{HtmlText, charset};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::array::ArrowArray;
use crate::error::CallError;
use crate::texts::for_each_chunk_of;
use crate::whole::WholeNumber;
use crate::work::{for_all, run};

/// Number of pages that a thread takes at a time.
const BLOCK: usize = 16;

/// Extracts the text of a page, or of each of many.
#[pyfunction]
#[pyo3(signature = (html, *, mode="main", title=false, alt=false, links=false, threads=None))]
pub(crate) fn extract<'py>(
    html: &Bound<'py, PyAny>,
    mode: &str,
    title: bool,
    alt: bool,
    links: bool,
    threads: Option<WholeNumber>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = html.py();
    let extraction = Extraction {
        mode: mode.parse().map_err(CallError::value)?,
        title,
        alt,
        links,
    };
    let extractor = HtmlText::new(extraction).map_err(CallError::value)?;
    let threads = crate::work::threads(threads)?;
    let text_of = |extractor: &HtmlText, page: &str| {
        let mut text = String::new();
        // A copy, because extraction needs buffers of its own and several threads may call this function.
        extractor.clone().extract(page, &mut text);
        text
    };
    if let Ok(bytes) = html.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        let text = run(py, |_| {
            Ok(text_of(&extractor, &charset::decode(bytes, true).text))
        })?;
        return Ok(PyString::new(py, &text).into_any());
    }
    // Check for a string before iterables, because a string is iterable too.
    if let Ok(page) = html.cast::<PyString>() {
        let page = page.to_str()?;
        let text = run(py, |_| Ok(text_of(&extractor, page)))?;
        return Ok(PyString::new(py, &text).into_any());
    }
    let mut parts: Vec<ArrayRef> = Vec::new();
    let decoded = |column| Ok(run(py, |_| Ok(decoded(column)))?);
    for_each_chunk_of(html, decoded, |chunk| {
        let starts: Vec<usize> = (0..chunk.len()).step_by(BLOCK).collect();
        parts.extend(run(py, |cancellation| {
            for_all(
                threads,
                starts,
                cancellation,
                || extractor.clone(),
                |extractor, start| {
                    let (mut texts, mut text) = (LargeStringBuilder::new(), String::new());
                    for at in start..(start + BLOCK).min(chunk.len()) {
                        let page = chunk.get(at);
                        text.clear();
                        if let Some(page) = page {
                            extractor.extract(page, &mut text);
                        }
                        texts.append_option(page.map(|_| &text));
                    }
                    Ok(Arc::new(texts.finish()) as ArrayRef)
                },
            )
        })?);
        Ok(())
    })?;
    let texts = match &parts
        .iter()
        .map(|part| &**part)
        .collect::<Vec<&dyn Array>>()[..]
    {
        [] => Arc::new(LargeStringArray::new_null(0)),
        parts => concat(parts).map_err(CallError::value)?,
    };
    Ok(ArrowArray(texts).into_pyobject(py)?.into_any())
}

/// Decodes the pages of a column that are bytes.
fn decoded(column: ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Binary => pages(column.as_binary::<i32>().iter()),
        DataType::LargeBinary => pages(column.as_binary::<i64>().iter()),
        DataType::BinaryView => pages(column.as_binary_view().iter()),
        _ => column,
    }
}

fn pages<'a>(pages: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let pages = pages.map(|page| page.map(|page| charset::decode(page, true).text));
    Arc::new(pages.collect::<LargeStringArray>())
}

/// Decodes a page in any character set.
#[pyfunction]
pub(crate) fn decode_html(bytes: &[u8]) -> String {
    charset::decode(bytes, true).text.into_owned()
}

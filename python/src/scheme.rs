//! The scheme as a Python value.

use std::fmt::Display;
use std::str::FromStr;

use lookalike::{Scheme, TokenHash};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::CallError;
use crate::preset::NamedPreset;

/// Everything that can change a feature or a sketch, as a value: equal schemes have equal `id`, `str()` is its text, and it can be pickled.
///
/// `text` is the result of `str()` on a scheme; `options` change parts of it: `html`, `boilerplate`, `mask`, `normalize`, `fold`, `case`, `segment`,
/// `stop`, `stem`, `shingle`, `hash`, `seed`, `weight`, `nouns`, `fields`, `sketch`, with the values of the command. Raises `TypeError` for other
/// names, `ValueError` for invalid values. `preset="one-topic"` sets `shingle` and `sketch`, for pages of a focused crawl; together with others
/// it raises `ValueError`.
///
/// >>> Scheme(shingle="words:3")
/// Scheme(shingle="words:3")
/// >>> Scheme(shingle="words:3") == Scheme(str(Scheme(shingle="words:3")))
/// True
#[pyclass(frozen, eq, from_py_object, name = "Scheme", module = "lookalike")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PyScheme(pub(crate) Scheme);

#[pymethods]
impl PyScheme {
    #[new]
    #[pyo3(signature = (text=None, /, **options))]
    fn new(text: Option<&str>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut scheme = match text {
            Some(text) => text.parse().map_err(CallError::value)?,
            None => Scheme::default(),
        };
        let mut preset = None;
        for (name, value) in options.into_iter().flatten() {
            let name: String = name.extract()?;
            match &*name {
                "preset" => preset = value.extract()?,
                _ => set(&mut scheme, &name, &value.str()?.to_string())?,
            }
        }
        Ok(Self(with_preset(scheme, preset)?))
    }

    /// Short name of the scheme: 16 hexadecimal digits, stored with everything made with the scheme.
    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (text, default) = (self.0.to_string(), Scheme::default().to_string());
        // Every text has all fields in the same order, so the two can be compared field by field.
        let fields = text.split(' ').zip(default.split(' '));
        let changed = fields.filter(|(own, default)| own != default);
        let changed: Vec<_> = changed.filter_map(|(own, _)| own.split_once('=')).collect();
        let mut again = Scheme::default();
        let is_read = |(name, value): &(&str, &str)| set(&mut again, name, value).is_ok();
        // Not all parts are options: a table of terms is only in the text.
        if !changed.iter().all(is_read) || again != self.0 {
            return format!("Scheme({text:?})");
        }
        let options: Vec<String> = changed
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        format!("Scheme({})", options.join(", "))
    }

    fn __hash__(&self) -> u64 {
        self.0.id().0
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let text = (slf.get().0.to_string(),);
        PyTuple::new(
            slf.py(),
            [
                slf.get_type().into_any(),
                text.into_pyobject(slf.py())?.into_any(),
            ],
        )
    }
}

/// Returns the scheme with the features and the sketch of a preset, if one is given.
pub(crate) fn with_preset(
    scheme: Scheme,
    preset: Option<NamedPreset>,
) -> Result<Scheme, CallError> {
    preset.map_or(Ok(scheme), |preset| preset.scheme(scheme))
}

/// Sets the part of the scheme that is called `name` in its text.
fn set(scheme: &mut Scheme, name: &str, value: &str) -> Result<(), CallError> {
    match name {
        "html" => read(&mut scheme.html, name, value),
        "boilerplate" => read(&mut scheme.boilerplate, name, value),
        "mask" => read(&mut scheme.mask, name, value),
        "normalize" => read(&mut scheme.normalization, name, value),
        "fold" => read(&mut scheme.folding, name, value),
        "case" => read(&mut scheme.case, name, value),
        "segment" => read(&mut scheme.segmentation, name, value),
        "stop" => read(&mut scheme.stop, name, value),
        "stem" => read(&mut scheme.stem, name, value),
        "shingle" => read(&mut scheme.shingle, name, value),
        "seed" => read(&mut scheme.seed, name, value),
        "weight" => read(&mut scheme.weight, name, value),
        "nouns" => read(&mut scheme.nouns, name, value),
        "fields" => read(&mut scheme.fields, name, value),
        "sketch" => read(&mut scheme.sketch, name, value),
        // Without `sip`, because its key is secret and a scheme is printed.
        "hash" => {
            scheme.hash = match value {
                "xxh3-64" => TokenHash::Xxh3,
                "lookup3" => TokenHash::Lookup3,
                other => {
                    return Err(CallError::Value(format!(
                        "hash={other:?} is no hash: use xxh3-64 or lookup3"
                    )));
                }
            };
            Ok(())
        }
        other => Err(CallError::Type(format!(
            "a scheme has no {other:?}: it has html, boilerplate, mask, normalize, fold, case, segment, stop, stem, shingle, \
             hash, seed, weight, nouns, fields and sketch, and takes a preset"
        ))),
    }
}

fn read<T>(part: &mut T, name: &str, value: &str) -> Result<(), CallError>
where
    T: FromStr,
    T::Err: Display,
{
    *part = value
        .parse()
        .map_err(|error| CallError::Value(format!("{name}={value:?}: {error}")))?;
    Ok(())
}

/// Returns the given scheme or the default. Returns an error for schemes that need a table of terms, which these functions do not take.
pub(crate) fn given(scheme: Option<PyScheme>) -> Result<Scheme, CallError> {
    let scheme = scheme.map_or_else(Scheme::default, |scheme| scheme.0);
    if scheme.terms.is_some() || scheme.shingle.needs_terms() || scheme.weight.needs_terms() {
        return Err(CallError::Value(
            "the scheme needs a table of terms, which only the jobs over collections take"
                .to_owned(),
        ));
    }
    Ok(scheme)
}

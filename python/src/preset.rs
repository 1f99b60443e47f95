//! Presets: their meaning together with other arguments, and the distance of a search.

use lookalike::{Preset, Scheme};
use lookalike_batch::MAX_DISTANCE;
use pyo3::prelude::*;

use crate::codes::FingerprintColumn;
use crate::error::CallError;
use crate::whole::WholeNumber;

/// Default distance of a search.
const DEFAULT_DISTANCE: u32 = 3;

/// A preset, named by an argument.
#[derive(Clone, Copy)]
pub(crate) struct NamedPreset(pub(crate) Preset);

impl<'py> FromPyObject<'_, 'py> for NamedPreset {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name: String = value.extract()?;
        let preset = name.parse().map_err(CallError::value)?;
        Ok(Self(preset))
    }
}

impl NamedPreset {
    /// Returns the scheme with the features and the sketch of the preset, or an error if the scheme sets others.
    pub(crate) fn scheme(self, base: Scheme) -> Result<Scheme, CallError> {
        let (own, default) = (self.0.scheme(base), Scheme::default());
        let is_free = [default.shingle, own.shingle].contains(&base.shingle)
            && [default.sketch, own.sketch].contains(&base.sketch);
        match is_free {
            true => Ok(own),
            false => Err(CallError::Value(format!(
                "preset={:?} gives shingle={:?} and sketch={:?}, and the scheme has shingle={:?} and sketch={:?}: leave one of the two out",
                self.0.name(),
                self.0.shingle_text(),
                self.0.sketch_text(),
                base.shingle.to_string(),
                base.sketch.to_string()
            ))),
        }
    }

    /// Returns an error for fingerprints of another width.
    pub(crate) fn ensure_fits(self, codes: &mut FingerprintColumn) -> Result<(), CallError> {
        let (name, wanted) = (self.0.name(), self.0.bits());
        match codes.bits_or(wanted) {
            bits if bits == wanted => Ok(()),
            bits => Err(CallError::Value(format!(
                "fingerprints of {bits} bits, and preset={name:?} is for {wanted}: make them with simhash(texts, preset={name:?}), or name a \
                 distance instead"
            ))),
        }
    }
}

/// Returns the distance for fingerprints of a preset.
#[pyfunction]
pub(crate) fn preset_distance(name: NamedPreset) -> u32 {
    name.0.distance()
}

/// Returns the distance of a search, which a preset may determine.
pub(crate) fn search_distance(
    distance: Option<WholeNumber>,
    preset: Option<NamedPreset>,
) -> Result<u32, CallError> {
    match (distance, preset) {
        (Some(WholeNumber(distance)), Some(NamedPreset(preset))) => Err(CallError::Value(format!(
            "distance={distance} and preset={:?}, which is distance={}: leave one of the two out",
            preset.name(),
            preset.distance()
        ))),
        (Some(WholeNumber(distance)), None) => check_distance(distance),
        (None, Some(NamedPreset(preset))) => Ok(preset.distance()),
        (None, None) => Ok(DEFAULT_DISTANCE),
    }
}

/// Returns the distance as a number of bits, or an error if no index is built for it.
pub(crate) fn check_distance(distance: i64) -> Result<u32, CallError> {
    match u32::try_from(distance) {
        Ok(bits) if bits <= MAX_DISTANCE => Ok(bits),
        Ok(_) => Err(CallError::Value(format!(
            "distance={distance} is above {MAX_DISTANCE}: larger distances are not searched"
        ))),
        Err(_) => Err(CallError::Value(format!(
            "distance={distance} is no number of bits from 0 to {MAX_DISTANCE}"
        ))),
    }
}

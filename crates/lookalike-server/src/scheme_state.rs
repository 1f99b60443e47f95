//! State of schemes besides their texts: tables of terms and learned lines, held by collections, read once and shared by all workers.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::scheme::Boilerplate;
use lookalike::{Scheme, SchemeId, Terms};
use lookalike_corpus::BoilerplateLines;
use lookalike_store::sync::lock;
use lookalike_store::{Collection, SchemePart};

use crate::problem::{ProblemDetails, SettingField};

/// Name of the part with the table of terms.
const TERMS: &str = "terms";
/// Name of the part with the learned lines.
pub(crate) const BOILERPLATE: &str = "boilerplate";
/// Maximum number of schemes whose state stays in memory.
const MAX_SCHEMES: usize = 16;

/// The state that a scheme needs besides its text.
#[derive(Debug, Default)]
pub(crate) struct SchemeState {
    pub(crate) terms: Option<Arc<Terms>>,
    pub(crate) boilerplate: Option<Arc<BoilerplateLines>>,
}

impl SchemeState {
    /// Reads the parts of a collection.
    pub(crate) fn read(parts: &[SchemePart]) -> Result<Self, ProblemDetails> {
        let mut state = Self::default();
        for part in parts {
            match part.name.as_str() {
                TERMS => {
                    let terms = Terms::from_bytes(&part.bytes, None);
                    let terms = terms.map_err(|error| unreadable(&error.to_string()))?;
                    state.terms = Some(Arc::new(terms));
                }
                BOILERPLATE => {
                    let lines = BoilerplateLines::from_bytes(&part.bytes);
                    let lines = lines.map_err(|error| unreadable(&error.to_string()))?;
                    state.boilerplate = Some(Arc::new(lines));
                }
                other => {
                    let what = format!("a part {other:?}, which this version does not know");
                    return Err(unreadable(&what));
                }
            }
        }
        Ok(state)
    }
}

fn unreadable(what: &str) -> ProblemDetails {
    ProblemDetails::conflict(
        "unusable-scheme",
        format!("the scheme of the collection cannot be used: {what}"),
        "use the version of the service that made the collection, or restore a snapshot",
    )
}

/// Decodes a part that was sent in base64.
fn decoded(name: &str, digits: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD
        .decode(digits)
        .map_err(|error| format!("`{name}` is not base64: {error}"))
}

/// Checks the learned lines that are sent with a scheme against those that the scheme names. Returns them as a part for the collection to
/// keep.
pub(crate) fn sent_boilerplate(
    scheme: &Scheme,
    lines: Option<&str>,
) -> Result<Option<SchemePart>, ProblemDetails> {
    const REMEDY: &str = "send the file of learned lines, in base64";
    let digits = match (scheme.boilerplate, lines) {
        (Boilerplate::Kept, None) => return Ok(None),
        (Boilerplate::Kept, Some(_)) => {
            return Err(ProblemDetails::invalid(
                "the scheme keeps all lines",
                "leave `boilerplate` out, or name the lines in the scheme",
            )
            .of_field(SettingField::Boilerplate));
        }
        (Boilerplate::Removed { .. }, None) => {
            return Err(ProblemDetails::invalid(
                "the scheme needs the lines that were learned, which have to be sent with it",
                "send `boilerplate`, the file of lines that `lookalike fingerprint` learned, in base64",
            )
            .of_field(SettingField::Boilerplate));
        }
        (Boilerplate::Removed { .. }, Some(digits)) => digits,
    };
    let refused = |detail: String, remedy: &'static str| {
        ProblemDetails::invalid(detail, remedy).of_field(SettingField::Boilerplate)
    };
    let bytes = decoded(BOILERPLATE, digits).map_err(|told| refused(told, REMEDY))?;
    let lines =
        BoilerplateLines::from_bytes(&bytes).map_err(|error| refused(error.to_string(), REMEDY))?;
    if lines.scheme() != scheme.boilerplate {
        return Err(refused(
            format!(
                "the scheme names the lines {}, and these are {}",
                scheme.boilerplate,
                lines.scheme()
            ),
            "send the lines that the scheme names, or name these",
        ));
    }
    Ok(Some(SchemePart::new(BOILERPLATE, bytes)))
}

/// Checks the table of terms that is sent with a scheme against the one that the scheme names, if it needs one. Returns it as a part for
/// the collection to keep.
pub(crate) fn sent_terms(
    scheme: &Scheme,
    terms: Option<&str>,
) -> Result<Option<SchemePart>, ProblemDetails> {
    const REMEDY: &str = "send the file that `lookalike terms` made, in base64";
    let needed = scheme.needs_terms() || scheme.terms.is_some();
    let digits = match (needed, terms) {
        (false, None) => return Ok(None),
        (false, Some(_)) => {
            return Err(ProblemDetails::invalid(
                "the scheme has no use for a table of terms",
                "leave `terms` out, or name a weight that needs it, such as weight=idf, and the table's id as terms=",
            )
            .of_field(SettingField::Terms));
        }
        (true, None) => {
            return Err(ProblemDetails::invalid(
                "the scheme needs a table of terms, which has to be sent with it",
                "send `terms`, the file that `lookalike terms` made, in base64",
            )
            .of_field(SettingField::Terms));
        }
        (true, Some(digits)) => digits,
    };
    let refused = |detail: String, remedy: String| {
        ProblemDetails::invalid(detail, remedy).of_field(SettingField::Terms)
    };
    let bytes = decoded(TERMS, digits).map_err(|told| refused(told, REMEDY.to_owned()))?;
    let table = Terms::from_bytes(&bytes, None)
        .map_err(|error| refused(error.to_string(), REMEDY.to_owned()))?;
    table.ensure_fits(scheme).map_err(|error| {
        let remedy = format!(
            "send the table that the scheme names, or name this one: terms={}",
            table.id()
        );
        refused(error.to_string(), remedy)
    })?;
    Ok(Some(SchemePart::new(TERMS, bytes)))
}

/// The states in memory, by scheme: a scheme identifies its state.
#[derive(Debug, Default)]
pub(crate) struct SchemeStates(Mutex<Vec<(SchemeId, Arc<SchemeState>)>>);

impl SchemeStates {
    /// Returns true if [`SchemeStates::of`] will neither read a file nor wait for another thread that does.
    pub(crate) fn is_cached(&self, collection: &Collection) -> bool {
        !collection.has_scheme_parts()
            || self.0.try_lock().is_ok_and(|known| {
                let id = collection.settings().scheme.id();
                known.iter().any(|(scheme, _)| *scheme == id)
            })
    }

    /// Returns the state of a collection's scheme, or `None` if its text is sufficient.
    pub(crate) fn of(
        &self,
        collection: &Collection,
    ) -> Result<Option<Arc<SchemeState>>, ProblemDetails> {
        if !collection.has_scheme_parts() {
            return Ok(None);
        }
        let id = collection.settings().scheme.id();
        // The lock is held while the state is read, so that it is read only once.
        let mut known = lock(&self.0);
        if let Some((_, state)) = known.iter().find(|(scheme, _)| *scheme == id) {
            return Ok(Some(Arc::clone(state)));
        }
        let state = Arc::new(SchemeState::read(&collection.scheme_parts()?)?);
        // Drop the oldest; collections that still use it will read it again.
        if known.len() == MAX_SCHEMES {
            known.remove(0);
        }
        known.push((id, Arc::clone(&state)));
        Ok(Some(state))
    }
}

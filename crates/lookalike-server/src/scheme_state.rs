//! State of schemes beside their texts, such as tables of terms, held by collections: read once, and shared by all workers.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lookalike::{Scheme, SchemeId, Terms};
use lookalike_store::{Collection, SchemePart};

use crate::problem::ProblemDetails;
use crate::sync::lock;

/// Name of the part with a table of terms.
const TERMS: &str = "terms";
/// Schemes whose tables stay in memory.
const MOST: usize = 16;

/// State that a scheme rests on.
#[derive(Debug, Default)]
pub(crate) struct SchemeState {
    pub(crate) terms: Option<Arc<Terms>>,
}

impl SchemeState {
    /// Reads the parts of a collection.
    pub(crate) fn read(parts: &[SchemePart]) -> Result<Self, ProblemDetails> {
        let mut state = Self::default();
        for part in parts {
            if part.name != TERMS {
                let what = format!("a part {:?}, which this version does not know", part.name);
                return Err(unreadable(&what));
            }
            let terms = Terms::from_bytes(&part.bytes, None);
            state.terms = Some(Arc::new(
                terms.map_err(|error| unreadable(&error.to_string()))?,
            ));
        }
        Ok(state)
    }
}

fn unreadable(what: &str) -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::CONFLICT,
        "unusable-scheme",
        format!("the scheme of the collection cannot be used: {what}"),
        "use the version of the service that made the collection, or restore a snapshot",
    )
}

/// Checks the table that is sent with a scheme, and makes the part of it that the collection keeps: the table that the scheme names,
/// where it needs one.
pub(crate) fn sent_parts(
    scheme: &Scheme,
    terms: Option<&str>,
) -> Result<Vec<SchemePart>, ProblemDetails> {
    let needed = scheme.needs_terms() || scheme.terms.is_some();
    let digits = match (needed, terms) {
        (false, None) => return Ok(Vec::new()),
        (false, Some(_)) => {
            return Err(ProblemDetails::invalid(
                "the scheme has no use for a table of terms",
                "leave `terms` out, or name a weight that needs it, such as weight=idf, and the table's id as terms=",
            ));
        }
        (true, None) => {
            return Err(ProblemDetails::invalid(
                "the scheme needs a table of terms, which has to be sent with it",
                "make one with `lookalike terms INPUT -o FILE`, then `lookalike client create NAME --scheme TEXT --terms FILE`",
            ));
        }
        (true, Some(digits)) => digits,
    };
    let wrong = |what: String| {
        let remedy = "send the file that `lookalike terms` made, in base64";
        ProblemDetails::invalid(what, remedy)
    };
    let bytes = BASE64_STANDARD
        .decode(digits)
        .map_err(|error| wrong(format!("`terms` is not base64: {error}")))?;
    let table = Terms::from_bytes(&bytes, None).map_err(|error| wrong(error.to_string()))?;
    table.ensure_fits(scheme).map_err(|error| {
        let remedy = format!(
            "send the table that the scheme names, or name this one: terms={}",
            table.id()
        );
        ProblemDetails::invalid(error.to_string(), remedy)
    })?;
    Ok(vec![SchemePart::new(TERMS, bytes)])
}

/// The tables in memory, by scheme: a scheme names its tables.
#[derive(Debug, Default)]
pub(crate) struct SchemeStates(Mutex<Vec<(SchemeId, Arc<SchemeState>)>>);

impl SchemeStates {
    /// True if [`SchemeStates::of`] neither reads a file nor waits for somebody who does.
    pub(crate) fn is_at_hand(&self, collection: &Collection) -> bool {
        !collection.has_scheme_parts()
            || self.0.try_lock().is_ok_and(|known| {
                let id = collection.settings().scheme.id();
                known.iter().any(|(scheme, _)| *scheme == id)
            })
    }

    /// State of the scheme of a collection; `None` where its text is all.
    pub(crate) fn of(
        &self,
        collection: &Collection,
    ) -> Result<Option<Arc<SchemeState>>, ProblemDetails> {
        if !collection.has_scheme_parts() {
            return Ok(None);
        }
        let id = collection.settings().scheme.id();
        // Held while a table is read, so that it is read once.
        let mut known = lock(&self.0);
        if let Some((_, state)) = known.iter().find(|(scheme, _)| *scheme == id) {
            return Ok(Some(Arc::clone(state)));
        }
        let state = Arc::new(SchemeState::read(&collection.scheme_parts()?)?);
        // The oldest goes; collections that still use it read it again.
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((id, Arc::clone(&state)));
        Ok(Some(state))
    }
}

//! Contents to fingerprints, under the scheme of a collection, exactly as the other commands make them.

use axum::http::StatusCode;
use lookalike::scheme::{Boilerplate, FieldWeights, TokenHash};
use lookalike::{FeatureExtractor, Fingerprint, Scheme, SchemeId, Simhash, Sketch};
use lookalike_corpus::HtmlText;
use lookalike_store::StoredScheme;

use crate::problem::Problem;
use crate::request::Content;

/// Schemes for which a worker keeps its extractors.
const MOST: usize = 16;

/// The extractors of one worker, made when they are first needed.
#[derive(Default)]
pub(crate) struct Bench {
    sketchers: Vec<(SchemeId, Sketcher)>,
    text: String,
}

struct Sketcher {
    features: FeatureExtractor,
    html: HtmlText,
}

/// A scheme of which this service can make fingerprints.
pub(crate) fn usable(text: &str) -> Result<Scheme, Problem> {
    parse(text).map_err(|reason| {
        let remedy = "`lookalike fingerprint --json` names schemes that can be used";
        Problem::invalid(reason, remedy)
    })
}

fn parse(text: &str) -> Result<Scheme, String> {
    let scheme: Scheme = text.parse().map_err(|error| format!("{error}"))?;
    if scheme.sketch != Sketch::Simhash {
        let sketch = scheme.sketch;
        return Err(format!(
            "collections hold 64-bit fingerprints, sketch=simhash, not {sketch}"
        ));
    }
    // What depends on more than the document and the scheme.
    let needs = [
        (
            "a table of terms",
            scheme.terms.is_some() || scheme.weight.needs_terms(),
        ),
        ("a secret key", matches!(scheme.hash, TokenHash::SipHash(_))),
        (
            "lines that were learned",
            scheme.boilerplate != Boilerplate::Kept,
        ),
        (
            "fields of records",
            scheme.fields != FieldWeights::default(),
        ),
    ];
    match needs.iter().find(|(_, needed)| *needed) {
        Some((what, _)) => Err(format!(
            "schemes with {what} are not supported by the service"
        )),
        None => HtmlText::new(scheme.html)
            .map(|_| scheme)
            .map_err(|error| error.to_string()),
    }
}

impl Sketcher {
    fn new(scheme: &StoredScheme) -> Result<Self, Problem> {
        let unusable = |reason: String| {
            Problem::new(
                StatusCode::CONFLICT,
                "unusable-scheme",
                reason,
                "send fingerprints that were made with the collection's scheme",
            )
        };
        let parsed = parse(scheme.text()).map_err(unusable)?;
        Ok(Self {
            features: FeatureExtractor::new(&parsed),
            html: HtmlText::new(parsed.html).map_err(|error| unusable(error.to_string()))?,
        })
    }
}

impl Bench {
    /// The fingerprint of a content; `None` when it has no features.
    pub(crate) fn fingerprint(
        &mut self,
        scheme: &StoredScheme,
        content: &Content,
    ) -> Result<Option<Fingerprint>, Problem> {
        match content {
            Content::Fingerprint(code) => Ok(Some(*code)),
            Content::Text(text) => {
                let (sketcher, _) = self.sketcher(scheme)?;
                Ok(Simhash::of(&sketcher.features.read(text)))
            }
            Content::Html(page) => {
                let (sketcher, text) = self.sketcher(scheme)?;
                text.clear();
                sketcher.html.extract(page, text);
                Ok(Simhash::of(&sketcher.features.read(text)))
            }
        }
    }

    fn sketcher(&mut self, scheme: &StoredScheme) -> Result<(&mut Sketcher, &mut String), Problem> {
        let id = scheme.id();
        let place = match self.sketchers.iter().position(|(known, _)| *known == id) {
            Some(place) => place,
            None => {
                let sketcher = Sketcher::new(scheme)?;
                if self.sketchers.len() == MOST {
                    self.sketchers.remove(0);
                }
                self.sketchers.push((id, sketcher));
                self.sketchers.len() - 1
            }
        };
        Ok((&mut self.sketchers[place].1, &mut self.text))
    }
}

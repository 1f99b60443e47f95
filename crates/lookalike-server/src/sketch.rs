//! Contents to fingerprints and all else that is compared, under the scheme of a collection, exactly as the other commands
//! make them.

use axum::http::StatusCode;
use lookalike::scheme::{Boilerplate, FieldWeights, TokenHash};
use lookalike::{
    Extraction, FeatureExtractor, Fingerprint, HtmlMode, MinHash, Scheme, SchemeId, Signature,
    Simhash, Sketch,
};
use lookalike_corpus::HtmlText;
use lookalike_store::{CollectionSettings, Document, StoredScheme};

use crate::paragraph::{Paragraph, Paragraphs};
use crate::problem::Problem;
use crate::request::Content;

/// Schemes for which a worker keeps its extractors.
const MOST: usize = 16;

/// Minima of a signature.
const MINIMA: usize = 128;

/// The extractors of one worker, made when they are first needed.
#[derive(Default)]
pub(crate) struct Bench {
    sketchers: Vec<(SchemeId, Sketcher)>,
    text: String,
}

struct Sketcher {
    features: FeatureExtractor,
    paragraphs: Paragraphs,
    html: HtmlText,
    minhash: MinHash,
}

/// A content with all that neighbours are compared with.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) fingerprint: Option<Fingerprint>,
    /// As it was sketched; `None` of a ready fingerprint.
    pub(crate) text: Option<String>,
    pub(crate) set: Vec<u64>,
    pub(crate) signature: Option<Signature>,
}

/// The scheme of a collection that is made without one: the one under which `lookalike fingerprint` makes fingerprints.
pub fn default_scheme() -> Scheme {
    Scheme {
        sketch: Sketch::Simhash,
        html: Extraction {
            mode: HtmlMode::Main,
            ..Extraction::default()
        },
        ..Scheme::default()
    }
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
            "collections hold 64-bit fingerprints, sketch=simhash, not {sketch} (the low half of simhash:128 is what sketch=simhash \
             makes of the same text)"
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
            paragraphs: Paragraphs::new(&parsed),
            html: HtmlText::new(parsed.html).map_err(|error| unusable(error.to_string()))?,
            minhash: MinHash::new(MINIMA, parsed.seed),
        })
    }

    /// The text of a content, which `text` may have to hold; `None` of a ready fingerprint.
    fn text<'t>(&mut self, content: &'t Content, text: &'t mut String) -> Option<&'t str> {
        match content {
            Content::Fingerprint(_) => None,
            Content::Text(text) => Some(text),
            Content::Html(page) => {
                text.clear();
                self.html.extract(page, text);
                Some(text)
            }
        }
    }
}

impl Bench {
    /// The fingerprint of a content; `None` when it has no features.
    pub(crate) fn fingerprint(
        &mut self,
        scheme: &StoredScheme,
        content: &Content,
    ) -> Result<Option<Fingerprint>, Problem> {
        if let Content::Fingerprint(code) = content {
            return Ok(Some(*code));
        }
        let (sketcher, buffer) = self.sketcher(scheme)?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        Ok(Simhash::of(&sketcher.features.read(text)))
    }

    /// The parts of a document that a collection keeps, but for what is no part of its content.
    pub(crate) fn document(
        &mut self,
        settings: &CollectionSettings,
        content: &Content,
    ) -> Result<Document, Problem> {
        if let Content::Fingerprint(code) = content {
            return Ok(Document {
                fingerprint: Some(*code),
                ..Document::default()
            });
        }
        let keep = settings.keep;
        let (sketcher, buffer) = self.sketcher(&settings.scheme)?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        let features = sketcher.features.read(text);
        let mut document = Document {
            fingerprint: Simhash::of(&features),
            ..Document::default()
        };
        if keep.signatures {
            let signature = sketcher.minhash.signature(features.set);
            document.signature = signature.map(|signature| signature.values().to_vec());
        }
        if keep.paragraphs {
            let found = sketcher.paragraphs.of(text)?;
            document.paragraphs = found.into_iter().map(|paragraph| paragraph.hash).collect();
        }
        if keep.texts {
            document.text = Some(text.to_owned());
        }
        Ok(document)
    }

    /// All that neighbours are compared with.
    pub(crate) fn own(
        &mut self,
        settings: &CollectionSettings,
        content: &Content,
    ) -> Result<Own, Problem> {
        if let Content::Fingerprint(code) = content {
            return Ok(Own {
                fingerprint: Some(*code),
                ..Own::default()
            });
        }
        let (sketcher, buffer) = self.sketcher(&settings.scheme)?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        let features = sketcher.features.read(text);
        let keep = settings.keep;
        let signature = keep
            .signatures
            .then(|| sketcher.minhash.signature(features.set));
        Ok(Own {
            fingerprint: Simhash::of(&features),
            text: Some(text.to_owned()),
            set: features.set.to_vec(),
            signature: signature.flatten(),
        })
    }

    /// The features of a text that is kept.
    pub(crate) fn feature_set(
        &mut self,
        scheme: &StoredScheme,
        text: &str,
    ) -> Result<&[u64], Problem> {
        let (sketcher, _) = self.sketcher(scheme)?;
        Ok(sketcher.features.read(text).set)
    }

    /// The paragraphs of a content, in order.
    pub(crate) fn paragraphs(
        &mut self,
        scheme: &StoredScheme,
        content: &Content,
    ) -> Result<Vec<Paragraph>, Problem> {
        let (sketcher, buffer) = self.sketcher(scheme)?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        sketcher.paragraphs.of(text)
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

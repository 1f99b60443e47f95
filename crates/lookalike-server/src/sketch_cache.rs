//! Contents to fingerprints and all else that is compared, under the scheme of a collection, exactly as the other commands
//! make them.

use axum::http::StatusCode;
use lookalike::{
    FeatureExtractor, Fingerprint, MinHash, Scheme, SchemeId, Shingle, Signature, Simhash,
};
use lookalike_corpus::HtmlText;
use lookalike_store::{CollectionSettings, StoredDocument, StoredScheme};

use crate::content::RequestContent;
use crate::paragraph::{HashedParagraph, ParagraphHasher};
use crate::problem::ProblemDetails;
use crate::scheme::parse_scheme;

/// Schemes for which a worker keeps its extractors.
const MOST: usize = 16;

/// Minima of a signature.
const MINIMA: usize = 128;

/// Memory that each feature of a text takes while a sketch is made: in order, in the set, and beside what is sorted, eight bytes each.
const BYTES_PER_FEATURE: usize = 26;
/// Memory that a page takes for each byte while its text is extracted.
const HTML_PER_BYTE: usize = 12;
/// Bytes of texts and pages from which on a worker gives back the buffers that they filled.
const KEPT: usize = 256 << 10;

/// Memory that a text or page takes for each byte while it is sketched under a scheme.
pub(crate) fn scratch_per_byte(scheme: &StoredScheme) -> usize {
    // One that cannot be read is refused by whoever sketches.
    parse_scheme(scheme.text()).map_or(0, |scheme| features_per_byte(&scheme))
}

fn features_per_byte(scheme: &Scheme) -> usize {
    // A word and what ends it have two bytes at least.
    let features = match scheme.shingle {
        Shingle::Chars(_) => BYTES_PER_FEATURE,
        Shingle::WordSizes(widths) => widths.iter().count() * BYTES_PER_FEATURE / 2,
        Shingle::Words(_) | Shingle::Stops(_) | Shingle::Phrases(_) => BYTES_PER_FEATURE / 2,
    };
    features + HTML_PER_BYTE
}

/// The extractors of one worker, made when they are first needed.
pub(crate) struct SketchCache {
    sketchers: Vec<(SchemeId, SchemeSketcher)>,
    text: String,
    /// The longest text or page since buffers were given back.
    longest: usize,
    /// Memory that one text may take.
    most: usize,
}

impl Default for SketchCache {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

struct SchemeSketcher {
    features: FeatureExtractor,
    /// See [`scratch_per_byte`].
    per_byte: usize,
    paragraphs: ParagraphHasher,
    html: HtmlText,
    minhash: MinHash,
}

/// A content with all that neighbours are compared with.
#[derive(Debug, Default)]
pub(crate) struct QuerySketch {
    pub(crate) fingerprint: Option<Fingerprint>,
    /// As it was sketched; `None` of a ready fingerprint.
    pub(crate) text: Option<String>,
    pub(crate) set: Vec<u64>,
    pub(crate) signature: Option<Signature>,
}

impl SchemeSketcher {
    fn new(scheme: &StoredScheme) -> Result<Self, ProblemDetails> {
        let unusable = |reason: String| {
            ProblemDetails::new(
                StatusCode::CONFLICT,
                "unusable-scheme",
                reason,
                "send fingerprints that were made with the collection's scheme",
            )
        };
        let parsed = parse_scheme(scheme.text()).map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            features: FeatureExtractor::new(&parsed),
            per_byte: features_per_byte(&parsed),
            paragraphs: ParagraphHasher::new(&parsed),
            html: HtmlText::new(parsed.html).map_err(|error| unusable(error.to_string()))?,
            minhash: MinHash::new(MINIMA, parsed.seed),
        })
    }

    /// The text of a content, which `text` may have to hold; `None` of a ready fingerprint.
    fn text<'t>(&mut self, content: &'t RequestContent, text: &'t mut String) -> Option<&'t str> {
        match content {
            RequestContent::Fingerprint(_) => None,
            RequestContent::Text(text) => Some(text),
            RequestContent::Html(page) => {
                text.clear();
                self.html.extract(page, text);
                Some(text)
            }
        }
    }
}

impl SketchCache {
    /// Without extractors; no text may take more than so many bytes of memory.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            sketchers: Vec::new(),
            text: String::new(),
            longest: 0,
            most,
        }
    }

    /// Gives back what a long text has taken.
    pub(crate) fn tidy(&mut self) {
        if self.longest > KEPT {
            *self = Self::new(self.most);
        }
    }

    /// The fingerprint of a content; `None` when it has no features.
    pub(crate) fn fingerprint(
        &mut self,
        scheme: &StoredScheme,
        content: &RequestContent,
    ) -> Result<Option<Fingerprint>, ProblemDetails> {
        if let RequestContent::Fingerprint(code) = content {
            return Ok(Some(*code));
        }
        let (sketcher, buffer) = self.sketcher(scheme, content.len())?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        Ok(Simhash::of(&sketcher.features.extract(text)))
    }

    /// The parts of a document that a collection keeps, but for what is no part of its content.
    pub(crate) fn document(
        &mut self,
        settings: &CollectionSettings,
        content: &RequestContent,
    ) -> Result<StoredDocument, ProblemDetails> {
        if let RequestContent::Fingerprint(code) = content {
            return Ok(StoredDocument {
                fingerprint: Some(*code),
                ..StoredDocument::default()
            });
        }
        let keep = settings.keep;
        let (sketcher, buffer) = self.sketcher(&settings.scheme, content.len())?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        let features = sketcher.features.extract(text);
        let mut document = StoredDocument {
            fingerprint: Simhash::of(&features),
            ..StoredDocument::default()
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
    pub(crate) fn query_sketch(
        &mut self,
        settings: &CollectionSettings,
        content: &RequestContent,
    ) -> Result<QuerySketch, ProblemDetails> {
        if let RequestContent::Fingerprint(code) = content {
            return Ok(QuerySketch {
                fingerprint: Some(*code),
                ..QuerySketch::default()
            });
        }
        let (sketcher, buffer) = self.sketcher(&settings.scheme, content.len())?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        let features = sketcher.features.extract(text);
        let keep = settings.keep;
        let signature = keep
            .signatures
            .then(|| sketcher.minhash.signature(features.set));
        Ok(QuerySketch {
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
    ) -> Result<&[u64], ProblemDetails> {
        let (sketcher, _) = self.sketcher(scheme, text.len())?;
        Ok(sketcher.features.extract(text).set)
    }

    /// The paragraphs of a content, in order.
    pub(crate) fn paragraphs(
        &mut self,
        scheme: &StoredScheme,
        content: &RequestContent,
    ) -> Result<Vec<HashedParagraph>, ProblemDetails> {
        let (sketcher, buffer) = self.sketcher(scheme, content.len())?;
        let text = sketcher.text(content, buffer).unwrap_or_default();
        sketcher.paragraphs.of(text)
    }

    /// The sketcher for a text or page of so many bytes.
    fn sketcher(
        &mut self,
        scheme: &StoredScheme,
        bytes: usize,
    ) -> Result<(&mut SchemeSketcher, &mut String), ProblemDetails> {
        let id = scheme.id();
        let place = match self.sketchers.iter().position(|(known, _)| *known == id) {
            Some(place) => place,
            None => {
                let sketcher = SchemeSketcher::new(scheme)?;
                if self.sketchers.len() == MOST {
                    self.sketchers.remove(0);
                }
                self.sketchers.push((id, sketcher));
                self.sketchers.len() - 1
            }
        };
        let sketcher = &mut self.sketchers[place].1;
        let needed = bytes.saturating_mul(sketcher.per_byte);
        if needed > self.most {
            return Err(ProblemDetails::too_large(format!(
                "a text of {bytes} bytes may take {needed} bytes of memory under this scheme, more than the limit of {}, twice the memory of requests",
                self.most
            )));
        }
        self.longest = self.longest.max(bytes);
        Ok((sketcher, &mut self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::default_scheme;

    #[test]
    fn a_long_text_leaves_no_buffers_and_one_too_long_is_refused() {
        let scheme = StoredScheme::from(&default_scheme());
        let mut cache = SketchCache::new(64 << 20);
        let text = |bytes: usize| RequestContent::Text("word ".repeat(bytes / 5));
        let sketch = |cache: &mut SketchCache, bytes| cache.fingerprint(&scheme, &text(bytes));
        sketch(&mut cache, 1000).expect("a short one");
        cache.tidy();
        assert_eq!(cache.sketchers.len(), 1, "it is used again");
        sketch(&mut cache, 2 * KEPT).expect("a long one");
        cache.tidy();
        assert_eq!((cache.sketchers.len(), cache.longest), (0, 0));
        let refused = sketch(&mut cache, 4 << 20).expect_err("it is too long");
        assert_eq!(refused.status.as_u16(), 413);
        let chars: Scheme = default_scheme()
            .to_string()
            .replace("shingle=words:5", "shingle=chars:9")
            .parse()
            .expect("a scheme");
        assert!(features_per_byte(&chars) > features_per_byte(&default_scheme()));
    }
}

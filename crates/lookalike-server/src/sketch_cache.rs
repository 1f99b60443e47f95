//! Computes sketches and everything else that is compared from contents, under the scheme of a collection, exactly as the other commands
//! do.

use std::borrow::Cow;
use std::sync::Arc;

use lookalike::chunk::{ChunkBits, Chunker, Chunking};
use lookalike::scheme::Boilerplate;
use lookalike::{
    DocumentFields, FeatureExtractor, Features, MinHash, Scheme, SchemeId, Shingle, Signature,
    Simhash, Sketch, SketchValue, Sketcher,
};
use lookalike_corpus::{BoilerplateLines, HtmlText, long_hash, seen_text_hash};
use lookalike_store::{
    CollectionSettings, ContentKey, DocumentSketch, PairTraits, SketchForm, StoredDocument,
    StoredScheme, TextHash,
};

use crate::content::{ContentSource, RequestContent, kept_length};
use crate::paragraph::{PageParagraph, ParagraphHasher};
use crate::problem::ProblemDetails;
use crate::request::places_name;
use crate::scheme::parse_scheme;
use crate::scheme_state::SchemeState;

/// Maximum number of schemes whose extractors a worker keeps.
const MAX_SCHEMES: usize = 16;

/// Number of minima in a signature.
pub(crate) const MINIMA: usize = 128;

/// Memory in bytes for each feature of a text while a sketch is made: eight each in the ordered list, in the set, and for sorting, and a
/// margin.
const BYTES_PER_FEATURE: usize = 26;
/// Memory in bytes for each byte of a page while its text is extracted.
const HTML_PER_BYTE: usize = 14;
/// Memory in bytes for each byte of fields: the shortest link has three bytes, and takes a string of 24, two features of 8 and two weights
/// of 12.
const FIELDS_PER_BYTE: usize = 22;
/// Size in bytes of texts and pages above which a worker frees the buffers that they filled.
const MAX_RETAINED_BYTES: usize = 256 << 10;

/// Returns the memory in bytes for each byte of a text or page while it is sketched under a scheme.
pub(crate) fn scratch_per_byte(scheme: &StoredScheme) -> usize {
    // A scheme that cannot be parsed is refused later, when sketching.
    parse_scheme(scheme.text()).map_or(0, |scheme| features_per_byte(&scheme))
}

fn features_per_byte(scheme: &Scheme) -> usize {
    // A word with its separator has at least two bytes.
    let features = match scheme.shingle {
        Shingle::Chars(_) => BYTES_PER_FEATURE,
        Shingle::WordSizes(widths) => widths.iter().count() * BYTES_PER_FEATURE / 2,
        Shingle::Words(_)
        | Shingle::WordsByLength { .. }
        | Shingle::Stops(_)
        | Shingle::Phrases(_) => BYTES_PER_FEATURE / 2,
    };
    features + HTML_PER_BYTE
}

/// Returns the memory in bytes for each byte of a body that its fields take while they are read and sketched; 0 if the scheme does not use
/// fields.
pub(crate) fn fields_per_byte(scheme: &StoredScheme) -> usize {
    let looks = parse_scheme(scheme.text()).is_ok_and(|scheme| !scheme.fields.is_none());
    if looks { FIELDS_PER_BYTE } else { 0 }
}

/// The extractors of a worker, created on first use.
pub(crate) struct SketchCache {
    sketchers: Vec<(SchemeId, SchemeSketcher)>,
    buffers: TextBuffers,
    /// Size of the longest text or page since buffers were last freed.
    longest: usize,
    /// Maximum memory in bytes for a text.
    most: usize,
    /// State of the scheme of the current collection.
    state: Option<Arc<SchemeState>>,
}

impl Default for SketchCache {
    fn default() -> Self {
        // For `run_inline`, whose texts are shorter than a small body.
        Self::new(usize::MAX)
    }
}

/// Buffers for the texts of pages.
#[derive(Default)]
struct TextBuffers {
    text: String,
    /// All text that a reader sees.
    visible: String,
    /// Main text without the learned lines.
    own: String,
}

/// The text of a content, and all text that a reader sees.
#[derive(Clone, Copy, Default)]
struct ContentText<'t> {
    text: &'t str,
    seen: &'t str,
}

struct SchemeSketcher {
    scheme: Scheme,
    features: FeatureExtractor,
    /// Memory in bytes for each byte of a text: see [`scratch_per_byte`].
    per_byte: usize,
    paragraphs: ParagraphHasher,
    html: HtmlText,
    boilerplate: Option<Arc<BoilerplateLines>>,
    /// Sketcher for sketches other than 64-bit fingerprints.
    other: Option<Sketcher>,
    /// Extractor of signatures that are kept besides sketches.
    minhash: MinHash,
}

/// A content with everything needed to compare it with neighbours.
#[derive(Debug, Default)]
pub(crate) struct QuerySketch {
    pub(crate) key: ContentKey,
    /// The text as it was sketched; `None` if a sketch was sent.
    pub(crate) text: Option<String>,
    pub(crate) set: Vec<u64>,
    pub(crate) signature: Option<Signature>,
}

impl SchemeSketcher {
    fn new(scheme: &StoredScheme, state: Option<&SchemeState>) -> Result<Self, ProblemDetails> {
        let unusable = |reason: String| {
            ProblemDetails::conflict(
                "unusable-scheme",
                reason,
                "send sketches that were made with the collection's scheme",
            )
        };
        let parsed = parse_scheme(scheme.text()).map_err(|error| unusable(error.to_string()))?;
        Ok(Self {
            scheme: parsed,
            features: extractor(&parsed, state).map_err(unusable)?,
            per_byte: features_per_byte(&parsed),
            paragraphs: ParagraphHasher::new(&parsed),
            html: HtmlText::new(parsed.html).map_err(|error| unusable(error.to_string()))?,
            boilerplate: boilerplate(&parsed, state).map_err(unusable)?,
            other: other_sketcher(&parsed).map_err(unusable)?,
            minhash: MinHash::new(MINIMA, parsed.seed),
        })
    }

    /// Returns the text of a content, using the buffers if necessary; empty if a sketch was sent.
    fn text<'t>(&mut self, content: &'t RequestContent, buffers: &'t mut TextBuffers) -> &'t str {
        self.read(content, buffers, false).text
    }

    /// Returns the same text as [`SchemeSketcher::text`] and, if `wants_seen`, all text that a reader sees.
    fn read<'t>(
        &mut self,
        content: &'t RequestContent,
        buffers: &'t mut TextBuffers,
        wants_seen: bool,
    ) -> ContentText<'t> {
        let TextBuffers { text, visible, own } = buffers;
        // The learned lines may be all of the main content, so the visible text is needed too.
        let chooses = self.html.chooses() && (wants_seen || self.boilerplate.is_some());
        let (text, seen): (&'t str, &'t str) = match &content.source {
            ContentSource::Sketch(_) => return ContentText::default(),
            ContentSource::Text(text) => (text, text),
            ContentSource::Html(page) => {
                text.clear();
                visible.clear();
                if chooses {
                    self.html.extract_with_visible(page, text, visible);
                    (text, visible)
                } else {
                    self.html.extract(page, text);
                    (text, text)
                }
            }
        };
        let Some(lines) = &self.boilerplate else {
            return ContentText { text, seen };
        };
        let is_page = matches!(content.source, ContentSource::Html(_));
        // Of a text, and of a page that is taken whole, there is no more to fall back on.
        let visible = (is_page && chooses).then_some(seen);
        let host = content.place.server();
        let text = match lines.own_text(host.as_deref(), text, visible) {
            Cow::Borrowed(text) => text,
            Cow::Owned(left) => {
                *own = left;
                own
            }
        };
        ContentText { text, seen }
    }

    /// Returns the fields that the scheme uses besides the text.
    fn fields(&self, content: &RequestContent) -> Result<DocumentFields, ProblemDetails> {
        if self.scheme.fields.is_none() {
            return Ok(DocumentFields::default());
        }
        content.place.fields.read()
    }

    /// Returns the same text as [`SchemeSketcher::text`] and, if `wants_hash`, the hash by which equal texts are recognised. For pages, the
    /// hash covers all text that a reader sees; if the scheme uses fields, it covers them too.
    fn hashed_text<'t>(
        &mut self,
        content: &'t RequestContent,
        fields: &DocumentFields,
        buffers: &'t mut TextBuffers,
        wants_hash: bool,
    ) -> (&'t str, Option<TextHash>) {
        let wants_seen = wants_hash && content.text_hash.is_none();
        let ContentText { text, seen } = self.read(content, buffers, wants_seen);
        // Texts of only white space are not meaningfully equal, so they have no hash, as in `dedup`.
        if !wants_hash || text.trim().is_empty() {
            return (text, None);
        }
        let own = || seen_text_hash(text, seen).into();
        let hash: TextHash = content.text_hash.unwrap_or_else(own);
        // Documents with equal texts but different fields have different features; if they counted as copies, they would share one sketch.
        let hash = match self.scheme.fields.is_none() {
            true => hash,
            false => long_hash(hash.into(), Some(fields)).into(),
        };
        (text, Some(hash))
    }

    /// Returns a text or page with its key, with the signature that the collection keeps if `wants_signature`, and with everything needed
    /// to compare it with neighbours if `compares`.
    fn sketched<'t>(
        &mut self,
        settings: &CollectionSettings,
        content: &'t RequestContent,
        buffers: &'t mut TextBuffers,
        wants_signature: bool,
        compares: bool,
    ) -> Result<(&'t str, QuerySketch), ProblemDetails> {
        let keep = settings.keep;
        let fields = self.fields(content)?;
        let (text, text_hash) = self.hashed_text(content, &fields, buffers, keep.text_hashes);
        let features = self.features.extract_with(text, &fields);
        let key = text_key(text, sketch_of(self.other.as_ref(), &features), text_hash);
        let signature = (wants_signature && keep.signatures)
            .then(|| kept_signature(&self.minhash, &key, features.set));
        let mut sketch = QuerySketch {
            signature: signature.flatten(),
            ..QuerySketch::of(key)
        };
        if compares {
            // Without fields: both sides of a comparison must have the same inputs, and neighbours keep only their texts.
            sketch.set = if self.scheme.fields.is_none() {
                features.set.to_vec()
            } else {
                self.features.extract(text).set.to_vec()
            };
            sketch.text = Some(text.to_owned());
        }
        Ok((text, sketch))
    }
}

/// Returns the learned lines that a scheme removes, or `None` if it removes none.
fn boilerplate(
    scheme: &Scheme,
    state: Option<&SchemeState>,
) -> Result<Option<Arc<BoilerplateLines>>, String> {
    if scheme.boilerplate == Boilerplate::Kept {
        return Ok(None);
    }
    let lines = state.and_then(|state| state.boilerplate.clone());
    lines
        .ok_or_else(|| "the collection does not hold the learned lines of its scheme".to_owned())
        .map(Some)
}

/// Returns the feature extractor of a scheme, with the table of terms that it names.
fn extractor(scheme: &Scheme, state: Option<&SchemeState>) -> Result<FeatureExtractor, String> {
    if !scheme.needs_terms() {
        return Ok(FeatureExtractor::new(scheme));
    }
    let terms = state.and_then(|state| state.terms.as_ref());
    let terms = terms.ok_or("the collection does not hold the table of terms of its scheme")?;
    FeatureExtractor::with_terms(scheme, terms).map_err(|error| error.to_string())
}

/// Returns the sketcher of a scheme, or `None` if its sketches are 64-bit fingerprints.
fn other_sketcher(scheme: &Scheme) -> Result<Option<Sketcher>, String> {
    match scheme.sketch {
        Sketch::Simhash => Ok(None),
        _ => Sketcher::new(scheme, None)
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

/// Returns the sketch of some features, or `None` if there are none.
fn sketch_of(other: Option<&Sketcher>, features: &Features<'_>) -> Option<DocumentSketch> {
    let Some(sketcher) = other else {
        return Simhash::of(features).map(DocumentSketch::Fingerprint);
    };
    match sketcher.sketch(features)? {
        SketchValue::Bits(code, bits) => Some(DocumentSketch::Bits(code, bits)),
        SketchValue::Signature(minima) => Some(DocumentSketch::Minima(minima.into_vec())),
        SketchValue::Hashes(shingles) => {
            // Nothing is left out: of the kinds of sketches that are made here, only others can lack places.
            let shingles = shingles.iter().copied().flatten();
            Some(DocumentSketch::SuperShingles(shingles.collect()))
        }
        // `parse_scheme` accepts no other kinds of sketches.
        SketchValue::Set(_) => None,
    }
}

/// Returns the signature that is kept for a content: its sketch, if that consists of minima.
fn kept_signature(minhash: &MinHash, key: &ContentKey, set: &[u64]) -> Option<Signature> {
    match &key.sketch {
        Some(DocumentSketch::Minima(minima)) => Some(Signature::from(minima.clone())),
        _ => minhash.signature(set),
    }
}

impl QuerySketch {
    /// Creates the query for a content of which only the key is known.
    pub(crate) fn of(key: ContentKey) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }
}

/// Returns the key of a content that was sent as a sketch.
fn ready_key(
    settings: &CollectionSettings,
    content: &RequestContent,
    sketch: &DocumentSketch,
) -> Result<ContentKey, ProblemDetails> {
    let (wanted, found) = (settings.sketch_form(), sketch.form());
    if wanted != found {
        let shown = |form: SketchForm| match form.places() {
            Some(places) => format!("{places} {}", places_name(form)),
            None if form == SketchForm::Fingerprint => "fingerprints of 64 bits".to_owned(),
            None => places_name(form).to_owned(),
        };
        return Err(ProblemDetails::invalid(
            format!(
                "the collection holds {}, and {} were sent",
                shown(wanted),
                shown(found)
            ),
            "send the text or page, or a sketch of the collection's scheme",
        ));
    }
    Ok(ContentKey {
        sketch: Some(sketch.clone()),
        text_hash: content.text_hash.filter(|_| settings.keep.text_hashes),
        traits: PairTraits {
            category: 0,
            length: content.stated_length(&settings.pairs)?,
        },
    })
}

/// Returns the key of a text.
fn text_key(text: &str, sketch: Option<DocumentSketch>, text_hash: Option<TextHash>) -> ContentKey {
    ContentKey {
        sketch,
        text_hash,
        traits: PairTraits {
            category: 0,
            length: kept_length(text),
        },
    }
}

impl SketchCache {
    /// Creates a cache without extractors. No text may take more than `most` bytes of memory.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            sketchers: Vec::new(),
            buffers: TextBuffers::default(),
            longest: 0,
            most,
            state: None,
        }
    }

    /// Sets the state of the next collection's scheme.
    pub(crate) fn set_scheme_state(&mut self, state: Option<Arc<SchemeState>>) {
        self.state = state;
    }

    /// Frees the memory that a long text has taken.
    pub(crate) fn shrink(&mut self) {
        if self.longest > MAX_RETAINED_BYTES {
            // Buffers keep the size of the longest text that they ever held, so for the sake of one long page in a thousand each worker
            // would keep a hundred megabytes. The extractors are dropped too, because they have buffers of their own.
            *self = Self::new(self.most);
        }
    }

    /// Returns the key of a content, by which its neighbours and copies are found; if `compares`, with everything needed to compare it with
    /// them. The caller adds its category.
    pub(crate) fn query_sketch(
        &mut self,
        settings: &CollectionSettings,
        content: &RequestContent,
        compares: bool,
    ) -> Result<QuerySketch, ProblemDetails> {
        if let ContentSource::Sketch(sketch) = &content.source {
            return ready_key(settings, content, sketch).map(QuerySketch::of);
        }
        let (sketcher, buffers) = self.sketcher(&settings.scheme, content.len())?;
        let (_, sketch) = sketcher.sketched(settings, content, buffers, compares, compares)?;
        Ok(sketch)
    }

    /// Returns the parts of a document that a collection keeps and that follow from its content, and its sketch; if `compares`, with
    /// everything needed to compare it with neighbours.
    pub(crate) fn document(
        &mut self,
        settings: &CollectionSettings,
        content: &RequestContent,
        compares: bool,
    ) -> Result<(StoredDocument, QuerySketch), ProblemDetails> {
        if let ContentSource::Sketch(sketch) = &content.source {
            let key = ready_key(settings, content, sketch)?;
            let document = StoredDocument::of_content(key.clone());
            return Ok((document, QuerySketch::of(key)));
        }
        let keep = settings.keep;
        let (sketcher, buffers) = self.sketcher(&settings.scheme, content.len())?;
        let (text, mut sketch) = sketcher.sketched(settings, content, buffers, true, compares)?;
        let mut document = StoredDocument::of_content(sketch.key.clone());
        if let Some(signature) = &sketch.signature {
            document.signature = Some(signature.values().to_vec());
        }
        if !compares {
            // The sketches of a whole batch are in memory at the same time.
            sketch.signature = None;
        }
        if keep.paragraphs {
            let features = &mut sketcher.features;
            let found = sketcher
                .paragraphs
                .of(text, settings.paragraphs, features)?;
            document.paragraphs = found.into_iter().map(|paragraph| paragraph.key).collect();
        }
        if keep.texts {
            document.text = Some(text.to_owned());
        }
        Ok((document, sketch))
    }

    /// Returns the features of a stored text.
    pub(crate) fn feature_set(
        &mut self,
        scheme: &StoredScheme,
        text: &str,
    ) -> Result<&[u64], ProblemDetails> {
        let (sketcher, _) = self.sketcher(scheme, text.len())?;
        Ok(sketcher.features.extract(text).set)
    }

    /// Returns the paragraphs of a content, in order.
    pub(crate) fn paragraphs(
        &mut self,
        settings: &CollectionSettings,
        content: &RequestContent,
    ) -> Result<Vec<PageParagraph>, ProblemDetails> {
        let (sketcher, buffers) = self.sketcher(&settings.scheme, content.len())?;
        let text = sketcher.text(content, buffers);
        let features = &mut sketcher.features;
        sketcher.paragraphs.of(text, settings.paragraphs, features)
    }

    /// Creates a chunker that uses the words and characters of a scheme.
    pub(crate) fn chunker(
        &mut self,
        scheme: &StoredScheme,
        chunking: Chunking,
    ) -> Result<Chunker, ProblemDetails> {
        let (sketcher, _) = self.sketcher(scheme, 0)?;
        Ok(Chunker::new(&[chunking], ChunkBits::Long, &sketcher.scheme))
    }

    /// Chunks a content.
    pub(crate) fn chunk(
        &mut self,
        scheme: &StoredScheme,
        chunker: &mut Chunker,
        content: &RequestContent,
    ) -> Result<(), ProblemDetails> {
        let (sketcher, buffers) = self.sketcher(scheme, content.len())?;
        chunker.chunk(sketcher.text(content, buffers));
        Ok(())
    }

    /// Chunks a stored text.
    pub(crate) fn chunk_text(
        &mut self,
        scheme: &StoredScheme,
        chunker: &mut Chunker,
        text: &str,
    ) -> Result<(), ProblemDetails> {
        // Only for its check of the length: the chunker has a scheme of its own.
        self.sketcher(scheme, text.len())?;
        chunker.chunk(text);
        Ok(())
    }

    /// Returns the sketcher and buffers for a text or page of `bytes` bytes.
    fn sketcher(
        &mut self,
        scheme: &StoredScheme,
        bytes: usize,
    ) -> Result<(&mut SchemeSketcher, &mut TextBuffers), ProblemDetails> {
        let id = scheme.id();
        let place = match self.sketchers.iter().position(|(known, _)| *known == id) {
            Some(place) => place,
            None => {
                let sketcher = SchemeSketcher::new(scheme, self.state.as_deref())?;
                // Drop the oldest; it is created again when its scheme is next used.
                if self.sketchers.len() == MAX_SCHEMES {
                    self.sketchers.remove(0);
                }
                self.sketchers.push((id, sketcher));
                self.sketchers.len() - 1
            }
        };
        let sketcher = &mut self.sketchers[place].1;
        // Check before anything is extracted: the length alone bounds the memory. The permit of the request is computed in the same way,
        // but stored texts are not part of its body, so they are checked here.
        let needed = bytes.saturating_mul(sketcher.per_byte);
        if needed > self.most {
            return Err(ProblemDetails::too_large(format!(
                "a text of {bytes} bytes may take {needed} bytes of memory under this scheme, more than the limit of {}, twice the memory of requests",
                self.most
            )));
        }
        self.longest = self.longest.max(bytes);
        Ok((sketcher, &mut self.buffers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::default_scheme;

    #[test]
    fn a_long_text_leaves_no_buffers_and_one_too_long_is_refused() {
        let mut cache = SketchCache::new(64 << 20);
        let settings = CollectionSettings::new(&default_scheme());
        let text = |bytes: usize| ContentSource::Text("word ".repeat(bytes / 5)).into();
        let sketch =
            |cache: &mut SketchCache, bytes| cache.query_sketch(&settings, &text(bytes), false);
        sketch(&mut cache, 1000).expect("a short one");
        cache.shrink();
        assert_eq!(cache.sketchers.len(), 1, "it is used again");
        sketch(&mut cache, 2 * MAX_RETAINED_BYTES).expect("a long one");
        cache.shrink();
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

//! Arguments of a scheme: words, features, weights.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lookalike::Terms;
use lookalike::hash::siphash::SipKey;
use lookalike::scheme::{
    Boilerplate, Case, FieldWeights, Folding, Mask, Normalization, Nouns, Scheme, Segmentation,
    Shingle, ShortTexts, Sketch, Stemming, StopWords, TokenHash, Weight,
};
use lookalike_corpus::InputOptions;

use crate::failure::Failure;
use crate::remedy::terms_error_with_remedy;

/// Definition of words and characters.
#[derive(Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct WordArguments {
    /// Definition of a word: unicode (the rules of Unicode), word-chars (runs of letters, digits and _, as \w+), or languages
    /// (unicode, but with dictionaries for Chinese, Japanese, Thai, Lao, Khmer and Burmese)
    #[arg(long, value_name = "RULE", default_value = "unicode")]
    segment: Segmentation,

    /// Unicode normalisation: nfc or nfkc, both dropping invisible characters (soft hyphens, zero-width spaces, ...), or none (the
    /// text as it is)
    #[arg(long, value_name = "FORM", default_value = "nfc")]
    normalize: Normalization,

    /// Case of letters: lower (ignore case) or keep
    #[arg(long, value_name = "CASE", default_value = "lower")]
    case: Case,

    /// Treat all numbers, or all dates (figures, English, Chinese, Japanese, Korean), as equal: numbers, dates, numbers,dates, or none
    #[arg(long, value_name = "WHAT", default_value = "none")]
    mask: Mask,

    /// Treat variants of a character as equal: accents (cafe and café), punctuation (quotation marks and dashes), arabic (with and
    /// without tatweel and vowel signs), width (full and half width), separated by commas, or none
    #[arg(long = "fold", value_name = "LIST", default_value = "none")]
    folding: Folding,
}

impl WordArguments {
    /// Returns a scheme with these words and characters, and defaults for everything else.
    pub(crate) fn scheme(&self) -> Scheme {
        Scheme::default()
            .normalization(self.normalize)
            .case(self.case)
            .segmentation(self.segment)
            .mask(self.mask)
            .folding(self.folding)
    }
}

/// Steps from texts to features.
#[derive(Args)]
#[command(next_help_heading = "Features")]
pub(crate) struct SchemeArguments {
    /// Features to compare: words:N, chars:N, stops:N or phrases:N
    ///
    /// Runs of N words (words:5), of several lengths together (words:3+5), of characters (chars:9), of English function words only
    /// (stops:4), or words and phrases that occur in at least N documents (phrases:5, needs --terms).
    #[arg(long, value_name = "KIND:N", default_value = "words:5")]
    shingle: Shingle,

    /// Use runs of W words for texts of fewer than N words, such as 49:2
    #[arg(long, value_name = "N:W", hide_short_help = true)]
    short: Option<ShortTexts>,

    #[command(flatten)]
    words: WordArguments,

    /// Leave out stop words: of the given languages (en or de,en), of the language of each text (auto), or none
    #[arg(long, value_name = "LANGUAGES", default_value = "none")]
    stop: StopWords,

    /// Reduce words to their stems: in one language (en), in the language of each text (auto), or none
    #[arg(long, value_name = "LANGUAGE", default_value = "none")]
    stem: Stemming,

    /// Give nouns more weight in tf-length-noun: tagged (found by taggers for English and Chinese) or none
    #[arg(long, value_name = "HOW", default_value = "none")]
    nouns: Nouns,

    /// Seed of all hashes; sketches with different seeds cannot be compared
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,

    /// Hash of words: xxh3, lookup3 (Jenkins), or siphash with a secret key, for adversarial texts
    #[arg(long, value_name = "HASH", default_value = "xxh3")]
    hash: HashName,

    /// siphash: file with the key, 32 hexadecimal digits; sketches with different keys cannot be compared
    #[arg(long, value_name = "FILE")]
    pub(crate) hash_key: Option<PathBuf>,

    /// Additional sources of features, with their weights relative to a word of the text: anchors:3~5 (texts of links to the
    /// document, with fading weights for 5 words around them), in-links:1, out-links:1, separated by commas. Read from the fields
    /// anchors, in_links and out_links
    #[arg(long, value_name = "LIST", default_value = "none")]
    pub(crate) fields: FieldWeights,

    /// Table made by `lookalike terms` from the collection, for weights by rarity, phrases and i-match
    #[arg(long, value_name = "FILE")]
    terms: Option<PathBuf>,
}

/// A token hash by name; its key is added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HashName {
    Xxh3,
    Lookup3,
    Siphash,
}

impl SchemeArguments {
    /// Returns the scheme with a sketch for texts read with these options, and its table of terms if it needs one.
    pub(crate) fn scheme(
        &self,
        weight: Weight,
        sketch: Sketch,
        read: &InputOptions,
    ) -> Result<(Scheme, Option<Arc<Terms>>), Failure> {
        // Read before the table of terms, because a table of keyed hashes is checked against the key.
        let key = hash_key(self.hash_key.as_deref())?;
        let scheme = self.without_table(weight, sketch, read, key)?;
        if !scheme.needs_terms() {
            self.refuse_terms("a table of terms is for weights by rarity, phrases and i-match")?;
            return Ok((scheme, None));
        }
        let terms = Arc::new(self.table(&scheme, key)?);
        // The id of the table is part of the scheme, so that sketches made with another table are never compared with these.
        let scheme = scheme.terms(Some(terms.id()));
        Ok((scheme, Some(terms)))
    }

    /// Returns the scheme without the table of terms that it may need.
    fn without_table(
        &self,
        weight: Weight,
        sketch: Sketch,
        read: &InputOptions,
        key: Option<SipKey>,
    ) -> Result<Scheme, Failure> {
        let hash = match (self.hash, key) {
            // Otherwise the user would rely on a protection that does not exist.
            (HashName::Xxh3 | HashName::Lookup3, Some(_)) => {
                return Err(Failure::Usage(
                    "--hash-key has no effect here: it is the key for --hash siphash".to_owned(),
                ));
            }
            (HashName::Xxh3, _) => TokenHash::Xxh3,
            (HashName::Lookup3, _) => TokenHash::Lookup3,
            (HashName::Siphash, Some(key)) => TokenHash::SipHash(key),
            (HashName::Siphash, None) => {
                return Err(Failure::Usage(
                    "--hash siphash needs a secret key: run `openssl rand -hex 16 > FILE`, then give --hash-key FILE"
                        .to_owned(),
                ));
            }
        };
        let shingle = self.shingle()?;
        let by_length_and_noun = matches!(weight, Weight::TfLengthNoun(_));
        // The weight uses the lengths of words, and nouns are words too.
        if by_length_and_noun && shingle != Shingle::words(1).unwrap_or_default() {
            return Err(Failure::Usage(format!(
                "the weight tf-length-noun applies to single words, not to {shingle}: add --shingle words:1",
            )));
        }
        self.check_words(weight)?;
        Ok(self
            .words
            .scheme()
            .shingle(shingle)
            .weight(weight)
            .hash(hash)
            .seed(self.seed)
            .sketch(sketch)
            .html(read.html)
            .fields(self.fields)
            .stop(self.stop)
            .stem(self.stem)
            .nouns(self.nouns)
            .boilerplate(
                read.boilerplate
                    .as_ref()
                    .map_or(Boilerplate::Kept, |lines| lines.scheme()),
            )
            // The table is added once it was read, because its id is part of the scheme.
            .terms(None))
    }

    /// Returns the features, with the rule for short texts.
    fn shingle(&self) -> Result<Shingle, Failure> {
        let Some(short) = self.short else {
            return Ok(self.shingle);
        };
        self.shingle.with_short(short).ok_or_else(|| {
            Failure::Usage(format!(
                "--short {short} does not go with --shingle {}: it needs --shingle words:N, and shorter runs than N",
                self.shingle
            ))
        })
    }

    /// Returns the scheme of an evaluation, which builds the table of terms that it needs from its own documents.
    pub(crate) fn measured(
        &self,
        weight: Weight,
        sketch: Sketch,
        read: &InputOptions,
    ) -> Result<Scheme, Failure> {
        // Rarity learned elsewhere would give the evaluation information that such a job never has.
        self.refuse_terms("an evaluation makes the table that it needs from its own documents")?;
        self.without_table(weight, sketch, read, hash_key(self.hash_key.as_deref())?)
    }

    /// Refuses a table of terms if it would not be used.
    fn refuse_terms(&self, why: &str) -> Result<(), Failure> {
        match self.terms {
            Some(_) => Err(Failure::Usage(format!(
                "--terms has no effect here: {why}; leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the scheme whose features a table of terms counts.
    pub(crate) fn counted(&self, read: &InputOptions) -> Result<Scheme, Failure> {
        self.refuse_terms("this command makes one")?;
        // Weights and sketches come after counting, so one table serves all of them.
        let scheme = self.without_table(
            Weight::Set,
            Sketch::None,
            read,
            hash_key(self.hash_key.as_deref())?,
        )?;
        Ok(scheme.counted())
    }

    /// Refuses choices about words that would have no effect.
    fn check_words(&self, weight: Weight) -> Result<(), Failure> {
        // An option without effect is refused: with it, the user believes to compare something else than the job does.
        let filtered = (self.stop, self.stem) != (StopWords::NONE, Stemming::NONE);
        let all_words = match self.shingle {
            Shingle::Chars(_) => Some("consists of characters"),
            Shingle::Stops(_) => Some("consists of function words as they are"),
            _ => None,
        };
        if let Some(why) = all_words.filter(|_| filtered) {
            return Err(Failure::Usage(format!(
                "--stop and --stem have no effect here: {} {why}; leave them out, or use --shingle words:N",
                self.shingle
            )));
        }
        if self.nouns != Nouns::NONE && !matches!(weight, Weight::TfLengthNoun(_)) {
            return Err(Failure::Usage(
                "--nouns applies only to --weight tf-length-noun: add that weight, or leave --nouns out"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Returns the files that are read for the scheme.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.hash_key, &self.terms].into_iter();
        files.filter_map(|file| file.as_deref())
    }

    /// Reads the table of terms, which must count the features of the scheme.
    fn table(&self, scheme: &Scheme, key: Option<SipKey>) -> Result<Terms, Failure> {
        let needs = if scheme.shingle.needs_terms() {
            format!("--shingle {}", scheme.shingle)
        } else if scheme.weight.needs_terms() {
            format!("--weight {}", scheme.weight)
        } else {
            format!("the sketch {}", scheme.sketch)
        };
        let path = self.terms.as_ref().ok_or_else(|| {
            Failure::Usage(format!(
                "{needs} needs a table of terms: make one with `lookalike terms INPUT -o FILE`, then give --terms FILE"
            ))
        })?;
        let failed = |error: String| Failure::Failed(format!("{}: {error}", path.display()));
        let unreadable =
            |error: std::io::Error| format!("{error}: name a table made by `lookalike terms`");
        let bytes = std::fs::read(path).map_err(|error| failed(unreadable(error)))?;
        let terms = Terms::from_bytes(&bytes, key)
            .map_err(|error| failed(terms_error_with_remedy(&error)))?;
        let named = scheme.terms(Some(terms.id()));
        terms
            // Counts of other features would silently give meaningless weights.
            .ensure_fits(&named)
            .map_err(|error| failed(error.to_string()))?;
        Ok(terms)
    }
}

/// Reads the secret key of a token hash from this file, if one is specified.
pub(crate) fn hash_key(path: Option<&Path>) -> Result<Option<SipKey>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let shown = path.display();
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(format!("{shown}: {error}"));
    let unreadable = |error: std::io::Error| failed(&format!("{error}: name the file of the key"));
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    // `openssl rand -hex 16 > FILE` ends with a line feed.
    text.trim()
        .parse()
        .map(Some)
        .map_err(|error| failed(&error))
}

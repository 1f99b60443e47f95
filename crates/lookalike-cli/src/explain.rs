//! `lookalike explain A B`: why two documents match or do not.

use std::ffi::OsString;
use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

use lookalike::band::Banding;
use lookalike::feature::FeatureExtractor;
use lookalike::resemblance::{containment, intersection_size, resemblance};
use lookalike::scheme::{Extraction, Scheme, Sketch, Weight};
use lookalike::sketch::{MinHash, Simhash};
use lookalike_batch::report::diff;
use lookalike_corpus::{InputOptions, Inputs, Parser};
use serde::Serialize;

use crate::arguments::{HtmlArguments, RunArguments, SchemeArguments};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(after_help = "--json prints one object, --quiet leaves the differences out.")]
pub(crate) struct Arguments {
    /// A file, or with --in the id of a record
    a: OsString,

    /// The other
    b: OsString,

    /// Take the two records with these ids from this input (may be given several times)
    #[arg(long = "in", value_name = "INPUT")]
    inputs: Vec<OsString>,

    /// Least resemblance of near-duplicates
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    threshold: f64,

    #[command(flatten)]
    html: HtmlArguments,

    #[command(flatten)]
    scheme: SchemeArguments,

    #[command(flatten)]
    run: RunArguments,
}

/// What can be said of two documents.
#[derive(Serialize)]
struct Explanation {
    a: String,
    b: String,
    scheme: String,
    equal_text: bool,
    features_a: usize,
    features_b: usize,
    shared: usize,
    resemblance: f64,
    containment_of_a: f64,
    containment_of_b: f64,
    threshold: f64,
    near_duplicates: bool,
    simhash_distance: Option<u32>,
    minhash_agreement: Option<f64>,
    super_shingles_agreeing: Option<usize>,
    /// Chance that 128 min-hash functions in the default bands propose a pair of this resemblance.
    found_by_minhash: Option<f64>,
    /// Chance that two of six super-shingles agree at this resemblance.
    found_by_supershingle: f64,
}

struct Document {
    name: String,
    text: String,
}

impl Arguments {
    fn documents(&self) -> Result<[Document; 2], Failure> {
        let spool = self.run.spool(std::env::temp_dir())?;
        let html = self.html.extraction();
        if self.inputs.is_empty() {
            let file = |path| file(path, html, spool.path());
            return Ok([file(&self.a)?, file(&self.b)?]);
        }
        let wanted = [
            self.a.to_string_lossy().into_owned(),
            self.b.to_string_lossy().into_owned(),
        ];
        let mut found = [None, None];
        visit(&self.inputs, html, spool.path(), |id, text| {
            for (wanted, found) in wanted.iter().zip(&mut found) {
                if wanted == id && found.is_none() {
                    *found = Some(Document {
                        name: id.to_owned(),
                        text: text.to_owned(),
                    });
                }
            }
        })?;
        let [a, b] = found;
        let missing = |id: &String| {
            Failure::Failed(format!("no record has the id {id:?}: look for it in --in"))
        };
        Ok([
            a.ok_or_else(|| missing(&wanted[0]))?,
            b.ok_or_else(|| missing(&wanted[1]))?,
        ])
    }
}

/// The one document in a file.
fn file(path: &OsString, html: Extraction, spool: &Path) -> Result<Document, Failure> {
    let mut documents = Vec::new();
    visit(std::slice::from_ref(path), html, spool, |id, text| {
        documents.push(Document {
            name: id.to_owned(),
            text: text.to_owned(),
        });
    })?;
    let count = documents.len();
    match documents.pop() {
        Some(document) if count == 1 => Ok(document),
        _ => Err(Failure::Usage(format!(
            "{}: holds {count} documents: name two of them by id, as in `lookalike explain ID ID --in FILE`",
            path.to_string_lossy()
        ))),
    }
}

fn visit(
    inputs: &[OsString],
    html: Extraction,
    spool: &Path,
    mut visit: impl FnMut(&str, &str),
) -> Result<(), Failure> {
    let options = InputOptions {
        html,
        ..InputOptions::default()
    };
    let inputs = Inputs::discover(inputs, &options, spool)?;
    let mut parser = Parser::new(&inputs, &options);
    for chunk in inputs.chunks(&options) {
        let chunk = chunk.map_err(|error| Failure::Failed(error.to_string()))?;
        parser.parse(&chunk, &mut |record| {
            if let Ok(record) = record {
                visit(&record.id, &record.text);
            }
        });
    }
    Ok(())
}

fn explanation([a, b]: &[Document; 2], scheme: &Scheme, threshold: f64) -> Explanation {
    let mut extractor = FeatureExtractor::new(scheme);
    let set_a = extractor.feature_set(&a.text).to_vec();
    let set_b = extractor.feature_set(&b.text).to_vec();
    let minhash = MinHash::new(128, scheme.seed);
    let signatures = minhash.signature(&set_a).zip(minhash.signature(&set_b));
    let shingles = signatures.as_ref().and_then(|(a, b)| {
        let groups = |s: &lookalike::sketch::Signature| s.super_shingles(6, 14).ok();
        groups(a).zip(groups(b))
    });
    let fingerprints = Simhash::fingerprint(&set_a).zip(Simhash::fingerprint(&set_b));
    let similarity = resemblance(&set_a, &set_b);
    let agree = similarity.powi(14);
    Explanation {
        a: a.name.clone(),
        b: b.name.clone(),
        scheme: scheme.to_string(),
        equal_text: a.text == b.text,
        features_a: set_a.len(),
        features_b: set_b.len(),
        shared: intersection_size(&set_a, &set_b),
        resemblance: similarity,
        containment_of_a: containment(&set_a, &set_b),
        containment_of_b: containment(&set_b, &set_a),
        threshold,
        near_duplicates: similarity >= threshold,
        simhash_distance: fingerprints.map(|(a, b)| a.distance(b)),
        minhash_agreement: signatures.as_ref().and_then(|(a, b)| a.agreement(b).ok()),
        super_shingles_agreeing: shingles.map(|(a, b)| a.agreeing(&b)),
        found_by_minhash: Banding::for_threshold(128, threshold, 0.999)
            .map(|banding| banding.recall(similarity)),
        found_by_supershingle: 1.0 - (1.0 - agree).powi(6) - 6.0 * agree * (1.0 - agree).powi(5),
    }
}

impl Explanation {
    /// The verdict in one sentence.
    fn verdict(&self) -> String {
        if self.equal_text {
            return "exact copies: the texts are equal byte for byte".to_owned();
        }
        if self.features_a == 0 || self.features_b == 0 {
            return "not comparable: a text without words is only ever an exact copy".to_owned();
        }
        let (verb, relation) = if self.near_duplicates {
            ("near-duplicates", "at or above")
        } else {
            ("no near-duplicates", "below")
        };
        format!(
            "{verb}: resemblance {:.4} is {relation} the threshold {}",
            self.resemblance, self.threshold
        )
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        line(format!("{}\n", self.verdict()));
        line(format!("  a  {}  ({} features)", self.a, self.features_a));
        line(format!("  b  {}  ({} features)", self.b, self.features_b));
        line(format!("  shared features          {}", self.shared));
        line(format!(
            "  resemblance              {:.6}",
            self.resemblance
        ));
        line(format!(
            "  containment of a in b    {:.6}",
            self.containment_of_a
        ));
        line(format!(
            "  containment of b in a    {:.6}",
            self.containment_of_b
        ));
        if let Some(distance) = self.simhash_distance {
            line(format!("  simhash distance         {distance} of 64 bits"));
        }
        if let (Some(agreement), Some(shingles)) =
            (self.minhash_agreement, self.super_shingles_agreeing)
        {
            line(format!(
                "  min-hash agreement       {agreement:.4} of 128 functions"
            ));
            line(format!("  super-shingles           {shingles} of 6 agree"));
        }
        line("  chance of being found    allpairs 1 (at or above the threshold)".to_owned());
        if let Some(chance) = self.found_by_minhash {
            line(format!(
                "                           minhash {chance:.6}, supershingle {:.6}",
                self.found_by_supershingle
            ));
        }
        line(format!("  scheme                   {}\n", self.scheme));
        text
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let documents = arguments.documents()?;
    let (scheme, _) = arguments
        .scheme
        .scheme(Weight::Set, Sketch::None, &arguments.html)?;
    let explanation = explanation(&documents, &scheme, arguments.threshold);
    let mut text = if arguments.run.json {
        serde_json::to_string(&explanation).map_err(std::io::Error::from)? + "\n"
    } else {
        explanation.describe()
    };
    if !arguments.run.json && !arguments.run.quiet && !explanation.equal_text {
        let color = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        text += &diff::unified_terminal(&documents[0].text, &documents[1].text, color);
    }
    Ok(stdout().lock().write_all(text.as_bytes())?)
}

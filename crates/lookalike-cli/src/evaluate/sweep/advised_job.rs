//! Advice as a command line, with which `pairs` or `join` finds what a setting found.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use lookalike::Scheme;
use lookalike::resemblance::SetMeasure;
use lookalike::scheme::{HtmlMode, Mask, Sketch, Weight};
use lookalike_batch::MAX_DISTANCE;
use lookalike_batch::fingerprints::files::{PlaceKind, SketchKind, SketchShape};
use lookalike_batch::fingerprints::sketches::MinEqual;
use lookalike_eval::{ConjunctiveRule, SweepSetting};

use crate::arguments::quoted;
use crate::evaluate::given::GivenSketches;

/// Options of `evaluate sweep` that a job does not have, or that the advice decides. All of them have a value.
const REPLACED: [&str; 17] = [
    "--checkpoint",
    "--labels",
    "--positive",
    "--threshold",
    "--shingles",
    "--weights",
    "--sketches",
    "--measures",
    "--lengths",
    "--precision",
    "--recall",
    "--page",
    "--masks",
    "--html-modes",
    "--shingle",
    "--mask",
    // A setting states its own rule for short texts, if it has one.
    "--short",
];
/// Further such options, without a value.
const DROPPED: [&str; 5] = ["--two-tests", "--resume", "--json", "--quiet", "-q"];

/// Returns those inputs and options of this command that a job has as well.
pub(super) fn kept_arguments() -> Vec<String> {
    // The first two words are `evaluate sweep`.
    kept(crate::caller::words().into_iter().skip(2))
}

fn kept(words: impl Iterator<Item = OsString>) -> Vec<String> {
    let (mut kept, mut words) = (Vec::new(), words);
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            // All further words are inputs. Without `--`, because the advice appends options.
            kept.extend(words.map(|input| quoted(not_an_option(input))));
            break;
        }
        if DROPPED.contains(&&*text) {
            continue;
        }
        // The advice decides the mode of HTML as well, but not which other parts of a page count.
        if REPLACED.contains(&&*text) || text == "--html" {
            words.next();
            continue;
        }
        let name = text.split_once('=').map_or(&*text, |(name, _)| name);
        if !(text.contains('=') && (REPLACED.contains(&name) || name == "--html")) {
            kept.push(quoted(word));
        }
    }
    kept
}

/// Returns an input in such a way that it is not taken for an option.
fn not_an_option(input: OsString) -> OsString {
    // "-" is standard input.
    match input != "-" && input.to_string_lossy().starts_with('-') {
        true => Path::new(".").join(input).into_os_string(),
        false => input,
    }
}

/// Returns the job that finds what one setting finds at a cut, or `None` if no job decides like that.
pub(super) fn of_setting(kept: &[String], setting: &SweepSetting, cut: f64) -> Option<String> {
    let rule = RecommendedRule::of(setting, cut)?;
    command(kept, setting, &rule)
}

/// Returns the job that applies both tests, or `None` if none does.
pub(super) fn of_both(
    kept: &[String],
    settings: &[SweepSetting],
    both: &ConjunctiveRule,
) -> Option<String> {
    let mut tests: Vec<(&SweepSetting, f64)> = both
        .settings
        .iter()
        .map(|&at| &settings[at])
        .zip(both.cuts)
        .collect();
    // The first test proposes: one of resemblance leaves the fewest candidates, and coverage still limits them. A fingerprint can only be the first
    // test.
    tests.sort_by_key(
        |(setting, _)| match (setting.scheme.sketch, setting.measure) {
            (Sketch::None, SetMeasure::Resemblance) => 1,
            (Sketch::None, SetMeasure::Coverage) => 2,
            (Sketch::None, SetMeasure::Containment) => 3,
            _ => 0,
        },
    );
    let [(first, first_cut), (second, second_cut)] = tests[..] else {
        return None;
    };
    let mut rule = RecommendedRule::of(first, first_cut)?;
    rule.tests.push(further(second, second_cut));
    command(kept, first, &rule)
}

/// Tells whether a job can decide by this setting and cut, and test further.
pub(super) fn can_be_first_test(setting: &SweepSetting, cut: f64) -> bool {
    // A join of stored sketches has no further tests.
    RecommendedRule::of(setting, cut).is_some_and(|rule| rule.equal.is_none())
}

fn further(setting: &SweepSetting, cut: f64) -> String {
    format!("{}:{}:{cut}", setting.measure, setting.scheme.shingle)
}

/// The rule by which a job decides.
#[derive(Default)]
struct RecommendedRule {
    method: String,
    threshold: f64,
    tests: Vec<String>,
    /// Minimum number of equal places, if only a join of stored sketches decides by it: the methods of `pairs` verify what they propose.
    equal: Option<usize>,
}

impl RecommendedRule {
    fn of(setting: &SweepSetting, cut: f64) -> Option<Self> {
        let by = |method: String, threshold: f64| {
            Some(Self {
                method,
                threshold,
                ..Self::default()
            })
        };
        let bits = setting.scheme.sketch.fingerprint_bits();
        match setting.scheme.sketch {
            Sketch::None => Some(Self::of_sets(setting, cut)),
            Sketch::Simhash32 | Sketch::Simhash | Sketch::Simhash128 => {
                let distance = f64::from(bits) - cut;
                // Jobs accept at most a quarter of the bits.
                let is_near = distance <= f64::from(bits / 4);
                let width = if bits == 64 {
                    String::new()
                } else {
                    format!(" --bits {bits}")
                };
                // A threshold of 0 below: the sweep has judged the candidates of the method as they are, without verification.
                is_near.then_some(())?;
                by(
                    format!(" --method simhash{width} --distance {distance}"),
                    0.0,
                )
            }
            Sketch::SuperShingle {
                groups: 6,
                rows: 14,
            } => by(format!(" --method super-shingle --equal {cut}"), 0.0),
            Sketch::Buckets { buckets } => by(
                format!(" --method buckets --size {buckets} --equal {cut}"),
                0.0,
            ),
            Sketch::IMatch { lexicons } => by(
                format!(" --method i-match --size {lexicons} --equal {cut}"),
                0.0,
            ),
            // No job decides by the score of other sketches alone.
            sketch => Some(Self {
                equal: Some(least_equal(SketchShape::of(sketch)?, cut)?),
                ..Self::default()
            }),
        }
    }

    /// Creates the rule for the exact comparison of sets. If c of the larger set is covered, the resemblance is at least c / (2 - c); a small set may
    /// be contained in one of any size.
    fn of_sets(setting: &SweepSetting, cut: f64) -> Self {
        let (threshold, tests) = match setting.measure {
            SetMeasure::Resemblance => (cut, Vec::new()),
            SetMeasure::Coverage => {
                let bound = cut / (2.0 - cut);
                (
                    // Rounded down, so that no pair is lost, because the test follows.
                    (bound * 1000.0).floor() / 1000.0,
                    vec![further(setting, cut)],
                )
            }
            // Containment does not limit the resemblance.
            SetMeasure::Containment => (0.0, vec![further(setting, cut)]),
        };
        Self {
            threshold,
            tests,
            ..Self::default()
        }
    }
}

/// Returns the smallest number of equal places at a cut, or `None` if no join supports it.
fn least_equal(shape: SketchShape, cut: f64) -> Option<usize> {
    let least = match shape.kind {
        PlaceKind::SuperShingles => MinEqual::Places(cut.ceil() as u32),
        PlaceKind::Minima => MinEqual::Share(cut),
    };
    least.places(shape).ok()
}

fn command(kept: &[String], setting: &SweepSetting, rule: &RecommendedRule) -> Option<String> {
    let Scheme {
        shingle,
        weight,
        mask,
        html,
        ..
    } = setting.scheme;
    let mut features = format!(" --shingle {shingle}");
    if mask != Mask::default() {
        features += &format!(" --mask {mask}");
    }
    if html.mode != HtmlMode::default() {
        features += &format!(" --html {}", html.mode);
    }
    let kept: String = kept.iter().map(|word| format!(" {word}")).collect();
    let mut line = String::new();
    let mut method = rule.method.clone();
    if weight != Weight::Set {
        method += &format!(" --weight {weight}");
    }
    if setting.scheme.needs_terms() {
        // The sweep has made its table of terms itself; a job reads one from a file.
        line += &format!("lookalike terms{kept}{features} -o sweep.terms && ");
        method += " --terms sweep.terms";
    }
    if let Some(least) = rule.equal {
        // A join compares sketches alone.
        let is_alone = rule.tests.is_empty() && setting.lengths.is_none();
        let sketch = setting.scheme.sketch;
        return is_alone.then(|| {
            format!(
                "{line}lookalike fingerprint{kept}{features}{method} --sketch {sketch} -o sweep.lkfp && \
                 lookalike join sweep.lkfp --equal {least}"
            )
        });
    }
    line += &format!(
        "lookalike pairs{kept}{features}{method} --threshold {}",
        rule.threshold
    );
    for test in &rule.tests {
        line += &format!(" --and {test}");
    }
    if let Some(lengths) = setting.lengths {
        line += &format!(" --lengths {lengths}");
    }
    Some(line)
}

/// The join that finds what a setting of sketches finds at a cut.
pub(super) struct SketchJoin {
    /// Its input, quoted; `None` for an index, which cannot be joined with itself.
    input: Option<String>,
    kind: SketchKind,
}

impl SketchJoin {
    pub(super) fn new(input: &OsStr, given: &GivenSketches) -> Self {
        Self {
            input: (!given.has_index).then(|| quoted(input.to_owned())),
            kind: given.kind,
        }
    }

    /// Returns the command line, or `None` if no join supports this cut.
    pub(super) fn command(&self, cut: f64) -> Option<String> {
        let input = self.input.as_ref()?;
        let shape = match self.kind {
            SketchKind::Fingerprints(bits) => {
                // The score is a number of equal bits, and a cut may lie between two numbers.
                let distance = bits - cut.ceil() as u32;
                let is_near = distance <= MAX_DISTANCE;
                return is_near.then(|| format!("lookalike join {input} --distance {distance}"));
            }
            SketchKind::Places(shape) => shape,
        };
        let places = least_equal(shape, cut)?;
        Some(format!("lookalike join {input} --equal {places}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_sweep_alone_are_left_out() {
        let words = "docs.jsonl --labels pairs.jsonl --two-tests --case keep --masks=none --html main --checkpoint kept --resume --html-title -q";
        let kept = kept(words.split(' ').map(OsString::from));
        assert_eq!(kept, ["docs.jsonl", "--case", "keep", "--html-title"]);
    }

    #[test]
    fn settings_measured_without_a_rule_for_short_texts_were_advised_with_it() {
        let words = "docs.jsonl --short 49:2 --case keep --short=49:2";
        let kept = kept(words.split(' ').map(OsString::from));
        assert_eq!(kept, ["docs.jsonl", "--case", "keep"]);
    }

    #[test]
    fn options_behind_two_hyphens_were_taken_for_inputs() {
        let words = "--case keep --json -- docs.jsonl - -old.jsonl --masks";
        let kept = kept(words.split(' ').map(OsString::from));
        let inputs = ["docs.jsonl", "-", "./-old.jsonl", "./--masks"];
        assert_eq!(kept, [&["--case", "keep"][..], &inputs].concat());
    }

    #[test]
    fn agreement_of_minima_was_advised_as_a_resemblance_and_most_super_shingles_not_at_all() {
        let advised = |sketch: &str, cut| {
            let scheme = Scheme::default().sketch(sketch.parse().unwrap());
            of_setting(&["docs.jsonl".to_owned()], &SweepSetting::from(scheme), cut)
        };
        let joined = |sketch: &str, least: u32| {
            let made = format!("--shingle words:5 --sketch {sketch} -o sweep.lkfp");
            let join = format!("lookalike join sweep.lkfp --equal {least}");
            Some(format!("lookalike fingerprint docs.jsonl {made} && {join}"))
        };
        assert_eq!(advised("minhash:128", 0.79), joined("minhash:128", 102));
        assert_eq!(
            advised("super-shingle:6x3", 2.0),
            joined("super-shingle:6x3", 2)
        );
        // No file holds sketches of one permutation, and a join of signatures allows 128 places to differ.
        assert_eq!(advised("oph:128", 0.8), None);
        assert_eq!(advised("minhash:256", 0.4), None);
    }

    #[test]
    fn coverage_bounds_resemblance_from_below() {
        let setting = SweepSetting::from(Scheme::default()).measure(SetMeasure::Coverage);
        for cut in [0.1, 0.478, 0.9, 1.0] {
            let rule = RecommendedRule::of(&setting, cut).unwrap();
            // The minimum resemblance of sets of 1,000 features of which this share is covered.
            let shared = (cut * 1000.0).ceil();
            assert!(rule.threshold <= shared / (2000.0 - shared), "{cut}");
            assert_eq!(rule.tests, [format!("coverage:words:5:{cut}")]);
        }
    }
}

//! Renders a sweep as one self-contained page: advice, a plot and a table for each setting.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;

use crate::halves::{HalvedAccuracy, NOTHING_CHOSEN};
use crate::nested::ExpectedAccuracy;
use crate::plot;
use crate::sweep::{AccuracyTarget, SweepResult};

const TEMPLATE: &str = include_str!("page/template.html");
const STYLE: &str = include_str!("page/page.css");

/// Contents of the head of the page: how its results were made.
#[derive(Debug, Clone, Serialize)]
pub struct PageHead {
    /// The command line that made the page.
    pub command: String,
    /// Description of what a true pair is.
    pub truth: String,
    /// The accuracy target.
    pub target: AccuracyTarget,
    /// Command of a job that decides by the first recommendation. `None` if no job does.
    pub job: Option<String>,
}

/// Accuracy to expect of the choice on other data: other labels or, without labels, other documents.
#[derive(Debug, Clone, Serialize)]
pub struct SweepExpectation<'a> {
    /// Heading that names the data which had no part in the choice.
    pub heading: String,
    /// Description of how it was measured.
    pub basis: String,
    /// Expected accuracies on other labels.
    pub labels: &'a [ExpectedAccuracy],
    /// Expected accuracies on other documents.
    pub halves: &'a [HalvedAccuracy],
}

/// Renders the page, with the accuracy to expect on other data if it was measured.
///
/// ```
/// use lookalike_eval::page::{PageHead, render};
/// use lookalike_eval::{AccuracyTarget, SweepResult};
///
/// // Of `sweep`.
/// let swept = SweepResult::default();
/// let head = PageHead {
///     command: "my-program --sweep".to_owned(),
///     truth: "labels of two people".to_owned(),
///     target: AccuracyTarget { precision: 0.9, recall: 0.9 },
///     job: None,
/// };
/// assert!(render(&swept, &head, None)?.starts_with("<!doctype html>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the template fails; a test rules that out for every sweep.
pub fn render(
    sweep: &SweepResult,
    head: &PageHead,
    expectation: Option<&SweepExpectation<'_>>,
) -> Result<String, minijinja::Error> {
    let mut environment = Environment::empty();
    // The command line and the names of fields come from outside; only the style and the plots, which are made here, are inserted as they are.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("share", |value: f64| format!("{value:.3}"));
    environment.add_filter("bytes", |value: f64| format!("{value:.0}"));
    environment.add_template("page", TEMPLATE)?;
    let plots: Vec<Value> = sweep
        .rows
        .iter()
        .map(|row| {
            let labels: Vec<String> = row
                .curve
                .points
                .iter()
                .map(|p| number_of(&p.parameter))
                .collect();
            // All points of a curve are cuts of one sketch, so any of them names the axis.
            let name = row.curve.points.first();
            let name = name.map_or("", |point| axis_name(&point.parameter));
            Value::from_safe_string(plot::precision_and_recall(&row.curve, name, &labels))
        })
        .collect();
    let recommendations = sweep.recommendations(head.target);
    environment.get_template("page")?.render(context! {
        style => Value::from_safe_string(STYLE.to_owned()),
        settings => sweep.rows.len(),
        head => Value::from(Serde(head)),
        sweep => Value::from(Serde(sweep)),
        plots => plots,
        recommended => recommendations.len(),
        recommendations => Value::from(Serde(recommendations)),
        best => Value::from(Serde(sweep.best(head.target))),
        expectation => Value::from(Serde(expectation)),
        nothing_chosen => NOTHING_CHOSEN,
        sensitivity => Value::from(Serde(sweep.sensitivity())),
    })
}

/// Returns the name of the axis of the cuts, by the first word of a cut.
fn axis_name(parameter: &str) -> &'static str {
    match parameter.split(' ').next() {
        Some("k") => "maximum distance in bits",
        Some("equal") => "minimum number of equal hashes",
        Some("share") => "minimum share of equal hashes",
        Some("containment") => "minimum containment",
        Some("coverage") => "minimum coverage",
        _ => "minimum resemblance",
    }
}

/// Returns the number at the end of a cut's description.
fn number_of(parameter: &str) -> String {
    parameter.rsplit(' ').next().unwrap_or_default().to_owned()
}

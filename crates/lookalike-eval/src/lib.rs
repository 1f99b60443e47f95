//! Which scheme to trust: precision and recall against labels, or against the exact answer.
//!
//! Stands beside the jobs over collections and uses the same sketches, so that what is measured is
//! what runs. The way of the data:
//!
//! 1. documents become a [`Collection`], in the order of their ids ([`collection`]);
//! 2. the truth is given as [`Labels`] ([`label`]), or is the exact resemblance ([`mod@score`]);
//! 3. each setting scores pairs ([`mod@score`]); every cut through the scores is a [`Point`] with
//!    precision, recall and their limits of confidence ([`curve`], [`interval`]);
//! 4. [`sweep`](sweep()) does that for many settings and advises; [`Audit`] asks on a sample what
//!    one method would miss; [`cluster`] compares clusters, [`core_rule`] by published rules;
//!    [`mod@two_tests`] asks which two of the settings agree best with labels together;
//! 5. [`mod@draw`] picks pairs for people to judge, equally from each band of similarity, and [`strata`]
//!    weighs their labels again;
//! 6. [`page`] shows a sweep as one self-contained page.
//!
//! Nothing here reads files, prints or draws random numbers: samples follow from a seed.

pub mod audit;
pub mod cluster;
pub mod collection;
pub mod core_rule;
pub mod curve;
mod decimal;
pub mod draw;
pub mod interval;
pub mod label;
pub mod nested;
pub mod page;
mod plot;
pub mod score;
pub mod strata;
pub mod sweep;
pub mod two_tests;

pub use audit::{Audit, AuditReport, Sampler};
pub use collection::{Collection, CollectionError, Document};
pub use curve::{Curve, Point};
pub use draw::{Draw, DrawnPair, Stratum, draw};
pub use interval::Estimate;
pub use label::{LabelError, Labels, PairLabel};
pub use nested::Expectation;
pub use score::{Scored, SetMeasure, score, scored_pairs};
pub use strata::Strata;
pub use sweep::{Advice, Setting, Sweep, SweepRow, Truth, Wish, sweep};
pub use two_tests::{JudgedScores, TwoTests, two_tests};

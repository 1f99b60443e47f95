//! Requests to the routes, without a socket. One module for each topic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod clocks;
mod kept;
mod keys;
mod operators;
mod overlap;
mod overload;
mod pairs;
mod paragraphs;
mod refusals;
mod resketch;
mod service;
mod sketches;
mod states;
mod telemetry;
mod verdicts;

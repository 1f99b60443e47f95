//! The HTTP service that answers the question: was this page seen before?
//!
//! [`router`] creates the routes for an [`AppState`], which holds the [`Store`](lookalike_store::Store) and the limits; [`serve`] accepts
//! connections for it. A request takes this path: `listen` accepts and watches its connection, `auth` checks its key and counts it,
//! `request` reads its body within limits, `worker_pool` parses and hashes on separate threads, the store answers, and `endpoint` encodes
//! the answer as JSON. Every error is a [`ProblemDetails`].
//!
//! This crate does not print, exit, or read the environment: the caller passes in the clock and the log. Timeouts use the monotonic clock
//! of the system.

mod api_key;
mod app_state;
mod auth;
mod client;
mod clock;
mod config;
mod connection_activity;
mod content;
mod deadline;
mod description;
mod endpoint;
mod event_log;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod listen;
mod load_shedding;
mod metrics;
mod operation;
mod paragraph;
mod problem;
mod recall;
mod request;
mod request_memory;
mod resketch_jobs;
mod response;
mod rounding;
mod route;
mod scheme;
mod scheme_state;
mod sketch_cache;
mod tls;
mod verdict;
mod verify;
mod word_diff;
mod worker_pool;

pub use api_key::{ApiKey, ApiKeys, KeyError, KeyRole, NewKey};
pub use app_state::AppState;
pub use clock::{GuardedClock, WallClock};
pub use config::{ConfigError, ServiceConfig, ServiceLimits, check_address};
pub use event_log::{EventLog, LogEntry, LogLevel, ParseLogLevelError};
pub use listen::{HEALTH_CONNECTIONS, ServiceListeners, serve};
pub use problem::ProblemDetails;
pub use request::MAX_METADATA_BYTES;
pub use route::router;
pub use scheme::default_scheme;
pub use tls::{ServerTls, TlsError};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ServerReadme;

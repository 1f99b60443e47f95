//! The online service: whether a page was seen before, over HTTP.
//!
//! [`app`] makes the routes over an [`App`], which holds the [`Store`](lookalike_store::Store) and all that bounds the work;
//! [`serve`] accepts connections for it. The way of a request: `listen` accepts and watches the connection, `gate` asks for
//! the key and counts, `request` reads the body within its bounds, `worker` parses and hashes on threads of its own, the
//! store answers, `endpoint` says it in JSON. What goes wrong anywhere is a [`Problem`].
//!
//! Nothing here prints, exits or reads the environment: the clock and the log are given by whoever starts it. Timeouts use the
//! system's monotonic clock.

mod app;
mod clock;
mod config;
mod description;
mod diff;
mod endpoint;
mod gate;
mod host;
mod judgement;
mod key;
mod listen;
mod log;
mod memory;
mod metric;
mod operation;
mod overload;
mod paragraph;
mod problem;
mod request;
mod route;
mod sketch;
mod tls;
mod verify;
mod worker;

pub use app::{App, Setup};
pub use clock::Clock;
pub use config::{ConfigError, Limits, check_address};
pub use key::{Key, KeyError, Keys, NewKey, Role};
pub use listen::{HEALTH_CONNECTIONS, Listeners, serve};
pub use log::{Entry, Level, Log};
pub use problem::Problem;
pub use route::app;
pub use sketch::default_scheme;
pub use tls::{Tls, TlsError};

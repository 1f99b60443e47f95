//! The log of the service. It never contains ids, texts or keys.

use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Map, Value};

lookalike::words! {
    /// The severity of an entry.
    ///
    /// ```
    /// use lookalike_server::LogLevel;
    ///
    /// assert_eq!("warn".parse(), Ok(LogLevel::Warn));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LogLevel {
        /// Something failed that should not have.
        Error = "error",
        /// Something to be checked.
        Warn = "warn",
        /// Normal events of the service.
        Info = "info",
        /// Every single request.
        Debug = "debug",
    }
}

/// Error for a text that is not the name of a level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown level {0:?}: use error, warn, info or debug")]
pub struct ParseLogLevelError(String);

impl FromStr for LogLevel {
    type Err = ParseLogLevelError;

    fn from_str(text: &str) -> Result<Self, ParseLogLevelError> {
        let named = Self::ALL.into_iter().find(|level| level.name() == text);
        named.ok_or_else(|| ParseLogLevelError(text.to_owned()))
    }
}

/// An event.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Its severity.
    pub level: LogLevel,
    /// Name of the event, from a small fixed set.
    pub event: &'static str,
    /// Details of the event.
    pub fields: Map<String, Value>,
}

impl LogEntry {
    /// Creates an entry without fields.
    pub fn new(level: LogLevel, event: &'static str) -> Self {
        Self {
            level,
            event,
            fields: Map::new(),
        }
    }

    /// Adds a field to the entry.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// A receiver of log entries.
#[derive(Clone)]
pub struct EventLog {
    level: LogLevel,
    sink: Arc<dyn Fn(&LogEntry) + Send + Sync>,
}

lookalike::opaque_debug! {
    [] EventLog [];
}

impl EventLog {
    /// Creates a log of entries that are at least as severe as `level`.
    pub fn new(level: LogLevel, sink: impl Fn(&LogEntry) + Send + Sync + 'static) -> Self {
        Self {
            level,
            sink: Arc::new(sink),
        }
    }

    /// Tells whether entries of a level are recorded.
    pub fn enabled(&self, level: LogLevel) -> bool {
        // The enum lists the most severe level first.
        level <= self.level
    }

    /// Records an entry.
    pub fn record(&self, entry: &LogEntry) {
        if self.enabled(entry.level) {
            (self.sink)(entry);
        }
    }
}

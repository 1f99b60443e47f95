//! The log of the service. It never contains ids, texts or keys.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// Severity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something failed that should not have.
    Error,
    /// Something to look at.
    Warn,
    /// The course of the service.
    Info,
    /// Every request.
    Debug,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        })
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Its severity.
    pub level: LogLevel,
    /// Name of the event, one of few words.
    pub event: &'static str,
    /// Details of the event.
    pub fields: Map<String, Value>,
}

impl LogEntry {
    /// An entry without fields.
    pub fn new(level: LogLevel, event: &'static str) -> Self {
        Self {
            level,
            event,
            fields: Map::new(),
        }
    }

    /// The entry with one field more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// Receiver of log entries.
#[derive(Clone)]
pub struct EventLog {
    level: LogLevel,
    sink: Arc<dyn Fn(&LogEntry) + Send + Sync>,
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({})", self.level)
    }
}

impl EventLog {
    /// A log of everything that matters as much as `level`.
    pub fn new(level: LogLevel, sink: impl Fn(&LogEntry) + Send + Sync + 'static) -> Self {
        Self {
            level,
            sink: Arc::new(sink),
        }
    }

    /// Tells whether entries of a level are recorded.
    pub fn wants(&self, level: LogLevel) -> bool {
        level <= self.level
    }

    /// Tells of an entry.
    pub fn record(&self, entry: &LogEntry) {
        if self.wants(entry.level) {
            (self.sink)(entry);
        }
    }
}

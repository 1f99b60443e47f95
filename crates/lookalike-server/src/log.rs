//! What the service has to tell its operator. Ids, texts and keys are never among it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something failed that should not have.
    Error,
    /// Something to look at.
    Warn,
    /// The course of the service.
    Info,
    /// Every request.
    Debug,
}

impl fmt::Display for Level {
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
pub struct Entry {
    /// How much it matters.
    pub level: Level,
    /// What it was, one of few words.
    pub event: &'static str,
    /// What is known of it.
    pub fields: Map<String, Value>,
}

impl Entry {
    /// An entry without fields.
    pub fn new(level: Level, event: &'static str) -> Self {
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

/// Where entries go.
#[derive(Clone)]
pub struct Log {
    level: Level,
    sink: Arc<dyn Fn(&Entry) + Send + Sync>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({})", self.level)
    }
}

impl Log {
    /// A log of everything that matters as much as `level`.
    pub fn new(level: Level, sink: impl Fn(&Entry) + Send + Sync + 'static) -> Self {
        Self {
            level,
            sink: Arc::new(sink),
        }
    }

    /// Whether entries of a level are wanted.
    pub fn wants(&self, level: Level) -> bool {
        level <= self.level
    }

    /// Tells of an entry.
    pub fn say(&self, entry: &Entry) {
        if self.wants(entry.level) {
            (self.sink)(entry);
        }
    }
}

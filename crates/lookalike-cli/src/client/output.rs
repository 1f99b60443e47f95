//! Answers on standard output.

use std::io::{BufWriter, ErrorKind, Result, StdoutLock, Write, stdout};

use serde_json::Value;

use crate::failure::Failure;

/// Prints an answer on a line.
pub(crate) fn print(value: &Value) -> std::result::Result<(), Failure> {
    Ok(writeln!(stdout(), "{value}")?)
}

/// Answers about many documents, one line each.
pub(super) struct AnswerLines {
    out: BufWriter<StdoutLock<'static>>,
    /// True for an operation that changes documents: it continues even if nobody reads the answers any more, because the changes are its result.
    is_change: bool,
    is_closed: bool,
}

impl AnswerLines {
    pub(super) fn new(is_change: bool) -> Self {
        Self {
            out: BufWriter::new(stdout().lock()),
            is_change,
            is_closed: false,
        }
    }

    /// Writes an answer.
    pub(super) fn write(&mut self, answer: &Value) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let written = writeln!(self.out, "{answer}");
        self.settled(written)
    }

    /// Writes buffered answers.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.settled(flushed)
    }

    fn settled(&mut self, written: Result<()>) -> Result<()> {
        match written {
            Err(error) if self.is_change && error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            written => written,
        }
    }
}

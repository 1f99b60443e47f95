//! The log of a collection: each group of writes is a frame, appended to files whose contents never change once written.
//!
//! A group becomes durable by one sync, so only the frame at the end of the newest file can be incomplete; anything wrong elsewhere is
//! damage. Soon after the last group, a frame without changes follows, the *closing frame*: from then on, damage to the group cannot be
//! mistaken for an interrupted write either. The file is extended by zeros ahead of the frames, which do not count as contents.
//!
//! After a crash, writes continue in a new log. The last frame can be read but may not be durable, so the new log starts with a copy of it,
//! and its header says that the previous log ends before that frame. The old log is never written again.

mod frame;
mod read;
mod write;

pub(crate) use frame::{FRAME_HEADER, LogEnd, LogHeader, MAX_PAYLOAD_BYTES, SECTOR};
pub(crate) use read::{LogContents, read_log, read_log_header, salvage_log};
pub(crate) use write::{AppendResult, LogWriter};

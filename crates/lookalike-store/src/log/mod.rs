//! The log: groups of writes, each a frame, one after the other in files that are never changed once written.
//!
//! A group is what one sync makes durable, so at the end of the newest file at most one frame can be half written:
//! whatever is wrong elsewhere is damage. Soon after the last group follows a frame without changes, the *closing frame*:
//! from then on damage to the group is no interrupted write, either. The file grows by zeros ahead of the frames; only what
//! is not zero counts.
//!
//! After a crash writing goes on in a new log. The last frame may not be durable yet, though it can be read, so that the
//! new log begins with a copy of it, and says that the log before ends ahead of it. No byte of a log that was found is
//! written again.

mod frame;
mod read;
mod write;

pub(crate) use frame::{FRAME_HEADER, LogEnd, LogHeader, MAX_PAYLOAD_BYTES, SECTOR};
pub(crate) use read::{LogContents, read_log, read_log_header, salvage_log};
pub(crate) use write::{AppendResult, LogWriter};

//! The log: groups of writes, each a frame, one after the other in files that are never changed once written.
//!
//! A group is what one sync makes durable, so at the end of the newest file at most one frame can be half written:
//! whatever is wrong elsewhere is damage. The file grows by zeros ahead of the frames; only what is not zero counts.

mod frame;
mod read;
mod write;

pub(crate) use frame::{FRAME_HEADER, LARGEST_PAYLOAD, LogHeader};
pub(crate) use read::{LogContents, read_log, salvage_log};
pub(crate) use write::{Appended, LogWriter};

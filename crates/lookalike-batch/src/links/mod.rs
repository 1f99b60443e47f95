//! Links inverted: texts and addresses of links become fields of the pages that they lead to (Manku et al. 2007, section 5.3; Haveliwala et al. 2002).
//!
//! Three passes, each in constant memory but for a table of 24 bytes a page:
//!
//! 1. *addresses* of all pages, sorted by their hashes ([`table`]);
//! 2. *links* of all pages, or of other files that hold them. Each becomes a string that begins with the number of the page that it
//!    belongs to, and strings are sorted on disk ([`frame`], [`crate::spill::frame_sort`]);
//! 3. pages again, in their order, each with the strings that begin with its number ([`job`]).

mod frame;
pub(crate) mod job;
mod page;
mod table;
#[cfg(test)]
mod tests;

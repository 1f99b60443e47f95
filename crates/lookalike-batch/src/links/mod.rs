//! Inverts links: link texts and addresses become fields of the pages that they lead to (Manku et al. 2007, section 5.3; Haveliwala et al. 2002).
//!
//! The job reads its input three times. Memory is constant except for a table of 24 bytes for each page:
//!
//! 1. *Addresses*: the addresses of all pages are collected and sorted by their hashes ([`table`]).
//! 2. *Links*: the links of all pages, or of other files, are encoded as strings that start with the number of the page that they belong to, and
//!    sorted on disk ([`frame`], [`crate::spill::frame_sort`]).
//! 3. *Pages*: the pages are written in their order, each with the links that start with its number ([`job`]).

mod frame;
pub(crate) mod job;
mod page;
mod table;
#[cfg(test)]
mod tests;

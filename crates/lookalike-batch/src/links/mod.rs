//! Inverts links: link texts and addresses become fields of the pages that they lead to (Manku et al. 2007, section 5.3; Haveliwala et al. 2002).
//!
//! The job reads its input three times. Memory is constant except for a table of 24 bytes for each page. All threads take part in every step:
//!
//! 1. *Addresses*: the addresses of all pages are collected and sorted by their hashes ([`table`]).
//! 2. *Links*: the links of all pages, or of other files, are encoded as strings that start with the number of the page that they belong to
//!    ([`frame`]), and divided by ranges of these numbers ([`link_spool`]). Each thread sorts one range after another
//!    ([`crate::spill::frame_sort`]) and makes the fields of its pages ([`page_fields`]).
//! 3. *Pages*: the pages are written in their order, each with its fields ([`job`]).

mod frame;
pub(crate) mod job;
mod link_spool;
mod page;
mod page_fields;
mod table;
#[cfg(test)]
mod tests;

//! Beginnings of pages, and the syntax by which each is read.

use memchr::memmem;

use super::tag::is_tag;
use crate::input_window::BYTE_ORDER_MARK;

/// The first tags of pages, by which browsers know those without a declared type (WHATWG MIME Sniffing, section 7.1), and those with which
/// a head without its tag begins.
const FIRST_TAGS: [&[u8]; 19] = [
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<meta",
    b"<link",
    b"<base",
];

/// The first tags of feeds, which may lack the declaration of XML (WHATWG MIME Sniffing, section 7.3).
const FEED_TAGS: [&[u8]; 3] = [b"<rss", b"<feed", b"<rdf:RDF"];

/// The syntax of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageSyntax {
    Html,
    /// HTML that declares itself to be XML: `/>` ends any element, and CDATA sections are text.
    Xhtml,
    /// Another vocabulary of XML, such as a feed: all its text counts, and the names of HTML mean nothing.
    Xml,
}

impl PageSyntax {
    /// Returns the syntax of a page. It depends only on the bytes, not on a declared type, so that equal pages have equal texts.
    pub(super) fn of(page: &str) -> PageSyntax {
        let page = without_mark(page.as_bytes()).trim_ascii_start();
        let start = after_prologue(page);
        match page.starts_with(b"<?xml") {
            true if begins_page(start) => PageSyntax::Xhtml,
            true => PageSyntax::Xml,
            false if begins_with(start, &FEED_TAGS) => PageSyntax::Xml,
            false => PageSyntax::Html,
        }
    }
}

/// Returns true if the bytes begin as pages do, behind what may come before their first tag. Texts may begin so, too: only what has no declared type is
/// a page for that.
pub(crate) fn begins_page(bytes: &[u8]) -> bool {
    begins_with(after_prologue(bytes), &FIRST_TAGS)
}

/// Returns true if the bytes begin with one of these tags, in any case.
pub(crate) fn begins_with(bytes: &[u8], tags: &[&[u8]]) -> bool {
    tags.iter().any(|tag| is_tag(bytes, tag))
}

/// Skips what may come before the first tag of a page: white space, comments and the declaration of XML.
pub(crate) fn after_prologue(bytes: &[u8]) -> &[u8] {
    const PARTS: [(&[u8], &[u8]); 2] = [(b"<!--", b"-->"), (b"<?xml", b"?>")];
    let mut rest = without_mark(bytes);
    loop {
        rest = rest.trim_ascii_start();
        let Some((start, end)) = PARTS.iter().find(|(start, _)| rest.starts_with(start)) else {
            return rest;
        };
        let inside = &rest[start.len()..];
        rest = match memmem::find(inside, end) {
            Some(at) => &inside[at + end.len()..],
            None => &[],
        };
    }
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

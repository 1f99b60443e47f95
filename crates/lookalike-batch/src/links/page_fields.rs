//! Link fields of pages, which are made from sorted links, and their encoding as byte strings.

use std::io;
use std::iter::Peekable;
use std::sync::mpsc::Receiver;

use bytemuck::{Pod, Zeroable};

use super::frame::{self, PageLink};
use super::page::{self, AnchorField, LinkFields};
use crate::spill::frame_sort::{LENGTH, SortedFrames, split_frame};

/// Sorted strings, of which the next one can be looked at.
pub(super) type NumberedFrames = Peekable<SortedFrames>;

/// Returns the number of the next string.
pub(super) fn next_number(frames: &mut NumberedFrames) -> Option<u32> {
    let next = frames.peek()?;
    // An error, which has no number, is returned with the strings of any number.
    Some(next.as_deref().map_or(0, frame::number_of))
}

/// Returns the next string if it has this number.
pub(super) fn next_of(frames: &mut NumberedFrames, number: u32) -> io::Result<Option<Vec<u8>>> {
    // An error is returned at once, whichever number it would have had.
    let is_it = |frame: &Vec<u8>| frame::number_of(frame) == number;
    let next = frames.next_if(|next| next.as_ref().ok().is_none_or(is_it));
    next.transpose()
}

/// Numbers of entries in the link fields of a page.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct EntryCounts {
    pub(super) anchors: u64,
    pub(super) in_links: u64,
    pub(super) out_links: u64,
    /// Number of entries left out.
    pub(super) cut: u64,
}

/// Link fields of a page as JSON, with the number of entries in each.
pub(super) struct FieldsOfPage {
    counts: EntryCounts,
    json: Vec<u8>,
}

impl FieldsOfPage {
    /// Makes the fields from the links of a page, keeping at most `most` entries of each kind.
    pub(super) fn of(links: &mut NumberedFrames, page: u32, most: usize) -> io::Result<Self> {
        let mut fields = LinkFields::default();
        let mut cut = 0;
        let mut anchors: Vec<(usize, AnchorField)> = Vec::new();
        while let Some(frame) = next_of(links, page)? {
            let (address, anchor) = match frame::read(&frame) {
                PageLink::Out(address) => {
                    match fields.out_links.len() < most {
                        true => fields.out_links.push(address),
                        false => cut += 1,
                    }
                    continue;
                }
                PageLink::In(address, anchor) => (address, anchor),
            };
            // Links from one address are adjacent, because they start with its hash and then the address.
            if fields.in_links.last() != Some(&address) {
                if fields.in_links.len() == most {
                    cut += 1;
                    continue;
                }
                fields.in_links.push(address);
            }
            let source = fields.in_links.len() - 1;
            match anchor {
                Some(_) if anchors.len() == most => cut += 1,
                Some(anchor) => anchors.push((source, AnchorField::from(anchor))),
                None => {}
            }
        }
        // Sort by address, as readers expect. Anchors from one page stay in the order of their texts.
        anchors.sort_by(|a, b| fields.in_links[a.0].cmp(&fields.in_links[b.0]));
        fields.anchors = anchors.into_iter().map(|(_, anchor)| anchor).collect();
        fields.in_links.sort_unstable();
        fields.out_links.sort_unstable();
        let mut json = Vec::new();
        page::write_json(&fields, &mut json);
        let counts = EntryCounts {
            anchors: fields.anchors.len() as u64,
            in_links: fields.in_links.len() as u64,
            out_links: fields.out_links.len() as u64,
            cut,
        };
        Ok(Self { counts, json })
    }

    /// Appends the string of these fields for a page: the page number, the four counts and the JSON.
    pub(super) fn write(&self, page: u32, frame: &mut Vec<u8>) {
        frame.extend(page.to_be_bytes());
        // Only the page number decides the order, so the rest need not be big-endian.
        frame.extend(bytemuck::bytes_of(&self.counts));
        frame.extend(&self.json);
    }
}

/// Strings of the fields of pages, in the order of the pages, as they arrive.
pub(super) struct FieldStream {
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// Received bytes, of which those before `start` were returned.
    bytes: Vec<u8>,
    start: usize,
    /// JSON of the fields of a page without links.
    without_links: Vec<u8>,
}

impl FieldStream {
    pub(super) fn new(pieces: Receiver<io::Result<Vec<u8>>>) -> Self {
        let mut without_links = Vec::new();
        page::write_json(&LinkFields::default(), &mut without_links);
        Self {
            pieces,
            bytes: Vec::new(),
            start: 0,
            without_links,
        }
    }

    /// Returns the fields of a page. Pages must be requested in ascending order.
    pub(super) fn of(&mut self, page: u32) -> io::Result<(EntryCounts, &[u8])> {
        while split_frame(&self.bytes[self.start..]).is_none() {
            let Ok(piece) = self.pieces.recv() else {
                break;
            };
            self.bytes.drain(..self.start);
            self.start = 0;
            self.bytes.extend_from_slice(&piece?);
        }
        let next = split_frame(&self.bytes[self.start..]);
        match next.filter(|(frame, _)| frame::number_of(frame) == page) {
            None => Ok((EntryCounts::default(), &self.without_links)),
            Some((frame, _)) => {
                self.start += LENGTH + frame.len();
                let (counts, json) = frame[4..].split_at(size_of::<EntryCounts>());
                Ok((bytemuck::pod_read_unaligned(counts), json))
            }
        }
    }
}

//! The compact form of a batch: fingerprints and ids in binary, for clients that send many.
//!
//! | operation | an item |
//! |---|---|
//! | check | fingerprint (8) |
//! | insert, check-and-insert | fingerprint (8), length of the id (2), id |
//! | delete | length of the id (2), id |
//!
//! Numbers are little-endian; items follow one another up to the end of the body. The answer has one byte for each item.

use lookalike::Fingerprint;

use crate::problem::ProblemDetails;

/// Media type of requests and answers in this form.
pub(crate) const PACKED: &str = "application/vnd.lookalike.packed";

/// In the answer to a check: nothing is within the radius. Any other value of these seven bits is a distance.
const NEW: u8 = 0x7f;
/// In the answer to a check-and-insert: the document was inserted. To an insert: there was a document with this id. To a delete: the
/// document existed.
const DONE: u8 = 0x80;

/// Encodes a distance and a flag as a byte of an answer.
pub(crate) fn byte(distance: Option<u32>, done: bool) -> u8 {
    // Fingerprints have 64 bits, so no distance equals `NEW`.
    // Collections of other sketches refuse this form: `CollectionTask::contents`.
    let near = distance.map_or(NEW, |distance| distance as u8 & NEW);
    if done { near | DONE } else { near }
}

/// Reads a body from beginning to end.
pub(crate) struct PackedReader<'b>(pub(crate) &'b [u8]);

impl PackedReader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn fingerprint(&mut self) -> Option<Fingerprint> {
        self.take().map(u64::from_le_bytes).map(Fingerprint)
    }

    pub(crate) fn id(&mut self) -> Option<String> {
        let length = u16::from_le_bytes(self.take()?);
        let (id, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        String::from_utf8(id.to_vec()).ok()
    }
}

/// Reads all items of a body, at most `most`.
pub(crate) fn unpack<T>(
    body: &[u8],
    most: usize,
    item: impl Fn(&mut PackedReader<'_>) -> Option<T>,
) -> Result<Vec<T>, ProblemDetails> {
    let (mut items, mut rest) = (Vec::new(), PackedReader(body));
    while !rest.0.is_empty() {
        if items.len() == most {
            return Err(ProblemDetails::too_large(format!(
                "the batch has more than {most} items"
            )));
        }
        let at = body.len() - rest.0.len();
        items.push(item(&mut rest).ok_or_else(|| {
            ProblemDetails::malformed(format!(
                "the item at byte {at} is cut short, or its id is not UTF-8"
            ))
            .at(Some(items.len()))
        })?);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_to_the_last_byte() {
        let pair = |from: &mut PackedReader<'_>| Some((from.fingerprint()?, from.id()?));
        let body = [&[7, 0, 0, 0, 0, 0, 0, 0, 2, 0][..], b"ab"].concat();
        let twice = [body.clone(), body.clone()].concat();
        let wanted = (Fingerprint(7), "ab".to_owned());
        assert_eq!(
            unpack(&twice, 2, pair).expect("two"),
            [wanted.clone(), wanted]
        );
        assert_eq!(
            unpack(&twice, 1, pair)
                .expect_err("too many")
                .status
                .as_u16(),
            413
        );
        for cut in 1..body.len() {
            assert!(unpack(&body[..cut], 9, pair).is_err(), "{cut}");
        }
        assert!(unpack(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xff], 9, pair).is_err());
        assert_eq!(unpack(&[], 0, pair).expect("none"), []);
    }

    #[test]
    fn bytes_tell_distances_and_deeds_apart() {
        assert_eq!(
            [
                byte(None, false),
                byte(None, true),
                byte(Some(0), false),
                byte(Some(16), true)
            ],
            [0x7f, 0xff, 0, 0x90]
        );
    }
}

//! Lengths that Parquet packs as differences (DELTA_BINARY_PACKED), added up before the library allocates memory for them.
//!
//! The count of the lengths is stored before them, and the library trusts it. If values share prefixes (DELTA_BYTE_ARRAY), the values of a page can
//! also be a thousand times as large as the page.

use super::thrift::CompactWalk;

/// A sequence of lengths.
pub(super) struct DeltaLengths {
    /// Number of values.
    pub(super) count: u64,
    /// Sum of all lengths.
    pub(super) sum: u64,
    /// Number of bytes in which they are packed.
    pub(super) bytes: usize,
}

/// Reads at most `most` lengths from the start of `bytes`. Returns `None` if they are inconsistent.
pub(super) fn lengths(bytes: &[u8], most: u64) -> Option<DeltaLengths> {
    let mut walk = CompactWalk::new(bytes.iter().copied());
    // The header has the number of values in a block, that of parts in a block, that of all values, and the first value.
    let block = walk.number()?;
    let minis = walk.number()?;
    let count = walk.number()?;
    let first = i32::try_from(walk.signed()?).ok()?;
    // `None` for a block without parts.
    let mini_values = block.checked_div(minis)?;
    // A block is divided evenly into parts whose values fill whole bytes.
    if block % minis != 0 || mini_values == 0 || mini_values % 32 != 0 || count > most {
        return None;
    }
    let mut at = usize::try_from(walk.passed()).ok()?;
    if count == 0 {
        return Some(DeltaLengths {
            count,
            sum: 0,
            bytes: at,
        });
    }
    // A negative length is inconsistent.
    let (mut last, mut sum) = (first, u64::try_from(first).ok()?);
    let mut left = count - 1;
    while left > 0 {
        let mut head = CompactWalk::new(bytes.get(at..)?.iter().copied());
        // Truncated to 32 bits like the values: higher bits would wrap away in the sum.
        let least = head.signed()? as i32;
        at += usize::try_from(head.passed()).ok()?;
        let widths = bytes.get(at..at.checked_add(usize::try_from(minis).ok()?)?)?;
        at += widths.len();
        for &width in widths {
            // The widths of parts without values may be anything (Parquet, Encodings: DELTA_BINARY_PACKED).
            if left == 0 {
                break;
            }
            if width > 32 {
                return None;
            }
            // The last part is padded: its bytes exist, but its values do not count.
            let here = left.min(mini_values);
            for number in 0..here {
                let delta = packed(bytes.get(at..)?, number, width)?;
                // Differences wrap around in 32 bits, as the format specifies.
                last = last.wrapping_add(least).wrapping_add(delta as i32);
                sum += u64::try_from(last).ok()?;
            }
            left -= here;
            let whole = mini_values.checked_mul(width.into())? / 8;
            // May be beyond the end if a writer cut off the padding of the last part.
            at = at.checked_add(usize::try_from(whole).ok()?)?;
        }
    }
    Some(DeltaLengths {
        count,
        sum,
        bytes: at.min(bytes.len()),
    })
}

/// Returns the number at index `place` of numbers of `width` bits, lowest bits first.
fn packed(bytes: &[u8], place: u64, width: u8) -> Option<u32> {
    let bit = place.checked_mul(width.into())?;
    let start = usize::try_from(bit / 8).ok()?;
    let length = (bit % 8 + u64::from(width)).div_ceil(8) as usize;
    // 32 bits that start at any bit of a byte span at most 39 bits, which is five of the eight bytes.
    let mut word = [0; 8];
    word.get_mut(..length)?
        .copy_from_slice(bytes.get(start..start + length)?);
    let shifted = u64::from_le_bytes(word) >> (bit % 8);
    Some((shifted & ((1 << width) - 1)) as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn signed(out: &mut Vec<u8>, value: i64) {
        number(out, ((value << 1) ^ (value >> 63)) as u64);
    }

    /// Packs lengths like a writer: blocks of 128 in four parts.
    fn pack(lengths: &[i32]) -> Vec<u8> {
        let mut out = Vec::new();
        for head in [128, 4, lengths.len() as u64] {
            number(&mut out, head);
        }
        signed(&mut out, lengths.first().map_or(0, |&first| first.into()));
        let deltas: Vec<i64> = lengths
            .windows(2)
            .map(|pair| i64::from(pair[1]) - i64::from(pair[0]))
            .collect();
        for block in deltas.chunks(128) {
            let least = block.iter().copied().min().unwrap_or(0);
            signed(&mut out, least);
            let bits = |part: &[i64]| {
                let most = part.iter().map(|delta| delta - least).max().unwrap_or(0);
                64 - (most as u64).leading_zeros()
            };
            let parts: Vec<&[i64]> = block.chunks(32).collect();
            let widths: Vec<u32> = parts.iter().map(|part| bits(part)).collect();
            out.extend((0..4).map(|part| widths.get(part).copied().unwrap_or(0) as u8));
            for (part, &width) in parts.iter().zip(&widths) {
                let mut packed = vec![0; 4 * width as usize];
                for (place, delta) in part.iter().enumerate() {
                    for bit in 0..width as usize {
                        let at = place * width as usize + bit;
                        packed[at / 8] |= (((delta - least) >> bit & 1) as u8) << (at % 8);
                    }
                }
                out.extend(packed);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn lengths_add_up(
            values in prop::collection::vec(0..1_i32 << 30, 0..400),
            behind in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let packed = pack(&values);
            let found = lengths(&[packed.clone(), behind].concat(), 400).unwrap();
            prop_assert_eq!(found.count, values.len() as u64);
            prop_assert_eq!(found.sum, values.iter().map(|&value| value as u64).sum::<u64>());
            prop_assert_eq!(found.bytes, packed.len());
            prop_assert!(lengths(&packed, values.len().saturating_sub(1) as u64).is_none() || values.is_empty());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = lengths(&bytes, 1000);
        }
    }

    #[test]
    fn negative_lengths_are_none() {
        assert!(lengths(&pack(&[5, -1]), 10).is_none());
        assert!(lengths(&pack(&[-5]), 10).is_none());
    }
}

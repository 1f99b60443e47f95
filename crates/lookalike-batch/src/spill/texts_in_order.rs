//! Reads texts of a table, which may be on disk, in another order than they are stored in.

use crate::spill::table_memory::trim_periodically;

/// Minimum number of texts that are looked up together.
const MIN_LOOKUP_TEXTS: usize = 1 << 14;

/// Maximum number of passes over the table.
const PASSES: usize = 64;

/// Calls `show` with the text of each number of `order`, in that order.
///
/// Looks up a part of the texts at a time, in the order of their numbers, in which they are stored: on disk, random access costs a page per text.
/// Memory: the texts of a part, a 64th of all, and 20 bytes for each.
///
/// # Errors
/// Returns the first error of `show`.
pub(crate) fn texts_in_order<'a, E>(
    order: &[u32],
    text: impl Fn(usize) -> &'a [u8],
    mut show: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut looked_up, mut bytes, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for part in order.chunks(order.len().div_ceil(PASSES).max(MIN_LOOKUP_TEXTS)) {
        looked_up.clear();
        looked_up.extend(0..part.len() as u32);
        looked_up.sort_unstable_by_key(|&at| part[at as usize]);
        bytes.clear();
        ranges.clear();
        ranges.resize(part.len(), 0..0);
        for &at in &looked_up {
            // Texts may be in mapped columns, and each lookup can make further pages resident.
            trim_periodically();
            let start = bytes.len();
            bytes.extend_from_slice(text(part[at as usize] as usize));
            ranges[at as usize] = start..bytes.len();
        }
        for range in &ranges {
            show(&bytes[range.clone()])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn every_text_is_shown_in_its_turn() {
        let texts: Vec<String> = (0..2 * MIN_LOOKUP_TEXTS + 77)
            .map(|number| number.to_string())
            .collect();
        let count = texts.len();
        let order: Vec<u32> = (0..count).map(|at| (at * 7919 % count) as u32).collect();
        let mut shown = Vec::new();
        let Ok(()) = texts_in_order(
            &order,
            |number| texts[number].as_bytes(),
            |text| {
                shown.push(text.to_vec());
                Ok::<_, Infallible>(())
            },
        );
        let expected: Vec<&[u8]> = order
            .iter()
            .map(|&number| texts[number as usize].as_bytes())
            .collect();
        assert_eq!(shown, expected);
        let mut left = 5;
        let mut count_down = || {
            left -= 1;
            if left > 0 { Ok(()) } else { Err("enough") }
        };
        let ended = texts_in_order(&order, |number| texts[number].as_bytes(), |_| count_down());
        assert_eq!((ended, left), (Err("enough"), 0));
    }
}

//! Bob Jenkins's lookup3 for Holub's words (`hashlittle2`, May 2006, public domain), two 32-bit hashes at once.

/// Computes the two hashes that `hashlittle2` leaves in `*pc` and `*pb`, given their initial values.
///
/// Checked against the values that the self-test of the original source (`driver5`) publishes.
#[must_use]
pub fn lookup3(bytes: &[u8], pc: u32, pb: u32) -> (u32, u32) {
    let start = 0xDEAD_BEEF_u32
        .wrapping_add(bytes.len() as u32)
        .wrapping_add(pc);
    let mut state = [start, start, start.wrapping_add(pb)];
    let mut rest = bytes;
    // A last block of up to 12 bytes is left for `finish`. More than 12, not at least 12: the original source mixes the last twelve bytes with
    // `final`, and its published values depend on that.
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        add(&mut state, block);
        mix(&mut state);
        rest = after;
    }
    if !rest.is_empty() {
        add(&mut state, rest);
        finish(&mut state);
    }
    (state[2], state[1])
}

/// Computes both hashes as 64 bits, `c + (b << 32)` as the original source recommends; `seed` is `pc + (pb << 32)`.
#[must_use]
pub fn lookup3_64(bytes: &[u8], seed: u64) -> u64 {
    let (c, b) = lookup3(bytes, seed as u32, (seed >> 32) as u32);
    u64::from(c) | u64::from(b) << 32
}

/// Adds up to 12 bytes; missing ones count as zero.
fn add(state: &mut [u32; 3], block: &[u8]) {
    let mut bytes = [0; 12];
    bytes[..block.len()].copy_from_slice(block);
    for (word, bytes) in state.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

/// Applies `mix(a, b, c)` of the original source.
fn mix([a, b, c]: &mut [u32; 3]) {
    // `a -= c; a ^= rot(c, 4); c += b;` of the original source, and so on in turn.
    let step = |x: &mut u32, y: &mut u32, z: u32, by: u32| {
        *x = x.wrapping_sub(*y) ^ y.rotate_left(by);
        *y = y.wrapping_add(z);
    };
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

/// Applies `final(a, b, c)` of the original source.
fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, by: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(by));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_self_test_values() {
        // driver5 of lookup3.c: "hash is <c> <b>" for hashlittle2, then hashlittle.
        let text: &[u8] = b"Four score and seven years ago";
        let empty: &[u8] = b"";
        let cases = [
            (empty, 0, 0, (0xDEAD_BEEF, 0xDEAD_BEEF)),
            (empty, 0, 0xDEAD_BEEF, (0xBD5B_7DDE, 0xDEAD_BEEF)),
            (empty, 0xDEAD_BEEF, 0xDEAD_BEEF, (0x9C09_3CCD, 0xBD5B_7DDE)),
            (text, 0, 0, (0x1777_0551, 0xCE72_26E6)),
            (text, 0, 1, (0xE360_7CAE, 0xBD37_1DE4)),
            (text, 1, 0, (0xCD62_8161, 0x6CBE_A4B3)),
        ];
        for (bytes, pc, pb, expected) in cases {
            assert_eq!(lookup3(bytes, pc, pb), expected, "{bytes:?} {pc:x} {pb:x}");
        }
        assert_eq!(lookup3_64(text, 1 << 32), 0xBD37_1DE4_E360_7CAE);
    }

    #[test]
    fn every_length_and_every_byte_counts() {
        let bytes: Vec<u8> = (0..40).collect();
        let mut seen = std::collections::BTreeSet::new();
        for len in 0..=bytes.len() {
            assert!(seen.insert(lookup3_64(&bytes[..len], 7)), "length {len}");
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(seen.insert(lookup3_64(&other, 7)), "byte {at}");
        }
    }
}

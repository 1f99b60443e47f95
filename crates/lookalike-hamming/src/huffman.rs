//! Length-limited canonical Huffman codes for a small alphabet, most significant bit first.

/// Maximum bits of a code: a decoder looks codes up in a table of 2 to this power entries.
pub(super) const MAX_CODE_BITS: u32 = 12;

/// Computes the lengths of an optimal prefix code with codes of at most [`MAX_CODE_BITS`] bits, by package-merge. Symbols that do not occur get length 0; a
/// lone symbol gets 1.
pub(super) fn code_lengths(counts: &[u64]) -> Vec<u8> {
    let mut coins: Vec<(u64, Vec<usize>)> = (0..counts.len())
        .filter(|&symbol| counts[symbol] > 0)
        .map(|symbol| (counts[symbol], vec![symbol]))
        .collect();
    // Equal counts are ordered by symbol, so that the same counts give the same code everywhere.
    coins.sort();
    let mut lengths = vec![0; counts.len()];
    if let [(_, only)] = coins.as_slice() {
        lengths[only[0]] = 1;
    }
    // There are 65 symbols and 12 lengths, so a few thousand coins, however large the collection.
    let mut packages = coins.clone();
    // Package-merge (Larmore, Hirschberg 1990), with a coin for each symbol and length: a code has as many bits
    // as its symbol has coins among the 2 n - 2 cheapest coins and packages.
    for _ in 1..MAX_CODE_BITS {
        // Of an odd number, the most expensive is left over, and in no package.
        let pairs = packages.chunks_exact(2);
        let paired = pairs.map(|two| {
            (
                two[0].0 + two[1].0,
                [two[0].1.as_slice(), &two[1].1].concat(),
            )
        });
        packages = paired.chain(coins.iter().cloned()).collect();
        packages.sort_by_key(|&(weight, _)| weight);
    }
    if coins.len() > 1 {
        // There are as many, because codes of twelve bits outnumber the symbols.
        for (_, symbols) in &packages[..2 * coins.len() - 2] {
            for &symbol in symbols {
                lengths[symbol] += 1;
            }
        }
    }
    lengths
}

/// Returns the code of each symbol and its length; shorter codes come first, then by symbol.
fn canonical(lengths: &[u8]) -> Vec<(u32, u32)> {
    let mut order: Vec<usize> = (0..lengths.len())
        .filter(|&symbol| lengths[symbol] > 0)
        .collect();
    order.sort_by_key(|&symbol| lengths[symbol]);
    let mut codes = vec![(0, 0); lengths.len()];
    let (mut next, mut before) = (0_u32, 0);
    for symbol in order {
        let length = u32::from(lengths[symbol]);
        // Codes of one length are consecutive numbers; a longer one begins with the next of them. Canonical (Schwartz, Kallick 1964): the lengths
        // determine the codes, which is why the header has nothing else.
        next <<= length - before;
        codes[symbol] = (next, length);
        next += 1;
        before = length;
    }
    codes
}

/// Returns true if the lengths are those of a prefix code.
fn is_prefix_code(lengths: &[u8]) -> bool {
    let used = lengths.iter().filter(|&&length| length > 0);
    let space = |&length: &u8| 1_u64 << (MAX_CODE_BITS - u32::from(length).min(MAX_CODE_BITS));
    // Kraft's inequality, in units of the longest code.
    lengths
        .iter()
        .all(|&length| u32::from(length) <= MAX_CODE_BITS)
        && used.map(space).sum::<u64>() <= 1 << MAX_CODE_BITS
}

/// Codes for writing.
#[derive(Clone, Debug)]
pub(super) struct HuffmanEncoder {
    codes: Vec<(u32, u32)>,
}

impl HuffmanEncoder {
    pub(super) fn new(lengths: &[u8]) -> Self {
        Self {
            codes: canonical(lengths),
        }
    }

    /// Returns the code of a symbol and its length, which is 0 if it has no code.
    pub(super) fn code(&self, symbol: usize) -> (u32, u32) {
        self.codes[symbol]
    }
}

/// Decoder: a table from the next [`MAX_CODE_BITS`] bits to a symbol and its length.
#[derive(Clone, Debug)]
pub(super) struct HuffmanDecoder {
    table: Vec<(u8, u8)>,
}

impl HuffmanDecoder {
    /// Creates the decoder; `None` if the lengths are not those of a prefix code.
    pub(super) fn new(lengths: &[u8]) -> Option<Self> {
        if !is_prefix_code(lengths) {
            return None;
        }
        let mut table = vec![(0, 0); 1 << MAX_CODE_BITS];
        for (symbol, (code, length)) in canonical(lengths).into_iter().enumerate() {
            if length > 0 {
                // All entries that begin with a code lead to its symbol, so one lookup decodes a symbol.
                let first = (code << (MAX_CODE_BITS - length)) as usize;
                table[first..first + (1 << (MAX_CODE_BITS - length))]
                    .fill((symbol as u8, length as u8));
            }
        }
        Some(Self { table })
    }

    /// Returns the symbol of the code that the bits begin with, and its length, which is 0 if there is none.
    pub(super) fn decode(&self, bits: u64) -> (u32, u32) {
        let (symbol, length) = self.table[(bits >> (64 - MAX_CODE_BITS)) as usize];
        (symbol.into(), length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unlimited_optimum_is_reached_when_it_is_short() {
        // The textbook example: 45 13 12 16 9 5 costs 224 bits.
        let counts = [45, 13, 12, 16, 9, 5];
        let lengths = code_lengths(&counts);
        assert_eq!(lengths, [1, 3, 3, 3, 4, 4]);
        assert_eq!(code_lengths(&[0, 7, 0]), [0, 1, 0]);
        assert_eq!(code_lengths(&[0, 0]), [0, 0]);
    }

    #[test]
    fn lengths_are_limited_on_geometric_counts() {
        let counts: Vec<u64> = (0..60).map(|i| 1_u64 << (i % 50)).collect();
        let lengths = code_lengths(&counts);
        assert!(
            lengths
                .iter()
                .all(|&length| (1..=MAX_CODE_BITS as u8).contains(&length))
        );
        assert!(is_prefix_code(&lengths));
    }

    proptest! {
        #[test]
        fn codes_decode(counts in proptest::collection::vec(0_u64..1000, 1..65)) {
            let lengths = code_lengths(&counts);
            let encoder = HuffmanEncoder::new(&lengths);
            let decoder = HuffmanDecoder::new(&lengths).expect("a prefix code");
            for (symbol, &count) in counts.iter().enumerate() {
                let (code, length) = encoder.code(symbol);
                prop_assert_eq!(length > 0, count > 0);
                if length > 0 {
                    let bits = u64::from(code) << (64 - length) | u64::MAX >> length;
                    prop_assert_eq!(decoder.decode(bits), (symbol as u32, length));
                }
            }
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        assert!(HuffmanDecoder::new(&[1, 1, 1]).is_none());
        assert!(HuffmanDecoder::new(&[13]).is_none());
        assert!(HuffmanDecoder::new(&[255, 1]).is_none());
    }
}

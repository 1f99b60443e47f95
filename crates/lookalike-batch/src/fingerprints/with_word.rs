//! One call for fingerprints of any width.

/// Evaluates an expression with the type of words that holds fingerprints of this width: `with_word!(bits, W => read::<W>(file))`.
macro_rules! with_word {
    ($bits:expr, $word:ident => $call:expr) => {
        match $bits {
            32 => {
                type $word = u32;
                $call
            }
            128 => {
                type $word = u128;
                $call
            }
            _ => {
                type $word = u64;
                $call
            }
        }
    };
}
pub(crate) use with_word;

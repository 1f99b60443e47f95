//! Codes: the bit strings that are compared by Hamming distance, as machine integers that tables pack and compare.

pub use integer::Integer;
pub use word::Word;

mod integer;
pub(crate) mod sealed;
mod word;

//! Seals the traits of this crate, so that their contracts can grow.

/// Prevents other crates from implementing a trait.
pub trait Sealed {}

impl Sealed for u32 {}
impl Sealed for u64 {}
impl Sealed for u128 {}

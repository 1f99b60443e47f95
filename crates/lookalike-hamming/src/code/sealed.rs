//! Closes the traits of this engine, so that their contracts can grow.

/// Keeps other crates from implementing a trait.
pub trait Sealed {}

impl Sealed for u32 {}
impl Sealed for u64 {}
impl Sealed for u128 {}

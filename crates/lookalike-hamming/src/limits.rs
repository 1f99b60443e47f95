//! Limits that a caller sets: structs with their defaults and a setter for each field.

/// Defines a `#[non_exhaustive]` struct with public fields, its value by default, and a method for each field, which returns the struct with it set.
macro_rules! limits {
    (
        $(#[$meta:meta])+
        pub struct $kind:ident { $($(#[$doc:meta])+ $field:ident: $type:ty = $default:expr,)+ }
    ) => {
        $(#[$meta])+
        #[non_exhaustive]
        pub struct $kind {
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl Default for $kind {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $kind {
            $(
                $(#[$doc])+
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

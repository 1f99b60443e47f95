//! Settings with their defaults and builder methods, and `Debug` for types whose contents tell nothing.

/// Defines a method for each field, which takes the struct and returns it with that field set. Fields can then be added to a `#[non_exhaustive]`
/// struct without breaking its users. For the crates of this workspace.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($kind:ident<$life:lifetime> { $($(#[$doc:meta])+ $field:ident: $type:ty),+ $(,)? }) => {
        impl<$life> $kind<$life> {
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
    ($kind:ident { $($field:ident: $type:ty),+ $(,)? }) => {
        impl $kind {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

/// Defines a `#[non_exhaustive]` struct with public fields, a setter for each, and its value by default: that of its type unless another is given.
/// For the crates of this workspace.
#[doc(hidden)]
#[macro_export]
macro_rules! settings {
    (@default) => {
        Default::default()
    };
    (@default $default:expr) => {
        $default
    };
    (
        $(#[$meta:meta])+
        pub struct $kind:ident { $($(#[$doc:meta])+ $field:ident: $type:ty $(= $default:expr)?,)+ }
    ) => {
        $(#[$meta])+
        #[non_exhaustive]
        pub struct $kind {
            $($(#[$doc])+ pub $field: $type,)+
        }

        impl Default for $kind {
            fn default() -> Self {
                Self { $($field: $crate::settings!(@default $($default)?),)+ }
            }
        }

        $crate::setters! { $kind { $($field: $type),+ } }
    };
}

/// Defines the struct of a job: the arguments of its function `new`, and its options, each with the documentation of its setter and its value by
/// default: that of its type unless another is given. For the crates of this workspace.
#[doc(hidden)]
#[macro_export]
macro_rules! job {
    (
        $(#[$meta:meta])+
        pub struct $kind:ident<$life:lifetime> {
            $(#[$creation:meta])+
            new($($own_visible:vis $own:ident: $own_type:ty),+);
            $($(#[$doc:meta])+ $visible:vis $field:ident: $type:ty $(= $default:expr)?,)+
        }
    ) => {
        $(#[$meta])+
        pub struct $kind<$life> {
            $($own_visible $own: $own_type,)+
            $($visible $field: $type,)+
        }

        impl<$life> $kind<$life> {
            $(#[$creation])+
            pub fn new($($own: $own_type),+) -> Self {
                Self { $($own,)+ $($field: $crate::settings!(@default $($default)?),)+ }
            }
        }

        $crate::setters! { $kind<$life> { $($(#[$doc])+ $field: $type),+ } }
    };
}

/// Implements `Debug` for types by their names, as buffers, readers and codecs in them have none or too long a text. For the crates of this
/// workspace.
#[doc(hidden)]
#[macro_export]
macro_rules! opaque_debug {
    ($([$($parameter:tt)*] $kind:ident [$($argument:tt)*];)+) => {
        $(
            impl<$($parameter)*> std::fmt::Debug for $kind<$($argument)*> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.debug_struct(stringify!($kind)).finish_non_exhaustive()
                }
            }
        )+
    };
}

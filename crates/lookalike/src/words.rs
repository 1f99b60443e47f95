//! Enums whose values have a word each.

/// Defines an enum whose values have a word each, with a list of all values, their words, and printing. With `: Serialize` after its name, the enum
/// is serialised as its word. For the crates of this workspace.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])+
        $visible:vis enum $kind:ident $(: $serialize:ident)? { $($(#[$about:meta])+ $value:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])+
        $visible enum $kind {
            $($(#[$about])+ $value,)+
        }

        impl $kind {
            /// Every value.
            $visible const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// Returns the word for the value in options, results and messages.
            #[must_use]
            $visible const fn name(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        $(impl $serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        })?
    };
}

//! Structs of counts, which add up field by field.

/// Defines a struct whose values can be added: those of each field are.
macro_rules! tally {
    (
        $(#[$meta:meta])+
        $visible:vis struct $name:ident { $($(#[$doc:meta])* $field_visible:vis $field:ident: $type:ty,)+ }
    ) => {
        $(#[$meta])+
        $visible struct $name {
            $($(#[$doc])* $field_visible $field: $type,)+
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

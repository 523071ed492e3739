//! Macros for structs of options, and for their setters, which all have the same form.

/// Defines methods `with_FIELD` inside an `impl` of options. Each takes the options by value, sets a field, and returns
/// the options. In `with_threads: threads = impl Into<Option<usize>>`, the method, its field, and the type of its
/// argument are named; the argument must be `Into` the field's type. A doc comment before it is appended to the
/// generated one.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$more:meta])* $name:ident: $field:ident = $argument:ty;)*) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        $(#[$more])*
        #[must_use]
        pub fn $name(mut self, $field: $argument) -> Self {
            self.$field = $field.into();
            self
        }
    )*};
}

/// Defines a struct of options with its defaults and setters: `pub threads: usize = 2, with_threads(usize);` is a field,
/// its default, and its setter with the argument's type ([`setters`]).
#[doc(hidden)]
#[macro_export]
macro_rules! options_struct {
    ($(#[$of_struct:meta])* pub struct $name:ident {$(
        $(#[$of_field:meta])*
        pub $field:ident: $type:ty = $default:expr $(, $setter:ident($argument:ty))?;
    )*}) => {
        $(#[$of_struct])*
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            $crate::setters! {$(
                $($setter: $field = $argument;)?
            )*}
        }
    };
}

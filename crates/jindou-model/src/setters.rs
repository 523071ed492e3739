//! A macro for the setters of structs of options, which all have the same form.

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

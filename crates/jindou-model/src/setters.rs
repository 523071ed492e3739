//! Setters for structs of options, all of the same form.

/// Defines methods `with_FIELD` inside an `impl` of options: each takes the options by value, sets the field, and
/// returns them. `with_threads: threads = impl Into<Option<usize>>` names the method, its field, and the type of its
/// argument, which must be `Into` the field's. Comments before it follow the sentence that names the field.
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

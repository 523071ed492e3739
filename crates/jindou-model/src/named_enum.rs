//! A macro for enums whose variants have names.

/// Defines an enum without fields, each variant with its name, and a method `name`:
/// `named_enum! { enum Unit { Second = "s", Minute = "min", } pub fn name; }`.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$of_enum:meta])*
        $vis:vis enum $enum:ident {$(
            $(#[$of_variant:meta])* $variant:ident = $name:literal,
        )*}
        $(#[$of_method:meta])*
        $of:vis fn name;
    ) => {
        $(#[$of_enum])*
        $vis enum $enum {$(
            $(#[$of_variant])* $variant,
        )*}

        impl $enum {
            $(#[$of_method])*
            #[must_use]
            $of fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

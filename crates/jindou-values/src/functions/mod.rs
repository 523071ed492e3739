//! The named functions of SPARQL 1.1, SPARQL 1.2 and SPARQL Enhancement Proposals, with a file for each family. The
//! definition of a function has its names, arguments, types, whether equal arguments always yield the same value, cost,
//! errors and examples. Functions that this crate computes also have a *row form*, which computes the value for one
//! row.
//!
//! To add a function, write an entry of `functions!` in its family's file, and one in
//! [`for_each_function`](crate::for_each_function!). Parser, planner, engine, completion and `docs/functions.md` use
//! the definition.
//!
//! A row form is generic over the type of [`Row`] that provides its arguments. The engine's type is known at compile
//! time, so calls of it are neither virtual nor looked up.
//!
//! All functions require a value for each argument: an argument that is unbound or an error makes the call an error.

/// Defines functions: for each one its module, its names, the fields of its definition that differ from those of `BASE`,
/// and its row form, if it has one: a closure of the row and the values of the arguments.
macro_rules! functions {
    ($(
        $(#[$doc:meta])* $module:ident $name:literal $($alias:literal)* { $($field:ident: $value:expr),* $(,)? }
        $(|$row:ident, $values:ident| $body:block)?
    )*) => {$(
        #[doc = concat!("`", $name, "`.")]
        $(#[$doc])*
        pub mod $module {
            use super::BASE;
            #[allow(unused_imports, reason = "no function needs all")]
            use crate::{
                Num, Number,
                functions::{ArenaSpan, ArenaText, Cost, Definition, Row, Scalar, Type, Val, blocks},
            };
            #[allow(unused_imports, reason = "no function needs all")]
            use jindou_model::term::{self, Parts};

            /// Names, argument types, cost and documentation of the function.
            pub const DEFINITION: Definition = Definition {
                names: &[$name $(, $alias)*],
                $($field: $value,)*
                ..BASE
            };

            $(
                /// The function's value for one row, from the values of its arguments; `None` for an error.
                #[inline]
                pub fn row<R: Row>($row: &mut R, $values: &[Val]) -> Option<Val> $body
            )?
        }
    )*};
}

mod blocks;
mod dates;
mod hashes;
mod matching;
mod numbers;
mod reference;
mod row;
mod strings;
mod terms;

pub use dates::*;
pub use hashes::*;
pub use matching::*;
pub use numbers::*;
pub use reference::reference;
pub use row::{ArenaSpan, ArenaText, Row, Val};
pub use strings::*;
pub use terms::*;

use crate::Num;

/// Calls a macro with a list of all functions. Each entry has the variant, the name and the module, the word `row` if
/// there is a row form, and in parentheses the variant and the name of an alias.
#[macro_export]
macro_rules! for_each_function {
    ($callback:ident $([$($before:tt)*])?) => {
        $callback! {
            $([$($before)*])?
            Str "STR" str row, Lang "LANG" lang row, LangMatches "LANGMATCHES" lang_matches row,
            Datatype "DATATYPE" datatype row, Iri "IRI" iri (Uri "URI"), BNode "BNODE" bnode, Rand "RAND" rand,
            Abs "ABS" abs row, Ceil "CEIL" ceil row, Floor "FLOOR" floor row, Round "ROUND" round row,
            Concat "CONCAT" concat, SubStr "SUBSTR" substr row, StrLen "STRLEN" strlen row, Replace "REPLACE" replace,
            UCase "UCASE" ucase row, LCase "LCASE" lcase row, EncodeForUri "ENCODE_FOR_URI" encode_for_uri,
            Contains "CONTAINS" contains row, StrStarts "STRSTARTS" strstarts row, StrEnds "STRENDS" strends row,
            StrBefore "STRBEFORE" strbefore row, StrAfter "STRAFTER" strafter row, Year "YEAR" year row,
            Month "MONTH" month row, Day "DAY" day row, Hours "HOURS" hours row, Minutes "MINUTES" minutes row,
            Seconds "SECONDS" seconds row, Timezone "TIMEZONE" timezone row, Tz "TZ" tz row,
            Adjust "ADJUST" adjust row, Now "NOW" now, Uuid "UUID" uuid, StrUuid "STRUUID" struuid, Md5 "MD5" md5,
            Sha1 "SHA1" sha1, Sha256 "SHA256" sha256, Sha384 "SHA384" sha384, Sha512 "SHA512" sha512,
            StrLang "STRLANG" strlang, StrDt "STRDT" strdt, IsIri "isIRI" is_iri (IsUri "isURI"),
            IsBlank "isBLANK" is_blank, IsLiteral "isLITERAL" is_literal, IsNumeric "isNUMERIC" is_numeric,
            Regex "REGEX" regex, Triple "TRIPLE" triple, Subject "SUBJECT" subject row,
            Predicate "PREDICATE" predicate row, Object "OBJECT" object row, IsTriple "isTRIPLE" is_triple row,
            LangDir "LANGDIR" langdir row, HasLang "hasLANG" has_lang row, HasLangDir "hasLANGDIR" has_langdir row,
            StrLangDir "STRLANGDIR" strlangdir,
        }
    };
}

jindou_model::named_enum! {
    /// The type of an argument or a value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Type {
        /// Any term.
        Term = "term",
        /// An IRI.
        Iri = "IRI",
        /// A blank node.
        Blank = "blank node",
        /// Any literal.
        Literal = "literal",
        /// A string with or without a language tag.
        Text = "string",
        /// A string without a language tag.
        Simple = "string without language tag",
        /// A number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
        /// A date or time.
        Time = "date or time",
        /// A duration.
        Duration = "duration",
        /// A triple term.
        Triple = "triple term",
    }
    /// The type's name in the reference documentation.
    pub fn name;
}

impl Type {
    /// True for IRIs and strings, with or without a language tag: two such terms are equal only if they are the same
    /// term.
    #[must_use]
    pub fn is_text(self) -> bool {
        matches!(self, Self::Iri | Self::Text | Self::Simple)
    }
}

/// The cost of a call, which decides whether its values are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A few instructions.
    Little,
    /// Text is read or created, so that caching the value is worthwhile.
    Text,
}

/// Definition of a function.
#[derive(Debug)]
pub struct Definition {
    /// Its names in the usual spelling; messages use the first one.
    pub names: &'static [&'static str],
    /// Names and types of its arguments.
    pub arguments: &'static [(&'static str, Type)],
    /// Smallest number of arguments. The repeated argument counts: 0 if it may be left out.
    pub least: usize,
    /// True if the last of `arguments` may be repeated.
    pub repeats: bool,
    /// The type of its values.
    pub gives: Type,
    /// True if equal arguments always yield the same value within a query.
    pub deterministic: bool,
    /// The cost of a call.
    pub cost: Cost,
    /// Its row form; `None` if the engine computes it.
    pub row: Option<Scalar>,
    /// Its form for columns of numbers, if it maps numbers to numbers.
    pub number: Option<fn(Num) -> Option<Num>>,
    /// Section of the reference documentation that it belongs to.
    pub group: &'static str,
    /// One or two sentences about its value.
    pub summary: &'static str,
    /// Conditions under which a call is an error, apart from arguments without a value; empty if there are none.
    pub errors: &'static str,
    /// Example calls, each with its value.
    pub examples: &'static [(&'static str, &'static str)],
}

impl Definition {
    /// Defaults for a deterministic function of texts without a row form.
    const DEFAULT: Self = Self {
        names: &[],
        arguments: &[],
        least: 1,
        repeats: false,
        gives: Type::Text,
        deterministic: true,
        cost: Cost::Text,
        row: None,
        number: None,
        group: "",
        summary: "",
        errors: "",
        examples: &[],
    };

    /// Largest number of arguments.
    #[must_use]
    pub fn most(&self) -> usize {
        if self.repeats {
            usize::MAX
        } else {
            self.arguments.len()
        }
    }

    /// True if it can be called with this many arguments.
    #[must_use]
    pub fn takes(&self, arguments: usize) -> bool {
        (self.least..=self.most()).contains(&arguments)
    }
}

macro_rules! definitions {
    ($(
        $variant:ident $name:literal $module:ident $($row:ident)? $(($alias:ident $other:literal))?
    ),* $(,)?) => {
        /// All functions.
        pub static ALL: &[&Definition] = &[$(&$module::DEFINITION),*];

        /// The functions with a row form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Scalar {
            $($(#[doc = concat!("The ", stringify!($row), " form of [`", stringify!($module), "`].")] $variant,)?)*
        }

        impl Scalar {
            /// The function's definition.
            #[must_use]
            pub fn definition(self) -> &'static Definition {
                match self {
                    $($(Self::$variant => {
                        // `$row` must occur here, so that only functions with a row form have this arm.
                        const _: &str = stringify!($row);
                        &$module::DEFINITION
                    })?)*
                }
            }

            /// The value for a row, from the values of all arguments; `None` for an error.
            #[inline]
            pub fn row<R: Row>(self, row: &mut R, values: &[Val]) -> Option<Val> {
                match self {
                    $($(Self::$variant => $module::$row(row, values),)?)*
                }
            }
        }
    };
}
for_each_function!(definitions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_consistent() {
        for d in ALL {
            let name = d.names[0];
            assert!(d.least <= d.arguments.len(), "{name}");
            assert!(
                d.row.is_none_or(|r| r.definition().names == d.names),
                "{name}"
            );
            assert!(
                d.number.is_none() || d.gives == Type::Number && d.arguments.len() == 1,
                "{name}"
            );
            assert!(
                d.summary.ends_with('.') && !d.errors.ends_with('.'),
                "{name}"
            );
            assert_eq!(
                ALL.iter().filter(|o| o.names.contains(&name)).count(),
                1,
                "{name}"
            );
        }
    }
}

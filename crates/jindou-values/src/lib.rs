//! Values of RDF terms, implemented from the specifications: lexical and value spaces of XSD 1.1, the functions and
//! operators of XPath 3.1 to which SPARQL 1.1 §17 refers, and SPARQL's own. `docs/values.md` lists the decisions where
//! the specifications leave a choice.
//!
//! ```text
//! canonical bytes ─ value ─► Value ─► equal, order, truth, cast, arithmetic ─► canonical bytes
//! ```
//!
//! The value ranks of the dictionary, the engine's expressions on rows and columns, and filters on ids all use this
//! crate, so that an expression has the same value everywhere.
//!
//! | module | values |
//! |---|---|
//! | `number` | numbers of all types: small ones are `Copy` ([`Num`]), others are on the heap ([`Number`]) |
//! | `decimal`, `exact` | decimals with 18 digits after the point in 128 bits; decimals of any length |
//! | `temporal` | dates and times; their components, time zones and arithmetic |
//! | `duration` | durations |
//! | `derived` | the types derived from `xsd:dateTime` and `xsd:string` |
//! | `cast` | XPath's constructor functions |
//! | `value` | terms as values; `=`, `<`, effective boolean values |
//! | [`functions`] | the functions of SPARQL that have a name, with a file for each family |
//! | [`pattern`] | regular expressions of REGEX and REPLACE |

mod cast;
mod decimal;
mod derived;
mod duration;
mod exact;
pub mod functions;
mod number;
pub mod pattern;
mod temporal;
mod value;

pub use cast::{cast, cast_text, push_string};
pub use decimal::Decimal;
pub use derived::{DerivedType, derived_intervals, simple_text};
pub use duration::{Duration, DurationKey};
pub use exact::Exact;
pub use number::{Arithmetic, Num, Number, NumericKind};
pub use temporal::{Temporal, TemporalKind};
pub use value::{Value, boolean, equal, equal_values, order, truth, value};

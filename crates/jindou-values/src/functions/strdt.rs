//! `STRDT`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRDT"],
    arguments: &[("text", Type::Simple), ("datatype", Type::Iri)],
    least: 2,
    repeats: false,
    gives: Type::Literal,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Terms",
    summary: "The literal with a text and a datatype.",
    errors: "unless the first is a string without a language tag and the second an IRI",
    examples: &[(
        r#"STRDT("123", <http://www.w3.org/2001/XMLSchema#integer>)"#,
        "123",
    )],
};

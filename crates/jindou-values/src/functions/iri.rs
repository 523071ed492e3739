//! `IRI`. Its values are computed in the engine's `machine.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["IRI", "URI"],
    arguments: &[("text", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Iri,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Terms",
    summary: "The IRI of a string, resolved against the base IRI of the query; an IRI as it is.",
    errors: "unless the argument is an IRI or a string without a language tag, and for a text that is not an IRI",
    examples: &[(r#"IRI("http://example.org/a")"#, "<http://example.org/a>")],
};

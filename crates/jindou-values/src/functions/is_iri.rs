//! `isIRI`. Its values are computed in the engine's `machine.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["isIRI", "isURI"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Terms",
    summary: "True for an IRI.",
    errors: "",
    examples: &[
        ("isIRI(<http://example.org/a>)", "true"),
        (r#"isIRI("a")"#, "false"),
    ],
};

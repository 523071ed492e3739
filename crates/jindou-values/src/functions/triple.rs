//! `TRIPLE`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["TRIPLE"],
    arguments: &[
        ("subject", Type::Term),
        ("predicate", Type::Term),
        ("object", Type::Term),
    ],
    least: 3,
    repeats: false,
    gives: Type::Triple,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Terms",
    summary: "The triple term of three terms.",
    errors: "unless the subject is an IRI or blank node and the predicate an IRI",
    examples: &[],
};

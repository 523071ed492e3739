//! `UUID`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["UUID"],
    arguments: &[],
    least: 0,
    repeats: false,
    gives: Type::Iri,
    deterministic: false,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Terms",
    summary: "A new IRI of the scheme `urn:uuid:` in each call.",
    errors: "",
    examples: &[],
};

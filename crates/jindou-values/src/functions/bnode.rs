//! `BNODE`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["BNODE"],
    arguments: &[("label", Type::Simple)],
    least: 0,
    repeats: false,
    gives: Type::Blank,
    deterministic: false,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Terms",
    summary: "A blank node: a new one in each call, or one that calls with the same label in one solution share.",
    errors: "for a label that is not a string without a language tag",
    examples: &[],
};

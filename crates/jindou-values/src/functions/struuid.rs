//! `STRUUID`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRUUID"],
    arguments: &[],
    least: 0,
    repeats: false,
    gives: Type::Simple,
    deterministic: false,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Terms",
    summary: "A new UUID as a string in each call.",
    errors: "",
    examples: &[],
};

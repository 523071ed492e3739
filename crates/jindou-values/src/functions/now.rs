//! `NOW`. Its values are computed in the engine's `code.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["NOW"],
    arguments: &[],
    least: 0,
    repeats: false,
    gives: Type::Time,
    deterministic: true,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Dates and times",
    summary: "The time at which the query began, the same in all calls.",
    errors: "",
    examples: &[],
};

//! `isNUMERIC`. Its values are computed in the engine's `machine.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["isNUMERIC"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Numbers",
    summary: "True for a literal of a numeric datatype whose text is a number of it.",
    errors: "",
    examples: &[("isNUMERIC(12)", "true"), (r#"isNUMERIC("12")"#, "false")],
};

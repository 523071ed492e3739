//! `isLITERAL`. Its values are computed in the engine's `machine.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["isLITERAL"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Terms",
    summary: "True for a literal.",
    errors: "",
    examples: &[(r#"isLITERAL("a")"#, "true")],
};

//! `isBLANK`. Its values are computed in the engine's `machine.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["isBLANK"],
    arguments: &[("term", Type::Term)],
    least: 1,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Terms",
    summary: "True for a blank node.",
    errors: "",
    examples: &[("isBLANK(<http://example.org/a>)", "false")],
};

//! `RAND`. Its values are computed in the engine's `machine.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["RAND"],
    arguments: &[],
    least: 0,
    repeats: false,
    gives: Type::Number,
    deterministic: false,
    cost: Cost::Little,
    row: None,
    number: None,
    group: "Numbers",
    summary: "A random double, from 0 up to but without 1; another one in each call.",
    errors: "",
    examples: &[],
};

//! `ENCODE_FOR_URI`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["ENCODE_FOR_URI"],
    arguments: &[("text", Type::Text)],
    least: 1,
    repeats: false,
    gives: Type::Simple,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Strings",
    summary: "The text with everything but letters, digits, `-`, `_`, `.` and `~` percent-encoded.",
    errors: "for anything but a string",
    examples: &[(r#"ENCODE_FOR_URI("Los Angeles")"#, r#""Los%20Angeles""#)],
};

//! `STRLANGDIR`. Its values are computed in the engine's `make.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["STRLANGDIR"],
    arguments: &[
        ("text", Type::Simple),
        ("tag", Type::Simple),
        ("direction", Type::Simple),
    ],
    least: 3,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Terms",
    summary: "The string with a language tag and a base direction, `ltr` or `rtl`.",
    errors: "unless all are strings without a language tag, and for a text that is not a tag or a direction",
    examples: &[],
};

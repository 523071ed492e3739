//! `REGEX`. Its values are computed in the engine's `regex.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["REGEX"],
    arguments: &[
        ("text", Type::Text),
        ("pattern", Type::Simple),
        ("flags", Type::Simple),
    ],
    least: 2,
    repeats: false,
    gives: Type::Boolean,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Strings",
    summary: "True if a part of the text matches a regular expression, as XPath has them.",
    errors: "unless the first is a string and the others are strings without a language tag, and for a wrong pattern or flag",
    examples: &[(r#"REGEX("Alice", "^ali", "i")"#, "true")],
};

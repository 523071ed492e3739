//! `REPLACE`. Its values are computed in the engine's `regex.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["REPLACE"],
    arguments: &[
        ("text", Type::Text),
        ("pattern", Type::Simple),
        ("replacement", Type::Simple),
        ("flags", Type::Simple),
    ],
    least: 3,
    repeats: false,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Strings",
    summary: "The text with each match of a regular expression replaced; `$1` to `$9` in the replacement are groups of the match. Keeps the language tag.",
    errors: "unless the first is a string and the others are strings without a language tag, for a wrong pattern, flag or replacement, and for a pattern that matches the empty string",
    examples: &[
        (r#"REPLACE("abcd", "b", "Z")"#, r#""aZcd""#),
        (r#"REPLACE("abab", "B", "Z", "i")"#, r#""aZaZ""#),
    ],
};

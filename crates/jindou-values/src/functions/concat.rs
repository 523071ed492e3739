//! `CONCAT`. Its values are computed in the engine's `text.rs`.

use super::{Cost, Definition, Type};

/// The function.
pub const DEFINITION: Definition = Definition {
    names: &["CONCAT"],
    arguments: &[("text", Type::Text)],
    least: 0,
    repeats: true,
    gives: Type::Text,
    deterministic: true,
    cost: Cost::Text,
    row: None,
    number: None,
    group: "Strings",
    summary: "All arguments joined; with a language tag if all have the same one. Takes any number of arguments.",
    errors: "unless all are strings",
    examples: &[
        (r#"CONCAT("foo"@en, "bar"@en)"#, r#""foobar"@en"#),
        (r#"CONCAT("foo"@en, "bar")"#, r#""foobar""#),
    ],
};
